"""Who is let in: by a token, or by those of a file that is read again when it changes."""

from __future__ import annotations

import logging
import secrets
import time
from pathlib import Path

from bootprob.exceptions import DataError
from bootprob.runtime.stamps import Stamp, stamp_of

__all__ = ["Tokens", "token_of"]

_LOGGER = logging.getLogger("bootprob.server")
_LEAST = 16  # characters
_EVERY = 1.0  # seconds between two looks at the file


class Tokens:
    """Tokens that clients may send.

    Parameters
    ----------
    given : str or Path
        A token, or a file with one on each line, which is looked at once a second: to rotate a
        token, add the new one, let clients change, and take the old one out. A file that cannot be
        used any more changes nothing, and the log says so.

    Raises
    ------
    DataError
        A token is too short or cannot be sent in a header; or the file has none.
    """

    def __init__(self, given: str | Path) -> None:
        self._file = given if isinstance(given, Path) else None
        self._looked, self._state = time.monotonic(), self._stamp()
        self._known = [_checked(given)] if isinstance(given, str) else _of_file(given)

    def allow(self, sent: bytes) -> bool:
        """Whether a token is one of them."""
        self._look()
        # Compared as bytes, in a time that does not depend on where they differ, and all of them.
        found = [secrets.compare_digest(sent, each) for each in self._known]
        return any(found)

    def _look(self) -> None:
        now = time.monotonic()
        if self._file is None or now - self._looked < _EVERY:
            return
        self._looked, state = now, self._stamp()
        if state == self._state:
            return
        self._state = state
        try:
            self._known = _of_file(self._file)
        except (DataError, OSError) as error:
            _LOGGER.error("The tokens stay as they were: %s", error)
        else:
            _LOGGER.info("The token file has changed: %d now.", len(self._known))

    def _stamp(self) -> Stamp:
        return None if self._file is None else stamp_of(self._file)


def token_of(authorization: str) -> bytes:
    """The token that a header ``Authorization: Bearer TOKEN`` has; empty in any other."""
    kind, _, sent = authorization.partition(" ")
    return sent.strip().encode() if kind.lower() == "bearer" else b""


def _of_file(path: Path) -> list[bytes]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise DataError(f"{path} is no text.") from None
    tokens = [line.strip() for line in lines if line.strip()]
    if not tokens:
        raise DataError(f"{path} is empty; it must hold a token on each line.")
    return [_checked(each) for each in tokens]


def _checked(token: str) -> bytes:
    """Refuse a token that is too short, or cannot be sent in a header."""
    if not token.isascii() or not token.isprintable() or " " in token or len(token) < _LEAST:
        raise DataError(
            f"The token must be {_LEAST} or more printable ASCII characters without blanks; "
            "make one by: python -c 'import secrets; print(secrets.token_urlsafe())'."
        )
    return token.encode()
