"""A request's body: read up to a bound, and taken as JSON in the strictest sense."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import accumulate
from typing import Any

from starlette.requests import ClientDisconnect, Request

from bootprob.server.errors import ClientGone, RequestError
from bootprob.server.limits import Limits

__all__ = ["read_json"]

# A string, or the rest of the text if it never ends; possessive, so the time is linear.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


async def read_json(request: Request, limits: Limits, until: float) -> Any:
    """Read and parse a body.

    Parameters
    ----------
    request : Request
        Its body not yet read.
    limits : Limits
    until : float
        When the body must be there, on the clock of the running event loop.

    Returns
    -------
    object
        Plain values. Numbers may still be infinite (``1e999``).

    Raises
    ------
    RequestError
        415 if the body is not plain JSON, 413 if it is too large, 408 if it is too slow, 400 if
        it cannot be parsed.
    ClientGone
        If the client leaves before its end.
    """
    _check_headers(request, limits)
    try:
        async with asyncio.timeout_at(until):
            body = await _read(request, limits.max_body)
    except TimeoutError:
        message = f"The body was not complete within {limits.deadline:g} s."
        raise RequestError(408, message) from None
    except ClientDisconnect:
        raise ClientGone from None
    return parse_json(body, limits.max_depth)


def parse_json(body: bytes, max_depth: int) -> Any:
    """Parse JSON in UTF-8 without NaN, infinities, repeated keys or deep nesting.

    Raises
    ------
    RequestError
        400; the message quotes nothing of the body.
    """
    brackets = _STRING.sub(b"", body).translate(None, _NO_BRACKET)
    if max(accumulate(_STEP[bracket] for bracket in brackets), default=0) > max_depth:
        raise RequestError(400, f"The body is nested more than {max_depth} deep.")
    try:
        return _DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise RequestError(400, "The body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise RequestError(400, f"The body is no JSON: {error.msg} ({where}).") from None
    except ValueError:  # from int()
        raise RequestError(400, "The body holds a whole number of too many digits.") from None


def _check_headers(request: Request, limits: Limits) -> None:
    kind = request.headers.get("content-type", "")
    if not re.fullmatch(r'(?i)application/json(\s*;\s*charset="?utf-8"?)?\s*', kind):
        raise RequestError(415, "The body must be sent as Content-Type: application/json.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RequestError(415, "Compressed bodies are not taken; send the JSON as it is.")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > limits.max_body:
        raise _too_large(limits.max_body)


async def _read(request: Request, max_body: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > max_body:
            raise _too_large(max_body)
        parts.append(part)
    return b"".join(parts)


def _too_large(max_body: int) -> RequestError:
    return RequestError(413, f"The body is larger than {max_body} bytes; send fewer rows at once.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RequestError(400, "A key occurs twice in an object.")
    return found


def _constant(_: str) -> Any:
    raise RequestError(400, "NaN and Infinity are no JSON; send null where a value is missing.")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
