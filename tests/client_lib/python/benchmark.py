#!/usr/bin/env python3
"""How fast the Python package is: rewrites beside the C call, edits of live graphs beside
TensorFlow's own cost and IBM's.

    build/tf-venv/bin/python tests/client_lib/python/benchmark.py

IBM's times were recorded with the graphs (v2_swaps.json.gz, `edit_ms`) on another, busy machine of
2 cores: an order of magnitude.
"""

import ctypes
import gzip
import json
import statistics
import time

import common
import tf_common
from tf_common import tf, tf1

import spillway
from spillway import _native, options
from spillway.tensorflow import _live_graph, rewrite_graph

ROUNDS = 40
# The set `t1` of tests/graphs: everything that level can swap.
ALL = dict(strategy="level", swapout_threshold=1, swapin_ahead=1, swapin_groupby=0)


def milliseconds(function):
    begin = time.perf_counter()
    function()
    return (time.perf_counter() - begin) * 1e3


def rewrites():
    """In turns, so that both see the same machine."""
    graph = common.graph("resnet50_tf1", shapes=True)
    lib = _native.library()
    encoded = _native.message_from_json("RewriteOptions", options.to_json("scope", {}))
    client = ctypes.c_void_p()
    _native.check(lib.spillway_client_new(None, ctypes.byref(client)))

    def by_c():
        outputs = ctypes.c_void_p(), ctypes.c_void_p()
        _native.check(lib.spillway_rewrite_graph(
            client, graph, len(graph), encoded, len(encoded), None, *map(ctypes.byref, outputs)))
        for output in outputs:
            lib.spillway_buffer_free(output)

    times = {"the C call": by_c, "rewrite": lambda: spillway.rewrite(graph, strategy="scope"),
             "rewrite, report": lambda: spillway.rewrite(graph, strategy="scope").report}
    taken = {name: [] for name in times}
    for _ in range(ROUNDS):
        for name, function in times.items():
            taken[name].append(milliseconds(function))
    print("resnet50_tf1, scope, %d rounds         median   least   to C" % ROUNDS)
    for name, values in taken.items():
        print("  %-32s %8.2f %7.2f %6.2f" % (
            name + " (ms)", statistics.median(values), min(values),
            statistics.median(values) / statistics.median(taken["the C call"])))
    lib.spillway_client_free(client)


def identities(count):
    """What TensorFlow takes to make ops one by one."""
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        source = tf1.placeholder(tf.float32, [4])
        taken = milliseconds(lambda: [tf1.identity(source) for _ in range(count)])
    return taken / count


def edits():
    print("live graphs, level, all that can be swapped; ms")
    print("  %-20s %6s %8s %8s %8s %8s %10s" % (
        "graph", "nodes", "per node", "TF's own", "edit", "in all", "IBM's"))
    for name in ("mnist_deep", "bert_tiny", "resnet50_tf1_b4", "unet3d_s16"):
        graph_bytes = common.graph(name)
        graph = tf_common.live(graph_bytes)
        result = spillway.rewrite(graph, patch=True, **ALL)
        edit = milliseconds(lambda g=graph, r=result: _live_graph.apply(
            g, r.patch, tf1.GraphDef.FromString(r.graph_def.SerializeToString())))
        live = tf_common.live(graph_bytes)
        whole = milliseconds(lambda g=live: rewrite_graph(g, **ALL))
        count = len(result.patch.new_nodes)
        with gzip.open(common.GRAPHS / name / "v2_swaps.json.gz") as file:
            recorded = json.load(file).get("t1", {}).get("edit_ms")
        print("  %-20s %6d %8.3f %8.3f %8.1f %8.1f %10s" % (
            name, count, edit / count, identities(count), edit, whole, recorded))


if __name__ == "__main__":
    rewrites()
    edits()
