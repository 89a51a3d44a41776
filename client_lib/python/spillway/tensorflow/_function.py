"""Concrete functions with swaps: TensorFlow 2's tf.function, and Keras's fit."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import concrete_function as concrete_lib
from tensorflow.python.framework import func_graph
from tensorflow.python.ops import handle_data_util

import spillway
from spillway import _rewrite, errors


def rewrite_function(function: Any, *, fail_open: bool = False, **keywords: Any) -> Any:
    """A concrete function with swaps, equal to `function` in all but where tensors wait.

        step = train_step.get_concrete_function(images, labels)
        step = spillway.tensorflow.rewrite_function(step, strategy="scope")
        loss = step(images, labels)

    It takes and returns what `function` does, reads and writes the same variables, and gives the
    same numbers, bit for bit. `function` itself stays as it is. Bodies of functions that it calls
    are not rewritten; the report's warnings say how many there are. The report is its attribute
    `spillway_report`.

    Args:
      function: a ConcreteFunction with the gradients and updates in it.
      fail_open: after a failure, warn (SpillwayWarning) and return `function`.
      **keywords: those of `spillway.rewrite`. `targets` is what the function returns and does,
        unless it is given.

    Raises:
      TypeError: something else than a ConcreteFunction.
      SpillwayError: as `spillway.rewrite`.
    """
    if not isinstance(function, concrete_lib.ConcreteFunction):
        if hasattr(function, "get_concrete_function"):
            raise TypeError("a tf.function has a graph for each signature; pass "
                            "f.get_concrete_function(...)")
        raise TypeError("function is a %s; pass a ConcreteFunction" % type(function).__name__)
    graph = function.graph
    keywords.setdefault("targets", _targets(graph))
    try:
        result = spillway.rewrite(graph.as_graph_def(add_shapes=True), **keywords)
    except errors.SpillwayError as error:
        if not fail_open:
            raise
        _rewrite.warn(error)
        return function
    rewritten = _from_graph_def(function, result.graph_def)
    rewritten.spillway_report = result.report
    return rewritten


def _targets(graph: Any) -> list:
    names = [tensor.op.name for tensor in graph.outputs]
    names += [operation.name for operation in graph.control_outputs]
    return list(dict.fromkeys(names))


def _from_graph_def(function: Any, graph_def: Any) -> Any:
    old = function.graph
    new = func_graph.FuncGraph(old.name)
    with new.as_default():
        tf.graph_util.import_graph_def(graph_def, name="")

    def twin(tensor: Any) -> Any:
        return new.get_tensor_by_name(tensor.name)

    # What a GraphDef does not say.
    new.inputs = [twin(tensor) for tensor in old.inputs]
    new.outputs = [twin(tensor) for tensor in old.outputs]
    new.control_outputs = [new.get_operation_by_name(op.name) for op in old.control_outputs]
    new.structured_outputs = tf.nest.map_structure(
        lambda part: twin(part) if isinstance(part, tf.Tensor) else part, old.structured_outputs,
        expand_composites=True)
    new.structured_input_signature = old.structured_input_signature
    new.variables = old.variables
    for outer, inner in old.captures:
        handle_data_util.copy_handle_data(inner, twin(inner))
        new._function_captures.add_or_replace(  # pylint: disable=protected-access
            key=id(outer), external=outer, internal=twin(inner), is_by_ref=False)
    made = concrete_lib.ConcreteFunction.from_func_graph(new, function.function_type, {})
    # What a SavedModel asks for.
    for name in ("_arg_keywords", "_num_positional_args"):
        setattr(made, name, getattr(function, name))
    # A FuncGraph holds its variables weakly.
    made._spillway_original = function  # pylint: disable=protected-access
    return made


def rewrite_train_function(model: tf.keras.Model, *,
                           on_rewrite: Optional[Callable[[Any], None]] = None,
                           **keywords: Any) -> None:
    """Makes `model.fit` train with swaps. Call it after each `compile`.

    The step is rewritten when fit first runs it, and again for data of another shape. Called
    again with the same keywords, it changes nothing; with others, these hold.

    Args:
      model: a compiled Keras model; not `run_eagerly`, not with `jit_compile`.
      on_rewrite: called with each concrete function that was made; `spillway_report` is its report.
      **keywords: those of `rewrite_function`.

    Raises TypeError for a model that is not compiled, or runs eagerly; `fit` raises the rest.
    """
    if getattr(model, "optimizer", None) is None:
        raise TypeError("the model is not compiled, so it has no step to rewrite")
    if getattr(model, "run_eagerly", False):
        raise TypeError("a model that runs eagerly has no graph to rewrite")
    original = model.make_train_function()
    if isinstance(original, _TrainFunction):
        if original.keywords == keywords:
            return
        original = original.original
    model.train_function = _TrainFunction(original, on_rewrite, keywords)


class _TrainFunction:
    """Stands for the train function of a Keras model."""

    def __init__(self, original: Any, on_rewrite: Optional[Callable[[Any], None]],
                 keywords: Dict[str, Any]) -> None:
        self.original, self.keywords = original, keywords
        self._on_rewrite = on_rewrite
        self._made: Dict[Any, Any] = {}  # By what the data looks like.

    def __call__(self, iterator: Any) -> Any:
        key = str(iterator.element_spec)
        if key not in self._made:
            function = self.original.get_concrete_function(iterator)
            # A copy: what a rewrite fills in is for this shape.
            made = rewrite_function(function, **dict(self.keywords))
            self._made[key] = made
            if self._on_rewrite is not None and made is not function:
                self._on_rewrite(made)
        return self._made[key](iterator)
