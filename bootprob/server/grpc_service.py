"""gRPC of the Open Inference Protocol v2: each call is asked of the HTTP application, in process.

So tokens, limits, rates, metrics, logs and reloads are those of HTTP. Tensors travel as in the
binary tensor data extension, whose bytes are those of ``raw_input_contents``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import grpc
from google.protobuf.message import DecodeError
from pydantic_core import from_json, to_json
from starlette.types import ASGIApp, Message

from bootprob.server.binary import HEADER, SIZE, encoded
from bootprob.server.grpc_messages import SERVICE, message
from bootprob.server.middleware import log_exception
from bootprob.server.strict_json import PIECE

__all__ = ["grpc_serving"]

_ASKED = {
    "ServerLive": "/v2/health/live",
    "ServerReady": "/v2/health/ready",
    "ServerMetadata": "/v2",
    "ModelReady": "{}/ready",
    "ModelMetadata": "{}",
    "ModelInfer": "{}/infer",
}
_CODES = {
    401: grpc.StatusCode.UNAUTHENTICATED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
}  # others are of requests that are wrong
_CONTENTS = {
    "BOOL": "bool_contents", "INT32": "int_contents", "INT64": "int64_contents",
    "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents",
}  # fmt: skip
_MOST_INPUTS = 2**16
_PASSED_ON = ("authorization", "traceparent", "tracestate", "x-request-id")
_SENT_BACK = ("retry-after", "x-request-id")


@asynccontextmanager
async def grpc_serving(
    app: ASGIApp,
    address: str,
    *,
    max_body: int,
    max_calls: int,
    grace: float,
    shared: bool = False,
    certificate: Path | None = None,
    key: Path | None = None,
) -> AsyncIterator[int]:
    """Answer calls while the context is open; it gives the port.

    Parameters
    ----------
    app : ASGI application
        What `bootprob serve` serves.
    address : str
        ``HOST:PORT``; port 0 is any that is free.
    max_body, max_calls : int
        Bytes of a message, and calls at once; beyond, RESOURCE_EXHAUSTED.
    grace : float
        Seconds that calls have to end when the context is left.
    shared : bool
        Whether other processes listen there too.
    certificate, key : Path, optional
        As of `bootprob.server.running.run`.
    """
    limits = {"grpc.max_receive_message_length": max_body, "grpc.so_reuseport": int(shared)}
    server = grpc.aio.server(maximum_concurrent_rpcs=max_calls, options=[*limits.items()])
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            partial(_answer, app, name, message(f"{name}Response")),
            response_serializer=message(f"{name}Response").SerializeToString,
        )
        for name in _ASKED
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
    if certificate is None:
        port = server.add_insecure_port(address)
    else:
        pair = (key or certificate).read_bytes(), certificate.read_bytes()
        port = server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
    await server.start()
    try:
        yield port
    finally:
        await server.stop(grace)


async def _answer(app: ASGIApp, name: str, reply: Any, sent: bytes, context: Any) -> Any:
    try:
        return await _reply(app, name, reply, sent, context)
    except grpc.aio.AbortError:
        raise
    except Exception as error:  # whose message gRPC would tell the client, and the log
        log_exception(error)
        await context.abort(grpc.StatusCode.INTERNAL, "The server failed; its log says where.")


async def _reply(app: ASGIApp, name: str, reply: Any, sent: bytes, context: Any) -> Any:
    wrong = grpc.StatusCode.INVALID_ARGUMENT
    try:
        request = message(f"{name}Request").FromString(sent)
    except DecodeError:
        await context.abort(wrong, f"The bytes are no {name}Request.")
    path, body, headers = _ASKED[name], None, {}
    if name == "ModelInfer":
        path = path.format(_address(request.model_name, request.model_version))
        if problem := _problem(request):
            await context.abort(wrong, problem)
        long = len(sent) > PIECE  # others are served meanwhile
        head, body = await asyncio.to_thread(_as_body, request) if long else _as_body(request)
        headers = {"content-type": "application/octet-stream", HEADER: str(head)}
    elif name.startswith("Model"):
        path = path.format(_address(request.name, request.version))
    metadata = dict(context.invocation_metadata())
    headers |= {each: metadata[each] for each in _PASSED_ON if each in metadata}
    status, told, found = await _ask(app, path, body, headers, context.peer())
    sent_back = tuple((each, told[each]) for each in _SENT_BACK if each in told)
    if status >= 400 and not (status == 503 and name.endswith("Ready")):
        await context.abort(_CODES.get(status, wrong), from_json(found)["error"], sent_back)
    context.set_trailing_metadata(sent_back)
    if body is not None:
        return reply(**_as_outputs(found, int(told[HEADER])))
    content = from_json(found)
    content["properties"] = [
        {"key": each, "value": to_json(value).decode()}
        for each, value in content.get("parameters", {}).items()
    ]
    known = reply.DESCRIPTOR.fields_by_name
    return reply(**{each: value for each, value in content.items() if each in known})


def _address(name: str, version: str) -> str:
    return f"/v2/models/{name}" + (f"/versions/{version}" if version else "")


def _problem(request: Any) -> str | None:
    """What cannot be said in JSON."""
    raw, inputs = request.raw_input_contents, request.inputs
    if len(inputs) > _MOST_INPUTS:
        return f"There are {len(inputs)} inputs; send {_MOST_INPUTS} at most."
    both = raw and any(each.HasField("contents") for each in inputs)
    if both or len(raw) not in (0, len(inputs)):
        return "raw_input_contents must hold all inputs, or none."
    return None


async def _ask(
    app: ASGIApp, path: str, body: bytes | None, headers: dict[str, str], peer: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the application's reply; with a body it is a POST."""
    kind, _, address = unquote(peer).partition(":")  # ipv4:127.0.0.1:80 or ipv6:[::1]:80
    host, _, port = address.rpartition(":")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "2", "scheme": "grpc",
        "method": "GET" if body is None else "POST", "path": path, "raw_path": quote(path).encode(),
        "query_string": b"", "root_path": "", "server": None,
        "client": (host, int(port)) if kind in ("ipv4", "ipv6") else None,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    unread, replied = [{"type": "http.request", "body": body or b""}], list[Message]()

    async def receive() -> Message:
        if not unread:
            await asyncio.Event().wait()  # a client that leaves cancels all of it
        return unread.pop()

    async def send(sent: Message) -> None:
        replied.append(sent)

    await app(scope, receive, send)
    start, *parts = replied
    told = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], told, b"".join(each.get("body", b"") for each in parts)


def _as_body(request: Any) -> tuple[int, bytes]:
    """A request as JSON, how long that is, and its tensors behind it."""
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


def _encoded(tensor: Any) -> bytes:
    """Its contents; nothing where its type is none, which the application refuses."""
    name = _CONTENTS.get(tensor.datatype)
    return b"" if name is None else encoded(getattr(tensor.contents, name), tensor.datatype)


def _as_outputs(reply: bytes, head: int) -> dict[str, Any]:
    """A reply of the application, as that of the call."""
    found, raw = from_json(reply[:head]), []
    for each in found["outputs"]:
        size = each.pop("parameters")[SIZE]
        raw.append(reply[head : head + size])
        head += size
    parameters = [
        {"key": name, "value": {"double_param": value}}
        for name, value in found["parameters"].items()
    ]
    return found | {"raw_output_contents": raw, "parameters": parameters}


def _parameters(of: Any) -> dict[str, Any]:
    """Their values; one that is of no type is null, which the application refuses."""
    kinds = {each.key: each.value.WhichOneof("parameter_choice") for each in of.parameters}
    return {each.key: getattr(each.value, kinds[each.key] or "", None) for each in of.parameters}
