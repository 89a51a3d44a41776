"""LMS of v1 and v2: IBM's names, defaults and log lines, in every way that scripts use them."""

import inspect
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import numpy as np

import common
import tf_common
from tf_common import tf, tf1

import spillway
import spillway.tensorflow
from spillway.tensorflow import lms_v1, lms_v2

# As TFLMS has them.
V1_DEFAULTS = {
    "starting_scope": None, "starting_op_names": None, "excl_scopes": (), "incl_scopes": (),
    "excl_types": (), "incl_types": (), "n_tensors": -1, "lb": 1, "ub": 10000,
    "fuse_swapins": False, "ctrld_strategy": "chain_rule", "swap_branches": False,
    "branch_threshold": 0, "debug": False,
    "debug_level": 1, "cpu_device": "/cpu:0"}
V2_DEFAULTS = {
    "swapout_threshold": -1, "swapin_groupby": -1, "swapin_ahead": -1, "sync_mode": 0,
    "serialization": (), "serialization_by_size": 0, "debug": False, "debug_level": 1,
    "cpu_device": "/cpu:0", "gpu_device": None}


def defaults(function):
    return {name: parameter.default
            for name, parameter in inspect.signature(function).parameters.items()}


class LinesTest(unittest.TestCase):

    def lines(self, run):
        """The logged lines, in order, without the times."""
        with self.assertLogs("tensorflow", "INFO") as logs:
            run()
        lines = [record.getMessage() for record in logs.records]
        return [re.sub(r"took: [0-9.e+-]+ ms", "took: T ms", line) for line in lines
                if line.startswith("[LMS][")]

    def setUp(self):
        level = tf1.logging.get_verbosity()
        self.addCleanup(tf1.logging.set_verbosity, level)
        tf1.logging.set_verbosity(tf1.logging.INFO)

    def test_v1(self):
        graph = tf_common.live(common.graph("mnist_deep"))
        lms = lms_v1.LMS({"adam_optimizer"}, n_tensors=3)
        added = []
        lines = self.lines(lambda: added.extend(lms.run(graph)))
        self.assertEqual(lines, [
            "[LMS][0] Editing model for LMS",
            "[LMS][0] n_tensors: 3",
            "[LMS][0] lb: 1",
            "[LMS][0] ub: 10000",
            "[LMS][0] Edited model is valid and logically equivalent to the original one",
            "[LMS][0] Added %d ops into the model" % len(added),
            "[LMS][0] Editing model for LMS, took: T ms",
            "[LMS][0] 3 tensors will be swapped out(in) to(from) the host"])
        self.assertEqual({op.name for op in added}, set(tf_common.swap_names(graph)))
        self.assertEqual({op.device for op in added}, {"/device:CPU:0"})
        again = self.lines(lambda: self.assertEqual(lms.run(graph), set()))
        self.assertIn("[LMS][0] This model has already been updated with LMS swap operations. LMS "
                      "will not re-process it.", again)

    def test_v2(self):
        graph = tf_common.live(common.graph("resnet50_tf1_b4"))
        lms = lms_v2.LMS(swapout_threshold=40, swapin_ahead=3, swapin_groupby=2)
        lines = self.lines(lambda: lms.run(graph))
        text = "\n".join(lines)
        for line in ("Editing model for LMS", r"The graph has 4762 vertices and \d+ edges\.",
                     r"The graph has [0-9.]+ MiB of learning parameters",
                     r"The largest GPU operation is \S+ consuming [0-9.]+ GiB",
                     r"Original categorized topological sort has \d+ levels",
                     r"  sync_mode: 0 \(Asynchronous memory copy between host and device\)",
                     "  swapout_threshold: 40", "  swapin_ahead: 3", "  swapin_groupby: 2",
                     r"Added \d+ operations to the model \(\d+ swap-out operations \([0-9.]+ GiB\) "
                     r"and \d+ swap-in operations \([0-9.]+ GiB\)\)",
                     "Editing model for LMS, took: T ms"):
            self.assertRegex(text, r"(?m)^\[LMS\]\[0\] %s$" % line)

    def test_v2_not_necessary(self):
        graph = tf_common.live(common.graph("resnet50_tf1_b4"))
        lines = self.lines(lambda: lms_v2.LMS(hardware="v100_nvlink2").run(graph))
        self.assertIn("[LMS][0] LMS is not necessary. Turned LMS off.", lines)
        self.assertEqual(tf_common.swap_names(graph), [])

    def test_autotune_plot_draws_the_step_before_and_after(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "memory.svg")
            graph = tf_common.live(common.graph("resnet50_tf1_b4"))
            lms = lms_v2.LMS(swapout_threshold=40, swapin_ahead=3, swapin_groupby=2)
            lms.autotune_plot = file
            lines = self.lines(lambda: lms.run(graph))
            self.assertIn("[LMS][0] The memory of a step before and after is drawn in " + file, lines)
            picture = xml.etree.ElementTree.parse(file).getroot()
            texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
            for start in ("before: peak ", "after: peak ", "synchronous"):
                self.assertTrue([text for text in texts if text.startswith(start)], start)
            # True has a name for it; and a picture that cannot be written ends no training.
            here = os.getcwd()
            self.addCleanup(os.chdir, here)
            os.chdir(folder)
            graph = tf_common.live(common.graph("mnist_deep"))
            lms = lms_v2.LMS(swapout_threshold=2, swapin_ahead=1, swapin_groupby=0)
            lms.autotune_plot = True
            lms.run(graph)
            self.assertTrue(os.path.exists("tflms_memory.svg"))
            graph = tf_common.live(common.graph("mnist_deep"))
            lms = lms_v2.LMS(swapout_threshold=2, swapin_ahead=1, swapin_groupby=0)
            lms.autotune_plot = "/nowhere/memory.svg"
            with self.assertLogs("tensorflow", "WARNING") as logs:
                self.assertTrue(lms.run(graph))
            self.assertIn("autotune_plot: nothing is drawn: ", "\n".join(logs.output))
            os.chdir(here)


class ParametersTest(unittest.TestCase):

    def test_names_and_defaults(self):
        found = defaults(lms_v1.LMS)
        self.assertEqual({name: found[name] for name in V1_DEFAULTS}, V1_DEFAULTS)
        self.assertEqual(next(iter(found)), "optimizer_scopes")
        found = defaults(lms_v2.LMS)
        self.assertEqual({name: found[name] for name in V2_DEFAULTS}, V2_DEFAULTS)
        for name in ("LMSHook", "LMSSessionRunHook", "LMSKerasCallback"):
            self.assertTrue(hasattr(lms_v1, name) and hasattr(lms_v2, name))
        self.assertTrue(issubclass(lms_v2.LMS, tf.keras.callbacks.Callback))
        self.assertTrue(issubclass(lms_v2.LMS, tf1.train.SessionRunHook))

    def test_each_parameter_arrives(self):
        """The edit is that of spillway.rewrite with the same option, and not the default's."""
        cases = [
            (lms_v1.LMS, dict(excl_scopes={"conv1"})), (lms_v1.LMS, dict(lb=9)),
            (lms_v1.LMS, dict(ctrld_strategy="direct_order")), (lms_v1.LMS, dict(n_tensors=2)),
            (lms_v1.LMS, dict(fuse_swapins=True)), (lms_v1.LMS, dict(incl_types={"Conv2D"})),
            (lms_v2.LMS, dict(sync_mode=3)), (lms_v2.LMS, dict(serialization=[30, "35:45"])),
        ]
        for kind, parameters in cases:
            with self.subTest(**parameters):
                base = {} if kind is lms_v1.LMS else dict(
                    swapout_threshold=2, swapin_ahead=1, swapin_groupby=0)
                strategy = "scope" if kind is lms_v1.LMS else "level"
                # The small one has no level that could be serialized.
                name = "mixed_fp16" if "serialization" in parameters else "mnist_deep"
                bytes_ = common.graph(name)
                lms = kind(**base, **parameters)
                graph = tf_common.live(bytes_)
                lms.run(graph)
                expected = spillway.rewrite(bytes_, strategy=strategy, cpu_device="/cpu:0", **base,
                                            **parameters)
                plain = spillway.rewrite(bytes_, strategy=strategy, cpu_device="/cpu:0", **base)
                self.assertFalse(expected.graph_def == plain.graph_def)  # Too long to print.
                self.assertEqual(self.inputs(graph.as_graph_def()),
                                 self.inputs(tf1.GraphDef.FromString(expected.graph_def)))

    @staticmethod
    def inputs(graph_def):
        return {node.name: sorted(name[:-2] if name.endswith(":0") else name for name in node.input)
                for node in graph_def.node}

    def test_the_filters_of_v2_are_attributes(self):
        graph = tf_common.live(common.graph("mnist_deep"))
        lms = lms_v2.LMS(swapout_threshold=2, swapin_ahead=1, swapin_groupby=0)
        lms.incl_output_by_types = {"Relu"}
        lms.run(graph)
        self.assertEqual({swap.tensor for swap in lms.result.report.swaps},
                         {"conv1/Relu:0", "conv2/Relu:0", "fc1/Relu:0"})

    def test_mistakes(self):
        for kind in (lms_v1.LMS, lms_v2.LMS):
            with self.assertRaisesRegex(TypeError, "no option 'swapp'"):
                kind(swapp=1)
            # In eager execution there is no default graph.
            with self.assertRaisesRegex(spillway.LiveGraphError, "rewrite_function"):
                kind().run(None)
        with self.assertRaises(ValueError):
            lms_v2.LMS(sync_mode=4)
        with self.assertRaises(spillway.InvalidOptionError):
            lms_v1.LMS(lb=0).run(tf_common.live(common.graph("mnist_deep")))

    def test_a_name_that_matches_nothing_is_a_warning_with_the_nearest(self):
        bytes_ = common.graph("mnist_deep")
        for kind, given, without, near in (
                (lms_v1.LMS, dict(optimizer_scopes={"adam_optimiser"}), {}, "'adam_optimizer'"),
                (lms_v1.LMS, dict(optimizer_scopes={"adam_optimizer"}, starting_op_names={
                    "conv1/Reluu"}), dict(optimizer_scopes={"adam_optimizer"}), "'conv1/Relu'"),
                (lms_v1.LMS, dict(excl_scopes={"conv11", "fc1"}), dict(excl_scopes={"fc1"}),
                 "'conv1'"),
                (lms_v1.LMS, dict(starting_scope="conv11/Relu"), {}, "'conv1"),
                (lms_v1.LMS, dict(incl_types={"relu"}), {}, "'Relu'"),
                (lms_v2.LMS, dict(incl_output_by_scopes={"conv11"}), {}, "'conv1'")):
            with self.subTest(**{name: str(value) for name, value in given.items()}):
                level = {} if kind is lms_v1.LMS else dict(
                    swapout_threshold=2, swapin_ahead=1, swapin_groupby=0)
                graph, wanted = tf_common.live(bytes_), tf_common.live(bytes_)
                lms = kind(**level, **given)
                with self.assertLogs("tensorflow", "WARNING") as logs:
                    lms.run(graph)
                name, = (name for name in given if given[name] != without.get(name))
                self.assertRegex("\n".join(logs.output), r"\[LMS\] %s has .*did you mean %s.*; LMS "
                                 r"goes on without it" % (name, near))
                kind(**level, **without).run(wanted)
                self.assertEqual(self.inputs(graph.as_graph_def()),
                                 self.inputs(wanted.as_graph_def()))
                self.assertTrue(tf_common.swap_names(graph))

    def test_without_a_graph_it_is_the_default_one(self):
        bytes_ = common.graph("mnist_deep")
        for lms in (lms_v1.LMS({"adam_optimizer"}),
                    lms_v2.LMS(swapout_threshold=2, swapin_ahead=1, swapin_groupby=0)):
            with tf.Graph().as_default() as graph:
                tf1.import_graph_def(tf1.GraphDef.FromString(bytes_), name="")
                added = lms.run()
            self.assertEqual({op.name for op in added}, set(tf_common.swap_names(graph)))
            self.assertTrue(added)

    def test_what_was_done_is_seen_at_the_verbosity_of_tensorflow_2(self):
        graph = tf_common.live(common.graph("mnist_deep"))
        lms = lms_v1.LMS({"adam_optimizer"})
        with self.assertLogs("tensorflow", "WARNING") as logs:
            lms.run(graph)
        self.assertEqual(sum(lms.result.report.summary in line for line in logs.output), 1)

    def test_fail_open(self):
        graph = tf_common.live(common.graph("mnist_deep"))
        with self.assertWarns(spillway.SpillwayWarning):
            self.assertEqual(
                lms_v1.LMS(server="127.0.0.1:1", retries=0, fail_open=True).run(graph), set())
        self.assertEqual(tf_common.swap_names(graph), [])


class FitTest(unittest.TestCase):
    """Keras's fit in eager style."""

    @staticmethod
    def fit(callback, **compiled):
        tf.keras.utils.set_random_seed(1)
        layers = tf.keras.layers
        model = tf.keras.Sequential([
            layers.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu"),
            layers.Conv2D(8, 3, activation="relu"), layers.Flatten(), layers.Dense(10)])
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      **compiled)
        images = np.random.default_rng(1).normal(size=(32, 12, 12, 1)).astype("f")
        labels = np.random.default_rng(2).integers(0, 10, 32)
        history = model.fit(images, labels, batch_size=16, epochs=2, shuffle=False, verbose=0,
                            callbacks=[callback] if callback else [])
        return model, history.history["loss"]

    def test_result_and_a_line_in_every_way(self):
        expected = self.fit(None)[1]
        for callback in (lms_v1.LMSKerasCallback(),
                         lms_v2.LMS(swapout_threshold=3, swapin_ahead=1, swapin_groupby=0)):
            with self.assertLogs("tensorflow", "WARNING") as logs:
                model, losses = self.fit(callback, jit_compile=False)
            self.assertEqual(losses, expected)
            report = callback.result.report
            self.assertGreater(report.swapped_tensor_count, 0)
            self.assertEqual(sum(report.summary in line for line in logs.output), 1)
            self.assertEqual(sum("lms/swapout" in node.name
                                 for node in callback.result.graph_def.node),
                             report.swapped_tensor_count)
            # The function is there already: another LMS with the same settings learns of it.
            twin = type(callback)(**({} if isinstance(callback, lms_v1.LMSKerasCallback) else dict(
                swapout_threshold=3, swapin_ahead=1, swapin_groupby=0)))
            images = np.zeros((16, 12, 12, 1), "f")
            model.fit(images, np.zeros(16, int), batch_size=16, verbose=0, callbacks=[twin])
            self.assertEqual(twin.result.report, report)

    def test_scopes_that_match_nothing(self):
        callback = lms_v1.LMSKerasCallback({"no_such_optimizer"})
        with self.assertLogs("tensorflow", "WARNING") as logs:
            self.fit(callback, jit_compile=False)
        self.assertIn("'no_such_optimizer'", "\n".join(logs.output))
        self.assertGreater(callback.result.report.swapped_tensor_count, 0)

    def test_a_failure_with_fail_open(self):
        callback = lms_v1.LMSKerasCallback(server="127.0.0.1:1", retries=0, fail_open=True)
        with self.assertWarnsRegex(spillway.SpillwayWarning, "trains as it is"):
            self.fit(callback, jit_compile=False)
        self.assertIsInstance(callback.result.error, spillway.UnavailableError)

    def test_xla_knows_no_swaps(self):
        for callback in (lms_v1.LMSKerasCallback(), lms_v2.LMS()):
            with self.assertRaisesRegex(TypeError, "XLA compiles this model, and knows no swaps; "
                                                   "pass jit_compile=False"):
                self.fit(callback, jit_compile=True)

        @tf.function(jit_compile=True)
        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.tanh(x @ weight) ** 2)
            weight.assign_sub(0.1 * tape.gradient(loss, weight))
            return loss

        weight = tf.Variable(tf.ones((4, 4)))
        made = step.get_concrete_function(tf.TensorSpec((8, 4)))
        with self.assertWarnsRegex(spillway.SpillwayWarning, "jit_compile=True: XLA knows no swaps"):
            spillway.tensorflow.rewrite_function(made, strategy="scope")


KERAS = """
import contextlib, sys
import numpy as np, tensorflow as tf
tf.compat.v1.disable_eager_execution()
from spillway.tensorflow import lms_v1, lms_v2
keras, backend = tf.keras, tf.compat.v1.keras.backend
config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
images = np.random.default_rng(1).normal(size=(64, 12, 12, 1)).astype("f")
labels = np.random.default_rng(2).integers(0, 10, 64)

def fit(*callbacks, ran, default=False):
    backend.clear_session()
    session = tf.compat.v1.Session(config=config)
    backend.set_session(session)
    weights = iter(range(9))
    def conv(kind, *arguments, **more):
        return kind(*arguments, kernel_initializer=tf.compat.v1.glorot_uniform_initializer(
            seed=next(weights)), **more)
    layers = keras.layers
    model = keras.Sequential([
        layers.Input((12, 12, 1)), conv(layers.Conv2D, 8, 3, activation="relu"),
        layers.BatchNormalization(), conv(layers.Conv2D, 8, 3, activation="relu"), layers.Flatten(),
        conv(layers.Dense, 10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    values = [1.5 * value for value in model.get_weights()] if ran else None
    if ran:
        model.set_weights(values)  # Now the session has run the graph.
    with session.as_default() if default else contextlib.nullcontext():
        history = model.fit(images, labels, batch_size=16, epochs=2, shuffle=False, verbose=0,
                            callbacks=list(callbacks))
    swaps = sum("lms/swap" in op.name for op in model.output.graph.get_operations())
    return history.history["loss"], [w.tobytes() for w in model.get_weights()], swaps

for ran in (False, True):
    expected = fit(ran=ran)
    assert expected[2] == 0
    for callback in (lms_v1.LMSKerasCallback(lb=2),
                     lms_v2.LMS(swapout_threshold=3, swapin_ahead=1, swapin_groupby=0)):
        found = fit(callback, ran=ran)
        assert found[2] > 0, "no swaps"
        assert found[:2] == expected[:2], "other numbers"
        print("same", found[2])
# Tuned, with the batch that fit says.
assert fit(lms_v2.LMS(), ran=False)[:2] == fit(ran=False)[:2]
# A session that the program has put in force cannot be replaced.
try:
    fit(lms_v1.LMSKerasCallback(), ran=True, default=True)
except RuntimeError as error:
    print(error.reason)
"""


@common.takes_long
class ProgramTest(unittest.TestCase):
    """In processes of their own, since they switch eager execution off."""

    @unittest.skipUnless(tf_common.KERAS_2, "Keras 3 has no graph mode")
    def test_keras_in_graph_mode(self):
        done = common.python(KERAS)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        self.assertRegex(done.stdout, r"^(same \d+\n){4}SESSION_HAS_RUN\n$")

    def sample(self, name, *arguments):
        code = "import runpy, sys; sys.argv[0] = %r; runpy.run_path(%r, run_name='__main__')" % (
            name, str(common.PACKAGE / "samples" / name))
        done = common.python(code, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        return ([line for line in done.stdout.splitlines() if " loss " in line],
                re.findall(r"Added (\d+) op", done.stderr))

    def test_samples_give_the_same_losses_with_and_without(self):
        # The second one's is an Estimator.
        for name in ("mnist_deep.py", "cnn_mnist.py")[:2 if tf_common.KERAS_2 else 1]:
            expected, none = self.sample(name, "--lms", "none")
            self.assertEqual((len(set(expected)), none), (4, []))
            for lms in ("v1", "v2"):
                with self.subTest(sample=name, lms=lms):
                    losses, added = self.sample(name, "--lms", lms)
                    self.assertEqual(losses, expected)
                    self.assertGreater(int(added[0]), 5)

    def test_a_sample_through_a_server(self):
        with common.server() as address:
            losses, added = self.sample("mnist_deep.py", "--server", address)
        expected, _ = self.sample("mnist_deep.py", "--lms", "none")
        self.assertEqual((losses, len(added)), (expected, 1))


@common.takes_long
class OneProcessTest(unittest.TestCase):
    """With TensorFlow's protobuf and grpcio, in every order of loading."""

    CODE = """
import sys
graph = open(sys.argv[1], "rb").read()
def spill():
    import spillway
    return spillway.rewrite(graph, strategy="scope", server=sys.argv[3] or None).graph_def
def train():
    import tensorflow as tf
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(tf.constant(2.0) * 3)
def rpc():
    import grpc
    from google.protobuf import descriptor_pb2
    descriptor_pb2.FileDescriptorProto.FromString(b"")
    grpc.insecure_channel("127.0.0.1:1").close()
results = [{"s": spill, "t": train, "g": rpc}[step]() for step in sys.argv[2]]
again = spill()
print(len(again), again != graph, all(r == again for r in results if isinstance(r, bytes)))
"""

    def test_every_order(self):
        path = str(common.GRAPHS / "cond_v1" / "graph_shapes.pb")
        graph = common.graph("cond_v1", shapes=True)
        expected = spillway.rewrite(graph, strategy="scope").graph_def
        with common.server() as address:
            for order in ("st", "ts", "sgt", "gts", "tsg"):
                for server in ("", address):
                    with self.subTest(order=order, server=bool(server)):
                        done = subprocess.run(
                            [sys.executable, "-c", self.CODE, path, order, server], text=True,
                            env={**os.environ, "PYTHONPATH": str(common.PACKAGE)},
                            capture_output=True, timeout=common.PATIENCE_S, check=False)
                        self.assertEqual(done.stdout, "%d True True\n" % len(expected),
                                         done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
