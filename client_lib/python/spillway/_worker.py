"""Runs a call of C so that Ctrl-C can end it.

A call of C cannot be interrupted by Python: a signal's handler runs when the call is back. So, in
the main thread, which is the one that Python handles signals in, calls are made on another thread;
the main thread waits for it in a way that signals do interrupt. One thread serves all calls and
stays: its memory is warm, where a new one for each would make a rewrite a tenth slower.
"""

from __future__ import annotations

import os
import queue
import threading
from typing import Callable, List, Optional

# The kernel may give a signal to any thread, and only one for the main thread ends its wait: so it
# looks up now and then.
_SLICE_S = 0.1

_tasks: Optional["queue.SimpleQueue[Callable[[], None]]"] = None


def run(function: Callable[[], None], cancel: Callable[[], None]) -> None:
    """Calls the function. On Ctrl-C calls `cancel`, waits until the function is back, since its
    inputs and outputs are the caller's, and raises."""
    if threading.current_thread() is not threading.main_thread():
        function()
        return
    failures: List[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            function()
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)
        finally:
            done.set()

    _queue().put(work)
    try:
        while not done.wait(_SLICE_S):
            pass
    except BaseException:
        cancel()
        while not done.is_set():
            try:
                done.wait()
            except KeyboardInterrupt:
                pass
        raise
    if failures:
        raise failures[0]


def _queue() -> "queue.SimpleQueue[Callable[[], None]]":
    """Of the thread, which is started at the first call. Only the main thread comes here."""
    global _tasks
    if _tasks is None:
        tasks: "queue.SimpleQueue[Callable[[], None]]" = queue.SimpleQueue()
        threading.Thread(target=_loop, args=(tasks,), name="spillway", daemon=True).start()
        _tasks = tasks
    return _tasks


def _loop(tasks: "queue.SimpleQueue[Callable[[], None]]") -> None:
    while True:
        tasks.get()()


def _forget() -> None:
    """A forked child has no such thread."""
    global _tasks
    _tasks = None


os.register_at_fork(after_in_child=_forget)
