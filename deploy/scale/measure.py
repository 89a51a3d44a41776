#!/usr/bin/env python3
"""Measures the cost of requests to a spillwayd, which it starts on this machine; prints a Markdown table.

    measure.py [--kinds FILE] [--graphs FOLDER] [KIND...]

CPU time is that of the whole server for one request, including transport, which other programs on the
machine change less than wall time: the median of some requests. Each graph is sent three times: new;
with a plan known from the same graph in other bytes, as each process of TensorFlow writes its own; and in
the same bytes again. Memory is the peak of `spillway_memory_bytes` beyond the graph and the cache.
The programs are those in build/, or in the folder $SPILLWAY_BUILD."""

import argparse
import gzip
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SPILLWAY_BUILD", ROOT / "build")).resolve()
KINDS = pathlib.Path(__file__).resolve().with_name("kinds.json")

os.environ.setdefault("SPILLWAY_LIBRARY", str(BUILD / "lib/libspillway.so.0"))
os.environ["no_proxy"] = os.environ["no_grpc_proxy"] = "127.0.0.1"
sys.path.insert(0, str(ROOT / "client_lib/python"))

import spillway  # noqa: E402  (it is found only now)

SECOND_NS = 10**9
ROUNDS = 3
# Slow kinds are measured less often: this much CPU time of one is enough.
ENOUGH_NS = 8 * SECOND_NS
# After an answer, the server still has to put things away.
SETTLE_S = 0.02
# How often the memory of a request is read.
POLL_S = 0.002
STOP_S = 60  # A server ends within --drain-timeout.


class Server:
    """A spillwayd on free ports of the loopback interface; ended on leaving the `with` block."""

    def __init__(self, *flags):
        program = BUILD / "bin/spillwayd"
        if not program.exists():
            sys.exit("%s is missing: build it, or set SPILLWAY_BUILD to the build's folder." % program)
        self.process = subprocess.Popen(
            [str(program), "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
             "--log-level", "off", *flags], stdout=subprocess.PIPE, text=True)
        lines = [self.process.stdout.readline() for _ in range(2)]
        if not lines[1]:
            self.process.wait()
            sys.exit("spillwayd does not start: %s" % " ".join(flags))
        self.address = lines[0].split()[-1]
        self._metrics = lines[1].split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()

    def cpu_ns(self):
        """CPU time so far, of all threads: Linux keeps a clock for each process."""
        return time.clock_gettime_ns((~self.process.pid << 3) | 2)

    def metrics(self):
        """The sum of each metric over its labels."""
        with urllib.request.urlopen(self._metrics, timeout=STOP_S) as scrape:
            text = scrape.read().decode()
        sums = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                series, value = line.rsplit(" ", 1)
                name = series.split("{", 1)[0]
                sums[name] = sums.get(name, 0.0) + float(value)
        return sums


# ---- Graphs ----


def read_kinds(path):
    """The kinds of requests: their graph, options, and share of a load. ValueError: something is missing."""
    with open(path, encoding="utf-8") as file:
        kinds = json.load(file)
    for name, kind in kinds.items():
        if not {"graph", "options", "share"} <= set(kind):
            raise ValueError("%s: the kind %r needs graph, options and share" % (path, name))
    return kinds


def read_graph(name, folder):
    """A graph of tests/graphs by its name, or a file in `folder`; synthetic_NODES.pb is made there."""
    if name.endswith(".pb"):
        path = folder / name
        synthetic = re.fullmatch(r"synthetic_(\d+)\.pb", name)
        if not path.exists() and synthetic:
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run([str(BUILD / "tests/benchmarks/scale_benchmark"), "--write", str(path),
                            synthetic.group(1)], check=True)
        return path.read_bytes()
    path = ROOT / "tests/graphs" / name / "graph.pb"
    return path.read_bytes() if path.exists() else gzip.decompress(
        path.with_name("graph.pb.gz").read_bytes())


def options_of(kind, graph):
    """The keywords of spillway.rewrite for a kind: the memory of each GPU is `memory_share` of
    the step's peak."""
    options = dict(kind["options"])
    if "memory_share" in kind:
        sizes = {name: options[name] for name in ("batch_size",) if name in options}
        forecast = spillway.simulate(graph, no_budget=True, **sizes).forecast
        peak = max(int(device.peak_bytes) for device in forecast.devices if "CPU" not in device.device)
        options["gpu_memory_bytes"] = int(kind["memory_share"] * peak)
    return options


def numbered(graph, number):
    """Another graph at the same cost: its unused field `version` is `number`."""
    field = bytearray(b"\x18")
    while number >= 0x80:
        field.append(number & 0x7f | 0x80)
        number >>= 7
    return graph + bytes(field) + bytes([number])


def fields_of(message, begin, end):
    """(number, begin, begin of the content, end) of each field that has a length."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (message[at] & 0x7f) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 0x80:
                return value, at

    while begin < end:
        tag, at = varint(begin)
        if tag & 7 != 2:
            return
        length, at = varint(at)
        yield tag >> 3, begin, at, at + length
        begin = at + length


def reencoded(graph, number):
    """The same graph in other bytes for each number: maps have no order, so the first two attributes of
    one node change places; 0: `graph` itself."""
    if number == 0:
        return graph
    nodes = 0
    for field, _, begin, end in fields_of(graph, 0, len(graph)):
        # GraphDef.node, and its NodeDef.attr.
        attributes = [part for part in fields_of(graph, begin, end) if part[0] == 5]
        if field == 1 and len(attributes) >= 2 and attributes[0][3] == attributes[1][1]:
            nodes += 1
            if nodes == number:
                (_, first, _, middle), (_, _, _, last) = attributes[:2]
                return graph[:first] + graph[middle:last] + graph[first:middle] + graph[last:]
    raise ValueError("the graph has %d nodes with two attributes, too few for encoding %d" % (nodes, number))


# ---- Costs ----


def rewrite_cost_ns(server, graph, options):
    before = server.cpu_ns()
    spillway.rewrite(graph, server=server.address, retries=0, **options)
    time.sleep(SETTLE_S)
    return server.cpu_ns() - before


def peak_memory_bytes(server, graph, options):
    """The most memory that is held during a request, beside its graph and the cache."""
    peak, ended = 0, threading.Event()

    def watch():
        nonlocal peak
        while not ended.is_set():
            found = server.metrics()
            peak = max(peak, found["spillway_memory_bytes"] - found["spillway_cache_bytes"])
            time.sleep(POLL_S)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        spillway.rewrite(graph, server=server.address, retries=0, **options)
    finally:
        ended.set()
        watcher.join()
    return max(0, int(peak) - len(graph))


def row(name, kind, folder):
    """The line of a kind."""
    base = read_graph(kind["graph"], folder)
    options = options_of(kind, base)
    new, known, again, memory = [], [], [], 0
    with Server("--workers", "1", "--cache-bytes", "2GiB", "--memory-budget", "8GiB") as server:
        rewrite_cost_ns(server, base, options)  # The first one also makes threads and buffers.

        def count(metric):
            return server.metrics()["spillway_%s_total" % metric]

        for number in range(1, ROUNDS + 1):
            graph = numbered(base, number)
            new.append(rewrite_cost_ns(server, graph, options))
            before = count("reused_plans"), count("cached_rewrites")
            cost_ns = rewrite_cost_ns(server, numbered(reencoded(base, 1), number), options)
            if count("reused_plans") > before[0]:
                known.append(cost_ns)
            cost_ns = rewrite_cost_ns(server, graph, options)
            if count("cached_rewrites") > before[1]:
                again.append(cost_ns)
            memory = max(memory, peak_memory_bytes(server, numbered(base, 1000 + number), options))
            if sum(new) > ENOUGH_NS:
                break
        # All are about equal: the first, and four requests in each round, of which one adds none.
        kept = server.metrics()["spillway_cache_bytes"] / (1 + 3 * len(new))

    def seconds(costs, digits):
        return "%.*f" % (digits, statistics.median(costs) / SECOND_NS) if costs else "never"

    return "| `%s` | %s | %.1f | %s | %s | %s | %.1f | %.1f |" % (
        name, format(spillway.inspect(base).node_count, ","), len(base) / 1e6, seconds(new, 3),
        seconds(known, 3), seconds(again, 4), memory / 1e6, kept / 1e6)


def arguments_of(parser):
    """The options of both measure.py and replay.py."""
    parser.add_argument("--kinds", default=KINDS, help="default: kinds.json")
    parser.add_argument("--graphs", type=pathlib.Path, default=ROOT / "build/scale",
                        help="the folder of graphs that are not in tests/graphs; synthetic ones are made "
                             "there, by the benchmark scale_benchmark (default: build/scale)")


def print_table(kinds, arguments):
    unknown = sorted(set(arguments.kind) - set(kinds))
    if unknown:
        raise ValueError("no such kind: %s; the kinds are %s" % (", ".join(unknown), ", ".join(kinds)))
    print("| kind | nodes | graph, MB | new, s | plan known, s | same bytes again, s | memory beyond it, MB | "
          "cache, MB |\n|---|---|---|---|---|---|---|---|")
    for name in arguments.kind or kinds:
        print(row(name, kinds[name], arguments.graphs), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments_of(parser)
    parser.add_argument("kind", nargs="*", help="default: all")
    arguments = parser.parse_args()
    try:
        print_table(read_kinds(arguments.kinds), arguments)
    except (OSError, ValueError, spillway.SpillwayError) as error:
        sys.exit("measure.py: %s" % error)


if __name__ == "__main__":
    main()
