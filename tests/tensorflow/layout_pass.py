#!/usr/bin/env python3
"""Does Spillway know which tensors TensorFlow's layout pass transposes?

For each graph of tests/graphs and of limit_graphs.py, and for nets below of ops that the pass treats
in ways of their own: Grappler's dependency and layout passes edit the graph for the targets that
Spillway finds, as on a GPU of that compute capability. The tensors that a Transpose then reads, and
the direction, must be those that `list_passes` (built beside the tests) prints. (Several readers of
one tensor have a Transpose each, which the elimination of common subexpressions makes one.)

    python tests/tensorflow/layout_pass.py --list-passes build/tests/list_passes

One line per graph; at the end, alone on its line, `N passed, N failed, N skipped` (graphs with ops
that this TensorFlow lacks). Exit code 0: nothing failed; 1: something did; 2: bad usage.
"""
import argparse
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import limit_graphs  # noqa: E402
from truth import graphs, names, train  # noqa: E402

for _key, _value in train.ENVIRONMENT.items():
    os.environ[_key] = _value
tf = train.tensorflow()

from tensorflow.core.protobuf import rewriter_config_pb2  # noqa: E402
from truth import grappler, passes  # noqa: E402
from what_runs import half_net  # noqa: E402

v1 = tf.compat.v1
GRAPHS = HERE.parent / "graphs"
MEMORY_BYTES = 16 << 30
CHANNELS = 8


def minimized(loss):
    v1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")


def weights(name, *shape, dtype=tf.float32):
    return v1.get_variable(name, list(shape), dtype, use_resource=False)


def images(*shape, dtype=tf.float32):
    """Of known shape: the pass does not trust that of a placeholder."""
    return v1.random_uniform(list(shape) or [4, 16, 16, CHANNELS], dtype=dtype)


def conv(x, name, **options):
    return tf.nn.conv2d(x, weights(name, 3, 3, CHANNELS, CHANNELS, dtype=x.dtype),
                        options.pop("strides", 1), options.pop("padding", "SAME"), **options)


def shapes_of_all_kinds():
    x = conv(images(), "a")
    left, right = tf.split(x, 2, axis=3)
    x = tf.concat([right, tf.nn.elu(left)], axis=-1)
    x = tf.pad(x, [[0, 0], [1, 1], [2, 2], [0, 0]])
    x = conv(x[:, 1:-1, 2:-2, :], "b") + tf.reduce_mean(x, [1, 2], keepdims=True)
    x = x * weights("per_channel", CHANNELS) + tf.slice(x, [0, 0, 0, 0], [-1, 16, 16, -1])[0:4]
    x = tf.transpose(conv(x, "c"), [0, 2, 1, 3])
    x = conv(tf.reshape(x, [4, 16, 16, CHANNELS]), "d")
    x = tf.tile(x, [1, 2, 1, 1]) / 2.0
    minimized(tf.reduce_sum(tf.reduce_mean(x, [1, 2]) ** 2) + tf.reduce_sum(tf.square(x)))


def normalized():
    x = conv(images(), "a")
    x, _, _ = v1.nn.fused_batch_norm(x, weights("s1", CHANNELS), weights("o1", CHANNELS))
    x = tf.nn.relu6(x)
    x = tf.nn.local_response_normalization(conv(x, "b"))
    x = tf.nn.bias_add(conv(tf.nn.leaky_relu(x), "c"), weights("bias", CHANNELS))
    x = tf.nn.avg_pool2d(tf.nn.max_pool2d(x, 2, 2, "SAME"), 3, 1, "SAME")
    x, _, _ = v1.nn.fused_batch_norm(x, weights("s2", CHANNELS), weights("o2", CHANNELS),
                                     tf.ones([CHANNELS]), tf.ones([CHANNELS]), is_training=False)
    x = tf.nn.depthwise_conv2d(tf.nn.softplus(x), weights("deep", 3, 3, CHANNELS, 1),
                               [1, 1, 1, 1], "SAME")
    x = tf.squeeze(tf.nn.avg_pool2d(conv(x, "d"), 8, 8, "SAME"), [1, 2])
    minimized(tf.reduce_sum(tf.abs(x)))


def upward():
    x = tf.nn.relu(conv(images(), "a", strides=2))
    x = tf.nn.conv2d_transpose(x, weights("up", 3, 3, CHANNELS, CHANNELS), [4, 16, 16, CHANNELS], 2)
    x = tf.image.resize(conv(x, "b"), [32, 32])
    x = tf.nn.depth_to_space(conv(x, "c"), 2)
    minimized(tf.reduce_sum(tf.maximum(x, tf.sigmoid(x)) * tf.cast(x > 0.5, tf.float32)))


def beside_others():
    """With operands that come from elsewhere."""
    x = conv(images(), "a")
    x = conv(x * images(), "b") + images(4, 16, 16, 1)
    x = conv(tf.add_n([x, images()]), "c")
    x = conv(tf.concat([x, images()], 3)[:, :, :, CHANNELS:], "d")
    y, _, x = tf.identity_n([images(), tf.zeros([2]), x])
    x = conv(x, "e") + conv(y, "f")
    minimized(tf.reduce_sum(tf.maximum(x, images()) * x))


def dropped():
    """The pass fails at the SelectV2 of a dropout's gradient, or of its forward pass."""
    x = tf.nn.dropout(tf.nn.relu(conv(images(), "a")), 0.5)
    minimized(tf.reduce_sum(conv(x, "b") ** 2))


def volumes():
    x = images(2, 8, 8, 8, 4)
    for name in "ab":
        x = tf.nn.relu(tf.nn.conv3d(x, weights(name, 3, 3, 3, 4, 4), [1] * 5, "SAME"))
        x = tf.nn.max_pool3d(x, 2, 2, "SAME") + tf.reduce_mean(x)
    minimized(tf.reduce_sum(x * x))


def fetched_within():
    x = tf.nn.relu(conv(images(), "a"), name="train")
    tf.reduce_sum(conv(x, "b"), name="loss")


def brain_floats():
    x = tf.nn.relu(conv(images(4, 16, 16, CHANNELS, dtype=tf.bfloat16), "a"))
    minimized(tf.cast(tf.reduce_sum(conv(x, "b")), tf.float32))


def of_function(make):
    with tf.Graph().as_default() as graph:
        make()
    return graph.as_graph_def()


NETS = {make.__name__: make for make in (
    shapes_of_all_kinds, normalized, upward, beside_others, dropped, volumes, fetched_within, brain_floats)}


def theirs_of(graph_def, targets, capability):
    config = grappler.config()
    rewrites = config.graph_options.rewrite_options
    rewrites.optimizers.extend(["dependency", "layout"])
    rewrites.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    after = train.parse(grappler.optimized(graph_def.SerializeToString(), targets, capability,
                                           MEMORY_BYTES, config))
    by_name = {node.name: node for node in after.node}
    formats = {node.name: node.attr["data_format"].s for node in graph_def.node
               if "data_format" in node.attr}
    other = {by_name[name].attr["data_format"].s.decode() for name in formats
             if name in by_name and by_name[name].attr["data_format"].s != formats[name]}
    found = set()
    for name in passes.leading_to(after, targets):
        if by_name[name].op == "Transpose" and name.endswith("-LayoutOptimizer"):
            to = "other" if any("To%s-" % format in name for format in other) else "file"
            found.add("%s %s" % (names.tensor(by_name[name].input[0]), to))
    return found


def through_identities(graph_def, found):
    """With the tensors that Identities read, which the dependency pass may remove."""
    by_name = {node.name: node for node in graph_def.node}
    plain = set()
    for text in found:
        tensor, to = text.rsplit(" ", 1)
        while by_name[names.node(tensor)].op in ("Identity", "IdentityN"):
            port = int(names.tensor(tensor).rpartition(":")[2])
            tensor = by_name[names.node(tensor)].input[port]
        plain.add("%s %s" % (names.tensor(tensor), to))
    return plain


def all_cases():
    for folder in sorted(path.parent for path in GRAPHS.glob("*/graph.pb.gz")):
        yield folder.name, train.parse(graphs.Graph(folder).bytes), ("7.0",)
    with tempfile.TemporaryDirectory() as folder:
        for name in limit_graphs.GRAPHS:
            limit_graphs.write(name, pathlib.Path(folder))
            yield name, train.parse(graphs.Graph(folder).bytes), ("7.0",)
    yield "half", half_net()[0], ("6.0", "7.0")
    for name, make in NETS.items():
        yield name, of_function(make), ("7.0", "8.0")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--list-passes", required=True, metavar="PROGRAM")
    parser.add_argument("-k", metavar="PATTERN", default="", help="only graphs with this in the name")
    args = parser.parse_args()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory() as folder:
        for name, graph_def, capabilities in all_cases():
            if args.k not in name:
                continue
            missing = passes.missing_op(graph_def)
            if missing:
                print("skipped %s: this TensorFlow has no op %s" % (name, missing))
                counts["skipped"] += 1
                continue
            path = os.path.join(folder, "graph.pb")
            pathlib.Path(path).write_bytes(graph_def.SerializeToString())
            for capability in capabilities:
                listed = passes.listed(args.list_passes, path, capability)
                found = theirs_of(graph_def, listed["target"], capability)
                ours = through_identities(graph_def, listed["transposed"])
                theirs = through_identities(graph_def, found)
                wrong = ours != theirs
                counts["failed" if wrong else "passed"] += 1
                print("%s %s on %s: %s" % (
                    "FAILED" if wrong else "ok", name, capability,
                    "only Spillway: %s; only TensorFlow: %s" % (
                        sorted(ours - theirs)[:5], sorted(theirs - ours)[:5]) if wrong
                    else "%d tensors are transposed" % len(ours)), flush=True)
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
