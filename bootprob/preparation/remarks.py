"""What is often a mistake in a table: too good a column, copies, ids, drift, too few rows.

Nothing here is an error by itself. Chance alone says each of these of a table of independent rows
less than once in a hundred thousand times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import hypergeom, rankdata

from bootprob.runtime.arrays import Bools, Floats
from bootprob.runtime.counted import counted
from bootprob.runtime.groups import Groups, one_of_each

__all__ = ["remarks_of_grid", "remarks_of_table"]

_LEAST_ROWS = 10  # of a class
_ENOUGH, _ENOUGH_OF_CLASS = 40, 10  # rows by which a column cannot give the target by chance
_WRONG = 0.01  # of the rarest class, that a column which gives the target may get wrong
_MOST_LEVELS = 20  # of numbers that are looked at as levels
_LEAST_IDS, _ROWS_OF_ID = 20, 20
_CHANCE = 1e-6
_DRIFT = 0.1  # rank correlation
_ALIKE = 1 - 1e-9  # correlation of columns that say the same
_COMPARED = 2_000  # columns, and rows by which those that may be alike are found
_LOOKED_AT = 50_000  # rows, evenly spread, of those of a large table
_EDGE = 0.5  # of the weight
_NAMED = 5

Codes = NDArray[np.intp]


def remarks_of_table(
    X: Floats,
    codes: Codes,
    used: Bools,
    columns: Mapping[str, slice],
    groups: Groups | None = None,
    blocks: Groups | None = None,
    dates: Collection[str] = (),
) -> list[str]:
    """Look at a table before anything is learned from it.

    Parameters
    ----------
    X : ndarray, shape (n, p)
        The matrix that machines see.
    codes : ndarray of int, shape (n,)
        Classes, numbered from 0.
    used : ndarray of bool, shape (n,)
        Rows that count.
    columns : mapping of str to slice
        How messages call each column of the table, and its columns of the matrix: several, of 0
        and 1, where it is one of levels. Empty where the matrix is of no columns, but a kernel's.
    groups : ndarray of int, shape (n,), optional
        Of rows that belong together; one row of each tells what columns have to do with the target.
    blocks : ndarray of int, shape (n,), optional
        Of neighbours, where rows are in order of time: what hangs together moves with the number of
        the row, and is drift only where single rows of all blocks do so, too.
    dates : collection of str, optional
        Columns of days, which are to go on with the rows.

    Returns
    -------
    list of str
        A sentence or two each.
    """
    n_classes, found = int(codes.max()) + 1, []
    smallest = min(_number(used & (codes == k), groups) for k in range(n_classes))
    if smallest < _LEAST_ROWS:
        members = counted(smallest, "row" if groups is None else "group")
        found.append(
            f"The smallest class has {members}: all that is said of it rests on "
            f"{'that' if smallest == 1 else 'these'}."
        )
    if not columns:
        return found
    units = one_of_each(used, groups)
    rows, codes = (X, codes) if units.all() else (X[units], codes[units])
    if rows.shape[1] > len(rows):
        members = "rows" if groups is None else "groups"
        found.append(
            f"There are more columns ({rows.shape[1]:,}) than {members} ({len(rows):,}): "
            "probabilities are vague, and their intervals may cover less often than they say."
        )
    every = X if used.all() else X[used]  # what columns say is no matter of chance
    told = {name: _levels(every[:, place]) for name, place in columns.items()}
    constant = [name for name, values in told.items() if (values == values[0]).all()]
    if constant:
        found.append(f"{_named(constant)} the same everywhere, which says nothing of a row.")
    different = {name: values for name, values in told.items() if name not in constant}
    same = _saying_the_same(different, columns)
    if groups is not None:
        different = {name: values[units[used]] for name, values in different.items()}
    some = np.arange(len(rows))
    if len(rows) > _LOOKED_AT:
        some = np.sort(np.random.default_rng(0).choice(len(rows), _LOOKED_AT, replace=False))
    fewer = {name: values[some] for name, values in different.items()}
    sizes = np.bincount(codes[some], minlength=n_classes)
    found += _giving_the_target(fewer, columns, codes[some], sizes)
    found += same
    if groups is None:
        found += _ids(different, columns, codes)
    numbers = [
        name
        for name, values in different.items()
        if not _is_of_levels(columns[name]) and name not in dates and _is_counted(values)
    ]
    if numbers:
        found.append(
            f"{_named(numbers)} counted from row to row: a number of the row, which a new row "
            "shares with none. Leave it out (--drop)."
        )
    others = {
        name: place for name, place in columns.items() if name not in numbers and name not in dates
    }
    if blocks is not None:
        some = np.flatnonzero(one_of_each(np.ones(len(rows), dtype=bool), blocks[units]))
    return [*found, *_drifting(rows[some], codes[some], others)]


def remarks_of_grid(C: Floats, gamma: Floats | None, weight: Floats, grid: Floats) -> list[str]:
    """Say where most of the weight lies at an end of a grid.

    Parameters
    ----------
    C, gamma : ndarray, shape (R,)
        Of the models; None where a kernel has no γ, or chooses it.
    weight : ndarray, shape (R,)
        Of the ensemble.
    grid : ndarray
        All values of C that might have been trained.
    """
    found = []
    values = (
        ("C", C, np.unique(grid)),
        ("gamma", gamma, np.unique([] if gamma is None else gamma)),
    )
    for name, of_models, every in values:
        if of_models is None or len(every) < 3:
            continue
        for end, which in ((every[0], "smallest"), (every[-1], "largest")):
            share = weight[np.isclose(of_models, end)].sum()
            if share > _EDGE:
                found.append(
                    f"The {which} value of {name}, {end:.3g}, has {share:.0%} of the weight: "
                    f"better ones may lie beyond the grid."
                )
    return found


def _number(rows: Bools, groups: Groups | None) -> int:
    """Rows, or groups that have some of them."""
    return int(rows.sum()) if groups is None else len(np.unique(groups[rows]))


def _levels(values: Floats) -> Floats:
    """A column as numbers: of dummies the position of the level, -1 for none."""
    if values.shape[1] == 1:
        return values[:, 0]
    return np.where(values.any(axis=1), values.argmax(axis=1), -1).astype(np.float64)


def _is_counted(values: Floats) -> bool:
    """Whether it goes up, or down, by the same step from each row to the next."""
    steps = np.diff(values)
    return len(values) > _LEAST_ROWS and bool((steps == steps[0]).all()) and steps[0] != 0


def _is_of_levels(place: slice) -> bool:
    return place.stop - place.start > 1


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Column {shown} is" if len(names) == 1 else f"Columns {shown}{more} are"


def _giving_the_target(
    told: Mapping[str, Floats], columns: Mapping[str, slice], codes: Codes, sizes: Codes
) -> Iterable[str]:
    """Columns from which alone the class follows."""
    if len(codes) < _ENOUGH or sizes.min() < _ENOUGH_OF_CLASS:
        return
    if comb(len(codes), int(sizes.min())) < 2 * len(told) / _CHANCE:  # of so many one may by chance
        return
    most = int(_WRONG * sizes.min())
    for name, values in told.items():
        distinct, levels = np.unique(values, return_inverse=True)
        wrong = len(codes)
        if _is_of_levels(columns[name]) or len(distinct) <= _MOST_LEVELS:
            wrong = _wrong_by_levels(levels, codes, len(distinct), len(sizes))
        if len(sizes) == 2 and not _is_of_levels(columns[name]):
            wrong = min(wrong, _wrong_by_threshold(levels, codes, len(distinct)))
        if wrong <= most:
            yield (
                f"Column {name} alone gives the target: it puts {wrong} of {len(codes):,} rows on "
                "the wrong side. If it is known only with the outcome, or after it, leave it out."
            )


def _wrong_by_levels(levels: Codes, codes: Codes, n_levels: int, n_classes: int) -> int:
    """Rows that the other rows of their level would put into another class, or into none."""
    table = np.zeros((n_levels, n_classes), dtype=np.int64)
    np.add.at(table, (levels, codes), 1)
    others = table[levels].copy()
    every = np.arange(len(codes))
    others[every, codes] -= 1
    own = others[every, codes]
    others[every, codes] = -1
    return int((own <= np.maximum(others.max(axis=1), 0)).sum())


def _wrong_by_threshold(levels: Codes, codes: Codes, n_levels: int) -> int:
    """Rows on the wrong side of the best threshold."""
    positive = np.bincount(levels, weights=codes, minlength=n_levels)
    size = np.bincount(levels, minlength=n_levels)
    below = np.cumsum(positive) + (size.sum() - positive.sum() - np.cumsum(size - positive))
    return int(min(below.min(), (len(codes) - below).min()))


def _saying_the_same(told: Mapping[str, Floats], columns: Mapping[str, slice]) -> Iterable[str]:
    """Columns that repeat others: numbers in another unit, levels under other names."""
    numbers = [name for name in told if not _is_of_levels(columns[name])]
    repeated: dict[str, str] = {}
    if 1 < len(numbers) <= _COMPARED:
        step = -(-len(told[numbers[0]]) // _COMPARED)
        some = _standardized(np.stack([told[name][::step] for name in numbers]))
        near = np.abs(some @ some.T) / some.shape[1] > _ALIKE
        for i, j in np.argwhere(np.triu(near, 1)).tolist():
            of, name = numbers[i], numbers[j]
            if of not in repeated and name not in repeated:
                both = _standardized(np.stack([told[of], told[name]]))
                if np.abs(both[0] @ both[1]) / both.shape[1] > _ALIKE:
                    repeated[name] = of
    known: dict[bytes, str] = {}
    for name in (each for each in told if _is_of_levels(columns[each])):
        _, first, levels = np.unique(told[name], return_index=True, return_inverse=True)
        key = np.argsort(np.argsort(first))[levels].astype(np.int64).tobytes()
        if known.setdefault(key, name) != name:
            repeated[name] = known[key]
    if repeated:
        shown = ", ".join(
            f"{name} says what {of} says" for name, of in list(repeated.items())[:_NAMED]
        )
        more = f", and {len(repeated) - _NAMED} more" if len(repeated) > _NAMED else ""
        yield f"Columns repeat others: {shown}{more}. One of them is enough."


def _standardized(values: Floats) -> Floats:
    """Rows of mean 0 and variance 1, or 0 where they are constant."""
    apart = values - values.mean(axis=1, keepdims=True)
    largest = np.abs(apart).max(axis=1, keepdims=True)
    apart /= np.where(largest > 0, largest, 1)
    scale = np.sqrt((apart**2).mean(axis=1, keepdims=True))
    return apart / np.where(scale > 0, scale, 1)


def _ids(told: Mapping[str, Floats], columns: Mapping[str, slice], codes: Codes) -> Iterable[str]:
    """Columns whose values come in few rows each, which have their class in common."""
    for name, values in told.items():
        if not (values == np.rint(values)).all():
            continue
        order = np.argsort(values, kind="stable")
        ordered, classes = values[order], codes[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=np.nan))
        n_values, most = len(starts), np.diff(starts, append=len(codes)).max()
        if not max(_LEAST_IDS, len(codes) / _ROWS_OF_ID) <= n_values <= len(codes) / 2:
            continue
        if most > len(codes) / _ROWS_OF_ID:  # a zero that stands for many things
            continue
        agree, same = classes[1:] == classes[:-1], np.diff(ordered) == 0
        within, between = agree[same].mean(), agree[~same].mean()
        # Of all pairs in order that disagree, this many or more between values, by chance.
        disagree, beyond = int((~agree).sum()), int((~agree[~same]).sum())
        chance = hypergeom.sf(beyond - 1, len(agree), disagree, int((~same).sum()))
        if chance < _CHANCE / len(told):
            yield (
                f"Column {name} has {n_values:,} values in {len(codes):,} rows, and rows with the "
                f"same one are of the same class in {within:.0%} of pairs (others in "
                f"{between:.0%}). If it says who or what a row is of, give it as groups."
            )


def _drifting(rows: Floats, codes: Codes, columns: Mapping[str, slice]) -> Iterable[str]:
    """Columns that move with the number of the row, within the classes."""
    sizes = np.bincount(codes)
    of_classes = [np.flatnonzero(codes == k) for k in np.flatnonzero(sizes >= _LEAST_ROWS)]
    if not of_classes:
        return
    z, number = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for members in of_classes:
        correlation = _with_position(rows[members])
        z += np.sqrt(len(members) - 1) * correlation
        number += len(members) * correlation
    z, correlation = np.abs(z) / np.sqrt(len(of_classes)), np.abs(number) / sizes.sum()
    least = -ndtri(_CHANCE / (2 * rows.shape[1]))
    drifting = {
        name: correlation[place].max()
        for name, place in columns.items()
        if (correlation[place][z[place] > least] > _DRIFT).any()
    }
    if drifting:
        shown = ", ".join(f"{name} ({each:.2f})" for name, each in list(drifting.items())[:_NAMED])
        more = f" and {len(drifting) - _NAMED} more" if len(drifting) > _NAMED else ""
        yield (
            f"First and last rows differ in {shown}{more} (rank correlation with the number of the "
            "row). Where rows are in order of time, later ones may differ from all of these; rows "
            "of one subject want groups; a number of rows is no feature."
        )


def _with_position(rows: Floats) -> Floats:
    """Rank correlation of each column with the number of the row; 0 for constant ones."""
    position = np.arange(len(rows)) - (len(rows) - 1) / 2
    ranks: NDArray[Any] = rankdata(rows, axis=0)
    ranks -= ranks.mean(axis=0)
    scale = np.sqrt((ranks**2).sum(axis=0) * (position**2).sum())
    return np.asarray(position @ ranks / np.where(scale > 0, scale, np.inf))
