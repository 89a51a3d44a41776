#!/usr/bin/env python3
"""However `spillway` fails, a job under a hook of deploy/ trains with its own graph: each option of
`spillway run`, from its help, and each variable of a hook, wrong, empty and of a newer version; a
`spillway` that is missing, crashes or is older; line breaks in text that becomes a line of a
protocol."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import checks

try:
    import manifests
except ImportError as error:
    print("skipped: no Python module %s here: the hooks are not tested" % error.name)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROLOG = ROOT / "deploy/slurm/task_prolog.sh"
BATCH = ROOT / "deploy/slurm/train.sbatch"
SPILLWAY = ROOT / "build/bin/spillway"
PATIENCE_S = 60
# Replacements of `spillway` that a hook may find.
BROKEN = {
    "missing": None,
    "crashes": "kill -SEGV $$",
    "ends in the middle": "echo 'export SPILLWAY_REPORT=/half'; exit 1",
    "says nothing": "exit 0",
    "is older": "echo 'spillway: not expected: --recompute [USAGE]' >&2; exit 2",
    "is of another system": "\0",
}
WRONG = ("nonsense", "-1", "1e999", "of_a_newer_version", "a\tb", "' \" $(exit 1) `exit 1`", " ", "\x1b[31m")


class Node:
    """A folder with the programs in a job's PATH, and a graph that stays unchanged."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.graph = self.folder / "graph.pb"
        self.graph.write_bytes(b"no graph")

    def install(self, name, script):
        path = self.bin / name
        path.unlink(missing_ok=True)
        if script is SPILLWAY:
            path.symlink_to(SPILLWAY)
        elif script is not None:
            path.write_bytes(script.encode() if "\0" in script else ("#!/bin/sh\n%s\n" % script).encode())
            path.chmod(0o755)

    def run(self, command, **variables):
        environment = {"PATH": "%s:/usr/bin:/bin" % self.bin, "HOME": str(self.folder),
                       "SPILLWAY_CACHE_DIR": str(self.folder / "cache"), **variables}
        return subprocess.run(command, env=environment, cwd=self.folder, text=True, check=False,
                              capture_output=True, timeout=PATIENCE_S)


def prolog(node, **variables):
    return node.run(["sh", PROLOG], **{"SPILLWAY_JOB_GRAPH": str(node.graph), **variables})


def exports(done):
    """What Slurm makes of the TaskProlog's lines; None if one is none of its protocol."""
    found = {}
    for line in done.stdout.split("\n")[:-1]:
        word, _, rest = line.partition(" ")
        name, equals, value = rest.partition("=")
        if word not in ("export", "unset") or not re.fullmatch(
                r"SPILLWAY_\w+|TF_GPU_HOST_MEM_LIMIT_IN_MB|TF_CUDNN_WORKSPACE_LIMIT_IN_MB", name):
            return None
        if equals:
            found[name] = value
    return found if done.returncode == 0 else None


def check_open(name, node, done):
    found = exports(done)
    checks.check(name, found is not None and found.get("SPILLWAY_GRAPH") == str(node.graph),
                 "exit %d, %r, %r" % (done.returncode, done.stdout, done.stderr))


def test_prolog(node):
    for what, script in BROKEN.items():
        node.install("spillway", script)
        check_open("TaskProlog: spillway %s" % what, node, prolog(node))
    node.install("spillway", SPILLWAY)
    names = set(re.findall(r"\$\{?((?:SPILLWAY|SLURM|TF)_\w+)", PROLOG.read_text()))
    names |= set(re.findall(r"\b(?:SPILLWAY|SLURM)_\w+", subprocess.run(
        [SPILLWAY, "run", "--help-all"], capture_output=True, text=True, check=True).stdout))
    names -= {"SPILLWAY_JOB_GRAPH"}
    checks.check("TaskProlog: its variables are found", {
        "SPILLWAY_RECOMPUTE", "SPILLWAY_JOB_BATCH_SIZE", "SLURM_MEM_PER_NODE", "SPILLWAY_SERVER",
        "SPILLWAY_CACHE_DIR"} <= names, str(names))
    for name in sorted(names):
        problems = []
        for value in ("", *WRONG, "a\nexport EVIL=1", "1\n"):
            done = prolog(node, **{name: value})
            found = exports(done)
            if not found or found.get("SPILLWAY_GRAPH") != str(node.graph) or "EVIL" in found:
                problems.append("%r: exit %d, %r, %r" % (value, done.returncode, done.stdout, done.stderr))
        checks.check("TaskProlog: whatever %s is" % name, not problems, "\n".join(problems))
    # A line break cannot be exported: nothing is, and one line says so.
    for graph in ("/x\nexport EVIL=1\ny", str(node.graph) + "\n"):
        done = prolog(node, SPILLWAY_JOB_GRAPH=graph)
        checks.check("TaskProlog: %r is refused in a line" % graph[-8:],
                     (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "", 1) and
                     "line break" in done.stderr, repr((done.stdout, done.stderr)))
    checks.check("TaskProlog: without a graph it says nothing",
                 node.run(["sh", PROLOG]).stdout == "", "it does")


def test_batch(node):
    """The job script, with a srun that runs one task here."""
    node.install("srun", 'exec "$@"')
    show = ["sh", "-c", 'printf "%s" "$SPILLWAY_GRAPH"; exit 9']
    for what, script, variables in (
            ("missing", None, {}), ("there", SPILLWAY, {}),
            ("missing, with memory to divide", None,
             {"SLURM_MEM_PER_NODE": "64", "SLURM_TASKS_PER_NODE": "4(x2),3"}),
            ("there, with odd variables", SPILLWAY, {"SLURM_MEM_PER_NODE": "x"}),
            ("there, without tasks", SPILLWAY, {"SLURM_MEM_PER_NODE": "64"})):
        node.install("spillway", script)
        done = node.run(["bash", BATCH, str(node.graph), *show], **variables)
        checks.check("job script: spillway is " + what,
                     (done.returncode, done.stdout) == (9, str(node.graph)), repr(done))


def test_init_container(node):
    """Its command, in folders of this machine."""
    command = manifests.container(manifests.pod_spec(manifests.find("Job", "resnet50")), "rewrite")["command"]
    out = node.folder / "out.pb"
    command = [word.replace("/data/graph.pb", str(node.graph)).replace("/graph/graph.pb", str(out))
               .replace("/graph/cache", str(node.folder / "cache")) for word in command]
    command = ["--server=unix:/nowhere" if word.startswith("--server=") else word for word in command]

    def problem(words):
        out.unlink(missing_ok=True)
        done = node.run(words)
        copied = out.exists() and out.read_bytes() == node.graph.read_bytes()
        return "" if done.returncode == 0 and copied else "%r: %r" % (words, done)

    for what, script in BROKEN.items():
        node.install("spillway", script)
        wrong = problem(command)
        checks.check("init container: spillway %s" % what, not wrong, wrong)
    node.install("spillway", SPILLWAY)
    at = command.index("--graph=" + str(node.graph)) + 1
    text = subprocess.run([SPILLWAY, "run", "--help-all"], capture_output=True, text=True, check=True).stdout
    flags = [flag for flag in re.findall(r"^  (--[\w-]+)", text, re.MULTILINE)
             if flag not in ("--graph", "--help-all", "--fail-closed")]
    checks.check("init container: the flags of run are found", len(flags) > 70 and "--recompute" in flags,
                 str(flags))
    problems = []
    for flag in flags:
        for more in (flag + "=nonsense", flag + "=of_a_newer_version", flag + "-of-a-newer-version=1"):
            problems.append(problem([*command[:at], more, *command[at:]]))
        problems.append(problem([*command[:at], flag, "", *command[at:]]))
    problems = list(filter(None, problems))
    checks.check("init container: whatever is wrong with a flag", not problems, "\n".join(problems[:5]))


def main():
    for test in (test_prolog, test_batch, test_init_container):
        with tempfile.TemporaryDirectory() as folder:
            test(Node(folder))
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
