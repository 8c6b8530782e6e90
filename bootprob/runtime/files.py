"""Output files that are either complete or not there at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bootprob.exceptions import DataError

if sys.platform != "win32":
    import fcntl

__all__ = ["check_output", "move_into_place", "replace_when_complete"]


def check_output(path: str | os.PathLike[str], *, inputs: tuple[Path, ...] = ()) -> Path:
    """Refuse an output path that cannot be written, before any work is done.

    What killed processes left beside it of the same output, half written, is removed.

    Parameters
    ----------
    path : path-like
        The file that is going to be written. It may exist; it is then replaced.
    inputs : tuple of Path
        Files that the work reads, which the output must not replace.

    Returns
    -------
    Path
        `path`, with symbolic links followed, so that a link keeps pointing where it did.

    Raises
    ------
    DataError
        The folder does not exist or cannot be written, or `path` is a folder, a device or one
        of `inputs`.
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise DataError(f"{path} is a folder; give the name of a file in it.")
    if target.exists() and not target.is_file():
        raise DataError(f"{path} is not an ordinary file and will not be replaced.")
    if any(given.exists() and target.exists() and target.samefile(given) for given in inputs):
        raise DataError(f"{path} is the file that is read; give the output another name.")
    if not target.parent.is_dir():
        raise DataError(f"The folder {target.parent} does not exist; create it first.")
    try:
        # Only trying tells the truth about permissions, read-only mounts and quotas.
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise DataError(
            f"The folder {target.parent} cannot be written: {error.strerror}."
        ) from None
    _remove_abandoned(target)
    return target


@contextmanager
def replace_when_complete(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of `path` only once it is complete.

    The bytes go to a hidden file beside `path`, are flushed to the disk, and the file is then
    renamed, which a file system does entirely or not at all. After an exception, a full disk or
    a kill, `path` is what it was before. A kill leaves the hidden file; `check_output` removes it.

    Parameters
    ----------
    path : path-like
        The file to create or replace. An existing file's permissions are kept.

    Yields
    ------
    binary file
        Open for writing.

    Raises
    ------
    OSError
        With the name of `path`, when the disk is full or the folder is not writable.
    """
    target = Path(path).resolve()
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with _held(beside) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "posix":  # while it is held: nobody takes it for abandoned
                move_into_place(beside, target)
        if os.name != "posix":  # an open file cannot be renamed
            move_into_place(beside, target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        # A failed write knows no file name, and the hidden file's name would help nobody.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def move_into_place(complete: Path, target: Path) -> None:
    """Rename a complete file to `target`, on the same file system, so that it outlives a power cut.

    Parameters
    ----------
    complete : Path
        A file that has been flushed, or a folder of such files.
    target : Path
        A file is replaced, and its permissions are kept; a folder must not be there.
    """
    if target.exists():
        shutil.copymode(target, complete)
    complete.replace(target)
    if os.name == "posix":  # Windows cannot open folders
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _held(path: Path) -> Iterator[BinaryIO]:
    """A new file, open and locked."""
    while True:
        with path.open("xb") as file:
            # Where files cannot be locked, `check_output` cannot do it either, and removes none.
            with suppress(OSError):
                _hold(file)
            if not path.exists():  # taken for abandoned, before it was locked
                continue
            yield file
            return


def _hold(file: BinaryIO) -> None:
    """Lock an open file until it is closed, as Windows does by itself."""
    if sys.platform != "win32":
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_abandoned(target: Path) -> None:
    """Remove the hidden files of `target` that no process is writing."""
    if not os.access(target.parent, os.R_OK):
        return
    of_target = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.part")
    for each in [each for each in target.parent.iterdir() if of_target.fullmatch(each.name)]:
        # Being written, of another user, or just gone: all reasons to leave it alone.
        with suppress(OSError):
            if sys.platform == "win32":
                each.unlink()
            else:
                with each.open("r+b") as file:
                    _hold(file)
                    each.unlink()
