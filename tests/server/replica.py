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


class MemoryGroup:
    """A cgroup of so many bytes, as that of a container; the kernel kills who needs more."""

    def __init__(self, folder):
        self.folder = folder

    @classmethod
    def make(cls, limit):
        """None if that is not allowed."""
        for root, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                           ("/sys/fs/cgroup", "memory.max")):
            folder = pathlib.Path(root) / ("spillway-test-%d" % os.getpid())
            try:
                if not (pathlib.Path(root) / "cgroup.procs").exists():
                    continue  # A plain folder, of the other version of cgroups.
                folder.mkdir()
                (folder / file).write_text(str(limit))
                return cls(folder)
            except OSError:
                if folder.exists():
                    folder.rmdir()
        return None

    def enter(self):
        """Moves this process there."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        self.folder.rmdir()


class Replica:
    """On a port that it keeps when it is started again, also as another `program`."""

    def __init__(self, *flags, program=None, group=None):
        self.port = free_port()
        self.flags = flags
        self.program = program or common.BUILD / "bin/spillwayd"
        self.group = group
        self.start()

    @property
    def address(self):
        return "127.0.0.1:%d" % self.port

    def start(self):
        """Returns once it listens."""
        self.process = subprocess.Popen(
            [str(self.program), "--listen", self.address, "--metrics-listen", "none",
             "--log-level", "off", *self.flags], stdout=subprocess.PIPE, text=True,
            preexec_fn=self.group and self.group.enter)
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
