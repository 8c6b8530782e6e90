"""A batch of rows turned into the matrix that machines take, with the rows they cannot take.

`TablePreprocessor.transform` refuses a table as a whole. Here every cell that it would refuse is
marked and stands in the matrix as if it were missing; for all other rows the matrix is that of
`transform`. Levels are looked up once for each distinct value, not for each row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Bools, Floats
from bootprob.tables.columns import LARGEST, Kind, as_levels, as_numbers, column_kind
from bootprob.tables.preprocessing import TablePreprocessor

__all__ = ["Preparation", "PreparedRows", "numbers_and_bad"]


_UNREADABLE, _INFINITE = "not a number", "infinite"
_TOO_LARGE, _TOO_FAR = "too large", "too far from the training rows"
_FARTHEST = 1e100  # standard deviations, as in bootprob.ensemble.scoring.rows


@dataclass(frozen=True)
class PreparedRows:
    """Rows as the machines take them.

    Attributes
    ----------
    X : ndarray, shape (m, features)
        What `TablePreprocessor.transform` makes of them; bad cells count as missing.
    bad : dict of str to (dict of str to ndarray of bool, shape (m,))
        By column and by reason, the rows that cannot be used.
    unknown : dict of str to dict of str to int
        By column, the levels that the model does not know and their numbers of rows.
    thresholds : ndarray, shape (m,), or None
        Probability above which each row is decided positive; None for several classes.
    """

    X: Floats
    bad: dict[str, dict[str, Bools]]
    unknown: dict[str, dict[str, int]]
    thresholds: Floats | None = None

    @property
    def bad_rows(self) -> Bools | None:
        """Rows with a bad cell, shape (m,); None if there are none."""
        masks = [mask for reasons in self.bad.values() for mask in reasons.values()]
        return np.logical_or.reduce(masks) if masks else None

    def what_is_bad(self, row: int) -> dict[str, str]:
        """By column, what is wrong with a row."""
        return {
            name: reason
            for name, reasons in self.bad.items()
            for reason, mask in reasons.items()
            if mask[row]
        }


class Preparation:
    """The preprocessing of a fitted table model, for batches.

    Parameters
    ----------
    preprocessor : TablePreprocessor
        Fitted.
    center, scale : ndarray, shape (features,)
        What standardises the matrix; the machines refuse numbers further than 1e100 scales from
        the centre, whose squares would overflow.
    """

    def __init__(self, preprocessor: TablePreprocessor, center: Floats, scale: Floats) -> None:
        fills, levels, kinds = preprocessor.fills_, preprocessor.levels_, preprocessor.kinds_
        self.columns: tuple[str, ...] = tuple(kinds)
        self._numbers = {name: float(fills[name]) for name, k in kinds.items() if k == "number"}
        self._kinds: dict[str, Kind] = {name: kinds[name] for name in levels}
        self._positions = {
            name: {level: at for at, level in enumerate(known)} for name, known in levels.items()
        }
        self._fills = {name: self._positions[name][str(fills[name])] for name in levels}
        self._n_features = len(self._numbers) + sum(map(len, levels.values()))
        self._center, self._scale = center, scale

    @property
    def categories(self) -> tuple[str, ...]:
        """Columns in use that hold categories."""
        return tuple(self._positions)

    def of(self, batch: pa.RecordBatch) -> PreparedRows:
        """Prepare a batch that has all columns in use.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            m rows.

        Raises
        ------
        DataError
            A column holds dates, complex or nested values.
        """
        m, done = batch.num_rows, 0
        X = np.zeros((m, self._n_features))
        bad: dict[str, dict[str, Bools]] = {}
        unknown: dict[str, dict[str, int]] = {}
        for name, fill in self._numbers.items():
            values, masks = self._numbers_of(batch[name].to_pandas(), name, done)
            X[:, done] = values
            X[np.isnan(values), done] = fill
            done += 1
            if masks:
                bad[name] = masks
        rows = np.arange(m)
        for name, positions in self._positions.items():
            codes, found = _factorized(batch[name], name)
            texts = as_levels(pd.Series(found, dtype=object), self._kinds[name])
            # A missing value has the code −1, which picks the level that fills gaps, at the end.
            missing = self._fills[name]
            places = [missing if text is np.nan else positions.get(text, -1) for text in texts]
            where = np.array([*places, missing])[codes]
            known = where >= 0
            if known.all():
                X[rows, done + where] = 1.0
            else:
                X[rows[known], done + where[known]] = 1.0
                counts = np.bincount(codes[~known], minlength=len(texts))
                unknown[name] = _summed(texts, counts)
            done += len(positions)
        return PreparedRows(X, bad, unknown)

    def _numbers_of(
        self, column: pd.Series, name: str, feature: int
    ) -> tuple[Floats, dict[str, Bools]]:
        """Values of a column, NaN where they are missing or bad, and the bad ones by reason."""
        values, masks = numbers_and_bad(column, name)
        center, scale = self._center[feature], self._scale[feature]
        lowest = np.fmin.reduce(values, initial=np.inf)
        highest = np.fmax.reduce(values, initial=-np.inf)
        if max(center - lowest, highest - center) / scale > _FARTHEST:
            masks[_TOO_FAR] = np.abs(values - center) / scale > _FARTHEST
            values = np.where(masks[_TOO_FAR], np.nan, values)
        return values, masks


def numbers_and_bad(column: pd.Series, name: str) -> tuple[Floats, dict[str, Bools]]:
    """Values of a column of numbers, NaN where they are missing or bad, and the bad by reason.

    Parameters
    ----------
    column : Series, shape (m,)
    name : str
        Its name, for the error message.

    Raises
    ------
    DataError
        The column holds dates, complex or nested values.
    """
    try:
        return as_numbers(column, name), {}
    except DataError:
        masks = dict(_bad_numbers(column, name))
        if not masks:
            raise
    any_bad = np.logical_or.reduce(list(masks.values()))
    return as_numbers(column.astype(object).mask(any_bad, None), name), masks


def _bad_numbers(column: pd.Series, name: str) -> Iterator[tuple[str, Bools]]:
    """What `as_numbers` refuses in single rows, by reason."""
    if column_kind(column, name) == "text":
        texts = pd.Series(as_levels(column, "text"), dtype=object)
        parsed = pd.to_numeric(texts, errors="coerce")
        unreadable = (parsed.isna() & texts.notna()).to_numpy()
        if unreadable.any():
            yield _UNREADABLE, unreadable
        values = parsed.to_numpy(dtype=np.float64)
    else:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.isinf(values)
    large = (np.abs(values) > LARGEST) & ~infinite
    for reason, mask in ((_INFINITE, infinite), (_TOO_LARGE, large)):
        if mask.any():
            yield reason, mask


def _factorized(column: pa.Array, name: str) -> tuple[NDArray[np.integer], pd.Index | NDArray]:
    """Position of each row's value among the distinct values, −1 where it is missing."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.dictionary_encode()
    elif pa.types.is_dictionary(column.type) and column.dictionary.null_count:
        column = column.dictionary_decode().dictionary_encode()
    series = column.to_pandas()
    column_kind(series, name)  # refuses dates and nested values
    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.cat.codes.to_numpy(), series.cat.categories
    return pd.factorize(series.astype(object))


def _summed(texts: NDArray, counts: NDArray[np.integer]) -> dict[str, int]:
    """Rows of each unknown level; values that differ only by blanks are one level."""
    found: dict[str, int] = {}
    for at in np.flatnonzero(counts):
        found[texts[at]] = found.get(texts[at], 0) + int(counts[at])
    return found
