#!/usr/bin/env python3
"""A real memory limit, without a GPU: whether a plan said to fit runs, and how much it takes.

    memory_limit.py --spillway build/bin/spillway [--graph NAME ...] [--strategy level]
        [--recompute all] [--runs 3] [--threads 2,4] [--shares 0.9,0.75,0.6] [--least]
        [--chains 40]

A process for each GPU of the graph: a TensorFlow server, whose allocator (BFC, as a GPU's) has a hard
limit, plays the GPU; and one for the host. Nodes without a device run on the first, swap nodes and
nodes on CPUs on the host, so a tensor that was sent away takes no memory on a GPU.

A step of the unchanged graph is traced, and is the profile that plans are made with: kernels of a
CPU take other times and workspaces than a GPU's. Then, for each graph:

  - if Spillway says that no swapping is needed, the unchanged graph must train;
  - plans are made for shares of that memory, and for the least that Spillway says a plan can do
    with. Each must train with just the limit that it was made for, in each of several runs, to the
    same losses, bit for bit; unless the report warns that it may run out (MAY_RUN_OUT): then the
    number of runs that do is printed;
  - with the limit of the smallest plan, the unchanged graph must not train: the plan was needed.

With --workspaces cudnn, Grappler is on, and behind each convolution stands an op that takes memory as
cuDNN does (workspace_op.cc): as much as the convolution reads and makes, for a time, at once or not
at all. Plans do not count it, as a step does not need it: they must train all the same.

With --chains, the cost of a plan's chain is measured, too: the control edges that keep operations
in the planned order. In ample memory, so many steps run with them, and by turns as many without.
The number of edges and the steps per second of both are printed; both must train to the same
losses. A graph counts as skipped if no plan has a chain, which may depend on the traced times.

With --least, the least limits with which the graph and its plans train are searched, too. For a run
that fails, the refused request and the free memory are printed. Exit code 0: nothing failed, 1:
something did, 2: bad usage. One to two minutes for each graph.
"""
import argparse
import collections
import contextlib
import json
import math
import multiprocessing
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from google.protobuf import text_format

import limit_graphs
from truth import feeds, graphs, names, rewrite, train

HERE = pathlib.Path(__file__).resolve().parent
GRAPHS = HERE.parent / "graphs"
DEFAULT_GRAPHS = ("branches", "unet", "unet3d_s16", "bert_tiny")
ALL_GRAPHS = DEFAULT_GRAPHS + ("resnet50_tf1_b4", "decay", "vgg", "towers")
# The limits of plans, as shares of the memory said to fit unswapped.
SHARES = "0.9,0.75,0.6"
MIB = 1 << 20
AMPLE_MIB = 16384
GPU_DEVICE = "/job:gpu/task:%d/device:CPU:0"
STEPS = 2
# A run that fails waits 10 s for memory (BFCAllocator), in each of a few ops.
RUN_TIMEOUT_S = 240
# Of the server that plays the GPU: one runs kernels, one serves the other process. With one alone,
# no tensor leaves while a kernel waits for memory, as it does by a GPU's copy engines.
GPU_THREADS = "2"
# The batch, as a multiple of the recorded one: limits are whole MiB, so that a few say little.
BATCH_FACTORS = {"unet3d_s16": 8, "bert_tiny": 8}
# gRPC's bytes per second on one machine (in traces 4 to 8 MiB took 2 to 7 ms; smaller tensors, and
# on a busy machine, 0.1 to 0.2 GB per second).
LINK_BYTES_PER_S = 6e8
SMALL_WORKSPACE_OPS = ("Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3DBackpropFilterV2",
                       "Conv3DBackpropInputV2")
SCRATCH_OPS = ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")
# Ops that cuDNN runs, and which of their inputs is a shape, if one is.
CONVOLUTIONS = {"Conv2D": None, "Conv2DBackpropInput": 0, "Conv2DBackpropFilter": 1,
                "Conv3D": None, "Conv3DBackpropInputV2": 0, "Conv3DBackpropFilterV2": 1}
# On a GPU microseconds, and milliseconds if it chooses an algorithm.
WORKSPACE_HELD_US = 1000
# Spillway's own, for the first guess at the unchanged graph's memory.
DEFAULT_RESERVE = 0.1
CHAIN = "EDGE_KIND_SERIALIZATION"
# After so long no further step is timed, as a training must end before RUN_TIMEOUT_S.
TURNS_S = 120
# The search for a least limit ends when it knows the limit to this share.
PRECISION = 0.015


def cluster(ports):
    """The GPUs in order, and the host on the last port."""
    addresses = ["127.0.0.1:%d" % port for port in ports]
    return {"gpu": addresses[:-1], "host": addresses[-1:]}


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def load_tensorflow(workspaces):
    """Loads it once for all processes, which are forked before any session, and workspace_op.cc if
    `workspaces` are `cudnn`. Its log level is read here for good: that of the process whose
    allocator logs refused requests."""
    os.environ.update(train.ENVIRONMENT, TF_CPP_MIN_LOG_LEVEL="0")
    errors = os.dup(2)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        import tensorflow  # pylint: disable=import-outside-toplevel
        if workspaces == "cudnn":
            load_workspace_op(tensorflow)
    finally:
        os.dup2(errors, 2)
        os.close(errors)
    os.environ.update(train.ENVIRONMENT)


def load_workspace_op(tf):
    """Builds and loads workspace_op.cc."""
    with tempfile.TemporaryDirectory(prefix="spillway-memory-") as folder:
        library = pathlib.Path(folder) / "workspace_op.so"
        # Without warnings: TensorFlow's headers have them.
        subprocess.run(["g++", "-O1", "-w", "-shared", "-fPIC", *tf.sysconfig.get_compile_flags(),
                        HERE / "workspace_op.cc", "-o", library, *tf.sysconfig.get_link_flags()],
                       check=True)
        tf.load_op_library(str(library))


def forked(function, log, *arguments):
    """A process that runs the function, its standard error in a file."""
    def body():
        os.dup2(log.fileno(), 2)
        function(*arguments)

    process = multiprocessing.get_context("fork").Process(target=body)
    process.start()
    return process


def finish(process, log):
    """Waits for a process that must not fail."""
    process.join(RUN_TIMEOUT_S)
    if process.exitcode != 0:
        process.kill()
        log.seek(0)
        raise RuntimeError("a process ended with %s: %s" % (process.exitcode, log.read()[-500:]))


def serve(ports, gpu, threads, limit_mib):
    """The process that plays a GPU; ends when it is killed."""
    os.environ.update(TF_CPU_ALLOCATOR_USE_BFC="true", TF_CPU_BFC_MEM_LIMIT_IN_MB=str(limit_mib))
    tf = train.tensorflow()
    config = train.session_config(1, grappler=False)
    config.inter_op_parallelism_threads = threads
    tf.distribute.Server(cluster(ports), job_name="gpu", task_index=gpu, config=config).join()


def write_profile(graph, path, workspaces):
    """Writes the RunMetadata of a step of the unchanged graph, in this process, without a limit."""
    tf = train.tensorflow()
    tf_graph = tf.Graph()
    with tf_graph.as_default():
        tf.import_graph_def(kernels(train.parse(graph.bytes), workspaces), name="")
    options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
    metadata = tf.compat.v1.RunMetadata()
    with tf.compat.v1.Session(graph=tf_graph,
                              config=train.session_config(1, grappler=False)) as session:
        train._init(tf, session, graph)  # pylint: disable=protected-access
        for step in range(STEPS):
            fed = feeds.feed_dict(graph.feed_spec, step)
            for train_op, loss in graph.step_calls:
                session.run([train_op, loss], fed, options=options, run_metadata=metadata)
    if workspaces != "default":
        add_scratch(tf_graph, metadata)
    pathlib.Path(path).write_bytes(metadata.SerializeToString())


def add_scratch(tf_graph, metadata):
    """Adds to a profile what kernels of `eigen_tensor` take besides their outputs, and traces do not
    see: that of a filter's gradient copies its input (seen in the allocator's own log)."""
    stats = [node for device in metadata.step_stats.dev_stats for node in device.node_stats]
    sizes = {(node.node_name, output.slot):
             output.tensor_description.allocation_description.requested_bytes
             for node in stats for output in node.output}
    for node in stats:
        try:
            op = tf_graph.get_operation_by_name(node.node_name)
        except (KeyError, ValueError):
            continue  # Something of the executor's.
        if op.type in SCRATCH_OPS:
            source = op.inputs[0]
            size = sizes.get((source.op.name, source.value_index), 0)
            node.memory.add(allocator_name="scratch", peak_bytes=size)


def take_region(tf, limit_mib, name):
    """An op that takes and gives back more than half of the limit, before anything else takes
    memory, so that the allocator's region is one, as on a GPU: BFCAllocator takes regions in powers
    of two, or the rest of the limit. It reads no constant, which would take memory, too."""
    floats = ((1 << ((limit_mib * MIB - 1).bit_length() - 1)) + MIB // 2) // 4
    region = tf.raw_ops.TemporaryVariable(shape=[floats], dtype=tf.float32, var_name=name)
    return tf.raw_ops.DestroyTemporaryVariable(ref=region, var_name=name).op


def kernels(graph_def, workspaces):
    """Unless workspaces are `default`, the gradients of convolutions by the kernels that take no
    more than a copy of an input. The default kernels take up to the size of the processor's last
    cache, for any batch: nothing in a GPU's memory, and half of that of a small graph."""
    for node in graph_def.node:
        if workspaces != "default" and node.op in SMALL_WORKSPACE_OPS:
            node.attr["_kernel"].s = b"eigen_tensor"
    return graph_def


def initializers(tf_graph, init_ops):
    """The initializers in the init ops, variable by variable."""
    found, ahead = {}, [tf_graph.get_operation_by_name(name) for name in init_ops]
    while ahead:
        op = ahead.pop()
        if op.type in ("Assign", "AssignVariableOp"):
            found[op.name] = op
        elif op.type == "NoOp":
            ahead += op.control_inputs
        else:
            raise RuntimeError("%s (%s) is no initializer of a variable" % (op.name, op.type))
    return [found[name] for name in sorted(found)]


def place(graph_def):
    """Puts the nodes on the processes. A tensor that one process sends to another is not made in
    place of an input (forward_input asks for the same allocator attributes, and InferAllocAttr in
    immutable_executor_state.cc sets nic_compatible before a send to another process); one that a
    GPU copies to its host is. So an identity on the GPU reads each swapped tensor."""
    device_of = {node.name: node.device for node in graph_def.node}
    for node in list(graph_def.node):
        is_swap = node.name.startswith("lms/swap")
        if is_swap and not node.input[0].startswith("lms/swap"):
            source = names.node(node.input[0])
            sent = graph_def.node.add(name="sent/" + node.name, op="Identity",
                                      input=[node.input[0]],
                                      device=GPU_DEVICE % names.gpu_number(device_of[source]))
            sent.attr["T"].CopyFrom(node.attr["T"])
            sent.attr["_grappler_do_not_remove"].b = True
            node.input[0] = sent.name
        on_host = is_swap or names.is_cpu(node.device)
        node.device = ("/job:host/task:0/device:CPU:0" if on_host
                       else GPU_DEVICE % names.gpu_number(node.device))


def add_workspaces(graph_def):
    """Puts an op that takes a workspace between each convolution and its readers."""
    taken = {}
    for node in list(graph_def.node):
        if node.op not in CONVOLUTIONS:
            continue
        shape = CONVOLUTIONS[node.op]
        read = [spelled for index, spelled in enumerate(node.input)
                if index != shape and not spelled.startswith("^")]
        op = graph_def.node.add(name="workspace/" + node.name, op="SpillwayWorkspace",
                                device=node.device, input=[node.name] + read)
        op.attr["T"].CopyFrom(node.attr["T"])
        op.attr["N"].i = len(read)
        op.attr["held_us"].i = WORKSPACE_HELD_US
        taken[node.name] = op.name
    for node in graph_def.node:
        if node.op == "SpillwayWorkspace":
            node.input[1:] = [taken.get(names.node(spelled), spelled) for spelled in node.input[1:]]
            continue
        for index, spelled in enumerate(node.input):
            if names.node(spelled) in taken:
                node.input[index] = "^" * spelled.startswith("^") + taken[names.node(spelled)]


def session_config(options, advice):
    """Of the process that trains, which is where Grappler runs. Arithmetic optimization is off: it
    does not keep the bits (Advice.same_bits_config_proto_text)."""
    grappler = options.workspaces == "cudnn"
    config = train.session_config(1, grappler, passes_off=("arithmetic_optimization",))
    return text_format.Merge(advice, config) if grappler else config


def placed(path, options):
    """The graph at `path` as it runs on the processes."""
    graph_def = kernels(train.parse(pathlib.Path(path).read_bytes()), options.workspaces)
    place(graph_def)
    if options.workspaces == "cudnn":
        add_workspaces(graph_def)
    return graph_def


def take_turns(tf, session, config, graph, other_graph_def, turns):
    """Trains another graph on the session's server, then has both step by turns, so that other load
    on the machine slows both. They share variables, which are initialized again. Returns the
    other's losses, and the seconds of each step of both."""
    trained, seconds = train.Trained(), ([], [])
    with tf.compat.v1.Session(session.sess_str, train.imported(other_graph_def), config) as other:
        train._init(tf, other, graph)  # pylint: disable=protected-access
        for step in range(STEPS):
            train._step(tf, other, graph, step, trained)  # pylint: disable=protected-access
        fed = feeds.feed_dict(graph.feed_spec, STEPS)
        end = time.monotonic() + TURNS_S
        while len(seconds[0]) < turns and time.monotonic() < end:
            for which in (0, 1) if len(seconds[0]) % 2 else (1, 0):
                begun = time.perf_counter()
                for call in graph.step_calls:
                    (session, other)[which].run(call, fed)
                seconds[which].append(time.perf_counter() - begun)
    return {"other_losses": trained.losses, "seconds": seconds}


def run_client(ports, graph, path, limit_mib, options, advice, answer_path, other_path):
    """Trains, and writes the losses or the error as JSON; with another path, take_turns(), too."""
    tf = train.tensorflow()
    graph_def = placed(path, options)
    config = session_config(options, advice)
    server = tf.distribute.Server(cluster(ports), job_name="host", task_index=0, config=config)
    tf_graph = tf.Graph()
    with tf_graph.as_default():
        regions = []
        for gpu in range(len(ports) - 1):
            with tf.device(GPU_DEVICE % gpu):
                regions.append(take_region(tf, limit_mib, "region%d" % gpu))
        tf.import_graph_def(graph_def, name="")
    answer = {}
    trained = train.Trained()
    graph.steps = STEPS
    try:
        with tf.compat.v1.Session(server.target, graph=tf_graph, config=config) as session:
            session.run(regions)
            if options.init == "apart":
                for op in initializers(tf_graph, graph.init_ops):
                    session.run(op)
            else:
                train._init(tf, session, graph)  # pylint: disable=protected-access
            for step in range(STEPS):
                train._step(tf, session, graph, step, trained)  # pylint: disable=protected-access
            if other_path:
                answer = take_turns(tf, session, config, graph, placed(other_path, options),
                                    options.chains)
        answer["losses"] = trained.losses
    except (train.TrainingFailed, tf.errors.OpError) as error:
        answer["error"] = str(error)[:600]
    pathlib.Path(answer_path).write_text(json.dumps(answer))
    os._exit(0)  # A server cannot be ended otherwise.


class Run:
    """One training under a limit: its losses, or why it has none."""

    def __init__(self, answer, server_log):
        self.losses, self.other_losses = answer.get("losses"), answer.get("other_losses")
        self.seconds = answer.get("seconds")
        self.error = answer.get("error", "")
        self.server_log = server_log
        # Output of workspace_op.cc.
        self.without = len(re.findall(r"\] no workspace$", server_log, re.MULTILINE))
        self.workspaces = self.without + len(re.findall(r"\] workspace$", server_log, re.MULTILINE))

    def why(self):
        """The refused request, and the free memory then."""
        op = re.search(r"OOM when allocating tensor with shape(\S*) and type (\w+)", self.error)
        node = re.search(r"{{node ([^}]+)}}", self.error)
        # A workspace that is refused is reported in other words.
        asked = re.search(r"ran out of memory trying to allocate (\S+) \(rounded", self.server_log)
        # Of the first request that was refused: behind it, the allocator lists its chunks.
        dump = self.server_log[asked.end():] if asked else ""
        dump = dump.split("Stats:", maxsplit=1)[0]
        free = [int(size) for size in re.findall(r"Free +at \w+ of size (\d+)", dump)]
        used = sorted((int(size) for size in re.findall(r"InUse at \w+ of size (\d+)", dump)),
                      reverse=True)
        regions = re.findall(r"Next region of size (\d+)", dump)
        if not asked:
            return " ".join((self.error[-200:] + " " + self.server_log[-300:]).split())
        # Kernels do not ask whether they got their scratch memory: then the process ends, and the
        # first request is not known.
        who = "the process ended; the first"
        if op:
            who = "%s (%s)" % (node.group(1) if node else "?", op.group(1))
        if self.error.startswith("init:"):
            who = "initializing: " + who
        return ("%s asked for %s; free %.1f MiB, at most %.1f in one piece; "
                "in use %.1f MiB, the largest %s; regions %s MiB" % (
                    who, asked.group(1), sum(free) / MIB, max(free, default=0) / MIB,
                    sum(used) / MIB,
                    " ".join("%.1f" % (size / MIB) for size in used[:5]),
                    " ".join("%.0f" % (int(size) / MIB) for size in regions)))


def run(graph, path, num_gpus, limit_mib, threads, options, advice, other_path):
    """Trains the graph at `path` with that limit for each GPU, and the `advice` of its report."""
    ports = free_ports(num_gpus + 1)
    with contextlib.ExitStack() as stack:
        def log_file():
            return stack.enter_context(tempfile.TemporaryFile("w+", errors="replace"))

        logs, client_log = [log_file() for _ in range(num_gpus)], log_file()
        answer_file = stack.enter_context(tempfile.NamedTemporaryFile("r"))
        gpus = [forked(serve, log, ports, gpu, threads, limit_mib) for gpu, log in enumerate(logs)]
        client = forked(run_client, client_log, ports, graph, path, limit_mib, options,
                        advice, answer_file.name, other_path)
        try:
            finish(client, client_log)
        finally:
            for gpu in gpus:
                gpu.kill()
                gpu.join()
        for log in logs:
            log.seek(0)
        return Run(json.load(answer_file), "".join(log.read() for log in logs))


class Subject:
    """A graph, its expected losses, and the options of a measurement."""

    def __init__(self, graph, options, folder):
        self.graph = graph
        self.options = options
        self.threads = [int(count) for count in options.threads.split(",")]
        self.num_gpus = max(1, names.gpu_count(train.parse(graph.bytes)))
        self.spillway = rewrite.SpillwayCommand(options.spillway)
        self.folder = folder
        self.original = folder / "original.pb"
        self.original.write_bytes(graph.bytes)
        self.profile = folder / "profile.pb"
        self.expected = None
        self.advice = ""  # On the session, by the last plan.
        self.saved_plan = folder / "plan.json"  # The last, too.
        self.chained = 0  # Edges of chains, of all plans.
        self.wrong = []

    def prepare(self):
        """Writes the profile, and trains without a limit."""
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            finish(forked(write_profile, log, self.graph, self.profile, self.options.workspaces),
                   log)
        ample = self.run(self.original, AMPLE_MIB, self.threads[0])
        if ample.losses is None:
            raise RuntimeError("it does not train with %d MiB: %s" % (AMPLE_MIB, ample.error))
        self.expected = ample.losses

    def run(self, path, limit_mib, threads, other_path=None):
        advice = self.advice if path != self.original else ""
        return run(self.graph, path, self.num_gpus, limit_mib, threads, self.options, advice,
                   other_path)

    def plan(self, limit_mib):
        """(graph bytes, report) of a plan for a GPU with that much memory."""
        options = {
            "feed": {spec["name"].split(":")[0]: spec["shape"] for spec in self.graph.feed_spec},
            "hardware": "p100_pcie", "profile": self.profile,
            "d2h_bytes_per_s": LINK_BYTES_PER_S, "h2d_bytes_per_s": LINK_BYTES_PER_S,
            "allocator_reserve": self.options.reserve, "recompute": self.options.recompute,
            "grappler": "auto" if self.options.workspaces == "cudnn" else "as_is",  # session_config().
            "kernel_memory": "off",  # Those here are the CPU's.
            "save_plan": self.saved_plan,
            "gpu_memory_bytes": limit_mib * MIB}
        planned, report = self.spillway.rewrite(self.graph.bytes, self.options.strategy, options)
        self.advice = report.get("advice", {}).get("config_proto_text", "")
        return planned, report

    def count_runs(self, path, limit_mib, what, warned=False):
        """'2 threads 3/3' for each number of threads, and how many workspaces were refused. A run that
        fails is printed, and wrong unless the report `warned` of that; other losses are wrong in any
        case."""
        counts = []
        for threads in self.threads:
            failed = []
            workspaces = without = 0
            for _ in range(self.options.runs):
                done = self.run(path, limit_mib, threads)
                workspaces += done.workspaces
                without += done.without
                if done.losses is None:
                    failed.append(done.why())
                elif done.losses != self.expected:
                    failed.append("other losses")
            for why, times in collections.Counter(failed).items():
                print("    %d threads, %d x: %s" % (threads, times, why), flush=True)
            if "other losses" in failed or (failed and not warned):
                self.wrong.append("%s, %s for %d MiB: with %d threads %d of %d runs fail in it" % (
                    self.graph.name, what, limit_mib, threads, len(failed), self.options.runs))
            counts.append("%d threads %d/%d" % (
                threads, self.options.runs - len(failed), self.options.runs))
            if self.options.workspaces == "cudnn":
                counts[-1] += " (%d of %d workspaces refused)" % (without, workspaces)
                if not workspaces:
                    self.wrong.append("%s, %s: no workspace was asked for" % (self.graph.name, what))
        return ", ".join(counts)

    def least(self, path, simulated, high):
        """', takes at least N MiB (ratio)', if that is to be searched."""
        if not self.options.least:
            return ""
        least = least_limit(self, path, int(simulated * 0.8), high)
        return ", takes %d MiB (%.2f)" % (least, least / simulated)

    def chain(self, path, what):
        """Prints the cost of the last plan's chain, if asked for and if the plan has one."""
        edges = [edge for edge in json.loads(self.saved_plan.read_text()).get("controls", [])
                 if edge["kind"] == CHAIN] if self.options.chains else []
        self.chained += len(edges)
        unchained = self.folder / "unchained.pb"
        unchained.write_bytes(without(path.read_bytes(), edges))
        for threads in self.threads if edges else ():
            done = self.run(path, AMPLE_MIB, threads, unchained)
            if done.losses is None or not done.losses == done.other_losses == self.expected:
                self.wrong.append("%s, %s, with its chain and without: %s" % (
                    self.graph.name, what, "other losses" if done.losses else done.why()))
                continue
            ratios = [after / before for before, after in zip(*done.seconds)]
            low, ratio, high = statistics.quantiles(ratios, n=4)
            print("    %d threads, a chain of %d edges, %d steps: %.2f steps per second with it, "
                  "%.2f without, ratio %.3f (quartiles %.2f and %.2f)" % (
                      threads, len(edges), len(ratios), 1 / statistics.median(done.seconds[0]),
                      1 / statistics.median(done.seconds[1]), ratio, low, high), flush=True)


def without(graph_bytes, edges):
    """The bytes of a graph without these control edges, all of which must be there."""
    graph_def = train.parse(graph_bytes)
    by_name = {node.name: node for node in graph_def.node}
    for edge in edges:
        if "^" + edge["source"] not in by_name[edge["node"]].input:
            raise RuntimeError("the edge %(source)s -> %(node)s is not in the graph" % edge)
        by_name[edge["node"]].input.remove("^" + edge["source"])
    return graph_def.SerializeToString()


def least_limit(subject, path, low, high):
    """The least limit in MiB with which it trains to the expected losses: above `low`, and at most
    `high` if it trains there."""
    def losses_in(limit_mib):
        losses = subject.run(path, limit_mib, subject.threads[0]).losses
        if losses is not None and losses != subject.expected:
            raise RuntimeError("other losses in %d MiB" % limit_mib)
        return losses

    while losses_in(high) is None:
        low, high = high, high + high // 16 + 1
        if high > AMPLE_MIB:
            raise RuntimeError("it does not train in %d MiB" % low)
    while high - low > max(high * PRECISION, 1):
        middle = (low + high) // 2
        low, high = (low, middle) if losses_in(middle) is not None else (middle, high)
    return high


def measure(subject):
    """Prints a line for each plan; returns the problems."""
    name, reserve = subject.graph.name, subject.options.reserve
    subject.prepare()
    peak = max(int(fit["unswapped_peak_bytes"])
               for fit in subject.plan(AMPLE_MIB)[1]["fits"]) / MIB
    # Spillway's minimum for the unchanged graph: a plan for that swaps nothing.
    enough = math.ceil(peak / (1 - (DEFAULT_RESERVE if reserve is None else reserve)))
    while True:
        report = subject.plan(enough)[1]
        if all(fit.get("not_needed") for fit in report["fits"]) and not may_run_out(report):
            break
        enough += max(enough // 50, 1)
    print("%-16s as it came: peak %.1f MiB, said to fit %d MiB; %s%s" % (
        name, peak, enough, subject.count_runs(subject.original, enough, "as it came, said to fit"),
        subject.least(subject.original, peak, enough)), flush=True)
    smallest = None
    limits = [(int(enough * float(share)), share)
              for share in (subject.options.shares or SHARES).split(",")]
    while limits:
        limit, share = limits.pop(0)
        try:
            rewritten, report = subject.plan(limit)
        except rewrite.RewriteFailed as error:
            known = re.search(r"\((\d+) bytes\) of GPU memory would suffice", str(error))
            print("%-16s %s: no plan for %d MiB; said to be possible: %s bytes" % (
                name, share, limit, known.group(1) if known else "none"), flush=True)
            limits = [(math.ceil(int(known.group(1)) / MIB), "least")] if known else []
            continue
        path = subject.folder / "rewritten.pb"
        path.write_bytes(rewritten)
        need = max(int(fit.get("need_bytes", fit["peak_bytes"])) for fit in report["fits"]) / MIB
        runs = subject.count_runs(path, limit, "planned", may_run_out(report))
        print("%-16s %s: %d MiB, %s, needs %.1f MiB; %s%s" % (
            name, share, limit, describe(report), need, runs, subject.least(path, need, limit)),
            flush=True)
        subject.chain(path, share)
        smallest = min(smallest or limit, limit)
    if smallest is None:
        subject.wrong.append("%s: there is no plan" % name)
    elif subject.run(subject.original, smallest, subject.threads[0]).losses is not None:
        subject.wrong.append("%s: it trains in %d MiB as it came, too" % (name, smallest))
    return subject.wrong


def may_run_out(report):
    """Whether the report warns that the plan may run out of memory."""
    return any(one["code"].endswith("MAY_RUN_OUT") for one in report.get("warnings", []))


def describe(report):
    """'12 swaps, 3 order edges, 0 of 12 variations unfit'."""
    edges = {entry["kind"]: entry["count"] for entry in report.get("added_control_edges", [])}
    text = "%d swaps" % len(report.get("swaps", []))
    if "recomputation" in report:
        text += ", %s nodes run again" % report["recomputation"]["node_count"]
    for kind, what in (("EDGE_KIND_ORDER", "order edges"), (CHAIN, "chained")):
        if kind in edges:
            text += ", %s %s" % (edges[kind], what)
    for device in report.get("budget", {}).get("devices", []):
        text += ", %s of %s variations unfit" % (
            device.get("unfit_variation_count", 0), device.get("variation_count", 0))
    return text


def load(folder):
    """The graph of a folder, with the batch that is measured."""
    graph = graphs.Graph(folder)
    factor = BATCH_FACTORS.get(graph.name, 1)
    for spec in graph.feed_spec:
        if spec["shape"] and spec["shape"][0] == graph.meta["run_batch"]:
            spec["shape"][0] *= factor
    return graph


def make_graph(name, folder):
    """A graph of limit_graphs.py, in `folder`."""
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        finish(forked(limit_graphs.write, log, name, folder), log)
    return load(folder)


def shares(text):
    """A list of shares, checked."""
    for share in text.split(","):
        try:
            valid = 0 < float(share) <= 1
        except ValueError:
            valid = False
        if not valid:
            raise argparse.ArgumentTypeError("%r is no share: give some above 0, up to 1, such as %s"
                                             % (share, SHARES))
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--spillway", required=True, help="the program under test")
    parser.add_argument("--graph", action="append",
                        help="a graph of limit_graphs.py or of tests/graphs (repeatable; default: %s)"
                        % ", ".join(DEFAULT_GRAPHS))
    parser.add_argument("--all", action="store_true", help="also " + ", ".join(
        name for name in ALL_GRAPHS if name not in DEFAULT_GRAPHS))
    parser.add_argument("--strategy", choices=("budget", "level"), default="budget")
    parser.add_argument("--recompute", choices=("off", "cheap", "all"),
                        help="what may run again in plans of budget (default: cheap)")
    parser.add_argument("--runs", type=int, default=3, help="of each plan (default %(default)s)")
    parser.add_argument("--threads", default=GPU_THREADS,
                        help="between ops of the server that plays the GPU (default %(default)s); a "
                        "list: runs with each")
    parser.add_argument("--shares", type=shares,
                        help="of what is said to fit as it came, that plans are made for (default: "
                        "%s)" % SHARES)
    parser.add_argument("--reserve", type=float,
                        help="allocator_reserve of the plans (default: Spillway's)")
    parser.add_argument("--workspaces", choices=("small", "default", "cudnn"), default="small",
                        help="of the gradients of convolutions: small ones, or those of TensorFlow's "
                        "default kernels for CPUs; or small ones, and as cuDNN takes them, with "
                        "Grappler on")
    parser.add_argument("--init", choices=("together", "apart"), default="together",
                        help="variables are initialized by one op, as programs do, or one by one: "
                        "then they lie side by side")
    parser.add_argument("--least", action="store_true", help="search the least limits, too")
    parser.add_argument("--chains", metavar="STEPS", type=int,
                        help="measure what chains cost, too, in so many steps with and without")
    options = parser.parse_args()
    if options.chains is not None and options.chains < 2:
        parser.error("--chains %d: give a number of steps, 2 or more" % options.chains)
    found = graphs.find([GRAPHS])
    failed = skipped = 0
    wanted = options.graph or (ALL_GRAPHS if options.all else DEFAULT_GRAPHS)
    load_tensorflow(options.workspaces)
    for name in wanted:
        if name not in found and name not in limit_graphs.GRAPHS:
            parser.error("there is no graph %r in %s or limit_graphs.py" % (name, GRAPHS))
        with tempfile.TemporaryDirectory(prefix="spillway-memory-") as folder:
            folder = pathlib.Path(folder)
            try:
                graph = (make_graph(name, folder / name) if name in limit_graphs.GRAPHS
                         else load(found[name].folder))
                subject = Subject(graph, options, folder)
                problems = measure(subject)
                skipped += bool(options.chains and not subject.chained and not problems)
            except (RuntimeError, rewrite.RewriteFailed) as error:
                problems = ["%s: %s" % (name, error)]
        for problem in problems:
            print("FAIL  %s" % problem)
        failed += bool(problems)
    print("%d passed, %d failed, %d skipped" % (len(wanted) - failed - skipped, failed, skipped))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
