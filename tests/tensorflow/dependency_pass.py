#!/usr/bin/env python3
"""Are the operations that Spillway takes for NoOps those that TensorFlow's dependency optimizer
makes NoOps, or removes with the nodes that only they read?

For each graph of tests/graphs, and for one whose train op waits for gradients that nothing reads:
Grappler's dependency optimizer, and nothing else, edits the graph for the targets that Spillway
finds. Of the nodes that lead to the targets, those that are gone or NoOps afterwards must be those
that `list_passes` (built beside the tests) prints. Not compared: NoOps, and Identities that
TensorFlow bypasses although something reads them. Then one of those nodes is fetched, too: both
keep it. Also compared: nodes that read only a shape and that TensorFlow's constant folding makes
constants; if a placeholder is fed, these may be more than Spillway finds.

    python tests/tensorflow/dependency_pass.py --list-passes build/tests/list_passes

One line per graph; at the end, alone on its line, `N passed, N failed, N skipped` (graphs with ops
that this TensorFlow lacks). Exit code 0: nothing failed; 1: something did; 2: bad usage.
"""
import argparse
import gzip
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import graph_pb2  # noqa: E402

from truth import grappler, names, passes  # noqa: E402

v1 = tf.compat.v1
tf.get_logger().setLevel("ERROR")
GRAPHS = pathlib.Path(__file__).resolve().parents[1] / "graphs"
CAPABILITY = "7.0"  # Of which this pass does not ask.
BYPASSED = ("Identity", "IdentityN")
SHAPES = ("Shape", "ShapeN", "Size", "Rank")


def of_scalars():
    """Weights whose scalar scale and shift are no variables: their gradients are computed, waited
    for, and read by nothing."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [32, 64])
        for i in range(4):
            w = v1.get_variable("w%d" % i, [64, 64])
            scale = tf.math.sigmoid(tf.constant(0.5, name="scale%d" % i))
            x = tf.nn.relu(tf.matmul(x, w) * scale + tf.constant(0.1))
        v1.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(x))
    return graph.as_graph_def()


def theirs_of(graph_def, targets):
    """The nodes that TensorFlow made NoOps or removed, and those of them that are Identities that
    others read."""
    after = {node.name: node.op for node in grappler.after_pass("dependency", graph_def, targets).node}
    needed = passes.leading_to(graph_def, targets)
    gone = {node.name for node in graph_def.node if node.name in needed and node.op != "NoOp" and
            after.get(node.name, "NoOp") == "NoOp"}
    read = read_by(node for node in graph_def.node if node.name in needed - gone)
    return gone, {node.name for node in graph_def.node
                  if node.name in gone & read and node.op in BYPASSED}


def bypassed_before(graph_def, gone, bypassed):
    """Adds Identities in a row, of which the last is bypassed."""
    by_name = {node.name: node for node in graph_def.node}
    for name in list(bypassed):
        while by_name[name].input and by_name[names.node(by_name[name].input[0])].op in BYPASSED:
            name = names.node(by_name[name].input[0])
            if name not in gone:
                break
            bypassed.add(name)
    return bypassed


def read_by(nodes):
    return {names.node(edge) for node in nodes for edge in node.input if not edge.startswith("^")}


def wrong_constants(graph_def, targets, ours):
    """How those of TensorFlow differ, or "". Of ShapeN, its readers get constants."""
    needed = passes.leading_to(graph_def, targets)
    read = read_by(node for node in graph_def.node if node.name in needed)
    shapes = {node.name for node in graph_def.node
              if node.op in SHAPES and node.name in needed & read}
    after = grappler.after_pass("constfold", graph_def, targets).node
    left = read_by(after)
    theirs = shapes - {node.name for node in after if node.op in SHAPES and node.name in left}
    if any(node.op == "Placeholder" for node in graph_def.node):
        theirs &= ours
    return difference("constants: ", ours & shapes, theirs)


def difference(what, ours, theirs):
    if ours == theirs:
        return ""
    return "%sonly Spillway: %s; only TensorFlow: %s" % (
        what, sorted(ours - theirs)[:5], sorted(theirs - ours)[:5])


def ours_of(program, path, targets):
    listed = passes.listed(program, path, CAPABILITY, targets)
    return listed["target"], set(listed["noop"]), set(listed["constant"])


def compare(program, graph_def, path, targets):
    """The problem, or "", the targets, the NoOps, and the constants."""
    targets, ours, constants = ours_of(program, path, targets)
    theirs, bypassed = theirs_of(graph_def, targets)
    theirs -= bypassed_before(graph_def, theirs, bypassed) - ours
    return difference("", ours, theirs), targets, ours, constants


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list-passes", required=True, metavar="PROGRAM")
    parser.add_argument("graphs", nargs="*", help="names in tests/graphs, or files; default: all")
    args = parser.parse_args()
    cases = [("of_scalars", of_scalars())] if not args.graphs else []
    for name in args.graphs or sorted(p.parent.name for p in GRAPHS.glob("*/graph.pb.gz")):
        path = GRAPHS / name / "graph.pb.gz" if (GRAPHS / name).is_dir() else pathlib.Path(name)
        data = path.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        cases.append((name, graph_pb2.GraphDef.FromString(data)))
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory() as folder:
        for name, graph_def in cases:
            missing = passes.missing_op(graph_def)
            if missing:
                print("skipped %s: this TensorFlow has no op %s" % (name, missing))
                counts["skipped"] += 1
                continue
            path = os.path.join(folder, "graph.pb")
            pathlib.Path(path).write_bytes(graph_def.SerializeToString())
            wrong, targets, noops, constants = compare(args.list_passes, graph_def, path, [])
            wrong = wrong or wrong_constants(graph_def, targets, constants)
            if not wrong and noops:
                fetched = sorted(noops)[len(noops) // 2]
                wrong, _, kept, _ = compare(args.list_passes, graph_def, path, targets + [fetched])
                if fetched in kept:
                    wrong = "%s is fetched, and taken for a NoOp" % fetched
            counts["failed" if wrong else "passed"] += 1
            print("%s %s: %s" % ("FAILED" if wrong else "ok", name,
                                 wrong or "%d nodes become NoOps, %d constants" % (
                                     len(noops), len(constants))), flush=True)
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
