"""Load a data set by its name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bootprob.datasets.catalog import CATALOG
from bootprob.datasets.finding import (
    FOLDER_VARIABLE,
    fetch_files,
    fetch_from_openml,
    places,
    present,
)
from bootprob.datasets.source import DatasetError, Source

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from bootprob.datasets.reading import Raw

__all__ = ["NAMES", "Dataset", "at_hand", "load"]

NAMES = tuple(CATALOG)
"""Names that `load` knows."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows as numbers, and which of them are positive.

    Attributes
    ----------
    name : str
        Its name in the catalogue.
    X : ndarray of float64, shape (n, p)
        Rows, without gaps, not standardised.
    y : ndarray of bool, shape (n,)
        Which rows are positive.
    columns : tuple of str
        Names of the columns of `X`; a dummy is named such as ``"purpose=A43"``.
    labels : ndarray of str, shape (n,)
        The class of each row as the file has it; for several classes.
    positives : tuple of str
        The classes that `y` counts as positive.
    source : Source
        Title, origin, licence, citation and notes.

    Examples
    --------
    >>> from bootprob.datasets import load
    >>> data = load("wisconsin")  # comes with scikit-learn
    >>> data.columns[:2], data.positives
    (('mean radius', 'mean texture'), ('malignant',))
    >>> print(data.description.splitlines()[0])
    Breast Cancer Wisconsin (Diagnostic): 569 rows, 30 columns, 212 positives (malignant).
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.bool_]
    columns: tuple[str, ...]
    labels: NDArray[np.str_]
    positives: tuple[str, ...]
    source: Source

    @property
    def description(self) -> str:
        """Size, origin, licence and citation, in a few lines."""
        source = self.source
        positives = " or ".join(self.positives)
        return "\n".join(
            [
                f"{source.title}: {len(self.X):,} rows, {self.X.shape[1]:,} columns, "
                f"{int(self.y.sum()):,} positives ({positives}).",
                f"Origin: {source.origin}. Licence: {source.licence}.",
                f"{source.citation}.",
                *([source.note] if source.note else []),
            ]
        )


def load(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    positive: str | None = None,
    download: bool = True,
) -> Dataset:
    """Load a data set, prepared as thesis 3.3.1 says.

    Categorical columns become dummies (all levels), gaps are filled with modes and medians, and of
    several classes the largest is negative. Columns are not standardised: that belongs into each
    fold and bootstrap sample, as `BootstrapSVC` does it. Whatever is read is checked for its rows,
    columns, class sizes and missing cells.

    Parameters
    ----------
    name : str
        One of `NAMES`; docs/datasets.md describes them.
    folder : path-like, optional
        Local folder in which each data set has a folder of its own name, such as
        ``german/german.data``; default the environment variable BOOTPROB_DATASETS. What is not
        there is looked for in the cache (`bootprob` in scikit-learn's data folder).
    positive : str, optional
        The class to take for positive instead, as the file has it.
    download : bool, default True
        Whether files that are neither there nor in the cache may be downloaded: from UCI or a
        public copy with a SHA-256 checksum, or from OpenML.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetError
        No such name, class or folder; files that are missing and cannot be downloaded; or files
        that are not what they should be.

    Examples
    --------
    >>> from bootprob.datasets import load
    >>> data = load("wisconsin")
    >>> data.X.shape, int(data.y.sum()), data.positives
    ((569, 30), 212, ('malignant',))
    """
    import numpy as np

    source = _source(name)
    known = [label for label, _ in source.classes]
    if positive is not None and positive not in known:
        raise DatasetError(
            f"{name} has no class {positive!r}; positive may be {', '.join(map(repr, known))}."
        )
    raw, place = _raw(source, folder, download)

    from bootprob.datasets.preparation import numbers
    from bootprob.datasets.reading import check

    check(source, raw, place)
    try:
        X, columns = numbers(raw.features, source.categorical)
    except DatasetError as error:
        raise DatasetError(f"{name}: {place}: {error}") from None
    if X.shape[1] != source.prepared:
        raise DatasetError(
            f"{name}: {place} gives {X.shape[1]} columns, not {source.prepared}: a category has "
            "other levels than it should. Give the original file."
        )
    positives = source.positives if positive is None else (positive,)
    return Dataset(
        name=name,
        X=X,
        y=np.isin(raw.labels, positives),
        columns=columns,
        labels=raw.labels,
        positives=positives,
        source=source,
    )


def at_hand(name: str, folder: str | os.PathLike[str] | None = None) -> bool:
    """Whether a data set can be loaded without a network.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    folder : path-like, optional
        As for `load`.

    Raises
    ------
    DatasetError
        No such name or folder.

    Examples
    --------
    >>> from bootprob.datasets import at_hand
    >>> at_hand("wisconsin")  # comes with scikit-learn
    True
    """
    source = _source(name)
    if source.form == "bundled":
        _see_that_it_is_there(folder)
        return True
    return present(source, places(folder)) is not None


def _see_that_it_is_there(folder: str | os.PathLike[str] | None) -> None:
    """Refuse a folder that is given and not there, also where nothing is looked for in it."""
    if folder is not None:
        places(folder)


def _source(name: str) -> Source:
    if not isinstance(name, str) or name not in CATALOG:
        raise DatasetError(f"There is no data set {name!r}; known are {', '.join(NAMES)}.")
    return CATALOG[name]


def _raw(source: Source, folder: str | os.PathLike[str] | None, allowed: bool) -> tuple[Raw, str]:
    """Cells and classes, and where they are from."""
    from bootprob.datasets.reading import from_columns, read, read_bundled

    if source.form == "bundled":
        _see_that_it_is_there(folder)
        return read_bundled(source), "scikit-learn's copy"
    where = places(folder)
    paths = present(source, where)
    failures = []
    if paths is None and allowed:
        try:
            paths = fetch_files(source)
        except DatasetError as error:
            failures.append(str(error))
            if source.openml is not None:
                try:
                    table = fetch_from_openml(source)
                except DatasetError as second:
                    failures.append(str(second))
                else:
                    return from_columns(source, table), f"OpenML {source.openml.data_id}"
    if paths is None:
        raise DatasetError(_absent(source, where, failures, allowed))
    return read(source, paths), ", ".join(map(str, paths))


def _absent(source: Source, where: tuple[Path, ...], failures: list[str], allowed: bool) -> str:
    """What was looked for, where, and what can be done."""
    files = " and ".join(f"{source.folder}/{file.name}" for file in source.files)
    said = [f"{source.name} ({source.title}; {source.origin}) is not at hand: no {files} in"]
    said.append(f"{' or '.join(map(str, where))}.")
    said += [f"{failure}." for failure in failures]
    said.append(
        f"Put the file there, or name a folder that has it by `folder` or {FOLDER_VARIABLE}"
        + (", or try again with a network." if allowed else ", or allow the download.")
    )
    return " ".join(said)
