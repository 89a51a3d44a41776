"""Sizes, as every program of Spillway takes them: 1536, "1.5KiB", "16GB" (10^9), "16GiB" (2^30).

The grammar is that of rewrite_core/base/byte_text.h; tests/testing/sizes.txt binds both.
"""

import re
from typing import Any

_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _UNITS[_letter + "b"] = 1000 ** _power
    _UNITS[_letter + "ib"] = 1024 ** _power
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def bytes_of(option: str, value: Any) -> Any:
    """The bytes that a text stands for; anything else as it is."""
    if not isinstance(value, str):
        return value
    if re.fullmatch(r"-[0-9]+", value, re.ASCII):
        return int(value)  # The range is the library's to judge.
    match = _SIZE.fullmatch(value)
    unit = _UNITS.get(match.group(2).lower()) if match else None
    if unit is not None:
        number = match.group(1)
        size = int(float(number) * unit) if "." in number else int(number) * unit
        if size < 1 << 63:
            return size
    raise ValueError("%s: %r is not a number of bytes, plain or with a unit: kB, MB, GB, TB (of "
                     "1000), KiB, MiB, GiB, TiB (of 1024)" % (option, value))
