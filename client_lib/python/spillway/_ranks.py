"""Communication between the ranks of a job: by Horovod, or through a folder that all can access.

Both have two calls, which all ranks must make in the same order:
  everyone(what, value): the values of all ranks, in their order.
  from_first(what, value): the value of rank 0; those of others are ignored.
Values are bytes. Neither waits longer than the time limit: DeadlineExceededError names the missing
ranks. Not thread-safe.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import threading
import time
import uuid
from typing import Any, Callable, List, Optional, Tuple

from spillway import errors
from spillway._values import path_of, whole_of

# Between two polls of the folder.
_POLL_SECONDS = 0.05


def timed_out(message: str) -> errors.DeadlineExceededError:
    return errors.DeadlineExceededError(message, code="DEADLINE_EXCEEDED", reason="STOPPED")


class HorovodRanks:
    """Uses `broadcast_object` of a Horovod module, or an object with its `rank`, `size`,
    `local_size` and `broadcast_object(value, root_rank=, name=)`."""

    def __init__(self, hvd: Any, wait: float) -> None:
        self._hvd, self._wait = hvd, wait
        self.rank, self.size = int(hvd.rank()), int(hvd.size())
        self.local_size = int(hvd.local_size())

    def everyone(self, what: str, value: bytes) -> List[bytes]:
        return self._limited(what, lambda: [
            self._broadcast("%s.%d" % (what, rank), value, rank) for rank in range(self.size)])

    def from_first(self, what: str, value: bytes) -> bytes:
        return self._limited(what, lambda: self._broadcast(what, value, 0))

    def _broadcast(self, what: str, value: bytes, root: int) -> bytes:
        arguments = dict(root_rank=root, name="spillway." + what)
        tf = sys.modules.get("tensorflow")
        module = getattr(self._hvd, "__name__", "")
        if tf is None or not module.startswith("horovod.tensorflow") or tf.executing_eagerly():
            return self._hvd.broadcast_object(value, **arguments)
        # In graph mode Horovod adds ops to the default graph and runs them: not in the job's graph,
        # and not on a GPU, which the job has yet to choose.
        config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})
        with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
            return self._hvd.broadcast_object(value, session=session, **arguments)

    def _limited(self, what: str, call: Callable[[], Any]) -> Any:
        """Horovod's calls have no time limit; a thread that hangs in one does not keep the process
        from exiting."""
        results: List[Any] = []
        failures: List[BaseException] = []

        def work() -> None:
            try:
                results.append(call())
            except BaseException as error:  # pylint: disable=broad-except
                failures.append(error)

        thread = threading.Thread(target=work, daemon=True, name="spillway-horovod")
        thread.start()
        thread.join(self._wait)
        if failures:
            raise failures[0]
        if not results:
            raise timed_out("rank %d waited %g s for the other ranks (%s); check "
                            "them, or give wait= more seconds" % (self.rank, self._wait, what))
        return results[0]


class FolderRanks:
    """Uses files in a folder that all ranks can access and no other job uses. Files are written
    atomically, by a rename. Files of an earlier run are ignored: rank 0 creates a new subfolder for
    each exchange, and confirms the files of the others in it.

    Raises UnavailableError if the folder cannot be used, DeadlineExceededError if a rank does not
    arrive.
    """

    def __init__(self, folder: str, rank: int, size: int, local_size: int, wait: float) -> None:
        folder = path_of("folder", folder) or ""
        rank, size = whole_of("rank", rank, 32), whole_of("size", size, 32)
        local_size = whole_of("local_size", local_size, 32)
        if not 0 <= rank < size or not 1 <= local_size <= size:
            raise errors.InvalidOptionError(
                "rank %d of %d with %d on this machine: rank is 0 to size - 1, local_size 1 to size" % (
                    rank, size, local_size), code="INVALID_ARGUMENT", reason="BAD_OPTION")
        self.rank, self.size, self.local_size = rank, size, local_size
        self._top, self._wait = folder, wait
        self._folder = self._open() if rank == 0 else self._join()

    def everyone(self, what: str, value: bytes) -> List[bytes]:
        self._write(os.path.join(self._folder, "%s.%d" % (what, self.rank)), value)
        return self._all(what)

    def from_first(self, what: str, value: bytes) -> bytes:
        path = os.path.join(self._folder, what)
        if self.rank == 0:
            self._write(path, value)
            return value
        return self._wait_for(lambda: self._read(path), 0, what)

    @property
    def _current(self) -> str:
        return os.path.join(self._top, "current")

    def _open(self) -> str:
        """As rank 0: creates a folder and writes its name to the file `current`."""
        before = self._read(self._current)
        name = uuid.uuid4().hex
        folder = os.path.join(self._top, name)
        try:
            os.makedirs(folder)
        except OSError as error:
            raise self._error(error) from error
        self._write(self._current, name.encode())
        if before is not None and self._is_name(before):
            shutil.rmtree(os.path.join(self._top, before.decode()), ignore_errors=True)
        self._folder = folder
        came = self._all("hello", ranks=range(1, self.size))
        self._write(os.path.join(folder, "welcome"), json.dumps(
            [nonce.decode("ascii", "replace") for nonce in came]).encode())
        return folder

    def _join(self) -> str:
        """As another rank: enters the folder that `current` names, once rank 0 has confirmed that
        it read the file of this process, not that of an earlier one."""
        nonce = uuid.uuid4().hex
        seen: Optional[str] = None

        def welcomed() -> Optional[str]:
            nonlocal seen
            current = self._read(self._current)
            if current is None or not self._is_name(current):
                return None
            folder = os.path.join(self._top, current.decode())
            if folder != seen:
                if not self._write(os.path.join(folder, "hello.%d" % self.rank), nonce.encode()):
                    return None  # From an earlier run, and just removed.
                seen = folder
            welcome = self._read(os.path.join(folder, "welcome"))
            return folder if welcome is not None and nonce in json.loads(welcome) else None

        return self._wait_for(welcomed, 0, "welcome")

    @staticmethod
    def _is_name(content: bytes) -> bool:
        """Whether it is one of our names: a foreign file must not lead elsewhere."""
        return len(content) == 32 and all(byte in b"0123456789abcdef" for byte in content)

    def _all(self, what: str, ranks: Optional[range] = None) -> List[bytes]:
        found: List[bytes] = []
        deadline = time.monotonic() + self._wait
        for rank in range(self.size) if ranks is None else ranks:
            path = os.path.join(self._folder, "%s.%d" % (what, rank))
            found.append(self._wait_for(functools.partial(self._read, path), rank, what, deadline))
        return found

    def _wait_for(self, look: Callable[[], Any], whom: int, what: str,
                  deadline: Optional[float] = None) -> Any:
        if deadline is None:
            deadline = time.monotonic() + self._wait
        while True:
            found = look()
            if found is not None:
                return found
            if time.monotonic() >= deadline:
                raise timed_out(
                    "rank %d waited %g s for rank %d in %r (%s); check that it runs, give wait= "
                    "more seconds, and the same folder to all %d ranks" % (
                        self.rank, self._wait, whom, self._top, what, self.size))
            time.sleep(_POLL_SECONDS)

    def _read(self, path: str) -> Optional[bytes]:
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error(error) from error

    def _write(self, path: str, value: bytes) -> bool:
        """False: the folder is gone."""
        partial = "%s.%s.partial" % (path, uuid.uuid4().hex)
        try:
            with open(partial, "wb") as file:
                file.write(value)
            os.replace(partial, path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._error(error) from error
        return True

    def _error(self, error: OSError) -> errors.UnavailableError:
        return errors.UnavailableError("the folder %r cannot be used: %s; give one that all ranks "
                                       "can write to" % (self._top, error), code="UNAVAILABLE")


# (rank, size, local size) as launchers give them to their processes.
_LAUNCHERS: Tuple[Tuple[str, str, str], ...] = (
    ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE"),
)


def from_environment() -> Optional[Tuple[int, int, int]]:
    """(rank, size, local size) from the environment; None if no known launcher set them."""
    for names in _LAUNCHERS:
        values = [os.environ.get(name, "") for name in names]
        if all(value.isdigit() for value in values):
            rank, size, local_size = map(int, values)
            return rank, size, local_size
    return None
