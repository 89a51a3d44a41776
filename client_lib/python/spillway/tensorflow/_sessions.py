"""Sessions that have run a graph.

TensorFlow gives a session the nodes of its graph when it first runs; later edits of these are ignored,
with no more than a line in a log. So a graph may only be edited while no open session has run it.
"""

from __future__ import annotations

import gc
from typing import Any, List

from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors_impl


def that_have_run(graph: Any) -> List[Any]:
    """The open sessions of the graph that have run any of it."""
    # type(), not isinstance: a lazy module or a proxy would be loaded by a look at its __class__.
    return [found for found in gc.get_objects()
            if issubclass(type(found), session_lib.BaseSession) and
            getattr(found, "_graph", None) is graph and _has_run(found)]


def _has_run(session: Any) -> bool:
    """Asks the session to prepare a call of nothing: it says so if it has no graph yet, and else that
    there is nothing to call. Nothing runs, and no graph is given to it."""
    if session._session is None or session._closed:  # pylint: disable=protected-access
        return False
    nothing = pywrap_tf_session.TF_NewBufferFromString(b"")
    try:
        pywrap_tf_session.TF_SessionMakeCallable(session._session, nothing)
    except errors_impl.CancelledError:  # Closed.
        return False
    except errors_impl.OpError as error:
        # `Session was not created with a graph before MakeCallable()!`, or of a server's session
        # `A session is not created yet....`
        return "not created" not in str(error)
    finally:
        pywrap_tf_session.TF_DeleteBuffer(nothing)
    return True


def move_keras_session(graph: Any) -> None:
    """Gives Keras a new session of the graph, with the values that variables have in its old one, and
    closes that. Raises ValueError if another session has run the graph, or one that Keras did not
    make is in force (`with session.as_default()`)."""
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    ran = that_have_run(graph)
    if not ran:
        return
    backend = tf.compat.v1.keras.backend
    old = backend.get_session()
    if tf.compat.v1.get_default_session() is not None or ran != [old]:
        raise ValueError("the graph was run by a session that is not Keras's own")
    values = []
    for variable in graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES):
        try:
            values.append((variable, old.run(_reader(variable))))
        except errors_impl.FailedPreconditionError:
            pass  # Not initialized: Keras does that in the new session.
    new = tf.compat.v1.Session(graph=graph, config=old._config)  # pylint: disable=protected-access
    backend.set_session(new)
    _pending_values[new] = values
    old.close()


_pending_values: Any = {}


def load_values(graph: Any) -> None:
    """Loads what move_keras_session kept, after the edit: to load is to run."""
    for session in [session for session in _pending_values if session.graph is graph]:
        for variable, value in _pending_values.pop(session):
            session.run(variable.initializer, {variable.initializer.inputs[1]: value})


def _reader(variable: Any) -> Any:
    """A tensor that reads the variable, and is there already."""
    return getattr(variable, "_graph_element", None) or variable.value()
