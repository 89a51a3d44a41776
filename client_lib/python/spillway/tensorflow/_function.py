"""Concrete functions with swaps: TensorFlow 2's tf.function, and Keras's fit."""

from __future__ import annotations

import itertools
import os
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

import tensorflow as tf
from tensorflow.python.eager import cancellation
from tensorflow.python.eager.polymorphic_function import concrete_function as concrete_lib
from tensorflow.python.framework import func_graph
from tensorflow.python.ops import handle_data_util

import spillway
from spillway import _doors, _text, _warn, errors
from spillway.tensorflow import _auto_xla, _bodies, _homes, _settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Keywords that name nodes of the function itself: they do not apply to bodies.
_OF_THE_GRAPH = frozenset(("targets", "feeds", "loop_counts", "profile"))

# The attribute of a function that XLA compiles (XLA_COMPILE in
# tensorflow/python/eager/polymorphic_function/attributes.py).
_XLA = "_XlaMustCompile"


@_doors.visible(_doors.FunctionKeywords)
def rewrite_function(function: Any, *, fail_open: bool = False,
                     **keywords: Unpack[_doors.FunctionKeywords]) -> Any:
    """Returns a concrete function with swaps that otherwise equals `function`.

        step = train_step.get_concrete_function(images, labels)
        step = spillway.tensorflow.rewrite_function(step)
        loss = step(images, labels)

    It takes the same arguments and returns the same results as `function`, bit for bit, and reads
    and writes the same variables. `function` itself is unchanged. Functions that it calls are
    inlined if something is then swapped (`inline_calls`). A training step in the body of a loop, in
    a branch of a conditional or in a function that must not be inlined is rewritten there, as a
    separate graph.

    Captured variables count where they lie, on a CPU or a parameter server, if TensorFlow sees a GPU;
    without one every variable lies on the CPU, and counts as on the GPU. The function's GraphDef
    alone, as `spillway.simulate` takes it, does not say where they lie.

    A function that already has swaps in a body is returned unchanged.

    Attributes of the result: `spillway_report`, the report, of a body if that has the step.
    `spillway_reports`: the report of the function itself under "", unless it has no step, and of
    each such body under its function's name.

    Args:
      function: a ConcreteFunction that contains the gradients and updates.
      fail_open: after a failure, warn (SpillwayWarning) and return `function`. A result that
        TensorFlow refuses at the first call warns, and then does what `function` does.
      **keywords: those of `spillway.rewrite`. `targets` defaults to the results and side effects of
        the function.

    Raises:
      TypeError: the argument is not a ConcreteFunction.
      SpillwayError: as in `spillway.rewrite`.
    """
    if not isinstance(function, concrete_lib.ConcreteFunction):
        if hasattr(function, "get_concrete_function"):
            raise TypeError("a tf.function has a graph for each signature; pass "
                            "f.get_concrete_function(...)")
        raise TypeError("function is a %s; pass a ConcreteFunction" % type(function).__name__)
    if _is_compiled(function):
        _warn.warn("jit_compile=True: XLA knows no swaps, so the rewritten function runs without XLA; "
                   "leave jit_compile out to keep the two alike")
    _settings.check_program()
    try:
        made = _rewritten(function, dict(keywords))
    except errors.SpillwayError as error:
        if not fail_open:
            raise
        _warn.of_failure(error)
        return function
    if fail_open and made is not function:
        made.fails_open = True
    return made


def _is_compiled(function: Any) -> bool:
    attributes = getattr(getattr(function, "function_def", None), "attr", {})
    return _XLA in attributes and attributes[_XLA].b


def _rewritten(function: Any, keywords: Dict[str, Any]) -> Any:
    graph = function.graph
    graph_def = graph.as_graph_def(add_shapes=True)
    of_bodies = {name: value for name, value in keywords.items() if name not in _OF_THE_GRAPH}

    def rewrite_body(body: Any, targets: List[str]) -> Any:
        return spillway.rewrite(body, targets=targets, **of_bodies)

    homes = _homes.of_captures(graph)
    bodies = _bodies.Bodies(graph_def, rewrite_body, homes)
    changed = bodies.replace(graph, graph_def)
    if bodies.had_swaps:
        return function
    reports = dict(bodies.reports)
    if bodies.changed_side:  # Lowered, it would be planned a second time.
        keywords = {"inline_calls": "never", **keywords}
    keywords = {"targets": _bodies.targets(graph), **keywords}
    try:
        result = _homes.rewritten(lambda sent: spillway.rewrite(sent, **keywords), graph, graph_def,
                                  homes)
        graph_def, reports[""] = result.graph_def, result.report
    except errors.SpillwayError as error:
        if not (changed and _bodies.says_no_step(error)):
            raise
    try:
        made = _from_graph_def(function, graph_def)
    except Exception as error:  # TensorFlow may raise anything.
        raise _not_taken(error) from error
    made._spillway_bodies = bodies.kept_alive  # pylint: disable=protected-access
    made.spillway_reports = reports
    for report in reports.values():
        _settings.limit_workspaces(report)
    made.spillway_report = _main_report(reports)
    return made


class _Rewritten(concrete_lib.ConcreteFunction):
    """A rewritten function, which is instantiated before its first run.

    Attributes:
      fails_open: whether the original runs if TensorFlow does not take this one.
    """

    fails_open = False
    _taken: Optional[bool] = None  # None: not known yet.

    def _call_flat(self, tensor_inputs: Any, captured_inputs: Any) -> Any:
        def call() -> Any:
            return super(_Rewritten, self)._call_flat(tensor_inputs, captured_inputs)

        def call_original() -> Any:
            original = self._spillway_original
            return original._call_flat(  # pylint: disable=protected-access
                tensor_inputs, original.captured_inputs)

        # In a graph this is a node, and nothing is instantiated.
        if self._taken is None and tf.executing_eagerly() and not _only_instantiates():
            try:
                _instantiate(call)
                self._taken = True
            except errors.SpillwayError as error:
                try:
                    _instantiate(call_original)
                except errors.SpillwayError:
                    return call_original()  # The arguments are wrong: it says so.
                if not self.fails_open:
                    raise
                _warn.of_failure(error)
                self._taken = False
        return call_original() if self._taken is False else call()


def _instantiate(call: Callable[[], Any]) -> None:
    """Has TensorFlow place and optimize what `call` runs, and keep it for later calls, but run no
    op: that comes before it sees that the call is cancelled. Raises SpillwayError if it fails."""
    cancelled = cancellation.CancellationManager()
    cancelled.start_cancel()
    try:
        with cancellation.CancellationManagerContext(cancelled):
            call()
    except tf.errors.CancelledError:
        pass  # "Function was cancelled before it was started".
    except Exception as error:  # TensorFlow may raise anything.
        raise _not_taken(error) from error


def _only_instantiates() -> bool:
    """Whether this is within `_instantiate`."""
    context = cancellation.context()
    return context is not None and context.is_cancelled


# Of TensorFlow. Unset, it is on if TensorFlow was built with it.
_ONEDNN = "TF_ENABLE_ONEDNN_OPTS"


def _not_taken(error: Exception) -> errors.SpillwayError:
    # On CPUs, oneDNN makes one op of a Conv2DBackpropFilter and a BiasAddGrad of the same gradient,
    # even if one waits for the other, as when it triggers a swap-in for it
    # (GetConv2DBackpropFilterOrBiasAddGrad in tensorflow/core/common_runtime/mkl_layout_pass.cc).
    if "nodes in a cycle" in str(error) and os.environ.get(_ONEDNN, "") not in ("0", "false"):
        return errors.SpillwayError(
            "TensorFlow's oneDNN, which looks past control edges, makes a cycle of the rewritten "
            "function, which has none; set %s=0 in the environment (it is for CPUs only)" % _ONEDNN,
            code="FAILED_PRECONDITION")
    return errors.InternalError("TensorFlow does not take the rewritten function (%s: %s)" % (
        type(error).__name__, errors.shown(str(error))), code="INTERNAL")


def _main_report(reports: Dict[str, Any]) -> Any:
    """Returns the report of the function, or of a body if only that has a step, or needs more."""
    own = reports.get("")
    if own is not None and own.outcome != "NOTHING_TO_DO":
        return own
    return max(reports.values(), key=lambda report: (report.swapped_tensor_count, _peak(report)))


def _peak(report: Any) -> int:
    """Returns the bytes of the original step on the GPU that needs most."""
    before = report.forecast_before
    devices = () if before is None else before.devices
    return max((device.peak_bytes or 0 for device in devices), default=0)


def _from_graph_def(function: Any, graph_def: Any) -> Any:
    old = function.graph
    new = func_graph.FuncGraph(old.name)
    with new.as_default():
        tf.graph_util.import_graph_def(graph_def, name="")

    def twin(tensor: Any) -> Any:
        return new.get_tensor_by_name(tensor.name)

    # Not in a GraphDef.
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
    # Captures computed for each call, such as a replica's number in MirroredStrategy.
    by_reference = old._function_captures  # pylint: disable=protected-access
    for key, inner in by_reference.by_ref_internal.items():
        new._function_captures.add_or_replace(  # pylint: disable=protected-access
            key=key, external=by_reference.by_ref_external[key],
            internal=tf.nest.map_structure(twin, inner, expand_composites=True),
            tracetype=by_reference.by_ref_tracetype[key], is_by_ref=True)
    made = _Rewritten(concrete_lib.ConcreteFunction.from_func_graph(
        new, function.function_type, {}).inference_fn)
    # Needed for a SavedModel.
    for name in ("_arg_keywords", "_num_positional_args"):
        setattr(made, name, getattr(function, name))
    # A FuncGraph holds its variables weakly.
    made._spillway_original = function  # pylint: disable=protected-access
    return made


@_doors.visible(_doors.TrainFunctionKeywords)
def rewrite_train_function(model: tf.keras.Model, *,
                           on_rewrite: Optional[Callable[[Any], None]] = None,
                           **keywords: Unpack[_doors.TrainFunctionKeywords]) -> None:
    """Makes `model.fit` train with swaps. Call it after each `compile`.

    The step is rewritten when `fit` first runs it, and again for data of another shape. Where the
    data leave the batch size open, it is that of the first batch of an epoch. A second call with
    the same keywords changes nothing; other keywords replace the earlier ones.

    Args:
      model: a compiled Keras model; not `run_eagerly`, not with `jit_compile=True`. Where Keras 3
        has chosen XLA by itself, it is switched off, with a warning.
      on_rewrite: called with each rewritten concrete function; `spillway_report` is its report.
        None: prints a line on standard error with a summary.
      **keywords: those of `rewrite_function`.

    Raises TypeError for a model that is not compiled and, without `fail_open`, for one that runs
    eagerly or is compiled by XLA; `fit` raises the rest.
    """
    try:
        edit_train_function(model, rewrite_function, on_rewrite, dict(keywords))
    except errors.SpillwayError as error:
        if not keywords.get("fail_open"):
            raise
        _warn.of_failure(error)


def edit_train_function(model: tf.keras.Model, rewrite: Callable[..., Any],
                        on_rewrite: Optional[Callable[[Any], None]],
                        keywords: Dict[str, Any]) -> None:
    """Implements `rewrite_train_function` without `fail_open`; `rewrite` stands for
    `rewrite_function`."""
    if getattr(model, "optimizer", None) is None:
        raise TypeError("the model is not compiled, so it has no step to rewrite")
    if getattr(model, "run_eagerly", False):
        raise errors.wrong_argument("a model that runs eagerly has no graph to rewrite; leave "
                                    "run_eagerly out")
    _auto_xla.switch_off(model)
    if getattr(model, "jit_compile", False):
        raise errors.wrong_argument(
            "XLA compiles this model, and knows no swaps; pass jit_compile=False to compile (Keras 3 "
            "chooses XLA by itself on a GPU)")
    made = model.make_train_function()  # Keras 3 returns it only if it already existed.
    original = getattr(model, "train_function", None) or made
    earlier = getattr(original, "_spillway", None)
    if earlier is not None:
        if earlier.keywords == keywords:
            earlier.tell(on_rewrite)
            return
        original = earlier.whole
    model.train_function = _TrainFunction.put_into(original, rewrite, on_rewrite, keywords)


# Keras 3's name for the tf.function that its plain train function calls (3.4 and later;
# keras/src/backend/tensorflow/trainer.py, _make_function).
_INNER = "multi_step_on_iterator"


class _TrainFunction:
    """Replaces the tf.function of a Keras model that trains on an iterator.

    Attributes:
      whole: the model's train function as Keras made it.
    """

    @classmethod
    def put_into(cls, whole: Any, rewrite: Callable[..., Any],
                 on_rewrite: Optional[Callable[[Any], None]], keywords: Dict[str, Any]) -> Any:
        """A train function that is `whole`, but for the tf.function."""
        if hasattr(whole, "get_concrete_function"):
            made = cls(whole, whole, rewrite, on_rewrite, keywords)
            made._spillway = made
            return made
        code = getattr(whole, "__code__", None)
        names = code.co_freevars if code is not None else ()
        if code is None or _INNER not in names:
            raise errors.wrong_argument("the model's train function is neither a tf.function nor "
                                        "one of Keras, so there is no graph to rewrite")
        cells = list(whole.__closure__)
        place = names.index(_INNER)
        inner = cls(whole, cells[place].cell_contents, rewrite, on_rewrite, keywords)
        cells[place] = types.CellType(inner)
        copy = types.FunctionType(code, whole.__globals__, whole.__name__, whole.__defaults__,
                                  tuple(cells))
        copy._spillway = inner  # type: ignore[attr-defined]
        return copy

    def __init__(self, whole: Any, original: Any, rewrite: Callable[..., Any],
                 on_rewrite: Optional[Callable[[Any], None]], keywords: Dict[str, Any]) -> None:
        self.whole, self.original, self.keywords = whole, original, keywords
        self._rewrite, self._on_rewrite = rewrite, on_rewrite
        self._made: Dict[Any, Any] = {}  # By the data's signature and batch size.
        # The last one, the batch size if that leaves it open, and the iterator's replacement.
        self._iterator: Callable[[], Any] = lambda: None
        self._batch: Optional[int] = None
        self._replayed: Any = None
        self._spillway: Any = None  # On the object in the model: the replacement.

    def tell(self, on_rewrite: Optional[Callable[[Any], None]]) -> None:
        """Reports existing functions to a new `on_rewrite`."""
        if on_rewrite is None or on_rewrite == self._on_rewrite:
            return
        self._on_rewrite = on_rewrite
        for made in self._made.values():
            if hasattr(made, "spillway_report"):
                on_rewrite(made)

    def __call__(self, iterator: Any) -> Any:
        if not hasattr(iterator, "element_spec"):
            return self.original(iterator)  # Keras 3's train_on_batch.
        if self._iterator() is not iterator:
            self._iterator, self._batch, self._replayed = weakref.ref(iterator), None, None
            if not ("batch_size" in self.keywords or "feeds" in self.keywords):
                replayed, self._batch = _batch_of(iterator)
                if isinstance(iterator, tf.data.Iterator):
                    iterator = replayed  # For this step: later ones take the same function.
                elif replayed is not iterator:
                    self._replayed = replayed
        if self._replayed is not None:
            iterator = self._replayed
        key = (str(iterator.element_spec), self._batch)
        if key not in self._made:
            function = self.original.get_concrete_function(iterator)
            # A copy: the rewrite fills in values for this shape.
            keywords = dict(self.keywords)
            if self._batch is not None:
                keywords["batch_size"] = self._batch
            made = self._rewrite(function, **keywords)
            if made is not function and not self._takes(made, iterator):
                made = function
            self._made[key] = self.original if made is function else made
            if made is not function:
                (self._on_rewrite or _print_line)(made)
        return self._made[key](iterator)

    def _takes(self, made: Any, iterator: Any) -> bool:
        """Whether TensorFlow takes the function; with fail_open, warns if not."""
        try:
            _instantiate(lambda: made(iterator))
        except errors.SpillwayError as error:
            if not self.keywords.get("fail_open"):
                raise
            _warn.of_failure(error)
            return False
        return True


def _print_line(made: Any) -> None:
    """Prints the summary, or that nothing was needed."""
    print("spillway: " + _text.cost(made.spillway_report), file=sys.stderr)


def _batch_of(iterator: Any) -> Tuple[Any, Optional[int]]:
    """Returns an iterator over the same data, and their batch size if `iterator` leaves it open:
    that of its next element, which is taken from `iterator`. (What several replicas read is no
    tensor in the spec, and its batch stays open.)"""
    spec = iterator.element_spec
    if not _open_batches(spec, spec):
        return iterator, None
    taken: List[Any] = []
    # As many elements as the step takes, which may be several.
    replayed = tf.data.Dataset.from_generator(lambda: itertools.chain(taken, iterator),
                                              output_signature=spec)
    # It must not run ahead (inject_prefetch): elements taken are gone from `iterator`.
    optimizations = tf.data.Options()
    optimizations.autotune.enabled = False
    optimizations.experimental_optimization.apply_default_optimizations = False
    optimizations.experimental_optimization.inject_prefetch = False
    replayed = replayed.with_options(optimizations)
    try:
        taken.append(next(iterator))
    except StopIteration:
        return iterator, None  # The step ends as it would.
    batches = set(_open_batches(spec, taken[0]))
    return iter(replayed), batches.pop() if len(batches) == 1 else None


def _open_batches(spec: Any, element: Any) -> List[Any]:
    """Returns the first dimension in `element` of each dense tensor for which `spec` leaves it open."""
    return [part.shape[0] for whole, part in zip(tf.nest.flatten(spec), tf.nest.flatten(element))
            if isinstance(whole, tf.TensorSpec) and whole.shape.rank and whole.shape[0] is None]
