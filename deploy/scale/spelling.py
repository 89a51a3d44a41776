"""Bytes of graphs: the same graph in other bytes, and other graphs that cost the same. Reads the wire
format of a GraphDef as far as that takes."""

NODE, ATTRIBUTE = 0x0a, 0x2a  # The tags of GraphDef.node and NodeDef.attr.


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def varint(value):
    """The bytes of it."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _swap_two_attributes(data, begin, end):
    """The node with its first two attributes, which stand side by side, in the other order; None: it has
    not two."""
    at = begin
    spans = []
    while at < end and len(spans) < 2:
        start = at
        tag, at = read_varint(data, at)
        if tag & 7 != 2:
            return None
        length, at = read_varint(data, at)
        at += length
        if tag == ATTRIBUTE:
            spans.append((start, at))
    if len(spans) < 2 or spans[0][1] != spans[1][0]:
        return None
    (first, middle), (_, last) = spans
    return data[begin:first] + data[middle:last] + data[first:middle] + data[last:end]


def spelled(data, spelling):
    """The same graph as another process of TensorFlow would write it: its maps in another order. Each bit
    of `spelling` is that of one node."""
    out, at, bit = [], 0, 0
    while at < len(data) and spelling >> bit:
        if data[at] != NODE:
            break  # Nodes come first in what TensorFlow writes.
        length, begin = read_varint(data, at + 1)
        end = begin + length
        swapped = _swap_two_attributes(data, begin, end)
        if swapped is not None:
            if spelling >> bit & 1:
                out.append(data[at:begin] + swapped)
            else:
                out.append(data[at:end])
            bit += 1
        else:
            out.append(data[at:end])
        at = end
    if spelling >> bit:
        raise ValueError("the graph has too few nodes for the spelling %d" % spelling)
    return b"".join(out) + data[at:]


def numbered(data, number):
    """Another graph that costs the same: the field `version` of a GraphDef, which nobody reads."""
    return data + b"\x18" + varint(number)
