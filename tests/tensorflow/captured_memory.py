#!/usr/bin/env python3
"""Is the memory that Spillway forecasts of a tf.function's training graph what TensorFlow takes?

    captured_memory.py GRAPH --spillway build/bin/spillway --batch-size N [--batch-size M ...]

GRAPH is a GraphDef (.pb, or .pb.gz) of a training step as a tf.function has it: its variables are
captured, resource placeholders. Each gets a variable of its own, in the shape and type that
`_handle_shapes` and the ops that read and update it state; the other placeholders are fed with
zeros, of a batch of N. Two steps are trained on the CPU. The full trace of the second has what each
node asked the allocator for, and when it gave it back (allocation_records): the most that was there
at once, with the variables, is the truth. `spillway simulate` has to say the same peak, to TOLERANCE.

Devices that nodes name are taken away, for the forecast, too: all of it runs in one memory (a graph
that was made on a machine without a GPU says of its optimizer that it is on the CPU).

One line per batch; at the end, alone on its line, `N passed, N failed, 0 skipped`. Exit code 0:
nothing failed; 1: something did; 2: bad usage.
"""
import argparse
import gzip
import json
import os
import subprocess
import sys

TOLERANCE = 0.1
STEPS = 2
# Ops that take the handle of a variable first, and the input whose shape is the variable's.
UPDATES = {"AssignVariableOp": 1, "AssignAddVariableOp": 1, "AssignSubVariableOp": 1}

os.environ.update(TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1


def read(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as f:
        return tf.compat.v1.GraphDef.FromString(f.read())


def split(name):
    node, _, port = name.lstrip("^").partition(":")
    return node, int(port or 0)


def stated(node, port):
    """The shape that a node states of an output, or None."""
    shapes = node.attr["_output_shapes"].list.shape
    if port >= len(shapes) or shapes[port].unknown_rank:
        return None
    dims = [dim.size for dim in shapes[port].dim]
    return None if any(dim < 0 for dim in dims) else dims


def variables_of(graph_def):
    """{placeholder: (dtype, shape)} of what is captured."""
    nodes = {node.name: node for node in graph_def.node}
    found = {}
    for node in graph_def.node:
        if not node.input or split(node.input[0])[0] not in nodes:
            continue
        handle = nodes[split(node.input[0])[0]]
        if handle.op != "Placeholder" or handle.attr["dtype"].type != tf.resource.as_datatype_enum:
            continue
        shape = None
        if node.op == "ReadVariableOp":
            shape = stated(node, 0)
        elif node.op in UPDATES:
            source, port = split(node.input[UPDATES[node.op]])
            shape = stated(nodes[source], port)
        handles = handle.attr["_handle_shapes"].list.shape
        if shape is None and len(handles) == 1 and all(dim.size >= 0 for dim in handles[0].dim):
            shape = [dim.size for dim in handles[0].dim]
        if shape is not None:
            found[handle.name] = (node.attr["dtype"].type or tf.float32.as_datatype_enum, shape)
    return found


def measure(graph_def, targets, batch):
    """The peak of a step, in bytes."""
    # What feeds the step, and its shape; the batch stands for what is not known.
    fed = {node.name: (tf.dtypes.as_dtype(node.attr["dtype"].type),
                       [batch if dim.size < 0 else dim.size
                        for dim in node.attr["shape"].shape.dim])
           for node in graph_def.node if node.op == "Placeholder" and
           node.attr["dtype"].type != tf.resource.as_datatype_enum}
    with tf.Graph().as_default() as graph:
        handles, assigned, total = {}, [], 0
        for name, (dtype, shape) in variables_of(graph_def).items():
            dtype = tf.dtypes.as_dtype(dtype)
            handle = tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=name)
            value = tf.ones(shape, dtype) * tf.cast(0.01, dtype) if dtype.is_floating else \
                tf.zeros(shape, dtype)
            assigned.append(tf.raw_ops.AssignVariableOp(resource=handle, value=value))
            handles[name + ":0"] = handle
            total += int(np.prod(shape)) * dtype.size
        tf.import_graph_def(graph_def, name="", input_map=handles)
        config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
        metadata = v1.RunMetadata()
        feeds = {name + ":0": np.zeros(shape, dtype.as_numpy_dtype)
                 for name, (dtype, shape) in fed.items()}
        with v1.Session(graph=graph, config=config) as session:
            session.run(assigned)
            operations = [graph.get_operation_by_name(name) for name in targets]
            for _ in range(STEPS):
                session.run(operations, feeds, v1.RunOptions(
                    trace_level=v1.RunOptions.FULL_TRACE), metadata)
    records = sorted(
        (record.alloc_micros, record.alloc_bytes) for device in metadata.step_stats.dev_stats
        for node in device.node_stats for memory in node.memory
        for record in memory.allocation_records)
    peak = live = total + sum(array.nbytes for array in feeds.values())
    for _, size in records:
        live += size
        peak = max(peak, live)
    return peak, total


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("graph")
    parser.add_argument("--spillway", required=True)
    parser.add_argument("--batch-size", type=int, action="append", required=True)
    options = parser.parse_args()
    graph_def = read(options.graph)
    for node in graph_def.node:
        node.device = ""
    data = graph_def.SerializeToString()
    passed = 0
    for batch in options.batch_size:
        said = subprocess.run(
            [options.spillway, "simulate", "-", "--batch-size", str(batch), "--hardware",
             "p100_pcie", "--no-budget", "--json"], input=data, capture_output=True, check=True)
        report = json.loads(said.stdout)
        device = report["forecast"]["devices"][0]
        peak, variables = measure(graph_def, report["targets"], batch)
        forecast, resident = int(device["peak_bytes"]), int(device["resident_bytes"])
        good = abs(forecast / peak - 1) <= TOLERANCE
        passed += good
        print("%s batch %d: %.1f MiB forecast (%.1f resident), %.1f MiB taken (%.1f variables): "
              "%.3f" % ("ok  " if good else "FAIL", batch, forecast / 2 ** 20, resident / 2 ** 20,
                        peak / 2 ** 20, variables / 2 ** 20, forecast / peak), flush=True)
    failed = len(options.batch_size) - passed
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
