"""What calls answer: the messages of spillway.v1 as dataclasses. Sizes are bytes, times
nanoseconds; a figure that is not known or not computed is None, never 0.

Written by client_lib/python/generate.py from proto/spillway/v1; change those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Optional, Tuple

from spillway._message import Enum, Message

EdgeKind = Literal["", "TRIGGER", "DEADLINE", "PACE", "SERIALIZATION", "ORDER"]
"""What an added control edge is for."""

Outcome = Literal["", "REWRITTEN", "NOTHING_TO_DO", "KEPT", "FOREIGN", "STRIPPED"]
"""What became of the graph."""

Strategy = Literal["", "scope", "level", "budget", "strip", "apply"]
"""The policies. The numbers are those of the fields of RewriteOptions.strategy."""

Fit = Literal["", "FITS", "DOES_NOT_FIT", "UNKNOWN"]
"""Whether a step fits the budgets."""

FitUnknownCause = Literal["", "SIZES", "LOOPS", "CALLS"]
"""What keeps a step's memory from being known."""

MemorySource = Literal["", "PRESET", "OPTION", "AUTOTUNE_GPU_MEM", "NVIDIA_SMI"]
"""Who said how much memory a GPU has."""

Stage = Literal["", "parse", "analysis", "strategy", "simulate", "apply", "verify", "report"]
"""The stages of a rewrite, in the order run."""

WarningCode = Literal[
    "", "NAME_MATCHES_NOTHING", "UNKNOWN_SIZES", "NO_TRIGGER", "FUNCTION_BODIES",
    "ALREADY_REWRITTEN", "NO_GPU", "TARGETS_ARE_SINKS", "UNKNOWN_COSTS", "LOOPS_ONCE",
    "BOTH_BRANCHES", "NOT_SIMULATED", "WORSE_SIDE", "MAY_RUN_OUT", "UPPER_BOUNDS"]
"""Kinds of warning."""

PlanningEffort = Literal["", "LOW", "MEDIUM", "HIGH"]
"""How many plans are simulated at most for one GPU. The same request gets the same plan."""

PlanningObjective = Literal["", "FASTEST_THAT_FITS", "SMALLEST_PEAK", "FREE_SWAPS_ONLY"]
"""What a plan is to be like. Each fits the GPU's memory."""

KeptCallReason = Literal[
    "", "FED", "NO_FUNCTION", "DUPLICATE_FUNCTION", "RECURSION", "NOINLINE", "COMPILED",
    "IMPLEMENTATION_GROUP", "SIDE_EFFECTS", "DEAD_RESULTS", "BAD_FUNCTION", "TOO_LARGE",
    "OTHER_KIND"]
"""Why a call stays a call."""

SizeUnknown = Literal["", "NO_SHAPE", "RANK", "DIM", "DTYPE"]
"""Why a size is not known."""

RewrittenBy = Literal["", "NOBODY", "SPILLWAY", "OTHER"]
"""Who rewrote a graph."""

Execution = Literal["", "LAUNCHED_AHEAD", "SYNCHRONOUS"]
"""A way of running a step."""

Engine = Literal["", "COMPUTE", "COPY_OUT", "COPY_IN", "HOST"]
"""What runs an operation."""

Reason = Literal[
    "", "SWAPPED", "NO_LATE_CONSUMER", "EXCLUDED", "NOT_INCLUDED", "TOO_SMALL", "LIMIT_REACHED",
    "REFERENCE", "RESOURCE", "VARIABLE_ALIAS", "HOST_MEMORY", "CPU_PRODUCER", "OTHER_DEVICE",
    "IN_LOOP", "UNKNOWN_DTYPE", "SWAP_NODE", "NO_ORDER", "FED", "READ_BY_LOOP", "LOW_RANK",
    "INACTIVE", "NOT_NEEDED", "NOT_CHOSEN"]
"""Why a tensor was swapped or not."""


@dataclass(frozen=True, repr=False)
class NodeAttribute(Message):
    """An attribute of a node."""
    name: str = ""
    """Its name."""
    value: str = ""
    """A serialized tensorflow.AttrValue. In base64."""

    _name = "NodeAttribute"


@dataclass(frozen=True, repr=False)
class NewNode(Message):
    """A node to add."""
    name: str = ""
    """Its name, new in the graph."""
    op: str = ""
    """Its op type."""
    inputs: Tuple[str, ...] = ()
    """Its inputs as a NodeDef spells them: `node`, `node:port`, `^node`."""
    device: str = ""
    """Its device."""
    attributes: Tuple[NodeAttribute, ...] = ()
    """Its attributes, by name, ascending; `_spillway_undo`, which is for files, is not among
    them."""

    _name = "NewNode"
    _kinds = {"attributes": NodeAttribute}


@dataclass(frozen=True, repr=False)
class RewiredInput(Message):
    """A data input that reads another tensor now."""
    node: str = ""
    """The node, and the position among its inputs, from 0."""
    input_index: int = 0
    old_input: str = ""
    """What it read, and what it reads now, as a NodeDef spells them."""
    new_input: str = ""

    _name = "RewiredInput"
    _kinds = {"input_index": int}


@dataclass(frozen=True, repr=False)
class AddedControl(Message):
    """A control edge source -> node."""
    node: str = ""
    """The node that waits."""
    source: str = ""
    """The node that it waits for."""
    kind: EdgeKind = ""
    """What the edge is for."""

    _name = "AddedControl"
    _kinds = {"kind": Enum("EDGE_KIND_")}


@dataclass(frozen=True, repr=False)
class Patch(Message):
    """The edits that lead from the graph as it came (after REPLAN: from that without its earlier
    edits) to the graph as it is returned. Apply them in the order of the fields: a new node reads
    only original nodes and new nodes before it."""
    new_nodes: Tuple[NewNode, ...] = ()
    """Nodes to add."""
    rewired_inputs: Tuple[RewiredInput, ...] = ()
    """Data inputs to change."""
    added_controls: Tuple[AddedControl, ...] = ()
    """Control inputs to add to original nodes."""

    _name = "GraphPatch"
    _kinds = {"new_nodes": NewNode, "rewired_inputs": RewiredInput, "added_controls": AddedControl}


@dataclass(frozen=True, repr=False)
class DeviceReport(Message):
    """The swaps of one device. All counts are of one training step."""
    device: str = ""
    """The device as the producers spell it; empty where nodes carry none."""
    swapped_tensor_count: int = 0
    """Tensors swapped."""
    swap_out_count: int = 0
    """Swap-out and swap-in nodes inserted."""
    swap_in_count: int = 0
    swap_out_bytes: int = 0
    """Bytes copied to and from the host, of the tensors whose size is known."""
    swap_in_bytes: int = 0
    unknown_size_count: int = 0
    """Swapped tensors whose size is not known, and so not in the bytes above."""

    _name = "DeviceReport"
    _kinds = {
        "swapped_tensor_count": int, "swap_out_count": int, "swap_in_count": int, "swap_out_bytes":
        int, "swap_in_bytes": int, "unknown_size_count": int}


@dataclass(frozen=True, repr=False)
class FitUnknown(Message):
    """One cause for which it is not known whether a step fits."""
    cause: FitUnknownCause = ""
    """The cause."""
    node: str = ""
    """One of the nodes concerned; and how many buffers, loop variables or calls there are."""
    count: int = 0
    message: str = ""
    """One sentence: the node, and what to give so that the answer is known."""

    _name = "FitUnknown"
    _kinds = {"cause": Enum("FIT_UNKNOWN_CAUSE_"), "count": int}


@dataclass(frozen=True, repr=False)
class DeviceFit(Message):
    """How a step stands to the memory of one GPU, with the other GPUs unswapped and without a
    budget."""
    device: str = ""
    """The device as its first node spells it; empty where nodes carry none."""
    fit: Fit = ""
    """Whether the step fits the budget as the graph is returned."""
    fit_unknown: Tuple[FitUnknown, ...] = ()
    """Why that is not known, as in a forecast. Empty unless FIT_UNKNOWN."""
    budget_bytes: int = 0
    """The budget, in bytes, and who said so."""
    budget_source: MemorySource = ""
    unswapped_peak_bytes: int = 0
    """The most bytes that a step has in use at once as the graph came, in the worse of the two ways
    to simulate it."""
    not_needed: bool = False
    """True if that fits: nothing is swapped. The margin is the budget less the peak. With
    FIT_UNKNOWN it is what is known of it that fits, and whether swapping is needed is not known."""
    full_speed_step_time_ns: int = 0
    """What a step takes as the graph came, launched ahead, if memory were unlimited: full speed."""
    step_time_ns: Optional[int] = None
    """What a step takes with the swaps chosen, launched ahead and synchronously, and its peak."""
    synchronous_step_time_ns: Optional[int] = None
    peak_bytes: Optional[int] = None
    need_bytes: Optional[int] = None
    """What the swaps chosen need: the smallest budget, in bytes, with which a step is known to run
    when its buffers are placed. As a rule more than the peak, because of fragmentation. Absent: not
    computed."""

    _name = "DeviceFit"
    _kinds = {
        "fit": Enum("FIT_"), "fit_unknown": FitUnknown, "budget_bytes": int, "budget_source":
        Enum("MEMORY_SOURCE_"), "unswapped_peak_bytes": int, "full_speed_step_time_ns": int,
        "step_time_ns": int, "synchronous_step_time_ns": int, "peak_bytes": int, "need_bytes": int}


@dataclass(frozen=True, repr=False)
class InputRef(Message):
    """One input of a node."""
    node: str = ""
    """The node."""
    input_index: int = 0
    """The position among its inputs, from 0."""

    _name = "InputRef"
    _kinds = {"input_index": int}


@dataclass(frozen=True, repr=False)
class SwapIn(Message):
    """One way back to the device."""
    name: str = ""
    """The name of the swap-in node."""
    consumers: Tuple[InputRef, ...] = ()
    """Whom it serves."""
    triggers: Tuple[str, ...] = ()
    """The nodes whose ends let it start, the first one found by the strategy, the others what
    sync_mode 2 and 3 wait for. Empty: none was found, it starts when the swap-out is done."""
    pace_nodes: Tuple[str, ...] = ()
    """Nodes that are not launched before it may start: its pace edges."""

    _name = "SwapIn"
    _kinds = {"consumers": InputRef}


@dataclass(frozen=True, repr=False)
class TensorSwap(Message):
    """One tensor's trip to the host and back."""
    tensor: str = ""
    """The tensor, as `node:port`."""
    size_bytes: Optional[int] = None
    """Bytes. Absent: unknown."""
    swap_out: str = ""
    """The name of its swap-out node."""
    swap_ins: Tuple[SwapIn, ...] = ()
    """Its ways back."""
    device: str = ""
    """The producer's device."""
    deadline_nodes: Tuple[str, ...] = ()
    """Nodes that wait for the end of the swap-out: its deadline edges (sync_mode 1 and 3)."""

    _name = "TensorSwap"
    _kinds = {"size_bytes": int, "swap_ins": SwapIn}


@dataclass(frozen=True, repr=False)
class EdgeCount(Message):
    """How many control edges of one kind."""
    kind: EdgeKind = ""
    count: int = 0

    _name = "EdgeCount"
    _kinds = {"kind": Enum("EDGE_KIND_"), "count": int}


@dataclass(frozen=True, repr=False)
class StageTiming(Message):
    """Time spent in one stage."""
    stage: Stage = ""
    duration_ns: int = 0
    """Wall time, in nanoseconds."""

    _name = "StageTiming"
    _kinds = {"stage": Enum("STAGE_", lower=True), "duration_ns": int}


@dataclass(frozen=True, repr=False)
class ReportWarning(Message):
    """Something the caller should know."""
    code: WarningCode = ""
    """What kind it is."""
    message: str = ""
    """One sentence."""

    _name = "Warning"
    _kinds = {"code": Enum("WARNING_CODE_")}


@dataclass(frozen=True, repr=False)
class Advice(Message):
    """What to set in the training job."""
    host_memory_variable: str = ""
    """The environment variable that bounds TensorFlow's pinned host memory, in MiB, as
    `NAME=VALUE`, from the bytes swapped out (TensorFlow 1.14 and later)."""
    host_memory_variable_before_1_14: str = ""
    """The same for TensorFlow before 1.14."""
    explanation: str = ""
    """One sentence on how the value was chosen."""
    config_proto_text: str = ""
    """A tensorflow.ConfigProto in text form to merge into the session's: keeps Grappler's
    scheduling heuristics and switches its own swapping off, so that it adds none to the plan (where
    there is one); and has internal_fragmentation_fraction."""
    internal_fragmentation_fraction: float = 0.0
    """What the session must be created with, as the step was simulated so:
    Hardware.internal_fragmentation_fraction. 0: nothing."""

    _name = "Advice"
    _kinds = {"internal_fragmentation_fraction": float}


@dataclass(frozen=True, repr=False)
class OutOfMemory(Message):
    """Memory that could not be had."""
    device: str = ""
    """The GPU; empty for one whose nodes carry none."""
    host: bool = False
    """It was pinned host memory, not the GPU's."""
    node: str = ""
    """The node that asked, what it asked for, what was in use, and the budget, in bytes."""
    requested_bytes: int = 0
    in_use_bytes: int = 0
    budget_bytes: int = 0
    fragmented: bool = False
    """Fragmentation: there were enough free bytes, but not in one piece."""

    _name = "OutOfMemory"
    _kinds = {"requested_bytes": int, "in_use_bytes": int, "budget_bytes": int}


@dataclass(frozen=True, repr=False)
class LowerBounds(Message):
    """Bounds for any plan that swaps, at the order of nodes that the unswapped step has."""
    memory_bytes: int = 0
    """The largest node with its inputs, outputs and workspace, and the resident bytes: below it no
    plan fits. And that node."""
    memory_node: str = ""
    copy_out_bytes: int = 0
    """Bytes that must leave the GPU, and come back."""
    copy_in_bytes: int = 0
    step_time_ns: int = 0
    """The time that any plan takes at least."""

    _name = "LowerBounds"
    _kinds = {"memory_bytes": int, "copy_out_bytes": int, "copy_in_bytes": int, "step_time_ns": int}


@dataclass(frozen=True, repr=False)
class DeviceForecast(Message):
    """One GPU."""
    device: str = ""
    """As the nodes spell it; empty where they carry none."""
    resident_bytes: int = 0
    """Bytes that are there before the step and after it: variables, optimizer slots, constants."""
    peak_bytes: int = 0
    """The most bytes in use at once, resident ones among them, in the worse of the two ways. Where
    the step does not fit: what it would take with unlimited memory."""
    peak_node: str = ""
    """The node that ran, or was launched, at that moment."""
    compute_ns: int = 0
    """Busy times of the three engines, and the time that the compute engine waited for a copy or
    for memory; launched ahead."""
    copy_out_ns: int = 0
    copy_in_ns: int = 0
    stall_ns: int = 0
    copy_out_bytes: int = 0
    """Bytes copied to the host, and back."""
    copy_in_bytes: int = 0
    bounds: Optional[LowerBounds] = None
    """What no plan can beat at this budget. Absent without one."""
    budget_bytes: Optional[int] = None
    """The device budget, in bytes: its memory less allocator_reserve. Absent without one."""

    _name = "DeviceForecast"
    _kinds = {
        "resident_bytes": int, "peak_bytes": int, "compute_ns": int, "copy_out_ns": int,
        "copy_in_ns": int, "stall_ns": int, "copy_out_bytes": int, "copy_in_bytes": int, "bounds":
        LowerBounds, "budget_bytes": int}


@dataclass(frozen=True, repr=False)
class KnownShare(Message):
    """Of what runs on GPUs in one step: how much of it there is, and of how much the size, or the
    cost, is not known. Bodies of functions that are not looked into (FIT_UNKNOWN_CAUSE_CALLS) count
    as the call, one node."""
    tensor_count: int = 0
    """Tensors that take memory on a GPU."""
    unknown_tensor_count: int = 0
    """Of those, the ones of unknown size."""
    bounded_tensor_count: int = 0
    """Likewise those whose size hangs on the values of others (Unique, Where, ...): the most that
    they may be counts, an upper bound."""
    node_count: int = 0
    """Nodes that compute."""
    unknown_node_count: int = 0
    """Of those, the ones of unknown cost."""

    _name = "KnownShare"
    _kinds = {
        "tensor_count": int, "unknown_tensor_count": int, "bounded_tensor_count": int, "node_count":
        int, "unknown_node_count": int}


@dataclass(frozen=True, repr=False)
class Forecast(Message):
    """The forecast of one graph on one machine. Times are of one step, in nanoseconds; bytes are
    rounded up to TensorFlow's 256 per buffer."""
    fit: Fit = ""
    """Whether the step fits, both as TensorFlow launches it and simulated synchronously."""
    fit_unknown: Tuple[FitUnknown, ...] = ()
    """Why that is not known: one entry per cause, in order of the enum. Empty unless
    FIT_UNKNOWN."""
    out_of_memory: Optional[OutOfMemory] = None
    """What did not fit first. Absent unless FIT_DOES_NOT_FIT."""
    step_time_ns: Optional[int] = None
    """The time with kernels launched ahead of the device, as TensorFlow does it. Absent where that
    way does not fit."""
    synchronous_step_time_ns: Optional[int] = None
    """The time if every node took its memory when the engine starts it. Absent where that way does
    not fit."""
    devices: Tuple[DeviceForecast, ...] = ()
    """One per GPU, in order of its first node."""
    host_peak_bytes: int = 0
    """The most host memory that buffers on their way to and from a GPU take at once."""
    known_share: Optional[KnownShare] = None
    """How much of the step on GPUs is known."""

    _name = "Forecast"
    _kinds = {
        "fit": Enum("FIT_"), "fit_unknown": FitUnknown, "out_of_memory": OutOfMemory,
        "step_time_ns": int, "synchronous_step_time_ns": int, "devices": DeviceForecast,
        "host_peak_bytes": int, "known_share": KnownShare}


@dataclass(frozen=True, repr=False)
class GpuMemory(Message):
    """The memory of some GPUs, in place of Hardware.gpu_memory_bytes."""
    device: str = ""
    """REQUIRED. A device, as RewriteOptions.devices has it: `/gpu:1` is that GPU of every job and
    task. One that names no GPU of the graph is an error (NAME_MATCHES_NOTHING), so is a GPU that
    two of them name."""
    gpu_memory_bytes: int = 0
    """REQUIRED. As Hardware.gpu_memory_bytes. Range: 1 and up."""

    _name = "GpuMemory"
    _kinds = {"gpu_memory_bytes": int}


@dataclass(frozen=True, repr=False)
class Hardware(Message):
    """Rates are what a program reaches, not what a data sheet says, unless there is an efficiency
    beside them. Links are of pinned copies, per direction, both directions at once."""
    preset: str = ""
    """OPTIONAL. Name of a preset: the numbers that are not given. GetCapabilities and `spillway
    capabilities` list them. Default: p100_pcie."""
    gpu_memory_bytes: Optional[int] = None
    """OPTIONAL. Bytes that TensorFlow's allocator can use on each GPU (less than the board has).
    Less allocator_reserve they are the device budget. Range: 1 and up. Default: the preset's."""
    host_memory_bytes: Optional[int] = None
    """OPTIONAL. Bytes of pinned host memory that the swaps of all GPUs together may use: the host
    budget. Range: 0 and up. Default: the preset's."""
    peak_flops: Optional[float] = None
    """OPTIONAL. Operations per second; a multiply-add counts as two. Range: above 0. Default: the
    preset's."""
    eff_conv: Optional[float] = None
    """OPTIONAL. The share of peak_flops that convolutions reach. Range: above 0, at most 1.
    Default: the preset's."""
    eff_matmul: Optional[float] = None
    """OPTIONAL. The share of peak_flops that matrix products reach. Range: above 0, at most 1.
    Default: the preset's."""
    mem_bytes_per_s: Optional[float] = None
    """OPTIONAL. Bytes per second of the GPU's own memory. Range: above 0. Default: the preset's."""
    mem_eff: Optional[float] = None
    """OPTIONAL. The share of mem_bytes_per_s that kernels reach. Range: above 0, at most 1.
    Default: the preset's."""
    launch_s: Optional[float] = None
    """OPTIONAL. Seconds from one kernel's launch to the next one's. Range: 0 to 1. Default: the
    preset's."""
    d2h_bytes_per_s: Optional[float] = None
    """OPTIONAL. Bytes per second of copies from the device to the host. Range: above 0. Default:
    the preset's."""
    h2d_bytes_per_s: Optional[float] = None
    """OPTIONAL. Bytes per second of copies from the host to the device. Range: above 0. Default:
    the preset's."""
    copy_latency_s: Optional[float] = None
    """OPTIONAL. Seconds that each copy takes besides its bytes. Range: 0 to 1. Default: the
    preset's."""
    gpu_memory_source: MemorySource = ""
    """OPTIONAL. Where gpu_memory_bytes is from, for reports. Default: OPTION if it is given, else
    PRESET."""
    allocator_reserve: Optional[float] = None
    """OPTIONAL. The share of gpu_memory_bytes that steps leave to what is not simulated: chunks of
    TensorFlow's allocator that are larger than the variables in them, orders of execution other
    than the simulated one. TFLMS v2 leaves as much. Range: 0 to 0.9. Default: 0.1."""
    internal_fragmentation_fraction: Optional[float] = None
    """OPTIONAL. What gpu_options.experimental.internal_fragmentation_fraction is in the session
    that trains: TensorFlow's allocator also splits a chunk that is larger than what is asked for by
    this share of gpu_memory_bytes. By default it hands out up to twice as much (or 128 MiB more),
    so that a small share (0.001) leaves more memory to use. A plan that is made with it needs a
    session with it: the report's advice has that. 0: as TensorFlow does by default. Range: 0 to
    below 1. Default: 0."""
    gpu_memories: Tuple[GpuMemory, ...] = ()
    """OPTIONAL. GPUs that have another memory than gpu_memory_bytes. Default: none."""

    _name = "Hardware"
    _kinds = {
        "gpu_memory_bytes": int, "host_memory_bytes": int, "peak_flops": float, "eff_conv": float,
        "eff_matmul": float, "mem_bytes_per_s": float, "mem_eff": float, "launch_s": float,
        "d2h_bytes_per_s": float, "h2d_bytes_per_s": float, "copy_latency_s": float,
        "gpu_memory_source": Enum("MEMORY_SOURCE_"), "allocator_reserve": float,
        "internal_fragmentation_fraction": float, "gpu_memories": GpuMemory}


@dataclass(frozen=True, repr=False)
class HardwareReport(Message):
    """A machine as reports and lists of presets tell it."""
    hardware: Optional[Hardware] = None
    """Every number filled in."""
    device_budget_bytes: int = 0
    """The device budget, in bytes: gpu_memory_bytes less allocator_reserve."""

    _name = "HardwareReport"
    _kinds = {"hardware": Hardware, "device_budget_bytes": int}


@dataclass(frozen=True, repr=False)
class NameCount(Message):
    """How often a name occurs."""
    name: str = ""
    count: int = 0

    _name = "NameCount"
    _kinds = {"count": int}


@dataclass(frozen=True, repr=False)
class DebugOp(Message):
    """One op, to tune by."""
    name: str = ""
    """The node."""
    type: str = ""
    """Its op type, as excl_types and incl_types take it."""
    order: Optional[int] = None
    """Its order: the number of its level. Absent: it has none."""

    _name = "DebugOp"
    _kinds = {"order": int}


@dataclass(frozen=True, repr=False)
class ScopeReport(Message):
    """What the strategy `scope` took as given."""
    backward_op_count: int = 0
    """Ops of the backward part."""
    starting_ops: Tuple[str, ...] = ()
    """The ops that the walk started from, given or found."""
    starting_ops_found: bool = False
    """True if they were found, not given."""
    backward_start_level: Optional[int] = None
    """The first level that holds an op of the backward part, and how many levels there are. Absent
    if there is none."""
    level_count: int = 0
    backward_part_found: bool = False
    """True if the backward part was found from the structure of the graph, not named by
    optimizer_scopes. The next two fields then say what was taken."""
    weight_updates: Tuple[NameCount, ...] = ()
    """The weight updates by op type, most frequent first."""
    backward_scopes: Tuple[NameCount, ...] = ()
    """The outermost name scopes of the ops of the backward part, most ops first: as
    optimizer_scopes, they would name all of it that is in a scope (and what else is named so). At
    most 20."""
    n_tensors: int = 0
    """The parameters in force, given or default."""
    lb: int = 0
    ub: int = 0
    debug_ops: Tuple[DebugOp, ...] = ()
    """What debug and debug_level ask for, in the order of the walk."""

    _name = "ScopeReport"
    _kinds = {
        "backward_op_count": int, "backward_start_level": int, "level_count": int, "weight_updates":
        NameCount, "backward_scopes": NameCount, "n_tensors": int, "lb": int, "ub": int,
        "debug_ops": DebugOp}


@dataclass(frozen=True, repr=False)
class LevelTuning(Message):
    """How the setting for one GPU was found. What came of it is in RewriteReport.fits."""
    setting_count: int = 0
    """Settings that were simulated, and those among them that fit. One is simulated twice: launched
    ahead and synchronously; it must fit either way. One that fits launched ahead, but is slower so
    than the best that was known, is not simulated synchronously, and counts as fitting."""
    fitting_setting_count: int = 0
    exhaustive: bool = False
    """True if these were all that differ."""

    _name = "LevelTuning"
    _kinds = {"setting_count": int, "fitting_setting_count": int}


@dataclass(frozen=True, repr=False)
class LevelDevice(Message):
    """The choice for one GPU."""
    device: str = ""
    """The device as its first node spells it; empty where nodes carry none."""
    swapout_threshold: Optional[int] = None
    """The setting in force. Absent: it plays no part (nothing is swapped, or swapin_ahead with
    sync_mode 2 or 3)."""
    swapin_ahead: Optional[int] = None
    swapin_groupby: Optional[int] = None
    sync_mode: Optional[int] = None
    tuning: Optional[LevelTuning] = None
    """How it was found. Absent: everything was given."""

    _name = "LevelDevice"
    _kinds = {
        "swapout_threshold": int, "swapin_ahead": int, "swapin_groupby": int, "sync_mode": int,
        "tuning": LevelTuning}


@dataclass(frozen=True, repr=False)
class LevelReport(Message):
    """What the strategy `level` found and chose."""
    level_count: int = 0
    """Levels of the graph (after serialization), and ops that have none: what depends on a loop."""
    unleveled_op_count: int = 0
    inactive_op_count: int = 0
    """Ops left alone: not of this mode (is_training), inside loops, and what only these lead to."""
    edge_count: int = 0
    """Distinct pairs of producer and consumer over data edges."""
    serialized_level_count: int = 0
    """Levels that were serialized, and control edges added for it."""
    serialization_edge_count: int = 0
    devices: Tuple[LevelDevice, ...] = ()
    """One per GPU asked for, in order of the device's first node."""
    paced: bool = False
    """Whether this is the plan with pace edges and order edges (LevelStrategy.pace): false where
    the one without is as fast."""

    _name = "LevelReport"
    _kinds = {
        "level_count": int, "unleveled_op_count": int, "inactive_op_count": int, "edge_count": int,
        "serialized_level_count": int, "serialization_edge_count": int, "devices": LevelDevice}


@dataclass(frozen=True, repr=False)
class BudgetDevice(Message):
    """The search for one GPU."""
    device: str = ""
    """The device as its first node spells it; empty where nodes carry none."""
    gap_count: int = 0
    """Times between two uses for which a buffer could be away."""
    plan_count: int = 0
    """Plans that were simulated, one in several sizes of memory once for each; and those among them
    that fit. One that is slower than the best that was known is not simulated to its end, and
    counts as fitting."""
    fitting_plan_count: int = 0
    other_budget_bytes: Tuple[int, ...] = ()
    """Sizes of memory, in bytes, besides the budget, in which the plan was simulated, too, and
    fits: with memory placed, what fits is not monotonic."""
    cut_short: bool = False
    """True if the limit max_search_steps ended the search before its effort was spent."""
    ordered_peak_bytes: Optional[int] = None
    """What the step takes at its peak with the order edges alone, launched ahead or not. Absent:
    there are none."""
    step_time_bound_ns: Optional[int] = None
    """The time below which no plan of swaps comes, with the step's operations in their order, order
    edges included, and the budget (DeviceBounds.step_time_ns is that of the graph's own order).
    Absent: some operation alone takes more than the budget."""
    level: Optional[LevelDevice] = None
    """The setting of the strategy `level`, where its plan is the faster one and was taken."""
    variation_count: int = 0
    """How often the plan was simulated with most of the reserve besides, but with other orders of
    what is ready, other times of copies and variables where initializers leave them; and in how
    many of these it does not fit (warning MAY_RUN_OUT). 0 where the budget is all of the memory:
    then nothing is left for them; and where `objective` asks for less than the budget."""
    unfit_variation_count: int = 0
    fastest_step_time_ns: Optional[int] = None
    """What a step takes with the fastest plan that was found, where a slower one was taken that
    fits in all variations."""
    least_budget_bytes: Optional[int] = None
    """The budget, in bytes, that the plan was made for, where `objective` asks for less than the
    GPU's: the smallest one with which a plan within max_slowdown was found. Times and peak of the
    fit are those with it; the forecast is that with the GPU's budget."""

    _name = "BudgetDevice"
    _kinds = {
        "gap_count": int, "plan_count": int, "fitting_plan_count": int, "other_budget_bytes": int,
        "ordered_peak_bytes": int, "step_time_bound_ns": int, "level": LevelDevice,
        "variation_count": int, "unfit_variation_count": int, "fastest_step_time_ns": int,
        "least_budget_bytes": int}


@dataclass(frozen=True, repr=False)
class BudgetReport(Message):
    """How the strategy `budget` searched."""
    planning_effort: PlanningEffort = ""
    """The effort in force, given or default."""
    devices: Tuple[BudgetDevice, ...] = ()
    """One per GPU that it planned, in order of the device's first node. What came of it is in
    RewriteReport.fits."""
    objective: PlanningObjective = ""
    """The objective and the limit of the slowdown in force, given or default. Absent: no limit."""
    max_slowdown: Optional[float] = None

    _name = "BudgetReport"
    _kinds = {
        "planning_effort": Enum("PLANNING_EFFORT_"), "devices": BudgetDevice, "objective":
        Enum("PLANNING_OBJECTIVE_"), "max_slowdown": float}


@dataclass(frozen=True, repr=False)
class KeptCall(Message):
    """A call that was not inlined."""
    node: str = ""
    """The node; of one in a body, with the names of the calls that lead there."""
    function: str = ""
    """The function that it calls; empty if it names none."""
    reason: KeptCallReason = ""

    _name = "KeptCall"
    _kinds = {"reason": Enum("KEPT_CALL_REASON_")}


@dataclass(frozen=True, repr=False)
class Inlining(Message):
    """What became of a graph's calls. Absent where it has none."""
    inlined_call_count: int = 0
    """Calls that were replaced by the bodies of their functions, those in bodies among them."""
    added_node_count: int = 0
    """What that added to the graph."""
    added_bytes: int = 0
    kept_call_count: int = 0
    """Calls that stay: how many, and the first of them, in the order of the graph; at most 100."""
    kept_calls: Tuple[KeptCall, ...] = ()

    _name = "Inlining"
    _kinds = {
        "inlined_call_count": int, "added_node_count": int, "added_bytes": int, "kept_call_count":
        int, "kept_calls": KeptCall}


@dataclass(frozen=True, repr=False)
class ReportFields(Message):
    """The account of one rewrite."""
    outcome: Outcome = ""
    """What became of the graph."""
    summary: str = ""
    """One sentence on the outcome, for people."""
    strategy: Strategy = ""
    """The strategy that ran."""
    node_count_before: int = 0
    """Nodes of the graph as it came and as it is returned."""
    node_count_after: int = 0
    graph_bytes_before: int = 0
    """Sizes of the serialized graph, in bytes, as it came and as it is returned."""
    graph_bytes_after: int = 0
    devices: Tuple[DeviceReport, ...] = ()
    """One entry per device that has a swap, in order of the device's first node."""
    fits: Tuple[DeviceFit, ...] = ()
    """One entry per GPU that the strategy judged by its memory, in order of the device's first
    node."""
    swaps: Tuple[TensorSwap, ...] = ()
    """Every swap, in the order of decision."""
    added_control_edges: Tuple[EdgeCount, ...] = ()
    """Control edges added, by kind, in order of the enum. A kind without any is absent."""
    stages: Tuple[StageTiming, ...] = ()
    """Time spent per stage, in the order run."""
    warnings: Tuple[ReportWarning, ...] = ()
    """What the caller should know, most important first."""
    advice: Optional[Advice] = None
    """What to set in the training job so that the plan works."""
    forecast_before: Optional[Forecast] = None
    """What a step takes as the graph came. Absent: not simulated; a warning says why, unless
    simulation is OFF or the graph was stripped."""
    forecast_after: Optional[Forecast] = None
    """The same as the graph is returned; only if swaps were inserted."""
    hardware: Optional[HardwareReport] = None
    """The machine of the two, and the nodes that one step runs."""
    targets: Tuple[str, ...] = ()
    scope: Optional[ScopeReport] = None
    """What the strategy `scope` took as given. Absent for others."""
    level: Optional[LevelReport] = None
    """What the strategy `level` found and chose. Absent for others."""
    budget: Optional[BudgetReport] = None
    """How the strategy `budget` searched. Absent for others."""
    inlining: Optional[Inlining] = None
    """The graph's calls. All figures are of the graph with them inlined; so is what is returned,
    but for one that is returned as it came."""

    _name = "RewriteReport"
    _kinds = {
        "outcome": Enum("OUTCOME_"), "strategy": Enum("STRATEGY_", lower=True), "node_count_before":
        int, "node_count_after": int, "graph_bytes_before": int, "graph_bytes_after": int,
        "devices": DeviceReport, "fits": DeviceFit, "swaps": TensorSwap, "added_control_edges":
        EdgeCount, "stages": StageTiming, "warnings": ReportWarning, "advice": Advice,
        "forecast_before": Forecast, "forecast_after": Forecast, "hardware": HardwareReport,
        "scope": ScopeReport, "level": LevelReport, "budget": BudgetReport, "inlining": Inlining}


@dataclass(frozen=True, repr=False)
class LoopFrame(Message):
    """A frame of a while loop in dataflow form (Enter, NextIteration, Exit)."""
    name: str = ""
    """As its Enter nodes spell it."""
    parent: str = ""
    """The frame around it; empty: none."""
    node_count: int = 0
    """Nodes that run in it, its Enter nodes excepted."""

    _name = "LoopFrame"
    _kinds = {"node_count": int}


@dataclass(frozen=True, repr=False)
class FunctionSummary(Message):
    """A function of the library."""
    name: str = ""
    node_count: int = 0
    """Nodes of its body."""

    _name = "FunctionSummary"
    _kinds = {"node_count": int}


@dataclass(frozen=True, repr=False)
class TensorSummary(Message):
    """What is known of one tensor. Names are cut after 250 bytes, shapes after 16 dimensions."""
    tensor: str = ""
    """`node:port`."""
    dtype: str = ""
    """`float32`, ...; empty: unknown. A reference to a variable ends in `_ref`."""
    shape: Optional[str] = None
    """`[128,?,3]`; `?` is a dimension that is not known. Absent: not even the rank is known."""
    size_bytes: Optional[int] = None
    """Bytes. Absent: unknown."""
    size_unknown: SizeUnknown = ""
    """Why the size is unknown. Unspecified where it is known."""

    _name = "TensorSummary"
    _kinds = {"size_bytes": int, "size_unknown": Enum("SIZE_UNKNOWN_")}


@dataclass(frozen=True, repr=False)
class UnknownSizeCount(Message):
    """How many tensors have no known size for one reason."""
    reason: SizeUnknown = ""
    count: int = 0

    _name = "UnknownSizeCount"
    _kinds = {"reason": Enum("SIZE_UNKNOWN_"), "count": int}


@dataclass(frozen=True, repr=False)
class GraphSummary(Message):
    """What a graph is made of. Lists are complete, largest_tensors excepted. Names are cut after
    250 bytes; those that may hold anything (frames, functions) are escaped as in C where they are
    not plain ASCII."""
    size_bytes: int = 0
    """Size of the serialized graph, in bytes."""
    node_count: int = 0
    data_edge_count: int = 0
    """Input positions that read a tensor, and control inputs."""
    control_edge_count: int = 0
    producer_version: Optional[int] = None
    """The versions that the GraphDef states: of the TensorFlow that made it, and of the oldest one
    that may read it. Absent: not stated."""
    min_consumer_version: Optional[int] = None
    op_types: Tuple[NameCount, ...] = ()
    """Nodes of each op type, most first; of each device, in order of its first node (empty: nodes
    without one); of each name scope of the first level, most first (empty: nodes whose name has no
    `/`)."""
    devices: Tuple[NameCount, ...] = ()
    scopes: Tuple[NameCount, ...] = ()
    level_count: int = 0
    """Levels: the number of nodes on a longest path, over data and control edges. And the first and
    the last node of one such path."""
    longest_path_begin: str = ""
    longest_path_end: str = ""
    frames: Tuple[LoopFrame, ...] = ()
    """Loop frames, in the order in which they are entered."""
    unknown_frame_node_count: int = 0
    """Nodes that TensorFlow would refuse to run: inputs from several frames, or an Enter without a
    frame's name."""
    switch_count: int = 0
    """Nodes that choose: Switch and its like; Merge; If and Case; While; calls of functions."""
    merge_count: int = 0
    if_count: int = 0
    while_count: int = 0
    call_count: int = 0
    functions: Tuple[FunctionSummary, ...] = ()
    """The function library, in file order."""
    placeholders: Tuple[TensorSummary, ...] = ()
    """What a step is fed with, in file order."""
    variables: Tuple[NameCount, ...] = ()
    """Nodes by op type, most first: what holds variables; what changes them (Apply*, Assign*,
    Scatter*), initializers among them."""
    updates: Tuple[NameCount, ...] = ()
    rewritten_by: RewrittenBy = ""
    """Who rewrote the graph before, and the swap nodes in it."""
    swap_out_count: int = 0
    swap_in_count: int = 0
    largest_tensors: Tuple[TensorSummary, ...] = ()
    """The largest of the tensors that some node reads, largest first."""
    tensor_count: int = 0
    """How many tensors some node reads; the bytes of those whose size is known, and how many these
    are."""
    known_size_bytes: int = 0
    known_size_count: int = 0
    unknown_sizes: Tuple[UnknownSizeCount, ...] = ()
    """The others, by reason, most first."""
    inlining: Optional[Inlining] = None
    """The graph's calls: all that is said here is of the graph with them inlined, but for
    size_bytes and functions, which are the file's."""

    _name = "GraphSummary"
    _kinds = {
        "size_bytes": int, "node_count": int, "data_edge_count": int, "control_edge_count": int,
        "producer_version": int, "min_consumer_version": int, "op_types": NameCount, "devices":
        NameCount, "scopes": NameCount, "level_count": int, "frames": LoopFrame,
        "unknown_frame_node_count": int, "switch_count": int, "merge_count": int, "if_count": int,
        "while_count": int, "call_count": int, "functions": FunctionSummary, "placeholders":
        TensorSummary, "variables": NameCount, "updates": NameCount, "rewritten_by":
        Enum("REWRITTEN_BY_"), "swap_out_count": int, "swap_in_count": int, "largest_tensors":
        TensorSummary, "tensor_count": int, "known_size_bytes": int, "known_size_count": int,
        "unknown_sizes": UnknownSizeCount, "inlining": Inlining}


@dataclass(frozen=True, repr=False)
class MemorySample(Message):
    """Bytes in use."""
    time_ns: int = 0
    """Since the start of the step, in nanoseconds."""
    bytes: int = 0

    _name = "MemorySample"
    _kinds = {"time_ns": int, "bytes": int}


@dataclass(frozen=True, repr=False)
class LiveTensor(Message):
    """A buffer that holds memory."""
    tensor: Optional[TensorSummary] = None
    resident: bool = False
    """There before the step and after it."""

    _name = "LiveTensor"
    _kinds = {"tensor": TensorSummary}


@dataclass(frozen=True, repr=False)
class DeviceMemory(Message):
    """The memory of one GPU over the step that is simulated (SimulateReport.simulated): within the
    budgets if what is known of it fits them, otherwise with unlimited memory."""
    device: str = ""
    timeline: Tuple[MemorySample, ...] = ()
    """Bytes in use from that moment on, whenever they change."""
    live_at_peak: Tuple[LiveTensor, ...] = ()
    """What is live at the peak, largest first. Buffers are named by the first of their tensors."""
    peak_bytes: int = 0
    """The most of the timeline, and when that was first in use. DeviceForecast.peak_bytes may be
    more: it is of the worse of the two ways."""
    peak_ns: int = 0
    resident_bytes: int = 0
    """Of it, what is there before the step and after it."""

    _name = "DeviceMemory"
    _kinds = {
        "timeline": MemorySample, "live_at_peak": LiveTensor, "peak_bytes": int, "peak_ns": int,
        "resident_bytes": int}


@dataclass(frozen=True, repr=False)
class DistanceCount(Message):
    """Edges of one distance."""
    distance: int = 0
    edge_count: int = 0
    tensor_bytes: int = 0
    """Bytes of the tensors, each once per distance, of known size."""

    _name = "DistanceCount"
    _kinds = {"distance": int, "edge_count": int, "tensor_bytes": int}


@dataclass(frozen=True, repr=False)
class SimulatedStep(Message):
    """The step that memory and trace show."""
    execution: Execution = ""
    """How it was run."""
    unlimited_memory: bool = False
    """With unlimited memory: what is known of it does not fit the budgets, or there are none."""
    step_time_ns: int = 0
    """How long it took."""

    _name = "SimulatedStep"
    _kinds = {"execution": Enum("EXECUTION_"), "step_time_ns": int}


@dataclass(frozen=True, repr=False)
class TraceSpan(Message):
    """One operation. Times are nanoseconds since the start of the step."""
    node: str = ""
    """The node; of a copy the one whose output travels. Of a loop's body: all iterations
    together."""
    engine: Engine = ""
    """Where it ran."""
    device: Optional[int] = None
    """On which GPU: an index into Forecast.devices. Absent of ENGINE_HOST."""
    start_ns: int = 0
    """When its engine took it up, and for how long it ran."""
    duration_ns: int = 0
    bytes: int = 0
    """Of copies: the bytes that travel."""
    given_ns: int = 0
    """When it was given its memory: launched ahead, a kernel is so when it is launched."""
    waited_ns: int = 0
    """For how long it waited for that memory."""
    copied_out: Optional[int] = None
    """Of a copy to the GPU: the copy to the host, by its place in `spans`, that brought there what
    it takes back (a swap, or what goes from one GPU to another). Absent where the host made it."""

    _name = "TraceSpan"
    _kinds = {
        "engine": Enum("ENGINE_"), "device": int, "start_ns": int, "duration_ns": int, "bytes": int,
        "given_ns": int, "waited_ns": int, "copied_out": int}


@dataclass(frozen=True, repr=False)
class StepTrace(Message):
    """When the operations of a step ran. What takes no time (bookkeeping) is left out, but for
    copies."""
    spans: Tuple[TraceSpan, ...] = ()
    """In order of their start; of several at one moment, in order of the graph's nodes, copies
    last."""

    _name = "StepTrace"
    _kinds = {"spans": TraceSpan}


@dataclass(frozen=True, repr=False)
class SimulateReport(Message):
    """What came of it."""
    forecast: Optional[Forecast] = None
    hardware: Optional[HardwareReport] = None
    """The machine."""
    targets: Tuple[str, ...] = ()
    """What one step runs, and how many nodes that makes."""
    node_count: int = 0
    warnings: Tuple[ReportWarning, ...] = ()
    """What the figures leave out."""
    memory: Tuple[DeviceMemory, ...] = ()
    """One per GPU, as in the forecast; only if it was asked for."""
    distances: Tuple[DistanceCount, ...] = ()
    """Data edges between nodes of the GPUs by distance in levels, ascending; only with memory."""
    inlining: Optional[Inlining] = None
    """The graph's calls: what is simulated is the graph with them inlined."""
    simulated: Optional[SimulatedStep] = None
    """The step that memory and trace show; only with one of these."""
    trace: Optional[StepTrace] = None
    """When each operation of that step ran; only if it was asked for."""

    _name = "SimulateReport"
    _kinds = {
        "forecast": Forecast, "hardware": HardwareReport, "node_count": int, "warnings":
        ReportWarning, "memory": DeviceMemory, "distances": DistanceCount, "inlining": Inlining,
        "simulated": SimulatedStep, "trace": StepTrace}


@dataclass(frozen=True, repr=False)
class ExploredSize(Message):
    """One size."""
    size: int = 0
    unswapped: Optional[Forecast] = None
    """The step as it comes, without swapping."""
    steps_per_s: Optional[float] = None
    """Steps per second, and that times the size. Absent where it does not fit."""
    sizes_per_s: Optional[float] = None
    swapped: Optional[Forecast] = None
    """The same with swapping: only if that was asked for, and a plan fits. As unswapped where no
    swapping is needed."""
    swapped_steps_per_s: Optional[float] = None
    swapped_sizes_per_s: Optional[float] = None
    full_speed_sizes_per_s: Optional[float] = None
    """The same as `unswapped` without a budget, per second: full speed, if memory were no matter.
    Only if swapping was asked for."""
    bound_sizes_per_s: Optional[float] = None
    """The same by the lower bound of the step time (LowerBounds): faster is no plan of swaps that
    keeps the order of operations, as it is with the plan's order edges. Only if swapping was asked
    for, and the bound of memory is within the budget."""

    _name = "ExploredSize"
    _kinds = {
        "size": int, "unswapped": Forecast, "steps_per_s": float, "sizes_per_s": float, "swapped":
        Forecast, "swapped_steps_per_s": float, "swapped_sizes_per_s": float,
        "full_speed_sizes_per_s": float, "bound_sizes_per_s": float}


@dataclass(frozen=True, repr=False)
class ExploreReport(Message):
    """What came of it."""
    sizes: Tuple[ExploredSize, ...] = ()
    """One per size tried, ascending: those asked for, and those of the search."""
    largest_fitting_size: Optional[int] = None
    """The largest size found, such that the next multiple does not fit. Absent: none fits, or there
    is no budget. And whether it is known to fit: FITS or UNKNOWN; unspecified where it is
    absent."""
    largest_fit: Fit = ""
    largest_fitting_size_swapped: Optional[int] = None
    """The same with swapping. Absent, too, if that was not asked for."""
    largest_fit_swapped: Fit = ""
    hardware: Optional[HardwareReport] = None
    targets: Tuple[str, ...] = ()
    warnings: Tuple[ReportWarning, ...] = ()
    size_is_batch: bool = False
    """The size is the number of examples in a batch, so sizes_per_s is a throughput in examples."""
    inlining: Optional[Inlining] = None
    """As in SimulateReport."""

    _name = "ExploreReport"
    _kinds = {
        "sizes": ExploredSize, "largest_fitting_size": int, "largest_fit": Enum("FIT_"),
        "largest_fitting_size_swapped": int, "largest_fit_swapped": Enum("FIT_"), "hardware":
        HardwareReport, "warnings": ReportWarning, "inlining": Inlining}


@dataclass(frozen=True, repr=False)
class DiffNode(Message):
    """A node that only one graph has."""
    name: str = ""
    op: str = ""
    device: str = ""
    in_swap: bool = False
    """It belongs to one of `swaps`."""

    _name = "DiffNode"


@dataclass(frozen=True, repr=False)
class NodeChange(Message):
    """A node that differs in itself. What is the same is absent."""
    name: str = ""
    op_a: Optional[str] = None
    op_b: Optional[str] = None
    device_a: Optional[str] = None
    device_b: Optional[str] = None
    attributes_added: Tuple[str, ...] = ()
    """Names of attributes that only B has, only A has, or whose values differ; sorted. Escaped as
    in C where they are not plain ASCII."""
    attributes_removed: Tuple[str, ...] = ()
    attributes_changed: Tuple[str, ...] = ()

    _name = "NodeChange"


@dataclass(frozen=True, repr=False)
class InputChange(Message):
    """A data input that reads something else. Tensors are `node:port`; absent: no such input."""
    node: str = ""
    input_index: int = 0
    """The position among its inputs, from 0."""
    tensor_a: Optional[str] = None
    tensor_b: Optional[str] = None
    in_swap: bool = False
    """It reads a swap-in of one of `swaps` instead of the tensor swapped."""

    _name = "InputChange"
    _kinds = {"input_index": int}


@dataclass(frozen=True, repr=False)
class ControlChange(Message):
    """A control input of one graph alone."""
    node: str = ""
    """The node that waits, and the one that it waits for."""
    control: str = ""
    in_swap: bool = False
    """One of the two is a swap node of `swaps`."""
    kind: EdgeKind = ""
    """What it is for, as far as the nodes tell: DEADLINE (`control` is a swap-out of `swaps`) or
    PACE (a swap-in). Unspecified: neither."""

    _name = "ControlChange"
    _kinds = {"kind": Enum("EDGE_KIND_")}


@dataclass(frozen=True, repr=False)
class FoundSwapIn(Message):
    """One way back."""
    name: str = ""
    triggers: Tuple[str, ...] = ()
    """The nodes whose end lets it start; none: it starts when the swap-out is done."""
    consumers: Tuple[InputRef, ...] = ()
    """Whom it serves."""

    _name = "FoundSwapIn"
    _kinds = {"consumers": InputRef}


@dataclass(frozen=True, repr=False)
class FoundSwap(Message):
    """Added nodes that carry a tensor to another place and back: producer -> swap-out -> swap-ins
    -> consumers, where each consumer read the tensor itself in A."""
    tensor: str = ""
    """The tensor, as `node:port`."""
    size_bytes: Optional[int] = None
    """Bytes. Absent: unknown."""
    swap_out: str = ""
    device: str = ""
    """Where the swap-out node, and so the tensor, waits. Empty: not stated."""
    swap_ins: Tuple[FoundSwapIn, ...] = ()

    _name = "FoundSwap"
    _kinds = {"size_bytes": int, "swap_ins": FoundSwapIn}


@dataclass(frozen=True, repr=False)
class GraphDiff(Message):
    """The way from the graph A to the graph B. Lists are complete, in the file order of B;
    `removed` in that of A. `x` and `x:0` are one spelling, and control inputs have no order. Names
    are cut after 250 bytes."""
    identical: bool = False
    """The files are the same, byte for byte."""
    same_graph: bool = False
    """The graphs are the same: nothing but the encoding of the files may differ (see the counts
    below)."""
    node_count_a: int = 0
    """Sizes of the two."""
    node_count_b: int = 0
    graph_bytes_a: int = 0
    graph_bytes_b: int = 0
    added: Tuple[DiffNode, ...] = ()
    """Nodes of B that A does not have, and the other way round."""
    removed: Tuple[DiffNode, ...] = ()
    changed: Tuple[NodeChange, ...] = ()
    """Nodes of both whose op, device or attributes differ."""
    rewired: Tuple[InputChange, ...] = ()
    """Data inputs of nodes of both that read something else."""
    controls_added: Tuple[ControlChange, ...] = ()
    """Control inputs of nodes of both that only B has, or only A."""
    controls_removed: Tuple[ControlChange, ...] = ()
    swaps: Tuple[FoundSwap, ...] = ()
    """What of the above makes up swaps."""
    bookkeeping_count: int = 0
    """Nodes of both whose attribute `_spillway_undo` or `_grappler_do_not_remove` differs: records
    of Spillway, no change of the graph, and not among `changed`."""
    reencoded_count: int = 0
    """Nodes of both that say the same in other bytes (order of attributes, spelling of inputs,
    debug information)."""
    reordered: bool = False
    """The nodes of both stand in another order."""
    library_changed: bool = False
    """What the file holds besides nodes differs: the function library; the versions; anything
    else."""
    versions_changed: bool = False
    other_fields_changed: bool = False
    inlined_calls: Tuple[str, ...] = ()
    """Calls of A that were inlined in B, as B's undo records say, in the file order of A. All lists
    above then compare B with A as it is with these calls inlined: nodes of their functions are in
    both. Sizes are those of the files."""
    inlined_node_count: int = 0
    """How many nodes that brought."""

    _name = "GraphDiff"
    _kinds = {
        "node_count_a": int, "node_count_b": int, "graph_bytes_a": int, "graph_bytes_b": int,
        "added": DiffNode, "removed": DiffNode, "changed": NodeChange, "rewired": InputChange,
        "controls_added": ControlChange, "controls_removed": ControlChange, "swaps": FoundSwap,
        "bookkeeping_count": int, "reencoded_count": int, "inlined_node_count": int}


@dataclass(frozen=True, repr=False)
class Limits(Message):
    """Limits of a server."""
    max_graph_bytes: int = 0
    """The largest graph, in bytes, that a stream takes."""
    max_unary_bytes: int = 0
    """The largest request message, in bytes, that Rewrite takes."""
    max_chunk_bytes: int = 0
    """The largest chunk, in bytes, of a stream."""
    max_node_count: int = 0
    """The most nodes of a graph."""
    max_input_count: int = 0
    """The most inputs (data and control) of all nodes together."""
    max_search_steps: int = 0
    """The most steps of all searches of a request: nodes visited, and three for each node of a plan
    that is simulated."""
    max_concurrent_requests: int = 0
    """The most requests that run at once; more wait. At least 1."""
    max_inflight_bytes: int = 0
    """The most graph bytes of all requests in flight, a part of the server's memory. A request that
    does not fit beside the others is refused as OVERLOADED, one that would not fit alone as
    LIMIT_EXCEEDED."""
    max_concurrent_streams: int = 0
    """The most calls at once on one connection; more wait at the client. At least 1."""
    max_metadata_bytes: int = 0
    """The most bytes of a request's metadata (HTTP/2 headers), counted as HTTP/2 does: names,
    values, and 32 for each pair. A request above it is refused with RESOURCE_EXHAUSTED and no
    reason, since it is refused before it is read."""
    max_option_bytes: int = 0
    """The most bytes of a request's options, a profile and a plan to apply apart: all of a request
    but its graphs. Above it a request is refused with LIMIT_EXCEEDED, before its options are
    read."""

    _name = "Limits"
    _kinds = {
        "max_graph_bytes": int, "max_unary_bytes": int, "max_chunk_bytes": int, "max_node_count":
        int, "max_input_count": int, "max_search_steps": int, "max_concurrent_requests": int,
        "max_inflight_bytes": int, "max_concurrent_streams": int, "max_metadata_bytes": int,
        "max_option_bytes": int}


@dataclass(frozen=True, repr=False)
class Capabilities(Message):
    """What this server can do."""
    version: str = ""
    """The program's version, `MAJOR.MINOR.PATCH`."""
    strategies: Tuple[Strategy, ...] = ()
    """The strategies that options may ask for, strongest first; the first is the default."""
    limits: Optional[Limits] = None
    """The limits in force."""
    hardware_presets: Tuple[HardwareReport, ...] = ()
    """The presets that Hardware.preset may name; the first is the default."""

    _name = "GetCapabilitiesResponse"
    _kinds = {
        "strategies": Enum("STRATEGY_", lower=True), "limits": Limits, "hardware_presets":
        HardwareReport}


@dataclass(frozen=True, repr=False)
class Decision(Message):
    """The verdict on one tensor."""
    tensor: str = ""
    """The tensor, as `node:port`."""
    size_bytes: Optional[int] = None
    """Bytes. Absent: unknown."""
    reason: Reason = ""
    """SWAPPED, or why not."""
    size_unknown: SizeUnknown = ""
    """Why the size is unknown. Unspecified where it is known."""

    _name = "Decision"
    _kinds = {"size_bytes": int, "reason": Enum("REASON_"), "size_unknown": Enum("SIZE_UNKNOWN_")}
