"""Keywords of `rewrite` as a spillway.v1.RewriteOptions.

A keyword has the name of its field in options.proto, step.proto or hardware.proto, which document
its effect, unit, range and default; `spillway rewrite --help-all` lists them, too. _keywords.py
defines the names and their types, so that a misspelled one is a TypeError before anything runs.
This module interprets the values, including texts; the library checks ranges. Both reject a value
with InvalidOptionError, which names the keyword.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional

from spillway import _keywords, _near, errors
from spillway._size import bytes_of
from spillway._values import (bool_of, entries_of, feeds_of, items_of, list_of, number_of, path_of,
                              text_of, whole_of)
from spillway.plan import Plan


def _names_of(*kinds: Any) -> frozenset:
    return frozenset(name for kind in kinds for name in kind.__annotations__)


# The filters of the strategies level and budget.
FILTERS = _names_of(_keywords.FilterKeywords)

STRATEGIES: Mapping[str, frozenset] = {
    name: frozenset(names) for name, names in _keywords.STRATEGIES.items()}
# These do not plan: `rewrite` accepts them as strategies, and they have functions of these names.
OTHERS: Mapping[str, frozenset] = {
    "strip": frozenset(),
    "apply": frozenset(("plan",)),
}
# The strategy if none is named.
DEFAULT_STRATEGY = "budget"

# Common to all strategies. `outputs` is not included: the arguments of `rewrite` determine it.
COMMON = _names_of(_keywords.CommonKeywords, _keywords.CpuDeviceKeywords,
                   _keywords.SettledKeywords)

# The definition of a step: fields of Step in step.proto.
STEP = _names_of(_keywords.StepKeywords)

# Numbers of the machine. As keywords, they override the preset that `hardware` names.
HARDWARE = _names_of(_keywords.HardwareKeywords)

# Fields of a machine in a file that are not keywords.
_ONLY_IN_FILES = frozenset(("preset", "gpu_memory_source"))

# As rewrite_core/base/small_file.h.
_MAX_FILE_BYTES = 1 << 20

# The enum fields, and the prefixes of their values' names.
ENUMS: Mapping[str, str] = {name: prefix for name, (prefix, _) in _keywords.ENUMS.items()}


def to_json(strategy: Optional[str], keywords: Mapping[str, Any],
            outputs: Iterable[str] = ()) -> str:
    """Returns the RewriteOptions as JSON. A keyword that is None counts as not given.

    Raises TypeError for a keyword that does not exist, InvalidArgumentError for one of another
    strategy, and InvalidOptionError for a value that cannot be sent.
    """
    known = (*STRATEGIES, *OTHERS)
    if strategy is not None and not (isinstance(strategy, str) and strategy in known):
        raise errors.wrong_argument("there is no strategy %s%s; there are %s" % (
            errors.shown(strategy), _near.did_you_mean(strategy, known), _names(STRATEGIES)))
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


def check_names(strategy: str, names: Iterable[str]) -> None:
    """Raises TypeError for a keyword that does not exist, or is of another strategy."""
    for name in names:
        _check_name(name, strategy)


def step_of(keywords: Mapping[str, Any], with_size: bool = False) -> Dict[str, Any]:
    """Returns the Step as JSON, from the keywords of a step or its machine. `with_size`: feeds may
    have a dimension that varies."""
    step = {name: feeds_of(value, with_size) if name == "feeds" else _value(name, value)
            for name, value in keywords.items() if name in STEP and value is not None}
    machine = {name: _value(name, value) for name, value in keywords.items()
               if name in HARDWARE and value is not None}
    if machine:
        named = step.get("hardware", {})
        of_classes = named.get("efficiencies")
        if "efficiencies" in machine and isinstance(of_classes, list):  # Other classes keep theirs.
            machine["efficiencies"] = of_classes + machine["efficiencies"]
        step["hardware"] = {**named, **machine}
    return step


def dump(options: Mapping[str, Any]) -> str:
    """Returns options as JSON. NaN and infinities are spelled as in proto3, so that the library
    reports the error."""
    return json.dumps(_finite(options))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _check_name(name: str, chosen: str) -> None:
    if name in COMMON | STEP | HARDWARE or name in _own(chosen):
        return
    owners = [strategy for strategy, names in {**STRATEGIES, **OTHERS}.items() if name in names]
    if owners:
        raise errors.wrong_argument("%s is of the strategy %s, and %s was chosen; pass strategy=%r"
                                    % (name, owners[0], chosen, owners[0]))
    known = _own(chosen) | COMMON | STEP | HARDWARE
    raise TypeError("there is no option %r%s; those of the strategy %s are %s" % (
        name, _near.did_you_mean(name, known), chosen, _names(known)))


def _own(strategy: str) -> frozenset:
    return {**STRATEGIES, **OTHERS}.get(strategy, frozenset())


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _value(name: str, value: Any) -> Any:
    """Returns the value of a keyword as JSON."""
    if name == "plan":
        plan = value if isinstance(value, Plan) else Plan.from_json(value)
        return base64.b64encode(plan.message).decode()
    return _CONVERSIONS[_keywords.KINDS[name]](name, value)


def _int32(name: str, value: Any) -> int:
    return whole_of(name, value, 32)


def _int64(name: str, value: Any) -> int:
    return whole_of(name, value, 64)


def size_of(name: str, value: Any) -> int:
    """Parses bytes: a number, or a text with a unit."""
    if isinstance(value, str):
        return bytes_of(name, value)
    return whole_of(name, value, 64, "a number of bytes, plain or as text with a unit, e.g. "
                                     "\"16GiB\"")


def _enum(name: str, value: Any) -> Any:
    prefix, known = _keywords.ENUMS[name]
    if name == "simulation" and isinstance(value, bool):
        value = "on" if value else "off"
    if isinstance(value, int) and not isinstance(value, bool):
        return whole_of(name, value, 32)  # Perhaps of a newer library, which reports unknown ones.
    if isinstance(value, str) and value.lower() in known:
        return prefix + value.upper()
    near = _near.did_you_mean(value, known)
    raise errors.bad_option(name, value, "is none of %s%s" % (", ".join(known), near))


def _levels(name: str, value: Any) -> List[str]:
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    wrong = "is not a list of levels, each an index or a slice as text, e.g. [12, \"3:5\"]"
    items = value.split(",") if isinstance(value, str) else items_of(name, value, wrong)
    if any(isinstance(item, bool) or not isinstance(item, (int, str)) for item in items):
        raise errors.bad_option(name, value, wrong)
    return [text_of(name, item).strip() if isinstance(item, str) else str(whole_of(name, item, 64))
            for item in items]


def _counts(name: str, value: Any) -> List[Dict[str, Any]]:
    return [{"name": text_of(name, loop), "count": whole_of("%s[%r]" % (name, loop), count, 64)}
            for loop, count in entries_of(name, value,
                                          "is not a dict like {\"while_context\": 200}")]


def _sizes(name: str, value: Any) -> List[Dict[str, Any]]:
    return [{"device": text_of(name, device),
             "gpu_memory_bytes": size_of("%s[%r]" % (name, device), size)}
            for device, size in entries_of(name, value, "is not a dict like {\"/gpu:1\": \"12GiB\"}; "
                                                        "for all GPUs there is gpu_memory_bytes")]


def _shares(name: str, value: Any) -> List[Dict[str, Any]]:
    return [{"kernels": text_of(name, kernels),
             "efficiency": number_of("%s[%r]" % (name, kernels), share)}
            for kernels, share in entries_of(name, value,
                                             "is not a dict like {\"transpose\": 0.6}")]


def _machine(name: str, value: Any) -> Dict[str, Any]:
    if hasattr(value, "__fspath__") or (
            isinstance(value, str) and ("/" in value or value.endswith(".json"))):
        return _machine_file(name, path_of(name, value) or "")
    if isinstance(value, str):
        return {"preset": text_of(name, value)}
    machine: Dict[str, Any] = {}
    for key, inner in entries_of(name, value, "is not a dict like {\"preset\": \"p100_pcie\", "
                                              "\"gpu_memory_bytes\": \"12GiB\"}, nor the name of "
                                              "a preset"):
        if key == "preset":
            machine[key] = text_of("hardware['preset']", inner)
        elif key not in HARDWARE:
            raise errors.wrong_argument("hardware has no %s%s; it has preset, %s" % (
                errors.shown(key), _near.did_you_mean(key, HARDWARE), _names(HARDWARE)))
        elif inner is not None:
            machine[key] = _value(key, inner)
    return machine


def _machine_file(name: str, path: str) -> Dict[str, Any]:
    """Reads a Hardware in proto3's JSON, as on the command line
    (client_lib/cli/flags/hardware_file.h)."""
    try:
        # Opening a pipe would wait.
        if os.path.exists(path) and not os.path.isfile(path):
            raise ValueError("it is not a regular file")
        with open(path, "rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            raise ValueError("it has more than %d bytes" % _MAX_FILE_BYTES)
        machine = json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise errors.bad_option(name, path, "is no file with a machine (%s); give the name of a "
                                "preset, or a file with the fields of Hardware, as hardware.proto "
                                "has them, in JSON" % error) from error
    if not isinstance(machine, dict):
        raise errors.bad_option(name, path, "holds no machine; give the fields of Hardware, as "
                                            "hardware.proto has them, in JSON")
    numbers: Dict[str, Any] = {}
    for key, number in machine.items():
        # proto3's JSON allows both spellings of a field.
        field = re.sub("[A-Z]", lambda letter: "_" + letter.group().lower(), key)
        if field not in HARDWARE | _ONLY_IN_FILES:
            raise errors.bad_option(name, path, "has %r, which no machine has%s" % (
                key, _near.did_you_mean(field, HARDWARE)))
        plain = field in _ONLY_IN_FILES or field in ("gpu_memories", "efficiencies")
        numbers[field] = number if plain else _value(field, number)
    return numbers


def _profile(name: str, value: Any) -> str:
    try:
        if hasattr(value, "SerializeToString"):  # A RunMetadata or StepStats.
            value = value.SerializeToString()
    except TypeError:  # Their class.
        pass
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise errors.bad_option(name, value, "is neither a RunMetadata or StepStats nor its bytes")
    return base64.b64encode(bytes(value)).decode()


_CONVERSIONS: Dict[str, Callable[[str, Any], Any]] = {
    "int32": _int32, "int64": _int64, "size": size_of, "float": number_of, "bool": bool_of,
    "text": text_of, "names": list_of, "enum": _enum, "levels": _levels, "counts": _counts,
    "sizes": _sizes, "shares": _shares, "machine": _machine, "profile": _profile,
    "feeds": lambda _, value: feeds_of(value),
}
