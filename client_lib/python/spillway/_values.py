"""Values of keywords that may be text as on the command line: numbers, lists, feeds.

The grammar is that of client_lib/cli/flags/option_value.cc.
"""

from __future__ import annotations

import itertools
import operator
import os
import re
from typing import Any, Dict, List, Optional, Tuple

from spillway import errors

# The maximum number of a feed's values (step.proto).
_MAX_FEED_VALUES = 256
# The size that stands for a varying dimension (simulate.proto).
_VARIES = -1
# Of ExploreOptions.sizes.
_MAX_SIZES = 10000
# The maximum number of items of anything else, so that an endless iterable ends.
_MAX_ITEMS = 1_000_000


def whole_of(option: str, value: Any, bits: int, what: str = "a whole number") -> int:
    """An int; also one of numpy, a float without a fraction, or a text. Raises
    InvalidOptionError."""
    number = None
    if isinstance(value, str):
        # Python refuses texts of more than 4,300 digits.
        if re.fullmatch(r"\s*[+-]?[0-9]{1,1000}\s*", value, re.ASCII):
            number = int(value)
    elif isinstance(value, float):
        number = int(value) if value.is_integer() else None
    elif not isinstance(value, bool):
        try:
            number = operator.index(value)
        except TypeError:
            pass
    if number is None:
        raise errors.bad_option(option, value, "is not %s" % what)
    limit = 1 << (bits - 1)
    if not -limit <= number < limit:
        raise errors.bad_option(option, value, "is not a whole number from %d to %d" % (
            -limit, limit - 1))
    return number


def number_of(option: str, value: Any, what: str = "a number") -> float:
    """A float. Raises InvalidOptionError."""
    try:
        if not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise errors.bad_option(option, value, "is not %s" % what)


def bool_of(option: str, value: Any) -> bool:
    """Parses a bool; also 0, 1 and their texts."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    try:
        if not isinstance(value, (str, bytes)) and hasattr(value, "__bool__") and value in (0, 1):
            return bool(value)
    except (TypeError, ValueError):  # An array of several.
        pass
    raise errors.bad_option(option, value, "is neither True nor False")


def text_of(option: str, value: Any) -> str:
    if not isinstance(value, str):
        raise errors.bad_option(option, value, "is not a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise errors.bad_option(option, value, "has half a character (a lone surrogate), which no "
                                               "message can hold") from None
    return str(value)


def c_text_of(option: str, value: Any) -> Optional[str]:
    """A text that is given to C as it is; None stays None."""
    if value is not None and "\0" in text_of(option, value):
        raise errors.bad_option(option, value, "has a character 0, where C would end it")
    return value


def path_of(option: str, value: Any) -> Optional[str]:
    """A path as text; None stays None."""
    try:
        path = os.fspath(value) if hasattr(value, "__fspath__") else value
        if isinstance(path, str):
            # A lone surrogate may stand for a byte of the file's name.
            c_text_of(option, path.encode("utf-8", "surrogateescape").decode("latin-1"))
    except (TypeError, UnicodeEncodeError):
        raise errors.bad_option(option, value, "is not the name of a file") from None
    return path if isinstance(path, str) else c_text_of(option, path)


def items_of(option: str, value: Any, wrong: str, most: int = _MAX_ITEMS) -> List[Any]:
    """The items of any iterable that is no text and no dict. `wrong`: the error for others."""
    try:
        if isinstance(value, (str, bytes, bytearray, memoryview, dict)):
            raise TypeError
        items = list(itertools.islice(value, most + 1))
    except (TypeError, ValueError):
        raise errors.bad_option(option, value, wrong) from None
    return _not_too_many(option, value, items, most)


def entries_of(option: str, value: Any, wrong: str) -> List[Tuple[Any, Any]]:
    """The pairs of a dict, or of an object with such `items`. `wrong`: the error for others."""
    try:
        entries = [(key, inner) for key, inner in itertools.islice(value.items(), _MAX_ITEMS + 1)]
    except (AttributeError, TypeError, ValueError):
        raise errors.bad_option(option, value, wrong) from None
    return _not_too_many(option, value, entries, _MAX_ITEMS)


def _not_too_many(option: str, value: Any, items: List[Any], most: int) -> List[Any]:
    if len(items) > most:
        raise errors.bad_option(option, value, "has more than %d items" % most)
    return items


def list_of(option: str, value: Any) -> List[str]:
    """Of names: a text with commas between, or any iterable of texts. A set is sorted: the same
    options must give the same graph."""
    if isinstance(value, str):
        items: List[Any] = split_list(text_of(option, value))
        if "" in items and value:
            raise errors.bad_option(option, value, "is not a list without empty items")
        return items if value else []
    items = items_of(option, value, "is neither a name nor a list of names")
    for item in items:
        if not isinstance(item, str):
            raise errors.bad_option(option, item, "is in a list of names, and is none")
    items = [text_of(option, item) for item in items]
    return sorted(items) if isinstance(value, (set, frozenset)) else items


def split_list(text: str) -> List[str]:
    """`a,b` at its commas; `\\,` is one that stays."""
    return [item.replace("\0", ",") for item in text.replace("\\,", "\0").split(",")]


def sizes_of(option: str, value: Any) -> List[int]:
    """Sizes to explore: whole numbers, or as on the command line, `32,64` and `32:512:32` (both
    ends are in it)."""
    if not isinstance(value, str):
        if isinstance(value, int) and not isinstance(value, bool):
            value = [value]
        return [whole_of(option, item, 64)
                for item in items_of(option, value, "is not a list of sizes", _MAX_SIZES)]
    sizes: List[int] = []
    for item in value.split(","):
        match = re.fullmatch(r"([0-9]{1,19})(?::([0-9]{1,19}))?(?::([0-9]{1,19}))?", item,
                             re.ASCII)
        first, last, step = (int(part) if part else None for part in match.groups()) if match else (
            None, None, None)
        if first is None or first >= 1 << 63 or (last is not None and not (
                1 <= first <= last < 1 << 63 and (step is None or step >= 1))):
            raise errors.bad_option(option, value, "is not a list of sizes, \"32,64\", or of FROM:TO"
                                                   " or FROM:TO:STEP, e.g. \"32:512:32\"")
        found = range(first, (first if last is None else last) + 1, step or 1)
        if len(sizes) + len(found) > _MAX_SIZES:
            raise errors.bad_option(option, value, "has more than %d sizes" % _MAX_SIZES)
        sizes += found
    return sizes


def feeds_of(feeds: Any, with_size: bool = False) -> List[Dict[str, Any]]:
    """Feeds as JSON. `with_size`: a dimension may be "N" or -1, the size that varies."""
    if isinstance(feeds, str):
        feeds = [feeds]
    wrong = "is not a dict like {\"images\": (128, 224, 224, 3)}"
    if hasattr(feeds, "items"):
        return [{"name": _feed_name(feed), **_feed(_feed_name(feed), fed, with_size)}
                for feed, fed in entries_of("feeds", feeds, wrong)]
    return [{"name": name, **_feed(name, fed, with_size)}
            for name, fed in map(_assigned, items_of("feeds", feeds, wrong))]


def _assigned(text: Any) -> Tuple[str, str]:
    """`NAME=...` of the command line."""
    name, equals, fed = text.rpartition("=") if isinstance(text, str) else ("", "", "")
    if not equals or not name:
        raise errors.bad_option("feeds", text, "is not NAME=DIM,DIM,..., e.g. "
                                               "\"images=128,224,224,3\"; or give a dict")
    return text_of("feeds", name), fed


def _feed_name(feed: Any) -> str:
    name = feed if isinstance(feed, str) else getattr(feed, "name", None)
    if not isinstance(name, str):  # A tensor of TensorFlow has a name.
        raise errors.bad_option("feeds", feed, "is neither the name of a fed tensor nor a tensor")
    return text_of("feeds", name)


def _feed(name: str, fed: Any, with_size: bool) -> Dict[str, Any]:
    """A shape; or a fed value: a number, a bool, an array, whose value counts if it is small."""
    option = "feeds[%r]" % name
    if isinstance(fed, str):
        return _feed_of_text(option, fed, with_size)
    if isinstance(fed, (bool, int)):
        return {"dims": [], "values": [whole_of(option, int(fed), 64)]}
    if isinstance(fed, float):
        return {"dims": []}
    if hasattr(fed, "dtype") and hasattr(fed, "shape"):
        feed: Dict[str, Any] = {"dims": _dims(option, fed.shape, with_size)}
        if getattr(fed.dtype, "kind", "") in tuple("biu") and fed.size <= _MAX_FEED_VALUES:
            feed["values"] = [whole_of(option, int(item), 64) for item in fed.ravel()]
        return feed
    return {"dims": _dims(option, fed, with_size)}


def _dims(option: str, shape: Any, with_size: bool) -> List[int]:
    if getattr(shape, "rank", 0) is None:  # A TensorShape of unknown rank.
        shape = [None]
    dims = []
    for dim in items_of(option, shape, "is neither a shape, e.g. (128, 224, 224, 3) or "
                                       "\"128,224,224,3\", nor a value: a number, a bool, an "
                                       "array"):
        if with_size and isinstance(dim, str) and dim == "N":
            dims.append(_VARIES)
        elif dim is None:
            raise errors.bad_option(option, shape, "has a dimension that is not known; %s" % (
                "-1 stands for the size that varies" if with_size else
                "give its size as it is in the step that must fit"))
        else:
            dims.append(whole_of(option, dim, 64, "a dimension of a shape; dimensions are whole "
                                                  "numbers"))
    return dims


def _feed_of_text(option: str, text: str, with_size: bool) -> Dict[str, Any]:
    """DIM,DIM,... and, with a colon, VALUE,VALUE,...; or true, or false."""
    if text in ("true", "false"):
        return {"dims": [], "values": [int(text == "true")]}
    shape, colon, values = text.partition(":")
    dims = []
    for dim in shape.split(",") if shape else ():
        if with_size and dim == "N":
            dims.append(_VARIES)
        elif re.fullmatch(r"\s*\+?[0-9]{1,18}\s*", dim, re.ASCII):
            dims.append(int(dim))
        else:
            raise errors.bad_option(
                option, text, "is not DIM,DIM,... with whole numbers from 0 to 2^31 - 1%s, e.g. "
                "\"128,224,224,3\"" % (", or N for the size that varies" if with_size else ""))
    if not colon:
        return {"dims": dims}
    found = []
    for value in values.split(","):
        if value in ("true", "false"):
            found.append(int(value == "true"))
        elif re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", value, re.ASCII):
            found.append(int(value))
        else:
            raise errors.bad_option(
                option, text, "is not DIM,DIM,...:VALUE,VALUE,... with whole numbers, true or false "
                              "as values, e.g. \"2:64,64\"")
    return {"dims": dims, "values": found}
