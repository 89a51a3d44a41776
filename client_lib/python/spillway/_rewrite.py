"""The calls that rewrite: rewrite, apply, strip."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any, List, Mapping, NamedTuple, Optional, Tuple, Union

from spillway import _call, _doors, _machine, _native, _warn, _wire, errors, options
from spillway._types import Duration, Path, Progress
from spillway._values import bool_of
from spillway.patch import Patch
from spillway.plan import Plan
from spillway.report import Report

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Fields of RewriteRequest and RewriteResponse in rewrite_service.proto.
_GRAPH_DEF, _OPTIONS = 1, 2
_REPORT, _PATCH, _PLAN = 2, 3, 4


class RewriteResult:
    """A rewritten graph. `print` shows a summary; a notebook shows the memory needed, the setting,
    its cost and the largest swaps.

    Attributes:
      graph_def: the graph, of the type of the input: bytes for bytes, a GraphDef for a GraphDef or
        a Graph. After a failure with `fail_open`, the original graph.
      report: the changes and their reasons; parsed on first access. None after a failure.
      patch: the rewrite as a list of edits; None unless `patch=True`.
      plan: the plan, to be applied again; None unless `save_plan=True`, and if the graph was kept
        or stripped.
      error: the failure, with `fail_open`. None: success.
    """

    def __init__(self, graph_def: Any, *, report_message: Optional[bytes] = None,
                 patch: Optional[Patch] = None, plan: Optional[Plan] = None,
                 error: Optional[errors.SpillwayError] = None,
                 step: Optional[Mapping[str, Any]] = None) -> None:
        self.graph_def = graph_def
        self.patch = patch
        self.plan = plan
        self.error = error
        self._report_message = report_message
        # Keywords of the step and its machine, for later calls about the graph.
        self._step = dict(step or {})

    @functools.cached_property
    def report(self) -> Optional[Report]:
        if self._report_message is None:
            return None
        return Report.from_message(self._report_message)

    def __repr__(self) -> str:
        if self.report is None:
            return "<RewriteResult: not rewritten: %s>" % self.error
        return "<RewriteResult: %s>" % self.report.summary

    def __str__(self) -> str:
        if self.report is None:
            return "not rewritten: %s" % self.error
        return str(self.report)

    def _repr_html_(self) -> str:
        from spillway import _notebook  # pylint: disable=import-outside-toplevel,cyclic-import
        return _notebook.of_result(self)


@_doors.visible(_doors.OptionKeywords)
def rewrite(graph: Any, *, strategy: Optional[_doors.Strategy] = None,
            server: Union[str, List[str], None] = None,
            progress: Optional[Progress] = None, timeout: Optional[Duration] = None,
            keep_best: bool = False, fail_open: bool = False, patch: bool = False,
            save_plan: bool = False,
            tls: bool = False, tls_ca: Optional[Path] = None, tls_cert: Optional[Path] = None,
            tls_key: Optional[Path] = None, tls_server_name: Optional[str] = None,
            retries: Optional[int] = None, token_file: Optional[Path] = None,
            token_in_clear: bool = False, hedge_after: Optional[Duration] = None,
            token: Optional[str] = None, request_id: Optional[str] = None,
            traceparent: Optional[str] = None,
            **keywords: Unpack[_doors.OptionKeywords]) -> RewriteResult:
    """Inserts swaps into a training graph. `graph` itself is never changed.

    Args:
      graph: serialized GraphDef bytes, a GraphDef message, or a tf.Graph after `minimize`.
      strategy: `budget` (the default: plans for the memory of each GPU, buffer by buffer; needs
        sizes: give `batch_size` or `feeds` if the graph leaves its batch open), `level` (TFLMS v2;
        tunes every parameter that is not given; needs sizes, too) or `scope` (TFLMS v1).
      server: `host:port` of a spillwayd, `unix:/path`, or any name that gRPC resolves; of several
        servers (a list, comma-separated, or `dns:///host:port`), one that serves. None: in this
        process.
      progress: called with (stage, done bytes, total bytes) on another thread; must be short and
        not call Spillway. Its exceptions end the call and are raised here.
      timeout: seconds, or `"30s"`, `"2m"`. None: no limit.
      keep_best: when `timeout` has passed, return the best plan that the search of `budget` has found
        (`report.stopped_early`); it fits and is verified, but has not been tried in variations. In
        this process only.
      fail_open: after a failure, also that of a wrong value, warn (SpillwayWarning) and return the
        original graph. A keyword that does not exist and Ctrl-C still raise.
      patch: also return the edits, for a live graph.
      save_plan: also return the plan, for `apply`.
      tls: use TLS; `tls_ca`, `tls_cert`, `tls_key` are PEM files, `tls_server_name` is the name that
        the server's certificate must contain; each of them implies `tls`.
      retries: the maximum number of retries if the server cannot be reached or is full. Default: 4.
      token_file, token: the token for the server (`authorization: Bearer TOKEN`): a file, read by
        every call, or the token itself. Without TLS it is not sent to another machine, unless
        `token_in_clear` is set.
      hedge_after: the time (seconds, or `"500ms"`) after which a rewrite without an answer is sent a
        second time, to another server if possible; the first answer wins. Default: never.
      request_id, traceparent: for the server's log: an id, and the span in W3C format.
      **keywords: the options, by the names of options.proto: `lb=5`, `batch_size=128`,
        `feeds={"images": (128, 224, 224, 3), "is_training": True}` (shapes or values; also
        `"128,224,224,3"`), `loop_counts={"rnn/while/while_context": 200}`,
        `hardware="t4"` (a preset; the default, as `"auto"`: by nvidia-smi), `gpu_memory_bytes="16GiB"`,
        `gpu_memories={"/gpu:1": "12GiB"}` (exceptions for single GPUs),
        `already_rewritten="replan"`, `simulation=False`, ...

    Raises:
      TypeError: a keyword that does not exist; a graph of another type.
      SpillwayError: any other failure; errors.py has the classes.
    """
    fail_open = bool_of("fail_open", fail_open)
    message, kind = serialized(graph)
    try:
        patch, save_plan = bool_of("patch", patch), bool_of("save_plan", save_plan)
        outputs = ["GRAPH", "REPORT"] if patch or save_plan else []
        outputs += ["PATCH"] if patch else []
        outputs += ["PLAN"] if save_plan else []
        where = _call.Where(server, tls, tls_ca, tls_cert, tls_key, tls_server_name, retries,
                            token_file, token_in_clear, hedge_after, token, request_id, traceparent)
        json_options = options.to_json(strategy, keywords, outputs)
        with _call.Call(where, timeout, progress, bool_of("keep_best", keep_best)) as call:
            encoded = _native.message_from_json("RewriteOptions", json_options)
            answer = (_call_for_all if outputs else _call_graph)(call, message, encoded)
    except errors.SpillwayError as error:
        if not fail_open:
            raise
        _warn.of_failure(error)
        return RewriteResult(message if kind is None else kind.FromString(message), error=error)
    _machine.warn_of_report(answer.report, keywords)
    return RewriteResult(answer.graph if kind is None else kind.FromString(answer.graph),
                         report_message=answer.report,
                         patch=Patch.from_message(answer.patch or b"") if patch else None,
                         plan=None if answer.plan is None else Plan(answer.plan),
                         step={name: value for name, value in keywords.items()
                               if name in options.STEP | options.HARDWARE})


@_doors.visible(_doors.ApplyKeywords)
def apply(graph: Any, plan: Union[Plan, str, bytes],
          **keywords: Unpack[_doors.ApplyKeywords]) -> RewriteResult:
    """Applies a plan from an earlier rewrite of this graph (`save_plan=True`) instead of planning:
    the result is the same graph, byte for byte. `plan`: a Plan, or its JSON. `keywords`: those of
    `rewrite`, except the options that the plan determines (cpu_device, min_tensor_bytes,
    inline_calls). Raises InvalidOptionError: OTHER_GRAPH if the plan is for another
    graph, BAD_PLAN if it breaks the rules for plans."""
    return rewrite(graph, strategy="apply", plan=plan, **keywords)


@_doors.visible(_doors.StripKeywords)
def strip(graph: Any, **keywords: Unpack[_doors.StripKeywords]) -> RewriteResult:
    """Removes Spillway's swaps: restores the original graph, byte for byte, from the rewritten one
    alone. `keywords`: those of `rewrite` that are not options. Raises InvalidGraphError
    (FOREIGN_REWRITE) for a graph that another program rewrote."""
    return rewrite(graph, strategy="strip", **keywords)


def serialized(graph: Any) -> Tuple[bytes, Any]:
    """Returns the graph's bytes, and the type of message to return (None: bytes). TensorFlow's types
    are duck-typed, so that TensorFlow need not be installed."""
    if isinstance(graph, (bytes, bytearray, memoryview)):
        return bytes(graph), None
    if hasattr(graph, "SerializeToString"):
        if not hasattr(graph, "node"):
            raise TypeError("a %s is no GraphDef; pass its graph_def" % type(graph).__name__)
        return graph.SerializeToString(), type(graph)
    if hasattr(graph, "as_graph_def"):
        graph_def = graph.as_graph_def(add_shapes=True)
        return graph_def.SerializeToString(), type(graph_def)
    if hasattr(graph, "structured_outputs"):
        raise TypeError("for a ConcreteFunction there is spillway.tensorflow.rewrite_function")
    if hasattr(graph, "numpy") and hasattr(graph, "dtype"):
        raise TypeError("an eager tensor has no graph; for a tf.function there is "
                        "spillway.tensorflow.rewrite_function")
    raise TypeError("graph is a %s; pass bytes, a GraphDef or a tf.Graph" % type(graph).__name__)


class _Answer(NamedTuple):
    graph: bytes
    report: bytes
    patch: Optional[bytes] = None
    plan: Optional[bytes] = None


def _call_graph(call: _call.Call, graph: bytes, encoded: bytes) -> _Answer:
    graph_out, report_out = ctypes.c_void_p(), ctypes.c_void_p()
    call.run(_native.library().spillway_rewrite_graph, call.client, graph, len(graph), encoded,
             len(encoded), call.handle, ctypes.byref(graph_out), ctypes.byref(report_out))
    return _Answer(_native.take(graph_out), _native.take(report_out))


def _call_for_all(call: _call.Call, graph: bytes, encoded: bytes) -> _Answer:
    request = _wire.field(_GRAPH_DEF, graph) + _wire.field(_OPTIONS, encoded)
    out = ctypes.c_void_p()
    call.run(_native.library().spillway_rewrite, call.client, request, len(request), call.handle,
             ctypes.byref(out))
    answer = _wire.fields(_native.take(out))
    return _Answer(answer.get(_GRAPH_DEF, b""), answer.get(_REPORT, b""), answer.get(_PATCH),
                   answer.get(_PLAN))
