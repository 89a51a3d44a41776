"""A spillwayd for the tests in Python, and how they count."""

import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/client_lib/python"), str(ROOT / "tests/deploy")]

import common  # noqa: E402  (it is beside the tests of the Python package)
from checks import check, finish  # noqa: E402,F401
from free_port import free_port  # noqa: E402

common.set_up()


class Replica:
    """On a port that it keeps when it is started again, also as another `program`."""

    def __init__(self, *flags, program=None):
        self.port = free_port()
        self.flags = flags
        self.program = program or common.BUILD / "bin/spillwayd"
        self.start()

    @property
    def address(self):
        return "127.0.0.1:%d" % self.port

    def start(self):
        """Returns once it listens."""
        self.process = subprocess.Popen(
            [str(self.program), "--listen", self.address, "--metrics-listen", "none",
             "--log-level", "off", *self.flags], stdout=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            raise RuntimeError("spillwayd does not listen on %s" % self.address)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Drains it; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=common.PATIENCE_S)

    def status(self):
        """Its resident memory in bytes, descriptors, threads."""
        folder = pathlib.Path("/proc/%d" % self.process.pid)
        fields = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        return (int(fields["VmRSS"].split()[0]) * 1024, len(os.listdir(folder / "fd")),
                int(fields["Threads"]))
