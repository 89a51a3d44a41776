"""Trains a convolutional net on the GPUs of one machine, a tower on each, in one process, with or
without swaps, and prints the losses.

    python towers.py [--gpus N] [--no-swaps] [--steps N] [--server HOST:PORT]
                     [--gpu-memory SIZE] [--host-memory SIZE]

One graph has all towers: one call adds swaps on every GPU, for the memory of each. Host memory is
given as a whole, since one process pins it. Variables and the mean of the gradients are on
the CPU. Without GPUs TensorFlow puts the towers onto the CPU. Digits are synthetic, and the same
in every run: the losses are bitwise equal with and without swaps.
"""

import argparse
import os

import numpy as np
import tensorflow.compat.v1 as tf

BATCH, PIXELS, CLASSES = 32, 28, 10  # BATCH: per tower.
MIB = 1 << 20


def add_swaps(flags):
    """The only lines that swapping needs."""
    from spillway.tensorflow import rewrite_graph
    # Half of the memory that may be pinned: TensorFlow's allocator rounds up to powers of two.
    os.environ.setdefault("TF_GPU_HOST_MEM_LIMIT_IN_MB", str(flags.host_memory // MIB))
    return rewrite_graph(gpu_memory_bytes=flags.gpu_memory, server=flags.server,
                         host_memory_bytes=flags.host_memory // 2)


def variable(name, shape, stddev=0.1):
    with tf.device("/cpu:0"):
        return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(
            stddev=stddev, seed=len(shape)), use_resource=True)


def net(images):
    for index, channels in enumerate((1, 16, 16, 16)):
        images = tf.nn.conv2d(images, variable("conv%d" % index, [5, 5, channels, 16]), strides=1,
                              padding="SAME")
        images = tf.nn.relu(images + variable("bias%d" % index, [16]))
    images = tf.nn.max_pool2d(images, 4, 4, "SAME")
    return tf.matmul(tf.reshape(images, [BATCH, -1]), variable("dense", [7 * 7 * 16, CLASSES]))


def digits(count):
    """`count` batches: bright spots, whose position determines the class."""
    random = np.random.default_rng(1)
    labels = random.integers(0, CLASSES, count)
    images = random.normal(0, 0.3, (count, PIXELS, PIXELS, 1)).astype(np.float32)
    for image, label in zip(images, labels):
        image[2 * label:2 * label + 8, 4:24] += 1
    return images, labels


def pipeline(gpus):
    """The input of each tower, and its initializer. One batch is split for all: towers that each
    fetched one would get them in a different order in each run."""
    with tf.device("/cpu:0"):
        dataset = tf.data.Dataset.from_tensor_slices(digits(4 * gpus * BATCH)).repeat()
        dataset = dataset.batch(gpus * BATCH, drop_remainder=True).prefetch(2)
        iterator = tf.data.make_initializable_iterator(dataset)
        images, labels = iterator.get_next()
        return zip(tf.split(images, gpus), tf.split(labels, gpus)), iterator.initializer


def build(gpus):
    """(train op, loss, init op) of a training graph with a tower on each GPU."""
    towers, start = pipeline(gpus)
    optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
    losses, gradients = [], []
    for gpu, (images, labels) in enumerate(towers):
        with tf.device("/gpu:%d" % gpu), tf.name_scope("tower_%d" % gpu), \
                tf.variable_scope("model", reuse=gpu > 0):
            losses.append(tf.losses.sparse_softmax_cross_entropy(labels, net(images)))
            gradients.append(optimizer.compute_gradients(losses[-1]))
    with tf.device("/cpu:0"):
        means = [(tf.add_n([gradient for gradient, _ in of_towers]) / gpus, of_towers[0][1])
                 for of_towers in zip(*gradients)]
        train_op = optimizer.apply_gradients(means)
        loss = tf.add_n(losses) / gpus
        return train_op, loss, tf.group(start, tf.global_variables_initializer())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--no-swaps", action="store_true")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--server", help="HOST:PORT of a spillwayd; default: in this process")
    parser.add_argument("--gpu-memory", help="of each; default: what nvidia-smi says, or a P100's")
    parser.add_argument("--host-memory", type=int, metavar="BYTES",
                        default=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2,
                        help="that may be pinned; default: half of the machine's")
    flags = parser.parse_args()
    tf.disable_eager_execution()
    train_op, loss, init_op = build(flags.gpus)
    if not flags.no_swaps:
        print(add_swaps(flags).report.summary)

    # One thread: sums are then added in one order, and two runs give the same bits.
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1,
                            allow_soft_placement=True)
    with tf.Session(config=config) as session:
        session.run(init_op)
        for step in range(flags.steps):
            _, value = session.run([train_op, loss])
            print("step %d loss %s" % (step, float(value).hex()))


if __name__ == "__main__":
    main()
