#!/usr/bin/env python3
"""The figures of README.md: simulates each case below for an hour and prints a row of it.

    report.py [--readme FILE]
    report.py --plot FILE

With --readme the tables between the marks in FILE are replaced; with --plot a picture is drawn instead.
It takes minutes."""

import argparse
import concurrent.futures
import dataclasses
import html
import json
import pathlib

import measure
import simulate
import workload
from workload import HOUR_S

MIB = 1 << 20
SEED = 1
# A replica: its cores are its workers; memory as deploy/kubernetes has it, less what is not for
# requests (memory_budget.h): 6 GiB less 256 MiB and a tenth.
CORES = 4
BUDGET = int((6 << 30) * 0.9) - 256 * MIB


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    jobs_per_hour: float
    settings: simulate.Settings
    stretch: float = 1.0  # Of all times.
    mix: tuple = ()       # What is unlike mix.json.


def replicas(count, **others):
    return simulate.Settings(**{**{"replicas": count, "workers": CORES, "cores": CORES,
                                   "memory_bytes": BUDGET}, **others})


GIB = 1 << 30
# What an operator can do about it: a cache for what is asked for in an hour, and a balancer that sends a
# model to one replica.
SHARING = {"cache_bytes": GIB, "by_model": True}

CASES = [
    Case("10", 10, replicas(2)),
    Case("1,000", 1000, replicas(2)),
    Case("1,000, cache of 1 GiB, by model", 1000, replicas(2, **SHARING)),
    Case("100,000", 100_000, replicas(50)),
    Case("100,000, cache of 1 GiB, by model", 100_000, replicas(20, **SHARING)),
]
SENSITIVITY = [
    Case("1,000, everything takes twice as long", 1000, replicas(2), stretch=2),
    Case("1,000, no cache", 1000, replicas(2, cache_bytes=0)),
    Case("1,000, nothing shared at all", 1000, replicas(2, single_flight=False)),
    Case("1,000, all models new", 1000, replicas(2), mix=(("share_new", 1),)),
    Case("1,000, each rank with bytes of its own", 1000, replicas(2), mix=(("share_from_file", 0),)),
    Case("1,000, each job asks once", 1000, replicas(2), mix=(("ranks", {"1": 1}),)),
    Case("1,000, one replica of the two is down", 1000, replicas(1)),
    Case("100,000, cache of 1 GiB, by model, everything takes twice as long", 100_000,
         replicas(40, **SHARING), stretch=2),
]
# One replica, ever more jobs: what it refuses first; and with cores enough, what it refuses then.
BREAKING = [
    Case("1,000", 1000, replicas(1)),
    Case("2,000", 2000, replicas(1)),
    Case("4,000", 4000, replicas(1)),
    Case("8,000", 8000, replicas(1)),
    Case("32,000, 128 cores", 32_000, replicas(1, workers=128, cores=128)),
    Case("64,000, 128 cores", 64_000, replicas(1, workers=128, cores=128)),
]


def read_kinds():
    with open(simulate.COSTS, encoding="utf-8") as file:
        return json.load(file)["kinds"]


def simulated(case):
    costs = {kind: dataclasses.replace(cost, **{part: int(getattr(cost, part) * case.stretch)
                                                for part in measure.TIMES})
             for kind, cost in simulate.read_costs().items()}
    asks = workload.trace({**workload.read_mix(), **dict(case.mix)}, case.jobs_per_hour, HOUR_S, SEED)
    return case, simulate.Simulation(costs, case.settings, SEED).run(asks).result()


# ---- Tables ----

HEADER = ("| jobs an hour | replicas, cores | made | plan known | kept or shared | cores busy | memory | "
          "in, out, Mbit/s | wait: mean, p99 | answer: p50, p99 | refused | lost |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|---|")


def seconds(value):
    return "%.0f ms" % (1e3 * value) if value < 1 else "%.1f s" % value


def row(found):
    case, result = found
    answered = max(1, result["answered"])
    asked = result["answered"] + result["lost"] + result["retries"]

    def share(*names):
        return "%.0f %%" % (100 * sum(result[name] for name in names) / answered)

    refused = "%.1f %%" % (100 * result["refused"] / asked)
    if result["refusals"]:
        refused += ": " + ", ".join("`%s` %d" % pair for pair in result["refusals"].items())
    cells = [
        case.name, "%d, %d" % (case.settings.replicas, case.settings.replicas * case.settings.cores),
        share("made"), share("reused"), share("kept", "shared"),
        "%.1f" % (result["cpu_seconds"] / result["seconds"]),
        "%.0f MB" % (result["peak_memory_bytes"] / 1e6),
        "%.0f, %.0f" % (result["bytes_in"] * 8e-6 / result["seconds"],
                        result["bytes_out"] * 8e-6 / result["seconds"]),
        "%s, %s" % (seconds(result["wait_mean_s"]), seconds(result["wait_p99_s"])),
        "%s, %s" % (seconds(result["latency_p50_s"]), seconds(result["latency_p99_s"])),
        refused, "%.2f %%" % (100 * result["lost"] / (answered + result["lost"]))]
    return "| " + " | ".join(cells) + " |"


def simulate_all(cases):
    """(case, result) of each; several at once."""
    with concurrent.futures.ProcessPoolExecutor() as pool:
        return list(pool.map(simulated, cases))


def table(found):
    return "\n".join([HEADER] + [row(pair) for pair in found])


def replace_table(text, name, lines):
    begin, end = "<!-- %s: begin -->" % name, "<!-- %s: end -->" % name
    if begin not in text or end not in text:
        raise SystemExit("report.py: the page has no marks of the table '%s'" % name)
    before, rest = text.split(begin, 1)
    return before + begin + "\n\n" + lines + "\n\n" + end + rest.split(end, 1)[1]


# ---- The picture ----

SIZES_MIB = (0, 16, 64, 256, 1024, 4096)
PLOT_JOBS, PLOT_REPLICAS = 10_000, 4
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 300, 60, 46, 150, 50
COLORS = {"any replica": "#c2571a", "by model": "#1f6fb2"}


def points():
    """By balancer: the share of requests that were made anew, by cache size."""
    cases = [Case(name, PLOT_JOBS, replicas(PLOT_REPLICAS, workers=16, cores=16, cache_bytes=size * MIB,
                                            by_model=name == "by model"))
             for name in COLORS for size in SIZES_MIB]
    found = {}
    for case, result in simulate_all(cases):
        found.setdefault(case.name, []).append(result["made"] / result["answered"])
    return found


def plot():
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(index, share):
        return LEFT + width * index / (len(SIZES_MIB) - 1), TOP + height * (1 - share)

    def text(x, y, words, anchor="middle", more=""):
        return '<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>' % (x, y, anchor, more,
                                                                      html.escape(words))

    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" '
             'font-size="12" fill="#222">' % (WIDTH, HEIGHT),
             '<rect width="100%" height="100%" fill="#fff"/>',
             text(LEFT, 20, "Requests that are made anew, by size of a replica's cache", "start",
                  ' font-size="14"'),
             text(LEFT, 36, "%s jobs an hour, %d replicas, simulated" % (
                 format(PLOT_JOBS, ","), PLOT_REPLICAS), "start", ' fill="#666"')]
    for percent in range(0, 101, 20):
        _, y = place(0, percent / 100)
        parts += ['<path d="M%d %.1fh%d" stroke="#ddd"/>' % (LEFT, y, width),
                  text(LEFT - 8, y + 4, "%d %%" % percent, "end")]
    for index, size in enumerate(SIZES_MIB):
        label = "none" if size == 0 else "%d MiB" % size if size < 1024 else "%d GiB" % (size // 1024)
        parts.append(text(place(index, 0)[0], TOP + height + 20, label))
    for name, shares in points().items():
        spots = [place(index, share) for index, share in enumerate(shares)]
        line = " ".join("%.1f,%.1f" % spot for spot in spots)
        parts.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (
            line, COLORS[name]))
        parts += ['<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>' % (*spot, COLORS[name])
                  for spot in spots]
        parts.append(text(spots[-1][0] + 10, spots[-1][1] + 4, "%s: %.0f %%" % (name, 100 * shares[-1]),
                          "start", ' fill="%s"' % COLORS[name]))
    return "\n".join(parts + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readme", metavar="FILE", type=pathlib.Path)
    parser.add_argument("--plot", metavar="FILE", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.plot:
        arguments.plot.write_text(plot(), encoding="utf-8")
        return
    tables = {"costs": measure.table(read_kinds())}
    found = simulate_all(CASES + SENSITIVITY + BREAKING)
    for name, cases in (("results", CASES), ("sensitivity", SENSITIVITY), ("breaking", BREAKING)):
        tables[name] = table(found[:len(cases)])
        found = found[len(cases):]
    if arguments.readme is None:
        print("\n\n".join(tables.values()))
        return
    text = arguments.readme.read_text(encoding="utf-8")
    for name, lines in tables.items():
        text = replace_table(text, name, lines)
    arguments.readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
