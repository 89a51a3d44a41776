"""The networks that on_a_gpu.py trains, with the operations of TensorFlow 1 that every TensorFlow 2
still has: a graph for one batch size, whose data it makes itself, the same at every step.

`build(tf, name, batch, tiny)` returns (graph_def, fetches): `init`, `train` and `loss` by name. `tiny`:
the same structure in a size for a CPU.
"""
import collections

Names = collections.namedtuple("Names", "init train loss")
CLASSES = 10
DECAY = 1e-4


class Layers:
    """Variables by name. Images are in `layout`: NHWC, as people have them (Keras's default; Grappler then
    turns most of the network into NCHW), or NCHW."""

    def __init__(self, tf, layout):
        self.tf, self.v1 = tf, tf.compat.v1
        self.kernels = []
        self.format = layout
        self.channels = 3 if layout == "NHWC" else 1  # The axis.
        self.sides = [1, 2] if layout == "NHWC" else [2, 3]

    def variable(self, name, shape, stddev=0.05, initial=None):
        make = (self.v1.random_normal_initializer(stddev=stddev, seed=len(name))
                if initial is None else self.v1.constant_initializer(initial))
        return self.v1.get_variable(name, shape, initializer=make, use_resource=True)

    def conv(self, x, width, side, stride, name):
        kernel = self.variable(name + "/kernel",
                               [side, side, int(x.shape[self.channels]), width])
        self.kernels.append(kernel)
        return self.tf.nn.conv2d(x, kernel, stride, "SAME", data_format=self.format, name=name)

    def pool(self, x, side):
        return self.tf.nn.max_pool2d(x, side, 2, "SAME", data_format=self.format)

    def last(self, x):
        """With the channels last."""
        return self.tf.transpose(x, [0, 2, 3, 1]) if self.channels == 1 else x

    def resize(self, x, shape):
        x = self.v1.image.resize_nearest_neighbor(self.last(x), shape)
        return self.tf.transpose(x, [0, 3, 1, 2]) if self.channels == 1 else x

    def norm(self, x, name, relu=True):
        width = int(x.shape[self.channels])
        y = self.v1.nn.fused_batch_norm(x, self.variable(name + "/gamma", [width], initial=1.0),
                                        self.variable(name + "/beta", [width], initial=0.0),
                                        data_format=self.format, name=name)[0]
        return self.tf.nn.relu(y, name=name + "/relu") if relu else y

    def dense(self, x, width, name):
        kernel = self.variable(name + "/kernel", [int(x.shape[-1]), width])
        self.kernels.append(kernel)
        return self.tf.matmul(x, kernel, name=name) + self.variable(name + "/bias", [width],
                                                                    initial=0.0)

    def layer_norm(self, x, name):
        tf = self.tf
        width = int(x.shape[-1])
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(
            x, mean, variance, self.variable(name + "/beta", [width], initial=0.0),
            self.variable(name + "/gamma", [width], initial=1.0), 1e-6)

    def classify(self, logits, labels):
        tf = self.tf
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        return loss + DECAY * tf.add_n([tf.nn.l2_loss(kernel) for kernel in self.kernels])


def _images(layers, batch, side):
    shape = [batch, side, side]
    shape.insert(layers.channels, 3)
    return layers.tf.random.stateless_normal(shape, seed=[1, batch])


def _integers(tf, shape, high):
    return tf.random.stateless_uniform(shape, seed=[2, high], maxval=high, dtype=tf.int32)


def resnet50(tf, layers, batch, tiny):
    """ResNet-50 v1.5, images of 224 pixels, momentum."""
    width, side = (8, 32) if tiny else (64, 224)
    x = layers.conv(_images(layers, batch, side), width, 7, 2, "stem")
    x = layers.pool(layers.norm(x, "stem_norm"), 3)
    for stage, blocks in enumerate((1, 1, 1, 1) if tiny else (3, 4, 6, 3)):
        for block in range(blocks):
            name, inner = "s%d_b%d" % (stage, block), width << stage
            stride = 2 if stage > 0 and block == 0 else 1
            short = x
            if block == 0:
                short = layers.norm(layers.conv(x, 4 * inner, 1, stride, name + "_short"),
                                    name + "_short_norm", relu=False)
            y = layers.norm(layers.conv(x, inner, 1, 1, name + "_a"), name + "_a_norm")
            y = layers.norm(layers.conv(y, inner, 3, stride, name + "_b"), name + "_b_norm")
            y = layers.norm(layers.conv(y, 4 * inner, 1, 1, name + "_c"), name + "_c_norm",
                            relu=False)
            x = tf.nn.relu(y + short, name=name)
    logits = layers.dense(tf.reduce_mean(x, layers.sides), CLASSES, "logits")
    return layers.classify(logits, _integers(tf, [batch], CLASSES))


def bert(tf, layers, batch, tiny):
    """BERT-base on sequences of 128, momentum."""
    depth, width, heads, length = (2, 32, 2, 16) if tiny else (12, 768, 12, 128)
    words = layers.variable("words", [500 if tiny else 30522, width])
    x = tf.gather(words, _integers(tf, [batch, length], 500))
    x = layers.layer_norm(x + layers.variable("positions", [length, width]), "embedded")
    for depth_at in range(depth):
        name = "layer%d" % depth_at
        flat = tf.reshape(x, [-1, width])

        def head(what):
            y = layers.dense(flat, width, "%s/%s" % (name, what))  # pylint: disable=cell-var-from-loop
            return tf.transpose(tf.reshape(y, [batch, length, heads, width // heads]),
                                [0, 2, 1, 3])

        scores = tf.matmul(head("query"), head("key"), transpose_b=True)
        seen = tf.nn.softmax(scores / float((width // heads) ** 0.5)) @ head("value")
        seen = tf.reshape(tf.transpose(seen, [0, 2, 1, 3]), [-1, width])
        x = layers.layer_norm(
            x + tf.reshape(layers.dense(seen, width, name + "/out"), [batch, length, width]),
            name + "/norm1")
        inner = tf.nn.gelu(layers.dense(tf.reshape(x, [-1, width]), 4 * width, name + "/inner"))
        x = layers.layer_norm(
            x + tf.reshape(layers.dense(inner, width, name + "/outer"), [batch, length, width]),
            name + "/norm2")
    logits = layers.dense(x[:, 0], CLASSES, "logits")
    return layers.classify(logits, _integers(tf, [batch], CLASSES))


def unet(tf, layers, batch, tiny):
    """U-Net of depth 4 on images of 256 pixels, momentum."""
    width, side, depth = (4, 32, 2) if tiny else (64, 256, 4)
    x, skips = _images(layers, batch, side), []

    def twice(y, wide, name):
        y = layers.norm(layers.conv(y, wide, 3, 1, name + "_a"), name + "_a_norm")
        return layers.norm(layers.conv(y, wide, 3, 1, name + "_b"), name + "_b_norm")

    for level in range(depth):
        x = twice(x, width << level, "down%d" % level)
        skips.append(x)
        x = layers.pool(x, 2)
    x = twice(x, width << depth, "bottom")
    for level in reversed(range(depth)):
        x = layers.resize(x, [int(skips[-1].shape[axis]) for axis in layers.sides])
        x = twice(tf.concat([skips.pop(), x], layers.channels), width << level, "up%d" % level)
    logits = layers.last(layers.conv(x, CLASSES, 1, 1, "logits"))
    return layers.classify(logits, _integers(tf, [batch, side, side], CLASSES))


# By name: the network, and its layout.
PROGRAMS = {"resnet50": (resnet50, "NHWC"), "bert": (bert, "NHWC"), "unet": (unet, "NHWC"),
            "resnet50_nchw": (resnet50, "NCHW"), "unet_nchw": (unet, "NCHW")}


def build(tf, name, batch, tiny):
    graph, (network, layout) = tf.Graph(), PROGRAMS[name]
    with graph.as_default():
        # Kernels for CPUs take no other layout than NHWC.
        loss = tf.identity(network(tf, Layers(tf, "NHWC" if tiny else layout), batch, tiny), name="loss")
        train = tf.compat.v1.train.MomentumOptimizer(1e-3, 0.9).minimize(loss, name="train")
        init = tf.compat.v1.global_variables_initializer()
        return graph.as_graph_def(add_shapes=True), Names(init.name, train.name, loss.name)
