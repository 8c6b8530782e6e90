"""What a client is told when it cannot be served."""

from __future__ import annotations

from typing import Any

__all__ = ["ClientGone", "RequestError"]


class RequestError(Exception):
    """A request is refused.

    Attributes
    ----------
    status : int
        Of the reply.
    message : str
        For the client; it never reaches a log.
    retry_after : int or None
        Seconds after which it may do better.
    problems : list of dict
        Where in the request it is wrong.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        retry_after: int | None = None,
        problems: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.retry_after, self.problems = retry_after, problems or []


class ClientGone(Exception):  # noqa: N818  (nothing went wrong here)
    """The client has closed its connection; nobody waits for a reply."""
