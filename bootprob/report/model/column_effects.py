"""What a report says of columns: importance, curves of a few, and contributions to few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bootprob.ensemble.state import TwoClassState, state_of, two_class_state
from bootprob.explanation import (
    PermutationImportance,
    partial_dependence,
    permutation_importance,
)
from bootprob.explanation.answers import Explained
from bootprob.explanation.row_contributions import divided
from bootprob.report.model.row_samples import row_histograms
from bootprob.runtime.arrays import Floats
from bootprob.tables.model import TableModel

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.held_out import HeldOut

__all__ = ["class_effects", "column_effects"]

# What it may take: scored rows times the training rows that kernels compare each with.
_WORK = 12_000_000
_OF_MAP = 500  # of models that score by coefficients
_OF_CLASSIFIER = 6  # of each classifier of others: LightGBM's of 100 trees take 3 µs for a row
_REPEATS, _MOST_ROWS, _LEAST_ROWS = 3, 500, 50  # of importance
_LISTED = 60  # columns
_CURVES, _VALUES = 3, 20
_ENDS = (0.05, 0.95)  # quantiles between which a curve is drawn: no value of a row
_FEW, _ROWS_OF_VALUE = 12, 5  # values shown as such, each of so many rows or more
_EXPLAINED = 1_000  # rows that are looked at for the contributions to one
_BACKGROUND, _LEAST_BACKGROUND = 16, 4
_OF_ROW = 12  # columns listed of a row, those that contribute most


def column_effects(
    model: BootstrapSVC,
    explained: BootstrapSVC | TableModel,
    training: Any,
    held_out: HeldOut | None,
    level: float,
) -> dict[str, Any] | None:
    """Importance, curves and contributions; None for a model of which there are none.

    Of training rows, given or kept by the model, out of bag, else of held-out rows: then without
    contributions, as the rows that are shown are training rows. The work is bounded: of many rows
    some are drawn; where even few rows of so many columns are too much, there is nothing.
    Parameters are those of `bootprob.report.model.sections.section.Measured`.
    """
    looked = _looked_at(model, explained, training, held_out)
    if looked is None:
        return None
    found, rows, given, affordable = looked
    background = given["X"]
    importance = _importance(explained, given, affordable, level)
    drawn = _with_curves(found, importance)
    return {
        "importance": _as_numbers(found, importance),
        "dependence": [
            _curve(explained, found, rows, background, column, level) for column in drawn
        ],
        "contributions": [] if "held_out" in given else _contributions(model, found, rows, level),
    }


def class_effects(
    model: BootstrapSVC,
    explained: BootstrapSVC | TableModel,
    training: Any,
    held_out: HeldOut | None,
    level: float,
    n_classes: int,
) -> dict[str, Any] | None:
    """The same of several classes: importance, and of the first ones the curves of each."""
    looked = _looked_at(model, explained, training, held_out)
    if looked is None:
        return None
    found, rows, given, affordable = looked
    importance = _importance(explained, given, affordable, level)
    drawn = _with_curves(found, importance)
    labels = list(explained.target.labels if isinstance(explained, TableModel) else model.classes_)
    return {
        "importance": _as_numbers(found, importance),
        "classes": [
            [_curve(explained, found, rows, given["X"], each, level, label) for each in drawn]
            for label in labels[:n_classes]
        ],
    }


def _looked_at(
    model: BootstrapSVC,
    explained: BootstrapSVC | TableModel,
    training: Any,
    held_out: HeldOut | None,
) -> tuple[Explained, Floats, dict[str, Any], int] | None:
    """What explains, rows, what `permutation_importance` is given, and how many rows may be."""
    if model.calibration is None or not state_of(model).kernel.has_features:
        return None
    found = Explained.of(explained)
    pairs = model.pair_ensembles_ or [model]
    compared = sum(_compared(two_class_state(each, "pairs")) for each in pairs)
    affordable = _WORK // (compared * len(found.columns))
    rows = found.kept_rows() if training is None else found.matrix(training)
    given: dict[str, Any] = {"X": training}
    if rows is None and held_out is not None:
        background, y = held_out.X, held_out.y
        if held_out.frame is not None and isinstance(explained, TableModel):
            background, y = held_out.frame, None
        given = {"X": background, "y": y, "held_out": True}
        rows = found.matrix(background)
    if rows is None or affordable < _LEAST_ROWS:
        return None
    return found, rows, given, affordable


def _importance(
    explained: BootstrapSVC | TableModel, given: dict[str, Any], affordable: int, level: float
) -> PermutationImportance:
    repeats = _REPEATS if affordable >= _REPEATS * _LEAST_ROWS else 1
    most = min(_MOST_ROWS, affordable // repeats)
    return permutation_importance(explained, **given, n_repeats=repeats, max_rows=most, level=level)


def _with_curves(found: Explained, importance: PermutationImportance) -> list[str]:
    """The columns whose curves are drawn, the most important first."""
    listed = importance.to_frame()
    has_curve = [len(found.features(name)) > 0 for name in listed["column"]]
    drawn = listed[has_curve]
    matter = drawn["column"][drawn["lower"] > 0]
    return (matter if len(matter) else drawn["column"][:1])[:_CURVES].tolist()


def _as_numbers(found: Explained, importance: PermutationImportance) -> dict[str, Any]:
    listed = importance.to_frame()
    alone = np.array([len(found.features(name)) == 0 for name in listed["column"]])
    return {
        "metric": importance.metric,
        "baseline": importance.baseline,
        "level": importance.level,
        "n_rows": importance.n_rows,
        "n_repeats": importance.importances.shape[1],
        "held_out": importance.held_out,
        "columns": listed[:_LISTED].to_dict("records"),
        "n_not_listed": max(0, len(listed) - _LISTED),
        "without_curve": listed["column"][alone & (listed["lower"] > 0)].tolist(),
    }


def _curve(
    explained: BootstrapSVC | TableModel,
    found: Explained,
    rows: Floats,
    background: Any,
    column: str,
    level: float,
    label: Any = None,
) -> dict[str, Any]:
    values = _values(found, rows, column)
    curve = partial_dependence(
        explained, column, background, values=values, level=level, label=label
    )
    of_dates = found.dates(column) is not None
    return {
        "column": curve.column,
        "of_levels": found.levels(column) is not None,
        "of_dates": of_dates,
        "values": np.datetime_as_string(curve.values, "D") if of_dates else curve.values,
        "log_odds": curve.log_odds,
        "interval": curve.interval,
        "probability": curve.probability,
        "probability_interval": curve.probability_interval,
    }


def _compared(state: TwoClassState) -> int:
    """What scoring a row costs, in training rows that a kernel compares it with."""
    if state.estimators_ is not None:
        return max(_OF_MAP, _OF_CLASSIFIER * len(state.estimators_) * state.accuracy_.shape[1])
    return _OF_MAP if state.bootstrap_dual_coef_ is None else len(state.y_)


def _values(found: Explained, rows: Floats, column: str) -> Any:
    """Where a curve is looked at: levels or numbers that several rows share, or between quantiles.

    Never at the number, or the date, of a single row.
    """
    own, levels, dates = rows[:, found.features(column)], found.levels(column), found.dates(column)
    if dates is not None:
        first, last = np.quantile(own[:, 0], _ENDS)
        days = np.unique(np.linspace(first, last, _VALUES).round()).astype("timedelta64[D]")
        return dates.first.astype("datetime64[D]") + days
    if levels is not None:
        of_level = own.sum(axis=0)
        often = np.argsort(-of_level, kind="stable")[:_FEW]
        kept = [k for k in often if of_level[k] >= _ROWS_OF_VALUE] or [often[0]]
        return [levels[k] for k in sorted(kept)]
    values, n_rows = np.unique(own, return_counts=True)
    shared = values[n_rows >= _ROWS_OF_VALUE]
    if len(values) > _FEW or len(shared) < 2:
        first, last = np.quantile(own, _ENDS)
        return np.linspace(first, last, _VALUES)
    return shared


def _contributions(
    model: BootstrapSVC, found: Explained, rows: Floats, level: float
) -> list[dict[str, Any]]:
    """Of the rows with histograms, by the whole model; none where columns are too many."""
    n_background = min(_BACKGROUND, _EXPLAINED // (2 * len(found.columns) + 2))
    shown = row_histograms(model)["rows"]
    if n_background < _LEAST_BACKGROUND or not shown:
        return []
    used = rows[model.sample_weight_ > 0]
    drawn = np.random.default_rng(0).permutation(len(used))[:n_background]
    numbers = [row["row"] - 1 for row in shown]
    others, n_orders = used[np.sort(drawn)], 2 * n_background  # each of these once, both ways
    made = divided(found, rows[numbers], others, level, n_orders=n_orders)
    listed = []
    for k, row in enumerate(shown):
        order = np.argsort(-np.abs(made.contribution[k]), kind="stable")
        listed.append(
            {
                "row": row["row"],
                "positive": row["positive"],
                "probability": made.probability[k],
                "base": made.base,
                "columns": [
                    {
                        "column": made.columns[j],
                        "contribution": made.contribution[k, j],
                        "lower": made.interval[k, j, 0],
                        "upper": made.interval[k, j, 1],
                    }
                    for j in order[:_OF_ROW]
                ],
                "n_not_listed": max(0, len(order) - _OF_ROW),
                "not_listed": made.contribution[k, order[_OF_ROW:]].sum(),
            }
        )
    return listed
