"""Warnings at the line of the program that called Spillway, perhaps through Keras."""

from __future__ import annotations

import sys
import warnings
from typing import Type

from spillway import errors

# Top-level packages of libraries that a program calls.
_LIBRARIES = frozenset(("spillway", "tensorflow", "keras", "tf_keras", "importlib"))


def warn(message: str, category: Type[Warning] = errors.SpillwayWarning) -> None:
    """As `warnings.warn` with the stacklevel of the program's own line."""
    frame = sys._getframe(1)  # pylint: disable=protected-access
    while frame.f_back is not None and _is_in_library(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno,
                           frame.f_globals.get("__name__"),
                           frame.f_globals.setdefault("__warningregistry__", {}))


def _is_in_library(module: str) -> bool:
    return module.partition(".")[0] in _LIBRARIES


def of_failure(error: errors.SpillwayError) -> None:
    """Warns that training continues without swaps."""
    warn("the graph is not rewritten, and trains as it is: %s" % error)
