#!/usr/bin/env python3
"""HAProxy with deploy/proxy/haproxy.cfg in front of a real spillwayd: calls come through, with and
without TLS; the proxy passes on the caller's identity, not a client's claim; and floods of HTTP/2
frames end at the proxy: the server behind it does not grow, and serves the next request."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from checks import check, finish
from free_port import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/server"))

from http2 import (CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM,  # noqa: E402
                   SETTINGS, connect, frame, literal, request)

REQUEST = request()
CONFIG = ROOT / "deploy/proxy/haproxy.cfg"
GRAPH = ROOT / "tests/graphs/mnist_deep/graph.pb"

STARTUP_S = 20
# Of each flood. HAProxy ends them within a fraction of it.
FLOOD_S = 3
# The server's growth limit: connections, of which the proxy opens up to 500, with what gRPC keeps
# for each. One connection without a proxy makes it hold 1.9 GB in as many seconds.
GROWTH_BYTES = 64 << 20


# ---- Floods, each a generator that sends some and yields ----

def continuations(port, host):
    """Headers that never end."""
    connection = connect(port, host)
    connection.sendall(frame(HEADERS, 0, 1, REQUEST))
    more = frame(CONTINUATION, 0, 1, literal(b"x-more", b"m" * 100) * 100)
    while True:
        connection.sendall(more)
        yield


def calls(port, host, per_connection, frames_of):
    """What `frames_of` gives for each new stream; on another connection once one is cut off or has
    had so many."""
    while True:
        connection = connect(port, host)
        try:
            for stream in range(1, 2 * per_connection, 2):
                connection.sendall(frames_of(stream))
                yield
        except OSError:
            yield


def many_headers(port, host):
    """Requests, each as large as may be, that are never ended."""
    return calls(port, host, 200, lambda stream: frame(
        HEADERS, END_HEADERS, stream, REQUEST + literal(b"x-large", b"l" * 120) * 40))


def resets(port, host):
    """CVE-2023-44487: requests that are reset at once."""
    return calls(port, host, 10000, lambda stream: frame(HEADERS, END_HEADERS, stream, REQUEST) + frame(
        RST_STREAM, 0, stream, CANCEL))


def settings(port, host):
    connection = connect(port, host)
    many = frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)) * 100 + frame(PING, 0, 0, b"12345678") * 100
    while True:
        connection.sendall(many)
        yield


FLOODS = {"CONTINUATION": continuations, "HEADERS": many_headers, "rapid reset": resets,
          "SETTINGS and PING": settings}


def flood(kind, port, host):
    """For FLOOD_S, or until it is cut off; how many times it sent."""
    count = 0
    deadline = time.monotonic() + FLOOD_S
    try:
        for _ in FLOODS[kind](port, host):
            count += 1
            if time.monotonic() > deadline:
                break
    except OSError:
        pass
    return count


# ---- Server and proxy ----

class Server:
    """spillwayd on a Unix socket."""

    def __init__(self, program, folder):
        self.socket = folder / "spillwayd.sock"
        self.log = open(folder / "server.log", "w+")
        self.process = subprocess.Popen(
            [program, "--listen", "unix:%s" % self.socket, "--metrics-listen", "none", "--log-format",
             "json"], stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.process.stdout.readline()

    def memory(self):
        status = pathlib.Path("/proc/%d/status" % self.process.pid).read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def wait_for_requests(self, wanted):
        """The lines of its log about requests for which `wanted` is true, as soon as one is there:
        they are written after the answers. Empty if none comes in time."""
        deadline = time.monotonic() + STARTUP_S
        found = []
        while not found and time.monotonic() < deadline:
            time.sleep(0.05)
            text = pathlib.Path(self.log.name).read_text()
            lines = [json.loads(line) for line in text.splitlines()]
            found = [line for line in lines if line["message"] == "request" and wanted(line)]
        return found

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


class Proxy:
    def __init__(self, server, folder, **variables):
        self.port = free_port()
        environment = dict(os.environ, SPILLWAY_BIND="127.0.0.1:%d" % self.port,
                           SPILLWAY_SOCKET=str(server.socket), **variables)
        self.log = open(folder / "haproxy.log", "a+")
        self.process = subprocess.Popen(["haproxy", "-W", "-f", str(CONFIG)], env=environment,
                                        stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + STARTUP_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise SystemExit("HAProxy does not listen: %s" %
                                     pathlib.Path(self.log.name).read_text())
                time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)


def rewrite(program, port, *flags):
    return subprocess.run(
        [program, "rewrite", str(GRAPH), "-o", "-", "--quiet", "--strategy", "scope", "--server",
         "localhost:%d" % port, "--timeout", "30s", *flags], capture_output=True)


def certificates(folder):
    """A CA, a server's certificate with its key in one file, and a client's; by openssl."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
            "1", "-subj", "/CN=test-ca", "-keyout", "ca.key", "-out", "ca.pem")
    for name in ("localhost", "trainer-7"):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                "/CN=" + name, "-addext", "subjectAltName=DNS:" + name, "-keyout", name + ".key", "-out",
                name + ".csr")
        openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-days", "1", "-copy_extensions", "copy", "-out", name + ".crt")
    (folder / "server.pem").write_text((folder / "localhost.crt").read_text() +
                                       (folder / "localhost.key").read_text())


def test_calls(programs, server, folder):
    expected = subprocess.run([programs["spillway"], "rewrite", str(GRAPH), "-o", "-", "--quiet",
                               "--strategy", "scope"], check=True, capture_output=True).stdout
    proxy = Proxy(server, folder)
    try:
        done = rewrite(programs["spillway"], proxy.port)
        check("a rewrite through the proxy has the same bytes",
              done.returncode == 0 and done.stdout == expected, done.stderr.decode())
        done = subprocess.run([programs["spillway"], "health", "--server", "localhost:%d" % proxy.port],
                              capture_output=True, text=True)
        check("a probe reaches the server", done.stdout.strip() == "SERVING", done.stdout + done.stderr)
        # Like a client that poses as another.
        connection = connect(proxy.port, "127.0.0.1")
        connection.sendall(frame(HEADERS, END_HEADERS, 1, REQUEST + literal(
            b"x-spillway-peer", b"10.0.0.66") + literal(b"x-request-id", b"spoofed")))
        connection.sendall(frame(DATA, END_STREAM, 1, b"\0\0\0\0\0"))
        said = server.wait_for_requests(lambda line: line["id"] == "spoofed")
        check("a client is who it is, not who it says",
              said and said[0]["peer"].endswith("127.0.0.1") and "certificate" not in said[0], said)
        connection.close()
    finally:
        proxy.stop()


def test_tls(programs, server, folder):
    certificates(folder)
    proxy = Proxy(server, folder, SPILLWAY_CERT=str(folder / "server.pem"),
                  SPILLWAY_CLIENT_CA=str(folder / "ca.pem"))
    try:
        tls = ["--tls-ca", str(folder / "ca.pem")]
        mine = ["--tls-cert", str(folder / "trainer-7.crt"), "--tls-key", str(folder / "trainer-7.key")]
        done = rewrite(programs["spillway"], proxy.port, *tls, *mine)
        check("a rewrite with a client's certificate", done.returncode == 0, done.stderr.decode())
        said = server.wait_for_requests(lambda line: "certificate" in line)
        check("the server is told the name in it",
              said and said[-1]["certificate"] == "trainer-7", said)
        done = rewrite(programs["spillway"], proxy.port, *tls, "--retries", "0")
        check("no call without one", done.returncode != 0, "it was answered")
    finally:
        proxy.stop()


def test_floods(programs, server, folder):
    proxy = Proxy(server, folder)
    try:
        rewrite(programs["spillway"], proxy.port)
        before, descriptors = server.memory(), server.descriptors()
        for number, kind in enumerate(FLOODS, 2):
            count = flood(kind, proxy.port, "127.0.0.%d" % number)
            grown = server.memory() - before
            check("a flood of %s does not reach the server" % kind, 0 < count and grown < GROWTH_BYTES,
                  "%d sent, it grew by %d bytes" % (count, grown))
            print("        %d times sent, the server grew by %.1f MiB" % (count, grown / 2**20))
        deadline = time.monotonic() + STARTUP_S
        # One address may be refused for some seconds after its flood.
        while True:
            done = rewrite(programs["spillway"], proxy.port)
            if done.returncode == 0 or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        check("the next request is served", done.returncode == 0, done.stderr.decode())
        while server.descriptors() > descriptors and time.monotonic() < deadline:
            time.sleep(0.1)
        check("no connection is left", server.descriptors() <= descriptors,
              "%d descriptors, %d before" % (server.descriptors(), descriptors))
    finally:
        proxy.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build",
                        help="the build whose programs are tested")
    arguments = parser.parse_args()
    missing = [tool for tool in ("haproxy", "openssl") if not shutil.which(tool)]
    if missing:
        print("skipped: no %s here: deploy/proxy is not tested" % " and no ".join(missing))
        print("0 passed, 0 failed, 1 skipped")
        return 0
    programs = {name: str(arguments.build / "bin" / name) for name in ("spillway", "spillwayd")}
    with tempfile.TemporaryDirectory(prefix="spillway-proxy-") as name:
        folder = pathlib.Path(name)
        server = Server(programs["spillwayd"], folder)
        try:
            test_calls(programs, server, folder)
            test_tls(programs, server, folder)
            test_floods(programs, server, folder)
        finally:
            code = server.stop()
        check("the server drains", code == 0, "exit code %d" % code)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
