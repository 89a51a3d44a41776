"""The load under which dashboards are tested: requests and job hooks of every outcome, each noted
with what its caller knows, metrics aside: how it ended, and the report that came."""

import concurrent.futures
import dataclasses
import http.server
import json
import pathlib
import re
import subprocess
import threading
import time

from prometheus_process import ROOT, Failure

GRAPHS = ROOT / "tests/graphs"
# Some MB: two at once are more than the server of the test admits.
LARGE = GRAPHS / "bert_base/graph_shapes.pb"
# Of some KB. A step of 50 examples takes 21.7 MiB, and 16.4 MiB with swaps.
SMALL = GRAPHS / "cond_v1/graph_shapes.pb"
# Without shapes: tensors of unknown size.
UNKNOWN = GRAPHS / "cond_v1/graph.pb"

# So small that the host memory of a few jobs is most of it.
NODE_MEMORY_BYTES = 32 << 20

# Exit codes of the program.
DONE, USAGE, BAD_GRAPH, SERVER, DOES_NOT_FIT = 0, 2, 3, 5, 8
# A hook's names for them.
FAILURES = {USAGE: "options", BAD_GRAPH: "graph", SERVER: "server", DOES_NOT_FIT: "memory"}


@dataclasses.dataclass
class Gpu:
    peak_before: int
    peak_after: int
    budget: int
    need: int  # The larger of need and peak after; None if unknown.


@dataclasses.dataclass
class Answer:
    """A request to the server, or a run of a hook, as its caller saw it."""

    method: str = "Rewrite"
    strategy: str = "none"
    code: str = "OK"
    reason: str = None  # Of an error.
    fault: str = None
    cached: bool = False
    report: dict = None
    # Of DOES_NOT_FIT: the smallest memory that would do / the budget.
    need_ratio: float = None
    seconds: float = 0
    bytes_in: int = 0
    bytes_out: int = 0
    # Of a hook.
    result: str = None
    failure: str = None

    @property
    def outcome(self):
        if self.report is not None:
            return self.report["outcome"].removeprefix("OUTCOME_").lower()
        return "does_not_fit" if self.reason == "does_not_fit" else None

    def total(self, field):
        return sum(int(device[field]) for device in self.report["devices"])

    @property
    def swap_bytes(self):
        return self.total("swap_out_bytes") + self.total("swap_in_bytes")

    @property
    def bytes_made_again(self):
        return int(self.report.get("recomputation", {}).get("bytes", 0))

    @property
    def nodes_added(self):
        return int(self.report["node_count_after"]) - int(self.report["node_count_before"])

    @property
    def after(self):
        return self.report.get("forecast_after") or self.report.get("forecast_before")

    @property
    def host_bytes(self):
        return int(self.after["host_peak_bytes"])

    @property
    def slowdown(self):
        """Step after / step before, with unlimited memory if that was simulated; or None."""
        fits = [int(fit.get("full_speed_step_time_ns", 0)) for fit in self.report["fits"]]
        before = max(fits, default=0) or int(self.report["forecast_before"].get("step_time_ns", 0))
        after = int(self.after.get("step_time_ns", 0))
        return after / before if before and after else None

    @property
    def gpu(self):
        """The test's graphs have one."""
        (before,) = self.report["forecast_before"]["devices"]
        (after,) = self.after["devices"]
        fits = self.report["fits"]
        peak = int(after["peak_bytes"])
        return Gpu(
            int(before["peak_bytes"]),
            peak,
            int(fits[0]["budget_bytes"] if fits else before["budget_bytes"]),
            max(peak, int(fits[0].get("need_bytes", 0))) if fits else peak,
        )

    @property
    def machine(self):
        if self.report is None:
            return "p100_pcie"  # The default: only answers have another.
        if "hardware" not in self.report:
            return "none"
        return self.report["hardware"]["hardware"].get("preset") or "custom"


class TextFile:
    """Serves a text file over HTTP, and the memory of the node, as node exporter does."""

    def __init__(self, path):
        def answer(handler):
            text = path.read_text() if path.exists() else ""
            text += "node_memory_MemTotal_bytes %d\n" % NODE_MEMORY_BYTES
            # Each exporter has those of its own process, not of a server.
            for name in ("resident_memory_bytes", "cpu_seconds_total", "open_fds", "max_fds"):
                text += "process_%s 1e15\n" % name
            text += "process_start_time_seconds 1\n"
            handler.send_response(200)
            handler.send_header("Content-Type", "text/plain; version=0.0.4")
            handler.end_headers()
            handler.wfile.write(text.encode())

        handler = type(
            "Handler",
            (http.server.BaseHTTPRequestHandler,),
            {"do_GET": answer, "log_message": lambda *_: None},
        )
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Load:
    def __init__(self, folder, spillway, server, textfile):
        self.folder, self.spillway, self.server, self.textfile = folder, spillway, server, textfile
        self.answers = []  # Of the server.
        self.runs = []  # Of hooks.
        self.numbers = iter(range(1000))
        self.rewritten = folder / "rewritten.pb"
        self.rubbish = folder / "rubbish.pb"
        self.rubbish.write_bytes(b"This is no graph.")
        # A GraphDef with a node `a` of op `Abs` that reads a node `b`.
        self.dangling = folder / "dangling.pb"
        self.dangling.write_bytes(b"\x0a\x0b\x0a\x01a\x12\x03Abs\x1a\x01b")
        # By a strategy that also swaps in a graph that fits.
        self.execute(
            ["rewrite", "--strategy", "scope", SMALL, "-o", self.rewritten, "--quiet"], [DONE]
        )

    def execute(self, arguments, expected):
        """(exit code, standard error, seconds)."""
        begin = time.monotonic()
        done = subprocess.run(
            [self.spillway] + arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode not in expected:
            raise Failure(
                "exit code %d instead of %s of spillway %s: %s"
                % (done.returncode, expected, " ".join(map(str, arguments)), done.stderr)
            )
        return done.returncode, done.stderr, time.monotonic() - begin

    def ask(self, graph, arguments=(), expected=(DONE,), command="rewrite", error=None, **known):
        """A request to the server; `error` is (code, reason, fault) of one that fails."""
        number = next(self.numbers)
        output, report = self.folder / ("%d.pb" % number), self.folder / ("%d.json" % number)
        changes = command in ("rewrite", "strip")
        files = ["-o", output, "--report", report, "--quiet"] if changes else []
        code, stderr, seconds = self.execute(
            [command, graph, "--server", self.server, "--retries", "0", "--timeout", "60s"]
            + files
            + list(arguments),
            expected,
        )
        answer = Answer(seconds=seconds, bytes_in=pathlib.Path(graph).stat().st_size, **known)
        if code == SERVER:
            error = ("RESOURCE_EXHAUSTED", "overloaded", "capacity")
        if code != DONE:
            answer.code, answer.reason, answer.fault = error
            answer.need_ratio = need_ratio_of(stderr, arguments)
        elif files:
            answer.report = json.loads(report.read_text())
            answer.bytes_out = output.stat().st_size
        self.answers.append(answer)

    def run_hook(
        self, graph, arguments=(), expected=DONE, result="rewritten", closed=False, remote=False
    ):
        """`expected`: the exit code that the rewrite would have alone. `closed`: --fail-closed.
        `remote`: the server rewrites, and counts it, too."""
        report = self.folder / ("hook%d.json" % next(self.numbers))
        server = ["--server", self.server, "--retries", "0"] if remote else []
        _, stderr, seconds = self.execute(
            ["run", "--graph", graph, "--metrics-textfile", self.textfile]
            + ["--cache-dir", self.folder / "cache", "--report", report]
            + (["--fail-closed"] if closed else [])
            + server
            + list(arguments)
            + ["--", "/bin/true"],
            [expected if closed else DONE],
        )
        run = Answer(result=result, seconds=seconds, cached=result == "cached")
        if expected != DONE:
            run.result = "failed_closed" if closed else "failed_open"
            run.failure = FAILURES[expected]
            run.reason = "does_not_fit" if expected == DOES_NOT_FIT else None
            run.need_ratio = need_ratio_of(stderr, arguments)
        else:
            run.report = json.loads(report.read_text())
        run.strategy = strategy_of(arguments)
        self.runs.append(run)
        if remote:
            self.answers.append(
                dataclasses.replace(
                    run,
                    bytes_in=graph.stat().st_size,
                    bytes_out=int(run.report["graph_bytes_after"]),
                )
            )

    def warm_up(self):
        """A counter that appears above zero shows no increase: a first run, which is not noted."""
        self.run_hook(UNKNOWN, ["--batch-size", "50"], result="unchanged")
        self.runs.clear()

    def play(self):
        batch = ["--batch-size", "50"]

        def memory(text, *more):
            return [*batch, "--kernel-memory", "off", "--gpu-memory-bytes", text, *more]

        unfit = ("FAILED_PRECONDITION", "does_not_fit", "caller")
        # Swapping, by each strategy; the same again comes from the cache.
        for text in ("20MiB", "20MiB", "21MiB", "19MiB"):
            cached = any(a.strategy == "budget" for a in self.answers) and text == "20MiB"
            self.ask(SMALL, memory(text), strategy="budget", cached=cached)
        for text in ("20MiB", "21MiB"):
            self.ask(SMALL, memory(text, "--strategy", "level"), strategy="level")
        self.ask(UNKNOWN, batch + ["--strategy", "scope"], strategy="scope")
        # Not swapping, on several machines.
        for preset in ("p100_pcie", "v100_pcie", "v100_pcie"):
            cached = any(a.machine == preset == "v100_pcie" for a in self.answers)
            self.ask(SMALL, batch + ["--hardware", preset], strategy="budget", cached=cached)
        # Fits with nothing.
        for text in ("4MiB", "10MiB", "16MiB"):
            self.ask(SMALL, memory(text), [DOES_NOT_FIT], error=unfit, strategy="budget")
        self.ask(
            SMALL,
            memory("10MiB", "--strategy", "level"),
            [DOES_NOT_FIT],
            error=unfit,
            strategy="level",
        )
        # Callers' mistakes.
        bad_graph = ("INVALID_ARGUMENT", "dangling_input", "caller")
        for _ in range(2):
            self.ask(self.dangling, batch, [BAD_GRAPH], error=bad_graph, strategy="budget")
        bad_name = ("INVALID_ARGUMENT", "name_matches_nothing", "caller")
        self.ask(SMALL, ["--targets", "none"], [USAGE], error=bad_name, strategy="budget")
        # Requests without plans.
        self.ask(self.rewritten, batch, strategy="budget")
        self.ask(self.rewritten, command="strip", strategy="strip")
        self.ask(SMALL, batch, command="inspect", method="Inspect")
        self.ask(SMALL, batch, command="simulate", method="Simulate")
        self.play_hooks(memory, batch)
        self.overload()

    def play_hooks(self, memory, batch):
        self.run_hook(SMALL, memory("20MiB"))
        self.run_hook(SMALL, memory("20MiB"), result="cached")
        self.run_hook(SMALL, memory("21MiB", "--strategy", "level"))
        self.run_hook(SMALL, memory("20500KiB"), remote=True)
        self.run_hook(SMALL, batch, result="unchanged")
        self.run_hook(SMALL, memory("64MiB"), result="unchanged")
        self.run_hook(SMALL, memory("4MiB"), DOES_NOT_FIT)
        self.run_hook(SMALL, memory("10MiB"), DOES_NOT_FIT, closed=True)
        self.run_hook(self.rubbish, batch, BAD_GRAPH)
        self.run_hook(SMALL, ["--targets", "none"], USAGE)
        # No server listens there: a server's port has to be above 0 for another reason.
        nowhere = ["--server", "127.0.0.1:1", "--retries", "0"]
        self.run_hook(SMALL, batch + nowhere, SERVER)

    def overload(self):
        """Graphs that are searched for long, more at once than the server takes. Never twice the
        same, which the server would have kept."""
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in [
                pool.submit(
                    self.ask,
                    LARGE,
                    ["--batch-size", "8", "--gpu-memory-bytes", str((3300 << 20) + 4096 * number)]
                    + ["--decision-detail", "none"],
                    [DONE, SERVER],
                    method="StreamRewrite",
                    strategy="budget",
                )
                for number in range(4)
            ]:
                done.result()


def strategy_of(arguments):
    return arguments[arguments.index("--strategy") + 1] if "--strategy" in arguments else "budget"


def need_ratio_of(message, arguments):
    """Of an error of DOES_NOT_FIT, which names the memory of a GPU that would do."""
    needed = re.search(r"\((\d+) bytes\) of GPU memory", message)
    if needed is None:
        return None
    text = arguments[arguments.index("--gpu-memory-bytes") + 1]
    return int(needed.group(1)) / (int(text.removesuffix("MiB")) << 20)
