"""Runs the cases of one graph, or the self-test, in a process of its own.

Reads a job (JSON) from standard input, and writes one line of JSON when a case begins and one when
it ends, so that the driver knows where a process died. Started by the driver; by hand:
  echo '{"folder": "tests/graphs/cond_v1", "sets": ["lb1"], "spillway": "build/bin/spillway"}' |
    python -m truth.worker
"""
import json
import os
import sys
import time
import traceback

from truth import cases, checks, graphs, live, rewrite, train

UNREWRITTEN = "unrewritten"


def _open_answers():
    """The pipe to the driver; what anything else prints to standard output goes to the log."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


class Reporter:
    """Writes the lines."""

    def __init__(self, stream):
        self.stream = stream

    def _write(self, **event):
        self.stream.write(json.dumps(event) + "\n")

    def skip(self, case, reason):
        self._write(event="end", case=case, skipped=reason, problems=[], notes=[], seconds=0)

    def run(self, case, function):
        """Runs function(result) and reports; an exception is a problem of the check `harness`."""
        self._write(event="start", case=case)
        began, result, answer = time.monotonic(), checks.Result(), None
        try:
            answer = function(result)
        except Exception:  # pylint: disable=broad-except
            result.problem("harness", traceback.format_exc())
        self._write(event="end", case=case, skipped=None, notes=result.notes,
                    problems=[list(p) for p in result.problems],
                    seconds=round(time.monotonic() - began, 2))
        return answer


def run_graph(job, reporter):
    """The unrewritten graph, then the sets of the job."""
    graph = graphs.Graph(job["folder"])
    rewriter = rewrite.SpillwayCommand(job["spillway"])
    base = None
    if graph.not_trained:
        reporter.skip("%s/training" % graph.name, graph.not_trained)
    else:
        base = reporter.run("%s/%s" % (graph.name, UNREWRITTEN),
                            lambda result: checks.baseline(graph, result))
    by_key = {c.key: c for c in cases.of_graph(graph, cases.ALL)}
    for key in job["sets"]:
        case = by_key[key]

        def function(result, case=case):
            if base is None and not graph.not_trained:
                result.problem("losses", "the unrewritten graph does not train as recorded here")
            if case.way == cases.LIVE:
                if base is not None:
                    editor = live.Package(job["library"])
                    checks.check_live_case(graph, case, rewriter, editor, base, result)
            else:
                checks.check_case(graph, case, rewriter, base, result)
        reporter.run(case.name, function)


def run_selftest(job, reporter):
    """The self-test."""
    from selftest import selftests  # pylint: disable=import-outside-toplevel
    known = selftests.all_tests()
    for name in job["sets"]:
        reporter.run("selftest/" + name, known[name])


def main():
    for key, value in train.ENVIRONMENT.items():
        os.environ[key] = value
    job = json.load(sys.stdin)
    reporter = Reporter(_open_answers())
    if job.get("selftest"):
        run_selftest(job, reporter)
    else:
        run_graph(job, reporter)


if __name__ == "__main__":
    main()
