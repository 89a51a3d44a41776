"""Feeds of recomputed tensors.

A clone (recomputation) computes its output from the graph: a value that a session feeds in place of
the output of its original does not reach it, so that gradients would be those of another forward
pass. So a session of a live graph that feeds the output of a node feeds its clones the same value.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, Dict, Iterable, List

import tensorflow as tf
from tensorflow.python.client import session as session_lib

from spillway.patch import NewNode

# On a tf.Graph: the clones' names by their original's.
_CLONES = "_spillway_clones"
_lock = threading.Lock()
_installed = False


def reach_clones(graph: tf.Graph, new_nodes: Iterable[NewNode]) -> None:
    """Makes each session of the graph feed the clones among the new nodes like their originals.

    In `run`, `make_callable`, partial runs and callables of Keras. Methods of tf.Session itself are
    wrapped, once, since sessions are made later; for other graphs they are unchanged.
    """
    clones: Dict[str, List[str]] = getattr(graph, _CLONES, {})
    for node in new_nodes:
        if node.original:
            clones.setdefault(node.original, []).append(node.name)
    if not clones:
        return
    setattr(graph, _CLONES, clones)
    global _installed  # pylint: disable=global-statement
    with _lock:
        if not _installed:
            _install(session_lib.BaseSession)
            _installed = True


def _of(graph: tf.Graph, name: str) -> List[str]:
    """Returns the names of the tensors that are fed with the tensor `name`."""
    node, _, port = name.partition(":")
    return ["%s:%s" % (clone, port or "0") for clone in getattr(graph, _CLONES, {}).get(node, ())]


def _parts(feed: Any) -> List[Any]:
    """Returns the tensors of a feed of a partial run, such as a tf.SparseTensor."""
    for kind, _, _, parts in session_lib._REGISTERED_EXPANSIONS:  # pylint: disable=protected-access
        if isinstance(feed, kind):
            return parts(feed)
    return [feed]


def _install(session: Any) -> None:
    """Wraps the three methods that all feeds of a session (BaseSession) come through."""
    # pylint: disable=protected-access
    do_run, partial_run_setup = session._do_run, session.partial_run_setup
    make_callable = session._make_callable_from_options

    @functools.wraps(do_run)
    def do_run_with_clones(self: Any, handle: Any, target_list: Any, fetch_list: Any,
                           feed_dict: Any, *rest: Any, **named: Any) -> Any:
        if feed_dict and hasattr(self.graph, _CLONES):
            fed = {key.deref().name: value for key, value in feed_dict.items()}
            feed_dict = {**feed_dict, **{
                self.graph.get_tensor_by_name(clone).ref(): value for name, value in fed.items()
                for clone in _of(self.graph, name) if clone not in fed}}
        return do_run(self, handle, target_list, fetch_list, feed_dict, *rest, **named)

    @functools.wraps(partial_run_setup)
    def partial_run_setup_with_clones(self: Any, fetches: Any, feeds: Any = None) -> Any:
        if feeds is not None and hasattr(self.graph, _CLONES):
            feeds = list(feeds) if isinstance(feeds, (list, tuple)) else [feeds]
            fed = [self.graph.as_graph_element(part, allow_operation=False).name
                   for feed in feeds for part in _parts(feed)]
            feeds += [name for feed in fed for name in _of(self.graph, feed) if name not in fed]
        return partial_run_setup(self, fetches, feeds)

    @functools.wraps(make_callable)
    def make_callable_with_clones(self: Any, callable_options: Any) -> Any:
        fed = list(callable_options.feed)
        sources = [(index, name) for index, feed in enumerate(fed)
                   for name in _of(self.graph, feed) if name not in fed]
        if not sources:
            return make_callable(self, callable_options)
        options = type(callable_options)()
        options.CopyFrom(callable_options)
        options.feed.extend(name for _, name in sources)
        made = make_callable(self, options)

        def call(*values: Any, **named: Any) -> Any:
            return made(*values, *(values[index] for index, _ in sources), **named)
        return call

    session._do_run = do_run_with_clones
    session.partial_run_setup = partial_run_setup_with_clones
    session._make_callable_from_options = make_callable_with_clones
