"""Settings of TensorFlow, by the environment or the program, that plans do not assume
(client_lib/internal/tensorflow_settings.h, which names TensorFlow's files)."""

from __future__ import annotations

import os
import re
from typing import Any, List, Mapping, Set

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import config as config_lib

from spillway import _warn

_ALLOCATOR = (
    "plans are made for TensorFlow's own allocator, and TF_GPU_ALLOCATOR is cuda_malloc_async, which "
    "needs more memory than planned and fails instead of waiting for a copy to end; unset "
    "TF_GPU_ALLOCATOR")
_GROWTH = (
    "%s: TensorFlow then takes the GPU's memory in pieces that it never merges, and plans are made for "
    "memory in one piece, so a plan that fits may run out of memory; %s")
_WORKSPACES = (
    "%s: cuDNN's convolutions then fail if memory for their workspaces is short, which plans "
    "treat as optional, so a plan that fits may run out of memory; %s, or plan for the workspaces by "
    "convolution_workspace_bytes (--convolution-workspace-bytes)")
_CLUSTERS = (
    "%s: XLA then compiles clusters of operations after the plan is made, and knows no swaps, so "
    "memory and times differ from the forecast; take the flag out")
_TF32 = (
    "%s: matrix products and convolutions of float32 are then up to 8 times as slow on GPUs that have "
    "TF32, which plans are made for, so times differ from the forecast; %s, or give peak_flops "
    "(--peak-flops) without TF32")
_RETRY = (
    "%s: an operation then fails if it would wait for a swap-out to end, which plans count on, so a "
    "plan that fits may run out of memory; %s")
_THREADS = (
    "%s: an operation that waits for memory blocks a thread, and none is left for those that free "
    "memory, so a plan that fits may run out of memory; %s, or give at least one more than there are "
    "GPUs")

_UNSET = "unset it"
_LEAVE_OUT = "leave it out"


def of_environment(variables: Mapping[str, str]) -> List[str]:
    """Returns the warnings, one sentence each."""
    found = []
    if variables.get("TF_GPU_ALLOCATOR") == "cuda_malloc_async":
        found.append(_ALLOCATOR)
    if variables.get("TF_FORCE_GPU_ALLOW_GROWTH") == "true":
        found.append(_GROWTH % ("TF_FORCE_GPU_ALLOW_GROWTH is true", _UNSET))
    for setting in _needs_workspaces(variables):
        found.append(_WORKSPACES % (setting, _UNSET))
    if _xla_clusters(variables.get("TF_XLA_FLAGS", "").split()):
        found.append(_CLUSTERS % "TF_XLA_FLAGS has --tf_xla_auto_jit")
    if variables.get("NVIDIA_TF32_OVERRIDE") == "0":
        found.append(_TF32 % ("NVIDIA_TF32_OVERRIDE is 0", _UNSET))
    if variables.get("TF_NUM_INTEROP_THREADS") == "1":
        found.append(_THREADS % ("TF_NUM_INTEROP_THREADS is 1", _UNSET))
    return found


def _needs_workspaces(variables: Mapping[str, str]) -> List[str]:
    """Returns what makes cuDNN's convolutions fail without their workspaces."""
    def bool_of(name: str, otherwise: bool) -> bool:
        text = variables.get(name, "").lower()
        return text in ("1", "true") or (otherwise and text not in ("0", "false"))

    found = []
    if bool_of("TF_DETERMINISTIC_OPS", False):
        found.append("TF_DETERMINISTIC_OPS is on")
    if not bool_of("TF_CUDNN_USE_AUTOTUNE", True):
        found.append("TF_CUDNN_USE_AUTOTUNE is off")
    return found


def _xla_clusters(flags: List[str]) -> bool:
    if not flags or not flags[0].startswith("-"):
        return False  # None, or in a file.
    levels = [flag.partition("=")[2] for flag in flags if flag.startswith("--tf_xla_auto_jit=")]
    return bool(levels) and re.match(r"fusible$|(single-gpu\()?\+?0*[1-9]", levels[-1]) is not None


def of_config(config: Any) -> List[str]:
    """The same of a ConfigProto."""
    found = []
    options = config.gpu_options
    if options.allow_growth and os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH") not in ("true", "false"):
        found.append(_GROWTH % ("memory growth is on (set_memory_growth, allow_growth)", _LEAVE_OUT))
    if options.experimental.disallow_retry_on_allocation_failure:
        found.append(_RETRY % ("disallow_retry_on_allocation_failure is set", _LEAVE_OUT))
    if config.graph_options.optimizer_options.global_jit_level > 0:
        found.append(_CLUSTERS % "global_jit_level (set_jit) is on")
    threads = config.inter_op_parallelism_threads  # 0: as many as cores; below: the caller's.
    gpus = len(tf.config.list_physical_devices("GPU"))
    if threads != 0 and threads <= max(gpus, 1):
        found.append(_THREADS % ("inter_op_parallelism_threads is %d" % threads, _LEAVE_OUT))
    return found


def of_program() -> List[str]:
    """The same of the settings that the program has made for all that it runs eagerly."""
    found = of_config(context.context().config) if tf.executing_eagerly() else []
    if _is_deterministic():
        found.append(_WORKSPACES % ("enable_op_determinism was called", _LEAVE_OUT))
    if not config_lib.tensor_float_32_execution_enabled():
        found.append(_TF32 % ("enable_tensor_float_32_execution(False) was called", _LEAVE_OUT))
    return found


_LIMIT = "TF_CUDNN_WORKSPACE_LIMIT_IN_MB"
_LIMIT_OF_RUN = "SPILLWAY_WORKSPACE_LIMIT_IN_MB"  # `spillway run` sets both to the same.
_limit = 0  # Set by a plan, in MiB.


def _workspaces_are_optional() -> bool:
    """Whether convolutions run without a workspace if none is free; else a limit makes them fail."""
    return not _needs_workspaces(os.environ) and not _is_deterministic()


def limit_workspaces(report: Any) -> None:
    """Limits cuDNN's workspaces in this process to the plan's limit, unless the site or the
    job did. TensorFlow reads the limit once, before its first convolution.

    Args:
      report: None: there is no plan.
    """
    global _limit  # pylint: disable=global-statement
    if report is None or report.advice is None or report.outcome == "DRY_RUN":
        return
    limits = [int(text.partition("=")[2]) for text in report.advice.environment
              if re.fullmatch(_LIMIT + "=[1-9][0-9]{0,8}", text)]
    if not limits or not _workspaces_are_optional():
        return
    given = os.environ.get(_LIMIT)  # Empty means unset, as TensorFlow reads it.
    if _limit == 0 and given:
        if given != os.environ.get(_LIMIT_OF_RUN) or not re.fullmatch("[1-9][0-9]{0,8}", given):
            return
        _limit = int(given)
    earlier = _limit
    if earlier and limits[0] >= earlier:
        return
    _limit = limits[0]
    os.environ[_LIMIT] = str(_limit)
    if earlier:
        _say(["a plan limits cuDNN's workspaces to %d MiB, and an earlier one of this process to %d "
               "MiB, which TensorFlow may have read: set %s=%d before the program starts" % (
                   _limit, earlier, _LIMIT, _limit)])


def _is_deterministic() -> bool:
    """Whether the program has called enable_op_determinism."""
    # Settings in the environment were reported at import; a value other than a bool would end the
    # process here (OpDeterminismRequired in core/util/determinism.cc).
    unset = os.environ.get("TF_DETERMINISTIC_OPS", "0").lower() in ("0", "false")
    return unset and bool(config_lib.is_op_determinism_enabled())


def check_environment() -> None:
    """Warns at import, where the program can still unset most of them."""
    _say(of_environment(os.environ))


def check_program() -> None:
    """Warns when a step is rewritten."""
    _say(of_program())


def check_session(session: Any) -> None:
    """Warns of the ConfigProto of a session of a rewritten graph."""
    config = getattr(session, "_config", None)
    _say(of_config(config) if config is not None else [])


_said: Set[str] = set()


def _say(found: List[str]) -> None:
    for sentence in found:
        if sentence not in _said:
            _said.add(sentence)
            _warn.warn(sentence, UserWarning)
