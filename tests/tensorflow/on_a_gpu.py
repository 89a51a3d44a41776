#!/usr/bin/env python3
"""Holds Spillway's forecasts against a GPU: one command for whoever has one.

    pip install 'tensorflow[and-cuda]==2.15.1' numpy==1.26.4 spillway_lms-*.whl
    python on_a_gpu.py

Measures the machine (a preset for --hardware), then trains ResNet-50, BERT-base and a U-Net of its own
around the largest batch that the card holds: as they came, and with each strategy. Writes into
on_a_gpu/: table.md, a table of simulated against measured, to be attached to a report; preset.json, for
`--hardware on_a_gpu/preset.json`; results.json, all of it. Needs the two files gpu_*.py beside it. Half
an hour to an hour, most of it for graphs.

With --card 16 the GPU stands for one of 16 GiB: TensorFlow is held to that, but for the graph as it came,
which trains at the same batches in all that there is. So speeds are of the same work, and losses can be
compared: use a quarter of the memory, or less.

Without a GPU it refuses to run. --rehearse plays it on a CPU with tiny networks, in two minutes: that
everything works, not how fast anything is. Exit code 0: all ran, 1: something failed, 2: bad usage, or
no GPU. The last line is `N passed, N failed`.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

import gpu_programs
import gpu_worker
import spillway

HERE = pathlib.Path(__file__).resolve().parent
# What a graph as it came, and its plans, are tried at, as shares of the largest batch that is simulated
# to fit as it came.
SHARES = {"none": (0.9, 1.0, 1.1), "budget": (1.0, 1.25, 1.5, 2.0), "budget+cheap": (1.5, 2.0),
          "budget+all": (1.5, 2.0, 4.0), "level": (1.25, 1.5), "scope": (1.0,)}
# Of a card that the GPU stands for: half and a quarter of the memory that is needed.
CARD_SHARES = {"none": (2.0, 4.0), "budget": (2.0, 4.0), "budget+cheap": (2.0, 4.0),
               "budget+all": (2.0, 4.0)}
# Of a rehearsal: as few as meet every kind of answer.
REHEARSED_SHARES = {"none": (1.0, 2.0), "budget": (2.0,), "budget+all": (2.0,), "level": (2.0,),
                    "scope": (1.0,)}
# What a rehearsed GPU holds: some hundred times what one example of the tiny networks takes.
REHEARSED_BYTES = {"resnet50": 6 << 20, "bert": 3 << 20, "unet": 5 << 20}
# Two batches that tell what an example takes, and with it about where the largest is.
PROBES = 8, 16
WORKER_TIMEOUT_S = 900
MIB = 1 << 20


class Bench:
    """One run of this program."""

    def __init__(self, flags):
        self.flags, self.out = flags, flags.out
        self.rows, self.failures = [], []
        self.machine = {}

    # ---- What a process of its own does.

    def work(self, do, **job):
        job = {"do": do, "rehearse": self.flags.rehearse, "runs": 5,
               "deterministic": self.flags.deterministic,
               "turns": 4 if self.flags.rehearse else 10,
               "device": gpu_worker.REHEARSED if self.flags.rehearse else gpu_worker.GPU, **job}
        environment = dict(os.environ)
        environment.pop("TF_GPU_ALLOCATOR", None)
        if self.flags.allocator != "bfc":
            environment["TF_GPU_ALLOCATOR"] = self.flags.allocator
        try:
            done = subprocess.run([sys.executable, str(HERE / "gpu_worker.py"), json.dumps(job)],
                                  env=environment, capture_output=True, text=True,
                                  timeout=WORKER_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return {"trained": False, "why": "no end after %d s" % WORKER_TIMEOUT_S}
        lines = done.stdout.strip().splitlines()
        if done.returncode == 0 and lines and lines[-1].startswith("{"):
            return json.loads(lines[-1])
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return {"trained": False, "why": "exit code %d: %s" % (done.returncode, last[:200])}

    def graph(self, program, batch):
        """(bytes, names) of a program at a batch size; made once."""
        path = self.out / "graphs" / ("%s_%d.pb" % (program, batch))
        names = path.with_suffix(".json")
        if not names.exists():
            made = self.work("build", program=program, batch=batch, graph=str(path))
            if "loss" not in made:
                raise RuntimeError("cannot build %s at batch %d: %s" % (program, batch,
                                                                        made.get("why")))
            names.write_text(json.dumps(made))
        return path.read_bytes(), json.loads(names.read_text())

    # ---- What Spillway says.

    def machine_for(self, program):
        machine = dict(self.machine, grappler="as_is")  # It is off: gpu_worker.session_config.
        if self.flags.rehearse:
            machine["gpu_memory_bytes"] = REHEARSED_BYTES[program]
        elif self.flags.card:
            machine["gpu_memory_bytes"] = self.flags.card << 30
        return machine

    def simulated(self, graph, program, **more):
        return spillway.simulate(graph, **self.machine_for(program), **more).forecast

    def largest_batch(self, program):
        """The largest that is simulated to fit as it came, to a twentieth: from what two others take, and
        then by halving. Graphs take seconds to make."""
        def fits(batch):
            fit = self.simulated(self.graph(program, batch)[0], program).fit
            say("  %s at batch %d: %s" % (program, batch, fit.lower().replace("_", " ")))
            return fit == "FITS"

        peaks = [self.simulated(self.graph(program, batch)[0], program,
                               no_budget=True).devices[0].peak_bytes
                 for batch in PROBES]
        each = max(1, (peaks[1] - peaks[0]) // (PROBES[1] - PROBES[0]))
        # A tenth is the reserve that a budget has by default.
        room = 0.9 * self.machine_for(program)["gpu_memory_bytes"] - peaks[0]
        low, high = 0, max(1, PROBES[0] + int(room // each))
        while fits(high):
            low, high = high, high + max(1, high // 10)
        step = max(1, high // 10)
        while low == 0 and high > 1:
            below = max(1, high - step)
            low, high, step = (below, high, step) if fits(below) else (0, below, 2 * step)
        while high - low > max(1, low // (5 if self.flags.rehearse else 20)):
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def plan(self, graph, program, strategy):
        """(graph, report) of a plan; a string says why there is none."""
        strategy, _, recompute = strategy.partition("+")
        more = {"recompute": recompute} if recompute else {}
        try:
            result = spillway.rewrite(graph, strategy=strategy, **more, **self.machine_for(program))
        except spillway.DoesNotFitError as error:
            return "no plan fits: %s" % error
        return result.graph_def, result.report

    # ---- One row of the table.

    def row(self, program, batch, strategy):
        say("%s, batch %d, %s" % (program, batch, strategy))
        graph, names = self.graph(program, batch)
        row = {"program": program, "batch": batch, "strategy": strategy}
        report = None
        if strategy != "none":
            planned = self.plan(graph, program, strategy)
            if isinstance(planned, str):
                self.rows.append({**row, "simulated_fit": "DOES_NOT_FIT", "why": planned})
                return
            graph, report = planned
            again = report.recomputation
            row.update(swaps=len(report.swaps), clones=again.node_count if again else 0,
                       simulated_clones_s=again.time_ns / 1e9 if again else 0.0)
        forecast = self.simulated(graph, program)
        device = forecast.devices[0]
        step_ns = forecast.step_time_ns
        row.update(simulated_fit=forecast.fit,
                   simulated_step_s=None if step_ns is None else step_ns / 1e9,
                   simulated_peak=device.peak_bytes, simulated_out=device.copy_out_bytes,
                   simulated_in=device.copy_in_bytes)
        path, trace = self.out / "graphs" / "now.pb", self.out / "graphs" / "now_trace.pb"
        path.write_bytes(graph)
        held = self.flags.card and strategy != "none"
        done = self.work("train", graph=str(path), trace=str(trace), names=names,
                         steps=self.flags.steps, memory_mib=self.flags.card << 10 if held else 0)
        row.update(done)
        if done.get("trained"):
            self.add_measured(row, report, trace.read_bytes())
        self.rows.append(row)

    def add_measured(self, row, report, trace):
        if report is not None:
            check = spillway.check(report, trace)
            row.update(out=check.bytes_out.seen, back=check.bytes_in.seen,
                       as_planned=check.as_planned)
            for device in check.devices:
                row["peak"] = device.in_use_peak_bytes.seen
            if not check.as_planned:
                self.fail(row, "not as planned: %s" % check)
        as_it_came = [other for other in self.rows if other.get("trained")
                      and (other["program"], other["batch"], other["strategy"]) ==
                      (row["program"], row["batch"], "none")]
        if not as_it_came:
            return
        expected = as_it_came[0]["losses"]
        row["loss_difference"] = max(abs(a - b) / abs(b or 1) for a, b in
                                     zip(row["losses"], expected))
        if self.flags.rehearse and row["losses"] != expected:
            self.fail(row, "other losses than the graph as it came")

    def fail(self, row, why):
        self.failures.append("%s, batch %d, %s: %s" % (row["program"], row["batch"],
                                                      row["strategy"], why))

    # ---- All of it.

    def run(self):
        (self.out / "graphs").mkdir(parents=True, exist_ok=True)
        found = self.work("describe")
        if found.get("no_gpu"):
            return None
        if "machine" not in found:
            raise RuntimeError("the machine cannot be measured: %s" % found.get("why"))
        self.machine = found["machine"]
        (self.out / "preset.json").write_text(json.dumps(self.machine, indent=1) + "\n")
        say("measured: %s" % words_of(self.machine))
        shares = (REHEARSED_SHARES if self.flags.rehearse else
                  CARD_SHARES if self.flags.card else SHARES)
        for program in self.flags.programs:
            largest = self.largest_batch(program)
            if largest == 0:
                self.failures.append("%s: not even a batch of 1 is simulated to fit" % program)
                continue
            for strategy, tried in shares.items():  # "none" is the first.
                for share in tried:
                    self.row(program, max(1, round(largest * share)), strategy)
                    self.write(found)
        for row in self.rows:
            if row["simulated_fit"] == "FITS" and not row.get("trained"):
                self.fail(row, "simulated to fit, and did not train: %s" % row.get("why"))
        self.write(found)
        return found

    def write(self, found):
        (self.out / "results.json").write_text(json.dumps(
            {"found": found, "rows": self.rows, "failures": self.failures}, indent=1) + "\n")
        text = ["# Foretold against measured: %s" % found["gpu"], "",
                "%s, TensorFlow %s, Spillway %s, %d steps each%s. Machine as measured: %s." % (
                    datetime.date.today(), found["tensorflow"],
                    spillway.library_version(), self.flags.steps,
                    "; **rehearsed on a CPU: no figure means anything**" if self.flags.rehearse
                    else "" if self.flags.allocator == "bfc" else "; **with the allocator %s**"
                    % self.flags.allocator, words_of(self.machine)), "",
                "Foretold / measured. Steps are launched ahead. Peaks are all that the allocator "
                "holds. Overlap: the share of the time of copies in which a kernel ran. Again: the "
                "time of nodes that run again. Loss: the largest relative difference of a step's "
                "loss from that of the graph as it came.%s" % (
                    "" if not self.flags.card else " **Held to %d GiB**, but for `none`."
                    % self.flags.card), "",
                "| program | batch | strategy | swaps | clones | fits / trained | step, ms | "
                "peak, MiB | out, MiB | in, MiB | overlap | again, ms | loss |", "|---" * 13 + "|"]
        for row in self.rows:
            text.append("| %s |" % " | ".join(cells(row)))
        if self.failures:
            text += ["", "## Failed", ""] + ["- " + failure for failure in self.failures]
        (self.out / "table.md").write_text("\n".join(text) + "\n")


def words_of(machine):
    return ("%.1f GiB for the allocator, %.1f TFLOP/s (convolutions %.2f, matrix products %.2f of "
            "it), memory %.0f GB/s, %.1f us a launch, link %.1f GB/s each way, %.1f us a copy") % (
                machine["gpu_memory_bytes"] / 2 ** 30, machine["peak_flops"] / 1e12,
                machine["eff_conv"], machine["eff_matmul"], machine["mem_bytes_per_s"] / 1e9,
                machine["launch_s"] * 1e6, machine["d2h_bytes_per_s"] / 1e9,
                machine["copy_latency_s"] * 1e6)


def cells(row):
    def pair(simulated, measured, scale, form):
        return " / ".join("-" if x is None else form % (x * scale) for x in (simulated, measured))

    fit = {"FITS": "yes", "DOES_NOT_FIT": "no"}.get(row["simulated_fit"], "unknown")
    overlap = row.get("overlapped")
    loss = row.get("loss_difference")
    return [row["program"], str(row["batch"]), row["strategy"], str(row.get("swaps", "-")),
            str(row.get("clones", "-")),
            "%s / %s" % (fit, "yes" if row.get("trained") else "no"),
            pair(row.get("simulated_step_s"), row.get("step_s"), 1e3, "%.1f"),
            pair(row.get("simulated_peak"), row.get("peak"), 1 / MIB, "%.0f"),
            pair(row.get("simulated_out"), row.get("out"), 1 / MIB, "%.0f"),
            pair(row.get("simulated_in"), row.get("back"), 1 / MIB, "%.0f"),
            "-" if overlap is None else "%.0f %%" % (100 * overlap),
            pair(row.get("simulated_clones_s"), row.get("clones_s"), 1e3, "%.1f"),
            "-" if loss is None else "equal" if loss == 0 else "%.1e" % loss]


def check_overlap():
    """gpu_worker.engines on a trace that is easy to count by hand; an error message, or None."""
    class Node:
        def __init__(self, start, length, name="a"):
            self.node_name, self.timeline_label = name, ""
            self.all_start_micros, self.op_end_rel_micros, self.all_end_rel_micros = (
                start, length, length)

    class Device:
        def __init__(self, device, *nodes):
            self.device, self.node_stats = device, nodes

    class Stats:
        dev_stats = [Device("/device:GPU:0/stream:all", Node(0, 10), Node(5, 15, "lms/recompute_a"),
                            Node(40, 10)),
                     # The same again, and what is neither kernel nor copy between GPU and host.
                     Device("/device:GPU:0/stream:7", Node(0, 10)),
                     Device("/device:GPU:0/sync", Node(20, 20)),
                     Device("/device:GPU:0/stream:8<MemcpyD2H>", Node(15, 10)),
                     Device("/device:GPU:0/stream:9<MemcpyH2D>", Node(35, 10))]

    # Kernels in 0..20 and 40..50; copies in 15..25 and 35..45: 5 + 5 of 20 together.
    wanted = {"kernel_s": 30e-6, "clones_s": 15e-6, "copy_out_s": 10e-6, "copy_in_s": 10e-6,
              "overlapped": 0.5}
    found = gpu_worker.engines(Stats)
    if any(abs(found[name] - value) > 1e-12 for name, value in wanted.items()):
        return "a made-up trace gives %s, not %s" % (found, wanted)
    return None


def say(text):
    print(text, file=sys.stderr, flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="\n".join(__doc__.splitlines()[2:]))
    parser.add_argument("--rehearse", action="store_true", help="on a CPU, with tiny networks")
    parser.add_argument("--programs", type=lambda text: text.split(","),
                        default=sorted(gpu_programs.PROGRAMS), help="default: all, A,B,...")
    parser.add_argument("--steps", type=int, default=None, help="timed steps; default: 20")
    parser.add_argument("--card", type=int, default=0, metavar="GIB",
                        help="the memory of the card that the GPU stands for; default: its own")
    parser.add_argument("--deterministic", action="store_true",
                        help="kernels that give the same bits at each run, so that losses can be "
                        "compared to the last bit; some networks have an op without one")
    parser.add_argument("--allocator", choices=["bfc", "cuda_malloc_async"], default="bfc",
                        help="TensorFlow's, to see what becomes of plans, which are made for bfc; "
                        "the other one knows no --card (default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("on_a_gpu"),
                        help="folder for what it writes")
    parser.add_argument("--spillway", help=argparse.SUPPRESS)  # As tests/run.sh calls all.
    flags = parser.parse_args()
    for program in flags.programs:
        if program not in gpu_programs.PROGRAMS:
            parser.error("there is no program %s; there are %s" % (
                program, ", ".join(sorted(gpu_programs.PROGRAMS))))
    flags.steps = flags.steps or (2 if flags.rehearse else 20)
    if flags.card < 0:
        parser.error("--card is %d; give GiB, 1 or more" % flags.card)
    if flags.card and flags.allocator != "bfc":
        parser.error("--card holds TensorFlow's own allocator alone: leave out --card or --allocator")
    if flags.steps < 1:
        parser.error("--steps is %d; give 1 or more" % flags.steps)
    flags.out = flags.out.resolve()
    return flags


def main():
    flags = parse()
    bench = Bench(flags)
    wrong = check_overlap()
    if wrong:
        bench.failures.append(wrong)
    try:
        found = bench.run()
    except RuntimeError as error:
        say("on_a_gpu.py: %s" % error)
        return 1
    if found is None:
        say("on_a_gpu.py: TensorFlow sees no GPU here; install tensorflow[and-cuda] on a machine "
            "with one, or give --rehearse")
        return 2
    print((flags.out / "table.md").read_text())
    for failure in bench.failures:
        say("FAILED: %s" % failure)
    say("all of it is in %s" % flags.out)
    print("%d passed, %d failed" % (len(bench.rows), len(bench.failures)))
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
