"""The report of a rewrite, its changes and reasons: spillway.v1.RewriteReport (report.proto).

The fields are in messages.py. Sizes are bytes, times nanoseconds. A figure that is unknown or not
computed is None, never 0.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, fields
from typing import Any, Dict, Tuple

from spillway import _native, _wire
from spillway._size import format_bytes
from spillway.messages import (Advice, BudgetDevice, BudgetReport, DebugOp, Decision,
                               DeviceFit, DeviceForecast, DeviceReport, EdgeCount, FitUnknown,
                               Forecast, Hardware, HardwareReport, Inlining, InputRef, KeptCall,
                               KnownShare, LevelDevice, LevelReport, LevelTuning, LowerBounds,
                               NameCount, OutOfMemory, ReportFields, ReportWarning, ScopeReport,
                               StageTiming, SwapIn, TensorSwap)

__all__ = [
    "Advice", "BudgetDevice", "BudgetReport", "DebugOp", "Decision", "DeviceFit", "DeviceForecast",
    "DeviceReport", "EdgeCount", "FitUnknown", "Forecast", "Hardware", "HardwareReport", "Inlining",
    "InputRef", "KeptCall", "KnownShare", "LevelDevice", "LevelReport", "LevelTuning",
    "LowerBounds", "NameCount", "OutOfMemory", "Report", "ReportWarning", "ScopeReport",
    "StageTiming", "SwapIn", "TensorSwap", "format_bytes",
]

# A field of RewriteReport that may have an entry for every tensor, so it is parsed on demand.
_DECISIONS = 12


@dataclass(frozen=True, repr=False)
class Report(ReportFields):
    """The report of one rewrite.

    `outcome` is REWRITTEN, NOTHING_TO_DO, KEPT, FOREIGN, STRIPPED or DRY_RUN. `print` shows a
    summary; a notebook shows a table. Compares equal if the underlying messages are.
    """
    message: bytes = field(default=b"", repr=False)

    @classmethod
    def from_message(cls, message: bytes) -> "Report":
        """Parses a serialized spillway.v1.RewriteReport."""
        rest, _ = _wire.split(message, _DECISIONS)
        known = ReportFields.from_dict(_native.decoded("RewriteReport", rest), keep=False)
        return cls(message=message, **{item.name: getattr(known, item.name)
                                       for item in fields(ReportFields)})

    @functools.cached_property
    def decisions(self) -> Tuple[Decision, ...]:
        """The verdict on every tensor considered, in the order of decision."""
        _, decisions = _wire.split(self.message, _DECISIONS)
        data = _native.decoded("RewriteReport", decisions)
        return tuple(Decision.from_dict(entry, keep=False) for entry in data["decisions"])

    def to_json(self) -> str:
        """Returns the whole report as proto3's JSON with the field names of report.proto, indented."""
        return _native.message_to_json("RewriteReport", self.message)

    def to_dict(self) -> Dict[str, Any]:
        """Returns the same as a dict."""
        return _native.decoded("RewriteReport", self.message)

    @property
    def swapped_tensor_count(self) -> int:
        """The number of swapped tensors on all devices."""
        return sum(device.swapped_tensor_count for device in self.devices)

    def __repr__(self) -> str:
        return "<Report: %s>" % self.summary
