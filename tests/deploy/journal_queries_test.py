#!/usr/bin/env python3
"""Tests the queries of deploy/journal on a journal that a real spillwayd wrote, with damaged lines
and lines of a later version in it: their results have to match the clients' reports.

Runs the SQL with the DuckDB of this Python (tests/deploy/requirements.txt), and the rest with jq; a
part without its tool is skipped. The last line is `N passed, N failed[, N skipped]`."""

import collections
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import checks
from dashboard_load import BAD_GRAPH, DOES_NOT_FIT, DONE, SMALL, UNKNOWN, Answer, strategy_of
from prometheus_process import ROOT, Program

try:
    import duckdb
except ImportError:
    duckdb = None

QUERIES = ROOT / "deploy/journal"
BUDGET = ["--batch-size", "50", "--kernel-memory", "off", "--gpu-memory-bytes"]
MIB = 1 << 20

# Each is put between two lines of the journal, or is the end of a file.
DAMAGED = [
    b"garbage",
    b"[1, 2]",
    b"17",
    b"null",
    b'"time"',
    b"\0\0\0\x1b[2J",
    b'{"time":"2026-11-24T08:00:00Z","user":"\xff\xfe","outcome":"rewritten"}',
    b'{"time":17,"user":"ann","machine":"p100_pcie","outcome":"rewritten","swapped_tensors":1}',
    b'{"user":"ann","outcome":"does_not_fit","need_bytes":9e18}',
    b"x" * (2 << 20),
    b"[" * 100000,
    b'{"time":"2026-11-24T08:00:00Z","user":"ann","outcome":"rewritten","swapped_te',
]


def asked(dangling):
    """(user, model, what `spillway rewrite` gets, exit code, where the answer comes from)."""
    swapping = [SMALL, *BUDGET, "20MiB"]
    return [
        ("ann", "resnet", swapping, DONE, "work"),
        ("bob", "resnet", swapping, DONE, "cache"),
        ("bob", "resnet", swapping, DONE, "cache"),
        ("ann", "bert", [SMALL, *BUDGET, "21MiB", "--strategy", "level"], DONE, "work"),
        ("ann", "bert", [UNKNOWN, "--batch-size", "50", "--strategy", "scope"], DONE, "work"),
        ("ann", "resnet", [SMALL, "--batch-size", "50", "--hardware", "v100_pcie"], DONE, "work"),
        ("bob", "bert", [SMALL, *BUDGET, "4MiB"], DOES_NOT_FIT, "work"),
        ("bob", "bert", [SMALL, *BUDGET, "10MiB"], DOES_NOT_FIT, "work"),
        ("cy", None, [dangling, "--batch-size", "50"], BAD_GRAPH, None),
    ]


class Request(Answer):
    user = model = origin = None


def ask(folder, server):
    """Sends the load; the requests that the server answered."""
    requests = []
    # A node `a` of op `Abs` that reads a node `b`.
    dangling = folder / "dangling.pb"
    dangling.write_bytes(b"\x0a\x0b\x0a\x01a\x12\x03Abs\x1a\x01b")
    for number, (user, model, arguments, code, origin) in enumerate(asked(dangling)):
        report = folder / ("%d.json" % number)
        names = {"SPILLWAY_USER": user, "SPILLWAY_MODEL": model or "", "SPILLWAY_JOB": str(number)}
        done = subprocess.run(
            [ROOT / "build/bin/spillway", "rewrite", "--server", server, "--retries", "0"]
            + ["-o", folder / "out.pb", "--report", report, "--quiet"]
            + arguments,
            env={**os.environ, **names},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode != code:
            checks.check("request %d" % number, False, done.stderr)
            continue
        request = Request(strategy=strategy_of(arguments))
        request.user, request.model, request.origin = user, model, origin
        if code == DONE:
            request.report = json.loads(report.read_text())
        else:
            request.reason = {DOES_NOT_FIT: "does_not_fit", BAD_GRAPH: "DANGLING_INPUT"}[code]
        requests.append(request)
    return requests


def damage(journal):
    """Puts damaged and unknown lines into every file; how many of each."""
    files = sorted(journal.glob("journal*.jsonl"))
    for path in files:
        lines = path.read_bytes().splitlines()
        # Of a later version: an unknown field.
        lines[0] = lines[0][:-1] + b',"moon":{"phase":[1,{"time":3}]}}'
        mixed = [line for pair in itertools.zip_longest(DAMAGED[:-1], lines) for line in pair
                 if line is not None]
        mixed.append(b'{"time":"2026-11-24T08:00:00Z","method":"Prophesy","code":"OK"}')
        path.write_bytes(b"\n".join(mixed + [b"", DAMAGED[-1]]))
    return len(files)


def by(requests, *names):
    groups = collections.defaultdict(list)
    for request in requests:
        groups[tuple(getattr(request, name) for name in names)].append(request)
    return groups


def same(rows, expected):
    """Whether rows by their names are those expected, in any order, up to rounding."""
    def close(a, b):
        return a == b or (a is not None and b is not None and not isinstance(a, str)
                          and abs(a - b) <= 1e-4 * abs(b))

    return rows.keys() == expected.keys() and all(
        len(rows[of]) == len(expected[of]) and all(map(close, rows[of], expected[of]))
        for of in rows
    )


def compare(name, rows, expected):
    checks.check(name, same(rows, expected), "%s\n        instead of %s" % (rows, expected))


def sql(name, num_names):
    """The rows of a query by their first columns."""
    rows = duckdb.sql((QUERIES / name).read_text()).fetchall()
    return {tuple(row[:num_names]): row[num_names:] for row in rows}


def test_sql(requests):
    swapping = [r for r in requests if r.outcome == "rewritten" and r.total("swapped_tensor_count")]
    compare("who_swaps_most.sql", sql("who_swaps_most.sql", 2), {
        of: (len(m), sum(r.swap_bytes for r in m), max(r.host_bytes for r in m))
        for of, m in by(swapping, "user", "model").items()
    })
    rows = duckdb.sql((QUERIES / "who_swaps_most.sql").read_text()).fetchall()
    checks.check("who_swaps_most.sql begins with most", rows == sorted(rows, key=lambda r: -r[3]))

    def slowdowns(m):
        known = sorted(r.slowdown for r in m if r.slowdown)
        return (
            sum(known) / len(known),
            (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2,
            known[-1],
        ) if known else (None, None, None)

    compare("slowdown_by_model.sql", sql("slowdown_by_model.sql", 2), {
        of: (len(m), *slowdowns(m), sum(r.gpu.peak_before - r.gpu.peak_after for r in m))
        for of, m in by(swapping, "model", "strategy").items()
    })

    # Fits in 20 MiB, but not in 10.
    (of, row), *others = sql("what_did_not_fit.sql", 3).items()
    checks.check(
        "what_did_not_fit.sql",
        not others and of == ("bob", "bert", "p100_pcie") and row[0] == 2
        and 10 * MIB < row[1] <= 20 * MIB and 0 < row[2] <= 10 * MIB,
        "%s: %s" % (of, row),
    )

    origins = collections.Counter()
    for (_, origin), row in sql("cache_hits.sql", 2).items():
        origins[origin] += row[0]
        checks.check("cache_hits.sql: share and time of %s" % origin,
                     0 < row[1] <= 1 and row[2] > 0, row)
    wanted = collections.Counter(r.origin for r in requests if r.origin)
    checks.check("cache_hits.sql", origins == wanted, "%s instead of %s" % (origins, wanted))


def jq(name, journal):
    text = b"".join(path.read_bytes() + b"\n" for path in sorted(journal.glob("journal*.jsonl")))
    done = subprocess.run(
        ["jq", "-cnRf", QUERIES / name], input=text, capture_output=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_jq(requests, journal, num_files, hours):
    found, total = collections.Counter(), 0
    for row in jq("per_hour.jq", journal):
        unknown = row["by_outcome"].pop("Prophesy", 0)
        if row["hour"] == "2026-11-24T08:00Z":
            # The line whose name is not UTF-8 is one for jq: it has a time.
            wanted = {"hour": row["hour"], "requests": 2 * num_files,
                      "by_outcome": {"rewritten": num_files}}
            checks.check("per_hour.jq: a line of a later version", row == wanted and unknown
                         == num_files, row)
            continue
        found.update(row["by_outcome"])
        total += row["requests"]
        checks.check("per_hour.jq: the hour %s" % row["hour"], row["hour"] in hours, hours)
    wanted = collections.Counter(r.outcome or r.reason for r in requests)
    checks.check("per_hour.jq", found == wanted and total == len(requests),
                 "%s instead of %s" % (found, wanted))

    simulated = [r for r in requests if r.outcome]
    compare("per_machine.jq", {
        (row.pop("machine"),): tuple(row.values()) for row in jq("per_machine.jq", journal)
    }, {
        of: (
            len(m), *(sum(r.outcome == o for r in m)
                      for o in ("rewritten", "nothing_to_do", "does_not_fit")),
            sum((r.gpu.peak_before - r.gpu.peak_after for r in m if r.outcome == "rewritten"))
            if any(r.outcome == "rewritten" for r in m) else None,
        )
        for of, m in by(simulated, "machine").items()
    })


def test_stats(requests, journal, num_files):
    """The command says the same of the same journal."""
    done = subprocess.run(
        [ROOT / "build/bin/spillway", "stats", journal, "--by", "user", "--json"],
        capture_output=True, check=True,
    )
    stats = json.loads(done.stdout)
    checks.check("spillway stats counts the damaged lines",
                 stats["damaged_lines"] == num_files * len(DAMAGED), stats["damaged_lines"])
    compare("spillway stats", {
        (row["name"],): (row["requests"], row["swap_bytes_per_step"], row["does_not_fit"])
        for row in stats["rows"]
    }, {
        ("(not given)",): (num_files, None, 0),
        **{
            of: (
                len(m),
                sum(r.swap_bytes for r in m if r.outcome == "rewritten")
                if any(r.outcome == "rewritten" for r in m) else None,
                sum(r.outcome == "does_not_fit" for r in m),
            )
            for of, m in by(requests, "user").items()
        },
    })


def hour_of(seconds):
    return time.strftime("%Y-%m-%dT%H:00Z", time.gmtime(seconds))


def test(folder):
    journal = folder / "journal"
    journal.mkdir()
    begin = time.time()
    # Some requests to a file.
    command = ["--listen=127.0.0.1:0", "--metrics-listen=none", "--workers=1",
               "--journal=%s" % journal, "--journal-file-bytes=4KiB"]
    with Program(folder, "spillwayd", [ROOT / "build/bin/spillwayd", *command]) as server:
        requests = ask(folder, server.await_match(r"^spillwayd \S+ listening on (\S+)\n"))
        server.stop()
    num_files = damage(journal)
    checks.check("the journal has several files", num_files > 1, num_files)
    test_stats(requests, journal, num_files)
    if duckdb is None:
        checks.skip("no DuckDB here (pip install -r tests/deploy/requirements.txt): the queries in "
                    "SQL are not tested")
    else:
        os.chdir(journal)  # Where the queries look for it.
        test_sql(requests)
        os.chdir(ROOT)
    if shutil.which("jq") is None:
        checks.skip("no jq here: its queries are not tested")
    else:
        test_jq(requests, journal, num_files, {hour_of(begin), hour_of(time.time())})
    named = {path.name for path in QUERIES.iterdir()} - {"README.md"}
    page = (QUERIES / "README.md").read_text()
    checks.check("the page names each query", all("`%s`" % name in page for name in named), named)


def main(argv):
    if argv:
        print(__doc__)
        return 0 if argv in (["-h"], ["--help"]) else 2
    with tempfile.TemporaryDirectory(prefix="spillway-journal-") as folder:
        test(pathlib.Path(folder))
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
