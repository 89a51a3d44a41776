"""Sessions that have run a graph.

TensorFlow gives a session the nodes of its graph when it first runs; later edits of these nodes are
ignored, with only a line in a log. So a graph may only be edited while no open session has run it.
"""

from __future__ import annotations

import gc
from typing import Any, List, Tuple

import tensorflow as tf
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors_impl

from spillway import errors


def that_have_run(graph: Any) -> List[Any]:
    """Returns the open sessions of the graph that have run any of it."""
    # type(), not isinstance: accessing __class__ of a lazy module or proxy would load it.
    return [found for found in gc.get_objects()
            if issubclass(type(found), session_lib.BaseSession) and
            getattr(found, "_graph", None) is graph and _has_run(found)]


def _has_run(session: Any) -> bool:
    """Asks the session to prepare an empty call: it reports an error if it has no graph yet, and
    otherwise that there is nothing to call. Nothing runs, and the session is not given a graph."""
    if session._session is None or session._closed:  # pylint: disable=protected-access
        return False
    nothing = pywrap_tf_session.TF_NewBufferFromString(b"")
    try:
        pywrap_tf_session.TF_SessionMakeCallable(session._session, nothing)
    except errors_impl.CancelledError:  # Closed.
        return False
    except errors_impl.OpError as error:
        # `Session was not created with a graph before MakeCallable()!`, or for a server's session
        # `A session is not created yet....`
        return "not created" not in str(error)
    finally:
        pywrap_tf_session.TF_DeleteBuffer(nothing)
    return True


class KerasMove:
    """Moves Keras to a new session of the graph, if its own has run it: a context manager around
    the edit. The old session is closed, and its values of variables are loaded into the new one
    after the edit, even if the edit failed.

    Raises LiveGraphError, on entry, if a session other than Keras's has run the graph.
    """

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._values: List[Tuple[Any, Any]] = []
        self._session: Any = None

    def __enter__(self) -> "KerasMove":
        ran = that_have_run(self._graph)
        if not ran:
            return self
        backend = tf.compat.v1.keras.backend
        old = backend.get_session()
        if ran != [old] or tf.compat.v1.get_default_session() is not None:
            raise errors.LiveGraphError(
                "the graph was run by a session that is not Keras's own, and would ignore edits; "
                "edit it before it runs", code="FAILED_PRECONDITION", reason="SESSION_HAS_RUN")
        for variable in self._graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES):
            try:
                self._values.append((variable, old.run(_reader(variable))))
            except errors_impl.FailedPreconditionError:
                pass  # Not initialized: Keras does that in the new session.
        self._session = tf.compat.v1.Session(
            graph=self._graph, config=old._config)  # pylint: disable=protected-access
        backend.set_session(self._session)
        old.close()
        return self

    def __exit__(self, *_: Any) -> None:
        # Loading runs the graph, and so must come after the edit.
        for variable, value in self._values:
            assign = variable.initializer
            self._session.run(assign, {assign.inputs[1]: value})


def _reader(variable: Any) -> Any:
    """Returns an existing tensor that reads the variable."""
    element = getattr(variable, "_graph_element", None)
    return variable.value() if element is None else element
