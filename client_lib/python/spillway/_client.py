"""A client: every call, to one destination."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Union

from spillway import _call, _doors, _plot, _questions, _rewrite
from spillway._types import Duration, Execution, Feeds, Path, PictureFormat, Recompute, Theme
from spillway.messages import (Capabilities, ExploredSize, ExploreReport, GraphDiff, GraphSummary,
                               SimulateReport, TensorSummary)
from spillway.plan import Plan

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Client:
    """A fixed destination for calls: this process, or a server.

        client = spillway.Client("host:7070", tls=True)
        client.simulate(graph_def, batch_size=128).forecast.fit

    Its methods are the functions of this package, which document them; the arguments of the client
    apply to every call. Thread-safe.
    """

    def __init__(self, server: Union[str, List[str], None] = None, *, tls: bool = False,
                 tls_ca: Optional[Path] = None, tls_cert: Optional[Path] = None,
                 tls_key: Optional[Path] = None, tls_server_name: Optional[str] = None,
                 retries: Optional[int] = None, token_file: Optional[Path] = None,
                 token_in_clear: bool = False, hedge_after: Optional[Duration] = None) -> None:
        self._where: Dict[str, Any] = {
            "server": server, "tls": tls, "tls_ca": tls_ca, "tls_cert": tls_cert,
            "tls_key": tls_key, "tls_server_name": tls_server_name, "retries": retries,
            "token_file": token_file, "token_in_clear": token_in_clear, "hedge_after": hedge_after}
        _call.Where(**self._where)  # Reports conflicts now.

    def __repr__(self) -> str:
        server = self._where["server"]
        return "<spillway.Client in this process>" if server is None else (
            "<spillway.Client of %s>" % (server if isinstance(server, str) else ",".join(server)))

    @_doors.visible(_doors.ClientRewriteKeywords)
    def rewrite(self, graph: Any,
                **keywords: Unpack[_doors.ClientRewriteKeywords]) -> _rewrite.RewriteResult:
        return _rewrite.rewrite(graph, **self._where, **keywords)

    @_doors.visible(_doors.ClientApplyKeywords)
    def apply(self, graph: Any, plan: Union[Plan, str, bytes],
              **keywords: Unpack[_doors.ClientApplyKeywords]) -> _rewrite.RewriteResult:
        return _rewrite.apply(graph, plan, **self._where, **keywords)

    @_doors.visible(_doors.ClientStripKeywords)
    def strip(self, graph: Any,
              **keywords: Unpack[_doors.ClientStripKeywords]) -> _rewrite.RewriteResult:
        return _rewrite.strip(graph, **self._where, **keywords)

    @_doors.visible(_doors.ClientPlainKeywords)
    def inspect(self, graph: Any, *, batch_size: Optional[int] = None,
                feeds: Optional[Feeds] = None, largest_tensor_count: Optional[int] = None,
                on_tensors: Optional[Callable[[List[TensorSummary]], object]] = None,
                **keywords: Unpack[_doors.ClientPlainKeywords]) -> GraphSummary:
        return _questions.inspect(graph, batch_size=batch_size, feeds=feeds,
                                  largest_tensor_count=largest_tensor_count, on_tensors=on_tensors,
                                  **self._where, **keywords)

    @_doors.visible(_doors.ClientSimulateKeywords)
    def simulate(self, graph: Any, *, memory: bool = False, trace: bool = False,
                 execution: Optional[Execution] = None, no_budget: bool = False,
                 **keywords: Unpack[_doors.ClientSimulateKeywords]) -> SimulateReport:
        return _questions.simulate(graph, memory=memory, trace=trace, execution=execution,
                                   no_budget=no_budget, **self._where, **keywords)

    @_doors.visible(_doors.ClientSimulateKeywords)
    def explore(self, graph: Any, *, on_size: Optional[Callable[[ExploredSize], object]] = None,
                sizes: Union[Iterable[int], str] = (), multiple_of: Optional[int] = None,
                swapping: bool = False, recompute: Optional[Recompute] = None,
                no_budget: bool = False,
                **keywords: Unpack[_doors.ClientSimulateKeywords]) -> ExploreReport:
        return _questions.explore(graph, on_size=on_size, sizes=sizes, multiple_of=multiple_of,
                                  swapping=swapping, recompute=recompute, no_budget=no_budget,
                                  **self._where, **keywords)

    @_doors.visible(_doors.ClientSimulateKeywords)
    def plot(self, what: Any, file: Optional[Path] = None, *, before: Any = None,
             format: Optional[PictureFormat] = None,  # pylint: disable=redefined-builtin
             theme: Theme = "auto", title: Optional[str] = None, plan: bool = True,
             throughput: bool = False, execution: Optional[Execution] = None, no_budget: bool = False,
             sizes: Union[Iterable[int], str] = (),
             **keywords: Unpack[_doors.ClientSimulateKeywords]) -> Union[str, bytes]:
        return _plot.plot(what, file, before=before, format=format, theme=theme, title=title,
                          plan=plan, throughput=throughput, execution=execution, no_budget=no_budget,
                          sizes=sizes, **self._where, **keywords)

    @_doors.visible(_doors.ClientPlainKeywords)
    def diff(self, graph_a: Any, graph_b: Any,
             **keywords: Unpack[_doors.ClientPlainKeywords]) -> GraphDiff:
        return _questions.diff(graph_a, graph_b, **self._where, **keywords)

    @_doors.visible(_doors.OneCallKeywords)
    def capabilities(self, *, timeout: Optional[Duration] = None,
                     **keywords: Unpack[_doors.OneCallKeywords]) -> Capabilities:
        return _questions.capabilities(timeout=timeout, **self._where, **keywords)
