"""Rows of arrays: that every number is one, said with the place of the first that is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import DataError

__all__ = ["refuse_gaps", "refuse_other_numbers", "text_refused"]

_OF_TEXT = "could not convert string", "bytes/strings"  # as numpy and scikit-learn say it


@contextmanager
def text_refused(what: str, advice: str) -> Iterator[None]:
    """Within, arrays are checked; a DataError for text in one says what has it, and what to do."""
    try:
        yield
    except ValueError as error:
        if not any(each in str(error) for each in _OF_TEXT):
            raise
        raise DataError(f"{what} ({error}); {advice}.") from None


def refuse_other_numbers(X: Any) -> None:
    """Raise a DataError for an array, or a column of a data frame, of complex numbers or times."""
    dtypes = [X.dtype] if hasattr(X, "dtype") else getattr(X, "dtypes", ())
    kinds = {getattr(each, "kind", None) for each in dtypes}
    if kinds & {"m", "M"}:
        raise DataError(
            "X holds times or spans of time, whose unit would count; turn them into numbers, or "
            "fit a data frame with its dates named (a TablePreprocessor)."
        )
    if "c" in kinds:
        raise DataError(
            "Complex data not supported: X is of complex numbers; give their real and imaginary "
            "parts as columns."
        )


def refuse_gaps(
    X: NDArray[np.floating[Any]], names: Any = None, *, frames_filled: bool = False
) -> None:
    """Raise a DataError for NaN and infinities: how many rows have some, and where the first is.

    Parameters
    ----------
    X : ndarray, shape (m, p)
    names : sequence of str, shape (p,), optional
        Of the columns; None counts them.
    frames_filled : bool, default False
        Whether gaps of a data frame would be filled here.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = X.sum()  # needs no array of answers, unlike a look at every number
    if np.isfinite(total):
        return
    wrong = ~np.isfinite(X)
    rows = np.flatnonzero(wrong.any(axis=1))
    if not len(rows):
        return
    row, column = rows[0], int(wrong[rows[0]].argmax())
    what, advice = "infinities", "put them right"
    if np.isnan(X[row, column]):
        what, advice = "gaps (NaN)", "impute them"
        advice += ", give a data frame, whose gaps are filled" if frames_filled else ""
    where = f"row {row}, column {column} (counted from 0)"
    if names is not None:
        where = f"row {row} (counted from 0), column {names[column]!r}"
    raise DataError(
        f"X has {what} in {len(rows):,} of {len(X):,} rows, the first in {where}; {advice}, or "
        "leave these rows out."
    )
