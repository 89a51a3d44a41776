""""Did you mean" for names that Python knows. The library does it for names of a graph
(rewrite_core/base/near_names.h)."""

from __future__ import annotations

import difflib
from typing import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns `; did you mean 'a' or 'b'?`, or "" if none is similar."""
    near = difflib.get_close_matches(word, sorted(known), n=2, cutoff=0.7)
    return "; did you mean %s?" % " or ".join(map(repr, near)) if near else ""
