#!/usr/bin/env python3
"""Of rolling_test.py: clients of one version that call without a pause.

    rolling_client.py SERVERS THREADS REQUESTS

SERVERS are addresses with commas; REQUESTS a JSON file: a list of {graph, call, options}. Standard
input names the current phase (a line each), and standard output repeats the line when the first
answer of the phase is there; a call belongs to a phase if it began and ended in it. When the input
ends, so do the clients, and the last line of output is JSON: {"answers": [[phase, request, answer,
count], ...], "problems": [...]}. SPILLWAY_LIBRARY and PYTHONPATH say which version this is.
"""

import collections
import hashlib
import json
import pathlib
import sys
import threading

import spillway

# As long as a caller that has a job to start waits; a call that hangs is lost.
PATIENCE_S = 60
# Replicas come and go, and this machine is full at times: more patience than the default of 4.
RETRIES = 20
BETWEEN = "between"


class Clients:
    def __init__(self, servers, threads, requests):
        # One for all: its connections see every replica go and come back.
        self.client = spillway.Client(servers, retries=RETRIES)
        self.requests = [(pathlib.Path(request["graph"]).read_bytes(), request["call"],
                          request["options"]) for request in requests]
        self.phase = None
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.answers = collections.Counter()
        self.told = {BETWEEN}  # Phases.
        self.problems = []
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(threads)]

    def run(self, number):
        while not self.ended.is_set():
            which = number % len(self.requests)
            number += 1
            began = self.phase
            try:
                answer = self.call(which)
            except Exception as error:  # pylint: disable=broad-except
                with self.lock:
                    self.problems.append("request %d, %s: %r" % (which, began, error))
                continue
            phase = began if began == self.phase else BETWEEN
            with self.lock:
                self.answers[phase, which, answer] += 1
                if phase not in self.told:
                    self.told.add(phase)
                    print(phase, flush=True)

    def call(self, which):
        graph, call, options = self.requests[which]
        if call == "simulate":
            step = self.client.simulate(graph, timeout=PATIENCE_S, **options)
            return str(step.forecast.step_time_ns)
        result = self.client.rewrite(graph, timeout=PATIENCE_S, **options)
        return hashlib.sha256(result.graph_def).hexdigest()


def main():
    servers, threads, requests = sys.argv[1:]
    clients = Clients(servers, int(threads), json.loads(pathlib.Path(requests).read_text()))
    for line in sys.stdin:
        clients.phase, first = line.strip(), clients.phase is None
        if first:
            for thread in clients.threads:
                thread.start()
    clients.ended.set()
    for thread in clients.threads:
        thread.join()
    print(json.dumps({"answers": [[*key, count] for key, count in clients.answers.items()],
                      "problems": clients.problems}))


if __name__ == "__main__":
    main()
