"""Same feeds: a session that feeds a tensor of a rewritten graph computes the same as before."""

import unittest
from unittest import mock

import numpy as np

import tf_common
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tf_common import tf, tf1

import spillway
from spillway.tensorflow import _live_graph, rewrite_graph

# A link so slow that recomputation pays, and memory for about two of the layers' outputs.
TIGHT = dict(hardware={"preset": "a100_40gb_pcie4", "d2h_bytes_per_s": 1e8, "h2d_bytes_per_s": 1e8},
             gpu_memory_bytes="700KiB", allocator_reserve=0)
IMAGES = np.random.default_rng(3).normal(size=(256, 64)).astype(np.float32)
CLASSES = ("off", "cheap", "all")


def net():
    """(graph, names of its losses' gradients, names of all tensors of floats that a step computes)."""
    graph = tf.Graph()
    with graph.as_default():
        layer = tf1.placeholder(tf.float32, [256, 64], "images")
        for index in range(6):
            kernel = tf1.get_variable("w%d" % index, [64, 64],
                                      initializer=tf1.glorot_uniform_initializer(seed=index))
            layer = tf.nn.elu(tf.matmul(layer, kernel))
            if index == 2:  # An op of several outputs, of which a clone has all.
                images = tf.reshape(layer, (256, 8, 1, 8))
                images, _, _ = tf1.nn.fused_batch_norm(images, tf.ones(8), tf.zeros(8))
                layer = tf.reshape(images, (256, 64))
            layer = tf.sigmoid(layer) * 2.0
        loss = tf.reduce_mean(layer * layer)
        optimizer = tf1.train.GradientDescentOptimizer(0.5)
        gradients = optimizer.compute_gradients(loss)
        optimizer.apply_gradients(gradients)
    computed = [output.name for op in graph.get_operations() for output in op.outputs
                if op.type not in ("VariableV2", "VarHandleOp", "Const", "Placeholder")
                and not op.name.startswith(("w", "GradientDescent", "save"))
                and output.dtype == tf.float32 and output.shape.is_fully_defined()]
    return graph, [gradient.name for gradient, _ in gradients], computed


def value_for(graph, name):
    shape = graph.get_tensor_by_name(name).shape
    return np.random.default_rng(len(name)).uniform(0.1, 0.9, shape).astype(np.float32)


def config():
    """Without Grappler's arithmetic optimizer: in a plain TensorFlow 2.15 it rewrites an AddN that
    a session feeds, here `gradients/AddN`, so that the fed value is ignored."""
    made = tf_common.config()
    made.graph_options.rewrite_options.arithmetic_optimization = rewriter_config_pb2.RewriterConfig.OFF
    return made


class Case:
    """The net, or its rewrite, in a session of its own."""

    def __init__(self, graph):
        self.graph = graph
        with graph.as_default():
            self.session = tf1.Session(config=config())
            self.session.run([op for op in graph.get_operations() if op.type == "Assign"
                              or op.name.endswith("/Assign")])

    def gradients(self, fed, fetched):
        return self.session.run(fetched, {"images:0": IMAGES, **fed})


def feed_and_report(recompute):
    """(the result of a rewrite of a live net, its graph)."""
    graph, _, _ = net()
    return rewrite_graph(graph, recompute=recompute, **TIGHT), graph


class FedTensorTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        graph, cls.fetched, cls.computed = net()
        plain = Case(graph)
        cls.values = {name: value_for(graph, name) for name in cls.computed}
        cls.right = {name: plain.gradients({name: cls.values[name]}, cls.fetched)
                     for name in cls.computed}
        plain.session.close()

    def check(self, name, gradients):
        for right, gradient in zip(self.right[name], gradients):
            # Recomputed products of matrices may differ in last bits, gradients by far more.
            np.testing.assert_allclose(gradient, right, rtol=1e-4, atol=1e-5 * np.abs(right).max(),
                                       err_msg=name)

    def is_right(self, name, gradients):
        try:
            self.check(name, gradients)
        except AssertionError:
            return False
        return True

    def test_each_tensor_in_a_session_of_the_live_graph(self):
        self.assertGreater(len(self.computed), 40)
        for recompute in CLASSES:
            result, graph = feed_and_report(recompute)
            self.assertEqual(result.report.recomputation is not None, recompute != "off")
            case = Case(graph)
            for name in self.computed:
                with self.subTest(recompute=recompute, fed=name):
                    self.check(name, case.gradients({name: self.values[name]}, self.fetched))

    def test_each_tensor_of_a_file_with_the_clones_that_the_report_names(self):
        graph, _, _ = net()
        original = graph.as_graph_def(add_shapes=True)
        for recompute in ("cheap", "all"):
            result = spillway.rewrite(original, recompute=recompute, **TIGHT)
            self.assertIn("feed clones like their originals", str(result))
            clones = {node.original: node.clones for node in result.report.recomputation.nodes}
            self.assertEqual(sum(map(len, clones.values())), result.report.recomputation.node_count)
            case = Case(tf_common.live(result.graph_def.SerializeToString()))
            needed = set()
            for name in self.computed:
                node, _, port = name.partition(":")
                fed = {name: self.values[name]}
                if not self.is_right(name, case.gradients(fed, self.fetched)):
                    needed.add(node)
                fed.update({"%s:%s" % (clone, port): fed[name] for clone in clones.get(node, ())})
                with self.subTest(recompute=recompute, fed=name):
                    self.check(name, case.gradients(fed, self.fetched))
            self.assertTrue(needed)  # Fed alone, some would give wrong gradients: else nothing is tested.
            self.assertLessEqual(needed, set(clones))

    def test_after_an_edit_that_failed_the_graph_is_fed_as_before(self):
        graph, _, _ = net()
        with mock.patch.object(_live_graph.importer, "import_graph_def",
                               side_effect=ValueError("no import")):
            with self.assertRaisesRegex(ValueError, "no import"):
                rewrite_graph(graph, recompute="all", **TIGHT)
        case = Case(graph)
        for name in self.computed[::5]:
            self.check(name, case.gradients({name: self.values[name]}, self.fetched))

    def test_what_feeds_names_is_not_run_again(self):
        for recompute in ("cheap", "all"):
            graph, _, _ = net()
            clones = rewrite_graph(graph, recompute=recompute, **TIGHT).report.recomputation.nodes
            fed = clones[len(clones) // 2].original
            shape = graph.get_tensor_by_name(fed + ":0").shape
            graph, _, _ = net()
            result = rewrite_graph(graph, recompute=recompute, feeds={fed: shape.as_list()}, **TIGHT)
            self.assertNotIn(fed, [node.original for node in result.report.recomputation.nodes])

    def test_all_ways_to_feed(self):
        result, graph = feed_and_report("cheap")
        case = Case(graph)
        session = case.session
        name = next(node.original + ":0" for node in result.report.recomputation.nodes
                    if node.original.startswith("Sigmoid") and node.original + ":0" in self.values)
        value = self.values[name]
        tensor = graph.get_tensor_by_name(name)
        images = graph.get_tensor_by_name("images:0")
        plain = session.run(self.fetched, {images: IMAGES})
        self.assertFalse(self.is_right(name, plain))
        with self.subTest("by the tensor"):
            self.check(name, session.run(self.fetched, {images: IMAGES, tensor: value}))
        with self.subTest("make_callable"):
            call = session.make_callable(self.fetched, [tensor, images])
            self.check(name, call(value, IMAGES))
        with self.subTest("a callable from options"):
            options = config_pb2.CallableOptions(feed=["images:0", name], fetch=self.fetched)
            call = session._make_callable_from_options(options)  # As Keras does in graph mode.
            self.check(name, call(IMAGES, value))
            self.assertEqual(list(options.feed), ["images:0", name])
        with self.subTest("a partial run"):
            handle = session.partial_run_setup(self.fetched, [images, tensor])
            self.check(name, session.partial_run(handle, self.fetched, {images: IMAGES, name: value}))
        with self.subTest("a session of the graph made later"):
            with tf1.Session(graph=graph, config=config()) as other:
                other.run([op for op in graph.get_operations() if op.name.endswith("/Assign")])
                self.check(name, other.run(self.fetched, {images: IMAGES, tensor: value}))
        with self.subTest("a clone that is fed by itself keeps its own value"):
            clone = next(node.clones[0] for node in result.report.recomputation.nodes
                         if node.original + ":0" == name)
            both = session.run(self.fetched, {images: IMAGES, tensor: value, clone + ":0": value})
            self.check(name, both)
            other = session.run(self.fetched, {images: IMAGES, tensor: value, clone + ":0": -value})
            self.assertFalse(self.is_right(name, other))


if __name__ == "__main__":
    unittest.main()
