"""Tables as numbers, as thesis 3.3.1 prepares them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bootprob.datasets.source import DatasetError

__all__ = ["numbers"]


def numbers(
    table: pd.DataFrame, categorical: tuple[str, ...]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Turn text cells into numbers: dummies for categories, no gaps (thesis 3.3.1).

    A categorical column becomes a dummy for each of its levels, in the order of their names; its
    gaps are filled with the mode, of several the first by name. The gaps of a numerical column
    are filled with the median. Nothing is standardised: that is done inside each fold and
    bootstrap sample.

    Parameters
    ----------
    table : DataFrame
        Cells as text or numbers; NaN or None where they are missing.
    categorical : tuple of str
        Columns that become dummies, named such as ``"purpose=A43"``.

    Returns
    -------
    X : ndarray, shape (n, p)
    columns : tuple of str

    Raises
    ------
    DatasetError
        A numerical column has other cells, or a column is empty.
    """
    empty = table.columns[table.isna().all()]
    if len(empty):
        raise DatasetError(f"The column {empty[0]} has missing cells only.")
    numerical = _numerical(table[[name for name in table.columns if name not in categorical]])
    parts: list[NDArray[np.float64]] = []
    columns: list[str] = []
    for name in table.columns:
        if name in categorical:
            levels = table[name].map(_level, na_action="ignore")
            dummies = pd.get_dummies(levels.fillna(levels.mode().iloc[0]), dtype=float)
            parts.append(dummies.to_numpy())
            columns += [f"{name}={level}" for level in dummies.columns]
        else:
            parts.append(numerical[name][:, None])
            columns.append(str(name))
    return np.hstack(parts), tuple(columns)


def _level(cell: object) -> str:
    """Name a level so that the codes 1 and 1.0 of two files are the same."""
    try:
        number = float(str(cell))
    except ValueError:
        return str(cell)
    return f"{number:g}" if math.isfinite(number) else str(cell)


def _numerical(table: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Columns as numbers, gaps filled; all at once, for the thousands of a gene table."""
    try:
        values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    except ValueError:
        wrong = [name for name in table.columns if not _is_numbers(table[name])]
        raise DatasetError(f"The column {', '.join(wrong)} should hold numbers only.") from None
    infinite = np.isinf(values).any(axis=0)
    if infinite.any():
        raise DatasetError(f"The column {table.columns[infinite.argmax()]} has infinite numbers.")
    gaps = np.isnan(values)
    for j in np.flatnonzero(gaps.any(axis=0)):
        values[gaps[:, j], j] = np.median(values[~gaps[:, j], j])
    return dict(zip(table.columns, values.T, strict=True))


def _is_numbers(cells: pd.Series) -> bool:
    try:
        cells.astype(float)
    except ValueError:
        return False
    return True
