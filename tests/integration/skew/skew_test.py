#!/usr/bin/env python3
"""A client of the release at which the API froze on a server of today, and the other way round:
every call, every strategy, in one message and in a stream; and files of one version (graphs, plans,
profiles, reports, the hook's cache) used by the other.

The expected answer is that of the answering version in its own process.

    skew_test.py

Builds the release first (build_release.sh: minutes, once). If it cannot be had, that is one skip.
The last line is `N passed, N failed` or `N passed, N failed, N skipped`."""

import argparse
import gzip
import json
import os
import pathlib
import shutil
import sys

import sides
from sides import GRAPHS, check, finish

SMALL = GRAPHS / "cond_v1/graph_shapes.pb"
PROFILED = GRAPHS / "mnist_deep/graph_shapes.pb"
RUN_METADATA = GRAPHS / "mnist_deep/run_metadata.pb.gz"
# Of a step that does not fit the default machine, so every strategy has to swap.
LARGE = GRAPHS / "resnet50_tf1/graph_shapes.pb"
# More than goes in one message.
STREAMED = GRAPHS / "bert_base/graph_shapes.pb"
REWRITES = {
    "the default": (LARGE, ()),
    "budget": (LARGE, ("--strategy", "budget", "--planning-effort", "low")),
    "level": (LARGE, ("--strategy", "level", "--swapout-threshold", "100", "--swapin-ahead", "10",
                      "--swapin-groupby", "10")),
    "level, tuned": (LARGE, ("--strategy", "level")),
    "scope": (LARGE, ("--strategy", "scope", "--lb", "3", "--fuse-swapins")),
    "a small graph": (SMALL, ("--strategy", "scope")),
    "in a stream": (STREAMED, ("--strategy", "scope", "--targets", "Adam", "--batch-size", "64")),
    "in a stream, planned": (STREAMED, ("--batch-size", "64", "--gpu-memory-bytes", "8GiB",
                                        "--planning-effort", "low")),
}
QUESTIONS = {
    "inspect": ("inspect", LARGE, "--json"),
    "inspect --memory": ("inspect", LARGE, "--memory", "--json"),
    "simulate": ("simulate", LARGE, "--json"),
    "explore": ("explore", PROFILED, "--gpu-memory-bytes", "256MiB", "--sizes", "8,16,512",
                "--swapping", "--json"),
}
# The caller's mistakes: the exit code, and the reason at the end of the message.
MISTAKES = {
    "a feed that is not there": (("--feed", "nobody=1"), 2, "[NAME_MATCHES_NOTHING]"),
    "a value out of its range": (("--max-slowdown", "0.5"), 2, "[BAD_OPTION]"),
    "a graph that fits with no plan": (("--gpu-memory-bytes", "64MiB"), 8, "[DOES_NOT_FIT]"),
}
# Of a job that says who it is: versions that do not know it take no notice.
os.environ.update(SPILLWAY_JOB="4711", SPILLWAY_USER="ada", SPILLWAY_QUEUE="gpu",
                  SPILLWAY_MODEL="net")


class Failure(Exception):
    """A command ended otherwise than it should."""


def output(side, *arguments, codes=(0,), **keywords):
    """What `spillway ARGUMENT...` of that version prints, as text."""
    done = side.run(*arguments, **keywords)
    if done.returncode not in codes:
        raise Failure("spillway %s of %s ended with %d: %s" % (
            " ".join(map(str, arguments)), side.name, done.returncode, done.stderr.decode()[-600:]))
    return done.stdout.decode()


def case(name, run):
    """`run` returns a problem, or nothing."""
    try:
        problem = run()
    except (Failure, OSError, ValueError) as error:
        problem = str(error)
    check(name, not problem, problem)


def beyond(part, whole, path="$"):
    """Where JSON `part` has something that `whole` lacks or has otherwise; additions in `whole` do
    not matter. Times and versions may differ."""
    if path.endswith((".duration_ns", ".version")):
        return ""
    if isinstance(part, dict) and isinstance(whole, dict):
        for key, value in part.items():
            if key not in whole and (not value or str(value).endswith("_UNSPECIFIED")):
                continue  # A field that only the newer version knows, not set.
            if key not in whole:
                return "%s.%s is %r, and not there" % (path, key, value)
            problem = beyond(value, whole[key], "%s.%s" % (path, key))
            if problem:
                return problem
        return ""
    if isinstance(part, list) and isinstance(whole, list) and len(part) == len(whole):
        for i, (one, other) in enumerate(zip(part, whole)):
            problem = beyond(one, other, "%s[%d]" % (path, i))
            if problem:
                return problem
        return ""
    # A value of an enumeration that only one version knows has a name there, elsewhere its number.
    if isinstance(part, int) and isinstance(whole, str) and whole.isupper():
        return ""
    return "" if part == whole else "%s is %r, not %r" % (path, part, whole)


class Pair:
    """A client of one version and a server of the other."""

    def __init__(self, client, server, work):
        self.client, self.server = client, server
        self.work = work
        self.name = "%s's client, %s's server" % (client.name, server.name)
        self.made = 0

    def file(self, end=".pb"):
        self.made += 1
        return self.work / ("%s-%d%s" % (self.client.name, self.made, end))

    def rewritten(self, side, graph, *flags):
        """The bytes of a rewrite."""
        path = self.file()
        # 9: it is not known whether the step fits; the graph is there.
        output(side, "rewrite", graph, "-o", path, "--quiet", *flags, codes=(0, 9))
        return path.read_bytes()

    def run(self):
        replica = self.server.server()
        try:
            self.remote = ("--server", replica.address, "--timeout", "%ds" % sides.PATIENCE_S)
            self.calls()
            self.files()
        finally:
            code = replica.stop()
        check("%s: the server drains in the end" % self.name, code == 0, "exit code %d" % code)

    def calls(self):
        case("%s: health" % self.name,
             lambda: output(self.client, "health", *self.remote).replace("SERVING\n", ""))
        case("%s: capabilities" % self.name, self.capabilities)
        for name, (graph, flags) in REWRITES.items():
            case("%s: rewrite, %s" % (self.name, name), lambda g=graph, f=flags: self.rewrite(g, f))
        for name, question in QUESTIONS.items():
            case("%s: %s" % (self.name, name), lambda q=question: self.question(q))
        for name, mistake in MISTAKES.items():
            case("%s: %s" % (self.name, name), lambda m=mistake: self.mistake(*m))

    def capabilities(self):
        told = json.loads(output(self.client, "capabilities", "--json", *self.remote))
        # A server has more in force than a process.
        return beyond({key: told[key] for key in ("version", "strategies", "hardware_presets")},
                      json.loads(output(self.server, "capabilities", "--json")))

    def rewrite(self, graph, flags):
        report, local = self.file(".json"), self.file(".json")
        mine = self.rewritten(self.client, graph, "--report", report, *flags, *self.remote)
        theirs = self.rewritten(self.server, graph, "--report", local, *flags)
        if mine == graph.read_bytes():
            return "nothing was swapped, so a wrong answer would not show"
        if mine != theirs:
            return "other bytes than %s makes in process" % self.server.name
        return beyond(json.loads(report.read_text()), json.loads(local.read_text()))

    def question(self, question):
        return beyond(json.loads(output(self.client, *question, *self.remote)),
                      json.loads(output(self.server, *question)))

    def mistake(self, flags, code, reason):
        done = self.client.run("rewrite", LARGE, "-o", self.file(), *flags, *self.remote)
        said = done.stderr.decode()
        if done.returncode == code and said.rstrip().endswith(reason):
            return ""
        return "exit code %d: %s" % (done.returncode, said)

    def files(self):
        """Files of the client's version, used on the other's server and by its programs."""
        graph, plan = self.file(), self.file(".json")
        output(self.client, "rewrite", LARGE, "-o", graph, "--save-plan", plan, "--quiet")
        original, rewritten = LARGE.read_bytes(), graph.read_bytes()
        on_server = (self.client, self.remote)
        by_programs = (self.server, ())
        for who, (side, remote) in (("on the server", on_server), ("by its programs", by_programs)):
            where = "%s, %s" % (self.name, who)
            case("%s: strip of a graph of the client's version" % where, lambda s=side, r=remote:
                 self.gives(original, s, "strip", graph, *r))
            case("%s: a rewrite of such a graph keeps it" % where, lambda s=side, r=remote:
                 self.gives(rewritten, s, "rewrite", graph, *r))
            case("%s: replanned it is as rewritten anew" % where, lambda s=side, r=remote:
                 self.gives(self.rewritten(self.server, LARGE), s, "rewrite", graph,
                            "--already-rewritten", "replan", *r))
            case("%s: apply of a plan that the client's version saved" % where,
                 lambda s=side, r=remote: self.gives(rewritten, s, "apply", plan, LARGE, *r))
            case("%s: diff of what it did" % where, lambda s=side, r=remote: beyond(
                json.loads(output(s, "diff", LARGE, graph, "--json", *r, codes=(1,))),
                json.loads(output(self.server, "diff", LARGE, graph, "--json", codes=(1,)))))
        case("%s: plots of reports that the client's version wrote" % self.name, self.plots)
        case("%s: a profile that the client's version stored" % self.name, self.profile)
        case("%s: one cache of the hook, in turns" % self.name, self.hook)

    def gives(self, expected, side, command, *arguments):
        path = self.file()
        output(side, command, *arguments, "-o", path, "--quiet", codes=(0, 9))
        return "" if path.read_bytes() == expected else "another graph"

    def plots(self):
        for question in ("inspect --memory", "explore"):
            report, picture = self.file(".json"), self.file(".svg")
            report.write_text(output(self.client, *QUESTIONS[question]))
            output(self.server, "plot", report, "-o", picture)
            drawn = picture.read_text()
            if "<svg " not in drawn or not drawn.rstrip().endswith("</svg>"):
                return "%s: no picture" % question
        return ""

    def profile(self):
        """The step's time, with what each version stores beside the graph, and without."""
        trace = self.file()
        trace.write_bytes(gzip.decompress(RUN_METADATA.read_bytes()))
        times = {}
        for writer in (self.client, self.server, None):
            folder = self.file("")
            folder.mkdir()
            graph = pathlib.Path(shutil.copy(PROFILED, folder))
            if writer is not None:
                output(writer, "check", graph, trace, "--batch-size", "8", "--save-profile",
                       "--json")
                if not list(folder.glob("spillway-profile-*.pb")):
                    return "%s stored no profile" % writer.name
            report = json.loads(
                output(self.server, "simulate", graph, "--batch-size", "8", "--json"))
            times[writer] = report["forecast"]["step_time_ns"]
        if times[self.client] == times[self.server] != times[None]:
            return ""
        return "a step of %s ns with the client's, %s with the server's, %s without" % tuple(
            times.values())

    def hook(self):
        """Both versions run jobs with one cache, in turns: each gets one of the two graphs, whole."""
        cache, seen = self.file(""), self.file()
        graphs = {self.rewritten(side, LARGE) for side in (self.client, self.server)}
        for side, remote in (
                (self.client, self.remote), (self.server, ()), (self.client, self.remote),
                (self.client, ()), (self.server, self.remote), (self.client, ())):
            output(side, "run", "--graph", LARGE, "--cache-dir", cache, "--fail-closed", "--quiet",
                   *remote, "--", "sh", "-c", 'cp "$SPILLWAY_GRAPH" "$1"', "sh", seen)
            if seen.read_bytes() not in graphs:
                return "%s: a job got another graph" % side.name
        return ""


def main():
    argparse.ArgumentParser(description=__doc__,
                            formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    then, why = sides.release()
    if then is None:
        print("skipped: %s: versions are not tested side by side" % why)
        print("0 passed, 0 failed, 1 skipped")
        return 0
    now = sides.today()
    with sides.folder() as folder:
        for client, server in ((then, now), (now, then)):
            Pair(client, server, pathlib.Path(folder)).run()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
