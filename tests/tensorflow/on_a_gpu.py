#!/usr/bin/env python3
"""Holds Spillway's forecasts against a GPU: one command for whoever has one.

    pip install 'tensorflow[and-cuda]==2.15.1' numpy==1.26.4 spillway_lms-*.whl
    python on_a_gpu.py

In 12 minutes (--minutes), in this order; what fails costs its own time alone, and what there is no time
for is left out, and said to be:
  1. by ctypes, without TensorFlow: cuDNN's convolutions and their workspaces, cuBLAS's matrix products,
     copies, and how long memory takes to pin
  2. in TensorFlow, the classes of kernels in both layouts, on random data: with the copies a preset
  3. ResNet-50, BERT-base and a U-Net unchanged, Grappler on and images in NHWC, as people have them,
     then in NCHW
  4. their plans, where the GPU stands for one of --card GIB (16, or a quarter of its memory): what half and
     a quarter of the memory that a step needs are enough for. The unchanged graph trains at the same
     batches in all that there is, so that speeds are of the same work, and losses can be compared
  5. one plan with what people set: variables, threads, memory that grows

Writes into on_a_gpu/: table.md, a table of simulated against measured, to be attached to a report;
preset.json, for `--hardware on_a_gpu/preset.json`; results.json, all of it. Needs the three files gpu_*.py
beside it.

With --card 0 batches are around the largest that the card itself holds, and strategies are more; give more
--minutes then.

Without a GPU it refuses to run. --rehearse plays it on a CPU with tiny networks, in two minutes: that
everything works, not how fast anything is. Exit code 0: all ran, 1: something failed, 2: bad usage, or
no GPU. The last line is `N passed, N failed`.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

import gpu_programs
import gpu_worker
import spillway

HERE = pathlib.Path(__file__).resolve().parent
# The batches of an unchanged graph, and of its plans, as shares of the largest batch that is
# simulated to fit unchanged.
SHARES = {"none": (0.9, 1.0, 1.1), "budget": (1.0, 1.25, 1.5, 2.0), "budget+off": (1.5, 2.0),
          "budget+all": (1.5, 2.0, 4.0), "level": (1.25, 1.5), "scope": (1.0,)}
# Of a card that the GPU stands for: half and a quarter of the memory that is needed.
CARD_SHARES = {"none": (2.0, 4.0), "budget": (2.0, 4.0), "budget+off": (2.0,), "budget+all": (4.0,)}
# Trials with the first program's plan at the last share of "budget": variables beside those that
# the report advises; None: not even those.
SWITCHES = {"no variables": None, "limit 0": {"TF_CUDNN_WORKSPACE_LIMIT_IN_MB": "0"},
            "order": {"TF_DETERMINISTIC_ORDER": "1"},
            "one thread": {"TF_GPU_THREAD_MODE": "gpu_private", "TF_GPU_THREAD_COUNT": "1"},
            "growth": {"TF_FORCE_GPU_ALLOW_GROWTH": "true"},
            "no autotuning": {"TF_CUDNN_USE_AUTOTUNE": "0"}}
# Of a rehearsal: as few as meet every kind of answer.
REHEARSED_SHARES = {"none": (1.0, 2.0), "budget": (2.0,), "budget+all": (2.0,), "level": (2.0,),
                    "scope": (1.0,)}
REHEARSED_PROGRAMS = "resnet50", "bert", "unet"  # The others are the same in NHWC, as on a CPU.
# A rehearsed GPU's memory: some hundred times that of one example of the tiny networks.
REHEARSED_BYTES = {"resnet50": 6 << 20, "bert": 3 << 20, "unet": 5 << 20}
# Two batches that show an example's memory, and so about where the largest is.
PROBES = 8, 16
# Seconds: of each part before the networks, and of each row. Below the last one none begins.
PART_S = {"convolutions": 40, "copies": 40, "describe": 90}
ROW_S = 90
LEAST_S = 15
BUILDERS = 4
MIB = 1 << 20


class Bench:
    """One run of this program."""

    def __init__(self, flags):
        self.flags, self.out = flags, flags.out
        self.rows, self.failures, self.left_out, self.parts = [], [], [], {}
        self.machine = {}
        self.end = time.monotonic() + 60 * flags.minutes
        # Graphs are made while the GPU works.
        self.builders, self.graphs = concurrent.futures.ThreadPoolExecutor(BUILDERS), {}

    # ---- Work of a process of its own.

    def work(self, do, most=ROW_S, file="gpu_worker.py", environment=None, **job):
        """The last line of its output, and the lines before it under "lines"."""
        # A rehearsal has as much time as it takes.
        limit = 900 if self.flags.rehearse else min(most, max(1, self.end - time.monotonic()))
        job = {"do": do, "rehearse": self.flags.rehearse, "runs": 5, "seconds": 0.8 * limit,
               "deterministic": self.flags.deterministic, "grappler": self.flags.grappler == "on",
               "config": [], "turns": 4 if self.flags.rehearse else 10,
               "device": gpu_worker.REHEARSED if self.flags.rehearse else gpu_worker.GPU, **job}
        variables = {**os.environ, **(environment or {})}
        variables.pop("TF_GPU_ALLOCATOR", None)
        if self.flags.allocator != "bfc":
            variables["TF_GPU_ALLOCATOR"] = self.flags.allocator
        try:
            done = subprocess.run([sys.executable, str(HERE / file), json.dumps(job)],
                                  env=variables, capture_output=True, text=True, timeout=limit,
                                  check=False)
        except subprocess.TimeoutExpired as error:
            said = error.stdout or b""
            said = said.decode(errors="replace") if isinstance(said, bytes) else said
            # The last line may be half of one.
            lines = [line for line in said.splitlines()[:-1] if line.startswith("{")]
            return {"trained": False, "why": "no end after %d s" % limit,
                    "lines": [json.loads(line) for line in lines]}
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if lines and (done.returncode == 0 or file != "gpu_worker.py"):
            return {**json.loads(lines[-1]), "lines": [json.loads(line) for line in lines[:-1]]}
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return {"trained": False, "why": "exit code %d: %s" % (done.returncode, last[:200])}

    def part(self, name):
        """Without TensorFlow."""
        if self.flags.rehearse and not self.flags.cuda_library:
            return
        say(name)
        found = self.work(name, PART_S[name], "gpu_cuda.py", library=self.flags.cuda_library)
        self.parts[name] = found
        if found.get("failed") or found.get("why"):
            self.failures.append("%s: %s" % (name, found.get("failed") or found["why"]))

    def begin_graph(self, program, batch):
        if (program, batch) not in self.graphs:
            self.graphs[program, batch] = self.builders.submit(self.build, program, batch)
        return self.graphs[program, batch]

    def build(self, program, batch):
        path = self.out / "graphs" / ("%s_%d.pb" % (program, batch))
        made = self.work("build", program=program, batch=batch, graph=str(path),
                         environment={"CUDA_VISIBLE_DEVICES": "-1"})
        if "loss" not in made:
            raise RuntimeError("cannot build %s at batch %d: %s" % (program, batch, made.get("why")))
        made.pop("lines", None)
        return path.read_bytes(), made

    def graph(self, program, batch):
        """(bytes, names) of a program at a batch size; made once."""
        return self.begin_graph(program, batch).result()

    # ---- Spillway's output.

    def machine_for(self, program):
        machine = dict(self.machine)
        machine["efficiencies"] = {given["kernels"]: given["efficiency"]
                                   for given in machine.get("efficiencies", [])}
        if self.flags.grappler == "off":
            machine["grappler"] = "as_is"
        if self.flags.rehearse:
            machine["gpu_memory_bytes"] = REHEARSED_BYTES[program]
        elif self.flags.card:
            machine["gpu_memory_bytes"] = self.flags.card << 30
        return machine

    def simulated(self, graph, program, **more):
        return spillway.simulate(graph, **self.machine_for(program), **more).forecast

    def largest_batch(self, program):
        """The largest that is simulated to fit unchanged, to a twentieth: from the peaks of two
        others, and then downwards. 0: none."""
        peaks = [self.simulated(self.graph(program, batch)[0], program,
                               no_budget=True).devices[0].peak_bytes
                 for batch in PROBES]
        each = max(1, (peaks[1] - peaks[0]) // (PROBES[1] - PROBES[0]))
        # A tenth is the reserve that a budget has by default.
        room = 0.9 * self.machine_for(program)["gpu_memory_bytes"] - peaks[0]
        batch = max(1, PROBES[0] + int(room // each))
        while batch > 0:
            fit = self.simulated(self.graph(program, batch)[0], program).fit
            say("  %s at batch %d: %s" % (program, batch, fit.lower().replace("_", " ")))
            if fit == "FITS":
                break
            batch -= max(1, batch // (5 if self.flags.rehearse else 20))
        return batch

    def plan(self, graph, program, strategy):
        """(graph, report) of a plan; a string says why no plan fits."""
        strategy, _, recompute = strategy.partition("+")
        more = {"recompute": recompute} if recompute else {}
        try:
            result = spillway.rewrite(graph, strategy=strategy, **more, **self.machine_for(program))
        except spillway.DoesNotFitError as error:
            return "no plan fits: %s" % error
        return result.graph_def, result.report

    # ---- One row of the table.

    def row(self, program, batch, strategy, switch=""):
        what = "%s, batch %d, %s%s" % (program, batch, strategy, switch and ", " + switch)
        if not self.flags.rehearse and self.end - time.monotonic() < LEAST_S:
            self.left_out.append(what)
            return
        say(what)
        graph, names = self.graph(program, batch)
        row = {"program": program, "batch": batch, "strategy": strategy, "switch": switch}
        report, environment, config = None, {}, []
        if strategy != "none":
            planned = self.plan(graph, program, strategy)
            if isinstance(planned, str):
                self.rows.append({**row, "simulated_fit": "DOES_NOT_FIT", "why": planned})
                return
            graph, report = planned
            # As `spillway run` and the report's readers have it.
            # The limit on workspaces makes convolutions fail that must be deterministic.
            if SWITCHES.get(switch, {}) is not None and not self.flags.deterministic:
                environment = dict(variable.split("=", 1) for variable in report.advice.environment)
                environment.update(SWITCHES.get(switch, {}))
            if self.flags.grappler == "on":
                config = [report.advice.config_proto_text]
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
                         steps=self.flags.steps, memory_mib=self.flags.card << 10 if held else 0,
                         environment=environment, config=config)
        done.pop("lines", None)
        row.update(done, ran_out=ran_out(done.get("why", "")))
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
            # Grappler merges swap-ins that are equal, and folds constants.
            if not check.as_planned and self.flags.grappler == "off":
                self.fail(row, "not as planned: %s" % check)
        as_it_came = [other for other in self.rows if other.get("trained")
                      and (other["program"], other["batch"], other["strategy"]) ==
                      (row["program"], row["batch"], "none")]
        if not as_it_came:
            return
        expected = as_it_came[0]["losses"]
        row["loss_difference"] = max(abs(a - b) / abs(b or 1) for a, b in
                                     zip(row["losses"], expected))
        # With Grappler last bits may differ, as it fuses other operations at a swap.
        if self.flags.rehearse and row["loss_difference"] > (
                1e-4 if self.flags.grappler == "on" else 0):
            self.fail(row, "other losses than the graph as it came")

    def fail(self, row, why):
        self.failures.append("%s, batch %d, %s: %s" % (row["program"], row["batch"],
                                                      row["strategy"], why))

    # ---- All of it.

    def run(self):
        (self.out / "graphs").mkdir(parents=True, exist_ok=True)
        for program in self.flags.programs:
            for batch in PROBES:
                self.begin_graph(program, batch)
        for name in ("convolutions", "copies"):
            self.part(name)
        found = self.work("describe", PART_S["describe"])
        if found.get("no_gpu"):
            return None
        if "machine" not in found:
            raise RuntimeError("the machine cannot be measured: %s" % found.get("why"))
        self.machine = {**found["machine"], **link_of(self.parts.get("copies", {}))}
        self.failures += ["kernels of %s: %s" % failed for failed in found["failed"].items()]
        (self.out / "preset.json").write_text(json.dumps(self.machine, indent=1) + "\n")
        say("measured: %s" % words_of(self.machine))
        if self.flags.card is None:
            self.flags.card = min(16, self.machine["gpu_memory_bytes"] >> 32)
        shares = (REHEARSED_SHARES if self.flags.rehearse else
                  CARD_SHARES if self.flags.card else SHARES)
        largest = {}
        for program in self.flags.programs:
            largest[program] = self.largest_batch(program)
            if largest[program] == 0:
                self.failures.append("%s: not even a batch of 1 is simulated to fit" % program)
        rows = [(program, max(1, round(largest[program] * share)), strategy)
                for strategy, tried in shares.items()  # "none" is the first.
                for share in tried for program in self.flags.programs if largest[program] > 0]
        rows += [(*[row for row in rows if row[0] == rows[0][0] and row[2] == "budget"][-1], switch)
                 for switch in SWITCHES if rows and not self.flags.rehearse]
        for row in rows:
            self.begin_graph(*row[:2])
        for row in rows:
            self.row(*row)
            self.write(found)
        for row in self.rows:
            if row["simulated_fit"] == "FITS" and not row["switch"] and not row.get("trained"):
                self.fail(row, "simulated to fit, and %s: %s" % (
                    "ran out of memory" if row.get("ran_out") else "did not train", row.get("why")))
        self.write(found)
        return found

    def write(self, found):
        (self.out / "results.json").write_text(json.dumps(
            {"found": found, "parts": self.parts, "rows": self.rows, "failures": self.failures,
             "left_out": self.left_out}, indent=1) + "\n")
        text = ["# Foretold against measured: %s" % found["gpu"], "",
                "%s, TensorFlow %s, Spillway %s, Grappler %s, %d steps each%s. Machine as measured: %s." % (
                    datetime.date.today(), found["tensorflow"],
                    spillway.library_version(), self.flags.grappler, self.flags.steps,
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
        text += self.table_of_workspaces()
        if self.left_out:
            text += ["", "## No time for", ""] + ["- " + what for what in self.left_out]
        if self.failures:
            text += ["", "## Failed", ""] + ["- " + failure for failure in self.failures]
        (self.out / "table.md").write_text("\n".join(text) + "\n")


    def table_of_workspaces(self):
        groups = self.parts.get("convolutions", {}).get("groups", {})
        if not groups:
            return []
        limits = list(next(iter(groups.values()))["at_limit_mib"])
        text = ["", "## What a limit on cuDNN's workspaces costs", "",
                "How many times as long all convolutions take with it as without, by layout and type; the "
                "workspace of the fastest algorithm as a share of input and output.", "",
                "| | kernels | %s | median share | largest |" % " | ".join(
                    limit + " MiB" for limit in limits), "|---" * (4 + len(limits)) + "|"]
        for name, group in groups.items():
            text.append("| %s | %d | %s | %.2f | %.2f |" % (
                name, group["kernels"], " | ".join(
                    "%.3f" % group["at_limit_mib"][limit]["slower"] for limit in limits),
                group["median_share"], group["largest_share"]))
        return text


def link_of(copies):
    """The numbers of a preset that copies without TensorFlow say more exactly: each way while the other
    one is in use."""
    if "out_while_in" not in copies:
        return {}
    return {"d2h_bytes_per_s": copies["out_while_in"], "h2d_bytes_per_s": copies["in_while_out"]}


def ran_out(error):
    """Whether an error of TensorFlow says that memory ran out: `spillway check` knows its words."""
    try:
        spillway.check(b"", error.encode())
    except spillway.SpillwayError as answer:
        return "ran out of GPU memory" in str(answer)
    return False


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
    return [row["program"], str(row["batch"]),
            row["strategy"] + (row["switch"] and ", " + row["switch"]), str(row.get("swaps", "-")),
            str(row.get("clones", "-")),
            "%s / %s" % (fit, "yes" if row.get("trained") else
                         "out of memory" if row.get("ran_out") else "no"),
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
                     # The same again, and neither kernels nor copies between GPU and host.
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


def check_errors():
    """That ran_out knows TensorFlow's errors when memory runs out; an error message, or None."""
    for error, wanted in (
            ("ResourceExhaustedError at conv: OOM when allocating tensor with shape[8,8]", True),
            ("NotFoundError at conv: No algorithm worked!  Error messages:", True),
            ("UnknownError at conv: CUDNN failed to allocate the scratch space for the runner", True),
            ("InternalError at conv: No-scratch fallback runner requires nonzero scratch space", True),
            ("InvalidArgumentError at x: Incompatible shapes: [2] vs. [3]", False), ("", False)):
        if ran_out(error) != wanted:
            return "%r %s taken for memory that ran out" % (error, "is not" if wanted else "is")
    return None


def say(text):
    print(text, file=sys.stderr, flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="\n".join(__doc__.splitlines()[2:]))
    parser.add_argument("--rehearse", action="store_true", help="on a CPU, with tiny networks")
    parser.add_argument("--programs", type=lambda text: text.split(","),
                        default=None, help="default: all, A,B,...")
    parser.add_argument("--steps", type=int, default=None, help="timed steps; default: 20")
    parser.add_argument("--minutes", type=float, default=12, help="in all (default: %(default)s)")
    parser.add_argument("--card", type=int, default=None, metavar="GIB",
                        help="the memory of the card that the GPU stands for; 0: its own (default: 16, or a "
                        "quarter of its own)")
    parser.add_argument("--grappler", choices=["on", "off"], default="on",
                        help="whether TensorFlow edits graphs before they run, as it does by default; "
                        "off: losses can be compared to the last bit")
    parser.add_argument("--cuda-library", help=argparse.SUPPRESS)  # Stands for CUDA in a rehearsal.
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
    flags.programs = flags.programs or list(
        REHEARSED_PROGRAMS if flags.rehearse else gpu_programs.PROGRAMS)
    for program in flags.programs:
        if program not in gpu_programs.PROGRAMS:
            parser.error("there is no program %s; there are %s" % (
                program, ", ".join(sorted(gpu_programs.PROGRAMS))))
    flags.steps = flags.steps or (2 if flags.rehearse else 20)
    if flags.rehearse or flags.allocator != "bfc":
        flags.card = flags.card or 0
    if flags.card is not None and flags.card < 0:
        parser.error("--card is %d; give GiB, 0 or more" % flags.card)
    if not flags.minutes > 0:
        parser.error("--minutes is %s; give more than 0" % flags.minutes)
    if flags.rehearse and not set(flags.programs) <= set(REHEARSED_PROGRAMS):
        parser.error("a rehearsal has %s alone" % ", ".join(REHEARSED_PROGRAMS))
    if flags.card and flags.allocator != "bfc":
        parser.error("--card holds TensorFlow's own allocator alone: leave out --card or --allocator")
    if flags.steps < 1:
        parser.error("--steps is %d; give 1 or more" % flags.steps)
    flags.out = flags.out.resolve()
    return flags


def main():
    flags = parse()
    bench = Bench(flags)
    bench.failures += [wrong for wrong in (check_overlap(), check_errors()) if wrong]
    try:
        found = bench.run()
    except RuntimeError as error:
        say("on_a_gpu.py: %s" % error)
        return 1
    finally:
        bench.builders.shutdown(cancel_futures=True)
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
