"""Frames of HTTP/2 as no client library would send them, right ones among them."""

from __future__ import annotations

import random

__all__ = ["attacks", "begun", "call", "message"]

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _WINDOW, _CONTINUATION = 0, 1, 3, 4, 6, 8, 9
_END_STREAM, _END_HEADERS = 1, 4


def _frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """A frame, which may be none of the protocol."""
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


def begun(*frames: bytes) -> bytes:
    """A connection that begins as it should."""
    return b"".join([_PREFACE, _frame(_SETTINGS), *frames])


def call(stream: int, path: str, **headers: bytes) -> bytes:
    """The headers of a call, whose message is still to come; those of more may change the first."""
    fields = {
        b":method": b"POST", b":scheme": b"http", b":path": path.encode(), b":authority": b"x",
        b"te": b"trailers", b"content-type": b"application/grpc",
    }  # fmt: skip
    fields |= {name.replace("_", "-").encode(): value for name, value in headers.items()}
    block = b"".join(_field(name, value) for name, value in fields.items())
    return _frame(_HEADERS, _END_HEADERS, stream, block)


def message(stream: int, content: bytes, compressed: int = 0, said: int | None = None) -> bytes:
    """A message of gRPC that ends its stream; `said` is the length that it claims."""
    size = len(content) if said is None else said
    head = bytes([compressed]) + size.to_bytes(4, "big")
    return _frame(_DATA, _END_STREAM, stream, head + content)


def attacks(path: str, content: bytes) -> dict[str, bytes]:
    """By name, what a stranger sends on a connection of its own.

    Calls are of a method at this path, which takes messages of this content.
    """
    junk = random.Random(0)
    first = call(1, path)
    reset = [call(k, path) + _frame(_RESET, 0, k, bytes([0, 0, 0, 8])) for k in range(1, 4001, 2)]
    return {
        "nothing": b"",
        "junk": junk.randbytes(2**18),
        "HTTP/1.1": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + junk.randbytes(501),
        "half a preface": _PREFACE[:11],
        "junk after the preface": begun(junk.randbytes(2**18)),
        "settings of an odd size": _PREFACE + _frame(_SETTINGS, 0, 0, b"abc"),
        "settings, many": begun(_frame(_SETTINGS, 0, 0, b"\0\3\0\0\0\1") * 5000),
        "pings, many": begun(_frame(_PING, 0, 0, bytes(8)) * 5000),
        "a frame of 16 MiB": begun(b"\xff\xff\xff" + _frame(_DATA, 0, 1)[3:] + bytes(2**18)),
        "frames of no kind": begun(_frame(77, 255, 9, bytes(100)) * 100),
        "headers of stream 0": begun(_frame(_HEADERS, _END_HEADERS, 0, b"\x82")),
        "headers of an even stream": begun(call(2, path)),
        "headers out of the table": begun(_frame(_HEADERS, _END_HEADERS, 1, b"\xff\xff\xff\x7f")),
        "headers that are cut": begun(_frame(_HEADERS, _END_HEADERS, 1, b"\x00\x7f\xff")),
        "headers without end": begun(
            _frame(_HEADERS, 0, 1, b""),
            _frame(_CONTINUATION, 0, 1, _field(b"a", b"b" * 90)) * 20_000,
        ),
        "a header of 1 MiB": begun(
            _frame(_HEADERS, 0, 1, _field(b"a", bytes(2**20))[: 2**14]),
            *(_frame(_CONTINUATION, 0, 1, b"b" * 2**14) for _ in range(64)),
        ),
        "headers that are no text": begun(
            call(1, path, x_request_id=b"\xff\xfe\r\n s3cret", authorization=b"Bearer \xff s3cret"),
            message(1, content),
        ),
        "data of no stream": begun(_frame(_DATA, _END_STREAM, 7, b"abc")),
        "a window beyond its bound": begun(_frame(_WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 3),
        "calls that are reset, many": begun(*reset),
        "calls without a message, many": begun(*(call(k, path) for k in range(1, 201, 2))),
        "a message of 4 GiB": begun(first, message(1, b"abc", said=2**32 - 1)),
        "a message that is cut": begun(first, message(1, b"abc", said=100)),
        "a message that is compressed by nothing": begun(first, message(1, b"abc", compressed=1)),
        "a message with an unknown flag": begun(first, message(1, b"abc", compressed=77)),
        "no message": begun(first, _frame(_DATA, _END_STREAM, 1)),
    }


def _field(name: bytes, value: bytes) -> bytes:
    """Name and value as literals that are not indexed."""
    return b"\0" + _text(name) + _text(value)


def _text(text: bytes) -> bytes:
    """Its length, in seven bits and then more, and itself."""
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, size = len(text) - 127, b"\x7f"
    while rest > 127:
        size, rest = size + bytes([rest % 128 + 128]), rest // 128
    return size + bytes([rest]) + text
