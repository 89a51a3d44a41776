"""A real spillwayd of this tree's build (or of the one in $SPILLWAY_BUILD), graphs and options: for
measure.py and replay.py. The Python package calls: it needs no gRPC in Python."""

import gzip
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SPILLWAY_BUILD", ROOT / "build")).resolve()
GRAPHS = ROOT / "tests/graphs"
STOP_S = 60  # A server ends within --drain-timeout.

os.environ.setdefault("SPILLWAY_LIBRARY", str(BUILD / "lib/libspillway.so.0"))
os.environ["no_proxy"] = os.environ["no_grpc_proxy"] = "127.0.0.1"
sys.path.insert(0, str(ROOT / "client_lib/python"))

import spillway  # noqa: E402  (it is found only now)


class Server:
    """On free ports of this machine; ended on leaving the `with` block."""

    def __init__(self, *flags):
        self.process = subprocess.Popen(
            [str(BUILD / "bin/spillwayd"), "--listen", "127.0.0.1:0", "--metrics-listen",
             "127.0.0.1:0", "--log-level", "off", *flags], stdout=subprocess.PIPE, text=True)
        lines = [self.process.stdout.readline() for _ in range(2)]
        if not lines[1]:
            self.process.wait()
            raise RuntimeError("spillwayd does not start: " + " ".join(flags))
        self.address = lines[0].split()[-1]
        self._metrics = lines[1].split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()

    def cpu_ns(self):
        """Processor time so far, of all threads: of the clock that Linux keeps of each process."""
        return time.clock_gettime_ns((~self.process.pid << 3) | 2)

    def stretch(self):
        """Of the thread that has run most, a worker: time on the clock, while it could have run, by
        processor time. Above 1 where others use the machine."""
        times = []
        for path in pathlib.Path("/proc/%d/task" % self.process.pid).glob("*/schedstat"):
            times.append([int(text) for text in path.read_text().split()[:2]])  # Ran, waited to run.
        ran, waited = max(times)
        return (ran + waited) / ran

    def metrics(self):
        """The sum of each metric over its labels, and each series by its whole name."""
        with urllib.request.urlopen(self._metrics, timeout=STOP_S) as scrape:
            text = scrape.read().decode()
        found = {}
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            series, value = line.rsplit(" ", 1)
            name = series.split("{", 1)[0]
            found[series] = float(value)
            if name != series:
                found[name] = found.get(name, 0.0) + float(value)
        return found


def read_graph(name, folder):
    """A graph of tests/graphs by its name, or a file in `folder`; synthetic_NODES.pb is made there."""
    if name.endswith(".pb"):
        path = folder / name
        synthetic = re.fullmatch(r"synthetic_(\d+)\.pb", name)
        if not path.exists() and synthetic:
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run([str(BUILD / "tests/benchmarks/scale_benchmark"), "--write", str(path),
                            synthetic.group(1)], check=True)
        return path.read_bytes()
    path = GRAPHS / name / "graph.pb"
    return path.read_bytes() if path.exists() else gzip.decompress(
        path.with_name("graph.pb.gz").read_bytes())


def options_of(kind, graph):
    """The keywords of spillway.rewrite for a kind of the mix: `memory_share` of what a step takes is
    the memory of each GPU."""
    options = dict(kind["options"])
    if "memory_share" in kind:
        sizes = {name: options[name] for name in ("batch_size",) if name in options}
        forecast = spillway.simulate(graph, no_budget=True, **sizes).forecast
        peak = max(int(device.peak_bytes) for device in forecast.devices if "CPU" not in device.device)
        options["gpu_memory_bytes"] = int(kind["memory_share"] * peak)
    return options
