"""Several model files behind one address, each taken anew when its file changes.

Every model has an application of its own (`bootprob.server.app`), with its queue and limits. This
passes requests on: ``/v2/models/NAME/…`` and ``/NAME/…`` to the application of NAME, and with a
single model all else to it. When a file changes, its model is loaded in a thread and takes the
place of the old one; requests that the old one was answering are finished.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bootprob.exceptions import BootprobError
from bootprob.runtime.stamps import Stamp, stamp_of
from bootprob.server.answering import json_reply
from bootprob.server.draining import Stopping
from bootprob.server.metrics import Counts
from bootprob.server.middleware import Observed, log_exception
from bootprob.server.schemas import SERVER
from bootprob.server.tokens import Tokens, token_of

__all__ = ["Repository"]

_LOGGER = logging.getLogger("bootprob.server")
_READ = "/v2/health/live", "/v2/health/ready", "/v2", "/metrics"
_OF_MODELS = ["", "v2", "repository", "models"]
_ASKED = "load", "unload"
_EVERY = 1.0  # seconds between two looks at the files


@dataclass
class _Serving:
    """An application that requests are passed to, until another takes its place."""

    app: FastAPI
    open: AsyncExitStack = field(default_factory=AsyncExitStack)
    answering: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    async def begin(self) -> _Serving:
        await self.open.enter_async_context(self.app.router.lifespan_context(self.app))
        return self

    async def end(self) -> None:
        """Finish what was accepted, then close."""
        if self.answering:
            self.idle.clear()
            await self.idle.wait()
        await self.open.aclose()
        self.app.state.release()
        del self.app
        # It is among the objects that were frozen when it began, and full of circles.
        gc.unfreeze()
        gc.collect()
        gc.freeze()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.answering += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.answering -= 1
            if not self.answering:
                self.idle.set()


@dataclass
class _Entry:
    """A model's file, and what is made of it; without `serving` it was unloaded."""

    path: Path
    stamp: Stamp
    serving: _Serving | None = None
    reason: str = ""
    wanted: bool = True
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Repository:
    """ASGI application.

    Parameters
    ----------
    paths : mapping of str to Path
        Files of the models, by their names.
    make : callable
        From a name and a path to the application of the model.
    tokens : Tokens or None
        Let clients load and unload.
    stopping : Stopping
        Of all applications.
    counts : Counts or None
        Of all models.

    Attributes
    ----------
    lifespan : callable
        Context manager that is open while it serves.
    """

    def __init__(
        self,
        paths: Mapping[str, Path],
        make: Callable[[str, Path], FastAPI],
        tokens: Tokens | None,
        stopping: Stopping,
        counts: Counts | None,
    ) -> None:
        self._counts = counts
        self._make, self._tokens, self.stopping = make, tokens, stopping
        self._own = Observed(self._answer, stopping)
        self._ending: set[asyncio.Task[None]] = set()
        self._entries = {name: _Entry(path, stamp_of(path)) for name, path in paths.items()}
        # Here, so that an unusable model is told before anything starts.
        self._first = {name: make(name, each.path) for name, each in self._entries.items()}
        self.lifespan: Callable[[], Any] = self._served

    @asynccontextmanager
    async def _served(self) -> AsyncIterator[None]:
        for name, entry in self._entries.items():
            entry.serving = await _Serving(self._first.pop(name)).begin()
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            for entry in self._entries.values():
                if entry.serving is not None:
                    await entry.serving.open.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        target, scope = self._target(scope)
        await target(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.lifespan():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    def _target(self, scope: Scope) -> tuple[ASGIApp, Scope]:
        """Who answers a request, and what it is told of it."""
        parts = scope["path"].split("/")
        known, inner = None, scope
        if parts[1:3] == ["v2", "repository"]:
            return self._own, scope
        if len(self._entries) == 1:
            [known] = self._entries.values()
        elif parts[1:3] == ["v2", "models"] and len(parts) > 3:
            known = self._entries.get(parts[3])
        elif len(parts) > 2:
            known = self._entries.get(parts[1])
            inner = dict(scope) | {"root_path": scope.get("root_path", "") + "/" + parts[1]}
        if known is None or known.serving is None:
            return self._own, scope
        return known.serving, inner

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is of no model: health, server, metrics, and the repository API."""
        path, request = scope["path"], Request(scope, receive)
        scope["route"] = SimpleNamespace(path=self._pattern(path))
        if path in _READ and scope["method"] != "GET":
            reply = json_reply({"error": "Method Not Allowed"}, 405, {"Allow": "GET"})
        elif path == "/v2/health/live":
            reply = json_reply({"live": True})
        elif path == "/v2/health/ready":
            wanted = [each.serving is not None for each in self._entries.values() if each.wanted]
            ready = not self.stopping.begun and bool(wanted) and all(wanted)
            reply = json_reply({"ready": ready}, 200 if ready else 503)
        elif not self._allows(request):
            message = "Send the server's token as Authorization: Bearer TOKEN."
            reply = json_reply({"error": message}, 401, {"WWW-Authenticate": "Bearer"})
        elif path == "/v2":
            reply = json_reply(SERVER)
        elif path == "/metrics" and self._counts is not None:
            reply = Response(self._counts.text(), media_type=CONTENT_TYPE_LATEST)
        elif path.startswith("/v2/repository/"):
            reply = await self._asked(request)
        else:
            lists = "POST /v2/repository/index lists them"
            reply = json_reply({"error": f"There is no such model here; {lists}."}, 404)
        await reply(scope, receive, send)

    def _pattern(self, path: str) -> str:
        """What the log calls a path that leads somewhere; it names models that there are."""
        parts = path.split("/")
        of_model = parts[:-2] == _OF_MODELS and parts[-2] in self._entries and parts[-1] in _ASKED
        return path if path in (*_READ, "/v2/repository/index") or of_model else "(none)"

    def _allows(self, request: Request) -> bool:
        sent = token_of(request.headers.get("authorization", ""))
        return self._tokens is None or self._tokens.allow(sent)

    async def _asked(self, request: Request) -> Response:
        """Index, load and unload."""
        if request.method != "POST":
            return json_reply({"error": "Method Not Allowed"}, 405, {"Allow": "POST"})
        parts = request.scope["path"].removeprefix("/v2/repository/").split("/")
        if parts == ["index"]:
            return Response(
                to_json([self._state(name) for name in self._entries]),
                media_type="application/json",
            )
        if len(parts) != 3 or parts[0] != "models" or parts[2] not in _ASKED:
            return json_reply({"error": "Not Found"}, 404)
        entry = self._entries.get(parts[1])
        if entry is None:
            return json_reply({"error": "There is no such model here."}, 404)
        if self._tokens is None:  # else any page in a browser could ask it of a local server
            message = "Models are loaded and unloaded with a token; start the server with one."
            return json_reply({"error": message}, 403)
        if parts[2] == "unload":
            entry.wanted = False
            await self._unload(parts[1], entry)
            return json_reply({})
        entry.wanted = True
        await self._load(parts[1], entry)
        if entry.reason:
            return json_reply({"error": entry.reason}, 400)
        return json_reply({})

    def _state(self, name: str) -> dict[str, Any]:
        entry = self._entries[name]
        state = "READY" if entry.serving is not None else "UNAVAILABLE"
        version = entry.serving.app.version if entry.serving is not None else ""
        return {"name": name, "version": version, "state": state, "reason": entry.reason}

    async def _watch(self) -> None:
        """Take changed files, one after the other."""
        while True:
            await asyncio.sleep(_EVERY)
            for name, entry in self._entries.items():
                idle = entry.wanted and not entry.lock.locked()  # else it is being loaded
                if idle and stamp_of(entry.path) != entry.stamp:
                    await self._load(name, entry)

    async def _load(self, name: str, entry: _Entry) -> None:
        """Make the application anew, in a thread, and let it take the place of the old one."""
        async with entry.lock:
            stamp = entry.stamp = stamp_of(entry.path)
            try:
                app = await asyncio.to_thread(self._make, name, entry.path)
            except (BootprobError, OSError) as error:
                entry.reason = str(error)
                _LOGGER.error("%s stays as it was: %s", name, error)
                return
            except Exception as error:  # the old model is served, and files are looked at
                entry.reason = f"{type(error).__name__}; the log says where"
                log_exception(error)
                return
            before, entry.serving = entry.serving, await _Serving(app).begin()
            entry.reason = ""
            _LOGGER.info("%s is of version %s now.", name, app.version)
            if stamp != stamp_of(entry.path):
                entry.stamp = None  # written to meanwhile: once more
        self._end(before)

    async def _unload(self, name: str, entry: _Entry) -> None:
        async with entry.lock:
            before, entry.serving, entry.reason = entry.serving, None, "unloaded"
            if self._counts is not None:
                self._counts.models.pop(name, None)
        self._end(before)

    def _end(self, before: _Serving | None) -> None:
        """Let an application finish what it accepted, while others answer."""
        if before is not None:
            task = asyncio.create_task(before.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
