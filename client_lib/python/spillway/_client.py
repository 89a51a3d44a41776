"""Every call, to one place."""

from __future__ import annotations

from typing import Any, Dict, Optional

from spillway import _call, _plot, _questions, _rewrite


class Client:
    """Where calls go, said once: this process, or a server.

        client = spillway.Client("host:7070", tls=True)
        client.simulate(graph_def, batch_size=128)["forecast"]["fit"]

    Its methods are the functions of this package, which have their documentation; what the client
    was made with needs no repeating, and holds for every call. For any number of threads.
    """

    def __init__(self, server: Optional[str] = None, *, tls: bool = False,
                 tls_ca: Optional[str] = None, tls_cert: Optional[str] = None,
                 tls_key: Optional[str] = None, tls_server_name: Optional[str] = None,
                 retries: Optional[int] = None, token_file: Optional[str] = None,
                 token_in_clear: bool = False, hedge_after: Optional[float] = None) -> None:
        self._where: Dict[str, Any] = {
            "server": server, "tls": tls, "tls_ca": tls_ca, "tls_cert": tls_cert,
            "tls_key": tls_key, "tls_server_name": tls_server_name, "retries": retries,
            "token_file": token_file, "token_in_clear": token_in_clear, "hedge_after": hedge_after}
        _call.Where(**self._where)  # What does not go together is said now.

    def rewrite(self, graph: Any, **keywords: Any) -> _rewrite.RewriteResult:
        return _rewrite.rewrite(graph, **self._where, **keywords)

    def apply(self, graph: Any, plan: Any, **keywords: Any) -> _rewrite.RewriteResult:
        return _rewrite.apply(graph, plan, **self._where, **keywords)

    def strip(self, graph: Any, **keywords: Any) -> _rewrite.RewriteResult:
        return _rewrite.strip(graph, **self._where, **keywords)

    def inspect(self, graph: Any, **keywords: Any) -> Dict[str, Any]:
        return _questions.inspect(graph, **self._where, **keywords)

    def simulate(self, graph: Any, **keywords: Any) -> Dict[str, Any]:
        return _questions.simulate(graph, **self._where, **keywords)

    def explore(self, graph: Any, **keywords: Any) -> Dict[str, Any]:
        return _questions.explore(graph, **self._where, **keywords)

    def plot(self, what: Any, file: Any = None, **keywords: Any) -> Any:
        return _plot.plot(what, file, **self._where, **keywords)

    def diff(self, graph_a: Any, graph_b: Any, **keywords: Any) -> Dict[str, Any]:
        return _questions.diff(graph_a, graph_b, **self._where, **keywords)

    def capabilities(self, **keywords: Any) -> Dict[str, Any]:
        return _questions.capabilities(**self._where, **keywords)
