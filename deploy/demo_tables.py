"""Small tables for deploy/demo.sh.

    demo_tables.py counters BEFORE AFTER   counters that two Prometheus scrapes differ in
    demo_tables.py swaps REPORT            at most five of the swapped tensors of a report, the largest
"""
import json
import re
import sys


def print_table(rows, right=()):
    """Columns as wide as their widest cell; those in `right` are aligned right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))]
        print("  " + "  ".join(cells).rstrip())


def counters(path):
    """Series of counters (not of histograms), by name with labels."""
    values, types = {}, {}
    with open(path) as file:
        for line in file:
            kind = re.match(r"# TYPE (\S+) (\S+)", line)
            sample = re.match(r"(spillway_\w+)(\{.*\})? (\S+)$", line)
            if kind:
                types[kind.group(1)] = kind.group(2)
            elif sample and types.get(sample.group(1)) == "counter":
                values[sample.group(1) + (sample.group(2) or "")] = float(sample.group(3))
    return values


def print_counters(before_path, after_path):
    before, after = counters(before_path), counters(after_path)
    rows = [("counter", "before", "after")]
    for name in sorted(after):
        if after[name] != before.get(name, 0):
            rows.append((name, "%d" % before.get(name, 0), "%d" % after[name]))
    print_table(rows, right=(1, 2))


def print_swaps(path, most=5):
    with open(path) as file:
        swaps = json.load(file)["swaps"]
    # JSON has 64-bit numbers as strings; a size that is not known is absent.
    swaps.sort(key=lambda swap: -int(swap.get("size_bytes", 0)))
    rows = [("tensor", "MiB", "swap-ins", "the first one waits for")]
    for swap in swaps[:most]:
        size = "%.2f" % (int(swap["size_bytes"]) / 2**20) if "size_bytes" in swap else "unknown"
        first = swap["swap_ins"][0]
        rows.append((swap["tensor"], size, str(len(swap["swap_ins"])),
                     first["triggers"][0] if first.get("triggers") else "the swap-out alone"))
    print_table(rows, right=(1, 2))


if __name__ == "__main__":
    if sys.argv[1] == "counters":
        print_counters(*sys.argv[2:])
    else:
        print_swaps(*sys.argv[2:])
