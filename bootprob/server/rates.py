"""How often each client may ask."""

from __future__ import annotations

import hashlib
import math
import time

import limits
from starlette.requests import Request

from bootprob.exceptions import DataError
from bootprob.server.errors import RequestError
from bootprob.server.tokens import token_of

__all__ = ["ClientRate"]


class ClientRate:
    """Refuses clients that ask more often than is agreed, each by its token or its address.

    Parameters
    ----------
    rate : str
        Such as "100/second" or "1000 per 5 minutes", as the package limits reads it; counted by a
        sliding window, in each process by itself.
    by_token : bool
        Whether clients are told apart by their tokens, which were checked before; else by address.

    Raises
    ------
    DataError
        It is no rate.
    """

    def __init__(self, rate: str, *, by_token: bool) -> None:
        self._by_token = by_token
        try:
            [self._item] = limits.parse_many(rate)
            if self._item.amount < 1:
                raise ValueError("no request at all")
        except ValueError:
            raise DataError(
                f"The rate is {rate!r}; give one such as '100/second' or '1000 per 5 minutes'."
            ) from None
        storage = limits.storage.MemoryStorage()
        self._limiter = limits.strategies.SlidingWindowCounterRateLimiter(storage)

    async def __call__(self, request: Request) -> None:
        """Count a request.

        Raises
        ------
        RequestError
            429, with Retry-After, if it is one too many.
        """
        client = self._client(request)
        if self._limiter.hit(self._item, client):
            return
        window = self._limiter.get_window_stats(self._item, client)
        wait = max(1, math.ceil(window.reset_time - time.time()))
        message = f"One client may ask {self._item}; try again later."
        raise RequestError(429, message, retry_after=wait)

    def _client(self, request: Request) -> str:
        if self._by_token:  # its checksum: tokens are kept nowhere
            return hashlib.sha256(token_of(request.headers.get("authorization", ""))).hexdigest()
        return "" if request.client is None else request.client.host
