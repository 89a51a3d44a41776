"""Sentences of the library, which name fields of the .proto, in the words of Python's keywords.

The command line does the same with its flags (client_lib/cli/flags/flag_names.cc).
"""

from __future__ import annotations

import re

from spillway import _keywords

# Texts in quotes are names of the user's: they stay.
_PARTS = re.compile(r"('(?:[^'\\]|\\.)*')")
# `hardware.gpu_memory_bytes`, `step.batch_size`, `budget.recompute`, ...
_FIELD = re.compile(r"\b(?:step\.)?hardware\.(\w+)|\b(?:step|budget|level|scope)\.(\w+)")
# `already_rewritten = REPLAN`, `inline_calls is ALWAYS`, `the objective FREE_SWAPS_ONLY`, `with
# recompute = ALL`.
_VALUE = re.compile(r"\b(with )?(%s)( = | is | )([A-Z_]{2,})\b" % "|".join(_keywords.ENUMS))
# Values that are not ordinary words.
_LONG_VALUES = re.compile(r"\b(%s)\b" % "|".join(sorted(
    value.upper() for _, values in _keywords.ENUMS.values() for value in values if "_" in value)))


def in_keywords(sentence: str) -> str:
    """The sentence as a user of keywords would have it."""
    parts = _PARTS.split(sentence)
    return "".join(part if i % 2 else _plain(part) for i, part in enumerate(parts))


def _plain(text: str) -> str:
    text = _FIELD.sub(_keyword, text)
    text = _VALUE.sub(_value, text)
    return _LONG_VALUES.sub(lambda match: match.group().lower(), text)


def _keyword(match: "re.Match[str]") -> str:
    name = match.group(1) or match.group(2)
    if name == "preset":
        return "hardware"
    return name if name in _keywords.KINDS else match.group()


def _value(match: "re.Match[str]") -> str:
    before, name, between, value = match.groups("")
    if value.lower() not in _keywords.ENUMS[name][1]:
        return match.group()
    if between == " = ":
        between = " " if before else " is "
    return before + name + between + value.lower()
