#!/usr/bin/env python3
"""Tests deploy/scale: the simulator beside what queueing theory knows in closed form and beside small
cases worked by hand, the load generator beside its own description, and that the page says what the
committed costs give. Needs no build."""

import collections
import dataclasses
import io
import math
import os
import pathlib
import random
import subprocess
import sys

from checks import check, finish

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCALE = ROOT / "deploy/scale"
sys.path.insert(0, str(SCALE))

import measure  # noqa: E402
import report  # noqa: E402
import simulate  # noqa: E402
import spelling  # noqa: E402
import workload  # noqa: E402
from simulate import MS, Cost, Settings, Simulation, WorkQueue  # noqa: E402
from workload import SECOND, Ask  # noqa: E402

# One server of one core, whose clients are beside it and which refuses nothing.
PLAIN = Settings(workers=1, cores=1, network_ns_per_byte=0.0, target_wait_ns=0, max_queued=10**9,
                 cache_bytes=0)


def cost(make_ns, **others):
    return Cost(**{**{"bytes": 1000, "make_ns": make_ns, "reuse_ns": 10 * MS, "hit_ns": MS,
                      "work_bytes": 0, "kept_bytes": 10, "out_bytes": 0}, **others})


def ask(at_ms, graph, kind="k", spelled=0, host=0):
    return Ask(round(at_ms * MS), graph, 0, kind, graph, spelled, host)


def run(asks, costs, settings):
    return Simulation(costs, settings).run(asks)


# ---- Closed forms ----

# Of each run. Standard errors come from so many batches; chance takes a mean beyond 4 of them once in
# 10,000 runs, and a seed is the same run each time.
REQUESTS, BATCHES, ERRORS = 100_000, 40, 4


def poisson(services, load, workers, seed):
    """Requests at random, each of one of `services` (equally likely), so many that `workers` are busy for
    a share `load` of the time."""
    chance = random.Random(seed)
    gap = sum(services) / len(services) / (load * workers)
    at, asks = 0.0, []
    for number in range(REQUESTS):
        at += chance.expovariate(1 / gap)
        asks.append(Ask(round(at), number, 0, chance.randrange(len(services)), number, 0, 0))
    return asks


def near(name, values, expected):
    """The mean of `values` is `expected`, within what chance allows."""
    size = len(values) // BATCHES
    means = [simulate.mean(values[i * size:(i + 1) * size]) for i in range(BATCHES)]
    found = simulate.mean(values)
    error = math.sqrt(sum((m - found) ** 2 for m in means) / (BATCHES * (BATCHES - 1)))
    check("%s: %.2f ms expected, %.2f ms simulated" % (name, expected / MS, found / MS),
          abs(found - expected) <= ERRORS * error and error < expected / 15,
          "standard error %.3f ms" % (error / MS))


def exponential(mean_ns, pieces=400):
    """Service times that are exponential but for a little: the middles of equally likely parts."""
    return [round(-mean_ns * math.log(1 - (i + 0.5) / pieces)) for i in range(pieces)]


def erlang_c(workers, offered):
    """The share of requests that wait."""
    term, total = 1.0, 0.0
    for i in range(workers):
        total += term
        term *= offered / (i + 1)
    term *= workers / (workers - offered)
    return term / (total + term)


def one_server(name, services, load, seed):
    """M/G/1, by Pollaczek and Khinchine."""
    mean = simulate.mean(services)
    second = simulate.mean([s * s for s in services])
    rate = load / mean
    done = run(poisson(services, load, 1, seed), {i: cost(s) for i, s in enumerate(services)},
               dataclasses.replace(PLAIN, single_flight=False))
    near("%s at %.0f %%, mean wait" % (name, 100 * load), done.waits, rate * second / 2 / (1 - load))
    return done


def check_closed_forms():
    one_server("M/D/1", [20 * MS], 0.7, 1)
    one_server("M/G/1 of two sizes", [2 * MS] * 9 + [100 * MS], 0.6, 2)
    services = exponential(20 * MS)
    mean = simulate.mean(services)
    done = one_server("M/M/1", services, 0.5, 3)
    # P(wait > t) = load * exp(-(1 - load) t / mean).
    p99, expected = simulate.percentile(done.waits, 0.99), mean / 0.5 * math.log(100 * 0.5)
    check("M/M/1, 99th percentile of the wait: %.0f ms expected, %.0f ms simulated" % (
        expected / MS, p99 / MS), abs(p99 / expected - 1) < 0.06)
    busy = done.replicas[0].busy_ns / done.ended_ns
    check("M/M/1 is busy for half of the time", abs(busy - 0.5) < 0.02, busy)

    workers, load = 4, 0.8
    plain = dataclasses.replace(PLAIN, single_flight=False)
    done = run(poisson(services, load, workers, 4), {i: cost(s) for i, s in enumerate(services)},
               dataclasses.replace(plain, workers=workers, cores=workers))
    near("M/M/4 at 80 %, mean wait", done.waits,
         erlang_c(workers, workers * load) * mean / (workers * (1 - load)))

    # A worker for everybody on one core: processor sharing, where only the mean service counts.
    for name, parts in (("M/D/1", [20 * MS]), ("M/G/1 of two sizes", [2 * MS] * 9 + [100 * MS])):
        done = run(poisson(parts, 0.5, 1, 5), {i: cost(s) for i, s in enumerate(parts)},
                   dataclasses.replace(plain, workers=10_000))
        near("%s, the processor shared, at 50 %%: mean time" % name, done.latencies,
             simulate.mean(parts) / 0.5)


# ---- By hand ----

def latencies(done):
    return [latency / MS for latency in done.latencies]


def same(name, found, expected):
    check(name, found == expected, "%r instead of %r" % (found, expected))


def check_by_hand():
    costs = {"k": cost(100 * MS)}
    done = run([ask(0, i) for i in range(3)], costs, PLAIN)
    same("three at once wait for one worker", ([w // MS for w in done.waits], latencies(done)),
         ([0, 100, 200], [100, 200, 300]))
    two = dataclasses.replace(PLAIN, workers=2, cores=2)
    done = run([ask(0, i) for i in range(3)], costs, two)
    same("three at once, two workers", latencies(done), [100, 100, 200])

    # The second worker compares each of the three in a millisecond.
    done = run([ask(0, 1)] * 4, costs, two)
    same("four ranks with the same bytes: one rewrite", (latencies(done), dict(done.answers)),
         ([100] * 4, {"made": 1, "shared": 3}))
    same("... and its processor time", done.replicas[0].cpu_ns, 103 * MS)
    # Three of them go on with the plan at 100 ms, on two workers, 10 ms each.
    ranks = [ask(0, 1, spelled=rank) for rank in range(4)]
    done = run(ranks, costs, two)
    same("four ranks with bytes of their own: one plan", (latencies(done), dict(done.answers)),
         ([100, 110, 110, 120], {"made": 1, "reused": 3}))
    done = run(ranks, {"k": cost(100 * MS, simulates=False)}, two)
    same("... of a strategy without a plan: four rewrites", dict(done.answers), {"made": 4})
    done = run(ranks, costs, dataclasses.replace(two, single_flight=False))
    same("... and without sharing", dict(done.answers), {"made": 4})

    # Comes while the leader works, and has not compared when it ends.
    slow = {"k": cost(100 * MS, hit_ns=30 * MS)}
    done = run([ask(0, 1), ask(90, 1)], slow, two)
    same("a follower that compares past the landing", latencies(done), [100, 30])

    room = dataclasses.replace(PLAIN, cache_bytes=20)
    order = [ask(1000 * i, graph) for i, graph in enumerate([1, 2, 1, 3, 2])]
    done = run(order, costs, room)
    same("the least recently asked for leaves the cache",
         (latencies(done), dict(done.answers)), ([100, 100, 1, 100, 100], {"made": 4, "kept": 1}))
    done = run([ask(0, 1), ask(1000, 1, spelled=1), ask(2000, 1, spelled=1)], costs, room)
    same("a plan from the cache, then its answer", latencies(done), [100, 10, 1])
    tight = dataclasses.replace(room, memory_bytes=1035, graph_bytes=1000)
    done = run([ask(0, 1), ask(1000, 2)], {"k": cost(100 * MS, work_bytes=30)}, tight)
    same("the cache gives way to work", (dict(done.answers), done.replicas[0].peak_memory,
                                         done.refusals.total()), ({"made": 2}, 1030, 0))

    done = run([ask(0, i) for i in range(20)], costs,
               dataclasses.replace(PLAIN, graph_bytes=5500, attempts=1))
    same("a burst beyond the graph budget", (dict(done.answers), dict(done.refusals), done.lost),
         ({"made": 5}, {"inflight_bytes": 15}, 15))
    done = run([ask(0, 1)], costs, dataclasses.replace(PLAIN, graph_bytes=999))
    same("what never fits is not tried again", (done.retries, done.lost), (0, 1))
    heavy = {"k": cost(100 * MS, work_bytes=60_000)}
    done = run([ask(0, 1), ask(0, 2)], heavy, dataclasses.replace(two, memory_bytes=100_000))
    same("work beyond the budget is tried again", (dict(done.answers), dict(done.refusals)),
         ({"made": 2}, {"memory": 1}))
    pause = done.latencies[1] / MS - 100
    check("... after the server's 200 ms and at most the client's second",
          200 <= pause - 1 <= 1200, "%.1f ms" % pause)
    done = run([ask(0, i) for i in range(3)], costs, dataclasses.replace(PLAIN, max_queued=1, attempts=1))
    same("a full queue refuses", dict(done.refusals), {"queue_full": 1})

    # 100 ns a byte are expected of what simulates: the second is short, the first is not.
    both = {"long": cost(1000 * MS, bytes=10**7), "short": cost(100 * MS)}
    asks = [ask(0, 1, "long"), ask(0, 2, "short")]
    done = run(asks, both, PLAIN)
    same("short work shares the core with long work", latencies(done), [200, 1100])
    done = run(asks, both, dataclasses.replace(PLAIN, cores=2))
    same("... or has its own", latencies(done), [100, 1000])

    done = run([ask(0, 1)], {"k": cost(100 * MS, out_bytes=3000)},
               dataclasses.replace(PLAIN, network_ns_per_byte=1000.0))
    same("the network takes its time, both ways", latencies(done), [104])


def check_queue():
    """As tests/server/work_queue_test.cc has it."""
    queue = WorkQueue(1, 100, 0)
    for i in range(20):
        queue.push(i, "a", 10 * MS, 0, 0)
    queue.push(100, "b", 10 * MS, 0, 0)
    order = [queue.pop(False, 0)[1] for _ in range(21)]
    same("who sends much waits for itself", order[:3], [0, 100, 1])

    queue = WorkQueue(1, 100, 0)
    for i in range(3):
        queue.push(i, "a", 5 * SECOND, 0, 0)
    queue.push(100, "a", 5 * MS, 0, 0)
    same("short before long of the same peer", [queue.pop(True, 0)[1], queue.pop(True, 0)],
         [100, None])

    queue = WorkQueue(1, 8, 0)
    verdicts = collections.Counter(queue.push(i, "a", MS, 0, 0) for i in range(20))
    same("the queue is bounded", verdicts, {WorkQueue.WAITS: 8, WorkQueue.FULL: 12})
    same("who fills it keeps nobody out",
         [queue.push(0, peer, MS, 0, 0) for peer in ("b", "b", "c", "d")],
         [WorkQueue.WAITS, WorkQueue.FULL, WorkQueue.WAITS, WorkQueue.FULL])

    # Half of what runs is still to come: 200 ms of 400.
    queue = WorkQueue(1, 100, 100 * MS)
    queue.push(0, "a", 400 * MS, 1, 0)
    queue.pop(False, 0)
    same("what runs counts as half of what it takes",
         [queue.expected_wait_ns(), queue.push(1, "a", 10 * MS, 0, 0),
          queue.push(2, "a", 10 * MS, 0, 100 * MS)], [200 * MS, WorkQueue.WAITS, WorkQueue.OVERLOADED])

    # 100 ns a byte at first, a tenth of the way to 200; and to 800, where 10,000 were found.
    for took, rate in ((20 * MS, 110), (1000 * MS, 170)):
        done = run([ask(0, 1)], {"k": cost(took, bytes=100_000)}, PLAIN)
        found = done.replicas[0].rates[True]
        check("what %d ms teach" % (took // MS), abs(found - rate) < 1e-9, found)

    # Twice what one worker does, of 10 ms each, as is expected of their bytes: who is taken after t has
    # waited t / 2, above 100 ms from 200 ms on. When that has been so for 100 ms, 300 ms of work wait.
    settings = dataclasses.replace(PLAIN, target_wait_ns=100 * MS, attempts=1)
    plain = dataclasses.replace(settings, single_flight=False)
    ten = {"k": cost(10 * MS, bytes=100_000)}
    done = run([ask(5 * i, i) for i in range(2000)], ten, plain)
    share = done.refusals["queue_wait"] / 2000
    check("standing overload: half is refused, and nobody waits for long",
          0.45 < share < 0.5 and max(done.waits) == 300 * MS, (share, max(done.waits) / MS))
    done = run([ask(12 * i, i) for i in range(500)], ten, plain)
    same("what can be served is not refused", done.refusals.total(), 0)


def check_conservation():
    """Whatever happens, all that is taken is given back and every request has an end."""
    mix = workload.read_mix()
    asks = workload.trace(mix, 4000, 300, 7)
    costs = {kind: cost((20 + 300 * i) * MS, bytes=300_000 * (i + 1), work_bytes=10**6 * (i + 1),
                        kept_bytes=10**6, out_bytes=300_000, simulates=i % 2 == 0)
             for i, kind in enumerate(mix["kinds"])}
    for name, settings in (
            ("enough", Settings(replicas=2, workers=8, cores=8)),
            ("too few workers", Settings(replicas=2, workers=1, cores=1)),
            ("little memory", Settings(replicas=2, workers=8, cores=4, memory_bytes=16 << 20)),
            ("no cache", Settings(replicas=2, workers=8, cores=8, cache_bytes=0)),
            ("by model", Settings(replicas=2, workers=8, cores=8, by_model=True))):
        done = run(asks, costs, settings)
        left = [(r.graphs, r.memory - r.cached_bytes, len(r.queue), r.queue.running_ns, r.flights,
                 r.running, settings.workers - r.idle) for r in done.replicas]
        check("all is given back: %s" % name,
              all(part == (0, 0, 0, 0, {}, [], 0) for part in left), left)
        most = max(r.peak_memory for r in done.replicas)
        check("... every request has an end, within memory",
              done.answers.total() + done.lost == len(asks) and most <= settings.memory_bytes,
              done.result())
        check("... and it was what it is called", {
            "enough": not done.lost, "too few workers": done.refusals["queue_wait"] > 0,
            "little memory": done.refusals["inflight_bytes"] + done.refusals["memory"] > 0,
            "no cache": not done.answers["kept"], "by model": done.answers["kept"] > 0}[name],
            done.result())


# ---- The load ----

def check_load():
    mix = {**workload.read_mix(), "models_per_kind": 50}
    seconds, rate = 20_000, 3600
    all_jobs = list(workload.jobs(mix, rate, seconds, 1))
    windows = collections.Counter(asks[0].at_ns // (100 * SECOND) for asks in all_jobs)
    counts = [windows[i] for i in range(seconds // 100)]
    mean = simulate.mean(counts)
    spread = simulate.mean([(c - mean) ** 2 for c in counts]) / mean
    # Of 200 windows: both within 4 standard errors of a Poisson process.
    check("jobs come at random, at the rate asked for",
          abs(len(all_jobs) - seconds) < 4 * math.sqrt(seconds) and abs(spread - 1) < 0.4,
          (len(all_jobs), spread))
    shares = sum(kind["share"] for kind in mix["kinds"].values())
    found = collections.Counter(asks[0].kind for asks in all_jobs)
    check("kinds have their shares", all(
        abs(found[name] / len(all_jobs) - kind["share"] / shares) < 0.015
        for name, kind in mix["kinds"].items()), found)
    ranks = collections.Counter(len(asks) for asks in all_jobs)
    check("jobs have the ranks of the mix", set(ranks) == {int(count) for count in mix["ranks"]} and all(
        abs(ranks[int(count)] / len(all_jobs) - share) < 0.015
        for count, share in mix["ranks"].items()), ranks)
    models = collections.Counter(asks[0].graph for asks in all_jobs)
    old = sum(count for graph, count in models.items() if graph < 50)
    check("so many train what nobody trained before",
          abs(1 - old / len(all_jobs) - mix["share_new"]) < 0.015, old / len(all_jobs))
    harmonic = sum(1 / (i + 1) for i in range(50))
    check("models are popular by Zipf's law", all(
        abs(models[i] / old - 1 / (i + 1) / harmonic) < 0.015 for i in range(50)), models[0] / old)
    check("ranks of a job ask within a moment, for one graph", all(
        asks[-1].at_ns - asks[0].at_ns <= mix["rank_spread_s"] * SECOND
        and len({(a.kind, a.graph) for a in asks}) == 1
        and len({a.spelling for a in asks}) in (1, len(asks)) for asks in all_jobs))

    asks = workload.trace(mix, 2000, 600, 3)
    same("the same seed, the same trace", asks, workload.trace(mix, 2000, 600, 3))
    check("another seed, another one", asks != workload.trace(mix, 2000, 600, 4))
    same("a trace is in order", asks, sorted(asks))
    text = io.StringIO()
    workload.write(asks, text)
    text.seek(0)
    same("a trace is read as it was written", workload.read(text), asks)


def nodes_of(data):
    """Each node as its fields, in any order."""
    at, nodes = 0, []
    while at < len(data) and data[at] == spelling.NODE:
        length, at = spelling.read_varint(data, at + 1)
        end, fields = at + length, []
        while at < end:
            start = at
            _, at = spelling.read_varint(data, at)
            size, at = spelling.read_varint(data, at)
            at += size
            fields.append(data[start:at])
        nodes.append(sorted(fields))
    return nodes, data[at:]


def check_spelling():
    data = (ROOT / "tests/graphs/mnist_deep/graph.pb").read_bytes()
    spelled = [spelling.spelled(data, number) for number in (0, 1, 2, 3, workload.SPELLINGS - 1)]
    same("spelling 0 is the file's", spelled[0], data)
    check("others have other bytes, and are the same graph",
          len(set(spelled)) == len(spelled) and all(nodes_of(other) == nodes_of(data)
                                                    for other in spelled))
    # GraphDef.version is field 3, a varint.
    same("a numbered graph has a version", spelling.numbered(data, 300), data + b"\x18\xac\x02")


# ---- The page ----

def check_page():
    mix = workload.read_mix()
    costs = simulate.read_costs()
    check("each kind that is asked for has its costs",
          {name for name, kind in mix["kinds"].items() if kind["share"]} <= set(costs))
    page = (SCALE / "README.md").read_text(encoding="utf-8")
    check("the page has the table of the costs", measure.table(report.read_kinds()) in page,
          "run deploy/scale/report.py --readme deploy/scale/README.md")
    # The small ones: the large one takes minutes.
    rows = [report.row(report.simulated(case)) for case in report.CASES if case.jobs_per_hour <= 1000]
    check("the page has what the simulation gives", all(row in page for row in rows), rows)


def check_program():
    trace = subprocess.run(
        [sys.executable, str(SCALE / "workload.py"), "--jobs-per-hour", "3000", "--seconds", "120"],
        check=True, stdout=subprocess.PIPE).stdout
    out = {subprocess.run(
        [sys.executable, str(SCALE / "simulate.py"), "--replicas", "3", "--by-model"], input=trace,
        check=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")}
    check("the same trace, the same result, in every process", len(out) == 1 and b'"answered"' in
          next(iter(out)), out)


def main():
    check_closed_forms()
    check_by_hand()
    check_queue()
    check_conservation()
    check_load()
    check_spelling()
    check_page()
    check_program()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
