"""Live graphs: the edit in place is the rewrite; what cannot be edited is refused and unchanged."""

import dataclasses
import unittest
import warnings

import common
import tf_common
from tf_common import tf, tf1
from truth import feeds, graphs  # pylint: disable=wrong-import-order

import spillway
from spillway import patch
from spillway.tensorflow import _live_graph, rewrite_graph

GRAPHS = ("mnist_deep", "cond_v1", "cond_v2", "cnn_mnist", "mixed_fp16", "lstm_while",
          "lstm_while_v2", "bert_tiny", "unet3d_s16", "resnet26_2tower_b2")
PARAMETERS = {
    "scope": dict(strategy="scope"),
    "fuse": dict(strategy="scope", fuse_swapins=True, lb=5),
    "level": dict(strategy="level", swapout_threshold=1, swapin_ahead=1, swapin_groupby=0),
    "sync": dict(strategy="level", swapout_threshold=5, swapin_ahead=3, swapin_groupby=2,
                 sync_mode=3),
    "serial": dict(strategy="level", swapout_threshold=5, swapin_ahead=1, swapin_groupby=0,
                   serialization=["3:10"]),
}


def by_name(graph_def):
    """{name: the node's parts}, regardless of the order of control inputs."""
    nodes = {}
    for node in graph_def.node:
        data = [name if ":" in name else name + ":0" for name in node.input if name[0] != "^"]
        attributes = {key: value.SerializeToString(deterministic=True)
                      for key, value in node.attr.items() if key != "_output_shapes"}
        nodes[node.name] = (node.op, data, sorted(name for name in node.input if name[0] == "^"),
                            node.device, attributes)
    return nodes


class SameAsRewriteTest(unittest.TestCase):

    @common.takes_long
    def test_the_edited_graph_is_the_rewritten_one_and_can_be_stripped(self):
        rewritten_at_all = set()
        for name in GRAPHS:
            for label, keywords in PARAMETERS.items():
                with self.subTest(graph=name, parameters=label):
                    graph = tf_common.live(common.graph(name))
                    before = graph.as_graph_def()
                    # A live graph keeps its calls.
                    expected = spillway.rewrite(graph, inline_calls="never", **keywords)
                    result = rewrite_graph(graph, **keywords)
                    after = graph.as_graph_def()
                    self.assertEqual(by_name(after), by_name(expected.graph_def))
                    self.assertEqual(by_name(after), by_name(result.graph_def))
                    if result.report.outcome == "REWRITTEN":
                        rewritten_at_all.add((name, label))
                        self.assertNotEqual(by_name(after), by_name(before))
                    # The undo record is in the live graph, too.
                    self.assertEqual(spillway.strip(after).graph_def.node, before.node)
        # Nearly all of them are, so that the comparison says something.
        self.assertGreater(len(rewritten_at_all), 0.8 * len(GRAPHS) * len(PARAMETERS))

    def test_on_a_server(self):
        with common.server() as address:
            graph = tf_common.live(common.graph("mnist_deep"))
            rewrite_graph(graph, strategy="scope", server=address)
        here = tf_common.live(common.graph("mnist_deep"))
        rewrite_graph(here, strategy="scope")
        self.assertEqual(graph.as_graph_def(), here.as_graph_def())

    def test_the_scopes_that_the_caller_is_in_are_not_for_swap_nodes(self):
        graph = tf_common.live(common.graph("mnist_deep"))
        plain = tf_common.live(common.graph("mnist_deep"))
        rewrite_graph(plain, strategy="scope")
        # TensorFlow marks manual control inputs, for any waiting node.
        with plain.as_default(), tf.control_dependencies([plain.get_operation_by_name("init")]):
            pass
        with graph.as_default(), tf.device("/device:CPU:7"), tf1.name_scope("mine"), \
                tf.control_dependencies([graph.get_operation_by_name("init")]):
            rewrite_graph(strategy="scope")
        self.assertEqual(graph.as_graph_def(), plain.as_graph_def())

    def test_again_changes_nothing(self):
        graph = tf_common.live(common.graph("mnist_deep"))
        rewrite_graph(graph, strategy="scope")
        once = graph.as_graph_def()
        self.assertEqual(rewrite_graph(graph, strategy="scope").report.outcome, "KEPT")
        self.assertEqual(graph.as_graph_def(), once)


def train(name, keywords):
    """(losses of 4 steps, values of trainable variables after them), bit for bit."""
    data = graphs.Graph(common.GRAPHS / name)
    graph = tf_common.live(common.graph(name))
    if keywords is not None:
        rewrite_graph(graph, **keywords)
        assert tf_common.swap_names(graph)
    variables = [op.name + ":0" for op in graph.get_operations()
                 if op.type == "VariableV2" or (
                     op.type == "ReadVariableOp" and not op.control_inputs and
                     op.inputs[0].op.type == "VarHandleOp")]
    losses = []
    with tf1.Session(graph=graph, config=tf_common.config()) as session:
        for operation in data.init_ops:
            session.run(operation)
        for step in range(4):
            fed = feeds.feed_dict(data.feed_spec, step)
            for train_op, loss in data.step_calls:
                losses.append(float(session.run([train_op, loss], fed)[1]).hex())
        values = session.run(variables)
    return losses, [value.tobytes() for value in values]


class TrainTest(unittest.TestCase):

    def test_the_same_bits(self):
        for name, labels in (("mnist_deep", ("scope", "level", "sync")),
                             ("cond_v1", ("scope", "level")), ("lstm_while_v2", ("scope",))):
            original = train(name, None)
            self.assertEqual(len(original[0]), 4)
            for label in labels:
                with self.subTest(graph=name, parameters=label):
                    found = train(name, PARAMETERS[label])
                    self.assertEqual(found[0], original[0])
                    self.assertTrue(found == original)  # Too long to print.


    def test_swap_nodes_survive_grappler_and_cross_devices(self):
        """CPU:1 stands for a GPU: each swapped tensor is sent from there, and to there."""
        data = graphs.Graph(common.GRAPHS / "mnist_deep")
        graph = tf_common.live(common.graph("mnist_deep"))
        report = rewrite_graph(graph, strategy="scope").report
        for operation in graph.get_operations():
            if not operation.device:
                operation._set_device("/device:CPU:1")  # pylint: disable=protected-access
        config = tf_common.config()
        config.device_count["CPU"] = 2
        # At L1 TensorFlow merges equal swap-ins.
        config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
        metadata = tf1.RunMetadata()
        with tf1.Session(graph=graph, config=config) as session:
            session.run(data.init_ops[0])
            session.run(data.step_calls[0][0], feeds.feed_dict(data.feed_spec, 0),
                        options=tf1.RunOptions(output_partition_graphs=True),
                        run_metadata=metadata)
        nodes = [node for part in metadata.partition_graphs for node in part.node]
        self.assertLessEqual(set(tf_common.swap_names(graph)), {node.name for node in nodes})
        # A send's tensor_name is `edge_ID_PRODUCER`.
        sent = {node.attr["tensor_name"].s.decode().split("_", 2)[2] for node in nodes
                if node.op == "_Send"}
        for swap in report.swaps:
            self.assertIn(swap.tensor.partition(":")[0], sent)
            for back in swap.swap_ins:
                self.assertIn(back.name, sent)


class RefusedTest(unittest.TestCase):

    def setUp(self):
        self.graph = tf_common.live(common.graph("mnist_deep"))
        self.before = self.graph.as_graph_def()

    def tearDown(self):
        self.assertEqual(self.graph.as_graph_def(), self.before)
        self.assertEqual(tf_common.swap_names(self.graph), [])

    def assert_refused(self, reason, graph, **keywords):
        with self.assertRaises(spillway.LiveGraphError) as caught:
            rewrite_graph(graph, strategy="scope", **keywords)
        self.assertEqual(caught.exception.reason, reason)
        with self.assertWarns(spillway.SpillwayWarning):
            result = rewrite_graph(graph, strategy="scope", fail_open=True, **keywords)
        self.assertEqual(result.error.reason, reason)

    def test_a_dry_run(self):
        report = rewrite_graph(self.graph, strategy="scope", dry_run=True).report
        self.assertEqual(report.outcome, "DRY_RUN")
        self.assertGreater(report.swapped_tensor_count, 0)

    def test_a_finalized_graph(self):
        self.graph.finalize()
        self.assert_refused("FINALIZED_GRAPH", self.graph)

    def test_a_graph_that_an_open_session_has_run(self):
        with tf1.Session(graph=self.graph) as session:
            session.run("init")
            self.assert_refused("SESSION_HAS_RUN", self.graph)

    def test_the_same_on_a_server_of_tensorflow(self):
        server = tf1.train.Server.create_local_server()
        with tf1.Session(server.target, graph=self.graph) as session:
            session.run("init")
            self.assert_refused("SESSION_HAS_RUN", self.graph)

    def test_eager_execution_has_no_graph(self):
        self.assertTrue(tf.executing_eagerly())
        self.assert_refused("NO_GRAPH", None)

    def test_the_body_of_a_function(self):
        function = tf.function(lambda x: x + 1).get_concrete_function(tf.TensorSpec([]))
        self.assert_refused("NO_GRAPH", function.graph)

    def test_an_eager_tensor_and_other_things(self):
        for value in (tf.constant(1.0), "graph", 5):
            with self.assertRaises(TypeError):
                rewrite_graph(value)
            with self.assertRaises(TypeError):
                spillway.rewrite(value)

    def test_a_server_that_is_down(self):
        with self.assertRaises(spillway.UnavailableError):
            rewrite_graph(self.graph, server="127.0.0.1:1", retries=0)
        with self.assertWarnsRegex(spillway.SpillwayWarning, "trains as it is"):
            rewrite_graph(self.graph, server="127.0.0.1:1", retries=0, fail_open=True)

    def test_options_that_are_wrong(self):
        with self.assertRaises(TypeError):
            rewrite_graph(self.graph, lbb=1)
        with self.assertRaises(TypeError):
            rewrite_graph(self.graph, already_rewritten="replan")
        with self.assertRaises(spillway.InvalidOptionError):
            rewrite_graph(self.graph, strategy="scope", optimizer_scopes=["nowhere"])

    def test_no_optimizer(self):
        graph = tf.Graph()
        with graph.as_default():
            tf1.matmul(tf1.placeholder(tf.float32, [4, 4]), tf.ones([4, 4]))
        before = graph.as_graph_def()
        with self.assertRaises(spillway.NoBackwardPartError):
            rewrite_graph(graph, strategy="scope")
        self.assertEqual(graph.as_graph_def(), before)

    def test_a_graph_that_changed_meanwhile(self):
        """A node that only a swap-in waits for is gone: found before the first edit."""
        result = spillway.rewrite(self.graph.as_graph_def(), strategy="scope", patch=True)
        other = tf_common.live(common.graph("mnist_deep"))
        trigger = next(name for node in result.patch.new_nodes for name in node.inputs
                       if name.startswith("^"))
        renamed = patch.Patch(
            new_nodes=tuple(dataclasses.replace(node, inputs=tuple(
                "^gone" if name == trigger else name for name in node.inputs))
                            for node in result.patch.new_nodes),
            rewired_inputs=result.patch.rewired_inputs)
        with self.assertRaises(spillway.LiveGraphError) as caught:
            _live_graph.apply(other, renamed, result.graph_def)
        self.assertEqual(caught.exception.reason, "UNKNOWN_NODE")
        self.assertEqual(other.as_graph_def(), self.before)


class AllowedTest(unittest.TestCase):

    def test_a_session_that_has_not_run_and_one_that_is_closed(self):
        graph = tf_common.live(common.graph("mnist_deep"))
        closed = tf1.Session(graph=graph)
        closed.run("init")
        closed.close()
        other = tf_common.live(common.graph("cond_v1"))
        with tf1.Session(graph=other) as elsewhere, tf1.Session(graph=graph) as session:
            elsewhere.run("init")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                rewrite_graph(graph, strategy="scope", hardware="p100_pcie")
            # The session takes the edited graph: its swap nodes can be run.
            session.run("init")
            swap_out = next(n for n in tf_common.swap_names(graph) if "swapout" in n)
            data = graphs.Graph(common.GRAPHS / "mnist_deep")
            self.assertIsNotNone(session.run(swap_out + ":0", feeds.feed_dict(data.feed_spec, 0)))


if __name__ == "__main__":
    unittest.main()
