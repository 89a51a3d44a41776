#!/usr/bin/env python3
"""Sends a load to a spillwayd and prints the results as JSON.

    replay.py LOAD [--speed X] [-- FLAGS OF SPILLWAYD]      a file of requests; - is standard input
    replay.py --rate JOBS [--ranks N] [-- FLAGS OF SPILLWAYD]    JOBS in a second, at random

It starts the server on the loopback interface, from the same build as measure.py, unless --server names
one. A line of LOAD is a request, in the order of time:

    {"at_s": 0.5, "kind": "bert_tiny", "graph": 7, "encoding": 0}

`kind` is one of kinds.json; requests with the same number `graph` send the same graph, in the same bytes if
`encoding` is the same. With --rate, jobs come at random times (Poisson), each of a kind by its share and
with a new graph; its --ranks processes ask at once, each with its own bytes.

It ends after --seconds or --requests, whichever comes first. Progress is on standard error."""

import argparse
import collections
import concurrent.futures
import contextlib
import itertools
import json
import math
import random
import sys
import threading
import time

import measure
from measure import SECOND_NS, spillway

# As many calls at once; a load that needs more is sent late.
MAX_CALLS = 200
PROGRESS_S = 5
SEED = 1

Request = collections.namedtuple("Request", "at_s kind graph encoding")


def read_load(lines, kinds):
    """The requests of a file, as they are read. ValueError: a line is not one."""
    last_s = 0
    for number, line in enumerate(lines, 1):
        try:
            request = Request(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise ValueError("line %d is not a request: %s" % (number, error)) from None
        if not (isinstance(request.at_s, (int, float)) and last_s <= request.at_s < math.inf):
            raise ValueError("line %d: at_s has to be a number, not below the line before" % number)
        if request.kind not in kinds:
            raise ValueError("line %d: no such kind: %r" % (number, request.kind))
        if not all(isinstance(value, int) and value >= 0 for value in (request.graph, request.encoding)):
            raise ValueError("line %d: graph and encoding have to be whole numbers of 0 or more" % number)
        last_s = request.at_s
        yield request


def random_load(kinds, jobs_per_second, ranks):
    chance, at_s = random.Random(SEED), 0.0
    names, shares = list(kinds), [kind["share"] for kind in kinds.values()]
    for job in itertools.count():
        at_s += chance.expovariate(jobs_per_second)
        kind, = chance.choices(names, shares)
        for rank in range(ranks):
            yield Request(at_s, kind, job, rank)


class Tally:
    """The results of the calls so far."""

    def __init__(self):
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.sent, self.latencies_s, self.late_s, self.failed = 0, [], 0.0, collections.Counter()

    def show(self):
        while not self.ended.wait(PROGRESS_S):
            print("%d sent, %d answered, %d failed" % (
                self.sent, len(self.latencies_s), sum(self.failed.values())), file=sys.stderr, flush=True)


def replay(requests, kinds, arguments, address):
    """Sends them to the server at `address`; the figures that clients see."""
    names = sorted({request.kind for request in requests})
    bases = {name: measure.read_graph(kinds[name]["graph"], arguments.graphs) for name in names}
    options = {name: measure.options_of(kinds[name], bases[name]) for name in names}
    tally = Tally()
    begin = time.monotonic()
    end = begin + arguments.seconds

    def call(request, due):
        graph = measure.numbered(measure.reencoded(bases[request.kind], request.encoding), request.graph)
        sent, reason = time.monotonic(), None
        try:
            spillway.rewrite(graph, server=address, retries=arguments.retries,
                             timeout=max(0.001, end - sent), **options[request.kind])
        except spillway.SpillwayError as error:
            reason = error.reason or error.code
        with tally.lock:
            tally.late_s = max(tally.late_s, sent - due)
            if reason is None:
                tally.latencies_s.append(time.monotonic() - sent)
            else:
                tally.failed[reason] += 1

    threading.Thread(target=tally.show, daemon=True).start()
    with concurrent.futures.ThreadPoolExecutor(MAX_CALLS) as pool:
        calls = []
        for request in requests:
            due = begin + request.at_s / arguments.speed
            time.sleep(max(0, min(due, end) - time.monotonic()))
            if time.monotonic() >= end:
                break
            tally.sent += 1
            calls.append(pool.submit(call, request, due))
        for ended in calls:
            ended.result()
    tally.ended.set()
    latencies_s = sorted(tally.latencies_s)

    def percentile(share):
        return latencies_s[math.ceil(share * len(latencies_s)) - 1] if latencies_s else None

    return {"sent": tally.sent, "not_sent": len(requests) - tally.sent, "answered": len(latencies_s),
            "failed": dict(tally.failed), "seconds": time.monotonic() - begin,
            "sent_late_s": tally.late_s, "answer_p50_s": percentile(0.5), "answer_p99_s": percentile(0.99)}


def replay_here(requests, kinds, arguments, flags):
    """The same on a server of its own, with its figures."""
    with measure.Server(*flags) as server:
        before_ns = server.cpu_ns()
        result = replay(requests, kinds, arguments, server.address)
        cpu_s = (server.cpu_ns() - before_ns) / SECOND_NS
        metrics = server.metrics()
    known, cached, shared = (int(metrics["spillway_%s_total" % name]) for name in
                             ("reused_plans", "cached_rewrites", "shared_rewrites"))
    waits = metrics["spillway_queue_wait_seconds_count"]
    return {**result, "new": result["answered"] - known - cached - shared, "plan_known": known,
            "same_bytes": cached + shared, "cpu_s": cpu_s,
            "mean_wait_s": metrics["spillway_queue_wait_seconds_sum"] / waits if waits else None}


def positive(text):
    value = float(text)
    if not 0 < value < math.inf:
        raise ValueError
    return value


def positive_count(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("load", nargs="?", help="a file, or - for standard input")
    parser.add_argument("--rate", type=positive, metavar="JOBS", help="jobs per second, at random")
    parser.add_argument("--ranks", type=positive_count, default=1, help="the processes of each job of --rate (default: 1)")
    parser.add_argument("--speed", type=positive, default=1, help="the factor by which at_s is sped up")
    parser.add_argument("--seconds", type=positive, default=600, help="the maximum duration (default: 600)")
    parser.add_argument("--requests", type=positive_count, default=10000, help="the maximum number of requests (default: 10000)")
    parser.add_argument("--retries", type=int, default=4, help="the maximum for each call (default: 4)")
    parser.add_argument("--server", metavar="HOST:PORT", help="a running server")
    measure.arguments_of(parser)
    own, flags = sys.argv[1:], []
    if "--" in own:
        own, flags = own[:own.index("--")], own[own.index("--") + 1:]
    arguments = parser.parse_args(own)
    if (arguments.load is None) == (arguments.rate is None):
        parser.error("give either LOAD or --rate")
    if arguments.server and flags:
        parser.error("--server names a server that runs already: flags would have no effect")
    try:
        kinds = measure.read_kinds(arguments.kinds)
        with contextlib.ExitStack() as files:
            if arguments.load is None:
                load = random_load(kinds, arguments.rate, arguments.ranks)
            else:
                load = read_load(sys.stdin if arguments.load == "-" else files.enter_context(
                    open(arguments.load, encoding="utf-8")), kinds)
            requests = list(itertools.islice(load, arguments.requests))
        result = (replay(requests, kinds, arguments, arguments.server) if arguments.server
                  else replay_here(requests, kinds, arguments, flags))
    except (OSError, ValueError, spillway.SpillwayError) as error:
        sys.exit("replay.py: %s" % error)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
