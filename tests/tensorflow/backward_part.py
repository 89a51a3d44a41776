#!/usr/bin/env python3
"""Is the backward part that Spillway finds from a graph's structure the one that TensorFlow made?

Builds models of many kinds in TensorFlow's graph mode. What tf.gradients and the optimizer add to
the graph is known: the ops that are there afterwards and were not before. Each graph is rewritten
twice with the command line `spillway`, without optimizer scopes, and with exactly those ops named;
the tensors of the forward part must be swapped alike, for the same consumers, and every consumer of
a swap-in must be one of those ops. Nothing is trained.

    python tests/tensorflow/backward_part.py --spillway build/bin/spillway

One line per model; at the end, alone on its line, `N passed, N failed, 0 skipped`. Exit code 0:
nothing failed; 1: something did; 2: bad usage.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
warnings.filterwarnings("ignore")
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
tf.get_logger().setLevel("ERROR")

MODELS = {}


def model(function):
    """A function that builds a forward part and returns one that adds the rest."""
    MODELS[function.__name__] = function
    return function


def _feed(*shape, dtype=tf.float32):
    return v1.placeholder(dtype, shape)


def _dense(x, width, name, activation=tf.nn.relu, resource=False):
    with v1.variable_scope(name, reuse=v1.AUTO_REUSE, use_resource=resource):
        w = v1.get_variable("w", [x.shape[-1], width])
        b = v1.get_variable("b", [width])
    y = tf.matmul(x, w) + b
    return activation(y) if activation else y


def _conv(x, width, name, norm=False):
    with v1.variable_scope(name, reuse=v1.AUTO_REUSE):
        y = tf.nn.conv2d(x, v1.get_variable("w", [3, 3, x.shape[-1], width]), 1, "SAME")
        return tf.nn.relu(v1.layers.batch_normalization(y, training=True) if norm else y)


def _mlp(resource=False):
    x = _feed(32, 100)
    h = _dense(_dense(x, 64, "a", resource=resource), 64, "b", resource=resource)
    return _dense(h, 10, "c", None, resource)


def _xent(logits):
    labels = _feed(logits.shape[0], dtype=tf.int32)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits))


@model
def softmax_adagrad():
    loss = _xent(_mlp())
    return lambda: v1.train.AdagradOptimizer(.1).minimize(loss)


@model
def squares_rmsprop():
    x, y = _feed(32, 100), _feed(32, 1)
    out = _dense(_dense(_dense(x, 64, "a", tf.tanh), 64, "b", tf.sigmoid), 1, "c", None)
    loss = tf.reduce_mean(tf.square(out - y))
    return lambda: v1.train.RMSPropOptimizer(.1).minimize(loss)


@model
def batch_norm_with_update_ops():
    h = _feed(8, 32, 32, 3)
    for i in range(4):
        h = _conv(h, 16, "c%d" % i, norm=True)
    loss = _xent(_dense(tf.reduce_mean(h, [1, 2]), 10, "fc", None))

    def backward():
        with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
            v1.train.MomentumOptimizer(.1, .9).minimize(
                loss, global_step=v1.train.get_or_create_global_step())
    return backward


@model
def two_adversaries():
    def generator(z):
        return _dense(_dense(_dense(z, 64, "g1"), 64, "g2"), 64, "g3", tf.tanh)

    def judge(x):
        return _dense(_dense(_dense(x, 64, "d1"), 64, "d2"), 1, "d3", None)

    fake, real = judge(generator(_feed(16, 32))), judge(_feed(16, 64))
    cross = tf.nn.sigmoid_cross_entropy_with_logits
    of_judge = tf.reduce_mean(cross(labels=tf.ones_like(real), logits=real) +
                              cross(labels=tf.zeros_like(fake), logits=fake))
    of_generator = tf.reduce_mean(cross(labels=tf.ones_like(fake), logits=fake))
    weights = v1.trainable_variables()

    def backward():
        for loss, letter in ((of_judge, "d"), (of_generator, "g")):
            v1.train.AdamOptimizer(name="Adam_" + letter).minimize(
                loss, var_list=[w for w in weights if w.name[0] == letter])
    return backward


@model
def unrolled_lstm_clipped():
    x = _feed(8, 20, 32)
    w, b = v1.get_variable("w", [80, 192]), v1.get_variable("b", [192])
    c = h = tf.zeros([8, 48])
    for t in range(20):
        i, j, f, o = tf.split(tf.matmul(tf.concat([x[:, t], h], 1), w) + b, 4, 1)
        c = c * tf.sigmoid(f) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    loss = _xent(_dense(h, 10, "out", None))

    def backward():
        weights = v1.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, weights), 1.)
        v1.train.GradientDescentOptimizer(.1).apply_gradients(zip(gradients, weights))
    return backward


@model
def unrolled_rnn_with_summaries():
    x, h, losses = _feed(8, 10, 32), tf.zeros([8, 48]), []
    for t in range(10):
        h = _dense(tf.concat([x[:, t], h], 1), 48, "cell", tf.tanh)
        losses.append(_xent(_dense(h, 10, "out", None)))
    loss = tf.add_n(losses)

    def backward():
        optimizer = v1.train.AdamOptimizer(.1)
        pairs = [(tf.clip_by_norm(g, 1.), v) for g, v in optimizer.compute_gradients(loss)]
        for gradient, variable in pairs:
            v1.summary.histogram("gradient/" + variable.op.name, gradient)
        optimizer.apply_gradients(pairs)
    return backward


@model
def smooth_net_without_gates():
    """tf.gradients leaves gradients that no op needs: that of the input, those of the labels."""
    h = _feed(8, 32, 32, 3)
    for i in range(4):
        with v1.variable_scope("s%d" % i):
            h = tf.nn.swish(v1.layers.conv2d(h, 8, 3))
    loss = _xent(_dense(tf.reshape(h, [8, -1]), 10, "fc", None))

    def backward():
        weights = v1.trainable_variables()
        v1.train.MomentumOptimizer(.1, .9).apply_gradients(
            zip(tf.gradients(loss, weights), weights))
    return backward


@model
def convolutions_and_dropout_without_gates():
    h = _feed(8, 32, 32, 3)
    for i in range(4):
        h = tf.nn.dropout(_conv(h, 8, "c%d" % i), rate=.3)
    loss = _xent(_dense(tf.reshape(h, [8, -1]), 10, "fc", None))

    def backward():
        weights = v1.trainable_variables()
        v1.train.GradientDescentOptimizer(.1).apply_gradients(
            zip(tf.gradients(loss, weights), weights))
    return backward


@model
def no_op_of_a_gradient_type():
    """Matrices, squares and exponentials, and weight decay."""
    h = _feed(32, 64)
    weights = [v1.get_variable("w%d" % i, [64, 64]) for i in range(5)]
    for w in weights:
        h = tf.exp(-tf.square(tf.matmul(h, w)))
    loss = tf.reduce_sum(tf.square(h)) + 1e-3 * tf.add_n([tf.nn.l2_loss(w) for w in weights])

    def backward():
        v1.train.GradientDescentOptimizer(.1).apply_gradients(
            zip(tf.gradients(loss, weights), weights))
    return backward


@model
def optimizer_of_assigns():
    """As BERT's AdamWeightDecayOptimizer."""
    loss = _xent(_mlp(resource=True))

    def backward():
        weights = v1.trainable_variables()
        for gradient, weight in zip(tf.gradients(loss, weights), weights):
            m, v = (v1.get_variable(weight.op.name + slot, weight.shape, trainable=False,
                                    initializer=v1.zeros_initializer()) for slot in ("/m", "/v"))
            next_m, next_v = .9 * m + .1 * gradient, .99 * v + .01 * tf.square(gradient)
            weight.assign(weight - 1e-3 * (next_m / (tf.sqrt(next_v) + 1e-6) + .01 * weight))
            m.assign(next_m)
            v.assign(next_v)
    return backward


@model
def two_heads_and_decay():
    h = _conv(_conv(_feed(8, 32, 32, 3), 16, "c0"), 16, "c1")
    side = _xent(_dense(tf.reduce_mean(h, [1, 2]), 10, "side", None))
    h = _conv(_conv(h, 16, "c2"), 16, "c3")
    decay = tf.add_n([tf.nn.l2_loss(v) for v in v1.trainable_variables()])
    loss = _xent(_dense(tf.reduce_mean(h, [1, 2]), 10, "fc", None)) + .3 * side + 1e-4 * decay
    v1.summary.scalar("loss", loss)
    return lambda: v1.train.FtrlOptimizer(.1).minimize(loss)


@model
def transposed_convolutions():
    x = _feed(8, 32, 32, 3)
    h = v1.layers.conv2d(_conv(x, 8, "e"), 16, 3, 2, "same", activation=tf.nn.relu)
    h = v1.layers.conv2d_transpose(h, 16, 3, 2, "same", activation=tf.nn.relu)
    loss = tf.reduce_mean(tf.abs(v1.layers.conv2d(h, 3, 3, 1, "same") - x))
    return lambda: v1.train.AdadeltaOptimizer(.1).minimize(loss)


@model
def accumulated_gradients():
    loss = _xent(_mlp())

    def backward():
        weights = v1.trainable_variables()
        sums = [v1.get_variable(w.op.name + "_sum", w.shape, trainable=False,
                                initializer=v1.zeros_initializer()) for w in weights]
        for total, gradient in zip(sums, tf.gradients(loss, weights)):
            total.assign_add(gradient)
        v1.train.AdamOptimizer(.1).apply_gradients(
            [(total / 4., w) for total, w in zip(sums, weights)])
    return backward


@model
def loss_of_a_frozen_net():
    h = _conv(_conv(_feed(8, 32, 32, 3), 8, "n0"), 8, "n1")
    out = v1.layers.conv2d(h, 3, 3, 1, "same", name="n2")
    weights = v1.trainable_variables()

    def features(image):
        for k in range(5):
            image = _conv(image, 16, "frozen%d" % k)
        return image

    loss = tf.reduce_mean(tf.square(features(out) - features(_feed(8, 32, 32, 3))))
    return lambda: v1.train.AdamOptimizer(.1).minimize(loss, var_list=weights)


@model
def keras_layers():
    layers = tf.keras.layers
    h = layers.Conv2D(8, 3, activation="relu")(_feed(8, 32, 32, 3))
    h = layers.BatchNormalization()(h, training=True)
    h = layers.Dropout(.5)(layers.Conv2D(8, 3, activation="swish")(h), training=True)
    loss = _xent(layers.Dense(10)(layers.Flatten()(h)))
    weights = v1.trainable_variables()
    return lambda: v1.train.MomentumOptimizer(.1, .9, use_nesterov=True).minimize(
        loss, var_list=weights)


@model
def gradient_tape():
    with tf.GradientTape() as tape:
        loss = _xent(_mlp(resource=True))
    weights = v1.trainable_variables()

    def backward():
        for gradient, w in zip(tape.gradient(loss, weights), weights):
            tf.raw_ops.ResourceApplyGradientDescent(var=w.handle, alpha=.1, delta=gradient)
    return backward


@model
def embeddings():
    table = v1.get_variable("table", [1000, 32])
    h = tf.reduce_mean(tf.nn.embedding_lookup(table, _feed(16, 8, dtype=tf.int32)), 1)
    out = _dense(_dense(h, 16, "a"), 1, "b", None)[:, 0]
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=_feed(16), logits=out))
    return lambda: v1.train.AdagradOptimizer(.1).minimize(loss)


@model
def metrics_and_averages():
    logits = _dense(tf.nn.dropout(_dense(_feed(32, 100), 64, "a"), rate=.5), 10, "c", None)
    loss = _xent(logits)
    v1.metrics.accuracy(_feed(32, dtype=tf.int64), tf.argmax(logits, 1))
    weights = v1.trainable_variables()

    def backward():
        step = v1.train.AdamOptimizer(.1).minimize(loss)
        with tf.control_dependencies([step]):
            tf.train.ExponentialMovingAverage(.99).apply(weights)
    return backward


@model
def loss_scaling():
    scale = v1.get_variable("scale", [], initializer=v1.constant_initializer(128.),
                            trainable=False)
    loss = _xent(_mlp())
    weights = v1.trainable_variables()

    def backward():
        gradients = [g / scale for g in tf.gradients(loss * scale, weights)]
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g in gradients])
        gradients = [tf.where(finite, g, tf.zeros_like(g)) for g in gradients]
        v1.train.MomentumOptimizer(.1, .9).apply_gradients(zip(gradients, weights))
        scale.assign(tf.where(finite, scale * 1.01, scale / 2.))
    return backward


def _report(spillway, graph, folder, scopes):
    """The report of a rewrite of the serialized graph."""
    path, report = folder / "graph.pb", folder / "report.json"
    path.write_bytes(graph)
    command = [spillway, "rewrite", str(path), "--strategy", "scope", "--report", str(report),
               "--quiet"]
    for scope in scopes:
        command += ["--optimizer-scopes", scope]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(report.read_text())


def _swaps(report):
    """{(tensor, consumer)} of all swaps."""
    return {(swap["tensor"], consumer["node"]) for swap in report.get("swaps", [])
            for swap_in in swap["swap_ins"] for consumer in swap_in["consumers"]}


def check(build, spillway, folder):
    """Problems with one model, as sentences; and a summary."""
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(1)
        backward = build()
        before = {op.name for op in graph.get_operations()}
        backward()
        added = {op.name for op in graph.get_operations()} - before
    graph_def = graph.as_graph_def(add_shapes=True).SerializeToString()
    found = _swaps(_report(spillway, graph_def, folder, []))
    exact = [re.escape(name) + "$" for name in sorted(added)]
    named = _swaps(_report(spillway, graph_def, folder, exact))
    problems = ["%s is swapped for %s, a forward op" % swap for swap in sorted(found)
                if swap[1] not in added]
    forward_found, forward_named = (
        {swap for swap in swaps if swap[0].split(":")[0] not in added} for swaps in (found, named))
    problems += ["%s is not swapped for %s" % s for s in sorted(forward_named - forward_found)]
    problems += ["%s is swapped for %s" % s for s in sorted(forward_found - forward_named)]
    if not forward_named:
        problems.append("there is nothing to swap: the model tests nothing")
    return problems, "%d forward tensors and consumers alike" % len(forward_named & forward_found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--spillway", required=True, help="the program, e.g. build/bin/spillway")
    parser.add_argument("-k", metavar="TEXT", default="", help="only models whose name holds TEXT")
    arguments = parser.parse_args()
    v1.disable_eager_execution()
    failed = passed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, build in MODELS.items():
            if arguments.k not in name:
                continue
            try:
                problems, seen = check(build, arguments.spillway, pathlib.Path(folder))
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
                problems, seen = [str(error)], ""
            failed, passed = failed + bool(problems), passed + (not problems)
            print("%-5s %-30s %s" % ("FAIL" if problems else "ok", name, seen))
            for problem in problems:
                print("      " + problem)
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
