"""Answers as human-readable text, as `print` shows them. A line states the outcome; then come the
facts, each with its name, as on the command line."""

from __future__ import annotations

import textwrap
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from spillway._message import Message, told
from spillway._size import format_bytes, format_time
from spillway.messages import (Capabilities, DeviceFit, DeviceForecast, ExploredSize, ExploreReport,
                               Forecast, GraphDiff, GraphSummary, NameCount, SimulateReport,
                               TensorSummary)
from spillway.report import Report

# The maximum number of items shown of lists that may have thousands.
_SHOWN = 10
_SHOWN_COUNTS = 5
_WIDTH = 100

Fact = Tuple[str, str]

FIT_WORDS = {"FITS": "fits", "DOES_NOT_FIT": "does not fit",
             "UNKNOWN": "not known whether it fits", "": "not judged"}
# In a table.
_SHORT = {**FIT_WORDS, "UNKNOWN": "unknown"}


def of(message: Message) -> str:
    """Returns the text of an answer, without a newline at its end."""
    for kind in type(message).__mro__:
        if kind in _TEXTS:
            return _TEXTS[kind](message)
    return "\n".join(_tree(message, 0))


def facts_text(heading: str, facts: Iterable[Fact]) -> str:
    """A heading, and facts below it: names in a column."""
    shown = list(facts)
    width = max((len(name) for name, _ in shown), default=0)
    lines = [heading] if heading else []
    for name, said in shown:
        lines += textwrap.wrap(said, _WIDTH, initial_indent="  %-*s  " % (width, name),
                               subsequent_indent=" " * (width + 4), break_long_words=False,
                               break_on_hyphens=False) or ["  " + name]
    return "\n".join(lines)


def columns(rows: Sequence[Sequence[str]]) -> List[str]:
    """Rows as aligned columns; all but the first are numbers."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                             for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
            for row in rows]


def device_name(name: str) -> str:
    return name or "(none given)"


# ---- A rewrite.

def needed(report: Report) -> List[Fact]:
    """The needs of the original graph beside the available memory."""
    facts = []
    for fit in report.fits:
        facts.append((_of_device("budget", fit.device, report.fits), "%s%s" % (
            format_bytes(fit.budget_bytes), _source(fit, report))))
        facts.append((_of_device("needed", fit.device, report.fits), _needed(fit)))
    before = report.forecast_before
    if not report.fits and before is not None:
        for device in before.devices:
            budget = ", of a budget of %s" % format_bytes(device.budget_bytes) if (
                device.budget_bytes) else ""
            facts.append((_of_device("needed", device.device, before.devices), "%s at the peak%s: %s"
                          % (format_bytes(device.peak_bytes), budget, FIT_WORDS[before.fit])))
    return facts


def _of_device(word: str, device: str, among: Sequence[Any]) -> str:
    return word if len(among) < 2 else "%s %s" % (word, device_name(device))


def _source(fit: DeviceFit, report: Report) -> str:
    machine = report.hardware.hardware if report.hardware is not None else None
    preset = machine.preset if machine is not None else ""
    words = {"PRESET": ", from the preset %s" % preset if preset else ", from the preset",
             "OPTION": ", from gpu_memory_bytes",
             "NVIDIA_SMI": ", from nvidia-smi"}
    reserve = machine.allocator_reserve if machine is not None else None
    return words.get(fit.budget_source, "") + (
        ", less %.3g%% for TensorFlow's allocator" % (100 * reserve) if reserve else "")


def _needed(fit: DeviceFit) -> str:
    margin = fit.budget_bytes - fit.unswapped_peak_bytes
    verdict = ""
    if fit.not_needed:
        verdict = (": unknown whether swapping is needed" if fit.fit == "UNKNOWN" else
                   ": no swapping is needed")
    return "%s at the peak as it came, %s %s than the budget%s" % (
        format_bytes(fit.unswapped_peak_bytes), format_bytes(abs(margin)),
        "more" if margin < 0 else "less", verdict)


def setting(report: Report) -> List[Fact]:
    """The settings, chosen or given."""
    facts: List[Fact] = [("strategy", report.strategy)] if report.strategy else []
    if report.scope is not None:
        scope = report.scope
        facts.append(("setting", "n_tensors %s, lb %d, ub %d" % (
            "all" if scope.n_tensors < 0 else scope.n_tensors, scope.lb, scope.ub)))
    if report.level is not None:
        for device in report.level.devices:
            said = ["%s %d" % (name, value) for name, value in (
                ("swapout_threshold", device.swapout_threshold),
                ("swapin_ahead", device.swapin_ahead),
                ("swapin_groupby", device.swapin_groupby),
                ("sync_mode", device.sync_mode)) if value is not None]
            tuning = device.tuning
            how = "" if tuning is None else "; %d settings tried, %d fit" % (
                tuning.setting_count, tuning.fitting_setting_count)
            facts.append((_of_device("setting", device.device, report.level.devices),
                          (", ".join(said) or "none is in force") + how))
    if report.budget is not None:
        limit = report.budget.max_slowdown
        facts.append(("setting", "objective %s, planning_effort %s%s" % (
            report.budget.objective.lower(), report.budget.planning_effort.lower(),
            "" if limit is None else ", max_slowdown %g" % limit)))
        for search in report.budget.devices:
            facts.append((_of_device("search", search.device, report.budget.devices),
                          "%d plans simulated, %d fit" % (search.plan_count,
                                                          search.fitting_plan_count)))
    return facts


def cost(report: Report) -> List[Fact]:
    """The cost of the swaps."""
    facts = []
    before, after = report.forecast_before, report.forecast_after
    # A fit's peak is that of the plan with memory to spare; shown is that of the step.
    peaks = {} if after is None else {gpu.device: gpu.peak_bytes for gpu in after.devices}
    for fit in report.fits:
        if fit.step_time_ns is not None:
            facts.append((_of_device("step", fit.device, report.fits), _slowdown(
                fit.step_time_ns, fit.full_speed_step_time_ns,
                peaks.get(fit.device, fit.peak_bytes))))
    if not facts and after is not None:
        facts.append(("step", _slowdown(
            after.step_time_ns, None if before is None else before.step_time_ns,
            max((device.peak_bytes for device in after.devices), default=None))))
    for device in report.devices:
        facts.append((_of_device("copies", device.device, report.devices),
                      "%d tensors, %s out and %s back in a step%s" % (
                          device.swapped_tensor_count, format_bytes(device.swap_out_bytes),
                          format_bytes(device.swap_in_bytes),
                          ", without %d of unknown size" % device.unknown_size_count
                          if device.unknown_size_count else "")))
    if after is not None and after.host_peak_bytes:
        facts.append(("host", "%s of pinned memory" % format_bytes(after.host_peak_bytes)))
    return facts


def _slowdown(step_ns: Optional[int], full_ns: Optional[int], peak: Optional[int]) -> str:
    parts = []
    if step_ns is not None:
        said = "%s launched ahead" % format_time(step_ns)
        if full_ns:
            said += ", %.2f times %s at full speed" % (step_ns / full_ns, format_time(full_ns))
        parts.append(said)
    if peak is not None:
        parts.append("%s at the peak" % format_bytes(peak))
    return "; ".join(parts) or "not known"


def largest_swaps(report: Report, count: int = _SHOWN) -> List[Any]:
    """Swaps, largest first; those of unknown size last."""
    return sorted(report.swaps, key=lambda swap: -(swap.size_bytes or 0))[:count]


def _report(report: Report) -> str:
    facts = needed(report) + setting(report) + cost(report)
    swaps = largest_swaps(report, 3)
    if swaps:
        more = len(report.swaps) - len(swaps)
        facts.append(("largest", ", ".join("%s %s" % (swap.tensor, format_bytes(swap.size_bytes))
                                           for swap in swaps) + (
            " and %d more" % more if more else "")))
    facts += [("warning", warning.message) for warning in report.warnings]
    if report.advice is not None and report.advice.host_memory_variable:
        facts.append(("advice", "set %s in the training job" % report.advice.host_memory_variable))
    return facts_text(report.summary, facts)


# ---- A step.

def _forecast_facts(forecast: Forecast) -> List[Fact]:
    facts = []
    if forecast.step_time_ns is not None:
        facts.append(("step", "%s launched ahead%s" % (
            format_time(forecast.step_time_ns), "" if forecast.synchronous_step_time_ns is None else
            ", %s synchronously" % format_time(forecast.synchronous_step_time_ns))))
    elif forecast.synchronous_step_time_ns is not None:
        facts.append(("step", "%s synchronously" % format_time(forecast.synchronous_step_time_ns)))
    for device in forecast.devices:
        facts.append((device_name(device.device), _device_text(device)))
    if forecast.host_peak_bytes:
        facts.append(("host", "%s of pinned memory" % format_bytes(forecast.host_peak_bytes)))
    lacks = forecast.out_of_memory
    if lacks is not None:
        facts.append(("lacks", "%s asks for %s where %s of %s are in use" % (
            lacks.node, format_bytes(lacks.requested_bytes), format_bytes(lacks.in_use_bytes),
            format_bytes(lacks.budget_bytes))))
    facts += [("unknown", cause.message) for cause in forecast.fit_unknown]
    return facts


def _device_text(device: DeviceForecast) -> str:
    parts = ["%s at the peak%s" % (
        format_bytes(device.peak_bytes),
        " of a budget of %s" % format_bytes(device.budget_bytes) if device.budget_bytes else "")]
    if device.resident_bytes:
        parts.append("%s of it resident" % format_bytes(device.resident_bytes))
    if device.copy_out_bytes or device.copy_in_bytes:
        parts.append("%s copied out, %s in" % (format_bytes(device.copy_out_bytes),
                                               format_bytes(device.copy_in_bytes)))
    parts.append("computes %s, waits %s" % (format_time(device.compute_ns),
                                            format_time(device.stall_ns)))
    return ", ".join(parts)


def _forecast(forecast: Forecast) -> str:
    return facts_text(FIT_WORDS[forecast.fit], _forecast_facts(forecast))


def _simulation(report: SimulateReport) -> str:
    forecast = report.forecast or Forecast()
    facts = _forecast_facts(forecast)
    machine = report.hardware.hardware if report.hardware is not None else None
    if machine is not None and machine.preset:
        facts.append(("machine", machine.preset))
    if report.targets:
        facts.append(("targets", _names(report.targets)))
    if report.simulated is not None:
        facts.append(("shown", "the step %s%s" % (
            "run synchronously" if report.simulated.execution == "SYNCHRONOUS" else "launched ahead",
            ", with unlimited memory" if report.simulated.unlimited_memory else "")))
    for memory in report.memory:
        facts.append(("live", ", ".join(
            "%s %s" % (_tensor_name(live.tensor), _tensor_size(live.tensor))
            for live in memory.live_at_peak[:3])))
    facts += [("warning", warning.message) for warning in report.warnings]
    return facts_text("a step %s" % FIT_WORDS[forecast.fit] if forecast.fit != "UNKNOWN" else
                      "it is not known whether a step fits", facts)


def _tensor_name(tensor: Optional[TensorSummary]) -> str:
    return "-" if tensor is None else tensor.tensor


def _tensor_size(tensor: Optional[TensorSummary]) -> str:
    return format_bytes(None if tensor is None else tensor.size_bytes)


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_COUNTS])
    more = len(names) - _SHOWN_COUNTS
    return "%s and %d more" % (shown, more) if more > 0 else shown


# ---- Sizes.

def _explored_row(size: ExploredSize) -> List[str]:
    unswapped = size.unswapped or Forecast()
    row = [str(size.size), _SHORT[unswapped.fit], format_time(unswapped.step_time_ns),
           _rate(size.sizes_per_s)]
    if size.full_speed_sizes_per_s is not None or size.swapped is not None:
        swapped = size.swapped
        row += ["-" if swapped is None else _SHORT[swapped.fit], _rate(size.swapped_sizes_per_s)]
    return row


def _rate(rate: Optional[float]) -> str:
    return "-" if rate is None else "%.4g" % rate


def _explored(size: ExploredSize) -> str:
    row = _explored_row(size)
    text = "size %s: %s, %s a step, %s a second" % tuple(row[:4])
    return text + ("; with swapping %s, %s a second" % tuple(row[4:]) if len(row) > 4 else "")


def _exploration(report: ExploreReport) -> str:
    rows = [_explored_row(size) for size in report.sizes]
    with_swaps = any(len(row) > 4 for row in rows)
    heading = ["size", "fit", "step", "a second"] + (["with swapping", "a second"] if with_swaps
                                                     else [])
    lines = ["largest %s that fits: %s" % (
        "batch" if report.size_is_batch else "size",
        _largest(report.largest_fitting_size, report.largest_fit))]
    if with_swaps:
        lines.append("with swapping: %s" % _largest(report.largest_fitting_size_swapped,
                                                    report.largest_fit_swapped))
    width = len(heading)
    lines += columns([heading] + [(row + ["-"] * width)[:width] for row in rows])
    lines += ["  warning: " + warning.message for warning in report.warnings]
    return "\n".join(lines)


def _largest(size: Optional[int], fit: str) -> str:
    if size is None:
        return "none"
    return "%d, as far as is known" % size if fit == "UNKNOWN" else str(size)


# ---- A graph, two graphs, a server.

def _counts(counts: Sequence[NameCount]) -> str:
    shown = ", ".join("%d %s" % (count.count, count.name or "(none)")
                      for count in counts[:_SHOWN_COUNTS])
    return shown + (", ..." if len(counts) > _SHOWN_COUNTS else "")


def _graph(summary: GraphSummary) -> str:
    facts = [("edges", "%d of data, %d of control" % (summary.data_edge_count,
                                                      summary.control_edge_count)),
             ("op types", _counts(summary.op_types)), ("devices", _counts(summary.devices)),
             ("scopes", _counts(summary.scopes)), ("levels", str(summary.level_count))]
    if summary.placeholders:
        facts.append(("fed", ", ".join("%s %s" % (fed.tensor, fed.shape or "of unknown rank")
                                       for fed in summary.placeholders[:_SHOWN_COUNTS])))
    if summary.updates:
        facts.append(("updates", _counts(summary.updates)))
    facts.append(("tensors", "%d, of which %d have a known size: %s" % (
        summary.tensor_count, summary.known_size_count, format_bytes(summary.known_size_bytes))))
    if summary.largest_tensors:
        facts.append(("largest", ", ".join(
            "%s %s" % (tensor.tensor, format_bytes(tensor.size_bytes))
            for tensor in summary.largest_tensors[:3])))
    if summary.rewritten_by in ("SPILLWAY", "OTHER"):
        facts.append(("rewritten", "by %s: %d swap-outs, %d swap-ins" % (
            "Spillway" if summary.rewritten_by == "SPILLWAY" else "another program",
            summary.swap_out_count, summary.swap_in_count)))
    return facts_text("a graph of %d nodes, %s" % (
        summary.node_count, format_bytes(summary.size_bytes)), facts)


def _diff(diff: GraphDiff) -> str:
    if diff.identical or diff.same_graph:
        return "the files are the same" if diff.identical else (
            "the graphs are the same, in other bytes")
    facts = [("nodes", "%d -> %d" % (diff.node_count_a, diff.node_count_b))]
    for name, found in (("added", diff.added), ("removed", diff.removed),
                        ("changed", diff.changed)):
        if found:
            facts.append((name, "%d nodes: %s" % (len(found), _names([n.name for n in found]))))
    if diff.rewired:
        facts.append(("rewired", "%d inputs" % len(diff.rewired)))
    if diff.controls_added or diff.controls_removed:
        facts.append(("controls", "%d added, %d removed" % (len(diff.controls_added),
                                                            len(diff.controls_removed))))
    if diff.inlined_calls:
        facts.append(("inlined", "%d calls, which brought %d nodes" % (
            len(diff.inlined_calls), diff.inlined_node_count)))
    size = sum(swap.size_bytes or 0 for swap in diff.swaps)
    return facts_text("%d tensors are swapped in B and not in A, %s" % (
        len(diff.swaps), format_bytes(size)) if diff.swaps else "the graphs differ", facts)


def _capabilities(answer: Capabilities) -> str:
    facts = [("strategies", ", ".join(answer.strategies)),
             ("machines", ", ".join(preset.hardware.preset for preset in answer.hardware_presets
                                    if preset.hardware is not None))]
    limits = answer.limits
    if limits is not None:
        facts += [(name, format_bytes(value) if name.endswith("_bytes") else str(value))
                  for name, value in told(limits)]
    return facts_text("Spillway %s" % answer.version, facts)


# ---- Anything else.

def _tree(message: Message, depth: int) -> List[str]:
    indent = "  " * depth
    lines: List[str] = []
    for name, value in told(message):
        if isinstance(value, Message):
            lines += ["%s%s:" % (indent, name)] + _tree(value, depth + 1)
        elif isinstance(value, tuple) and isinstance(value[0], Message):
            for entry in value[:_SHOWN]:
                lines += ["%s%s:" % (indent, name)] + _tree(entry, depth + 1)
            if len(value) > _SHOWN:
                lines.append("%s%s: and %d more" % (indent, name, len(value) - _SHOWN))
        elif isinstance(value, tuple):
            lines.append("%s%s: %s" % (indent, name, _names([str(entry) for entry in value])))
        else:
            lines.append("%s%s: %s" % (indent, name, _scalar(name, value)))
    return lines


def _scalar(name: str, value: Any) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return format_bytes(value)
    if name.endswith("_ns") and isinstance(value, int):
        return format_time(value)
    return str(value)


_TEXTS: Dict[type, Callable[[Any], str]] = {
    Report: _report, Forecast: _forecast, SimulateReport: _simulation,
    ExploredSize: _explored, ExploreReport: _exploration, GraphSummary: _graph, GraphDiff: _diff,
    Capabilities: _capabilities,
}
