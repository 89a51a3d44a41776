"""After a run: compares the plan with a traced step."""

from __future__ import annotations

import collections
import os
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from spillway import _measured, _native, _plot, _trace, errors
from spillway._notebook import note, table
from spillway._size import format_bytes, format_time
from spillway.messages import DeviceForecast, TensorSwap
from spillway.report import Report

# The number of names in a sentence; the attributes have all.
_NAMES_SHOWN = 5
_SWAP_NODE = re.compile(r"(^|/)lms/swap(out|in)_")
_PLACE = re.compile(r"(?:device:)?(cpu|gpu):(\d+)$", re.IGNORECASE)


@dataclass(frozen=True)
class Figure:
    """A planned and a measured number. None: unknown. `planned` may be a lower bound if sizes are
    unknown."""
    planned: Optional[int] = None
    seen: Optional[int] = None

    @property
    def share(self) -> Optional[float]:
        """The measured number as a share of the planned one."""
        if self.planned is None or self.seen is None or self.planned <= 0:
            return None
        return self.seen / self.planned


@dataclass(frozen=True)
class DeviceCheck:
    """One GPU, or the CPU that stands for it.

    Attributes:
      device: as spelled in the report; empty if nodes carry none.
      seen_as: as spelled in the trace; empty: not found there.
      step_peak_bytes: the peak of a step without variables. Measured: from the allocation records, a
        lower bound (a swap-in allocates its memory without a record).
      in_use_peak_bytes: the peak of all memory in use; measured only if the allocator counts it.
    """
    device: str
    seen_as: str
    step_peak_bytes: Figure
    in_use_peak_bytes: Figure


@dataclass(frozen=True, repr=False)
class Check:
    """A plan and a traced step, side by side. `str()` gives it as text; a notebook shows a table.

    Attributes:
      swap_outs, swap_ins: swap nodes; measured are those that ran.
      bytes_out, bytes_in: copied in the step. Measured are those of swap nodes that ran on a device
        other than that of the tensor's producer, or of a reader.
      step_time_ns: of the step; planned is the forecast. Tracing makes a step slower.
      devices: one per GPU of the forecast.
      missing: swap nodes that did not run: pruned, since no fetch needs their consumers, or in a
        branch that was not taken.
      unmoved: swap nodes that ran on the device where the tensor already was.
      unplanned: nodes that ran and are named like swap nodes, but are not in the report.
      unknown_size_count: swapped tensors of unknown size, which planned bytes do not include.
    """
    swap_outs: Figure
    swap_ins: Figure
    bytes_out: Figure
    bytes_in: Figure
    step_time_ns: Figure
    devices: Tuple[DeviceCheck, ...] = ()
    missing: Tuple[str, ...] = ()
    unmoved: Tuple[str, ...] = ()
    unplanned: Tuple[str, ...] = ()
    unknown_size_count: int = 0

    @property
    def as_planned(self) -> bool:
        """Whether every planned swap ran and moved its tensor, and no other swap did."""
        return not (self.missing or self.unmoved or self.unplanned)

    def __repr__(self) -> str:
        return "<Check: %s>" % _words(self)[0]

    def __str__(self) -> str:
        return "\n".join(_words(self))

    def _repr_html_(self) -> str:
        return _html(self)


def check(report: Any, run_metadata: Any, *,
          trace: Union[None, str, "os.PathLike[str]"] = None, **keywords: Any) -> Check:
    """Compares a plan with a traced step of training.

    Run a step of the rewritten graph, not the first, with
    `options=tf.compat.v1.RunOptions(trace_level=FULL_TRACE)` and `run_metadata=`. The same
    RunMetadata, as `profile=` of a new `rewrite` of the original graph, replaces estimates by
    measurements.

    Args:
      report: a Report, a RewriteResult, a serialized RewriteReport, or its JSON (`--report` of the
        program `spillway`).
      run_metadata: a RunMetadata or StepStats, or its bytes.
      trace: a file to write: the simulated and the measured step, side by side, in the Trace Event
        format, for Perfetto and chrome://tracing. `report` must be a RewriteResult.
      **keywords: with `trace`, the keywords of `simulate` that the rewrite had: `batch_size`, ...

    Raises:
      TypeError: an argument has the wrong type.
      InvalidOptionError: run_metadata holds no step, or is of another graph.
      SpillwayError: the report is damaged.
    """
    plan, seen = _report(report), _trace.read(run_metadata)
    _check_same_graph(plan, seen)
    if trace is not None:
        _write_trace(report, seen, trace, keywords)
    elif keywords:
        raise TypeError("%s: of use with trace= alone" % ", ".join(sorted(keywords)))
    ran = _Ran(plan, seen)
    forecast = plan.forecast_after or plan.forecast_before
    planned_names = {swap.swap_out for swap in plan.swaps} | {
        back.name for swap in plan.swaps for back in swap.swap_ins}
    return Check(
        swap_outs=Figure(len(plan.swaps), ran.outs),
        swap_ins=Figure(sum(len(swap.swap_ins) for swap in plan.swaps), ran.ins),
        bytes_out=Figure(sum(swap.size_bytes or 0 for swap in plan.swaps), ran.bytes_out),
        bytes_in=Figure(sum((swap.size_bytes or 0) * len(swap.swap_ins) for swap in plan.swaps),
                        ran.bytes_in),
        step_time_ns=Figure(forecast.step_time_ns if forecast else None, seen.step_ns),
        devices=_devices(plan, seen), missing=tuple(ran.missing), unmoved=tuple(ran.unmoved),
        unplanned=tuple(name for name in seen.nodes
                        if _SWAP_NODE.search(name) and not _added(name)
                        and name not in planned_names),
        unknown_size_count=sum(swap.size_bytes is None for swap in plan.swaps))


def _write_trace(report: Any, seen: _trace.Trace, file: Any, keywords: Mapping[str, Any]) -> None:
    graph = getattr(report, "graph_def", None)
    if graph is None:
        raise TypeError("trace= needs the graph that ran; pass the RewriteResult, not its report")
    simulated = _plot.plot(graph, format="trace", **keywords)
    assert isinstance(simulated, str)  # A PNG alone is bytes.
    with open(file, "w", encoding="utf-8") as out:
        out.write(_measured.beside(simulated, seen))


def _report(report: Any) -> Report:
    report = getattr(report, "report", report)  # Of a RewriteResult.
    if isinstance(report, Report):
        return report
    if isinstance(report, (bytes, bytearray)):
        if report.lstrip()[:1] != b"{":  # No message begins with this byte.
            try:
                return Report.from_message(bytes(report))
            except ValueError as error:
                raise errors.InvalidOptionError(
                    "report is no serialized RewriteReport (%s); pass a Report, its bytes or its "
                    "JSON" % error, code="INVALID_ARGUMENT", reason="BAD_OPTION",
                    metadata={"option": "report"}) from error
        report = report.decode("utf-8", "replace")
    if isinstance(report, str):
        return Report.from_message(_native.message_from_json("RewriteReport", report))
    raise TypeError("report is a %s; pass a Report, its bytes or its JSON" % type(report).__name__)


def _producer(swap: TensorSwap) -> str:
    return swap.tensor.rpartition(":")[0]


def _added(name: str) -> bool:
    """Whether the partitioner added the node between devices: `node/_12`."""
    return re.search(r"/_\d+$", name) is not None


def _check_same_graph(plan: Report, trace: _trace.Trace) -> None:
    if plan.swaps and not any(swap.swap_out in trace.nodes or _producer(swap) in trace.nodes
                              for swap in plan.swaps):
        raise errors.InvalidOptionError(
            "run_metadata is of another graph: neither %r nor any other tensor that the report "
            "swaps is in it; give the RunMetadata of a training step" % plan.swaps[0].tensor,
            code="INVALID_ARGUMENT", reason="BAD_OPTION", metadata={"option": "run_metadata"})


class _Ran:
    """The swap nodes that ran, and the bytes that they moved. Names must match exactly: the
    partitioner adds nodes whose names begin with them."""

    def __init__(self, plan: Report, trace: _trace.Trace) -> None:
        self.outs = self.ins = self.bytes_out = self.bytes_in = 0
        self.missing: List[str] = []
        self.unmoved: List[str] = []
        self._nodes = trace.nodes
        for swap in plan.swaps:
            size = self._moved(swap.swap_out, [_producer(swap)])
            self.outs += size is not None
            self.bytes_out += size or 0
            for back in swap.swap_ins:
                size = self._moved(back.name, [reader.node for reader in back.consumers])
                self.ins += size is not None
                self.bytes_in += size or 0

    def _moved(self, name: str, others: List[str]) -> Optional[int]:
        """Returns the bytes moved between the node and the others; None if it did not run."""
        node = self._nodes.get(name)
        if node is None:
            self.missing.append(name)
            return None
        if not any(self._nodes[other].device != node.device
                   for other in others if other in self._nodes):
            self.unmoved.append(name)
            return 0
        return node.output_bytes or 0


def _devices(plan: Report, trace: _trace.Trace) -> Tuple[DeviceCheck, ...]:
    forecast = plan.forecast_after or plan.forecast_before
    planned: Dict[str, Optional[DeviceForecast]] = {device.device: None for device in plan.devices}
    for device in forecast.devices if forecast else ():
        planned[device.device] = device
    found = []
    for name, simulated in planned.items():
        seen_as = _seen_as(name, plan, trace)
        peak = None if simulated is None else simulated.peak_bytes
        resident = 0 if simulated is None else simulated.resident_bytes
        found.append(DeviceCheck(
            device=name, seen_as=seen_as,
            step_peak_bytes=Figure(None if peak is None else peak - resident,
                                   trace.allocated_peak_bytes.get(seen_as)),
            in_use_peak_bytes=Figure(peak, trace.in_use_peak_bytes.get(seen_as))))
    return tuple(found)


def _seen_as(device: str, plan: Report, trace: _trace.Trace) -> str:
    """Returns the device on which most producers of its swapped tensors ran; without any, by its
    name."""
    places = collections.Counter(
        trace.nodes[_producer(swap)].device for swap in plan.swaps
        if swap.device == device and _producer(swap) in trace.nodes)
    if places:
        return places.most_common(1)[0][0]
    wanted = _PLACE.search(device)
    for name in trace.devices:
        place = _PLACE.search(name)
        if wanted and place and place.group(1, 2) == (wanted.group(1).upper(), wanted.group(2)):
            return name
    return ""


def _percent(figure: Figure) -> str:
    if figure.share is None:
        return ""
    return "%.1f %%" % (100 * figure.share) if figure.share < 10 else "%.0f times" % figure.share


def _pair(figure: Figure, show: Any) -> str:
    share = _percent(figure)
    return "%s planned, %s seen%s" % (show(figure.planned), show(figure.seen),
                                      " (%s)" % share if share else "")


def _some(names: Tuple[str, ...]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return "%s and %d more" % (shown, more) if more > 0 else shown


def _words(result: Check) -> List[str]:
    lines = []
    if not result.swap_outs.planned:
        lines.append("no swaps were planned")
    elif result.as_planned:
        lines.append("as planned: all %d swap-outs and %d swap-ins ran and moved their tensors" % (
            result.swap_outs.planned, result.swap_ins.planned or 0))
    else:
        lines.append("not all as planned: %d of %d swap-outs and %d of %d swap-ins ran" % (
            result.swap_outs.seen or 0, result.swap_outs.planned,
            result.swap_ins.seen or 0, result.swap_ins.planned or 0))
    if result.missing:
        lines.append("did not run (pruned, since no fetch needs what reads them, or in a branch "
                     "not taken): %s" % _some(result.missing))
    if result.unmoved:
        lines.append("ran where the tensor was anyway, and moved nothing: %s"
                     % _some(result.unmoved))
    if result.unplanned:
        lines.append("ran, and are not in the report: %s" % _some(result.unplanned))
    if result.swap_outs.planned:
        lines.append("copied out: %s" % _pair(result.bytes_out, format_bytes))
        lines.append("copied in: %s" % _pair(result.bytes_in, format_bytes))
    if result.unknown_size_count:
        lines.append("planned bytes are without %d tensors of unknown size"
                     % result.unknown_size_count)
    lines.append("step: %s" % _pair(result.step_time_ns, format_time))
    for device in result.devices:
        name = device.device or "device (none given)"
        if not device.seen_as:
            lines.append("%s: not in the trace" % name)
            continue
        lines.append("%s, seen as %s: peak of the step %s" % (
            name, device.seen_as, _pair(device.step_peak_bytes, format_bytes)))
        if device.in_use_peak_bytes.seen is not None:
            lines.append("%s, all in use: peak %s" % (
                name, _pair(device.in_use_peak_bytes, format_bytes)))
    if any("CPU:" in device.seen_as for device in result.devices):
        lines.append("CPUs of one process share buffers: swaps between them free no memory")
    return lines


def _html(result: Check) -> str:
    def row(name: str, figure: Figure, show: Any) -> List[str]:
        return [name, show(figure.planned), show(figure.seen), _percent(figure) or "-"]

    rows = [row("swap-outs", result.swap_outs, str), row("swap-ins", result.swap_ins, str),
            row("copied out", result.bytes_out, format_bytes),
            row("copied in", result.bytes_in, format_bytes),
            row("step", result.step_time_ns, format_time)]
    for device in result.devices:
        name = device.device or "(none given)"
        rows.append(row("%s: peak of the step" % name, device.step_peak_bytes, format_bytes))
        if device.in_use_peak_bytes.seen is not None:
            rows.append(row("%s: peak, all in use" % name, device.in_use_peak_bytes, format_bytes))
    notes = [("did not run", result.missing), ("moved nothing", result.unmoved),
             ("not in the report", result.unplanned)]
    listed = [["%s: %s" % (what, _some(names))] for what, names in notes if names]
    return note("as planned" if result.as_planned else "not all as planned") + table(
        ["", "planned", "seen", "share"], rows) + (table([], listed) if listed else "")
