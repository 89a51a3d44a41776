"""Ranks with live graphs, Horovod in graph mode, and towers, in TensorFlow.

Ranks are threads here, each with its own graph: a process of TensorFlow takes seconds to begin.
py_horovod_test.py has processes.
"""

import concurrent.futures
import tempfile
import types
import unittest

import common
import tf_common
from tf_common import tf, tf1
from truth import graphs, train  # pylint: disable=wrong-import-order

import spillway
import spillway.horovod
from spillway.tensorflow import rewrite_graph

SCOPE = dict(strategy="scope", lb=5)


def at_once(size, function):
    """[function(rank) of each rank], or the exception that it raised."""
    with concurrent.futures.ThreadPoolExecutor(size) as pool:
        runs = [pool.submit(function, rank) for rank in range(size)]
        return [run.exception() or run.result() for run in runs]


def mnist(rank):
    """A live graph whose random ops have seeds of the rank."""
    graph_def = tf1.GraphDef.FromString(common.graph("mnist_deep"))
    for node in graph_def.node:
        if "seed2" in node.attr:
            node.attr["seed2"].i = 100 + rank
    return tf_common.live(graph_def.SerializeToString())


class LiveTest(unittest.TestCase):

    def test_each_rank_trains_its_own_graph_with_the_swaps_of_rank_0(self):
        data = graphs.Graph(common.GRAPHS / "mnist_deep")
        live = [mnist(rank) for rank in range(2)]
        originals = [graph.as_graph_def().SerializeToString() for graph in live]
        with tempfile.TemporaryDirectory() as folder:
            results = at_once(2, lambda rank: spillway.horovod.rewrite_graph(
                live[rank], folder=folder, rank=rank, size=2, local_size=2,
                wait=common.PATIENCE_S, **SCOPE))
        losses = []
        for rank, result in enumerate(results):
            self.assertIsInstance(result, spillway.RewriteResult)
            after = live[rank].as_graph_def()
            self.assertEqual(set(tf_common.swap_names(live[rank])),
                             {node.name for node in results[0].patch.new_nodes})
            self.assertEqual(spillway.strip(after).graph_def.node,
                             tf1.GraphDef.FromString(originals[rank]).node)
            before = train.train(data, originals[rank])
            swapped = train.train(data, after.SerializeToString())
            self.assertEqual(swapped.losses, before.losses)
            self.assertEqual(swapped.variables, before.variables)
            losses.append(before.losses)
        self.assertNotEqual(losses[0], losses[1])

    def test_a_rank_whose_graph_cannot_be_edited(self):
        live = [mnist(rank) for rank in range(2)]
        before = [graph.as_graph_def() for graph in live]
        live[1].finalize()
        with tempfile.TemporaryDirectory() as folder:
            results = at_once(2, lambda rank: spillway.horovod.rewrite_graph(
                live[rank], folder=folder, rank=rank, size=2, local_size=2,
                wait=common.PATIENCE_S, **SCOPE))
            for result in results:
                self.assertIsInstance(result, spillway.LiveGraphError)
                self.assertEqual(result.reason, "FINALIZED_GRAPH")
            self.assertIn("rank 1: ", str(results[0]))
            self.assertEqual([graph.as_graph_def() for graph in live], before)
            with self.assertWarns(spillway.SpillwayWarning):
                results = at_once(2, lambda rank: spillway.horovod.rewrite_graph(
                    live[rank], folder=folder, rank=rank, size=2, local_size=2,
                    wait=common.PATIENCE_S, fail_open=True, **SCOPE))
            self.assertEqual([result.error.reason for result in results], ["FINALIZED_GRAPH"] * 2)


def horovod_in_graph_mode(rank, size, queues):
    """A module that does what horovod.tensorflow does in graph mode: it adds an op to the default
    graph, and runs it in the session it is given, or in the default one."""
    module = types.ModuleType("horovod.tensorflow")
    module.rank, module.size, module.local_size = (lambda: rank), (lambda: size), (lambda: size)

    def broadcast_object(value, root_rank=0, session=None, name=None):
        if rank == root_rank:
            for other in range(size):
                if other != rank:
                    queues[rank, other].put(value)
        else:
            value = queues[root_rank, rank].get(timeout=common.PATIENCE_S)
        sent = tf.constant(value, name=name)
        return (session or tf1.get_default_session()).run(sent)

    module.broadcast_object = broadcast_object
    return module


class GraphModeTest(unittest.TestCase):
    """In a process of its own, since it switches eager execution off."""

    CODE = """
import sys
sys.path.insert(0, sys.argv[1])
import queue
import tf_horovod_test as test
test.tf1.disable_eager_execution()
queues = {(a, b): queue.Queue() for a in range(2) for b in range(2)}
live = [test.mnist(rank) for rank in range(2)]

def run(rank):
    with live[rank].as_default():
        return test.spillway.horovod.rewrite_graph(
            hvd=test.horovod_in_graph_mode(rank, 2, queues), **test.SCOPE)

results = test.at_once(2, run)
before = len(test.mnist(0).get_operations())
for rank in range(2):
    # The swaps were added, and no op of Horovod.
    print(len(live[rank].get_operations()) - before == len(results[rank].patch.new_nodes) > 0)
print(len(test.tf1.get_default_graph().get_operations()))
"""

    def test_no_op_is_left_in_the_graph_of_the_job(self):
        done = common.python(self.CODE, str(common.ROOT / "tests" / "client_lib" / "python"))
        self.assertEqual(done.stdout, "True\nTrue\n0\n", done.stderr[-3000:])


@common.takes_long
class TowersTest(unittest.TestCase):
    """A tower on each of two GPUs, variables and the average of gradients on the CPU: one call."""

    def test_both_towers_swap_and_train_to_the_same_bits(self):
        name = "resnet26_2tower_b2"
        data = graphs.Graph(common.GRAPHS / name)
        before = train.train(data, data.bytes)
        self.assertEqual(len(before.losses["average/loss:0"]), 4)
        for keywords in (dict(strategy="scope", min_tensor_bytes=65536),
                         dict(strategy="level", swapout_threshold=40, swapin_ahead=3, swapin_groupby=2)):
            with self.subTest(**keywords):
                graph = tf_common.live(data.bytes)
                report = rewrite_graph(graph, **keywords).report
                self.assertEqual([device.device for device in report.devices],
                                 ["/device:GPU:0", "/device:GPU:1"])
                # The towers are alike.
                self.assertEqual(report.devices[0].swapped_tensor_count,
                                 report.devices[1].swapped_tensor_count)
                self.assertGreater(report.devices[0].swapped_tensor_count, 10)
                by_name = {node.name: node for node in graph.as_graph_def().node}
                for swap in report.swaps:
                    producer = by_name[swap.tensor.partition(":")[0]]
                    self.assertEqual(producer.device, swap.device)
                after = train.train(data, graph.as_graph_def().SerializeToString())
                self.assertEqual(after.losses, before.losses)
                self.assertEqual(after.variables, before.variables)


if __name__ == "__main__":
    unittest.main()
