"""A request's body, read up to a bound in bytes, time and what all bodies together may hold."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from bootprob.server.binary import HEADER
from bootprob.server.errors import ClientGone, RequestError
from bootprob.server.limits import Limits

__all__ = ["BodyReader", "too_large"]

_FREE = 2**15  # bytes of each body that do not count: small ones are never refused for large ones


class BodyReader:
    """Read bodies, and hold no more than `Limits.max_held` bytes of them at a time.

    Attributes
    ----------
    held : int
        Bytes of bodies in hand, without the first 32 KiB of each.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.held = 0

    @asynccontextmanager
    async def body(self, request: Request, until: float) -> AsyncIterator[bytes]:
        """Hold a body while it is parsed.

        Parameters
        ----------
        request : Request
            Its body not yet read.
        until : float
            When the body must be there, on the clock of the running event loop.

        Raises
        ------
        RequestError
            415 if the body is not plain JSON, 413 if it is too large, 408 if it is too slow, 503
            if too much is held already.
        ClientGone
            If the client leaves before its end.
        """
        body = await self._read(request, until)
        try:
            yield body
        finally:
            self.held -= _counted(len(body))

    async def _read(self, request: Request, until: float) -> bytes:
        _check_headers(request, self._limits)
        parts: list[bytes] = []
        size, is_complete = 0, False
        try:
            async with asyncio.timeout_at(until):
                async for part in request.stream():
                    size += self._admit(size, len(part))
                    parts.append(part)
            is_complete = True
        except TimeoutError:
            message = f"The body was not complete within {self._limits.deadline:g} s."
            raise RequestError(408, message) from None
        except ClientDisconnect:
            raise ClientGone from None
        finally:
            if not is_complete:
                self.held -= _counted(size)
        return b"".join(parts)

    def _admit(self, size: int, more: int) -> int:
        """Count a part of a body of which `size` bytes are here, or refuse it."""
        if size + more > self._limits.max_body:
            raise too_large(self._limits.max_body)
        held = self.held + _counted(size + more) - _counted(size)
        if held > self._limits.max_held:
            message = "Too many large bodies are being read; try again later."
            raise RequestError(503, message, retry_after=1)
        self.held = held
        return more


def _counted(size: int) -> int:
    return max(0, size - _FREE)


def _check_headers(request: Request, limits: Limits) -> None:
    kind = request.headers.get("content-type", "")
    binary = HEADER in request.headers and kind == "application/octet-stream"
    if not binary and not re.fullmatch(r'(?i)application/json(\s*;\s*charset="?utf-8"?)?\s*', kind):
        raise RequestError(415, "The body must be sent as Content-Type: application/json.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RequestError(415, "Compressed bodies are not taken; send the JSON as it is.")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > limits.max_body:
        raise too_large(limits.max_body)


def too_large(max_body: int) -> RequestError:
    """What is told of a body that has more bytes."""
    return RequestError(413, f"The body is larger than {max_body} bytes; send fewer rows at once.")
