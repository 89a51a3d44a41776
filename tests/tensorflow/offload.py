#!/usr/bin/env python3
"""Trains programs whose optimizer state was moved to the host (BudgetStrategy.offload), and checks
that nothing but devices is different. CPU:0 is the host, CPU:1 and CPU:2 stand for GPUs, so both
sides have the same kernels: all that is trained must be equal, bit for bit.

  losses       of each step, and all variables at the end
  checkpoints  written by the original and restored into the rewritten graph, and the other way round
  places       every moved node ran on the host, every update of a moved variable among them, and
               nothing else did that ran on a GPU before
  strip        undoing the rewrite gives the original bytes

Exit code 0: nothing failed; 1: something failed; 2: bad usage.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", TF_ENABLE_ONEDNN_OPTS="0")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
STEPS, SAVED_AFTER = 4, 2
BATCH, WIDTH, CLASSES = 8, 160, 10  # A matrix of WIDTH x WIDTH has 100 KiB.
# Of the peak of the original: the least of these for which there is a plan is taken.
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
PROGRAMS = {}
CONTROL_FLOW = ("Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "Exit", "NextIteration")
SHORT = ("adam", "clip_by_global_norm", "loss_scale_in_cond", "tied_embedding", "two_towers")


def program(*flags):
    """`flags`: v2 for functions instead of Switch and Merge; stays: nothing in it may move."""
    def register(make):
        PROGRAMS[make.__name__] = (make, flags)
        return make
    return register


class Net:
    """What programs are made of; the kind of its variables is one setting of the test."""

    def __init__(self, resource):
        self.resource = resource

    def variable(self, name, shape, initial=None, trainable=True, dtype=tf.float32):
        initial = initial or tf1.truncated_normal_initializer(stddev=0.1, seed=7)
        return tf1.get_variable(name, shape, dtype, initial, trainable=trainable,
                                use_resource=self.resource)

    def value(self, variable):
        return variable if self.resource else tf.identity(variable)

    def inputs(self):
        return (tf1.placeholder(tf.float32, [BATCH, WIDTH], "x"),
                tf1.placeholder(tf.int64, [BATCH], "y"))

    def layers(self, x, out=CLASSES):
        for k in range(3):
            with tf1.variable_scope("layer%d" % k):
                b = self.variable("b", [WIDTH], tf1.zeros_initializer())
                w = self.variable("w", [x.shape[-1], WIDTH])
                x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
        with tf1.variable_scope("out"):
            return tf.matmul(x, self.variable("w", [WIDTH, out]))

    def loss(self, logits, y):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=y, logits=logits), name="loss")

    def mlp(self):
        x, y = self.inputs()
        return self.loss(self.layers(x), y)


def adam_of():
    return tf1.train.AdamOptimizer(0.01)


@program()
def adam(net):
    loss = net.mlp()
    return loss, [adam_of().minimize(loss)]


@program()
def momentum(net):
    loss = net.mlp()
    return loss, [tf1.train.MomentumOptimizer(0.01, 0.9).minimize(loss)]


@program()
def rmsprop(net):
    loss = net.mlp()
    return loss, [tf1.train.RMSPropOptimizer(0.01, momentum=0.9, centered=True).minimize(loss)]


@program()
def adagrad(net):
    loss = net.mlp()
    return loss, [tf1.train.AdagradOptimizer(0.01).minimize(loss)]


@program()
def adadelta(net):
    loss = net.mlp()
    return loss, [tf1.train.AdadeltaOptimizer(0.5).minimize(loss)]


@program()
def ftrl(net):
    loss = net.mlp()
    return loss, [tf1.train.FtrlOptimizer(0.05).minimize(loss)]


@program()
def gradient_descent(net):
    loss = net.mlp()
    return loss, [tf1.train.GradientDescentOptimizer(0.05).minimize(loss)]


@program()
def clip_by_global_norm(net):
    loss = net.mlp()
    gradients, variables = zip(*adam_of().compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 0.1)
    return loss, [adam_of().apply_gradients(zip(gradients, variables))]


@program()
def clip_by_value(net):
    loss = net.mlp()
    pairs = [(tf.clip_by_value(g, -0.01, 0.01), v) for g, v in adam_of().compute_gradients(loss)]
    return loss, [adam_of().apply_gradients(pairs)]


def scaled_update(net):
    loss = net.mlp()
    pairs = [(g / 128.0, v) for g, v in adam_of().compute_gradients(loss * 128.0)]
    finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g, _ in pairs])
    return loss, [tf1.cond(finite, lambda: adam_of().apply_gradients(pairs), tf.no_op)]


@program()
def loss_scale_in_cond(net):
    return scaled_update(net)


@program("v2")
def loss_scale_in_if(net):
    return scaled_update(net)


@program()
def dynamic_loss_scale(net):
    loss = net.mlp()
    optimizer = tf1.mixed_precision.MixedPrecisionLossScaleOptimizer(adam_of(), "dynamic")
    return loss, [optimizer.minimize(loss)]


@program()
def half_precision(net):
    x, y = net.inputs()
    h = tf.cast(x, tf.float16)
    for k in range(3):
        w = net.variable("w%d" % k, [WIDTH, WIDTH])
        h = tf.nn.relu(tf.matmul(h, tf.cast(w, tf.float16)))
    out = net.variable("out", [WIDTH, CLASSES])
    loss = net.loss(tf.cast(tf.matmul(h, tf.cast(out, tf.float16)), tf.float32), y)
    pairs = [(tf.cast(g, tf.float32) / 64.0, v)
             for g, v in adam_of().compute_gradients(loss * 64.0)]
    return loss, [adam_of().apply_gradients(pairs)]


@program()
def moving_average(net):
    loss = net.mlp()
    update = adam_of().minimize(loss)
    average = tf1.train.ExponentialMovingAverage(0.99)
    with tf.control_dependencies([update]):
        return loss, [average.apply(tf1.trainable_variables())]


@program()
def decay_by_assign(net):
    loss = net.mlp()
    pairs = adam_of().compute_gradients(loss)
    with tf.control_dependencies([g for g, _ in pairs]):
        decays = [tf1.assign_sub(v, 1e-3 * net.value(v), use_locking=True) for _, v in pairs]
    with tf.control_dependencies(decays):
        return loss, [adam_of().apply_gradients(pairs)]


@program()
def decay_in_loss(net):
    loss = net.mlp()
    decay = tf.add_n([tf.nn.l2_loss(v) for v in tf1.trainable_variables()])
    return loss, [tf1.train.MomentumOptimizer(0.01, 0.9).minimize(loss + 1e-3 * decay)]


@program()
def accumulation(net):
    loss = net.mlp()
    pairs = adam_of().compute_gradients(loss)
    sums = [net.variable("sum%d" % i, g.shape, tf1.zeros_initializer(), trainable=False)
            for i, (g, _) in enumerate(pairs)]
    count = net.variable("count", [], tf1.zeros_initializer(), trainable=False, dtype=tf.int64)
    added = [tf1.assign_add(s, g) for s, (g, _) in zip(sums, pairs)] + [tf1.assign_add(count, 1)]

    def update():
        applied = adam_of().apply_gradients([(s / 2.0, v) for s, (_, v) in zip(sums, pairs)])
        with tf.control_dependencies([applied]):
            return tf.group(*[tf1.assign(s, tf.zeros_like(s)) for s in sums])

    with tf.control_dependencies(added):
        return loss, [tf1.cond(tf.equal(net.value(count) % 2, 0), update, tf.no_op)]


def embedding(net, tied):
    ids = tf1.placeholder(tf.int32, [BATCH, 4], "ids")
    y = tf1.placeholder(tf.int64, [BATCH], "y")
    table = net.variable("table", [500, 40])
    h = tf.reshape(tf.nn.embedding_lookup(table, ids), [BATCH, 160])
    h = net.layers(h, 40)
    if tied:
        return net.loss(tf.matmul(h, table, transpose_b=True), y)
    return net.loss(tf.matmul(h, net.variable("end", [40, 500])), y)


@program()
def sparse_adam(net):
    loss = embedding(net, tied=False)
    return loss, [adam_of().minimize(loss)]


@program()
def sparse_adagrad(net):
    loss = embedding(net, tied=False)
    return loss, [tf1.train.AdagradOptimizer(0.01).minimize(loss)]


@program()
def tied_embedding(net):
    loss = embedding(net, tied=True)
    gradients, variables = zip(*adam_of().compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 0.1)
    return loss, [adam_of().apply_gradients(zip(gradients, variables))]


def in_loop(net):
    x, y = net.inputs()
    x = tf.matmul(x, net.variable("before", [WIDTH, WIDTH]))
    w, out = net.variable("w", [WIDTH, WIDTH]), net.variable("out", [WIDTH, CLASSES])
    _, h = tf1.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))),
                          [tf.constant(0), x])
    loss = net.loss(tf.matmul(h, out), y)
    return loss, [adam_of().minimize(loss)]


@program()
def weights_in_loop(net):
    return in_loop(net)


@program("v2")
def weights_in_while(net):
    return in_loop(net)


@program()
def weights_in_cond(net):
    x, y = net.inputs()
    w, out = net.variable("w", [WIDTH, WIDTH]), net.variable("out", [WIDTH, CLASSES])
    h = tf1.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(tf.matmul(x, w)),
                 lambda: tf.nn.relu(tf.matmul(x, w)))
    loss = net.loss(tf.matmul(h, out), y)
    return loss, [adam_of().minimize(loss)]


@program()
def two_towers(net):
    xs, ys = net.inputs()
    towers, losses = [], []
    for i in range(2):
        def place(op, gpu="/device:GPU:%d" % i):
            return "/device:GPU:0" if op.type in ("VariableV2", "VarHandleOp") else gpu
        with tf1.device(place), tf1.variable_scope("net", reuse=i > 0), tf1.name_scope("t%d" % i):
            losses.append(net.loss(net.layers(tf.split(xs, 2)[i]), tf.split(ys, 2)[i]))
            towers.append(adam_of().compute_gradients(losses[-1],
                                                      colocate_gradients_with_ops=True))
    pairs = [(tf.add_n([g for g, _ in pair]) / 2.0, pair[0][1]) for pair in zip(*towers)]
    return tf.add_n(losses), [adam_of().apply_gradients(pairs)]


@program("stays")
def races(net):
    """The update does not wait for the loss, which the step fetches, too."""
    loss = net.mlp()
    gradients = [tf1.placeholder_with_default(tf.ones(v.shape), v.shape)
                 for v in tf1.trainable_variables()]
    return loss, [adam_of().apply_gradients(zip(gradients, tf1.trainable_variables()))]


class Case:
    """One program with one kind of variable."""

    def __init__(self, name, resource):
        make, self.flags = PROGRAMS[name]
        self.name = "%s/%s" % (name, "resource" if resource else "reference")
        (tf1.enable_control_flow_v2 if "v2" in self.flags else tf1.disable_control_flow_v2)()
        graph = tf.Graph()
        with graph.as_default(), tf1.device(gpu_of):
            tf1.set_random_seed(1)
            loss, updates = make(Net(resource))
            saver = tf1.train.Saver()
            self.init = tf1.global_variables_initializer().name
        self.graph_def = graph.as_graph_def()
        self.loss, self.updates = loss.name, [u.name for u in updates]
        with graph.as_default():
            self.variables = {v.op.name: v.value().name for v in tf1.global_variables()}
        self.graph_def = graph.as_graph_def()
        self.save = saver.saver_def

    def feeds(self, step):
        random = np.random.RandomState(step)
        nodes = {n.name for n in self.graph_def.node}
        feeds = {"y:0": random.randint(0, CLASSES, BATCH)}
        if "x" in nodes:
            feeds["x:0"] = random.randn(BATCH, WIDTH).astype("f")
        else:
            feeds["ids:0"] = random.randint(0, 500, [BATCH, 4])
        return feeds


def gpu_of(op):
    """What TensorFlow's placer does with ops that have no GPU kernel is not what is tested."""
    on_host = op.type in ("SaveV2", "RestoreV2", "MergeV2Checkpoints", "ShardedFilename")
    return op.device or ("/device:CPU:0" if on_host or op.name.startswith("save/")
                         and op.type in ("Const", "Identity") else "/device:GPU:0")


def nodes_of(part):
    """The nodes of a graph, or of a function."""
    return part.node if hasattr(part, "node") else part.node_def


def stand_in(graph_def):
    """The graph with CPU:1, CPU:2, ... in place of GPU:0, GPU:1, ..."""
    out = tf1.GraphDef()
    out.CopyFrom(graph_def)
    for node in [n for part in [out, *out.library.function] for n in nodes_of(part)]:
        for gpu in (1, 0):
            node.device = node.device.replace("GPU:%d" % gpu, "CPU:%d" % (gpu + 1))
    return out


class Trained:
    """What a training of a graph gave."""

    def __init__(self, case, graph_def, grappler, steps=STEPS, save_to=None, restore_from=None):
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(stand_in(graph_def), name="")
        config = tf1.ConfigProto(device_count={"CPU": 3}, intra_op_parallelism_threads=1,
                                 inter_op_parallelism_threads=2, allow_soft_placement=False)
        rewrite = config.graph_options.rewrite_options
        rewrite.disable_meta_optimizer = not grappler
        rewrite.min_graph_nodes = -1
        self.losses, self.devices = [], {}
        with tf1.Session(graph=graph, config=config) as session:
            if restore_from:
                session.run(case.save.restore_op_name,
                            {case.save.filename_tensor_name: restore_from})
            else:
                session.run(case.init)
            for step in range(steps):
                metadata = tf1.RunMetadata()
                fetched = session.run(
                    case.updates + [case.loss], case.feeds(step + (STEPS - steps)),
                    tf1.RunOptions(output_partition_graphs=True), metadata)
                self.losses.append(float(fetched[-1]).hex())
                for partition in metadata.partition_graphs:
                    self.devices.update({n.name: n.device for n in partition.node})
                if save_to and step + 1 == SAVED_AFTER:
                    session.run(case.save.save_tensor_name,
                                {case.save.filename_tensor_name: save_to})
            self.variables = {name: session.run(value).tobytes()
                              for name, value in case.variables.items()}

    def same_as(self, other):
        return self.losses == other.losses and self.variables == other.variables


class Rewriter:
    def __init__(self, program_path, folder):
        self.path, self.folder = program_path, folder

    def run(self, *arguments):
        return subprocess.run([self.path, *arguments], capture_output=True, text=True, check=False)

    def offloaded(self, case):
        """The rewritten GraphDef, its bytes after `strip`, and the report; None: no plan moves
        anything."""
        given, taken = self.folder / "in.pb", self.folder / "out.pb"
        given.write_bytes(case.graph_def.SerializeToString(deterministic=True))
        common = ["rewrite", str(given), "--targets", ",".join(case.updates + [case.loss]),
                  "--hardware", "p100_pcie", "--allocator-reserve", "0", "--recompute", "off"]
        ample = self.run(*common, "--dry-run", "--gpu-memory-bytes", "1TiB", "--report", "-")
        if ample.returncode != 0:
            raise RuntimeError(ample.stderr)
        fits = json.loads(ample.stdout)["fits"]
        peak = max(int(fit["unswapped_peak_bytes"]) for fit in fits)
        for share in SHARES:
            done = self.run(*common, "--gpu-memory-bytes", str(int(peak * share)), "--offload",
                            "optimizer", "-o", str(taken), "--report", "-")
            if done.returncode == 0 and json.loads(done.stdout).get("offload"):
                break
            if done.returncode != 0 and "DOES_NOT_FIT" not in done.stderr:
                raise RuntimeError(done.stderr)
        else:
            return None
        stripped = self.folder / "stripped.pb"
        undone = self.run("strip", str(taken), "-o", str(stripped))
        if undone.returncode != 0:
            raise RuntimeError(undone.stderr)
        rewritten = tf1.GraphDef.FromString(taken.read_bytes())
        return rewritten, stripped.read_bytes() == given.read_bytes(), json.loads(done.stdout)


def variable_of(graph_def, tensor):
    """The variable behind a reference or handle."""
    nodes = {n.name: n for n in graph_def.node}
    name = tensor.split(":")[0]
    while nodes[name].op in ("Identity", "Switch", "RefSwitch") and nodes[name].input:
        name = nodes[name].input[0].split(":")[0]
    return name


def problems(case, rewriter, grappler, notes):
    found = rewriter.offloaded(case)
    may_move = "stays" not in case.flags
    if found is None:
        return ["there is no plan that moves state"] if may_move else []
    if not may_move:
        return ["a plan moved state that races with its update"]
    rewritten, is_undone, report = found
    failed = [] if is_undone else ["strip does not give the original bytes"]
    before = {n.name: n.device for n in case.graph_def.node}
    ops = {n.name: n.op for n in rewritten.node}
    moved = {n.name for n in rewritten.node if before.get(n.name, n.device) != n.device}
    # A call that was inlined had all its nodes on a GPU.
    moved |= {n.name for n in rewritten.node if n.name not in before and "CPU" in n.device}
    variables = [v for group in report["offload"]["moved"] for v in group["variables"]]
    notes.append("%d of %d variables, %d nodes" % (len(variables), len(case.variables), len(moved)))
    saves = [str(rewriter.folder / name) for name in ("theirs", "ours")]
    theirs = Trained(case, case.graph_def, grappler, save_to=saves[0])
    ours = Trained(case, rewritten, grappler, save_to=saves[1])
    if not ours.same_as(theirs):
        failed.append("losses %s, not %s; other variables: %s" % (
            ours.losses, theirs.losses,
            [v for v in theirs.variables if ours.variables[v] != theirs.variables[v]]))
    for graph_def, save, which in ((rewritten, saves[0], "original"),
                                   (case.graph_def, saves[1], "rewritten graph")):
        again = Trained(case, graph_def, grappler, STEPS - SAVED_AFTER, restore_from=save)
        if again.losses != theirs.losses[SAVED_AFTER:] or again.variables != theirs.variables:
            failed.append("a checkpoint of the %s does not continue the training" % which)
    for name, device in ours.devices.items():
        is_on_host = device.endswith("CPU:0")
        if name in moved and not is_on_host:
            failed.append("%s moved, and ran on %s" % (name, device))
        # TensorFlow runs those of control flow beside their input (OptimizeControlFlowColocation in
        # graph_partition.cc), which may be a swap-in.
        stays = name in before and name not in moved and ops[name] not in CONTROL_FLOW
        if stays and is_on_host and not theirs.devices.get(name, device).endswith("CPU:0"):
            failed.append("%s did not move, and ran on the host" % name)
    writes = {n.name for n in rewritten.node if "Apply" in n.op and
              variable_of(rewritten, n.input[0]) in variables}
    if not writes or writes - moved:
        failed.append("updates that did not move: %s" % sorted(writes - moved))
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spillway", metavar="PROGRAM", required=True)
    parser.add_argument("--full", action="store_true", help="every program, with Grappler, too")
    parser.add_argument("-k", metavar="PATTERN", default="", help="only programs with this in the name")
    options = parser.parse_args()
    failed = 0
    for name in PROGRAMS:
        if options.k not in name or not (options.full or options.k or name in SHORT):
            continue
        for resource in (False, True):
            if "v2" in PROGRAMS[name][1] and not resource:
                continue
            case = Case(name, resource)
            for grappler in (False, True) if options.full else (False,):
                notes = []
                with tempfile.TemporaryDirectory() as folder:
                    rewriter = Rewriter(options.spillway, pathlib.Path(folder))
                    found = problems(case, rewriter, grappler, notes)
                failed += bool(found)
                print("%-4s %s%s: %s" % ("FAIL" if found else "ok", case.name,
                                         "/grappler" if grappler else "",
                                         "; ".join(found or notes or ["nothing may move"])),
                      flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
