"""Around every request: no more at once than can be answered, and time, count and log line.

The log has no word of what was sent. When the server is about to stop, clients are told.
"""

from __future__ import annotations

import logging
import time
import traceback

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bootprob.runtime.counted import counted
from bootprob.server.draining import Stopping
from bootprob.server.errors import RequestError
from bootprob.server.metrics import Metrics
from bootprob.server.request_ids import HEADER, request_id
from bootprob.server.traces import request_span

__all__ = ["COME_BACK", "LOGGER", "Bounded", "Observed", "log_exception", "refuse_overload"]

LOGGER = logging.getLogger("bootprob.server")
_GONE = 499  # the client has left; no reply is sent
COME_BACK = 1  # seconds; a request takes less, unless the queue is long: it has its own refusal
_ALWAYS = ("/v2/health/", "/metrics")  # whoever watches over an overloaded server must get through
_OVERLOAD = "bootprob.overload"


class Observed:
    """ASGI middleware.

    An exception that nobody foresaw becomes a 500; the log says its type and where it was raised
    and not its message, which may quote data.
    """

    def __init__(
        self,
        app: ASGIApp,
        stopping: Stopping,
        metrics: Metrics | None = None,
        model: str | None = None,
    ) -> None:
        self._app, self._stopping, self._metrics = app, stopping, metrics
        self._model = model

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, name = time.perf_counter(), _GONE, request_id(scope)
        scope.setdefault("state", {})["request_id"] = name

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                added = [(HEADER, name.encode())]
                if self._stopping.begun:
                    added.append((b"connection", b"close"))
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        with request_span(scope) as span:
            try:
                await self._app(scope, receive, noted)
            except Exception as error:
                log_exception(error, name, self._model)
                if status == _GONE:
                    said = {"error": "The server failed; its log says where.", "request_id": name}
                    reply = JSONResponse(said, 500)
                    await reply(scope, receive, noted)
            finally:
                # The route's pattern: a path that leads nowhere may hold anything.
                endpoint = getattr(scope.get("route"), "path", "(none)")
                seconds = time.perf_counter() - started
                self._note(scope["method"], endpoint, status, seconds, name)
                span.end(scope["method"], endpoint, status, name, self._model)

    def _note(self, method: str, endpoint: str, status: int, seconds: float, name: str) -> None:
        """Write a line of the log, and count."""
        of_model = {} if self._model is None else {"model": self._model}
        LOGGER.info(
            " ".join(["%s %s %d %.1f ms %s", *("%s" for _ in of_model)]),
            method, endpoint, status, 1e3 * seconds, name, *of_model.values(),
            extra=of_model | {
                "request_id": name, "method": method, "route": endpoint, "status": status,
                "milliseconds": round(1e3 * seconds, 3),
            },
        )  # fmt: skip
        if self._metrics is not None:
            self._metrics.request(endpoint, status, seconds)


class Bounded:
    """ASGI middleware: marks requests that are too many, for `refuse_overload`."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most
        self._n_answering = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http" or _path(scope).startswith(_ALWAYS):
            await self._app(scope, receive, send)
            return
        if self._n_answering >= self._most:
            scope[_OVERLOAD] = self._most
            await self._app(scope, receive, send)
            return
        self._n_answering += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._n_answering -= 1


async def refuse_overload(request: Request) -> None:
    """Refuse a marked request before anything of it is read.

    A dependency of routes, not part of the middleware: the request is counted where it leads.

    Raises
    ------
    RequestError
        503 with Retry-After.
    """
    if most := request.scope.get(_OVERLOAD):
        answered = counted(most, "request is", "requests are")
        message = f"{answered} being answered already; try again later."
        raise RequestError(503, message, retry_after=COME_BACK)


def _path(scope: Scope) -> str:
    """Without where the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root)


def log_exception(
    error: BaseException, request: str | None = None, model: str | None = None
) -> None:
    """Log what an exception is and where it was raised, without its message.

    Parameters
    ----------
    error : BaseException
    request : str, optional
        Id of the request that met it.
    model : str, optional
        What the model is called.
    """
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames[-6:]))
    whose = "" if model is None else f"{model}: "
    called = "" if request is None else f" {request}"
    LOGGER.error(
        "%s%s at %s%s", whose, type(error).__name__, where, called,
        extra={"request_id": request} | ({} if model is None else {"model": model}),
    )  # fmt: skip
