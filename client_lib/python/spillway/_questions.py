"""The calls that ask and change nothing: inspect, simulate, explore, diff, capabilities.

Answers are the messages of spillway.v1 as dicts of proto3's JSON: 64-bit numbers are strings,
enums names, sizes bytes, times nanoseconds. In process, or on the `server` (`host:port`,
`unix:/path`); `timeout`, `progress`, TLS, retries, tokens, `request_id` and `traceparent` are those
of `rewrite`.
"""

from __future__ import annotations

import ctypes
import json
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, Optional

from spillway import _call, _native, _rewrite, options

# What a call says of where it goes, besides `server`.
_WHERE = frozenset((
    "tls", "tls_ca", "tls_cert", "tls_key", "tls_server_name", "retries", "token_file",
    "token_in_clear", "hedge_after", "token", "request_id", "traceparent"))


def inspect(graph: Any, *, server: Optional[str] = None, timeout: Optional[float] = None,
            progress: Optional[_call.Progress] = None, batch_size: Optional[int] = None,
            feeds: Optional[Mapping[str, Any]] = None, largest_tensor_count: Optional[int] = None,
            on_tensors: Optional[Callable[[List[Dict[str, Any]]], None]] = None,
            **where: Any) -> Dict[str, Any]:
    """What a graph is made of: GraphSummary of inspect.proto.

    Args:
      largest_tensor_count: how many of the largest tensors to list. Default: 10.
      on_tensors: gets every tensor of the graph (TensorSummary), in lists of some thousands, in
        file order, on another thread. What it raises ends the call and is raised here.
      **where: TLS and retries of `rewrite`.

    Raises SpillwayError.
    """
    _check_names("inspect", where, _WHERE)
    wanted: Dict[str, Any] = {
        "step": options.step_of({"batch_size": batch_size, "feeds": feeds})}
    if largest_tensor_count is not None:
        wanted["largest_tensor_count"] = largest_tensor_count
    message, _ = _rewrite.serialized(graph)
    with _call.Call(_call.Where(server, **where), timeout, progress) as call:
        encoded = _encoded("InspectOptions", wanted)
        take = None if on_tensors is None else (
            lambda part: on_tensors(_decoded("TensorList", part)["tensors"]))
        return _answer(call, "GraphSummary", _native.library().spillway_inspect, message,
                       len(message), encoded, len(encoded), call.handle, call.part(take), None)


def simulate(graph: Any, *, server: Optional[str] = None, timeout: Optional[float] = None,
             progress: Optional[_call.Progress] = None, memory: bool = False,
             trace: bool = False, play: Optional[str] = None, no_budget: bool = False,
             **keywords: Any) -> Dict[str, Any]:
    """What a step of the graph takes on a machine, rewritten or not: SimulateReport of
    simulate.proto. Whether it fits is in `["forecast"]["fit"]`: FIT_FITS, FIT_DOES_NOT_FIT or
    FIT_UNKNOWN.

    Args:
      memory: also how much memory is in use over the step, and what is alive at its peak.
      trace: also when each operation ran, on which engine.
      play: which way of running the step memory and trace show: `launched_ahead`, as TensorFlow
        does it (the default), or `synchronous`.
      no_budget: with unlimited memory.
      **keywords: of the options of `rewrite` those that say what a step is: `feeds`, `batch_size`,
        `targets`, `hardware` and its numbers, `profile`, `convolution_workspace_bytes`,
        `loop_counts`; TLS and
        retries.

    Raises TypeError for another keyword, and SpillwayError.
    """
    _check_names("simulate", keywords, options.STEP | options.HARDWARE | _WHERE)
    wanted = simulate_options(keywords, memory=memory, trace=trace, play=play, no_budget=no_budget)
    message, _ = _rewrite.serialized(graph)
    with _call.Call(_where(server, keywords), timeout, progress) as call:
        encoded = _encoded("SimulateOptions", wanted)
        return _answer(call, "SimulateReport", _native.library().spillway_simulate, message,
                       len(message), encoded, len(encoded), call.handle)


def explore(graph: Any, *, server: Optional[str] = None, timeout: Optional[float] = None,
            progress: Optional[_call.Progress] = None,
            on_size: Optional[Callable[[Dict[str, Any]], None]] = None,
            sizes: Iterable[int] = (), multiple_of: Optional[int] = None, swapping: bool = False,
            no_budget: bool = False, **keywords: Any) -> Dict[str, Any]:
    """How large a batch or an image may be: ExploreReport of simulate.proto.

    A dimension -1 in `feeds` stands for the size that varies; without any it is the batch size.

    Args:
      on_size: gets each size (ExploredSize) as it is found, in any order, on another thread. What
        it raises ends the call and is raised here.
      sizes: those to try. Default: powers of two up to the first that does not fit.
      multiple_of: the largest that fits is looked for among multiples of this. Default: 1.
      swapping: also plan for the graph at every size, with the strategy budget.
      no_budget: with unlimited memory; only `sizes` are tried.
      **keywords: those of `simulate`.

    Raises TypeError for another keyword, and SpillwayError.
    """
    _check_names("explore", keywords, options.STEP | options.HARDWARE | _WHERE)
    wanted: Dict[str, Any] = {"step": options.step_of(keywords), "no_budget": no_budget,
                              "sizes": list(sizes), "swapping": swapping}
    if multiple_of is not None:
        wanted["multiple_of"] = multiple_of
    message, _ = _rewrite.serialized(graph)
    with _call.Call(_where(server, keywords), timeout, progress) as call:
        encoded = _encoded("ExploreOptions", wanted)
        take = None if on_size is None else (lambda part: on_size(_decoded("ExploredSize", part)))
        return _answer(call, "ExploreReport", _native.library().spillway_explore, message,
                       len(message), encoded, len(encoded), call.handle, call.part(take), None)


def diff(graph_a: Any, graph_b: Any, *, server: Optional[str] = None,
         timeout: Optional[float] = None, progress: Optional[_call.Progress] = None,
         **where: Any) -> Dict[str, Any]:
    """What makes graph B of graph A, whoever made it: GraphDiff of diff.proto. `where`: TLS and
    retries of `rewrite`. Raises SpillwayError."""
    _check_names("diff", where, _WHERE)
    a, _ = _rewrite.serialized(graph_a)
    b, _ = _rewrite.serialized(graph_b)
    with _call.Call(_call.Where(server, **where), timeout, progress) as call:
        return _answer(call, "GraphDiff", _native.library().spillway_diff, a, len(a), b, len(b),
                       call.handle)


def capabilities(*, server: Optional[str] = None, timeout: Optional[float] = None,
                 **where: Any) -> Dict[str, Any]:
    """Version, strategies, limits and machines of a server, or of this process:
    GetCapabilitiesResponse of rewrite_service.proto. `where`: TLS and retries of `rewrite`."""
    _check_names("capabilities", where, _WHERE)
    with _call.Call(_call.Where(server, **where), timeout, None) as call:
        return _answer(call, "GetCapabilitiesResponse",
                       _native.library().spillway_get_capabilities, call.handle)


def simulate_options(keywords: Mapping[str, Any], *, memory: bool, trace: bool,
                     play: Optional[str], no_budget: bool) -> Dict[str, Any]:
    """SimulateOptions as JSON; of `keywords` what says what a step is."""
    wanted = {"step": options.step_of(keywords), "memory": memory, "trace": trace,
              "no_budget": no_budget}
    if play is not None:
        wanted["play"] = "PLAY_" + play.upper()
    return wanted


def _check_names(function: str, keywords: Mapping[str, Any], known: FrozenSet[str]) -> None:
    for name in keywords:
        if name not in known:
            raise TypeError("%s has no option %s; it has %s" % (
                function, name, ", ".join(sorted(known))))


def _where(server: Optional[str], keywords: Mapping[str, Any]) -> _call.Where:
    return _call.Where(server, **{name: value for name, value in keywords.items()
                                  if name in _WHERE})


def _encoded(name: str, wanted: Dict[str, Any]) -> bytes:
    return _native.message_from_json(name, options.dump(wanted))


def _decoded(name: str, message: bytes) -> Dict[str, Any]:
    return json.loads(_native.message_to_json(name, message))


def _answer(call: _call.Call, name: str, function: Callable[..., Optional[int]],
            *arguments: Any) -> Dict[str, Any]:
    """Calls a function of the library whose last argument is an output buffer with a message."""
    out = ctypes.c_void_p()
    call.run(function, call.client, *arguments, ctypes.byref(out))
    return _decoded(name, _native.take(out))
