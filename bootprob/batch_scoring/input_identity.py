"""What tells the input of a run from any other: path and content of every file.

Names, sizes and times do not: tomorrow's file may well have today's name, size and time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from bootprob.batch_scoring.sources import InputFile
from bootprob.exceptions import DataError
from bootprob.runtime.progress import progress_bar
from bootprob.tables.files import readable

__all__ = ["InputIdentity"]

_PIECE = 2**26  # bytes, of which as many are read at once as there are threads
_AT_ONCE = 2**20  # bytes


class InputIdentity:
    """The files of a run as they were when it began.

    Attributes
    ----------
    stated : list of list of str
        Of each file its path, its name and a checksum of its content.
    """

    def __init__(self, files: Sequence[InputFile], progress: bool) -> None:
        self._files = files
        # Before the content: what changes meanwhile is noticed afterwards.
        self._stamps = [_stamp(each.path) for each in files]
        total = sum(each.path.stat().st_size for each in files)
        with progress_bar("Checking the input (bytes)", total, shown=progress) as advance:
            checksums = _checksums([each.path for each in files], advance)
        self.stated = [
            [str(each.path.resolve()), each.name, checksum]
            for each, checksum in zip(files, checksums, strict=True)
        ]

    def refuse_change(self, at: int) -> None:
        """See that the file at a position still is what it was.

        Raises
        ------
        DataError
            It is not.
        """
        path = self._files[at].path
        stamp = _stamp(path)
        if stamp == self._stamps[at]:
            return
        # A backup that links to the file, or `touch`, changes no content.
        if _checksums([path]) != [self.stated[at][-1]]:
            raise DataError(f"{path} was changed while it was scored; give the command again.")
        self._stamps[at] = stamp


def _stamp(path: Path) -> tuple[int, ...]:
    """What the system changes whenever a file is written to or replaced."""
    with readable(path):
        found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _checksums(
    paths: Sequence[Path], advance: Callable[[int], None] = lambda n_bytes: None
) -> list[str]:
    """Of each file a checksum of the checksums of its pieces."""
    pieces = [
        (path, start) for path in paths for start in range(0, path.stat().st_size or 1, _PIECE)
    ]
    found = {path: hashlib.sha256() for path in paths}

    def digest(piece: tuple[Path, int]) -> bytes:
        of_piece, (path, start) = hashlib.sha256(), piece
        with readable(path), path.open("rb") as file:
            file.seek(start)
            for _ in range(_PIECE // _AT_ONCE):
                if not (data := file.read(_AT_ONCE)):
                    break
                of_piece.update(data)
                advance(len(data))
        return of_piece.digest()

    with ThreadPoolExecutor(torch.get_num_threads()) as threads:
        for (path, _), of_piece in zip(pieces, threads.map(digest, pieces), strict=True):
            found[path].update(of_piece)
    return [found[path].hexdigest() for path in paths]
