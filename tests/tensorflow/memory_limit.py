#!/usr/bin/env python3
"""A real memory limit, without a GPU: whether a plan that is said to fit runs, and what it takes.

    memory_limit.py --spillway build/bin/spillway [--graph NAME ...] [--shares 0.95,0.9,0.8,0.7]

Two processes: one TensorFlow server, whose allocator (BFC, as a GPU's) has a hard limit, plays the
GPU; a second one the host. Nodes on a GPU or without a device run on the first, swap nodes and nodes
on CPUs on the second, so a tensor that was sent away takes no memory there.

A step of the graph as it came is traced, and is the profile that plans are made with: kernels of a
CPU take other times and workspaces than a GPU's. Then, for each graph:

  - the least limit with which it trains as it came is searched;
  - for shares of the memory that Spillway says it needs as it came, and for the least that it says a
    plan can do with, plans are made. Each must train with just that limit, to the same losses, bit
    for bit. The least limit of each is searched, too;
  - one of them must do with less than the graph as it came.

What is foretold is printed beside what it takes. Exit code 0: nothing failed, 1: something did, 2:
bad usage. About three minutes for each graph.
"""
import argparse
import json
import math
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

import branches
from truth import feeds, graphs, names, rewrite, train

HERE = pathlib.Path(__file__).resolve().parent
GRAPHS = HERE.parent / "graphs"
DEFAULT_GRAPHS = ("resnet50_tf1_b4", "unet3d_s16", "bert_tiny", "branches")
MIB = 1 << 20
AMPLE_MIB = 16384
STEPS = 2
# A run that fails waits 10 s for memory (BFCAllocator), in each of a few ops.
RUN_TIMEOUT_S = 240
# Of the server that plays the GPU: one runs kernels, one serves what the other process asks for. With
# one alone, no tensor leaves while a kernel waits for memory, as it does by a GPU's copy engines.
GPU_THREADS = 2
# What runs, as a multiple of the recorded batch: limits are whole MiB, so that a few say little.
BATCH_FACTORS = {"unet3d_s16": 8, "bert_tiny": 8}
# Left to the allocator, and to what this stand-in has and a GPU has not: two threads may run two
# kernels at once, each with its workspace, and in more orders than one stream. For a GPU the default
# is 0.1.
RESERVE = 0.15
# What gRPC on one machine moves per second (seen in traces: 0.1 to 0.2 GB).
LINK_BYTES_PER_S = 1.5e8
# The share of a limit that is taken and given back at the start, so that the allocator's region is
# one, as on a GPU, and not pieces that grow with what is asked for.
REGION_SHARE = 0.6
# The search ends when it knows the limit to this share.
PRECISION = 0.015


def cluster(ports):
    return {job: ["127.0.0.1:%d" % port] for job, port in zip(("gpu", "host"), ports)}


def free_ports():
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def serve(ports):
    """The process that plays the GPU; ends when it is killed."""
    tf = train.tensorflow()
    config = train.session_config(1, grappler=False)
    config.inter_op_parallelism_threads = GPU_THREADS
    tf.distribute.Server(cluster(ports), job_name="gpu", task_index=0, config=config).join()


def write_profile(graph, path):
    """Writes the RunMetadata of a step of the graph as it came, in this process, without a limit."""
    tf = train.tensorflow()
    tf_graph = tf.Graph()
    with tf_graph.as_default():
        tf.import_graph_def(train.parse(graph.bytes), name="")
    options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
    metadata = tf.compat.v1.RunMetadata()
    with tf.compat.v1.Session(graph=tf_graph,
                              config=train.session_config(1, grappler=False)) as session:
        train._init(tf, session, graph)  # pylint: disable=protected-access
        for step in range(STEPS):
            fed = feeds.feed_dict(graph.feed_spec, step)
            for train_op, loss in graph.step_calls:
                session.run([train_op, loss], fed, options=options, run_metadata=metadata)
    pathlib.Path(path).write_bytes(metadata.SerializeToString())


def run_client(ports, graph, path, limit_mib):
    """Trains, and prints the losses or the error as one line of JSON."""
    tf = train.tensorflow()
    graph_def = train.parse(pathlib.Path(path).read_bytes())
    for node in graph_def.node:
        on_host = node.name.startswith("lms/swap") or names.is_cpu(node.device)
        node.device = "/job:%s/task:0/device:CPU:0" % ("host" if on_host else "gpu")
    config = train.session_config(1, grappler=False)
    server = tf.distribute.Server(cluster(ports), job_name="host", task_index=0, config=config)
    tf_graph = tf.Graph()
    with tf_graph.as_default():
        with tf.device("/job:gpu/task:0/device:CPU:0"):
            region = tf.fill([int(limit_mib * MIB * REGION_SHARE) // 4], 0.0)[0]
        tf.import_graph_def(graph_def, name="")
    answer = {}
    trained = train.Trained()
    graph.steps = STEPS
    try:
        with tf.compat.v1.Session(server.target, graph=tf_graph, config=config) as session:
            session.run(region)
            train._init(tf, session, graph)  # pylint: disable=protected-access
            for step in range(STEPS):
                train._step(tf, session, graph, step, trained)  # pylint: disable=protected-access
        answer["losses"] = trained.losses
    except (train.TrainingFailed, tf.errors.OpError) as error:
        answer["error"] = str(error)[:300]
    print("ANSWER " + json.dumps(answer), flush=True)
    os._exit(0)  # A server cannot be ended otherwise.


def trains(graph, path, limit_mib):
    """The losses with that limit, or None."""
    ports = free_ports()
    environment = dict(os.environ, **train.ENVIRONMENT)
    limited = dict(environment, TF_CPU_ALLOCATOR_USE_BFC="true",
                   TF_CPU_BFC_MEM_LIMIT_IN_MB=str(limit_mib))
    command = [sys.executable, str(HERE / "memory_limit.py"), "--ports", ",".join(map(str, ports))]
    gpu = subprocess.Popen(command, env=limited, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    try:
        done = subprocess.run(command + ["--client", str(graph.folder), str(path), str(limit_mib)],
                              env=environment, capture_output=True, text=True, check=False,
                              timeout=RUN_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None
    finally:
        gpu.kill()
        gpu.wait()
    for line in done.stdout.splitlines():
        if line.startswith("ANSWER "):
            return json.loads(line[len("ANSWER "):]).get("losses")
    raise RuntimeError("no answer: " + done.stderr[-500:])


def least_limit(graph, path, expected, low, high):
    """The least limit in MiB with which it trains to the expected losses: above `low`, and at most
    `high` if it trains there."""
    while trains(graph, path, high) != expected:
        low, high = high, high + high // 4 + 1
        if high > AMPLE_MIB:
            raise RuntimeError("it does not train in %d MiB" % low)
    while high - low > max(high * PRECISION, 1):
        middle = (low + high) // 2
        losses = trains(graph, path, middle)
        if losses is not None and losses != expected:
            raise RuntimeError("other losses in %d MiB" % middle)
        low, high = (low, middle) if losses == expected else (middle, high)
    return high


def measure(graph, spillway, shares, reserve, folder):
    """Prints a line for each plan; returns what is wrong."""
    original = folder / "original.pb"
    original.write_bytes(graph.bytes)
    profile = folder / "profile.pb"
    subprocess.run([sys.executable, str(HERE / "memory_limit.py"), "--profile-of",
                    str(graph.folder), str(profile)],
                   env=dict(os.environ, **train.ENVIRONMENT), check=True, timeout=RUN_TIMEOUT_S,
                   stderr=subprocess.DEVNULL)
    expected = trains(graph, original, AMPLE_MIB)
    if expected is None:
        return ["%s does not train with %d MiB" % (graph.name, AMPLE_MIB)]
    shapes = {spec["name"].split(":")[0]: spec["shape"] for spec in graph.feed_spec}
    options = {"feed": shapes, "hardware": "p100_pcie", "profile": profile,
               "d2h_bytes_per_s": LINK_BYTES_PER_S, "h2d_bytes_per_s": LINK_BYTES_PER_S,
               "allocator_reserve": reserve}

    def plan(limit_mib):
        rewritten, report = spillway.rewrite(
            graph.bytes, "level", dict(options, gpu_memory_bytes=limit_mib * MIB))
        return rewritten, report, report["fits"][0]

    peak = int(plan(AMPLE_MIB)[2]["unswapped_peak_bytes"]) / MIB
    # What Spillway says that the graph needs as it came: a plan for that swaps nothing.
    enough = math.ceil(peak / (1 - reserve))
    while not plan(enough)[2].get("not_needed"):
        enough += max(enough // 50, 1)
    wrong, needs = [], []
    least = least_limit(graph, original, expected, int(peak * 0.8), enough)
    print("%-16s as it came      foretold %7.1f MiB, said to fit %5d MiB, takes %5d MiB (%.2f)" % (
        graph.name, peak, enough, least, least / peak), flush=True)
    if least > enough:
        wrong.append("%s does not train in %d MiB, where no swapping is said to be needed" % (
            graph.name, enough))
    limits = [int(enough * share) for share in shares]
    while limits:
        limit = limits.pop(0)
        try:
            rewritten, report, tuning = plan(limit)
        except rewrite.RewriteFailed as error:
            smallest = re.search(r"\((\d+) bytes\) of GPU memory there is one", str(error))
            print("%-16s no plan for %d MiB; said to be possible: %s bytes" % (
                graph.name, limit, smallest.group(1) if smallest else "none"), flush=True)
            limits = [math.ceil(int(smallest.group(1)) / MIB)] if smallest else []
            continue
        path = folder / "rewritten.pb"
        path.write_bytes(rewritten)
        planned = int(tuning["peak_bytes"]) / MIB
        need = least_limit(graph, path, expected, int(planned * 0.8), limit)
        needs.append(need)
        print("%-16s %4d swaps       foretold %7.1f MiB, said to fit %5d MiB, takes %5d MiB "
              "(%.2f), %.0f %% of the original's" % (
                  graph.name, len(report.get("swaps", [])), planned, limit, need,
                  need / planned, 100 * need / least), flush=True)
        if need > limit:
            wrong.append("%s, planned for %d MiB, does not train in it" % (graph.name, limit))
    if not needs or min(needs) >= least:
        wrong.append("%s: no plan trains with less memory than the original" % graph.name)
    return wrong


def load(folder):
    """The graph of a folder, with the batch that is measured."""
    graph = graphs.Graph(folder)
    factor = BATCH_FACTORS.get(graph.name, 1)
    for spec in graph.feed_spec:
        if spec["shape"] and spec["shape"][0] == graph.meta["run_batch"]:
            spec["shape"][0] *= factor
    return graph


def make_branches(folder):
    """A graph of our own with many branches, in `folder`."""
    subprocess.run([sys.executable, branches.__file__, str(folder)],
                   env=dict(os.environ, **train.ENVIRONMENT), check=True, timeout=RUN_TIMEOUT_S,
                   stderr=subprocess.DEVNULL)
    return load(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--spillway", help="the program under test")
    parser.add_argument("--graph", action="append", help="a graph of tests/graphs (repeatable)")
    parser.add_argument("--shares", default="0.95,0.9,0.8,0.7",
                        help="of what is said to fit as it came, that plans are made for")
    parser.add_argument("--reserve", type=float, default=RESERVE,
                        help="allocator_reserve of the plans (default %(default)s)")
    parser.add_argument("--ports", help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--profile-of", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.profile_of:
        write_profile(load(options.profile_of[0]), options.profile_of[1])
        return 0
    if options.ports:
        ports = [int(port) for port in options.ports.split(",")]
        if options.client:
            folder, path, limit_mib = options.client
            run_client(ports, load(folder), path, int(limit_mib))
        serve(ports)
    if not options.spillway:
        parser.error("--spillway is needed")
    found = graphs.find([GRAPHS])
    failed = 0
    wanted = options.graph or DEFAULT_GRAPHS
    for name in wanted:
        if name not in found and name != "branches":
            parser.error("there is no graph %r in %s" % (name, GRAPHS))
        with tempfile.TemporaryDirectory(prefix="spillway-memory-") as folder:
            folder = pathlib.Path(folder)
            try:
                graph = load(found[name].folder) if name in found else make_branches(folder / "branches")
                problems = measure(graph, rewrite.SpillwayCommand(options.spillway),
                                   [float(s) for s in options.shares.split(",")],
                                   options.reserve, folder)
            except (RuntimeError, subprocess.SubprocessError) as error:
                problems = ["%s: %s" % (name, error)]
        for problem in problems:
            print("FAIL  " + problem)
        failed += bool(problems)
    print("%d passed, %d failed" % (len(wanted) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
