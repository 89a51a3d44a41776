#!/usr/bin/env python3
"""Trains client_lib/python/samples/process_per_gpu.py with Horovod itself, on 2 and 4 processes of
this machine, with and without swaps. The last line is `N passed, N failed`.

    real_horovod.py [--install] [--venv build/horovod-venv] [--sizes 2,4]

Horovod is built by pip, with Gloo and for TensorFlow on CPUs; nothing of it is patched. With
--install what VENV lacks is installed: 16 minutes on 2 cores that others used as well, so no other
test does it. Without it, and without VENV, all is skipped.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import unittest

import common

common.set_up()
import ranks  # pylint: disable=wrong-import-position

HOROVOD = "horovod==0.28.1"
# What its setup.py needs, which pip then takes from VENV, and the loader of its data.
TOOLS = ("wheel", "setuptools==68.2.2", "cmake==3.27.9", "psutil", "cffi", "cloudpickle", "pyyaml",
         "packaging")
BUILD_MINUTES = 60


def install(venv):
    pip = [str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    requirements = common.ROOT / "tests" / "tensorflow" / "requirements.txt"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run([*pip, "-r", str(requirements), *TOOLS], check=True)
    subprocess.run(
        [*pip, "--no-build-isolation", "--no-binary", "horovod", HOROVOD], check=True,
        timeout=60 * BUILD_MINUTES,
        env={**os.environ, "PATH": "%s:%s" % (venv / "bin", os.environ["PATH"]),
             "HOROVOD_WITH_TENSORFLOW": "1", "HOROVOD_WITH_GLOO": "1", "HOROVOD_WITHOUT_MPI": "1",
             "HOROVOD_WITHOUT_PYTORCH": "1", "HOROVOD_WITHOUT_MXNET": "1"})


class HorovodTest(unittest.TestCase):
    venv = None
    sizes = ()

    def start(self, size, *flags):
        binaries = self.venv / "bin"
        return subprocess.Popen(
            [str(binaries / "horovodrun"), "--gloo", "-np", str(size), str(binaries / "python"),
             str(ranks.SAMPLES / "process_per_gpu.py"), *flags], text=True,
            # Which gradients Horovod sums up together hangs on when they come, and the order of the
            # sums of more than two ranks on that.
            env=ranks.environment(PATH="%s:%s" % (binaries, os.environ["PATH"]),
                                  HOROVOD_FUSION_THRESHOLD="0"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_same_losses_of_each_rank_and_one_request(self):
        for size in self.sizes:
            with self.subTest(size=size), ranks.counting_server() as (address, asked):
                before = ranks.read(ranks.finish([self.start(size, "--no-swaps")]))
                after = ranks.read(ranks.finish([self.start(
                    size, "--gpu-memory", ranks.GPU_MEMORY, "--server", address)]))
                ranks.check_same(self, before, after, size)
                self.assertEqual(asked(), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--venv", type=pathlib.Path, default=common.BUILD / "horovod-venv")
    parser.add_argument("--sizes", default="2,4")
    flags = parser.parse_args()
    HorovodTest.venv = flags.venv.absolute()
    HorovodTest.sizes = [int(size) for size in flags.sizes.split(",")]
    installed = flags.venv / "bin" / "horovodrun"
    if flags.install and not installed.exists():
        install(flags.venv)
    if not installed.exists():
        print("skipped: no Horovod in %s (--install, 16 minutes)" % flags.venv)
        print("0 passed, 0 failed, 1 skipped")
        return 0
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(HorovodTest)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun if not failed else 0, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
