"""What several tests share: where things are, graphs, a server."""

import contextlib
import gzip
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "client_lib" / "python"
GRAPHS = ROOT / "tests" / "graphs"
BUILD = pathlib.Path(os.environ.get("SPILLWAY_BUILD", ROOT / "build")).resolve()
LIBRARY = BUILD / "lib" / "libspillway.so.0"
# Longest wait for anything that must come; a test that hangs fails.
PATIENCE_S = 120

# With these, two runs of TensorFlow on CPUs give the same bits.
TENSORFLOW = {
    "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}


def takes_long(test):
    """Marks a test, or a class of tests, that run.py --short leaves out."""
    test.takes_long = True
    return test


def set_up():
    """The package of this tree, with the library of this build."""
    os.environ["SPILLWAY_LIBRARY"] = str(LIBRARY)
    os.environ.update(TENSORFLOW)
    # Servers are on this machine, never behind a proxy.
    os.environ["no_proxy"] = os.environ["no_grpc_proxy"] = "127.0.0.1"
    if str(PACKAGE) not in sys.path:
        sys.path.insert(0, str(PACKAGE))


def graph(name, shapes=False):
    """The bytes of a test graph."""
    for file in (("graph_shapes.pb",) if shapes else ("graph.pb", "graph_shapes.pb")):
        path = GRAPHS / name / file
        if path.exists():
            return path.read_bytes()
        if path.with_name(file + ".gz").exists():
            return gzip.decompress(path.with_name(file + ".gz").read_bytes())
    raise FileNotFoundError(name)


def python(code, *arguments, library=LIBRARY, package=PACKAGE, interpreter=sys.executable):
    """Runs a program in a process of its own; its CompletedProcess, with text."""
    environment = {**os.environ, "PYTHONPATH": str(package or "")}
    environment.pop("SPILLWAY_LIBRARY", None)
    if library is not None:
        environment["SPILLWAY_LIBRARY"] = str(library)
    return subprocess.run([interpreter, "-c", code, *arguments], env=environment, text=True,
                          capture_output=True, timeout=PATIENCE_S, check=False)


@contextlib.contextmanager
def server(*flags):
    """A spillwayd on a port of its own: `host:port`."""
    with subprocess.Popen(
            [str(BUILD / "bin" / "spillwayd"), "--listen", "127.0.0.1:0",
             "--metrics-listen", "none", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            line = process.stdout.readline()  # It prints its address when it listens.
            if not line:
                raise RuntimeError("spillwayd did not start")
            yield line.split()[-1]
        finally:
            process.terminate()


def command(*arguments, stdin=None):
    """The output of the program `spillway`."""
    return subprocess.run([str(BUILD / "bin" / "spillway"), *arguments], input=stdin, check=True,
                          stdout=subprocess.PIPE, timeout=PATIENCE_S).stdout
