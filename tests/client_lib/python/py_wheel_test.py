"""The wheel: built, and used in a virtual environment with nothing else in it.

A second environment builds it: a system's Python may come without pip (Debian's does).
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import common

common.set_up()

USE = """
import importlib.util, sys, spillway
graph = open(sys.argv[1], "rb").read()
keywords = dict(strategy="scope", lb=5, fuse_swapins=True, min_tensor_bytes=4096)
here = spillway.rewrite(graph, **keywords).graph_def
there = spillway.rewrite(graph, server=sys.argv[2], **keywords).graph_def
assert here == there == open(sys.argv[3], "rb").read(), "other bytes than the program's"
for other in ("tensorflow", "grpc", "google.protobuf", "numpy"):
    assert other.split(".")[0] not in sys.modules, other
assert importlib.util.find_spec("tensorflow") is None
assert spillway.__file__.startswith(sys.prefix), spillway.__file__
print(spillway.library_version())
"""


class WheelTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        # A copy of the wheel's sources, so that the tree stays unchanged.
        source = cls.folder / "tree" / "client_lib" / "python"
        shutil.copytree(common.PACKAGE, source,
                        ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        shutil.copy(common.ROOT / "CMakeLists.txt", cls.folder / "tree")
        shutil.copytree(common.ROOT / "proto", cls.folder / "tree" / "proto")
        cls.source = source
        cls.builder = cls._environment("builder")
        cls.build = cls._pip_wheel(SPILLWAY_LIBRARY=str(common.LIBRARY))
        if "No matching distribution" in cls.build.stdout or "Connection" in cls.build.stdout:
            raise unittest.SkipTest("pip cannot get setuptools here: the wheel is not tested")

    @classmethod
    def _environment(cls, name):
        """The Python of a new virtual environment, which has pip."""
        subprocess.run([sys.executable, "-m", "venv", str(cls.folder / name)], check=True,
                       timeout=common.PATIENCE_S)
        return cls.folder / name / "bin" / "python"

    @classmethod
    def _pip_wheel(cls, **environment):
        inherited = {key: value for key, value in os.environ.items() if key != "SPILLWAY_LIBRARY"}
        return subprocess.run(
            [str(cls.builder), "-m", "pip", "wheel", "--no-deps", "--disable-pip-version-check", "-w",
             str(cls.folder / "wheels"), str(cls.source)], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=common.PATIENCE_S, env={**inherited, **environment},
            check=False)

    def test_it_works_in_a_clean_environment(self):
        self.assertEqual(self.build.returncode, 0, self.build.stdout)
        wheel, = (self.folder / "wheels").glob("spillway_lms-*-py3-none-linux_*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        for name in ("spillway/lib/libspillway.so.0", "spillway/lib/libspillway_client.so.0",
                     "spillway/py.typed", "spillway/tensorflow/lms_v1.py",
                     "spillway_grpc/v1/rewrite_service_pb2_grpc.py", "spillway_grpc/v1/options_pb2.pyi"):
            self.assertIn(name, names)
        # Nothing else goes among users' packages.
        self.assertEqual({name.split("/")[0].split("-")[0] for name in names},
                         {"spillway", "spillway_grpc", "spillway_lms"})
        self.check_stubs(wheel)
        clean = self._environment("venv")
        subprocess.run([str(clean), "-m", "pip", "install", "--quiet", "--no-index",
                        "--disable-pip-version-check", str(wheel)], check=True)
        graph = self.folder / "graph.pb"
        graph.write_bytes(common.graph("cond_v1", shapes=True))
        expected = self.folder / "expected.pb"
        common.command("rewrite", str(graph), "-o", str(expected), "--quiet", "--strategy", "scope",
                       "--lb", "5", "--fuse-swapins", "--min-tensor-bytes", "4096")
        with common.server() as address:
            # `python` gives no library and no path to the package: both must be the wheel's.
            done = common.python(USE, str(graph), address, str(expected), library=None,
                                 package=None, interpreter=str(clean))
        self.assertEqual(done.returncode, 0, done.stderr)
        project = (common.ROOT / "CMakeLists.txt").read_text()
        self.assertIn("VERSION " + done.stdout.strip(), project)
        # The command is the wheel's program: this PATH has no other.
        for command in ([str(clean.with_name("spillway"))], [str(clean), "-m", "spillway"]):
            for word, code in (("version", 0), ("no such command", 2)):
                told = subprocess.run([*command, word], check=False, text=True, capture_output=True,
                                      timeout=common.PATIENCE_S, env={"PATH": str(clean.parent)})
                self.assertEqual(told.returncode, code, told.stderr)
                self.assertIn(done.stdout.strip() if code == 0 else "no such command",
                              told.stdout + told.stderr)

    def test_without_the_program_the_command_says_so(self):
        done = common.python("import os, runpy; os.environ['PATH'] = '/nonexistent'; "
                             "runpy.run_module('spillway', run_name='__main__')")
        self.assertEqual(done.returncode, 1)
        self.assertIn("built without the program spillway", done.stderr)

    def check_stubs(self, wheel):
        """All that is said in the .proto files is there, and nothing is imported by their own names."""
        with zipfile.ZipFile(wheel) as archive:
            stubs = {name: archive.read(name).decode() for name in archive.namelist()
                     if name.startswith("spillway_grpc/") and name.endswith((".py", ".pyi"))}
        protos = sorted(path.stem for path in (common.ROOT / "proto/spillway/v1").glob("*.proto"))
        self.assertEqual(sorted(pathlib.Path(name).stem[:-len("_pb2")] for name in stubs
                                if name.endswith("_pb2.py")), protos)
        for name, text in stubs.items():
            self.assertNotRegex(text, r"(?m)^(from|import) spillway\.", name)
            self.assertNotIn("'spillway.v1.%s'" % pathlib.Path(name).stem, text, name)

    def test_an_incomplete_library_is_refused(self):
        # libspillway.so.0 without the half that it loads would be found out at the first call only.
        alone = self.folder / "alone" / "libspillway.so.0"
        alone.parent.mkdir()
        shutil.copyfile(common.LIBRARY, alone)
        failed = self._pip_wheel(SPILLWAY_LIBRARY=str(alone))
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("libspillway_client.so.0 are not beside " + str(alone), failed.stdout)

    def test_without_protoc_it_says_what_to_install(self):
        failed = self._pip_wheel(SPILLWAY_LIBRARY=str(common.LIBRARY), PATH="/nonexistent")
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("protoc is not on the PATH: install it (Debian: apt-get install "
                      "protobuf-compiler)", failed.stdout)

    def test_without_a_build_it_says_what_to_do(self):
        failed = self._pip_wheel()
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("Build them first (cmake --preset release", failed.stdout)


if __name__ == "__main__":
    unittest.main()
