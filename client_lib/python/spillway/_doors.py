"""The keywords of each function, for editors and type checkers (`**keywords: Unpack[...]`), and at
run time (`inspect.signature`, a notebook's help) through `visible`.

Options are in _keywords.py.
"""

import inspect
from typing import Any, Callable, Dict, List, Literal, Optional, Type, TypedDict, TypeVar, Union

from spillway import _keywords
from spillway._types import Duration, Path, Progress
from spillway.plan import Plan

F = TypeVar("F", bound=Callable[..., Any])

Strategy = Literal["budget", "level", "scope", "apply", "strip"]


class TlsKeywords(TypedDict, total=False):
    """The connection to a server. `Client` has these, too."""

    tls: bool
    """Use TLS. Implied by the four below."""
    tls_ca: Optional[Path]
    """A PEM file with the CA certificates to trust. Default: the system's."""
    tls_cert: Optional[Path]
    """A PEM file with the client's certificate."""
    tls_key: Optional[Path]
    """A PEM file with its key."""
    tls_server_name: Optional[str]
    """The name that the server's certificate must contain. Default: the host in `server`."""
    retries: Optional[int]
    """The maximum number of retries if the server cannot be reached or is full. Default: 4."""
    token_file: Optional[Path]
    """A file with the token for the server (`authorization: Bearer TOKEN`), read by every call.
    Without TLS it is not sent to another machine, unless `token_in_clear` is set."""
    token_in_clear: bool
    """Send the token without TLS, too."""
    hedge_after: Optional[Duration]
    """The time after which a rewrite without an answer is sent a second time, to another server if
    possible; the first answer wins. Default: never."""


class OneCallKeywords(TypedDict, total=False):
    """The metadata of one call."""

    token: Optional[str]
    """The token itself, instead of `token_file`."""
    request_id: Optional[str]
    """An id for the server's log."""
    traceparent: Optional[str]
    """The span in W3C format, for the server's log."""


class LimitKeywords(TypedDict, total=False):
    """Timeout and progress of one call."""

    timeout: Optional[Duration]
    """Seconds, or `"30s"`. None: no limit."""
    progress: Optional[Progress]
    """Called with (stage, done bytes, total bytes) on another thread; must be short and not call
    Spillway. Its exceptions end the call and are raised here."""


class ServerKeywords(TypedDict, total=False):
    """The destination of a call."""

    server: Union[str, List[str], None]
    """`host:port` of a spillwayd, `unix:/path`, or any name that gRPC resolves; of several servers,
    one that serves. None: in this process."""


class WhereKeywords(TlsKeywords, OneCallKeywords, total=False):
    """The destination of a call, besides `server`."""


class CallKeywords(ServerKeywords, LimitKeywords, WhereKeywords, total=False):
    """The keywords of every call that are not options."""


class FailOpenKeywords(TypedDict, total=False):
    """The failure mode of a rewrite."""

    fail_open: bool
    """After a failure, warn (SpillwayWarning) and continue without swaps."""


class ResultKeywords(TypedDict, total=False):
    """Results of a rewrite besides the graph and the report."""

    patch: bool
    """Also the edits, for a live graph."""
    save_plan: bool
    """Also the plan, for `apply`."""


class PlanKeywords(TypedDict, total=False):
    """The keyword of the strategy apply."""

    plan: Union[Plan, str, bytes, None]
    """The plan of a rewrite with `save_plan`, or its JSON."""


class StrategyKeywords(TypedDict, total=False):
    """The strategy of a rewrite, and its search."""

    strategy: Optional[Strategy]
    """`budget` (the default), `level` (TFLMS v2) or `scope` (TFLMS v1)."""
    keep_best: bool
    """When `timeout` has passed, return the best plan of `budget` so far. In this process only."""


class PlaceKeywords(_keywords.StepKeywords, _keywords.HardwareKeywords, total=False):
    """A step and its machine."""


class AnyStrategyKeywords(PlaceKeywords, _keywords.CommonKeywords, _keywords.SettledKeywords,
                          total=False):
    """Options of every strategy, except `cpu_device`."""


class OptionKeywords(AnyStrategyKeywords, _keywords.CpuDeviceKeywords,
                     _keywords.OptimizerScopesKeywords, _keywords.ScopeKeywords,
                     _keywords.LmsLevelKeywords, _keywords.LevelKeywords, _keywords.FilterKeywords,
                     _keywords.BudgetKeywords, PlanKeywords, total=False):
    """Every option of a rewrite."""


class SimulateKeywords(PlaceKeywords, WhereKeywords, total=False):
    """Of `simulate` and `explore`."""


class StripKeywords(CallKeywords, FailOpenKeywords, ResultKeywords, total=False):
    """Of `strip`."""


class ApplyKeywords(StripKeywords, PlaceKeywords, _keywords.CommonKeywords, total=False):
    """Of `apply`."""


class FunctionKeywords(StrategyKeywords, CallKeywords, OptionKeywords, total=False):
    """Of `spillway.tensorflow.rewrite_function`, besides `fail_open`."""


class TrainFunctionKeywords(FunctionKeywords, FailOpenKeywords, total=False):
    """Of `spillway.tensorflow.rewrite_train_function`."""


class LiveGraphKeywords(FunctionKeywords, total=False):
    """Of `spillway.tensorflow.rewrite_graph`, besides `fail_open`."""

    save_plan: bool
    """Also the plan, for `apply`."""


class SharedKeywords(LiveGraphKeywords, total=False):
    """Of `spillway.horovod`."""


class LmsKeywords(AnyStrategyKeywords, CallKeywords, FailOpenKeywords, total=False):
    """Of both LMS, besides their own."""


class LmsV1Keywords(LmsKeywords, _keywords.CpuDeviceKeywords, _keywords.ScopeKeywords, total=False):
    """Of TFLMS v1's hook and callback, besides `optimizer_scopes`."""

    graph: Any
    """Unused: they edit the graph that is trained."""


class LmsV2Keywords(LmsKeywords, _keywords.LevelKeywords, _keywords.FilterKeywords, total=False):
    """Of TFLMS v2, besides its own."""


class ClientPlainKeywords(LimitKeywords, OneCallKeywords, total=False):
    """Of a client's calls: without the arguments of the client."""



class ClientSimulateKeywords(ClientPlainKeywords, PlaceKeywords, total=False):
    """Of `Client.simulate` and `Client.explore`, besides their own."""


class ClientStripKeywords(ClientPlainKeywords, FailOpenKeywords, ResultKeywords, total=False):
    """Of `Client.strip`."""


class ClientApplyKeywords(ClientStripKeywords, PlaceKeywords, _keywords.CommonKeywords, total=False):
    """Of `Client.apply`."""


class ClientRewriteKeywords(ClientStripKeywords, StrategyKeywords, OptionKeywords, total=False):
    """Of `Client.rewrite`."""


# The defaults of keywords whose default is not None.
_DEFAULTS: Dict[str, Any] = {"tls": False, "token_in_clear": False, "keep_best": False,
                             "fail_open": False, "patch": False, "save_plan": False}


def names(keywords: Type[Any]) -> List[str]:
    """Returns the keywords of a TypedDict, in order."""
    return list(keywords.__annotations__)


def visible(keywords: Type[Any], **defaults: Any) -> Callable[[F], F]:
    """Decorates a function that ends in `**keywords: Unpack[...]`, so that its signature names each
    keyword."""
    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values()
               if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = {parameter.name for parameter in own}
        more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind,
                                  default=defaults.get(name, _DEFAULTS.get(name)))
                for name, kind in keywords.__annotations__.items() if name not in taken]
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=own + more)
        return function
    return decorate
