"""Around every request: time, count and log line, without a word of what was sent.

And a word to the client when the server is about to stop.
"""

from __future__ import annotations

import logging
import time
import traceback

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bootprob.server.draining import Stopping
from bootprob.server.metrics import Metrics

__all__ = ["Observed"]

LOGGER = logging.getLogger("bootprob.server")
_GONE = 499  # the client has left; no reply is sent


class Observed:
    """ASGI middleware.

    An exception that nobody foresaw becomes a 500; the log says its type and where it was raised
    and not its message, which may quote data.
    """

    def __init__(self, app: ASGIApp, stopping: Stopping, metrics: Metrics | None = None) -> None:
        self._app, self._stopping, self._metrics = app, stopping, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), _GONE

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._stopping.begun:
                    message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception as error:
            log_exception(error)
            if status == _GONE:
                reply = JSONResponse({"error": "The server failed; its log says where."}, 500)
                await reply(scope, receive, noted)
        finally:
            # The route's pattern: a path that leads nowhere may hold anything.
            endpoint = getattr(scope.get("route"), "path", "(none)")
            seconds = time.perf_counter() - started
            LOGGER.info("%s %s %d %.1f ms", scope["method"], endpoint, status, 1e3 * seconds)
            if self._metrics is not None:
                self._metrics.request(endpoint, status, seconds)


def log_exception(error: BaseException) -> None:
    """Log what an exception is and where it was raised, without its message."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames[-6:]))
    LOGGER.error("%s at %s", type(error).__name__, where)
