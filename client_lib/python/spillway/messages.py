"""What calls answer: the messages of spillway.v1 as dataclasses. Sizes are bytes, times
nanoseconds; a figure that is not known or not computed is None, never 0.

Written by client_lib/python/generate.py from proto/spillway/v1; change those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Optional, Tuple

from spillway._message import Enum, Message

EdgeKind = Literal["", "TRIGGER", "DEADLINE", "PACE", "SERIALIZATION", "ORDER"]
"""The purpose of an added control edge."""

Outcome = Literal["", "REWRITTEN", "NOTHING_TO_DO", "KEPT", "FOREIGN", "STRIPPED"]
"""The outcome for the graph."""

Strategy = Literal["", "scope", "level", "budget", "strip", "apply"]
"""The policies. The numbers are those of the fields of RewriteOptions.strategy."""

Fit = Literal["", "FITS", "DOES_NOT_FIT", "UNKNOWN"]
"""Whether a step fits its budgets."""

FitUnknownCause = Literal["", "SIZES", "LOOPS", "CALLS"]
"""Why a step's memory is unknown."""

MemorySource = Literal["", "PRESET", "OPTION", "NVIDIA_SMI"]
"""The source of a GPU's memory size."""

Stage = Literal["", "parse", "analysis", "strategy", "simulate", "apply", "verify", "report"]
"""The stages of a rewrite, in the order in which they run."""

WarningCode = Literal[
    "", "NAME_MATCHES_NOTHING", "UNKNOWN_SIZES", "NO_TRIGGER", "FUNCTION_BODIES",
    "ALREADY_REWRITTEN", "NO_GPU", "TARGETS_ARE_SINKS", "UNKNOWN_COSTS", "LOOPS_ONCE",
    "BOTH_BRANCHES", "NOT_SIMULATED", "WORSE_SIDE", "MAY_RUN_OUT", "UPPER_BOUNDS"]
"""Kinds of warning."""

PlanningEffort = Literal["", "LOW", "MEDIUM", "HIGH"]
"""Maximum number of plans simulated for one GPU. The same request gets the same plan."""

PlanningObjective = Literal["", "FASTEST_THAT_FITS", "SMALLEST_PEAK", "FREE_SWAPS_ONLY"]
"""What a plan is optimized for. In every case it fits the GPU's memory."""

KeptCallReason = Literal[
    "", "FED", "NO_FUNCTION", "DUPLICATE_FUNCTION", "RECURSION", "NOINLINE", "COMPILED",
    "IMPLEMENTATION_GROUP", "SIDE_EFFECTS", "DEAD_RESULTS", "BAD_FUNCTION", "TOO_LARGE",
    "OTHER_KIND"]
"""Why a call was kept."""

SizeUnknown = Literal["", "NO_SHAPE", "RANK", "DIM", "DTYPE"]
"""Why a size is unknown."""

RewrittenBy = Literal["", "NOBODY", "SPILLWAY", "OTHER"]
"""The program that rewrote a graph."""

Execution = Literal["", "LAUNCHED_AHEAD", "SYNCHRONOUS"]
"""A way of running a step."""

Engine = Literal["", "COMPUTE", "COPY_OUT", "COPY_IN", "HOST"]
"""The engine that runs an operation."""

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
    """Its name, which is new in the graph."""
    op: str = ""
    """Its op type."""
    inputs: Tuple[str, ...] = ()
    """Its inputs as a NodeDef spells them: `node`, `node:port`, `^node`."""
    device: str = ""
    """Its device."""
    attributes: Tuple[NodeAttribute, ...] = ()
    """Its attributes, in ascending order of name, without `_spillway_undo`, which is only for
    files."""

    _name = "NewNode"
    _kinds = {"attributes": NodeAttribute}


@dataclass(frozen=True, repr=False)
class RewiredInput(Message):
    """A data input that reads a different tensor."""
    node: str = ""
    """The node, and the position among its inputs, from 0."""
    input_index: int = 0
    old_input: str = ""
    """The old and the new input, as a NodeDef spells them."""
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
    """The purpose of the edge."""

    _name = "AddedControl"
    _kinds = {"kind": Enum("EDGE_KIND_")}


@dataclass(frozen=True, repr=False)
class Patch(Message):
    """The edits that turn the original graph (after REPLAN: without its earlier edits) into the
    returned graph. Apply them in the order of the fields: a new node reads only original nodes and
    earlier new nodes."""
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
    """The swaps of one device. All counts are per training step."""
    device: str = ""
    """The device as the producers spell it; empty if the nodes have none."""
    swapped_tensor_count: int = 0
    """Tensors swapped."""
    swap_out_count: int = 0
    """Swap-out and swap-in nodes inserted."""
    swap_in_count: int = 0
    swap_out_bytes: int = 0
    """Bytes copied to and from the host, of the tensors whose size is known."""
    swap_in_bytes: int = 0
    unknown_size_count: int = 0
    """Swapped tensors of unknown size, which are not in the bytes above."""

    _name = "DeviceReport"
    _kinds = {
        "swapped_tensor_count": int, "swap_out_count": int, "swap_in_count": int, "swap_out_bytes":
        int, "swap_in_bytes": int, "unknown_size_count": int}


@dataclass(frozen=True, repr=False)
class FitUnknown(Message):
    """One reason why it is unknown whether a step fits."""
    cause: FitUnknownCause = ""
    """The cause."""
    node: str = ""
    """One of the affected nodes, and the number of affected buffers, loop variables or calls."""
    count: int = 0
    message: str = ""
    """One sentence that names the node and the input that would settle the answer."""

    _name = "FitUnknown"
    _kinds = {"cause": Enum("FIT_UNKNOWN_CAUSE_"), "count": int}


@dataclass(frozen=True, repr=False)
class DeviceFit(Message):
    """Whether a step fits the memory of one GPU, with the other GPUs unswapped and without a
    budget."""
    device: str = ""
    """The device as its first node spells it; empty if the nodes have none."""
    fit: Fit = ""
    """Whether the step of the returned graph fits the budget."""
    fit_unknown: Tuple[FitUnknown, ...] = ()
    """Why this is unknown, as in a forecast. Empty unless FIT_UNKNOWN."""
    budget_bytes: int = 0
    """The budget, in bytes, and its source."""
    budget_source: MemorySource = ""
    unswapped_peak_bytes: int = 0
    """Peak bytes in use of a step of the original graph, in the worse of the two ways to simulate
    it."""
    not_needed: bool = False
    """True if that fits, so nothing is swapped. The margin is the budget minus the peak. With
    FIT_UNKNOWN, only the known part is known to fit, and it is unknown whether swapping is
    needed."""
    full_speed_step_time_ns: int = 0
    """Step time of the original graph, launched ahead, with unlimited memory: full speed."""
    step_time_ns: Optional[int] = None
    """Step time with the chosen swaps, launched ahead and synchronous, and its peak."""
    synchronous_step_time_ns: Optional[int] = None
    peak_bytes: Optional[int] = None
    need_bytes: Optional[int] = None
    """The need of the chosen swaps: the smallest budget, in bytes, with which a step is known to
    run when its buffers are placed. Usually above the peak because of fragmentation. Absent: not
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
    """One swap-in of a tensor."""
    name: str = ""
    """The name of the swap-in node."""
    consumers: Tuple[InputRef, ...] = ()
    """The inputs that read it."""
    triggers: Tuple[str, ...] = ()
    """The nodes that must end before it starts: first the one found by the strategy, then those
    that sync_mode 2 and 3 wait for. Empty: none was found; it starts when the swap-out is done."""
    pace_nodes: Tuple[str, ...] = ()
    """Nodes whose launch waits for it: its pace edges."""

    _name = "SwapIn"
    _kinds = {"consumers": InputRef}


@dataclass(frozen=True, repr=False)
class TensorSwap(Message):
    """The round trip of one tensor to the host and back."""
    tensor: str = ""
    """The tensor, as `node:port`."""
    size_bytes: Optional[int] = None
    """Bytes. Absent: unknown."""
    swap_out: str = ""
    """The name of its swap-out node."""
    swap_ins: Tuple[SwapIn, ...] = ()
    """Its swap-ins."""
    device: str = ""
    """The producer's device."""
    deadline_nodes: Tuple[str, ...] = ()
    """Nodes that wait for the end of the swap-out: its deadline edges (sync_mode 1 and 3)."""

    _name = "TensorSwap"
    _kinds = {"size_bytes": int, "swap_ins": SwapIn}


@dataclass(frozen=True, repr=False)
class EdgeCount(Message):
    """The number of control edges of one kind."""
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
    """Its kind."""
    message: str = ""
    """One sentence."""

    _name = "Warning"
    _kinds = {"code": Enum("WARNING_CODE_")}


@dataclass(frozen=True, repr=False)
class Advice(Message):
    """Settings for the training job."""
    host_memory_variable: str = ""
    """The environment variable that limits TensorFlow's pinned host memory, in MiB, as
    `NAME=VALUE`, computed from the bytes swapped out (TensorFlow 1.14 and later)."""
    host_memory_variable_before_1_14: str = ""
    """The same for TensorFlow before 1.14."""
    explanation: str = ""
    """One sentence on how the value was chosen."""
    config_proto_text: str = ""
    """A tensorflow.ConfigProto in text form to merge into the session's: keeps Grappler's
    scheduling heuristics, disables Grappler's own swapping, so that it adds none to the plan (if
    there is one), and sets internal_fragmentation_fraction."""
    internal_fragmentation_fraction: float = 0.0
    """Hardware.internal_fragmentation_fraction, with which the step was simulated and the session
    must be created. 0: nothing to set."""

    _name = "Advice"
    _kinds = {"internal_fragmentation_fraction": float}


@dataclass(frozen=True, repr=False)
class OutOfMemory(Message):
    """A failed allocation."""
    device: str = ""
    """The GPU; empty if its nodes have no device."""
    host: bool = False
    """True if the allocation was of pinned host memory, not the GPU's."""
    node: str = ""
    """The node that allocated, the bytes that it requested, the bytes in use, and the budget."""
    requested_bytes: int = 0
    in_use_bytes: int = 0
    budget_bytes: int = 0
    fragmented: bool = False
    """True if fragmentation is the cause: enough bytes were free, but not in one chunk."""

    _name = "OutOfMemory"
    _kinds = {"requested_bytes": int, "in_use_bytes": int, "budget_bytes": int}


@dataclass(frozen=True, repr=False)
class LowerBounds(Message):
    """Lower bounds of any plan of swaps that keeps the unswapped step's order of nodes."""
    memory_bytes: int = 0
    """The resident bytes plus the inputs, outputs and workspace of the largest node: no plan fits
    in less. And the name of that node."""
    memory_node: str = ""
    copy_out_bytes: int = 0
    """Bytes that must be copied out of the GPU and back in."""
    copy_in_bytes: int = 0
    step_time_ns: int = 0
    """The minimum step time of any plan."""

    _name = "LowerBounds"
    _kinds = {"memory_bytes": int, "copy_out_bytes": int, "copy_in_bytes": int, "step_time_ns": int}


@dataclass(frozen=True, repr=False)
class DeviceForecast(Message):
    """One GPU."""
    device: str = ""
    """As the nodes spell it; empty if they have none."""
    resident_bytes: int = 0
    """Bytes that are resident before and after the step: variables, optimizer slots, constants."""
    peak_bytes: int = 0
    """Peak bytes in use, including resident ones, in the worse of the two ways. If the step does
    not fit: the peak with unlimited memory."""
    peak_node: str = ""
    """The node that ran, or was launched, at the peak."""
    compute_ns: int = 0
    """Busy times of the three engines, and the time that the compute engine waited for a copy or
    for memory, all with kernels launched ahead."""
    copy_out_ns: int = 0
    copy_in_ns: int = 0
    stall_ns: int = 0
    copy_out_bytes: int = 0
    """Bytes copied to the host, and back."""
    copy_in_bytes: int = 0
    bounds: Optional[LowerBounds] = None
    """Lower bounds of any plan at this budget. Absent without a budget."""
    budget_bytes: Optional[int] = None
    """The device budget, in bytes: its memory minus allocator_reserve. Absent without a budget."""

    _name = "DeviceForecast"
    _kinds = {
        "resident_bytes": int, "peak_bytes": int, "compute_ns": int, "copy_out_ns": int,
        "copy_in_ns": int, "stall_ns": int, "copy_out_bytes": int, "copy_in_bytes": int, "bounds":
        LowerBounds, "budget_bytes": int}


@dataclass(frozen=True, repr=False)
class KnownShare(Message):
    """How many tensors and nodes a step has on GPUs, and how many of them are of unknown size or
    cost. A call whose function body is not analyzed (FIT_UNKNOWN_CAUSE_CALLS) counts as one
    node."""
    tensor_count: int = 0
    """Tensors that take memory on a GPU."""
    unknown_tensor_count: int = 0
    """Those of unknown size."""
    bounded_tensor_count: int = 0
    """Those whose size depends on the values of other tensors (Unique, Where, ...). They count as
    their maximum size, an upper bound."""
    node_count: int = 0
    """Nodes that compute."""
    unknown_node_count: int = 0
    """Those of unknown cost."""

    _name = "KnownShare"
    _kinds = {
        "tensor_count": int, "unknown_tensor_count": int, "bounded_tensor_count": int, "node_count":
        int, "unknown_node_count": int}


@dataclass(frozen=True, repr=False)
class Forecast(Message):
    """The forecast of one graph on one machine. Times are for one step, in nanoseconds; each
    buffer's bytes are rounded up to TensorFlow's multiple of 256."""
    fit: Fit = ""
    """Whether the step fits, both as TensorFlow launches it and simulated synchronously."""
    fit_unknown: Tuple[FitUnknown, ...] = ()
    """Why this is unknown: one entry per cause, in order of the enum. Empty unless FIT_UNKNOWN."""
    out_of_memory: Optional[OutOfMemory] = None
    """The first allocation that failed. Absent unless FIT_DOES_NOT_FIT."""
    step_time_ns: Optional[int] = None
    """Step time with kernels launched ahead of the device, as TensorFlow does. Absent if the step
    does not fit that way."""
    synchronous_step_time_ns: Optional[int] = None
    """Step time if every node allocated its memory when its engine starts it. Absent if the step
    does not fit that way."""
    devices: Tuple[DeviceForecast, ...] = ()
    """One per GPU, in order of its first node."""
    host_peak_bytes: int = 0
    """Peak host memory, in bytes, of buffers on their way to and from GPUs."""
    known_share: Optional[KnownShare] = None
    """How much is known about the part of the step that runs on GPUs."""

    _name = "Forecast"
    _kinds = {
        "fit": Enum("FIT_"), "fit_unknown": FitUnknown, "out_of_memory": OutOfMemory,
        "step_time_ns": int, "synchronous_step_time_ns": int, "devices": DeviceForecast,
        "host_peak_bytes": int, "known_share": KnownShare}


@dataclass(frozen=True, repr=False)
class GpuMemory(Message):
    """The memory of some GPUs, overriding Hardware.gpu_memory_bytes."""
    device: str = ""
    """REQUIRED. A device, as in RewriteOptions.devices: `/gpu:1` is that GPU of every job and task.
    It is an error if it names no GPU of the graph (NAME_MATCHES_NOTHING), or if two entries name
    the same GPU."""
    gpu_memory_bytes: int = 0
    """REQUIRED. As Hardware.gpu_memory_bytes. Range: 1 and up."""

    _name = "GpuMemory"
    _kinds = {"gpu_memory_bytes": int}


@dataclass(frozen=True, repr=False)
class Hardware(Message):
    """Rates are achieved, not data-sheet figures, unless there is an efficiency beside them. Link
    rates are for pinned copies, per direction, with both directions active."""
    preset: str = ""
    """OPTIONAL. Name of the preset that supplies the numbers that are not given. `spillway
    capabilities` (GetCapabilities) lists them. Default: p100_pcie."""
    gpu_memory_bytes: Optional[int] = None
    """OPTIONAL. Bytes that TensorFlow's allocator can use on each GPU (less than the board has).
    Minus allocator_reserve, this is the device budget. Range: 1 and up. Default: the preset's."""
    host_memory_bytes: Optional[int] = None
    """OPTIONAL. Bytes of pinned host memory that the swaps of all GPUs may use in total: the host
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
    """OPTIONAL. Bytes per second of GPU memory. Range: above 0. Default: the preset's."""
    mem_eff: Optional[float] = None
    """OPTIONAL. The share of mem_bytes_per_s that kernels reach. Range: above 0, at most 1.
    Default: the preset's."""
    launch_s: Optional[float] = None
    """OPTIONAL. Seconds from one kernel launch to the next. Range: 0 to 1. Default: the
    preset's."""
    d2h_bytes_per_s: Optional[float] = None
    """OPTIONAL. Bytes per second of copies from the device to the host. Range: above 0. Default:
    the preset's."""
    h2d_bytes_per_s: Optional[float] = None
    """OPTIONAL. Bytes per second of copies from the host to the device. Range: above 0. Default:
    the preset's."""
    copy_latency_s: Optional[float] = None
    """OPTIONAL. Fixed overhead of each copy, in seconds. Range: 0 to 1. Default: the preset's."""
    gpu_memory_source: MemorySource = ""
    """OPTIONAL. The origin of gpu_memory_bytes, for reports. Default: OPTION if it is given, else
    PRESET."""
    allocator_reserve: Optional[float] = None
    """OPTIONAL. The share of gpu_memory_bytes reserved for effects that are not simulated: chunks
    of TensorFlow's allocator that are larger than the variables in them, and orders of execution
    other than the simulated one. TFLMS v2 reserves as much. Range: 0 to 0.9. Default: 0.1."""
    internal_fragmentation_fraction: Optional[float] = None
    """OPTIONAL. The value of gpu_options.experimental.internal_fragmentation_fraction in the
    training session: TensorFlow's allocator also splits a chunk that exceeds the request by this
    share of gpu_memory_bytes. By default it hands out chunks of up to twice the request (or 128 MiB
    more), so a small share (0.001) leaves more usable memory. A plan made with it needs a session
    with it: see the report's advice. 0: TensorFlow's default. Range: 0 to below 1. Default: 0."""
    gpu_memories: Tuple[GpuMemory, ...] = ()
    """OPTIONAL. GPUs whose memory differs from gpu_memory_bytes. Default: none."""

    _name = "Hardware"
    _kinds = {
        "gpu_memory_bytes": int, "host_memory_bytes": int, "peak_flops": float, "eff_conv": float,
        "eff_matmul": float, "mem_bytes_per_s": float, "mem_eff": float, "launch_s": float,
        "d2h_bytes_per_s": float, "h2d_bytes_per_s": float, "copy_latency_s": float,
        "gpu_memory_source": Enum("MEMORY_SOURCE_"), "allocator_reserve": float,
        "internal_fragmentation_fraction": float, "gpu_memories": GpuMemory}


@dataclass(frozen=True, repr=False)
class HardwareReport(Message):
    """A machine, as given in reports and in the list of presets."""
    hardware: Optional[Hardware] = None
    """The machine, with every number filled in."""
    device_budget_bytes: int = 0
    """The device budget, in bytes: gpu_memory_bytes minus allocator_reserve."""

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
    """One op, listed for tuning."""
    name: str = ""
    """The node."""
    type: str = ""
    """Its op type, as excl_types and incl_types take it."""
    order: Optional[int] = None
    """Its order, i.e. the number of its level. Absent if it has none."""

    _name = "DebugOp"
    _kinds = {"order": int}


@dataclass(frozen=True, repr=False)
class ScopeReport(Message):
    """The input that the strategy `scope` worked from."""
    backward_op_count: int = 0
    """Ops of the backward part."""
    starting_ops: Tuple[str, ...] = ()
    """The ops that the walk started from, whether given or found."""
    starting_ops_found: bool = False
    """True if they were found, not given."""
    backward_start_level: Optional[int] = None
    """The first level that has an op of the backward part (absent if there is none), and the number
    of levels."""
    level_count: int = 0
    backward_part_found: bool = False
    """True if the backward part was found from the structure of the graph, not named by
    optimizer_scopes. The next two fields then describe it."""
    weight_updates: Tuple[NameCount, ...] = ()
    """The weight updates by op type, most frequent first."""
    backward_scopes: Tuple[NameCount, ...] = ()
    """The outermost name scopes of the ops of the backward part, most ops first. As
    optimizer_scopes, they would match all of it that is in a scope (and anything else in these
    scopes). At most 20."""
    n_tensors: int = 0
    """The parameters in force, given or default."""
    lb: int = 0
    ub: int = 0
    debug_ops: Tuple[DebugOp, ...] = ()
    """The ops that debug and debug_level ask for, in the order of the walk."""

    _name = "ScopeReport"
    _kinds = {
        "backward_op_count": int, "backward_start_level": int, "level_count": int, "weight_updates":
        NameCount, "backward_scopes": NameCount, "n_tensors": int, "lb": int, "ub": int,
        "debug_ops": DebugOp}


@dataclass(frozen=True, repr=False)
class LevelTuning(Message):
    """How the setting for one GPU was found. The result is in RewriteReport.fits."""
    setting_count: int = 0
    """Number of settings that were simulated, and of those that fit. Each is simulated twice,
    launched ahead and synchronously, and must fit both ways. A setting that fits launched ahead but
    is slower than the best known is not simulated synchronously, and counts as fitting."""
    fitting_setting_count: int = 0
    exhaustive: bool = False
    """True if all distinct settings were simulated."""

    _name = "LevelTuning"
    _kinds = {"setting_count": int, "fitting_setting_count": int}


@dataclass(frozen=True, repr=False)
class LevelDevice(Message):
    """The choice for one GPU."""
    device: str = ""
    """The device as its first node spells it; empty if the nodes have none."""
    swapout_threshold: Optional[int] = None
    """The setting in force. Absent if it has no effect (nothing is swapped, or swapin_ahead with
    sync_mode 2 or 3)."""
    swapin_ahead: Optional[int] = None
    swapin_groupby: Optional[int] = None
    sync_mode: Optional[int] = None
    tuning: Optional[LevelTuning] = None
    """How it was found. Absent: all parameters were given."""

    _name = "LevelDevice"
    _kinds = {
        "swapout_threshold": int, "swapin_ahead": int, "swapin_groupby": int, "sync_mode": int,
        "tuning": LevelTuning}


@dataclass(frozen=True, repr=False)
class LevelReport(Message):
    """The findings and settings of the strategy `level`."""
    level_count: int = 0
    """Number of levels of the graph (after serialization), and of ops without a level, which are
    those that depend on a loop."""
    unleveled_op_count: int = 0
    inactive_op_count: int = 0
    """Number of ops left unchanged: those of the other mode (is_training), those inside loops, and
    those that only these lead to."""
    edge_count: int = 0
    """Distinct pairs of a producer and a consumer joined by data edges."""
    serialized_level_count: int = 0
    """Number of serialized levels, and of control edges added for them."""
    serialization_edge_count: int = 0
    devices: Tuple[LevelDevice, ...] = ()
    """One per GPU asked for, in order of the device's first node."""
    paced: bool = False
    """Whether this is the plan with pace edges and order edges (LevelStrategy.pace); false if the
    plan without them is as fast."""

    _name = "LevelReport"
    _kinds = {
        "level_count": int, "unleveled_op_count": int, "inactive_op_count": int, "edge_count": int,
        "serialized_level_count": int, "serialization_edge_count": int, "devices": LevelDevice}


@dataclass(frozen=True, repr=False)
class BudgetDevice(Message):
    """The search for one GPU."""
    device: str = ""
    """The device as its first node spells it; empty if the nodes have none."""
    gap_count: int = 0
    """Number of gaps between two uses during which a buffer could be swapped out."""
    plan_count: int = 0
    """Number of plans that were simulated, counting a plan once per memory size, and of those that
    fit. A plan that is slower than the best known is not simulated to its end, and counts as
    fitting."""
    fitting_plan_count: int = 0
    other_budget_bytes: Tuple[int, ...] = ()
    """Memory sizes, in bytes, besides the budget, in which the plan was also simulated and fits:
    because buffers are placed, a plan that fits one size need not fit a larger one."""
    cut_short: bool = False
    """True if max_search_steps ended the search before the planning effort was used up."""
    ordered_peak_bytes: Optional[int] = None
    """The peak of the step, in bytes, with the order edges alone, in the worse of the two ways to
    simulate it. Absent if there are none."""
    step_time_bound_ns: Optional[int] = None
    """A lower bound of the step time of any plan of swaps within the budget that keeps the order of
    the step's operations, order edges included (LowerBounds.step_time_ns is for the graph's own
    order). Absent if a single operation needs more than the budget."""
    level: Optional[LevelDevice] = None
    """The setting of the strategy `level`, if its plan is faster and was taken."""
    variation_count: int = 0
    """Number of simulations of the plan with most of the reserve added to the budget, but with
    other orders of ready operations, other copy times, and variables placed where initializers
    leave them; and the number of these in which it does not fit (warning MAY_RUN_OUT). 0 if the
    budget is all of the memory, which leaves no reserve for them, and if `objective` asks for less
    than the budget."""
    unfit_variation_count: int = 0
    fastest_step_time_ns: Optional[int] = None
    """Step time of the fastest plan found, if a slower one that fits in all variations was
    taken."""
    least_budget_bytes: Optional[int] = None
    """The budget, in bytes, that the plan was made for, if `objective` asks for less than the
    GPU's: the smallest one with which a plan within max_slowdown was found. The fit's times and
    peak are with this budget; the forecast is with the GPU's."""

    _name = "BudgetDevice"
    _kinds = {
        "gap_count": int, "plan_count": int, "fitting_plan_count": int, "other_budget_bytes": int,
        "ordered_peak_bytes": int, "step_time_bound_ns": int, "level": LevelDevice,
        "variation_count": int, "unfit_variation_count": int, "fastest_step_time_ns": int,
        "least_budget_bytes": int}


@dataclass(frozen=True, repr=False)
class BudgetReport(Message):
    """The search of the strategy `budget`."""
    planning_effort: PlanningEffort = ""
    """The effort in force, given or default."""
    devices: Tuple[BudgetDevice, ...] = ()
    """One per GPU that was planned, in order of the device's first node. The result is in
    RewriteReport.fits."""
    objective: PlanningObjective = ""
    """The objective and the slowdown limit in force, given or default. Absent: no limit."""
    max_slowdown: Optional[float] = None

    _name = "BudgetReport"
    _kinds = {
        "planning_effort": Enum("PLANNING_EFFORT_"), "devices": BudgetDevice, "objective":
        Enum("PLANNING_OBJECTIVE_"), "max_slowdown": float}


@dataclass(frozen=True, repr=False)
class KeptCall(Message):
    """A call that was not inlined."""
    node: str = ""
    """The node. If it is in a body, prefixed by the names of the calls that lead there."""
    function: str = ""
    """The called function; empty if the call names none."""
    reason: KeptCallReason = ""

    _name = "KeptCall"
    _kinds = {"reason": Enum("KEPT_CALL_REASON_")}


@dataclass(frozen=True, repr=False)
class Inlining(Message):
    """The handling of a graph's calls. Absent if it has none."""
    inlined_call_count: int = 0
    """Number of calls that were replaced by their functions' bodies, including calls inside
    bodies."""
    added_node_count: int = 0
    """The nodes and bytes that this added to the graph."""
    added_bytes: int = 0
    kept_call_count: int = 0
    """Number of calls that were kept, and the first of them, in graph order; at most 100."""
    kept_calls: Tuple[KeptCall, ...] = ()

    _name = "Inlining"
    _kinds = {
        "inlined_call_count": int, "added_node_count": int, "added_bytes": int, "kept_call_count":
        int, "kept_calls": KeptCall}


@dataclass(frozen=True, repr=False)
class ReportFields(Message):
    """The report of one rewrite."""
    outcome: Outcome = ""
    """The outcome for the graph."""
    summary: str = ""
    """One sentence on the outcome, for people."""
    strategy: Strategy = ""
    """The strategy that ran."""
    node_count_before: int = 0
    """Number of nodes of the original and the returned graph."""
    node_count_after: int = 0
    graph_bytes_before: int = 0
    """Size, in bytes, of the serialized original and returned graph."""
    graph_bytes_after: int = 0
    devices: Tuple[DeviceReport, ...] = ()
    """One entry per device that has a swap, in order of the device's first node."""
    fits: Tuple[DeviceFit, ...] = ()
    """One entry per GPU whose memory the strategy considered, in order of the device's first
    node."""
    swaps: Tuple[TensorSwap, ...] = ()
    """Every swap, in the order in which it was decided."""
    added_control_edges: Tuple[EdgeCount, ...] = ()
    """Control edges added, by kind, in order of the enum. A kind without any is absent."""
    stages: Tuple[StageTiming, ...] = ()
    """Time spent per stage, in the order in which they ran."""
    warnings: Tuple[ReportWarning, ...] = ()
    """Warnings to the caller, most important first."""
    advice: Optional[Advice] = None
    """Settings that the training job needs for the plan to work."""
    forecast_before: Optional[Forecast] = None
    """The forecast for the original graph. Absent if it was not simulated; a warning says why,
    unless simulation is OFF or the graph was stripped."""
    forecast_after: Optional[Forecast] = None
    """The forecast for the returned graph; only if swaps were inserted."""
    hardware: Optional[HardwareReport] = None
    """The machine of both forecasts, and the nodes that one step runs."""
    targets: Tuple[str, ...] = ()
    scope: Optional[ScopeReport] = None
    """The input that the strategy `scope` worked from. Absent for other strategies."""
    level: Optional[LevelReport] = None
    """The findings and settings of the strategy `level`. Absent for other strategies."""
    budget: Optional[BudgetReport] = None
    """The search of the strategy `budget`. Absent for other strategies."""
    inlining: Optional[Inlining] = None
    """The graph's calls. All figures are for the graph with its calls inlined. The returned graph
    has them inlined, too, unless it is returned unchanged."""

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
    """The name in its Enter nodes."""
    parent: str = ""
    """The enclosing frame; empty: none."""
    node_count: int = 0
    """Number of nodes that run in it, except its Enter nodes."""

    _name = "LoopFrame"
    _kinds = {"node_count": int}


@dataclass(frozen=True, repr=False)
class FunctionSummary(Message):
    """A function of the library."""
    name: str = ""
    node_count: int = 0
    """Number of nodes in its body."""

    _name = "FunctionSummary"
    _kinds = {"node_count": int}


@dataclass(frozen=True, repr=False)
class TensorSummary(Message):
    """One tensor. Names are truncated to 250 bytes, shapes to 16 dimensions."""
    tensor: str = ""
    """`node:port`."""
    dtype: str = ""
    """`float32`, ...; empty: unknown. A reference to a variable ends in `_ref`."""
    shape: Optional[str] = None
    """`[128,?,3]`; `?` is an unknown dimension. Absent: the rank is unknown, too."""
    size_bytes: Optional[int] = None
    """Bytes. Absent: unknown."""
    size_unknown: SizeUnknown = ""
    """Why the size is unknown. Unspecified if it is known."""

    _name = "TensorSummary"
    _kinds = {"size_bytes": int, "size_unknown": Enum("SIZE_UNKNOWN_")}


@dataclass(frozen=True, repr=False)
class UnknownSizeCount(Message):
    """The number of tensors whose size is unknown for one reason."""
    reason: SizeUnknown = ""
    count: int = 0

    _name = "UnknownSizeCount"
    _kinds = {"reason": Enum("SIZE_UNKNOWN_"), "count": int}


@dataclass(frozen=True, repr=False)
class GraphSummary(Message):
    """The contents of a graph. Lists are complete, except largest_tensors. Names are truncated to
    250 bytes; names without a fixed alphabet (frames, functions) are escaped as in C if they are
    not plain ASCII."""
    size_bytes: int = 0
    """Size of the serialized graph, in bytes."""
    node_count: int = 0
    data_edge_count: int = 0
    """Input positions that read a tensor, and control inputs."""
    control_edge_count: int = 0
    producer_version: Optional[int] = None
    """The versions that the GraphDef states: that of the TensorFlow that made it, and the oldest
    that may read it. Absent: not stated."""
    min_consumer_version: Optional[int] = None
    op_types: Tuple[NameCount, ...] = ()
    """Number of nodes per op type, most frequent first; per device, in order of its first node
    (empty: nodes without one); and per top-level name scope, most nodes first (empty: nodes whose
    name has no `/`)."""
    devices: Tuple[NameCount, ...] = ()
    scopes: Tuple[NameCount, ...] = ()
    level_count: int = 0
    """Number of levels, i.e. of nodes on a longest path over data and control edges, and the first
    and the last node of one such path."""
    longest_path_begin: str = ""
    longest_path_end: str = ""
    frames: Tuple[LoopFrame, ...] = ()
    """Loop frames, in the order in which they are entered."""
    unknown_frame_node_count: int = 0
    """Nodes that TensorFlow would refuse to run: those with inputs from several frames, or an Enter
    without a frame name."""
    switch_count: int = 0
    """Number of control-flow nodes: Switch and the like; Merge; If and Case; While; and calls of
    functions."""
    merge_count: int = 0
    if_count: int = 0
    while_count: int = 0
    call_count: int = 0
    functions: Tuple[FunctionSummary, ...] = ()
    """The function library, in file order."""
    placeholders: Tuple[TensorSummary, ...] = ()
    """The placeholders that a step feeds, in file order."""
    variables: Tuple[NameCount, ...] = ()
    """Number of nodes per op type, most frequent first, that hold variables; and that change them
    (Apply*, Assign*, Scatter*), including initializers."""
    updates: Tuple[NameCount, ...] = ()
    rewritten_by: RewrittenBy = ""
    """The program that rewrote the graph before, and the number of swap nodes in it."""
    swap_out_count: int = 0
    swap_in_count: int = 0
    largest_tensors: Tuple[TensorSummary, ...] = ()
    """The largest tensors that are read by some node, largest first."""
    tensor_count: int = 0
    """Number of tensors that are read by some node; total bytes of those of known size, and their
    number."""
    known_size_bytes: int = 0
    known_size_count: int = 0
    unknown_sizes: Tuple[UnknownSizeCount, ...] = ()
    """The tensors of unknown size by reason, most frequent first."""
    inlining: Optional[Inlining] = None
    """The graph's calls. Everything here is for the graph with its calls inlined, except size_bytes
    and functions, which are the file's."""

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
    """The bytes in use at a time."""
    time_ns: int = 0
    """Since the start of the step, in nanoseconds."""
    bytes: int = 0

    _name = "MemorySample"
    _kinds = {"time_ns": int, "bytes": int}


@dataclass(frozen=True, repr=False)
class LiveTensor(Message):
    """A live buffer."""
    tensor: Optional[TensorSummary] = None
    resident: bool = False
    """True if it is resident before and after the step."""

    _name = "LiveTensor"
    _kinds = {"tensor": TensorSummary}


@dataclass(frozen=True, repr=False)
class DeviceMemory(Message):
    """The memory of one GPU over the simulated step (SimulateReport.simulated): within the budgets
    if the known part fits them, otherwise with unlimited memory."""
    device: str = ""
    timeline: Tuple[MemorySample, ...] = ()
    """The bytes in use, with one sample per change."""
    live_at_peak: Tuple[LiveTensor, ...] = ()
    """The live buffers at the peak, largest first. A buffer is named by its first tensor."""
    peak_bytes: int = 0
    """The maximum of the timeline, and the time at which it is first reached.
    DeviceForecast.peak_bytes may be higher: it is for the worse of the two ways."""
    peak_ns: int = 0
    resident_bytes: int = 0
    """The part of it that is resident before and after the step."""

    _name = "DeviceMemory"
    _kinds = {
        "timeline": MemorySample, "live_at_peak": LiveTensor, "peak_bytes": int, "peak_ns": int,
        "resident_bytes": int}


@dataclass(frozen=True, repr=False)
class DistanceCount(Message):
    """The edges of one distance."""
    distance: int = 0
    edge_count: int = 0
    tensor_bytes: int = 0
    """Total bytes of the tensors of known size, each counted once per distance."""

    _name = "DistanceCount"
    _kinds = {"distance": int, "edge_count": int, "tensor_bytes": int}


@dataclass(frozen=True, repr=False)
class SimulatedStep(Message):
    """The step that memory and trace show."""
    execution: Execution = ""
    """How it was run."""
    unlimited_memory: bool = False
    """True if it ran with unlimited memory: the known part of the step does not fit the budgets, or
    there are none."""
    step_time_ns: int = 0
    """How long it took."""

    _name = "SimulatedStep"
    _kinds = {"execution": Enum("EXECUTION_"), "step_time_ns": int}


@dataclass(frozen=True, repr=False)
class TraceSpan(Message):
    """One operation. Times are nanoseconds since the start of the step."""
    node: str = ""
    """The node; for a copy, the node whose output is copied. For a loop body, all iterations
    together."""
    engine: Engine = ""
    """Where it ran."""
    device: Optional[int] = None
    """The GPU, as an index into Forecast.devices. Absent for ENGINE_HOST."""
    start_ns: int = 0
    """When its engine started it, and for how long it ran."""
    duration_ns: int = 0
    bytes: int = 0
    """For copies: the bytes copied."""
    given_ns: int = 0
    """When its memory was allocated; with kernels launched ahead, this is at launch."""
    waited_ns: int = 0
    """How long it waited for that memory."""
    copied_out: Optional[int] = None
    """For a copy to the GPU: the index in `spans` of the copy that brought the data to the host
    (for a swap, or a transfer between GPUs). Absent if the data was produced on the host."""

    _name = "TraceSpan"
    _kinds = {
        "engine": Enum("ENGINE_"), "device": int, "start_ns": int, "duration_ns": int, "bytes": int,
        "given_ns": int, "waited_ns": int, "copied_out": int}


@dataclass(frozen=True, repr=False)
class StepTrace(Message):
    """When the operations of a step ran. Operations that take no time (bookkeeping) are left out,
    except copies."""
    spans: Tuple[TraceSpan, ...] = ()
    """In order of start; spans that start together are in the order of the graph's nodes, copies
    last."""

    _name = "StepTrace"
    _kinds = {"spans": TraceSpan}


@dataclass(frozen=True, repr=False)
class SimulateReport(Message):
    """The result of a simulation."""
    forecast: Optional[Forecast] = None
    hardware: Optional[HardwareReport] = None
    """The machine."""
    targets: Tuple[str, ...] = ()
    """The targets that one step runs, and the number of nodes that this takes."""
    node_count: int = 0
    warnings: Tuple[ReportWarning, ...] = ()
    """The limits of the figures."""
    memory: Tuple[DeviceMemory, ...] = ()
    """One per GPU, as in the forecast; only if requested."""
    distances: Tuple[DistanceCount, ...] = ()
    """Data edges between nodes on GPUs, by ascending distance in levels; only with memory."""
    inlining: Optional[Inlining] = None
    """The graph's calls: the simulation is of the graph with its calls inlined."""
    simulated: Optional[SimulatedStep] = None
    """The step that memory and trace show; only if one of them is requested."""
    trace: Optional[StepTrace] = None
    """When each operation of that step ran; only if requested."""

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
    """The step without swapping."""
    steps_per_s: Optional[float] = None
    """Steps per second, and steps per second times the size. Absent if the step does not fit."""
    sizes_per_s: Optional[float] = None
    swapped: Optional[Forecast] = None
    """The same with swapping, only if requested and if a plan fits. Equal to `unswapped` if no
    swapping is needed."""
    swapped_steps_per_s: Optional[float] = None
    swapped_sizes_per_s: Optional[float] = None
    full_speed_sizes_per_s: Optional[float] = None
    """sizes_per_s without swapping and with unlimited memory: full speed. Only if swapping was
    requested."""
    bound_sizes_per_s: Optional[float] = None
    """sizes_per_s at the lower bound of the step time (LowerBounds): no plan of swaps that keeps
    the order of operations, including the plan's order edges, is faster. Only if swapping was
    requested and the lower bound of memory is within the budget."""

    _name = "ExploredSize"
    _kinds = {
        "size": int, "unswapped": Forecast, "steps_per_s": float, "sizes_per_s": float, "swapped":
        Forecast, "swapped_steps_per_s": float, "swapped_sizes_per_s": float,
        "full_speed_sizes_per_s": float, "bound_sizes_per_s": float}


@dataclass(frozen=True, repr=False)
class ExploreReport(Message):
    """The result of an exploration."""
    sizes: Tuple[ExploredSize, ...] = ()
    """One per size tried, ascending: the requested ones and those of the search."""
    largest_fitting_size: Optional[int] = None
    """The largest size found such that the next multiple does not fit. Absent if none fits or there
    is no budget. And whether it is known to fit: FITS or UNKNOWN; unspecified if there is no such
    size."""
    largest_fit: Fit = ""
    largest_fitting_size_swapped: Optional[int] = None
    """The same with swapping. Also absent if swapping was not requested."""
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
    """True if it belongs to one of `swaps`."""

    _name = "DiffNode"


@dataclass(frozen=True, repr=False)
class NodeChange(Message):
    """A node whose op, device or attributes differ. Fields that are equal are absent."""
    name: str = ""
    op_a: Optional[str] = None
    op_b: Optional[str] = None
    device_a: Optional[str] = None
    device_b: Optional[str] = None
    attributes_added: Tuple[str, ...] = ()
    """Sorted names of attributes that only B has, that only A has, and whose values differ. Escaped
    as in C if they are not plain ASCII."""
    attributes_removed: Tuple[str, ...] = ()
    attributes_changed: Tuple[str, ...] = ()

    _name = "NodeChange"


@dataclass(frozen=True, repr=False)
class InputChange(Message):
    """A data input that reads a different tensor. Tensors are `node:port`; absent if there is no
    such input."""
    node: str = ""
    input_index: int = 0
    """The position among the node's inputs, from 0."""
    tensor_a: Optional[str] = None
    tensor_b: Optional[str] = None
    in_swap: bool = False
    """True if it reads a swap-in of one of `swaps` instead of the swapped tensor."""

    _name = "InputChange"
    _kinds = {"input_index": int}


@dataclass(frozen=True, repr=False)
class ControlChange(Message):
    """A control input that only one graph has."""
    node: str = ""
    """The node that waits, and the node that it waits for."""
    control: str = ""
    in_swap: bool = False
    """True if one of the two is a swap node of `swaps`."""
    kind: EdgeKind = ""
    """Its purpose, as far as the nodes show: DEADLINE (`control` is a swap-out of `swaps`) or PACE
    (`control` is a swap-in). Unspecified: neither."""

    _name = "ControlChange"
    _kinds = {"kind": Enum("EDGE_KIND_")}


@dataclass(frozen=True, repr=False)
class FoundSwapIn(Message):
    """One swap-in."""
    name: str = ""
    triggers: Tuple[str, ...] = ()
    """The nodes that must end before it starts. Empty: it starts when the swap-out is done."""
    consumers: Tuple[InputRef, ...] = ()
    """The inputs that read it."""

    _name = "FoundSwapIn"
    _kinds = {"consumers": InputRef}


@dataclass(frozen=True, repr=False)
class FoundSwap(Message):
    """Added nodes that copy a tensor to another device and back: producer -> swap-out -> swap-ins
    -> consumers, where each consumer read the tensor directly in A."""
    tensor: str = ""
    """The tensor, as `node:port`."""
    size_bytes: Optional[int] = None
    """Bytes. Absent: unknown."""
    swap_out: str = ""
    device: str = ""
    """The device of the swap-out node, where the tensor waits. Empty: not stated."""
    swap_ins: Tuple[FoundSwapIn, ...] = ()

    _name = "FoundSwap"
    _kinds = {"size_bytes": int, "swap_ins": FoundSwapIn}


@dataclass(frozen=True, repr=False)
class GraphDiff(Message):
    """The changes from graph A to graph B. Lists are complete and in the file order of B, `removed`
    in that of A. `x` and `x:0` count as the same input, and the order of control inputs does not
    matter. Names are truncated to 250 bytes."""
    identical: bool = False
    """The files are identical byte for byte."""
    same_graph: bool = False
    """The graphs are the same: only the encoding of the files may differ (see the counts below)."""
    node_count_a: int = 0
    """Sizes of the two graphs."""
    node_count_b: int = 0
    graph_bytes_a: int = 0
    graph_bytes_b: int = 0
    added: Tuple[DiffNode, ...] = ()
    """Nodes that only B has, and nodes that only A has."""
    removed: Tuple[DiffNode, ...] = ()
    changed: Tuple[NodeChange, ...] = ()
    """Common nodes whose op, device or attributes differ."""
    rewired: Tuple[InputChange, ...] = ()
    """Data inputs of common nodes that read different tensors."""
    controls_added: Tuple[ControlChange, ...] = ()
    """Control inputs of common nodes that only B has, and those that only A has."""
    controls_removed: Tuple[ControlChange, ...] = ()
    swaps: Tuple[FoundSwap, ...] = ()
    """The swaps among the above changes."""
    bookkeeping_count: int = 0
    """Common nodes whose attribute `_spillway_undo` or `_grappler_do_not_remove` differs. These are
    Spillway's records, not changes of the graph, and are not in `changed`."""
    reencoded_count: int = 0
    """Common nodes that are equivalent but encoded differently (order of attributes, spelling of
    inputs, debug information)."""
    reordered: bool = False
    """The common nodes are in a different order."""
    library_changed: bool = False
    """The files differ in the function library, the versions, or other fields besides nodes."""
    versions_changed: bool = False
    other_fields_changed: bool = False
    inlined_calls: Tuple[str, ...] = ()
    """Calls of A that were inlined in B according to B's undo records, in the file order of A. All
    lists above then compare B with A after these calls are inlined, so that nodes of their
    functions are in both. Sizes are those of the files."""
    inlined_node_count: int = 0
    """The number of nodes that this added."""

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
    """Maximum size, in bytes, of a graph in a stream."""
    max_unary_bytes: int = 0
    """Maximum size, in bytes, of a request message of Rewrite."""
    max_chunk_bytes: int = 0
    """Maximum size, in bytes, of a chunk in a stream."""
    max_node_count: int = 0
    """Maximum number of nodes of a graph."""
    max_input_count: int = 0
    """Maximum total number of inputs (data and control) of all nodes."""
    max_search_steps: int = 0
    """Maximum total number of steps of all searches of a request: one per node visited, and three
    per node of a simulated plan."""
    max_concurrent_requests: int = 0
    """Maximum number of requests that run concurrently; others wait. At least 1."""
    max_inflight_bytes: int = 0
    """Maximum total graph bytes of all requests in flight, a part of the server's memory. A request
    that does not fit beside the others is rejected as OVERLOADED, one that would not even fit alone
    as LIMIT_EXCEEDED."""
    max_concurrent_streams: int = 0
    """Maximum number of concurrent calls on one connection; others wait at the client. At least
    1."""
    max_metadata_bytes: int = 0
    """Maximum size, in bytes, of a request's metadata (HTTP/2 headers), counted as in HTTP/2:
    names, values, and 32 per pair. A larger request is rejected with RESOURCE_EXHAUSTED without a
    reason, because it is rejected before it is read."""
    max_option_bytes: int = 0
    """Maximum size, in bytes, of a request's options, i.e. all of it but its graphs, not counting a
    profile or a plan to apply. A larger request is rejected with LIMIT_EXCEEDED before its options
    are read."""

    _name = "Limits"
    _kinds = {
        "max_graph_bytes": int, "max_unary_bytes": int, "max_chunk_bytes": int, "max_node_count":
        int, "max_input_count": int, "max_search_steps": int, "max_concurrent_requests": int,
        "max_inflight_bytes": int, "max_concurrent_streams": int, "max_metadata_bytes": int,
        "max_option_bytes": int}


@dataclass(frozen=True, repr=False)
class Capabilities(Message):
    """The capabilities of a server."""
    version: str = ""
    """The server's version, `MAJOR.MINOR.PATCH`."""
    strategies: Tuple[Strategy, ...] = ()
    """The strategies that choose swaps, strongest first; the first is the default. Every server
    also applies plans and strips."""
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
    """Why the size is unknown. Unspecified if it is known."""

    _name = "Decision"
    _kinds = {"size_bytes": int, "reason": Enum("REASON_"), "size_unknown": Enum("SIZE_UNKNOWN_")}
