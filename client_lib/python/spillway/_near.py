""""Did you mean" for names that Python knows, by the library (rewrite_core/base/near_names.h)."""

from __future__ import annotations

from typing import Any, Iterable

from spillway import _native, errors


def did_you_mean(word: Any, known: Iterable[str]) -> str:
    """Returns `; did you mean 'a' or 'b'?`, or "" if none is similar."""
    if not isinstance(word, str) or "\n" in word:
        return ""
    try:
        return _native.text("near names", "\n".join([word, *sorted(known)]).encode(
            "utf-8", "replace"))
    except errors.NativeLibraryError:
        return ""  # The mistake is worth more than the advice.
