#!/usr/bin/env python3
"""Runs the tests of the Python package with unittest. The last line is `N passed, N failed, N
skipped`.

    run.py [--tensorflow] [--short] [-k PATTERN]

Without --tensorflow: tests that need only Python (3.9 or later) and a build. With it: tests that
need TensorFlow 2.15 (tests/tensorflow/requirements.txt), 2.16 or 2.21. --short leaves out the
longest: half of the time with TensorFlow. SPILLWAY_BUILD is the build folder (default: build).
"""

import argparse
import atexit
import os
import pathlib
import sys
import unittest

import common


class Result(unittest.TextTestResult):
    """Counts what passed: a class that is skipped as a whole is one skip, and no test that ran."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def short(suite):
    """The tests of a suite that do not take long."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from short(test)
        elif not (getattr(test, "takes_long", False)
                  or getattr(getattr(test, test._testMethodName), "takes_long", False)):
            yield test


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tensorflow", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("-k", dest="pattern", help="only tests whose name holds PATTERN")
    flags = parser.parse_args()
    common.set_up()
    folder = pathlib.Path(__file__).resolve().parent
    loader = unittest.TestLoader()
    if flags.pattern:
        loader.testNamePatterns = ["*%s*" % flags.pattern]
    suite = loader.discover(str(folder), "tf_*_test.py" if flags.tensorflow else "py_*_test.py")
    if flags.short:
        suite = unittest.TestSuite(short(suite))
    result = unittest.TextTestRunner(
        stream=sys.stdout, verbosity=2, resultclass=Result).run(suite)
    failed = len(result.failures) + len(result.errors)
    print("%d passed, %d failed, %d skipped" % (result.passed, failed, len(result.skipped)))
    return failed != 0 or result.passed == 0


def end(code):
    """Ends the process without the interpreter's own end if TensorFlow is loaded: that destroys the
    iterators of data sets, for whose threads TensorFlow 2.15 may wait forever (~Iterator in
    root_dataset.cc; 2 of 2 runs, after all tests had passed)."""
    if "tensorflow" in sys.modules:
        atexit._run_exitfuncs()  # Temporary folders. pylint: disable=protected-access
        sys.stdout.flush()
        os._exit(int(code))  # pylint: disable=protected-access
    sys.exit(code)


if __name__ == "__main__":
    end(main())
