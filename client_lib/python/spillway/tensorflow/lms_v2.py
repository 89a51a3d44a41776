"""TFLMS v2's class, with its names, parameters, defaults and log lines, on the strategy `level`.

    from spillway.tensorflow.lms_v2 import LMS            # was: tensorflow_large_model_support
    lms = LMS(swapout_threshold=40, swapin_ahead=3, swapin_groupby=2)
    lms.run()

One class is `run()`, session hook and Keras callback. Parameters that are -1 are tuned by simulating
steps on the machine of `hardware`. Differences: `autotune_plot` draws the simulated memory of a step
before and after the edit, and if no setting fits, DoesNotFitError says how much memory would
suffice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterable, Optional

import tensorflow as tf

import spillway
from spillway import _doors, errors, options
from spillway._values import number_of
from spillway.tensorflow import _lms

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["LMS", "LMSHook", "LMSKerasCallback", "LMSSessionRunHook"]

_SYNC_MODES = (
    "Asynchronous memory copy between host and device",
    "Synchronous memory copy from device to host, but asynchronous memory copy from host to device",
    "Asynchronous memory copy from device to host, but synchronous memory copy from host to device",
    "Synchronous memory copy between host and device",
)


# The file of autotune_plot = True, and the keywords of the edit that the picture uses.
_PLOT_FILE = "tflms_memory.svg"
_DRAWN_WITH = _lms.CALL_KEYWORDS - {"progress", "fail_open"}


class LMS(_lms.Editor, tf.keras.callbacks.Callback, tf.compat.v1.train.SessionRunHook):
    """Edits a graph for Large Model Support: by `run`, as a Keras callback, or as a session hook.

    Args: those of TFLMS v2 (in levels, `serialization_by_size` in GiB; see LevelStrategy in
      options.proto), and any keyword of `spillway.rewrite`: `server`, `timeout`, `fail_open`,
      `hardware`, ...

    Attributes, to be set before the edit: `batch_size` (examples), `is_training`,
      `autotune_gpu_mem` (GiB), `autotune_plot` (True: draws the edit into tflms_memory.svg in the
      current folder; or a file name, .svg, .html or .png), and the filters
      `{excl,incl}_{output,input}_by_{scopes,types}` (sets of names).

    Raises TypeError for a keyword that does not exist, ValueError for a sync_mode that does not.
    """

    _strategy = "level"

    @_doors.visible(_doors.LmsV2Keywords)
    def __init__(self, swapout_threshold: int = -1, swapin_groupby: int = -1,
                 swapin_ahead: int = -1, sync_mode: int = 0, serialization: Iterable[Any] = (),
                 serialization_by_size: float = 0, debug: bool = False, debug_level: int = 1,
                 cpu_device: str = "/cpu:0", gpu_device: Optional[str] = None,
                 **more: Unpack[_doors.LmsV2Keywords]) -> None:
        super().__init__()
        self._set_up(debug, debug_level)
        if sync_mode not in range(len(_SYNC_MODES)):
            raise ValueError("Invalid value for sync_mode")
        self._options: Dict[str, Any] = dict(
            swapout_threshold=swapout_threshold, swapin_groupby=swapin_groupby,
            swapin_ahead=swapin_ahead, sync_mode=sync_mode, serialization=list(serialization),
            serialization_by_size=serialization_by_size, cpu_device=cpu_device,
            devices=None if gpu_device is None else [gpu_device])
        self._more = more
        self.is_training = True
        self.batch_size: Optional[int] = more.pop("batch_size", None)
        self.autotune_gpu_mem: Optional[float] = None
        self.autotune_plot: Any = False
        self._edited: Optional[tf.Graph] = None
        self.excl_output_by_scopes: Iterable[str] = set()
        self.excl_output_by_types: Iterable[str] = set()
        self.excl_input_by_scopes: Iterable[str] = set()
        self.excl_input_by_types: Iterable[str] = set()
        self.incl_output_by_scopes: Iterable[str] = set()
        self.incl_output_by_types: Iterable[str] = set()
        self.incl_input_by_scopes: Iterable[str] = set()
        self.incl_input_by_types: Iterable[str] = set()
        options.check_names(self._strategy, [
            name for name in more if name not in _lms.CALL_KEYWORDS])

    def _keywords(self) -> dict:
        filters = {"%s_%s_by_%s" % (what, end, kind): None for what in ("excl", "incl")
                   for end in ("output", "input") for kind in ("scopes", "types")}
        return {**self._options,
                **{name: _lms.as_set(name, getattr(self, name)) for name in filters},
                "is_training": self.is_training, "batch_size": self.batch_size, **self._more,
                **self._memory()}

    def _memory(self) -> Dict[str, int]:
        """The keyword for `autotune_gpu_mem`, which is in GiB."""
        if self.autotune_gpu_mem is None:
            return {}
        size_bytes = number_of("autotune_gpu_mem", self.autotune_gpu_mem) * (1 << 30)
        if not 1 <= size_bytes < 1 << 63:
            raise errors.bad_option("autotune_gpu_mem", str(self.autotune_gpu_mem),
                                    "is not the memory of a GPU in GiB, above 0")
        return {"gpu_memory_bytes": int(size_bytes)}

    def _log_result(self, graph: tf.Graph, report: spillway.Report) -> None:
        self._edited = graph
        level = report.level
        if level is None:
            return
        self._log_info("The graph has %d vertices and %d edges." % (
            report.node_count_before, level.edge_count))
        self._log_info("The graph has %s MiB of learning parameters" % _parameters_mib(graph))
        self._log_largest(report)
        if level.serialized_level_count:
            self._log_info(
                "New categorized topological sort has %d levels" % level.level_count, 0, 2)
        else:
            self._log_info(
                "Original categorized topological sort has %d levels" % level.level_count)
        for device in level.devices:
            self._log_setting(device)
        not_needed = {fit.device for fit in report.fits if fit.not_needed}
        if level.devices and all(device.device in not_needed for device in level.devices):
            unknown = [cause for fit in report.fits for cause in fit.fit_unknown]
            self._log_info("LMS is not necessary. Turned LMS off." if not unknown else
                           "It is not known whether LMS is necessary: %s. Turned LMS off." %
                           unknown[0].message)
        outs = sum(device.swap_out_count for device in report.devices)
        ins = sum(device.swap_in_count for device in report.devices)
        self._log_info(
            "Added %d operations to the model (%d swap-out operations (%s GiB) and %d swap-in "
            "operations (%s GiB))" % (
                outs + ins, outs, _lms.gib(sum(d.swap_out_bytes for d in report.devices)),
                ins, _lms.gib(sum(d.swap_in_bytes for d in report.devices))))

    def _log_largest(self, report: spillway.Report) -> None:
        before = report.forecast_before
        for device in before.devices if before is not None else ():
            if device.bounds is not None and device.bounds.memory_node:
                self._log_info("The largest GPU operation is %s consuming %s GiB" % (
                    device.bounds.memory_node,
                    _lms.gib(device.bounds.memory_bytes - device.resident_bytes)))

    def _log_setting(self, device: Any) -> None:
        mode = device.sync_mode if device.sync_mode is not None else self._options["sync_mode"]
        self._log_info("LMS will use the latest parameter set:" if device.tuning is not None else
                       "LMS will use the parameters as given:")
        self._log_info("sync_mode: %d (%s)" % (mode, _SYNC_MODES[mode]), 0, 2)
        for name in ("swapout_threshold", "swapin_ahead", "swapin_groupby"):
            value = getattr(device, name)
            if value is None:
                value = "%d (of no effect)" % self._options[name]
            self._log_info("%s: %s" % (name, value), 0, 2)

    def _log_last(self, report: spillway.Report) -> None:
        if report.advice is not None and report.advice.host_memory_variable:
            self._log_info("%s: %s" % (
                report.advice.host_memory_variable, report.advice.explanation))
        if report.advice is not None and report.advice.internal_fragmentation_fraction:
            self._log_info("The session's gpu_options.experimental needs "
                           "internal_fragmentation_fraction: %g" %
                           report.advice.internal_fragmentation_fraction)

        self._draw()

    def _draw(self) -> None:
        """autotune_plot: draws the effect of the edit on the memory of a step. A failure does not
        stop training."""
        if not self.autotune_plot or self._edited is None:
            return
        file = _PLOT_FILE if self.autotune_plot is True else self.autotune_plot
        keywords = {name: value for name, value in self._keywords().items()
                    if name in options.STEP | options.HARDWARE | _DRAWN_WITH and value is not None}
        try:
            spillway.plot(self._edited, file, plan=False, **keywords)
        except (spillway.SpillwayError, OSError, ValueError) as error:
            tf.compat.v1.logging.warning("[LMS] autotune_plot: nothing is drawn: %s", error)
            return
        self._log_info("The memory of a step before and after is drawn in %s" % file)

    # As a session hook.
    def begin(self) -> None:
        self.run(tf.compat.v1.get_default_graph())

    # As a Keras callback. In graph mode set_model is called first, and set_params has the batch.
    def set_model(self, model: Any) -> None:
        super().set_model(model)
        self._keras_edited = False
        if self.batch_size is not None or not self._needs_batch():
            self._edit_once()

    def set_params(self, params: Any) -> None:
        self.params = params
        if self.batch_size is None and (params or {}).get("batch_size"):
            self.batch_size = params["batch_size"]
        self._edit_once()

    def _needs_batch(self) -> bool:
        tuned = -1 in (self._options["swapout_threshold"], self._options["swapin_ahead"],
                       self._options["swapin_groupby"])
        return tuned and not tf.compat.v1.executing_eagerly_outside_functions()

    def _edit_once(self) -> None:
        if not self._keras_edited:
            self._keras_edited = True
            self._edit_keras(self.model)


def _parameters_mib(graph: tf.Graph) -> float:
    variables = getattr(graph, "trainable_variables", None)  # Of a function's graph.
    if variables is None:
        variables = graph.get_collection(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)
    return round(sum((variable.shape.num_elements() or 0) * variable.dtype.base_dtype.size
                     for variable in variables) / (1 << 20), 2)


LMSHook = LMSSessionRunHook = LMSKerasCallback = LMS
