#!/usr/bin/env python3
"""Load for a real spillwayd (replay.py) and for its simulation (simulate.py): who asks when for what, as
a trace. The same seed gives the same trace.

    workload.py --jobs-per-hour N [--seconds S] [--seed N] [--mix FILE] >trace.jsonl

Jobs come at random (Poisson). The ranks of a job ask within a moment of each other. What a job trains is
a model of its kind, popular ones more often (Zipf), or a new one. Each process of TensorFlow serializes
the same graph to other bytes (a *spelling*); a job that reads its graph from a file sends the same ones.

A trace is a line of JSON for each request, in the order of time:

    at_ns     when it is asked for first, from the start
    job, rank whose it is
    kind      what it costs: a kind of the mix, whose costs measure.py measures
    graph     which graph of that kind: a number; the same one is the same model
    spelling  which bytes of that graph: 0, those of a file; otherwise a process's own
    host      the machine that asks: a number
"""

import argparse
import bisect
import collections
import itertools
import json
import pathlib
import random
import sys

SECOND = 10**9  # Times are integers, in nanoseconds.
HOUR_S = 3600
MIX = pathlib.Path(__file__).resolve().with_name("mix.json")

# Spellings are told apart by bits (spelling.py): so many.
SPELLINGS = 1 << 24

Ask = collections.namedtuple("Ask", "at_ns job rank kind graph spelling host")


class Choice:
    """One of `values`, as likely as `weights` say."""

    def __init__(self, values, weights):
        self.values = list(values)
        self.sums = list(itertools.accumulate(weights))
        if len(self.values) != len(self.sums) or not self.sums or self.sums[-1] <= 0:
            raise ValueError("a choice needs as many weights as values, not all of them 0")

    def draw(self, chance):
        at = bisect.bisect(self.sums, chance.random() * self.sums[-1])
        return self.values[min(at, len(self.values) - 1)]


def read_mix(path=MIX):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def jobs(mix, jobs_per_hour, seconds, seed):
    """The requests of each job, job by job, in the order of their starts."""
    chance = random.Random(seed)
    kinds = Choice(mix["kinds"], [kind["share"] for kind in mix["kinds"].values()])
    models = Choice(range(mix["models_per_kind"]),
                    [1 / (rank + 1) ** mix["zipf_exponent"] for rank in range(mix["models_per_kind"])])
    ranks = Choice([int(count) for count in mix["ranks"]], mix["ranks"].values())
    spread_ns = round(mix["rank_spread_s"] * SECOND)
    new = mix["models_per_kind"]
    at = 0.0
    for job in itertools.count():
        at += chance.expovariate(jobs_per_hour / HOUR_S)
        if at >= seconds:
            return
        kind = kinds.draw(chance)
        graph = models.draw(chance)
        if chance.random() < mix["share_new"]:
            graph, new = new, new + 1
        from_file = chance.random() < mix["share_from_file"]
        host = chance.randrange(mix["hosts"])
        count = ranks.draw(chance)
        asks = []
        for rank in range(count):
            late = chance.randrange(spread_ns + 1) if count > 1 else 0
            asks.append(Ask(round(at * SECOND) + late, job, rank, kind, graph,
                            0 if from_file else chance.randrange(1, SPELLINGS),
                            (host + rank // mix["ranks_per_host"]) % mix["hosts"]))
        yield sorted(asks)


def trace(mix, jobs_per_hour, seconds, seed):
    """All requests, in the order of time."""
    return sorted(itertools.chain.from_iterable(jobs(mix, jobs_per_hour, seconds, seed)))


def write(asks, file):
    for ask in asks:
        file.write(json.dumps(ask._asdict()) + "\n")


def read(file):
    return [Ask(**json.loads(line)) for line in file]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs-per-hour", type=float, required=True)
    parser.add_argument("--seconds", type=float, default=HOUR_S, help="default: an hour")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mix", default=MIX, help="default: mix.json")
    arguments = parser.parse_args()
    if not arguments.jobs_per_hour > 0:
        parser.error("--jobs-per-hour has to be above 0")
    write(trace(read_mix(arguments.mix), arguments.jobs_per_hour, arguments.seconds, arguments.seed),
          sys.stdout)


if __name__ == "__main__":
    main()
