"""Which versions of TensorFlow `spillway.tensorflow` is for."""

import unittest
import warnings
from unittest import mock

import common
import tf_common
from tf_common import tf

from spillway.tensorflow import _versions


class VersionsTest(unittest.TestCase):

    def test_this_one(self):
        self.assertIn(tf_common.VERSION, ((2, 15), (2, 16), (2, 21)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _versions.check(tf.__version__)

    def test_spellings(self):
        for version in ("2.15.0.post1", "2.16.0-rc0", "2.20.0-dev20250807", "2.21.0+nv24"):
            _versions.check(version)

    def test_others(self):
        for version in ("1.15.5", "2.14.1", "2.22.0", "3.0.0", "unknown"):
            with self.subTest(version=version):
                with self.assertRaisesRegex(
                        ImportError, r"for TensorFlow 2\.15 to 2\.21, and this is " + version):
                    _versions.check(version)

    def test_others_all_the_same(self):
        with mock.patch.dict("os.environ", {_versions.OVERRIDE: "1"}):
            with self.assertWarnsRegex(UserWarning, "this is 2.99.0"):
                _versions.check("2.99.0")

    def test_it_is_asked_at_import(self):
        """Before anything that another TensorFlow does not have; the package itself needs none."""
        done = common.python("""
import sys, types
tensorflow = types.ModuleType("tensorflow")
tensorflow.__version__ = "2.14.1"
sys.modules["tensorflow"] = tensorflow
import spillway
for name in ("spillway.tensorflow", "spillway.tensorflow.lms_v1", "spillway.tensorflow.lms_v2"):
    try:
        __import__(name)
    except ImportError as error:
        print("is 2.14.1" in str(error))
""")
        self.assertEqual(done.stdout, "True\n" * 3, done.stderr)


if __name__ == "__main__":
    unittest.main()
