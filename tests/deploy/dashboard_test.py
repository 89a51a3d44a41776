#!/usr/bin/env python3
"""Tests deploy/grafana and deploy/prometheus against a real Prometheus that scrapes a real
spillwayd and a text file of real job hooks, under a load of which the test knows each answer: every
expression of a dashboard, every recording rule and every alert has to give the values that were
sent. The load swaps, does not swap, fits with nothing, is wrong, is refused, and comes from
hooks."""

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

import dashboard_expected as expected
import dashboards
from dashboard_load import Load, TextFile
from prometheus_process import (
    ROOT,
    STARTUP_S,
    Failure,
    Program,
    await_true,
    find_prometheus,
    start_prometheus,
)

# Room for one large graph (3.1 MiB) with its answer and some small ones, and for one in the queue.
INFLIGHT_BYTES = 8 << 20
MAX_CONNECTIONS = 64

# More lines than one file of the journal holds.
LOST_REQUESTS = 10

# So long after the last scrape, results of rules have it: they are evaluated as often.
RECORDING_MS = 1000


class Results:
    def __init__(self):
        self.passed = self.failed = 0

    def add(self, name, problem=None):
        if problem:
            self.failed += 1
            print("FAILED  %s: %s" % (name, problem), flush=True)
        else:
            self.passed += 1
            print("ok      %s" % name, flush=True)


def usage_of(pid):
    """Of a process, as Linux has it."""
    status = pathlib.Path("/proc/%d/status" % pid).read_text()
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()
    limits = pathlib.Path("/proc/%d/limits" % pid).read_text()
    tick = os.sysconf("SC_CLK_TCK")
    uptime = float(pathlib.Path("/proc/uptime").read_text().split()[0])
    return {
        "resident_bytes": 1024 * int(re.search(r"VmRSS:\s+(\d+)", status).group(1)),
        "cpu_seconds": (int(fields[11]) + int(fields[12])) / tick,
        "uptime_seconds": uptime - int(fields[19]) / tick,
        "fds": len(os.listdir("/proc/%d/fd" % pid)),
        "max_fds": int(re.search(r"Max open files\s+(\d+)", limits).group(1)),
        "inflight_limit": INFLIGHT_BYTES,
        "connections": MAX_CONNECTIONS,
    }


@dataclasses.dataclass
class Window:
    """The time between two scrapes, in milliseconds since the epoch: one before the load, so that
    no increase is missed, and one after. Over just this time, increases are the counts."""

    start: int
    end: int

    @property
    def text(self):
        return "%dms" % (self.end - self.start)

    @property
    def seconds(self):
        return (self.end - self.start) / 1000


def ask(prometheus, dashboard, target, values, window):
    """An expression's values: at the end of the window, or over it if a peak is expected."""
    query = dashboards.filled_in(target["expr"], dashboard, window.text)
    if "$" in query:
        raise Failure("a variable that this test does not know: %s" % query)
    if isinstance(values, dict) and any(isinstance(v, expected.Peak) for v in values.values()):
        return [
            (of, max(value for _, value in points))
            for of, points in prometheus.query_range(query, window.start, window.end)
        ]
    return prometheus.query(query, window.end)


def check_panels(prometheus, name, dashboard, sent, window, results):
    table = dict(expected.TABLES[name])
    for panel in dashboards.panels_of(dashboard):
        functions = table.pop(panel["title"], [])
        if len(functions) != len(panel["targets"]):
            results.add(
                "%s: %s" % (name, panel["title"]),
                "dashboard_expected.py has %d values for %d expressions"
                % (len(functions), len(panel["targets"])),
            )
            continue
        for target, function in zip(panel["targets"], functions):
            title = "%s: %s (%s)" % (name, panel["title"], target["legendFormat"])
            values = function(sent)
            series = ask(prometheus, dashboard, target, values, window)
            legend = set(re.findall(r"{{\s*(\w+)\s*}}", target["legendFormat"]))
            lacking = [of for of, _ in series if legend - set(of)]
            results.add(
                title,
                expected.problem_of(values, series)
                or (not series and values and "no data")
                or (lacking and "no label for its legend: %s" % lacking[0]),
            )
    for title in table:
        results.add("%s: %s" % (name, title), "dashboard_expected.py has it, the dashboard has not")


def check_variables(prometheus, name, dashboard, instance, results):
    """Checks the values that they offer."""
    for label in ("job", "instance"):
        query = dashboards.variable_of(dashboard, label)["query"]["query"]
        metric = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
        offered = prometheus.get(
            "label/%s/values" % metric.group(2),
            **{"match[]": metric.group(1).replace("$job", ".+")},
        )
        wanted = [instance] if label == "instance" else None
        results.add(
            "%s: the variable %s offers %s" % (name, label, ", ".join(offered)),
            not offered and "nothing" or wanted and offered != wanted and "not %s" % wanted,
        )


def rules_of(prometheus, kind):
    groups = prometheus.get("rules")["groups"]
    return [rule for group in groups for rule in group["rules"] if rule["type"] == kind]


def fewest_scrapes(prometheus):
    return min(len(prometheus.scrape_times(job)) for job in ("spillway", "node"))


def check_recorded(prometheus, service, hooks, moment, results):
    """Their windows are longer than the load, so that an increase is all that was counted."""
    found, scrapes = rules_of(prometheus, "recording"), fewest_scrapes(prometheus)
    for rule in found:
        name = rule["name"]
        results.add(
            "rule %s" % name,
            rule.get("lastError")
            or not re.fullmatch(r"[a-z]+(_[a-z]+)*:[a-z_]+:[a-z]+\w*\d+[mh]", name)
            and "it is not called LEVEL:METRIC:OPERATIONS"
            or name not in expected.RECORDED
            and "dashboard_expected.py has no value for it"
            or expected.problem_of(
                expected.loosened(expected.RECORDED[name](service, hooks), scrapes),
                prometheus.query(name, moment),
            ),
        )
    lacking = set(expected.RECORDED) - {rule["name"] for rule in found}
    results.add("rules of dashboard_expected.py are there", ", ".join(sorted(lacking)))


def check_alerts(prometheus, service, hooks, moment, results):
    """Whether each would fire, `for` aside; and whether its series exist, since an alert without
    series is silent, too."""
    scrapes = fewest_scrapes(prometheus)
    for rule in rules_of(prometheus, "alerting"):
        values = expected.FIRING.get(rule["name"], lambda *_: {})(service, hooks)
        selectors = re.findall(
            r"\b(?:\w+:spillway_\w+:\w+|spillway_\w+|process_\w+|node_\w+|up)\b(?:\{[^}]*\})?",
            rule["query"],
        )
        missing = [selector for selector in selectors if not prometheus.query(selector)]
        results.add(
            "alert %s %s" % (rule["name"], "fires" if values else "is silent"),
            rule.get("lastError")
            or not selectors
            and "asks for no series"
            or "; ".join("no series for " + selector for selector in missing)
            or expected.problem_of(
                expected.loosened(values, scrapes),
                prometheus.query(rule["query"], moment),
            ),
        )


def await_scrapes(prometheus, after=0):
    """Of both jobs, the first scrape after a moment, in seconds since the epoch."""

    def later(job):
        return [t for t in prometheus.scrape_times(job) if t > 1000 * after]

    return {
        job: await_true(
            "Prometheus scrapes the job %s" % job, STARTUP_S, lambda job=job: later(job)
        )[0]
        for job in ("spillway", "node")
    }


def server_command(arguments, folder):
    return [
        arguments.spillwayd,
        "--listen=127.0.0.1:0",
        "--metrics-listen=127.0.0.1:0",
        "--workers=1",
        "--max-queued-requests=1",
        "--max-inflight-bytes=%d" % INFLIGHT_BYTES,
        # All come from one address, which is one caller: refused requests lack room, not a share.
        "--max-caller-bytes=%d" % (2 * INFLIGHT_BYTES),
        "--max-graph-bytes=4MiB",
        "--max-unary-bytes=4MiB",
        "--max-connections=%d" % MAX_CONNECTIONS,
        "--journal=%s" % (folder / "journal"),
        "--journal-file-bytes=4KiB",  # A new file every few requests.
    ]


def play(arguments, folder, prometheus, load, pid):
    """Plays the load between two scrapes; (window of each job, the server's usage)."""
    load.warm_up()
    starts = await_scrapes(prometheus, time.time())
    before = usage_of(pid)
    load.play()
    usage = usage_of(pid)
    usage["cpu_seconds"] -= before["cpu_seconds"]
    # The journal is written behind the answers.
    ends = await_scrapes(prometheus, time.time() + 0.2)
    # The rules look at these scrapes, too.
    time.sleep(RECORDING_MS / 1000)
    return {job: Window(starts[job], ends[job]) for job in starts}, usage


def check_journal_loss(prometheus, dashboard, folder, load, target, results):
    """No file can be begun in a folder that is gone: requests are answered, lines are lost."""
    start = await_scrapes(prometheus, time.time())["spillway"]
    shutil.rmtree(folder / "journal")
    before = len(load.answers)
    for _ in range(LOST_REQUESTS):
        load.ask(load.rewritten, command="strip", strategy="strip", cached=True)
    window = Window(start, await_scrapes(prometheus, time.time() + 0.2)["spillway"])
    panel = next(p for p in dashboards.panels_of(dashboard) if p["title"] == "Journal")
    written, lost = (
        sum(value for _, value in ask(prometheus, dashboard, t, {}, window)) * window.seconds
        for t in panel["targets"]
    )
    results.add(
        "of %d lines, %.0f are written and %.0f lost" % (LOST_REQUESTS, written, lost),
        len(load.answers) - before != round(written + lost)
        and "which is not all"
        or lost < 1
        and "none is lost",
    )
    (rule,) = [r for r in rules_of(prometheus, "alerting") if r["name"] == "SpillwayJournalLoss"]
    found = prometheus.query(rule["query"], window.end)
    results.add(
        "alert SpillwayJournalLoss fires",
        expected.problem_of(
            {expected.labels(job="spillway", instance=target): expected.Near(lost, 0.1)}, found
        ),
    )


def test_live(arguments, folder, boards, results):
    textfile = folder / "spillway.prom"
    (folder / "journal").mkdir()
    with Program(folder, "spillwayd", server_command(arguments, folder)) as server, TextFile(
        textfile
    ) as node:
        address = server.await_match(r"^spillwayd \S+ listening on (\S+)\n")
        target = server.await_match(r"^metrics on http://(\S+)/metrics\n")
        version = server.await_match(r"^spillwayd (\S+) listening on")
        process, prometheus = start_prometheus(folder, arguments.prometheus, target, node.address)
        with process:
            await_scrapes(prometheus)
            load = Load(folder, arguments.spillway, address, textfile)
            windows, usage = play(arguments, folder, prometheus, load, server.process.pid)
            results.add(
                "the load was refused, and let in",
                not 0 < sum(a.reason == "overloaded" for a in load.answers) < 4
                and "or one of them",
            )
            service = expected.Sent(
                load.answers,
                windows["spillway"].seconds,
                target,
                wall=max(a.seconds for a in load.answers),
                process=usage,
                version=version,
            )
            hooks = expected.Sent(load.runs, windows["node"].seconds, node.address)
            for name, dashboard in boards.items():
                job = "node" if name == "spillway-hooks.json" else "spillway"
                sent = hooks if job == "node" else service
                check_variables(prometheus, name, dashboard, sent.instance, results)
                check_panels(prometheus, name, dashboard, sent, windows[job], results)
            recorded = max(window.end for window in windows.values()) + RECORDING_MS
            check_recorded(prometheus, service, hooks, recorded, results)
            check_alerts(prometheus, service, hooks, recorded, results)
            check_journal_loss(
                prometheus, boards["spillway-service.json"], folder, load, target, results
            )
        code = server.stop()
        results.add("spillwayd ends with exit code 0 after SIGTERM", code and "%d" % code)


def arguments_of(argv):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""Needs Prometheus, from PATH or from build/tools/bin, where deploy/install_deps.sh
tests puts it; without it, only what can be checked in the files is.

The last line is `N passed, N failed` or `N passed, N failed, N skipped`. Exit code 0: nothing
failed; 1: something did; 2: bad usage.""",
    )
    parser.add_argument(
        "--spillwayd", default=ROOT / "build/bin/spillwayd", help="the server [build/bin/spillwayd]"
    )
    parser.add_argument(
        "--spillway", default=ROOT / "build/bin/spillway", help="the client [build/bin/spillway]"
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs and data")
    arguments = parser.parse_args(argv)
    arguments.prometheus = find_prometheus()
    for program in (arguments.spillwayd, arguments.spillway):
        if not os.access(program, os.X_OK):
            parser.error("%s is not there: build it first (CONTRIBUTING.md)" % program)
    return arguments


def main(argv):
    arguments = arguments_of(argv)
    # So that `with` and `finally` run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # For the clients: the server is on this machine.
    os.environ["no_proxy"] = "127.0.0.1"
    results = Results()
    skipped = 0
    boards = dashboards.read_all()
    dashboards.check(boards, results.add)
    if arguments.prometheus is None:
        print(
            "skipped: no prometheus here (deploy/install_deps.sh tests): "
            "the dashboards' expressions are not tested"
        )
        skipped = 1
    else:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="spillway-dashboard-"))
        try:
            test_live(arguments, folder, boards, results)
        except Failure as failure:
            results.add("the test itself", str(failure))
        finally:
            if arguments.keep:
                print("Logs and data: %s" % folder)
            else:
                shutil.rmtree(folder)
    print(
        "\n%d passed, %d failed" % (results.passed, results.failed)
        + (", %d skipped" % skipped if skipped else "")
    )
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
