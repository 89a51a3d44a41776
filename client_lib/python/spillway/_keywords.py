"""Options as keywords, with their types; those of calls are in _doors.py. A keyword that is None
counts as not given.

Written by client_lib/python/generate.py from proto/spillway/v1; change those.
"""

from typing import Dict, Literal, Mapping, Optional, Tuple, TypedDict, Union

from spillway._types import Feeds, Levels, Machine, Names, Profile, Size


class StepKeywords(TypedDict, total=False):
    """What one step is: Step in step.proto."""

    feeds: Optional[Feeds]
    """The tensors that the step feeds, for tensor sizes and for the branches that conditionals
    take. Each names a node of the graph; an unknown name is an error. Fed nodes are never edited.
    Default: none."""
    batch_size: Optional[int]
    """The number of examples in the batch of one step. Replaces an unknown first dimension of
    placeholders, iterators and queues; the shapes that follow from it are inferred. Range: 1 to
    2^31 - 1. Default: not set, such a size is unknown."""
    targets: Optional[Names]
    """The nodes (or tensors, `node:port`) that the step runs. Each must exist
    (NAME_MATCHES_NOTHING); after a rewrite the verifier checks that they still do. Without targets,
    the step runs what trains the model: the weight updates, the nodes that wait for them (the train
    op), moving averages of values that the step computes, and the loss. Default: none named, what
    trains is found."""
    hardware: Optional[Machine]
    """The machine that the step is simulated on, with its budgets. Default: p100_pcie."""
    profile: Optional[Profile]
    """A serialized tensorflow.RunMetadata or StepStats of a real run of this graph, whose times and
    bytes replace estimates. Default: none."""
    convolution_workspace_bytes: Optional[Size]
    """Bytes of device memory that each convolution may take while it runs (cuDNN). Range: 0 and up.
    Default: 0."""
    loop_counts: Optional[Mapping[str, int]]
    """Numbers of loop iterations, where the graph does not determine them (by constants,
    maximum_iterations, dimension sizes) or only gives a maximum that is not reached. The memory
    that a loop keeps for its gradients is counted once per iteration. Default: none, they are as
    the graph says, or unknown."""


class HardwareKeywords(TypedDict, total=False):
    """Numbers of the machine: Hardware in hardware.proto; they replace those of the preset that
    `hardware` names."""

    gpu_memory_bytes: Optional[Size]
    """Bytes that TensorFlow's allocator can use on each GPU (less than the board has). Minus
    allocator_reserve, this is the device budget. Range: 1 and up. Default: the preset's."""
    host_memory_bytes: Optional[Size]
    """Bytes of pinned host memory that the swaps of all GPUs may use in total: the host budget.
    Range: 0 and up. Default: the preset's."""
    peak_flops: Optional[float]
    """Operations per second; a multiply-add counts as two. Range: above 0. Default: the
    preset's."""
    eff_conv: Optional[float]
    """The share of peak_flops that convolutions reach. Range: above 0, at most 1. Default: the
    preset's."""
    eff_matmul: Optional[float]
    """The share of peak_flops that matrix products reach. Range: above 0, at most 1. Default: the
    preset's."""
    mem_bytes_per_s: Optional[float]
    """Bytes per second of GPU memory. Range: above 0. Default: the preset's."""
    mem_eff: Optional[float]
    """The share of mem_bytes_per_s that kernels reach. Range: above 0, at most 1. Default: the
    preset's."""
    launch_s: Optional[float]
    """Seconds from one kernel launch to the next. Range: 0 to 1. Default: the preset's."""
    d2h_bytes_per_s: Optional[float]
    """Bytes per second of copies from the device to the host. Range: above 0. Default: the
    preset's."""
    h2d_bytes_per_s: Optional[float]
    """Bytes per second of copies from the host to the device. Range: above 0. Default: the
    preset's."""
    copy_latency_s: Optional[float]
    """Fixed overhead of each copy, in seconds. Range: 0 to 1. Default: the preset's."""
    allocator_reserve: Optional[float]
    """The share of gpu_memory_bytes reserved for effects that are not simulated: chunks of
    TensorFlow's allocator that are larger than the variables in them, and orders of execution other
    than the simulated one. TFLMS v2 reserves as much. Range: 0 to 0.9. Default: 0.1."""
    internal_fragmentation_fraction: Optional[float]
    """The value of gpu_options.experimental.internal_fragmentation_fraction in the training
    session: TensorFlow's allocator also splits a chunk that exceeds the request by this share of
    gpu_memory_bytes. By default it hands out chunks of up to twice the request (or 128 MiB more),
    so a small share (0.001) leaves more usable memory. A plan made with it needs a session with it:
    see the report's advice. 0: TensorFlow's default. Range: 0 to below 1. Default: 0."""
    gpu_memories: Optional[Mapping[str, Size]]
    """GPUs whose memory differs from gpu_memory_bytes. Default: none."""


class CommonKeywords(TypedDict, total=False):
    """Of every strategy: RewriteOptions in options.proto."""

    devices: Optional[Names]
    """Devices whose tensors may be swapped, as the nodes spell them (`/gpu:0`, `/device:GPU:0` and
    `/job:j/task:0/device:GPU:0` are distinct only if they are different devices). Default: every
    device that is not a CPU; a node without a device counts as one."""
    already_rewritten: Optional[Literal["keep", "replan"]]
    """What to do with a graph that Spillway has already rewritten. "keep": if it was rewritten on
    any of those devices, return it unchanged and report so (outcome KEPT). "replan": if it was
    rewritten on any of those devices, strip it first (on all devices), then rewrite it. Default:
    "keep"."""
    decision_detail: Optional[Literal["all", "none"]]
    """Which decisions the report lists. "all": every tensor considered. "none": no decisions (the
    swaps themselves are always listed): for very large graphs. Default: "all"."""
    simulation: Optional[Union[bool, Literal["on", "off"]]]
    """Whether the step is simulated before and after. "on": the report, if requested, has forecasts
    of the step before and after the rewrite. "off": no forecasts: the answer comes sooner. Default:
    "on"."""


class CpuDeviceKeywords(TypedDict, total=False):
    """Of every strategy."""

    cpu_device: Optional[str]
    """Device of the swap nodes, i.e. of host memory. Default: the first CPU of the job, replica and
    task of the tensor's producer."""


class SettledKeywords(TypedDict, total=False):
    """Of every strategy; a plan that is applied has them."""

    min_tensor_bytes: Optional[Size]
    """Tensors smaller than this, in bytes, are not swapped (reason TOO_SMALL). Does not apply to
    tensors of unknown size. Range: 0 and up. Default: 0."""
    swap_encoding: Optional[Literal["identity", "copy"]]
    """How a swap is written into the graph. "identity": identity nodes placed on the host: works
    everywhere. "copy": _CopyFromGpuToHost and _CopyFromHostToGpu on the device: has no CPU kernels.
    Default: "identity"."""
    inline_calls: Optional[Literal["auto", "always", "never"]]
    """Whether calls of library functions are replaced by the functions' bodies, whose tensors can
    then be swapped. "auto": calls are inlined if something is then swapped; otherwise the graph is
    returned unchanged. Calls are not inlined if a patch is requested, since a live graph keeps its
    calls. "always": calls are always inlined. A call that would make the graph exceed the limits is
    an error. Cannot be combined with a patch. "never": calls stay, and tensors inside their
    functions are not swapped. Default: "auto"."""


class OptimizerScopesKeywords(TypedDict, total=False):
    """Of the strategy scope."""

    optimizer_scopes: Optional[Names]
    """Name prefixes of the backward part: an op belongs to it if its name matches `^SCOPE` (RE2)
    for any of them. A scope that matches nothing is a warning; it is an error
    (NAME_MATCHES_NOTHING) if none matches. If none is given, the report lists what was found.
    Default: found from the structure of the graph, as gradients, weight updates and what only these
    read."""


class ScopeKeywords(TypedDict, total=False):
    """Of the strategy scope: ScopeStrategy in options.proto."""

    starting_scope: Optional[str]
    """Ops whose name matches `^SCOPE` (RE2) start the walk. Default: found, see
    starting_op_names."""
    starting_op_names: Optional[Names]
    """Ops whose name matches `^NAME$` (RE2) start the walk; each must match an op. Default, with no
    starting_scope either: found, as the forward ops that feed the backward part and from which the
    most others of their kind are reached."""
    excl_scopes: Optional[Names]
    """Outputs of ops named SCOPE or under `SCOPE/` are not swapped. One that matches no reachable
    op is an error. Default: none."""
    incl_scopes: Optional[Names]
    """If set (or incl_types is), only outputs of ops named SCOPE or under `SCOPE/` (or of those
    types) are swapped. One that matches no reachable op is an error. Default: none."""
    excl_types: Optional[Names]
    """Op types whose outputs are not swapped, besides the built-in Const, Mul, Add, Identity,
    Assign, VariableV2, Reshape, Shape, ShapeN and Placeholder. One that no reachable op has is an
    error. Default: none."""
    incl_types: Optional[Names]
    """See incl_scopes. Default: none."""
    n_tensors: Optional[int]
    """Maximum number of tensors to swap. Negative: all; 0: none, the graph is returned unchanged.
    Default: -1."""
    lb: Optional[int]
    """Lower bound, in levels, of the distance between a swap-in's trigger and its consumer: a
    larger value starts the copy earlier and holds its memory longer. Range: 1 and up, at most ub.
    Default: 1."""
    ub: Optional[int]
    """Upper bound, in levels, of that distance: triggers are not searched for beyond it. Range: 1
    and up. Default: 10000."""
    fuse_swapins: Optional[bool]
    """Uses one swap-in for all consumers of a tensor, triggered for the earliest of them, instead
    of one per consumer: fewer copies, but more memory between the first consumer and the last.
    Default: false."""
    ctrld_strategy: Optional[Literal["chain_rule", "direct_order"]]
    """How triggers are found. "chain_rule": follows the forward ops after the producer and takes a
    backward op that consumes their outputs, as the chain rule pairs them. "direct_order": takes an
    op that leads to the consumer, lb levels before it: more exact, but frees less memory. Default:
    "chain_rule"."""
    swap_branches: Optional[bool]
    """Also swap for forward consumers that lie more than branch_threshold levels behind the
    tensor's first forward consumer (long skip connections). Default: false."""
    branch_threshold: Optional[int]
    """See swap_branches; in levels. Range: 0 and up. Default: 0."""
    debug: Optional[bool]
    """Lists op names and types in the report, for tuning (scope.debug_ops). Default: false."""
    debug_level: Optional[int]
    """With `debug`: 1 lists the starting ops; 2 lists every op that the walk visits, in order.
    Range: 1 or 2. Default: 1."""


class LmsLevelKeywords(TypedDict, total=False):
    """Of the strategy level: LevelStrategy in options.proto."""

    swapout_threshold: Optional[int]
    """Edges longer than this, in levels, are swapped. -1: tuned. Range: -1, or 1 and up. Default:
    -1."""
    swapin_ahead: Optional[int]
    """A swap-in starts this many levels before its first consumer: a larger value starts the copy
    earlier and holds its memory longer. No effect if sync_mode is 2 or 3. -1: tuned. Range: -1, or
    1 and up. Default: -1."""
    swapin_groupby: Optional[int]
    """Consumers of a tensor that are at most this many levels apart share a swap-in; 0: one per
    consumer. -1: tuned (with a given threshold and sync_mode 2 or 3: one per consumer). Range: -1
    and up. Default: -1."""
    sync_mode: Optional[int]
    """What waits for copies. 0: nothing; 1: the other consumers of a tensor wait until its swap-out
    has ended; 2: a swap-in waits for the other inputs of its consumer; 3: both. Higher modes are
    slower and use less memory. If any parameter is tuned, this is the lowest mode that is tried.
    Range: 0 to 3. Default: 0."""
    serialization: Optional[Levels]
    """Levels whose ops run one after another; each is an index or a Python slice (`12`, `3:5`,
    `-10:`). A level that the graph does not have is an error. Default: none."""
    serialization_by_size: Optional[float]
    """Levels whose ops on one GPU together read and write more than this, in GiB, are serialized.
    0: none. Range: 0 and up. Default: 0."""


class LevelKeywords(TypedDict, total=False):
    """Of the strategy level: LevelStrategy in options.proto."""

    is_training: Optional[bool]
    """Whether the graph runs in training mode: batch normalizations of the other mode are left
    unchanged. Default: true."""
    autotune_gpu_mem: Optional[float]
    """Memory of each GPU for tuning, in GiB, in place of the step's hardware.gpu_memory_bytes.
    hardware.allocator_reserve is subtracted from it, too. Range: above 0. Default: the
    hardware's."""
    pace: Optional[bool]
    """Not in TFLMS. Operations launched after a swap-in's trigger wait for the swap-in (pace
    edges), so that its copy overlaps with kernels, and operations that are ready early wait until
    their outputs are needed (order edges; only if they lower the peak and nothing is serialized),
    as in the strategy budget. Tuning runs with and without these edges and takes the better plan,
    in twice the time. Needs sizes: an unknown batch size is an error. Default: false."""


class FilterKeywords(TypedDict, total=False):
    """Of the strategies level and budget."""

    excl_output_by_scopes: Optional[Names]
    """Outputs of ops whose name begins with one of these prefixes are not swapped; with the
    strategy budget, nor are tensors that share their memory. In this and the seven that follow,
    what matches no op is an error. Default: none."""
    incl_output_by_scopes: Optional[Names]
    """If set (or incl_output_by_types is), only outputs of ops whose name begins with one of these
    prefixes (or of those types) are swapped. Default: none."""
    excl_output_by_types: Optional[Names]
    """Outputs of ops of these types are not swapped. The strategy level never swaps those of
    variables, constants and the like. Default: none."""
    incl_output_by_types: Optional[Names]
    """See incl_output_by_scopes. Default: none."""
    excl_input_by_scopes: Optional[Names]
    """Ops whose name begins with one of these prefixes read no swap-in; with the strategy budget,
    tensors that they read late stay on the device. Default: none."""
    incl_input_by_scopes: Optional[Names]
    """If set (or incl_input_by_types is), only ops whose name begins with one of these prefixes (or
    of those types) read swap-ins. Default: none."""
    excl_input_by_types: Optional[Names]
    """Ops of these types read no swap-in. With the strategy level, variables, constants and the
    like never do. Default: none."""
    incl_input_by_types: Optional[Names]
    """See incl_input_by_scopes. Default: none."""


class BudgetKeywords(TypedDict, total=False):
    """Of the strategy budget: BudgetStrategy in options.proto."""

    planning_effort: Optional[Literal["low", "medium", "high"]]
    """How many plans to simulate for each GPU. "low": at most 32 plans: usually enough to construct
    plans, but not to improve them. "medium": at most 128 plans. "high": at most 8192 plans: for
    jobs that run for days. Default: "medium"."""
    objective: Optional[Literal["fastest_that_fits", "smallest_peak", "free_swaps_only"]]
    """What to optimize for. "fastest_that_fits": the fastest plan found. A graph that already fits
    is left unchanged. "smallest_peak": a plan for the smallest budget with which one within
    max_slowdown is found, even if the graph already fits: it leaves memory to others. A step stays
    within that budget only if it is given no more (per_process_gpu_memory_fraction); if there is
    more, launching ahead may use it. "free_swaps_only": only swaps whose copies hide behind
    kernels: as "smallest_peak" with a max_slowdown of 1.005. Default: "fastest_that_fits"."""
    max_slowdown: Optional[float]
    """Maximum step time as a multiple of the step time at full speed (the original graph with
    unlimited memory). If no plan within it is found, the error (DOES_NOT_FIT) reports the memory
    with which there is one. Invalid with "free_swaps_only". Range: 1 and up. Default: no limit;
    with "smallest_peak", 1.1."""


# What options.py makes of a value.
KINDS: Dict[str, str] = {
    "feeds": "feeds",
    "batch_size": "int64",
    "targets": "names",
    "hardware": "machine",
    "profile": "profile",
    "convolution_workspace_bytes": "size",
    "loop_counts": "counts",
    "gpu_memory_bytes": "size",
    "host_memory_bytes": "size",
    "peak_flops": "float",
    "eff_conv": "float",
    "eff_matmul": "float",
    "mem_bytes_per_s": "float",
    "mem_eff": "float",
    "launch_s": "float",
    "d2h_bytes_per_s": "float",
    "h2d_bytes_per_s": "float",
    "copy_latency_s": "float",
    "allocator_reserve": "float",
    "internal_fragmentation_fraction": "float",
    "gpu_memories": "sizes",
    "devices": "names",
    "already_rewritten": "enum",
    "decision_detail": "enum",
    "simulation": "enum",
    "cpu_device": "text",
    "min_tensor_bytes": "size",
    "swap_encoding": "enum",
    "inline_calls": "enum",
    "optimizer_scopes": "names",
    "starting_scope": "text",
    "starting_op_names": "names",
    "excl_scopes": "names",
    "incl_scopes": "names",
    "excl_types": "names",
    "incl_types": "names",
    "n_tensors": "int32",
    "lb": "int32",
    "ub": "int32",
    "fuse_swapins": "bool",
    "ctrld_strategy": "enum",
    "swap_branches": "bool",
    "branch_threshold": "int32",
    "debug": "bool",
    "debug_level": "int32",
    "swapout_threshold": "int32",
    "swapin_ahead": "int32",
    "swapin_groupby": "int32",
    "sync_mode": "int32",
    "serialization": "levels",
    "serialization_by_size": "float",
    "is_training": "bool",
    "autotune_gpu_mem": "float",
    "pace": "bool",
    "excl_output_by_scopes": "names",
    "incl_output_by_scopes": "names",
    "excl_output_by_types": "names",
    "incl_output_by_types": "names",
    "excl_input_by_scopes": "names",
    "incl_input_by_scopes": "names",
    "excl_input_by_types": "names",
    "incl_input_by_types": "names",
    "planning_effort": "enum",
    "objective": "enum",
    "max_slowdown": "float",
}

# Of an enum: what its values begin with, and how they are spelled here.
ENUMS: Dict[str, Tuple[str, Tuple[str, ...]]] = {
    "already_rewritten": ("ALREADY_REWRITTEN_", ("keep", "replan",)),
    "decision_detail": ("DECISION_DETAIL_", ("all", "none",)),
    "simulation": ("SIMULATION_", ("on", "off",)),
    "swap_encoding": ("SWAP_ENCODING_", ("identity", "copy",)),
    "inline_calls": ("INLINE_CALLS_", ("auto", "always", "never",)),
    "ctrld_strategy": ("CTRLD_STRATEGY_", ("chain_rule", "direct_order",)),
    "planning_effort": ("PLANNING_EFFORT_", ("low", "medium", "high",)),
    "objective": ("PLANNING_OBJECTIVE_", ("fastest_that_fits", "smallest_peak",
        "free_swaps_only",)),
}

# The parameters of each strategy.
STRATEGIES: Dict[str, Tuple[str, ...]] = {
    "scope": ("optimizer_scopes", "starting_scope", "starting_op_names", "excl_scopes",
        "incl_scopes", "excl_types", "incl_types", "n_tensors", "lb", "ub", "fuse_swapins",
        "ctrld_strategy", "swap_branches", "branch_threshold", "debug", "debug_level"),
    "level": ("swapout_threshold", "swapin_ahead", "swapin_groupby", "sync_mode", "serialization",
        "serialization_by_size", "excl_output_by_scopes", "incl_output_by_scopes",
        "excl_output_by_types", "incl_output_by_types", "excl_input_by_scopes",
        "incl_input_by_scopes", "excl_input_by_types", "incl_input_by_types", "is_training",
        "autotune_gpu_mem", "pace"),
    "budget": ("planning_effort", "objective", "max_slowdown", "excl_output_by_scopes",
        "incl_output_by_scopes", "excl_output_by_types", "incl_output_by_types",
        "excl_input_by_scopes", "incl_input_by_scopes", "excl_input_by_types",
        "incl_input_by_types"),
}
