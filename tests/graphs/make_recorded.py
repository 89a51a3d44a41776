#!/usr/bin/env python3
"""Fills tests/graphs from a folder of graphs and a folder of what TFLMS did to them.

  make_recorded.py GRAPHS RECORDED

GRAPHS/NAME/{graph.pb,meta.json,losses.json} become NAME/graph.pb.gz and copies; where graph.pb is
there already it stays as it is. RECORDED/NAME.v1.orders.json and NAME.v1.SET.json become
NAME/v1_orders.json.gz and NAME/v1_swaps.json.gz, NAME.v2.levels.json and NAME.v2.SET.json
NAME/v2_levels.json.gz and NAME/v2_swaps.json.gz; README.md says what they hold. The same input
gives the same bytes.
"""
import argparse
import gzip
import json
import pathlib
import shutil

HERE = pathlib.Path(__file__).resolve().parent
# As the records call them: parts that are the same in every run of TFLMS v1, and of v2.
PARTS = ("swapped_tensors", "swapin_consumers", "triggers")
PARTS_V2 = PARTS + ("other_control_edges",)


def write_gz(path, data):
    path.write_bytes(gzip.compress(data, 9, mtime=0))


def write_json(path, value, depth):
    """One line for each item at `depth`, so that two versions can be compared."""
    def lines(item, level):
        if level == 0 or not item:
            return json.dumps(item, sort_keys=True)
        pad = " " * (depth - level + 1)
        if isinstance(item, dict):
            inner = [json.dumps(k) + ": " + lines(v, level - 1) for k, v in sorted(item.items())]
            return "{\n" + ",\n".join(pad + i for i in inner) + "}"
        if isinstance(item, list):
            return "[\n" + ",\n".join(pad + lines(v, level - 1) for v in item) + "]"
        return json.dumps(item)
    write_gz(path, (lines(value, depth) + "\n").encode())


def orders(record):
    levels = [[] for _ in range(record["size"])]
    for op, order in record["orders"].items():
        if order >= 0:
            levels[order].append(op)
    return {
        "seeds": sorted(record["seeds"]),
        "backward": sorted(record["B"]),
        "bw_start": record["bw_start"],
        "levels": [sorted(level) for level in levels],
    }


def result(record):
    """One set: its parameters and what came of them."""
    kept = {"parameters": dict(record["parameters"])}
    if record.get("error"):
        # Not yet those that the graph has.
        kept["parameters"].pop("excl_scopes", None)
        # What follows in brackets and quotes depends on the run.
        kept["error"] = record["error"].split(" among t")[0]
        return kept
    kept["trains"] = record["trains"]
    kept["cyclic"] = record["cyclic"]
    compared = record.get("deterministic")
    kept["runs"] = compared["runs_compared"] if compared else 1
    kept["stable"] = [part for part in PARTS if compared[part]] if compared else []
    assert not record["added_control"] and not record["partially_rewired"]
    kept["swaps"] = {}
    for swap in record["swapped"]:
        assert len(swap["swapouts"]) == 1
        swap_ins = []
        for swap_in in swap["swapins"]:
            assert len(swap_in["trigger"]) <= 1
            swap_ins.append({
                "consumers": sorted("%s[%d]" % tuple(c) for c in swap_in["consumers"]),
                "trigger": "".join(swap_in["trigger"]),
            })
        kept["swaps"][swap["tensor"]] = sorted(swap_ins, key=lambda s: s["consumers"])
    return kept


def levels_v2(record):
    levels = [[] for _ in range(max(record["levels"].values()) + 1)]
    for op, level in record["levels"].items():
        if level >= 0:
            levels[level].append(op)
    return {"inactive": sorted(record["inactive"]), "levels": [sorted(level) for level in levels]}


def result_v2(record):
    """One set of TFLMS v2: its parameters and what it added to the graph."""
    compared = record.get("deterministic")
    reported = record.get("reported", {})
    kept = {
        "parameters": record["parameters"],
        "edit_ms": record["edit_ms"],
        "runs": compared["runs_compared"] if compared else 1,
        "stable": [part for part in PARTS_V2 if compared[part]] if compared else [],
        # It runs once for each GPU: only the levels are those of the plain graph then.
        "reported": {k: reported[k] for k in ("levels", "vertices", "edges") if k in reported and
                     (k == "levels" or len(reported.get("runs", ())) < 2)},
        "in_force": reported.get("in_force", {}),
    }
    if record.get("error"):
        # What follows in quotes and brackets may depend on the run.
        kept["error"] = record["error"].split(". Please")[0]
        return kept
    assert not record["partially_rewired"]
    swaps = {}
    for swap in record["swapped"]:
        assert len(swap["swapouts"]) == 1
        swaps[swap["tensor"]] = {
            "swap_out": swap["swapouts"][0],
            "bytes": swap["bytes"],
            "swap_ins": sorted(({
                "name": s["name"],
                "consumers": sorted(s["consumers"]),
                "triggers": sorted(s["trigger"]),
            } for s in swap["swapins"]), key=lambda s: s["name"]),
        }
    kept.update(cyclic=record["cyclic"], trains=record["trains"],
                controls=sorted(record["added_control"]), swaps=swaps)
    return kept


def copy_graph(source, target):
    target.mkdir(exist_ok=True)
    if not (target / "graph.pb").exists():
        write_gz(target / "graph.pb.gz", (source / "graph.pb").read_bytes())
    for name in ("meta.json", "losses.json"):
        if not (target / name).exists():
            shutil.copyfile(source / name, target / name)


def write_records(records, target, version, plain, digest, digest_set):
    """VERSION_PLAIN.json.gz from the record of the plain graph, VERSION_swaps.json.gz from those of
    the sets."""
    results = {}
    for path in sorted(records.glob("%s.%s.*.json" % (target.name, version))):
        record = json.loads(path.read_text())
        part = path.name.split(".")[2]
        if part == plain:
            write_json(target / ("%s_%s.json.gz" % (version, plain)), digest(record), 2)
        else:
            results[part] = digest_set(record)
    if results:
        write_json(target / ("%s_swaps.json.gz" % version), results, 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graphs", type=pathlib.Path)
    parser.add_argument("recorded", type=pathlib.Path)
    options = parser.parse_args()
    for source in sorted(p for p in options.graphs.iterdir() if (p / "graph.pb").exists()):
        target = HERE / source.name
        copy_graph(source, target)
        write_records(options.recorded, target, "v1", "orders", orders, result)
        write_records(options.recorded, target, "v2", "levels", levels_v2, result_v2)


if __name__ == "__main__":
    main()
