"""Shared parts of the tests in TensorFlow."""

import sys

import common

common.set_up()
sys.path.insert(0, str(common.ROOT / "tests" / "tensorflow"))
# pylint: disable=wrong-import-position
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from spillway.tensorflow import _function

# One thread: sums are added in one order, and two runs give the same bits.
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
# Two devices, for MirroredStrategy; before the first op.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)

VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
# With Keras 2; Estimators and Keras in graph mode are there, too.
KERAS_2 = VERSION < (2, 16)
if not KERAS_2:
    # It changes the last bits of graphs of Keras 3, and others if it cannot look through a swap.
    tf.config.optimizer.set_experimental_options({"arithmetic_optimization": False})


def config():
    """For sessions."""
    return tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1,
                           allow_soft_placement=True)


def live(graph_bytes):
    """A tf.Graph of a GraphDef."""
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(tf1.GraphDef.FromString(graph_bytes), name="")
    return graph


def refused(function, **_):
    """A function that Python makes and calls, but that TensorFlow refuses at its first call: it
    waits for an op without a kernel for CPUs. In place of rewrite_function."""
    graph_def = function.graph.as_graph_def(add_shapes=True)
    lost = graph_def.node.add(name="lost", op="NcclAllReduce")
    for name, value in (("reduction", b"sum"), ("shared_name", b"lost")):
        lost.attr[name].s = value
    lost.attr["num_devices"].i = 1
    lost.attr["T"].type = tf.float32.as_datatype_enum
    number = graph_def.node.add(name="number", op="Const")
    number.attr["dtype"].type = tf.float32.as_datatype_enum
    number.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(1.0))
    lost.input.append("number")
    last = function.graph.outputs[0].op.name
    next(node for node in graph_def.node if node.name == last).input.append("^lost")
    return _function._from_graph_def(function, graph_def)  # pylint: disable=protected-access


def swap_names(graph):
    return [operation.name for operation in graph.get_operations() if "lms/swap" in operation.name]
