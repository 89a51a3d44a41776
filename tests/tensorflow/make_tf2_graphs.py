"""Writes tests/rewrite_core/analysis/tf2: small graphs as TensorFlow 2 programs have them.

    python tests/tensorflow/make_tf2_graphs.py OUT_FOLDER

Each shows something that forecasts got wrong once. Beside the graph, NAME.json has what the program
itself knows of it: the bytes of its variables, the op that trains, how often its loops run, and
shapes of some tensors, for a batch.
"""
import gzip
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
BATCH = 32


def bytes_of(variables):
    return sum(v.shape.num_elements() * v.dtype.size for v in variables)


def captured_variables():
    """Variables are resource placeholders, known from their reads and updates alone."""
    first, second = tf.Variable(tf.ones([20, 48])), tf.Variable(tf.ones([48, 8]))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.relu(x @ first) @ second)
        for variable, gradient in zip((first, second), tape.gradient(loss, (first, second))):
            variable.assign_sub(0.1 * gradient)
        return loss

    graph = step.get_concrete_function(tf.TensorSpec([None, 20])).graph
    return graph, {"variable_bytes": bytes_of((first, second))}


def captured_embedding():
    """Rows of a captured table: the batch is in the indices, how many rows there are nowhere."""
    table, dense = tf.Variable(tf.ones([1000, 64])), tf.Variable(tf.ones([64, 8]))

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            rows = tf.nn.embedding_lookup(table, ids)
            logits = tf.identity(tf.nn.relu(rows) @ dense, name="logits")
            loss = tf.reduce_sum(logits)
        by_table, by_dense = tape.gradient(loss, (table, dense))
        table.scatter_sub(tf.IndexedSlices(0.1 * by_table.values, by_table.indices))
        dense.assign_sub(0.1 * by_dense)
        return loss

    graph = step.get_concrete_function(tf.TensorSpec([None], tf.int32)).graph
    return graph, {"shapes": {"logits": [BATCH, 8], "embedding_lookup": [BATCH, 64]}}


def updates_in_if():
    """Loss scaling: weights are updated in a branch, if the gradients are finite."""
    weight, scale = tf.Variable(tf.ones([20, 8])), tf.Variable(1024.)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = scale * tf.reduce_sum(tf.nn.relu(x @ weight))
        gradient = tape.gradient(loss, weight) / scale

        def apply():
            weight.assign_sub(0.1 * gradient)
            return True

        def skip():
            scale.assign(scale / 2.)
            return False

        return tf.cond(tf.reduce_all(tf.math.is_finite(gradient)), apply, skip)

    graph = step.get_concrete_function(tf.TensorSpec([None, 20])).graph
    return graph, {"variable_bytes": bytes_of((weight, scale)), "updates": ["cond"]}


def updates_in_function():
    """Keras' optimizers: a function for XLA updates each weight."""
    weight = tf.Variable(tf.ones([20, 8]))

    @tf.function(jit_compile=True)
    def update(gradient):
        weight.assign_sub(0.1 * gradient)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.relu(x @ weight))
        update(tape.gradient(loss, weight))
        return loss

    graph = step.get_concrete_function(tf.TensorSpec([None, 20])).graph
    calls = [op.name for op in graph.get_operations() if "PartitionedCall" in op.type]
    return graph, {"variable_bytes": bytes_of([weight]), "updates": calls}


def recurrent():
    """A loop of graph mode, with TensorArrays, and stacks for its gradient."""
    time = 7
    with tf.Graph().as_default() as graph:
        v1.disable_control_flow_v2()
        v1.enable_resource_variables()
        x = v1.placeholder(tf.float32, [None, time, 4], "x")
        outputs, _ = v1.nn.dynamic_rnn(v1.nn.rnn_cell.LSTMCell(16), x, dtype=tf.float32)
        v1.train.AdamOptimizer().minimize(tf.reduce_sum(tf.identity(outputs, "outputs")),
                                          name="train")
        v1.global_variables_initializer()
        variables = v1.global_variables()
    return graph, {
        "variable_bytes": bytes_of(variables), "shapes": {"outputs": [BATCH, time, 16]},
        "loops": {"rnn/while/while_context": time, "gradients/rnn/while/while_context": time}}


def main():
    for make in (captured_variables, captured_embedding, updates_in_if, updates_in_function,
                 recurrent):
        graph, facts = make()
        for name, data in ((".pb", graph.as_graph_def(add_shapes=True).SerializeToString(
                                deterministic=True)),
                           (".json", json.dumps(dict(facts, batch=BATCH), indent=1,
                                                sort_keys=True).encode() + b"\n")):
            path = os.path.join(sys.argv[1], make.__name__ + name)
            if name == ".json":
                with open(path, "wb") as file:
                    file.write(data)
                continue
            with open(path + ".gz", "wb") as file:
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=9,
                                   mtime=0) as z:
                    z.write(data)


if __name__ == "__main__":
    main()
