""""Did you mean", of names that Python knows. Those of a graph are the library's business
(rewrite_core/base/near_names.h)."""

from __future__ import annotations

import difflib
from typing import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'a' or 'b'?`; empty if none is near."""
    near = difflib.get_close_matches(word, sorted(known), n=2, cutoff=0.7)
    return "; did you mean %s?" % " or ".join(map(repr, near)) if near else ""
