"""Connections of `bootprob serve`: how many, how long their headers may take, what HTTP they speak.

uvicorn's own protocol waits for headers for ever, takes any number of connections, and h11 bounds
only headers that arrive in parts.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["MAX_HEADERS", "BoundedProtocol", "Connections"]

MAX_HEADERS = 2**15  # bytes of request line and headers
_END_OF_HEADERS = re.compile(rb"\n\r?\n")  # as h11 sees it
_LEAST_CHUNK = 32  # bytes, in the mean; each chunk costs as much as kilobytes do
_FREE_CHUNKS = 4096


@dataclass
class Connections:
    """What all connections of a process share.

    Attributes
    ----------
    most : int
        Connections at a time. Beyond, the one that has waited longest for a request is closed; if
        requests are being answered on all of them, the new one.
    header_deadline : float
        Seconds that the headers of a request may take.
    idle : dict of BoundedProtocol to None
        Connections without a request, the longest idle first.
    n_open : int
    """

    most: int
    header_deadline: float
    idle: dict[BoundedProtocol, None] = field(default_factory=dict)
    n_open: int = 0


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol, with a bound on everything that a peer can make wait or grow."""

    def __init__(self, shared: Connections, **given: Any) -> None:
        super().__init__(**given)
        self.conn: _StrictConnection = _StrictConnection(h11.SERVER, MAX_HEADERS)
        self._shared = shared
        self._patience: asyncio.TimerHandle | None = None  # for headers
        self._unread: asyncio.TimerHandle | None = None  # for a peer that does not read its reply

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; beyond the bound, for another."""
        super().connection_made(transport)
        self._shared.n_open += 1
        if self._shared.n_open > self._shared.most:
            oldest = next(iter(self._shared.idle), self)
            oldest.transport.abort()
            oldest._forget()
            if oldest is self:
                return
        self._shared.idle[self] = None
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it out."""
        self._shared.n_open -= 1
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, and watch how long headers take."""
        for first in range(0, len(data), MAX_HEADERS):  # so that h11 finds a part too long
            super().data_received(data[first : first + MAX_HEADERS])
            if self.transport.is_closing():
                return
        self._watch(has_begun=True)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the form of all refusals, and close the connection."""
        if self.cycle is not None:
            self.cycle.disconnected = True  # what is still being answered goes nowhere
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            content = json.dumps({"error": self.conn.refusal or msg}).encode()
            headers = [
                ("content-type", "application/json"),
                ("content-length", str(len(content))),
                ("connection", "close"),
            ]
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=b"" if self.conn.is_head else content),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event))
        self.transport.close()

    def on_response_complete(self) -> None:
        """Wait for the next request, which may be here in part."""
        super().on_response_complete()
        is_all_read = self.conn.their_state in (h11.IDLE, h11.MUST_CLOSE, h11.CLOSED)
        self._watch(has_begun=not is_all_read or bool(self.conn.trailing_data[0]))

    def pause_writing(self) -> None:
        """Give a peer that does not read its reply as long as an idle connection."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.timeout_keep_alive, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads."""
        super().resume_writing()
        _cancel(self._unread)
        self._unread = None

    def timeout_keep_alive_handler(self) -> None:
        """Close for good, even if the last reply was never read."""
        super().timeout_keep_alive_handler()
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _watch(self, has_begun: bool) -> None:
        """See whether a request is being answered now."""
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            _cancel(self._patience)
            self._patience = None
            self._shared.idle.pop(self, None)
            return
        self._shared.idle.setdefault(self)
        if has_begun:
            self._expect_headers()

    def _expect_headers(self) -> None:
        if self._patience is None:  # bytes that trickle in give no further time
            self._patience = self.loop.call_later(
                self._shared.header_deadline, self.transport.abort
            )

    def _forget(self) -> None:
        self._shared.idle.pop(self, None)
        for timer in (self._patience, self._unread):
            _cancel(timer)
        self._patience = self._unread = None


class _StrictConnection(h11.Connection):
    """h11, without what it lets pass: long headers in one go, two lengths, tiny chunks."""

    refusal = ""
    is_head = False  # whether the reply must have no body
    _n_chunks = 0
    _n_bytes = 0

    def next_event(self) -> Any:
        """The next event; uvicorn answers a RemoteProtocolError with 400 and closes."""
        if self.their_state is h11.IDLE:
            self.is_head = False  # until the request is known
            waiting = self.trailing_data[0]
            if len(waiting) > MAX_HEADERS and not _END_OF_HEADERS.search(waiting, 0, MAX_HEADERS):
                raise self._refused(f"The headers are larger than {MAX_HEADERS} bytes.")
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.is_head = event.method == b"HEAD"
            if {b"content-length", b"transfer-encoding"} <= {name for name, _ in event.headers}:
                # Servers on the way may take either for the body's end: request smuggling.
                raise self._refused("Content-Length and Transfer-Encoding contradict each other.")
            self._n_chunks = self._n_bytes = 0
        elif isinstance(event, h11.Data) and event.chunk_start:
            self._n_chunks += 1
            self._n_bytes += len(event.data)
            if self._n_chunks > _FREE_CHUNKS + self._n_bytes // _LEAST_CHUNK:
                raise self._refused(f"The chunks are smaller than {_LEAST_CHUNK} bytes.")
        return event

    def _refused(self, why: str) -> h11.RemoteProtocolError:
        self.refusal = why
        return h11.RemoteProtocolError(why)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
