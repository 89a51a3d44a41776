"""Variables that a function captures and that lie on a CPU. CPU:1 stands for the GPU."""

import types
import unittest
from unittest import mock

import numpy as np

import common  # pylint: disable=unused-import
import tf_common  # pylint: disable=unused-import
from tf_common import tf

import spillway
from spillway.tensorflow import _homes, rewrite_function

HOST, GPU = "/CPU:0", "/CPU:1"
FEATURES = 256
# It swaps with any memory.
MACHINE = dict(hardware="p100_pcie", strategy="level", swapout_threshold=1, swapin_ahead=1,
               swapin_groupby=0)


def beside_a_gpu():
    """In TensorFlow with CPU:1 as a GPU."""
    found = tf.config.list_logical_devices

    def listed(kind=None):
        return found("CPU")[1:] if kind == "GPU" else found(kind)

    return mock.patch.object(tf.config, "list_logical_devices", listed)


def variable(device, *shape):
    with tf.device(device):
        return tf.Variable(tf.random.stateless_normal(shape, (1, 2)))


def make_step(homes, steps=1):
    """(A function that trains layers whose variables are on `homes`, the variables.)"""
    weights = [variable(home, FEATURES, FEATURES) for home in homes]

    def once(batch):
        with tf.GradientTape() as tape:
            out = batch
            for weight in weights:
                out = tf.nn.softmax(out @ weight)
            loss = tf.reduce_sum(out[:, :3] ** 2)
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(gradient)
        return loss

    @tf.function
    def step(batch):
        if steps == 1:
            return once(batch)
        loss = 0.0
        for _ in tf.range(steps):
            loss = once(batch)
        return loss

    return step.get_concrete_function(tf.TensorSpec((8, FEATURES))), weights


def by_name(graph_def):
    return {node.name: node for node in graph_def.node}


def resident(step):
    return step.spillway_report.forecast_before.devices[0].resident_bytes


class HomesTest(unittest.TestCase):

    def test_only_variables_on_the_gpu_take_its_memory(self):
        for homes in ((HOST, HOST, HOST), (HOST, GPU, HOST), (GPU, GPU, GPU)):
            with self.subTest(homes=homes), beside_a_gpu():
                step, _ = make_step(homes)
                on_gpu = resident(rewrite_function(step, **MACHINE))
                self.assertAlmostEqual(
                    on_gpu, homes.count(GPU) * 4 * FEATURES ** 2, delta=2048)  # And constants.

    def test_in_the_body_of_a_loop(self):
        for home, on_gpu in ((HOST, 0), (GPU, 3)):
            with self.subTest(home=home), beside_a_gpu():
                step, _ = make_step([home] * 3, steps=2)
                self.assertAlmostEqual(resident(rewrite_function(step, **MACHINE)),
                                       on_gpu * 4 * FEATURES ** 2, delta=2048)

    def test_without_a_gpu_every_variable_is_on_the_cpu_and_counts_as_on_the_gpu(self):
        step, _ = make_step([HOST] * 3)
        self.assertAlmostEqual(resident(rewrite_function(step, **MACHINE)),
                               3 * 4 * FEATURES ** 2, delta=2048)

    def test_the_function_keeps_its_devices_bits_and_way_back(self):
        for steps in (1, 2):
            with self.subTest(steps=steps), beside_a_gpu():
                step, variables = make_step([HOST, GPU, HOST], steps)
                starts = [each.numpy() for each in variables]
                made = rewrite_function(step, **MACHINE)
                self.assertEqual(made.spillway_report.outcome, "REWRITTEN")
                before, after = (each.graph.as_graph_def(add_shapes=True) for each in (step, made))
                devices = {node.name: node.device for node in before.node}
                for node in after.node:
                    self.assertEqual(node.device, devices.get(node.name, node.device))
                    self.assertFalse(node.name not in devices and GPU in node.device)
                if steps == 1:
                    # TensorFlow lists the nodes in another order.
                    self.assertEqual(by_name(spillway.strip(after).graph_def), by_name(before))
                batch = tf.constant(np.eye(8, FEATURES, dtype=np.float32))
                found = [made(batch).numpy(), *(each.numpy() for each in variables)]
                for each, start in zip(variables, starts):
                    each.assign(start)
                expected = [step(batch).numpy(), *(each.numpy() for each in variables)]
                self.assertEqual([each.tobytes() for each in found],
                                 [each.tobytes() for each in expected])

    def test_which_devices_say_something(self):
        local = "/job:localhost/replica:0/task:0/device:CPU:"
        server = "/job:ps/replica:0/task:0/device:CPU:0"

        def sent(device, scope=""):
            graph = tf.Graph()
            with graph.as_default(), tf.device(scope):
                inner = tf.compat.v1.placeholder(tf.resource)
            handle = types.SimpleNamespace(device=device, dtype=tf.resource)
            return list(_homes.of_captures(
                types.SimpleNamespace(captures=[(handle, inner)])).values())

        self.assertEqual(sent(local + "0"), [])
        self.assertEqual(sent(server), [server])
        self.assertEqual(sent(""), [])  # Of a function within a function.
        with beside_a_gpu():
            self.assertEqual(sent(local + "0"), [local + "0"])
            self.assertEqual(sent(server), [server])
            self.assertEqual(sent(local + "1"), [])  # As a node without a device.
            self.assertEqual(sent(local + "1", scope=HOST), [local + "1"])


if __name__ == "__main__":
    unittest.main()
