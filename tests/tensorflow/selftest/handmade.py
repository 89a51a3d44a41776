"""A rewriter made by hand, with which wrong rewrites can be made, of files and of live graphs.

It swaps as a planner says and then lets a test spoil the result. To undo a rewrite, it remembers
its own answers.
"""
import copy

from truth import names, rewrite, train

_HOST = "/device:CPU:0"
_ACTIVATIONS = ("Relu", "MaxPool", "Conv2D")


def simple_plan(limit):
    """A right plan, for graphs like those of this repository: activations that nodes of the
    optimizer scopes read, up to `limit` tensors. Each reader has its own swap-in, triggered by
    another of its inputs: so they are in one branch, and nothing waits for itself."""
    def planner(graph_def, options):
        scopes = tuple(options["optimizer_scopes"])
        read = {}  # tensor: [(consumer, position)]
        for node in graph_def.node:
            for position, tensor in enumerate(names.data_inputs(node)):
                read.setdefault(tensor, []).append((node, position))
        swaps = []
        for node in graph_def.node:
            if node.op not in _ACTIVATIONS or node.name.startswith(scopes):
                continue
            tensor = node.name + ":0"
            late = [(c, p) for c, p in read.get(tensor, []) if c.name.startswith(scopes)
                    and not c.op.startswith("Shape")]
            if late and len(swaps) < limit:
                swaps.append(_swap(tensor, late, scopes))
        return swaps
    return planner


def _swap(tensor, late, scopes):
    label = tensor.replace("/", "_").replace(":", "_")
    swap_ins = []
    for number, (consumer, position) in enumerate(late):
        gradients = [names.node(t) for t in names.data_inputs(consumer)
                     if t != tensor and t.startswith(scopes)]
        swap_ins.append({"name": "lms/swapin_%s_%d" % (label, number),
                         "consumers": [{"node": consumer.name, "input_index": position}],
                         "triggers": gradients[-1:]})
    return {"tensor": tensor, "swap_out": "lms/swapout_" + label, "swap_ins": swap_ins}


def fixed_plan(swaps):
    """A plan from elsewhere."""
    return lambda graph_def, options: copy.deepcopy(swaps)


def apply(graph_def, swaps):
    """Inserts the swaps, in place."""
    by_name = {n.name: n for n in graph_def.node}
    dtypes = train.dtypes(graph_def, [swap["tensor"] for swap in swaps])

    def identity(name, source, triggers, dtype):
        node = graph_def.node.add()
        node.name, node.op, node.device = name, "Identity", _HOST
        node.input.append(source)
        node.input.extend("^" + trigger for trigger in triggers)
        node.attr["_grappler_do_not_remove"].b = True
        node.attr["T"].type = dtype

    for swap in swaps:
        dtype = dtypes[swap["tensor"]]
        identity(swap["swap_out"], swap["tensor"], [], dtype)
        for swap_in in swap["swap_ins"]:
            identity(swap_in["name"], swap["swap_out"], swap_in["triggers"], dtype)
            for consumer in swap_in["consumers"]:
                by_name[consumer["node"]].input[consumer["input_index"]] = swap_in["name"]


def apply_live(tf_graph, swaps):
    """Inserts the swaps into a tf.Graph, op by op."""
    # pylint: disable=protected-access
    tf = train.tensorflow()
    protected = tf.compat.v1.AttrValue(b=True)

    def identity(name, source, triggers):
        with tf_graph.as_default():
            op = tf.raw_ops.Identity(input=source, name=name).op
        op._set_device(_HOST)
        op._set_attr("_grappler_do_not_remove", protected)
        op._add_control_inputs([tf_graph.get_operation_by_name(name) for name in triggers])
        return op.outputs[0]

    for swap in swaps:
        out = identity(swap["swap_out"], tf_graph.get_tensor_by_name(swap["tensor"]), [])
        for swap_in in swap["swap_ins"]:
            back = identity(swap_in["name"], out, swap_in["triggers"])
            for consumer in swap_in["consumers"]:
                tf_graph.get_operation_by_name(consumer["node"])._update_input(
                    consumer["input_index"], back)


def _serialized(graph_def):
    return graph_def.SerializeToString(deterministic=True)


class HandRewriter:
    """See the module. spoil(graph_def, report): makes it wrong, or returns other bytes."""

    def __init__(self, planner, spoil=None):
        self.planner = planner
        self.spoil = spoil or (lambda graph_def, report: None)
        self.originals = {}  # rewritten bytes: original bytes

    def rewrite(self, graph_bytes, strategy, options):
        if graph_bytes in self.originals:
            return graph_bytes, {"outcome": "OUTCOME_KEPT"}
        if strategy != "scope":
            raise rewrite.RewriteFailed("no strategy %r" % strategy)
        graph_def = train.parse(graph_bytes)
        swaps = self.planner(graph_def, options)
        apply(graph_def, swaps)
        report = {"outcome": "OUTCOME_REWRITTEN" if swaps else "OUTCOME_NOTHING_TO_DO",
                  "swaps": swaps}
        other = self.spoil(graph_def, report)
        rewritten = other if isinstance(other, bytes) else _serialized(graph_def)
        self.originals[rewritten] = graph_bytes
        return rewritten, report

    def strip(self, graph_bytes):
        if graph_bytes not in self.originals:
            raise rewrite.RewriteFailed("not rewritten here")
        return self.originals[graph_bytes]


class HandEditor(HandRewriter):
    """The same swaps in live graphs. The files stay right: spoil_live(tf_graph, report) makes the
    edit wrong."""

    def __init__(self, planner, spoil_live=None):
        super().__init__(planner)
        self.spoil_live = spoil_live or (lambda tf_graph, report: None)

    def edit(self, tf_graph, strategy, options):
        if strategy != "scope":
            raise rewrite.RewriteFailed("no strategy %r" % strategy)
        before = tf_graph.as_graph_def()
        if _serialized(before) in self.originals:
            return {"outcome": "OUTCOME_KEPT"}
        swaps = self.planner(before, options)
        apply_live(tf_graph, swaps)
        report = {"outcome": "OUTCOME_REWRITTEN", "swaps": swaps}
        self.spoil_live(tf_graph, report)
        self.originals[_serialized(tf_graph.as_graph_def())] = _serialized(before)
        return report
