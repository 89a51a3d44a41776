"""The versions of TensorFlow that this part supports.

It uses internals of TensorFlow (function graphs, sessions, Keras's train function), so other
versions may break it silently.
"""

from __future__ import annotations

import os
import re

from spillway import _warn

# The first one has ConcreteFunction.from_func_graph with a function type. The tests run with 2.15,
# 2.16 and the last one (tests/run.sh --full).
FIRST, LAST = (2, 15), (2, 21)

# If set to 1, an unsupported version is only a warning.
OVERRIDE = "SPILLWAY_ANY_TENSORFLOW"


def check(version: str) -> None:
    """Raises ImportError if tf.__version__ is unsupported; only warns with the override."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and FIRST <= (int(found.group(1)), int(found.group(2))) <= LAST:
        return
    message = "spillway.tensorflow is for TensorFlow %d.%d to %d.%d, and this is %s" % (
        *FIRST, *LAST, version)
    if os.environ.get(OVERRIDE) == "1":
        _warn.warn(message + "; it is used since %s is 1" % OVERRIDE, UserWarning)
        return
    raise ImportError(
        "%s; install one of these, or rewrite GraphDefs and bytes by spillway.rewrite, which needs "
        "no TensorFlow, or try it all the same with %s=1 in the environment" % (message, OVERRIDE))
