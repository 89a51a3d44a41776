"""The flags of tf_cnn_benchmarks with absl, which comes with TensorFlow."""

import unittest

import common

common.set_up()
from absl import flags as absl_flags  # pylint: disable=wrong-import-position
from spillway import flags  # pylint: disable=wrong-import-position


def parse(*arguments):
    values = absl_flags.FlagValues()
    flags.define_flags(values)
    values(["program", *arguments])
    return flags.options_from_flags(values)


class AbslTest(unittest.TestCase):

    def test_the_flags_choose_the_strategy(self):
        self.assertIsNone(parse())
        self.assertIsNone(parse("--nolms", "--lms_lb=3"))
        self.assertEqual(parse("--lms"), {})
        self.assertEqual(parse("--lms=True", "--lms_lb=3"), {"strategy": "scope", "lb": 3})
        self.assertEqual(parse("--lms", "--lms_swapout_threshold=40", "--lms_sync_mode=1"),
                         {"strategy": "level", "swapout_threshold": 40, "sync_mode": 1})
        with self.assertRaisesRegex(ValueError, "give flags of one of them"):
            parse("--lms", "--lms_sync_mode=1", "--lms_lb=1")

    def test_in_the_program_s_own_flags(self):
        flags.define_flags()
        self.assertFalse(absl_flags.FLAGS["lms"].value)
        with self.assertRaises(absl_flags.DuplicateFlagError):
            absl_flags.DEFINE_boolean("lms", False, "of the script")


if __name__ == "__main__":
    unittest.main()
