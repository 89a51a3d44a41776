#!/usr/bin/env python3
"""A bad day of one spillwayd of 16 workers, for minutes or hours: honest clients beside hostile ones
(hostile_clients.py), in a memory cgroup where one can be made, with the budget that the server then takes.
Honest clients are answered, with the bytes of a rewrite in process, and soon; the server's memory,
descriptors and threads do not grow.

    soak.py [--seconds N]

Growth is that of a line through the samples of the second half: a longer run sees a smaller leak. A
line of progress every 10 seconds; the last line is `N passed, N failed`."""

import argparse
import hashlib
import multiprocessing
import os
import sys
import time

from replica import MemoryGroup, Replica, check, common, finish  # First: it says where the next is.
import hostile_clients
from http2 import varint

HONEST = 2
# Of the honest ones, one in a hundred may take longer: on a machine whose cores are all taken,
# small requests wait for the operating system, and expensive ones work until they check the clock.
MOST_P99_S = 2
# Of the cgroup, whose budget the server finds itself: all but a tenth and the overhead beyond its
# budget that README.md promises.
LIMIT = 1 << 30
BUDGET = LIMIT - (256 << 20) - LIMIT // 10
PROGRESS_S = 10
# The most growth over the second half. Memory: what malloc keeps of requests that overlap as others
# did not before.
MOST_GROWTH = {"memory": 24 << 20, "descriptors": 12, "threads": 4}


def honest(port, results):
    """Small and large requests in turns; reports how each ended."""
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
        # Bytes that no other request has, in the version number, which is unused.
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
    group = MemoryGroup.make(LIMIT)
    if group is None:
        print("skipped: no memory cgroup can be made here: the limit of memory is only looked at")
    flags = () if group else ("--memory-budget", str(BUDGET))
    server = Replica("--idle-timeout", "5s", "--workers", str(hostile_clients.WORKERS), *flags, group=group)
    results = multiprocessing.Queue()
    honest_clients = [multiprocessing.Process(target=honest, args=(server.port, results), daemon=True)
                      for _ in range(HONEST)]
    for client in honest_clients:
        client.start()
    clients = honest_clients + hostile_clients.start(server.port)
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
    check("the clients went on to the end", hostile_clients.stop(clients))
    check("honest clients are answered as in process", answers and not problems,
          "%d of %d: %s" % (len(problems), answers, "; ".join(problems[:3])))
    took.sort()
    p99 = took[len(took) * 99 // 100] if took else float("inf")
    print("        small requests: p50 %.3f s, p99 %.3f s" % (took[len(took) // 2], p99))
    check("small requests of honest clients are answered soon", p99 <= MOST_P99_S,
          "99 of 100 within %.1f s" % p99)
    check("memory is within the budget", max(s[0] for s in samples) <= LIMIT - LIMIT // 10,
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
    if group:
        group.remove()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
