"""What the tests in TensorFlow share."""

import sys

import common

common.set_up()
sys.path.insert(0, str(common.ROOT / "tests" / "tensorflow"))
# pylint: disable=wrong-import-position
import tensorflow as tf
import tensorflow.compat.v1 as tf1

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
    # It changes the last bits of graphs of Keras 3, and others where it cannot look through a swap.
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


def swap_names(graph):
    return [operation.name for operation in graph.get_operations() if "lms/swap" in operation.name]
