"""The edits of one rank's graph, for the same graph on another rank.

Ranks of one job build the same graph, but not the same bytes: seeds and shards differ, and so may
the order of nodes, of control inputs and of attributes. So the edits are shared, not the rewritten
graph: each rank's own nodes stay as they are, byte for byte, but for edited inputs.
"""

from __future__ import annotations

import hashlib
from typing import Dict, Iterator, List, Tuple, Union

from spillway import _wire
from spillway.patch import Patch

# Of GraphDef, NodeDef and an entry of its map `attr`.
_NODE = 1
_NAME, _OP, _INPUT, _DEVICE, _ATTR = 1, 2, 3, 4, 5
_KEY = 1
# The core's note on a node that it edits, for `strip`.
_UNDO = b"_spillway_undo"

_Bytes = Union[bytes, memoryview]


def structure(graph: bytes) -> Tuple[int, str]:
    """(number of nodes, a digest of their names, ops, inputs and devices): equal for graphs that
    the same edits fit. Raises ValueError if the graph is damaged."""
    digests = sorted(_digest(node) for node in _nodes(graph))
    return len(digests), hashlib.sha256(b"".join(digests)).hexdigest()


def taken(rewritten: bytes, patch: Patch) -> bytes:
    """A GraphDef of what `patch` does not have: the new nodes, and of edited ones the record for
    `strip`."""
    new, edited = {node.name for node in patch.new_nodes}, _edited(patch)
    out: List[bytes] = []
    for node in _nodes(rewritten):
        name = _name(node)
        if name in new:
            out.append(_wire.field(_NODE, bytes(node)))
        elif name in edited:
            kept = [bytes(whole) for number, whole, value in _wire.parts(node)
                    if number == _NAME or _is_undo(number, value)]
            out.append(_wire.field(_NODE, b"".join(kept)))
    return b"".join(out)


def applied(graph: bytes, patch: Patch, nodes: bytes) -> bytes:
    """The graph with the edits. `nodes`: of `taken`. REQUIRES: its structure is that of the graph
    that they were taken from."""
    new = {node.name for node in patch.new_nodes}
    shared = {_name(node): node for node in _nodes(nodes)}
    rewired: Dict[str, Dict[int, str]] = {}
    for edit in patch.rewired_inputs:
        rewired.setdefault(edit.node, {})[edit.input_index] = edit.new_input
    controls: Dict[str, List[str]] = {}
    for wait in patch.added_controls:
        controls.setdefault(wait.node, []).append(wait.source)
    edited = _edited(patch)
    out: List[_Bytes] = []
    behind: List[_Bytes] = []  # Fields after the last node, where new ones go.
    for number, whole, node in _wire.parts(graph):
        if number != _NODE or not isinstance(node, memoryview):
            behind.append(whole)
            continue
        out += behind
        behind = []
        name = _name(node)
        out.append(whole if name not in edited else _wire.field(_NODE, _edit(
            node, rewired.get(name, {}), controls.get(name, []), shared[name])))
    out += [_wire.field(_NODE, bytes(shared[node.name])) for node in patch.new_nodes]
    assert new <= set(shared)
    return b"".join(out + behind)


def _edited(patch: Patch) -> set:
    return ({edit.node for edit in patch.rewired_inputs} |
            {wait.node for wait in patch.added_controls})


def _edit(node: memoryview, rewired: Dict[int, str], controls: List[str],
          shared: memoryview) -> bytes:
    inputs = sum(number == _INPUT for number, _ in _wire.values(node))
    added = [_wire.field(_INPUT, b"^" + source.encode()) for source in controls]
    out: List[_Bytes] = []
    position = 0
    for number, whole, value in _wire.parts(node):
        if _is_undo(number, value):
            continue
        if number != _INPUT:
            out.append(whole)
            continue
        if position in rewired:
            whole = memoryview(_wire.field(_INPUT, rewired[position].encode()))
        out.append(whole)
        position += 1
        if position == inputs:
            out += added
    if inputs == 0:
        out += added
    out += [whole for number, whole, value in _wire.parts(shared) if _is_undo(number, value)]
    return b"".join(out)


def _nodes(graph: bytes) -> Iterator[memoryview]:
    for number, value in _wire.values(graph):
        if number == _NODE and isinstance(value, memoryview):
            yield value


def _name(node: memoryview) -> str:
    for number, value in _wire.values(node):
        if number == _NAME and isinstance(value, memoryview):
            return bytes(value).decode("utf-8", "replace")
    return ""


def _is_undo(number: int, value: object) -> bool:
    return number == _ATTR and isinstance(value, memoryview) and any(
        number == _KEY and value == _UNDO for number, value in _wire.values(value))


def _digest(node: memoryview) -> bytes:
    fields: Dict[int, List[bytes]] = {_NAME: [], _OP: [], _INPUT: [], _DEVICE: []}
    for number, value in _wire.values(node):
        if number in fields and isinstance(value, memoryview):
            fields[number].append(bytes(value))
    data = [name for name in fields[_INPUT] if name[:1] != b"^"]
    controls = sorted(name for name in fields[_INPUT] if name[:1] == b"^")
    # repr separates adjacent fields unambiguously.
    text = repr([fields[_NAME][-1:], fields[_OP][-1:], data, controls, fields[_DEVICE][-1:]])
    return hashlib.sha256(text.encode()).digest()
