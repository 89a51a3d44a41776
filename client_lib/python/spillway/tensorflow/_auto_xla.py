"""Keras 3's `jit_compile="auto"`, which becomes True on a GPU.

The argument is lost when `compile` has returned: it keeps the value that "auto" became
(Trainer.compile and Trainer._resolve_auto_jit_compile in keras/src/trainers/trainer.py, Keras 3.0 to
3.15). So `compile` notes it, from the import of spillway.tensorflow on.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from typing import Any

from spillway import _warn

_OPTION = "jit_compile"

# The models whose last `compile` chose XLA by itself.
_AUTO: "weakref.WeakSet[Any]" = weakref.WeakSet()


def watch() -> None:
    """Has Keras 3's `compile`, if TensorFlow has loaded Keras 3, note its own choice."""
    trainer: Any = getattr(sys.modules.get("keras.src.trainers.trainer"), "Trainer", None)
    whole = getattr(trainer, "compile", None)
    if whole is None or hasattr(whole, "_spillway_watches"):
        return
    signature = inspect.signature(whole)
    if _OPTION not in signature.parameters:
        return

    @functools.wraps(whole)
    def compile_and_note(self: Any, *values: Any, **keywords: Any) -> Any:
        result = whole(self, *values, **keywords)  # Raises for invalid arguments.
        given = signature.bind(self, *values, **keywords)
        given.apply_defaults()
        chosen = given.arguments[_OPTION] == "auto" and self.jit_compile
        (_AUTO.add if chosen else _AUTO.discard)(self)
        return result

    compile_and_note._spillway_watches = True  # type: ignore[attr-defined]
    trainer.compile = compile_and_note


def switch_off(model: Any) -> None:
    """Has the model train without XLA if that was Keras's own choice, and says so."""
    if not getattr(model, _OPTION, False) or model not in _AUTO:
        return
    model.jit_compile = False
    # Those with XLA are discarded, as after `compile`.
    model.train_function = model.test_function = model.predict_function = None
    _warn.warn("Keras chose XLA for this model (jit_compile=\"auto\", on a GPU), and XLA "
               "knows no swaps, so the model runs without XLA, as after jit_compile=False; pass that to "
               "compile to silence this")
