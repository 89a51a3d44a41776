#!/usr/bin/env python3
"""Measures what each kind of a mix costs a real spillwayd on this machine, and writes it for simulate.py.

    measure.py [--mix FILE] [--graphs FOLDER] [--kinds A,B,...] [-o costs.json]

Processor time is of the whole server, transport included, which a busy machine changes less than wall
time: the median of some requests, of each kind in turns with the others'. `work_bytes` is the most that
`spillway_memory_bytes` showed beyond the graph while a request ran. `--table FILE` prints the costs in
FILE as a table in Markdown, without measuring."""

import argparse
import json
import pathlib
import statistics
import sys
import threading
import time

import simulate
import spelling
import workload

ROUNDS = 3
# What takes long is measured less often: so much processor time of one kind is enough.
ENOUGH_NS = 8 * workload.SECOND
# After an answer, the server has still to put things away.
SETTLE_S = 0.02
# How often the memory of a request is looked at.
LOOK_EVERY_S = 0.002
# The parts of a cost that are times.
TIMES = ("make_ns", "reuse_ns", "hit_ns")


class Prober:
    """Requests of one kind to one server."""

    def __init__(self, server, graph, options, rewrite):
        self.server, self.graph, self.options, self.rewrite = server, graph, options, rewrite

    def ask(self, graph):
        """The processor time that it costs the server."""
        before = self.server.cpu_ns()
        self.rewrite(graph, server=self.server.address, retries=0, **self.options)
        time.sleep(SETTLE_S)
        return self.server.cpu_ns() - before

    def peak_work_bytes(self, graph):
        """The most memory that is held for a request beside its graph and the cache."""
        most, ended = 0, threading.Event()

        def watch():
            nonlocal most
            while not ended.is_set():
                found = self.server.metrics()
                most = max(most, found["spillway_memory_bytes"] - found["spillway_cache_bytes"])
                time.sleep(LOOK_EVERY_S)

        watcher = threading.Thread(target=watch)
        watcher.start()
        self.rewrite(graph, server=self.server.address, retries=0, **self.options)
        ended.set()
        watcher.join()
        return max(0, int(most) - len(graph))


def measure(name, kind, folder):
    import server as real  # pylint: disable=import-outside-toplevel  (needs a build)
    base = real.read_graph(kind["graph"], folder)
    options = real.options_of(kind, base)
    simulates = options.get("strategy") != "scope"
    is_compared = len(base) <= simulate.MOST_COMPARED_BYTES
    times = {part: [] for part in TIMES}
    with real.Server("--workers", "1", "--cache-bytes", "2GiB", "--memory-budget", "8GiB") as server:
        prober = Prober(server, base, options, real.spillway.rewrite)
        prober.ask(base)  # What is made once: threads, buffers.
        work = 0
        for number in range(1, ROUNDS + 1):
            graph = spelling.numbered(base, number)
            times["make_ns"].append(prober.ask(graph))
            if simulates:
                other = spelling.spelled(base, number)
                times["reuse_ns"].append(prober.ask(spelling.numbered(other, number)))
            if is_compared:
                times["hit_ns"].append(prober.ask(graph))
            work = max(work, prober.peak_work_bytes(spelling.numbered(base, 1000 + number)))
            if sum(times["make_ns"]) > ENOUGH_NS:
                break
        found = server.metrics()
        made = len(times["make_ns"])
        if (found["spillway_cached_rewrites_total"] != made * is_compared
                or found["spillway_reused_plans_total"] != made * simulates):
            raise RuntimeError("%s: the server did not answer from its cache as expected" % name)
        # Those that are answered with a plan keep no less than those that made it.
        kept = found["spillway_cache_bytes"] / (1 + made * (2 + simulates))  # 0 if not compared.
        answers = found["spillway_rewrite_outcomes_total"]
        out = found["spillway_output_bytes_total"] / answers
    nodes = real.spillway.inspect(base).node_count
    times["reuse_ns"] = times["reuse_ns"] or times["make_ns"]
    times["hit_ns"] = times["hit_ns"] or times["make_ns"]
    return {"graph": kind["graph"], "strategy": options.get("strategy", "budget"), "nodes": nodes,
            "bytes": len(base), "simulates": simulates,
            **{part: int(statistics.median(values)) for part, values in times.items()},
            "make_least_ns": min(times["make_ns"]), "rounds": made,
            "work_bytes": work, "kept_bytes": int(kept), "out_bytes": int(out)}


def table(kinds):
    lines = ["| kind | graph, strategy | nodes | graph, MB | rewrite, s | plan known, s | kept, s | "
             "memory beside the graph, MB | cache, MB |",
             "|---|---|---|---|---|---|---|---|---|"]
    for name, cost in kinds.items():
        reuse = "%.3f" % (cost["reuse_ns"] / 1e9) if cost["simulates"] else ""
        hit = "%.4f" % (cost["hit_ns"] / 1e9) if cost["kept_bytes"] else "never"
        lines.append("| `%s` | `%s`, %s | %s | %.1f | %.3f | %s | %s | %.1f | %.1f |" % (
            name, cost["graph"].removesuffix(".pb"), cost["strategy"], format(cost["nodes"], ","),
            cost["bytes"] / 1e6, cost["make_ns"] / 1e9, reuse, hit,
            cost["work_bytes"] / 1e6, cost["kept_bytes"] / 1e6))
    return "\n".join(lines)


def text_of(kinds):
    return json.dumps({"kinds": kinds}, indent=1) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mix", default=workload.MIX, help="default: mix.json")
    parser.add_argument("--graphs", type=pathlib.Path, default=pathlib.Path("build/scale"),
                        help="where graphs that are no test graphs lie; synthetic ones are made "
                             "there (default: build/scale)")
    parser.add_argument("--kinds", help="only these (default: all)")
    parser.add_argument("-o", "--output", help="default: standard output")
    parser.add_argument("--table", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.table:
        with open(arguments.table, encoding="utf-8") as file:
            print(table(json.load(file)["kinds"]))
        return
    kinds = workload.read_mix(arguments.mix)["kinds"]
    wanted = arguments.kinds.split(",") if arguments.kinds else list(kinds)
    found = {}
    for name in wanted:
        found[name] = measure(name, kinds[name], arguments.graphs)
        print("%s: %.3f s" % (name, found[name]["make_ns"] / 1e9), file=sys.stderr, flush=True)
        if arguments.output:  # Whole after each: what is measured already is not lost.
            pathlib.Path(arguments.output).write_text(text_of(found), encoding="utf-8")
    if not arguments.output:
        print(text_of(found), end="")


if __name__ == "__main__":
    main()
