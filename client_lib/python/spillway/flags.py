"""The LMS flags of tf_cnn_benchmarks, for any training script.

    parser = argparse.ArgumentParser()
    spillway.flags.add_arguments(parser)          # or, with absl: spillway.flags.define_flags()
    ...
    options = spillway.flags.options_from_flags(parser.parse_args())      # or of absl's FLAGS
    if options is not None:                                               # --lms
        spillway.tensorflow.rewrite_graph(**options)

`--lms` enables swapping. The flags of TFLMS v1 (`--lms_lb`, `--lms_n_tensors`) select the strategy
`scope`, those of TFLMS v2 (`--lms_swapout_threshold`, ...) select `level`; without any of them, the
default strategy is used, fully tuned. Loads absl only in `define_flags`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, Dict, Optional

__all__ = ["add_arguments", "define_flags", "options_from_flags"]

_SWITCH = "lms"
_SWITCH_HELP = "swap tensors to host memory and back, so that larger models and batches fit"


@dataclass(frozen=True)
class _Flag:
    """A flag with an integer value. `default`: the value if the flag is not given."""
    strategy: str
    option: str
    default: int
    help: str

    @property
    def name(self) -> str:
        return "lms_" + self.option

    @property
    def text(self) -> str:
        return "%s (strategy %s; default: %d)" % (self.help, self.strategy, self.default)


_FLAGS = (
    _Flag("scope", "lb", 1, "how many levels before its consumer a swap-in may start, at least"),
    _Flag("scope", "n_tensors", -1, "how many tensors are swapped; -1: all"),
    _Flag("level", "swapout_threshold", -1,
          "how many levels lie between producer and consumer of swapped tensors; -1: tuned"),
    _Flag("level", "swapin_ahead", -1, "how many levels ahead a swap-in starts; -1: tuned"),
    _Flag("level", "swapin_groupby", -1,
          "consumers at most so many levels apart share a swap-in; -1: tuned"),
    _Flag("level", "sync_mode", 0,
          "0: asynchronous copies; 1: the swap-outs, 2: the swap-ins, 3: both synchronous"),
)


def add_arguments(parser: argparse.ArgumentParser) -> Any:
    """Adds the flags as a group, and returns the group. `--lms` may also be `--lms=true` or
    `--lms=false`."""
    group = parser.add_argument_group("Large Model Support")
    group.add_argument("--" + _SWITCH, nargs="?", const=True, default=False, type=_boolean,
                       metavar="BOOL", help=_SWITCH_HELP)
    for flag in _FLAGS:
        # None if not given: the given flags determine the strategy.
        group.add_argument("--" + flag.name, type=int, metavar="N", help=flag.text)
    return group


def define_flags(flag_values: Any = None) -> None:
    """Defines the flags with absl, in `flag_values`; None: absl's FLAGS. Raises ImportError without
    absl (package absl-py), absl.flags.DuplicateFlagError if the script already defines one."""
    from absl import flags  # pylint: disable=import-outside-toplevel
    values = flags.FLAGS if flag_values is None else flag_values
    flags.DEFINE_boolean(_SWITCH, False, _SWITCH_HELP, flag_values=values)
    for flag in _FLAGS:
        flags.DEFINE_integer(flag.name, None, flag.text, flag_values=values)


def options_from_flags(args: Any) -> Optional[Dict[str, Any]]:
    """Returns keywords for `spillway.rewrite` and `spillway.tensorflow.rewrite_graph`.

    Args:
      args: the result of `parse_args`, or absl's FLAGS after parsing.

    Returns None without `--lms`: train without swaps. Flags that were not given are left out; {}
    stands for the default strategy, fully tuned.

    Raises ValueError for flags of both versions, AttributeError if the flags are not in `args`. The
    library checks ranges.
    """
    if not getattr(args, _SWITCH):
        return None
    given = [(flag, value) for flag, value in
             ((flag, getattr(args, flag.name)) for flag in _FLAGS) if value is not None]
    strategies = {flag.strategy: flag.name for flag, _ in reversed(given)}
    if len(strategies) > 1:
        raise ValueError(
            "--%s is of TFLMS v1 (strategy scope) and --%s of TFLMS v2 (strategy level); give "
            "flags of one of them" % (strategies["scope"], strategies["level"]))
    options: Dict[str, Any] = {"strategy": strategy for strategy in strategies}
    options.update((flag.option, value) for flag, value in given)
    return options


def _boolean(text: str) -> bool:
    """Parses a boolean like absl."""
    values = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError("%r is neither true nor false" % text)
    return values[text.lower()]
