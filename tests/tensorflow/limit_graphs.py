#!/usr/bin/env python3
"""Makes training graphs that are hard to keep within a memory limit, small enough for a CPU.

    limit_graphs.py NAME FOLDER

  branches   sixteen chains of convolutions that may run in any order: between two points that all
             goes through there is no order but the executor's
  decay      a CNN with weight decay: the gradients of its L2Loss are ready when the step starts, and
             hold buffers as large as the weights until they are added
  embeddings six wide tables, of which a step reads and updates some rows, and their pairwise products
  gan        a generator with batch normalization, and a discriminator that sees its images and others
  gpt        two blocks of a transformer, with layer normalization and GELU of elementwise ops
  learning_phase
             a CNN whose batch normalization stands in conditionals, as Keras makes it in TensorFlow 1
  towers     a CNN with batch normalization on two GPUs, each with half of the batch
  vgg        a VGG of 64 pixels with weight decay, and dense weights of 16 MiB
  unet       a U-Net of 96 pixels: each of its first activations is a sixth of the memory, and waits
             over the whole step

The data is made in the graph, the same at every run. Writes graph.pb and meta.json.
"""
import json
import pathlib
import sys

from truth import train

CLASSES = 10
DECAY = 1e-3


class Builder:
    """Layers by name; every initial value comes from the name."""

    def __init__(self, tf, use_resource):
        self.tf, self.use_resource = tf, use_resource
        self.kernels = []

    def variable(self, shape, name, stddev):
        initial = self.tf.random.stateless_normal(shape, seed=[len(name), hash_of(name)],
                                                  stddev=stddev)
        return self.tf.compat.v1.get_variable(name, initializer=initial,
                                              use_resource=self.use_resource)

    def conv(self, x, width, name, relu=True):
        self.kernels.append(self.variable([3, 3, int(x.shape[-1]), width], name, 0.05))
        x = self.tf.nn.conv2d(x, self.kernels[-1], 1, "SAME")
        return self.tf.nn.relu(x) if relu else x

    def dense(self, x, width, name, stddev=0.1):
        self.kernels.append(self.variable([int(x.shape[-1]), width], name, stddev))
        return x @ self.kernels[-1]

    def decay(self):
        return DECAY * self.tf.add_n([self.tf.nn.l2_loss(kernel) for kernel in self.kernels])


def branches(tf, build, images, labels):
    ends = []
    for branch in range(16):
        x = images
        for depth in range(2 + branch % 5):
            x = build.conv(x, 8 + 4 * (branch % 3), "branch%d_%d" % (branch, depth))
        ends.append(x)
    x = build.conv(tf.concat(ends, 3), 16, "merge")
    return classify(tf, labels, build.dense(tf.reduce_mean(x, [1, 2]), CLASSES, "dense"))


def decay(tf, build, images, labels):
    x = images
    for depth, width in enumerate((16, 16, 32, 32, 64, 64, 128, 128, 256, 256)):
        x = build.conv(x, width, "conv%d" % depth)
        if depth % 2:
            x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    logits = build.dense(tf.reduce_mean(x, [1, 2]), CLASSES, "dense")
    return classify(tf, labels, logits) + build.decay()


def vgg(tf, build, images, labels):
    x = images
    for block, (count, width) in enumerate(((2, 16), (2, 32), (3, 64), (3, 128))):
        for depth in range(count):
            x = build.conv(x, width, "conv%d_%d" % (block, depth))
        x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    x = tf.reshape(x, [int(images.shape[0]), -1])
    for depth in range(2):
        x = tf.nn.relu(build.dense(x, 1536, "dense%d" % depth, 0.02))
    return classify(tf, labels, build.dense(x, CLASSES, "logits")) + build.decay()


def unet(tf, build, images, labels):
    x, skips = images, []
    for depth, width in enumerate((16, 24, 32)):
        for index in range(2):
            x = build.conv(x, width, "down%d_%d" % (depth, index))
        skips.append(x)
        x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    x = build.conv(x, 48, "bottom")
    for depth, skip in reversed(list(enumerate(skips))):
        x = tf.repeat(tf.repeat(x, 2, 1), 2, 2)
        x = tf.concat([x, skip], 3)
        for index in range(2):
            x = build.conv(x, int(skip.shape[-1]), "up%d_%d" % (depth, index))
    logits = build.conv(x, CLASSES, "logits", relu=False)
    pixels = tf.broadcast_to(tf.reshape(labels, [-1, 1, 1]), logits.shape[:3])
    return classify(tf, pixels, logits)


def gan(tf, build, images, labels):
    x = tf.one_hot(labels, 16)
    x = tf.nn.relu(tf.reshape(build.dense(x, 8 * 8 * 32, "seed"), [-1, 8, 8, 32]))
    for depth, width in enumerate((32, 16, 3)):
        x = tf.repeat(tf.repeat(x, 2, 1), 2, 2) if depth < 2 else x
        x = build.conv(x, width, "make%d" % depth, relu=False)
        ones = tf.ones([width])
        x = tf.compat.v1.nn.fused_batch_norm(x, ones, 0 * ones)[0]
        x = tf.nn.relu(x) if depth < 2 else tf.tanh(x)
    layers = [(build.variable([3, 3, wide, width], "see%d" % depth, 0.05),
               build.variable([width], "see%d_bias" % depth, 0.05))
              for depth, (wide, width) in enumerate(((3, 16), (16, 32)))]
    weights = build.variable([32, 1], "verdict", 0.1)

    def loss_of(x, truth):
        for kernel, bias in layers:
            x = tf.nn.leaky_relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 2, "SAME"), bias))
        logits = tf.reduce_mean(x, [1, 2]) @ weights
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
            labels=truth * tf.ones_like(logits), logits=logits))

    return loss_of(images, 1.) + loss_of(x, 0.) - 0.5 * loss_of(x, 1.)


def embeddings(tf, build, images, labels):
    rows, width = 8192, 48
    looked_up = []
    for table in range(6):
        weights = build.variable([rows, width], "table%d" % table, 0.05)
        keys = tf.cast(images[:, 4 * table:4 * table + 4] * rows, tf.int32)
        looked_up.append(tf.reduce_sum(tf.nn.embedding_lookup(weights, keys), 1))
    numbers = tf.nn.relu(build.dense(images[:, 24:], width, "numbers"))
    features = tf.stack(looked_up + [numbers], 1)
    pairs = tf.reshape(tf.matmul(features, features, transpose_b=True), [int(images.shape[0]), -1])
    x = tf.concat([pairs, numbers], 1)
    for depth in range(3):
        x = tf.nn.relu(build.dense(x, 512, "dense%d" % depth))
    return classify(tf, labels, build.dense(x, CLASSES, "logits"))


def gpt(tf, build, images, labels):
    batch, length, width = images.shape
    x = images
    ahead = -1e9 * (1 - tf.linalg.band_part(tf.ones([length, length]), -1, 0))
    for block in range(2):
        normal = layer_norm(tf, x)
        query, key, value = (
            tf.reshape(build.dense(tf.reshape(normal, [-1, width]), int(width), "%s%d" % (of, block)),
                       [batch, length, width]) for of in ("query", "key", "value"))
        shares = tf.nn.softmax(query @ tf.transpose(key, [0, 2, 1]) / 8 + ahead)
        x += shares @ value
        wide = build.dense(tf.reshape(layer_norm(tf, x), [-1, width]), 4 * int(width),
                           "wide%d" % block)
        wide = 0.5 * wide * (1 + tf.tanh(0.7978845608 * (wide + 0.044715 * tf.pow(wide, 3.))))
        x += tf.reshape(build.dense(wide, int(width), "narrow%d" % block), x.shape)
    return classify(tf, labels, build.dense(tf.reduce_mean(x, 1), CLASSES, "logits"))


def layer_norm(tf, x):
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(x, tf.stop_gradient(mean)), -1,
                              keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5)


def learning_phase(tf, build, images, labels):
    training = tf.compat.v1.placeholder(tf.bool, [], "training")
    x = images
    for depth, width in enumerate((16, 16, 24, 24, 32)):
        x = build.conv(x, width, "conv%d" % depth, relu=False)
        x = tf.nn.relu(normalize(tf, build, x, training, "norm%d" % depth))
    return classify(tf, labels, build.dense(tf.reduce_mean(x, [1, 2]), CLASSES, "dense"))


def normalize(tf, build, x, training, name):
    scale, offset, mean, variance = (
        start + build.variable([int(x.shape[-1])], "%s_%s" % (name, what), 0.01)
        for what, start in (("scale", 1), ("offset", 0), ("mean", 0), ("variance", 1)))
    v1 = tf.compat.v1
    v1.disable_control_flow_v2()  # Switch and Merge, not If.
    try:
        return v1.cond(
            training, lambda: v1.nn.fused_batch_norm(x, scale, offset, is_training=True)[0],
            lambda: v1.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)[0])
    finally:
        v1.enable_control_flow_v2()


def towers(tf, build, images, labels):
    v1 = tf.compat.v1
    images, labels = tf.split(images, 2), tf.split(labels, 2)
    losses = []
    for gpu in range(2):

        def place(op, gpu=gpu):
            # On a GPU a tower reads a copy of its inputs from a CPU. Here nothing is copied; the
            # value that was read of a resource still stays when that is updated.
            return "/cpu:0" if op.type.startswith("Var") else "/gpu:%d" % gpu

        with v1.device(place), v1.variable_scope("model", reuse=v1.AUTO_REUSE):
            x = images[gpu]
            for depth, width in enumerate((16, 16, 24, 24, 32)):
                x = build.conv(x, width, "conv%d" % depth, relu=False)
                ones = tf.ones([width])
                x = tf.nn.relu(v1.nn.fused_batch_norm(x, ones, 0 * ones)[0])
            logits = build.dense(tf.reduce_mean(x, [1, 2]), CLASSES, "dense")
            losses.append(classify(tf, labels[gpu], logits))
    return tf.add_n(losses) / 2


def classify(tf, labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits))


# Name: its builder, and the shape of its images.
GRAPHS = {
    "branches": (branches, (8, 32, 32, 8)),
    "decay": (decay, (32, 64, 64, 3)),
    "vgg": (vgg, (16, 64, 64, 3)),
    "unet": (unet, (12, 96, 96, 3)),
    "embeddings": (embeddings, (1024, 32)),
    "gan": (gan, (8, 32, 32, 3)),
    "gpt": (gpt, (8, 64, 64)),
    "learning_phase": (learning_phase, (8, 48, 48, 3)),
    "towers": (towers, (32, 64, 64, 3)),
}
# Feeds that the step needs.
FEEDS = {
    "learning_phase": [{"name": "training:0", "kind": "constant", "dtype": "bool", "shape": [],
                        "seed": 1, "value": True}],
}


def hash_of(name):
    """A number for a name, the same in every process."""
    return sum(ord(letter) * 31 ** i for i, letter in enumerate(name)) % 2 ** 31


def build_graph(tf, function, shape):
    v1 = tf.compat.v1
    on_gpus = function is towers  # The others have no devices.
    with tf.device("/cpu:0" if on_gpus else None):
        images = tf.random.stateless_uniform(list(shape), seed=[1, 2], name="images")
        labels = tf.random.stateless_uniform([shape[0]], seed=[3, 4], maxval=CLASSES,
                                             dtype=tf.int32, name="labels")
    build = Builder(tf, use_resource=on_gpus)
    loss = tf.identity(function(tf, build, images, labels), name="loss")
    # Gradients are on the devices of their forward ops.
    v1.train.MomentumOptimizer(0.01, 0.9).minimize(
        loss, name="train", colocate_gradients_with_ops=on_gpus)
    v1.global_variables_initializer()


def write(name, folder):
    """Writes one of GRAPHS."""
    tf = train.tensorflow()
    folder.mkdir(parents=True, exist_ok=True)
    graph = tf.Graph()
    with graph.as_default():
        build_graph(tf, *GRAPHS[name])
    (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString(deterministic=True))
    (folder / "meta.json").write_text(json.dumps({
        "name": name, "run_batch": GRAPHS[name][1][0], "optimizer_scopes": ["gradients"],
        "feed_spec": FEEDS.get(name, []), "fetches": {"train_op": "train", "loss": "loss:0", "init_op": "init"}}, indent=1))


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in GRAPHS:
        print(__doc__)
        return 0 if sys.argv[1:] == ["--help"] else 2
    write(sys.argv[1], pathlib.Path(sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
