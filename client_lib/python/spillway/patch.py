"""A rewrite as a list of edits: spillway.v1.GraphPatch (patch.proto) as dataclasses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Tuple

from spillway import _native, report


@dataclass(frozen=True)
class NodeAttribute:
    """An attribute of a node. `value`: a serialized AttrValue, in base64."""
    name: str = ""
    value: str = ""


@dataclass(frozen=True)
class NewNode:
    """A node to add. `inputs` as a NodeDef spells them."""
    name: str = ""
    op: str = ""
    inputs: Tuple[str, ...] = ()
    device: str = ""
    attributes: Tuple[NodeAttribute, ...] = report._list_of(NodeAttribute)


@dataclass(frozen=True)
class RewiredInput:
    """A data input that reads another tensor now."""
    node: str = ""
    input_index: int = 0
    old_input: str = ""
    new_input: str = ""


@dataclass(frozen=True)
class AddedControl:
    """A control edge source -> node. `kind`: EdgeKind in report.proto."""
    node: str = ""
    source: str = ""
    kind: str = report._enum("EDGE_KIND_")


@dataclass(frozen=True)
class Patch:
    """The edits, to be made in the order of the fields. New nodes read original ones and those
    before them."""
    new_nodes: Tuple[NewNode, ...] = report._list_of(NewNode)
    rewired_inputs: Tuple[RewiredInput, ...] = report._list_of(RewiredInput)
    added_controls: Tuple[AddedControl, ...] = report._list_of(AddedControl)

    @classmethod
    def from_message(cls, message: bytes) -> "Patch":
        """From a serialized spillway.v1.GraphPatch."""
        return report.read(cls, json.loads(_native.message_to_json("GraphPatch", message)))
