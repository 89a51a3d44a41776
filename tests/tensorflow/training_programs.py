#!/usr/bin/env python3
"""Training programs that do more than minimize a loss, as people write them; small enough that four
steps take a second.

    training_programs.py FOLDER [NAME...]

  mixed_precision         Keras layers with the policy mixed_float16
  loss_scale_optimizer    the same, with Keras's LossScaleOptimizer: weights are updated in an If,
                          and not in the first step, whose gradients overflow
  gradient_accumulation   gradients of two steps are added up in variables, every second step
                          updates the weights, in a conditional
  mirrored_strategy       tf.distribute.MirroredStrategy with two replicas, on GPU:0 and GPU:1
  dataset_in_graph        tf.data with maps, shuffle, batch and prefetch; nothing is fed
  clip_by_global_norm     an unrolled recurrent net, whose gradients are clipped

Each is run as it is, for four steps, in a session of its own. FOLDER/NAME gets graph.pb, meta.json
and losses.json, as folders of tests/graphs have them.
"""
import json
import os
import pathlib
import sys

from truth import feeds, train

BATCH = 8
CLASSES = 10
STEPS = 4
SHAPE = (BATCH, 16, 16, 3)


class Program:
    """A program's ops and feeds. `optimizer_scopes` for the sets that name them."""

    def __init__(self, train_op, loss, init_op, feed_spec=(), optimizer_scopes=("gradients",),
                 extra_init_ops=()):
        self.train_op, self.loss, self.init_op = train_op, loss, init_op
        self.feed_spec = list(feed_spec)
        self.optimizer_scopes = list(optimizer_scopes)
        self.extra_init_ops = list(extra_init_ops)


FED = (
    {"name": "images:0", "kind": "normal", "dtype": "float32", "shape": list(SHAPE), "seed": 11,
     "loc": 0.0, "scale": 1.0},
    {"name": "labels:0", "kind": "randint", "dtype": "int32", "shape": [BATCH], "seed": 12,
     "low": 0, "high": CLASSES},
)


def placeholders(tf):
    v1 = tf.compat.v1
    return (v1.placeholder(tf.float32, [None, *SHAPE[1:]], "images"),
            v1.placeholder(tf.int32, [None], "labels"))


def cnn(tf, images):
    """Logits of a small CNN with batch normalization, in the policy of the moment."""
    layers = tf.keras.layers
    x = images
    for width in (16, 32):
        x = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
        x = layers.Activation("relu")(layers.BatchNormalization()(x, training=True))
    x = layers.Flatten()(layers.MaxPooling2D()(x))
    return layers.Dense(CLASSES)(x)


def loss_of(tf, logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=tf.cast(logits, tf.float32)), name="loss")


def mixed_precision(tf):
    v1 = tf.compat.v1
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    images, labels = placeholders(tf)
    loss = loss_of(tf, cnn(tf, images), labels)
    train_op = v1.train.AdamOptimizer(1e-3).minimize(loss, name="train")
    return Program(train_op, loss, v1.global_variables_initializer(), FED)


def loss_scale_optimizer(tf):
    v1 = tf.compat.v1
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    images, labels = placeholders(tf)
    loss = loss_of(tf, cnn(tf, images), labels)
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(
        tf.keras.optimizers.legacy.SGD(0.002, momentum=0.9), initial_scale=2.0**17)
    variables = v1.trainable_variables()
    with tf.name_scope("gradients"):
        gradients = optimizer.get_unscaled_gradients(
            tf.gradients(optimizer.get_scaled_loss(loss), variables))
    with tf.name_scope("optimizer"):
        update = optimizer.apply_gradients(zip(gradients, variables))
    train_op = tf.group(update, name="train")
    return Program(train_op, loss, v1.global_variables_initializer(), FED,
                   ("gradients", "optimizer"))


def gradient_accumulation(tf):
    v1 = tf.compat.v1
    images, labels = placeholders(tf)
    loss = loss_of(tf, cnn(tf, images), labels)
    optimizer = v1.train.MomentumOptimizer(0.005, 0.9)
    pairs = optimizer.compute_gradients(loss)
    with tf.name_scope("accumulate"):
        step = v1.get_variable("micro_step", [], tf.int32, v1.zeros_initializer(), trainable=False)
        sums = [v1.get_variable("sum_%d" % index, variable.shape, tf.float32,
                                v1.zeros_initializer(), trainable=False)
                for index, (_, variable) in enumerate(pairs)]
        added = [total.assign_add(gradient) for total, (gradient, _) in zip(sums, pairs)]
        with tf.control_dependencies(added):
            count = step.assign_add(1)

        def update():
            means = [total.read_value() / 2.0 for total in sums]
            with tf.control_dependencies([optimizer.apply_gradients(
                    zip(means, [variable for _, variable in pairs]))]):
                cleared = [total.assign(tf.zeros_like(total)) for total in sums]
            with tf.control_dependencies(cleared):
                return tf.constant(True)

        done = tf.cond(tf.equal(count % 2, 0), update, lambda: tf.constant(False))
    train_op = tf.group(done, name="train")
    return Program(train_op, loss, v1.global_variables_initializer(), FED,
                   ("gradients", "accumulate"))


def mirrored_strategy(tf):
    """On CPU:0 and CPU:1; on_gpus() makes GPUs of them."""
    v1 = tf.compat.v1
    strategy = tf.distribute.MirroredStrategy(
        ["/cpu:0", "/cpu:1"], cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())
    images, labels = placeholders(tf)
    with strategy.scope():
        random = tf.random.stateless_normal
        kernels = [v1.get_variable("kernel_%d" % index, initializer=0.1 * random(
            shape, [index, 1]), use_resource=True) for index, shape in enumerate(
                ((3, 3, 3, 16), (3, 3, 16, 32), (4 * 4 * 32, CLASSES)))]
        optimizer = tf.keras.optimizers.legacy.SGD(0.01, momentum=0.9)

        def replica_step():
            half = BATCH // 2
            begin = tf.distribute.get_replica_context().replica_id_in_sync_group * half
            x = tf.slice(images, [begin, 0, 0, 0], [half, -1, -1, -1])
            for kernel in kernels[:2]:
                x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
            logits = tf.reshape(tf.nn.max_pool2d(x, 4, 4, "SAME"), [half, -1]) @ kernels[2]
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=tf.slice(labels, [begin], [half]), logits=logits)) / BATCH
            with tf.name_scope("gradients"):
                gradients = tf.gradients(loss, kernels)
            update = optimizer.apply_gradients(zip(gradients, kernels))
            with tf.control_dependencies([update]):
                return tf.identity(loss)

        losses = strategy.run(replica_step)
        loss = tf.identity(strategy.reduce("SUM", losses, None), name="loss")
    train_op = tf.group(loss, name="train")
    return Program(train_op, loss, v1.global_variables_initializer(), FED, ("gradients",))


def dataset_in_graph(tf):
    v1 = tf.compat.v1

    def example(index):
        image = tf.random.stateless_normal(SHAPE[1:], tf.stack([index, tf.constant(5, tf.int64)]))
        return image, tf.cast(index % CLASSES, tf.int32)

    dataset = tf.data.Dataset.range(64).map(example).shuffle(64, seed=3).repeat()
    dataset = dataset.batch(BATCH, drop_remainder=True).map(
        lambda images, labels: (images * 0.5, labels)).prefetch(2)
    iterator = v1.data.make_initializable_iterator(dataset)
    images, labels = iterator.get_next()
    loss = loss_of(tf, cnn(tf, images), labels)
    train_op = v1.train.MomentumOptimizer(0.005, 0.9).minimize(loss, name="train")
    return Program(train_op, loss, v1.global_variables_initializer(),
                   extra_init_ops=[iterator.initializer])


def clip_by_global_norm(tf):
    v1 = tf.compat.v1
    words = v1.placeholder(tf.int32, [None, 8], "words")
    following = v1.placeholder(tf.int32, [None, 8], "following")
    normal = v1.random_normal_initializer(stddev=0.3, seed=1)
    table = v1.get_variable("table", [50, 32], tf.float32, normal, use_resource=True)
    kernel = v1.get_variable("kernel", [32 + 64, 64], tf.float32, normal, use_resource=True)
    softmax = v1.get_variable("softmax", [64, 50], tf.float32, normal, use_resource=True)
    inputs = tf.nn.embedding_lookup(table, words)
    state, outputs = tf.zeros([tf.shape(words)[0], 64]), []
    for position in range(8):
        state = tf.tanh(tf.concat([inputs[:, position], state], 1) @ kernel)
        outputs.append(state)
    logits = tf.einsum("bth,hv->btv", tf.stack(outputs, 1), softmax)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=following, logits=logits), name="loss")
    variables = v1.trainable_variables()
    with tf.name_scope("clip"):
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.1)
    train_op = v1.train.AdagradOptimizer(0.5).apply_gradients(zip(gradients, variables),
                                                              name="train")
    fed = [{"name": name, "kind": "randint", "dtype": "int32", "shape": [BATCH, 8], "seed": seed,
            "low": 0, "high": 50} for name, seed in (("words:0", 21), ("following:0", 22))]
    return Program(train_op, loss, v1.global_variables_initializer(), fed,
                   ("clip/gradients", "clip"))


PROGRAMS = {function.__name__: function for function in (
    mixed_precision, loss_scale_optimizer, gradient_accumulation, mirrored_strategy,
    dataset_in_graph, clip_by_global_norm)}


def on_gpus(graph_def):
    """Replica k of a program for CPUs on GPU:k, and nothing else: nodes on no replica stay where
    TensorFlow puts them."""
    text = graph_def.SerializeToString(deterministic=True)
    changed = type(graph_def).FromString(text)
    for node in changed.node:
        node.device = node.device.replace("device:CPU:", "device:GPU:")
    return changed


def run(tf, graph, program):
    """The losses of the program in its own session, as bits."""
    losses = []
    with tf.compat.v1.Session(graph=graph, config=train.session_config(2, False)) as session:
        for operation in [program.init_op, *program.extra_init_ops]:
            session.run(operation)
        for step in range(STEPS):
            losses.append(float(session.run([program.loss, program.train_op],
                                            feeds.feed_dict(program.feed_spec, step))[0]))
    return losses


def write(name, folder):
    """Writes one of PROGRAMS."""
    tf = train.tensorflow()
    tf.keras.mixed_precision.set_global_policy("float32")
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(7)  # Of initializers of Keras, too.
    graph = tf.Graph()
    with graph.as_default():
        tf.compat.v1.set_random_seed(7)
        program = PROGRAMS[name](tf)
    graph_def = graph.as_graph_def()
    losses = run(tf, graph, program)
    if name == "mirrored_strategy":
        graph_def = on_gpus(graph_def)
    folder = pathlib.Path(folder) / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.pb").write_bytes(graph_def.SerializeToString(deterministic=True))
    (folder / "meta.json").write_text(json.dumps({
        "name": name, "run_batch": BATCH, "optimizer_scopes": program.optimizer_scopes,
        "feed_spec": program.feed_spec, "nodes": len(graph_def.node),
        "fetches": {"train_op": program.train_op.name, "loss": program.loss.name,
                    "init_op": program.init_op.name,
                    "extra_init_ops": [op.name for op in program.extra_init_ops]}}, indent=1))
    (folder / "losses.json").write_text(json.dumps({"steps": STEPS, "losses": losses}, indent=1))


def set_up():
    """Two CPUs, for mirrored_strategy, with one thread each. Before TensorFlow's first use."""
    tf = train.tensorflow()
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    # Kernels of all sessions of a process share the threads of the first one that is made.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def main():
    names = sys.argv[2:] or list(PROGRAMS)
    if len(sys.argv) < 2 or sys.argv[1] == "--help" or set(names) - set(PROGRAMS):
        print(__doc__)
        return 0 if sys.argv[1:] == ["--help"] else 2
    set_up()
    for name in names:
        write(name, sys.argv[1])
    return 0


if __name__ == "__main__":
    os.environ.update(train.ENVIRONMENT)
    sys.exit(main())
