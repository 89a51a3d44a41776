"""Keras's fit on every kind of data and under strategies that distribute it: it trains as without
Spillway, even if the data leave shapes open, and with fail_open nothing ends it."""

import contextlib
import inspect
import io
import os
import unittest
import warnings
from unittest import mock

import numpy as np

import common  # pylint: disable=unused-import
import tf_common  # pylint: disable=unused-import
from tf_common import tf

import spillway
from spillway.tensorflow import (_function, lms_v2, rewrite_function, rewrite_graph,
                                 rewrite_train_function)

BATCH, EXAMPLES = 16, 56  # The last batch is smaller.
RANDOM = np.random.default_rng(1)
IMAGES = RANDOM.normal(size=(EXAMPLES, 8, 8, 1)).astype(np.float32)
LABELS = RANDOM.integers(0, 10, EXAMPLES)
LEVEL = dict(strategy="level", swapout_threshold=3, swapin_ahead=1, swapin_groupby=0)


def batch(number):
    number %= -(-EXAMPLES // BATCH)
    part = slice(number * BATCH, (number + 1) * BATCH)
    return IMAGES[part], LABELS[part]


class Batches(tf.keras.utils.Sequence):

    def __len__(self):
        return -(-EXAMPLES // BATCH)

    def __getitem__(self, index):
        return batch(index)


def generated():
    number = 0
    while True:
        yield batch(number)
        number += 1


def dataset(examples=EXAMPLES, **keywords):
    slices = tf.data.Dataset.from_tensor_slices((IMAGES[:examples], LABELS[:examples]))
    return slices.batch(BATCH, **keywords)


# Keywords of fit.
DATA = {
    "arrays": lambda: dict(x=IMAGES, y=LABELS, batch_size=BATCH, shuffle=False),
    "data set": lambda: dict(x=dataset()),
    "data set without a rest": lambda: dict(x=dataset(drop_remainder=True)),
    "Sequence": lambda: dict(x=Batches(), shuffle=False),
    "generator": lambda: dict(x=generated(), steps_per_epoch=len(Batches())),
}
STRATEGIES = {
    "none": tf.distribute.get_strategy,
    "one device": lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
    "mirrored": lambda: tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]),
}


def compiled(steps=1, jit_compile=False):
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Input((8, 8, 1)), layers.Conv2D(4, 3, activation="relu"),
        layers.Conv2D(4, 3, activation="relu"), layers.Flatten(), layers.Dense(10)])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  steps_per_execution=steps, jit_compile=jit_compile)
    return model


def train(data, edit=lambda model: None, strategy="none", steps=1, callbacks=()):
    """The losses and variables after two epochs."""
    with STRATEGIES[strategy]().scope():
        model = compiled(steps)
    edit(model)
    history = model.fit(epochs=2, verbose=0, callbacks=list(callbacks), **DATA[data]())
    return history.history["loss"], [variable.numpy().tobytes() for variable in model.variables]


def refused(keywords):
    """An edit with a function that TensorFlow does not instantiate."""
    return lambda model: _function.edit_train_function(model, tf_common.refused, None, keywords)


class DataTest(unittest.TestCase):

    def test_the_batch_size_is_that_of_the_data(self):
        """Without it, neither of these has a plan."""
        for steps in (1, 2):
            for data in DATA:
                expected = train(data, steps=steps)
                for keywords in (LEVEL, dict(gpu_memory_bytes="1GiB")):
                    with self.subTest(data=data, steps=steps, keywords=keywords):
                        made = []
                        found = train(data, lambda model: rewrite_train_function(
                            model, on_rewrite=made.append, **keywords), steps=steps)
                        self.assertTrue(found == expected)  # Too long to print.
                        self.assertEqual([function.spillway_report.outcome for function in made],
                                         ["REWRITTEN" if keywords is LEVEL else "NOTHING_TO_DO"])

    def test_another_batch_size_is_planned_for_itself(self):
        model, made = compiled(), []
        rewrite_train_function(model, on_rewrite=made.append, **LEVEL)
        for size in (8, 16, 8):
            model.fit(IMAGES[:40], LABELS[:40], batch_size=size, shuffle=False, verbose=0)
        peaks = [function.spillway_report.forecast_before.devices[0].peak_bytes for function in made]
        self.assertEqual(len(peaks), 2)
        self.assertLess(peaks[0], peaks[1])


class StrategiesTest(unittest.TestCase):

    def test_nothing_ends_a_training_that_fails_open(self):
        for strategy in STRATEGIES:
            for data in DATA:
                expected = train(data, strategy=strategy)
                for how in ("function", "callback", "refused"):
                    with self.subTest(strategy=strategy, data=data, how=how), \
                            warnings.catch_warnings():
                        warnings.simplefilter("ignore", spillway.SpillwayWarning)
                        if how == "function":
                            found = train(data, lambda model: rewrite_train_function(
                                model, fail_open=True, **LEVEL), strategy=strategy)
                        elif how == "refused":
                            found = train(data, refused(dict(fail_open=True)), strategy=strategy)
                        else:
                            found = train(data, strategy=strategy, callbacks=[lms_v2.LMS(
                                swapout_threshold=3, swapin_ahead=1, swapin_groupby=0,
                                fail_open=True)])
                        if data == "generator" and strategy != "none":
                            # Elements that a distribution prefetches of a generator are lost
                            # between epochs: two unchanged runs differ, too.
                            self.assertEqual(len(found[0]), len(expected[0]))
                        else:
                            self.assertTrue(found == expected)  # Too long to print.

    def test_one_device(self):
        """The batch size, without which there is no plan, is that of the data, also where the last
        batch is smaller."""
        for steps in (1, 2):
            with self.subTest(steps=steps):
                made = []
                found = train("data set", lambda model: rewrite_train_function(
                    model, on_rewrite=made.append, gpu_memory_bytes="1GiB"), "one device", steps)
                self.assertTrue(found == train("data set", strategy="one device", steps=steps))
                self.assertEqual([function.spillway_report.outcome for function in made],
                                 ["NOTHING_TO_DO"])

    def test_mirrored_steps_are_planned(self):
        """Tensors on a CPU stay: there is nothing to swap here, but on GPUs there is."""
        made = []
        data = "data set without a rest"
        found = train(data, lambda model: rewrite_train_function(
            model, on_rewrite=made.append, **LEVEL), strategy="mirrored")
        self.assertTrue(found == train(data, strategy="mirrored"))
        self.assertEqual([function.spillway_report.outcome for function in made], ["NOTHING_TO_DO"])

    def test_a_function_that_cannot_be_called(self):
        """As MirroredStrategy's could not, whose arguments were not all known."""
        def broken(function, **_):
            del function
            return lambda iterator: int("no step")  # Raises ValueError.

        def edit(keywords):
            return lambda model: _function.edit_train_function(model, broken, None, keywords)

        with self.assertWarnsRegex(spillway.SpillwayWarning, "no step"):
            found = train("arrays", edit(dict(fail_open=True)))
        self.assertTrue(found == train("arrays"))
        with self.assertRaisesRegex(spillway.InternalError, "does not take the rewritten function"):
            train("arrays", edit({}))

    def test_a_function_that_tensorflow_refuses(self):
        """It says so once, before the function is put in place."""
        made = []
        for steps in (1, 2):
            with self.subTest(steps=steps), warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                found = train("arrays", lambda model: _function.edit_train_function(
                    model, tf_common.refused, made.append, dict(fail_open=True)), steps=steps)
                said = [str(warning.message) for warning in said
                        if warning.category is spillway.SpillwayWarning]
                self.assertEqual(len(said), 1, said)
                self.assertRegex(said[0], "trains as it is.*NcclAllReduce")
                self.assertTrue(found == train("arrays", steps=steps))
                self.assertEqual(made, [])
        with self.assertRaisesRegex(spillway.InternalError, "NcclAllReduce"):
            train("arrays", refused({}))


class TextsTest(unittest.TestCase):

    def printed(self, **keywords):
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            train("arrays", lambda model: rewrite_train_function(model, **keywords))
        return printed.getvalue()

    def test_fit_prints_a_line(self):
        for keywords, line in ((LEVEL, r"spillway: .*with \d+ swaps?, .*\n"),
                               (dict(gpu_memory_bytes="1GiB"), r"spillway: no swapping is needed: .*\n")):
            self.assertRegex(self.printed(**keywords), r"\A%s\Z" % line)
        made = []
        self.assertEqual(self.printed(on_rewrite=made.append, **LEVEL), "")
        self.assertEqual(len(made), 1)

    def test_warnings_point_at_the_program(self):
        def step(images):
            weights.assign_sub(images)
            return weights

        weights = tf.Variable(tf.ones((4,)))
        function = tf.function(step).get_concrete_function(tf.ones((4,)))
        wrong = dict(gpu_memory_bytes=-1, fail_open=True)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            train("arrays", lambda model: rewrite_train_function(model, **wrong))  # In fit.
            rewrite_train_function(compiled(jit_compile=True), fail_open=True)
            rewrite_function(function, **wrong)
            with tf.Graph().as_default() as graph:
                tf.compat.v1.placeholder(tf.float32)
            rewrite_graph(graph, **wrong)
            spillway.rewrite(graph, **wrong)
        said = [one for one in said if one.category is spillway.SpillwayWarning]
        self.assertEqual(len(said), 5, said)
        self.assertEqual({one.filename for one in said}, {__file__})


class XlaTest(unittest.TestCase):

    def test_a_model_that_cannot_be_rewritten_fails_open(self):
        def eager(model):
            model.run_eagerly = True

        for change, text in ((lambda model: model.compile("sgd", "mse", jit_compile=True),
                              "pass jit_compile=False"), (eager, "leave run_eagerly out")):
            model = compiled()
            change(model)
            with self.assertRaisesRegex(TypeError, text):
                rewrite_train_function(model)
            with self.assertWarnsRegex(spillway.SpillwayWarning, "trains as it is: .*" + text):
                rewrite_train_function(model, fail_open=True)
            callback = lms_v2.LMS(fail_open=True)
            with self.assertWarnsRegex(spillway.SpillwayWarning, text):
                callback.set_model(model)
                callback.set_params({})
            self.assertRegex(str(callback.result.error), text)

    def test_compiled_with_xla_and_then_without(self):
        made = []
        model = compiled(jit_compile=True)
        with self.assertWarnsRegex(spillway.SpillwayWarning, "jit_compile=False"):
            rewrite_train_function(model, fail_open=True)
        model.fit(IMAGES, LABELS, batch_size=BATCH, verbose=0)
        model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      jit_compile=False)
        rewrite_train_function(model, on_rewrite=made.append, **LEVEL)
        model.fit(IMAGES, LABELS, batch_size=BATCH, verbose=0)
        self.assertEqual([one.spillway_report.outcome for one in made], ["REWRITTEN"])


@unittest.skipIf(tf_common.KERAS_2, "Keras 2 uses XLA only with jit_compile=True")
class AutoXlaTest(unittest.TestCase):
    """Keras 3 chooses by the devices that TensorFlow lists: here one more than there are, while
    `compile` looks."""

    def chosen(self, **keywords):
        devices = tf.config.list_physical_devices() + [
            tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")]
        with mock.patch.object(tf.config, "list_physical_devices", lambda *_: devices):
            model = compiled(**keywords)
        self.assertTrue(model.jit_compile)
        return model

    def fit(self, model, callbacks=()):
        """The losses, and the warnings."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            losses = model.fit(IMAGES, LABELS, batch_size=BATCH, shuffle=False, verbose=0, epochs=2,
                               validation_data=(IMAGES, LABELS), callbacks=list(callbacks)).history
        return losses, [str(one.message) for one in said
                        if one.category is spillway.SpillwayWarning]

    def test_keras_own_choice_is_switched_off(self):
        made = []
        plain = compiled()
        rewrite_train_function(plain, **LEVEL)
        expected, _ = self.fit(plain)
        model = self.chosen(jit_compile="auto")
        model.make_train_function()  # With XLA.
        with self.assertWarnsRegex(spillway.SpillwayWarning, "runs without XLA"):
            rewrite_train_function(model, on_rewrite=made.append, **LEVEL)
        self.assertFalse(model.jit_compile)
        found, said = self.fit(model)
        self.assertEqual((found, said), (expected, []))
        self.assertEqual([one.spillway_report.outcome for one in made], ["REWRITTEN"])

    def test_callbacks_switch_it_off_too(self):
        callback = lms_v2.LMS(swapout_threshold=3, swapin_ahead=1, swapin_groupby=0)
        _, said = self.fit(self.chosen(jit_compile="auto"), [callback])
        self.assertEqual(len(said), 1, said)
        self.assertGreater(callback.result.report.swapped_tensor_count, 0)

    def test_what_the_program_chose_is_left_alone(self):
        def set_later():
            model = compiled(jit_compile="auto")
            model.jit_compile = True
            return model

        def compiled_again():
            model = self.chosen(jit_compile="auto")
            model.compile("sgd", "mse", jit_compile=True)
            return model

        for make in (lambda: self.chosen(jit_compile=True), set_later, compiled_again):
            model = make()
            with self.assertRaisesRegex(TypeError, "pass jit_compile=False"):
                rewrite_train_function(model)
            self.assertTrue(model.jit_compile)

    def test_compile_is_what_it_was(self):
        model = compiled(jit_compile="auto")
        with self.assertRaisesRegex(TypeError, "no_such_keyword"):
            model.compile("sgd", no_such_keyword=1)
        self.assertIn("steps_per_execution", inspect.signature(type(model).compile).parameters)


# A step in which the gradient of a convolution's bias triggers a swap-in for that of its weights;
# oneDNN makes one op of the two gradients. It is on or off for a whole process.
ONEDNN = """
import warnings
import spillway, tensorflow as tf
from spillway.tensorflow import _function
from tensorflow.python.util import _pywrap_util_port
if not _pywrap_util_port.IsMklEnabled():
    print("no oneDNN")
    raise SystemExit

images, bias = tf.ones((2, 8, 8, 1)), tf.Variable(tf.zeros((4,)))
weights, steps = tf.Variable(tf.ones((3, 3, 1, 4))), tf.Variable(0)

@tf.function
def step(images):
    steps.assign_add(1)
    with tf.GradientTape() as tape:
        made = tf.nn.bias_add(tf.nn.conv2d(images, weights, 1, "VALID"), bias)
        loss = tf.reduce_sum(made * made)
    for variable, gradient in zip((weights, bias), tape.gradient(loss, (weights, bias))):
        variable.assign_sub(1e-3 * gradient)
    return loss

def with_a_swap_in(function, keywords):
    graph = function.graph.as_graph_def(add_shapes=True)
    one = {node.op: node for node in graph.node}
    reader = one["Conv2DBackpropFilter"]
    swap_in = graph.node.add(name="lms/swapin", op="Identity",
                             input=[reader.input[0], "^" + one["BiasAddGrad"].name])
    swap_in.attr["T"].type = tf.float32.as_datatype_enum
    swap_in.attr["_grappler_do_not_remove"].b = True
    reader.input[0] = swap_in.name
    return _function._from_graph_def(function, graph)

_function._rewritten = with_a_swap_in
original = step.get_concrete_function(images)
try:
    spillway.tensorflow.rewrite_function(original)(images)
except spillway.SpillwayError as error:
    print(error)
print(int(steps))  # It has not run.
function = spillway.tensorflow.rewrite_function(original, fail_open=True)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    losses = [float(function(images)) for _ in range(3)]
print(*[warning.message for warning in said if warning.category is spillway.SpillwayWarning])
print(int(steps))
steps.assign(0), bias.assign(tf.zeros((4,))), weights.assign(tf.ones((3, 3, 1, 4)))
print(losses == [float(original(images)) for _ in range(3)])
"""


class OneDnnTest(unittest.TestCase):

    def test_a_cycle_that_onednn_makes(self):
        with mock.patch.dict(os.environ, TF_ENABLE_ONEDNN_OPTS="1"):
            done = common.python(ONEDNN)
        self.assertEqual(done.returncode, 0, done.stderr)
        if done.stdout == "no oneDNN\n":
            self.skipTest("this TensorFlow has no oneDNN")
        error, ran, warning, steps, same = done.stdout.splitlines()
        self.assertRegex(error, "makes a cycle.*TF_ENABLE_ONEDNN_OPTS=0")
        self.assertEqual((ran, steps, same), ("0", "3", "True"))
        self.assertEqual(warning, "the graph is not rewritten, and trains as it is: " + error)


if __name__ == "__main__":
    unittest.main()
