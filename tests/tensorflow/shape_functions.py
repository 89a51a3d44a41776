#!/usr/bin/env python3
"""Are the shapes that Spillway infers those that TensorFlow infers?

Three kinds of cases, all in graph mode; TensorFlow's answer is always that of its C++ shape
inference alone, without what Python knows:

- `op/NAME`: one op type, with inputs of all kinds (unknown and partly known shapes, constants) and
  attributes, found at random: starting with inputs of which nothing is known, one thing is changed
  at a time, and what TensorFlow accepts is kept.
- `chain/NAME`: ops that only work together (lists, queues, tables, parsers, cells).
- `model/NAME`: training graphs with their gradients and optimizers.

What TensorFlow knows, Spillway must know, and nowhere may it say something else; more it may know.

    python tests/tensorflow/shape_functions.py --spillway build/bin/spillway

One line per chain and model, and per op that is wrong; at the end, alone on its line,
`N passed, N failed, 0 skipped`. Exit code 0: nothing failed; 1: something did; 2: bad usage.
"""
import argparse
import collections
import os
import pathlib
import pickle
import random
import re
import signal
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
warnings.filterwarnings("ignore")
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import graph_pb2, node_def_pb2, op_def_pb2, types_pb2  # noqa: E402
from tensorflow.python.client import pywrap_tf_session  # noqa: E402
from tensorflow.python.framework import ops as tf_ops  # noqa: E402

from shape_cases import CASES  # noqa: E402

v1 = tf.compat.v1
raw = tf.raw_ops
tf.get_logger().setLevel("ERROR")


# ---- Asking both.

def _dims_of(tensor):
    try:
        return None if tensor.shape.rank is None else tensor.shape.as_list()
    except ValueError:
        return None  # A dimension below 0: no answer.


def theirs_of(graph):
    """What TensorFlow says of each tensor: {name: (type, dims or None)}."""
    return {tensor.name: (tensor.dtype.name, _dims_of(tensor))
            for op in graph.get_operations() for tensor in op.outputs}


def _parse_shape(text):
    if text == "?":
        return None
    return [None if dim == "?" else int(dim) for dim in text.strip("[]").split(",") if dim]


class Spillway:
    """Asks `spillway inspect --shapes`."""

    def __init__(self, command):
        self.command = command

    def shapes(self, graph_def):
        """The same as theirs_of, of a serialized graph. Raises RuntimeError if it is refused."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "graph.pb"
            path.write_bytes(graph_def)
            done = subprocess.run([*self.command, str(path)], capture_output=True, text=True,
                                  timeout=60, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or "exit code %d" % done.returncode)
        found = {}
        for line in done.stdout.splitlines():
            if line.count("\t") == 2:
                tensor, dtype, shape = line.split("\t")
                found[tensor] = dtype, _parse_shape(shape)
        return found


def _text(dims):
    return "?" if dims is None else "[%s]" % ",".join("?" if d is None else str(d) for d in dims)


def compare(theirs, ours):
    """The problem with our (type, dims), in a word or two, or None."""
    if ours is None:
        return "is missing"
    if ours[0] != theirs[0]:
        return "is of type %s, not %s" % (ours[0], theirs[0])
    if theirs[1] is None:
        return None
    if ours[1] is None:
        return "is unknown, but TensorFlow says %s" % _text(theirs[1])
    if len(ours[1]) != len(theirs[1]) or any(
            a is not None and b is not None and a != b for a, b in zip(ours[1], theirs[1])):
        return "is %s, but TensorFlow says %s" % (_text(ours[1]), _text(theirs[1]))
    if any(a is None and b is not None for a, b in zip(ours[1], theirs[1])):
        return "is only %s, but TensorFlow says %s" % (_text(ours[1]), _text(theirs[1]))
    return None


def _complete(shape):
    return shape[1] is not None and None not in shape[1]


def check_graph(graph_def, spillway):
    """Problems with a whole graph, and a summary."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    theirs, ours = theirs_of(graph), spillway.shapes(graph_def.SerializeToString())
    problems = []
    for name, shape in theirs.items():
        wrong = compare(shape, ours.get(name))
        if wrong:
            op = graph.get_tensor_by_name(name).op
            problems.append("%s (%s of %s) %s" % (
                name, op.type, ", ".join(_text(theirs[i.name][1]) for i in op.inputs), wrong))
    return problems, "%d tensors, TensorFlow knows %d, Spillway %d" % (
        len(theirs), sum(map(_complete, theirs.values())),
        sum(_complete(ours[name]) for name in theirs if name in ours))


# ---- Single ops, at random.

# Not asked: ops of accelerators and of experiments that no training graph on GPUs has, and those
# that need functions (chains and models have them).
_NOT_ASKED = re.compile(
    "Xla|TPU|Tpu|Risc|UniformQ|UniformD|UniformR|BoostedTrees|Rpc|DTensor|CSR|SparseMatrix|"
    "Infeed|Outfeed|Dedup|TfLite|Relayout|CopyToMesh|_(?!Fused)|Experimental|"
    "Quantized(Conv|Depthwise|MaxPool|AvgPool)")

# No program uses these: Grappler's remapper makes them.
_FUSED = re.compile("_Fused(Conv|Depthwise|MatMul|BatchNorm)")

# Ops for which TensorFlow knows more, and why; or gives another result.
_DIFFERS = {
    r"(Sparse)?Apply\w+": "a variable of unknown shape gets that of its slots and gradient",
    "AccumulateNV2": "believes the attribute, whatever is added",
    "AllToAll": "of TPUs",
    "ApproxTopK": "of TPUs",
    "CollectiveGather": "says the input's shape; the kernel puts out that of the attribute",
    "(Not)?Equal": "with incompatible_shape_error=False, sees that both are of one tensor",
    "I?R?FFTND": "says the input's shape, whatever fft_length is",
    "Matrix(Set)?DiagV[23]": "takes a k, or a number of rows, that is not known for the default",
    "ExtractVolumePatches": "gives an unknown input's rank as 4; it is 5",
    "QuantizedBatchNormWithGlobalNormalization": "of quantized inference",
    "QuantizedConcat(V2)?": "of quantized inference",
    "QuantizedReshape": "of quantized inference",
    "RaggedCross": "counts the rows by whichever input tells them",
    "RaggedTensorToTensor": "reads strings",
    "RestoreV2": "reads strings",
    "SdcaOptimizer(V2)?": "tells the shapes of the changed weights too",
    "ResourceGatherNd": "takes a handle without a variable for the variable",
}

_CONTRADICTED = {"AccumulateNV2", "CollectiveGather", "ExtractVolumePatches"}

_DIMS = [None, None, 1, 2, 3, 4, 6, 8]
_INT_LISTS = [[1, 1, 1, 1], [1, 2, 2, 1], [1, 1, 2, 2], [1, 1, 1, 1, 1], [1, 2, 2, 2, 1],
              [1, 1, 2, 2, 2], [1, 3, 2, 1], [1], [2], [0], [-1], [1, 2], []]
_INTS = [-1, 0, 1, 2, 3, 4]
_STRINGS = {
    "data_format": [b"NHWC", b"NCHW", b"NDHWC", b"NCDHW"],
    "equation": [b"ij,jk->ik", b"bij,bjk->bik", b"...ij,jk->...ik", b"ij->ji"],
    "padding": [b"SAME", b"VALID"],
}


class Instance:
    """One op with its attributes and inputs."""

    @classmethod
    def of(cls, op_def, attrs, inputs):
        instance = object.__new__(cls)
        instance.op_def, instance.attrs, instance.inputs = op_def, attrs, inputs
        return instance

    def __init__(self, op_def, rng):
        self.op_def = op_def
        self.attrs = {attr.name: self._value(attr, rng, True) for attr in op_def.attr}
        self.inputs = [[("unknown",)] * len(self._types(arg)) for arg in op_def.input_arg]

    @staticmethod
    def _value(attr, rng, first):
        if first and attr.HasField("default_value"):
            return attr.default_value
        value = type(attr.default_value)()
        allowed = attr.allowed_values.list
        kind = attr.type

        def dtype():
            types = allowed.type or [types_pb2.DT_FLOAT, types_pb2.DT_INT32]
            return types_pb2.DT_FLOAT if types_pb2.DT_FLOAT in types and first else \
                rng.choice([t for t in types if t < 100 and t != types_pb2.DT_RESOURCE])

        def shape(proto):
            for _ in range(rng.choice([0, 1, 2])):
                dim = rng.choice(_DIMS)
                proto.dim.add(size=-1 if dim is None else dim)
            if not first and rng.random() < .2:
                proto.Clear()
                proto.unknown_rank = True

        if kind == "type":
            value.type = dtype()
        elif kind == "list(type)":
            value.list.type.extend(dtype() for _ in range(rng.choice([1, 1, 2])))
        elif kind == "int":
            value.i = max(rng.choice(_INTS), attr.minimum if attr.has_minimum else -1)
            if first and attr.name.startswith(("N", "n")):
                value.i = max(value.i, 1)
        elif kind == "list(int)":
            value.list.i.extend(rng.choice(_INT_LISTS))
        elif kind == "string":
            value.s = rng.choice(list(allowed.s) or _STRINGS.get(attr.name, [b"", b"x"]))
        elif kind == "list(string)":
            value.list.s.extend([b"x"] * rng.choice([0, 1, 1, 2]))
        elif kind == "bool":
            value.b = rng.random() < .5
        elif kind == "float":
            value.f = rng.choice([0., .5, 1.])
        elif kind == "list(float)":
            value.list.f.append(1.)
        elif kind == "shape":
            shape(value.shape)
        elif kind == "list(shape)":
            for _ in range(rng.choice([1, 1, 2])):
                shape(value.list.shape.add())
        else:
            raise ValueError(kind)  # A function, a tensor.
        return value

    def _types(self, arg):
        one = self.attrs[arg.type_attr].type if arg.type_attr else arg.type
        if arg.number_attr:
            return [one] * min(self.attrs[arg.number_attr].i, 8)
        if arg.type_list_attr:
            return list(self.attrs[arg.type_list_attr].list.type)
        return [one]

    def mutated(self, rng):
        """Another one, of which one thing differs."""
        other = Instance.of(self.op_def, dict(self.attrs), [list(i) for i in self.inputs])
        if self.op_def.attr and (rng.random() < .3 or not self.op_def.input_arg):
            attr = rng.choice(self.op_def.attr)
            other.attrs[attr.name] = self._value(attr, rng, False)
            for i, arg in enumerate(self.op_def.input_arg):
                types = other._types(arg)
                other.inputs[i] = (other.inputs[i] + [("unknown",)] * len(types))[:len(types)]
            return other
        places = [(i, k) for i, given in enumerate(other.inputs) for k in range(len(given))]
        for _ in range(rng.choice([1, 1, 2, len(places)]) if places else 0):
            i, k = rng.choice(places)
            other.inputs[i][k] = self._given(other, i, k, rng)
        return other

    @staticmethod
    def _given(other, i, k, rng):
        dtype = other._types(other.op_def.input_arg[i])[k]
        chance = rng.random()
        if dtype in (types_pb2.DT_INT32, types_pb2.DT_INT64) and chance < .6:
            small = rng.random() < .7
            if rng.random() < .3:
                return "const", rng.choice(_INTS[1:] if small else _INTS)
            return "const", [rng.choice([1, 2, 3, 4, 8] if small else _INTS)
                             for _ in range(rng.choice([0, 1, 2, 2, 3, 4, 5]))]
        given = [g for gs in other.inputs for g in gs if g[0] == "shape"]
        if given and chance > .7:
            dims = list(rng.choice(given)[1])
            if dims and rng.random() < .5:
                dims[rng.randrange(len(dims))] = rng.choice(_DIMS)
            return "shape", tuple(dims)
        return "shape", tuple(rng.choice(_DIMS) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4, 4,
                                                                           5])))


class RandomOps:
    """A graph of accepted instances of many op types."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.graph = tf.Graph()
        self.given = {}  # What inputs are there: by type and shape or value.
        self.owner = {}  # Op type by node name.

    def _input(self, dtype, given, is_ref):
        if given[0] == "const" and dtype not in (types_pb2.DT_INT32, types_pb2.DT_INT64):
            given = "unknown",  # The type changed after it was chosen.
        key = dtype, repr(given), is_ref
        if key not in self.given:
            with self.graph.as_default():
                if given[0] == "const":
                    tensor = tf.constant(given[1], tf.as_dtype(dtype), name="given")
                else:
                    shape = given[1] if given[0] == "shape" else None
                    node = node_def_pb2.NodeDef(name=self.graph.unique_name("given"),
                                                op="VariableV2" if is_ref else "Placeholder")
                    node.attr["dtype"].type = dtype
                    node.attr["shape"].shape.CopyFrom(tf.TensorShape(shape).as_proto())
                    tensor = self._create(node, [])
            self.given[key] = tensor
        return self.given[key]

    def _create(self, node, inputs):
        op = tf_ops._create_c_op(self.graph, node, inputs, [])
        outputs = tf_ops.Operation._from_c_op(op, self.graph).outputs
        return outputs[0] if len(outputs) == 1 else outputs

    def accept(self, instance):
        """Whether TensorFlow takes it; it is then part of the graph."""
        op_def = instance.op_def
        node = node_def_pb2.NodeDef(op=op_def.name, name="op%d" % len(self.owner))
        for name, value in instance.attrs.items():
            node.attr[name].CopyFrom(value)
        inputs = []
        for arg, given in zip(op_def.input_arg, instance.inputs):
            inputs += [self._input(t, g, arg.is_ref) for t, g in zip(instance._types(arg), given)]
        try:
            self._create(node, inputs)
        except (ValueError, TypeError, tf.errors.OpError):
            return False
        self.owner[node.name] = op_def.name
        return True

    def explore(self, op_def, tries):
        """The instances that are accepted of so many tries."""
        pool = []
        for attempt in range(tries):
            instance = self.rng.choice(pool).mutated(self.rng) if pool else \
                Instance(op_def, self.rng)
            if not pool and attempt % 2:
                for _ in range(self.rng.choice([1, 2, 3])):
                    instance = instance.mutated(self.rng)
            if self.accept(instance):
                pool.append(instance)
        return pool


_LONGEST_TYPE = 5  # Seconds; a type takes some hundredths.


def _explore_in_child(op_defs, first, seed, tries, results):
    """Pickles (position, instances) to `results`, for the op types from `first` on."""
    if os.fork() == 0:
        try:
            for position in range(first, len(op_defs)):
                ops = RandomOps("%d %s" % (seed, op_defs[position].name))
                results.write(pickle.dumps((position, None)))
                results.flush()
                # Ends the child, wherever it is: it may wait for a lock for ever.
                signal.alarm(_LONGEST_TYPE)
                found = ops.explore(op_defs[position], tries)
                results.write(pickle.dumps((position, [(i.attrs, i.inputs) for i in found])))
                results.flush()
        finally:
            # TensorFlow may not be able to end any more.
            os._exit(0)
    os.wait()


def accepted_instances(op_defs, seed, tries):
    """Instances of these op types that TensorFlow accepts.

    TensorFlow's shape functions do not all survive input that they do not accept: they run in a
    child, and the type at which it dies, or hangs, is left out.
    """
    found, first = {}, 0
    while first < len(op_defs):
        with tempfile.TemporaryFile() as results:
            _explore_in_child(op_defs, first, seed, tries, results)
            results.seek(0)
            while True:
                try:
                    position, instances = pickle.load(results)
                except EOFError:
                    break
                first = position + 1
                if instances is not None:
                    found[op_defs[position].name] = [
                        Instance.of(op_defs[position], *i) for i in instances]
    return found


def _op_defs():
    buffer = pywrap_tf_session.TF_GetAllOpList()
    ops = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(buffer)).op
    asked = [op for op in ops if op.output_arg and
             (hasattr(raw, op.name) or _FUSED.match(op.name)) and
             not _NOT_ASKED.search(op.name) and
             not any(attr.type in ("func", "list(func)", "tensor") for attr in op.attr)]
    return sorted(asked, key=lambda op: op.name)


class OpsCheck:
    """Problems with single ops."""

    def __init__(self, spillway):
        self.spillway = spillway
        self.types = self.nodes = self.refused = self.known = self.more = 0
        self.problems = {}

    def add(self, ops):
        """Checks a graph of RandomOps."""
        counts = collections.Counter(ops.owner.values())
        self.types += len(counts)
        self.nodes += len(ops.owner)
        theirs, ours = self._ask(ops, counts)
        for name, shape in theirs.items():
            node = name.split(":")[0]
            if node not in ops.owner:
                continue
            self.known += _complete(shape)
            found = ours.get(name)
            self.more += found is not None and _complete(found) and not _complete(shape)
            wrong = compare(shape, found)
            if wrong and not self._is_expected(ops.owner[node], wrong):
                given = ", ".join(self._given(theirs[i.name][1], i.op) for i in
                                  ops.graph.get_operation_by_name(node).inputs)
                self.problems.setdefault(ops.owner[node], []).append(
                    "output %s of %s %s" % (name.split(":")[1], given, wrong))

    @staticmethod
    def _is_expected(op, wrong):
        less = wrong.startswith(("is unknown", "is only"))
        return (less or op in _CONTRADICTED) and any(re.fullmatch(o, op) for o in _DIFFERS)

    @staticmethod
    def _given(dims, op):
        value = ""
        if op.type == "Const":
            value = "=%s" % tf.make_ndarray(op.get_attr("value")).tolist()
        return _text(dims) + value

    def _ask(self, ops, counts):
        """Theirs and ours of the nodes that are not refused."""
        graph_def, theirs = ops.graph.as_graph_def(), theirs_of(ops.graph)
        while True:
            try:
                return theirs, self.spillway.shapes(graph_def.SerializeToString())
            except RuntimeError as error:
                # One node that it refuses, as TensorFlow's kernel may do too. On without those that
                # are given the same; a type of which all are refused is wrong.
                found = re.search(r"'(op\d+)'", str(error))
                if not found:
                    raise
                bad = next(node for node in graph_def.node if node.name == found.group(1))
                gone = {node.name for node in graph_def.node
                        if node.op == bad.op and node.input == bad.input}
                self.refused += len(gone)
                counts[bad.op] -= len(gone)
                if not counts[bad.op]:
                    self.problems[bad.op] = ["is refused: %s" % error]
                kept = [node for node in graph_def.node if node.name not in gone]
                theirs = {t: s for t, s in theirs.items() if t.split(":")[0] not in gone}
                graph_def = graph_pb2.GraphDef(versions=graph_def.versions)
                graph_def.node.extend(kept)


def check_ops(spillway, seed, tries, pattern):
    """Prints problems, by op type; returns how many types are right and wrong."""
    op_defs = [op for op in _op_defs() if pattern in "op/" + op.name]
    accepted = list(accepted_instances(op_defs, seed, tries).values())
    check, at_once = OpsCheck(spillway), 40
    for first in range(0, len(accepted), at_once):
        ops = RandomOps(seed)
        for instances in accepted[first:first + at_once]:
            for instance in instances:
                ops.accept(instance)
        check.add(ops)
    for name in sorted(check.problems):
        print("FAIL  op/%s" % name)
        for problem in check.problems[name][:4]:
            print("      " + problem)
    if check.types:
        print("%-5s %-30s %d types, %d nodes, %d of them refused; TensorFlow knows %d tensors, "
              "Spillway %d more" % ("FAIL" if check.problems else "ok", "op/*", check.types,
                                    check.nodes, check.refused, check.known, check.more))
    return check.types - len(check.problems), len(check.problems)


# ---- Main.


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--spillway", help="the program, e.g. build/bin/spillway")
    parser.add_argument("--printer", help="instead: a program that prints the shapes of FILE")
    parser.add_argument("-k", metavar="TEXT", default="", help="only cases whose name holds TEXT")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs of single ops")
    parser.add_argument("--tries", type=int, default=25, help="of each op (default 25)")
    arguments = parser.parse_args()
    if not arguments.spillway and not arguments.printer:
        parser.error("--spillway is required")
    spillway = Spillway([arguments.printer] if arguments.printer else
                        [arguments.spillway, "inspect", "--shapes"])
    v1.disable_eager_execution()
    passed, failed = check_ops(spillway, arguments.seed, arguments.tries, arguments.k)
    for name, build in CASES.items():
        if arguments.k not in name:
            continue
        graph = tf.Graph()
        v1.disable_control_flow_v2()
        with graph.as_default():
            build()
        try:
            problems, seen = check_graph(graph.as_graph_def(), spillway)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            problems, seen = [str(error)], ""
        failed, passed = failed + bool(problems), passed + (not problems)
        print("%-5s %-30s %s" % ("FAIL" if problems else "ok", name, seen))
        for problem in problems[:10]:
            print("      " + problem)
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
