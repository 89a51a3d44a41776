"""TFLMS v1's classes, with its names, parameters, defaults and log lines, on the strategy `scope`.

    from spillway.tensorflow.lms_v1 import LMS            # was: tensorflow_large_model_support
    LMS({'adam_optimizer'}, lb=3).run()

Improvements: `optimizer_scopes` may be left out (the backward part is then found from the
structure), an unknown `ctrld_strategy` is an error, and a graph with tf.cond trains correctly.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Iterable, Optional

import tensorflow as tf

import spillway
from spillway import _doors, options
from spillway.tensorflow import _lms

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["LMS", "LMSHook", "LMSKerasCallback", "LMSSessionRunHook"]


class LMS(_lms.Editor):
    """Edits a graph for Large Model Support.

    Args: those of TFLMS v1 (levels, names and counts; see ScopeStrategy in options.proto), and any
      keyword of `spillway.rewrite`: `server`, `timeout`, `fail_open`, `batch_size`, `hardware`, ...

    Raises TypeError for a keyword that does not exist.
    """

    _strategy = "scope"

    @_doors.visible(_doors.LmsKeywords)
    def __init__(self, optimizer_scopes: Optional[Iterable[str]] = None,
                 graph: Optional[tf.Graph] = None, starting_scope: Optional[str] = None,
                 starting_op_names: Optional[Iterable[str]] = None,
                 excl_scopes: Iterable[str] = (), incl_scopes: Iterable[str] = (),
                 excl_types: Iterable[str] = (), incl_types: Iterable[str] = (),
                 n_tensors: int = -1, lb: int = 1, ub: int = 10000, fuse_swapins: bool = False,
                 ctrld_strategy: str = "chain_rule", swap_branches: bool = False,
                 branch_threshold: int = 0, debug: bool = False, debug_level: int = 1,
                 cpu_device: str = "/cpu:0",
                 **more: Unpack[_doors.LmsKeywords]) -> None:
        self._set_up(debug, debug_level)
        self._graph = graph
        self._options = dict(
            optimizer_scopes=_lms.as_set("optimizer_scopes", optimizer_scopes),
            starting_scope=starting_scope,
            starting_op_names=_lms.as_set("starting_op_names", starting_op_names),
            excl_scopes=_lms.as_set("excl_scopes", excl_scopes),
            incl_scopes=_lms.as_set("incl_scopes", incl_scopes),
            excl_types=_lms.as_set("excl_types", excl_types),
            incl_types=_lms.as_set("incl_types", incl_types), n_tensors=n_tensors, lb=lb, ub=ub,
            fuse_swapins=fuse_swapins, ctrld_strategy=ctrld_strategy, swap_branches=swap_branches,
            branch_threshold=branch_threshold, cpu_device=cpu_device)
        if debug:
            self._options.update(debug=True, debug_level=debug_level)
        self._more = more
        options.check_names(self._strategy, [
            name for name in more if name not in _lms.CALL_KEYWORDS])

    def _keywords(self) -> dict:
        return {**self._options, **self._more}

    def _log_configuration(self) -> None:
        for name in ("n_tensors", "lb", "ub"):
            self._log_info("%s: %s" % (name, self._options[name]))

    def _log_result(self, graph: tf.Graph, report: spillway.Report) -> None:
        scope = report.scope
        if scope is not None and scope.starting_ops_found:
            self._log_info("Starting ops: %s" % [
                (name, _type_of(graph, name)) for name in scope.starting_ops], 1)
        self._log_info("Edited model is valid and logically equivalent to the original one")
        self._log_info("Added %d ops into the model" % (
            report.node_count_after - report.node_count_before))

    def _log_last(self, report: spillway.Report) -> None:
        self._log_info("%d tensors will be swapped out(in) to(from) the host"
                       % report.swapped_tensor_count)


def _type_of(graph: tf.Graph, name: str) -> str:
    try:
        return graph.get_operation_by_name(name).type
    except KeyError:  # In an inlined call, or in the body of a loop.
        return "in a function"


# The keywords that hook and callback pass to LMS.
_DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(LMS).parameters.items()
             if name not in ("optimizer_scopes", "graph")}


class LMSSessionRunHook(tf.compat.v1.train.SessionRunHook):
    """LMS for Estimators and MonitoredSessions: edits the default graph before its session is made.

    Args: those of LMS; `graph` is not used.
    """

    @_doors.visible(_doors.LmsV1Keywords, **_DEFAULTS)
    def __init__(self, optimizer_scopes: Optional[Iterable[str]] = None,
                 **keywords: Unpack[_doors.LmsV1Keywords]) -> None:
        keywords.pop("graph", None)
        self.lms_obj = LMS(optimizer_scopes, **keywords)  # type: ignore[misc, arg-type]

    @property
    def result(self) -> Optional[spillway.RewriteResult]:
        """That of the last edit; None before."""
        return self.lms_obj.result

    def begin(self) -> None:
        self.lms_obj.run(tf.compat.v1.get_default_graph())

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.lms_obj.after_create_session(session, coord)


LMSHook = LMSSessionRunHook


class LMSKerasCallback(tf.keras.callbacks.Callback):
    """LMS for Keras's `fit`.

    In graph mode (TensorFlow 1 style) the graph is edited in place; if Keras's session has already
    run it, Keras gets a new session with the same values of the variables. Otherwise the train
    function is rewritten.

    Args:
      optimizer_scopes_override: like `optimizer_scopes` of LMS. Default: found from the structure.
      **keywords: those of LMS; `graph` is not used.
    """

    @_doors.visible(_doors.LmsV1Keywords, **_DEFAULTS)
    def __init__(self, optimizer_scopes_override: Optional[Iterable[str]] = None,
                 **keywords: Unpack[_doors.LmsV1Keywords]) -> None:
        super().__init__()
        keywords.pop("graph", None)
        self.lms_obj = LMS(
            optimizer_scopes_override, **keywords)  # type: ignore[misc, arg-type]

    @property
    def result(self) -> Optional[spillway.RewriteResult]:
        """That of the last edit; None before."""
        return self.lms_obj.result

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        self.lms_obj._edit_keras(model)  # pylint: disable=protected-access
