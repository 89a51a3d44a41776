#!/usr/bin/env python3
"""Trains graphs with recomputed nodes (BudgetStrategy.recompute), and checks that

  merged    neither TensorFlow's own optimizer nor Grappler merges a clone with its original, which
            would bring the memory back silently (other passes may fold or fuse one)
  losses    without Grappler, losses and variables are equal, bit for bit
  grappler  with it, as by default, losses are equal, or differ by rounding alone: it prints which
  live      the Python package makes the same of a live graph as the program of its file

Exit code 0: nothing failed; 1: something failed; 2: bad usage.
"""
import argparse
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import limit_graphs  # noqa: E402
from truth import checks, graphs, live, names, rewrite, train  # noqa: E402

OWN_GRAPHS = pathlib.Path(__file__).resolve().parent.parent / "graphs"
SHORT = ("resnet50_tf1_b4", "bert_tiny", "mixed_fp16", "unet3d_s16", "learning_phase")
# Minutes each, so only for their whole name; learning_phase has the conditionals of the one.
SLOW = ("resnet50_keras", "bert_base")
STEPS = 2  # Of each training.
# The share of the peak that a GPU has, per graph: the least of these for which there is a plan with
# clones is taken. (In several of these graphs weights take most of the memory.)
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# A slow link, beside which recomputation is cheap, even in a graph of small tensors.
HARDWARE = {"hardware": "a100_40gb_pcie4", "allocator_reserve": 0, "d2h_bytes_per_s": 1e8,
            "h2d_bytes_per_s": 1e8}
SWAP = "lms/swap"
# How far a loss may be with Grappler, relatively: it reassociates constants if a node has lost
# readers. Some units in the last place of a float, multiplied by training.
ROUNDING = 1e-4


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spillway", metavar="PROGRAM", required=True)
    parser.add_argument("--full", action="store_true", help="every graph that trains, but " +
                        " and ".join(SLOW))
    parser.add_argument("-k", metavar="PATTERN", default="", help="only graphs with this in the name")
    return parser.parse_args()


def options_for(graph):
    options = dict(HARDWARE, feed={s["name"]: list(s["shape"]) for s in graph.feed_spec})
    options["batch_size"] = graph.meta["run_batch"]
    return options


def moved_reads(graph_bytes, rewritten):
    """{(node, input index): original tensor} of the inputs that read a clone now, and {node: its
    readers} of the rewritten graph."""
    before = {n.name: n for n in train.parse(graph_bytes).node}
    after = train.parse(rewritten).node
    moved = {(n.name, i): names.tensor(before[n.name].input[i])
             for n in after if n.name in before
             for i, text in enumerate(n.input) if text.startswith(checks.CLONE)}
    readers = {}
    for n in after:
        for text in names.data_inputs(n):
            readers.setdefault(names.node(text), set()).add(n.name)
    return moved, readers


def planned(rewriter, graph, graph_bytes, recompute, **more):
    """The rewritten bytes, the number of clones (of swap nodes, if recomputation is off), and the
    options; None: there is no plan."""
    options = dict(options_for(graph), **more)
    ample = dict(options, gpu_memory_bytes=2**50)
    fits = rewriter.rewrite(graph_bytes, "budget", ample)[1].get("fits", [])
    peak = max([int(fit["unswapped_peak_bytes"]) for fit in fits], default=0)
    for share in SHARES:
        options.update(gpu_memory_bytes=int(share * peak), recompute=recompute)
        try:
            rewritten = rewriter.rewrite(graph_bytes, "budget", options)[0]
        except rewrite.RewriteFailed:
            continue
        added = SWAP if recompute == "off" else checks.CLONE
        clones = sum(n.name.startswith(added) for n in train.parse(rewritten).node)
        if clones:
            return rewritten, clones, options
    return None


def merged(reads, readers, ours, theirs):
    """Inputs that read an original again, and originals that have become a clone. (One that nothing
    in the step reads any more is gone, and not missed.)"""
    run = {n.name: n for call in ours.partitions for partition in call for n in partition.node}
    ran = {n.name for call in theirs.partitions for partition in call for n in partition.node}
    for (reader, index), original in reads.items():
        node = names.node(original)
        if reader in run and names.tensor(run[reader].input[index]) == original:
            yield "merged: input %d of %s reads %s again" % (index, reader, original)
        elif node in ran and node not in run and readers.get(node, set()) & set(run) and any(
                n.startswith(checks.CLONE + node.replace("/", "_")) for n in run):
            yield "merged: %s is gone, but not its clone" % node


class Original:
    """Training of the unchanged graph, with Grappler or without: each once."""

    def __init__(self, graph):
        self.graph, self.trained = graph, {}

    def train(self, grappler):
        if grappler not in self.trained:
            self.trained[grappler] = train.train(self.graph, self.graph.bytes, grappler=grappler,
                                                 merging=True)
        return self.trained[grappler]


def live_problems(graph, original, recompute, rewriter, package, notes):
    """Problems with a live graph that is rewritten in place."""
    tf_graph = train.imported(train.parse(graph.bytes))
    sent = tf_graph.as_graph_def(add_shapes=True).SerializeToString(deterministic=True)
    # A live graph keeps its calls: their memory is unknown, and takes a budget of its own.
    found = planned(rewriter, graph, sent, recompute, inline_calls="never")
    if found is None:
        notes.append("no plan with clones of the live graph")
        return
    file, _, options = found
    package.edit(tf_graph, "budget", {k: v for k, v in options.items() if k != "inline_calls"})
    yield from ("live: " + text for text in checks.different_nodes(
        tf_graph.as_graph_def(), train.parse(file)))
    ours = train.train_live(graph, tf_graph)
    theirs = original.train(grappler=False)
    yield from ("live: " + text for text in checks.different_losses(ours.losses, theirs.losses))


def problems(graph, original, rewritten, notes):
    """Problems with the rewritten graph."""
    reads, readers = moved_reads(graph.bytes, rewritten)
    for grappler in (False, True):
        ours = train.train(graph, rewritten, grappler=grappler, merging=True)
        theirs = original.train(grappler)
        yield from merged(reads, readers, ours, theirs)
        if not grappler:
            yield from ("losses: " + text
                        for text in checks.different_losses(ours.losses, theirs.losses))
            yield from ("losses: " + text
                        for text in checks.different_variables(ours.variables, theirs.variables))
            continue
        notes.append("with Grappler equal" if ours.losses == theirs.losses
                     else "with Grappler equal but for rounding")
        for name, expected in theirs.losses.items():
            for mine, other in zip(ours.losses[name], expected):
                mine, other = float.fromhex(mine), float.fromhex(other)
                if not abs(mine - other) <= ROUNDING * abs(other):
                    yield "grappler: %s is %r, not %r" % (name, mine, other)


def wanted(options, folder):
    """The graphs of tests/graphs, and those of limit_graphs.py, which are made in `folder`."""
    found = graphs.find([OWN_GRAPHS])
    for name in limit_graphs.GRAPHS:
        if options.k in name and (options.full or name in SHORT):
            limit_graphs.write(name, folder / name)
            found[name] = graphs.Graph(folder / name)
            found[name].not_trained, found[name].steps = None, STEPS
    for graph in found.values():
        if (graph.not_trained or options.k not in graph.name or
                not (options.full or graph.name in SHORT) or
                graph.name in SLOW and graph.name != options.k):
            continue
        graph.steps = min(graph.steps, STEPS)
        yield graph


def main():
    options = arguments()
    for key, value in train.ENVIRONMENT.items():
        os.environ[key] = value
    rewriter = rewrite.SpillwayCommand(options.spillway)
    program = pathlib.Path(options.spillway).resolve()
    package = live.Package(program.parent.parent / "lib" / live.SONAME)
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="spillway-") as folder:
        for graph in wanted(options, pathlib.Path(folder)):
            original = Original(graph)
            for recompute in ("cheap", "all"):
                found, notes = planned(rewriter, graph, graph.bytes, recompute), []
                if found is None:
                    print("      %s %s: no plan with clones" % (graph.name, recompute), flush=True)
                    continue
                rewritten, clones, _ = found
                wrong = list(problems(graph, original, rewritten, notes))
                wrong += live_problems(graph, original, recompute, rewriter, package, notes)
                print("%s %s %s: %d clones%s" % (
                    "FAIL" if wrong else "ok  ", graph.name, recompute, clones,
                    "".join(", " + note for note in notes)), flush=True)
                for text in wrong[:8]:
                    print("      " + text)
                passed, failed = passed + (not wrong), failed + bool(wrong)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
