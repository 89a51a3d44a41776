#!/usr/bin/env python3
"""Prints how fast models with the shapes of GPT-2 train on cards that are too small for their state,
by the simulator, with --offload optimizer and --recompute all: the table in README.md.

The graphs are made here, without their weights: learned positions, layer norm, attention that is not
fused, dropout, a tied embedding, the fused Adam, gradients clipped by their global norm.

  gpt_table.py --spillway build/bin/spillway            # minutes per row
  gpt_table.py --spillway build/bin/spillway --row 1.56B/p100_pcie/1 --host 40e9
  gpt_table.py --make 12 768 --batch 4 small.pb         # one graph, to look at

Exit code 0: done; 1: a rewrite failed for another reason than memory; 2: bad usage.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")

import tensorflow.compat.v1 as tf  # noqa: E402

VOCABULARY, SEQUENCE, HEAD = 50257, 1024, 64
MODELS = {"1.56B": (48, 1600), "6.65B": (32, 4096)}  # Layers, width.
# Model, preset, batch; and further flags.
ROWS = (("1.56B", "p100_pcie", 1), ("1.56B", "p100_pcie", 4), ("1.56B", "p100_pcie", 8),
        ("1.56B", "p100_pcie", 1, "--gpu-memory-bytes", "2GiB"), ("1.56B", "v100_32gb_pcie", 1),
        ("6.65B", "p100_pcie", 1), ("6.65B", "a100_40gb_pcie4", 1), ("6.65B", "h100_pcie5", 2))


class Gpt:
    """A graph that trains such a model on one GPU."""

    def __init__(self, layers, width, batch, sequence=SEQUENCE, clip=True, use_resource=False):
        self.width, self.batch, self.sequence = width, batch, sequence
        self.use_resource = use_resource
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device("/gpu:0"):
            self._build(layers, clip)

    def _variable(self, name, shape, deviation):
        initial = tf.random_normal_initializer(stddev=deviation) if deviation else tf.zeros_initializer()
        return tf.get_variable(name, shape, initializer=initial, use_resource=self.use_resource)

    def _norm(self, x, name):
        with tf.variable_scope(name):
            scale = tf.get_variable("g", [self.width], initializer=tf.ones_initializer(),
                                    use_resource=self.use_resource)
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            return (x - mean) * tf.rsqrt(variance + 1e-5) * scale + self._variable("b", [self.width], 0)

    def _dense(self, x, width, name):
        with tf.variable_scope(name):
            rows = tf.reshape(x, [-1, x.shape[-1]])
            y = tf.matmul(rows, self._variable("w", [x.shape[-1], width], 0.02))
            return tf.reshape(y + self._variable("b", [width], 0), [self.batch, self.sequence, width])

    def _heads(self, x):
        shape = [self.batch, self.sequence, self.width // HEAD, HEAD]
        return tf.transpose(tf.reshape(x, shape), [0, 2, 1, 3])

    def _attention(self, x, mask):
        queries, keys, values = (self._heads(part) for part in
                                 tf.split(self._dense(x, 3 * self.width, "attn"), 3, axis=2))
        weights = tf.matmul(queries, keys, transpose_b=True) * HEAD ** -0.5
        weights = tf.nn.dropout(tf.nn.softmax(weights * mask - 1e4 * (1 - mask)), rate=0.1)
        joined = tf.transpose(tf.matmul(weights, values), [0, 2, 1, 3])
        return self._dense(tf.reshape(joined, x.shape), self.width, "proj")

    def _build(self, layers, clip):
        tokens, labels = (tf.placeholder(tf.int32, [self.batch, self.sequence], name)
                          for name in ("tokens", "labels"))
        table = self._variable("wte", [VOCABULARY, self.width], 0.02)
        places = self._variable("wpe", [self.sequence, self.width], 0.01)
        h = tf.nn.dropout(tf.gather(table, tokens) + places, rate=0.1)
        mask = tf.linalg.band_part(tf.ones([self.sequence, self.sequence]), -1, 0)
        for layer in range(layers):
            with tf.variable_scope("h%d" % layer):
                h += tf.nn.dropout(self._attention(self._norm(h, "ln_1"), mask), rate=0.1)
                f = self._dense(self._norm(h, "ln_2"), 4 * self.width, "fc")
                f = 0.5 * f * (1 + tf.tanh(0.7978845608 * (f + 0.044715 * tf.pow(f, 3))))
                h += tf.nn.dropout(self._dense(f, self.width, "out"), rate=0.1)
        h = tf.reshape(self._norm(h, "ln_f"), [-1, self.width])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.reshape(labels, [-1]), logits=tf.matmul(h, table, transpose_b=True)), name="loss")
        variables = tf.trainable_variables()
        gradients = [tf.convert_to_tensor(g) for g in tf.gradients(loss, variables)]
        if clip:
            gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        tf.train.AdamOptimizer(1e-4).apply_gradients(zip(gradients, variables), name="train")

    def write(self, path):
        path.write_bytes(self.graph.as_graph_def().SerializeToString(deterministic=True))


def row_text(program, graph, row, host):
    """One row of the table; raises CalledProcessError."""
    model, preset, batch, *flags = row
    command = [program, "rewrite", str(graph), "--dry-run", "--report", "-", "--hardware", preset,
               "--targets", "train,loss", "--offload", "optimizer", "--recompute", "all",
               "--host-mem-bytes-per-s", host, *flags]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    name = "| %s | %s | %d | " % (model, " ".join([preset, *flags[1:]]), batch)
    if "DOES_NOT_FIT" in done.stderr:
        return name + "no plan |  | %.0f s |" % seconds
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    report = json.loads(done.stdout)
    fit = max(report["fits"], key=lambda f: int(f["step_time_ns"]))
    moved = report.get("offload", {})
    return name + "%.2f | %.1f GiB | %.0f s |" % (
        int(fit["full_speed_step_time_ns"]) / int(fit["step_time_ns"]),
        int(moved.get("bytes", 0)) / 2**30, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--spillway", metavar="PROGRAM")
    parser.add_argument("--host", default="100e9", metavar="X",
                        help="bytes per second of the host's memory (default: %(default)s)")
    parser.add_argument("--row", metavar="MODEL/PRESET/BATCH", default="",
                        help="only rows whose name begins with this")
    parser.add_argument("--make", nargs=2, type=int, metavar=("LAYERS", "WIDTH"),
                        help="write one graph to OUT instead")
    parser.add_argument("--batch", type=int, default=1, help="its batch (default: %(default)s)")
    parser.add_argument("--no-clip", action="store_true", help="without clipping by global norm")
    parser.add_argument("out", nargs="?", type=pathlib.Path, metavar="OUT")
    options = parser.parse_args()
    if bool(options.make) != bool(options.out) or bool(options.make) == bool(options.spillway):
        parser.error("give --spillway, or --make and OUT")
    if options.make:
        Gpt(*options.make, options.batch, clip=not options.no_clip).write(options.out)
        return 0
    print("| model | card | batch | share of unlimited speed | state on the host | CPU time |\n"
          "|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            if not "/".join(map(str, row[:3])).startswith(options.row):
                continue
            graph = pathlib.Path(folder) / ("%s_%d.pb" % (row[0], row[2]))
            if not graph.exists():
                Gpt(*MODELS[row[0]], row[2], clip=not options.no_clip).write(graph)
            try:
                print(row_text(options.spillway, graph, row, options.host), flush=True)
            except subprocess.CalledProcessError as error:
                print(error.stderr, file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
