"""Runs a program, unchanged, on a machine with two CPU devices, and looks at the steps that ran.

    drive.py PROGRAM

CPU:0 is where TensorFlow places everything; the plug-in takes it for a GPU (SPILLWAY_GPU_STAND_IN)
and CPU:1 for the host. The last line is JSON: of the steps that train, the tensors that crossed to
CPU:1 and back, read from the partition graphs, which the executors were given.
"""
import json
import pathlib
import runpy
import sys

import tensorflow as tf
from tensorflow.python.eager import context

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tensorflow"))
from truth import crossings  # noqa: E402  pylint: disable=wrong-import-position

Session = tf.compat.v1.Session


def watch_sessions(steps):
    """Keeps the partition graphs of every session call."""
    run = Session.run

    def watched(self, fetches, feed_dict=None, options=None, run_metadata=None):
        assert options is None and run_metadata is None
        metadata = tf.compat.v1.RunMetadata()
        result = run(self, fetches, feed_dict, tf.compat.v1.RunOptions(output_partition_graphs=True),
                     metadata)
        steps.append(list(metadata.partition_graphs))
        return result

    Session.run = watched


def main():
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
    # One thread: sums are added in one order, and two runs give the same bits.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    steps = []
    watch_sessions(steps)
    context.enable_run_metadata()  # Of functions.
    runpy.run_path(sys.argv[1], run_name="__main__")
    steps += [list(f.partition_graphs) for f in context.export_run_metadata().function_graphs]
    out, back = set(), set()
    for partitions in steps:
        for crossing in crossings.find(partitions):
            if crossing.target == "CPU:1" and crossing.consumer.startswith("lms/swapout"):
                out.add(crossing.consumer)
            if crossing.source == "CPU:1" and crossing.tensor.startswith("lms/swapin"):
                back.add(crossing.tensor.partition(":")[0])
    nodes = {name for partitions in steps for name, node in crossings.nodes(partitions).items()
             if name.startswith("lms/swap") and node.op == "Identity"}
    print(json.dumps({"out": sorted(out), "back": sorted(back), "nodes": len(nodes)}))


if __name__ == "__main__":
    main()
