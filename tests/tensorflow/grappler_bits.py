#!/usr/bin/env python3
"""Which of Grappler's passes make a rewritten graph differ in the last bits, and the fewest without
which none does: the report's advice (Advice.same_bits_config_proto_text).

    grappler_bits.py --spillway build/bin/spillway [-k NAME] [--steps N]

With Grappler at its defaults, each graph that trains is compared with itself rewritten: swaps
alone, and with recomputation. If losses or variables differ, each pass is turned off alone, in both
sessions; if that never helps, all are, and come back one after another. The end names passes
without which all are equal, and tries them. A survey, not a test: it takes half an hour.
"""
import argparse
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import recompute  # noqa: E402
from truth import rewrite, train  # noqa: E402

# Those of RewriterConfig that are on by default and change nodes.
PASSES = ("arithmetic_optimization", "constant_folding", "remapping", "dependency_optimization",
          "shape_optimization", "loop_optimization", "function_optimization", "layout_optimizer",
          "common_subgraph_elimination")


class Trained:
    """The losses and variables of a graph, by passes that are off: each once."""

    def __init__(self, graph, data):
        self.graph, self.data, self.known = graph, data, {}

    def bits(self, off):
        off = frozenset(off)
        if off not in self.known:
            trained = train.train(self.graph, self.data, grappler=True, passes_off=sorted(off),
                                  merging=True)
            self.known[off] = (trained.losses, trained.variables)
        return self.known[off]


class Case:
    """A graph, unchanged and rewritten."""

    def __init__(self, name, original, rewritten):
        self.name, self.original, self.rewritten = name, original, rewritten

    def equal(self, off):
        return self.original.bits(off) == self.rewritten.bits(off)

    def remedies(self):
        """Sets of passes of which one has to be off: [()] if none has; [] if they are not enough."""
        if self.equal(()):
            return [()]
        alone = [(name,) for name in PASSES if self.equal((name,))]
        if alone or not self.equal(PASSES):
            return alone
        off = list(PASSES)
        for name in PASSES:
            fewer = [other for other in off if other != name]
            if self.equal(fewer):
                off = fewer
        return [tuple(off)]


def chosen(found):
    """Passes that hold one of the remedies of each case, those that have the fewest first."""
    off = set()
    for remedies in sorted(filter(None, found), key=len):
        if not any(set(remedy) <= off for remedy in remedies):
            off |= set(remedies[0])
    return sorted(off)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--spillway", metavar="PROGRAM", required=True)
    parser.add_argument("-k", metavar="PATTERN", default="", help="only graphs with this in the name")
    parser.add_argument("--steps", type=int, default=recompute.STEPS,
                        help="of each training (default %(default)s)")
    options = parser.parse_args()
    options.full = True
    for key, value in train.ENVIRONMENT.items():
        os.environ[key] = value
    rewriter = rewrite.SpillwayCommand(options.spillway)
    cases, found = [], []
    with tempfile.TemporaryDirectory(prefix="spillway-") as folder:
        for graph in recompute.wanted(options, pathlib.Path(folder)):
            graph.steps = options.steps
            original = Trained(graph, graph.bytes)
            for kind in ("off", "cheap", "all"):
                planned = recompute.planned(rewriter, graph, graph.bytes, kind)
                if planned is None:
                    print("%s %s: no plan" % (graph.name, kind), flush=True)
                    continue
                cases.append(Case("%s %s" % (graph.name, kind), original,
                                  Trained(graph, planned[0])))
                found.append(cases[-1].remedies())
                print("%s: %s" % (cases[-1].name, "equal" if found[-1] == [()] else
                                  "equal without " + " or ".join(map("+".join, found[-1]))
                                  if found[-1] else "differs without all"), flush=True)
    off = chosen(found)
    differ = [case.name for case in cases if not case.equal(off)]
    print("%d of %d cases are equal; without %s all are%s" % (
        found.count([()]), len(cases), ", ".join(off) or "none",
        ", but " + ", ".join(differ) if differ else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
