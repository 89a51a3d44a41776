"""Takes a training graph that does not fit a GPU to one that does, and draws the memory of a step
before and after, launched ahead as TensorFlow runs it.

    python fit_a_budget.py GRAPH.pb BUDGET_MIB OUT.pb PICTURE.{svg,html,png} [--batch-size N] [--hardware NAME]

Times and bytes are the simulator's. Needs neither TensorFlow nor, except for a PNG, a program to
draw.
"""

import argparse
import pathlib
import sys

import spillway

WORDS = {"FITS": "fits", "DOES_NOT_FIT": "does not fit", "UNKNOWN": "not known to fit"}
MIB = 1 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("budget_mib", type=float, help="memory of the GPU, in MiB")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--hardware", default="p100_pcie")
    flags = parser.parse_args()
    graph = flags.graph.read_bytes()
    step = {"batch_size": flags.batch_size, "hardware": flags.hardware}
    budget = {"gpu_memory_bytes": int(flags.budget_mib * MIB)}
    before = spillway.simulate(graph, **step, **budget).forecast
    print("before: %s" % WORDS[before.fit])
    try:
        result = spillway.rewrite(graph, **step, **budget)
    except spillway.DoesNotFitError as error:
        print("no plan fits; %.1f MiB would do" % (error.smallest_gpu_memory_bytes / MIB))
        return 1
    after = spillway.simulate(result.graph_def, **step, **budget).forecast
    print("after: %s; %s" % (WORDS[after.fit], result.report.summary))
    flags.out.write_bytes(result.graph_def)
    spillway.plot(result.graph_def, flags.picture, before=graph, **step, **budget)
    return 0


if __name__ == "__main__":
    sys.exit(main())
