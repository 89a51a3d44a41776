"""The notebook view: plain HTML without styles. Names come from graphs, and are escaped."""

from __future__ import annotations

import base64
import html
import os
import tempfile
from typing import Any, Sequence

from spillway._message import Message
from spillway._size import format_bytes
from spillway.report import Report

# The largest swaps that are listed.
_SHOWN = 10


def of(message: Message) -> str:
    """Returns the view of an answer."""
    return report_view(message) if isinstance(message, Report) else (
        "<pre>%s</pre>" % html.escape(str(message)))


def of_result(result: Any) -> str:
    """Returns the view of a RewriteResult: the memory needed, the setting, its cost, the largest
    swaps, and a picture of the step's memory if spillway.plot can draw one."""
    if result.report is None:
        return note("not rewritten: %s" % result.error)
    return report_view(result.report) + _picture(result)


def report_view(report: Report) -> str:
    parts = [note(report.summary), "<pre>%s</pre>" % html.escape(str(report))]
    swaps = sorted(report.swaps, key=lambda swap: -(swap.size_bytes or 0))[:_SHOWN]
    if swaps:
        parts.append(table(
            ["largest swaps" if len(report.swaps) > len(swaps) else "swaps", "size", "swap-ins",
             "device"],
            [[swap.tensor, format_bytes(swap.size_bytes), str(len(swap.swap_ins)),
              swap.device or "(none given)"] for swap in swaps]))
    return "".join(parts)


def note(text: str) -> str:
    """One sentence."""
    return "<p><b>Spillway</b>: %s</p>" % html.escape(text)


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "<table>%s%s</table>" % (_rows("th", [heading]), _rows("td", rows))


def _rows(tag: str, rows: Sequence[Sequence[str]]) -> str:
    return "".join("<tr>%s</tr>" % "".join(
        "<%s>%s</%s>" % (tag, html.escape(cell), tag) for cell in row) for row in rows)


def _picture(result: Any) -> str:
    """Returns the picture as an image, which isolates its styles; "" if it cannot be drawn: that
    must not make the view of a result fail."""
    try:
        from spillway import _plot  # type: ignore[attr-defined]  # pylint: disable=all
    except ImportError:
        return ""
    if result.report.outcome != "REWRITTEN":
        return ""
    graph = result.graph_def
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "picture.svg")
            _plot.plot(graph, file, **result._step)  # pylint: disable=protected-access
            with open(file, "rb") as drawn:
                picture = base64.b64encode(drawn.read()).decode()
    except Exception:  # pylint: disable=broad-except
        return ""
    return '<img alt="memory over a step" src="data:image/svg+xml;base64,%s"/>' % picture
