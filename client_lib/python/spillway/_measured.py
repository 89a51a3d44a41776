"""A measured step beside the simulated one, in one trace for Perfetto and chrome://tracing."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

from spillway import _trace

# After the processes of the simulated step: one for each GPU, and the host.
_FIRST_PROCESS = 1000
# Concurrent operations of a device beyond this number overlap in the last lane.
_MOST_LANES = 256


def beside(simulated: str, seen: _trace.Trace) -> str:
    """Returns the trace `simulated` as JSON, with an additional process for each device of the
    measured step. Times are relative to the start of each step."""
    document: Dict[str, Any] = json.loads(simulated)
    events: List[Dict[str, Any]] = document["traceEvents"]
    for event in events:
        if event["ph"] == "M" and event["name"] == "process_name":
            event["args"]["name"] = "simulated: " + event["args"]["name"]
    start = min((span[2] for span in seen.spans), default=0)
    devices: Dict[str, List[Tuple[str, int, int]]] = {}
    for device, name, begin, end in seen.spans:
        devices.setdefault(device, []).append((name, begin - start, end - start))
    for process, (device, spans) in enumerate(devices.items(), _FIRST_PROCESS):
        events.append(_name(process, "process", 0, "measured: " + device))
        events.extend(_spans(process, spans))
        held = 0
        for when, size in sorted(seen.records.get(device, [])):
            held += size
            events.append({"ph": "C", "name": "memory taken by the step", "pid": process,
                           "ts": max(0, when - start) / 1000, "args": {"bytes": held}})
    return json.dumps(document)


def _name(process: int, what: str, thread: int, name: str) -> Dict[str, Any]:
    return {"ph": "M", "name": what + "_name", "pid": process, "tid": thread,
            "args": {"name": name}}


def _spans(process: int, spans: List[Tuple[str, int, int]]) -> List[Dict[str, Any]]:
    """Returns complete events. A thread shows one at a time, so concurrent ones are on several."""
    events: List[Dict[str, Any]] = []
    lanes: List[int] = []  # The time at which each is free again.
    for name, begin, end in sorted(spans, key=lambda span: span[1:]):
        for lane, free in enumerate(lanes):
            if free <= begin:
                break
        else:
            lane = min(len(lanes), _MOST_LANES - 1)
            if lane == len(lanes):
                lanes.append(0)
                events.append(_name(process, "thread", lane, "operations %d" % (lane + 1)))
        lanes[lane] = max(lanes[lane], end)
        events.append({"ph": "X", "name": name, "cat": "measured", "pid": process, "tid": lane,
                       "ts": begin / 1000, "dur": (end - begin) / 1000})
    return events
