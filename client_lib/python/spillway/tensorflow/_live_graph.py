"""Edits a tf.Graph in place, from a patch, before its session starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

import tensorflow as tf
from tensorflow.python.framework import func_graph
from tensorflow.python.framework import importer

import spillway
from spillway import _doors, _warn, errors
from spillway.patch import Patch
from spillway.tensorflow import _feeds, _sessions, _settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

# The attribute that the core adds to an edited node, for `strip`.
_COLOCATION = "_class"
_UNDO = "_spillway_undo"


@_doors.visible(_doors.LiveGraphKeywords)
def rewrite_graph(graph: Optional[tf.Graph] = None, *, fail_open: bool = False,
                  **keywords: Unpack[_doors.LiveGraphKeywords]) -> spillway.RewriteResult:
    """Inserts swaps into a live graph, in place. Call it after `minimize`, before a session runs.

    Names, fetches and feeds stay valid; new nodes are named `lms/swapout_...`, `lms/swapin_...` and
    `lms/recompute_...`. A session of the graph that feeds a node's output feeds its clones, too.
    The result's `graph_def` is the graph after the edit. Everything is decided and checked before
    the first edit: after an error the graph is unchanged.

    Args:
      graph: None: the default graph.
      fail_open: after a failure, warn (SpillwayWarning); the graph is unchanged, and the result has
        `error` and no `graph_def`.
      **keywords: those of `spillway.rewrite`.

    Raises:
      LiveGraphError: the graph is finalized (FINALIZED_GRAPH), an open session has already run it
        (SESSION_HAS_RUN), or none exists (NO_GRAPH: eager execution, the body of a tf.function).
      SpillwayError, TypeError: as in `spillway.rewrite`.
    """
    _settings.check_program()
    options: Dict[str, Any] = {name: value for name, value in keywords.items() if name != "patch"}
    try:
        if str(keywords.get("already_rewritten")).lower() == "replan":
            raise errors.wrong_argument("a live graph cannot be replanned, since its first swaps "
                                        "would have to be taken out; build it again")
        graph = check_editable(graph)
        graph_def = graph.as_graph_def(add_shapes=True)
        result = spillway.rewrite(graph_def, patch=True, **options)
        assert result.patch is not None  # It was requested.
        apply(graph, result.patch, result.graph_def)
        _settings.limit_workspaces(result.report)
        return result
    except errors.SpillwayError as error:
        if not fail_open:
            raise
        _warn.of_failure(error)
        return spillway.RewriteResult(None, error=error)


def check_editable(graph: Optional[tf.Graph]) -> tf.Graph:
    """Returns the graph, or the default one. Raises LiveGraphError if it cannot be edited."""
    if graph is None:
        if tf.executing_eagerly():
            raise _error("NO_GRAPH", "eager execution has no graph to edit; for a tf.function use "
                         "spillway.tensorflow.rewrite_function")
        graph = tf.compat.v1.get_default_graph()
    if isinstance(graph, tf.Tensor):
        raise TypeError("a tensor is no graph; pass a tf.Graph")
    if not isinstance(graph, tf.Graph):
        raise TypeError("graph is a %s; pass a tf.Graph" % type(graph).__name__)
    if isinstance(graph, func_graph.FuncGraph):
        raise _error("NO_GRAPH", "the body of a tf.function is not edited in place; use "
                     "spillway.tensorflow.rewrite_function")
    if graph.finalized:
        raise _error("FINALIZED_GRAPH", "the graph is finalized and cannot be edited; rewrite it "
                     "before the session (of a MonitoredSession: in a hook's begin)")
    ran = len(_sessions.that_have_run(graph))
    if ran:
        raise _error("SESSION_HAS_RUN", "%d open session%s run the graph already, and would ignore "
                     "edits; rewrite it before the first run, or close %s" % (
                         ran, " has" if ran == 1 else "s have", "it" if ran == 1 else "them"))
    return graph


def _error(reason: str, message: str) -> errors.LiveGraphError:
    return errors.LiveGraphError(message, code="FAILED_PRECONDITION", reason=reason)


def apply(graph: tf.Graph, patch: Patch, rewritten: tf.compat.v1.GraphDef) -> None:
    """Applies the patch's edits, with the nodes of `rewritten`."""
    if not (patch.new_nodes or patch.rewired_inputs or patch.added_controls):
        return
    edited = {edit.node for edit in patch.rewired_inputs}
    edited |= {edit.node for edit in patch.added_controls}
    new = {node.name for node in patch.new_nodes}
    definitions = {node.name: node for node in rewritten.node
                   if node.name in new or node.name in edited}
    read = {name.lstrip("^").partition(":")[0] for node in patch.new_nodes for name in node.inputs}
    read |= {wait.source for wait in patch.added_controls}
    try:  # Look up everything that the edits name before the first edit.
        operations = {name: graph.get_operation_by_name(name) for name in (edited | read) - new}
    except KeyError as error:
        raise _error("UNKNOWN_NODE", "the graph has changed since it was rewritten: %s" % error)
    _add_nodes(graph, [definitions[node.name] for node in patch.new_nodes], new)
    _feeds.reach_clones(graph, patch.new_nodes)  # Before anything reads them.
    # pylint: disable=protected-access
    for edit in patch.rewired_inputs:
        operations[edit.node]._update_input(edit.input_index, _tensor(graph, edit.new_input))
    for wait in patch.added_controls:
        operations[wait.node]._add_control_inputs([graph.get_operation_by_name(wait.source)])
    for name in edited:
        attributes = definitions[name].attr
        if _UNDO in attributes:
            operations[name]._set_attr(_UNDO, attributes[_UNDO])


def _add_nodes(graph: tf.Graph, nodes: List[Any], new: set) -> None:
    """Adds all nodes with one import, which is faster than op by op, and atomic."""
    fragment = tf.compat.v1.GraphDef()
    fragment.versions.CopyFrom(graph.graph_def_versions)
    input_map = {}
    waits: List[Tuple[str, str]] = []  # (node, original node that it waits for)
    places: List[Tuple[str, Any]] = []  # (node, its attribute _class)
    for node in nodes:
        copy = fragment.node.add()
        copy.CopyFrom(node)
        del copy.input[:]
        if _COLOCATION in copy.attr:
            # The importer looks for the named nodes among these alone.
            places.append((node.name, node.attr[_COLOCATION]))
            del copy.attr[_COLOCATION]
        for name in node.input:
            if name.startswith("^") and name[1:] not in new:
                # The importer maps control inputs by tensors, and some nodes have none.
                waits.append((node.name, name[1:]))
                continue
            if name.lstrip("^").partition(":")[0] not in new:
                input_map[_tensor_name(name)] = _tensor(graph, name)
            copy.input.append(name)
    # The caller's device scopes and control dependencies must not apply to these nodes.
    with graph.as_default(), tf.device(None), graph.control_dependencies(None):
        importer.import_graph_def(fragment, name="", input_map=input_map)
    # pylint: disable=protected-access
    for name, place in places:
        graph.get_operation_by_name(name)._set_attr(_COLOCATION, place)
    for name, source in waits:
        graph.get_operation_by_name(name)._add_control_inputs([graph.get_operation_by_name(source)])


def _tensor_name(name: str) -> str:
    """Returns `node:port` for an input as spelled in a NodeDef."""
    return name if ":" in name else name + ":0"


def _tensor(graph: tf.Graph, name: str) -> tf.Tensor:
    return graph.get_tensor_by_name(_tensor_name(name))
