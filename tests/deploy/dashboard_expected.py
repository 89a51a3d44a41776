"""What each expression of the dashboards has to say about a load, out of what its callers saw.

An entry of a table stands for a panel and has a function for each of its expressions. It gets Sent
and returns values by labels; a series that is not named there has to be zero, or not a number.
Whoever adds a panel adds an entry: without one the test fails."""

import dataclasses
import itertools
import math

from dashboard_load import NODE_MEMORY_BYTES

# The contract of the metrics, and so in no report: bounds of the histograms.
SLOWDOWN_BOUNDS = (1, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10)
NEED_BOUNDS = (0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 4)
BYTES_BOUNDS = tuple(2**20 * n for n in (1, 4, 16, 64, 256)) + tuple(
    2**30 * n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256)
)


@dataclasses.dataclass
class Near:
    value: float
    tolerance: float = 0.02  # A share; one scrape of many may be off in a window's end.

    def holds(self, value):
        return math.isclose(value, self.value, rel_tol=self.tolerance, abs_tol=1e-9)

    def __str__(self):
        return "%.6g" % self.value


@dataclasses.dataclass
class Between:
    low: float
    high: float

    def holds(self, value):
        return self.low - 1e-9 * abs(self.low) <= value <= self.high + 1e-9 * abs(self.high)

    def __str__(self):
        return "%.6g to %.6g" % (self.low, self.high)


class Peak(Between):
    """Of a gauge: the largest value at any scrape of the load."""


@dataclasses.dataclass
class Sent:
    """The subject of a dashboard: answers, and the time between a scrape before and one after."""

    answers: list  # Of hooks: runs.
    seconds: float
    instance: str
    wall: float = 0  # The longest that any caller waited.
    process: dict = None  # Of the server, as the system has it.
    version: str = ""

    def where(self, **wanted):
        return [a for a in self.answers if all(getattr(a, k) == v for k, v in wanted.items())]

    @property
    def swapping(self):
        return self.where(outcome="rewritten")

    @property
    def unfit(self):
        return self.where(outcome="does_not_fit")

    @property
    def planned(self):
        return self.swapping + self.where(outcome="nothing_to_do") + self.unfit

    @property
    def graphs(self):
        """That came back."""
        return [a for a in self.answers if a.report]

    @property
    def made(self):
        """By hooks: what one took from its cache was counted before."""
        return [a for a in self.answers if a.outcome and not a.cached]


def labels(**values):
    return frozenset(values.items())


def one(value, **of):
    return {labels(**of): value if hasattr(value, "holds") else Near(value)}


def groups(answers, *names):
    """(labels, answers) by attributes."""

    def key(answer):
        return tuple(getattr(answer, name) for name in names)

    for values, members in itertools.groupby(sorted(answers, key=key), key):
        yield labels(**dict(zip(names, values))), list(members)


def sums(answers, names, value=lambda _: 1, scale=1):
    return {of: Near(scale * sum(map(value, members))) for of, members in groups(answers, *names)}


def means(answers, names, value):
    return {of: Near(sum(map(value, m)) / len(m)) for of, m in groups(answers, *names)}


def mean(answers, value):
    return sum(map(value, answers)) / len(answers)


def quantile(q, values, bounds):
    """The quantile's range, as a histogram shows it: the bucket of the right value. Between two
    values, rounding decides: from the bucket of one to the start of the other's."""

    def bucket(value):
        below = [bound for bound in bounds if bound < value]
        above = [bound for bound in bounds if value <= bound]
        # Above the last bound, that bound.
        return below[-1] if below else 0, above[0] if above else bounds[-1]

    values = sorted(values)
    low, high = bucket(values[max(0, math.ceil(q * len(values)) - 1)])
    after, _ = bucket(values[min(len(values) - 1, math.floor(q * len(values)))])
    return Between(low, max(high, after))


def quantiles(q, answers, names, value, bounds):
    return {of: quantile(q, list(map(value, m)), bounds) for of, m in groups(answers, *names)}


def buckets(values, bounds):
    """As the labels le; each has those below, too."""
    counts = {"%g" % bound: sum(v <= bound for v in values) for bound in bounds}
    counts["+Inf"] = len(values)
    return {labels(le=le): Near(count) for le, count in counts.items()}


def shifted(values, by):
    """Of slow-downs: the part above 1; a bucket that begins below has nothing there."""
    return {
        of: (
            Near(v.value + by)
            if isinstance(v, Near)
            else Between(max(0, v.low + by), max(0, v.high + by))
        )
        for of, v in values.items()
    }


def saved(answer):
    return answer.gpu.peak_before - answer.gpu.peak_after


def need(answer):
    return answer.gpu.need / answer.gpu.budget


def waited(answer):
    return answer.seconds


def hour(sent):
    """What turns a count of the load into one of an hour."""
    return 3600 / sent.seconds


def swap_bytes(sent):
    return [a for a in sent.swapping if a.swap_bytes]


def fitting(sent):
    return [a for a in sent.graphs if a.outcome != "stripped"]


# Common to server and hooks.
COMMON = {
    "GPU memory saved": [lambda s: one(sum(map(saved, s.swapping)))],
    "Host memory promised": [lambda s: one(sum(a.host_bytes for a in s.swapping))],
    "GPU memory of a swapping job, mean": [
        lambda s: means(s.swapping, ["strategy"], lambda a: a.gpu.peak_before),
        lambda s: means(s.swapping, ["strategy"], lambda a: a.gpu.peak_after),
    ],
    "GPU memory saved, mean of a swapping job": [lambda s: means(s.swapping, ["strategy"], saved)],
    "Bytes swapped per step, mean of a swapping job": [
        lambda s: means(swap_bytes(s), ["strategy"], lambda a: a.swap_bytes)
    ],
    "Slow-down, mean of a swapping job": [
        lambda s: one(mean(s.swapping, lambda a: a.slowdown) - 1)
    ],
}


SWAPS = COMMON | {
    "Slow-down of swapping jobs": [
        lambda s: shifted(
            quantiles(0.5, s.swapping, ["strategy"], lambda a: a.slowdown, SLOWDOWN_BOUNDS), -1
        ),
        lambda s: shifted(
            quantiles(0.95, s.swapping, ["strategy"], lambda a: a.slowdown, SLOWDOWN_BOUNDS), -1
        ),
    ],
    "Slow-down, swapping jobs by bucket": [
        lambda s: buckets([a.slowdown for a in s.swapping], SLOWDOWN_BOUNDS)
    ],
    "Host memory promised to a swapping job": [
        lambda s: means(s.swapping, ["strategy"], lambda a: a.host_bytes),
        lambda s: quantiles(0.95, s.swapping, ["strategy"], lambda a: a.host_bytes, BYTES_BOUNDS),
    ],
    "Need against budget of jobs that fit": [
        lambda s: quantiles(0.5, fitting(s), ["strategy"], need, NEED_BOUNDS),
        lambda s: quantiles(0.95, fitting(s), ["strategy"], need, NEED_BOUNDS),
    ],
    "What does not fit, by how much": [
        lambda s: buckets([a.need_ratio for a in s.unfit], NEED_BOUNDS)
    ],
    "Jobs that needed swapping": [lambda s: one(len(s.swapping))],
    "Jobs that did not": [lambda s: one(len(s.where(outcome="nothing_to_do")))],
    "Jobs that do not fit": [lambda s: one(len(s.unfit))],
    "Share that needed swapping": [lambda s: one(len(s.swapping) / len(s.planned))],
    "Jobs an hour, by outcome": [lambda s: sums(s.graphs + s.unfit, ["outcome"], scale=hour(s))],
    "Jobs an hour, by strategy": [lambda s: sums(s.graphs + s.unfit, ["strategy"], scale=hour(s))],
    "Jobs by machine": [lambda s: sums(s.graphs + s.unfit, ["machine"])],
    "Host memory promised, by server": [
        lambda s: one(sum(a.host_bytes for a in s.swapping), instance=s.instance)
    ],
    "Share of jobs that do not fit": [
        lambda s: {
            of: Near(sum(a.outcome == "does_not_fit" for a in jobs) / len(jobs))
            for of, jobs in groups(s.planned, "strategy")
        }
    ],
    "Swapped out and in per step, mean of a swapping job": [
        lambda s: means(s.swapping, ["strategy"], lambda a: a.total("swap_out_bytes")),
        lambda s: means(s.swapping, ["strategy"], lambda a: a.total("swap_in_bytes")),
    ],
    "Tensors swapped, mean of a swapping job": [
        lambda s: means(s.swapping, ["strategy"], lambda a: a.total("swapped_tensor_count")),
        lambda s: means(s.swapping, ["strategy"], lambda a: a.total("unknown_size_count")),
    ],
    "Recomputed per step, mean of a swapping job": [
        lambda s: means(s.swapping, ["strategy"], lambda a: a.bytes_made_again),
    ],
    "Nodes added, mean of a swapping job": [
        lambda s: means(s.swapping, ["strategy"], lambda a: a.nodes_added),
        lambda s: means(s.swapping, ["strategy"], lambda a: a.total("swap_out_count")),
        lambda s: means(s.swapping, ["strategy"], lambda a: a.total("swap_in_count")),
    ],
}


def errors(sent, *faults):
    return [a for a in sent.answers if a.fault in faults]


def per_second(sent, answers, *names):
    return sums(answers, names, scale=1 / sent.seconds)


def share(part, sent):
    return one(len(part) / len(sent.answers))


def refused(sent):
    """By which of its limits is the server's to choose."""
    return Near(len(sent.where(reason="overloaded")) / sent.seconds)


STAGES = ("parse", "analysis", "strategy", "simulate", "apply", "verify", "report")

SERVICE = {
    "Servers up": [lambda s: one(1)],
    "Requests": [lambda s: one(len(s.answers))],
    "Our errors": [lambda s: one(0)],
    "Callers' mistakes": [lambda s: share(errors(s, "caller"), s)],
    "No room": [lambda s: share(errors(s, "capacity"), s)],
    "Request time, 99th percentile": [lambda s: one(Between(0.001, 4 * s.wall))],
    "Answered without work": [lambda s: one(len(s.where(cached=True)) / len(s.graphs))],
    "Journal lines lost": [lambda s: one(0)],
    "Requests, by method": [lambda s: per_second(s, s.answers, "method")],
    "Our errors, by reason": [lambda _: {}],
    "Callers' mistakes, by reason": [lambda s: per_second(s, errors(s, "caller"), "reason")],
    "No room and stopped, by reason": [
        lambda s: per_second(s, errors(s, "capacity", "stopped"), "fault", "reason")
    ],
    "Errors, by gRPC code": [
        lambda s: per_second(s, [a for a in s.answers if a.code != "OK"], "code")
    ],
    "Turned away, by reason": [lambda s: refused(s)],
    "Draining": [lambda _: {}],
    "Request time": [
        lambda s: {of: Between(0, 4 * s.wall) for of, _ in groups(s.answers, "method")},
        lambda s: {of: Between(0, 4 * s.wall) for of, _ in groups(s.answers, "method")},
    ],
    "Stages of a rewrite, mean": [
        lambda s: {labels(stage=stage): Between(1e-9, s.wall) for stage in STAGES}
    ],
    "Wait for a worker": [lambda s: one(Between(0, 4 * s.wall))] * 2,
    "Expected wait": [lambda s: one(Peak(0, 10 * s.wall), instance=s.instance)],
    "Requests in flight and queue": [
        lambda s: one(Peak(1, 4)),
        lambda s: one(Peak(0, 1)),
        lambda s: one(Peak(1, 1)),
    ],
    "Memory admitted": [lambda s: one(Peak(1e-4, 1), instance=s.instance)],
    "Bytes of graphs in flight": [
        lambda s: one(
            # Which of the graphs a scrape finds in flight is a matter of moments.
            Peak(
                min(a.bytes_in for a in s.answers if a.bytes_in > 0) / s.process["inflight_limit"],
                1,
            ),
            instance=s.instance,
        )
    ],
    "Connections": [
        lambda s: one(
            Peak(1 / s.process["connections"], 6 / s.process["connections"]), instance=s.instance
        )
    ],
    "Connections not taken": [lambda _: {}, lambda _: {}],
    "Resident memory": [lambda s: one(Near(s.process["resident_bytes"], 0.3), instance=s.instance)],
    "CPU": [lambda s: one(Near(s.process["cpu_seconds"] / s.seconds, 0.2), instance=s.instance)],
    "File descriptors": [
        lambda s: one(Near(s.process["fds"] / s.process["max_fds"], 0.5), instance=s.instance)
    ],
    "Work spared": [
        lambda s: one(len(s.where(cached=True)) / s.seconds),
        lambda _: {},
        lambda _: {},
    ],
    "Cache": [lambda s: one(Peak(1, s.process["resident_bytes"]), instance=s.instance)],
    "Graph bytes": [
        # Some of those that are refused have begun to arrive.
        lambda s: one(
            Between(
                sum(a.bytes_in for a in s.answers if a.reason != "overloaded") / s.seconds,
                sum(a.bytes_in for a in s.answers) / s.seconds,
            )
        ),
        lambda s: one(Near(sum(a.bytes_out for a in s.graphs) / s.seconds, 0.1)),
    ],
    "Journal": [lambda s: one(len(s.answers) / s.seconds), lambda _: {}],
    "Log lines dropped": [lambda _: {}],
    "Uptime": [
        lambda s: one(Between(s.seconds, s.process["uptime_seconds"] + 20), instance=s.instance)
    ],
    "Servers, by version": [lambda s: one(1, version=s.version)],
}


def failed(sent):
    return [a for a in sent.answers if a.failure]


def remade(sent):
    return [a for a in sent.made if a.outcome == "rewritten"]


HOOKS = COMMON | {
    "Runs": [lambda s: one(len(s.answers))],
    "With swaps": [lambda s: one(len(s.where(result="rewritten")) + len(s.where(result="cached")))],
    "Without": [lambda s: one(len(s.where(result="unchanged")))],
    "Failed open": [lambda s: share(s.where(result="failed_open"), s)],
    "Failed closed": [lambda s: one(len(s.where(result="failed_closed")))],
    "Runs an hour, by result": [lambda s: sums(s.answers, ["result"], scale=hour(s))],
    "Failures an hour, by reason": [
        lambda s: {
            labels(reason=dict(of)["failure"]): value
            for of, value in sums(failed(s), ["failure"], scale=hour(s)).items()
        }
    ],
    "Slow-down of swapping jobs, mean": [
        lambda s: {
            of: Near(value.value - 1)
            for of, value in means(s.swapping, ["strategy"], lambda a: a.slowdown).items()
        }
    ],
    "Host memory promised, mean of a swapping job": [
        lambda s: means(s.swapping, ["strategy"], lambda a: a.host_bytes)
    ],
    "Need against budget of jobs that fit, mean": [
        lambda s: means(fitting(s), ["strategy"], need)
    ],
    "What does not fit, by how much, mean": [
        lambda s: means(s.unfit, ["strategy"], lambda a: a.need_ratio)
    ],
    # The caller sees the start of the program, too.
    "Time before the command, mean": [
        lambda s: one(Between(0.1 * mean(s.answers, waited), mean(s.answers, waited)))
    ],
    "Failed runs, by node": [lambda s: one(len(failed(s)), instance=s.instance)],
    "Host memory promised, by node": [
        lambda s: one(sum(a.host_bytes for a in s.swapping), instance=s.instance)
    ],
    "Share of runs that do not fit": [lambda s: share(s.where(failure="memory"), s)],
    "Graphs an hour, by outcome": [lambda s: sums(s.made, ["outcome"], scale=hour(s))],
    "Swapped out and in per step, mean of a swapping graph": [
        lambda s: one(mean(remade(s), lambda a: a.total("swap_out_bytes"))),
        lambda s: one(mean(remade(s), lambda a: a.total("swap_in_bytes"))),
    ],
    "Tensors swapped, mean of a swapping graph": [
        lambda s: one(mean(remade(s), lambda a: a.total("swapped_tensor_count"))),
        lambda s: one(mean(remade(s), lambda a: a.total("unknown_size_count"))),
    ],
    "Jobs by machine": [lambda s: sums(s.graphs, ["machine"])],
}

TABLES = {"spillway.json": SWAPS, "spillway-service.json": SERVICE, "spillway-hooks.json": HOOKS}


def with_labels(values, **more):
    return {of | labels(**more): value for of, value in values.items()}


def service_share(service, part):
    return len(part) / len(service.answers)


MINUTE, HOUR = 60, 3600
JOB, NODE = {"job": "spillway"}, {"job": "node"}

# Of each recording rule, by Sent of the service and of hooks.
RECORDED = {
    "job:spillway_requests:rate5m": lambda s, _: one(len(s.answers) / (5 * MINUTE), **JOB),
    "job_fault:spillway_request_errors:ratio_rate5m": lambda s, _: with_labels(
        sums([a for a in s.answers if a.fault], ["fault"], scale=1 / len(s.answers)), **JOB
    ),
    "job_instance:spillway_overloaded_requests:ratio_rate5m": lambda s, _: one(
        service_share(s, s.where(reason="overloaded")), instance=s.instance, **JOB
    ),
    "job:spillway_requests:increase15m": lambda s, _: one(len(s.answers), **JOB),
    "job_method:spillway_request_duration_seconds:p99_rate15m": lambda s, _: {
        labels(method=method, **JOB): Between(0.001, 4 * s.wall)
        for method in ("Rewrite", "StreamRewrite")
    },
    "job_strategy:spillway_rewrite_saved_bytes:increase1h": lambda s, _: with_labels(
        sums(s.swapping, ["strategy"], saved), **JOB
    ),
    "job_strategy:spillway_rewrite_slowdown_ratio:mean1h": lambda s, _: with_labels(
        means(s.swapping, ["strategy"], lambda a: a.slowdown), **JOB
    ),
    "job:spillway_rewrite_host_memory_bytes:p999_rate1h": lambda s, _: {
        labels(**JOB): quantile(0.999, [a.host_bytes for a in s.swapping], BYTES_BOUNDS)
    },
    "job:spillway_does_not_fit_jobs:increase6h": lambda s, _: one(len(s.unfit), **JOB),
    "job:spillway_planned_jobs:increase6h": lambda s, _: one(len(s.planned), **JOB),
    "job_result:spillway_hook_runs:increase1h": lambda _, h: with_labels(
        sums(h.answers, ["result"]), **NODE
    ),
    "job:spillway_hook_duration_seconds:mean1h": lambda _, h: one(
        Between(0.1 * mean(h.answers, waited), mean(h.answers, waited)), **NODE
    ),
    "job_instance:spillway_hook_rewrite_host_memory_bytes:increase1h": lambda _, h: one(
        sum(a.host_bytes for a in h.swapping), instance=h.instance, **NODE
    ),
}

# The alerts that the load fires, by the value that they show; all others are to be silent.
FIRING = {
    "SpillwayHookFailsOpen": lambda _, h: one(
        len(h.where(result="failed_open")) / len(h.answers), result="failed_open", **NODE
    ),
    "SpillwayHookHostMemory": lambda _, h: one(
        sum(a.host_bytes for a in h.swapping) / NODE_MEMORY_BYTES, instance=h.instance, **NODE
    ),
}


def loosened(values, scrapes):
    """For values recorded some scrapes before or after the moment of the query, from at least so
    many scrapes. Over a window that is longer than these, Prometheus extrapolates: by half an
    interval at the start, and by up to 1.1 at the end (extrapolatedRate in its
    promql/functions.go)."""
    most = 1.1 + 1.6 / max(scrapes - 1, 1)
    return {
        of: Between(*sorted((0.9 * value.value, most * value.value)))
        if isinstance(value, Near) else value
        for of, value in values.items()
    }


def canonical(of):
    """Bounds of buckets have several spellings."""
    if "le" in of:
        of = of | {"le": "%g" % float(of["le"]) if of["le"] != "+Inf" else "+Inf"}
    return labels(**{name: value for name, value in of.items() if name != "__name__"})


def problem_of(expected, series):
    """None, or how what Prometheus returned, (labels, value) each, differs from `expected`:
    values by labels, or one for the sum of all."""
    found = {canonical(of): value for of, value in series}
    if not isinstance(expected, dict):
        expected, found = {labels(): expected}, {labels(): sum(found.values())}
    for of in set(found) - set(expected):
        if found[of] != 0 and not math.isnan(found[of]):
            return "%s is %.6g, and nothing was sent for it" % (dict(of), found[of])
    for of, value in expected.items():
        if of not in found:
            # Nothing sent, no series: a filter of the expression's.
            if value.holds(0):
                continue
            return "no series %s instead of %s" % (dict(of), value)
        if not value.holds(found[of]):
            return "%s is %.6g instead of %s" % (dict(of), found[of], value)
    return None
