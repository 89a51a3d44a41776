"""Answers as text for people: the lines of the program `spillway`, from the library."""

from __future__ import annotations

import json

from spillway import _native, _sentences
from spillway._message import Message, as_json, told
from spillway.report import Report

# The messages that the library has a text for.
_TEXTS = frozenset((
    "RewriteReport", "Forecast", "SimulateReport", "ExploreReport", "ExploredSize", "GraphSummary",
    "GraphDiff", "GetCapabilitiesResponse"))


def of(message: Message) -> str:
    """Returns the text of an answer, without a newline at its end."""
    name = message._name  # pylint: disable=protected-access
    if name not in _TEXTS:
        return "\n".join("%s: %r" % (field, value) for field, value in told(message))
    return in_words(name, serialized(message))


def in_words(name: str, message: bytes) -> str:
    """Returns the text of a serialized message, with options named by their keywords."""
    return _sentences.in_keywords(_native.text(name, message)).rstrip("\n")


def cost(report: Report) -> str:
    """Returns the cost of a rewrite, in one line."""
    return in_words("RewriteReport line", serialized(report))


def serialized(message: Message) -> bytes:
    """Returns an answer as a message, also one that a program made itself."""
    if isinstance(message, Report) and message.message:
        return message.message
    name = message._name  # pylint: disable=protected-access
    return _native.message_from_json(name, json.dumps(as_json(message)))
