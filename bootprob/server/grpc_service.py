"""gRPC of the Open Inference Protocol v2: each call is asked of the HTTP application, in process.

So tokens, limits, rates, metrics, logs and reloads are those of HTTP. Tensors travel as in the
binary tensor data extension, whose bytes are those of ``raw_input_contents``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import grpc
from google.protobuf.message import DecodeError
from pydantic_core import from_json, to_json
from starlette.types import ASGIApp, Message

from bootprob.server.binary import HEAD, HEADER, SIZE
from bootprob.server.grpc_bodies import BodyMaker
from bootprob.server.grpc_messages import SERVICE, message
from bootprob.server.middleware import COME_BACK, log_exception
from bootprob.server.tokens import Tokens, token_of

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
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
}  # others are of requests that are wrong
_PASSED_ON = ("authorization", "traceparent", "tracestate", "x-request-id")
_TOO_MANY = "Too many calls are being answered already; try again later."
_SENT_BACK = ("retry-after", "x-request-id")


@asynccontextmanager
async def grpc_serving(
    app: ASGIApp,
    address: str,
    *,
    max_body: int,
    max_calls: int,
    max_held: int,
    deadline: float,
    tokens: Tokens | None = None,
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
        Bytes of a message, and calls at once; beyond, RESOURCE_EXHAUSTED, for calls with the
        seconds until another try in the trailing metadata ``retry-after``.
    max_held : int
        Bytes of large messages that wait to be read, one at a time; beyond, UNAVAILABLE.
    deadline : float
        Seconds in which a call's message must be here, beyond, DEADLINE_EXCEEDED; and that calls
        have to end when the context is left.
    tokens : Tokens, optional
        Those of the application: without one of them no message is read.
    shared : bool
        Whether other processes listen there too.
    certificate, key : Path, optional
        As of `bootprob.server.running.run`.
    """
    limits = {
        "grpc.max_receive_message_length": max_body,
        "grpc.so_reuseport": int(shared),
        # Of calls that nobody has looked at yet; gRPC drops those beyond, without a status.
        "grpc.server.max_pending_requests": 4 * max_calls,
        "grpc.server.max_pending_requests_hard_limit": 4 * max_calls,
    }
    bodies = BodyMaker(max_body, max_held)
    # Refusals take time, too: of very many calls gRPC refuses the rest itself, without metadata.
    server = grpc.aio.server(maximum_concurrent_rpcs=2 * max_calls, options=[*limits.items()])
    places = asyncio.Semaphore(max_calls)
    handlers = {
        # As of a stream, though only its first message is taken: of one call gRPC would wait for
        # that without end.
        name: grpc.stream_unary_rpc_method_handler(
            partial(
                _admitted,
                places,
                partial(_answer, app, bodies, deadline, tokens, name, message(f"{name}Response")),
            ),
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
        await server.stop(deadline)
        bodies.close()


async def _admitted(
    places: asyncio.Semaphore,
    answer: Callable[[AsyncIterator[bytes], Any], Awaitable[Any]],
    messages: AsyncIterator[bytes],
    context: Any,
) -> Any:
    """Answer a call if there is a place for it, or say when to come back."""
    if places.locked():
        again = (("retry-after", str(COME_BACK)),)
        try:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, _TOO_MANY, again)
        except grpc.aio.InternalError:  # the client has reset the call
            raise asyncio.CancelledError from None
    async with places:
        return await answer(messages, context)


async def _answer(
    app: ASGIApp,
    bodies: BodyMaker,
    deadline: float,
    tokens: Tokens | None,
    name: str,
    reply: Any,
    messages: AsyncIterator[bytes],
    context: Any,
) -> Any:
    sent, metadata = b"", dict(context.invocation_metadata())
    if name.startswith("Model"):  # others have nothing to say
        if tokens is None or tokens.allow(token_of(metadata.get("authorization", ""))):
            sent = await _received(messages, deadline, context)
        else:  # the application refuses it so
            name, metadata = "ServerMetadata", metadata | {"authorization": ""}
    try:
        return await _reply(app, bodies, name, reply, sent, metadata, context)
    except grpc.aio.AbortError:
        raise
    except grpc.aio.InternalError:  # the client has reset the call
        raise asyncio.CancelledError from None
    except Exception as error:  # whose message gRPC would tell the client, and the log
        log_exception(error)
        await context.abort(grpc.StatusCode.INTERNAL, "The server failed; its log says where.")


async def _received(messages: AsyncIterator[bytes], deadline: float, context: Any) -> bytes:
    """The message of a call."""
    sent = b""
    try:
        async with asyncio.timeout(deadline):
            sent = await anext(messages)
    except TimeoutError:
        late = f"The message was not complete within {deadline:g} s."
        await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, late)
    except StopAsyncIteration:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The call has no message.")
    return sent


async def _reply(
    app: ASGIApp,
    bodies: BodyMaker,
    name: str,
    reply: Any,
    sent: bytes,
    metadata: dict[str, str],
    context: Any,
) -> Any:
    wrong, is_infer = grpc.StatusCode.INVALID_ARGUMENT, name == "ModelInfer"
    try:
        # The rest of an inference, which may be large, is looked at when the application asks.
        request = message("ModelInferAddress" if is_infer else f"{name}Request").FromString(sent)
    except DecodeError:
        await context.abort(wrong, f"The bytes are no {name}Request.")
    path, body, headers = _ASKED[name], None, {}
    if is_infer:
        path = path.format(_address(request.model_name, request.model_version))
        body = partial(bodies.made, sent)
        headers = {"content-type": "application/octet-stream", HEADER: "0"}  # see `HEAD`
    elif name.startswith("Model"):
        path = path.format(_address(request.name, request.version))
    headers |= {each: metadata[each] for each in _PASSED_ON if each in metadata}
    status, told, found = await _ask(app, path, body, headers, context.peer())
    sent_back = tuple((each, told[each]) for each in _SENT_BACK if each in told)
    if status >= 400 and not (status == 503 and name.endswith("Ready")):
        await context.abort(_CODES.get(status, wrong), from_json(found)["error"], sent_back)
    context.set_trailing_metadata(sent_back)
    if is_infer:
        return reply(**_as_outputs(found, int(told[HEADER])))
    content = from_json(found)
    content["properties"] = [
        {"key": each, "value": to_json(value).decode()}
        for each, value in content.get("parameters", {}).items()
    ]
    known = reply.DESCRIPTOR.fields_by_name
    return reply(**{each: value for each, value in content.items() if each in known})


def _address(name: str, version: str) -> str:
    """Where a model is; a slash in a name, which no model has, leads nowhere."""
    name, version = name.replace("/", "%2F"), version.replace("/", "%2F")
    return f"/v2/models/{name}" + (f"/versions/{version}" if version else "")


async def _ask(
    app: ASGIApp,
    path: str,
    body: Callable[[], Awaitable[tuple[int, bytes]]] | None,
    headers: dict[str, str],
    peer: str,
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the application's reply.

    With a body it is a POST. The body is made when the application reads it: after the token and
    the rate, and within its deadline.
    """
    kind, _, address = unquote(peer).partition(":")  # ipv4:127.0.0.1:80 or ipv6:[::1]:80
    host, _, port = address.rpartition(":")
    state: dict[str, Any] = {}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "2", "scheme": "grpc",
        "method": "GET" if body is None else "POST", "path": path, "raw_path": quote(path).encode(),
        "query_string": b"", "root_path": "", "server": None,
        "client": (host.strip("[]"), int(port)) if kind in ("ipv4", "ipv6") else None,
        "state": state,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    replied, is_read = list[Message](), False

    async def receive() -> Message:
        nonlocal is_read
        if is_read:
            await asyncio.Event().wait()  # a client that leaves cancels all of it
        is_read, made = True, b""
        if body is not None:
            state[HEAD], made = await body()
        return {"type": "http.request", "body": made}

    async def send(sent: Message) -> None:
        replied.append(sent)

    await app(scope, receive, send)
    start, *parts = replied
    told = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], told, b"".join(each.get("body", b"") for each in parts)


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
