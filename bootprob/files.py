"""Output files that are either complete or not there at all."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bootprob.exceptions import DataError

__all__ = ["check_output", "replace_when_complete"]


def check_output(path: str | os.PathLike[str], *, inputs: tuple[Path, ...] = ()) -> Path:
    """Refuse an output path that cannot be written, before any work is done.

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
    return target


@contextmanager
def replace_when_complete(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of `path` only once it is complete.

    The bytes go to a hidden file beside `path`, are flushed to the disk, and the file is then
    renamed, which a file system does entirely or not at all. After an exception, a full disk or
    a kill, `path` is what it was before.

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
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
        _flush_folder(target.parent)
    except OSError as error:
        beside.unlink(missing_ok=True)
        # A failed write knows no file name, and the hidden file's name would help nobody.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _flush_folder(folder: Path) -> None:
    """Make the renaming itself survive a power cut; Windows cannot open folders."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
