#!/usr/bin/env python3
"""A rolling upgrade as deploy/UPGRADES.md describes it, and the way back: three replicas of the
release at which the API froze are replaced one by one by today's (SIGTERM, drain, start on the same
address) while clients of both versions call without a pause; then today's by the release's. No call
fails, and each answer equals that of the version that may have given it, in its own process.

    rolling_test.py [--today]

Takes half a minute, and builds the release first (build_release.sh: minutes, once). Without the
release, and with --today, both versions are today's. The last line is `N passed, N failed`."""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

import sides
from sides import GRAPHS, check, finish

REPLICAS = 3
# Of each version.
THREADS = 2
# As deploy/UPGRADES.md says: calls are taken for as long as clients need to see the health turn.
FLAGS = ("--drain-delay", "500ms")
# How long all replicas stay of one version. Besides, answers are waited for in each phase.
STEADY_S = 2
REQUESTS = [
    ("cond_v1", "rewrite", {"strategy": "scope"}),
    ("resnet50_tf1_b4", "rewrite", {"strategy": "level", "swapout_threshold": 100,
                                    "swapin_ahead": 10, "swapin_groupby": 10, "sync_mode": 0}),
    ("bert_base", "rewrite", {"strategy": "scope", "lb": 3}),  # In a stream.
    ("resnet50_tf1_b4", "rewrite", {"gpu_memory_bytes": 1 << 30, "planning_effort": "low"}),
    ("resnet50_tf1_b4", "simulate", {"gpu_memory_bytes": 1 << 30}),
]


def graph(name):
    return GRAPHS / name / "graph_shapes.pb"


def flags(options):
    return [part for name, value in options.items()
            for part in ("--" + name.replace("_", "-"), str(value))]


def answer_of(side, name, call, options, folder):
    """What this version gives in its own process."""
    out = folder / "out.pb"
    out.unlink(missing_ok=True)
    if call == "simulate":
        done = side.run(call, graph(name), "--json", *flags(options))
        return json.loads(done.stdout)["forecast"]["step_time_ns"]
    side.run(call, graph(name), "-o", out, "--quiet", *flags(options))
    return hashlib.sha256(out.read_bytes()).hexdigest()


class Caller:
    """A process of clients of one version."""

    def __init__(self, side, servers, requests):
        self.side = side
        environment = {**os.environ, "PYTHONPATH": str(side.package),
                       "SPILLWAY_LIBRARY": str(side.library)}
        self.process = subprocess.Popen(
            [sys.executable, str(sides.HERE / "rolling_client.py"), servers, str(THREADS),
             str(requests)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def enter(self, phase):
        self.process.stdin.write(phase + "\n")
        self.process.stdin.flush()

    def wait_for(self, phase):
        """Until a call has begun and ended in it."""
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the clients of %s are gone" % self.side.name)
            if line.strip() == phase:
                return

    def end(self):
        output, _ = self.process.communicate(timeout=sides.PATIENCE_S)
        return json.loads(output.splitlines()[-1])


class Rollout:
    def __init__(self, old, new, folder):
        self.old, self.new = old, new
        self.replicas = [old.server(*FLAGS) for _ in range(REPLICAS)]
        self.codes = []
        requests = folder / "requests.json"
        requests.write_text(json.dumps([
            {"graph": str(graph(name)), "call": call, "options": options}
            for name, call, options in REQUESTS]))
        servers = ",".join(replica.address for replica in self.replicas)
        self.callers = [Caller(side, servers, requests) for side in (old, new)]

    def enter(self, phase):
        for caller in self.callers:
            caller.enter(phase)

    def wait_for(self, phase):
        for caller in self.callers:
            caller.wait_for(phase)

    def stay(self, phase):
        """As it is."""
        self.enter(phase)
        time.sleep(STEADY_S)
        self.wait_for(phase)

    def replace(self, side, phase):
        """All replicas, one at a time: the next one only when this one serves."""
        for number, replica in enumerate(self.replicas):
            step = "%s %d" % (phase, number + 1)
            self.enter(step)
            self.codes.append(replica.stop())
            replica.program = side.build / "bin/spillwayd"
            replica.start()
            health = side.run("health", "--server", replica.address, "--timeout",
                              "%ds" % sides.PATIENCE_S)
            self.codes.append(health.returncode)
            self.wait_for(step)

    def run(self):
        self.stay("old")
        self.replace(self.new, "upgrade")
        self.stay("new")
        self.replace(self.old, "rollback")
        self.stay("old again")
        said = [caller.end() for caller in self.callers]
        self.codes += [replica.stop() for replica in self.replicas]
        return said

    def close(self):
        for caller in self.callers:
            caller.process.kill()
            caller.process.wait()
        for replica in self.replicas:
            replica.kill()


def judge(rollout, said, folder):
    names = {}  # Of versions, by request and answer.
    for which, request in enumerate(REQUESTS):
        for side in (rollout.old, rollout.new):
            names.setdefault((which, answer_of(side, *request, folder)), set()).add(side.name)
    changed = len(names) - len(REQUESTS)
    print("        of %d requests the versions answer %d otherwise" % (len(REQUESTS), changed))
    for caller, one in zip(rollout.callers, said):
        by_phase = collections.Counter()
        wrong = []
        for phase, which, answer, count in one["answers"]:
            by_phase[phase] += count
            may = names.get((which, answer), set())
            # Where all replicas are of one version, the answer is that version's.
            only = {"old": rollout.old, "old again": rollout.old, "new": rollout.new}.get(phase)
            if not may or (only is not None and only.name not in may):
                wrong.append("%d of request %d in phase %s" % (count, which, phase))
        print("        clients of %s: %s" % (caller.side.name, dict(by_phase)))
        check("%s's clients: no call fails" % caller.side.name, not one["problems"],
              "%d: %s" % (len(one["problems"]), "; ".join(one["problems"][:3])))
        check("%s's clients: each answer is that of a version that serves then" % caller.side.name,
              not wrong, "; ".join(wrong[:5]))
    check("every replica drains, and the one that follows serves", not any(rollout.codes),
          "exit codes %s" % rollout.codes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--today", action="store_true", help="both versions are today's")
    arguments = parser.parse_args()
    new = sides.today()
    then, why = (None, "--today") if arguments.today else sides.release()
    if then is None:
        print("        %s: both versions are today's" % why)
        then = sides.Side("the old", new.build, sides.ROOT)
    with sides.folder() as folder:
        rollout = Rollout(then, new, pathlib.Path(folder))
        try:
            said = rollout.run()
            judge(rollout, said, pathlib.Path(folder))
        finally:
            rollout.close()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
