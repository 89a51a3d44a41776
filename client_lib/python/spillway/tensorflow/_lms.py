"""What both versions of LMS share: the edit of a live graph, log lines, Keras and hooks."""

from __future__ import annotations

import time
from typing import Any, List, Optional, Set

import tensorflow as tf

import spillway
from spillway.tensorflow import _function, _live_graph, _sessions

_GIB = 1 << 30

# Of `spillway.rewrite`, but no options of a strategy.
CALL_KEYWORDS = frozenset((
    "server", "progress", "timeout", "fail_open", "tls", "tls_ca", "tls_cert", "tls_key",
    "tls_server_name", "retries", "token_file", "token_in_clear", "hedge_after", "token",
    "request_id", "traceparent"))


class Editor:
    """Edits graphs with one strategy, and says so in the words of LMS. A mixin.

    Attributes:
      result: the spillway.RewriteResult of the last edit; None before.
    """

    _strategy = ""

    def _set_up(self, debug: bool, debug_level: int) -> None:
        self._debug, self._debug_level = debug, debug_level
        self.result: Optional[spillway.RewriteResult] = None

    def _keywords(self) -> dict:
        """Those of `spillway.rewrite`."""
        raise NotImplementedError

    def _log_configuration(self) -> None:
        """Before the edit."""

    def _log_result(self, graph: tf.Graph, report: spillway.Report) -> None:
        """After it."""

    def run(self, graph: Optional[tf.Graph] = None, keras: bool = False) -> Set[tf.Operation]:
        """Edits the graph in place, before a session runs it. Returns the ops that were added.

        Raises ValueError without a graph, else what `spillway.tensorflow.rewrite_graph` raises.
        """
        del keras  # What LMS did otherwise there is found from the graph.
        if graph is None:
            graph = getattr(self, "_graph", None)
        if graph is None:
            raise ValueError("The dataflow graph is required but has not been provided.")
        started = time.time()
        self._log_info("Editing model for LMS")
        self._log_configuration()
        result = _live_graph.rewrite_graph(graph, strategy=self._strategy, **self._keywords())
        self.result = result
        report = result.report
        if report is None or result.patch is None:
            self._log_info("The model is not edited: %s" % result.error)
            return set()
        if report.outcome in ("KEPT", "FOREIGN"):
            self._log_info("This model has already been updated with LMS swap operations. LMS will "
                           "not re-process it.")
            return set()
        self._log_result(graph, report)
        self._log_info("Editing model for LMS, took: %s ms" % ((time.time() - started) * 1000))
        self._log_last(report)
        for warning in report.warnings:
            tf.compat.v1.logging.warning("[LMS] %s", warning.message)
        return {graph.get_operation_by_name(node.name) for node in result.patch.new_nodes}

    def _log_function(self, function: Any) -> None:
        """The train function was rewritten."""
        self._log_info("Edited the train function of the model for LMS")
        self._log_configuration()
        self._log_result(function.graph, function.spillway_report)
        self._log_last(function.spillway_report)

    def _log_last(self, report: spillway.Report) -> None:
        """Behind the time taken."""

    def _log_info(self, message: str, level: int = 0, offset: int = 0) -> None:
        if level == 0 or (self._debug and self._debug_level >= level):
            tf.compat.v1.logging.info("[LMS][%d] %s%s", level, " " * offset, message)

    def _edit_keras(self, model: Any) -> None:
        """Edits what `model.fit` runs: in graph mode the default graph, else the train function."""
        if getattr(model, "optimizer", None) is None:
            return  # A model that only predicts.
        if tf.compat.v1.executing_eagerly_outside_functions():
            _function.rewrite_train_function(
                model, on_rewrite=self._log_function, strategy=self._strategy, **self._keywords())
            return
        if getattr(model, "train_function", None) is None:
            self._log_info("Calling model._make_train_function()", 1)
            model._make_train_function()  # pylint: disable=protected-access
        graph = tf.compat.v1.get_default_graph()
        if _already(graph):
            return
        with _sessions.KerasMove(graph):
            self.run(graph, keras=True)


def _already(graph: tf.Graph) -> bool:
    return any("lms/swapout" in operation.name for operation in graph.get_operations())


def gib(count: int) -> float:
    """Bytes as LMS prints them."""
    return round(count / _GIB, 2)


def as_set(value: Any) -> List[str]:
    """What LMS takes as a set; None is empty."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else sorted(value)
