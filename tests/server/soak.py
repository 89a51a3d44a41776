#!/usr/bin/env python3
"""One spillwayd of two workers for minutes or hours, beside honest clients with such that are killed
in the middle of an upload, that send some bytes a second, that connect and say nothing, that ask for
much with few bytes, that do not read their answers, and that open streams for ever. Honest clients
are answered, with the bytes of a rewrite in process, and soon; the server's memory, descriptors and
threads do not grow.

    soak.py [--seconds N]

Growth is that of a line through the samples of the second half: a longer run sees a smaller leak. A
line of progress every 10 seconds; the last line is `N passed, N failed`."""

import argparse
import hashlib
import multiprocessing
import os
import random
import signal
import socket
import sys
import time

from replica import Replica, check, common, finish  # First: it says where the next one is.
import http2
from http2 import (ACKNOWLEDGE, DATA, END_HEADERS, END_STREAM, HEADERS, SETTINGS, field, frame, message,
                   request, upload_header, varint)

HONEST, CRASHING, SLOW, SILENT, DEAR, UNREAD, WATCHING = 2, 1, 4, 8, 1, 1, 2
# Of the honest ones, one in a hundred may take longer: on a machine whose cores are all taken, small
# requests wait for the operating system, and dear ones work until they look at the clock.
MOST_P99_S = 2
BUDGET = 512 << 20
OVERHEAD = 256 << 20  # Which README.md promises.
PROGRESS_S = 10
# What the lines may rise by over the second half. Memory: what malloc keeps of requests that overlap
# as others did not before.
MOST_GROWTH = {"memory": 24 << 20, "descriptors": 12, "threads": 4}

# By a client that heeds no flow control: less than the 64 KiB that are free.
UPLOAD_BYTES = 48 << 10
ANNOUNCED_BYTES = 8 << 20


# StreamRewriteRequest (rewrite_service.proto): a graph that is announced, a chunk of it.
HEADER = upload_header(ANNOUNCED_BYTES)
CHUNK = message(field(2, b"g" * 4096))


def connect(port):
    connection = http2.connect(port)
    connection.sendall(frame(SETTINGS, ACKNOWLEDGE, 0))
    return connection


def begin_upload(port):
    connection = connect(port)
    connection.sendall(frame(HEADERS, END_HEADERS, 1, request()) + frame(DATA, 0, 1, HEADER))
    return connection


# ---- Clients, each in a process of its own, for ever ----

def crashing(port, _):
    """A process that uploads, and is killed somewhere in it."""
    chance = random.Random(port)
    while True:
        child = os.fork()
        if child == 0:
            signal.alarm(1)  # Should its parent be gone.
            connection = begin_upload(port)
            for _ in range(UPLOAD_BYTES // len(CHUNK)):
                connection.sendall(frame(DATA, 0, 1, CHUNK))
                time.sleep(0.01)
            time.sleep(60)
        time.sleep(chance.uniform(0, 0.3))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def slow(port, _):
    """Some bytes a second, until the server has had enough."""
    while True:
        connection = begin_upload(port)
        try:
            for byte in CHUNK:
                connection.sendall(frame(DATA, 0, 1, bytes([byte])))
                time.sleep(0.2)
                connection.setblocking(False)
                try:
                    # A reset of the stream comes among other frames; its end is what it looks like.
                    if b"\0\0\4\3\0\0\0\0\1" in connection.recv(1 << 16):
                        break
                except BlockingIOError:
                    pass
                connection.setblocking(True)
        except OSError:
            pass
        connection.close()


def silent(port, _):
    """Connects, or begins to upload, and says nothing more for a while."""
    chance = random.Random(os.getpid())
    while True:
        opens = chance.choice((lambda: socket.create_connection(("127.0.0.1", port)),
                               lambda: connect(port), lambda: begin_upload(port)))
        try:
            connection = opens()
            time.sleep(chance.uniform(0, 8))
            connection.close()
        except OSError:
            time.sleep(0.1)


def dear(port, _):
    """Much work for few bytes, mostly given up before its end."""
    import spillway  # pylint: disable=import-outside-toplevel
    chance = random.Random(port)
    graph = common.graph("resnet50_tf1_b4", shapes=True)
    level = {"strategy": "level", "swapout_threshold": 2, "swapin_ahead": 1, "swapin_groupby": 0}
    scopes = ["s%d" % i for i in range(20_000)]
    while True:
        options = chance.choice((
            {**level, "serialization": [":"] * 300_000},
            {**level, "serialization": ["%d:%d:%d" % (i % 97, -1 - i % 89, 1 + i % 83)
                                        for i in range(20_000)]},
            {**level, "excl_output_by_scopes": scopes},
            {"strategy": "scope", "optimizer_scopes": ["gradients"] + ["x" * 100 + s for s in scopes[:900]]},
            {"gpu_memory_bytes": 900 << 20, "planning_effort": "high"},
            {"strategy": "scope", "optimizer_scopes": ["\udcff"]}))
        try:
            spillway.rewrite(graph, server="127.0.0.1:%d" % port, timeout=chance.uniform(0.05, 2),
                             **options)
        except (spillway.SpillwayError, TypeError, ValueError):
            pass


def unread(port, _):
    """Questions whose answers are many times as long as they, and not read."""
    graph = common.graph("resnet50_tf1_b4", shapes=True)
    options = message(field(1, field(1, b"\x18\x01") + field(2, b"\x08" + varint(len(graph)))))
    while True:
        connection = connect(port)
        try:
            connection.sendall(frame(HEADERS, END_HEADERS, 1, request(b"Inspect")))
            body = options + b"".join(message(field(2, graph[i:i + 8192]))
                                      for i in range(0, len(graph), 8192))
            for i in range(0, len(body), 8192):
                connection.sendall(frame(DATA, 0, 1, body[i:i + 8192]))
                if i % (6 * 8192) == 0:
                    connection.recv(1 << 12)  # What lets more be sent.
            connection.sendall(frame(DATA, END_STREAM, 1))
            time.sleep(20)
        except OSError:
            pass
        connection.close()


def watching(port, _):
    """Streams that never end, as many as one connection may have."""
    chance = random.Random(os.getpid())
    paths = (b"/grpc.health.v1.Health/Watch",
             b"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
    while True:
        connection = connect(port)
        try:
            for i in range(100):
                stream = 2 * i + 1
                connection.sendall(
                    frame(HEADERS, END_HEADERS, stream, request(path=chance.choice(paths))) +
                    frame(DATA, 0, stream, message(b"\x3a\x01*" if chance.random() < 0.5 else b"")))
            time.sleep(chance.uniform(0, 8))
        except OSError:
            time.sleep(0.1)
        connection.close()


def honest(port, results):
    """Small and large requests in turns; tells how each ended."""
    import spillway  # pylint: disable=import-outside-toplevel
    small, large = common.graph("mnist_deep"), common.graph("resnet50_tf1_b4", shapes=True)
    requests = [(small, {"strategy": "scope"}), (large, {"strategy": "scope", "lb": 3}),
                (large, {"gpu_memory_bytes": 1 << 30})]

    def digest(result):
        return hashlib.sha256(result.graph_def).digest()
    digests = [digest(spillway.rewrite(graph, **options)) for graph, options in requests]
    number = 0
    while True:
        graph, options = requests[number % len(requests)]
        # Bytes that no other request has, in the version number, which nobody reads.
        end = b"\x18" + varint(os.getpid() << 32 | number)
        begin = time.monotonic()
        try:
            result = spillway.rewrite(graph + end, server="127.0.0.1:%d" % port, timeout=60, **options)
            plain = result.graph_def[:-len(end)]
            good = result.graph_def.endswith(end) and (
                hashlib.sha256(plain).digest() == digests[number % len(requests)])
            problem = "" if good else "another answer than in process"
        except spillway.SpillwayError as error:
            problem = "%s: %s" % (error.code, error)
        results.put((problem, graph is small, time.monotonic() - begin))
        number += 1


# ---- The server, watched ----

def rise(samples):
    """Of the line of least squares through samples at equal distances, from its begin to its end."""
    count = len(samples)
    middle = (count - 1) / 2
    mean = sum(samples) / count
    slope = (sum((i - middle) * (sample - mean) for i, sample in enumerate(samples)) /
             sum((i - middle) ** 2 for i in range(count)))
    return slope * (count - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=120, help="how long (default: 120)")
    arguments = parser.parse_args()
    server = Replica("--idle-timeout", "5s", "--workers", "2", "--memory-budget", str(BUDGET))
    results = multiprocessing.Queue()
    clients = [multiprocessing.Process(target=kind, args=(server.port, results), daemon=True)
               for kind, count in ((honest, HONEST), (crashing, CRASHING), (slow, SLOW), (silent, SILENT),
                                   (dear, DEAR), (unread, UNREAD), (watching, WATCHING))
               for _ in range(count)]
    for client in clients:
        client.start()
    begin = told = time.monotonic()
    samples, answers, problems, took = [], 0, [], []
    while time.monotonic() - begin < arguments.seconds:
        time.sleep(1)
        samples.append(server.status())
        while not results.empty():
            problem, is_small, seconds = results.get()
            answers += 1
            if is_small:
                took.append(seconds)
            if problem:
                problems.append(problem)
        if time.monotonic() - told >= PROGRESS_S:
            told = time.monotonic()
            memory, descriptors, threads = samples[-1]
            print("        %.0f s: %.1f MiB, %d descriptors, %d threads; %d answers, %d problems" % (
                told - begin, memory / 2**20, descriptors, threads, answers, len(problems)), flush=True)
    alive = [client.is_alive() for client in clients]
    for client in clients:
        client.kill()
        client.join()
    check("the clients went on to the end", all(alive), alive)
    check("honest clients are answered as in process", answers and not problems,
          "%d of %d: %s" % (len(problems), answers, "; ".join(problems[:3])))
    took.sort()
    p99 = took[len(took) * 99 // 100] if took else float("inf")
    print("        small requests: p50 %.3f s, p99 %.3f s" % (took[len(took) // 2], p99))
    check("small requests of honest clients are answered soon", p99 <= MOST_P99_S,
          "99 of 100 within %.1f s" % p99)
    check("memory is within the budget", max(s[0] for s in samples) <= BUDGET + OVERHEAD,
          "%.0f MiB" % (max(s[0] for s in samples) / 2**20))
    for what, values in zip(MOST_GROWTH, zip(*samples[len(samples) // 2:])):
        growth = rise(values)
        print("        %s: from %d to %d, a rise of %.0f" % (what, min(values), max(values), growth))
        check("%s: no growth" % what, growth <= MOST_GROWTH[what],
              "it rises by %.0f in %d s" % (growth, len(values)))
    deadline = time.monotonic() + common.PATIENCE_S
    while server.status()[1] > samples[0][1] and time.monotonic() < deadline:
        time.sleep(0.1)
    check("no connection is left of them", server.status()[1] <= samples[0][1],
          "%d descriptors, %d at first" % (server.status()[1], samples[0][1]))
    code = server.stop()
    check("the server drains", code == 0, "exit code %d" % code)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
