#!/usr/bin/env python3
"""One spillwayd for minutes or hours, beside honest clients with such that are killed in the middle of
an upload, that send some bytes a second, and that connect and say nothing. Honest clients are
answered, with the bytes of a rewrite in process, and the server's memory, descriptors and threads do
not grow.

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
from http2 import (ACKNOWLEDGE, DATA, END_HEADERS, HEADERS, SETTINGS, field, frame, message, request,
                   upload_header, varint)

HONEST, CRASHING, SLOW, SILENT = 2, 1, 4, 8
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
        try:
            result = spillway.rewrite(graph + end, server="127.0.0.1:%d" % port, timeout=60, **options)
            plain = result.graph_def[:-len(end)]
            good = result.graph_def.endswith(end) and (
                hashlib.sha256(plain).digest() == digests[number % len(requests)])
            results.put("" if good else "another answer than in process")
        except spillway.SpillwayError as error:
            results.put("%s: %s" % (error.code, error))
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
    server = Replica("--idle-timeout", "5s")
    results = multiprocessing.Queue()
    clients = [multiprocessing.Process(target=kind, args=(server.port, results), daemon=True)
               for kind, count in ((honest, HONEST), (crashing, CRASHING), (slow, SLOW), (silent, SILENT))
               for _ in range(count)]
    for client in clients:
        client.start()
    begin = told = time.monotonic()
    samples, answers, problems = [], 0, []
    while time.monotonic() - begin < arguments.seconds:
        time.sleep(1)
        samples.append(server.status())
        while not results.empty():
            problem = results.get()
            answers += 1
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
