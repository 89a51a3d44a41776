"""The notebook view: plain HTML without styles. Names come from graphs, and are escaped."""

from __future__ import annotations

import base64
import html
import os
import tempfile
from typing import Any, Sequence

from spillway._message import Message
from spillway._size import format_bytes, format_time
from spillway.report import Report

_FIT_WORDS = {"FITS": "yes", "DOES_NOT_FIT": "no"}


def of(message: Message) -> str:
    """Returns the view of an answer."""
    return report_view(message) if isinstance(message, Report) else (
        "<pre>%s</pre>" % html.escape(str(message)))


def of_result(result: Any) -> str:
    """Returns the view of a RewriteResult: what was needed, the setting, its cost, the largest
    swaps, and a picture of the step's memory if spillway.plot can draw one."""
    if result.report is None:
        return note("not rewritten: %s" % result.error)
    return report_view(result.report) + _picture(result)


def report_view(report: Report) -> str:
    from spillway import _text  # pylint: disable=import-outside-toplevel,cyclic-import
    parts = [note(report.summary)]
    facts = _text.needed(report) + _text.setting(report) + _text.cost(report)
    if facts:
        parts.append(table([], [list(fact) for fact in facts]))
    if report.devices:
        parts.append(table(
            ["device", "tensors", "swap-outs", "swap-ins", "out per step", "in per step"],
            [[device.device or "(none given)", str(device.swapped_tensor_count),
              str(device.swap_out_count), str(device.swap_in_count),
              format_bytes(device.swap_out_bytes), format_bytes(device.swap_in_bytes)]
             for device in report.devices]))
    forecasts = [("before", report.forecast_before), ("after", report.forecast_after)]
    rows = [[name, _FIT_WORDS.get(forecast.fit, "unknown"), format_time(forecast.step_time_ns),
             ", ".join(format_bytes(device.peak_bytes) for device in forecast.devices) or "-",
             format_bytes(forecast.host_peak_bytes)]
            for name, forecast in forecasts if forecast is not None]
    if rows:
        parts.append(table(
            ["forecast, launched ahead", "fits", "step", "peak memory", "host memory"], rows))
    swaps = _text.largest_swaps(report)
    if swaps:
        parts.append(table(
            ["largest swaps" if len(report.swaps) > len(swaps) else "swaps", "size", "swap-ins",
             "device"],
            [[swap.tensor, format_bytes(swap.size_bytes), str(len(swap.swap_ins)),
              swap.device or "(none given)"] for swap in swaps]))
    if report.warnings:
        parts.append("<ul>%s</ul>" % "".join(
            "<li>%s</li>" % html.escape(warning.message) for warning in report.warnings))
    return "".join(parts)


def note(text: str) -> str:
    """One sentence."""
    return "<p><b>Spillway</b>: %s</p>" % html.escape(text)


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """`heading` may be empty."""
    return "<table>%s%s</table>" % (_rows("th", [heading]) if heading else "", _rows("td", rows))


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
