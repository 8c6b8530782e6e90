"""Requests of inference over gRPC as bodies of the binary tensor data extension."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from google.protobuf.message import DecodeError
from pydantic_core import to_json

from bootprob.server.binary import SIZE, encoded
from bootprob.server.bodies import too_large
from bootprob.server.errors import RequestError
from bootprob.server.grpc_messages import message
from bootprob.server.strict_json import PIECE

__all__ = ["BodyMaker"]

_CONTENTS = {
    "BOOL": ("bool_contents", 1),
    "INT32": ("int_contents", 4),
    "INT64": ("int64_contents", 8),
    "FP32": ("fp32_contents", 4),
    "FP64": ("fp64_contents", 8),
    "BYTES": ("bytes_contents", 4),  # of its length; the text comes on top
}
_MOST_PARTS = 2**16


class BodyMaker:
    """Make bodies, large ones one after the other in a thread.

    Parameters
    ----------
    max_body : int
        Most bytes of the tensors of a body.
    max_held : int
        Most bytes of large messages that wait or are read.
    """

    def __init__(self, max_body: int, max_held: int) -> None:
        self._max_body, self._max_held, self._held = max_body, max_held, 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bootprob-grpc")

    async def made(self, sent: bytes) -> tuple[int, bytes]:
        """How long the JSON of a body is, and the body.

        Raises
        ------
        RequestError
            400 if the bytes are no request, 413 if it is too large, 422 if it cannot be said in
            JSON, 503 if too many wait.
        """
        if len(sent) <= PIECE:
            return _as_body(sent, self._max_body)
        if self._held + len(sent) > self._max_held:
            told = "Too many large bodies are being read; try again later."
            raise RequestError(503, told, retry_after=1)
        self._held += len(sent)
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, _as_body, sent, self._max_body)
        finally:
            self._held -= len(sent)

    def close(self) -> None:
        """Begin no other."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _request(sent: bytes, max_body: int) -> Any:
    """A request that may become a body."""
    try:
        request = message("ModelInferRequest").FromString(sent)
    except DecodeError:
        raise RequestError(400, "The bytes are no ModelInferRequest.") from None
    raw, inputs = request.raw_input_contents, request.inputs
    parts = len(request.parameters) + len(inputs) + len(request.outputs)
    if parts <= _MOST_PARTS:  # else not worth a look
        parts += sum(len(each.shape) + len(each.parameters) for each in inputs)
        parts += sum(len(each.parameters) for each in request.outputs)
    if parts > _MOST_PARTS:
        what = f"{_MOST_PARTS} inputs, dimensions, outputs and parameters together"
        raise RequestError(413, f"The message has too many parts; send {what} at most.")
    both = raw and any(each.HasField("contents") for each in inputs)
    if both or len(raw) not in (0, len(inputs)):
        raise RequestError(422, "raw_input_contents must hold all inputs, or none.")
    if sum(map(_size, inputs)) > max_body:  # numbers are shorter in a message
        raise too_large(max_body)
    return request


def _as_body(sent: bytes, max_body: int) -> tuple[int, bytes]:
    """A request as JSON, how long that is, and its tensors behind it."""
    request = _request(sent, max_body)
    blobs = list(request.raw_input_contents) or [_encoded(each) for each in request.inputs]
    content = {
        "parameters": _parameters(request) | {"binary_data_output": True},
        "inputs": [
            {
                "name": each.name,
                "datatype": each.datatype,
                "shape": list(each.shape),
                "parameters": _parameters(each) | {SIZE: len(blob)},
            }
            for each, blob in zip(request.inputs, blobs, strict=True)
        ],
    }
    if request.id:
        content["id"] = request.id
    if request.outputs:
        content["outputs"] = [{"name": each.name} for each in request.outputs]
    head = to_json(content)
    return len(head), b"".join([head, *blobs])


def _size(tensor: Any) -> int:
    """Bytes that its contents will take, of texts at least."""
    name, each = _CONTENTS.get(tensor.datatype, ("bytes_contents", 0))
    return each * len(getattr(tensor.contents, name))


def _encoded(tensor: Any) -> bytes:
    """Its contents; nothing where its type is none, which the application refuses."""
    if tensor.datatype not in _CONTENTS:
        return b""
    return encoded(getattr(tensor.contents, _CONTENTS[tensor.datatype][0]), tensor.datatype)


def _parameters(of: Any) -> dict[str, Any]:
    """Their values; one that is of no type is null, which the application refuses."""
    kinds = {each.key: each.value.WhichOneof("parameter_choice") for each in of.parameters}
    return {each.key: getattr(each.value, kinds[each.key] or "", None) for each in of.parameters}
