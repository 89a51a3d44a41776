"""One call of the library: where it goes, how long it may take, who is told of its progress."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Callable, List, Optional

from spillway import _native, _worker

# (stage, done, total): stage is `sending`, `rewriting` or `receiving`; bytes, both 0 where there is
# nothing to count.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Where:
    """In process (`server` None), or a server: `host:port`, `unix:/path`, what gRPC resolves; several
    with commas between. What the server is told of the call is here, too."""

    server: Optional[str] = None
    tls: bool = False
    tls_ca: Optional[str] = None
    tls_cert: Optional[str] = None
    tls_key: Optional[str] = None
    tls_server_name: Optional[str] = None
    retries: Optional[int] = None
    token_file: Optional[str] = None
    token_in_clear: bool = False
    hedge_after: Optional[float] = None
    token: Optional[str] = None
    request_id: Optional[str] = None
    traceparent: Optional[str] = None

    def __post_init__(self) -> None:
        wants_tls = (self.tls_ca, self.tls_cert, self.tls_key, self.tls_server_name) != (None,) * 4
        if wants_tls and not self.tls:
            raise TypeError("tls_ca, tls_cert, tls_key and tls_server_name need tls=True")
        if self.server is None and (self.tls or self.token_in_clear or (
                self.retries, self.token_file, self.hedge_after, self.token, self.request_id,
                self.traceparent) != (None,) * 6):
            raise TypeError("tls, retries, tokens, hedge_after, request_id and traceparent need "
                            "server=")
        if self.server is not None and not self.server:
            raise TypeError("server is empty; leave it out for a rewrite in this process")


class Call:
    """A context manager around one call. Not for several threads."""

    def __init__(self, where: Where, timeout: Optional[float],
                 progress: Optional[Progress]) -> None:
        self._where, self._timeout, self._progress = where, timeout, progress
        self._failure: Optional[BaseException] = None
        self.client = ctypes.c_void_p()
        self.handle: Optional[int] = None

    def __enter__(self) -> "Call":
        try:
            self._open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        lib = _native.library()
        lib.spillway_call_free(self.handle)
        lib.spillway_client_free(self.client)
        self.handle, self.client = None, ctypes.c_void_p()

    def _open(self) -> None:
        lib = _native.library()
        self._make_client(lib)
        self.handle = lib.spillway_call_new()
        if self._timeout is not None:
            milliseconds = int(max(0.0, min(self._timeout, 1e12)) * 1000)
            _native.check(lib.spillway_call_set_timeout_ms(self.handle, milliseconds))
        if self._progress is not None:
            # Kept: the library holds a pointer to it.
            self._callback = _native.PROGRESS(self._on_progress)
            _native.check(lib.spillway_call_set_progress(self.handle, self._callback, None))
        where = self._where
        _native.check(lib.spillway_call_set_request_id(self.handle, _text(where.request_id)))
        _native.check(lib.spillway_call_set_traceparent(self.handle, _text(where.traceparent)))
        _native.check(lib.spillway_call_set_token(self.handle, _text(where.token)))

    def _make_client(self, lib: ctypes.CDLL) -> None:
        where = self._where
        options = lib.spillway_client_options_new()
        try:
            if where.server is not None:
                _native.check(lib.spillway_client_options_set_target(options, _text(where.server)))
            if where.retries is not None:
                _native.check(
                    lib.spillway_client_options_set_max_attempts(options, where.retries + 1))
            if where.tls:
                _native.check(lib.spillway_client_options_set_tls(
                    options, _text(where.tls_ca), _text(where.tls_cert), _text(where.tls_key),
                    _text(where.tls_server_name)))
            _native.check(
                lib.spillway_client_options_set_token_file(options, _text(where.token_file)))
            _native.check(
                lib.spillway_client_options_set_token_in_clear(options, where.token_in_clear))
            if where.hedge_after is not None:
                milliseconds = int(min(where.hedge_after, 1e12) * 1000)
                _native.check(
                    lib.spillway_client_options_set_hedge_after_ms(options, milliseconds))
            _native.check(lib.spillway_client_new(options, ctypes.byref(self.client)))
        finally:
            lib.spillway_client_options_free(options)

    def _on_progress(self, stage: int, done: int, total: int, _: object) -> None:
        # On a thread of the library. An exception cannot pass through C: it ends the call instead.
        if self._failure is not None or self._progress is None:
            return
        try:
            self._progress(_native.STAGES.get(stage, "working"), done, total)
        except BaseException as error:  # pylint: disable=broad-except
            self._failure = error
            self._cancel()

    def part(self, take: Optional[Callable[[bytes], None]]) -> Any:
        """A callback for the library that passes each part of an answer to `take`; None: none. What
        it raises ends the call, and is raised by `run`."""
        def on_part(message: int, size: int, _: object) -> None:
            if self._failure is not None or take is None:
                return
            try:
                take(ctypes.string_at(message, size))
            except BaseException as error:  # pylint: disable=broad-except
                self._failure = error
                self._cancel()

        # Kept: the library holds a pointer to it.
        self._part = _native.PART() if take is None else _native.PART(on_part)
        return self._part

    def run(self, function: Callable[..., Optional[int]], *arguments: Any) -> None:
        """Calls a function of the library that returns a status. Raises what the status says, what
        the progress callback raised, or KeyboardInterrupt."""
        status: List[Optional[int]] = [None]

        def work() -> None:
            status[0] = function(*arguments)

        try:
            _worker.run(work, self._cancel)
        except BaseException as error:  # pylint: disable=broad-except
            self._failure = self._failure or error
        if self._failure is not None:
            _native.library().spillway_status_free(status[0])
            raise self._failure
        _native.check(status[0])

    def _cancel(self) -> None:
        _native.library().spillway_call_cancel(self.handle)


def _text(value: Optional[str]) -> Optional[bytes]:
    return None if value is None else value.encode()
