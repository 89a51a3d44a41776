"""Spillway: Large Model Support for TensorFlow graphs, from Python.

    import spillway
    result = spillway.rewrite(graph_def, batch_size=256)
    print(result)
    result.graph_def, result.report

Loads neither TensorFlow nor grpc nor protobuf; the library behind it is loaded at the first call.
`spillway.tensorflow` edits graphs in place, in TensorFlow.
"""

try:
    from spillway._version import __version__
except ModuleNotFoundError as error:
    raise ImportError(
        "this copy of the Spillway package is not built: its messages and keywords are made from the "
        ".proto files; run cmake --preset release && cmake --build build --target spillway_shared, "
        "or install a wheel") from error
from spillway._call import Progress
from spillway._check import Check, check
from spillway._client import Client
from spillway._native import library as _library
from spillway._plot import plot
from spillway._questions import capabilities, diff, explore, inspect, simulate
from spillway._rewrite import RewriteResult, apply, rewrite, strip
from spillway.errors import (AssumedMachineWarning, CancelledError, DeadlineExceededError,
                             DoesNotFitError, InternalError, InvalidArgumentError, InvalidGraphError,
                             InvalidOptionError, LimitExceededError, LiveGraphError,
                             NativeLibraryError, NoBackwardPartError, SpillwayError,
                             SpillwayWarning, UnavailableError)
from spillway.messages import (Capabilities, ExploredSize, ExploreReport, GraphDiff, GraphSummary,
                               SimulateReport, TensorSummary)
from spillway.patch import Patch
from spillway.plan import Plan
from spillway.report import Report

__all__ = [
    "AssumedMachineWarning", "CancelledError", "Capabilities", "Check", "Client",
    "DeadlineExceededError", "DoesNotFitError", "ExploreReport", "ExploredSize", "GraphDiff",
    "GraphSummary", "InternalError", "InvalidArgumentError", "InvalidGraphError",
    "InvalidOptionError", "LimitExceededError", "LiveGraphError", "NativeLibraryError",
    "NoBackwardPartError", "Patch", "Plan", "Progress", "Report", "RewriteResult", "SimulateReport",
    "SpillwayError", "SpillwayWarning", "TensorSummary", "UnavailableError", "__version__", "apply",
    "capabilities", "check", "diff", "explore", "inspect", "library_version", "plot", "rewrite",
    "simulate", "strip",
]


def library_version() -> str:
    """The version of the library, `MAJOR.MINOR.PATCH`. Raises NativeLibraryError."""
    return _library().spillway_version().decode()
