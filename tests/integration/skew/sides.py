"""The two versions that the tests here put side by side: that of the release at which the API froze
(the commit in RELEASE, which build_release.sh builds) and that of today's tree."""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "tests/server"), str(ROOT / "tests/deploy")]

import replica  # noqa: E402  (it is beside the tests of the server)
from checks import check, finish  # noqa: E402,F401

GRAPHS = replica.common.GRAPHS
# Longest wait for anything that must come; a test that hangs fails.
PATIENCE_S = replica.common.PATIENCE_S


class Side:
    """A version: its programs, and its Python package with its library."""

    def __init__(self, name, build, tree):
        self.name = name
        self.build = pathlib.Path(build)
        self.package = pathlib.Path(tree) / "client_lib/python"

    @property
    def library(self):
        return self.build / "lib/libspillway.so.0"

    def run(self, *arguments, **keywords):
        """`spillway ARGUMENT...` of this version: its CompletedProcess, with output in bytes."""
        return subprocess.run([str(self.build / "bin/spillway"), *map(str, arguments)],
                              capture_output=True, timeout=PATIENCE_S, check=False, **keywords)

    def server(self, *flags):
        """A spillwayd of this version that listens."""
        return replica.Replica(*flags, program=self.build / "bin/spillwayd")


def today():
    return Side("today", replica.common.BUILD, ROOT)


def release():
    """(side, ""), or (None, why it is missing). Raises if it does not build."""
    done = subprocess.run([str(HERE / "build_release.sh")], stdout=subprocess.PIPE, text=True,
                          check=False)
    said = done.stdout.strip()
    if done.returncode == 3:
        return None, said
    if done.returncode != 0:
        raise RuntimeError("the release in RELEASE does not build")
    return Side("release", said, pathlib.Path(said).parent), ""


def folder():
    """A temporary one, as a context."""
    os.umask(0o077)  # Of a cache that others may write to the hook makes no use.
    return tempfile.TemporaryDirectory(prefix="spillway-skew-")
