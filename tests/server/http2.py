"""HTTP/2 by hand (RFC 9113), with gRPC in it: for clients that no library would be."""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10))
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
ACKNOWLEDGE = 1  # Of SETTINGS.
CANCEL = struct.pack(">I", 8)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


def literal(name, value):
    """A header that is indexed nowhere, in HPACK without Huffman; both shorter than 127 bytes."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def request(method=b"StreamRewrite", content_type=b"application/grpc", path=None):
    """The headers of a call, of a method of RewriteService or with another path."""
    return b"".join(literal(*header) for header in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"test"),
        (b":path", path or b"/spillway.v1.RewriteService/" + method), (b"content-type", content_type),
        (b"te", b"trailers")))


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, payload):
    """Of type bytes, in protobuf's encoding."""
    return bytes([number << 3 | 2]) + varint(len(payload)) + payload


def message(payload, compressed=0):
    """As gRPC frames it."""
    return bytes([compressed]) + struct.pack(">I", len(payload)) + payload


def upload_header(announced_bytes):
    """The first message of StreamRewrite (rewrite_service.proto): a graph of that size is announced."""
    return message(field(1, field(2, b"\x08" + varint(announced_bytes))))


def connect(port, host="127.0.0.1"):
    """With HTTP/2's beginning; from `host`, an address of this machine."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(host, 0))
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0))
    return connection
