"""The warning that an answer is for a machine that nobody named."""

import warnings
from typing import Any, Mapping, Optional

from spillway import _wire, errors
from spillway.messages import HardwareReport

# RewriteReport.hardware in report.proto.
_HARDWARE = 18


def warn_of(hardware: Optional[HardwareReport], stack_level: int = 3) -> None:
    """Warns if the machine of an answer is assumed."""
    if hardware is None or not hardware.preset_assumed:
        return
    warnings.warn("nobody names the machine that trains (there is no hardware=, and no nvidia-smi "
                  "here that tells of a known GPU): planned for %s; pass hardware= "
                  "(spillway.capabilities() lists the presets)" %
                  (hardware.hardware.preset if hardware.hardware else "the default preset"),
                  errors.AssumedMachineWarning, stacklevel=stack_level)


def warn_of_report(report: Optional[bytes], keywords: Mapping[str, Any],
                   stack_level: int = 4) -> None:
    """The same for a serialized RewriteReport, of a call with these keywords."""
    if report is None or keywords.get("hardware"):
        return
    for number, value in _wire.values(report):
        if number == _HARDWARE and isinstance(value, memoryview):
            warn_of(HardwareReport.from_message(bytes(value)), stack_level)
            return
