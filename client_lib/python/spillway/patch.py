"""A rewrite as a list of edits: spillway.v1.GraphPatch (patch.proto) as dataclasses."""

from spillway.messages import AddedControl, NewNode, NodeAttribute, Patch, RewiredInput

__all__ = ["AddedControl", "NewNode", "NodeAttribute", "Patch", "RewiredInput"]
