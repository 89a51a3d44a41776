"""The graphs of inlining.py: calls of functions of every kind, made by TensorFlow."""
import dataclasses
from typing import Any, Callable, Dict, List, Optional

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function as defun

v1 = tf.compat.v1

# Functions are optimized on their own otherwise, which changes bits.
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@dataclasses.dataclass
class Case:
    graph_def: Any
    fetches: List[str]  # Names of nodes.
    tensors: List[str]  # The fetches; empty: it is not run.
    feeds: Dict[str, Any]
    init: Optional[str]
    reads: List[str]  # Variables, after the last step.
    compare: bool
    fed: List[str]
    expect_calls: Optional[int]
    lowered: bool  # Has If, Case or While.


CASES: Dict[str, Callable[[], Case]] = {}

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 7 - 0.5


def case(name=None, feeds=None, run=True, compare=True, calls=None, lowered=False):
    """A function that builds a graph and returns the tensors and operations to fetch."""
    def add(build):
        def make():
            with tf.Graph().as_default() as graph:
                v1.set_random_seed(7)
                fetched = build()
                variables = v1.global_variables()
                init = v1.global_variables_initializer().name if variables else None
                reads = [variable.value().name for variable in variables]
            tensors = [f.name for f in fetched]
            return Case(graph.as_graph_def(), [f.split(":")[0] for f in tensors],
                        tensors if run else [], dict({"x": X} if feeds is None else feeds),
                        init, reads, compare, [], calls, lowered)
        CASES[name or build.__name__] = make
        return build
    return add


def x():
    return v1.placeholder(tf.float32, [3, 4], "x")


def variable(name="v", shape=(4, 4)):
    return v1.get_variable(name, shape, use_resource=True,
                           initializer=v1.constant_initializer(0.25))


def read(tensor):
    """A node of the graph that reads it."""
    return tf.identity(tensor)


@case()
def plain():
    @tf.function
    def f(a):
        return tf.nn.relu(a) * 2
    return [read(f(x()))]


@case()
def several_outputs():
    @tf.function
    def f(a):
        return tf.nn.relu(a), tf.reduce_sum(a), a + 1
    p, q, r = f(x())
    return [p * r, read(q)]


@case()
def an_output_nobody_reads():
    @tf.function
    def f(a):
        return tf.nn.relu(a), tf.exp(a)
    return [read(f(x())[0])]


@case()
def fetched_call():
    @tf.function
    def f(a):
        return tf.nn.relu(a)
    return [f(x())]


@case()
def result_is_the_argument():
    @tf.function
    def f(a, b):
        return b, a
    p = x()
    return [read(t) for t in f(p, p * 2)]


@case()
def one_result_twice():
    @tf.function
    def f(a):
        b = tf.exp(a)
        return b, b
    return [read(t) for t in f(x())]


@case()
def argument_nobody_reads():
    @tf.function
    def f(a, b):
        return tf.exp(a) + tf.zeros_like(a)
    p = x()
    return [read(f(p, tf.sin(p)))]


@case()
def constants_alone():
    @tf.function
    def f(a):
        return tf.constant([1.0, 2.0]) * 3
    return [read(f(x()))]


@case()
def nested():
    @tf.function
    def inner(a):
        return tf.exp(a) + 1

    @tf.function
    def outer(a):
        return inner(a) * inner(a + 1)
    return [read(outer(x()))]


@case()
def nested_four_deep():
    @tf.function
    def f1(a):
        return tf.exp(a)

    @tf.function
    def f2(a):
        return f1(a) - f1(-a)

    @tf.function
    def f3(a):
        return f2(a) + 1, f2(a * 2)

    @tf.function
    def f4(a):
        p, q = f3(a)
        return p * q
    return [read(f4(x()))]


@case()
def called_from_three_places():
    @tf.function
    def f(a):
        return tf.tanh(a)
    return [read(f(f(f(x()))))]


@case()
def captured_tensor():
    p = x()
    c = tf.sin(p)

    @tf.function
    def f(a):
        return a * c
    return [read(f(p))]


@case()
def captured_variable():
    v = variable()

    @tf.function
    def f(a):
        return tf.matmul(a, v)
    return [read(f(x()))]


@case()
def variable_is_updated():
    v = variable(shape=(3, 4))

    @tf.function
    def f(a):
        v.assign_add(a)
        return v * 2
    y = f(x())
    with tf.control_dependencies([y.op]):
        return [tf.identity(y)]


@case()
def update_behind_a_control_edge():
    v = variable(shape=(3, 4))
    p = x()
    with tf.control_dependencies([v.assign(p)]):
        @tf.function
        def f(a):
            v.assign_add(a)
            return v + 0
        y = f(p)
    with tf.control_dependencies([y.op]):
        return [tf.identity(y), v.read_value()]


@case(calls=1)
def nobody_waits_for_the_update():
    v = variable(shape=(3, 4))

    @tf.function
    def f(a):
        v.assign_add(a)
        return a * 2
    return [read(f(x()))]


@case()
def control_inputs():
    p = x()
    with tf.control_dependencies([tf.sin(p)]):
        @tf.function
        def f(a):
            return tf.constant(1.0) + a
        return [read(f(p))]


@case()
def control_outputs():
    @tf.function
    def f(a):
        return tf.exp(a)
    p = x()
    y = f(p)
    with tf.control_dependencies([y.op]):
        return [tf.sin(p)]


@case()
def control_edges_through_nested_calls():
    v = variable(shape=(3, 4))

    @tf.function
    def inner(a):
        v.assign_add(a)
        return tf.constant(2.0) * a

    @tf.function
    def outer(a):
        b = inner(a)
        v.assign_sub(a / 2)
        return inner(b)
    p = x()
    with tf.control_dependencies([tf.sin(p)]):
        y = outer(p)
    with tf.control_dependencies([y.op]):
        return [tf.identity(y), v.read_value()]


@case()
def two_variables():
    v, w = variable("v", (3, 4)), variable("w", (3, 4))

    @tf.function
    def f(a):
        v.assign(a)
        w.assign(v + a)
        return w + v
    y = f(x())
    with tf.control_dependencies([y.op]):
        return [tf.identity(y)]


@case()
def no_outputs():
    v = variable(shape=(3, 4))

    @tf.function
    def f(a):
        v.assign_add(a)
    call = None
    f(x())
    graph = v1.get_default_graph()
    call = [op for op in graph.get_operations() if op.type == "StatefulPartitionedCall"][0]
    with tf.control_dependencies([call]):
        return [v.read_value()]


@case(calls=1)
def noinline():
    @tf.function(experimental_attributes={"_noinline": True})
    def f(a):
        return tf.exp(a)
    return [read(f(x()))]


@case(calls=1)
def noinline_inside():
    @tf.function(experimental_attributes={"_noinline": True})
    def inner(a):
        return tf.exp(a)

    @tf.function
    def outer(a):
        return inner(a) + 1
    return [read(outer(x()))]


@case(calls=1, run=False)
def compiled():
    @tf.function(jit_compile=True)
    def f(a):
        return tf.exp(a)
    return [read(f(x()))]


@case(calls=1, run=False)
def implementation_group():
    @tf.function(experimental_attributes={"api_implements": "f", "api_preferred_device": "CPU"})
    def f(a):
        return tf.exp(a)
    return [read(f(x()))]


@case()
def gradient_of_a_call():
    @tf.function
    def f(a):
        return tf.reduce_sum(tf.exp(a) * tf.tanh(a))
    p = x()
    with tf.GradientTape() as tape:
        tape.watch(p)
        y = f(p)
    return [read(y), read(tape.gradient(y, p))]


@case()
def gradient_of_nested_calls():
    v = variable()

    @tf.function
    def inner(a):
        return tf.nn.relu(tf.matmul(a, v))

    @tf.function
    def outer(a):
        return tf.reduce_sum(inner(inner(a)) ** 2)
    p = x()
    with tf.GradientTape() as tape:
        y = outer(p)
    return [read(y), read(tape.gradient(y, v))]


@case()
def split_and_stack():
    @tf.function
    def f(a):
        parts = tf.split(a, 4, axis=1)
        rows = tf.unstack(a)
        return parts[3], tf.stack(rows[1:]), tf.concat(parts[1:3], 1)
    return [read(t) for t in f(x())]


@case()
def top_k_and_moments():
    @tf.function
    def f(a):
        values, indices = tf.math.top_k(a, 2)
        mean, variance = tf.nn.moments(a, [0])
        return values + tf.cast(indices, tf.float32), mean / (variance + 1)
    return [read(t) for t in f(x())]


@case()
def batch_norm():
    @tf.function
    def f(a):
        b = tf.reshape(a, [1, 3, 2, 2])
        y, mean, variance = v1.nn.fused_batch_norm(b, tf.ones([2]), tf.zeros([2]))
        return y, mean * variance
    return [read(t) for t in f(x())]


@case()
def tensor_list():
    @tf.function
    def f(a):
        items = tf.raw_ops.EmptyTensorList(element_shape=[4], max_num_elements=8,
                                           element_dtype=tf.float32)
        for row in tf.unstack(a):
            items = tf.raw_ops.TensorListPushBack(input_handle=items, tensor=row)
        return tf.raw_ops.TensorListPopBack(input_handle=items, element_shape=[4],
                                            element_dtype=tf.float32)[1]
    return [read(f(x()))]


@case()
def other_types():
    @tf.function
    def f(a, n, s, b):
        return a + tf.cast(n, tf.float32), tf.strings.join([s, s]), tf.logical_not(b), n * 2
    return [read(t) for t in f(x(), tf.constant(3), tf.constant("s"), tf.constant(True))]


@case()
def many_arguments():
    @tf.function
    def f(*a):
        return tf.add_n(a[::2]), tf.add_n(a[1::2])
    p = x()
    return [read(t) for t in f(*[p + i for i in range(20)])]


@case()
def random_numbers():
    @tf.function
    def f(a):
        return a + tf.random.stateless_uniform([3, 4], [1, 2])
    return [read(f(x()))]


def exp_on(device):
    @tf.function
    def f(a):
        with tf.device(device):
            b = tf.exp(a)
        return b + 1
    return f


@case()
def devices_in_the_body():
    return [read(exp_on("/cpu:0")(x()))]


@case()
def call_on_a_device():
    f = exp_on("/device:CPU:0")
    p = x()
    with tf.device("/job:localhost/replica:0/task:0/device:CPU:0"):
        y = f(p)
    return [read(y)]


@case()
def parts_of_devices():
    f = exp_on("/device:CPU:0")
    p = x()
    with tf.device("/job:localhost"):
        y = f(p)
    return [read(y)]


@case()
def colocation_in_the_body():
    @tf.function
    def f(a):
        b = tf.exp(a)
        with v1.colocate_with(b):
            c = tf.sin(a)
        with v1.colocate_with(a):
            d = tf.cos(a)
        return b + c + d
    return [read(f(x()))]


@case(compare=False)  # TensorFlow ends the program there: two nodes of one name.
def names_that_are_taken():
    @tf.function
    def f(a):
        return tf.exp(a, name="e")
    p = x()
    taken = tf.sin(p, name="PartitionedCall/e")
    return [read(f(p) + taken)]


@case()
def by_name():
    @defun.Defun(tf.float32, func_name="ByName")
    def f(a):
        return tf.exp(a) + 1
    return [read(f(x()))]


@case()
def by_name_several_outputs():
    @defun.Defun(tf.float32, tf.float32, func_name="Several")
    def f(a, b):
        return tf.exp(a), a - b, b
    p = x()
    y = f(p, p * 2)
    with tf.control_dependencies([y[0].op]):
        return [read(y[0] + y[2]), read(y[1]), tf.identity(p)]


@case()
def by_name_nested():
    @defun.Defun(tf.float32, func_name="Inner")
    def inner(a):
        return tf.exp(a), tf.sin(a)

    @defun.Defun(tf.float32, func_name="Outer")
    def outer(a):
        p, q = inner(a)
        r, s = inner(q)
        return p * s + r
    return [read(outer(x()))]


@case()
def by_name_on_a_device():
    @defun.Defun(tf.float32, func_name="OnDevice")
    def f(a):
        return tf.exp(a) + 1
    p = x()
    with tf.device("/cpu:0"):
        y = f(p)
    return [read(y)]


@case()
def by_name_not_inlined():
    @defun.Defun(tf.float32, func_name="Stays", noinline=True)
    def f(a):
        return tf.exp(a) + 1
    return [read(f(x()))]


@case(feeds={"x": X, "p": True})
def a_v1_cond_in_the_body():
    p = v1.placeholder(tf.bool, [], "p")

    @defun.Defun(tf.float32, tf.bool, func_name="WithCond")
    def f(a, b):
        return v1.cond(b, lambda: tf.exp(a), lambda: tf.sin(a))
    v1.disable_control_flow_v2()
    return [read(f(x(), p))]


@case(feeds={"x": X, "p": True}, run=False)  # TensorFlow refuses to run it.
def a_dead_result():
    p = v1.placeholder(tf.bool, [], "p")

    @defun.Defun(tf.float32, tf.bool, func_name="Dead")
    def f(a, b):
        no, yes = tf.raw_ops.Switch(data=a, pred=b)
        return tf.exp(yes), tf.exp(no)
    y = f(x(), p)
    return [read(y[0])]


@case()
def a_call_in_a_v1_cond():
    @tf.function
    def f(a):
        return tf.constant(2.0) * a
    v1.disable_control_flow_v2()
    p = x()
    return [read(v1.cond(tf.reduce_sum(p) > 0, lambda: f(p), lambda: p))]


@case()
def a_call_in_a_v1_loop():
    @tf.function
    def f(a):
        return tf.constant(1.5) * a
    v1.disable_control_flow_v2()
    p = x()
    return [read(v1.while_loop(lambda a: tf.reduce_max(a) < 100, f, [p * p + 1]))]


@case()
def a_v1_loop_in_the_body():
    v1.disable_control_flow_v2()

    @defun.Defun(tf.float32, func_name="WithLoop")
    def f(a):
        return v1.while_loop(lambda b: tf.reduce_max(b) < 100, lambda b: b * 2, [a * a + 1])
    return [read(f(x()) + f(x2()))]


def x2():
    return tf.constant(X + 1)


@case()
def a_training_step():
    v, w = variable("v"), variable("w", (4, 1))

    @tf.function
    def model(a):
        return tf.matmul(tf.nn.relu(tf.matmul(a, v)), w)

    @tf.function
    def step(a):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(a) - 1) ** 2)
        for variable_, gradient in zip([v, w], tape.gradient(loss, [v, w])):
            variable_.assign_sub(0.1 * gradient)
        return loss
    loss = step(x())
    with tf.control_dependencies([loss.op]):
        return [tf.identity(loss)]


@case()
def a_step_of_keras_layers():
    layers = [tf.keras.layers.Dense(8, activation="relu", kernel_initializer="ones"),
              tf.keras.layers.BatchNormalization(),
              tf.keras.layers.Dense(1, kernel_initializer="ones")]

    @tf.function
    def model(a):
        for layer in layers:
            a = layer(a, training=True) if "batch" in layer.name else layer(a)
        return a

    p = x()
    for layer, width in zip(layers, (4, 8, 8)):
        layer.build([None, width])

    @tf.function
    def step(a):
        variables = [w for layer in layers for w in layer.trainable_weights]
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(a) ** 2)
        for w, gradient in zip(variables, tape.gradient(loss, variables)):
            w.assign_sub(0.01 * gradient)
        return loss
    loss = step(p)
    with tf.control_dependencies([loss.op]):
        return [tf.identity(loss)]


# ---- If, Case and While of control flow v2.

def v2(build):
    """With control flow v2, which cases before may have switched off."""
    def made():
        v1.enable_control_flow_v2()
        return build()
    made.__name__ = build.__name__
    return made


@case(feeds={"x": X, "p": True}, lowered=True)
@v2
def an_if():
    p = v1.placeholder(tf.bool, [], "p")
    a = x()
    return [read(tf.cond(p, lambda: tf.exp(a), lambda: tf.sin(a) + 1))]


@case(feeds={"x": X, "p": False}, lowered=True)
@v2
def an_if_not_taken():
    p = v1.placeholder(tf.bool, [], "p")
    a = x()
    y = tf.cond(p, lambda: (tf.exp(a), a), lambda: (tf.sin(a) + 1, a * 2))
    return [read(y[0]), read(y[1])]


@case(feeds={"x": X, "p": True}, lowered=True)
@v2
def an_if_that_updates():
    p = v1.placeholder(tf.bool, [], "p")
    a = x()
    v = variable(shape=(3, 4))

    def update():
        with tf.control_dependencies([v.assign_add(a)]):
            return tf.constant(1.0)
    y = tf.cond(p, update, lambda: tf.constant(2.0))
    with tf.control_dependencies([y.op]):
        return [tf.identity(y), v.read_value()]


@case(feeds={"x": X, "p": True}, lowered=True)
@v2
def an_if_in_an_if():
    p = v1.placeholder(tf.bool, [], "p")
    a = x()
    return [read(tf.cond(p, lambda: tf.cond(tf.reduce_sum(a) > 0, lambda: a, lambda: -a),
                         lambda: tf.sin(a)))]


@case(feeds={"x": X, "p": True}, lowered=True)
@v2
def an_if_in_a_function():
    p = v1.placeholder(tf.bool, [], "p")

    @tf.function
    def f(a, b):
        return tf.cond(b, lambda: tf.exp(a), lambda: tf.sin(a)) + 1
    return [read(f(x(), p))]


@case(feeds={"x": X, "p": True}, lowered=True)
@v2
def a_function_in_an_if():
    @tf.function
    def f(a):
        return tf.exp(a) * tf.constant(2.0)
    p = v1.placeholder(tf.bool, [], "p")
    a = x()
    return [read(tf.cond(p, lambda: f(a), lambda: a))]


@case(feeds={"x": X, "p": True}, lowered=True)
@v2
def the_gradient_of_an_if():
    p = v1.placeholder(tf.bool, [], "p")
    a = x()
    y = tf.reduce_sum(tf.cond(p, lambda: tf.exp(a), lambda: tf.sin(a)))
    return [read(y), read(tf.gradients(y, a)[0])]


@case(feeds={"x": X, "i": 1}, lowered=True)
@v2
def a_case():
    i = v1.placeholder(tf.int32, [], "i")
    a = x()
    return [read(tf.switch_case(i, [lambda: tf.exp(a), lambda: tf.sin(a), lambda: a * 3]))]


@case(lowered=True)
@v2
def a_while():
    return [read(tf.while_loop(lambda a: tf.reduce_max(a) < 100, lambda a: a * 2 + 1, [x()])[0])]


@case(lowered=True)
@v2
def a_while_of_several():
    p = x()
    i, a, b = tf.while_loop(lambda i, a, b: i < 5,
                            lambda i, a, b: (i + 1, a * 2, b + a), [0, p, tf.zeros_like(p)])
    return [read(i), read(a), read(b)]


@case(lowered=True)
@v2
def a_while_with_a_variable():
    v = variable(shape=(3, 4))
    p = x()

    def body(i, a):
        with tf.control_dependencies([v.assign_add(a)]):
            return i + 1, a + 1
    i, a = tf.while_loop(lambda i, a: i < 3, body, [0, p])
    with tf.control_dependencies([i.op]):
        return [tf.identity(a), v.read_value()]


@case(lowered=True)
@v2
def the_gradient_of_a_while():
    p = x()
    y = tf.reduce_sum(tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(a) * a),
                                    [0, p])[1])
    return [read(y), read(tf.gradients(y, p)[0])]


@case(lowered=True)
@v2
def a_function_in_a_while():
    @tf.function
    def f(a):
        return a * tf.constant(1.5) + 1
    return [read(tf.while_loop(lambda a: tf.reduce_max(a) < 100, lambda a: f(a), [x()])[0])]


@case(lowered=True)
@v2
def a_while_in_a_while():
    p = x()

    def outer(i, a):
        return i + 1, tf.while_loop(lambda b: tf.reduce_sum(b) < 50, lambda b: b * 2 + 1, [a])[0]
    return [read(tf.while_loop(lambda i, a: i < 2, outer, [0, p])[1])]


@case(lowered=True)
@v2
def a_while_behind_a_control_edge():
    p = x()
    with tf.control_dependencies([tf.sin(p)]):
        y = tf.while_loop(lambda a: tf.reduce_max(a) < 100, lambda a: a * 2 + 1, [p])[0]
    with tf.control_dependencies([y.op]):
        return [tf.identity(p)]


@case(feeds={"x": X, "p": True}, lowered=True)
@v2
def an_if_on_a_device():
    p = v1.placeholder(tf.bool, [], "p")
    a = x()
    with tf.device("/device:CPU:0"):
        y = tf.cond(p, lambda: tf.exp(a), lambda: tf.sin(a))
    return [read(y)]
