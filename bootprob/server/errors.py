"""What a client is told when it cannot be served."""

from __future__ import annotations

from typing import Any

from bootprob.exceptions import ClassifierError, DataError

__all__ = ["ClientGone", "RequestError", "of_model"]


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


def of_model(error: Exception, *, is_well: bool) -> RequestError:
    """What a client is told of an error that scoring its rows has raised.

    422 where the rows are to blame: they are refused, or a classifier of others fails on them and
    not on a row that it is known to take (`is_well`). Else 500. The errors of others' code may
    quote anything, so that the reply has no more than their type.
    """
    if isinstance(error, ClassifierError):
        cause = error.__cause__ or error
        if is_well:
            told = RequestError(
                422, f"A classifier does not take these rows ({type(cause).__name__})."
            )
            told.__cause__ = cause
            return told
        error = cause if isinstance(cause, Exception) else error
    elif isinstance(error, DataError):
        return RequestError(422, str(error))
    failed = RequestError(500, "The model failed on these rows; the log of the server says where.")
    failed.__cause__ = error
    return failed
