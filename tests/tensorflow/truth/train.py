"""Training a graph for a few steps, deterministically, on CPUs that stand for GPUs.

CPU:0 is the host. Nodes without a device are pinned to CPU:1, which stands for a device; a node on
GPU k goes to CPU k + 1. So a real machine would copy the tensors that cross between CPU:0 and the
others. (Between CPUs of one process nothing is copied in fact: this is no measurement of memory.)
"""
import hashlib
import os

from truth import feeds, names

# For the process, before TensorFlow is loaded.
ENVIRONMENT = {
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
RUN_TIMEOUT_MS = 120_000


class TrainingFailed(Exception):
    """TensorFlow refused the graph or a step. `stage` is `import`, `init` or `step N`."""

    def __init__(self, stage, cause):
        super().__init__("%s: %s: %s" % (stage, type(cause).__name__, _first_lines(cause)))
        self.stage = stage


class Trained:
    """What came of it."""

    def __init__(self):
        self.losses = {}  # loss tensor: list of bits, as float.hex() spells them
        self.variables = {}  # variable: digest of its value after the last step
        self.partitions = []  # per session call of a step: its partition graphs


def _first_lines(error, limit=400):
    return str(getattr(error, "message", error) or error).strip()[:limit]


def tensorflow():
    """The module, loaded under ENVIRONMENT."""
    for key, value in ENVIRONMENT.items():
        if os.environ.get(key) != value:
            raise RuntimeError("%s must be %r before TensorFlow is loaded" % (key, value))
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    return tf


def parse(graph_bytes):
    """The GraphDef."""
    return tensorflow().compat.v1.GraphDef.FromString(graph_bytes)


def place(graph_def, pin):
    """Maps GPUs to CPUs, in place; with `pin`, gives the device-less nodes to CPU:1."""
    for node in graph_def.node:
        if node.device:
            node.device = names.on_cpus(node.device)
        elif pin:
            node.device = "/device:CPU:1"
    return graph_def


def place_live(tf_graph):
    """The same for a tf.Graph that was edited in place, with `pin`. Swap nodes have their device by
    then; the others must not have one before, or an edit would see it."""
    for op in tf_graph.get_operations():
        device = names.on_cpus(op.device) if op.device else "/device:CPU:1"
        op._set_device(device)  # pylint: disable=protected-access


def imported(graph_def):
    """A tf.Graph of a GraphDef."""
    tf = tensorflow()
    tf_graph = tf.Graph()
    with tf_graph.as_default():
        tf.import_graph_def(graph_def, name="")
    return tf_graph


def dtypes(graph_def, tensors):
    """{tensor: its DataType}, as TensorFlow's own registry of ops has it."""
    tf_graph = imported(graph_def)
    return {t: tf_graph.get_tensor_by_name(t).dtype.as_datatype_enum for t in tensors}


def session_config(device_count, grappler, merging=False, passes_off=()):
    """One thread each, Grappler as asked, without the passes of those names (fields of
    RewriterConfig); TensorFlow's own per-partition optimizer, which merges equal nodes, off unless
    `merging`."""
    tf = tensorflow()
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, allow_soft_placement=True,
        device_count={"CPU": device_count})
    rewrites = config.graph_options.rewrite_options
    rewrites.disable_meta_optimizer = not grappler
    for name in passes_off:
        setattr(rewrites, name, rewrites.OFF)
    levels = tf.compat.v1.OptimizerOptions
    config.graph_options.optimizer_options.opt_level = levels.L1 if merging else levels.L0
    return config


def _readable_variables(graph_def):
    """Tensors that read a variable and do nothing else, {variable: tensor}."""
    by_name = {n.name: n for n in graph_def.node}
    found = {}
    for node in graph_def.node:
        if node.op in ("Variable", "VariableV2"):
            found[node.name] = node.name + ":0"
        elif node.op == "ReadVariableOp" and len(node.input) == 1:
            source = by_name.get(names.node(node.input[0]))
            if source is not None and source.op == "VarHandleOp":
                found.setdefault(source.name, node.name + ":0")
    return found


def train(graph, graph_bytes, grappler=False, pin=True, variables=None, merging=False,
          passes_off=()):
    """Imports a GraphDef and trains as graph.meta says. `variables` limits which are read
    afterwards; by default every one that is initialized then. `merging`, `passes_off`: see
    session_config."""
    try:
        graph_def = parse(graph_bytes)
        device_count = 1 + max(1, names.gpu_count(graph_def))
        tf_graph = imported(place(graph_def, pin))
    except Exception as error:  # in any case, the graph does not import
        raise TrainingFailed("import", error) from error
    return _train(graph, tf_graph, graph_def, device_count, grappler, variables, merging,
                  passes_off)


def train_live(graph, tf_graph, grappler=False, variables=None):
    """The same for a tf.Graph, which is pinned to devices in place: the first session on it."""
    graph_def = tf_graph.as_graph_def()
    place_live(tf_graph)
    device_count = 1 + max(1, names.gpu_count(graph_def))
    return _train(graph, tf_graph, graph_def, device_count, grappler, variables)


def _train(graph, tf_graph, graph_def, device_count, grappler, variables, merging=False,
           passes_off=()):
    tf = tensorflow()
    trained = Trained()
    config = session_config(device_count, grappler, merging, passes_off)
    with tf.compat.v1.Session(graph=tf_graph, config=config) as session:
        _init(tf, session, graph)
        for step in range(graph.steps):
            try:
                _step(tf, session, graph, step, trained)
            except (tf.errors.OpError, ValueError, KeyError) as error:
                raise TrainingFailed("step %d" % step, error) from error
        readable = _readable_variables(graph_def)
        if variables is not None:
            readable = {name: readable[name] for name in variables if name in readable}
        trained.variables = _digests(tf, session, readable)
    return trained


def _init(tf, session, graph):
    for op in graph.init_ops:
        try:
            session.run(op, options=tf.compat.v1.RunOptions(timeout_in_ms=RUN_TIMEOUT_MS))
        except (tf.errors.OpError, ValueError, KeyError) as error:
            raise TrainingFailed("init", error) from error


def _step(tf, session, graph, step, trained):
    fed = feeds.feed_dict(graph.feed_spec, step)
    for train_op, loss in graph.step_calls:
        metadata = tf.compat.v1.RunMetadata()
        options = tf.compat.v1.RunOptions(
            timeout_in_ms=RUN_TIMEOUT_MS, output_partition_graphs=step == 0)
        value = session.run([train_op, loss], fed, options=options, run_metadata=metadata)[1]
        trained.losses.setdefault(loss, []).append(float(value).hex())
        if step == 0:
            trained.partitions.append(list(metadata.partition_graphs))


def _digests(tf, session, readable):
    try:
        values = session.run(readable)
    except tf.errors.OpError:  # some are not initialized: one by one
        values = {}
        for name, tensor in readable.items():
            try:
                values[name] = session.run(tensor)
            except tf.errors.OpError:
                pass
    return {name: hashlib.sha256(value.tobytes()).hexdigest() for name, value in values.items()}


def sizes(graph, graph_bytes, tensors):
    """{tensor: bytes it takes in step 0}, of those that are computed in it (a tensor in the branch
    that is not taken is not)."""
    tf = tensorflow()
    graph_def = place(parse(graph_bytes), pin=False)
    tf_graph = imported(graph_def)
    config = session_config(1 + max(1, names.gpu_count(graph_def)), grappler=False)
    found = {}
    with tf.compat.v1.Session(graph=tf_graph, config=config) as session:
        _init(tf, session, graph)
        fed = feeds.feed_dict(graph.feed_spec, 0)
        try:
            values = dict(zip(tensors, session.run(list(tensors), fed)))
        except tf.errors.InvalidArgumentError:  # some are dead: one by one
            values = {}
            for tensor in tensors:
                try:
                    values[tensor] = session.run(tensor, fed)
                except tf.errors.InvalidArgumentError:
                    pass
        for tensor, value in values.items():
            found[tensor] = value.nbytes
    return found
