#!/usr/bin/env python3
"""Are calls inlined as TensorFlow inlines them?

Each case is a graph with calls of functions. TensorFlow's answer is the result of its Grappler with
the function optimizer alone; Spillway's is that of `inline_graph` (built beside the tests), which
leaves the Identities at the borders, and of `spillway rewrite --inline-calls always`. They must be
the same up to the names of new nodes: op, device, attributes (except for colocation) and inputs of
every node that leads to the fetches, found by walking both graphs from the fetches.

Also, for each case that can run: the fetches have the same bits before and after, over several
steps and for every variable; and `spillway strip` gives the bytes of the graph back.

    python tests/tensorflow/inlining.py --spillway build/bin/spillway

One line per case that is wrong; at the end, alone on its line, `N passed, N failed, 0 skipped`.
Exit code 0: nothing failed; 1: something did; 2: bad usage.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import graph_pb2  # noqa: E402
from tensorflow.core.protobuf import config_pb2  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

from inlining_cases import CASES  # noqa: E402
from truth import grappler  # noqa: E402

v1 = tf.compat.v1
tf.get_logger().setLevel("ERROR")

# Written by either side alone: a node's origin, and known facts.
LEFT_OUT = {"_spillway_undo", "_output_shapes", "_grappler_do_not_remove",
            "_has_manual_control_dependencies", "tfg.legacy_call"}


# ---- TensorFlow's result.

def theirs_of(graph_def, fetches, feeds):
    """The graph after Grappler's function optimizer, and nothing else."""
    return grappler.after_pass("function", graph_def, fetches, feeds)


# ---- Comparing.

def split(name):
    """(node, port); the port of a control input is None."""
    if name.startswith("^"):
        return name[1:], None
    node, _, port = name.partition(":")
    return node, int(port or 0)


def attrs_of(node):
    """Its attributes as text, those that have their defaults left out."""
    attrs = {key: value.SerializeToString(deterministic=True)
             for key, value in node.attr.items() if key not in LEFT_OUT and key != "_class"}
    if node.op == "Enter":  # The frame has its name from nodes whose names are new.
        attrs["frame_name"] = re.sub(rb"/_\d+", b"", node.attr["frame_name"].s)
    if node.op == "Const":  # Which TensorFlow compresses.
        value = tf.make_ndarray(node.attr["value"].tensor)
        attrs["value"] = (str(value.dtype), value.shape, value.tobytes())
    op = op_def_registry.get(node.op)
    for attr in op.attr if op is not None else ():
        if attr.HasField("default_value") and attrs.get(attr.name) == \
                attr.default_value.SerializeToString(deterministic=True):
            del attrs[attr.name]
    return attrs


class Comparison:
    """Walks two graphs from the same fetches, and pairs their nodes."""

    def __init__(self, ours, theirs):
        self.ours = {node.name: node for node in ours.node}
        self.theirs = {node.name: node for node in theirs.node}
        self.pairs = {}
        self.taken = {}
        self.problems = []

    def run(self, fetches):
        queue = []
        for name in fetches:
            self.pair(name, name, "fetch", queue)
        while queue and not self.problems:
            self.compare(*queue.pop(), queue)
        # Nodes are paired by data first; the rest are control inputs, of which each side may have
        # them in another order.
        return self.problems

    def pair(self, ours, theirs, where, queue):
        if ours not in self.ours or theirs not in self.theirs:
            self.problems.append("%s: %s or %s is not there" % (where, ours, theirs))
        elif self.pairs.get(ours, theirs) != theirs or self.taken.get(theirs, ours) != ours:
            self.problems.append("%s: %s is %s and %s" % (where, ours, theirs,
                                                         self.pairs.get(ours)))
        elif ours not in self.pairs:
            self.pairs[ours] = theirs
            self.taken[theirs] = ours
            queue.append((ours, theirs))

    def key(self, graph, name, depth=3):
        """Distinguishes control inputs without their names."""
        node = graph[name]
        if depth == 0:
            return node.op
        return (node.op, node.device, sorted(attrs_of(node).items()),
                [self.key(graph, split(i)[0], depth - 1) for i in node.input
                 if not i.startswith("^")],
                sorted(str(self.key(graph, i[1:], depth - 1)) for i in node.input
                       if i.startswith("^")))

    def compare(self, ours, theirs, queue):
        a, b = self.ours[ours], self.theirs[theirs]
        if b.op.startswith(a.op + "_specialized_for_"):
            return  # A call that stays, with constants of its own taken into a copy of the function.
        for what, x, y in (("op", a.op, b.op), ("device", a.device, b.device),
                           ("attributes", attrs_of(a), attrs_of(b))):
            if x != y:
                self.problems.append("%s / %s: %s are %s, not %s" % (ours, theirs, what, x, y))
        data = [[i for i in n.input if not i.startswith("^")] for n in (a, b)]
        control = [sorted({i[1:] for i in n.input if i.startswith("^")}) for n in (a, b)]
        if len(data[0]) != len(data[1]) or len(control[0]) != len(control[1]):
            self.problems.append("%s / %s: inputs are %s, not %s"
                                 % (ours, theirs, list(a.input), list(b.input)))
            return
        for x, y in zip(*data):
            (node, port), (other, other_port) = split(x), split(y)
            if port != other_port:
                self.problems.append("%s reads %s, not %s" % (ours, x, y))
            self.pair(node, other, "input of " + ours, queue)
        # Paired ones first; then by their keys.
        left = [[], list(control[1])]
        for name in control[0]:
            if self.pairs.get(name) in left[1]:
                left[1].remove(self.pairs[name])
            else:
                left[0].append(name)
        left[0].sort(key=lambda name: str(self.key(self.ours, name)))
        left[1].sort(key=lambda name: str(self.key(self.theirs, name)))
        for name, other in zip(*left):
            self.pair(name, other, "control input of " + ours, queue)


# ---- Running.

def run(graph_def, case):
    """What each step fetches, and the variables after the last one."""
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        options = config_pb2.ConfigProto()
        options.graph_options.rewrite_options.disable_meta_optimizer = True
        options.intra_op_parallelism_threads = options.inter_op_parallelism_threads = 1
        with v1.Session(config=options) as session:
            if case.init:
                session.run(case.init)
            results = []
            for step in range(3):
                feed = {name + ":0": np.float32(value) * (step + 1) if
                        np.asarray(value).dtype.kind == "f" else value
                        for name, value in case.feeds.items()}
                results.append(session.run(case.tensors, feed))
            results.append([session.run(name) for name in case.reads])
            return results


def same(a, b):
    """Whether nested lists of arrays have the same bits."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if a is None or b is None:
        return a is b
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def check(case, spillway, inliner, folder):
    """The problems of a case."""
    path = os.path.join(folder, "graph.pb")
    out = os.path.join(folder, "out.pb")
    back = os.path.join(folder, "back.pb")
    lowered = os.path.join(folder, "lowered.pb")
    with open(path, "wb") as f:
        f.write(case.graph_def.SerializeToString())
    command = [spillway, "rewrite", path, "-o", out, "--inline-calls", "always", "--strategy",
               "level", "--swapout-threshold", "1000000", "--swapin-ahead", "1",
               "--swapin-groupby", "0", "--sync-mode", "0", "--simulation", "off"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return ["spillway: " + done.stderr.strip()]
    subprocess.run([spillway, "strip", out, "-o", back], check=True, capture_output=True)
    done = subprocess.run([inliner, path, lowered], capture_output=True, text=True)
    if done.returncode:
        return ["inline_graph: " + done.stderr.strip()]
    problems = []
    with open(path, "rb") as f, open(back, "rb") as g:
        if f.read() != g.read():
            problems.append("strip gives other bytes")
    ours = graph_pb2.GraphDef()
    with open(out, "rb") as f:
        ours.ParseFromString(f.read())
    all_ours = graph_pb2.GraphDef()
    with open(lowered, "rb") as f:
        all_ours.ParseFromString(f.read())
    if case.compare:
        theirs = theirs_of(case.graph_def, case.fetches, case.fed)
        problems += Comparison(all_ours, theirs).run(case.fetches)
        # TensorFlow has already taken out nodes that forward an argument or a result.
        problems += Comparison(direct(ours), direct(theirs)).run(case.fetches)
    if case.expect_calls is not None:
        calls = sum(node.op in ("PartitionedCall", "StatefulPartitionedCall")
                    for node in ours.node)
        if calls != case.expect_calls:
            problems.append("%d calls are left, not %d" % (calls, case.expect_calls))
    if case.tensors:
        expected = run(case.graph_def, case)
        for graph_def in ours, all_ours:
            if not same(expected, run(graph_def, case)):
                problems.append("it computes something else")
    return problems


def direct(graph_def):
    """The graph without Identities at the borders of calls that wait for nothing."""
    handed = {node.name: node.input[0] for node in graph_def.node
              if node.op == "Identity" and node.name.startswith("Func/") and len(node.input) == 1
              and ("/input/_" in node.name or "/output/_" in node.name)}

    def source(name):
        while not name.startswith("^") and split(name)[0] in handed:
            name = handed[split(name)[0]]
        return name

    result = graph_pb2.GraphDef()
    result.CopyFrom(graph_def)
    for node in result.node:
        node.input[:] = [source(name) for name in node.input]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spillway", required=True, help="the program")
    parser.add_argument("-k", default="", metavar="PART", help="only cases whose name holds PART")
    args = parser.parse_args()
    inliner = os.path.join(os.path.dirname(args.spillway), "..", "tests", "inline_graph")
    passed = failed = 0
    for name, make in CASES.items():
        if args.k not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            problems = check(make(), args.spillway, inliner, folder)
        passed += not problems
        failed += bool(problems)
        for problem in problems:
            print("FAIL %s: %s" % (name, problem))
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
