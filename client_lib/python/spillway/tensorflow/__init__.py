"""Spillway in TensorFlow: live graphs and concrete functions. Loads TensorFlow.

`lms_v1` and `lms_v2` are for scripts that were written for IBM's tensorflow_large_model_support:
only the import line changes.
"""

import tensorflow

from spillway.tensorflow import _versions

# Before the rest, which needs parts of TensorFlow that other versions lack.
_versions.check(tensorflow.__version__)

# pylint: disable=wrong-import-position
from spillway.tensorflow import _auto_xla, _settings  # noqa: E402
from spillway.tensorflow._function import rewrite_function, rewrite_train_function  # noqa: E402
from spillway.tensorflow._live_graph import rewrite_graph  # noqa: E402

_settings.check_environment()
_auto_xla.watch()

__all__ = ["rewrite_function", "rewrite_graph", "rewrite_train_function"]
