"""What editors see of the functions in TensorFlow."""

import inspect
import unittest

import common  # pylint: disable=unused-import
import tf_common  # pylint: disable=unused-import
from py_generated_test import doors_of

import spillway
import spillway.tensorflow
from spillway import _doors, options
from spillway.tensorflow import lms_v1, lms_v2


class SignatureTest(unittest.TestCase):

    def check(self, file, function, name):
        own, keywords = doors_of("tensorflow/" + file)[name]
        own = [parameter for parameter in own if parameter != "self"]
        signature = inspect.signature(function)
        self.assertEqual(list(signature.parameters),
                         own + [key for key in _doors.names(keywords) if key not in own])
        self.assertFalse(set(own) & set(_doors.names(keywords)))
        return set(signature.parameters)

    def test_functions(self):
        every = options.COMMON | options.STEP | options.HARDWARE | frozenset().union(
            *options.STRATEGIES.values()) | {
                "keep_best", *inspect.signature(spillway.strip).parameters}
        found = self.check("_live_graph.py", spillway.tensorflow.rewrite_graph, "rewrite_graph")
        self.assertEqual(found, every - {"patch"} | {"graph", "strategy", "plan"})
        found = self.check("_function.py", spillway.tensorflow.rewrite_function,
                           "rewrite_function")
        self.assertEqual(found - {"function"}, every - {"patch", "save_plan", "graph"} | {
            "strategy", "plan"})
        found = self.check("_function.py", spillway.tensorflow.rewrite_train_function,
                           "rewrite_train_function")
        self.assertEqual(found - {"model", "on_rewrite"}, every - {
            "patch", "save_plan", "graph"} | {"strategy", "plan"})

    def test_lms(self):
        step = options.STEP | options.HARDWARE | options.COMMON
        call = {*_doors.names(_doors.CallKeywords), "fail_open"}
        found = set(inspect.signature(lms_v1.LMS).parameters)
        self.assertEqual(found, options.STRATEGIES["scope"] | step | call | {"graph"})
        for kind in (lms_v1.LMSSessionRunHook, lms_v1.LMSKerasCallback):
            parameters = inspect.signature(kind).parameters
            self.assertEqual({name.replace("_override", "") for name in parameters}, found)
            self.assertEqual({name: parameters[name].default for name in ("lb", "ub", "debug_level")},
                             {"lb": 1, "ub": 10000, "debug_level": 1})
        found = set(inspect.signature(lms_v2.LMS).parameters)
        self.assertEqual(found, options.STRATEGIES["level"] | step | call | {
            "debug", "debug_level", "gpu_device"})

    def test_each_keyword_is_taken(self):
        """A signature that named one that is none would be worse than none."""
        for kind in (lms_v1.LMS, lms_v1.LMSSessionRunHook, lms_v1.LMSKerasCallback, lms_v2.LMS):
            more = {name: None for name, parameter in inspect.signature(kind).parameters.items()
                    if parameter.kind is inspect.Parameter.KEYWORD_ONLY and
                    parameter.default is None and name not in ("server", "cpu_device")}
            kind(**more)


if __name__ == "__main__":
    unittest.main()
