"""Draws a dashboard into a picture, each panel out of the queries that Grafana would ask, for
whoever changes one and has no Grafana at hand: dashboard_test.py --draw DIR. Rough: places, titles,
units and legends are the dashboard's, the rest is not Grafana's."""

import math
import re

import dashboards

# Of rates; some scrapes of the test.
RATE_INTERVAL = "5s"


def text_of(value, unit):
    """As Grafana would write it, by and large."""
    if math.isnan(value):
        return "NaN"
    if unit == "percentunit":
        return "%.3g%%" % (100 * value)
    names = {"bytes": "B", "binBps": "B/s"}
    if unit in names:
        power = min(4, int(math.log(abs(value), 1024))) if abs(value) >= 1 else 0
        prefix = ("", "Ki", "Mi", "Gi", "Ti")[power]
        return "%.3g %s%s" % (value / 1024**power, prefix, names[unit])
    if unit == "s" and abs(value) < 1:
        return "%.3g ms" % (1000 * value)
    return "%.3g%s" % (value, {"short": "", "s": " s", "reqps": " req/s"}.get(unit, " " + unit))


def legend_of(target, labels):
    return re.sub(r"{{\s*(\w+)\s*}}", lambda m: labels.get(m.group(1), ""), target["legendFormat"])


def values_of(prometheus, dashboard, target, window):
    """(legend, value) at the end; of buckets, what is in each, without those below."""
    query = dashboards.filled_in(target["expr"], dashboard, window.text)
    series = prometheus.query(query, window.end)
    if target.get("format") != "heatmap":
        return [(legend_of(target, labels), value) for labels, value in series]
    series.sort(key=lambda of: float(of[0]["le"].replace("+Inf", "inf")))
    below = 0
    values = []
    for labels, value in series:
        values.append((legend_of(target, labels), value - below))
        below = value
    return values


def draw_stat(axes, panel, value):
    axes.axis("off")
    text = panel["fieldConfig"]["defaults"].get("noValue", "No data")
    if value is not None:
        text = text_of(value, panel["fieldConfig"]["defaults"]["unit"])
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=20)


def draw_bars(axes, panel, values):
    unit = panel["fieldConfig"]["defaults"]["unit"]
    names = [name for name, _ in values]
    axes.barh(range(len(values)), [value for _, value in values])
    axes.set_yticks(range(len(values)), names, fontsize=6)
    axes.invert_yaxis()
    for place, (_, value) in enumerate(values):
        axes.text(value, place, " " + text_of(value, unit), va="center", fontsize=6)
    axes.set_xticks([])


def draw_lines(axes, panel, prometheus, dashboard, window):
    unit = panel["fieldConfig"]["defaults"]["unit"]
    lines = []
    for target in panel["targets"]:
        query = target["expr"].replace("$__rate_interval", RATE_INTERVAL)
        query = dashboards.filled_in(query, dashboard, window.text)
        for labels, points in prometheus.query_range(query, window.start, window.end):
            if any(value == value for _, value in points):
                lines.append((legend_of(target, labels), points))
    for name, points in lines:
        times = [(t - window.start) / 1000 for t, _ in points]
        axes.plot(times, [v for _, v in points], label=name, marker=".", markersize=2, linewidth=1)
    if panel["fieldConfig"]["defaults"].get("min") == 0:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: text_of(value, unit))
    axes.tick_params(labelsize=6)
    if lines:
        axes.legend(fontsize=5, loc="upper left", ncols=2)
    else:
        axes.text(0.5, 0.5, "No data", transform=axes.transAxes, ha="center")


def draw(prometheus, dashboard, window, path):
    import matplotlib  # Not a dependency of the test.

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in dashboard["panels"])
    figure = pyplot.figure(figsize=(18, rows * 0.36))
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        if panel["type"] == "row":
            figure.text(0.01, 1 - (place["y"] + 0.8) / rows, panel["title"], fontsize=12)
            continue
        box = (place["x"] / 24 + 0.03, 1 - (place["y"] + place["h"] - 0.6) / rows)
        size = (place["w"] / 24 - 0.04, max(0.1, place["h"] - 2) / rows)
        axes = figure.add_axes(box + size)
        axes.set_title(panel["title"], fontsize=8, loc="left")
        values = [
            value
            for target in panel.get("targets", [])
            if panel["type"] != "timeseries"
            for value in values_of(prometheus, dashboard, target, window)
        ]
        if panel["type"] == "stat":
            draw_stat(axes, panel, values[0][1] if values else None)
        elif panel["type"] == "bargauge":
            draw_bars(axes, panel, values)
        else:
            draw_lines(axes, panel, prometheus, dashboard, window)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)
