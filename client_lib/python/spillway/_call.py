"""One call of the library: its destination, its timeout and its progress callback."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, fields
from typing import Any, Callable, List, Optional, Union

from spillway import _native, _worker, errors
from spillway._duration import seconds_of
from spillway._types import Duration, Path, Progress
from spillway._values import bool_of, c_text_of, path_of, whole_of

__all__ = ["Call", "Progress", "Where"]

# The longest time that is passed to the library.
_LONGEST_S = 1e12


@dataclass(frozen=True)
class Where:
    """In process (`server` None), or a server: `host:port`, `unix:/path`, or any name that gRPC
    resolves; several as a list or comma-separated. Also the metadata that the call sends.

    Raises InvalidArgumentError for arguments that conflict, InvalidOptionError for a value of a
    wrong type.
    """

    server: Union[str, List[str], None] = None
    tls: bool = False
    tls_ca: Optional[Path] = None
    tls_cert: Optional[Path] = None
    tls_key: Optional[Path] = None
    tls_server_name: Optional[str] = None
    retries: Optional[int] = None
    token_file: Optional[Path] = None
    token_in_clear: bool = False
    hedge_after: Optional[Duration] = None
    token: Optional[str] = None
    request_id: Optional[str] = None
    traceparent: Optional[str] = None

    def __post_init__(self) -> None:
        server = self.server
        if isinstance(server, (list, tuple)):
            server = ",".join(c_text_of("server", part) or "" for part in server)
        self._set("server", c_text_of("server", server))
        for name in ("tls_ca", "tls_cert", "tls_key", "token_file"):
            self._set(name, path_of(name, getattr(self, name)))
        for name in ("tls_server_name", "token", "request_id", "traceparent"):
            c_text_of(name, getattr(self, name))
        for name in ("tls", "token_in_clear"):
            self._set(name, getattr(self, name) is not None and bool_of(name, getattr(self, name)))
        if self.retries is not None:
            self._set("retries", whole_of("retries", self.retries, 31))
            if self.retries < 0:
                raise errors.bad_option("retries", self.retries, "is below 0; 0 is to try once")
        hedge_after = seconds_of("hedge_after", self.hedge_after)
        if hedge_after is not None and hedge_after <= 0:
            raise errors.bad_option("hedge_after", self.hedge_after, "is not above 0")
        self._set("hedge_after", hedge_after)
        if server is None:
            # retries=0 counts as given, too.
            given = [item.name for item in fields(self)
                     if getattr(self, item.name) is not None and getattr(self, item.name) is not False]
            if given:
                raise errors.wrong_argument("%s need%s server=" % (
                    ", ".join(given), "s" if len(given) == 1 else ""))
        if server is not None and not server:
            raise errors.wrong_argument("server is empty; leave it out for a rewrite in this process")
        # As on the command line: naming a CA or a certificate implies TLS.
        if (self.tls_ca, self.tls_cert, self.tls_key, self.tls_server_name) != (None,) * 4:
            self._set("tls", True)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class Call:
    """A context manager around one call. Not thread-safe."""

    def __init__(self, where: Where, timeout: Optional[Duration],
                 progress: Optional[Progress], keep_best: bool = False) -> None:
        if progress is not None and not callable(progress):
            raise errors.wrong_argument("progress: %s cannot be called; give a function of (stage, "
                                        "done, total)" % errors.shown(progress))
        self._where, self._progress, self._keep_best = where, progress, keep_best
        self._timeout = seconds_of("timeout", timeout)
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
            milliseconds = math.ceil(max(0.0, min(self._timeout, _LONGEST_S)) * 1000)
            _native.check(lib.spillway_call_set_timeout_ms(self.handle, milliseconds))
        _native.check(lib.spillway_call_set_keep_best(self.handle, self._keep_best))
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
                # Where has converted it to a number.
                milliseconds = math.ceil(min(float(where.hedge_after), _LONGEST_S) * 1000)
                _native.check(
                    lib.spillway_client_options_set_hedge_after_ms(options, milliseconds))
            _native.check(lib.spillway_client_new(options, ctypes.byref(self.client)))
        finally:
            lib.spillway_client_options_free(options)

    def _on_progress(self, stage: int, done: int, total: int, _: object) -> None:
        # On a thread of the library. An exception cannot propagate through C, so it ends the call.
        if self._failure is not None or self._progress is None:
            return
        try:
            self._progress(_native.STAGES.get(stage, "working"), done, total)
        except BaseException as error:  # pylint: disable=broad-except
            self._failure = error
            self._cancel()

    def part(self, take: Optional[Callable[[bytes], None]]) -> Any:
        """Returns a callback for the library that passes each part of an answer to `take`; None: no
        callback. Its exceptions end the call and are raised by `run`."""
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
        """Calls a function of the library that returns a status. Raises the status as an exception,
        the exception of the progress callback, or KeyboardInterrupt."""
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


def _text(value: Any) -> Optional[bytes]:
    # Surrogates for bytes in a file's name become bytes again.
    return None if value is None else value.encode("utf-8", "surrogateescape")
