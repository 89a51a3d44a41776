"""Trains a convolutional net on digits with an Estimator, with or without swaps, and prints the
losses.

    python cnn_mnist.py [--lms v1|v2|none] [--steps N]

A rewrite of the sample of TFLMS: swapping is one more hook. Digits are synthetic, and the same in
every run: the losses are bitwise equal with and without swaps.
"""

import argparse
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

BATCH, PIXELS, CLASSES = 16, 28, 10


def lms_hooks(lms):
    """The only lines that swapping needs."""
    if lms == "v1":
        from spillway.tensorflow.lms_v1 import LMSSessionRunHook
        return [LMSSessionRunHook({"adam_optimizer"}, lb=3)]
    if lms == "v2":
        from spillway.tensorflow.lms_v2 import LMS
        return [LMS(swapout_threshold=10, swapin_ahead=3, swapin_groupby=2)]
    return []


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    images = tf.reshape(features["x"], [-1, PIXELS, PIXELS, 1])
    # With a seed; otherwise the layers would use another one in each run.
    weights = tf1.glorot_uniform_initializer(seed=1)
    for filters in (32, 64):
        images = tf1.layers.conv2d(images, filters, 5, padding="same", activation=tf.nn.relu,
                                   kernel_initializer=weights)
        images = tf1.layers.max_pooling2d(images, 2, 2)
    hidden = tf1.layers.dense(tf.reshape(images, [-1, 7 * 7 * 64]), 256, activation=tf.nn.relu,
                              kernel_initializer=weights)
    hidden = tf1.layers.dropout(hidden, rate=0.4, training=training, seed=1)
    logits = tf1.layers.dense(hidden, CLASSES, kernel_initializer=weights)
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    with tf.name_scope("adam_optimizer"):
        train_op = tf1.train.AdamOptimizer(1e-3).minimize(loss, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode=mode, loss=loss, train_op=train_op)


def input_fn():
    """Bright spots, whose position determines the class."""
    random = np.random.default_rng(1)
    labels = random.integers(0, CLASSES, 8 * BATCH)
    images = random.normal(0, 0.3, (len(labels), PIXELS, PIXELS)).astype(np.float32)
    for image, label in zip(images, labels):
        image[2 * label:2 * label + 8, 4:24] += 1
    return tf.data.Dataset.from_tensor_slices(({"x": images}, labels)).repeat().batch(BATCH)


class PrintLosses(tf1.train.SessionRunHook):
    """Prints the bits of the loss of each step."""

    def begin(self):
        self._step = 0

    def before_run(self, run_context):
        loss = tf1.losses.get_losses()[0]
        return tf1.train.SessionRunArgs(loss)

    def after_run(self, run_context, run_values):
        print("step %d loss %s" % (self._step, float(run_values.results).hex()))
        self._step += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lms", choices=("v1", "v2", "none"), default="v1")
    parser.add_argument("--steps", type=int, default=4)
    flags = parser.parse_args()
    tf1.logging.set_verbosity(tf1.logging.INFO)
    # One thread: sums are then added in one order, and two runs give the same bits.
    config = tf.estimator.RunConfig(tf_random_seed=1, session_config=tf1.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1))
    with tempfile.TemporaryDirectory() as folder:
        classifier = tf.estimator.Estimator(model_fn, folder, config)
        classifier.train(input_fn, steps=flags.steps, hooks=[PrintLosses()] + lms_hooks(flags.lms))


if __name__ == "__main__":
    main()
