"""Trains a convolutional net with Horovod, a process per GPU, with or without swaps, and prints each
rank's losses.

    horovodrun -np 4 python process_per_gpu.py [--no-swaps] [--steps N] [--server HOST:PORT]
                                               [--gpu-memory SIZE] [--host-memory BYTES]

All ranks make the call, and one sends the request: a server sees one request per job, and all ranks
have the same swaps. Host memory is that of the machine, and is divided by its ranks. A rank should
be bound to its GPU's socket before it pins memory: README.md, Processes per GPU. Digits are
synthetic, different on each rank and the same in every run: the losses are bitwise equal with and
without swaps.
"""

import argparse
import hashlib
import os

import horovod.tensorflow as hvd
import numpy as np
import tensorflow.compat.v1 as tf

BATCH, PIXELS, CLASSES = 32, 28, 10  # BATCH: per rank.
MIB = 1 << 20


def add_swaps(flags):
    """The only lines that swapping needs."""
    import spillway.horovod
    # For this rank; the plan may use half of it: TensorFlow's allocator rounds up to powers of two.
    os.environ.setdefault("TF_GPU_HOST_MEM_LIMIT_IN_MB",
                          str(flags.host_memory // hvd.local_size() // MIB))
    return spillway.horovod.rewrite_graph(
        hvd=hvd, gpu_memory_bytes=flags.gpu_memory, server=flags.server,
        host_memory_bytes=flags.host_memory // 2)  # For all ranks here; the call divides it.


def variable(name, shape, stddev=0.1):
    return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(
        stddev=stddev, seed=len(shape)), use_resource=True)


def net(images):
    for index, channels in enumerate((1, 16, 16, 16)):
        images = tf.nn.conv2d(images, variable("conv%d" % index, [5, 5, channels, 16]), strides=1,
                              padding="SAME")
        images = tf.nn.relu(images + variable("bias%d" % index, [16]))
    images = tf.nn.max_pool2d(images, 4, 4, "SAME")
    return tf.matmul(tf.reshape(images, [BATCH, -1]), variable("dense", [7 * 7 * 16, CLASSES]))


def digits(step):
    """A batch of this rank: bright spots, whose position determines the class."""
    random = np.random.default_rng([step, hvd.rank()])
    labels = random.integers(0, CLASSES, BATCH)
    images = random.normal(0, 0.3, (BATCH, PIXELS, PIXELS, 1)).astype(np.float32)
    for image, label in zip(images, labels):
        image[2 * label:2 * label + 8, 4:24] += 1
    return images, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-swaps", action="store_true")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--server", help="HOST:PORT of a spillwayd; default: in rank 0's process")
    parser.add_argument("--gpu-memory", help="of each; default: what nvidia-smi says, or a P100's")
    parser.add_argument("--host-memory", type=int, metavar="BYTES",
                        default=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2,
                        help="that the ranks of a machine may pin; default: half of the machine's")
    flags = parser.parse_args()
    # One thread: sums are then added in one order, and two runs give the same bits. Not by the session
    # alone: the first one of a process decides, and ranks agree on the swaps in one before it.
    os.environ["TF_NUM_INTRAOP_THREADS"] = "1"
    hvd.init()
    tf.disable_eager_execution()

    images = tf.placeholder(tf.float32, [BATCH, PIXELS, PIXELS, 1])
    labels = tf.placeholder(tf.int64, [BATCH])
    with tf.device("/gpu:0"):  # The one visible to this rank.
        loss = tf.losses.sparse_softmax_cross_entropy(labels, net(images))
        optimizer = hvd.DistributedOptimizer(tf.train.MomentumOptimizer(0.01, 0.9))
        train_op = optimizer.minimize(loss)
    init_op = tf.global_variables_initializer()
    same_start = hvd.broadcast_global_variables(0)

    if not flags.no_swaps:
        result = add_swaps(flags)
        print("rank %d: %s" % (hvd.rank(), result.report.summary))
    graph = tf.get_default_graph().as_graph_def().SerializeToString(deterministic=True)
    print("rank %d: graph %s" % (hvd.rank(), hashlib.sha256(graph).hexdigest()))

    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1,
                            allow_soft_placement=True)
    config.gpu_options.visible_device_list = str(hvd.local_rank())
    with tf.Session(config=config) as session:
        session.run(init_op)
        session.run(same_start)
        for step in range(flags.steps):
            batch = dict(zip((images, labels), digits(step)))
            _, value = session.run([train_op, loss], batch)
            print("rank %d: step %d loss %s" % (hvd.rank(), step, float(value).hex()))


if __name__ == "__main__":
    main()
