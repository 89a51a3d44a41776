#!/usr/bin/env python3
"""Tests deploy/scale on a real server, of the build in build/ or $SPILLWAY_BUILD: the output of
measure.py and replay.py, and how replay.py refuses input that is not a load."""

import json
import pathlib
import subprocess
import sys
import tempfile

from checks import check, finish

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCALE = ROOT / "deploy/scale"
TIMEOUT_S = 300

sys.path.insert(0, str(SCALE))
import measure  # noqa: E402


def run(program, *arguments, text=""):
    return subprocess.run([sys.executable, str(SCALE / program), *arguments], input=text, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)


def replayed(requests, *arguments):
    """What replay.py prints, of (at_s, kind, graph, encoding)."""
    lines = "".join(json.dumps(dict(zip(("at_s", "kind", "graph", "encoding"), request))) + "\n"
                    for request in requests)
    ended = run("replay.py", "-", *arguments, text=lines)
    return json.loads(ended.stdout) if ended.returncode == 0 else {"error": ended.stderr}


def has(result, **expected):
    return all(result.get(name) == value for name, value in expected.items())


def check_graphs():
    graph = measure.read_graph("mnist_deep", None)
    node_count = measure.spillway.inspect(graph).node_count
    encodings = [measure.reencoded(graph, number) for number in range(5)]
    check("each encoding has bytes of its own, and the same number of them",
          len(set(encodings)) == 5 and {len(data) for data in encodings} == {len(graph)})
    check("they are the same graph", all(measure.spillway.inspect(data).node_count == node_count
                                         for data in encodings))


def check_measure():
    ended = run("measure.py", "mnist_deep", "resnet50_scope")
    rows = [line.strip("| ").split(" | ") for line in ended.stdout.splitlines()[2:]]
    check("measure.py: a line for each kind", [row[0] for row in rows] == ["`mnist_deep`", "`resnet50_scope`"],
          ended.stdout + ended.stderr)
    check("the table of the page has its columns", ended.stdout.split("\n")[0] in
          (SCALE / "README.md").read_text(), ended.stdout)
    if len(rows) == 2:
        mnist, scope = rows
        check("the plan of budget is used for another encoding, scope has none to use",
              float(mnist[4]) > 0 and scope[4] == "never", rows)
        check("the same bytes again cost less than a new graph",
              0 < float(scope[5]) < float(scope[3]), scope)
        # Of memory a busy machine may miss the short moment in which it is held.
        check("memory beside the graph, and in the cache", float(scope[6]) >= 0 and float(scope[7]) > 1, scope)
    ended = run("measure.py", "no_such_kind")
    check("measure.py: a kind that is none", ended.returncode == 1 and "no such kind: no_such_kind" in
          ended.stderr, ended.stderr)


def check_replay():
    # One after another: a new graph, the same bytes, the same graph in other bytes, another graph.
    load = [(0, "resnet50", 1, 0), (2, "resnet50", 1, 0), (2.5, "resnet50", 1, 1), (3, "mnist_deep", 1, 0)]
    result = replayed(load, "--", "--workers", "1")
    check("replay.py: who has to work for which request", has(
        result, sent=4, not_sent=0, answered=4, failed={}, new=2, plan_known=1, same_bytes=1), result)
    check("times of answers and of the server",
          0 < result.get("answer_p50_s", 0) <= result.get("answer_p99_s", 0) and result["cpu_s"] > 0, result)
    result = replayed(load, "--speed", "1000", "--requests", "1")
    check("no more than --requests", has(result, sent=1, answered=1), result)
    result = replayed([(0, "mnist_deep", 1, 0), (3600, "mnist_deep", 1, 0)], "--seconds", "2")
    check("no longer than --seconds", has(result, sent=1, not_sent=1) and result["seconds"] < 30, result)
    result = replayed(load[:1], "--retries", "0", "--", "--max-graph-bytes", "1KiB")
    check("what the server refuses is counted by reason", has(result, answered=0, new=0) and
          sum(result["failed"].values()) == 1 and "answer_p50_s" in result, result)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as kinds:
        json.dump({"small": {"graph": "mnist_deep", "share": 1, "options": {"batch_size": 1024}}}, kinds)
        kinds.flush()
        ended = run("replay.py", "--kinds", kinds.name, "--rate", "50", "--ranks", "3", "--requests", "6")
    result = json.loads(ended.stdout or "{}")
    check("at random: each rank asks, and every request has an end", has(result, sent=6, not_sent=0) and
          result["answered"] + sum(result["failed"].values()) == 6 and result["new"] <= 2, ended)
    with measure.Server("--workers", "1") as server:
        result = replayed([(0, "mnist_deep", 1, 0)], "--server", server.address)
        check("on a server that runs already", has(result, answered=1, failed={}) and "cpu_s" not in result and
              server.metrics()["spillway_rewrite_outcomes_total"] == 1, result)


def check_no_load():
    for name, text, sentence in (
            ("no JSON", "{", "line 1 is not a request"),
            ("a field that is missing", '{"at_s": 0, "kind": "mnist_deep"}', "line 1 is not a request"),
            ("no object", "7", "line 1 is not a request"),
            ("no such kind", '{"at_s": 0, "kind": "x", "graph": 0, "encoding": 0}', "no such kind"),
            ("a time that is none", '{"at_s": NaN, "kind": "mnist_deep", "graph": 0, "encoding": 0}', "at_s"),
            ("an encoding that the graph has not",
             '{"at_s": 0, "kind": "mnist_deep", "graph": 0, "encoding": 9999}', "too few"),
            ("a graph that is none", '{"at_s": 0, "kind": "mnist_deep", "graph": -1, "encoding": 0}', "graph")):
        ended = run("replay.py", "-", text=text)
        check("no load: " + name, ended.returncode == 1 and sentence in ended.stderr and
              "Traceback" not in ended.stderr and not ended.stdout, ended)
    ended = run("replay.py")
    check("neither a load nor a rate", ended.returncode == 2 and "LOAD or --rate" in ended.stderr, ended)
    ended = run("replay.py", "/nowhere/load")
    check("a file that is not there", ended.returncode == 1 and "No such file" in ended.stderr, ended)


def main():
    check_graphs()
    check_measure()
    check_replay()
    check_no_load()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
