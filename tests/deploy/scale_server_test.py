#!/usr/bin/env python3
"""The simulation of deploy/scale beside a real spillwayd: the same small loads, and what each says of
them. Counts have to agree; times are printed beside each other, and only the processor time is held to
anything, since a busy machine changes it little. Takes a minute or two, and the build in build/.

    scale_server_test.py [--seconds N]"""

import argparse
import pathlib
import sys

from checks import check, finish

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy/scale"))

import replay  # noqa: E402

# Of the processor time, from side to side: caches and the clock of a shared machine.
MOST_CPU_RATIO = 1.4
# Where the cache is too small, what leaves it depends on what comes between two requests.
MOST_OTHERS = 0.15
# Refused, of all that are asked for at twice the capacity: more than half on both sides, and alike.
MOST_REFUSED = 0.2
# Of a burst, those that come when one has been answered already.
MOST_LATE = 2


def compare(name, real, simulated, asked):
    def share(count):
        return abs(real[count] - simulated[count]) / asked

    ended = "%r, %r" % (real, simulated)
    check("%s: every request has an end on both sides" % name,
          real["answered"] + real["lost"] == simulated["answered"] + simulated["lost"] == asked, ended)
    ratio = real["cpu_seconds"] / simulated["cpu_seconds"]
    # As many rewrites as the server made, if the two did not make the same number.
    ratio *= max(1, simulated["made"]) / max(1, real["made"])
    check("%s: processor time of a rewrite, real to simulated: %.2f" % (name, ratio),
          1 / MOST_CPU_RATIO < ratio < MOST_CPU_RATIO, ended)
    if name == "ranks":
        for count in ("made", "reused", "refused"):
            check("%s: %s as simulated, %d" % (name, count, simulated[count]),
                  real[count] == simulated[count], ended)
        check("%s: kept or shared as simulated" % name,
              real["kept"] + real["shared"] == simulated["kept"] + simulated["shared"], ended)
    elif name == "small cache":
        check("%s: made, and answered with a known plan, nearly as simulated" % name,
              share("made") <= MOST_OTHERS and share("reused") <= MOST_OTHERS, ended)
        check("%s: nothing is refused" % name, real["refused"] == simulated["refused"] == 0, ended)
    elif name == "twice the capacity":
        check("%s: nearly as much is refused" % name,
              share("refused") <= MOST_REFUSED and set(real["refusals"]) == set(simulated["refusals"]) ==
              {"queue_wait"}, ended)
    else:
        check("%s: what has no room is refused" % name,
              share("refused") <= MOST_LATE / asked and set(real["refusals"]) ==
              set(simulated["refusals"]) == {"inflight_bytes"}, ended)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15, help="of each load (default: 15)")
    arguments = parser.parse_args()
    compared = []
    for load, real, simulated in replay.compare(ROOT / "build/scale", arguments.seconds):
        compare(load.name, real, simulated, len(load.asks))
        compared.append((load, real, simulated))
    print("\n" + replay.table(compared))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
