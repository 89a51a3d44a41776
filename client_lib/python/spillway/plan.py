"""A plan as a file: spillway.v1.Plan (plan.proto)."""

from __future__ import annotations

import json
from typing import Union

from spillway import _native, errors
from spillway._values import text_of


class Plan:
    """The plan of a rewrite of one graph, to be reviewed, stored with a job, and applied without
    planning again. Compares equal if the underlying messages are.

        plan = spillway.rewrite(graph_def, save_plan=True).plan
        pathlib.Path("plan.json").write_text(plan.to_json())
        ...
        plan = spillway.Plan.from_json(pathlib.Path("plan.json").read_text())
        spillway.apply(graph_def, plan).graph_def

    Attributes:
      message: the serialized spillway.v1.Plan.
    """

    def __init__(self, message: bytes) -> None:
        if not isinstance(message, bytes):
            raise TypeError("a plan is made of the bytes of a message, or by Plan.from_json, and not "
                            "of %s" % errors.shown(message))
        self.message = message

    @classmethod
    def from_json(cls, text: Union[str, bytes]) -> "Plan":
        """Parses the output of `to_json` or `spillway rewrite --save-plan`. Raises
        InvalidOptionError (BAD_PLAN) if it is not a plan; `apply` checks whether it can be
        applied."""
        if isinstance(text, (bytes, bytearray)):
            text = text.decode("utf-8", "replace")
        if not isinstance(text, str):
            raise errors.bad_option("plan", text, "is neither a Plan nor its JSON")
        text = text_of("plan", text)
        try:
            return cls(_native.message_from_json("Plan", text))
        except errors.NativeLibraryError:
            raise
        except errors.SpillwayError as error:
            raise errors.InvalidOptionError(
                "this is no plan (%s); give what Plan.to_json, or spillway rewrite --save-plan, "
                "gave" % error.message.split("\n")[0], code="INVALID_ARGUMENT",
                reason="BAD_PLAN") from error

    def to_json(self) -> str:
        """Returns proto3's JSON with the field names of plan.proto, indented."""
        return _native.message_to_json("Plan", self.message)

    def __repr__(self) -> str:
        try:
            plan = json.loads(self.to_json())
        except errors.SpillwayError:
            return "<Plan: no plan, of %s>" % _count(len(self.message), "byte")
        return "<Plan of the strategy %s for the graph %s...: %s, %s>" % (
            plan.get("strategy", "")[len("STRATEGY_"):].lower(), plan.get("graph_sha256", "")[:12],
            _count(len(plan.get("swaps", ())), "swap"), _count(len(self.message), "byte"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.message == other.message

    def __hash__(self) -> int:
        return hash(self.message)


def _count(count: int, noun: str) -> str:
    return "%d %s%s" % (count, noun, "" if count == 1 else "s")
