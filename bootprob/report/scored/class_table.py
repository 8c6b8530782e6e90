"""Read a table that a model of several classes scored, batch by batch, and count its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bootprob.encoding.columns import level_text
from bootprob.exceptions import DataError
from bootprob.report.scored.counts import EDGES, count_in
from bootprob.report.scored.drift import Reference
from bootprob.report.scored.table import ScoredTable, number_text, numbers_of
from bootprob.runtime.arrays import Floats
from bootprob.tables.csv_safety import neutralised

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ClassBatch", "ClassCounts", "ClassTable"]

_OF_A_CLASS = ("p", "low", "high")
_OFF = 1e-3  # of a sum of probabilities that were rounded
_N_FINE = len(EDGES) - 1


@dataclass(frozen=True)
class ClassBatch:
    """Some consecutive rows; rows without probabilities are left out.

    Attributes
    ----------
    n_rows : int
        Rows read, with those left out.
    row : ndarray of int, shape (m,)
        Number of each row in the table, from 1.
    probability, lower, upper : ndarray, shape (m, K)
    label : ndarray of int, shape (m,)
        Position of the class that each row is given.
    """

    n_rows: int
    row: NDArray[np.int64]
    probability: Floats
    lower: Floats
    upper: Floats
    label: NDArray[np.int64]


class ClassTable:
    """A table with the columns ``p_X``, ``low_X`` and ``high_X`` of each class X, and ``label``.

    Parameters
    ----------
    source : ScoredTable
        `of_several_classes`.

    Attributes
    ----------
    classes : list of str
        In the order of their columns.

    Raises
    ------
    DataError
        A class lacks columns, or there are fewer than three.
    """

    def __init__(self, source: ScoredTable) -> None:
        self.source, names = source, set(source.names)
        self.classes = [name[2:] for name in source.names if name.startswith("p_")]
        lacks = [name for name in self._columns() if name not in names]
        if lacks or len(self.classes) < 3:
            what = f"lacks {', '.join(map(repr, lacks))}" if lacks else "has fewer than three"
            raise DataError(
                f"{source.path} is no table that bootprob predict wrote for several classes: of "
                f"p_X, low_X and high_X for each class X it {what}."
            )
        self._positions = {
            text: k for k, name in enumerate(self.classes) for text in (neutralised(name), name)
        }

    def batches(self) -> Iterator[ClassBatch]:
        """Read the rows, in order; memory does not depend on how many there are.

        Raises
        ------
        DataError
            The table cannot be read, or a row holds what no scored row can; the message names it.
        """
        path, numbers = self.source.path, self._columns()
        for batch, first in self.source.read([*numbers, "label"], numbers):
            columns = (numbers_of(batch, name, path) for name in numbers)
            values = np.stack(list(columns), axis=1).reshape(batch.num_rows, -1, 3)
            p, lower, upper = np.moveaxis(values, 2, 0)
            known = np.asarray(~np.isnan(p).all(axis=1))
            label = self._labels(batch.column("label"))

            for wrong, what in (
                (~((p >= 0) & (p <= 1)), "a probability does not lie between 0 and 1."),
                (np.abs(p.sum(axis=1) - 1) > _OFF, "the probabilities do not add up to 1."),
                (
                    ~(lower <= upper),
                    "the interval of a probability is missing or its ends are swapped.",
                ),
                ((upper < 0) | (lower > 1), "an interval lies beyond 0 and 1."),
                (label < 0, "the label is none of the classes, which the columns name."),
            ):
                of_rows = known & np.reshape(wrong, (batch.num_rows, -1)).any(axis=1)
                if of_rows.any():
                    row = first + int(of_rows.argmax()) + 1
                    raise DataError(f"{path}, row {row}: {what}")
            yield ClassBatch(
                n_rows=batch.num_rows,
                row=first + 1 + np.flatnonzero(known),
                probability=p[known],
                lower=lower[known].clip(0, 1),
                upper=upper[known].clip(0, 1),
                label=label[known],
            )

    def _columns(self) -> list[str]:
        return [f"{what}_{name}" for name in self.classes for what in _OF_A_CLASS]

    def _labels(self, column: pa.Array) -> NDArray[np.int64]:
        """Position of each row's label, −1 where it is none of the classes."""
        import pyarrow as pa

        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        position = [-1]
        for value in column.dictionary.to_pylist():
            text = "" if value is None else level_text(value)
            position.append(self._positions.get(text, self._positions.get(number_text(text), -1)))
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return np.array(position)[codes + 1]


class ClassCounts:
    """Counts of such a table; `add` takes one batch after the other.

    Parameters
    ----------
    K : int
    references : sequence of Reference
        For each class rising values among which its probabilities are counted; or none.

    Attributes
    ----------
    n_rows, n_without : int
        All rows, and those without probabilities.
    by_label : ndarray of int, shape (K,)
        Rows by the class that they are given.
    sums : ndarray, shape (3, K)
        Sums of the probabilities, and of the lower and upper ends of their intervals.
    width_sums : ndarray, shape (K,)
    probabilities, widths, own_widths : ndarray of int, shape (K, n_bins)
        In the bins of `EDGES`; the last of the rows that are given the class.
    cells : list of ndarray of int
        As the cells of `bootprob.report.scored.counts.ScoredCounts`, for each reference.
    n_undecided : int
        Rows of which the interval of the class that they are given reaches down to that of another.
    n_otherwise : int
        Rows that are given another class than the most probable one.
    """

    def __init__(self, K: int, references: Sequence[Reference] = ()) -> None:
        self.n_rows = self.n_without = self.n_undecided = self.n_otherwise = 0
        self.by_label = np.zeros(K, dtype=np.int64)
        self.sums, self.width_sums = np.zeros((3, K)), np.zeros(K)
        self.probabilities, self.widths, self.own_widths = np.zeros((3, K, _N_FINE), dtype=np.int64)
        self.references = references
        self.cells = [np.zeros(2 * len(each.values) + 1, dtype=np.int64) for each in references]

    @property
    def n_scored(self) -> int:
        """Rows with probabilities."""
        return self.n_rows - self.n_without

    def add(self, batch: ClassBatch) -> None:
        """Count the rows of one batch."""
        p, label, K = batch.probability, batch.label, len(self.by_label)
        rows, width = np.arange(len(p)), batch.upper - batch.lower
        self.n_rows += batch.n_rows
        self.n_without += batch.n_rows - len(p)
        self.by_label += np.bincount(label, minlength=K)
        self.sums += [each.sum(axis=0) for each in (p, batch.lower, batch.upper)]
        self.width_sums += width.sum(axis=0)
        for k in range(K):
            self.probabilities[k] += np.bincount(count_in(p[:, k]), minlength=_N_FINE)
            bins = count_in(width[:, k])
            self.widths[k] += np.bincount(bins, minlength=_N_FINE)
            self.own_widths[k] += np.bincount(bins[label == k], minlength=_N_FINE)
        for k, reference in enumerate(self.references):
            left, right = (
                np.searchsorted(reference.values, p[:, k], side=side) for side in ("left", "right")
            )
            self.cells[k] += np.bincount(left + right, minlength=len(self.cells[k]))
        others = batch.upper.copy()
        others[rows, label] = -np.inf
        self.n_undecided += int((others.max(axis=1) >= batch.lower[rows, label]).sum())
        self.n_otherwise += int((p.max(axis=1) > p[rows, label]).sum())
