"""Takes a training graph that does not fit a GPU to one that does, and draws the memory of a step
before and after.

    python fit_a_budget.py GRAPH.pb BUDGET_MIB OUT.pb PICTURE.svg [--batch-size N] [--hardware NAME]

Times and bytes are the simulator's. Needs neither TensorFlow nor anything to draw with.
"""

import argparse
import pathlib
import sys

import spillway

WORDS = {"FIT_FITS": "fits", "FIT_DOES_NOT_FIT": "does not fit",
         "FIT_UNKNOWN": "not known to fit"}
MIB = 1 << 20
WIDTH, HEIGHT, LEFT, TOP = 720, 300, 90, 40
COLOURS = {"before": "#c0392b", "after": "#2471a3"}


def timeline(graph, **step):
    """Of the first GPU, one op after another: [(seconds, MiB)]. Of a step that does not fit, as if
    memory had no end."""
    memory = spillway.simulate(graph, memory=True, **step)["memory"][0]
    return [(int(point.get("time_ns", 0)) / 1e9, int(point.get("bytes", 0)) / MIB)
            for point in memory["timeline"]]


def picture(lines, budget_mib):
    """SVG: memory over time for each of {name: timeline}, and the budget."""
    longest = max(line[-1][0] for line in lines.values()) or 1
    highest = 1.05 * max(budget_mib, *(mib for line in lines.values() for _, mib in line))

    def place(seconds, mib):
        return "%.1f,%.1f" % (LEFT + WIDTH * seconds / longest, TOP + HEIGHT * (1 - mib / highest))

    parts = ["<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='sans-serif'"
             " font-size='13'>" % (LEFT + WIDTH + 50, TOP + HEIGHT + 45),
             "<rect width='100%%' height='100%%' fill='white'/>"]
    for i, (name, line) in enumerate(lines.items()):
        steps = []
        for (seconds, mib), following in zip(line, line[1:] + line[-1:]):
            steps += [place(seconds, mib), place(following[0], mib)]
        parts.append("<polyline fill='none' stroke='%s' stroke-width='1.5' points='%s'/>" % (
            COLOURS[name], " ".join(steps)))
        parts.append("<text x='%d' y='22' fill='%s'>%s: %.0f MiB at the peak, %.1f ms</text>" % (
            LEFT + 330 * i, COLOURS[name], name, max(mib for _, mib in line), 1e3 * line[-1][0]))
    ends = place(0, budget_mib) + " " + place(longest, budget_mib)
    parts.append("<polyline stroke='black' stroke-dasharray='6 4' points='%s'/>" % ends)
    parts.append("<text x='%d' y='%.1f' text-anchor='end'>budget: %.0f MiB</text>" % (
        LEFT + WIDTH, float(place(0, budget_mib).split(",")[1]) - 5, budget_mib))
    parts.append("<polyline fill='none' stroke='black' points='%s %s %s'/>" % (
        place(0, highest), place(0, 0), place(longest, 0)))
    for share in (0, 0.5, 1):
        parts.append("<text x='%d' y='%.1f' text-anchor='end'>%.0f MiB</text>" % (
            LEFT - 5, TOP + HEIGHT * (1 - share) + 4, share * highest))
        parts.append("<text x='%.1f' y='%d' text-anchor='middle'>%.1f ms</text>" % (
            LEFT + WIDTH * share, TOP + HEIGHT + 18, 1e3 * share * longest))
    return "\n".join(parts + ["</svg>"]).replace("%%", "%") + "\n"


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
    before = spillway.simulate(graph, **step, **budget)["forecast"]
    print("before: %s" % WORDS[before["fit"]])
    try:
        result = spillway.rewrite(graph, **step, **budget)
    except spillway.DoesNotFitError as error:
        print("no plan fits; %.1f MiB would do" % (error.smallest_gpu_memory_bytes / MIB))
        return 1
    after = spillway.simulate(result.graph_def, **step, **budget)["forecast"]
    print("after: %s; %s" % (WORDS[after["fit"]], result.report.summary))
    flags.out.write_bytes(result.graph_def)
    flags.picture.write_text(picture(
        {"before": timeline(graph, **step, **budget),
         "after": timeline(result.graph_def, **step, **budget)},
        flags.budget_mib))
    return 0


if __name__ == "__main__":
    sys.exit(main())
