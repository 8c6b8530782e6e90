"""Ids of requests: the client's own if it sends a decent one, else a new one."""

from __future__ import annotations

import re
import uuid

from starlette.types import Scope

__all__ = ["HEADER", "request_id"]

HEADER = b"x-request-id"
_DECENT = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")  # it is written to logs and replies


def request_id(scope: Scope) -> str:
    """The id by which logs and reply call a request."""
    given = [value for name, value in scope["headers"] if name == HEADER]
    if len(given) == 1 and _DECENT.fullmatch(given[0]):
        return str(given[0].decode("ascii"))
    return uuid.uuid4().hex
