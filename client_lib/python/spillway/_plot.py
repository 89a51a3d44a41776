"""Pictures: the memory of a step before and after a rewrite, or throughput against size.

The library draws them as SVG or as an HTML page; the program rsvg-convert (Debian: librsvg2-bin)
converts SVG to PNG.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from typing import (TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple,
                    Union)

from spillway import _call, _doors, _native, _questions, _rewrite, errors, options
from spillway._message import Message
from spillway._types import Duration, Path, PictureFormat, Execution, Progress, Theme
from spillway._values import bool_of, c_text_of, entries_of, path_of, sizes_of
from spillway.messages import ExploreReport, SimulateReport

if TYPE_CHECKING:
    from typing_extensions import Unpack

# By file extension. A trace is for Perfetto and chrome://tracing.
_FORMATS = {".svg": "svg", ".html": "html", ".htm": "html", ".png": "png", ".json": "trace"}
_CONVERTER = "rsvg-convert"
_CONVERT_SECONDS = 60
# If there is no plan to draw, the graph is drawn unchanged, and the title says why.
_NO_PLAN = ("DOES_NOT_FIT", "NO_BACKWARD_PART", "NAME_MATCHES_NOTHING", "FOREIGN_REWRITE",
            "SEARCH_TOO_LONG")


class _Message(NamedTuple):
    """A serialized message of spillway.v1, by name."""
    name: str
    message: bytes


@_doors.visible(_doors.SimulateKeywords)
def plot(what: Any, file: Optional[Path] = None, *, before: Any = None,
         format: Optional[PictureFormat] = None,  # pylint: disable=redefined-builtin
         theme: Theme = "auto", title: Optional[str] = None, plan: bool = True,
         throughput: bool = False, execution: Optional[Execution] = None, no_budget: bool = False,
         sizes: Union[Iterable[int], str] = (), server: Union[str, List[str], None] = None,
         timeout: Optional[Duration] = None, progress: Optional[Progress] = None,
         **keywords: Unpack[_doors.SimulateKeywords]) -> Union[str, bytes]:
    """Draws the memory of a step and the activity of its engines, beside the step before a rewrite;
    or throughput against batch size.

    Args:
      what: a graph (bytes, a GraphDef, a tf.Graph): a rewritten one is drawn beside the result of
        `strip`, any other beside the result of `rewrite`. Or an answer of `simulate` with memory
        and trace, or of `explore`.
      file: the file to write. None: none; the picture is returned in any case.
      before: the graph, or the answer of `simulate`, to be drawn beside `what`.
      format: `svg`, `html` (a page that describes the element under the pointer), `png`, or `trace`
        (for Perfetto and chrome://tracing). Default: by the file's name; svg without one.
      theme: `light`, `dark`, or `auto`: the viewer's preference (light for a PNG).
      title: the heading.
      plan: False draws a graph that was not rewritten without planning it.
      throughput: draw throughput against batch size, from `explore`, at `sizes` if given.
      execution: the execution model: `synchronous` (the default of pictures), or `launched_ahead`,
        like TensorFlow (the default of a trace): memory is then allocated long before it is used.
      **keywords: those of `simulate`.

    Returns: the picture, as text; a PNG as bytes.

    Raises SpillwayError, TypeError for another keyword, and OSError if the file cannot be written.
    """
    _questions._check_names(plot, keywords)  # pylint: disable=protected-access
    file, title = path_of("file", file), c_text_of("title", title)
    shade = c_text_of("theme", theme) or "auto"
    plan, throughput = bool_of("plan", plan), bool_of("throughput", throughput)
    no_budget = bool_of("no_budget", no_budget)
    kind = _format_of(file, format)
    if execution is None and kind != "trace":
        execution = "synchronous"
    call = _Caller(server, timeout, progress, execution, no_budget, keywords)
    report = _as_report(what, "what")
    if report is None and throughput:
        report = call.explore(_rewrite.serialized(what)[0], sizes, plan)
    first = None
    if report is None and before is None:
        graph = _rewrite.serialized(what)[0]
        graph, earlier, note = call.both(graph, plan and not no_budget and kind != "trace")
        report = call.simulate(graph)
        first = call.simulate(earlier) if earlier is not None and kind != "trace" else None
        title = title or note
    elif report is None:
        report = call.simulate(_rewrite.serialized(what)[0])
    if before is not None:
        try:
            first = _as_report(before, "before") or call.simulate(_rewrite.serialized(before)[0])
        except TypeError as error:
            raise TypeError("before: %s" % error) from None
        if kind == "trace" or (report.name, first.name) != ("SimulateReport",) * 2:
            raise TypeError("before is drawn beside the picture of a step alone")
    picture = _draw(report, first, "svg" if kind == "png" else kind,
                    "light" if kind == "png" and shade == "auto" else shade, title)
    content: Union[str, bytes] = _png(picture) if kind == "png" else picture.decode()
    if file is not None:
        with open(file, "wb") as out:
            out.write(content if isinstance(content, bytes) else content.encode())
    return content


def beside(graph: Any, run_metadata: bytes, *, server: Union[str, List[str], None] = None,
           timeout: Optional[Duration] = None, progress: Optional[Progress] = None,
           execution: Optional[Execution] = None, no_budget: bool = False,
           **keywords: Any) -> bytes:
    """Returns a trace of the simulated step of a graph and, beside it, of a measured one."""
    _questions._check_names(plot, keywords)  # pylint: disable=protected-access
    call = _Caller(server, timeout, progress, execution, no_budget, keywords)
    return _draw(_Message("RunMetadata", run_metadata),
                 call.simulate(_rewrite.serialized(graph)[0]), "trace", "", None)


class _Caller:
    """The calls for a picture, all with the same step."""

    def __init__(self, server: Any, timeout: Optional[Duration], progress: Optional[Progress],
                 execution: Optional[Execution], no_budget: bool, keywords: Mapping[str, Any]) -> None:
        self._where = _questions._where(server, keywords)  # pylint: disable=protected-access
        self._timeout, self._progress = timeout, progress
        self._execution, self._no_budget, self._keywords = execution, no_budget, keywords

    def simulate(self, graph: bytes) -> _Message:
        wanted = _questions.simulate_options(self._keywords, memory=True, trace=True,
                                             execution=self._execution, no_budget=self._no_budget)
        return self._ask("SimulateReport", "SimulateOptions", "spillway_simulate", graph, wanted)

    def explore(self, graph: bytes, sizes: Any, swapping: bool) -> _Message:
        wanted = {"step": options.step_of(self._keywords, with_size=True),
                  "no_budget": self._no_budget, "sizes": sizes_of("sizes", sizes),
                  "swapping": swapping and not self._no_budget}
        return self._ask("ExploreReport", "ExploreOptions", "spillway_explore", graph, wanted,
                         _native.PART(), None)

    def both(self, graph: bytes, plan: bool) -> Tuple[bytes, Optional[bytes], Optional[str]]:
        """Returns the graph to draw, the one before the rewrite, and a note if it is missing."""
        where = {name: value for name, value in vars(self._where).items() if value is not None}
        where.update(timeout=self._timeout, progress=self._progress)
        try:
            stripped = _rewrite.strip(graph, **where)
            if stripped.report is not None and stripped.report.outcome == "STRIPPED":
                return graph, stripped.graph_def, None
            if not plan:
                return graph, None, None
            step = {name: value for name, value in self._keywords.items()
                    if name in options.STEP | options.HARDWARE}
            planned = _rewrite.rewrite(graph, **where, **step)
        except errors.SpillwayError as error:
            if error.reason not in _NO_PLAN:
                raise
            return graph, None, "A training step as it is: %s" % error.message
        if planned.report is None or planned.report.outcome != "REWRITTEN":
            dry_run = planned.report is not None and planned.report.outcome == "DRY_RUN"
            return graph, None, "A training step as it is: %s" % (
                "the server makes dry runs only" if dry_run else "nothing is swapped")
        return planned.graph_def, graph, None

    def _ask(self, name: str, options_name: str, function: str, graph: bytes,
             wanted: Dict[str, Any], *more: Any) -> _Message:
        encoded = _native.message_from_json(options_name, options.dump(wanted))
        out = ctypes.c_void_p()
        with _call.Call(self._where, self._timeout, self._progress) as call:
            call.run(getattr(_native.library(), function), call.client, graph, len(graph), encoded,
                     len(encoded), call.handle, *more, ctypes.byref(out))
        return _Message(name, _native.take(out))


def _format_of(file: Optional[str], given: Any) -> str:
    known = sorted(set(_FORMATS.values()))
    if given is not None:
        if not isinstance(given, str) or given not in known:
            raise errors.bad_option("format", given, "is none of %s" % ", ".join(known))
        return given
    if file is None:
        return "svg"
    ending = os.path.splitext(file)[1].lower()
    if ending not in _FORMATS:
        raise errors.bad_option("file", file, "does not say what to draw; give a name that ends in "
                                              ".svg, .html, .png or .json (a trace), or format=")
    return _FORMATS[ending]


def _as_report(what: Any, option: str) -> Optional[_Message]:
    """Converts an answer of simulate or explore, or its dict, to a message; None for anything
    else."""
    if isinstance(what, (SimulateReport, ExploreReport)):
        what = what.to_dict()
    if isinstance(what, Message) or (
            isinstance(what, Mapping) and "forecast" not in what and "sizes" not in what):
        raise TypeError("a %s is drawn if it is an answer of simulate or explore"
                        % type(what).__name__)
    if not isinstance(what, Mapping):
        return None
    name = "ExploreReport" if "sizes" in what else "SimulateReport"
    wrong = "is no answer of simulate or explore"
    try:
        text = json.dumps(dict(entries_of(option, what, wrong)))
    except (TypeError, ValueError, RecursionError):
        raise errors.bad_option(option, what, wrong) from None
    return _Message(name, _native.message_from_json(name, text))


def _draw(report: _Message, before: Optional[_Message], kind: str, theme: str,
          title: Optional[str]) -> bytes:
    first = b"" if before is None else before.message
    return _native.produce(
        _native.library().spillway_draw, report.name.encode(), report.message, len(report.message),
        first, len(first), kind.encode(), theme.encode(), (title or "").encode())


def _folders() -> List[str]:
    """Returns the absolute folders of PATH: programs relative to the current folder must not run."""
    return [folder for folder in os.environ.get("PATH", "").split(os.pathsep)
            if os.path.isabs(folder)]


def _png(svg: bytes) -> bytes:
    for folder in _folders():
        program = os.path.join(folder, _CONVERTER)
        if os.path.isfile(program) and os.access(program, os.X_OK):
            break
    else:
        raise errors.InvalidOptionError(
            "a PNG is drawn by %s, which is in no absolute folder of PATH; install the package "
            "librsvg2-bin, or draw an svg or html" % _CONVERTER,
            code="INVALID_ARGUMENT", reason="BAD_OPTION")
    try:
        done = subprocess.run([program, "--format=png", "--zoom=2"], input=svg,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                              timeout=_CONVERT_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise errors.InternalError("%s has made no PNG of the picture: %s" % (_CONVERTER, error),
                                   code="INTERNAL", reason="INTERNAL") from error
    return done.stdout
