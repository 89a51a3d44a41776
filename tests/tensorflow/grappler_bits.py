#!/usr/bin/env python3
"""Which of Grappler's passes make a rewritten graph differ in the last bits, and what it takes that
none does.

    grappler_bits.py --spillway build/bin/spillway [-k NAME] [--steps N]

With Grappler at its defaults, each graph that trains is compared with itself rewritten: swaps alone,
and with what may run again. Where losses differ, each pass is turned off alone, then each pair, in
both sessions. The end names the fewest passes without which all are equal. A survey, not a test.
"""
import argparse
import itertools
import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import recompute  # noqa: E402
from truth import graphs, rewrite, train  # noqa: E402

# Those of RewriterConfig that are on by default and change nodes.
PASSES = ("arithmetic_optimization", "constant_folding", "remapping", "dependency_optimization",
          "shape_optimization", "loop_optimization", "function_optimization", "layout_optimizer",
          "common_subgraph_elimination")


class Case:
    """One rewritten graph."""

    def __init__(self, graph, kind, rewritten):
        self.graph, self.kind, self.rewritten = graph, kind, rewritten
        self.known = {}

    def equal(self, off):
        """Whether the losses are equal without these passes."""
        off = tuple(sorted(off))
        if off not in self.known:
            ours, theirs = (train.train(self.graph, data, grappler=True, passes_off=off,
                                        variables=(), merging=True).losses
                            for data in (self.rewritten, self.graph.bytes))
            self.known[off] = ours == theirs
        return self.known[off]

    def remedies(self):
        """The smallest sets of passes of which one has to be off: [()] if none has."""
        for size in range(3):
            found = [off for off in itertools.combinations(PASSES, size) if self.equal(off)]
            if found:
                return found
        return []


def fewest(cases):
    """The smallest set without which all cases are equal."""
    for size in range(len(PASSES) + 1):
        for off in itertools.combinations(PASSES, size):
            if all(case.equal(off) for case in cases):
                return off
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--spillway", metavar="PROGRAM", required=True)
    parser.add_argument("-k", metavar="PATTERN", default="", help="only graphs with this in the name")
    parser.add_argument("--steps", type=int, default=2, help="of each training (default 2)")
    options = parser.parse_args()
    for key, value in train.ENVIRONMENT.items():
        os.environ[key] = value
    rewriter = rewrite.SpillwayCommand(options.spillway)
    cases = []
    for graph in graphs.find([recompute.OWN_GRAPHS]).values():
        if graph.not_trained or options.k not in graph.name:
            continue
        graph.steps = min(graph.steps, options.steps)
        for kind in ("off", "cheap", "all"):
            found = recompute.planned(rewriter, graph, kind)
            if found is None:
                print("%s %s: no plan" % (graph.name, kind), flush=True)
                continue
            case = Case(graph, kind, found[0])
            remedies = case.remedies()
            cases.append(case)
            print("%s %s: %s" % (graph.name, kind, "equal" if remedies == [()] else
                                 "equal without " + " or ".join("+".join(off) for off in remedies)
                                 if remedies else "differs without any two"), flush=True)
    off = fewest([case for case in cases if not case.equal(())])
    print("all are equal without: %s" % ("not found" if off is None else ", ".join(off) or "none"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
