#!/usr/bin/env python3
"""Is the memory that Spillway forecasts of loops what TensorFlow takes?

    loop_memory.py --spillway build/bin/spillway [-k PATTERN] [--keep FOLDER]

Builds recurrent networks whose loops keep tensors for their gradients, in small sizes, and trains
each for two steps on the CPU. The full trace of the second has what each node asked the allocator
for, with the time at which it was given and given back (allocation_records): the most that was there
at once, with the variables, which are there before, is the truth. `spillway simulate` has to say the
same peak, to TOLERANCE.

`dynamic_rnn/BxTxUxV` (and `functional`, with While nodes, which TensorFlow lowers) is a language
model of two LSTM layers: batch, time, units, vocabulary. In `keras` each layer is a loop of its
own, whose gradient may run 32 iterations ahead with ops that need no gradient, and gives back the
tensors it has read; the forecast does not know this, and is too high with few iterations more (1.12
at 60).

One line per case; at the end, alone on its line, `N passed, N failed, 0 skipped`. Exit code 0:
nothing failed; 1: something did; 2: bad usage.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOLERANCE = 0.1
STEPS = 2

os.environ.update(TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")


def language_model(tf, cells, batch, time, units, vocabulary):
    """An embedding, recurrent layers, a softmax over the vocabulary at each time."""
    v1 = tf.compat.v1
    tokens = v1.placeholder(tf.int32, [None, time], "tokens")
    targets = v1.placeholder(tf.int32, [None, time], "targets")
    table = v1.get_variable("embedding", [vocabulary, units])
    outputs = tf.nn.embedding_lookup(table, tokens)
    if cells is keras_lstms:
        for _ in range(2):
            outputs = v1.keras.layers.LSTM(units, return_sequences=True)(outputs)
    else:
        outputs, _ = v1.nn.dynamic_rnn(cells(v1, units), outputs, dtype=tf.float32)
    logits = v1.layers.dense(outputs, vocabulary)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=targets, logits=logits))
    train = v1.train.AdamOptimizer().minimize(loss, name="train")
    return train, {tokens: [[1] * time] * batch, targets: [[2] * time] * batch}


def two_lstms(v1, units):
    return v1.nn.rnn_cell.MultiRNNCell([v1.nn.rnn_cell.LSTMCell(units) for _ in range(2)])


def keras_lstms():
    """Two layers of Keras, each a loop of its own: language_model makes them."""


def gru(v1, units):
    return v1.nn.rnn_cell.GRUCell(units)


# Name: cell, whether loops are While nodes that TensorFlow lowers, sizes.
CASES = {
    "dynamic_rnn/16x40x128x2500": (two_lstms, False, (16, 40, 128, 2500)),
    "dynamic_rnn/32x40x256x5000": (two_lstms, False, (32, 40, 256, 5000)),
    "dynamic_rnn/32x200x128x2500": (two_lstms, False, (32, 200, 128, 2500)),
    "dynamic_rnn_small_vocabulary/32x60x256x64": (two_lstms, False, (32, 60, 256, 64)),
    "gru/32x60x256x64": (gru, False, (32, 60, 256, 64)),
    "functional/32x40x256x5000": (two_lstms, True, (32, 40, 256, 5000)),
    "functional/32x60x256x64": (two_lstms, True, (32, 60, 256, 64)),
    "keras/16x200x128x64": (keras_lstms, True, (16, 200, 128, 64)),
}


def measure(name, folder):
    """Builds and trains a case; writes its graph, and returns its batch and peak."""
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    v1 = tf.compat.v1
    cells, functional, sizes = CASES[name]
    if functional:
        v1.enable_control_flow_v2()
    else:
        v1.disable_control_flow_v2()
    v1.enable_resource_variables()
    tf.config.experimental.enable_op_determinism()
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(1)
        train, fed = language_model(tf, cells, *sizes)
        init = v1.global_variables_initializer()
        variables = sum(4 * variable.shape.num_elements() for variable in v1.global_variables())
    (folder / "graph.pb").write_bytes(
        graph.as_graph_def(add_shapes=True).SerializeToString(deterministic=True))
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
    metadata = v1.RunMetadata()
    with v1.Session(graph=graph, config=config) as session:
        session.run(init)
        for _ in range(STEPS):
            session.run(train, fed, v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE), metadata)
    records = sorted(
        (record.alloc_micros, record.alloc_bytes) for device in metadata.step_stats.dev_stats
        for node in device.node_stats for memory in node.memory
        for record in memory.allocation_records)
    peak = live = variables
    for _, size in records:
        live += size
        peak = max(peak, live)
    return {"batch": sizes[0], "peak": peak}


def judge(name, spillway, folder):
    # A process each: control flow of one kind or the other is chosen for good.
    run = subprocess.run([sys.executable, __file__, "--measure", name, "--keep", str(folder)],
                         capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return False, "TensorFlow failed: " + run.stderr[-400:]
    measured = json.loads(run.stdout.splitlines()[-1])
    said = subprocess.run(
        [spillway, "simulate", str(folder / "graph.pb"), "--targets", "train", "--batch-size",
         str(measured["batch"]), "--hardware", "p100_pcie", "--no-budget", "--grappler", "as_is",
         "--kernel-memory", "off", "--json"],
        capture_output=True, text=True, check=False)
    if said.returncode != 0:
        return False, "spillway failed: " + said.stderr[-400:]
    forecast = json.loads(said.stdout)["forecast"]
    device = forecast["devices"][0]
    peak, truth = int(device["peak_bytes"]), measured["peak"]
    ratio = peak / truth
    causes = ", ".join(cause["cause"] for cause in forecast.get("fit_unknown", []))
    text = "%.2f MiB forecast, %.2f MiB taken: %.3f%s" % (
        peak / 2 ** 20, truth / 2 ** 20, ratio, "; unknown: " + causes if causes else "")
    return abs(ratio - 1) <= TOLERANCE and "LOOPS" not in causes, text


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--spillway")
    parser.add_argument("-k", default="*")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--measure")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.keep)))
        return 0
    if not options.spillway:
        parser.error("--spillway is needed")
    failed = 0
    chosen = [name for name in CASES if fnmatch.fnmatch(name, options.k) or options.k in name]
    for name in chosen:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            if options.keep:
                folder = options.keep / name.replace("/", "_")
                folder.mkdir(parents=True, exist_ok=True)
            good, text = judge(name, options.spillway, folder)
        failed += not good
        print("%s %s: %s" % ("ok  " if good else "FAIL", name, text), flush=True)
    print("%d passed, %d failed, 0 skipped" % (len(chosen) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
