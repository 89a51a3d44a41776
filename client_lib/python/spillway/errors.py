"""The exceptions.

Every error of a call is a `SpillwayError` with the service's code, reason and metadata. Errors that
callers may want to catch separately have their own classes; if Python has a class of that kind,
they derive from it, too (`ValueError`, `TimeoutError`, ...). A keyword that does not exist is a
plain `TypeError`, as for any Python function.
"""

from __future__ import annotations

from typing import Mapping, Optional, Type

# gRPC's codes, by number.
CODE_NAMES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED")


class SpillwayError(Exception):
    """A call failed. `str()` is one sentence that says what to do, in terms of Python's keywords.

    Attributes:
      message: the same sentence with the names of the API's fields, as in every Spillway program.
      code: the gRPC code as a name, e.g. `INVALID_ARGUMENT`.
      reason: for programs; a value of `ErrorReason` in error.proto without its prefix, e.g.
        `DANGLING_INPUT`. Stable. Empty: none.
      metadata: the names and numbers in the message, by key.
    """

    def __init__(self, message: str, *, code: str = "UNKNOWN", reason: str = "",
                 metadata: Optional[Mapping[str, str]] = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.metadata = dict(metadata or {})

    def __str__(self) -> str:
        from spillway import _sentences  # pylint: disable=import-outside-toplevel,cyclic-import
        sentence = _sentences.in_keywords(self.message)
        return "%s [%s]" % (sentence, self.reason) if self.reason else sentence


class NativeLibraryError(SpillwayError, ImportError):
    """libspillway.so.0 is missing, cannot be loaded, or is too old for this package."""


class InvalidOptionError(SpillwayError, ValueError):
    """An option's value is out of its range, contradicts another, or matches nothing."""


class InvalidArgumentError(InvalidOptionError, TypeError):
    """A keyword that exists has a value of a wrong kind, or contradicts another: a TypeError, too, as
    one that does not exist is, but `fail_open` covers it."""


class InvalidGraphError(SpillwayError, ValueError):
    """The graph is damaged, or TensorFlow would not run it."""


class NoBackwardPartError(InvalidGraphError):
    """The graph has neither gradients nor weight updates: rewrite it after `minimize`."""


class LiveGraphError(SpillwayError, RuntimeError):
    """A graph in TensorFlow cannot be edited now. It is unchanged.

    `reason` is FINALIZED_GRAPH, SESSION_HAS_RUN, NO_GRAPH or UNKNOWN_NODE.
    """


class LimitExceededError(SpillwayError):
    """The graph is above a limit of the server, or its result would be above TensorFlow's 2 GiB."""


class DoesNotFitError(SpillwayError):
    """No plan of the strategy fits the memory of a GPU.

    Attributes:
      smallest_budget_bytes: the smallest sufficient budget; None if unknown.
      smallest_gpu_memory_bytes: the same as a value of the option `gpu_memory_bytes`, including the
        margin for TensorFlow's allocator.
      budget_bytes: the available budget.
      device: the GPU; empty if nodes carry none.
    """

    @property
    def smallest_budget_bytes(self) -> Optional[int]:
        return self._number("smallest_budget_bytes")

    @property
    def smallest_gpu_memory_bytes(self) -> Optional[int]:
        return self._number("smallest_gpu_memory_bytes")

    @property
    def budget_bytes(self) -> Optional[int]:
        return self._number("budget_bytes")

    @property
    def device(self) -> str:
        return self.metadata.get("device", "")

    def _number(self, key: str) -> Optional[int]:
        return int(self.metadata[key]) if key in self.metadata else None


class UnavailableError(SpillwayError, ConnectionError):
    """The server cannot be reached, or is full, after all retries. Try again later."""


class DeadlineExceededError(SpillwayError, TimeoutError):
    """`timeout` passed."""


class CancelledError(SpillwayError):
    """The call was cancelled, or the server stopped."""


class InternalError(SpillwayError):
    """A bug in Spillway. Please report it."""


class SpillwayWarning(UserWarning):
    """With `fail_open`: the graph was not rewritten, for the reason in the message."""


class AssumedMachineWarning(UserWarning):
    """Neither the caller nor nvidia-smi names the machine that trains: the answer is for the
    default preset."""


# The maximum length of a value in a sentence, in characters.
_SHOWN_VALUE = 80

_OPTION = ("UNKNOWN_OPTION", "BAD_OPTION", "CONFLICTING_OPTIONS", "BAD_REGEX",
           "NAME_MATCHES_NOTHING", "BAD_PLAN", "OTHER_GRAPH")
_GRAPH = ("MALFORMED_GRAPH", "EMPTY_GRAPH", "BAD_NODE_NAME", "DUPLICATE_NODE", "DANGLING_INPUT",
          "BAD_INPUT", "PORT_OUT_OF_RANGE", "CYCLE", "BAD_ATTRIBUTE", "NO_STARTING_OP",
          "FOREIGN_REWRITE", "BAD_UNDO_RECORD")
_LIMIT = ("LIMIT_EXCEEDED", "SEARCH_TOO_LONG", "RESULT_TOO_LARGE")

_BY_REASON = {
    **{reason: InvalidOptionError for reason in _OPTION},
    **{reason: InvalidGraphError for reason in _GRAPH},
    **{reason: LimitExceededError for reason in _LIMIT},
    "NO_BACKWARD_PART": NoBackwardPartError,
    "DOES_NOT_FIT": DoesNotFitError,
    "OVERLOADED": UnavailableError,
}

_BY_CODE = {
    "CANCELLED": CancelledError,
    "DEADLINE_EXCEEDED": DeadlineExceededError,
    "UNAVAILABLE": UnavailableError,
    "INTERNAL": InternalError,
}


def shown(value: object) -> str:
    """Returns any value as it stands in a sentence."""
    try:
        text = repr(value)
    except Exception:  # pylint: disable=broad-except
        # A whole number of 5,000 digits has no text, and a class may have anything as its repr.
        text = "a value of the type %s" % type(value).__name__
    return text if len(text) <= _SHOWN_VALUE else text[:_SHOWN_VALUE] + "..."


def bad_option(option: str, value: object, wrong: str) -> InvalidOptionError:
    """Returns the error for a keyword's value that cannot be sent: `OPTION: VALUE WRONG`."""
    return InvalidOptionError("%s: %s %s" % (option, shown(value), wrong), code="INVALID_ARGUMENT",
                              reason="BAD_OPTION",
                              metadata={"option": option, "value": shown(value)})


def wrong_argument(message: str) -> InvalidArgumentError:
    """Returns the error for keywords that exist and cannot be given so."""
    return InvalidArgumentError(message, code="INVALID_ARGUMENT", reason="CONFLICTING_OPTIONS")


def make_error(code: int, message: str, reason: str, metadata: Mapping[str, str]) -> SpillwayError:
    """Returns the exception for a status of the library. `code`: the gRPC status code."""
    name = CODE_NAMES[code] if 0 <= code < len(CODE_NAMES) else "UNKNOWN"
    kind: Type[SpillwayError] = _BY_REASON.get(reason) or _BY_CODE.get(name) or SpillwayError
    return kind(message, code=name, reason=reason, metadata=metadata)
