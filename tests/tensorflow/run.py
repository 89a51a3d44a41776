#!/usr/bin/env python3
"""Trains rewritten graphs in TensorFlow and checks that nothing but the swaps is different.

Exit code 0: nothing failed; 1: something failed; 2: bad usage.
"""
import argparse
import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from selftest import selftests  # noqa: E402
from truth import cases, driver, graphs, live, worker  # noqa: E402

OWN_GRAPHS = pathlib.Path(__file__).resolve().parent.parent / "graphs"
PROGRAMS = pathlib.Path(__file__).resolve().parent / "training_programs.py"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spillway", metavar="PROGRAM", help="the command line program to test")
    parser.add_argument("--graphs", metavar="DIR", action="append", default=[],
                        help="more graphs, besides those of this repository; repeatable")
    parser.add_argument("--full", dest="mode", action="store_const", const=cases.FULL,
                        default=cases.SHORT_MODE,
                        help="every graph, with every parameter set, of large graphs a few (the "
                             "short mode takes small graphs of the repository and fewer sets)")
    parser.add_argument("--all", dest="mode", action="store_const", const=cases.ALL,
                        help="every graph, with every parameter set")
    parser.add_argument("--way", choices=cases.WAYS + ("both",), default="both",
                        help="rewritten as a GraphDef and then imported, or as a live graph that "
                             "the Python package edits in place (default: both)")
    parser.add_argument("--library", metavar="FILE", help="the library for the Python package "
                        "(default: lib/%s beside the folder of the program)" % live.SONAME)
    parser.add_argument("-k", metavar="PATTERN", default="",
                        help="only cases whose name holds PATTERN or matches it as a glob")
    parser.add_argument("--self-test", choices=("also", "only", "no"), default="also",
                        help="whether the harness shows that it can fail (default: also)")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1),
                        help="processes at a time (default: %(default)s)")
    parser.add_argument("--timeout", type=int, default=None, metavar="SECONDS",
                        help="longest time for one case (default: 180; 900 with --full and --all)")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and stop")
    return parser.parse_args()


def wanted(name, pattern):
    return pattern in name or fnmatch.fnmatch(name, pattern)


def selftest_jobs(options):
    names = [n for n in selftests.all_tests() if wanted("selftest/" + n, options.k)]
    return [driver.Job("selftest", {"selftest": True}, names)] if names else []


def make_programs(options, folder):
    """Writes the graphs of those programs of which a case may be wanted; whether that worked."""
    keys = [worker.UNREWRITTEN] + [s.name + way for s in cases.SETS for way in ("", "/" + cases.LIVE)]
    names = [name for name in cases.PROGRAMS
             if any(wanted("%s/%s" % (name, key), options.k) for key in keys)]
    if not names:
        return True
    done = subprocess.run([sys.executable, str(PROGRAMS), str(folder), *names], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print("%s ended with %d: %s" % (PROGRAMS.name, done.returncode, done.stderr[-2000:]),
              file=sys.stderr)
    return done.returncode == 0


def graph_jobs(options, made):
    """The graphs that take longest first, so that two processes end about together. `made`: a folder
    of graphs that were made now."""
    jobs = []
    ways = cases.WAYS if options.way == "both" else (options.way,)
    roots = [OWN_GRAPHS, made] + options.graphs
    program = str(pathlib.Path(options.spillway).resolve()) if options.spillway else None
    found = [g for g in graphs.find(roots).values() if cases.in_mode(g, options.mode)]
    for graph in sorted(found, key=lambda g: (-cases.cost(g), g.name)):
        sets = [c.key for c in cases.of_graph(graph, options.mode, ways)
                if wanted(c.name, options.k)]
        first = "%s/%s" % (graph.name, "training" if graph.not_trained else worker.UNREWRITTEN)
        if sets or (options.way != cases.LIVE and wanted(first, options.k)):
            jobs.append(driver.Job(graph.name, {"folder": str(graph.folder.resolve()),
                                                "spillway": program,
                                                "library": str(library_of(options))},
                                   sets, first))
    return jobs


def library_of(options):
    """The native library of the Python package: of the same build as the program."""
    if options.library:
        return pathlib.Path(options.library).resolve()
    program = pathlib.Path(options.spillway or "").resolve()
    return program.parent.parent / "lib" / live.SONAME


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="spillway-programs-") as made:
        return run(options, pathlib.Path(made))


def run(options, made):
    """The exit code. `made`: an empty folder."""
    short = options.mode == cases.SHORT_MODE
    if options.graphs and short:
        print("run.py: --graphs takes effect only with --full and --all", file=sys.stderr)
        return 2
    missing = [folder for folder in options.graphs if not pathlib.Path(folder).is_dir()]
    if missing:
        print("run.py: no such folder: %s" % ", ".join(missing), file=sys.stderr)
        return 2
    jobs = []
    if options.self_test != "only":
        if not options.list and not (options.spillway and os.access(options.spillway, os.X_OK)):
            print("run.py: --spillway must name the program to test (%s is none), or give "
                  "--self-test only" % options.spillway, file=sys.stderr)
            return 2
        if not options.list and options.way != cases.GRAPHDEF and not library_of(options).is_file():
            print("run.py: there is no library %s for the Python package: build the target "
                  "spillway_shared, name the file with --library, or give --way graphdef" %
                  library_of(options), file=sys.stderr)
            return 2
        if not make_programs(options, made):
            return 1
        jobs += graph_jobs(options, made)
    if options.self_test != "no":
        jobs += selftest_jobs(options)
    if options.list:
        for job in jobs:
            for name in ([job.first] if job.first else []) + ["%s/%s" % (job.prefix, s)
                                                              for s in job.sets]:
                print(name)
        return 0
    if not jobs:
        print("run.py: no case is called like %r" % options.k, file=sys.stderr)
        return 2
    progress = driver.Progress(sum(len(job) for job in jobs))
    driver.run_all(jobs, options.jobs, options.timeout or (180 if short else 900), progress)
    return 0 if progress.close() else 1


if __name__ == "__main__":
    sys.exit(main())
