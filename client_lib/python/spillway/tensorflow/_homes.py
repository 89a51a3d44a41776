"""Where the variables lie that a function captures, which its graph does not say: a placeholder of
a handle has the device of the scope in which it was traced, or none."""

from __future__ import annotations

from typing import Any, Callable, Dict

import tensorflow as tf
from tensorflow.python.distribute import device_util

# The device of a handle, by the reference of its tensor in a graph.
Homes = Dict[Any, str]


def of_captures(graph: Any) -> Homes:
    """Returns where the captured variables of a FuncGraph lie, so far as that says something: on a
    machine without a GPU every variable lies on the CPU, and on the GPU that a plan is for."""
    gpus = tf.config.list_logical_devices("GPU")
    default = device_util.canonicalize((gpus or tf.config.list_logical_devices("CPU"))[0].name)
    homes = {}
    for handle, inner in graph.captures:
        home = handle.device if handle.dtype == tf.resource else ""
        if home and (home != default or (gpus and inner.op.device)):
            homes[inner.ref()] = home
    return homes


def rewritten(rewrite: Callable[[Any], Any], graph: Any, graph_def: Any, homes: Homes) -> Any:
    """Returns what `rewrite` makes of `graph_def`, that of `graph`, for variables that lie where
    `homes` says. The devices of their placeholders are then as they were, in both graphs."""
    placed = {inner.deref().op.name: home for inner, home in homes.items()
              if inner.deref().graph is graph}
    traced = _put(graph_def, placed)
    try:
        result = rewrite(graph_def)
    finally:
        _put(graph_def, traced)
    _put(result.graph_def, traced)
    return result


def _put(graph_def: Any, devices: Dict[str, str]) -> Dict[str, str]:
    """Sets the devices of nodes, by name; returns the former ones."""
    were = {}
    for node in graph_def.node if devices else ():
        if node.name in devices:
            were[node.name], node.device = node.device, devices[node.name]
    return were
