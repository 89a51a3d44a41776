"""Rewriting by the command line `spillway`.

A rewriter, for the checks, is anything with the methods of SpillwayCommand. The self-test has
another one, made by hand.
"""
import json
import pathlib
import subprocess
import tempfile

TIMEOUT_S = 120


class RewriteFailed(Exception):
    """The rewriter gave no answer; the message is its own."""


def flags(options):
    """Command line flags for {option name as in options.proto: value}. A list repeats its flag, its
    items' commas escaped; a dict is repeated as NAME=DIM,DIM; True is a bare flag, and False and
    None are left out."""
    arguments = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(flag)
        elif value is False or value is None:
            continue
        elif isinstance(value, dict):
            for key, dims in value.items():
                arguments += [flag, "%s=%s" % (key, ",".join(map(str, dims)))]
        elif isinstance(value, (list, tuple)):
            for item in value:
                arguments += [flag, str(item).replace(",", "\\,")]
        else:
            arguments += [flag, str(value)]
    return arguments


class SpillwayCommand:
    """The program under test."""

    def __init__(self, program):
        self.program = str(program)

    def rewrite(self, graph_bytes, strategy, options):
        """(rewritten bytes, report as a dict)."""
        return self._run(graph_bytes, ["rewrite"], ["--strategy", strategy] + flags(options))

    def inlined(self, graph_bytes):
        """The bytes with calls inlined, and no swap: none is as far as that."""
        return self._run(graph_bytes, ["rewrite"], flags({
            "strategy": "level", "swapout_threshold": 2**30, "swapin_ahead": 1, "swapin_groupby": 0,
            "sync_mode": 0, "simulation": "off", "inline_calls": "always"}), report=False)[0]

    def strip(self, graph_bytes):
        """The bytes as they were before the rewrite."""
        return self._run(graph_bytes, ["strip"], [], report=False)[0]

    def simulate(self, graph_bytes, options):
        """The answer of `simulate` as a dict, whether it fits or not."""
        command = [self.program, "simulate", "-", "--json"] + flags(options)
        done = subprocess.run(command, input=graph_bytes, capture_output=True, timeout=TIMEOUT_S,
                              check=False)
        if not done.stdout.startswith(b"{"):
            raise RewriteFailed("exit code %d of %s: %s" % (
                done.returncode, " ".join(command[1:]), done.stderr.decode(errors="replace")))
        return json.loads(done.stdout)

    def _run(self, graph_bytes, verb, arguments, report=True):
        with tempfile.TemporaryDirectory(prefix="spillway-truth-") as folder:
            folder = pathlib.Path(folder)
            source, target, report_path = folder / "in.pb", folder / "out.pb", folder / "report.json"
            source.write_bytes(graph_bytes)
            command = [self.program] + verb + [str(source), "-o", str(target)]
            if report:
                command += ["--report", str(report_path)]
            command += arguments
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                                      timeout=TIMEOUT_S, check=False)
            except subprocess.TimeoutExpired:
                raise RewriteFailed("no answer in %d s: %s" % (TIMEOUT_S, " ".join(command)))
            if done.returncode not in (0, 9):  # 9: the graph is written, but not all is known of it.
                raise RewriteFailed("exit code %d of %s: %s" % (
                    done.returncode, " ".join(["spillway"] + verb + arguments),
                    (done.stderr or done.stdout).decode(errors="replace").strip()[-1000:]))
            if not target.exists():
                raise RewriteFailed("exit code 0, but no graph was written")
            parsed = {}
            if report:
                if not report_path.exists():
                    raise RewriteFailed("exit code 0, but no report was written")
                parsed = json.loads(report_path.read_text())
            return target.read_bytes(), parsed
