"""Swaps in the bodies of functions that are not inlined.

A rewrite inlines the calls of a graph, and lowers its loops and conditionals; but it swaps nothing
in loops (Keras runs its step in one if `steps_per_execution` is above 1), does not look into
functions that must not be inlined (`_noinline`), and assumes that a step in a branch of a
conditional may not run. If the body of such a function updates weights, it may contain a whole
training step: it is rewritten as a separate graph, and the node runs the rewritten function
instead.

All edits are made on copies: the functions of the program are unchanged, the new ones have new
names.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.framework import func_graph
from tensorflow.python.framework import function_def_to_graph
from tensorflow.python.framework import importer
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import handle_data_util

from spillway import _warn, errors
from spillway.tensorflow import _homes

# Ops that run a function as a body, and the index of its first argument among their inputs.
_BRANCHES = {"If": 1, "StatelessIf": 1, "Case": 1, "StatelessCase": 1}
_LOOPS = {"While": 0, "StatelessWhile": 0}
_CALLS = {"PartitionedCall": 0, "StatefulPartitionedCall": 0}

# Ops that change a variable: without one, there is no training step.
_UPDATE = re.compile(
    r"Assign(Add|Sub)?VariableOp|Resource(Sparse)?Apply\w+|ResourceScatter(Nd)?(Add|Sub|Update)")

# Attributes of calls that are not rewritten: XLA does not support swaps (MarkedForXlaCompilation in
# TensorFlow's grappler/optimizers/function_optimizer.cc), and TensorFlow may replace the function by
# another of its group (implementation_selector.cc, there).
_COMPILED = ("_XlaMustCompile", "_XlaCompile", "_xla_compile_id", "_tpu_replicate")
_GROUP = "api_implements"

# The attribute by which the core marks an edited node.
_UNDO = "_spillway_undo"

# A body in which the strategy finds no step is left unchanged.
_NO_STEP = frozenset(("NO_BACKWARD_PART", "NO_STARTING_OP", "NAME_MATCHES_NOTHING"))

_number = itertools.count(1)


class _Use(NamedTuple):
    """A function run by a node: `attr` names it, at `index` of a list."""
    node: str
    attr: str
    index: Optional[int]  # type: ignore[assignment]
    function: str
    # For each argument a tensor of its type, and one whose shape always holds.
    arguments: Tuple[Tuple[Any, Any], ...]
    is_body: bool  # The function is not inlined into the node's graph.


def says_no_step(error: errors.SpillwayError) -> bool:
    """Whether the error says that there is no training step in the graph."""
    return error.reason in _NO_STEP


def targets(graph: Any) -> List[str]:
    """Returns the results and side effects of a function."""
    names = [tensor.op.name for tensor in graph.outputs]
    names += [operation.name for operation in graph.control_outputs]
    return list(dict.fromkeys(names))


class Bodies:
    """Rewrites the bodies that the nodes of a FuncGraph run.

    Attributes:
      reports: the reports of the bodies in which the strategy found a step, by the name of the
        function: of the new one, if it was rewritten.
      changed_side: whether a branch of a conditional was rewritten.
      had_swaps: whether a body was rewritten before. It is left unchanged: strip would need the
        functions that it called.
      kept_alive: objects that must live as long as the rewritten functions are run.
    """

    def __init__(self, graph_def: Any, rewrite: Callable[[Any, List[str]], Any],
                 homes: _homes.Homes) -> None:
        """`graph_def`: the graph whose nodes are examined; `rewrite(graph_def, targets)` returns a
        RewriteResult; `homes`: where the variables lie that the graph captures."""
        self._library = {function.signature.name: function
                         for function in graph_def.library.function}
        self._rewrite = rewrite
        self._homes = dict(homes)
        self._updating = _updating(self._library)
        self._new_names: Dict[str, str] = {}  # By examined function.
        self._made: List[Any] = []  # FunctionDefs.
        self.reports: Dict[str, Any] = {}
        self.changed_side = False
        self.had_swaps = False
        self.kept_alive: List[Any] = []

    def replace(self, graph: Any, graph_def: Any) -> bool:
        """Rewrites the bodies that `graph`'s nodes run, and makes the nodes of `graph_def`, its
        GraphDef, run the new ones. Returns whether there are any."""
        nodes = None
        for use in self._uses(graph):
            new_name = self._new_name(use)
            if new_name == use.function:
                continue
            if nodes is None:
                nodes = {node.name: node for node in graph_def.node}
            self.changed_side = self.changed_side or nodes[use.node].op in _BRANCHES
            value = nodes[use.node].attr[use.attr]
            (value.func if use.index is None else value.list.func[use.index]).name = new_name
        if nodes is not None:
            self._add_to_library(graph_def)
        return nodes is not None

    def _uses(self, graph: Any) -> Iterator[_Use]:
        """Yields the uses of functions that update weights."""
        for operation in graph.get_operations():
            definition = operation.node_def
            for attr, index, function in _functions_of(definition):
                if function not in self._updating:
                    continue
                marks = self._library[function].attr
                if any(mark in marks or mark in definition.attr for mark in (*_COMPILED, _GROUP)):
                    continue
                inputs = tuple(operation.inputs)
                if operation.type in _LOOPS and attr == "body":
                    # A loop may change shapes; those of its results hold in all iterations.
                    yield _Use(operation.name, attr, index, function,
                               tuple(zip(inputs, operation.outputs)), True)
                elif operation.type in _BRANCHES:
                    given = inputs[_BRANCHES[operation.type]:]
                    yield _Use(operation.name, attr, index, function,
                               tuple(zip(given, given)), True)
                elif operation.type in _CALLS:
                    yield _Use(operation.name, attr, index, function, tuple(zip(inputs, inputs)),
                               marks["_noinline"].b if "_noinline" in marks else False)

    def _new_name(self, use: _Use) -> str:
        if use.function not in self._new_names:
            self._new_names[use.function] = use.function  # Also ends the recursion of a function that calls itself.
            self._new_names[use.function] = self._process(use)
        return self._new_names[use.function]

    def _process(self, use: _Use) -> str:
        definition = self._library[use.function]
        if any(_UNDO in node.attr for node in definition.node_def):
            self.had_swaps = True
            return use.function
        if len(definition.signature.input_arg) != len(use.arguments):
            return use.function
        try:
            graph = self._graph_of(definition, use.arguments)
        except (ValueError, KeyError, TypeError) as error:  # From TensorFlow's importer.
            _warn.warn("the body of function %s is left as it is, since TensorFlow cannot make a graph "
                       "of it: %s" % (use.function, error))
            return use.function
        graph_def = graph.as_graph_def(add_shapes=True)
        changed = self.replace(graph, graph_def)
        result = self._rewritten(graph, graph_def) if use.is_body else None
        rewritten = result is not None and result.report.outcome == "REWRITTEN"
        name = use.function
        if rewritten or changed:
            name = "%s_spillway_%d" % (use.function, next(_number))
            self._make(name, definition, graph, result.graph_def if rewritten else graph_def)
        if result is not None:
            self.reports[name] = result.report
        return name

    def _rewritten(self, graph: Any, graph_def: Any) -> Any:
        """Returns None if the body has no step."""
        try:
            return _homes.rewritten(lambda sent: self._rewrite(sent, targets(graph)), graph,
                                    graph_def, self._homes)
        except errors.SpillwayError as error:
            if not says_no_step(error):
                raise
            return None

    def _graph_of(self, definition: Any, arguments: Tuple[Tuple[Any, Any], ...]) -> Any:
        """Returns the body as a FuncGraph, with the shapes of its arguments."""
        definition = _as_outermost(definition)
        graph_def, flat_names = function_def_to_graph.function_def_to_graph_def(definition)
        names = [argument.name for argument in definition.signature.input_arg]
        read = {name for node in graph_def.node for name in node.input}
        body = func_graph.FuncGraph(definition.signature.name)
        input_map = {}
        with body.as_default():
            for name, (given, looped) in zip(names, arguments):
                holder = array_ops.placeholder(given.dtype, looped.shape, name)
                handle_data_util.copy_handle_data(given, holder)
                body.inputs.append(holder)
                if given.ref() in self._homes:
                    self._homes[holder.ref()] = self._homes[given.ref()]
                for spelled, target in ((name + ":0", holder), ("^" + name, holder.op)):
                    if spelled in read or spelled == name + ":0" and name in read:
                        input_map[spelled] = target
            rest = type(graph_def)()
            rest.versions.CopyFrom(graph_def.versions)
            arguments_of = set(names)
            rest.node.extend(node for node in graph_def.node if node.name not in arguments_of)
            self._add_to_library(rest)
            # Like import_graph_def_for_function, which accepts no input_map: nodes of a body may be
            # colocated with nodes outside.
            importer._import_graph_def_internal(  # pylint: disable=protected-access
                rest, name="", input_map=input_map, validate_colocation_constraints=False)
        body.outputs = [body.get_tensor_by_name(flat_names[definition.ret[result.name]])
                        for result in definition.signature.output_arg]
        body.control_outputs = [body.get_operation_by_name(definition.control_ret[name])
                                for name in definition.signature.control_output]
        return body

    def _add_to_library(self, graph_def: Any) -> None:
        """Adds the functions, old and new, that its nodes need and that it lacks."""
        known = {**self._library, **{made.signature.name: made for made in self._made}}
        there = {function.signature.name for function in graph_def.library.function}
        waiting = list(graph_def.node)
        for function in graph_def.library.function:
            waiting.extend(function.node_def)
        while waiting:
            node = waiting.pop()
            for name in {node.op, *(used for _, _, used in _functions_of(node))}:
                if name in known and name not in there:
                    there.add(name)
                    graph_def.library.function.add().CopyFrom(known[name])
                    waiting.extend(known[name].node_def)

    def _make(self, name: str, old: Any, body: Any, graph_def: Any) -> None:
        """Makes the function of a rewritten body."""
        graph = func_graph.FuncGraph(name)
        with graph.as_default():
            importer.import_graph_def_for_function(graph_def, name="")
        graph.inputs = [graph.get_tensor_by_name(tensor.name) for tensor in body.inputs]
        graph.outputs = [graph.get_tensor_by_name(tensor.name) for tensor in body.outputs]
        graph.control_outputs = [graph.get_operation_by_name(operation.name)
                                 for operation in body.control_outputs]
        kept = {key: old.attr[key] for key in ("_noinline",) if key in old.attr}
        made = atomic_function.from_func_graph(name, graph, kept)
        self.kept_alive += [made, graph]
        self._made.append(made.cached_definition)


def _as_outermost(definition: Any) -> Any:
    """Returns the FunctionDef with node names that do not suggest a loop or a conditional. The
    strategies `scope` and `level` skip nodes with such names, like IBM's programs; here, the loop
    is around the graph. Names within a body have no other significance."""
    spelled = definition.SerializeToString().decode("latin-1")
    renamed = type(definition)()
    renamed.CopyFrom(definition)
    for scope, plain in (("while/", "loop"), ("cond/", "side")):
        while plain + "/" in spelled:
            plain += "_"
        _rename(renamed, scope, plain + "/")
    return renamed


def _rename(definition: Any, scope: str, plain: str) -> None:
    for node in definition.node_def:
        node.name = node.name.replace(scope, plain)
        for index, name in enumerate(node.input):
            node.input[index] = name.replace(scope, plain)
        if "_class" in node.attr:
            places = node.attr["_class"].list.s
            for index, place in enumerate(places):
                places[index] = place.replace(scope.encode(), plain.encode())
    for names in (definition.ret, definition.control_ret):
        for key in list(names):
            names[key] = names[key].replace(scope, plain)


def _functions_of(definition: Any) -> Iterator[Tuple[str, Optional[int], str]]:
    """Yields the functions that a node names: attribute, index in its list, name."""
    for key, value in definition.attr.items():
        if value.HasField("func"):
            yield key, None, value.func.name
        for index, function in enumerate(value.list.func):
            yield key, index, function.name


def _updating(library: Dict[str, Any]) -> Set[str]:
    """Returns the functions that update variables, directly or through functions that they run."""
    found: Set[str] = set()
    users: Dict[str, List[str]] = {}
    for name, function in library.items():
        for node in function.node_def:
            if _UPDATE.fullmatch(node.op):
                found.add(name)
            for _, _, used in _functions_of(node):
                users.setdefault(used, []).append(name)
    waiting = list(found)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in found:
                found.add(user)
                waiting.append(user)
    return found
