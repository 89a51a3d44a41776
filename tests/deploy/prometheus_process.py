"""A Prometheus of a test's own, and its answers; and how a test runs programs beside it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMETHEUS_FOLDER = ROOT / "deploy/prometheus"
STARTUP_S = 20
SCRAPE_INTERVAL = "500ms"


class Failure(Exception):
    """The test cannot go on; the text says why."""


def await_true(what, seconds, condition):
    """What `condition` returns, once that is true."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Failure("%s: not within %d s" % (what, seconds))
        time.sleep(0.1)


def find_prometheus():
    """From PATH, or where deploy/install_deps.sh tests puts it; None without one."""
    path = os.pathsep.join((os.environ.get("PATH", ""), str(ROOT / "build/tools/bin")))
    return shutil.which("prometheus", path=path)


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
        """The first group of `pattern` in its output."""
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

    def query(self, expression, at=None):
        """A list of (labels, value), at a time in milliseconds since the epoch, or now."""
        when = {} if at is None else {"time": "%.3f" % (at / 1000)}
        result = self.get("query", query=expression, **when)["result"]
        return [(series["metric"], float(series["value"][1])) for series in result]

    def query_range(self, expression, start, end, step_ms=500):
        """A list of (labels, [(time, value)])."""
        result = self.get(
            "query_range",
            query=expression,
            start="%.3f" % (start / 1000),
            end="%.3f" % (end / 1000),
            step="%.3f" % (step_ms / 1000),
        )["result"]
        return [
            (series["metric"], [(int(t * 1000), float(v)) for t, v in series["values"]])
            for series in result
        ]

    def scrape_times(self, job):
        """Of the last ten minutes, in milliseconds since the epoch."""
        result = self.get("query", query='up{job="%s"}[10m]' % job)["result"]
        return [round(float(t) * 1000) for t, _ in result[0]["values"]] if result else []


def write_configuration(folder, service, node):
    """deploy/prometheus as it is, but for the target and a shorter interval, and with a job `node`
    as for node exporter."""
    text = (PROMETHEUS_FOLDER / "prometheus.yml").read_text()
    for pattern, value in (
        (r"127\.0\.0\.1:9464", service),
        (r"(?<=scrape_interval: )\w+", SCRAPE_INTERVAL),
        (r"(?<=evaluation_interval: )\w+", SCRAPE_INTERVAL),
    ):
        text, count = re.subn(pattern, value, text)
        if count != 1:
            raise Failure(
                "prometheus.yml has %d times what the test replaces, %s, instead of once"
                % (count, pattern)
            )
    text += '  - job_name: node\n    static_configs:\n      - targets: ["%s"]\n' % node
    (folder / "prometheus.yml").write_text(text)
    for rules in PROMETHEUS_FOLDER.glob("*.rules.yml"):
        shutil.copy(rules, folder)
    return folder / "prometheus.yml"


def start_prometheus(folder, program, service, node):
    """As a Program, and its Prometheus."""
    process = Program(
        folder,
        "prometheus",
        [
            program,
            "--config.file=%s" % write_configuration(folder, service, node),
            "--storage.tsdb.path=%s" % (folder / "data"),
            "--web.listen-address=127.0.0.1:0",
        ],
    )
    try:
        prometheus = Prometheus(process.await_match(r'msg="Listening on" address=(\S+)'))
        # It answers 503 before.
        process.await_match(r'msg="(Server is ready to receive web requests\.)"')
    except Failure:
        process.__exit__()
        raise
    return process, prometheus
