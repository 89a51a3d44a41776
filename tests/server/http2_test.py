#!/usr/bin/env python3
"""What no gRPC client would send, byte by byte, to a spillwayd without a proxy: each is refused or
ignored, the server neither dies nor grows nor keeps the connection's descriptor, and serves the next
request. (Floods: tests/deploy/proxy_test.py.)"""

import gzip
import random
import socket
import struct
import sys
import time

from replica import Replica, check, common, finish  # First: it says where the next one is.
import http2
from http2 import (ACKNOWLEDGE, CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING,
                   PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, literal, message,
                   request, upload_header)

# For an answer that must come; and for possible silence.
ANSWER_S = 10
SILENCE_S = 0.3
SETTLE_S = 20
GROWTH_BYTES = 32 << 20
BOMB_BYTES = 256 << 20

UNIMPLEMENTED = b"12"


def call(headers, *data):
    """A request on stream 1: its headers, then DATA, the last of which ends it."""
    frames = frame(HEADERS, END_HEADERS | (0 if data else END_STREAM), 1, headers)
    for i, payload in enumerate(data):
        frames += frame(DATA, END_STREAM if i + 1 == len(data) else 0, 1, payload)
    return frames


def gzipped(payload):
    """A message in gzip, with the headers that say so."""
    return call(request(b"Rewrite") + literal(b"grpc-encoding", b"gzip"),
                *chunks(message(gzip.compress(payload), compressed=1)))


def chunks(payload, size=16384):  # The largest frame that needs no SETTINGS.
    return [payload[at:at + size] for at in range(0, len(payload), size)]


# Bytes after the preface and empty SETTINGS. Of RFC 9113's errors gRPC must end the connection
# (True) or may go on (False).
FRAMES = {
    "a frame above the largest size": (True, b"\xff\xff\xff" + bytes([DATA, 0]) + b"\0\0\0\1" + b"x" * 65536),
    "a frame of an unknown type": (False, frame(0xee, 0xff, 7, b"whatever")),
    "DATA on stream 0": (False, frame(DATA, 0, 0, b"x" * 100)),
    "DATA on a stream that is not open": (False, frame(DATA, 0, 5, b"x" * 100)),
    "HEADERS on an even stream": (False, frame(HEADERS, END_HEADERS, 2, request())),
    "HEADERS on stream 0": (False, frame(HEADERS, END_HEADERS, 0, request())),
    "CONTINUATION without HEADERS": (True, frame(CONTINUATION, END_HEADERS, 1, request())),
    "DATA between HEADERS and CONTINUATION": (
        True, frame(HEADERS, 0, 1, request()) + frame(DATA, 0, 1, b"x")),
    "PUSH_PROMISE from a client": (False, frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2" + request())),
    "RST_STREAM of a stream that never was": (False, frame(RST_STREAM, 0, 9, CANCEL)),
    "RST_STREAM of 3 bytes": (True, frame(HEADERS, END_HEADERS, 1, request()) + frame(RST_STREAM, 0, 1, b"\0\0\0")),
    "a stream that depends on itself": (False, frame(PRIORITY, 0, 3, struct.pack(">IB", 3, 1))),
    "padding longer than its frame": (
        False, frame(HEADERS, END_HEADERS | PADDED, 1, b"\xff" + request())),
    "PING of 7 bytes": (True, frame(PING, 0, 0, b"1234567")),
    "SETTINGS of 5 bytes": (True, frame(SETTINGS, 0, 0, b"12345")),
    "SETTINGS with a window above 2^31": (True, frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 31))),
    "WINDOW_UPDATE by 0": (False, frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0))),
    "WINDOW_UPDATE beyond 2^31": (
        False, frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 1)) * 4),
    "GOAWAY from the client": (False, frame(GOAWAY, 0, 0, struct.pack(">II", 1, 0)) + call(request())),
    "HPACK: an index that nobody gave": (True, call(b"\xff\xff\x7f")),
    "HPACK: an integer without end": (True, call(b"\xff" * 200)),
    "HPACK: a length beyond the block": (True, call(b"\0\x7f\xff\xff\xff\x07ab")),
    "HPACK: a table of 4 GiB": (True, call(b"\x3f\xe1\xff\xff\xff\x0f" + request())),
    "HPACK: no Huffman code": (False, call(b"\0\x84\xff\xff\xff\xff\x84\xff\xff\xff\xff" + request())),
    "headers of 1 MiB": (False, frame(HEADERS, 0, 1, request()) + b"".join(
        frame(CONTINUATION, 0, 1, literal(b"x-more", b"m" * 100) * 100) for _ in range(100)) + frame(
            CONTINUATION, END_HEADERS, 1, literal(b"x-last", b"l"))),
    "binary metadata that is not base64": (False, call(request() + literal(b"x-bin", b"!!!not base64!!!"))),
    "a header's name in capitals": (False, call(request() + literal(b"X-Capital", b"x"))),
    "a request id with line breaks": (False, call(request() + literal(b"x-request-id", b"a\r\nb"))),
    "a timeout that is no number": (False, call(request() + literal(b"grpc-timeout", b"99999999999999Q"))),
    "no headers at all": (False, call(b"")),
    "a message that announces 4 GiB": (False, call(request(), b"\0\xff\xff\xff\xff" + b"x" * 1000)),
    "a message cut short": (False, call(request(), b"\0\0\0\1\0" + b"x" * 10)),
    "a message of 3 of its 5 bytes of framing": (False, call(request(), b"\0\0\0")),
    "a message with a flag that is not defined": (False, call(request(), b"\7\0\0\0\1x")),
    "a compressed message without an encoding": (False, call(request(), message(b"x" * 100, compressed=1))),
    "a stream that is reset in its message": (False, frame(HEADERS, END_HEADERS, 1, request()) + frame(
        DATA, 0, 1, upload_header(1 << 20)) + frame(RST_STREAM, 0, 1, CANCEL) + frame(DATA, 0, 1, b"late")),
    "gzip that becomes %d MiB" % (BOMB_BYTES >> 20): (False, gzipped(bytes(BOMB_BYTES))),
}

# Whole connections that are not HTTP/2.
OTHERS = {
    "HTTP/1.1": b"GET / HTTP/1.1\r\nHost: test\r\n\r\n",
    "a TLS handshake where there is no TLS": bytes.fromhex("16030102000100") + b"\x01\xfc\x03\x03" + bytes(32),
    "noise": random.Random(1).randbytes(100_000),
    "half of the preface": http2.PREFACE[:12],
    "nothing": b"",
}

# With the status that a call must end with.
CALLS = {
    "a method that there is not": (call(request(b"NoSuchMethod"), message(b"")), UNIMPLEMENTED),
    "compression that is off": (gzipped(b"graph"), UNIMPLEMENTED),
}


def exchange(connection, payload, is_enough=lambda said: False, wait_s=SILENCE_S):
    """Sends it, and reads until that is enough or the server has ended the connection (which are
    True), or has been silent for `wait_s` (False); and the bytes read."""
    said = b""
    try:
        connection.settimeout(ANSWER_S)
        connection.sendall(payload)
        connection.settimeout(wait_s)
        while not is_enough(said):
            more = connection.recv(1 << 16)
            if not more:
                break
            said += more
    except socket.timeout:
        return False, said
    except OSError:
        pass
    return True, said


def has_goaway(said):
    """By which gRPC ends a connection; it then waits for the other side."""
    at = 0
    while at + 9 <= len(said):
        if said[at + 3] == GOAWAY:
            return True
        at += 9 + int.from_bytes(said[at:at + 3], "big")
    return False


class Watched:
    """The server, and its required state after each case."""

    def __init__(self, spillway):
        self.spillway = spillway
        self.server = Replica()
        self.graph = common.graph("mnist_deep")
        self.expected = spillway.rewrite(self.graph, strategy="scope").graph_def
        self.serves()  # Threads and arenas are there.
        self.memory, self.descriptors, _ = self.server.status()

    def serves(self):
        answer = self.spillway.rewrite(self.graph, strategy="scope", server=self.server.address)
        return answer.graph_def == self.expected

    def problem(self):
        """Of a server that has been spoken to badly; empty: none."""
        if self.server.process.poll() is not None:
            return "the server has ended with %d" % self.server.process.returncode
        grown = self.server.status()[0] - self.memory
        if grown > GROWTH_BYTES:
            return "it grew by %d bytes" % grown
        return "" if self.serves() else "another answer than before"


def main():
    import spillway  # pylint: disable=import-outside-toplevel
    watched = Watched(spillway)
    port = watched.server.port
    for name, (must_end, payload) in FRAMES.items():
        connection = http2.connect(port)
        ended, _ = exchange(connection, frame(SETTINGS, ACKNOWLEDGE, 0) + payload, has_goaway,
                            ANSWER_S if must_end else SILENCE_S)
        connection.close()
        problem = watched.problem()
        if must_end and not ended:
            problem += "; the connection goes on"
        check(name, not problem, problem)
    for name, payload in OTHERS.items():
        connection = socket.create_connection(("127.0.0.1", port))
        exchange(connection, payload)
        connection.close()
        problem = watched.problem()
        check(name, not problem, problem)
    for name, (payload, status) in CALLS.items():
        connection = http2.connect(port)
        _, said = exchange(connection, payload, lambda said: b"grpc-status" in said, ANSWER_S)
        connection.close()
        found = said.split(b"grpc-status")[-1][1:1 + len(status)]
        check(name, found == status and not watched.problem(), "status %r in %r" % (found, said))
    deadline = time.monotonic() + SETTLE_S
    while watched.server.status()[1] > watched.descriptors and time.monotonic() < deadline:
        time.sleep(0.1)
    left = watched.server.status()[1] - watched.descriptors
    check("no connection is left", left <= 0, "%d descriptors more than before" % left)
    code = watched.server.stop()
    check("the server drains", code == 0, "exit code %d" % code)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
