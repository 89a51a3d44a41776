"""The table of cases: which graph, with which parameters, and the expected plan.

A case is `GRAPH/SET`, or `GRAPH/SET/live` if the graph is edited in place. To add a strategy or
parameters, add a ParameterSet; to add a graph, add a folder (see graphs.py) and, if something is
known about it, a line in the tables here.
"""
import dataclasses
from typing import Any, Dict, Optional, Tuple


@dataclasses.dataclass(frozen=True)
class Expected:
    """Required parts of the plan; None: any."""
    tensors: Optional[int] = None
    swap_ins: Optional[int] = None
    at_least: Optional[int] = None
    at_most: Optional[int] = None
    scopes_left_alone: Tuple[str, ...] = ()
    reason: str = ""


# Swaps of IBM's TFLMS v1 (and v2, for the sets of the strategy level), independent programs, in
# these graphs with the same parameters: tensors, swap-ins, and how many of those tensors are int32
# (gradient shapes, one swap-in each). TFLMS swaps these too; Spillway must not, since on a GPU they
# are in host memory already. If n_tensors cuts the list, which tensors are left, and so how many
# swap-ins, is a matter of order (of mnist_deep it cuts none: only 9 are left of the 12 found
# without a limit). Of cond_v1 TFLMS swaps 19, and then it does not train any more. The refusals
# there are ours to choose; that something is swapped is expected.
KNOWN = {
    "mnist_deep": {
        "lb1": (12, 16, 3), "direct_lb3": (12, 16, 3), "fuse_lb3": (12, 12, 3),
        "lb5_n10": (12, 16, 3), "branch5": (12, 16, 3), "lb3_excl": (8, 11, 2),
        "level_t1": (12, 15, 0),
    },
    "cnn_mnist": {"level_t1": (11, 16, 0)},
    "cond_v2": {"level_t1": (6, 13, 0)},
    "mixed_fp16": {"level_t1": (16, 24, 0)},
    "resnet26_2tower_b2": {"level_t1": (182, 248, 0)},
    "unet3d_s16": {"level_t1": (140, 226, 0)},
    "resnet50_tf1_b4": {
        "lb1": (264, 317, 0), "direct_lb3": (264, 317, 0), "fuse_lb3": (264, 264, 0),
        "lb5_n10": (10, None, 0), "branch5": (264, 329, 0), "level_t1": (163, 228, 0),
    },
}
_AT_LEAST_ONE = Expected(at_least=1, reason="in every graph gradients read forward activations")


def _known(tensors, swap_ins, int32):
    return Expected(
        tensors=tensors - int32, swap_ins=None if swap_ins is None else swap_ins - int32,
        reason="TFLMS swaps %d%s" % (tensors, ", of which %d int32 are in host memory" % int32
                                        if int32 else ""))


# Scopes for the sets that exclude some, if they are known to have something to swap.
EXCLUDED_SCOPES = {
    "mnist_deep": ("loss", "accuracy", "dropout"),
    "cond_v1": ("branch",),
    "resnet50_tf1_b4": ("conv0",),
    "cnn_mnist": ("dropout", "loss"),
    "lstm_while_v2": ("loss",),
    "mixed_fp16": ("accuracy", "loss"),
    "resnet50_keras": ("conv1_relu",),
    "tfcnn_resnet50_nhwc_b2": ("tower_0/v/cg/conv0",),
    "unet3d_s16": ("down0_a",),
}

# How much is run: a part that takes minutes; every graph, with every set or a set of every kind; all.
SHORT_MODE, FULL, ALL = "short", "full", "all"

# The short mode: these graphs, and of each these sets; None: all that are not full_only.
_QUICK = ("lb1", "found", "direct_lb3", "fuse_lb3", "branch5", "level_sync3", "level_serial",
          "budget")
_QUICKEST = ("found", "fuse_lb3", "level_serial", "budget")  # Of graphs that take seconds a step.
SHORT = {
    "mnist_deep": None, "cond_v1": None, "resnet50_tf1_b4": _QUICKEST,
    "cond_v2": _QUICK, "cnn_mnist": _QUICK, "mixed_fp16": _QUICK, "lstm_while": _QUICK,
    "lstm_while_v2": _QUICK, "bert_tiny": _QUICKEST, "unet3d_s16": _QUICKEST,
}

# The programs of training_programs.py: in the short mode, found and live ones stand for all ways.
PROGRAMS = ("mixed_precision", "loss_scale_optimizer", "gradient_accumulation", "mirrored_strategy",
            "dataset_in_graph", "clip_by_global_norm")
SHORT.update({name: ("found", "budget") for name in PROGRAMS})

# Graphs of which four steps take half a minute. In the full mode a set of every kind is enough for
# these, for the programs, and for graphs that are not trained (small ones of their kind are).
LARGE = ("resnet50_keras", "tfcnn_resnet50_nhwc_b2")
_EVERY_KIND = ("lb1+grappler", "found", "fuse_lb3", "branch0_fuse_direct", "level_serial_all",
               "level_tuned", "budget")
# Of which four steps take a minute: in the full mode each strategy's defaults.
LARGEST = ("bert_base",)
_EVERY_STRATEGY = ("found", "level_tuned", "budget")

# Of these graphs the short mode also edits some in place.
SHORT_LIVE = {
    "mnist_deep": ("lb1", "sized", "lb1+grappler", "level_sync3", "level_tuned", "budget"),
    "cond_v1": ("fuse_lb3", "branch5", "level_serial"), "cond_v2": ("lb1", "level_serial"),
    "cnn_mnist": ("found",), "mixed_fp16": ("direct_lb3", "level_sync3"), "lstm_while": ("lb1",),
    "lstm_while_v2": ("lb1",), "bert_tiny": ("level_serial",), "unet3d_s16": ("fuse_lb3",),
}

SHORT_LIVE.update({name: ("lb1",) for name in PROGRAMS})

# Instead of a set's budget_share, if swapping cannot save so much at the batch that runs.
TUNED_SHARES = {
    "bert_base": 0.98, "cnn_mnist": 0.95, "cond_v1": 0.95, "mixed_fp16": 0.95,
    "mnist_deep": 0.98, "mirrored_strategy": 0.97, "clip_by_global_norm": 0.9,
}
# By the strategy budget, for graphs in which order edges alone suffice for more.
_BUDGET_SHARES = {"resnet50_tf1_b4": 0.75, "tfcnn_resnet50_nhwc_b2": 0.65,
                  "resnet26_2tower_b2": 0.65,
                  # Found by searches only with a little more.
                  "gradient_accumulation": 0.85}
# Their weights and updates alone take nearly as much; in cond_v2, the few large tensors of one op.
_NOT_TUNED = ("cond_v2", "lstm_while", "lstm_while_v2")
# The strategy level finds nothing: the one tensor that waits and is of rank 2 is an int32.
_NONE_BY_LEVEL = ("lstm_while_v2",)

# Graphs whose unknown first dimension is not always the batch, as the option batch_size takes it
# to be: BERT folds batch and sequence into one.
_FOLDED_BATCH = ("bert_base",)


@dataclasses.dataclass(frozen=True)
class ParameterSet:
    """One way to rewrite."""
    name: str
    options: Dict[str, Any] = dataclasses.field(default_factory=dict)
    strategy: str = "scope"
    grappler: bool = False  # train with Grappler on, as a plain session does
    check_sizes: bool = False  # give the shapes and the batch size that run, and compare sizes
    excluding: bool = False  # adds excl_scopes
    find_backward: bool = False  # no optimizer_scopes: found from the graph's structure
    # tuned, in this share of the unswapped step's memory, with its feeds and batch size
    budget_share: Optional[float] = None
    like: str = ""  # the set whose expected numbers hold here too; default: itself
    full_only: bool = False  # left out of the short mode


_T1 = {"swapout_threshold": 1, "swapin_ahead": 1, "swapin_groupby": 0}

SETS = [
    ParameterSet("lb1"),
    ParameterSet("found", find_backward=True, like="lb1"),
    ParameterSet("direct_lb3", {"ctrld_strategy": "direct_order", "lb": 3}),
    ParameterSet("fuse_lb3", {"fuse_swapins": True, "lb": 3}),
    ParameterSet("lb5_n10", {"lb": 5, "n_tensors": 10}),
    ParameterSet("branch5", {"swap_branches": True, "branch_threshold": 5}),
    ParameterSet("lb3_excl", {"lb": 3}, excluding=True),
    ParameterSet("sized", check_sizes=True, like="lb1"),
    ParameterSet("lb1+grappler", grappler=True, like="lb1"),
    ParameterSet("direct_lb3+grappler", {"ctrld_strategy": "direct_order", "lb": 3},
                 grappler=True, like="direct_lb3", full_only=True),
    ParameterSet("level_t1", _T1, strategy="level", full_only=True),
    ParameterSet("level_q", {"swapout_threshold": 10, "swapin_ahead": 3, "swapin_groupby": 5},
                 strategy="level", full_only=True),
    ParameterSet("level_sync1", dict(_T1, sync_mode=1), strategy="level", like="level_t1",
                 full_only=True),
    ParameterSet("level_sync2", dict(_T1, sync_mode=2), strategy="level", like="level_t1",
                 full_only=True),
    ParameterSet("level_sync3", dict(_T1, sync_mode=3), strategy="level", like="level_t1"),
    # Initializers and reads of variables are on the first levels, updates on the last.
    ParameterSet("level_serial", dict(_T1, serialization=["3:10", "12", "-10:"]), strategy="level"),
    ParameterSet("level_serial_all", dict(_T1, serialization=[":"], sync_mode=3), strategy="level",
                 full_only=True),
    ParameterSet("level_serial_size", dict(_T1, serialization_by_size=1e-5, sync_mode=1),
                 strategy="level", full_only=True),
    ParameterSet("level_tuned", strategy="level", budget_share=0.8),
    # Recomputed nodes: recompute.py.
    ParameterSet("budget", {"recompute": "off"}, strategy="budget", budget_share=0.8),
    ParameterSet("budget+grappler", {"recompute": "off"}, strategy="budget", grappler=True,
                 budget_share=0.8, full_only=True),
    ParameterSet("level_sync3+grappler", dict(_T1, sync_mode=3), strategy="level", grappler=True,
                 like="level_t1", full_only=True),
    ParameterSet("ub20", {"ub": 20, "lb": 5}, like="lb1", full_only=True),
    ParameterSet("branch0_fuse_direct", {"swap_branches": True, "fuse_swapins": True, "lb": 10,
                                         "ctrld_strategy": "direct_order"}, full_only=True),
]


# How a graph comes to its swaps: as a file by the program, which is then imported; or as a tf.Graph
# that the Python package edits in place.
GRAPHDEF, LIVE = WAYS = ("graphdef", "live")


@dataclasses.dataclass(frozen=True)
class Case:
    """A graph, a set and a way."""
    graph_name: str
    set: ParameterSet
    way: str = GRAPHDEF

    @property
    def key(self):
        """The name of the case among those of its graph."""
        return self.set.name if self.way == GRAPHDEF else "%s/%s" % (self.set.name, self.way)

    @property
    def name(self):
        return "%s/%s" % (self.graph_name, self.key)

    @property
    def strategy(self):
        return self.set.strategy

    @property
    def grappler(self):
        return self.set.grappler

    @property
    def check_sizes(self):
        return self.set.check_sizes

    def input_bytes(self, graph):
        if self.set.check_sizes and graph.bytes_with_shapes is not None:
            return graph.bytes_with_shapes
        return graph.bytes

    def options_for(self, graph, rewriter, graph_bytes):
        """{option: value} for a rewrite of graph_bytes."""
        options = dict(self.set.options)
        if (self.set.like or self.set.name) in KNOWN.get(graph.name, {}):
            options["inline_calls"] = "never"  # IBM's programs do not look into calls.
        if self.strategy == "scope" and not self.set.find_backward:
            options["optimizer_scopes"] = list(graph.optimizer_scopes)
        if self.set.excluding:
            options["excl_scopes"] = list(EXCLUDED_SCOPES[graph.name])
        if self.check_sizes or self.set.budget_share:
            options["feed"] = {s["name"]: list(s["shape"]) for s in graph.feed_spec}
            options["batch_size"] = graph.meta["run_batch"]
        if self.set.budget_share:
            options["kernel_memory"] = "off"  # Those that train here are the CPU's.
            if not self.set.grappler:
                options["grappler"] = "as_is"
            peak = _unswapped_peak(rewriter, graph_bytes, self.strategy, options)
            share = TUNED_SHARES.get(graph.name, self.set.budget_share)
            if self.strategy == "budget":
                share = _BUDGET_SHARES.get(graph.name, share)
            options.update(_memory(share * peak))
            options["allocator_reserve"] = 0  # It is for memory, which is not measured here.
        return options

    def expected_for(self, graph):
        numbers = KNOWN.get(graph.name, {}).get(self.set.like or self.set.name)
        expected = _known(*numbers) if numbers else _AT_LEAST_ONE
        if self.strategy == "level" and graph.name in _NONE_BY_LEVEL:
            expected = Expected(tensors=0, reason="nothing waits that is of rank 2 and on the GPU")
        n_tensors = self.set.options.get("n_tensors", -1)
        return dataclasses.replace(
            expected, at_most=n_tensors if n_tensors >= 0 else None,
            scopes_left_alone=EXCLUDED_SCOPES[graph.name] if self.set.excluding else ())


def _unswapped_peak(rewriter, graph_bytes, strategy, options):
    """Bytes that a step takes as the graph comes, on the GPU that takes most."""
    ample = dict(options, **_memory(2**50))
    report = rewriter.rewrite(graph_bytes, strategy, ample)[1]
    return max(int(fit["unswapped_peak_bytes"]) for fit in report["fits"])


def _memory(size_bytes):
    """The option that gives a GPU so much memory."""
    return {"gpu_memory_bytes": int(size_bytes)}


def in_mode(graph, mode):
    """Whether the mode takes the graph at all."""
    return mode != SHORT_MODE or graph.name in SHORT


def of_graph(graph, mode, ways=WAYS):
    """The cases of one graph."""
    return [Case(graph.name, s, way) for way in ways for s in SETS
            if _has(graph, s, way) and _takes(mode, graph, s, way)]


def _takes(mode, graph, parameters, way):
    if mode == SHORT_MODE:
        return _is_short(graph, parameters, way)
    if mode == ALL:
        return True
    if graph.name in LARGEST:
        return parameters.name in _EVERY_STRATEGY
    few = graph.name in LARGE or graph.name in PROGRAMS or graph.not_trained
    return not few or parameters.name in _EVERY_KIND


def _has(graph, parameters, way):
    """Whether the set makes sense for the graph."""
    if way == LIVE and graph.not_trained:
        return False  # This way only adds training.
    if parameters.excluding and graph.name not in EXCLUDED_SCOPES:
        return False
    if parameters.budget_share and graph.name in _NOT_TUNED:
        return False
    if parameters.check_sizes:
        return graph.bytes_with_shapes is not None and graph.name not in _FOLDED_BATCH
    return True


def _is_short(graph, parameters, way):
    if way == LIVE:
        return parameters.name in SHORT_LIVE.get(graph.name, ())
    names = SHORT.get(graph.name, ())
    return not parameters.full_only if names is None else parameters.name in names


def cost(graph):
    """A guess at how long a graph's cases take, for the order in which they start."""
    return graph.meta["nodes"]
