"""Checkpoints: the finished shards of a fit in a folder, so that a stopped fit goes on from them.

===========================  =====================================================================
``checkpoint.json``          ``protocol``, ``seed`` (drawn where the fit has no ``random_state``)
                             and ``made_of``: checksums of the data and the options, and versions
``shard-00012.safetensors``  the arrays of a shard, of classifiers of one replicate; its header says
                             of which fit, which shard it is and the checksum of the arrays
===========================  =====================================================================

A file takes its place only when it is complete. Opening a checkpoint runs no code.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bootprob.exceptions import DataError
from bootprob.preparation.bootstrap import draw_entropy
from bootprob.runtime.bounded_json import parse
from bootprob.runtime.files import check_output, replace_when_complete
from bootprob.runtime.version import __version__

__all__ = ["Checkpoint", "checksum", "versions_of"]

_PROTOCOL = 1
_INDEX = "checkpoint.json"
_ENTRY = "bootprob"


class Checkpoint:
    """A folder with the finished shards of one fit, and of no other.

    Parameters
    ----------
    folder : str
        Is created if it does not exist; else empty, or a checkpoint.
    made_of : mapping of str
        What is known of the fit so far, each part under the name that a person knows it by.

    Raises
    ------
    DataError
        `folder` is something else, cannot be written, or holds other files.
    """

    def __init__(self, folder: str, made_of: Mapping[str, str]) -> None:
        if not folder:
            raise DataError("checkpoint is ''; give the name of a folder, or None for none.")
        self.folder = Path(folder).resolve()
        self._made_of = {**made_of}
        self._fit = ""
        if self.folder.exists() and not self.folder.is_dir():
            raise DataError(f"The checkpoint {folder} is not a folder; give the name of one.")
        check_output((self.folder if self.folder.exists() else self.folder.parent) / _INDEX)
        self.folder.mkdir(exist_ok=True)
        index = self.folder / _INDEX
        self._index: dict[str, Any] = {}
        if index.exists():
            self._index = _read_index(index)
        elif any(not _is_ours(path) for path in self.folder.iterdir()):
            raise DataError(
                f"The folder {folder} holds files that are no checkpoint; give an empty folder or "
                "a new name."
            )
        for path in self.folder.glob(".*.part"):  # what a kill left of a file half written
            path.unlink(missing_ok=True)

    def random_state(self, given: Any) -> np.random.RandomState:
        """Where the fit draws from: `given`, or if that is None the seed kept here."""
        if given is not None:
            return check_random_state(given)
        if self._index.get("seed") is None:
            self._index["seed"] = draw_entropy(check_random_state(None))
        return np.random.RandomState(self._index["seed"])

    def bind(self, more: Mapping[str, str]) -> None:
        """Begin, or see that what is here belongs to the same fit.

        Parameters
        ----------
        more : mapping of str
            What else the shards depend on.

        Raises
        ------
        DataError
            It belongs to another: says in what that differs.
        """
        made_of = self._made_of | {**more}
        if (before := self._index.get("made_of")) is not None:
            names = made_of.keys() | before.keys()
            different = sorted(name for name in names if made_of.get(name) != before.get(name))
            if different:
                raise DataError(
                    f"The checkpoint {self.folder} is of another fit, with other "
                    f"{', '.join(different)}; give another folder, or delete this one."
                )
        else:
            self._index |= {"protocol": _PROTOCOL, "made_of": made_of}
            with replace_when_complete(self.folder / _INDEX) as file:
                file.write(json.dumps(self._index, indent=1).encode())
        self._fit = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()

    def intact(self, numbers: Iterable[int]) -> set[int]:
        """Which of these shards are here and whole.

        Warns
        -----
        UserWarning
            A file is damaged; its shard is trained again.
        """
        found = set()
        for number in numbers:
            if not self._path(number).exists():
                continue
            try:
                self.read(number)
            except DataError as error:
                warnings.warn(f"{error} The shard is trained again.", stacklevel=2)
            else:
                found.add(number)
        return found

    def read(self, number: int) -> dict[str, NDArray[Any]]:
        """The arrays of a shard.

        Raises
        ------
        DataError
            The file is damaged, or of another fit or shard.
        """
        from safetensors import SafetensorError, safe_open

        path = self._path(number)
        try:
            with safe_open(path, framework="numpy") as file:
                header = parse((file.metadata() or {})[_ENTRY])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
            raise DataError(f"{path} is damaged ({type(error).__name__}).") from error
        if header != self._header(number, arrays):
            raise DataError(f"{path} is damaged, or of another fit.")
        return arrays

    def write(self, number: int, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep the arrays of a finished shard.

        Raises
        ------
        OSError
            The disk is full or the folder cannot be written.
        """
        from safetensors.numpy import save as to_bytes

        numeric = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        header = json.dumps(self._header(number, numeric))
        data = to_bytes(numeric, metadata={_ENTRY: header})
        with replace_when_complete(self._path(number)) as file:
            file.write(data)

    def _path(self, number: int) -> Path:
        return self.folder / f"shard-{number:05}.safetensors"

    def _header(self, number: int, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        return {
            "protocol": _PROTOCOL,
            "fit": self._fit,
            "shard": number,
            "sha256": checksum(*(part for name in sorted(arrays) for part in (name, arrays[name]))),
        }


def _is_ours(path: Path) -> bool:
    return path.name.endswith(".part") and path.name.startswith(f".{_INDEX}.")


def _read_index(path: Path) -> dict[str, Any]:
    try:
        index = parse(path.read_text(encoding="utf-8"))
        protocol, seed = index["protocol"], index.get("seed")
        if not isinstance(index["made_of"], dict):
            raise TypeError("made_of is no object")
        if seed is not None:
            np.random.RandomState(seed)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is damaged ({error}); delete the folder to begin anew.") from error
    if protocol != _PROTOCOL:
        raise DataError(
            f"{path} has protocol {protocol!r}, and this version of bootprob reads {_PROTOCOL}; "
            "give another folder."
        )
    return index


def versions_of(*packages: str) -> dict[str, str]:
    """Versions that shards depend on: of bootprob and of these."""
    of_packages = {f"version of {name}": _version(name) for name in packages}
    return {"version of bootprob": __version__, **of_packages}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # machines without Numba train with plain torch
        return "not installed"


def checksum(*parts: str | NDArray[Any]) -> str:
    """SHA-256 of strings and arrays, with their types and shapes."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            found.update(part.encode())
        else:
            found.update(f"{part.dtype.str}{part.shape}".encode())
            found.update(np.ascontiguousarray(part).data)
    return found.hexdigest()
