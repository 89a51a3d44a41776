"""Durations, as on the command line: "30s", "500ms", "1h30m"; or a number of seconds.

The grammar is that of absl::ParseDuration, which the program uses (absl/time/duration.cc).
"""

from __future__ import annotations

import re
from typing import Any, Optional

from spillway import errors
from spillway._values import number_of

_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|ms|s|m|h)"
_TEXT = re.compile(r"\+?(?:%s)+" % _PART, re.ASCII)
_INFINITE = re.compile(r"\+?inf", re.ASCII)


def seconds_of(option: str, value: Any) -> Optional[float]:
    """Returns seconds; None stays None. Raises InvalidOptionError."""
    if value is None:
        return None
    if isinstance(value, str):
        if _INFINITE.fullmatch(value):
            return float("inf")
        if _TEXT.fullmatch(value):
            seconds = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, value))
            if seconds > 0:
                return seconds
        raise errors.bad_option(option, value, "is not a time above zero with a unit, e.g. "
                                               "\"30s\", \"500ms\", \"2m\", nor a number of seconds")
    what = "a number of seconds, nor a time with a unit, e.g. \"30s\""
    seconds = number_of(option, value, what)
    if seconds != seconds:
        raise errors.bad_option(option, value, "is not " + what)
    return seconds
