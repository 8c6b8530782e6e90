"""No more requests at once than a process can answer in time."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Bounded"]

_COME_BACK = (
    "1"  # seconds; a request takes less, unless the queue is long, which has its own refusal
)
_ALWAYS = ("/v2/health/", "/metrics")  # whoever watches over an overloaded server must get through


class Bounded:
    """ASGI middleware: refuses with 503 and Retry-After before anything is read.

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
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or _path(scope).startswith(_ALWAYS):
            await self._app(scope, receive, send)
            return
        if self._n_answering >= self._most:
            said = {"error": f"{self._most} requests are being answered already; try again later."}
            await JSONResponse(said, 503, {"Retry-After": _COME_BACK})(scope, receive, send)
            return
        self._n_answering += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._n_answering -= 1


def _path(scope: Scope) -> str:
    """Without where the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root)
