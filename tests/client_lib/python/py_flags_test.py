"""The flags of tf_cnn_benchmarks, with argparse; absl's are in tf_flags_test.py."""

import argparse
import contextlib
import io
import subprocess
import sys
import unittest

import common

common.set_up()
import spillway  # pylint: disable=wrong-import-position
from spillway import flags, options  # pylint: disable=wrong-import-position


def parse(*arguments):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    flags.add_arguments(parser)
    return flags.options_from_flags(parser.parse_args(arguments))


class FlagsTest(unittest.TestCase):

    def test_the_names_are_those_of_tf_cnn_benchmarks(self):
        parser = argparse.ArgumentParser()
        flags.add_arguments(parser)
        self.assertEqual(
            {name for action in parser._actions for name in action.option_strings},
            {"-h", "--help", "--lms", "--lms_lb", "--lms_n_tensors", "--lms_swapout_threshold",
             "--lms_swapin_ahead", "--lms_swapin_groupby", "--lms_sync_mode"})

    def test_without_lms_nothing_is_to_be_done(self):
        self.assertIsNone(parse())
        self.assertIsNone(parse("--lms=false", "--lms_lb", "3"))

    def test_the_flags_choose_the_strategy(self):
        self.assertEqual(parse("--lms"), {})
        self.assertEqual(parse("--lms=True", "--lms_lb=3", "--lms_n_tensors=10"),
                         {"strategy": "scope", "lb": 3, "n_tensors": 10})
        self.assertEqual(parse("--lms", "--lms_swapout_threshold=40", "--lms_swapin_ahead=3",
                               "--lms_swapin_groupby=0", "--lms_sync_mode=3"),
                         {"strategy": "level", "swapout_threshold": 40, "swapin_ahead": 3,
                          "swapin_groupby": 0, "sync_mode": 3})
        # A default that is given chooses, too.
        self.assertEqual(parse("--lms", "--lms_sync_mode=0"), {"strategy": "level", "sync_mode": 0})

    def test_both_versions_are_a_contradiction(self):
        with self.assertRaisesRegex(ValueError, "--lms_lb is of TFLMS v1.*--lms_sync_mode of"):
            parse("--lms", "--lms_sync_mode=1", "--lms_lb=1")

    def test_values_that_are_none(self):
        for arguments in (("--lms=maybe",), ("--lms_lb=x",)):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                parse(*arguments)
        with self.assertRaises(spillway.InvalidOptionError):
            spillway.rewrite(common.graph("cond_v1"), **parse("--lms", "--lms_lb=0"))

    def test_what_comes_out_is_what_rewrite_takes(self):
        graph = common.graph("cond_v1", shapes=True)
        given = parse("--lms", "--lms_lb=2", "--lms_n_tensors=3")
        result = spillway.rewrite(graph, **given)
        self.assertEqual((result.report.scope.lb, result.report.scope.n_tensors), (2, 3))
        self.assertEqual(result.report.swapped_tensor_count, 3)
        level = spillway.rewrite(graph, batch_size=256, **parse(
            "--lms", "--lms_swapout_threshold=2", "--lms_swapin_ahead=1", "--lms_swapin_groupby=0"))
        self.assertEqual(level.report.level.devices[0].swapout_threshold, 2)

    def test_each_flag_is_an_option_and_its_default_the_same(self):
        graph = common.graph("mnist_deep", shapes=True)
        common_keywords = {"scope": {}, "level": dict(batch_size=8)}
        for flag in flags._FLAGS:
            self.assertIn(flag.option, options.STRATEGIES[flag.strategy])
            keywords = dict(strategy=flag.strategy, **common_keywords[flag.strategy])
            self.assertEqual(
                spillway.rewrite(graph, **{flag.option: flag.default}, **keywords).graph_def,
                spillway.rewrite(graph, **keywords).graph_def)

    def test_the_package_does_not_load_absl(self):
        done = subprocess.run(
            [sys.executable, "-c", "import sys, spillway.flags; print('absl' in sys.modules)"],
            env={"PYTHONPATH": str(common.PACKAGE)}, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "False\n")


if __name__ == "__main__":
    unittest.main()
