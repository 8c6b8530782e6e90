"""What a comparison of calibrations has measured, row by row, in a file for each group and fold."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from bootprob.runtime.arrays import Floats
from bootprob.runtime.files import replace_when_complete
from docs.studies.calibration.methods import OutOfBag

__all__ = ["Measured", "Store"]

Measured = tuple[dict[str, Any], dict[str, Floats], str | float]


class Store:
    """Files of one table and kernel.

    Probabilities of the peers are kept as they are; of ours the out-of-bag quantities are, so that
    a calibration that is new, or changed, needs no training. A group may be a classifier.

    Parameters
    ----------
    folder : Path
    prefix : str
        Of the files' names.
    settings : dict
        Part of their names: other settings are other files.
    """

    def __init__(self, folder: Path, prefix: str, settings: dict[str, Any]) -> None:
        self._folder = folder
        self._prefix = "-".join([prefix, *(f"{key}{value}" for key, value in settings.items())])
        self._read: dict[Path, Measured] = {}

    def has(self, group: str, number: int) -> bool:
        """Whether a fold was measured."""
        return self._path(group, number).exists()

    def put(self, group: str, number: int, found: dict[str, Any]) -> None:
        """Keep arrays, numbers and words by name.

        Parameters
        ----------
        group : str
        number : int
            Of the fold.
        found : dict
            Probabilities begin with "p "; fields of `OutOfBag` with "oob "; "chosen" belongs to
            the former.
        """
        path = self._path(group, number)
        self._folder.mkdir(parents=True, exist_ok=True)
        with replace_when_complete(path) as file:
            np.savez_compressed(file, **found)
        self._read.pop(path, None)

    def forget(self, group: str, number: int) -> None:
        """Delete what was put in, if anything was."""
        path = self._path(group, number)
        path.unlink(missing_ok=True)
        self._read.pop(path, None)

    def get(self, group: str, number: int) -> Measured:
        """What was put in, the probabilities of each method, and what was chosen."""
        path = self._path(group, number)
        if path not in self._read:
            found = self.found(group, number)
            self._read[path] = (found, *_probabilities(found))
        return self._read[path]

    def found(self, group: str, number: int) -> dict[str, Any]:
        """What was put in, by name."""
        path = self._path(group, number)
        try:
            with path.open("rb") as stream, np.load(stream) as file:
                return {key: file[key][()] for key in file.files}
        except (zipfile.BadZipFile, ValueError, EOFError) as error:
            raise SystemExit(f"{path} is damaged; delete it.") from error

    def _path(self, group: str, number: int) -> Path:
        return self._folder / f"{self._prefix}-{group.replace(' ', '_')}-{number}.npz"


def _probabilities(found: dict[str, Any]) -> tuple[dict[str, Floats], str | float]:
    if "chosen" in found:
        by = {key[2:]: value for key, value in found.items() if key.startswith("p ")}
        return by, found["chosen"].item()
    fields = {key[4:]: value for key, value in found.items() if key.startswith("oob ")}
    return OutOfBag(**fields).probabilities()
