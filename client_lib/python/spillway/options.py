"""Keywords of `rewrite` as a spillway.v1.RewriteOptions.

A keyword has the name of its field in options.proto, which says what it does, its unit, range and
default; `spillway rewrite --help` lists them too. Which names exist is written down here, so that a
misspelled one is a TypeError before anything runs; a test compares the table with the .proto.
Values are the library's business: it refuses them with InvalidOptionError.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any, Dict, Iterable, Mapping, Optional

from spillway._size import bytes_of
from spillway.plan import Plan

# Of the strategies level and budget.
FILTERS = frozenset((
    "excl_output_by_scopes", "incl_output_by_scopes", "excl_output_by_types",
    "incl_output_by_types", "excl_input_by_scopes", "incl_input_by_scopes", "excl_input_by_types",
    "incl_input_by_types"))

STRATEGIES: Mapping[str, frozenset] = {
    "scope": frozenset((
        "optimizer_scopes", "starting_scope", "starting_op_names", "excl_scopes", "incl_scopes",
        "excl_types", "incl_types", "n_tensors", "lb", "ub", "fuse_swapins", "ctrld_strategy",
        "swap_branches", "branch_threshold", "debug", "debug_level")),
    "level": frozenset((
        "swapout_threshold", "swapin_ahead", "swapin_groupby", "sync_mode", "serialization",
        "serialization_by_size", "is_training", "autotune_gpu_mem", "pace")) | FILTERS,
    "budget": frozenset(("planning_effort", "objective", "max_slowdown")) | FILTERS,
}
# What plans nothing: `rewrite` takes them as strategies, and `strip` and `apply` are called so.
OTHERS: Mapping[str, frozenset] = {
    "strip": frozenset(),
    "apply": frozenset(("plan",)),
}
# The strategy that runs where none is named.
DEFAULT_STRATEGY = "budget"

# Of every strategy. `outputs` is not among them: it is decided by what is asked of `rewrite`.
COMMON = frozenset((
    "devices", "cpu_device", "min_tensor_bytes", "already_rewritten", "decision_detail",
    "swap_encoding", "simulation", "inline_calls"))

# What one step is: fields of Step in step.proto.
STEP = frozenset((
    "feeds", "batch_size", "targets", "hardware", "profile", "convolution_workspace_bytes",
    "loop_counts"))

# Numbers of the machine: as keywords, they replace those of the preset that `hardware` names.
HARDWARE = frozenset((
    "gpu_memory_bytes", "gpu_memories", "host_memory_bytes", "peak_flops", "eff_conv", "eff_matmul",
    "mem_bytes_per_s", "mem_eff", "launch_s", "d2h_bytes_per_s", "h2d_bytes_per_s",
    "copy_latency_s", "allocator_reserve", "internal_fragmentation_fraction"))

# Of a feed's values (step.proto).
_MAX_FEED_VALUES = 256

# Fields that hold a value of an enum, and the prefix of its names.
ENUMS: Mapping[str, str] = {
    "ctrld_strategy": "CTRLD_STRATEGY_",
    "planning_effort": "PLANNING_EFFORT_",
    "objective": "PLANNING_OBJECTIVE_",
    "already_rewritten": "ALREADY_REWRITTEN_",
    "decision_detail": "DECISION_DETAIL_",
    "swap_encoding": "SWAP_ENCODING_",
    "simulation": "SIMULATION_",
    "inline_calls": "INLINE_CALLS_",
}

_LISTS = frozenset((
    "optimizer_scopes", "starting_op_names", "excl_scopes", "incl_scopes", "excl_types",
    "incl_types", "serialization", "excl_output_by_scopes", "incl_output_by_scopes",
    "excl_output_by_types", "incl_output_by_types", "excl_input_by_scopes", "incl_input_by_scopes",
    "excl_input_by_types", "incl_input_by_types", "targets", "devices"))


def to_json(strategy: Optional[str], keywords: Mapping[str, Any],
            outputs: Iterable[str] = ()) -> str:
    """JSON of the RewriteOptions. A keyword that is None counts as not given.

    Raises TypeError for a keyword that does not exist, or is of another strategy.
    """
    if strategy is not None and strategy not in (*STRATEGIES, *OTHERS):
        raise TypeError("there is no strategy %r; there are %s" % (strategy, _names(STRATEGIES)))
    chosen = strategy or DEFAULT_STRATEGY
    common: Dict[str, Any] = {}
    own: Dict[str, Any] = {}
    for name, value in keywords.items():
        _check_name(name, chosen)
        if value is None:
            continue
        if name in _own(chosen):
            own[name] = _value(name, value)
        elif name in COMMON:
            common[name] = _value(name, value)
    step = step_of(keywords)
    if step:
        common["step"] = step
    if strategy is not None or own:
        common[chosen] = own
    if outputs:
        common["outputs"] = ["OUTPUT_" + output for output in outputs]
    return dump(common)


def step_of(keywords: Mapping[str, Any]) -> Dict[str, Any]:
    """The Step, as JSON, of those keywords that are of a step or its machine."""
    step = {name: _value(name, value) for name, value in keywords.items()
            if name in STEP and value is not None}
    machine = {name: _value(name, value) for name, value in keywords.items()
               if name in HARDWARE and value is not None}
    if machine:
        step["hardware"] = {**step.get("hardware", {}), **machine}
    return step


def dump(options: Mapping[str, Any]) -> str:
    """JSON of options, numbers of numpy among them. What is no number is spelled as proto3 has it,
    so that the library can say what is wrong with it."""
    return json.dumps(_finite(options), default=_plain)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _check_name(name: str, chosen: str) -> None:
    if name in COMMON | STEP | HARDWARE or name in _own(chosen):
        return
    owners = [strategy for strategy, names in {**STRATEGIES, **OTHERS}.items() if name in names]
    if owners:
        raise TypeError("%s is of the strategy %s, and %s was chosen; pass strategy=%r"
                        % (name, owners[0], chosen, owners[0]))
    raise TypeError("there is no option %r; those of the strategy %s are %s" % (
        name, chosen, _names(_own(chosen) | COMMON | STEP | HARDWARE)))


def _own(strategy: str) -> frozenset:
    return {**STRATEGIES, **OTHERS}.get(strategy, frozenset())


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _value(name: str, value: Any) -> Any:
    if name == "feeds":
        return [{"name": _feed_name(feed), **_feed(fed)} for feed, fed in value.items()]
    if name == "loop_counts":
        return [{"name": loop, "count": int(count)} for loop, count in value.items()]
    if name == "gpu_memories":
        return [{"device": device, "gpu_memory_bytes": int(bytes_of(name, size))}
                for device, size in value.items()]
    if name.endswith("_bytes"):
        return bytes_of(name, value)
    if name == "hardware":
        if isinstance(value, str):
            return {"preset": value}
        return {key: _value(key, inner) for key, inner in value.items()}
    if name == "profile":
        if hasattr(value, "SerializeToString"):  # A RunMetadata or StepStats.
            value = value.SerializeToString()
        return base64.b64encode(value).decode()
    if name == "plan":
        plan = value if isinstance(value, Plan) else Plan.from_json(value)
        return base64.b64encode(plan.message).decode()
    if name == "simulation" and isinstance(value, bool):
        value = "on" if value else "off"
    if name in ENUMS and isinstance(value, str):
        return ENUMS[name] + value.upper()
    if name == "serialization":
        return [str(item) for item in _list(value)]
    if name in _LISTS:
        return _list(value)
    return value


def _list(value: Any) -> list:
    """A set is sorted: the same options must give the same graph."""
    if isinstance(value, (str, int)):
        return [value]
    return sorted(value) if isinstance(value, (set, frozenset)) else list(value)


def _feed_name(feed: Any) -> str:
    return feed if isinstance(feed, str) else feed.name  # A tensor of TensorFlow has a name.


def _feed(fed: Any) -> Dict[str, Any]:
    """A shape; or what is fed: a number, a bool, an array, whose value counts where it is small."""
    if isinstance(fed, (bool, int)):
        return {"dims": [], "values": [int(fed)]}
    if not hasattr(fed, "dtype"):
        return {"dims": [int(dim) for dim in fed]}
    feed = {"dims": [int(dim) for dim in fed.shape]}
    if fed.dtype.kind in "biu" and fed.size <= _MAX_FEED_VALUES:
        feed["values"] = [int(item) for item in fed.ravel()]
    return feed


def _plain(value: Any) -> Any:
    """Numbers of numpy."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError("a value of type %s cannot be an option" % type(value).__name__)
