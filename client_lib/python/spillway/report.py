"""What a rewrite did, and why: spillway.v1.RewriteReport (report.proto) as dataclasses.

Sizes are bytes, times nanoseconds. A figure that is not known or not computed is None, never 0.
"""

from __future__ import annotations

import functools
import html
import json
from dataclasses import dataclass, field, fields
from typing import Any, List, Optional, Tuple, Type, TypeVar

from spillway import _native, _wire

# Of RewriteReport: may be as many as the graph has tensors, so they are read when asked for.
_DECISIONS = 12

T = TypeVar("T")


def _nested(kind: type) -> Any:
    return field(default=None, metadata={"kind": kind})


def _list_of(kind: type) -> Any:
    return field(default=(), metadata={"kind": kind, "many": True})


def read(kind: Type[T], data: dict) -> T:
    """A dataclass from proto3's JSON, where 64-bit numbers are strings and enums names. What the
    dataclass does not have is left out."""
    values = {}
    for item in fields(kind):  # type: ignore[arg-type]
        value: Any = data.get(item.name)
        if value is None:
            continue
        inner: Any = item.metadata.get("kind")
        if item.metadata.get("many"):
            value = tuple(read(inner, entry) for entry in value)
        elif inner is not None:
            value = read(inner, value)
        elif item.type in ("int", "Optional[int]"):
            value = int(value)
        elif isinstance(value, list):
            value = tuple(value)
        prefix = item.metadata.get("prefix", "")
        if prefix and value.startswith(prefix):
            value = value[len(prefix):]
        if item.metadata.get("lower"):
            value = value.lower()
        values[item.name] = value
    return kind(**values)


def _enum(prefix: str, lower: bool = False) -> Any:
    return field(default="", metadata={"prefix": prefix, "lower": lower})


@dataclass(frozen=True)
class DeviceReport:
    """The swaps of one device, per training step."""
    device: str = ""
    swapped_tensor_count: int = 0
    swap_out_count: int = 0
    swap_in_count: int = 0
    swap_out_bytes: int = 0
    swap_in_bytes: int = 0
    unknown_size_count: int = 0


@dataclass(frozen=True)
class InputRef:
    """One input of a node."""
    node: str = ""
    input_index: int = 0


@dataclass(frozen=True)
class SwapIn:
    """One way back to the device."""
    name: str = ""
    consumers: Tuple[InputRef, ...] = _list_of(InputRef)
    triggers: Tuple[str, ...] = ()
    pace_nodes: Tuple[str, ...] = ()


@dataclass(frozen=True)
class TensorSwap:
    """One tensor's trip to the host and back."""
    tensor: str = ""
    size_bytes: Optional[int] = None
    swap_out: str = ""
    swap_ins: Tuple[SwapIn, ...] = _list_of(SwapIn)
    device: str = ""
    deadline_nodes: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """The verdict on one tensor: `reason` is SWAPPED, or why not (Reason in report.proto)."""
    tensor: str = ""
    size_bytes: Optional[int] = None
    reason: str = _enum("REASON_")
    size_unknown: str = _enum("SIZE_UNKNOWN_")


@dataclass(frozen=True)
class StageTiming:
    """Time spent in one stage: `parse`, `analysis`, ..."""
    stage: str = _enum("STAGE_", lower=True)
    duration_ns: int = 0


@dataclass(frozen=True)
class ReportWarning:
    """Something to know. `code`: WarningCode in report.proto."""
    code: str = _enum("WARNING_CODE_")
    message: str = ""


@dataclass(frozen=True)
class OutOfMemory:
    """Memory that could not be had."""
    device: str = ""
    host: bool = False
    node: str = ""
    requested_bytes: int = 0
    in_use_bytes: int = 0
    budget_bytes: int = 0
    fragmented: bool = False


@dataclass(frozen=True)
class FitUnknown:
    """One cause for which it is not known whether a step fits."""
    cause: str = _enum("FIT_UNKNOWN_CAUSE_")
    node: str = ""
    count: int = 0
    message: str = ""


@dataclass(frozen=True)
class LowerBounds:
    """What no plan of swaps can do with less than."""
    memory_bytes: int = 0
    memory_node: str = ""
    copy_out_bytes: int = 0
    copy_in_bytes: int = 0
    step_time_ns: int = 0


@dataclass(frozen=True)
class DeviceForecast:
    """One GPU in a step."""
    device: str = ""
    resident_bytes: int = 0
    peak_bytes: int = 0
    peak_node: str = ""
    compute_ns: int = 0
    copy_out_ns: int = 0
    copy_in_ns: int = 0
    stall_ns: int = 0
    copy_out_bytes: int = 0
    copy_in_bytes: int = 0
    bounds: Optional[LowerBounds] = _nested(LowerBounds)
    budget_bytes: int = 0


@dataclass(frozen=True)
class KnownShare:
    """How much of a step on GPUs is known."""
    tensor_count: int = 0
    unknown_tensor_count: int = 0
    bounded_tensor_count: int = 0
    node_count: int = 0
    unknown_node_count: int = 0


@dataclass(frozen=True)
class Forecast:
    """What a step takes. `fit` is FITS, DOES_NOT_FIT or UNKNOWN."""
    fit: str = _enum("FIT_")
    fit_unknown: Tuple[FitUnknown, ...] = _list_of(FitUnknown)
    out_of_memory: Optional[OutOfMemory] = _nested(OutOfMemory)
    step_time_ns: Optional[int] = None
    synchronous_step_time_ns: Optional[int] = None
    devices: Tuple[DeviceForecast, ...] = _list_of(DeviceForecast)
    host_peak_bytes: int = 0
    known_share: Optional[KnownShare] = _nested(KnownShare)


@dataclass(frozen=True)
class Advice:
    """What to set in the training job."""
    host_memory_variable: str = ""
    host_memory_variable_before_1_14: str = ""
    explanation: str = ""
    config_proto_text: str = ""
    internal_fragmentation_fraction: float = 0.0


@dataclass(frozen=True)
class LevelTuning:
    """How the setting for one GPU was found."""
    setting_count: int = 0
    fitting_setting_count: int = 0
    exhaustive: bool = False


@dataclass(frozen=True)
class DeviceFit:
    """How a step stands to the memory of one GPU. `fit` is FITS or UNKNOWN."""
    device: str = ""
    fit: str = _enum("FIT_")
    fit_unknown: Tuple[FitUnknown, ...] = _list_of(FitUnknown)
    budget_bytes: int = 0
    budget_source: str = _enum("MEMORY_SOURCE_")
    unswapped_peak_bytes: int = 0
    not_needed: bool = False
    full_speed_step_time_ns: int = 0
    step_time_ns: Optional[int] = None
    synchronous_step_time_ns: Optional[int] = None
    peak_bytes: Optional[int] = None
    need_bytes: Optional[int] = None


@dataclass(frozen=True)
class EdgeCount:
    """How many control edges of one kind."""
    kind: str = _enum("EDGE_KIND_")
    count: int = 0


@dataclass(frozen=True)
class LevelDevice:
    """The choice of the strategy `level` for one GPU."""
    device: str = ""
    swapout_threshold: Optional[int] = None
    swapin_ahead: Optional[int] = None
    swapin_groupby: Optional[int] = None
    sync_mode: Optional[int] = None
    tuning: Optional[LevelTuning] = _nested(LevelTuning)


@dataclass(frozen=True)
class LevelReport:
    """What the strategy `level` found and chose."""
    level_count: int = 0
    unleveled_op_count: int = 0
    inactive_op_count: int = 0
    edge_count: int = 0
    serialized_level_count: int = 0
    serialization_edge_count: int = 0
    devices: Tuple[LevelDevice, ...] = _list_of(LevelDevice)
    paced: bool = False


@dataclass(frozen=True)
class BudgetDevice:
    """The search of the strategy `budget` for one GPU."""
    device: str = ""
    gap_count: int = 0
    plan_count: int = 0
    fitting_plan_count: int = 0
    other_budget_bytes: Tuple[int, ...] = ()
    cut_short: bool = False
    ordered_peak_bytes: Optional[int] = None
    least_budget_bytes: Optional[int] = None


@dataclass(frozen=True)
class BudgetReport:
    """How the strategy `budget` searched."""
    planning_effort: str = _enum("PLANNING_EFFORT_")
    devices: Tuple[BudgetDevice, ...] = _list_of(BudgetDevice)
    objective: str = _enum("PLANNING_OBJECTIVE_")
    max_slowdown: Optional[float] = None


@dataclass(frozen=True)
class NameCount:
    """How often a name occurs."""
    name: str = ""
    count: int = 0


@dataclass(frozen=True)
class DebugOp:
    """One op, to tune by."""
    name: str = ""
    type: str = ""
    order: Optional[int] = None


@dataclass(frozen=True)
class ScopeReport:
    """What the strategy `scope` took as given."""
    backward_op_count: int = 0
    starting_ops: Tuple[str, ...] = ()
    starting_ops_found: bool = False
    backward_start_level: Optional[int] = None
    level_count: int = 0
    backward_part_found: bool = False
    weight_updates: Tuple[NameCount, ...] = _list_of(NameCount)
    backward_scopes: Tuple[NameCount, ...] = _list_of(NameCount)
    n_tensors: int = 0
    lb: int = 0
    ub: int = 0
    debug_ops: Tuple[DebugOp, ...] = _list_of(DebugOp)


@dataclass(frozen=True)
class _Fields:
    """The fields of RewriteReport, decisions apart."""
    outcome: str = _enum("OUTCOME_")
    summary: str = ""
    strategy: str = _enum("STRATEGY_", lower=True)
    node_count_before: int = 0
    node_count_after: int = 0
    graph_bytes_before: int = 0
    graph_bytes_after: int = 0
    devices: Tuple[DeviceReport, ...] = _list_of(DeviceReport)
    fits: Tuple[DeviceFit, ...] = _list_of(DeviceFit)
    swaps: Tuple[TensorSwap, ...] = _list_of(TensorSwap)
    added_control_edges: Tuple[EdgeCount, ...] = _list_of(EdgeCount)
    stages: Tuple[StageTiming, ...] = _list_of(StageTiming)
    warnings: Tuple[ReportWarning, ...] = _list_of(ReportWarning)
    advice: Optional[Advice] = _nested(Advice)
    scope: Optional[ScopeReport] = _nested(ScopeReport)
    level: Optional[LevelReport] = _nested(LevelReport)
    budget: Optional[BudgetReport] = _nested(BudgetReport)
    forecast_before: Optional[Forecast] = _nested(Forecast)
    forecast_after: Optional[Forecast] = _nested(Forecast)
    targets: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Report(_Fields):
    """The account of one rewrite.

    `outcome` is REWRITTEN, NOTHING_TO_DO, KEPT, FOREIGN or STRIPPED. In a notebook it shows as a
    table. Equal if the messages behind are.
    """
    message: bytes = field(default=b"", repr=False)

    @classmethod
    def from_message(cls, message: bytes) -> "Report":
        """From a serialized spillway.v1.RewriteReport."""
        rest, _ = _wire.split(message, _DECISIONS)
        known = read(_Fields, json.loads(_native.message_to_json("RewriteReport", rest)))
        return cls(message=message, **{item.name: getattr(known, item.name)
                                       for item in fields(_Fields)})

    @functools.cached_property
    def decisions(self) -> Tuple[Decision, ...]:
        """The verdict on every tensor considered, in the order of decision."""
        _, decisions = _wire.split(self.message, _DECISIONS)
        data = json.loads(_native.message_to_json("RewriteReport", decisions))
        return tuple(read(Decision, entry) for entry in data["decisions"])

    def to_json(self) -> str:
        """All of it, as proto3's JSON with the field names of report.proto, indented."""
        return _native.message_to_json("RewriteReport", self.message)

    @property
    def swapped_tensor_count(self) -> int:
        """Tensors swapped, on all devices."""
        return sum(device.swapped_tensor_count for device in self.devices)

    def _repr_html_(self) -> str:
        return _table(self)


def format_bytes(count: Optional[int]) -> str:
    """`1.50 GiB`; `-` where there is nothing to say."""
    if count is None:
        return "-"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return "%d B" % count if unit == "B" else "%.2f %s" % (value, unit)


def _milliseconds(nanoseconds: Optional[int]) -> str:
    return "-" if nanoseconds is None else "%.1f ms" % (nanoseconds / 1e6)


_FIT_WORDS = {"FITS": "yes", "DOES_NOT_FIT": "no"}


def _rows(tag: str, rows: List[List[str]]) -> str:
    return "".join("<tr>%s</tr>" % "".join(
        "<%s>%s</%s>" % (tag, html.escape(cell), tag) for cell in row) for row in rows)


def _table(report: Report) -> str:
    """The report for a notebook: plain HTML, no style of its own."""
    parts = ["<p><b>Spillway</b>: %s</p>" % html.escape(report.summary)]
    if report.devices:
        rows = [[device.device or "(none given)", str(device.swapped_tensor_count),
                 str(device.swap_out_count), str(device.swap_in_count),
                 format_bytes(device.swap_out_bytes), format_bytes(device.swap_in_bytes)]
                for device in report.devices]
        parts.append("<table>%s%s</table>" % (_rows("th", [[
            "device", "tensors", "swap-outs", "swap-ins", "out per step", "in per step"]]),
            _rows("td", rows)))
    forecasts = [("before", report.forecast_before), ("after", report.forecast_after)]
    rows = [[name, _FIT_WORDS.get(forecast.fit, "unknown"), _milliseconds(forecast.step_time_ns),
             ", ".join(format_bytes(device.peak_bytes) for device in forecast.devices) or "-",
             format_bytes(forecast.host_peak_bytes)]
            for name, forecast in forecasts if forecast is not None]
    if rows:
        parts.append("<table>%s%s</table>" % (_rows("th", [[
            "forecast", "fits", "step", "peak memory", "host memory"]]), _rows("td", rows)))
    if report.warnings:
        parts.append("<ul>%s</ul>" % "".join(
            "<li>%s</li>" % html.escape(warning.message) for warning in report.warnings))
    return "".join(parts)
