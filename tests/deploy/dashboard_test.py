#!/usr/bin/env python3
"""Tests deploy/grafana/spillway.json and deploy/prometheus against a real Prometheus that scrapes a
real spillwayd under load: every expression of the dashboard must return data, and, but for the one
that counts bugs, a value above zero at some moment of the load."""

import argparse
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "deploy/grafana/spillway.json"
PROMETHEUS_FOLDER = ROOT / "deploy/prometheus"

# A healthy server has no bugs: these panels have data, and it is zero.
# Less than the 3.54 GiB that a step of bert_base takes with a batch of 8.
LARGE_MEMORY_BYTES = 3300 << 20
ZERO_IS_RIGHT = {"Bugs"}

# What Grafana puts in. Its $__rate_interval is four scrape intervals at least; more here, so that a
# busy machine that is late with a scrape does not look like a wrong expression.
SCRAPE_INTERVAL = "500ms"
RATE_INTERVAL = "10s"
RANGE = "5m"

STARTUP_S = 20


class Failure(Exception):
    """The test cannot go on; the text says why."""


class Program:
    """A child process with its output in files; ended on leaving the `with` block, however."""

    def __init__(self, folder, name, command):
        self.name = name
        self.stdout_path = folder / (name + ".out")
        self.stderr_path = folder / (name + ".log")
        with open(self.stdout_path, "wb") as out, open(self.stderr_path, "wb") as err:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def stop(self):
        """SIGTERM; returns the exit code."""
        self.process.terminate()
        try:
            return self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failure("%s did not end within 20 s of SIGTERM" % self.name) from None

    def log(self):
        return self.stdout_path.read_text(errors="replace") + self.stderr_path.read_text(
            errors="replace"
        )

    def await_match(self, pattern):
        """The first group of `pattern` in what it prints."""
        deadline = time.monotonic() + STARTUP_S
        while time.monotonic() < deadline:
            match = re.search(pattern, self.log(), re.MULTILINE)
            if match:
                return match.group(1)
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise Failure("%s did not start: no line like %r in\n%s" % (self.name, pattern, self.log()))


class Prometheus:
    """Its HTTP API, of which `data` is returned."""

    def __init__(self, address):
        self.base = "http://%s/api/v1/" % address
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path, **parameters):
        url = self.base + path + "?" + urllib.parse.urlencode(parameters, doseq=True)
        try:
            with self.opener.open(url, timeout=10) as answer:
                body = json.load(answer)
        except urllib.error.HTTPError as error:
            raise Failure(
                "Prometheus refuses %s: %s" % (parameters, error.read().decode())
            ) from None
        except OSError as error:
            raise Failure("Prometheus does not answer %s: %s" % (parameters, error)) from None
        return body["data"]

    def query(self, expression):
        """A list of (labels, value)."""
        result = self.get("query", query=expression)["result"]
        return [(series["metric"], float(series["value"][1])) for series in result]


class Load:
    """Clients in a loop: rewrites of a large and of a small graph, strips, and what is no graph.
    The server has so little room that some are refused."""

    # 0: done; 3: the graph is wrong; 5: overloaded.
    EXPECTED = {"large": {0, 5}, "small": {0, 5}, "strip": {0, 5}, "rubbish": {3, 5}}

    def __init__(self, folder, spillway, server):
        rewritten, rubbish = folder / "rewritten.pb", folder / "rubbish.pb"
        rubbish.write_bytes(b"This is no graph.")
        small = ROOT / "tests/graphs/cond_v1/graph.pb"  # Has no shapes: tensors of unknown size.
        large = ROOT / "tests/graphs/bert_base/graph_shapes.pb"
        # A strategy that swaps something also in a graph that fits.
        rewrite = [spillway, "rewrite", "--strategy", "scope"]
        subprocess.run(rewrite + [small, "-o", rewritten, "--quiet"], check=True)
        remote = [
            "--server",
            server,
            "--retries",
            "0",
            "--timeout",
            "20s",
            "--quiet",
            "-o",
            "/dev/null",
        ]
        self.commands = {
            # Plans are searched for, so that the one worker has something to do and others wait.
            "large": [spillway, "rewrite", "--strategy", "level", large, "--batch-size", "8"]
            + ["--decision-detail", "none"]
            + remote,
            "small": rewrite + [small] + remote,
            "strip": [spillway, "strip", rewritten] + remote,
            "rubbish": rewrite + [rubbish] + remote,
        }
        self.stopping = threading.Event()
        self.numbers = itertools.count()
        self.problems = []
        self.codes = {name: {} for name in self.commands}
        # Two of the large one are more than the server takes at once.
        # Enough of the small ones that one of them waits at most moments.
        plans = [["large"]] * 2 + [["small", "strip", "rubbish"]] + [["small", "strip"]] * 3
        self.threads = [
            threading.Thread(target=self.run, args=(plan,), daemon=True) for plan in plans
        ]

    def run(self, plan):
        while not self.stopping.is_set():
            for name in plan:
                command = self.commands[name]
                if name == "large":
                    # Too little for the step as it comes; never twice the same, which the server
                    # would have kept.
                    memory = LARGE_MEMORY_BYTES + 4096 * next(self.numbers)
                    command = command + ["--gpu-memory-bytes", str(memory)]
                done = subprocess.run(
                    command, stdin=subprocess.DEVNULL, capture_output=True, text=True
                )
                counts = self.codes[name]
                counts[done.returncode] = counts.get(done.returncode, 0) + 1
                if done.returncode not in self.EXPECTED[name]:
                    self.problems.append(
                        "exit code %d of %s: %s" % (done.returncode, name, done.stderr.strip())
                    )
                    return

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


class Expression:
    """One target of one panel, and what Prometheus said to it so far."""

    def __init__(self, panel, target, instances):
        self.title = panel["title"]
        self.zero_is_right = self.title in ZERO_IS_RIGHT
        self.legend = target["legendFormat"]
        self.text = target["expr"]
        values = {
            "$__rate_interval": RATE_INTERVAL,
            "$__range": RANGE,
            # As Grafana writes the choice All of a variable.
            "$instance": "(%s)"
            % "|".join(re.escape(instance) for instance in instances).replace("\\", "\\\\"),
        }
        self.query = self.text
        for name, value in values.items():
            self.query = self.query.replace(name, value)
        self.best = None  # The largest finite value, with its labels.

    def ask(self, prometheus):
        for labels, value in prometheus.query(self.query):
            if math.isfinite(value) and (self.best is None or value > self.best[1]):
                self.best = labels, value

    def problem(self):
        """None if all is well."""
        if "$" in self.query:
            return "a variable that this test does not know"
        if self.best is None:
            return "no data"
        missing = set(re.findall(r"{{\s*(\w+)\s*}}", self.legend)) - set(self.best[0])
        if missing:
            return "no label %s for the legend" % ", ".join(sorted(missing))
        if self.zero_is_right:
            return None if self.best[1] == 0 else "%g instead of 0" % self.best[1]
        return None if self.best[1] > 0 else "never above 0"

    def __str__(self):
        shown = self.legend
        for label, value in self.best[0].items() if self.best else ():
            shown = re.sub(r"{{\s*%s\s*}}" % re.escape(label), value, shown)
        name = self.title if self.title == shown else "%s: %s" % (self.title, shown)
        return name + (" = %.4g" % self.best[1] if self.best else "")


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


def panels_of(dashboard):
    """Rows have panels of their own when they are collapsed."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def check_dashboard(dashboard, results):
    """What needs no Prometheus: things that Grafana does not complain of and a reader misses."""
    panels = list(panels_of(dashboard))
    problems = []
    for panel in panels:
        if not panel.get("description"):
            problems.append("%s has no description" % panel["title"])
        if not panel["fieldConfig"]["defaults"].get("unit"):
            problems.append("%s has no unit" % panel["title"])
        if not panel.get("targets"):
            problems.append("%s has no expression" % panel["title"])
    results.add("every panel has expression, description and unit", "; ".join(problems))

    ids = [panel["id"] for panel in dashboard["panels"]]
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in dashboard["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    wrong = (
        len(set(ids)) != len(ids) or len(set(cells)) != len(cells) or max(x for x, _ in cells) >= 24
    )
    results.add(
        "panels have ids of their own and do not overlap", wrong and "two share an id or a place"
    )

    # A uid that one Grafana gave to its data source means nothing in another.
    uids = re.findall(r'"datasource": *\{[^}]*"uid": *"([^"]*)"', json.dumps(dashboard))
    others = sorted(set(uids) - {"${datasource}"})
    results.add(
        "every panel asks the data source that the variable names",
        ", ".join(others) or not uids and "none",
    )


def write_configuration(folder, target):
    """deploy/prometheus as it is, but for the target and a shorter interval."""
    text = (PROMETHEUS_FOLDER / "prometheus.yml").read_text()
    for pattern, value in (
        (r"127\.0\.0\.1:9464", target),
        (r"(?<=scrape_interval: )\w+", SCRAPE_INTERVAL),
        (r"(?<=evaluation_interval: )\w+", "1s"),
    ):
        text, count = re.subn(pattern, value, text)
        if count != 1:
            raise Failure(
                "prometheus.yml has %d times what the test replaces, %s, instead of once"
                % (count, pattern)
            )
    (folder / "prometheus.yml").write_text(text)
    for rules in PROMETHEUS_FOLDER.glob("*.rules.yml"):
        shutil.copy(rules, folder)
    return folder / "prometheus.yml"


def instances_of(dashboard, prometheus):
    """What the variable `instance` offers."""
    variable = next(v for v in dashboard["templating"]["list"] if v["name"] == "instance")
    metric, label = re.fullmatch(
        r"label_values\((\w+), (\w+)\)", variable["query"]["query"]
    ).groups()
    return prometheus.get("label/%s/values" % label, **{"match[]": metric})


def await_true(what, seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failure("%s: not within %d s" % (what, seconds))
        time.sleep(0.2)


def check_rules(prometheus, results):
    """Unit tests bring their own series. Here: those that the rules ask for are a real server's."""

    def rules():
        return [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]

    await_true(
        "Prometheus evaluates the alert rules",
        STARTUP_S,
        lambda: rules() and all(rule["health"] != "unknown" for rule in rules()),
    )
    for rule in rules():
        selectors = re.findall(r"\b(?:spillway_\w+|process_\w+|up)\b(?:\{[^}]*\})?", rule["query"])
        missing = [selector for selector in selectors if not prometheus.query(selector)]
        problem = (
            rule.get("lastError")
            or not selectors
            and "asks for no series"
            or "; ".join("no series for " + selector for selector in missing)
        )
        results.add("alert %s asks for series that there are" % rule["name"], problem)


def test_live(arguments, folder, dashboard, results):
    server_command = [
        arguments.spillwayd,
        "--listen",
        "127.0.0.1:0",
        "--metrics-listen",
        "127.0.0.1:0",
        # Room for one large graph (3.1 MiB) with its answer and some small ones, and for one in the queue.
        "--workers",
        "1",
        "--max-queued-requests",
        "1",
        "--max-inflight-bytes",
        "8MiB",
        "--max-graph-bytes",
        "4MiB",
        "--max-unary-bytes",
        "4MiB",
    ]
    with Program(folder, "spillwayd", server_command) as server:
        address = server.await_match(r"^spillwayd \S+ listening on (\S+)\n")
        target = server.await_match(r"^metrics on http://(\S+)/metrics\n")
        with Program(
            folder,
            "prometheus",
            [
                arguments.prometheus,
                "--config.file=%s" % write_configuration(folder, target),
                "--storage.tsdb.path=%s" % (folder / "data"),
                "--web.listen-address=127.0.0.1:0",
            ],
        ) as process:
            prometheus = Prometheus(process.await_match(r'msg="Listening on" address=(\S+)'))
            # It answers 503 before.
            process.await_match(r'msg="(Server is ready to receive web requests\.)"')
            # The first scrape comes before the load, so that no increase is missed.
            await_true(
                "Prometheus scrapes spillwayd",
                STARTUP_S,
                lambda: prometheus.query('up{job="spillway"} == 1'),
            )
            instances = instances_of(dashboard, prometheus)
            results.add(
                "the variable instance offers the server",
                instances != [target] and "%s instead of %s" % (instances, target),
            )
            expressions = [
                Expression(panel, t, instances)
                for panel in panels_of(dashboard)
                for t in panel["targets"]
            ]
            with Load(folder, arguments.spillway, address) as load:
                deadline = time.monotonic() + arguments.seconds
                while not load.problems and time.monotonic() < deadline:
                    for expression in expressions:
                        if expression.problem() or expression.zero_is_right:
                            expression.ask(prometheus)
                    if not any(expression.problem() for expression in expressions):
                        break
                    time.sleep(0.1)
            for expression in expressions:
                results.add(str(expression), expression.problem())
            check_rules(prometheus, results)
            results.add(
                "the load ran as it should: exit codes %s" % json.dumps(load.codes),
                "; ".join(load.problems),
            )
        code = server.stop()
        results.add("spillwayd ends with exit code 0 after SIGTERM", code and "%d" % code)


def arguments_of(argv):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""Needs Prometheus, from PATH or from build/tools/bin, where deploy/install_deps.sh tests puts it;
without it, only what can be checked in the file is.

The last line is `N passed, N failed` or `N passed, N failed, N skipped`. Exit code 0: nothing
failed; 1: something did; 2: bad usage.""",
    )
    parser.add_argument(
        "--spillwayd", default=ROOT / "build/bin/spillwayd", help="the server [build/bin/spillwayd]"
    )
    parser.add_argument(
        "--spillway", default=ROOT / "build/bin/spillway", help="the client [build/bin/spillway]"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=40,
        help="how long the load may run until every expression has had data [40]",
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs and data")
    arguments = parser.parse_args(argv)
    path = os.pathsep.join((os.environ.get("PATH", ""), str(ROOT / "build/tools/bin")))
    arguments.prometheus = shutil.which("prometheus", path=path)
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
    dashboard = json.loads(DASHBOARD.read_text())
    check_dashboard(dashboard, results)
    if arguments.prometheus is None:
        print(
            "skipped: no prometheus here (deploy/install_deps.sh tests): "
            "the dashboard's expressions are not tested"
        )
        skipped = 1
    else:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="spillway-dashboard-"))
        try:
            test_live(arguments, folder, dashboard, results)
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
