"""Trains a convolutional net on digits with a session, with or without swaps, and prints the
losses.

    python mnist_deep.py [--lms v1|v2|none] [--steps N] [--server HOST:PORT]

A rewrite of the sample of TFLMS: training with swaps only needs the function `add_swaps`, called
between `minimize` and the session. Digits are synthetic, and the same in every run, so that losses
can be compared: they are bitwise equal with and without swaps.
"""

import argparse

import numpy as np
import tensorflow.compat.v1 as tf

BATCH, PIXELS, CLASSES = 16, 28, 10


def add_swaps(lms, server):
    """The only lines that swapping needs."""
    if lms == "v1":
        from spillway.tensorflow.lms_v1 import LMS
        LMS({"adam_optimizer"}, excl_scopes={"loss", "accuracy", "dropout"}, lb=3,
            server=server).run(tf.get_default_graph())
    elif lms == "v2":
        from spillway.tensorflow.lms_v2 import LMS
        LMS(swapout_threshold=10, swapin_ahead=3, swapin_groupby=2,
            server=server).run(tf.get_default_graph())


def weights(shape):
    return tf.Variable(tf.truncated_normal(shape, stddev=0.1, seed=len(shape)))


def biases(count):
    return tf.Variable(tf.constant(0.1, shape=[count]))


def layer(images, channels_in, channels_out):
    images = tf.nn.conv2d(images, weights([5, 5, channels_in, channels_out]), strides=[1, 1, 1, 1],
                          padding="SAME")
    images = tf.nn.relu(images + biases(channels_out))
    return tf.nn.max_pool(images, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


def net(x, keep_prob):
    images = tf.reshape(x, [-1, PIXELS, PIXELS, 1])
    with tf.name_scope("conv1"):
        images = layer(images, 1, 32)
    with tf.name_scope("conv2"):
        images = layer(images, 32, 64)
    with tf.name_scope("fc1"):
        flat = tf.reshape(images, [-1, 7 * 7 * 64])
        hidden = tf.nn.relu(tf.matmul(flat, weights([7 * 7 * 64, 256])) + biases(256))
    with tf.name_scope("dropout"):
        hidden = tf.nn.dropout(hidden, rate=1 - keep_prob, seed=1)
    with tf.name_scope("fc2"):
        return tf.matmul(hidden, weights([256, CLASSES])) + biases(CLASSES)


def digits(step):
    """A batch: bright spots, whose position determines the class."""
    random = np.random.default_rng(step)
    labels = random.integers(0, CLASSES, BATCH)
    images = random.normal(0, 0.3, (BATCH, PIXELS, PIXELS)).astype(np.float32)
    for image, label in zip(images, labels):
        image[2 * label:2 * label + 8, 4:24] += 1
    return images.reshape(BATCH, PIXELS * PIXELS), labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lms", choices=("v1", "v2", "none"), default="v1")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--server", help="HOST:PORT of a spillwayd; default: in this process")
    flags = parser.parse_args()
    tf.disable_eager_execution()
    tf.set_random_seed(1)
    tf.logging.set_verbosity(tf.logging.INFO)

    x = tf.placeholder(tf.float32, [None, PIXELS * PIXELS])
    y = tf.placeholder(tf.int64, [None])
    keep_prob = tf.placeholder(tf.float32)
    logits = net(x, keep_prob)
    with tf.name_scope("loss"):
        loss = tf.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
    with tf.name_scope("adam_optimizer"):
        train_step = tf.train.AdamOptimizer(1e-3).minimize(loss)
    with tf.name_scope("accuracy"):
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))

    add_swaps(flags.lms, flags.server)

    # One thread: sums are then added in one order, and two runs give the same bits.
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        for step in range(flags.steps):
            images, labels = digits(step)
            _, value = session.run([train_step, loss], {x: images, y: labels, keep_prob: 0.5})
            print("step %d loss %s" % (step, float(value).hex()))
        images, labels = digits(flags.steps)
        print("accuracy %g" % accuracy.eval({x: images, y: labels, keep_prob: 1.0}))


if __name__ == "__main__":
    main()
