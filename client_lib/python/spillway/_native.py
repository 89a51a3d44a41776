"""The C API of libspillway (spillway.h), by ctypes.

The library is loaded at the first call, from the first of these places:

1. the environment variable SPILLWAY_LIBRARY: a file;
2. beside this package, where `pip install` puts it (`spillway/lib/libspillway.so.0`);
3. where the system's loader looks.

ctypes gives up the GIL while a function of the library runs: other threads go on.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
from typing import Any, Callable, Dict, Optional

from spillway import errors

# Of spillway.h; the library's own may be higher.
API_VERSION = 8
SONAME = "libspillway.so.0"
VARIABLE = "SPILLWAY_LIBRARY"
_BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", SONAME)

STAGES = {1: "sending", 2: "rewriting", 3: "receiving"}
PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
# One message of an answer that comes in several.
PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)

_P, _S, _N = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
_OUT = ctypes.POINTER(ctypes.c_void_p)
_PROTOTYPES = {
    "version": (_S,),
    "status_code": (ctypes.c_int32, _P),
    "status_message": (_S, _P),
    "status_reason": (_S, _P),
    "status_metadata_count": (_N, _P),
    "status_metadata_key": (_S, _P, _N),
    "status_metadata_value": (_S, _P, _N),
    "status_free": (None, _P),
    "buffer_data": (_P, _P),
    "buffer_size": (_N, _P),
    "buffer_free": (None, _P),
    "client_options_new": (_P,),
    "client_options_free": (None, _P),
    "client_options_set_target": (_P, _P, _S),
    "client_options_set_max_attempts": (_P, _P, ctypes.c_int32),
    "client_options_set_tls": (_P, _P, _S, _S, _S, _S),
    "client_options_set_token_file": (_P, _P, _S),
    "client_options_set_token_in_clear": (_P, _P, ctypes.c_int32),
    "client_options_set_hedge_after_ms": (_P, _P, ctypes.c_int64),
    "client_new": (_P, _P, _OUT),
    "client_free": (None, _P),
    "call_new": (_P,),
    "call_free": (None, _P),
    "call_set_timeout_ms": (_P, _P, ctypes.c_int64),
    "call_set_keep_best": (_P, _P, ctypes.c_int32),
    "call_set_request_id": (_P, _P, _S),
    "call_set_traceparent": (_P, _P, _S),
    "call_set_token": (_P, _P, _S),
    "call_cancel": (None, _P),
    "call_set_progress": (_P, _P, PROGRESS, _P),
    "rewrite_graph": (_P, _P, _S, _N, _S, _N, _P, _OUT, _OUT),
    "rewrite": (_P, _P, _S, _N, _P, _OUT),
    "get_capabilities": (_P, _P, _P, _OUT),
    "inspect": (_P, _P, _S, _N, _S, _N, _P, PART, _P, _OUT),
    "simulate": (_P, _P, _S, _N, _S, _N, _P, _OUT),
    "explore": (_P, _P, _S, _N, _S, _N, _P, PART, _P, _OUT),
    "diff": (_P, _P, _S, _N, _S, _N, _P, _OUT),
    "draw": (_P, _S, _S, _N, _S, _N, _S, _S, _S, _OUT),
    "text": (_P, _S, _S, _N, _OUT),
    "check": (_P, _S, _N, _S, _N, _OUT),
    "message_from_json": (_P, _S, _S, _N, _OUT),
    "message_to_json": (_P, _S, _S, _N, _OUT),
}

_lock = threading.Lock()
_library: Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    """The library, loaded once. Raises NativeLibraryError."""
    global _library
    with _lock:
        if _library is None:
            _library = _load(_find())
        return _library


def path() -> str:
    """The file, or the name, that the library is loaded from."""
    return _find()


def _find() -> str:
    given = os.environ.get(VARIABLE)
    if given:
        return os.path.abspath(given)
    return _BUNDLED if os.path.exists(_BUNDLED) else SONAME


def _load(name: str) -> ctypes.CDLL:
    try:
        loaded = ctypes.CDLL(name)
    except OSError as error:
        raise errors.NativeLibraryError(
            "Spillway's library cannot be loaded: %s; install the package with its library (pip "
            "install ./client_lib/python after a build), or set %s to %s" % (
                error, VARIABLE, SONAME),
            code="FAILED_PRECONDITION") from error
    try:
        version = loaded.spillway_c_api_version()
        if version < API_VERSION:
            raise AttributeError("its C API has version %d, and %d is needed" % (
                version, API_VERSION))
        for short, (result, *arguments) in _PROTOTYPES.items():
            function = getattr(loaded, "spillway_" + short)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise errors.NativeLibraryError(
            "%s is no library of Spillway for this package (%s); install both of the same version"
            % (name, error), code="FAILED_PRECONDITION") from error
    _check_works(loaded)
    return loaded


def _check_works(loaded: ctypes.CDLL) -> None:
    """The library loads its other half, and Debian's gRPC and protobuf, when it is first used."""
    client = ctypes.c_void_p()
    status = loaded.spillway_client_new(None, ctypes.byref(client))
    if status:
        message = loaded.spillway_status_message(status).decode("utf-8", "replace")
        loaded.spillway_status_free(status)
        raise errors.NativeLibraryError(message, code="FAILED_PRECONDITION")
    loaded.spillway_client_free(client)


def check(status: Optional[int]) -> None:
    """Raises the exception for a status, which it frees; does nothing for NULL."""
    if not status:
        return
    lib = library()
    try:
        def text(name: str, *arguments: int) -> str:
            value = getattr(lib, "spillway_status_" + name)(status, *arguments)
            return (value or b"").decode("utf-8", "replace")
        metadata = {text("metadata_key", i): text("metadata_value", i)
                    for i in range(lib.spillway_status_metadata_count(status))}
        error = errors.make_error(
            lib.spillway_status_code(status), text("message"), text("reason"), metadata)
    finally:
        lib.spillway_status_free(status)
    raise error


def take(buffer: ctypes.c_void_p) -> bytes:
    """The bytes of a buffer, which is freed."""
    lib = library()
    try:
        return ctypes.string_at(lib.spillway_buffer_data(buffer), lib.spillway_buffer_size(buffer))
    finally:
        lib.spillway_buffer_free(buffer)


def produce(function: Callable[..., Optional[int]], *arguments: object) -> bytes:
    """Calls a function whose last argument is an output buffer; its bytes."""
    buffer = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(buffer)))
    return take(buffer)


def text(name: str, content: bytes) -> str:
    """A text for people: `name` and `content` as for spillway_text."""
    return produce(library().spillway_text, name.encode(), content, len(content)).decode(
        "utf-8", "replace")


def message_from_json(name: str, json_text: str) -> bytes:
    """A serialized message of spillway.v1, e.g. `RewriteOptions`."""
    text = json_text.encode()
    return produce(library().spillway_message_from_json, name.encode(), text, len(text))


def message_to_json(name: str, message: bytes) -> str:
    """JSON of a serialized message of spillway.v1."""
    return produce(
        library().spillway_message_to_json, name.encode(), message, len(message)).decode()


def decoded(name: str, message: bytes) -> Dict[str, Any]:
    """A serialized message of spillway.v1 as proto3's JSON."""
    data: Dict[str, Any] = json.loads(message_to_json(name, message))
    return data
