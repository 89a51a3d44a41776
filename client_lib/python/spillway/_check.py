"""After a run: compares the plan with a traced step."""

from __future__ import annotations

import dataclasses
import html
import json
import os
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple, Union

from spillway import _native, _plot, _text
from spillway._notebook import note
from spillway._values import path_of
from spillway.report import Report

# Attributes that RunCheck (check.proto) names otherwise.
_OTHER_NAMES = {"bytes_out": "copy_out_bytes", "bytes_in": "copy_in_bytes"}


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
    """A plan and a traced step, side by side. `str()` gives it as text, as `spillway check` prints it.

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
        return "<Check: %s>" % str(self).split("\n", 1)[0]

    def __str__(self) -> str:
        data = {_OTHER_NAMES.get(name, name): value
                for name, value in dataclasses.asdict(self).items()}
        return _text.in_words("RunCheck", _native.message_from_json("RunCheck", json.dumps(data)))

    def _repr_html_(self) -> str:
        headline, rest = str(self).split("\n", 1)
        return note(headline) + "<pre>%s</pre>" % html.escape(rest)


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
      run_metadata: a RunMetadata or StepStats, or its bytes. Of a step that failed, the exception:
        the error says whether it ran out of memory, which cuDNN says in other words.
      trace: a file to write: the simulated and the measured step, side by side, in the Trace Event
        format, for Perfetto and chrome://tracing. `report` must be a RewriteResult.
      **keywords: with `trace`, the keywords of `simulate` that the rewrite had: `batch_size`, ...

    Raises:
      TypeError: an argument has the wrong type.
      InvalidOptionError: run_metadata holds no step, or belongs to another graph.
      SpillwayError: the report is damaged.
    """
    trace = path_of("trace", trace)
    plan, seen = _report(report), _run_metadata(run_metadata)
    data = _native.decoded("RunCheck", _native.produce(
        _native.library().spillway_check, plan, len(plan), seen, len(seen)))
    if trace is not None:
        graph = getattr(report, "graph_def", None)
        if graph is None:
            raise TypeError(
                "trace= needs the graph that ran; pass the RewriteResult, not its report")
        with open(trace, "wb") as out:
            out.write(_plot.beside(graph, seen, **keywords))
    elif keywords:
        raise TypeError("%s: of use with trace= alone" % ", ".join(sorted(keywords)))
    return Check(
        swap_outs=_figure(data, "swap_outs"), swap_ins=_figure(data, "swap_ins"),
        bytes_out=_figure(data, "copy_out_bytes"), bytes_in=_figure(data, "copy_in_bytes"),
        step_time_ns=_figure(data, "step_time_ns"),
        devices=tuple(DeviceCheck(device["device"], device["seen_as"],
                                  _figure(device, "step_peak_bytes"),
                                  _figure(device, "in_use_peak_bytes"))
                      for device in data["devices"]),
        missing=tuple(data["missing"]), unmoved=tuple(data["unmoved"]),
        unplanned=tuple(data["unplanned"]), unknown_size_count=int(data["unknown_size_count"]))


def _figure(data: Dict[str, Any], name: str) -> Figure:
    return Figure(**{side: int(value) for side, value in data.get(name, {}).items()})


def _run_metadata(run_metadata: Any) -> bytes:
    if isinstance(run_metadata, Exception):
        run_metadata = ("%s: %s" % (type(run_metadata).__name__, run_metadata)).encode()
    if hasattr(run_metadata, "SerializeToString"):
        run_metadata = run_metadata.SerializeToString()
    if not isinstance(run_metadata, (bytes, bytearray, memoryview)):
        raise TypeError("run_metadata is a %s; pass a RunMetadata, or its bytes"
                        % type(run_metadata).__name__)
    return bytes(run_metadata)


def _report(report: Any) -> bytes:
    report = getattr(report, "report", report)  # Of a RewriteResult.
    if isinstance(report, Report):
        return _text.serialized(report)
    if isinstance(report, (bytes, bytearray)):
        if report.lstrip()[:1] != b"{":  # No message begins with this byte.
            return bytes(report)
        report = report.decode("utf-8", "replace")
    if isinstance(report, str):
        return _native.message_from_json("RewriteReport", report)
    raise TypeError("report is a %s; pass a Report, its bytes or its JSON" % type(report).__name__)
