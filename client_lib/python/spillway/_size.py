"""Sizes, as every program of Spillway takes them: 1536, "1.5KiB", "16GB" (10^9), "16GiB" (2^30).

The grammar is that of rewrite_core/base/byte_text.h; tests/testing/sizes.txt binds both.
"""

from __future__ import annotations

import re
from typing import Optional

from spillway import _native, errors

_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _UNITS[_letter + "b"] = 1000 ** _power
    _UNITS[_letter + "ib"] = 1024 ** _power
# Far above 2^63, and below Python's limit for numbers in text.
_MAX_TEXT = 100
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def bytes_of(option: str, text: str) -> int:
    """The bytes that a text stands for. Raises InvalidOptionError, which is a ValueError."""
    if re.fullmatch(r"-[0-9]{1,18}", text, re.ASCII):
        return int(text)  # The range is the library's to judge.
    match = _SIZE.fullmatch(text) if len(text) <= _MAX_TEXT else None
    unit = _UNITS.get(match.group(2).lower()) if match else None
    if match is not None and unit is not None:
        number = match.group(1)
        size = int(float(number) * unit) if "." in number else int(number) * unit
        if size < 1 << 63:
            return size
    raise errors.bad_option(option, text, "is not a number of bytes, plain or with a unit: kB, MB, "
                                          "GB, TB (of 1000), KiB, MiB, GiB, TiB (of 1024)")


def format_bytes(count: Optional[float]) -> str:
    """`1.50 GiB`; `-` if unknown."""
    return "-" if count is None else _native.text("bytes", b"%d" % count)


def format_time(nanoseconds: Optional[int]) -> str:
    """`12.3 ms`, as the command line has it; `-` if unknown."""
    return "-" if nanoseconds is None else _native.text("nanoseconds", b"%d" % nanoseconds)
