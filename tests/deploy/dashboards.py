"""The dashboards of deploy/grafana: their contents, and whether they keep the rules that Grafana's
dashboard-linter has for them."""

import json
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "deploy/grafana"

# Those of Grafana that the panels have use for.
UNITS = {"short", "percentunit", "bytes", "binBps", "s", "reqps", "wps", "cps"}
COUNTER = r"\w+_(?:total|bucket|sum|count)"


def read_all():
    return {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def panels_of(dashboard):
    """Rows have panels of their own when they are collapsed."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def variable_of(dashboard, name):
    return next((v for v in dashboard["templating"]["list"] if v["name"] == name), {})


def filled_in(text, dashboard, range_text):
    """An expression as Grafana asks it, with All chosen in each variable."""
    values = {"$__rate_interval": range_text, "$__range": range_text}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            values["$" + variable["name"]] = variable["allValue"]
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def selectors_of(expression):
    """(metric, matchers, function around it or None) of each."""
    pattern = r"(?:(\w+) ?\()?\b([a-z_]+)\{([^}]*)\}"
    return [match.groups() for match in re.finditer(pattern, expression)]


def variable_problems(dashboard):
    source = variable_of(dashboard, "datasource")
    if (source.get("type"), source.get("query")) != ("datasource", "prometheus"):
        yield "no variable datasource of type datasource for Prometheus"
    if source.get("label") != "Data source":
        yield "the variable datasource is not labelled Data source"
    for name, label in (("job", "Job"), ("instance", "Instance")):
        variable = variable_of(dashboard, name)
        wanted = {"type": "query", "label": label, "multi": True, "includeAll": True}
        # 2: when the time range changes, so that a server of yesterday is offered.
        wanted.update({"allValue": ".+", "refresh": 2})
        for key, value in wanted.items():
            if variable.get(key) != value:
                yield "variable %s: %s is %r, not %r" % (name, key, variable.get(key), value)
    if dashboard["editable"]:
        yield "it is editable"


def panel_problems(panel):
    if not panel.get("title") or not panel.get("description"):
        yield "no title or no description"
    if panel["fieldConfig"]["defaults"].get("unit") not in UNITS:
        yield "unit %r is none of UNITS" % panel["fieldConfig"]["defaults"].get("unit")
    if not panel.get("targets"):
        yield "no expression"
    for target in panel.get("targets", []):
        yield from ("%s: %s" % (target["refId"], p) for p in target_problems(target))


def target_problems(target):
    expression = target["expr"]
    if not target.get("legendFormat"):
        yield "no legend"
    selectors = selectors_of(expression)
    if not selectors:
        yield "no metric with matchers"
    for function, metric, matchers in selectors:
        for label in ("job", "instance"):
            if '%s=~"$%s"' % (label, label) not in matchers:
                yield "%s is not matched by $%s" % (metric, label)
        if re.fullmatch(COUNTER, metric) and function not in ("rate", "increase"):
            yield "the counter %s is in no rate or increase" % metric
    for function, window in re.findall(r"(\w+)\([^()]*\[([^\]]*)\]", expression):
        wanted = ("$__rate_interval",) if function == "rate" else ("$__rate_interval", "$__range")
        if window not in wanted:
            yield "%s over [%s] instead of %s" % (function, window, " or ".join(wanted))


def layout_problems(dashboard):
    ids = [panel["id"] for panel in dashboard["panels"]]
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in dashboard["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    if len(set(ids)) != len(ids):
        yield "two panels share an id"
    if len(set(cells)) != len(cells) or max(x for x, _ in cells) >= 24:
        yield "panels overlap or leave the page"
    titles = [panel["title"] for panel in panels_of(dashboard)]
    yield from ("two panels are called %r" % t for t in sorted(set(titles)) if titles.count(t) > 1)


def source_problems(dashboard):
    # A uid that one Grafana gave to its data source means nothing in another.
    uids = re.findall(r'"datasource": *\{[^}]*"uid": *"([^"]*)"', json.dumps(dashboard))
    for uid in sorted(set(uids) - {"${datasource}"}):
        yield "data source %r instead of ${datasource}" % uid
    for panel in panels_of(dashboard):
        if "datasource" not in panel or not all("datasource" in t for t in panel["targets"]):
            yield "%s has no data source" % panel["title"]


def check(dashboards, add):
    """Checks that need no Prometheus; `add` gets the name of each check and its problem, if any."""
    uids = [dashboard["uid"] for dashboard in dashboards.values()]
    add(
        "dashboards have uids and titles of their own",
        len(set(uids)) != len(uids) or len({d["title"] for d in dashboards.values()}) != len(uids),
    )
    for name, dashboard in dashboards.items():
        panels = [
            "%s: %s" % (panel["title"], problem)
            for panel in panels_of(dashboard)
            for problem in panel_problems(panel)
        ]
        for what, problems in (
            ("variables datasource, job and instance", variable_problems(dashboard)),
            ("title, description, unit, matchers and intervals of each panel", panels),
            ("ids and places of panels", layout_problems(dashboard)),
            ("data sources", source_problems(dashboard)),
        ):
            add("%s: %s" % (name, what), "; ".join(problems))
