"""Starts workers, watches them and reports their findings.

A worker that dies or hangs costs the case it was in, and the cases after it go to a new one.
"""
import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
WORKER = [sys.executable, "-m", "truth.worker"]


class Outcome:
    """One case, done."""

    def __init__(self, case, problems=(), notes=(), seconds=0.0, skipped=None):
        self.case = case
        self.problems = [tuple(p) for p in problems]
        self.notes = list(notes)
        self.seconds = seconds
        self.skipped = skipped

    @property
    def passed(self):
        return not self.problems and self.skipped is None


class Job:
    """Cases for one worker: `description` is its job without the list of sets, `prefix` what its
    cases are called before the slash. `first` is a case that every worker of the job begins with."""

    def __init__(self, prefix, description, sets, first=None):
        self.prefix = prefix
        self.description = description
        self.sets = list(sets)
        self.first = first

    def __len__(self):
        return len(self.sets) + (1 if self.first else 0)


def run_job(job, silence_s, report, command=None):
    """Runs a job to its end, calling report(Outcome) for each case. `silence_s`: a worker that
    says nothing for so long is ended."""
    waiting = list(job.sets)
    said = set()  # cases reported
    while True:
        ended = _run_worker(job, waiting, silence_s, said, report, command or WORKER)
        waiting = [s for s in waiting if "%s/%s" % (job.prefix, s) not in said]
        if ended.clean or not waiting:
            for name in waiting:
                report(Outcome("%s/%s" % (job.prefix, name),
                               [("harness", "the worker ended without running it")]))
            return
        if ended.case == job.first or ended.case is None:
            # Nothing can run in a worker that dies before its first case.
            for name in waiting:
                report(Outcome("%s/%s" % (job.prefix, name),
                               [("harness", "the worker died before it: " + ended.why)]))
            return


class _Ended:
    """How a worker ended: `case` is the one it was in."""

    def __init__(self, clean, case, why):
        self.clean = clean
        self.case = case
        self.why = why


def _run_worker(job, sets, silence_s, said, report, command):
    environment = dict(os.environ, PYTHONPATH=str(HERE), PYTHONUNBUFFERED="1")
    with tempfile.TemporaryFile() as log:
        worker = subprocess.Popen(command, cwd=os.getcwd(), env=environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=log)
        lines = queue.Queue()
        threading.Thread(target=_pump, args=(worker.stdout, lines), daemon=True).start()
        try:
            worker.stdin.write(json.dumps(dict(job.description, sets=sets)).encode())
            worker.stdin.close()
        except BrokenPipeError:
            pass
        current, why = None, None
        while True:
            try:
                line = lines.get(timeout=silence_s)
            except queue.Empty:
                why = "nothing for %d s" % silence_s
                worker.kill()
                break
            if line is None:
                break
            event = json.loads(line)
            if event["event"] == "start":
                current = event["case"]
                continue
            current = None
            if event["case"] not in said:  # the first case of a second worker is said already
                said.add(event["case"])
                report(Outcome(event["case"], event["problems"], event["notes"], event["seconds"],
                               event["skipped"]))
        code = worker.wait()
        if why is None and code != 0:
            why = "exit code %d" % code
        if why is None:
            return _Ended(True, None, "")
        log.seek(0)
        tail = log.read().decode(errors="replace")[-2000:].strip()
        if current is not None and current not in said:
            said.add(current)
            report(Outcome(current, [("harness", "the process died here (%s): %s" % (why, tail))]))
        return _Ended(False, current, "%s: %s" % (why, tail))


def _pump(stream, lines):
    for line in stream:
        lines.put(line)
    lines.put(None)


class Progress:
    """Prints a line per case and one in between that says how far we are."""

    def __init__(self, total, every_s=20, stream=sys.stdout):
        self.total = total
        self.every_s = every_s
        self.stream = stream
        self.passed = self.failed = self.skipped = 0
        self.began = self.last = time.monotonic()
        self.lock = threading.Lock()

    def __call__(self, outcome):
        with self.lock:
            if outcome.skipped is not None:
                self.skipped += 1
                self._print("skip  %s: %s" % (outcome.case, outcome.skipped))
            elif outcome.passed:
                self.passed += 1
                self._print("ok    %-34s %6.1f s  %s" % (outcome.case, outcome.seconds,
                                                        "; ".join(outcome.notes)))
            else:
                self.failed += 1
                self._print("FAIL  %-34s %6.1f s  %s" % (outcome.case, outcome.seconds,
                                                        "; ".join(outcome.notes)))
                for check, message in outcome.problems:
                    self._print("      %s: %s" % (check, message.replace("\n", "\n        ")))
            if time.monotonic() - self.last > self.every_s:
                self.last = time.monotonic()
                self._print("      %d of %d done, %d failed, %.0f s" % (
                    self.passed + self.failed + self.skipped, self.total, self.failed,
                    self.last - self.began))

    def _print(self, text):
        print(text, file=self.stream, flush=True)

    def close(self):
        """The closing line; returns whether nothing failed."""
        self._print("%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped))
        return self.failed == 0


def run_all(jobs, workers, silence_s, report):
    """Runs the jobs, `workers` at a time, in the order given."""
    waiting = queue.Queue()
    for job in jobs:
        waiting.put(job)

    def work():
        while True:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            run_job(job, silence_s, report)
    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
