"""The base of the classes of messages.py: conversion from the library's JSON and to text.

Sizes are bytes, times nanoseconds. A figure that is unknown or not computed is None, never 0.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, Dict, Iterator, KeysView, Mapping, Optional, Tuple, Type, TypeVar

from spillway import _native

T = TypeVar("T", bound="Message")

# Limits of repr: longer lists and deeper messages are counted, not shown.
_SHOWN_ITEMS = 3
_SHOWN_DEPTH = 1


class Enum:
    """An enum field: its value is the name without the prefix, and "" if it is unset."""

    def __init__(self, prefix: str, lower: bool = False) -> None:
        self.prefix, self.lower = prefix, lower

    def __call__(self, name: Any) -> str:
        text = str(name)  # A value that this package does not know is a number.
        if text.startswith(self.prefix):
            text = text[len(self.prefix):]
        if text == "UNSPECIFIED":
            return ""
        return text.lower() if self.lower else text


class Message:
    """A message of spillway.v1. `print` formats it for people; attributes have the numbers.

    `answer["field"]` is for programs of versions before 0.1.0, where answers were dicts: it returns
    proto3's JSON (64-bit numbers as text, enums with their prefix), as does `to_dict`.
    """

    # The message's name in spillway.v1, and the type of each field other than text and bool: int,
    # float, an Enum, or the class of a message.
    _name = ""
    _kinds: Mapping[str, Any] = {}

    @classmethod
    def from_message(cls: Type[T], message: bytes) -> T:
        """Parses a serialized message."""
        return cls.from_dict(_native.decoded(cls._name, message))

    @classmethod
    def from_dict(cls: Type[T], data: Mapping[str, Any], keep: bool = True) -> T:
        """Converts proto3's JSON. Unknown fields are left out. `keep`: keep it for `to_dict`."""
        values = {}
        for item in fields(cls):  # type: ignore[arg-type]
            value = data.get(item.name)
            if value is None:
                continue
            kind = cls._kinds.get(item.name)
            if isinstance(value, (list, tuple)):
                values[item.name] = tuple(_read(kind, entry, keep) for entry in value)
            else:
                values[item.name] = _read(kind, value, keep)
        made = cls(**values)
        if keep:
            object.__setattr__(made, "_data", data)
        return made

    def to_dict(self) -> Dict[str, Any]:
        """Returns proto3's JSON with the field names of the .proto for an answer; plain values for
        an object that a program made itself, or a part of a report."""
        data: Optional[Dict[str, Any]] = self.__dict__.get("_data")
        if data is not None:
            return data
        return {item.name: _plain(getattr(self, item.name))
                for item in fields(self)}  # type: ignore[arg-type]

    def to_json(self) -> str:
        """Returns `to_dict` as indented text."""
        return json.dumps(self.to_dict(), indent=1)

    def __getitem__(self, name: str) -> Any:
        return self.to_dict()[name]

    def __contains__(self, name: object) -> bool:
        return name in self.to_dict()

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def keys(self) -> KeysView[str]:
        return self.to_dict().keys()

    def get(self, name: str, default: Any = None) -> Any:
        return self.to_dict().get(name, default)

    def __repr__(self) -> str:
        return _repr(self, 0)

    def __str__(self) -> str:
        from spillway import _text  # pylint: disable=import-outside-toplevel,cyclic-import
        return _text.of(self)

    def _repr_html_(self) -> str:
        from spillway import _notebook  # pylint: disable=import-outside-toplevel,cyclic-import
        return _notebook.of(self)


def _read(kind: Any, value: Any, keep: bool) -> Any:
    if kind is None:
        return value
    if isinstance(kind, type) and issubclass(kind, Message):
        return kind.from_dict(value, keep)
    return kind(value)  # int, float (which JSON may spell as NaN or Infinity), an Enum.


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return value


def as_json(value: Any, kind: Any = None) -> Any:
    """Returns proto3's JSON of a message, also of one that a program made itself."""
    if isinstance(value, Message):
        data = value.__dict__.get("_data")
        if data is not None:
            return data
        return {name: as_json(entry, value._kinds.get(name)) for name, entry in told(value)}
    if isinstance(value, tuple):
        return [as_json(entry, kind) for entry in value]
    if isinstance(kind, Enum):
        return int(value) if value.isdigit() else kind.prefix + value.upper()
    return value


def _repr(value: Any, depth: int) -> str:
    """Returns one line with the fields that differ from the defaults; long lists are counted."""
    if isinstance(value, tuple):
        if len(value) > _SHOWN_ITEMS or (value and depth > _SHOWN_DEPTH):
            return "<%d>" % len(value)
        return "[%s]" % ", ".join(_repr(entry, depth) for entry in value)
    if not isinstance(value, Message):
        return repr(value)
    if depth > _SHOWN_DEPTH:
        return "%s(...)" % type(value).__name__
    return "%s(%s)" % (type(value).__name__, ", ".join(
        "%s=%s" % (name, _repr(entry, depth + 1)) for name, entry in told(value)))


def told(message: Message) -> Iterator[Tuple[str, Any]]:
    """Yields (name, value) of the fields that differ from their defaults."""
    for item in fields(message):  # type: ignore[arg-type]
        value = getattr(message, item.name)
        if item.repr and value != item.default:
            yield item.name, value
