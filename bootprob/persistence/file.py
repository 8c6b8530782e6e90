"""Model files as bytes: arrays and JSON in one safetensors file, with limits and a checksum.

What the arrays and the JSON mean is not known here; `bootprob.persistence.save_load` knows it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

from bootprob.exceptions import ModelFileError
from bootprob.runtime.bounded_json import parse
from bootprob.runtime.files import replace_when_complete
from bootprob.runtime.version import __version__

__all__ = [
    "HEADER_BYTES",
    "PROTOCOL",
    "TENSORS",
    "describe_error",
    "read_model_file",
    "write_model_file",
]

PROTOCOL = 2
"""Number of the file layout that is written. Those before are read, too."""

HEADER_BYTES = 2**24
"""Bytes of the header, which has the JSON in it; 16 MiB."""

TENSORS = 50_000
"""Arrays in a file; about 30 for two classes, and for each pair of several."""

_ENTRY = "bootprob"
_ENTRIES = {"protocol", "bootprob", "content", "sha256"}
_LONGEST = 200  # characters of a file's own words in a message


def write_model_file(
    path: str | os.PathLike[str], content: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write a file that takes the place of `path` once it is complete.

    Parameters
    ----------
    path : path-like
    content : dict
        What JSON can hold.
    arrays : dict of str to ndarray
        Contiguous, of numbers or booleans.

    Raises
    ------
    ModelFileError
        The model has more names, classes or arrays than a model file may have.
    OSError
        The disk is full or the folder cannot be written.
    """
    from safetensors.numpy import save as to_bytes

    content = content | {"shapes": _shapes(arrays)}
    header = {
        "protocol": PROTOCOL,
        "bootprob": __version__,
        "content": content,
        "sha256": _checksum(content, arrays),
    }
    data = to_bytes(arrays, metadata={_ENTRY: json.dumps(header, allow_nan=False)})
    try:
        _header(data)
    except ValueError as error:
        raise ModelFileError(f"The model is too large for a model file: {error}.") from error
    with replace_when_complete(path) as file:
        file.write(data)


def read_model_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a file and check everything that can be checked without knowing the model.

    Parameters
    ----------
    path : path-like
        A regular file, or a link to one.

    Returns
    -------
    content : dict
        What was written, with the ``"shapes"`` of the arrays.
    arrays : dict of str to ndarray

    Raises
    ------
    ModelFileError
        The file is missing, damaged, no model file, of another protocol, or larger than memory.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load as tensors_of

    header, data = _read(path)
    content = header["content"]
    try:
        arrays = tensors_of(data)
    except (SafetensorError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is no bootprob model or is damaged.") from error
    if content["shapes"] != _shapes(arrays):
        raise ModelFileError(f"{path} is damaged: arrays are missing or have another shape.")
    if header["sha256"] != _checksum(content, arrays):
        raise ModelFileError(f"{path} is damaged: its contents do not match its checksum.")
    return content, arrays


def describe_error(error: Exception) -> str:
    """The first line of an error, short and without what a terminal would take for commands."""
    text = f"no entry {error}" if isinstance(error, KeyError) else str(error)
    return _shown((text.strip().splitlines() or [type(error).__name__])[0].rstrip("."))


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], bytes]:
    """Entries of the header, and the whole of a regular file whose header is no reason against it.

    The file is in one piece: what happens to it later cannot matter.
    """
    try:
        # Opening a named pipe without O_NONBLOCK would wait for its writer for ever.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        if Path(path).is_dir():  # which Windows would not open
            raise ModelFileError(f"{path} is not a file.")
        with os.fdopen(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise ModelFileError(f"{path} is not a file.")
            start = file.read(8)
            _check_extent(path, found.st_size, start)
            start += file.read(int.from_bytes(start, "little"))
            header = _entries(path, start, found.st_size)
            file.seek(0)
            data = file.read(found.st_size)
    except FileNotFoundError:
        raise ModelFileError(f"There is no file {path}.") from None
    except PermissionError:
        raise ModelFileError(f"{path} cannot be read: permission denied.") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {describe_error(error)}.") from error
    except ValueError as error:  # a path with a null character
        raise ModelFileError(f"{str(path)!r} is no path: {describe_error(error)}.") from error
    if len(data) != found.st_size or not data.startswith(start):
        raise ModelFileError(f"{path} is damaged: it changed while it was read.")
    return header, data


def _check_extent(path: str | os.PathLike[str], size: int, start: bytes) -> None:
    """Refuse what cannot be a model, or would not fit into memory, before it is read."""
    length = int.from_bytes(start, "little")
    if size < 8 or not 2 <= length <= min(size - 8, HEADER_BYTES):
        raise ModelFileError(f"{path} is no bootprob model or is damaged.")
    import psutil

    available = psutil.virtual_memory().available
    if 2 * size > available:
        raise ModelFileError(
            f"{path} has {size / 1e9:.1f} GB, and loading takes twice that; "
            f"{available / 1e9:.1f} GB of memory are free."
        )


def _entries(path: str | os.PathLike[str], start: bytes, size: int) -> dict[str, Any]:
    """What the header has under our name, if it fits the protocol and the size of the file."""
    try:
        texts, arrays = _header(start)
        header = parse(texts[_ENTRY])
        if not isinstance(header, dict) or not header.keys() >= _ENTRIES:
            raise ValueError("entries are missing")
        _check_protocol(path, header)
        ends = (array["data_offsets"][1] for array in arrays.values())
        if len(start) + max(ends, default=0) != size:
            raise ValueError("the arrays do not end where the file does")
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is no bootprob model or is damaged.") from error
    if not isinstance(header["content"], dict) or "shapes" not in header["content"]:
        raise ModelFileError(f"{path} is damaged: entries are missing or unknown.")
    return header


def _header(data: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """Text entries and arrays of a safetensors header, the whole of which is within the limits."""
    length = int.from_bytes(data[:8], "little")
    if length > HEADER_BYTES:
        raise ValueError(f"names and settings take {length} bytes, and may take {HEADER_BYTES}")
    header = parse(data[8 : 8 + length].decode())
    texts = header.pop("__metadata__", None) if isinstance(header, dict) else None
    if not isinstance(texts, dict) or not isinstance(texts.get(_ENTRY), str):
        raise ValueError(f"there is no entry {_ENTRY}")
    if len(header) > TENSORS:
        raise ValueError(f"there are {len(header)} arrays, and may be {TENSORS}")
    return texts, header


def _check_protocol(path: str | os.PathLike[str], header: dict[str, Any]) -> None:
    if type(header["protocol"]) is not int or not 1 <= header["protocol"] <= PROTOCOL:
        raise ModelFileError(
            f"{path} was written by bootprob {_shown(header['bootprob'])} with protocol "
            f"{_shown(header['protocol'])}; this is {__version__}, which reads protocols "
            f"up to {PROTOCOL}. Use that version or fit the model again."
        )


def _shapes(arrays: dict[str, np.ndarray]) -> dict[str, list[Any]]:
    return {name: [array.dtype.name, *array.shape] for name, array in sorted(arrays.items())}


def _checksum(content: Any, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def _shown(value: Any) -> str:
    text = "".join(each if each.isprintable() else "�" for each in str(value)[:_LONGEST])
    return text.encode(errors="replace").decode()
