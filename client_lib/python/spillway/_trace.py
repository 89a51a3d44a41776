"""A measured step of TensorFlow, from the RunMetadata (or StepStats) of a full trace.

Parses the bytes itself, so that TensorFlow is not needed. The bytes are untrusted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

from spillway import _wire, errors

# Field numbers of config.proto (RunMetadata), step_stats.proto, tensor_description.proto,
# allocation_description.proto and tensor_shape.proto of TensorFlow.
_STEP_STATS = 1
_DEVICE = 1
_DEVICE_NAME, _DEVICE_NODE = 1, 2
_NODE_NAME, _START_US, _END_US, _MEMORY, _OUTPUT, _START_NS, _END_NS = 1, 2, 5, 6, 7, 13, 16
_ALLOCATOR, _IN_USE, _RECORDS = 1, 5, 6
_RECORD_US, _RECORD_BYTES = 1, 2
_SLOT, _DESCRIPTION = 1, 3
_DTYPE, _SHAPE, _ALLOCATION = 1, 2, 4
_REQUESTED_BYTES = 1
_DIM, _DIM_SIZE, _UNKNOWN_RANK = 2, 1, 3

# Bytes per element, by DataType; types without a fixed width are left out.
_ELEMENT_BYTES = {1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 8: 8, 9: 8, 10: 1, 11: 1, 12: 1, 13: 4, 14: 2,
                  15: 2, 16: 2, 17: 2, 18: 16, 19: 2, 22: 4, 23: 8, 24: 1, 25: 1}
# No tensor has more; also keeps the product of many dimensions bounded.
_MAX_ELEMENTS = 1 << 62


@dataclass
class NodeRun:
    """Where a node ran, and the bytes of its first output; None: not in the trace."""
    device: str
    output_bytes: Optional[int] = None


@dataclass
class Trace:
    """One step.

    Attributes:
      nodes: the nodes that ran, by exact name.
      devices: as spelled in the trace, in its order.
      step_ns: from the start of the first op, or kernel, to the end of the last.
      allocated_peak_bytes: per device, the peak of the step's own allocations.
      in_use_peak_bytes: per device, the maximum in use at the end of an op, including variables;
        only for allocators that count it (those of GPUs, and TF_CPU_ALLOCATOR_USE_BFC=true).
      spans: everything that ran, including kernels and copies: (device, name, start, end), in
        nanoseconds of the machine's clock.
      records: per device, allocations and deallocations: (nanoseconds, bytes, negative when
        freed).
    """
    nodes: Dict[str, NodeRun] = field(default_factory=dict)
    devices: List[str] = field(default_factory=list)
    step_ns: Optional[int] = None
    allocated_peak_bytes: Dict[str, int] = field(default_factory=dict)
    in_use_peak_bytes: Dict[str, int] = field(default_factory=dict)
    spans: List[Tuple[str, str, int, int]] = field(default_factory=list)
    records: Dict[str, List[Tuple[int, int]]] = field(default_factory=dict)


def read(run_metadata: Any) -> Trace:
    """Reads a message or the bytes of one. Raises TypeError, or InvalidOptionError if it holds no
    step."""
    if hasattr(run_metadata, "SerializeToString"):
        run_metadata = run_metadata.SerializeToString()
    if not isinstance(run_metadata, (bytes, bytearray, memoryview)):
        raise TypeError("run_metadata is a %s; pass a RunMetadata, or its bytes"
                        % type(run_metadata).__name__)
    try:
        trace = _Reader().read(bytes(run_metadata))
    except ValueError as error:
        raise _error("is damaged (%s)" % error) from error
    if not trace.nodes:
        raise _error("holds no step")
    return trace


def _error(what: str) -> errors.InvalidOptionError:
    return errors.InvalidOptionError(
        "run_metadata %s; run one step with RunOptions(trace_level=RunOptions.FULL_TRACE)" % what,
        code="INVALID_ARGUMENT", reason="BAD_OPTION", metadata={"option": "run_metadata"})


class _Reader:
    """Reads one message."""

    def __init__(self) -> None:
        self._trace = Trace()
        self._first: Optional[int] = None
        self._last = 0
        # Of the current device: (microseconds, bytes, negative when freed).
        self._records: List[Tuple[int, int]] = []

    def read(self, message: bytes) -> Trace:
        for device in _devices(message):
            self._device(device)
        if self._first is not None:
            self._trace.step_ns = max(0, self._last - self._first)
        return self._trace

    def _device(self, message: memoryview) -> None:
        name = ""
        nodes: List[memoryview] = []
        for number, value in _wire.values(message):
            if number == _DEVICE_NAME:
                name = _text(value)
            elif number == _DEVICE_NODE:
                nodes.append(_message(value))
        # A GPU's streams, copies and waits: kernels of nodes that the GPU's own device lists.
        own = "/stream:" not in name and "memcpy" not in name and not name.endswith("/sync")
        if own:
            self._trace.devices.append(name)
        self._records = []
        for node in nodes:
            self._node(node, name, own)
        if own and self._records:
            self._trace.allocated_peak_bytes[name] = _peak(self._records)
            self._trace.records[name] = [(1000 * when, size) for when, size in self._records]

    def _node(self, message: memoryview, device: str, own: bool) -> None:
        name, run = "", NodeRun(device)
        start_us = end_us = start_ns = end_ns = 0
        for number, value in _wire.values(message):
            if number == _NODE_NAME:
                name = _text(value)
            elif number == _START_US:
                start_us = _number(value)
            elif number == _END_US:
                end_us = _number(value)
            elif number == _START_NS:
                start_ns = _number(value)
            elif number == _END_NS:
                end_ns = _number(value)
            elif number == _MEMORY and own:
                self._memory(_message(value), device)
            elif number == _OUTPUT and own:
                size = _first_output_bytes(_message(value))
                run.output_bytes = run.output_bytes if size is None else size
        if own:
            self._trace.nodes[name] = run
        start, end = (start_ns, end_ns) if start_ns > 0 else (start_us * 1000, end_us * 1000)
        if start > 0:
            self._first = start if self._first is None else min(self._first, start)
            self._last = max(self._last, start + end)
            self._trace.spans.append((device, name, start, start + max(0, end)))

    def _memory(self, message: memoryview, device: str) -> None:
        allocator, in_use, records = "", 0, []
        for number, value in _wire.values(message):
            if number == _ALLOCATOR:
                allocator = _text(value)
            elif number == _IN_USE:
                in_use = _number(value)
            elif number == _RECORDS:
                record = dict(_wire.values(_message(value)))
                records.append((_number(record.get(_RECORD_US, 0)),
                                _number(record.get(_RECORD_BYTES, 0))))
        # Ops on a GPU also allocate host memory (`cpu`, `gpu_host_bfc`), which does not count here.
        if "GPU:" in device and ("host" in allocator or "cpu" in allocator):
            return
        self._records.extend(records)
        peaks = self._trace.in_use_peak_bytes
        if in_use > 0:
            peaks[device] = max(peaks.get(device, 0), in_use)


def _devices(message: bytes) -> List[memoryview]:
    """The DeviceStepStats of a RunMetadata, or of a StepStats: its first field holds messages that
    begin with a device's name, `/...`, and so are none themselves."""
    outer = [_message(value) for number, value in _wire.values(message) if number == _STEP_STATS]
    try:
        inner = [_message(value) for step_stats in outer
                 for number, value in _wire.values(step_stats) if number == _DEVICE]
        if inner and not any(device[:1] == b"/" for device in inner):
            return inner
    except ValueError:
        pass
    return outer


def _first_output_bytes(message: memoryview) -> Optional[int]:
    slot, description = 0, None
    for number, value in _wire.values(message):
        if number == _SLOT:
            slot = _number(value)
        elif number == _DESCRIPTION:
            description = _message(value)
    if slot != 0 or description is None:
        return None
    dtype, elements, requested = 0, 1, None
    for number, value in _wire.values(description):
        if number == _DTYPE:
            dtype = _number(value)
        elif number == _SHAPE:
            elements = _elements(_message(value))
        elif number == _ALLOCATION:
            requested = _number(dict(_wire.values(_message(value))).get(_REQUESTED_BYTES, 0))
    # The buffer may be larger than the tensor, which may be a slice of another.
    if dtype in _ELEMENT_BYTES and elements >= 0:
        return elements * _ELEMENT_BYTES[dtype]
    return requested


def _elements(shape: memoryview) -> int:
    """Returns -1 if unknown or impossible. A scalar has one."""
    elements = 1
    for number, value in _wire.values(shape):
        if number == _DIM:
            size = _number(dict(_wire.values(_message(value))).get(_DIM_SIZE, 0))
            elements *= size
            if size < 0 or elements > _MAX_ELEMENTS:
                return -1
        elif number == _UNKNOWN_RANK and value:
            return -1
    return elements


def _peak(records: List[Tuple[int, int]]) -> int:
    """The order within a microsecond is unknown: deallocations go first, so this is a lower
    bound."""
    held = peak = 0
    for _, size in sorted(records):
        held += size
        peak = max(peak, held)
    return peak


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise ValueError("a number is missing")
    return _wire.signed(value)


def _message(value: Any) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a message is missing")
    return value


def _text(value: Any) -> str:
    return bytes(_message(value)).decode("utf-8", "replace")
