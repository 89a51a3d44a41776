"""Steps that are not a function's own graph: in calls, loops and conditionals, in fit with several
steps per execution, in recurrent layers, in a SavedModel."""

import pathlib
import tempfile
import unittest
from unittest import mock

import numpy as np

import common
import tf_common
from tf_common import tf

import spillway
from spillway.tensorflow import _bodies, lms_v1, lms_v2, rewrite_function, rewrite_train_function

PARAMETERS = {
    "scope": dict(strategy="scope"),
    "level": dict(strategy="level", swapout_threshold=3, swapin_ahead=1, swapin_groupby=0),
}
RANDOM = np.random.default_rng(1)
IMAGES = RANDOM.normal(size=(64, 12, 12, 1)).astype(np.float32)
WORDS = RANDOM.normal(size=(64, 7, 5)).astype(np.float32)
LABELS = RANDOM.integers(0, 10, 64)
SPECS = (tf.TensorSpec((16, 12, 12, 1)), tf.TensorSpec((16,), tf.int64))


def bits(variables):
    return [variable.numpy().tobytes() for variable in variables]


class Net(tf.Module):
    """Two convolutions and a dense layer, by hand; `call` is the forward pass."""

    def __init__(self):
        super().__init__()
        random = np.random.default_rng(2)
        self.kernels = [tf.Variable(random.normal(size=shape, scale=0.2).astype("f"))
                        for shape in ((3, 3, 1, 8), (3, 3, 8, 8), (8 * 144, 10))]

    @tf.function(input_signature=[tf.TensorSpec((None, 12, 12, 1))])
    def call(self, images):
        for kernel in self.kernels[:2]:
            images = tf.nn.relu(tf.nn.conv2d(images, kernel, 1, "SAME"))
        return tf.reshape(images, (-1, 8 * 144)) @ self.kernels[2]

    def loss(self, images, labels):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels, self.call(images)))

    def train(self, images, labels):
        with tf.GradientTape() as tape:
            loss = self.loss(images, labels)
        for kernel, gradient in zip(self.kernels, tape.gradient(loss, self.kernels)):
            kernel.assign_sub(0.1 * gradient)
        return loss


def calls(net):
    """Each a function of (images, labels) that trains."""
    return tf.function(tf.function(net.train))


def loop(net):
    """Three steps on the same images."""
    def steps(images, labels):
        loss = 0.0
        for _ in tf.range(3):
            loss = net.train(images, labels)
        return loss
    return tf.function(steps)


def conditional(net):
    """A step, unless the labels are all the same."""
    def step(images, labels):
        return tf.cond(tf.reduce_any(labels != labels[0]), lambda: net.train(images, labels),
                       lambda: 0.0)
    return tf.function(step)


def conditional_in_loop(net):
    """As Keras 3 has it: a call in a conditional in a loop."""
    inner = tf.function(net.train)

    def steps(images, labels):
        return tf.while_loop(
            lambda i, _: i < 2,
            lambda i, _: (i + 1, tf.cond(i < 5, lambda: inner(images, labels), lambda: 0.0)),
            (0, 0.0))[1]
    return tf.function(steps)


def not_inlined(net):
    """A function that stays one."""
    inner = tf.function(net.train, experimental_attributes={"_noinline": True})
    return tf.function(lambda images, labels: inner(images, labels) * 1.0)


def accumulating(net):
    """Gradients of two halves, added up in a loop; the update comes after it."""
    def step(images, labels):
        sums = [tf.zeros_like(kernel) for kernel in net.kernels]
        loss = 0.0
        for half in tf.range(2):
            with tf.GradientTape() as tape:
                loss = net.loss(images[half * 8:half * 8 + 8], labels[half * 8:half * 8 + 8])
            sums = [a + b for a, b in zip(sums, tape.gradient(loss, net.kernels))]
        for kernel, gradient in zip(net.kernels, sums):
            kernel.assign_sub(0.05 * gradient)
        return loss
    return tf.function(step)


def train(make, keywords):
    """((losses, variables), the function)."""
    net = Net()
    step = make(net).get_concrete_function(*SPECS)
    if keywords is not None:
        step = rewrite_function(step, **keywords)
    losses = [float(step(tf.constant(IMAGES[begin:begin + 16]),
                         tf.constant(LABELS[begin:begin + 16]))) for begin in range(0, 64, 16)]
    step.kept = net  # It does not keep it alive.
    return (losses, bits(net.kernels)), step


def swaps_in_bodies(graph):
    """{function: its swap nodes}, of the functions that the graph's nodes run."""
    library = {function.signature.name: function
               for function in graph.as_graph_def().library.function}
    waiting = [operation.node_def for operation in graph.get_operations()]
    found, seen = {}, set()
    while waiting:
        for attr in waiting.pop().attr.values():
            for used in [attr.func, *attr.list.func]:
                if used.name and used.name not in seen:
                    seen.add(used.name)
                    nodes = library[used.name].node_def
                    waiting.extend(nodes)
                    names = [node.name for node in nodes if node.name.startswith("lms/swap")]
                    if names:
                        found[used.name] = names
    return found


class FunctionTest(unittest.TestCase):

    def check(self, make, in_bodies):
        expected, original = train(make, None)
        self.assertEqual(len(set(expected[0])), 4)  # It trains.
        before = original.graph.as_graph_def()
        for label, keywords in PARAMETERS.items():
            with self.subTest(parameters=label):
                found, step = train(make, keywords)
                self.assertEqual(found[0], expected[0])
                self.assertTrue(found == expected)  # Too long to print.
                report = step.spillway_report
                self.assertEqual(report.outcome, "REWRITTEN")
                below = [name for names in swaps_in_bodies(step.graph).values() for name in names]
                here = tf_common.swap_names(step.graph)
                self.assertEqual(len(below) + len(here),
                                 sum(len(swap.swap_ins) + 1 for swap in report.swaps))
                self.assertTrue(below or here)
                self.assertFalse(below and here)
                self.assertEqual(bool(below), in_bodies)
        self.assertEqual(original.graph.as_graph_def(), before)

    def test_calls(self):
        self.check(calls, False)
        _, step = train(calls, PARAMETERS["scope"])
        self.assertEqual([op.name for op in step.graph.get_operations() if "Call" in op.type], [])

    def test_a_loop(self):
        self.check(loop, True)

    def test_a_conditional(self):
        self.check(conditional, True)

    def test_a_conditional_in_a_loop(self):
        self.check(conditional_in_loop, True)

    def test_a_function_that_is_not_to_be_inlined(self):
        self.check(not_inlined, True)

    def test_gradients_that_a_loop_adds_up(self):
        """The loop updates no weight, so it is no step: it is looked into, and nothing in it swapped."""
        expected, _ = train(accumulating, None)
        found, step = train(accumulating, dict(PARAMETERS["level"]))
        self.assertTrue(found == expected)
        self.assertEqual(swaps_in_bodies(step.graph), {})
        report = step.spillway_report
        self.assertNotIn("FUNCTION_BODIES", {warning.code for warning in report.warnings})
        self.assertEqual([swap.tensor for swap in report.swaps if "/body/" in swap.tensor], [])

    def test_calls_may_stay(self):
        _, step = train(calls, dict(PARAMETERS["level"], inline_calls="never"))
        self.assertEqual(tf_common.swap_names(step.graph), [])
        self.assertEqual(step.spillway_report.outcome, "NOTHING_TO_DO")

    def test_a_budget_of_a_loop(self):
        """The memory of a step in a loop is known, and a plan for less is made."""
        _, ample = train(loop, dict(gpu_memory_bytes=1 << 30, allocator_reserve=0))
        fit = ample.spillway_report.fits[0]
        self.assertTrue(fit.not_needed)
        found, step = train(loop, dict(gpu_memory_bytes=int(0.9 * fit.unswapped_peak_bytes),
                                       allocator_reserve=0))
        self.assertTrue(swaps_in_bodies(step.graph))
        self.assertTrue(found == train(loop, None)[0])

    def test_the_report_is_of_what_takes_most(self):
        """Also if nothing is swapped: of the step, and not of a branch that counts something."""
        count = tf.Variable(0.0)

        def counting(net):
            def step(images, labels):
                loss = net.train(images, labels)
                tf.cond(loss > 0, lambda: count.assign_add(1.0), lambda: count.assign_sub(1.0))
                return loss
            return tf.function(step)

        _, step = train(counting, dict(gpu_memory_bytes=1 << 30))
        self.assertIs(step.spillway_report, step.spillway_reports[""])
        self.assertGreater(step.spillway_report.fits[0].unswapped_peak_bytes, 1 << 16)

    def test_a_budget_that_a_loop_does_not_fit(self):
        with self.assertRaises(spillway.DoesNotFitError):
            train(loop, dict(gpu_memory_bytes=1 << 12))
        with self.assertWarns(spillway.SpillwayWarning):
            found, _ = train(loop, dict(gpu_memory_bytes=1 << 12, fail_open=True))
        self.assertTrue(found == train(loop, None)[0])

    def test_a_rewritten_loop_is_kept(self):
        _, step = train(loop, PARAMETERS["scope"])
        self.assertIs(rewrite_function(step, **PARAMETERS["scope"]), step)

    def test_a_body_that_cannot_be_read(self):
        """It is left as it is, with a warning."""
        with mock.patch.object(_bodies.function_def_to_graph, "function_def_to_graph_def",
                               side_effect=ValueError("Function f was not found.")):
            with self.assertWarnsRegex(spillway.SpillwayWarning, "body.*Function f was not found"):
                found, step = train(loop, PARAMETERS["level"])
        self.assertTrue(found == train(loop, None)[0])
        self.assertEqual(swaps_in_bodies(step.graph), {})

    def test_a_loop_for_xla_is_left_alone(self):
        net = Net()
        inner = tf.function(net.train, jit_compile=True)

        def steps(images, labels):
            loss = 0.0
            for _ in tf.range(2):
                loss = inner(images, labels)
            return loss

        step = tf.function(steps).get_concrete_function(*SPECS)
        self.assertEqual(swaps_in_bodies(rewrite_function(step, **PARAMETERS["level"]).graph), {})


def cnn():
    layers = tf.keras.layers
    return [layers.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu"),
            layers.Conv2D(8, 3, activation="relu"), layers.Flatten(), layers.Dense(10)]


def recurrent():
    layers = tf.keras.layers
    return [layers.Input((7, 5)), layers.GRU(8, return_sequences=True), layers.LSTM(8),
            layers.Dense(10)]


def fit(layers, data, keywords=None, steps=1, made=None, callbacks=()):
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(layers())
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  steps_per_execution=steps)
    if keywords is not None:
        rewrite_train_function(model, on_rewrite=made.append, **keywords)
    history = model.fit(data, LABELS, batch_size=16, epochs=2, shuffle=False, verbose=0,
                        callbacks=list(callbacks))
    return history.history["loss"], bits(model.variables), bits(model.optimizer.variables)


# Keras 3 writes a recurrent layer as a loop, Keras 2 as a function. A loop is lowered, and in the
# order of the strategy scope, which is TFLMS v1's, readers behind it may have no place (NO_ORDER).
SCOPE_MAY_FIND_NOTHING = not tf_common.KERAS_2


class FitTest(unittest.TestCase):

    def check(self, layers, data, steps, *labels, may_find_nothing=()):
        expected = fit(layers, data, steps=steps)
        for label in labels:
            with self.subTest(parameters=label):
                keywords = PARAMETERS[label]
                made = []
                found = fit(layers, data, keywords, steps, made)
                self.assertEqual(found[0], expected[0])
                self.assertTrue(found == expected)
                self.assertEqual(len(made), 1)
                if label in may_find_nothing:
                    continue
                added = tf_common.swap_names(made[0].graph)
                added += [name for names in swaps_in_bodies(made[0].graph).values()
                          for name in names]
                self.assertTrue(added)
                self.assertGreater(made[0].spillway_report.swapped_tensor_count, 0)

    def test_several_steps_per_execution(self):
        self.check(cnn, IMAGES, 2, "scope", "level")

    @common.takes_long
    def test_recurrent_layers(self):
        self.check(recurrent, WORDS, 1, "scope", "level",
                   may_find_nothing=("scope",) if SCOPE_MAY_FIND_NOTHING else ())

    @common.takes_long
    def test_recurrent_layers_several_steps_per_execution(self):
        self.check(recurrent, WORDS, 4, "scope", "level",
                   may_find_nothing=("scope",) if SCOPE_MAY_FIND_NOTHING else ())

    def test_callbacks_of_lms_several_steps_per_execution(self):
        expected = fit(cnn, IMAGES, steps=2)
        for callback in (lms_v1.LMSKerasCallback(),
                         lms_v2.LMS(swapout_threshold=3, swapin_ahead=1, swapin_groupby=0)):
            with self.subTest(callback=type(callback).__module__):
                with self.assertLogs("tensorflow", "INFO") as logs:
                    self.assertTrue(fit(cnn, IMAGES, steps=2, callbacks=[callback]) == expected)
                self.assertRegex("\n".join(logs.output), r"Added [1-9]\d* op")

    def test_xla(self):
        tf.keras.utils.set_random_seed(1)
        model = tf.keras.Sequential(cnn())
        model.compile("adam", "mse", jit_compile=True)
        with self.assertRaisesRegex(TypeError, "jit_compile=False"):
            rewrite_train_function(model)


class SavedModelTest(unittest.TestCase):
    """Fine-tuning: the forward pass is a function of a loaded SavedModel."""

    def check(self, path, forward, kernels):
        def tune(keywords):
            loaded = tf.saved_model.load(path)
            head = tf.Variable(0.1 * tf.ones((10, 10)))
            variables = [*kernels(loaded), head]

            @tf.function
            def step(images, labels):
                with tf.GradientTape() as tape:
                    logits = tf.nn.relu(forward(loaded, images)) @ head
                    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                        labels, logits))
                for variable, gradient in zip(variables, tape.gradient(loss, variables)):
                    variable.assign_sub(0.05 * gradient)
                return loss

            step = step.get_concrete_function(*SPECS)
            if keywords is not None:
                step = rewrite_function(step, **keywords)
                self.assertTrue(tf_common.swap_names(step.graph))
            losses = [float(step(tf.constant(IMAGES[begin:begin + 16]),
                                 tf.constant(LABELS[begin:begin + 16])))
                      for begin in range(0, 64, 16)]
            return losses, bits(variables)

        expected = tune(None)
        self.assertEqual(len(set(expected[0])), 4)
        for label, keywords in PARAMETERS.items():
            with self.subTest(parameters=label):
                self.assertTrue(tune(keywords) == expected)

    def test_a_module(self):
        with tempfile.TemporaryDirectory() as path:
            tf.saved_model.save(Net(), path)
            self.check(path, lambda loaded, images: loaded.call(images),
                       lambda loaded: loaded.kernels)

    def test_a_model_of_keras(self):
        tf.keras.utils.set_random_seed(1)
        model = tf.keras.Sequential(cnn())
        with tempfile.TemporaryDirectory() as path:
            if tf_common.KERAS_2:
                model.save(path, save_format="tf")
                self.check(path, lambda loaded, images: loaded(images, training=True),
                           lambda loaded: loaded.trainable_variables)
            else:
                model.export(path)
                self.check(path, lambda loaded, images: loaded.serve(images),
                           lambda loaded: loaded.variables)


# CPU:1 stands for a device: nodes left without one are put there; swap nodes are on CPU:0.
CROSSINGS = """
import sys
sys.path.insert(0, sys.argv[1])
import common
common.set_up()
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import spillway
import tf_nested_test as nested
from tensorflow.python.eager import context

plain = spillway.rewrite

def pinned(graph, **keywords):
    result = plain(graph, **keywords)
    for node in result.graph_def.node:
        if not node.device and node.op != "Placeholder":
            node.device = "/device:CPU:1"
    return result

# Not of a function that is not inlined: TensorFlow tells no partition graphs of such.
for make in (nested.calls, nested.loop, nested.conditional, nested.conditional_in_loop):
    spillway.rewrite = plain
    expected, _ = nested.train(make, None)
    spillway.rewrite = pinned
    for keywords in nested.PARAMETERS.values():
        context.context().enable_graph_collection()
        found, step = nested.train(make, keywords)
        graphs = context.context().export_run_metadata().partition_graphs
        context.context().disable_graph_collection()
        come = [node.attr["tensor_name"].s.decode() for graph in graphs for node in graph.node
                if node.op in ("_Recv", "_HostRecv")
                and node.attr["send_device"].s.endswith(b"CPU:0")
                and node.attr["recv_device"].s.endswith(b"CPU:1")]
        swap_ins = [swap_in.name for swap in step.spillway_report.swaps
                    for swap_in in swap.swap_ins]
        print(found == expected, len(swap_ins) > 0,
              [name for name in swap_ins if not any(edge.endswith(name) for edge in come)])
"""


class CrossingsTest(unittest.TestCase):

    def test_swapped_tensors_cross_devices(self):
        """In bodies, too, each swap-in brings its tensor back to the device."""
        done = common.python(CROSSINGS, str(pathlib.Path(__file__).resolve().parent))
        self.assertEqual(done.stdout, "True True []\n" * 8, done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
