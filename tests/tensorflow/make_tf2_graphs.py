"""Writes tests/rewrite_core/analysis/shapes/tf2: small graphs as TensorFlow 2 programs have them.

    python tests/tensorflow/make_tf2_graphs.py OUT_FOLDER

Each shows something that forecasts got wrong once. Beside the graph, NAME.json has the program's
own knowledge of it: the bytes of its variables, the op that trains, how often its loops run, shapes
of some tensors, and sizes that TensorFlow has seen, for a batch.
"""
import gzip
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy  # noqa: E402
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
    """Rows of a captured table: the batch is in the indices, how many rows there are in a constant
    of the gradient alone; of the table's slot nowhere."""
    table, dense = tf.Variable(tf.ones([1000, 64])), tf.Variable(tf.ones([64, 8]))
    squares = tf.Variable(tf.ones([1000, 64]))

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            rows = tf.nn.embedding_lookup(table, ids)
            logits = tf.identity(tf.nn.relu(rows) @ dense, name="logits")
            loss = tf.reduce_sum(logits)
        by_table, by_dense = tape.gradient(loss, (table, dense))
        values, at = by_table.values, by_table.indices
        squares.scatter_add(tf.IndexedSlices(values * values, at))
        rate = 0.1 * tf.math.rsqrt(tf.gather(squares, at))
        table.scatter_sub(tf.IndexedSlices(rate * values, at))
        dense.assign_sub(0.1 * by_dense)
        return loss

    graph = step.get_concrete_function(tf.TensorSpec([None], tf.int32)).graph
    return graph, {"variable_bytes": bytes_of((table, dense, squares)),
                   "shapes": {"logits": [BATCH, 8], "embedding_lookup": [BATCH, 64]}}


def tables_by_the_same_ids():
    """Two tables of one width whose rows the same indices take; the second is not trained, and how
    many rows it has stands nowhere."""
    table, fixed = tf.Variable(tf.ones([1000, 64])), tf.Variable(tf.ones([30, 64]))

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            rows = tf.nn.embedding_lookup(table, ids) * tf.nn.embedding_lookup(fixed, ids)
            loss = tf.reduce_sum(rows)
        by_table = tape.gradient(loss, table)
        table.scatter_sub(tf.IndexedSlices(0.1 * by_table.values, by_table.indices))
        return loss

    graph = step.get_concrete_function(tf.TensorSpec([None], tf.int32)).graph
    return graph, {"variable_bytes": -2}  # Unknown each.


def optionals():
    """Branches hand tensors to their gradient in optionals, which other branches leave empty."""
    weight = tf.Variable(tf.ones([20, 20]))

    @tf.function
    def step(x, which):
        with tf.GradientTape() as tape:
            x = x @ weight
            y = tf.switch_case(which, [lambda: x * 2., lambda: tf.tanh(x), lambda: x])
            y = tf.cond(which > 0, lambda: tf.nn.relu(y @ weight), lambda: y)
            loss = tf.reduce_sum(y)
        weight.assign_sub(0.1 * tf.identity(tape.gradient(loss, weight), name="gradient"))
        return tf.identity(y, name="chosen")

    graph = step.get_concrete_function(tf.TensorSpec([None, 20]),
                                       tf.TensorSpec([], tf.int32)).graph
    return graph, {"shapes": {"chosen": [BATCH, 20], "gradient": [20, 20]}}


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


def sizes_of_values():
    """Sizes that hang on values. TensorFlow runs it with many values: the largest that it has seen
    of each tensor is among the facts, and which of them are so large with the worst values."""
    with tf.Graph().as_default() as graph:
        ids = v1.placeholder(tf.int32, [None], "ids")
        x = v1.placeholder(tf.float32, [None, 4], "x")
        table = v1.get_variable("table", [1000, 16], use_resource=True)
        unique, at = tf.unique(ids)
        count = tf.shape(unique)[0]
        rows = tf.gather(table, unique, name="rows")
        sums = tf.math.unsorted_segment_sum(x, at, count, name="sums")
        tf.reshape(sums, tf.stack([count * 2, 2]), name="reshaped")
        tf.reshape(x, tf.stack([-1, tf.minimum(count, 1)]), name="opened")
        tf.concat([rows, tf.fill([count, 1], 1.)], 1, name="joined")
        tf.range(count, name="counted")
        found = tf.where(x > 0, name="found")
        tf.gather_nd(x, found, name="positive")
        tf.boolean_mask(x, ids > 5, name="masked")
        tf.dynamic_partition(x, ids % 3, 3, name="parts")
        kept = tf.image.non_max_suppression(tf.abs(x), x[:, 0], 5, name="boxes")
        tf.gather(x, kept, name="best")
        tf.raw_ops.ListDiff(x=ids, y=tf.constant([1, 2, 3]), name="others")
        # These shrink as their inputs grow: their sizes are unknown.
        tf.zeros([tf.shape(x)[0] - count, 4], name="rest")
        tf.identity(x[count:], name="tail")
        tf.range(count, tf.shape(x)[0], name="range_to_end")
        tf.zeros([tf.shape(x)[0] // count], name="quotient")
        tf.zeros([40 + count * -1], name="negative")
        operations = [op for op in graph.get_operations() if op.type not in (
            "VarHandleOp", "Placeholder", "VarIsInitializedOp", "AssignVariableOp")]
        tensors = [t for op in operations for t in op.outputs if t.dtype != tf.resource]
        random = numpy.random.default_rng(1)
        # All different and nothing below 0, which is the worst for most; and others.
        draws = [(numpy.arange(6, 6 + BATCH) * 3, numpy.arange(BATCH * 4.).reshape(BATCH, 4) + 1)]
        for _ in range(50):
            few = random.integers(1, 40)
            draws.append((random.integers(0, few, BATCH), random.normal(size=(BATCH, 4))))
        draws.append((numpy.zeros(BATCH, int), -numpy.ones((BATCH, 4))))
        seen, worst = {}, {}
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for i, (some_ids, some_x) in enumerate(draws):
                values = session.run(tensors, {ids: some_ids, x: some_x})
                for tensor, value in zip(tensors, values):
                    size = numpy.asarray(value).nbytes
                    seen[tensor.name] = max(seen.get(tensor.name, 0), size)
                    if i == 0:
                        worst[tensor.name] = size
        bounded = ["rows:0", "sums:0", "reshaped:0", "joined:0", "counted:0", "found:0",
                   "positive:0", "parts:0"]
    return graph, {"seen_bytes": seen, "bounds": {name: worst[name] for name in bounded}}


def main():
    for make in (captured_variables, captured_embedding, tables_by_the_same_ids, optionals,
                 updates_in_if, updates_in_function, recurrent, sizes_of_values):
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
