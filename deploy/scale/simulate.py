#!/usr/bin/env python3
"""Simulates replicas of spillwayd under a trace of workload.py: events, nanoseconds as integers, the
same result for the same seed.

    workload.py --jobs-per-hour 1000 | simulate.py [--replicas N] [--workers N] [...] [TRACE]

What is modelled is what the server does, file by file:

    work_queue       fair by host, short before long, refusal where waits stay above the target
    worker_pool      so many workers, and the thread that takes short work while all have long work
    cost_estimate    what a request is expected to take, learned from what came before
    admission        graphs, and graphs with the work on them, within budgets; the cache gives way
    answer_cache     answers by their bytes, plans by their graph; the least recently asked for goes
    flights          who asks for what is being made waits for it, without a worker
    client retry     5 attempts, the server's pushback and a random pause, another replica each time

More threads than cores share the cores equally. All that a request costs the server (transport, too) is
charged to its worker, which is on the safe side; refusals cost nothing. All memory of the work on a
request is taken when it begins. What a kind costs comes from measure.py."""

import argparse
import bisect
import collections
import dataclasses
import heapq
import json
import math
import pathlib
import random
import sys
import zlib

import workload
from workload import SECOND

MS = SECOND // 1000
MIB = 1 << 20
COSTS = pathlib.Path(__file__).resolve().with_name("costs.json")

# Of work_queue.h and .cc.
LONG_NS = 300 * MS
PATIENCE_NS = 100 * MS
RELIEF_NS = 5 * SECOND
WAITS_OF_ITS_OWN = 2
ROOM_FOR_OTHERS = 4
LEAST_EXPECTED_NS = MS
# Of cost_estimate.cc: nanoseconds per byte, without and with a simulation.
FIRST_RATES = (20.0, 100.0)
NEWEST = 0.1
MOST_CHANGE = 8.0
LEAST_BYTES = 4 << 10
# Of call.cc.
LEAST_PUSHBACK_NS, MOST_PUSHBACK_NS = 200 * MS, 30 * SECOND
# Of flights.h: what is larger is not compared.
MOST_COMPARED_BYTES = 64 * MIB
# Of remote_connection.h: larger graphs are streamed, and reserved before they are sent.
UNARY_BYTES = 2 * MIB
# Of remote_connection.h and retry.cc.
ATTEMPTS = 5
INITIAL_BACKOFF_NS, MOST_BACKOFF_NS, BACKOFF_FACTOR = SECOND, 120 * SECOND, 1.6
# A server keeps this share of its budget for graphs (--max-inflight-bytes).
GRAPH_SHARE = 0.4


@dataclasses.dataclass(frozen=True)
class Cost:
    """What a kind of request costs a server."""

    bytes: int        # Of the graph.
    make_ns: int      # Processor time of a rewrite,
    reuse_ns: int     # of one whose plan is known,
    hit_ns: int       # and of an answer that is kept.
    work_bytes: int   # The most that the work takes beside the graph.
    kept_bytes: int   # What the cache keeps.
    out_bytes: int    # Of the answer.
    simulates: bool = True  # So its plan is found by its graph, whatever the bytes.


def read_costs(path=COSTS):
    with open(path, encoding="utf-8") as file:
        kinds = json.load(file)["kinds"]
    names = {field.name for field in dataclasses.fields(Cost)}
    return {kind: Cost(**{name: value for name, value in cost.items() if name in names})
            for kind, cost in kinds.items()}


@dataclasses.dataclass(frozen=True)
class Settings:
    replicas: int = 1
    workers: int = 2          # --workers
    cores: int = 2            # Of a replica.
    memory_bytes: int = 2 << 30  # --memory-budget
    graph_bytes: int = 0      # --max-inflight-bytes; 0: two fifths of that.
    cache_bytes: int = 64 * MIB  # --cache-bytes
    target_wait_ns: int = 100 * MS  # --target-wait; 0: none is refused for waiting.
    max_queued: int = 1024    # --max-queued-requests
    attempts: int = ATTEMPTS  # Of a client.
    by_model: bool = False    # A balancer that sends the same model to the same replica.
    network_ns_per_byte: float = 0.8  # Of a client's connection: 10 Gbit/s.
    single_flight: bool = True  # False: a server that shares nothing, for comparison.


class WorkQueue:
    """work_queue.cc, with nanoseconds of work as tags."""

    WAITS, FULL, OVERLOADED = range(3)

    def __init__(self, workers, max_waiting, target_wait_ns):
        self.workers = workers
        self.max_waiting = max_waiting
        self.target_ns = target_wait_ns or math.inf
        self.waiting = []  # (tag, number, expected, peer, since, item), sorted.
        self.arrivals = collections.deque()  # (since, tag, number): the oldest is first.
        self.flows = {}
        self.served = self.pushed = 0
        self.waiting_ns = self.running_ns = self.num_short = 0
        self.overloaded = False
        self.too_long_since = self.fine_since = math.inf

    def __len__(self):
        return len(self.waiting)

    def expected_wait_ns(self):
        return (self.waiting_ns + self.running_ns // 2) // self.workers

    def _too_long(self, wait_ns, expected):
        return wait_ns > self.target_ns and wait_ns > WAITS_OF_ITS_OWN * expected

    def _any_too_long(self, now):
        if not self.waiting:
            return False
        # Those that have gone are cleared away lazily; who waits longest tells whether to look.
        arrivals = self.arrivals
        while True:
            since, tag, number = arrivals[0]
            at = bisect.bisect_left(self.waiting, (tag, number))
            if at < len(self.waiting) and self.waiting[at][1] == number:
                break
            arrivals.popleft()
        if now - since <= self.target_ns:
            return False
        return any(self._too_long(now - entry[4], entry[2]) for entry in self.waiting)

    def _observe(self, too_long, now):
        if now - self.fine_since >= RELIEF_NS:
            self.overloaded = False
        if too_long:
            self.fine_since = math.inf
            self.too_long_since = min(self.too_long_since, now)
            self.overloaded = self.overloaded or now - self.too_long_since >= PATIENCE_NS
        else:
            self.too_long_since = math.inf
            self.fine_since = min(self.fine_since, now)

    def _has_room(self, peer, idle):
        most = self.max_waiting + idle
        if len(self.waiting) < most:
            return True
        return (len(self.waiting) < most + self.max_waiting // ROOM_FOR_OTHERS
                and all(entry[3] != peer for entry in self.waiting))

    def push(self, item, peer, expected, idle, now, force=False):
        if not force and not self._has_room(peer, idle):
            return self.FULL
        expected = max(expected, LEAST_EXPECTED_NS)
        flow = (peer, expected >= LONG_NS)
        tag = max(self.flows.get(flow, self.served), self.served) + expected
        number = self.pushed
        self.pushed += 1
        if len(self.waiting) >= idle and not force:
            before = self.running_ns // 2
            for entry in self.waiting:
                if entry[0] > tag:
                    break
                before += entry[2]
            too_long = self._too_long(before // self.workers, expected)
            self._observe(too_long or self._any_too_long(now), now)
            if self.overloaded and too_long:
                return self.OVERLOADED
        self.flows[flow] = tag
        self.waiting_ns += expected
        self.num_short += expected < LONG_NS
        bisect.insort(self.waiting, (tag, number, expected, peer, now, item))
        self.arrivals.append((now, tag, number))
        return self.WAITS

    def pop(self, short_only, now):
        """(expected, item) of the next; None: there is none."""
        at = 0
        if short_only:
            at = next((i for i, entry in enumerate(self.waiting) if entry[2] < LONG_NS), None)
            if at is None:
                return None
        elif not self.waiting:
            return None
        self._observe(self._any_too_long(now), now)
        tag, _, expected, _, _, item = self.waiting.pop(at)
        self.served = max(self.served, tag)
        self.waiting_ns -= expected
        self.num_short -= expected < LONG_NS
        self.running_ns += expected
        if not self.waiting:
            self.arrivals.clear()
            self.flows.clear()
            self.served = 0
            self.too_long_since = math.inf
            self.fine_since = min(self.fine_since, now)
        elif len(self.flows) > 2 * len(self.waiting) + 64:
            self.flows = {flow: last for flow, last in self.flows.items() if last > self.served}
        return expected, item

    def done(self, expected):
        self.running_ns -= expected


class Request:
    __slots__ = ("ask", "cost", "attempt", "queued_at", "resumed", "has_plan", "flight", "landed",
                 "compared")

    def __init__(self, ask, cost):
        self.ask, self.cost, self.attempt = ask, cost, 1
        self.reset()

    def reset(self):
        self.queued_at = 0
        self.resumed = self.has_plan = self.compared = False
        self.flight = self.landed = None


class Replica:
    def __init__(self, simulation, settings):
        self.simulation = simulation
        self.settings = settings
        self.graph_budget = settings.graph_bytes or int(GRAPH_SHARE * settings.memory_bytes)
        self.queue = WorkQueue(settings.workers, settings.max_queued, settings.target_wait_ns)
        self.idle = settings.workers
        self.long_running = 0  # On workers.
        self.short_is_idle = True
        self.rates = list(FIRST_RATES)
        self.graphs = self.memory = self.peak_memory = self.peak_graphs = 0
        # By (kind, graph, spelling): the bytes kept. The most recently asked for is last.
        self.cache = collections.OrderedDict()
        self.cached_bytes = self.peak_cached = 0
        self.plans = {}  # By (kind, graph): the key of the answer in the cache.
        self.flights = {}
        # Threads run at the same speed: `work` is what each that ran all the time has done.
        self.running = []  # (work when it ends, number, request, how, expected, is_short), a heap.
        self.work, self.work_at, self.next_end = 0, 0, None
        self.cpu_ns = self.busy_ns = 0

    # ---- Memory ----

    def _give_up(self, wanted):
        """Lets answers go that hold so many bytes, or all. False: there were none."""
        if not self.cache:
            return False
        freed = 0
        while self.cache and freed < wanted:
            freed += self._forget_last()
        return True

    def _forget_last(self):
        key, kept = self.cache.popitem(last=False)
        if self.plans.get(key[:2]) == key:
            del self.plans[key[:2]]
        self.cached_bytes -= kept
        self.memory -= kept
        return kept

    def _add_memory(self, wanted):
        while self.memory + wanted > self.settings.memory_bytes:
            if wanted > self.settings.memory_bytes or not self._give_up(wanted):
                return False
        self.memory += wanted
        self.peak_memory = max(self.peak_memory, self.memory)
        return True

    def reserve(self, request):
        """None, or why it is refused."""
        wanted = request.cost.bytes
        if wanted > self.graph_budget:
            return "limit"
        if self.graphs + wanted > self.graph_budget or not self._add_memory(wanted):
            return "inflight_bytes"
        self.graphs += wanted
        self.peak_graphs = max(self.peak_graphs, self.graphs)
        return None

    def release(self, request):
        self.graphs -= request.cost.bytes
        self.memory -= request.cost.bytes

    def _keep(self, request):
        cost, key = request.cost, _bytes_of(request)
        if cost.kept_bytes > self.settings.cache_bytes or key in self.cache:
            return
        if self.memory + cost.kept_bytes > self.settings.memory_bytes:
            return
        self.cache[key] = cost.kept_bytes
        self.memory += cost.kept_bytes
        self.peak_memory = max(self.peak_memory, self.memory)
        self.cached_bytes += cost.kept_bytes
        if cost.simulates:
            self.plans.setdefault(key[:2], key)
        while self.cached_bytes > self.settings.cache_bytes:
            self._forget_last()
        self.peak_cached = max(self.peak_cached, self.cached_bytes)

    # ---- Queue and workers ----

    def submit(self, request, now):
        """None, or why it is refused."""
        cost = request.cost
        expected = int(self.rates[cost.simulates] * max(cost.bytes, LEAST_BYTES))
        request.queued_at = now
        verdict = self.queue.push(request, request.ask.host, expected, self.idle, now)
        if verdict == WorkQueue.FULL:
            return "queue_full"
        if verdict == WorkQueue.OVERLOADED:
            return "queue_wait"
        self._dispatch(now)
        return None

    def _resume(self, request, now):
        """call.cc queues it once more; where there is no room the leader's thread goes on with it."""
        request.resumed = True
        self.queue.push(request, request.ask.host, 0, self.idle, now, force=True)

    def _dispatch(self, now):
        while True:
            if self.idle and len(self.queue):
                is_short = False
            elif (self.short_is_idle and self.queue.num_short
                  and self.long_running == self.settings.workers):
                is_short = True
            else:
                return
            expected, request = self.queue.pop(is_short, now)
            if is_short:
                self.short_is_idle = False
            else:
                self.idle -= 1
                self.long_running += expected >= LONG_NS
            if not request.resumed:
                self.simulation.waits.append(now - request.queued_at)
            how, took = self._begin(request)
            self._advance(now)
            self.cpu_ns += took
            heapq.heappush(self.running, (self.work + took, self.simulation.number(), request, how,
                                          expected, is_short))
            self._plan_end(now)

    def _begin(self, request):
        """rewrite_once.cc: how it is answered, and the processor time that takes."""
        cost, settings = request.cost, self.settings
        key = _bytes_of(request)
        if cost.bytes <= MOST_COMPARED_BYTES and settings.single_flight:
            if key in self.cache:
                self.cache.move_to_end(key)
                return "kept", cost.hit_ns
            if cost.simulates and not request.has_plan and key[:2] in self.plans:
                request.has_plan = True
                self.cache.move_to_end(self.plans[key[:2]])
            flight = key[:2] if cost.simulates and not request.has_plan else key
            if flight in self.flights:
                self.flights[flight].append(request)
                return "waits", cost.hit_ns
            self.flights[flight] = []
            request.flight = flight
        if not self._add_memory(cost.work_bytes):
            return "memory", cost.hit_ns
        return ("reused", cost.reuse_ns) if request.has_plan else ("made", cost.make_ns)

    def _advance(self, now):
        passed, threads = now - self.work_at, len(self.running)
        cores = self.settings.cores
        self.work += passed if threads <= cores else passed * cores // threads
        self.busy_ns += passed * min(threads, cores)
        self.work_at = now

    def _plan_end(self, now):
        if not self.running:
            self.next_end = None
            return
        left, threads, cores = self.running[0][0] - self.work, len(self.running), self.settings.cores
        at = now + (left if threads <= cores else -(-left * threads // cores))
        if at != self.next_end:
            self.next_end = at
            self.simulation.schedule(at, self.end)

    def end(self, now, _):
        if now != self.next_end:
            return  # Others came or went since this was planned.
        self._advance(now)
        self.next_end = None
        while self.running and self.running[0][0] <= self.work:
            _, _, request, how, expected, is_short = heapq.heappop(self.running)
            self.queue.done(expected)
            if is_short:
                self.short_is_idle = True
            else:
                self.idle += 1
                self.long_running -= expected >= LONG_NS
            self._ended(request, how, now)
        self._dispatch(now)
        if self.next_end is None:
            self._plan_end(now)

    def _ended(self, request, how, now):
        if how == "kept":
            self._answer(request, how, now)
        elif how == "waits":
            request.compared = True
            if request.landed is not None:
                self._land(request, now)
        else:
            if how != "memory":
                self._learn(request, how)
                self.memory -= request.cost.work_bytes
                if request.flight is not None:
                    self._keep(request)
            waiting = () if request.flight is None else self.flights.pop(request.flight)
            request.flight = None
            for other in waiting:
                other.landed = (how, request.ask.spelling)
                if other.compared:
                    self._land(other, now)
            if how == "memory":
                self._refuse(request, how, now)
            else:
                self._answer(request, how, now)

    def _land(self, request, now):
        how, spelling = request.landed
        request.landed = None
        request.compared = False
        if how == "memory":
            self._refuse(request, how, now)
        elif spelling == request.ask.spelling:
            self._answer(request, "shared", now)
        else:
            request.has_plan = True
            self._resume(request, now)

    def _learn(self, request, how):
        cost = request.cost
        plays = cost.simulates and how == "made"
        before = self.rates[plays]
        found = (cost.make_ns if how == "made" else cost.reuse_ns) / max(cost.bytes, LEAST_BYTES)
        found = min(max(found, before / MOST_CHANGE), before * MOST_CHANGE)
        self.rates[plays] = before + NEWEST * (found - before)

    def _refuse(self, request, reason, now):
        self.release(request)
        self.simulation.refuse(request, self, reason, now)

    def _answer(self, request, how, now):
        self.simulation.answer(request, self, how, now)


def _bytes_of(request):
    ask = request.ask
    return (ask.kind, ask.graph, ask.spelling)


class Simulation:
    def __init__(self, costs, settings, seed=1):
        self.costs = costs
        self.settings = settings
        self.chance = random.Random(seed)
        self.events = []
        self._number = 0
        self.replicas = [Replica(self, settings) for _ in range(settings.replicas)]
        self.waits, self.latencies = [], []
        self.answers, self.refusals = collections.Counter(), collections.Counter()
        self.lost = self.retries = 0
        self.bytes_in = self.bytes_out = 0
        self.ended_ns = 0

    def number(self):
        self._number += 1
        return self._number

    def schedule(self, at, what, request=None):
        heapq.heappush(self.events, (at, self.number(), what, request))

    def run(self, asks):
        """Simulates all requests of `asks`, which come in the order of time, to their ends."""
        asks = iter(asks)
        ask = next(asks, None)
        events = self.events
        while ask is not None or events:
            if ask is not None and (not events or ask.at_ns <= events[0][0]):
                self._arrive(ask.at_ns, Request(ask, self.costs[ask.kind]))
                ask = next(asks, None)
                continue
            now, _, what, request = heapq.heappop(events)
            what(now, request)
            self.ended_ns = max(self.ended_ns, now)
        return self

    def _transfer_ns(self, count):
        return int(count * self.settings.network_ns_per_byte)

    def _replica(self, request):
        replicas = self.replicas
        if len(replicas) == 1:
            return replicas[0]
        if self.settings.by_model and request.attempt == 1:
            model = "%s %d" % (request.ask.kind, request.ask.graph)
            return replicas[zlib.crc32(model.encode()) % len(replicas)]
        return replicas[self.chance.randrange(len(replicas))]

    def _arrive(self, now, request):
        self.bytes_in += request.cost.bytes
        sent = self._transfer_ns(request.cost.bytes)
        replica = self._replica(request)
        if request.cost.bytes > UNARY_BYTES:
            refused = replica.reserve(request)
            if refused:
                self.refuse(request, replica, refused, now)
                return
            submit = self._submit
        else:
            submit = self._reserve_and_submit
        if sent == 0:
            submit(now, (replica, request))
        else:
            self.schedule(now + sent, submit, (replica, request))

    def _reserve_and_submit(self, now, pair):
        replica, request = pair
        refused = replica.reserve(request)
        if refused:
            self.refuse(request, replica, refused, now)
        else:
            self._submit(now, pair)

    def _submit(self, now, pair):
        replica, request = pair
        refused = replica.submit(request, now)
        if refused:
            replica.release(request)
            self.refuse(request, replica, refused, now)

    def answer(self, request, replica, how, now):
        self.answers[how] += 1
        self.bytes_out += request.cost.out_bytes
        taken = now + self._transfer_ns(request.cost.out_bytes)
        self.latencies.append(taken - request.ask.at_ns)
        self.schedule(taken, lambda _, taker: replica.release(taker), request)

    def refuse(self, request, replica, reason, now):
        self.refusals[reason] += 1
        if reason == "limit" or request.attempt >= self.settings.attempts:
            self.lost += 1
            return
        pushback = min(max(replica.queue.expected_wait_ns(), LEAST_PUSHBACK_NS), MOST_PUSHBACK_NS)
        bound = min(MOST_BACKOFF_NS, INITIAL_BACKOFF_NS * BACKOFF_FACTOR ** (request.attempt - 1))
        request.attempt += 1
        request.reset()
        self.retries += 1
        self.schedule(now + pushback + int(bound * self.chance.random()), self._arrive, request)

    def result(self):
        """Plain figures. Shares are of answers; memory and graphs of the fullest replica."""
        answered = sum(self.answers.values())
        return {
            "answered": answered, "lost": self.lost, "retries": self.retries,
            **{how: self.answers[how] for how in ("made", "reused", "kept", "shared")},
            "refused": sum(self.refusals.values()), "refusals": dict(sorted(self.refusals.items())),
            "cpu_seconds": sum(replica.cpu_ns for replica in self.replicas) / SECOND,
            "utilisation": (sum(replica.busy_ns for replica in self.replicas) /
                            max(1, self.ended_ns * self.settings.cores * self.settings.replicas)),
            "peak_memory_bytes": max(replica.peak_memory for replica in self.replicas),
            "peak_cached_bytes": max(replica.peak_cached for replica in self.replicas),
            "wait_mean_s": mean(self.waits) / SECOND, "wait_p99_s": percentile(self.waits, 0.99) / SECOND,
            "latency_mean_s": mean(self.latencies) / SECOND,
            "latency_p50_s": percentile(self.latencies, 0.5) / SECOND,
            "latency_p99_s": percentile(self.latencies, 0.99) / SECOND,
            "bytes_in": self.bytes_in, "bytes_out": self.bytes_out,
            "seconds": self.ended_ns / SECOND,
        }


def mean(values):
    return sum(values) / len(values) if values else 0.0


def percentile(values, share):
    """The least value that `share` of all do not exceed."""
    if not values:
        return 0
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", help="default: standard input")
    parser.add_argument("--costs", default=COSTS, help="default: costs.json")
    parser.add_argument("--seed", type=int, default=1)
    for field in dataclasses.fields(Settings):
        flag = "--" + field.name.replace("_", "-")
        if field.type in (bool, "bool"):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=field.default)
        else:
            parser.add_argument(flag, type=type(field.default), default=field.default,
                                help="default: %(default)s")
    arguments = vars(parser.parse_args())
    trace, costs, seed = (arguments.pop(name) for name in ("trace", "costs", "seed"))
    if trace:
        with open(trace, encoding="utf-8") as file:
            asks = workload.read(file)
    else:
        asks = workload.read(sys.stdin)
    known = read_costs(costs)
    unknown = sorted({ask.kind for ask in asks} - set(known))
    if unknown:
        sys.exit("simulate.py: %s has no costs of %s: measure them with measure.py" % (
            costs, ", ".join(unknown)))
    result = Simulation(known, Settings(**arguments), seed).run(asks).result()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
