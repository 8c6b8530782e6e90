"""Drift of each column of a table against what a model keeps of the one it was fitted on.

The model does not keep its training table. It keeps the mean and the standard deviation of every
column, and with them the share of every level; that is what a table is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from bootprob.encoding.columns import MISSING, BadCells
from bootprob.encoding.names import with_text_names
from bootprob.exceptions import DataError
from bootprob.report.scored.drift import population_stability
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    from bootprob.encoding.preprocessing import TablePreprocessor
    from bootprob.tables.model import TableModel

__all__ = ["ColumnDrift", "column_drift"]


_FEW = 5  # rows to be expected of a level; rarer ones are put together, as for any chi² test


@dataclass(frozen=True)
class ColumnDrift:
    """How far a column has moved since the fit.

    Attributes
    ----------
    column : str
    kind : str
        "number", "boolean", "text" or "date".
    measure : str
        "standardised mean difference" of numbers and of days since the first date,
        "population stability index" of levels.
    value : float or None
        None for levels too rare to compare.
    by_chance_upper : float or None
        Where no column has moved, all of them stay below theirs with the stated confidence
        (Bonferroni); of a mean difference, its absolute value does.
    moved : bool
        Whether `value` is beyond it.
    spread_ratio : float or None
        Standard deviation over that of the rows trained on; of numbers.
    n_missing : int
        Empty cells; they count as what the model fills in for them, in both tables.
    unknown : dict of str to int
        Levels that the model does not know, with their rows: the five most frequent.
    n_unknown : int
        Rows with such a level.
    """

    column: str
    kind: str
    measure: str
    value: float | None
    by_chance_upper: float | None
    moved: bool
    spread_ratio: float | None
    n_missing: int
    unknown: dict[str, int]
    n_unknown: int


def column_drift(
    model: TableModel, frames: Iterable[pd.DataFrame], level: float = 0.95
) -> tuple[int, list[ColumnDrift]]:
    """Compare the columns of a table with those that a model was fitted on.

    Parameters
    ----------
    model : TableModel
        Fitted.
    frames : iterable of DataFrame
        The table, in one piece or many; only one is held at a time.
    level : float, default 0.95
        Confidence that no column is said to have moved where none has.

    Returns
    -------
    n_rows : int
    columns : list of ColumnDrift
        Those that moved most, beside chance, first.

    Raises
    ------
    DataError
        Columns are missing or hold values that cannot be used, such as gaps where nothing is known
        that fills them; or there is no row.
    """
    counts = _Counts(model.preprocessor, *_known(model))
    for frame in frames:
        counts.add(frame)
    if counts.n_rows == 0:
        raise DataError("The table has no rows.")
    weight = model.svc.sample_weight_
    n_known = float(weight.sum() ** 2 / np.square(weight).sum())
    kinds = model.preprocessor.kinds_
    confidence = 1 - (1 - level) / len(kinds)
    columns = [
        counts.of_numbers(name, n_known, confidence)
        if kind in ("number", "date")
        else counts.of_levels(name, n_known, confidence)
        for name, kind in kinds.items()
    ]
    return counts.n_rows, sorted(columns, key=_beside_chance, reverse=True)


def _known(model: TableModel) -> tuple[dict[str, float], dict[str, float]]:
    """Mean and standard deviation of each number, and the share of each level, at the fit."""
    names = model.preprocessor.get_feature_names_out().tolist()
    svc = model.svc
    for name, place in model.preprocessor.encoder_.told.items():
        if model.preprocessor.kinds_[name] == "date":  # alone, of its days
            names[place.start] = name
    return (
        dict(zip(names, svc.center_.tolist(), strict=True)),
        dict(zip(names, svc.scale_.tolist(), strict=True)),
    )


def _beside_chance(column: ColumnDrift) -> float:
    if column.value is None or not column.by_chance_upper:
        return 0.0
    return abs(column.value) / column.by_chance_upper


class _Counts:
    """Sums over the rows of a table, after the gaps were filled as the model fills them."""

    def __init__(
        self, preprocessor: TablePreprocessor, center: dict[str, float], scale: dict[str, float]
    ) -> None:
        self.preprocessor, self.center, self.scale = preprocessor, center, scale
        self.fills, self.levels = dict(preprocessor.fills_), preprocessor.levels_
        for name, parts in preprocessor.encoder_.dates.items():
            self.fills[name] = parts.days(np.array([parts.fill]))[0]
        self.n_rows = 0
        self.n_missing = dict.fromkeys(preprocessor.kinds_, 0)
        self.sums: dict[str, Floats] = {}
        self.rows_of: dict[str, pd.Series[Any]] = {}

    def add(self, frame: pd.DataFrame) -> None:
        plain = self.preprocessor.plain(with_text_names(frame))
        self.n_rows += len(plain)
        for name, kind in self.preprocessor.kinds_.items():
            gaps = plain[name].isna().to_numpy()
            self.n_missing[name] += int(gaps.sum())
            if gaps.any() and name not in self.fills:
                raise BadCells(MISSING, gaps, np.nan).refusal(name)
            filled = plain[name].fillna(self.fills[name]) if gaps.any() else plain[name]
            if kind in ("number", "date"):
                distance = (filled.to_numpy() - self.center[name]) / self.scale[name]
                with np.errstate(over="ignore"):
                    found = np.array([distance.sum(), np.square(distance).sum()])
                self.sums[name] = self.sums.get(name, 0.0) + found
            else:
                found_levels = filled.value_counts()
                so_far = self.rows_of.get(name)
                self.rows_of[name] = (
                    found_levels if so_far is None else so_far.add(found_levels, fill_value=0)
                )

    def of_numbers(self, name: str, n_known: float, confidence: float) -> ColumnDrift:
        mean, square = self.sums[name] / self.n_rows
        spread = float(np.sqrt(max(square - mean**2, 0.0)))
        error = np.sqrt(1 / n_known + spread**2 / self.n_rows)
        by_chance = float(stats.norm.ppf((1 + confidence) / 2) * error)
        return ColumnDrift(
            column=name,
            kind=self.preprocessor.kinds_[name],
            measure="standardised mean difference",
            value=float(mean),
            by_chance_upper=by_chance,
            moved=bool(abs(mean) > by_chance),
            spread_ratio=spread,
            n_missing=self.n_missing[name],
            unknown={},
            n_unknown=0,
        )

    def of_levels(self, name: str, n_known: float, confidence: float) -> ColumnDrift:
        rows = self.rows_of[name].astype(int)
        levels = self.levels[name]
        unknown = rows[~rows.index.isin(levels)].sort_values(ascending=False, kind="stable")
        new: Floats = rows.reindex(levels, fill_value=0).to_numpy().astype(np.float64)
        known = np.array([self.center[f"{name}={level}"] for level in levels]) * n_known
        distance = None
        if new.sum():
            new, known = _pooled(new, known)
            shares = new / new.sum(), known / known.sum()
            distance = population_stability(*shares, new.sum(), known.sum(), confidence)
        return ColumnDrift(
            column=name,
            kind=self.preprocessor.kinds_[name],
            measure="population stability index",
            value=None if distance is None else distance.value,
            by_chance_upper=None if distance is None else distance.by_chance_upper,
            moved=distance is not None and distance.value > distance.by_chance_upper,
            spread_ratio=None,
            n_missing=self.n_missing[name],
            unknown={str(text): int(count) for text, count in unknown.head(5).items()},
            n_unknown=int(unknown.sum()),
        )


def _pooled(new: Floats, known: Floats) -> tuple[Floats, Floats]:
    """Levels of which either table is to be expected to have too few rows, put together."""
    share = (new + known) / (new.sum() + known.sum())
    rare = share * min(new.sum(), known.sum()) < _FEW
    if rare.sum() < 2:
        return new, known
    return (
        np.append(new[~rare], new[rare].sum()),
        np.append(known[~rare], known[rare].sum()),
    )
