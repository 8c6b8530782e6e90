"""The binary tensor data extension of the Open Inference Protocol: numbers behind the JSON.

The header ``Inference-Header-Content-Length`` says how many bytes of a body are JSON. What follows
are the tensors whose parameter ``binary_data_size`` is given, one after the other, row-major and
little-endian; texts each behind their length in four bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from bootprob.server.errors import RequestError

__all__ = ["HEAD", "HEADER", "SIZE", "binary_reply", "encoded", "parts_of", "with_data"]

HEADER = "inference-header-content-length"
HEAD = "inference_head"  # says so in the state of a request, where its body is made when it is read
SIZE = "binary_data_size"
_LONGEST = 20
_TYPES = {"FP64": "<f8", "FP32": "<f4", "INT64": "<i8", "INT32": "<i4", "BOOL": "?"}


def parts_of(body: bytes, request: Request) -> tuple[bytes, memoryview | None]:
    """The JSON of a body that was read, and what follows it; None without the header."""
    if (head := getattr(request.state, HEAD, None)) is not None:
        return body[:head], memoryview(body)[head:]
    given = request.headers.get(HEADER)
    if given is None:
        return body, None
    number = given.isascii() and given.isdecimal() and len(given) <= _LONGEST
    if not (number and int(given) <= len(body)):
        raise RequestError(400, f"{HEADER.title()} must be a number of bytes of the body.")
    return body[: int(given)], memoryview(body)[int(given) :]


def with_data(inputs: Sequence[Any], binary: memoryview) -> list[Any]:
    """Inputs as if their data were JSON; missing numbers (NaN) become null.

    Raises
    ------
    RequestError
        422 for sizes that do not fit the bytes, or bytes that do not fit the type.
    """
    found, done = [], 0
    for given in inputs:
        parameters = given.get("parameters") if isinstance(given, dict) else None
        if not isinstance(parameters, dict) or SIZE not in parameters:
            found.append(given)
            continue
        size, datatype = parameters[SIZE], given.get("datatype")
        if type(size) is not int or not 0 <= size <= len(binary) - done or "data" in given:
            message = f"{SIZE} of an input does not fit the bytes behind the JSON."
            raise RequestError(422, message)
        data = _decoded(binary[done : done + size], datatype)
        done += size
        others = {name: value for name, value in parameters.items() if name != SIZE}
        found.append(given | {"data": data, "parameters": others})
    if done != len(binary):
        raise RequestError(422, f"{len(binary) - done} bytes behind the JSON belong to no input.")
    return found


def binary_reply(content: Mapping[str, Any], wanted: Sequence[str]) -> Response:
    """A reply in which the tensors of these names stand behind the JSON."""
    outputs, blobs = [], []
    for each in content["outputs"]:
        if each["name"] in wanted:
            blobs.append(encoded(each["data"], each["datatype"]))
            others = {name: value for name, value in each.items() if name != "data"}
            outputs.append(others | {"parameters": {SIZE: len(blobs[-1])}})
        else:
            outputs.append(each)
    head = to_json({**content, "outputs": outputs})
    return Response(
        b"".join([head, *blobs]), 200, {HEADER: str(len(head))}, "application/octet-stream"
    )


def encoded(data: Sequence[Any], datatype: str) -> bytes:
    """Values as they stand behind the JSON; of BYTES, text or its UTF-8."""
    if datatype == "BYTES":
        texts = [text.encode() if isinstance(text, str) else text for text in data]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return np.asarray(data, dtype=_TYPES[datatype]).tobytes()


def _decoded(data: memoryview, datatype: Any) -> list[Any]:
    if datatype == "BYTES":
        return _texts(data)
    if not isinstance(datatype, str) or datatype not in _TYPES:
        known = ", ".join([*_TYPES, "BYTES"])
        raise RequestError(422, f"The datatype of a binary input is none of {known}.")
    if len(data) % np.dtype(_TYPES[datatype]).itemsize:
        raise RequestError(422, "The bytes of an input do not fit its datatype.")
    if datatype == "BOOL" and not set(data) <= {0, 1}:
        raise RequestError(422, "The bytes of an input do not fit its datatype.")
    numbers: NDArray[Any] = np.frombuffer(data, _TYPES[datatype])
    values: list[Any] = numbers.tolist()
    if numbers.dtype.kind == "f" and np.isnan(numbers).any():
        return [None if math.isnan(value) else value for value in values]
    return values


def _texts(data: memoryview) -> list[str]:
    found, at = [], 0
    try:
        while at < len(data):
            (size,) = struct.unpack_from("<I", data, at)
            if size > len(data) - at - 4:
                raise ValueError
            found.append(bytes(data[at + 4 : at + 4 + size]).decode())
            at += 4 + size
    except (struct.error, ValueError):
        raise RequestError(422, "The bytes of an input do not fit its datatype.") from None
    return found
