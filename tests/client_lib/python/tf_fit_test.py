"""Keras's fit on every kind of data and under strategies that distribute it: it trains as without
Spillway, whatever the data leave open, and with fail_open nothing ends it."""

import unittest
import warnings

import numpy as np

import common  # pylint: disable=unused-import
import tf_common  # pylint: disable=unused-import
from tf_common import tf

import spillway
from spillway.tensorflow import _function, lms_v2, rewrite_train_function

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


def compiled(steps=1):
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Input((8, 8, 1)), layers.Conv2D(4, 3, activation="relu"),
        layers.Conv2D(4, 3, activation="relu"), layers.Flatten(), layers.Dense(10)])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  steps_per_execution=steps, jit_compile=False)
    return model


def train(data, edit=lambda model: None, strategy="none", steps=1, callbacks=()):
    """The losses and variables after two epochs."""
    with STRATEGIES[strategy]().scope():
        model = compiled(steps)
    edit(model)
    history = model.fit(epochs=2, verbose=0, callbacks=list(callbacks), **DATA[data]())
    return history.history["loss"], [variable.numpy().tobytes() for variable in model.variables]


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
                for how in ("function", "callback"):
                    with self.subTest(strategy=strategy, data=data, how=how), \
                            warnings.catch_warnings():
                        warnings.simplefilter("ignore", spillway.SpillwayWarning)
                        if how == "function":
                            found = train(data, lambda model: rewrite_train_function(
                                model, fail_open=True, **LEVEL), strategy=strategy)
                        else:
                            found = train(data, strategy=strategy, callbacks=[lms_v2.LMS(
                                swapout_threshold=3, swapin_ahead=1, swapin_groupby=0,
                                fail_open=True)])
                        if data == "generator" and strategy != "none":
                            # What a distribution prefetches of a generator is lost between epochs:
                            # two runs differ as they come, too.
                            self.assertEqual(len(found[0]), len(expected[0]))
                        else:
                            self.assertTrue(found == expected)  # Too long to print.

    def test_mirrored_steps_are_planned(self):
        """What is on a CPU stays: there is nothing to swap here, but on GPUs there is."""
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


if __name__ == "__main__":
    unittest.main()
