"""Checkpoints, MetaGraphs and SavedModels saved after a rewrite can be loaded and train on.

The reference is the same training without a rewrite and without a break: the same losses, bit for
bit. Formats as files, with the program `spillway`: tests/tensorflow/formats.py.
"""

import pathlib
import tempfile
import unittest

import numpy as np

import tf_common
from tf_common import tf, tf1

import spillway
from spillway.tensorflow import rewrite_function, rewrite_graph

STEPS, BREAK = 6, 3  # The steps of a training, and the one before which it is saved and loaded.
SWAPS = dict(strategy="scope", lb=2)


def batch(step):
    random = np.random.RandomState(step)
    return random.normal(size=(8, 12, 12, 1)).astype("f"), random.randint(0, 10, 8)


def build():
    """A graph with its training: convolutions, batch norm, Adam with its slots."""
    graph = tf.Graph()
    with graph.as_default():
        tf1.set_random_seed(1)
        images = tf1.placeholder(tf.float32, [8, 12, 12, 1], name="images")
        labels = tf1.placeholder(tf.int64, [8], name="labels")
        hidden = images
        for layer in range(3):
            kernel = tf1.get_variable("kernel%d" % layer, [3, 3, hidden.shape[-1], 4],
                                      initializer=tf1.glorot_uniform_initializer(seed=layer))
            hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernel, 1, "SAME"))
            mean, variance = tf.nn.moments(hidden, [0, 1, 2])
            hidden = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-3)
        dense = tf1.get_variable("dense", [12 * 12 * 4, 10],
                                 initializer=tf1.glorot_uniform_initializer(seed=9))
        logits = tf.matmul(tf.reshape(hidden, [8, -1]), dense)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits), name="loss")
        tf1.train.AdamOptimizer(0.01).minimize(loss, name="train")
        tf1.global_variables_initializer()
        tf1.train.Saver(name="saver")
    return graph


def session(graph):
    return tf1.Session(graph=graph, config=tf_common.config())


def steps(running, first, last):
    """The losses of these steps."""
    losses = []
    for step in range(first, last):
        images, labels = batch(step)
        losses.append(float(running.run(["loss:0", "train"], {
            "images:0": images, "labels:0": labels})[0]).hex())
    return losses


class SessionTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        graph = build()
        cls.original = graph.as_graph_def()
        with session(graph) as running:
            running.run("init")
            cls.expected = steps(running, 0, STEPS)
        assert len(set(cls.expected)) == STEPS

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def train_first_half(self, graph, save):
        """Trains up to the break and calls save(session)."""
        with session(graph) as running:
            running.run("init")
            self.assertEqual(steps(running, 0, BREAK), self.expected[:BREAK])
            save(running)

    def save_checkpoint(self, running):
        running.run("saver/control_dependency:0",
                    {"saver/Const:0": str(self.folder / "model")})

    def restore_checkpoint(self, running):
        running.run("saver/restore_all", {"saver/Const:0": str(self.folder / "model")})

    def rewritten(self):
        graph = build()
        rewrite_graph(graph, **SWAPS)
        self.assertGreater(len(tf_common.swap_names(graph)), 5)
        return graph

    def assert_trains_on(self, graph, restore):
        with session(graph) as running:
            restore(running)
            self.assertEqual(steps(running, BREAK, STEPS), self.expected[BREAK:])

    def assert_strips(self, graph_def):
        """To the nodes of the graph that was built, in the order that TensorFlow loads them, and
        what saving has added."""
        stripped = spillway.strip(graph_def)
        self.assertEqual(stripped.report.outcome, "STRIPPED")
        nodes = {node.name: node for node in stripped.graph_def.node}
        for node in self.original.node:
            self.assertEqual(nodes.pop(node.name), node)
        self.assertEqual([name for name in nodes if not name.startswith("save/")], [])
        return stripped.graph_def

    def test_checkpoints_of_a_rewritten_graph_and_of_the_original_are_one(self):
        for first, second in ((self.rewritten, build), (build, self.rewritten),
                              (self.rewritten, self.rewritten)):
            with self.subTest(first=first.__name__, second=second.__name__):
                self.train_first_half(first(), self.save_checkpoint)
                self.assert_trains_on(second(), self.restore_checkpoint)

    def test_meta_graph(self):
        graph = self.rewritten()

        def save(running):
            self.save_checkpoint(running)
            with graph.as_default():
                tf1.train.export_meta_graph(str(self.folder / "model.meta"))
        self.train_first_half(graph, save)

        loaded = tf.Graph()
        with loaded.as_default():
            saver = tf1.train.import_meta_graph(str(self.folder / "model.meta"))
        self.assertEqual(set(tf_common.swap_names(loaded)), set(tf_common.swap_names(graph)))
        self.assertEqual(rewrite_graph(loaded, **SWAPS).report.outcome, "KEPT")
        self.assert_trains_on(loaded, lambda running: saver.restore(
            running, str(self.folder / "model")))

        # Without swaps: the same MetaGraph around the stripped graph.
        meta = tf1.MetaGraphDef.FromString((self.folder / "model.meta").read_bytes())
        meta.graph_def.CopyFrom(self.assert_strips(loaded.as_graph_def()))
        loaded = tf.Graph()
        with loaded.as_default():
            saver = tf1.train.import_meta_graph(meta)
        self.assertEqual(tf_common.swap_names(loaded), [])
        self.assert_trains_on(loaded, lambda running: saver.restore(
            running, str(self.folder / "model")))

    def test_a_graph_def_that_is_rewritten_and_not_live(self):
        result = spillway.rewrite(self.original, **SWAPS)
        graph = tf_common.live(result.graph_def.SerializeToString())
        self.train_first_half(graph, self.save_checkpoint)
        (self.folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
        loaded = tf_common.live((self.folder / "graph.pb").read_bytes())
        self.assert_trains_on(loaded, self.restore_checkpoint)
        self.assert_strips(loaded.as_graph_def())

    def test_saved_model(self):
        graph = self.rewritten()
        path = str(self.folder / "saved_model")

        def save(running):
            builder = tf1.saved_model.Builder(path)
            with graph.as_default():
                builder.add_meta_graph_and_variables(running, ["train"])
            builder.save()
        self.train_first_half(graph, save)

        loaded = tf.Graph()
        with loaded.as_default():
            self.assert_trains_on(
                loaded, lambda running: tf1.saved_model.load(running, ["train"], path))
        self.assertEqual(set(tf_common.swap_names(loaded)), set(tf_common.swap_names(graph)))
        stripped = tf_common.live(self.assert_strips(loaded.as_graph_def()).SerializeToString())
        self.assert_trains_on(stripped, lambda running: running.run(
            "saver/restore_all", {"saver/Const:0": path + "/variables/variables"}))


class Model(tf.Module):
    """In TensorFlow 2's style: variables, an optimizer's slots, and a training step."""

    def __init__(self):
        super().__init__()
        random = np.random.RandomState(7)
        self.kernels = [tf.Variable(random.normal(size=shape).astype("f") * 0.1) for shape in (
            (3, 3, 1, 4), (3, 3, 4, 4), (12 * 12 * 4, 10))]
        self.moments = [tf.Variable(tf.zeros_like(kernel)) for kernel in self.kernels]

    @tf.function(input_signature=[tf.TensorSpec([8, 12, 12, 1]), tf.TensorSpec([8], tf.int64)])
    def train(self, images, labels):
        with tf.GradientTape() as tape:
            hidden = images
            for kernel in self.kernels[:2]:
                hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernel, 1, "SAME"))
            logits = tf.matmul(tf.reshape(hidden, [8, -1]), self.kernels[2])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for kernel, moment, gradient in zip(
                self.kernels, self.moments, tape.gradient(loss, self.kernels)):
            tf.raw_ops.ResourceApplyMomentum(
                var=kernel.handle, accum=moment.handle, lr=0.01, grad=gradient, momentum=0.9)
        return loss


def function_steps(step, first, last):
    return [float(step(tf.constant(images), tf.constant(labels))).hex()
            for images, labels in map(batch, range(first, last))]


class FunctionTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        model = Model()
        cls.expected = function_steps(model.train, 0, STEPS)
        assert len(set(cls.expected)) == STEPS

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def rewritten(self, model):
        step = rewrite_function(model.train.get_concrete_function(), **SWAPS)
        self.assertGreater(len(tf_common.swap_names(step.graph)), 3)
        return step

    def test_checkpoints(self):
        for first, second in ((True, False), (False, True)):
            model = Model()
            step = self.rewritten(model) if first else model.train
            self.assertEqual(function_steps(step, 0, BREAK), self.expected[:BREAK])
            path = tf.train.Checkpoint(model=model).save(self.folder + "/model")
            model = Model()
            step = self.rewritten(model) if second else model.train
            tf.train.Checkpoint(model=model).restore(path).assert_consumed()
            self.assertEqual(function_steps(step, BREAK, STEPS), self.expected[BREAK:])

    def test_saved_model(self):
        model = Model()
        step = self.rewritten(model)
        self.assertEqual(function_steps(step, 0, BREAK), self.expected[:BREAK])
        original = model.train.get_concrete_function().graph.as_graph_def()
        model.step = step
        tf.saved_model.save(model, self.folder, signatures={"train": step})

        loaded = tf.saved_model.load(self.folder)
        self.assertEqual(function_steps(loaded.step, BREAK, STEPS), self.expected[BREAK:])
        self.assertEqual(set(tf_common.swap_names(loaded.step.graph)),
                         set(tf_common.swap_names(step.graph)))
        stripped = spillway.strip(loaded.step.graph.as_graph_def()).graph_def
        self.assertEqual({node.name: node.op for node in stripped.node if "lms/" in node.name}, {})

        def kinds(graph_def):
            return sorted(node.op for node in graph_def.node)
        self.assertEqual(kinds(stripped), kinds(original))

    def test_signature_of_a_saved_model(self):
        model = Model()
        step = self.rewritten(model)
        self.assertEqual(function_steps(step, 0, BREAK), self.expected[:BREAK])
        tf.saved_model.save(model, self.folder, signatures={"train": step})
        loaded = tf.saved_model.load(self.folder).signatures["train"]
        losses = []
        for images, labels in map(batch, range(BREAK, STEPS)):
            loss, = loaded(images=tf.constant(images), labels=tf.constant(labels)).values()
            losses.append(float(loss).hex())
        self.assertEqual(losses, self.expected[BREAK:])
        # The signature calls the function, whose body has the swaps.
        bodies = [node.name for body in loaded.graph.as_graph_def().library.function
                  for node in body.node_def if "lms/swapout" in node.name]
        self.assertEqual(set(bodies), {name for name in tf_common.swap_names(step.graph)
                                       if "swapout" in name})


if __name__ == "__main__":
    unittest.main()
