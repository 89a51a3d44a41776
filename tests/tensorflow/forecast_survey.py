#!/usr/bin/env python3
"""How far are Spillway's forecasts of TensorFlow 2 training programs from the memory that
TensorFlow takes?

    forecast_survey.py --spillway build/bin/spillway [-k PATTERN] [--keep FOLDER] [--why N]

Builds the training programs of survey_programs.py, each a tf.function in a process of its own, and
trains each for two steps in a session on the CPU, with the variables that the program made. The full
trace of the second step has what each node asked the allocator for, and when it gave it back
(allocation_records): the most that was there at once, with variables and feeds, is the truth. The
graph of the function, with its library, goes to `spillway simulate` as a user would give it, with the
batch, and has to have the same peak, to TOLERANCE.

A kernel's scratch, which it gives back before it ends, is counted apart: `outputs` is the peak
without it. A CPU's kernels take other scratch than a GPU's, and the forecast has none (without a
profile), so that the ratio is the forecast's to `outputs`; `taken` stands beside it.

Of convolutions' gradients the kernels that take no more than a copy of an input are used, devices are
taken away on both sides (all of it runs in one memory), and Grappler only inlines calls.

| option | |
|---|---|
| `-k PATTERN` | programs whose name holds PATTERN, or matches it |
| `--keep FOLDER` | graphs and measurements stay there; existing ones are not made again |
| `--why N` | also the N largest that are live at the peak, of both |
| `--list` | the programs, with descriptions |

One line per program; at the end, alone on its line, `N passed, N failed, 0 skipped`. Exit code 0:
nothing failed; 1: something did; 2: bad usage.
"""
import argparse
import collections
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOLERANCE = 0.1
STEPS = 2
# RunOptions.inter_op_thread_pool: the caller's thread runs all kernels, in the order in which they
# become ready (DirectSession::RunInternal, ExecutorState::ScheduleReady). So it is on a GPU, all of
# whose kernels are held to be cheap (the constructor of OpKernel); of a CPU's the cheap ones go first.
IN_THIS_THREAD = -1
# Kernels whose scratch is small, see kernels() in memory_limit.py.
SMALL_WORKSPACE_OPS = ("Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3DBackpropFilterV2",
                       "Conv3DBackpropInputV2")

os.environ.update(TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
# Warnings that say that the forecast leaves something out.
UNKNOWN = ("WARNING_CODE_UNKNOWN_SIZES", "WARNING_CODE_LOOPS_ONCE",
           "WARNING_CODE_NOT_SIMULATED", "WARNING_CODE_TARGETS_ARE_SINKS")


def built(name):
    """The concrete function of a program, its fed arrays in order, and the batch."""
    import tensorflow as tf  # pylint: disable=import-outside-toplevel

    import survey_programs  # pylint: disable=import-outside-toplevel
    tf.keras.utils.set_random_seed(1)
    program = survey_programs.PROGRAMS[name](tf)
    specs = [tf.TensorSpec([None, *array.shape[1:]] if program.batch and array.ndim else
                           array.shape, array.dtype, "fed_%d" % index)
             for index, array in enumerate(program.fed)]
    concrete = tf.function(program.step).get_concrete_function(*specs)
    return concrete, program


def allocations(metadata):
    """[(node, bytes, from, to or None, whether it is scratch)] of a full trace."""
    found = []
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            ended = node.all_start_micros + node.op_end_rel_micros
            for memory in node.memory:
                open_ = collections.defaultdict(collections.deque)
                for record in memory.allocation_records:
                    if record.alloc_bytes >= 0:
                        entry = [node.node_name, record.alloc_bytes, record.alloc_micros, None]
                        open_[record.alloc_bytes].append(entry)
                        found.append(entry)
                    elif open_[-record.alloc_bytes]:
                        open_[-record.alloc_bytes].popleft()[3] = record.alloc_micros
    ends = {}
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            ends.setdefault(node.node_name, []).append(
                (node.all_start_micros, node.all_start_micros + node.op_end_rel_micros))

    def scratch(entry):
        return entry[3] is not None and any(
            start <= entry[2] and entry[3] <= end for start, end in ends[entry[0]])
    return [(*entry, scratch(entry)) for entry in found]


def peak_of(found, base, with_scratch):
    """The peak, and the tensors live at it: [(bytes, node)], largest first."""
    kept = [entry for entry in found if with_scratch or not entry[4]]
    events = sorted(
        [(start, size, index) for index, (_, size, start, _, _) in enumerate(kept)] +
        [(end, -size, index) for index, (_, size, _, end, _) in enumerate(kept)
         if end is not None])
    live, peak, alive, at_peak = base, base, set(), set()
    for _, size, index in events:
        live += size
        if size >= 0:
            alive.add(index)
        else:
            alive.discard(index)
        if live > peak:
            peak, at_peak = live, set(alive)
    return peak, sorted(((kept[index][1], kept[index][0]) for index in at_peak), reverse=True)


def measure(name, folder):
    """Builds and trains a program; writes its graph and the measurements."""
    concrete, program = built(name)
    import numpy as np  # pylint: disable=import-outside-toplevel
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    from tensorflow.core.protobuf import (  # pylint: disable=import-outside-toplevel
        rewriter_config_pb2)
    v1 = tf.compat.v1
    graph_def = concrete.graph.as_graph_def(add_shapes=program.add_shapes)
    for nodes in [graph_def.node] + [function.node_def for function in graph_def.library.function]:
        for node in nodes:
            node.device = ""
    (folder / "graph.pb").write_bytes(graph_def.SerializeToString(deterministic=True))
    for nodes in [graph_def.node] + [function.node_def for function in graph_def.library.function]:
        for node in nodes:
            if node.op in SMALL_WORKSPACE_OPS:
                node.attr["_kernel"].s = b"eigen_tensor"
    variables = {id(variable.handle): (variable, variable.numpy())
                 for variable in concrete.graph.variables}
    captured = [(outer, inner, None if outer.dtype == tf.resource else outer.numpy())
                for outer, inner in concrete.graph.captures]
    graph = tf.Graph()
    with graph.as_default():
        handles, assigned, initial, feeds, resident = {}, [], {}, {}, 0
        # Names of their own, beside the program's.
        with tf.name_scope("forecast_survey"):
            for outer, inner, constant in captured:
                if outer.dtype != tf.resource:
                    feeds[inner.name] = constant
                    continue
                variable, value = variables[id(outer)]
                handles[inner.name] = tf.raw_ops.VarHandleOp(
                    dtype=variable.dtype, shape=variable.shape, shared_name=inner.op.name)
                # A copy: a feed's buffer is not the variable's.
                given = v1.placeholder(variable.dtype, variable.shape)
                assigned.append(tf.raw_ops.AssignVariableOp(
                    resource=handles[inner.name], value=tf.raw_ops.DeepCopy(x=given)))
                initial[given] = value
                resident += value.nbytes
        for tensor, array in zip(concrete.inputs, program.fed):
            feeds[tensor.name] = array
        tf.import_graph_def(graph_def, name="", input_map=handles)
        config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        # Grappler inlines calls, as in any tf.function, and does nothing else.
        rewrite = config.graph_options.rewrite_options
        rewrite.optimizers.append("function")
        rewrite.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
        config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
        metadata = v1.RunMetadata()
        # The function's fetches: its results and its side effects.
        fetches = [tensor.name for tensor in concrete.outputs] + [
            op.name for op in concrete.graph.control_outputs]
        with v1.Session(graph=graph, config=config) as session:
            session.run(assigned, initial)
            for _ in range(STEPS):
                session.run(fetches, feeds, v1.RunOptions(
                    trace_level=v1.RunOptions.FULL_TRACE, inter_op_thread_pool=IN_THIS_THREAD),
                            metadata)
    fed = sum(np.asarray(array).nbytes for array in feeds.values())
    found = allocations(metadata)
    taken, alive_taken = peak_of(found, resident + fed, True)
    outputs, alive = peak_of(found, resident + fed, False)
    (folder / "measured.json").write_text(json.dumps({
        "batch": program.batch, "flags": program.flags, "variables": resident, "taken": taken,
        "outputs": outputs, "live": alive[:200], "alive_taken": alive_taken[:200]}))


def asked(spillway, folder, measured, *more):
    flags = ["--batch-size", str(measured["batch"])] if measured["batch"] else []
    return json.loads(subprocess.run(
        [spillway, *more, str(folder / "graph.pb"), "--hardware", "p100_pcie",
         "--kernel-memory", "off", "--json", *flags, *measured["flags"]], capture_output=True, text=True, check=True).stdout)


def judge(name, spillway, folder, why):
    if not (folder / "measured.json").exists():
        run = subprocess.run([sys.executable, __file__, "--measure", name, "--keep", str(folder)],
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            return False, "TensorFlow failed: " + run.stderr[-1500:]
    measured = json.loads((folder / "measured.json").read_text())
    try:
        told = asked(spillway, folder, measured, "simulate", "--no-budget")
    except subprocess.CalledProcessError as error:
        return False, "spillway failed: " + error.stderr[-400:]
    device = told["forecast"]["devices"][0]
    peak, resident = int(device["peak_bytes"]), int(device.get("resident_bytes", 0))
    ratio = peak / measured["outputs"]
    causes = "; ".join(warning["message"] for warning in told.get("warnings", ())
                       if warning["code"] in UNKNOWN)
    codes = ", ".join(warning["code"].replace("WARNING_CODE_", "") for warning in
                      told.get("warnings", ()) if warning["code"] not in UNKNOWN)
    mib = 2.0 ** 20
    left_out = " | unknown: " + causes[:600] if causes else ""
    text = ("%.3f | forecast %.2f (resident %.2f) | outputs %.2f, taken %.2f (variables %.2f) MiB"
            "%s%s") % (
        ratio, peak / mib, resident / mib, measured["outputs"] / mib, measured["taken"] / mib,
        measured["variables"] / mib, " | " + codes if codes else "",
        left_out)
    if why:
        text += "\n  alive in TensorFlow:" + "".join(
            "\n    %10.3f %s" % (size / mib, node) for size, node in measured["live"][:why])
        told = asked(spillway, folder, measured, "inspect", "--memory", "--no-budget")
        (folder / "inspected.json").write_text(json.dumps(told, indent=1))
        for memory in told["memory"]:
            text += "\n  alive in the forecast:" + "".join(
                "\n    %10.3f %s%s" % (int(live["tensor"].get("size_bytes", 0)) / mib,
                                       live["tensor"]["tensor"],
                                       " (resident)" if live.get("resident") else "")
                for live in memory["live_at_peak"][:why])
    return abs(ratio - 1) <= TOLERANCE and not causes, text


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--spillway")
    parser.add_argument("-k", default="*")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--measure")
    parser.add_argument("--why", type=int, default=0)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.keep)
        return 0
    import survey_programs  # pylint: disable=import-outside-toplevel
    if options.list:
        for name, program in survey_programs.PROGRAMS.items():
            print("%-28s %s" % (name, program.__doc__))
        return 0
    if not options.spillway:
        parser.error("--spillway is needed")
    failed = 0
    chosen = [name for name in survey_programs.PROGRAMS
              if fnmatch.fnmatch(name, options.k) or options.k in name]
    for name in chosen:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (options.keep or pathlib.Path(temporary)) / name
            folder.mkdir(parents=True, exist_ok=True)
            good, text = judge(name, options.spillway, folder, options.why)
        failed += not good
        print("%s %s: %s" % ("ok  " if good else "FAIL", name, text), flush=True)
    print("%d passed, %d failed, 0 skipped" % (len(chosen) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
