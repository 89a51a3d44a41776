"""What IBM's READMEs and examples for tensorflow_large_model_support say to write, call by call: the
branch tflmsv1 (TFLMS v1) and tflmsv2 (v2). A script changes its import line and nothing else; what
that TensorFlow had and this one has not is said beside the call.

Programs run in a process beside this one, which has switched eager execution off as most of them do,
each with a graph and a Keras session of its own.
"""

import json
import os
import subprocess
import sys
import textwrap
import threading
import unittest

import common
import tf_common
from tf_common import tf

import spillway
from spillway.tensorflow import lms_v1, lms_v2

# `tf` in IBM's programs is TensorFlow 1's.
HEAD = """
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
from tensorflow.core.protobuf import rewriter_config_pb2
random = np.random.default_rng(1)
def batch_of(n):
    return random.normal(size=(n, 784)).astype("f"), random.integers(0, 10, n)
def swaps(graph=None):
    graph = graph or tf.get_default_graph()
    return sum("lms/swapout" in op.name for op in graph.get_operations())
"""

# Runs programs that come as lines of JSON, and answers each with its exception and its log.
WORKER = """
import contextlib, io, json, logging, sys, traceback
head = {}
exec(sys.argv[1], head)
tf = head["tf"]
for line in sys.stdin:
    tf.keras.backend.clear_session()
    tf.reset_default_graph()
    tf.logging.set_verbosity(tf.logging.WARN)
    said, failure = io.StringIO(), ""
    handler = logging.StreamHandler(said)
    tf.get_logger().addHandler(handler)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            exec(json.loads(line), dict(head))
    except BaseException:
        failure = traceback.format_exc()
    tf.get_logger().removeHandler(handler)
    print(json.dumps([failure, said.getvalue()]), flush=True)
"""

# The net of both READMEs, up to `minimize`.
NET = """
x = tf.placeholder(tf.float32, [None, 784])
y_ = tf.placeholder(tf.int64, [None])
keep_prob = tf.placeholder(tf.float32)
def weights(*shape):
    return tf.Variable(tf.truncated_normal(shape, stddev=0.1))
with tf.name_scope('conv1'):
    h = tf.nn.relu(tf.nn.conv2d(tf.reshape(x, [-1, 28, 28, 1]), weights(5, 5, 1, 8), [1] * 4, 'SAME'))
    h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')
with tf.name_scope('conv2'):
    h = tf.nn.relu(tf.nn.conv2d(h, weights(5, 5, 8, 16), [1] * 4, 'SAME'))
    h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')
with tf.name_scope('fc1'):
    h = tf.nn.relu(tf.matmul(tf.reshape(h, [-1, 7 * 7 * 16]), weights(7 * 7 * 16, 32)))
with tf.name_scope('dropout'):
    h = tf.nn.dropout(h, rate=1 - keep_prob)
with tf.name_scope('fc2'):
    y_conv = tf.matmul(h, weights(32, 10))
with tf.name_scope('loss'):
    cross_entropy = tf.losses.sparse_softmax_cross_entropy(labels=y_, logits=y_conv)
cross_entropy = tf.reduce_mean(cross_entropy)
with tf.name_scope('adam_optimizer'):
    train_step = tf.train.AdamOptimizer(1e-4).minimize(cross_entropy)
with tf.name_scope('accuracy'):
    correct_prediction = tf.cast(tf.equal(tf.argmax(y_conv, 1), y_), tf.float32)
accuracy = tf.reduce_mean(correct_prediction)
"""

SESSION = """
config = tf.ConfigProto()
config.graph_options.rewrite_options.memory_optimization = \\
    rewriter_config_pb2.RewriterConfig.SCHEDULING_HEURISTICS
with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    batch = batch_of(8)
    train_step.run(feed_dict={x: batch[0], y_: batch[1], keep_prob: 0.5})
    assert accuracy.eval(feed_dict={x: batch[0], y_: batch[1], keep_prob: 1.0}) >= 0
"""

# Keras in graph mode, as tf.keras was.
KERAS = """
keras = tf.keras
def make_model(classes=10):
    model = keras.models.Sequential([
        keras.layers.Conv2D(8, kernel_size=(3, 3), activation='relu', input_shape=(28, 28, 1)),
        keras.layers.Conv2D(8, (3, 3), activation='relu'), keras.layers.MaxPooling2D((2, 2)),
        keras.layers.Dropout(0.25), keras.layers.Flatten(),
        keras.layers.Dense(16, activation='relu'),
        keras.layers.Dense(classes, activation='softmax')])
    model.compile(loss=keras.losses.categorical_crossentropy,
                  optimizer=keras.optimizers.Adadelta(), metrics=['accuracy'])
    return model
def data(n):
    images, labels = batch_of(n)
    return images.reshape(n, 28, 28, 1), keras.utils.to_categorical(labels, 10)
def training_gen():
    while True:
        yield data(8)
x_train, y_train = data(32)
"""

V1 = "from spillway.tensorflow.lms_v1 import LMS, LMSSessionRunHook, LMSKerasCallback\n"
V2 = "from spillway.tensorflow.lms_v2 import LMS\n"

ESTIMATOR = """
def cnn_model_fn(features, labels, mode):
    h = tf.layers.conv2d(tf.reshape(features["x"], [-1, 28, 28, 1]), 8, [5, 5], padding="same",
                         activation=tf.nn.relu)
    h = tf.layers.max_pooling2d(h, [2, 2], 2)
    h = tf.layers.conv2d(h, 8, [5, 5], padding="same", activation=tf.nn.relu)
    h = tf.layers.max_pooling2d(h, [2, 2], 2)
    logits = tf.layers.dense(tf.reshape(h, [-1, 7 * 7 * 8]), 10)
    tf.nn.softmax(logits, name="softmax_tensor")
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    with tf.name_scope('adam_optimizer'):
        optimizer = tf.train.GradientDescentOptimizer(learning_rate=0.001)
        train_op = optimizer.minimize(loss=loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode=mode, loss=loss, train_op=train_op)
images, labels = batch_of(100)
train_input_fn = tf.estimator.inputs.numpy_input_fn(
    x={"x": images}, y=labels.astype(np.int32), batch_size=10, num_epochs=None, shuffle=True)
mnist_classifier = tf.estimator.Estimator(model_fn=cnn_model_fn)
logging_hook = tf.train.LoggingTensorHook(tensors={"probabilities": "softmax_tensor"},
                                          every_n_iter=50)
class Count(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        self.swaps = swaps(session.graph)
count = Count()
"""


class ProgramCase(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, HEAD], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(common.PACKAGE)})
        cls.addClassCleanup(cls.end)

    @classmethod
    def end(cls):
        cls.worker.stdin.close()
        cls.worker.wait(common.PATIENCE_S)
        cls.worker.stdout.close()

    def program(self, *parts):
        """Runs them; returns their log."""
        code = "".join(textwrap.dedent(part) for part in parts)
        patience = threading.Timer(common.PATIENCE_S, self.worker.kill)
        patience.start()
        try:
            print(json.dumps(code), file=self.worker.stdin, flush=True)
            answer = self.worker.stdout.readline()
        finally:
            patience.cancel()
        self.assertTrue(answer, "the process ended")
        failure, said = json.loads(answer)
        self.assertEqual(failure, "", said[-2000:])
        return said


class V1Test(ProgramCase):

    def test_readme_session(self):
        self.program(V1, NET, """
            lms_obj = LMS({'adam_optimizer'})
            lms_obj.run(graph=tf.get_default_graph())
            assert swaps() > 3 and lms_obj.result.report.outcome == "REWRITTEN"
            """, SESSION)

    def test_readme_graph_in_the_constructor(self):
        self.program(V1, NET, """
            lms_obj = LMS({'adam_optimizer'}, graph=tf.get_default_graph(), starting_scope='conv1')
            lms_obj.run()
            assert swaps() > 3
            """, SESSION)

    def test_mnist_deep_lms(self):
        self.program(V1, NET, """
            lms_model = LMS({'adam_optimizer'},
                            excl_scopes={'loss', 'accuracy', 'dropout'},
                            lb=3)
            lms_model.run(tf.get_default_graph())
            assert swaps() > 2
            """, SESSION)

    @unittest.skipUnless(tf_common.KERAS_2, "this TensorFlow has no Estimators")
    def test_cnn_mnist_lms(self):
        self.program(V1, ESTIMATOR, """
            lms_hook = LMSSessionRunHook({'adam_optimizer'})
            mnist_classifier.train(input_fn=train_input_fn, steps=2,
                                   hooks=[logging_hook, lms_hook, count])
            assert count.swaps > 1 and lms_hook.result.report.swapped_tensor_count == count.swaps
            """)

    @unittest.skipUnless(tf_common.KERAS_2, "Keras 3 has no graph mode")
    def test_readme_keras(self):
        self.program(V1, KERAS, """
            lms_callback = LMSKerasCallback()
            model = make_model()
            model.fit_generator(generator=training_gen(), steps_per_epoch=2,
                                callbacks=[lms_callback])
            assert swaps() > 1 and lms_callback.result.report.outcome == "REWRITTEN"
            """)

    @unittest.skipUnless(tf_common.KERAS_2, "Keras 3 has no graph mode")
    def test_keras_resnet50(self):
        """Its starting_op_names are those of TensorFlow 1.12's batch normalization: this one has
        none of that name, says so, and swaps all the same."""
        said = self.program(V1, KERAS, """
            starting_names = ['bn_conv1/cond/pred_id']
            lms = LMSKerasCallback(n_tensors=3, lb=1, starting_op_names=starting_names)
            callbacks = []
            callbacks.append(lms)
            config = tf.ConfigProto()
            config.graph_options.rewrite_options.memory_optimization = \\
                rewriter_config_pb2.RewriterConfig.SCHEDULING_HEURISTICS
            tf.keras.backend.set_session(tf.Session(config=config))
            model = make_model()
            model.fit_generator(training_gen(), steps_per_epoch=2, epochs=1, callbacks=callbacks)
            assert 0 < swaps() <= 3, swaps()
            """)
        self.assertIn("'bn_conv1/cond/pred_id'", said)
        self.assertIn("LMS goes on without it", said)

    def test_readme_parameters(self):
        """Each of the table, with the defaults that it gives, by position and by name."""
        self.program(V1, NET, """
            lms_obj = LMS({'adam_optimizer'}, tf.get_default_graph(), None, None, set(), set(), set(),
                          set(), -1, 1, 10000, False, "chain_rule", False, 0, False, 1, "/cpu:0")
            assert lms_obj.run() and swaps() > 3
            """)
        self.program(V1, NET, """
            LMS(graph=tf.get_default_graph(), optimizer_scopes={'adam_optimizer'},
                starting_scope='conv1', starting_op_names={'conv1/Relu'}, excl_scopes={'loss'},
                incl_scopes={'conv2', 'fc1'}, excl_types={'MaxPool'}, incl_types={'Relu'},
                n_tensors=5, lb=2, ub=50, fuse_swapins=True, ctrld_strategy='direct_order',
                swap_branches=True, branch_threshold=2, debug=True, debug_level=2).run()
            """)

    def test_tuning_starts_with_the_count_in_the_log(self):
        """README, Performance tuning: `If tf.logging verbosity is set to tf.logging.INFO, LMS will
        output a log statement with a count of the number of tensors swapped.`"""
        said = self.program(V1, NET, """
            tf.logging.set_verbosity(tf.logging.INFO)
            LMS({'adam_optimizer'}, n_tensors=-1, debug=True, debug_level=1).run()
            """)
        self.assertRegex(said, r"\[LMS\]\[0\] [1-9]\d* tensors will be swapped out\(in\) to\(from\)")
        self.assertRegex(said, r"\[LMS\]\[1\] Starting ops: \[\('")

    def test_turned_off(self):
        self.program(V1, NET, """
            assert LMS({'adam_optimizer'}, n_tensors=0).run() == set()
            assert swaps() == 0
            """, SESSION)


class V2Test(ProgramCase):

    def test_readme_session(self):
        """`LMS()` tunes; run() takes the default graph. Auto tuning needs the batch. The placeholder
        for dropout has no shape: IBM's took it for 1 byte, here it is unknown until it is fed."""
        said = self.program(V2, NET, """
            tf.logging.set_verbosity(tf.logging.INFO)
            lms = LMS()
            lms.batch_size = 32
            lms.run()
            assert lms.result.report.strategy == "level"
            """, SESSION)
        self.assertIn("No graph provided. LMS will use the default graph.", said)
        self.assertRegex(said, "It is not known whether LMS is necessary: .*'Placeholder_2'")
        said = self.program(V2, NET, """
            tf.logging.set_verbosity(tf.logging.INFO)
            lms = LMS(feeds={keep_prob: 0.5})
            lms.batch_size = 32
            lms.run()
            """, SESSION)
        self.assertIn("LMS is not necessary. Turned LMS off.", said)

    def test_readme_without_the_batch(self):
        """`When auto tuning cannot discover the batch size it will raise an error`"""
        self.program(V2, NET, """
            lms_obj = LMS()
            try:
                lms_obj.run()
            except ValueError as error:
                assert "batch_size" in str(error), error
            else:
                raise AssertionError("no error")
            """)

    def test_mnist_deep_lms(self):
        self.program(V2, NET, """
            lms_obj = LMS(swapout_threshold=10, swapin_ahead=3, swapin_groupby=2)
            lms_obj.run(graph=tf.get_default_graph())
            assert swaps() > 1
            """, SESSION)

    @unittest.skipUnless(tf_common.KERAS_2, "this TensorFlow has no Estimators")
    def test_readme_estimator(self):
        self.program(V2, ESTIMATOR, """
            lms_hook = LMS(swapout_threshold=5, swapin_ahead=1, swapin_groupby=0, sync_mode=0)
            lms_hook.batch_size = 10
            mnist_classifier.train(input_fn=train_input_fn, steps=2,
                                   hooks=[logging_hook, lms_hook, count])
            assert count.swaps > 1 and lms_hook.result.report.swapped_tensor_count == count.swaps
            """)

    @unittest.skipUnless(tf_common.KERAS_2, "Keras 3 has no graph mode")
    def test_readme_keras(self):
        self.program(V2, KERAS, """
            lms_callback = LMS()
            lms_callback.batch_size = 8
            model = make_model()
            model.fit_generator(generator=training_gen(), steps_per_epoch=2,
                                callbacks=[lms_callback])
            assert lms_callback.result is not None
            """)

    @unittest.skipUnless(tf_common.KERAS_2, "Keras 3 has no graph mode")
    def test_mnist_cnn_keras(self):
        """Also ktk_mnist_cnn_lms.py: its `keras` is a package of its own, this one is tf.keras."""
        self.program(V2, KERAS, """
            lms_callback = LMS(swapout_threshold=40, swapin_ahead=3, swapin_groupby=2)
            model = make_model()
            model.fit(x_train, y_train, batch_size=8, epochs=1, verbose=1,
                      validation_data=(x_train, y_train), callbacks=[lms_callback])
            score = model.evaluate(x_train, y_train, verbose=0)
            assert len(score) == 2 and swaps() > 0
            """)

    @unittest.skipUnless(tf_common.KERAS_2, "Keras 3 has no graph mode")
    def test_keras_resnet50(self):
        self.program(V2, KERAS, """
            serialization = []
            serialization.append('%s:' % 10)
            lms = LMS(swapout_threshold=5, swapin_groupby=0, swapin_ahead=1, sync_mode=3,
                      serialization=serialization, serialization_by_size=0.5, debug=True)
            lms.batch_size = 8
            model = make_model()
            model.fit_generator(training_gen(), steps_per_epoch=2, epochs=1, callbacks=[lms])
            assert swaps() > 0
            """)

    @unittest.skipUnless(tf_common.KERAS_2, "Keras 3 has no graph mode")
    def test_saved_models(self):
        """README, Using LMS with saved models: IBM's TensorFlow took callbacks=[...] in load_model.
        This one does not, and says so; it takes the callback of the fit that follows."""
        self.program(V2, KERAS, """
            import os, tempfile
            filepath = os.path.join(tempfile.mkdtemp(), "model.h5")
            make_model().save(filepath)
            lms_callback = LMS(swapout_threshold=5, swapin_ahead=1, swapin_groupby=0)
            try:
                model = tf.keras.models.load_model(filepath, callbacks=[lms_callback])
            except TypeError:
                model = tf.keras.models.load_model(filepath)
            model.fit(x_train, y_train, batch_size=8, epochs=1, verbose=0,
                      callbacks=[lms_callback])
            assert swaps() > 0
            """)

    def test_readme_constructor(self):
        """Each parameter of the table by position, the attributes, and what IBM refused."""
        self.program(V2, NET, """
            def refused(words, make):
                try:
                    make()
                except ValueError as error:
                    assert words in str(error), error
                else:
                    raise AssertionError(words)
            refused("swapout_threshold", lambda: LMS(swapout_threshold=0, swapin_ahead=1,
                                                     swapin_groupby=0).run())
            refused("swapin_ahead", lambda: LMS(swapout_threshold=1, swapin_ahead=0,
                                                swapin_groupby=0).run())
            refused("sync_mode", lambda: LMS(sync_mode=4))
            refused("swapin_groupby", lambda: LMS(1, 'two', 1).run())
            lms = LMS(10, 0, 1, 0, [1, '3:5', 7], 0, False, 1, "/cpu:0", None)
            lms.is_training = True
            lms.autotune_gpu_mem = 8
            lms.autotune_plot = False
            lms.excl_output_by_scopes = {'fc2'}
            lms.run(tf.get_default_graph(), keras=False)
            assert swaps() > 0
            assert lms.result.report.hardware.hardware.gpu_memory_bytes == 8 << 30
            lms.autotune_gpu_mem = float("nan")
            refused("autotune_gpu_mem", lambda: lms.run(tf.get_default_graph(), keras=False))
            """)

    def test_one_run_for_each_gpu(self):
        """`LMS must be instantiated and run multiple times, once for each GPU`"""
        graph = tf_common.live(common.graph("resnet26_2tower_b2"))
        found = []
        for device in ("/device:GPU:0", "/device:GPU:1"):
            lms = lms_v2.LMS(swapout_threshold=20, swapin_ahead=2, swapin_groupby=0,
                             gpu_device=device)
            lms.run(graph)
            found.append({report.device for report in lms.result.report.devices})
        self.assertTrue(found[0] and found[1] and not found[0] & found[1], found)

    def test_eager_keras(self):
        """examples/V2/mnist_autograph_lms.py: Dense layers, a callback, an eager fit. IBM's said
        that eager execution is not supported, and trained without; here it swaps."""
        tf.keras.utils.set_random_seed(1)
        layers = tf.keras.layers
        model = tf.keras.Sequential([layers.Input((784,)), layers.Dense(64, activation="relu"),
                                     layers.Dropout(0.2), layers.Dense(64, activation="relu"),
                                     layers.Dense(10, activation="softmax")])
        model.compile(loss="categorical_crossentropy", optimizer="rmsprop", metrics=["accuracy"],
                      jit_compile=False)
        lms = lms_v2.LMS(swapout_threshold=1, swapin_ahead=1, swapin_groupby=0)
        lms.batch_size = 16
        callbacks = []
        callbacks.append(lms)
        images, labels = tf.random.normal((32, 784)), tf.one_hot(tf.zeros(32, tf.int32), 10)
        model.fit(images, labels, batch_size=16, epochs=1, verbose=0, callbacks=callbacks,
                  validation_data=(images, labels))
        self.assertGreater(lms.result.report.swapped_tensor_count, 0)
        model.predict(images, verbose=0, callbacks=[lms])

    def test_names(self):
        """The exports of the two packages, and the aliases that one script uses for both."""
        for module in (lms_v1, lms_v2):
            for name in ("LMS", "LMSHook", "LMSSessionRunHook", "LMSKerasCallback"):
                self.assertIn(name, module.__all__)
        self.assertIs(lms_v2.LMSSessionRunHook, lms_v2.LMS)
        self.assertTrue(issubclass(spillway.InvalidOptionError, ValueError))


if __name__ == "__main__":
    unittest.main()
