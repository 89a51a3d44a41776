#!/usr/bin/env python3
"""A real memory limit, without a GPU: what a plan takes in TensorFlow, beside what was foretold.

    memory_limit.py --spillway build/bin/spillway [--graph NAME ...] [--shares 0.9,0.8,0.7]

Two processes: one TensorFlow server, whose allocator (BFC, as a GPU's) has a hard limit, plays the
GPU; a second one the host. Nodes on a GPU or without a device run on the first, swap nodes and nodes
on CPUs on the second, so a tensor that was sent away takes no memory there. For each graph the least
limit with which it trains is searched, as it came and planned for shares of its foretold peak. It
must train to the same losses, bit for bit, wherever it trains; and planned for the smallest share
with less memory than unplanned. What is foretold is printed beside it, and not judged: order and
temporary memory of CPU kernels are not a GPU's, and the simulator knows no fragmentation.

Exit code 0: nothing failed, 1: something did, 2: bad usage. About two minutes for each graph.
"""
import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

from truth import graphs, names, rewrite, train

HERE = pathlib.Path(__file__).resolve().parent
GRAPHS = HERE.parent / "graphs"
DEFAULT_GRAPHS = ("resnet50_tf1_b4", "unet3d_s16", "bert_tiny")
MIB = 1 << 20
STEPS = 2
# A run that fails waits 10 s for memory (BFCAllocator), in each of a few ops.
RUN_TIMEOUT_S = 240
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
    tf.distribute.Server(cluster(ports), job_name="gpu", task_index=0,
                         config=train.session_config(1, grappler=False)).join()


def run_client(ports, graph, path):
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
        tf.import_graph_def(graph_def, name="")
    answer = {}
    trained = train.Trained()
    graph.steps = STEPS
    try:
        with tf.compat.v1.Session(server.target, graph=tf_graph, config=config) as session:
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
        done = subprocess.run(command + ["--client", str(graph.folder), str(path)],
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


def least_limit(graph, path, expected, foretold_mib):
    """The least limit in MiB with which it trains to the expected losses."""
    low, high = int(foretold_mib * 0.8), int(foretold_mib * 1.6) + 8
    while trains(graph, path, high) != expected:
        low, high = high, high * 2
        if high > 64 * foretold_mib:
            raise RuntimeError("it does not train in %d MiB" % low)
    while high - low > max(high * PRECISION, 1):
        middle = (low + high) // 2
        losses = trains(graph, path, middle)
        if losses is not None and losses != expected:
            raise RuntimeError("other losses in %d MiB" % middle)
        low, high = (low, middle) if losses == expected else (middle, high)
    return high


def measure(graph, spillway, shares, folder):
    """Prints a line for each plan; returns what is wrong."""
    original = folder / "original.pb"
    original.write_bytes(graph.bytes)
    expected = trains(graph, original, 16384)
    if expected is None:
        return ["%s does not train with 16 GiB" % graph.name]
    options = {"batch_size": graph.meta["run_batch"], "hardware": "p100_pcie"}
    report = spillway.rewrite(graph.bytes, "level", dict(options, gpu_memory_bytes=1 << 50))[1]
    tuning = report["level"]["devices"][0]["tuning"]
    peak = int(tuning["unswapped_peak_bytes"]) / MIB
    least = least_limit(graph, original, expected, peak)
    print("%-20s as it came       foretold %7.1f MiB, takes %5d MiB (%.2f)" % (
        graph.name, peak, least, least / peak), flush=True)
    needs = []
    for share in shares:
        budget = int(peak * share * MIB)
        try:
            rewritten, report = spillway.rewrite(
                graph.bytes, "level", dict(options, gpu_memory_bytes=budget))
        except rewrite.RewriteFailed as error:
            print("%-20s %3.0f %% of that      %s" % (graph.name, 100 * share, error), flush=True)
            continue
        path = folder / "rewritten.pb"
        path.write_bytes(rewritten)
        planned = int(report["level"]["devices"][0]["tuning"]["peak_bytes"]) / MIB
        need = least_limit(graph, path, expected, planned)
        needs.append(need)
        print("%-20s %3.0f %%, %3d swaps    foretold %7.1f MiB, takes %5d MiB (%.2f), %.0f %% of the "
              "original's" % (graph.name, 100 * share, len(report.get("swaps", [])), planned, need,
                              need / planned, 100 * need / least), flush=True)
    if not needs or min(needs) >= least:
        return ["%s: no plan trains with less memory than the original" % graph.name]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--spillway", help="the program under test")
    parser.add_argument("--graph", action="append", help="a graph of tests/graphs (repeatable)")
    parser.add_argument("--shares", default="0.9,0.8,0.7",
                        help="of the foretold peak, that plans are made for")
    parser.add_argument("--ports", help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ports:
        ports = [int(port) for port in options.ports.split(",")]
        if options.client:
            run_client(ports, graphs.Graph(options.client[0]), options.client[1])
        serve(ports)
    if not options.spillway:
        parser.error("--spillway is needed")
    found = graphs.find([GRAPHS])
    failed = 0
    wanted = options.graph or DEFAULT_GRAPHS
    for name in wanted:
        if name not in found:
            parser.error("there is no graph %r in %s" % (name, GRAPHS))
        with tempfile.TemporaryDirectory(prefix="spillway-memory-") as folder:
            try:
                problems = measure(found[name], rewrite.SpillwayCommand(options.spillway),
                                   [float(s) for s in options.shares.split(",")],
                                   pathlib.Path(folder))
            except RuntimeError as error:
                problems = ["%s: %s" % (name, error)]
        for problem in problems:
            print("FAIL  " + problem)
        failed += bool(problems)
    print("%d passed, %d failed" % (len(wanted) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
