#!/usr/bin/env python3
"""Two replicas of spillwayd, of which always one is killed with SIGKILL and started again on its
port, while clients call: one that fails at one asks the other. No call is lost, and each answer has
the bytes of a rewrite in process.

    fault_loop.py [--seconds N] [--hostile]

Progress is printed every 5 seconds; the last line is `N passed, N failed`."""

import argparse
import collections
import hashlib
import sys
import threading
import time

from replica import Replica, check, common, finish
import hostile_clients

CLIENTS = 4
# Between a replica's return and the end of the other.
PAUSE_S = 1
# A call that neither replica has answered by then is lost.
PATIENCE_S = 60
PROGRESS_S = 5


def requests():
    """Graphs with options: answered at once, in a stream, and after a search."""
    small, large = common.graph("mnist_deep"), common.graph("resnet50_tf1_b4", shapes=True)
    return [(small, {"strategy": "scope"}), (large, {"strategy": "scope", "lb": 3}),
            (large, {"strategy": "level", "swapout_threshold": 100, "swapin_ahead": 10,
                     "swapin_groupby": 10, "sync_mode": 0}),
            (large, {"gpu_memory_bytes": 1 << 30})]


class Clients:
    def __init__(self, replicas, spillway):
        self.spillway = spillway
        self.replicas = replicas
        self.requests = requests()
        self.digests = [self.digest(spillway.rewrite(graph, **options))
                        for graph, options in self.requests]
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.answered = collections.Counter()  # By replica.
        self.asked_again = 0
        self.problems = []
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(CLIENTS)]

    @staticmethod
    def digest(result):
        return hashlib.sha256(result.graph_def).hexdigest()

    def run(self, number):
        while not self.ended.is_set():
            problem = self.call(number)
            number += 1
            if problem:
                with self.lock:
                    self.problems.append(problem)

    def call(self, number):
        """Its problem, or None."""
        which = number % len(self.requests)
        graph, options = self.requests[which]
        deadline = time.monotonic() + PATIENCE_S
        tries = 0
        while True:
            replica = (number + tries) % len(self.replicas)
            try:
                result = self.spillway.rewrite(graph, server=self.replicas[replica].address, retries=0,
                                               timeout=PATIENCE_S, **options)
                break
            except self.spillway.SpillwayError as error:
                # A replica that is killed or not there yet, or one that has more than its part.
                if error.code != "UNAVAILABLE" and error.reason != "OVERLOADED":
                    return "%s: %s" % (error.code, error)
                if time.monotonic() > deadline:
                    return "lost after %d tries: %s" % (tries + 1, error)
            tries += 1
            time.sleep(min(0.01 * 2**tries, 0.5))
        with self.lock:
            self.answered[replica] += 1
            self.asked_again += tries > 0
        if self.digest(result) != self.digests[which]:
            return "request %d has another answer than in process" % which
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=15, help="how long (default: 15)")
    parser.add_argument("--hostile", action="store_true",
                        help="with hostile_clients.py at both of them, of two workers each")
    arguments = parser.parse_args()
    import spillway  # pylint: disable=import-outside-toplevel

    flags = ("--workers", "2", "--idle-timeout", "5s") if arguments.hostile else ()
    replicas = [Replica(*flags), Replica(*flags)]
    clients = Clients(replicas, spillway)
    hostile = []
    if arguments.hostile:
        for replica in replicas:
            hostile += hostile_clients.start(replica.port)
    try:
        return run(arguments, replicas, clients, hostile)
    except BaseException:
        hostile_clients.stop(hostile)
        for replica in replicas:  # They would outlive this, with its output.
            replica.kill()
        raise


def run(arguments, replicas, clients, hostile):
    begin = told = time.monotonic()
    kills = 0
    for thread in clients.threads:
        thread.start()
    while time.monotonic() - begin < arguments.seconds or kills < len(replicas):
        time.sleep(PAUSE_S)
        replica = replicas[kills % len(replicas)]
        replica.kill()
        kills += 1
        replica.start()
        if time.monotonic() - told >= PROGRESS_S:
            told = time.monotonic()
            print("        %.0f s: %d kills, %d answers, %d of them not at first" % (
                told - begin, kills, sum(clients.answered.values()), clients.asked_again), flush=True)
    clients.ended.set()
    for thread in clients.threads:
        thread.join()
    check("the hostile clients went on to the end", hostile_clients.stop(hostile))
    told = "%d kills, answers by replica %s, %d not at first" % (
        kills, dict(clients.answered), clients.asked_again)
    print("        " + told)
    check("no call is lost, and each answer is that of a rewrite in process", not clients.problems,
          "%d problems: %s" % (len(clients.problems), "; ".join(clients.problems[:3])))
    check("each replica answers", all(clients.answered[i] for i in range(len(replicas))), told)
    check("calls were in the way of kills", clients.asked_again > 0, told)
    codes = [replica.stop() for replica in replicas]
    check("both drain in the end", codes == [0, 0], "exit codes %s" % codes)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
