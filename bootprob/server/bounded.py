"""No more requests at once than a process can answer in time."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from bootprob.server.errors import RequestError

__all__ = ["Bounded", "refuse_overload"]

_COME_BACK = 1  # seconds; a request takes less, unless the queue is long: it has its own refusal
_ALWAYS = ("/v2/health/", "/metrics")  # whoever watches over an overloaded server must get through
_OVERLOAD = "bootprob.overload"


class Bounded:
    """ASGI middleware: marks requests that are too many, for `refuse_overload`.

    Parameters
    ----------
    app : ASGIApp
    most : int
        Requests at once.
    """

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
        message = f"{most} requests are being answered already; try again later."
        raise RequestError(503, message, retry_after=_COME_BACK)


def _path(scope: Scope) -> str:
    """Without where the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root)
