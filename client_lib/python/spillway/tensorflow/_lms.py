"""The common part of both versions of LMS: editing a live graph, log lines, Keras and hooks."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional, Set

import tensorflow as tf

import spillway
from spillway import _doors, _text, _warn, options
from spillway._values import list_of
from spillway.tensorflow import _function, _live_graph, _sessions, _settings

_GIB = 1 << 30

# Keywords of `spillway.rewrite` that are not options of a strategy.
CALL_KEYWORDS = frozenset((*_doors.names(_doors.CallKeywords), "fail_open"))

# The reason of an error (error.proto) that is reported in terms of LMS.
_NO_MATCH = "NAME_MATCHES_NOTHING"
# In these, LMS ignores names that the graph does not have.
_SCOPES = frozenset((
    "optimizer_scopes", "starting_scope", "starting_op_names", "excl_scopes", "incl_scopes",
    "excl_types", "incl_types", *options.FILTERS))


class Editor:
    """Edits graphs with one strategy and logs like LMS. A mixin.

    Attributes:
      result: the spillway.RewriteResult of the last edit; None before.
    """

    _strategy = ""

    def _set_up(self, debug: bool, debug_level: int) -> None:
        self._debug, self._debug_level = debug, debug_level
        self.result: Optional[spillway.RewriteResult] = None

    def _keywords(self) -> dict:
        """Returns keywords for `spillway.rewrite`."""
        raise NotImplementedError

    def _log_configuration(self) -> None:
        """Called before the edit."""

    def _log_result(self, graph: tf.Graph, report: spillway.Report) -> None:
        """Called after the edit."""

    def run(self, graph: Optional[tf.Graph] = None, keras: bool = False) -> Set[tf.Operation]:
        """Edits the graph in place, before a session runs it. Returns the ops that were added.
        Without a graph, here or in the constructor, edits the default graph.

        A scope, name or type that the graph does not have is left out with a warning that names
        the most similar ones. Raises the errors of `spillway.tensorflow.rewrite_graph`.
        """
        del keras  # The graph itself shows what LMS did differently for Keras.
        if graph is None:
            graph = getattr(self, "_graph", None)
        if graph is None:
            self._log_info("No graph provided. LMS will use the default graph.")
        started = time.time()
        self._log_info("Editing model for LMS")
        self._log_configuration()
        result = _without_unmatched(
            self._all_keywords(), lambda keywords: _live_graph.rewrite_graph(graph, **keywords),
            lambda error: spillway.RewriteResult(None, error=error))
        self.result = result
        report = result.report
        if report is None or result.patch is None:
            self._log_info("The model is not edited: %s" % result.error)
            return set()
        if report.outcome in ("KEPT", "FOREIGN"):
            self._log_info("This model has already been updated with LMS swap operations. LMS will "
                           "not re-process it.")
            return set()
        if report.outcome == "DRY_RUN":
            self._log_info("The model is not edited: %s" % report.summary)
            return set()
        if graph is None:
            graph = tf.compat.v1.get_default_graph()
        self._log_result(graph, report)
        self._log_info("Editing model for LMS, took: %s ms" % ((time.time() - started) * 1000))
        self._log_last(report)
        self._tell(report)
        return {graph.get_operation_by_name(node.name) for node in result.patch.new_nodes}

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Of hooks: the settings of the session are known here."""
        del coord
        _settings.check_session(session)

    def _all_keywords(self) -> Dict[str, Any]:
        return {"strategy": self._strategy, **self._keywords()}

    def _rewrite_function(self, function: Any, **keywords: Any) -> Any:
        """Replaces rewrite_function in Keras's fit."""
        return _without_unmatched(
            keywords, lambda left: _function.rewrite_function(function, **left),
            lambda error: self._keep(function, error))

    def _keep(self, function: Any, error: spillway.SpillwayError) -> Any:
        self.result = spillway.RewriteResult(None, error=error)
        return function

    def _log_function(self, function: Any) -> None:
        """Called after the train function was rewritten."""
        report = function.spillway_report
        self.result = spillway.RewriteResult(function.graph.as_graph_def(),
                                             report_message=report.message)
        self._log_info("Edited the train function of the model for LMS")
        self._log_configuration()
        self._log_result(function.graph, report)
        self._log_last(report)
        self._tell(report)

    def _tell(self, report: spillway.Report) -> None:
        """Prints the lines that are shown at any verbosity: IBM's programs logged at INFO, which
        TensorFlow 2 does not show."""
        cost = _text.cost(report)
        tf.compat.v1.logging.warning("[LMS] %s%s", report.summary,
                                     "" if cost == report.summary else "; " + cost)
        for warning in report.warnings:
            tf.compat.v1.logging.warning("[LMS] %s", warning.message)

    def _log_last(self, report: spillway.Report) -> None:
        """Called after the time taken is logged."""

    def _log_info(self, message: str, level: int = 0, offset: int = 0) -> None:
        if level == 0 or (self._debug and self._debug_level >= level):
            tf.compat.v1.logging.info("[LMS][%d] %s%s", level, " " * offset, message)

    def _edit_keras(self, model: Any) -> None:
        """Edits the graph that `model.fit` runs: in graph mode the default graph, otherwise the
        train function."""
        if getattr(model, "optimizer", None) is None:
            return  # A model for prediction only.
        if tf.compat.v1.executing_eagerly_outside_functions():
            keywords = self._all_keywords()
            try:
                _function.edit_train_function(
                    model, self._rewrite_function, self._log_function, keywords)
            except spillway.SpillwayError as error:
                if not keywords.get("fail_open"):
                    raise
                _warn.of_failure(error)
                self.result = spillway.RewriteResult(None, error=error)
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


def _without_unmatched(keywords: Dict[str, Any], rewrite: Callable[[Dict[str, Any]], Any],
                       failed: Callable[[spillway.SpillwayError], Any]) -> Any:
    """Returns `rewrite(keywords)` without the names that match nothing, which IBM's programs ignore.
    `failed`: the result after any other error, with fail_open."""
    keywords = dict(keywords)
    fail_open = keywords.pop("fail_open", False)
    while True:
        try:
            return rewrite(keywords)
        except spillway.SpillwayError as error:
            left = _left(keywords, error)
            if left is None:
                if not fail_open:
                    raise
                _warn.of_failure(error)
                return failed(error)
            tf.compat.v1.logging.warning("[LMS] %s; LMS goes on without it", error.message)
            keywords = left


def _left(keywords: Dict[str, Any], error: spillway.SpillwayError) -> Optional[Dict[str, Any]]:
    """Returns the keywords without the name that matches nothing according to the error; None for
    any other error."""
    option, value = error.metadata.get("option", ""), error.metadata.get("value")
    if error.reason != _NO_MATCH or option not in _SCOPES or not keywords.get(option):
        return None
    given = keywords[option]
    if isinstance(given, str):
        return {**keywords, option: None}
    left = [name for name in given if name != value]
    return {**keywords, option: left} if len(left) < len(given) else None


def gib(count: int) -> float:
    """Returns bytes as LMS prints them."""
    return round(count / _GIB, 2)


def as_set(option: str, value: Any) -> List[str]:
    """Converts a value that LMS accepts as a set; None is empty."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else sorted(list_of(option, value))
