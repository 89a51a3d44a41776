"""The read-only calls: inspect, simulate, explore, diff, capabilities.

Answers are the messages of spillway.v1 as dataclasses (messages.py): `print` formats them for
people, attributes have the numbers. In process, or on the `server`; keywords of calls are in
_doors.py.
"""

from __future__ import annotations

import ctypes
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple,
                    Type, TypeVar, Union)

from spillway import _call, _doors, _machine, _native, _near, _rewrite, errors, options
from spillway._message import Message
from spillway._types import (EXECUTIONS, RECOMPUTES, Duration, Execution, Feeds, Progress,
                             Recompute)
from spillway._values import bool_of, sizes_of, whole_of
from spillway.messages import (Capabilities, ExploredSize, ExploreReport, GraphDiff, GraphSummary,
                               SimulateReport, TensorSummary)

if TYPE_CHECKING:
    from typing_extensions import Unpack

# The keywords of a call's destination, besides `server`.
_WHERE = frozenset(_doors.names(_doors.WhereKeywords))
# A GraphDef of a NoOp.
_ONE_NODE = b"\n\t\n\x01a\x12\x04NoOp"
# No keywords.
_GRAPHS = frozenset(("graph", "graph_a", "graph_b", "what"))

M = TypeVar("M", bound=Message)


@_doors.visible(_doors.WhereKeywords)
def inspect(graph: Any, *, server: Union[str, List[str], None] = None,
            timeout: Optional[Duration] = None, progress: Optional[Progress] = None,
            batch_size: Optional[int] = None, feeds: Optional[Feeds] = None,
            largest_tensor_count: Optional[int] = None,
            on_tensors: Optional[Callable[[List[TensorSummary]], object]] = None,
            **where: Unpack[_doors.WhereKeywords]) -> GraphSummary:
    """Reports what a graph contains.

        print(spillway.inspect(graph_def))
        spillway.inspect(graph_def).op_types[0].count

    Args:
      largest_tensor_count: how many of the largest tensors to list. Default: 10.
      on_tensors: called with every tensor of the graph (TensorSummary), in lists of some thousands,
        in file order, on another thread. Its exceptions end the call and are raised here.
      **where: TLS, retries and tokens of `rewrite`.

    Raises TypeError for another keyword, and SpillwayError.
    """
    _check_names(inspect, where)
    wanted: Dict[str, Any] = {
        "step": options.step_of({"batch_size": batch_size, "feeds": feeds})}
    if largest_tensor_count is not None:
        wanted["largest_tensor_count"] = whole_of("largest_tensor_count", largest_tensor_count, 32)
    _check_callable("on_tensors", on_tensors)
    message, _ = _rewrite.serialized(graph)
    with _call.Call(_where(server, where), timeout, progress) as call:
        encoded = _encoded("InspectOptions", wanted)

        def take(part: bytes) -> None:
            assert on_tensors is not None
            on_tensors(_tensors(part))

        return _answer(call, GraphSummary, _native.library().spillway_inspect, message,
                       len(message), encoded, len(encoded), call.handle,
                       call.part(None if on_tensors is None else take), None)


@_doors.visible(_doors.SimulateKeywords)
def simulate(graph: Any, *, server: Union[str, List[str], None] = None,
             timeout: Optional[Duration] = None, progress: Optional[Progress] = None,
             memory: bool = False, trace: bool = False, execution: Optional[Execution] = None,
             no_budget: bool = False,
             **keywords: Unpack[_doors.SimulateKeywords]) -> SimulateReport:
    """Simulates a step of a graph, rewritten or not, on a machine.

        report = spillway.simulate(graph_def, batch_size=128, gpu_memory_bytes="16GiB")
        report.forecast.fit          # "FITS", "DOES_NOT_FIT" or "UNKNOWN"

    Args:
      memory: also report the memory in use over the step, and the tensors live at its peak.
      trace: also report when each operation ran, and on which engine.
      execution: the execution model of memory and trace: `launched_ahead`, like TensorFlow (the
        default), or `synchronous`.
      no_budget: simulate with unlimited memory.
      **keywords: the options of `rewrite` that define a step: `feeds`, `batch_size`, `targets`,
        `hardware` and its numbers, `profile`, `convolution_workspace_bytes`, `loop_counts`; TLS,
        retries and tokens.

    Raises TypeError for another keyword, and SpillwayError.
    """
    _check_names(simulate, keywords)
    wanted = simulate_options(keywords, memory=memory, trace=trace, execution=execution, no_budget=no_budget)
    message, _ = _rewrite.serialized(graph)
    with _call.Call(_where(server, keywords), timeout, progress) as call:
        report = _simulated(call, message, wanted)
    _machine.warn_of(report.hardware)
    return report


@_doors.visible(_doors.SimulateKeywords)
def explore(graph: Any, *, server: Union[str, List[str], None] = None,
            timeout: Optional[Duration] = None, progress: Optional[Progress] = None,
            on_size: Optional[Callable[[ExploredSize], object]] = None,
            sizes: Union[Iterable[int], str] = (), multiple_of: Optional[int] = None,
            swapping: bool = False, recompute: Optional[Recompute] = None,
            no_budget: bool = False, **keywords: Unpack[_doors.SimulateKeywords]) -> ExploreReport:
    """Finds how large a batch or an image may be.

        spillway.explore(graph_def, multiple_of=8, swapping=True).largest_fitting_size_swapped

    A dimension "N" or -1 in `feeds` stands for the size that varies; without one, the batch size
    varies.

    Args:
      on_size: called with each size as it is found, in any order, on another thread. Its exceptions
        end the call and are raised here.
      sizes: the sizes to try, also as text: `"32:512:32"`. Default: powers of two up to the first
        that does not fit.
      multiple_of: search for the largest size that fits among multiples of this. Default: 1.
      swapping: also plan the graph at every size, with the strategy budget.
      recompute: which ops these plans may recompute: `off`, `cheap` or `all`, as in `rewrite`.
      no_budget: simulate with unlimited memory; only `sizes` are tried.
      **keywords: those of `simulate`.

    Raises TypeError for another keyword, and SpillwayError.
    """
    _check_names(explore, keywords)
    wanted: Dict[str, Any] = {"step": options.step_of(keywords, with_size=True),
                              "no_budget": bool_of("no_budget", no_budget),
                              "sizes": sizes_of("sizes", sizes),
                              "swapping": bool_of("swapping", swapping)}
    _choose("recompute", recompute, RECOMPUTES, wanted)
    if multiple_of is not None:
        wanted["multiple_of"] = whole_of("multiple_of", multiple_of, 64)
    _check_callable("on_size", on_size)
    message, _ = _rewrite.serialized(graph)
    with _call.Call(_where(server, keywords), timeout, progress) as call:
        encoded = _encoded("ExploreOptions", wanted)

        def take(part: bytes) -> None:
            assert on_size is not None
            on_size(ExploredSize.from_message(part))

        report = _answer(call, ExploreReport, _native.library().spillway_explore, message,
                         len(message), encoded, len(encoded), call.handle,
                         call.part(None if on_size is None else take), None)
    _machine.warn_of(report.hardware)
    return report


@_doors.visible(_doors.WhereKeywords)
def diff(graph_a: Any, graph_b: Any, *, server: Union[str, List[str], None] = None,
         timeout: Optional[Duration] = None, progress: Optional[Progress] = None,
         **where: Unpack[_doors.WhereKeywords]) -> GraphDiff:
    """Reports how graph B differs from graph A, whichever program rewrote it. `where`: TLS, retries
    and tokens of `rewrite`. Raises TypeError for another keyword, and SpillwayError."""
    _check_names(diff, where)
    a, _ = _rewrite.serialized(graph_a)
    b, _ = _rewrite.serialized(graph_b)
    with _call.Call(_where(server, where), timeout, progress) as call:
        return _answer(call, GraphDiff, _native.library().spillway_diff, a, len(a), b, len(b),
                       call.handle)


@_doors.visible(_doors.WhereKeywords)
def capabilities(*, server: Union[str, List[str], None] = None, timeout: Optional[Duration] = None,
                 **where: Unpack[_doors.WhereKeywords]) -> Capabilities:
    """Returns version, strategies, limits and machines of a server or of this process. `where`:
    TLS, retries and tokens of `rewrite`."""
    _check_names(capabilities, where)
    with _call.Call(_where(server, where), timeout, None) as call:
        return _answer(call, Capabilities, _native.library().spillway_get_capabilities, call.handle)


def host_memory_of(keywords: Mapping[str, Any]) -> int:
    """Returns the bytes of host memory of the machine that `rewrite` with these keywords is for,
    by a simulation there."""
    machine = options.step_of({name: keywords.get(name)
                               for name in ("hardware", "host_memory_bytes")})
    machine.get("hardware", {}).pop("gpu_memories", None)  # Of GPUs that this graph does not have.
    where = _where(keywords.get("server"), keywords)
    with _call.Call(where, keywords.get("timeout"), None) as call:
        report = _simulated(call, _ONE_NODE, {"step": machine})
    assert report.hardware is not None and report.hardware.hardware is not None
    return report.hardware.hardware.host_memory_bytes or 0


def _simulated(call: _call.Call, graph: bytes, wanted: Dict[str, Any]) -> SimulateReport:
    encoded = _encoded("SimulateOptions", wanted)
    return _answer(call, SimulateReport, _native.library().spillway_simulate, graph, len(graph),
                   encoded, len(encoded), call.handle)


def simulate_options(keywords: Mapping[str, Any], *, memory: Any, trace: Any, execution: Any,
                     no_budget: Any) -> Dict[str, Any]:
    """Returns SimulateOptions as JSON, with the `keywords` that define a step."""
    wanted = {"step": options.step_of(keywords), "memory": bool_of("memory", memory),
              "trace": bool_of("trace", trace),
              "no_budget": bool_of("no_budget", no_budget)}
    _choose("execution", execution, EXECUTIONS, wanted)
    return wanted


def _choose(name: str, value: Any, values: Tuple[str, ...], wanted: Dict[str, Any]) -> None:
    """Adds one of `values` to the options, unless it is None."""
    if value is None:
        return
    if not isinstance(value, str) or value not in values:
        raise errors.bad_option(name, value, "is none of %s%s" % (
            ", ".join(values), _near.did_you_mean(value, values)))
    wanted[name] = "%s_%s" % (name.upper(), value.upper())


def _check_names(function: Any, keywords: Mapping[str, Any]) -> None:
    """Raises TypeError for a keyword that is not in the function's signature."""
    known = set(function.__signature__.parameters) - _GRAPHS
    for name in keywords:
        if name not in known:
            raise TypeError("%s has no option %s%s; it has %s" % (
                function.__name__, name, _near.did_you_mean(name, known),
                ", ".join(sorted(known))))


def _check_callable(name: str, value: Any) -> None:
    if value is not None and not callable(value):
        raise TypeError("%s: %s cannot be called" % (name, errors.shown(value)))


def _where(server: Any, keywords: Mapping[str, Any]) -> _call.Where:
    return _call.Where(server, **{name: value for name, value in keywords.items()
                                  if name in _WHERE})


def _tensors(part: bytes) -> List[TensorSummary]:
    return [TensorSummary.from_dict(tensor) for tensor in
            _native.decoded("TensorList", part)["tensors"]]


def _encoded(name: str, wanted: Dict[str, Any]) -> bytes:
    return _native.message_from_json(name, options.dump(wanted))


def _answer(call: _call.Call, kind: Type[M], function: Callable[..., Optional[int]],
            *arguments: Any) -> M:
    """Calls a function of the library whose last argument is an output buffer with a message."""
    out = ctypes.c_void_p()
    call.run(function, call.client, *arguments, ctypes.byref(out))
    return kind.from_message(_native.take(out))
