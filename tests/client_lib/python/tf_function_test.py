"""Concrete functions and Keras's fit, in TensorFlow 2 style."""

import unittest
import warnings

import numpy as np

import common  # pylint: disable=unused-import
import tf_common  # pylint: disable=unused-import
from tf_common import tf

import spillway
from spillway.tensorflow import rewrite_function, rewrite_train_function

PARAMETERS = {
    "scope": dict(strategy="scope"),
    "level": dict(strategy="level", swapout_threshold=3, swapin_ahead=1, swapin_groupby=0),
    "sync": dict(strategy="level", swapout_threshold=3, swapin_ahead=1, swapin_groupby=0, sync_mode=3),
}
RANDOM = np.random.default_rng(1)
IMAGES = RANDOM.normal(size=(64, 12, 12, 1)).astype(np.float32)
LABELS = RANDOM.integers(0, 10, 64)


def make_model():
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    return tf.keras.Sequential([
        layers.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu"),
        layers.BatchNormalization(), layers.Conv2D(8, 3, activation="relu"), layers.Flatten(),
        layers.Dropout(0.5, seed=1), layers.Dense(10)])


def make_step(model, optimizer):
    losses = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = losses(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return {"loss": loss, "count": tf.shape(images)[0]}

    return step.get_concrete_function(
        tf.TensorSpec((16, 12, 12, 1)), tf.TensorSpec((16,), tf.int64))


def values(variables):
    return [variable.numpy().tobytes() for variable in variables]


def train(keywords):
    """((losses, variables, optimizer slots) after the last step, the function)."""
    model, optimizer = make_model(), tf.keras.optimizers.Adam(1e-3)
    step = make_step(model, optimizer)
    if keywords is not None:
        step = rewrite_function(step, **keywords)
    losses = []
    for begin in range(0, 64, 16):
        out = step(tf.constant(IMAGES[begin:begin + 16]), tf.constant(LABELS[begin:begin + 16]))
        losses.append(float(out["loss"]).hex())
        assert int(out["count"]) == 16
    step.kept = model, optimizer  # It does not keep them alive.
    return (losses, values(model.variables), values(optimizer.variables)), step


class FunctionTest(unittest.TestCase):

    def test_a_training_step_gives_the_same_bits(self):
        expected, original = train(None)
        self.assertEqual(len(set(expected[0])), 4)  # It trains.
        for label, keywords in PARAMETERS.items():
            with self.subTest(parameters=label):
                found, step = train(keywords)
                self.assertEqual(found[0], expected[0])
                self.assertTrue(found == expected)  # Too long to print.
                report = step.spillway_report
                self.assertEqual(report.outcome, "REWRITTEN")
                self.assertEqual(len(tf_common.swap_names(step.graph)), report.node_count_after -
                                 report.node_count_before)
                self.assertEqual(len(step.trainable_variables), len(original.trainable_variables))
                self.assertEqual(step.structured_input_signature,
                                 original.structured_input_signature)
                self.assertEqual(set(step.structured_outputs), {"loss", "count"})

    def test_the_original_stays_as_it_is(self):
        model, optimizer = make_model(), tf.keras.optimizers.Adam(1e-3)  # Kept alive.
        step = make_step(model, optimizer)
        before = step.graph.as_graph_def()
        rewrite_function(step, strategy="scope")
        self.assertEqual(step.graph.as_graph_def(), before)

    def test_targets_are_what_the_function_does(self):
        model, optimizer = make_model(), tf.keras.optimizers.Adam(1e-3)  # Kept alive.
        step = make_step(model, optimizer)
        targets = rewrite_function(step, strategy="scope").spillway_report.targets
        self.assertIn(step.outputs[0].op.name, targets)
        self.assertTrue({op.name for op in step.graph.control_outputs} <= set(targets))

    def test_nested_structures_and_scalars(self):
        variable = tf.Variable(tf.ones((8, 8)))

        @tf.function
        def step(pair, scale):
            with tf.GradientTape() as tape:
                hidden = tf.tanh(tf.matmul(pair["x"], variable))
                loss = tf.reduce_sum(tf.square(tf.matmul(hidden, variable))) * scale
            gradient = tape.gradient(loss, variable)
            variable.assign_sub(0.01 * gradient)
            return (loss, [gradient], None, "text")

        pair = {"x": tf.ones((4, 8)), "unused": tf.zeros(())}
        original = step.get_concrete_function(pair, 2.0)
        rewritten = rewrite_function(original, strategy="scope")
        first = original(pair, 2.0)
        variable.assign(tf.ones((8, 8)))
        second = rewritten(pair, 2.0)
        self.assertEqual(float(first[0]), float(second[0]))
        np.testing.assert_array_equal(first[1][0], second[1][0])
        self.assertIsNone(second[2])

    def test_what_is_no_concrete_function(self):
        with self.assertRaisesRegex(TypeError, "get_concrete_function"):
            rewrite_function(tf.function(lambda x: x))
        with self.assertRaisesRegex(TypeError, "pass a ConcreteFunction"):
            rewrite_function(len)
        model, optimizer = make_model(), tf.keras.optimizers.Adam(1e-3)  # Kept alive.
        step = make_step(model, optimizer)
        with self.assertRaisesRegex(TypeError, "rewrite_function"):
            spillway.rewrite(step)

    def test_wrong_arguments_in_the_first_call(self):
        """They are the caller's mistake, not one of the rewritten function."""
        model, optimizer = make_model(), tf.keras.optimizers.Adam(1e-3)  # Kept alive.
        step = rewrite_function(make_step(model, optimizer), fail_open=True, **PARAMETERS["level"])
        labels = tf.constant(LABELS[:16])
        with warnings.catch_warnings():
            warnings.simplefilter("error", spillway.SpillwayWarning)
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "float"):
                step(tf.zeros((16, 12, 12, 1), tf.int32), labels)
            self.assertEqual(int(step(tf.constant(IMAGES[:16]), labels)["count"]), 16)

    def test_no_gradients(self):
        forward = tf.function(lambda x: tf.matmul(x, x)).get_concrete_function(
            tf.TensorSpec((4, 4)))
        with self.assertRaises(spillway.NoBackwardPartError):
            rewrite_function(forward, strategy="scope")
        with self.assertWarns(spillway.SpillwayWarning):
            self.assertIs(rewrite_function(forward, strategy="scope", fail_open=True), forward)


def compile_model(model):
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def fit(keywords=None, callbacks=(), data=IMAGES):
    model = make_model()
    compile_model(model)
    if keywords is not None:
        rewrite_train_function(model, **keywords)
    history = model.fit(data, LABELS[:len(data)], batch_size=16, epochs=2, shuffle=False, verbose=0,
                        callbacks=list(callbacks))
    return history.history["loss"], values(model.variables), values(model.optimizer.variables)


class FitTest(unittest.TestCase):

    def test_fit_gives_the_same_bits(self):
        expected = fit()
        for label, keywords in PARAMETERS.items():
            with self.subTest(parameters=label):
                seen = []
                found = fit({**keywords, "progress": lambda *_: seen.append(1)})
                self.assertEqual(found[0], expected[0])
                self.assertTrue(found == expected)
                self.assertTrue(seen)  # There was a rewrite.

    def test_data_of_another_shape(self):
        """The last batch of 56 is smaller: the first dimension is open, which scope takes."""
        self.assertTrue(fit(dict(strategy="scope"), data=IMAGES[:56]) == fit(data=IMAGES[:56]))

    def test_fit_fails_open(self):
        with self.assertWarnsRegex(spillway.SpillwayWarning, "trains as it is"):
            found = fit(dict(server="127.0.0.1:1", retries=0, fail_open=True))
        self.assertTrue(found == fit())

    def test_fit_again_and_again(self):
        """The second fit reuses the first one's function; another compile makes another."""
        made = []

        def train(keywords):
            model = make_model()
            for _ in range(2):
                compile_model(model)
                for _ in range(2):
                    if keywords is not None:
                        rewrite_train_function(model, on_rewrite=made.append, **keywords)
                    model.fit(IMAGES, LABELS, batch_size=16, shuffle=False, verbose=0)
            return values(model.variables)

        self.assertTrue(train(dict(strategy="scope")) == train(None))  # Too long to print.
        self.assertEqual(len(made), 2)

    def test_other_keywords_make_another_one(self):
        model, made = make_model(), []
        compile_model(model)
        for lb in (1, 1, 9):
            rewrite_train_function(model, strategy="scope", lb=lb, on_rewrite=made.append)
            model.fit(IMAGES, LABELS, batch_size=16, shuffle=False, verbose=0)
        self.assertEqual([function.spillway_report.scope.lb for function in made], [1, 9])

    def test_what_cannot_be_rewritten(self):
        with self.assertRaisesRegex(TypeError, "not compiled"):
            rewrite_train_function(make_model())
        model = make_model()
        model.compile("adam", "mse", run_eagerly=True)
        with self.assertRaisesRegex(TypeError, "eagerly"):
            rewrite_train_function(model)

    def test_callbacks_of_lms_again_and_in_evaluate(self):
        from spillway.tensorflow import lms_v1
        callback = lms_v1.LMSKerasCallback()
        results = []
        for callbacks in ([], [callback]):
            model = make_model()
            compile_model(model)
            for _ in range(2):
                model.fit(IMAGES, LABELS, batch_size=16, shuffle=False, verbose=0,
                          callbacks=callbacks)
                model.evaluate(IMAGES, LABELS, verbose=0, callbacks=callbacks)
            results.append(values(model.variables))
        self.assertTrue(results[0] == results[1])

    def test_callbacks_of_lms(self):
        from spillway.tensorflow import lms_v1, lms_v2
        expected = fit()
        for callback in (lms_v1.LMSKerasCallback(),
                         lms_v2.LMS(swapout_threshold=3, swapin_ahead=1, swapin_groupby=0)):
            with self.subTest(callback=type(callback).__module__):
                with self.assertLogs("tensorflow", "INFO") as logs:
                    self.assertTrue(fit(callbacks=[callback]) == expected)
                self.assertRegex("\n".join(logs.output), r"Added [1-9]\d* op")


if __name__ == "__main__":
    unittest.main()
