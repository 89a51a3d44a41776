"""The warning that an answer is for an assumed machine."""

from typing import Any, Mapping, Optional

from spillway import _warn, _wire, errors
from spillway.messages import HardwareReport

# RewriteReport.hardware in report.proto.
_HARDWARE = 18


def warn_of(hardware: Optional[HardwareReport]) -> None:
    """Warns if the machine of an answer is assumed."""
    if hardware is None or not hardware.preset_assumed:
        return
    _warn.warn("the machine that trains is not known (no hardware= was given, and nvidia-smi names "
               "no known GPU here): planned for %s; pass hardware= (spillway.capabilities() lists the "
               "presets)" %
               (hardware.hardware.preset if hardware.hardware else "the default preset"),
               errors.AssumedMachineWarning)


def warn_of_report(report: Optional[bytes], keywords: Mapping[str, Any]) -> None:
    """The same for a serialized RewriteReport, of a call with these keywords."""
    if report is None or keywords.get("hardware"):
        return
    for number, value in _wire.values(report):
        if number == _HARDWARE and isinstance(value, memoryview):
            warn_of(HardwareReport.from_message(bytes(value)))
            return
