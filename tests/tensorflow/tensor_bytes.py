#!/usr/bin/env python3
"""Are the bytes that Spillway infers those that TensorFlow allocates?

    tensor_bytes.py --spillway build/bin/spillway [--graph NAME ...] [--full]

Runs one training step of each graph with a full trace, and compares every output of every node in
it with `spillway inspect`, given the step's feeds and batch size: type, shape, the bytes that
TensorFlow asked for, and those that its allocator gave (BFC, as a GPU's: it rounds up to 256 bytes,
and gives less than twice that). A tensor that both know must be the same, and so must the parts of
a shape that Spillway knows. Not compared, and counted:

- unknown: Spillway does not know the whole shape, or no size (strings have none);
- handles of resources and variants, whose bytes are not their contents': type alone is compared,
  since a handle of the shape [2] for TensorFlow's inference may be a scalar for its kernels;
- part of a buffer: TensorFlow describes the whole (a Slice of the first dimension is a part of its
  input's); type and shape are compared, and the trace must have the tensor that is the whole;
- not allocated: feeds, and memory that kernels take from elsewhere: the allocator knows no size;
- of a kernel for CPUs: the reserve of FusedBatchNormV3, output 5, is a scalar there and empty on GPUs;
- not of the graph: also what lowering and inlining make, whose names have numbers (`/_12`) that count
  otherwise in TensorFlow;
- unread: no node reads it, and inspect lists no size: type and shape are compared.

One line per graph; at the end, alone on its line, `N passed, N failed, 0 skipped`. Exit code 0:
nothing failed; 1: something did; 2: bad usage.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple, Optional

from truth import feeds, graphs, names, rewrite, train

GRAPHS = pathlib.Path(__file__).resolve().parent.parent / "graphs"
SHORT = ("mnist_deep", "cond_v1", "cnn_mnist", "mixed_fp16", "bert_tiny")
HANDLES = ("resource", "variant")
# BFCAllocator::kMinAllocationSize of TensorFlow.
ALIGNMENT = 256
# More tensors than a graph has; `inspect` lists the largest.
ALL = 2**31 - 1
MIB = 1 << 20
NUMBERED = re.compile(r"/_[0-9]+(/|:)")


class Output(NamedTuple):
    """One output of one node, as a trace has it. Sizes in bytes; `allocated` and `pointer` are 0
    where the allocator does not know."""
    tensor: str
    dtype: str
    shape: str
    size: int  # of type and shape
    requested: int
    allocated: int
    pointer: int


class Inferred(NamedTuple):
    """Spillway's answer. `shape` has `?` if something is unknown; `size` is None if it is not
    known, or not listed since no node reads the tensor."""
    dtype: str
    shape: str
    size: Optional[int]
    read: bool


class Comparison:
    """Of one graph."""

    def __init__(self):
        self.problems = []
        self.equal = self.unknown = self.parts = self.not_allocated = self.unread = 0
        self.handles = self.of_cpus = 0
        self.elsewhere = 0  # not outputs of the graph's nodes: feeds, bodies of functions
        self.inferred_bytes = self.requested_bytes = self.allocated_bytes = self.unknown_bytes = 0

    def __str__(self):
        return ("%d equal (%d not allocated), %d parts of a buffer, %d unread, %d handles, %d of "
                "CPUs' kernels, %d not of the graph, %d unknown; %.2f MiB inferred, %.2f asked "
                "for, %.2f given, %.2f unknown" % (
                    self.equal, self.not_allocated, self.parts, self.unread, self.handles,
                    self.of_cpus, self.elsewhere, self.unknown, self.inferred_bytes / MIB,
                    self.requested_bytes / MIB, self.allocated_bytes / MIB,
                    self.unknown_bytes / MIB))


def compare(outputs, inferred):
    """A Comparison of a trace's outputs with {tensor: Inferred}."""
    found = Comparison()
    wholes = {(o.pointer, o.size) for o in outputs if o.pointer}
    for output in outputs:
        ours = inferred.get(output.tensor)
        if ours is None or NUMBERED.search(output.tensor):
            found.elsewhere += 1
        elif ours.dtype != output.dtype:
            found.problems.append("%s is %s, inferred %s" % (output.tensor, output.dtype,
                                                             ours.dtype))
        elif output.dtype in HANDLES:
            found.handles += 1
        elif (output.tensor.endswith(":5"), ours.shape, output.shape) == (True, "[0]", "[]"):
            found.of_cpus += 1
        elif not _agrees(ours.shape, output.shape):
            found.problems.append("%s has shape %s, inferred %s" % (output.tensor, output.shape,
                                                                    ours.shape))
        elif "?" in ours.shape or ours.read and ours.size is None:
            found.unknown += 1
            found.unknown_bytes += output.size
        elif not ours.read:
            found.unread += 1
        elif output.requested != output.size == ours.size and (
                output.pointer, output.requested) in wholes:
            found.parts += 1
        else:
            _compare_bytes(output, ours, found)
    return found


def _agrees(ours, theirs):
    """Whether a shape that may be known in part can be the other one."""
    if ours == "?":
        return True
    ours, theirs = ours.strip("[]").split(","), theirs.strip("[]").split(",")
    return len(ours) == len(theirs) and all(a in ("?", b) for a, b in zip(ours, theirs))


def _compare_bytes(output, ours, found):
    if ours.size != output.requested:
        found.problems.append("%s has %d bytes, inferred %d" % (output.tensor, output.requested,
                                                                ours.size))
        return
    if ours.size and not output.allocated:
        found.not_allocated += 1
    elif ours.size:
        rounded = -(-ours.size // ALIGNMENT) * ALIGNMENT
        if not rounded <= output.allocated < 2 * rounded:
            found.problems.append("%s was given %d bytes, inferred %d" % (
                output.tensor, output.allocated, ours.size))
            return
        # Sums of the same tensors, so that they can be compared.
        found.inferred_bytes += ours.size
        found.requested_bytes += output.requested
        found.allocated_bytes += output.allocated
    found.equal += 1


def trace(graph):
    """The outputs of one step."""
    tf = train.tensorflow()
    graph_def = train.place(train.parse(graph.bytes), pin=False)
    config = train.session_config(1 + max(1, names.gpu_count(train.parse(graph.bytes))),
                                  grappler=False)
    options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE,
                                      timeout_in_ms=train.RUN_TIMEOUT_MS)
    outputs = []
    with tf.compat.v1.Session(graph=train.imported(graph_def), config=config) as session:
        for op in graph.init_ops:
            session.run(op)
        for call in graph.step_calls:
            metadata = tf.compat.v1.RunMetadata()
            session.run(list(call), feeds.feed_dict(graph.feed_spec, 0), options=options,
                        run_metadata=metadata)
            outputs += [_output(tf, node, output)
                        for device in metadata.step_stats.dev_stats
                        for node in device.node_stats for output in node.output]
    return outputs


def _output(tf, node, output):
    description = output.tensor_description
    dtype = tf.as_dtype(description.dtype)
    dims = [dim.size for dim in description.shape.dim]
    size = dtype.size or 0
    for dim in dims:
        size *= dim
    memory = description.allocation_description
    return Output("%s:%d" % (node.node_name, output.slot), dtype.base_dtype.name,
                  "[%s]" % ",".join(map(str, dims)), size, memory.requested_bytes,
                  memory.allocated_bytes, memory.ptr)


def infer(program, graph):
    """{tensor: Inferred} of all outputs of the graph's nodes."""
    told = rewrite.flags({"feed": {s["name"]: list(s["shape"]) for s in graph.feed_spec},
                          "batch_size": graph.meta["run_batch"]})
    with tempfile.TemporaryDirectory(prefix="spillway-bytes-") as folder:
        path = pathlib.Path(folder) / "graph.pb"
        path.write_bytes(graph.bytes)

        def inspect(*flags):
            return subprocess.run([program, "inspect", str(path), *told, *flags], check=True,
                                  capture_output=True, text=True, timeout=rewrite.TIMEOUT_S).stdout
        summary = json.loads(inspect("--json", "--top", str(ALL)))
        shapes = [line.split("\t") for line in inspect("--shapes").splitlines()
                  if line.count("\t") == 2]
    sizes = {entry["tensor"]: entry.get("size_bytes") for entry in summary["largest_tensors"]}
    return {tensor: Inferred(dtype.replace("_ref", ""), shape,
                             int(sizes[tensor]) if sizes.get(tensor) is not None else None,
                             tensor in sizes)
            for tensor, dtype, shape in shapes}


def check(program, graph):
    """Prints the line of one graph; whether nothing is wrong."""
    try:
        found = compare(trace(graph), infer(program, graph))
    except subprocess.CalledProcessError as error:
        print("FAIL  %s: %s" % (graph.name, error.stderr.strip()), flush=True)
        return False
    if found.equal <= found.unknown:
        found.problems.append("less than half is known")
    print("%s  %-24s %s" % ("FAIL" if found.problems else "ok  ", graph.name, found), flush=True)
    for problem in found.problems[:10]:
        print("      " + problem)
    if len(found.problems) > 10:
        print("      ... and %d more" % (len(found.problems) - 10))
    return not found.problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--spillway", required=True, metavar="PROGRAM",
                        help="the program under test")
    parser.add_argument("--full", action="store_true", help="every graph that runs on a CPU")
    parser.add_argument("--graph", action="append", metavar="NAME",
                        help="a graph of tests/graphs (repeatable; default: %s)" % ", ".join(SHORT))
    options = parser.parse_args()
    if not os.access(options.spillway, os.X_OK):
        parser.error("--spillway must name the program to test (%s is none)" % options.spillway)
    runnable = {name: g for name, g in graphs.find([GRAPHS]).items() if not g.not_trained}
    wanted = options.graph or (sorted(runnable) if options.full else SHORT)
    for name in wanted:
        if name not in runnable:
            parser.error("there is no graph %r that runs; there are %s" % (
                name, ", ".join(sorted(runnable))))
    # Before TensorFlow is loaded. The plain allocator does not know its sizes.
    os.environ.update(train.ENVIRONMENT, TF_CPU_ALLOCATOR_USE_BFC="true")
    failed = sum(not check(options.spillway, runnable[name]) for name in wanted)
    print("%d passed, %d failed, 0 skipped" % (len(wanted) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
