#!/usr/bin/env python3
"""Does TensorFlow run the plan as planned? Simulates plans as TensorFlow's own passes leave them,
and in other orders of the file.

    what_runs.py --spillway build/bin/spillway [--full | --every N] [-k PATTERN] [--write]
                 [--advice TEXT]

A graph is planned for a GPU with a share of its peak, at the default reserve, with the temporaries
of its kernels; GRAPH+passes after Grappler's passes, as the plug-in does. Then it is changed as
TensorFlow or a file format may change it:

  defaults, advised   Grappler's passes as a GPU of that compute capability has them, as they are by
                      default and as the report advises (or as --advice, to compare: the report
                      should advise the best here)
  reversed, ...       the nodes in another order, which means nothing
  unchanged           nothing: the plan itself is simulated

and simulated as it is, in all of the GPU's memory. A case (GRAPH/SHARE/RECOMPUTE/GPU/CHANGE) has
three promises:

  fit    it fits
  peak   at most half of the reserve above the peak in the report
  time   at most 5 % above the time in the report, and 10 % below

A line for each case, and a summary. Promises that are known not to be kept are in
what_runs_broken.txt (--write makes its lines again, for cases that ran); one that is kept must
leave it. Exit code 0: the list is right; 1: it is not; 2: bad usage.
"""
import argparse
import collections
import copy
import itertools
import os
import pathlib
import random
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import limit_graphs  # noqa: E402
from truth import graphs, names, rewrite, train  # noqa: E402

BROKEN = HERE / "what_runs_broken.txt"
PROMISES = ("fit", "peak", "time")
DEFAULT_RESERVE = 0.1  # Of allocator_reserve (hardware.proto).
MOST_TIME, LEAST_TIME = 1.05, 0.9  # Of the reported time.
HARDWARE = {"6.0": "p100_pcie", "7.0": "v100_pcie", "8.0": "a100_40gb_pcie4", "9.0": "h100_pcie5"}
ALL_MEMORY = {"allocator_reserve": 0}
AMPLE_BYTES = 1 << 40
# After Grappler, the step is that in the file.
AS_IT_IS = {"defaults": {"grappler": "as_is"}, "advised": {"grappler": "as_is"}}
HALF = "half"  # half_net() below; other names are of tests/graphs and of limit_graphs.py.
AFTER_PASSES = "+passes"  # Behind the name of a graph.

Run = collections.namedtuple("Run", "graph shares recomputes capabilities changes")
ORDERS = ("unchanged", "reversed", "topological") + tuple(
    "shuffled%d" % seed for seed in range(1, 6))
FEW_CHANGES = ("defaults", "advised", "unchanged", "reversed", "shuffled1")
SHORT = [Run("unet", (75,), ("cheap", "all"), ("7.0",), FEW_CHANGES),  # NHWC
         Run("tfcnn_googlenet", (50,), ("cheap", "all"), ("8.0",), FEW_CHANGES),  # NCHW
         Run(HALF, (50,), ("cheap", "all"), ("7.0", "8.0"), FEW_CHANGES),
         Run("bert_tiny", (50,), ("cheap", "all"), ("8.0",), FEW_CHANGES),
         Run("gpt" + AFTER_PASSES, (50,), ("cheap",), ("8.0",), ("defaults", "advised"))]
FULL = [Run(graph, (75, 50, 35), ("off", "cheap", "all"), tuple(HARDWARE),
            ("defaults", "advised") + ORDERS)
        for graph in ("unet", "decay", "vgg", HALF, "tfcnn_googlenet", "bert_tiny", "resnet50_tf1",
                      "resnet50_keras", "tfcnn_resnet50_b200", "tfcnn_inception3_4gpu", "unet3d",
                      "bert_base", "gpt" + AFTER_PASSES, "resnet50_tf1" + AFTER_PASSES)]

Told = collections.namedtuple("Told", "peak_bytes time_ns reserve_bytes may_run_out advice")
Case = collections.namedtuple("Case", "name broken figures")


def reordered(graph_bytes, order):
    """The same graph with its nodes in another order of the file."""
    graph_def = train.parse(graph_bytes)
    nodes = list(graph_def.node)
    if order == "reversed":
        nodes.reverse()
    elif order == "topological":
        nodes = breadth_first(nodes)
    elif order != "unchanged":
        random.Random(order).shuffle(nodes)
    del graph_def.node[:]
    graph_def.node.extend(nodes)
    return graph_def.SerializeToString()


def breadth_first(nodes):
    """Each node behind its inputs, those that are ready longest first; loops keep their order."""
    waits = {n.name: len(n.input) for n in nodes}
    by_name, readers = {n.name: n for n in nodes}, collections.defaultdict(list)
    for n in nodes:
        for spelled in n.input:
            readers[names.node(spelled)].append(n.name)
    order = [n.name for n in nodes if not n.input]
    for name in order:  # Grows as it is read.
        for reader in readers[name]:
            waits[reader] -= 1
            if waits[reader] == 0:
                order.append(reader)
    done = set(order)
    return [by_name[name] for name in order] + [n for n in nodes if n.name not in done]


def half_net():
    """(GraphDef, fetches): convolutions in branches, in NCHW and float16, which a GPU with tensor
    cores has in NHWC. (A CPU has no kernels for it.)"""
    tf = train.tensorflow()
    v1, form = tf.compat.v1, {"data_format": "NCHW"}

    def conv(x, width, size, name):
        kernel = v1.get_variable(name, [size, size, int(x.shape[1]), width], tf.float16,
                                 v1.random_normal_initializer(), use_resource=False)
        return tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME", **form))

    with tf.Graph().as_default() as graph:
        images = v1.placeholder(tf.float16, [64, 3, 64, 64], "images")
        labels = v1.placeholder(tf.int32, [64], "labels")
        x = conv(images, 32, 7, "first")
        for block in range(6):
            ends = [conv(x, 16, 1, "point%d" % block),
                    conv(conv(x, 24, 1, "before%d" % block), 32, 3, "wide%d" % block),
                    conv(tf.nn.max_pool2d(x, 3, 1, "SAME", **form), 16, 1, "pool%d" % block)]
            x = tf.concat(ends, 1)
            if block % 2:
                x = tf.nn.max_pool2d(x, 2, 2, "SAME", **form)
        logits = tf.cast(tf.reduce_mean(x, [2, 3]), tf.float32)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits), name="loss")
        v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, name="train")
    return graph.as_graph_def(), ["train", "loss"]


class Net:
    """A graph as it is planned."""

    def __init__(self, name):
        self.name, feeds = name, []
        if name == HALF:
            graph_def, self.fetches = half_net()
            self.bytes = graph_def.SerializeToString(deterministic=True)
        else:
            with tempfile.TemporaryDirectory(prefix="spillway-") as folder:
                place = HERE.parent / "graphs" / name
                if name in limit_graphs.GRAPHS:
                    place = pathlib.Path(folder)
                    limit_graphs.write(name, place)
                graph = graphs.Graph(place)
                self.bytes, feeds = graph.bytes, graph.meta.get("feeds", [])
            fetches = graph.meta["fetches"]
            self.fetches = [fetches["train_op"], names.node(fetches["loss"])]
        self.step = {"targets": ",".join(self.fetches),
                     "feed": {names.node(f["name"]): f["plan_shape"] for f in feeds}}

    def after_passes(self, capability):
        """As a GPU with enough memory has it when the plug-in plans."""
        net = copy.copy(self)
        net.bytes = grappler().optimized(self.bytes, self.fetches, capability, AMPLE_BYTES)
        net.step = dict(self.step, grappler="as_is")
        return net

    def changed(self, planned, change, capability, memory_bytes, told):
        """The bytes of a plan as `change` leaves them."""
        if change not in ("defaults", "advised"):
            return reordered(planned, change)
        config = grappler().config(told.advice if change == "advised" else "")
        return grappler().optimized(planned, self.fetches, capability, memory_bytes, config)


def grappler():
    """The module, which loads TensorFlow: after main() has set its environment."""
    from truth import grappler as module  # pylint: disable=import-outside-toplevel
    return module


def peak_of(forecast):
    """The peak of the step; if reported, that in all of the memory, as TensorFlow has it."""
    return max(int(device.get("peak_in_all_memory_bytes", device["peak_bytes"]))
               for device in forecast["devices"])


def plan(spillway, net, recompute, options, advice):
    """The plan's bytes and the report's figures; None: there is no plan."""
    try:
        planned, report = spillway.rewrite(net.bytes, "budget", dict(options, recompute=recompute))
    except rewrite.RewriteFailed as error:
        if "[DOES_NOT_FIT]" not in str(error):
            raise
        return None
    forecast = report["forecast_after"]
    if forecast["fit"] != "FIT_FITS":
        return None
    codes = [warning["code"] for warning in report.get("warnings", [])]
    return planned, Told(peak_of(forecast), int(forecast["step_time_in_all_memory_ns"]),
                         DEFAULT_RESERVE * options["gpu_memory_bytes"],
                         "WARNING_CODE_MAY_RUN_OUT" in codes,
                         advice or report["advice"]["config_proto_text"])


def judged(name, told, forecast):
    """A Case of the simulation of the changed plan."""
    warned = ", MAY_RUN_OUT" if told.may_run_out else ""
    if forecast["fit"] == "FIT_DOES_NOT_FIT":  # A step that ends there has no time.
        short = forecast["out_of_memory"]
        asked, used, budget = (int(short[key]) / 2**20 for key in (
            "requested_bytes", "in_use_bytes", "budget_bytes"))
        return Case(name, PROMISES, "does not fit, with %.0f MiB more in %.0f of %.0f at %s%s" % (
            asked, used, budget, short["node"], warned))
    peak, time_ns = peak_of(forecast), int(forecast["step_time_ns"])
    unknown = int(forecast["known_share"]["unknown_tensor_count"])
    broken = []
    if forecast["fit"] != "FIT_FITS" or unknown:
        broken.append("fit")
    if peak > told.peak_bytes + told.reserve_bytes / 2:
        broken.append("peak")
    if not LEAST_TIME * told.time_ns <= time_ns <= MOST_TIME * told.time_ns:
        broken.append("time")
    figures = "%s, peak %.0f of %.0f MiB (%+.1f %% of the memory), %.1f of %.1f ms (%+.1f %%)%s" % (
        "fit unknown, %d sizes" % unknown if "fit" in broken else "fits", peak / 2**20,
        told.peak_bytes / 2**20,
        100 * DEFAULT_RESERVE * (peak - told.peak_bytes) / told.reserve_bytes,
        time_ns / 1e6, told.time_ns / 1e6, 100 * (time_ns / told.time_ns - 1), warned)
    return Case(name, broken, figures)


def cases(spillway, run, pattern, advice, numbers=None, every=1):
    """The Cases of a Run. `advice`: a ConfigProto's text, if not the report's. Of the plans, which
    `numbers` counts, only each `every`-th is made."""
    net_of_file = None
    for capability, share, recompute in itertools.product(run.capabilities, run.shares,
                                                          run.recomputes):
        prefix = "%s/%d/%s/%s/" % (run.graph, share, recompute, capability)
        wanted = [change for change in run.changes if pattern in prefix + change]
        if not wanted or (numbers is not None and next(numbers) % every != 0):
            continue
        net_of_file = net_of_file or Net(run.graph.replace(AFTER_PASSES, ""))
        passed = run.graph.endswith(AFTER_PASSES)
        net = net_of_file.after_passes(capability) if passed else net_of_file
        options = dict(net.step, hardware=HARDWARE[capability])
        ample = spillway.simulate(net.bytes, dict(options, no_budget=True))["forecast"]
        options["gpu_memory_bytes"] = peak_of(ample) * share // 100
        made = plan(spillway, net, recompute, options, advice)
        for change in wanted:
            if made is None:
                yield Case(prefix + change, None, "no plan")
                continue
            planned, told = made
            try:
                changed = net.changed(planned, change, capability, options["gpu_memory_bytes"], told)
            except train.tensorflow().errors.OpError as error:  # A session runs without any pass.
                yield Case(prefix + change, PROMISES, "TensorFlow's passes fail: %s" % error.message)
                continue
            ran = dict(options, **ALL_MEMORY, **AS_IT_IS.get(change, {}))
            yield judged(prefix + change, told, spillway.simulate(changed, ran)["forecast"])


def known_broken():
    """{case: its promises that are known not to be kept}."""
    known = {}
    for line in BROKEN.read_text().splitlines() if BROKEN.exists() else ():
        if line and not line.startswith("#"):
            name, promises = line.split(":")[0].split(" ", 1)
            known[name] = promises.split(",")
    return known


def write(ran):
    """Puts the broken promises of the cases that ran into the list, beside those of others."""
    kept = [line for line in BROKEN.read_text().splitlines()
            if line.startswith("#") or line.split(" ")[0] not in {case.name for case in ran}]
    comments = [line for line in kept if line.startswith("#")]
    lines = [line for line in kept if line and not line.startswith("#")]
    lines += ["%s %s: %s" % (case.name, ",".join(case.broken), case.figures)
              for case in ran if case.broken]
    BROKEN.write_text("\n".join(comments + sorted(lines)) + "\n")


def told_of(case, known):
    """(text about it, whether it fails the test)."""
    if case.broken is None:
        return "none, but listed" if case.name in known else "none", case.name in known
    listed = known.get(case.name, [])
    news = [p for p in case.broken if p not in listed]
    mended = [p for p in listed if p not in case.broken]
    words = ["BROKEN " + ",".join(news)] if news else []
    words += ["KEPT NOW, take it from the list: " + ",".join(mended)] if mended else []
    if not words:
        words = ["known " + ",".join(listed)] if listed else ["ok"]
    return "; ".join(words), bool(news or mended)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--spillway", metavar="PROGRAM", required=True)
    every = parser.add_mutually_exclusive_group()
    every.add_argument("--full", action="store_true", help="every graph, share, GPU and order")
    every.add_argument("--every", metavar="N", type=int, help="each N-th plan of --full")
    parser.add_argument("-k", metavar="PATTERN", default="", help="only cases with this in the name")
    parser.add_argument("--advice", metavar="TEXT", default="",
                        help="the ConfigProto of `advised`, if not the report's")
    parser.add_argument("--write", action="store_true", help="make the list of what is broken anew")
    arguments = parser.parse_args()
    if arguments.every is not None and arguments.every < 1:
        parser.error("--every %d: give a number of plans, 1 or more" % arguments.every)
    for key, value in train.ENVIRONMENT.items():
        os.environ[key] = value
    spillway = rewrite.SpillwayCommand(arguments.spillway)
    known, ran, failed = known_broken(), [], 0
    numbers = itertools.count()
    for run in FULL if arguments.full or arguments.every else SHORT:
        for case in cases(spillway, run, arguments.k, arguments.advice, numbers,
                          arguments.every or 1):
            words, fails = told_of(case, known)
            print("%s  %s: %s" % (words, case.name, case.figures), flush=True)
            ran.append(case)
            failed += fails
    planned = [case for case in ran if case.broken is not None]
    for promise in PROMISES:
        kept = sum(promise not in case.broken for case in planned)
        print("%s: kept in %d of %d" % (promise, kept, len(planned)))
    if arguments.write:
        write(ran)
    print("%d passed, %d failed, %d skipped" % (len(planned) - failed, failed,
                                                len(ran) - len(planned)))
    return 1 if failed or not planned else 0


if __name__ == "__main__":
    sys.exit(main())
