"""Warnings about settings of TensorFlow that plans do not assume."""

import unittest
from unittest import mock

import common
import tf_common  # pylint: disable=unused-import
from tf_common import tf, tf1

from spillway.tensorflow import _settings, lms_v1, lms_v2

CASES = common.ROOT / "tests" / "testing" / "tensorflow_settings.txt"


def cases():
    """Variables, values and warnings."""
    for line in CASES.read_text().splitlines():
        if line and not line.startswith("#"):
            setting, _, warning = line.partition("|")
            yield (*setting.split("=", 1), warning)


class EnvironmentTest(unittest.TestCase):

    def test_each_value_of_each(self):
        count = 0
        for variable, value, warning in cases():
            with self.subTest(variable=variable, value=value):
                self.assertEqual(_settings.of_environment({variable: value}),
                                 [warning] if warning else [])
            count += 1
        self.assertGreater(count, 20)
        self.assertEqual(_settings.of_environment({}), [])

    def test_it_is_said_at_import(self):
        """When the program can still unset it: TensorFlow reads most of them with the first GPU."""
        for variables, lines in (({"TF_GPU_ALLOCATOR": "cuda_malloc_async"}, 1),
                                 ({"TF_CUDNN_USE_AUTOTUNE": "0", "NVIDIA_TF32_OVERRIDE": "0"}, 2),
                                 ({"TF_GPU_ALLOCATOR": "memory_guard"}, 0)):
            with mock.patch.dict("os.environ", variables):
                done = common.python("import spillway.tensorflow")
            self.assertEqual(done.stderr.count("UserWarning"), lines, done.stderr)


# In a process of its own: settings stay.
LIMITS = """
import os, types, warnings
from spillway.tensorflow import _settings

NAME = "TF_CUDNN_WORKSPACE_LIMIT_IN_MB"

def limit(mib, outcome="REWRITTEN"):
    advice = types.SimpleNamespace(environment=["TF_GPU_HOST_MEM_LIMIT_IN_MB=9", "%s=%s" % (NAME, mib)])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        _settings.limit_workspaces(types.SimpleNamespace(advice=advice, outcome=outcome))
    return os.environ.get(NAME), [str(w.message).rpartition(": ")[2] for w in found]

os.environ.pop(NAME, None)  # Of this test's process, which may have rewritten a step before.
_settings.limit_workspaces(None)
os.environ["TF_CUDNN_USE_AUTOTUNE"] = "0"
assert limit(256) == (None, []), "convolutions would fail"
del os.environ["TF_CUDNN_USE_AUTOTUNE"]
os.environ[NAME] = "100"
assert limit(64) == ("100", []), "the job's own"
os.environ["SPILLWAY_WORKSPACE_LIMIT_IN_MB"] = "128"  # Of `spillway run`; the job has set 100 since.
assert limit(64) == ("100", []), "the job's own"
del os.environ[NAME]
for odd in (0, -1, "", "x", "1 2", 10**10):  # From a server.
    assert limit(odd) == (None, []), odd
assert limit(256, "DRY_RUN") == (None, [])
os.environ[NAME] = ""  # Unset, to TensorFlow.
assert limit(256) == ("256", [])
assert limit(512) == ("256", [])
assert limit(64) == ("64", ["set %s=64 before the program starts" % NAME]), limit(64)
_settings._limit = 0
os.environ[NAME] = "128"
assert limit(200) == ("128", []) and limit(65)[0] == "65", "of spillway run"
assert "TF_GPU_HOST_MEM_LIMIT_IN_MB" not in os.environ
print("passed")
"""

PROGRAM = """
import tensorflow as tf, warnings, spillway.tensorflow

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.tanh(x @ weight) ** 2)
    weight.assign_sub(0.1 * tape.gradient(loss, weight))
    return loss

weight = tf.Variable(tf.ones((4, 4)))
made = step.get_concrete_function(tf.TensorSpec((8, 4)))

def said():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        spillway.tensorflow.rewrite_function(made, strategy="scope")
    return sorted(str(one.message).partition(":")[0] for one in found
                  if one.category is UserWarning)

print(said())
tf.config.experimental.enable_op_determinism()
tf.config.experimental.enable_tensor_float_32_execution(False)
tf.config.optimizer.set_jit("autoclustering")
print(said(), said())
"""


class ProgramTest(unittest.TestCase):

    def test_what_the_program_sets(self):
        done = common.python(PROGRAM)
        before, after = done.stdout.splitlines()[-2:]
        self.assertEqual(before, "[]", done.stderr)
        self.assertEqual(after, str([
            "enable_op_determinism was called",
            "enable_tensor_float_32_execution(False) was called",
            "global_jit_level (set_jit) is on"]) + " []")  # Once.

    def test_the_least_plan_limits_workspaces(self):
        done = common.python(LIMITS)
        self.assertEqual(done.stdout, "passed\n", done.stderr)

    def test_what_a_session_is_made_with(self):
        config = tf1.ConfigProto()
        self.assertEqual(_settings.of_config(config), [])
        config.gpu_options.allow_growth = True
        config.gpu_options.experimental.disallow_retry_on_allocation_failure = True
        config.graph_options.optimizer_options.global_jit_level = -1  # Off.
        growth, retry = _settings.of_config(config)
        self.assertRegex(growth, r"^memory growth is on .*; leave it out$")
        self.assertRegex(retry, "^disallow_retry_on_allocation_failure is set: .*; leave it out$")
        # The variable is the stronger one, if it is a bool to TensorFlow.
        for value, count in (("true", 1), ("false", 1), ("1", 2)):
            with mock.patch.dict("os.environ", TF_FORCE_GPU_ALLOW_GROWTH=value):
                self.assertEqual(len(_settings.of_config(config)), count, value)

    def test_threads_of_a_session(self):
        """More than there are GPUs: of each, one operation may wait for memory at a time."""
        for threads, gpus, count in ((0, 8, 0), (2, 0, 0), (1, 0, 1), (-1, 1, 1), (2, 1, 0), (2, 2, 1)):
            config = tf1.ConfigProto(inter_op_parallelism_threads=threads)
            with mock.patch.object(tf.config, "list_physical_devices", return_value=[None] * gpus):
                found = _settings.of_config(config)
            self.assertEqual(len(found), count, (threads, gpus))
            for sentence in found:
                self.assertRegex(sentence, "^inter_op_parallelism_threads is %d: .* leave it out, or "
                                 % threads)

    def test_hooks_see_the_session(self):
        config = tf1.ConfigProto()
        config.gpu_options.allow_growth = True
        for hook in (lms_v1.LMSSessionRunHook, lms_v2.LMS):
            _settings._said.clear()
            with self.assertWarnsRegex(UserWarning, "memory growth is on"), \
                    tf1.Session(graph=tf.Graph(), config=config) as session:
                hook().after_create_session(session, None)


if __name__ == "__main__":
    unittest.main()
