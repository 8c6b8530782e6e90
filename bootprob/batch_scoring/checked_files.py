"""Files that a later run relies on: their checksums, and JSON that carries its own."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bootprob.exceptions import DataError
from bootprob.runtime.files import replace_when_complete
from bootprob.runtime.stamps import stamp_of

__all__ = [
    "checksum_of_file", "checksum_of_json", "read_checked", "unchanged", "warn_damaged",
    "write_checked",
]  # fmt: skip


def checksum_of_file(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def unchanged(path: Path) -> Iterator[str]:
    """Within, a file is read, of this checksum; a DataError if it is another one at the end.

    Of what is no file, whoever reads it says so.
    """
    stamp = stamp_of(path)
    yield checksum_of_file(path) if path.is_file() else ""
    if stamp_of(path) != stamp:
        raise DataError(f"{path} has changed while it was read; give the same command again.")


def checksum_of_json(content: Any) -> str:
    """SHA-256 of plain values, the same before they are stored as JSON and afterwards."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_checked(path: Path, content: Any) -> None:
    """Store plain values and their checksum as JSON, in a file that is complete or not there."""
    stored = {"checksum": checksum_of_json(content), "content": content}
    with replace_when_complete(path) as file:
        file.write(json.dumps(stored).encode())


def read_checked(path: Path, otherwise: str) -> Any:
    """What `write_checked` stored; None if there is no such file or it is damaged.

    `otherwise` is a sentence that says what is done then.

    Warns
    -----
    UserWarning
        The file is damaged.
    """
    try:
        stored = json.loads(path.read_bytes())
        content = stored["content"]
        intact = stored["checksum"] == checksum_of_json(content)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, RecursionError):  # no JSON, or JSON of another form
        intact = False
    if intact:
        return content
    warn_damaged(path, otherwise)
    return None


def warn_damaged(path: Path, otherwise: str) -> None:
    """Say that a file is not as it was written, and what is done."""
    warnings.warn(f"{path} is damaged. {otherwise}", stacklevel=3)
