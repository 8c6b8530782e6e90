"""Whether a table holds copies of rows, which no method that takes rows for independent survives.

Rows may well be equal by chance: of columns with few values many are. Copies differ from those in
that nothing is *nearly* equal. Let two rows agree in all columns but one; if they agree in that one
too as often as it takes the same value anywhere in the table, then equal rows are what the columns
lead to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["EqualRows", "equal_rows", "remark_of_copies"]

Hashes = NDArray[np.uint64]

_FEW = 12  # values of dummies and of most scales; such columns stand or fall together
_COLUMNS = 32  # that are left out in turn; of more, no two rows are equal by chance
_BY_DEPENDENCE = 3.0  # what hangs together is equal by chance more often than is reckoned here
_PAIRS_A_ROW = 0.05  # beyond chance: variances are a tenth larger than they seem
_PAIRS = 5


@dataclass(frozen=True)
class EqualRows:
    """Rows of a table that are equal, labels included.

    Attributes
    ----------
    n_rows : int
        Rows that have an equal.
    n_distinct : int
        Rows that differ, among all rows.
    pairs : int
        Pairs of equal rows, but for those of the most frequent row: such as "nothing bought", which
        need not be a copy.
    expected : float
        Pairs of equal rows that the columns lead to by themselves, about.
    """

    n_rows: int
    n_distinct: int
    pairs: int
    expected: float


def equal_rows(X: Floats, codes: NDArray[np.integer]) -> EqualRows:
    """Count rows that are equal, and how many would be by chance.

    Of all pairs of rows that agree in every column but j, a share ``c_j`` agrees in j as well if j
    does not hang on the others, where ``c_j`` is how often two rows of the table agree in j. So M
    pairs that differ in j alone lead to ``M c_j / (1 − c_j)`` that are equal; copies lead to equal
    ones without any that differ in one column alone. Columns of up to twelve values and the label
    count as one, because a category is several dummies.

    Time and memory are those of sorting n numbers, for each of up to 32 columns where rows are
    equal, else once.

    Parameters
    ----------
    X : ndarray, shape (n, p)
        Finite numbers.
    codes : ndarray of int, shape (n,)
        Classes.

    Returns
    -------
    EqualRows
        With ``expected`` infinite where nothing can be said: each column has few values, or there
        is one column alone.
    """
    label = _mixed(codes.astype(np.float64), X.shape[1])
    whole = label.copy()
    for rows in row_blocks(*X.shape):
        for j, values in enumerate(X[rows].T):
            whole[rows] += _mixed(values, j)
    _, first, times = np.unique(whole, return_index=True, return_counts=True)
    pairs, n_rows = _pairs(times), int(times[times > 1].sum())
    unlike_most = pairs - _pairs(times.max(keepdims=True))
    found = EqualRows(n_rows, len(times), unlike_most, 0.0)
    if not _are_many(found, len(X)):
        return found
    few, n_few, others = label, 0, list[int]()
    for j, values in enumerate(X.T):
        if not _has_few(values):
            others.append(j)
        elif values.min() < values.max():
            few, n_few = few + _mixed(values, j), n_few + 1
    if not others or n_few + len(others) < 2:
        return replace(found, expected=np.inf)
    # Copies make values look frequent, so these are counted in rows that differ.
    expected = _led_to(whole, pairs, few, _share(few[first]))
    for j in others[:_COLUMNS]:
        part = _mixed(X[:, j], j)
        expected += _led_to(whole, pairs, part, _share(part[first]))
    return replace(found, expected=expected)


def remark_of_copies(
    X: Floats, codes: NDArray[np.integer], weight: Floats, groups: Groups | None = None
) -> str | None:
    """Say so where many rows are equal that the columns would not make equal.

    That is where variances are at least a tenth larger than they seem, on account of copies.

    Parameters
    ----------
    X : ndarray, shape (n, p)
    codes : ndarray of int, shape (n,)
        Classes.
    weight : ndarray, shape (n,)
        Row weights; rows of weight 0 are not looked at.
    groups : ndarray of int, shape (n,), optional
        Of rows that are left out together; of equal rows of a group one is looked at.
    """
    used = weight > 0
    if groups is not None:
        hashes = sum(
            (_mixed(values, j) for j, values in enumerate(X.T)),
            _mixed(codes.astype(np.float64), X.shape[1]),
        )
        rows = np.flatnonzero(used)
        different = np.stack([hashes[rows], groups[rows].astype(np.uint64)])
        used = np.zeros(len(X), dtype=bool)
        used[rows[np.unique(different, axis=1, return_index=True)[1]]] = True
    found = equal_rows(X, codes) if used.all() else equal_rows(X[used], codes[used])
    n = int(used.sum())
    if not _are_many(found, n):
        return None
    return (
        f"{found.n_rows} of {n} rows equal another in all columns and in their class; only "
        f"{found.n_distinct} rows differ, and chance would make few of these columns' rows equal. "
        "If they are copies (a table that was oversampled or joined, several rows of one subject), "
        "then the rows left out have their copies in the bootstrap sample: out-of-bag numbers are "
        "too good, intervals too narrow, and stated rates are not kept. Fit each row once "
        "(class_weight and sample_weight do what repetition is meant to do), and give rows of one "
        "subject that subject's groups."
    )


def _are_many(found: EqualRows, n: int) -> bool:
    beyond = found.pairs - _BY_DEPENDENCE * found.expected
    return beyond >= max(_PAIRS, _PAIRS_A_ROW * n)


def _led_to(whole: Hashes, pairs: int, part: Hashes, share: float) -> float:
    """Pairs that agree in a part by chance, among those that agree in all the rest."""
    if share == 1:  # what is the same in all rows says nothing
        return 0.0
    return (_pairs_of(whole - part) - pairs) * share / (1 - share)


def _share(part: Hashes) -> float:
    """Share of all pairs that agree in a part."""
    return _pairs_of(part) / max(1, len(part) * (len(part) - 1) // 2)


def _has_few(values: Floats) -> bool:
    """Whether a column has no more values than a dummy."""
    left = values
    for _ in range(_FEW):
        if len(left) == 0:
            return True
        left = left[left != left[0]]
    return len(left) == 0


def _pairs_of(hashes: Hashes) -> int:
    return _pairs(np.unique(hashes, return_counts=True)[1])


def _pairs(times: NDArray[np.integer]) -> int:
    return int((times * (times - 1) // 2).sum())


def _mixed(values: Floats, column: int) -> Hashes:
    """Hash of each number of a column, by SplitMix64; the sum over columns stands for a row."""
    salt = np.uint64((column + 1) * 0x9E3779B97F4A7C15 % 2**64)
    bits = (values + 0.0).view(np.uint64) + salt  # a copy, in which −0 is 0
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
