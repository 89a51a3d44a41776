"""One rewrite for all ranks of a Horovod job: rank 0 requests it, the others reuse its result.

    import horovod.tensorflow as hvd
    hvd.init()
    ...                                                   # build the graph, up to `minimize`
    spillway.horovod.rewrite_graph(hvd=hvd)                          # in place, before the session
    result = spillway.horovod.rewrite(graph_def, hvd)                # or bytes, a GraphDef, a Graph

A server is therefore asked only once, and all ranks train with the same swaps. Every rank must make
the call, in the same place. The ranks reuse the edits, not the graph, so each keeps its own seeds
and shards. Either all ranks return, or all raise.

Ranks communicate through Horovod's `broadcast_object`, or with `folder=` through a shared folder,
which does not need Horovod. Host memory belongs to the machine: each rank plans with its share.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple, Union

from spillway import (_doors, _questions, _ranks, _rewrite, _shared_edits, _warn, _wire,
                      errors)
from spillway._duration import seconds_of
from spillway._types import Duration
from spillway.patch import Patch

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["rewrite", "rewrite_graph"]

# Seconds; longer than any rewrite that is not stuck.
WAIT = 600.0
# A year: waiting functions accept no more seconds than fit their clock.
_LONGEST_WAIT = 365 * 86400.0

_Ranks = Union[_ranks.HorovodRanks, _ranks.FolderRanks]
# The fields of the message from rank 0 to the others.
_HEADER, _REPORT, _NODES = 1, 2, 3


@_doors.visible(_doors.SharedKeywords)
def rewrite(graph: Any, hvd: Any = None, *, folder: Optional[str] = None,
            rank: Optional[int] = None, size: Optional[int] = None,
            local_size: Optional[int] = None, wait: Duration = WAIT, fail_open: bool = False,
            patch: bool = False,
            **keywords: Unpack[_doors.SharedKeywords]) -> _rewrite.RewriteResult:
    """`spillway.rewrite`, once for all ranks.

    Args:
      graph: as in `spillway.rewrite`. The same graph on all ranks: names, ops, inputs and devices;
        attributes (seeds, shards) may differ.
      hvd: a Horovod module after `init`, or an object with its `rank()`, `size()`, `local_size()`
        and `broadcast_object(value, root_rank=, name=)`. None: horovod.tensorflow.
      folder: communicate through this folder instead; all ranks must see it, and no other job may
        use it at the same time. One folder remains inside it.
      rank, size, local_size: with `folder`: the index of this rank, the number of ranks, and the
        number on this machine. None: from the environment of horovodrun, mpirun or srun.
      wait: seconds, or `"10m"`, to wait for the other ranks at each of three barriers. Rank 0's call
        to Spillway is between two of them: give it a smaller `timeout`.
      fail_open: the same on all ranks: after a failure of any rank, all warn and keep their graph.
      **keywords: those of `spillway.rewrite`; those of rank 0 apply. `host_memory_bytes`, or the
        preset's, is that of the machine, and is divided by its number of ranks.

    Raises, on all ranks:
      TypeError: a keyword that does not exist, `strip` or `replan`, no Horovod and no folder.
      InvalidGraphError: the ranks have different graphs (GRAPH_DIFFERS).
      DeadlineExceededError: a rank did not arrive.
      SpillwayError: any other failure of a rank; on the other ranks, the message names it.
    """
    def prepare() -> Tuple[bytes, Any]:
        return _rewrite.serialized(graph)

    def unchanged() -> Any:
        message, kind = prepare()
        return message if kind is None else kind.FromString(message)

    result = _once((hvd, folder, rank, size, local_size, _seconds(wait)), prepare,
                   lambda _: None, unchanged, fail_open, dict(keywords))
    if not patch:
        result.patch = None
    return result


@_doors.visible(_doors.SharedKeywords)
def rewrite_graph(graph: Any = None, hvd: Any = None, *, folder: Optional[str] = None,
                  rank: Optional[int] = None, size: Optional[int] = None,
                  local_size: Optional[int] = None, wait: Duration = WAIT,
                  fail_open: bool = False,
                  **keywords: Unpack[_doors.SharedKeywords]) -> _rewrite.RewriteResult:
    """`spillway.tensorflow.rewrite_graph`, once for all ranks: edits the live graph of each.
    Loads TensorFlow. Arguments and errors: those of `rewrite`, and LiveGraphError."""
    from spillway.tensorflow import _live_graph, _settings  # pylint: disable=import-outside-toplevel
    live: List[Any] = []

    def prepare() -> Tuple[bytes, Any]:
        live.append(_live_graph.check_editable(graph))
        return _rewrite.serialized(live[0])

    def finish(rewritten: _rewrite.RewriteResult) -> None:
        assert rewritten.patch is not None
        _live_graph.apply(live[0], rewritten.patch, rewritten.graph_def)
        _settings.limit_workspaces(rewritten.report)

    return _once((hvd, folder, rank, size, local_size, _seconds(wait)), prepare, finish,
                 lambda: None, fail_open, dict(keywords))


def _seconds(wait: Duration) -> float:
    return min(seconds_of("wait", wait) or 0.0, _LONGEST_WAIT)


def _once(place: Tuple[Any, ...], prepare: Callable[[], Tuple[bytes, Any]],
          finish: Callable[[_rewrite.RewriteResult], None], unchanged: Callable[[], Any],
          fail_open: bool, keywords: Dict[str, Any]) -> _rewrite.RewriteResult:
    """Calls `_together` with the ranks of `place`, the arguments of `_meet`. On a failure with
    `fail_open`, warns and returns the graph from `unchanged`."""
    try:
        return _together(_meet(*place), prepare, finish, keywords)
    except errors.SpillwayError as error:
        if not fail_open:
            raise
        _warn.of_failure(error)
        return _rewrite.RewriteResult(unchanged(), error=error)


def _meet(hvd: Any, folder: Optional[str], rank: Optional[int], size: Optional[int],
          local_size: Optional[int], wait: float) -> _Ranks:
    if folder is None:
        if rank is not None or size is not None or local_size is not None:
            raise TypeError("rank, size and local_size need folder=; with hvd they are Horovod's")
        return _ranks.HorovodRanks(_horovod(hvd), wait)
    if hvd is not None:
        raise TypeError("hvd and folder exclude each other")
    if rank is None or size is None or local_size is None:
        found = _ranks.from_environment()
        if found is None:
            raise TypeError("no launcher says which rank this is; give rank=, size=, local_size=")
        rank = found[0] if rank is None else rank
        size = found[1] if size is None else size
        local_size = found[2] if local_size is None else local_size
    return _ranks.FolderRanks(folder, rank, size, local_size, wait)


def _horovod(hvd: Any) -> Any:
    if hvd is None:
        try:
            hvd = importlib.import_module("horovod.tensorflow")
        except ImportError as error:
            raise TypeError("Horovod cannot be imported (%s); give hvd=, or folder="
                            % error) from error
    missing = [name for name in ("rank", "size", "local_size", "broadcast_object")
               if not hasattr(hvd, name)]
    if missing:
        raise TypeError("hvd has no %s; give horovod.tensorflow, or folder=" % missing[0])
    return hvd


def _together(ranks: _Ranks, prepare: Callable[[], Tuple[bytes, Any]],
              finish: Callable[[_rewrite.RewriteResult], None],
              keywords: Dict[str, Any]) -> _rewrite.RewriteResult:
    """Runs three barriers: all have the same graph; rank 0 has a result; all have used it. A rank
    that fails reports it at the next one, where all then raise."""
    failure: Optional[BaseException] = None
    message, kind = b"", None
    state: Dict[str, Any] = {"local_size": ranks.local_size}
    try:
        message, kind = prepare()
        state["nodes"], state["digest"] = _structure(message)
    except Exception as error:  # pylint: disable=broad-except
        failure, state["error"] = error, _described(error)
    states = _all_well(ranks, "ready", state, failure)
    _check_same_graph(states)

    if ranks.rank == 0:
        most = max(int(other["local_size"]) for other in states)
        answer, failure = _ask(message, most, keywords)
    else:
        answer = b""
    answer = ranks.from_first("answer", answer)
    if failure is not None:
        raise failure
    fields = _wire.fields(answer)
    header = json.loads(fields[_HEADER])
    if "error" in header:
        raise _told(0, header["error"])

    result: Optional[_rewrite.RewriteResult] = None
    state = {}
    try:
        patch = Patch.from_dict(header["patch"])
        rewritten = _shared_edits.applied(message, patch, fields.get(_NODES, b""))
        result = _rewrite.RewriteResult(rewritten if kind is None else kind.FromString(rewritten),
                                        report_message=fields.get(_REPORT, b""), patch=patch)
        finish(result)
    except Exception as error:  # pylint: disable=broad-except
        failure, state["error"] = error, _described(error)
    _all_well(ranks, "done", state, failure)
    assert result is not None
    return result


def _structure(message: bytes) -> Tuple[int, str]:
    try:
        return _shared_edits.structure(message)
    except ValueError as error:
        raise errors.InvalidGraphError("the graph is damaged: %s" % error, code="INVALID_ARGUMENT",
                                       reason="MALFORMED_GRAPH") from error


def _all_well(ranks: _Ranks, what: str, state: Dict[str, Any],
              failure: Optional[BaseException]) -> List[Dict[str, Any]]:
    """Returns the states of all ranks. Raises this rank's failure, or that of the first other
    one."""
    states = [json.loads(value) for value in ranks.everyone(what, json.dumps(state).encode())]
    if failure is not None:
        raise failure
    for rank, other in enumerate(states):
        if "error" in other:
            raise _told(rank, other["error"])
    return states


def _check_same_graph(states: List[Dict[str, Any]]) -> None:
    for rank, state in enumerate(states):
        if state["digest"] != states[0]["digest"]:
            raise errors.InvalidGraphError(
                "rank %d has another graph (%d nodes) than rank 0 (%d nodes); build the same on "
                "all ranks (savers and summaries, too), or call spillway.rewrite on each" % (
                    rank, state["nodes"], states[0]["nodes"]),
                code="INVALID_ARGUMENT", reason="GRAPH_DIFFERS", metadata={"rank": str(rank)})


def _ask(message: bytes, local_size: int,
         keywords: Dict[str, Any]) -> Tuple[bytes, Optional[BaseException]]:
    """On rank 0: returns the result for all ranks, and the exception."""
    try:
        if keywords.get("strategy") == "strip" or str(
                keywords.get("already_rewritten")).lower() == "replan":
            raise TypeError("edits that take swaps out cannot be shared; call spillway.strip on "
                            "each rank first")
        result = _rewrite.rewrite(message, patch=True, **_with_share(keywords, local_size))
    except BaseException as error:  # pylint: disable=broad-except
        return _wire.field(_HEADER, json.dumps({"error": _described(error)}).encode()), error
    assert result.patch is not None and result.report is not None
    nodes = _shared_edits.taken(result.graph_def, result.patch)
    header = json.dumps({"patch": asdict(result.patch)}).encode()
    return (_wire.field(_HEADER, header) + _wire.field(_REPORT, result.report.message) +
            _wire.field(_NODES, nodes)), None


def _with_share(keywords: Dict[str, Any], local_size: int) -> Dict[str, Any]:
    """Returns the keywords with the host memory of one of `local_size` ranks on a machine: that of
    the same call in a process alone."""
    if local_size == 1:
        return keywords
    return {**keywords, "host_memory_bytes": _questions.host_memory_of(keywords) // local_size}


def _described(error: BaseException) -> Dict[str, Any]:
    if isinstance(error, errors.SpillwayError):
        return {"type": type(error).__name__, "message": error.message, "code": error.code,
                "reason": error.reason, "metadata": error.metadata}
    return {"type": type(error).__name__, "message": str(error)}


def _told(rank: int, described: Dict[str, Any]) -> Exception:
    """Returns the failure of another rank as an exception of the same type."""
    kind = getattr(errors, described["type"], None)
    if isinstance(kind, type) and issubclass(kind, errors.SpillwayError):
        return kind("rank %d: %s" % (rank, described["message"]), code=described["code"],
                    reason=described["reason"], metadata=described["metadata"])
    plain = {"TypeError": TypeError, "ValueError": ValueError}.get(described["type"], RuntimeError)
    return plain("rank %d failed: %s: %s" % (rank, described["type"], described["message"]))
