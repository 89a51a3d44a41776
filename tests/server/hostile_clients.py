"""Clients that are killed in the middle of an upload, that send some bytes a second, or just as many as
they must, that connect and say nothing, that open calls and send no message, that ask for much with few
bytes, on as many connections as there are workers and one more, that send many small graphs at once, or a
large one, that do not read their answers, and that open streams for ever. Each is a process of its own,
until it is stopped, also while there is no server."""

import multiprocessing
import os
import random
import signal
import socket
import threading
import time

from replica import common  # First: it says where the next one is.
import http2
from http2 import (ACKNOWLEDGE, DATA, END_HEADERS, END_STREAM, HEADERS, SETTINGS, field, frame, message,
                   request, upload_header, varint)

# By a client that heeds no flow control: less than the 64 KiB that are free.
UPLOAD_BYTES = 48 << 10
ANNOUNCED_BYTES = 8 << 20
# StreamRewriteRequest (rewrite_service.proto): a graph that is announced, a chunk of it.
HEADER = upload_header(ANNOUNCED_BYTES)
CHUNK = message(field(2, b"g" * 4096))
# Of HTTP/2: ends stream 1.
RESET = b"\0\0\4\3\0\0\0\0\1"
NO_SERVER_S = 0.1  # Until one that found none tries again.
WORKERS = 16  # Of the server in soak.py: more than there are cores.
# Just above --min-upload-rate, and of a graph that takes half a minute so.
STEADY_RATE = 1.2 * (1 << 20)
STEADY_BYTES = 32 << 20
# Bytes that may be sent before the server reports any as read.
WINDOW_BYTES = 48 << 10


def connect(port):
    connection = http2.connect(port)
    connection.sendall(frame(SETTINGS, ACKNOWLEDGE, 0))
    return connection


def begin_upload(port):
    connection = connect(port)
    connection.sendall(frame(HEADERS, END_HEADERS, 1, request()) + frame(DATA, 0, 1, HEADER))
    return connection


def crashing(port, chance):
    """A process that uploads, and is killed somewhere in it."""
    child = os.fork()
    if child == 0:
        signal.alarm(1)  # Should its parent be gone.
        try:
            with begin_upload(port) as connection:
                for _ in range(UPLOAD_BYTES // len(CHUNK)):
                    connection.sendall(frame(DATA, 0, 1, CHUNK))
                    time.sleep(0.01)
                time.sleep(60)
        finally:
            os._exit(0)
    time.sleep(chance.uniform(0, 0.3))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def slow(port, _):
    """Some bytes a second, until the server has had enough."""
    with begin_upload(port) as connection:
        for byte in CHUNK:
            connection.sendall(frame(DATA, 0, 1, bytes([byte])))
            time.sleep(0.2)
            connection.setblocking(False)
            try:
                # It comes among other frames.
                if RESET in connection.recv(1 << 16):
                    return
            except BlockingIOError:
                pass
            connection.setblocking(True)


def steady(port, _):
    """A large graph at the least rate that is let through: garbage, which only its end shows."""
    with connect(port) as connection:
        connection.sendall(frame(HEADERS, END_HEADERS, 1, request()) +
                           frame(DATA, 0, 1, upload_header(STEADY_BYTES)))
        sent, begin = 0, time.monotonic()
        while sent < STEADY_BYTES:
            for _ in range(WINDOW_BYTES // len(CHUNK)):
                connection.sendall(frame(DATA, 0, 1, CHUNK))
                sent += 4096
            if RESET in connection.recv(1 << 16):
                return
            time.sleep(max(0, begin + sent / STEADY_RATE - time.monotonic()))


def half_open(port, chance):
    """Calls without a message, of any method, as many as one connection may have."""
    paths = (b"/grpc.health.v1.Health/Check", b"/spillway.v1.RewriteService/Rewrite",
             b"/spillway.v1.RewriteService/Diff", b"/spillway.v1.RewriteService/GetCapabilities")
    with connect(port) as connection:
        connection.sendall(b"".join(
            frame(HEADERS, END_HEADERS, 2 * i + 1, request(path=chance.choice(paths)))
            for i in range(100)))
        time.sleep(chance.uniform(0, 12))


def at_once(count, act):
    threads = [threading.Thread(target=act, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def ask(port, graph, number, **options):
    """Sends a graph that no other call has, and ignores errors."""
    import spillway  # pylint: disable=import-outside-toplevel
    try:
        spillway.rewrite(graph + b"\x18" + varint(number), server="127.0.0.1:%d" % port, **options)
    except spillway.SpillwayError:
        pass


def crowd(port, chance):
    """Searches on more connections than there are workers."""
    first = chance.getrandbits(40) << 8
    at_once(WORKERS + 1, lambda number: ask(
        port, common.graph("mnist_deep", shapes=True), first + number, timeout=2,
        gpu_memory_bytes=64 << 20, planning_effort="high"))
    time.sleep(chance.uniform(0, 2))


def many_small(port, chance):
    """As many small graphs at once as there are workers: each leaves a little in its thread's arena."""
    first = chance.getrandbits(40) << 8
    at_once(WORKERS, lambda number: ask(
        port, common.graph("resnet50_tf1_b4", shapes=True), first + number, timeout=30,
        strategy="level", swapout_threshold=1, swapin_ahead=1, swapin_groupby=0))
    time.sleep(chance.uniform(1, 4))


def large(port, chance):
    """One graph that takes a good part of the budget."""
    nodes = [field(1, field(1, b"n%d" % i) + field(2, b"Neg") + (field(3, b"n%d" % (i - 1)) if i else b""))
             for i in range(100_000)]
    ask(port, b"".join(nodes), chance.getrandbits(40), timeout=60, strategy="scope",
        optimizer_scopes=["n99999"], starting_op_names=["n0"])
    time.sleep(chance.uniform(5, 15))


def silent(port, chance):
    """Connects, or begins to upload, and says nothing more for a while."""
    opens = chance.choice((lambda: socket.create_connection(("127.0.0.1", port)),
                           lambda: connect(port), lambda: begin_upload(port)))
    with opens():
        time.sleep(chance.uniform(0, 8))


def dear(port, chance):
    """Much work for few bytes, mostly given up before its end."""
    import spillway  # pylint: disable=import-outside-toplevel
    level = {"strategy": "level", "swapout_threshold": 2, "swapin_ahead": 1, "swapin_groupby": 0}
    scopes = ["s%d" % i for i in range(20_000)]
    options = chance.choice((
        {**level, "serialization": [":"] * 300_000},
        {**level, "serialization": ["%d:%d:%d" % (i % 97, -1 - i % 89, 1 + i % 83)
                                    for i in range(20_000)]},
        {**level, "excl_output_by_scopes": scopes},
        {"strategy": "scope", "optimizer_scopes": ["gradients"] + ["x" * 100 + s for s in scopes[:900]]},
        {"gpu_memory_bytes": 900 << 20, "planning_effort": "high"},
        {"strategy": "scope", "optimizer_scopes": ["\udcff"]}))
    try:
        spillway.rewrite(common.graph("resnet50_tf1_b4", shapes=True), server="127.0.0.1:%d" % port,
                         timeout=chance.uniform(0.05, 2), **options)
    except (spillway.SpillwayError, TypeError, ValueError):
        pass


def unread(port, _):
    """A question whose answer is many times as long as it, and not read."""
    graph = common.graph("resnet50_tf1_b4", shapes=True)
    options = message(field(1, field(1, b"\x18\x01") + field(2, b"\x08" + varint(len(graph)))))
    body = options + b"".join(message(field(2, graph[i:i + 8192])) for i in range(0, len(graph), 8192))
    with connect(port) as connection:
        connection.sendall(frame(HEADERS, END_HEADERS, 1, request(b"Inspect")))
        for i in range(0, len(body), 8192):
            connection.sendall(frame(DATA, 0, 1, body[i:i + 8192]))
            if i % (6 * 8192) == 0:
                connection.recv(1 << 12)  # What lets more be sent.
        connection.sendall(frame(DATA, END_STREAM, 1))
        time.sleep(20)


def watching(port, chance):
    """Streams that never end, as many as one connection may have."""
    paths = (b"/grpc.health.v1.Health/Watch",
             b"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
    with connect(port) as connection:
        for i in range(100):
            stream = 2 * i + 1
            connection.sendall(
                frame(HEADERS, END_HEADERS, stream, request(path=chance.choice(paths))) +
                frame(DATA, 0, stream, message(b"\x3a\x01*" if chance.random() < 0.5 else b"")))
        time.sleep(chance.uniform(0, 8))


# As many of each for one server.
CLIENTS = (crashing, *[slow] * 4, *[silent] * 8, steady, *[half_open] * 4, dear, crowd, many_small, large,
           unread, *[watching] * 2)


def run(act, port, number):
    chance = random.Random(number)
    while True:
        try:
            act(port, chance)
        except OSError:
            time.sleep(NO_SERVER_S)


def start(port):
    """All of them, of the server on this port."""
    clients = [multiprocessing.Process(target=run, args=(act, port, number), daemon=True)
               for number, act in enumerate(CLIENTS)]
    for client in clients:
        client.start()
    return clients


def stop(clients):
    """Whether all were there to the end."""
    alive = all(client.is_alive() for client in clients)
    for client in clients:
        client.kill()
        client.join()
    return alive
