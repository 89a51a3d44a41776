#!/usr/bin/env python3
"""Text from outside reaches no terminal as it is: each source of such text says something with escape
sequences, BEL and line breaks, and no output of any command has a control character."""

import gzip
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SPILLWAY = ROOT / "build/bin/spillway"
GRAPH = ROOT / "tests/graphs/mnist_deep/graph.pb"
# Colour, a title, BEL, a line of its own, one of 8-bit terminals, DEL.
EVIL = "a\x1b[31m\x1b]0;x\x07\nexport EVIL=1\n\x9b2J\x7f\r"
PATIENCE_S = 60


def field(number, content):
    """A field of bytes, as protobuf writes it."""
    size, length = len(content), b""
    while size >= 0x80:
        length, size = length + bytes([size & 0x7f | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


class OutsideTextTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content, program=False):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(0o755 if program else 0o644)
        return str(path)

    def check(self, *words, says=None, lines=None, **variables):
        """Runs `spillway WORDS`. `says`: a part of its output. `lines`: of its standard error."""
        environment = {"PATH": "%s:/usr/bin:/bin" % self.folder, "HOME": str(self.folder),
                       "SPILLWAY_CACHE_DIR": str(self.folder / "cache"), **variables}
        done = subprocess.run([SPILLWAY, *words], env=environment, cwd=self.folder, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S)
        what = "%r: exit %d, %r, %r" % (words, done.returncode, done.stdout, done.stderr)
        self.assertGreaterEqual(done.returncode, 0, what)
        said = done.stdout + done.stderr
        self.assertFalse({byte for byte in said if (byte < 32 and byte != 10) or byte >= 127}, what)
        self.assertNotIn(b"\nexport EVIL=1", said, what)
        if says is not None:
            self.assertIn(says.encode(), said, what)
        if lines is not None:
            self.assertEqual(done.stderr.count(b"\n"), lines, what)

    def test_programs(self):
        for name, script in {
                "name": "case \"$*\" in *name*) printf 'NVIDIA \\033[31mV100\\007\\177\\r\\n';; *memory*) echo "
                        "'16160, 7.0';; *driver*) printf '5\\033[2J\\n';; *) printf 'G\\033[1m,N/A,3,16\\n';; esac",
                "error": "printf '\\033[31mfailed\\007\\n'; exit 9", "binary": "head -c 3000 /dev/urandom",
        }.items():
            self.write("nvidia-smi", "#!/bin/sh\n" + script, program=True)
            self.write("python3", "#!/bin/sh\nfor i in 1 2 3 4; do printf 'v\\033[31m\\007\\n'; done", program=True)
            with self.subTest(nvidia_smi=name):
                says = {"name": "V100\\x07", "error": "\\x1b[31mfailed"}.get(name)
                self.check("doctor", says="v\\x1b[31m\\x07")
                for words in (["simulate"], ["rewrite", "-o", "out.pb"], ["explore"]):
                    self.check(words[0], GRAPH, *words[1:], "--batch-size", "8", says=says)
                self.check("run", "--graph", GRAPH, "--batch-size", "8", "--", "true", lines=1)
                self.check("simulate", GRAPH, "--hardware", "auto", lines=1)

    def test_names_of_files(self):
        evil = EVIL.replace("/", "")
        graph = self.write(evil, GRAPH.read_bytes())
        self.check("run", "--graph", graph, "--batch-size", "8", "--", "true", says="\\x1b[31m", lines=1)
        for words in (["inspect", graph], ["simulate", graph, "--batch-size", "8"],
                      ["rewrite", graph, "--batch-size", "8", "-o", graph + "2"], ["diff", graph, graph]):
            self.check(*words)
        for words in (
                ["rewrite", graph, "-o", graph], ["simulate", graph, "--profile", graph + "3"],
                ["apply", graph, graph, "-o", "o"], ["check", graph, graph], ["stats", graph + "3"],
                ["plot", graph + "3", "-o", "o.svg"], ["plot", graph, "-o", graph], ["strip", graph + "3", "-o", "o"],
                ["simulate", graph, "--hardware", graph + ".json"], ["anonymize", graph + "3", "-o", "o"],
                ["health", "--server", "unix:/x", "--tls-ca", graph], ["doctor2", graph],
                ["run", "--graph", graph + "3", "--", "true"], ["run", "--graph", graph, "--", graph],
                ["run", "--graph", graph, "--report", "/nowhere/" + evil, "--", "true"]):
            with self.subTest(words=words):
                self.check(*words)

    def test_environment(self):
        for name in ("SPILLWAY_SERVER", "SPILLWAY_CACHE_DIR", "SPILLWAY_METRICS_TEXTFILE", "SPILLWAY_TOKEN",
                     "SPILLWAY_JOB", "SPILLWAY_USER", "SLURM_TMPDIR", "TMPDIR", "CUDA_VISIBLE_DEVICES",
                     "TF_GPU_ALLOCATOR", "TRACEPARENT", "COLUMNS", "TERM", "HOSTNAME"):
            with self.subTest(name=name):
                for words in (["run", "--graph", GRAPH, "--batch-size", "8", "--timeout", "20s", "--retries", "0",
                               "--server", "unix:/nowhere", "--", "true"],
                              ["run", "--graph", GRAPH, "--batch-size", "8", "--", "true"], ["doctor"]):
                    self.check(*words, **{name: EVIL})

    def test_command_line(self):
        for words in (["run", "--graph", GRAPH, "--" + EVIL, "--", "true"], [EVIL], ["simulate", EVIL, EVIL],
                      ["simulate", GRAPH, "--hardware", EVIL], ["rewrite", GRAPH, "-o", "o", "--targets", EVIL],
                      ["rewrite", GRAPH, "-o", "o", "--strategy", "scope", "--starting-scope", "(" + EVIL],
                      ["simulate", GRAPH, "--server", EVIL], ["health", "--server", EVIL], ["help", EVIL],
                      ["simulate", GRAPH, "--server", "unix:/" + EVIL, "--retries", "1"],
                      ["simulate", GRAPH, "--color", EVIL], ["simulate", GRAPH, "--timeout", EVIL],
                      ["plot", GRAPH, "-o", "o.svg", "--title", EVIL, "--as", EVIL]):
            with self.subTest(words=words):
                self.check(*words)

    def test_contents(self):
        evil = EVIL.encode()
        node = field(1, b"lms/swapout_" + evil) + field(2, b"Relu" + evil)
        trace = field(1, field(1, field(1, b"/" + evil + b"CPU:0") + field(2, field(1, b"lms/swapout_" + evil))))
        for name, content in {
                "graph": field(1, node), "device": field(1, field(1, b"x") + field(2, b"NoOp") + field(4, evil)),
                "function": field(1, field(1, b"x") + field(2, b"NoOp")) + field(2, field(1, field(1, field(1, evil)))),
                "text": b"node { name: '" + evil, "json": json.dumps({"report": EVIL, EVIL: 1}).encode(),
                "plan": json.dumps({"format_version": 2, "graph_sha256": "0" * 64,
                                    "swaps": [{"tensor": EVIL}]}).encode(),
                "journal": json.dumps({"time": "2026-11-24T08:00:00Z", "job": EVIL, "code": EVIL}).encode() + b"\n",
                "trace": trace, "real trace": gzip.decompress(
                    (GRAPH.parent / "run_metadata.pb.gz").read_bytes()) + trace}.items():
            path = self.write("content.json", content)
            for words in (["inspect", path], ["simulate", path], ["rewrite", path, "-o", "o"], ["strip", path, "-o", "o"],
                          ["diff", GRAPH, path], ["apply", path, GRAPH, "-o", "o"], ["stats", path],
                          ["check", GRAPH, path, "--batch-size", "8"], ["plot", path, "-o", "o.svg"],
                          ["simulate", GRAPH, "--hardware", path, "--batch-size", "8"],
                          ["simulate", GRAPH, "--profile", path, "--batch-size", "8"]):
                with self.subTest(content=name, words=words[0]):
                    self.check(*words)


if __name__ == "__main__":
    unittest.main()
