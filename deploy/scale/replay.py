#!/usr/bin/env python3
"""Replays a trace of workload.py to a real spillwayd that it starts, and tells what simulate.py tells.

    replay.py TRACE [--mix FILE] [--graphs FOLDER] [--speed X] [--retries N] [-- FLAGS OF SPILLWAYD]
    replay.py --compare [--nice N]

With --compare: four small loads, each also simulated, with costs measured just before; a table of both.
Server and clients share the machine, so the server has one worker. A machine that others use, too, takes
longer than its processor time: by how much is told (*stretch*: time on the clock by processor time, of the
worker), and the simulated server is as much slower."""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import sys
import threading
import time

import measure
import simulate
import spelling
import workload
from workload import SECOND

# As many callers at once; a trace that needs more would be late.
MOST_CALLERS = 200
CALL_TIMEOUT_S = 300


class Graphs:
    """The bytes that an ask sends."""

    def __init__(self, mix, folder, kinds):
        import server as real  # pylint: disable=import-outside-toplevel  (needs a build)
        self.real = real
        self.base = {kind: real.read_graph(mix["kinds"][kind]["graph"], folder) for kind in kinds}
        self.options = {kind: real.options_of(mix["kinds"][kind], self.base[kind]) for kind in kinds}

    def of(self, ask):
        return spelling.numbered(spelling.spelled(self.base[ask.kind], ask.spelling), ask.graph)


class Tally:
    """What became of the calls."""

    def __init__(self):
        self.lock = threading.Lock()
        self.latencies, self.late = [], []
        self.failed = collections.Counter()


def replay(asks, graphs, flags=(), retries=4, speed=1.0):
    """The figures of Simulation.result, as far as a server and its clients tell them. `late_s`: the most
    that a request was sent behind its time."""
    spillway = graphs.real.spillway
    tally = Tally()
    # Bytes are made before the clock runs.
    calls = [(ask, graphs.of(ask)) for ask in asks]

    def call(ask, graph, begin_ns, address):
        delay = begin_ns + ask.at_ns / speed - time.monotonic_ns()
        if delay > 0:
            time.sleep(delay / SECOND)
        sent = time.monotonic_ns()
        try:
            spillway.rewrite(graph, server=address, retries=retries, timeout=CALL_TIMEOUT_S,
                             **graphs.options[ask.kind])
            reason = None
        except spillway.SpillwayError as error:
            reason = error.reason or error.code
        took = time.monotonic_ns() - sent
        with tally.lock:
            tally.late.append(sent - begin_ns - ask.at_ns / speed)
            if reason is None:
                tally.latencies.append(took)
            else:
                tally.failed[reason] += 1

    with graphs.real.Server(*flags) as server:
        before = server.cpu_ns()
        begin = time.monotonic_ns() + SECOND // 10
        with concurrent.futures.ThreadPoolExecutor(MOST_CALLERS) as pool:
            for future in [pool.submit(call, ask, graph, begin, server.address)
                           for ask, graph in calls]:
                future.result()
        seconds = (time.monotonic_ns() - begin) / SECOND
        cpu_seconds = (server.cpu_ns() - before) / SECOND
        stretch = server.stretch()
        found = server.metrics()
    answered = len(tally.latencies)
    shared, kept, reused = (int(found["spillway_%s_total" % name]) for name in
                            ("shared_rewrites", "cached_rewrites", "reused_plans"))
    waits = max(1, found["spillway_queue_wait_seconds_count"])
    refusals = {reason: int(found['spillway_rejected_requests_total{reason="%s"}' % reason])
                for reason in ("inflight_bytes", "memory", "queue_full", "queue_wait")}
    return {
        "answered": answered, "lost": sum(tally.failed.values()), "failed": dict(tally.failed),
        "made": answered - shared - kept - reused, "reused": reused, "kept": kept, "shared": shared,
        "refused": sum(refusals.values()),
        "refusals": {reason: count for reason, count in refusals.items() if count},
        "cpu_seconds": cpu_seconds, "seconds": seconds,
        "stretch": stretch,
        "wait_mean_s": found["spillway_queue_wait_seconds_sum"] / waits,
        "latency_mean_s": simulate.mean(tally.latencies) / SECOND,
        "latency_p50_s": simulate.percentile(tally.latencies, 0.5) / SECOND,
        "latency_p99_s": simulate.percentile(tally.latencies, 0.99) / SECOND,
        "late_s": max(tally.late) / SECOND,
    }


# ---- Compared with the simulation ----

# Small enough for a server with one worker beside its clients. One host, as the server sees it.
COMPARED_MIX = {
    "kinds": {
        "mnist_deep": {"graph": "mnist_deep", "share": 0.2, "options": {"batch_size": 1024}},
        "bert_tiny": {"graph": "bert_tiny", "share": 0.2, "options": {"batch_size": 64},
                      "memory_share": 0.75},
        "resnet50": {"graph": "resnet50_tf1", "share": 0.3, "options": {}, "memory_share": 0.75},
        "resnet50_scope": {"graph": "resnet50_tf1", "share": 0.3, "options": {"strategy": "scope"}},
    },
    "models_per_kind": 8, "zipf_exponent": 1.0, "share_new": 0.1,
    "ranks": {"1": 0.6, "4": 0.3, "8": 0.1}, "rank_spread_s": 0.2, "share_from_file": 0.5,
    "hosts": 1, "ranks_per_host": 8,
}
SETTINGS = simulate.Settings(workers=1, cores=1, network_ns_per_byte=0.0, target_wait_ns=0)
# So many of the same size at once, of which the budget holds a few.
BURST, ROOM_FOR = 20, 5


@dataclasses.dataclass(frozen=True)
class Load:
    name: str
    what: str
    asks: list
    settings: simulate.Settings


def flags_of(settings):
    flags = ["--workers", str(settings.workers), "--cache-bytes", str(settings.cache_bytes),
             "--memory-budget", str(settings.memory_bytes), "--target-wait",
             "%dms" % (settings.target_wait_ns * 1000 // SECOND) if settings.target_wait_ns else "inf"]
    if settings.graph_bytes:
        flags += ["--max-inflight-bytes", str(settings.graph_bytes)]
    return flags


def loads(costs, seconds):
    """Small loads for a server with these costs."""
    # Half of the time of one worker, if nothing is shared; sharing leaves less.
    kinds = COMPARED_MIX["kinds"]
    ranks = sum(int(count) * share for count, share in COMPARED_MIX["ranks"].items())
    per_job_s = ranks * sum(kind["share"] * costs[name].make_ns for name, kind in kinds.items()) / SECOND
    calm = workload.trace(COMPARED_MIX, 3600 * 1.0 / per_job_s, seconds, 1)
    mean_s = sum(kind["share"] * costs[name].make_ns for name, kind in kinds.items()) / SECOND
    alone = {**COMPARED_MIX, "ranks": {"1": 1}, "share_new": 1}
    storm = workload.trace(alone, 3600 * 2 / mean_s, seconds, 2)
    size = costs["resnet50"].bytes
    burst = [workload.Ask(0, number, 0, "resnet50", 1000 + number, 0, 0) for number in range(BURST)]
    replace = dataclasses.replace
    return [
        Load("ranks", "ranks and repeats, a cache for all", calm,
             replace(SETTINGS, cache_bytes=1 << 30)),
        Load("small cache", "the same, a cache of 8 MiB", calm,
             replace(SETTINGS, cache_bytes=8 << 20)),
        Load("twice the capacity", "all different, no second attempt", storm,
             replace(SETTINGS, target_wait_ns=SECOND // 10, attempts=1, cache_bytes=0)),
        Load("burst", "%d graphs at once, room for %d, no second attempt" % (BURST, ROOM_FOR), burst,
             replace(SETTINGS, graph_bytes=ROOM_FOR * (size + 100), attempts=1)),
    ]


def compare(graphs_folder, seconds=20):
    """(load, real, simulated) of each load."""
    costs = {}
    for name, kind in COMPARED_MIX["kinds"].items():
        cost = measure.measure(name, kind, graphs_folder)
        fields = {field.name for field in dataclasses.fields(simulate.Cost)}
        costs[name] = simulate.Cost(**{key: value for key, value in cost.items() if key in fields})
    graphs = Graphs(COMPARED_MIX, graphs_folder, list(COMPARED_MIX["kinds"]))
    for load in loads(costs, seconds):
        real = replay(load.asks, graphs, flags_of(load.settings), retries=load.settings.attempts - 1)
        slower = {name: stretched(cost, real["stretch"]) for name, cost in costs.items()}
        simulated = simulate.Simulation(slower, load.settings).run(load.asks).result()
        simulated["cpu_seconds"] /= real["stretch"]
        yield load, real, simulated


def stretched(cost, factor):
    return dataclasses.replace(cost, **{part: int(getattr(cost, part) * factor)
                                        for part in measure.TIMES})


COUNTS = ("answered", "made", "reused", "kept", "shared", "refused")


def table(compared):
    lines = ["| load | | asked | " + " | ".join(COUNTS) +
             " | CPU, s | stretch | mean wait | answer, p50 | p99 |",
             "|---|---|" + "---|" * (len(COUNTS) + 6)]
    for load, real, simulated in compared:
        for name, found in (("server", real), ("simulated", simulated)):
            lines.append("| %s | %s | %d | %s | %.1f | %s | %.0f ms | %.0f ms | %.0f ms |" % (
                "%s: %s" % (load.name, load.what) if name == "server" else "", name, len(load.asks),
                " | ".join(str(found[count]) for count in COUNTS), found["cpu_seconds"],
                "%.1f" % real["stretch"] if name == "server" else "", 1e3 * found["wait_mean_s"],
                1e3 * found["latency_p50_s"], 1e3 * found["latency_p99_s"]))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?")
    parser.add_argument("flags", nargs="*", metavar="FLAG", help="of spillwayd, after --")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--mix", default=workload.MIX, help="default: mix.json")
    parser.add_argument("--graphs", type=pathlib.Path, default=pathlib.Path("build/scale"),
                        help="as measure.py (default: build/scale)")
    parser.add_argument("--seconds", type=float, default=20, help="of each load of --compare")
    parser.add_argument("--speed", type=float, default=1, help="how much faster than the trace says")
    parser.add_argument("--retries", type=int, default=4, help="of each call (default: 4)")
    parser.add_argument("--nice", type=int, default=0,
                        help="priority of server and clients; below 0 on a machine that others use")
    arguments = parser.parse_args()
    if arguments.compare == (arguments.trace is not None):
        parser.error("give a trace, or --compare")
    os.nice(arguments.nice)
    if arguments.compare:
        print(table(compare(arguments.graphs, arguments.seconds)))
        return
    mix = workload.read_mix(arguments.mix)
    with open(arguments.trace, encoding="utf-8") as file:
        asks = workload.read(file)
    graphs = Graphs(mix, arguments.graphs, sorted({ask.kind for ask in asks}))
    json.dump(replay(asks, graphs, arguments.flags, arguments.retries, arguments.speed), sys.stdout,
              indent=2)
    print()


if __name__ == "__main__":
    main()
