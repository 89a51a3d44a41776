#!/usr/bin/env python3
"""Makes a training graph of many branches that may run in any order.

    branches.py FOLDER

Sixteen chains of convolutions, of different lengths and widths, read one image batch and meet in one
concatenation; their gradients part again. Between two points that everything goes through there is
no order but the executor's: the harder case for a forecast of memory. The data is made in the graph,
the same at every run. Writes graph.pb and meta.json.
"""
import json
import pathlib
import sys

from truth import train

BATCH, SIZE, CHANNELS, CLASSES = 8, 32, 8, 10
BRANCHES = 16


def build(tf):
    v1 = tf.compat.v1
    images = tf.random.stateless_uniform([BATCH, SIZE, SIZE, CHANNELS], seed=[1, 2], name="images")
    labels = tf.random.stateless_uniform([BATCH], seed=[3, 4], maxval=CLASSES, dtype=tf.int32,
                                         name="labels")

    def conv(x, width, name):
        shape = [3, 3, int(x.shape[-1]), width]
        kernel = v1.get_variable(name, initializer=tf.random.stateless_normal(
            shape, seed=[len(name), hash_of(name)], stddev=0.05), use_resource=False)
        return tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))

    ends = []
    for branch in range(BRANCHES):
        x = images
        for depth in range(2 + branch % 5):
            x = conv(x, 8 + 4 * (branch % 3), "branch%d_%d" % (branch, depth))
        ends.append(x)
    x = conv(tf.concat(ends, 3), 16, "merge")
    x = tf.reduce_mean(x, [1, 2])
    weights = v1.get_variable("dense", initializer=tf.random.stateless_normal(
        [16, CLASSES], seed=[5, 6], stddev=0.1), use_resource=False)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=x @ weights), name="loss")
    v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, name="train")
    v1.global_variables_initializer()


def hash_of(name):
    """A number for a name, the same in every process."""
    return sum(ord(letter) * 31 ** i for i, letter in enumerate(name)) % 2 ** 31


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] == ["--help"] else 2
    tf = train.tensorflow()
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    graph = tf.Graph()
    with graph.as_default():
        build(tf)
    (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString(deterministic=True))
    (folder / "meta.json").write_text(json.dumps({
        "name": "branches", "run_batch": BATCH, "optimizer_scopes": ["gradients"],
        "fetches": {"train_op": "train", "loss": "loss:0", "init_op": "init"}}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
