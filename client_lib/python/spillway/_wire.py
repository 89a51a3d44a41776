"""The little of protobuf's wire format that is needed to put messages together and apart: the
fields of one message, each a length and bytes. Their contents are the library's business (JSON,
_native.py).
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple, Union

_VARINT, _LENGTH_DELIMITED = 0, 2


def field(number: int, content: bytes) -> bytes:
    """One length-delimited field."""
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(content)) + content


def fields(message: bytes) -> Dict[int, bytes]:
    """The length-delimited fields of a message, by number; of several with one number, the last."""
    view = memoryview(message)
    return {number: bytes(view[begin:end]) for number, kind, _, begin, end in _scan(message)
            if kind == _LENGTH_DELIMITED}


Value = Union[int, memoryview, None]


def parts(message: Union[bytes, memoryview]) -> Iterator[Tuple[int, memoryview, Value]]:
    """(number, the whole field, its value): an int for a varint, the bytes for a length-delimited
    one, None for others. Raises ValueError if the message is damaged."""
    view = memoryview(message)
    for number, kind, start, begin, end in _scan(view):
        value: Value = None
        if kind == _LENGTH_DELIMITED:
            value = view[begin:end]
        elif kind == _VARINT:
            value = _read_varint(view, begin)[0]
        yield number, view[start:end], value


def values(message: Union[bytes, memoryview]) -> Iterator[Tuple[int, Union[int, memoryview]]]:
    """(number, value) of each field that has a value, as `parts`."""
    return ((number, value) for number, _, value in parts(message) if value is not None)


def split(message: bytes, number: int) -> Tuple[bytes, bytes]:
    """The message without the field of that number, and the message of that field alone."""
    parts: Tuple[List[memoryview], List[memoryview]] = ([], [])
    view = memoryview(message)
    for found, _, start, _, end in _scan(message):
        parts[found == number].append(view[start:end])
    return b"".join(parts[0]), b"".join(parts[1])


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: Union[bytes, memoryview], at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a message is cut off or damaged at byte %d" % at)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _scan(data: Union[bytes, memoryview]) -> Iterator[Tuple[int, int, int, int, int]]:
    """(number, wire type, start of the field, start of its content, end) of each field."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _read_varint(data, at)
        kind = tag & 7
        begin = at
        if kind == 0:
            _, end = _read_varint(data, at)
        elif kind == 1:
            end = at + 8
        elif kind == _LENGTH_DELIMITED:
            size, begin = _read_varint(data, at)
            end = begin + size
        elif kind == 5:
            end = at + 4
        else:
            raise ValueError("a message has wire type %d at byte %d" % (kind, start))
        if end > len(data):
            raise ValueError("a message is cut off at byte %d" % len(data))
        yield tag >> 3, kind, start, begin, end
        at = end
