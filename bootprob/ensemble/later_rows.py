"""How a model does on rows later than those it was trained on, which out of bag does not tell.

Rows that are left out have neighbours in time before and after. The future has none, and what the
columns say may have changed by then.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.metaestimators import _safe_split

from bootprob.ensemble.fitted import ensemble_of
from bootprob.ensemble.out_of_bag_metrics import (
    out_of_bag_class_intervals,
    out_of_bag_intervals,
)
from bootprob.ensemble.out_of_bag_proba import cross_fitted_proba
from bootprob.ensemble.scoring.rows import checked_rows
from bootprob.exceptions import DataError
from bootprob.metrics.class_intervals import class_metric_intervals
from bootprob.metrics.intervals import MetricInterval, metric_intervals
from bootprob.metrics.metrics import row_log_loss
from bootprob.preparation.time_blocks import later_from, time_blocks
from bootprob.runtime.arrays import Bools, Floats
from bootprob.runtime.groups import Groups, sums_of_groups
from bootprob.runtime.instants import Instants

__all__ = ["TimedRows", "measured_later", "remark_of_later"]

_LEVEL = 0.95
_LEAST_ROWS = 10
_BLOCKS = 10  # of later rows, for intervals
_LEAST_BLOCKS = 5  # of which intervals can be made
_DRAWS, _AT_ONCE = 10_000, 1_000
_CHANCE = 1e-3


@dataclass(frozen=True)
class TimedRows:
    """A training table, with the time of each row.

    Attributes
    ----------
    X : ndarray or DataFrame, shape (n, p)
        As an ensemble takes it; a kernel's matrix is (n, n).
    y : ndarray, shape (n,)
    weight : ndarray, shape (n,)
        As `fit` was given them.
    codes : ndarray of int, shape (n,)
        Classes of the rows, numbered from 0.
    counted : ndarray, shape (n,)
        Weights of the rows in metrics.
    instants : Instants
    blocks : ndarray of int, shape (n,), or None
        Of neighbours in time.
    called : sequence, optional
        What errors call the classes; by default as they are in `y`.
    """

    X: Any
    y: NDArray[Any]
    weight: Floats
    codes: NDArray[np.int64]
    counted: Floats
    instants: Instants
    blocks: Groups | None
    called: Sequence[Any] | None = None

    @property
    def block_length(self) -> float:
        """Mean number of rows of a block."""
        return 1.0 if self.blocks is None else len(self.y) / (int(self.blocks.max()) + 1)


def measured_later(model: Any, rows: TimedRows, preprocessor: Any) -> dict[str, Any]:
    """Train a model with the same parameters on all but the last tenth, and ask it about that.

    Parameters
    ----------
    model : BootstrapSVC
        Whose parameters count; it need not be fitted.
    rows : TimedRows
    preprocessor : TablePreprocessor or None
        Unfitted, for rows of a data frame.

    Returns
    -------
    dict
        "since" and "until", the first and the last instant of the later rows, as text; "n_rows" of
        them and "n_earlier"; "n_blocks" that they are drawn in for intervals, None where these take
        them for independent; "metrics" of the later rows and "out_of_bag" of the model of the
        earlier ones: by name the value and the limits of its 95 % interval; "p_value" of a log-loss
        so much worse than out of bag by chance. "why_not" is None, or the reason why nothing was
        measured; then "metrics" and "out_of_bag" are empty, and "p_value" and "n_blocks" None.

        Of two classes metrics are those of `bootprob.metrics.metric_intervals` but the
        calibration error, of several "accuracy", "log_loss" and "brier_score" as in
        `bootprob.metrics.class_intervals.class_metric_intervals`.
    """
    used, ranks = rows.weight > 0, rows.instants.ranks
    first = later_from(ranks[used]) if np.ptp(ranks[used]) else int(ranks[used].min())
    later, earlier = used & (ranks >= first), used & (ranks < first)
    names = rows.instants.names
    found: dict[str, Any] = {
        "since": names[first],
        "until": names[int(ranks[used].max())],
        "n_rows": int(later.sum()),
        "n_earlier": int(earlier.sum()),
        "n_blocks": None,
        "metrics": {},
        "out_of_bag": {},
        "p_value": None,
        "why_not": _why_not(rows, earlier, later),
    }
    if found["why_not"] is not None:
        return found
    try:
        trained, probability, decided = _asked(model, rows, preprocessor, earlier, later)
        out_of_bag = _out_of_bag(trained)
    except DataError as error:
        return found | {"why_not": f"no model of the rows before could be made of it: {error}"}
    length = min(rows.block_length, found["n_rows"] / _BLOCKS)
    blocks: Groups | None = time_blocks(ranks[later], length)
    if blocks is not None and blocks.max() + 1 < _LEAST_BLOCKS:
        blocks = None
    return found | {
        "n_blocks": None if blocks is None else int(blocks.max()) + 1,
        "metrics": _metrics(trained, probability, decided, rows, later, blocks),
        "out_of_bag": out_of_bag,
        "p_value": _chance(trained, probability, rows, earlier, later),
    }


def remark_of_later(later: dict[str, Any]) -> str | None:
    """What to say where later rows are worse than out of bag by more than chance.

    Parameters
    ----------
    later : dict
        What `measured_later` returns.
    """
    if later["p_value"] is None or later["p_value"] >= _CHANCE:
        return None
    value, claimed = (later[each]["log_loss"][0] for each in ("metrics", "out_of_bag"))
    return (
        f"Later rows are worse: on the {later['n_rows']:,} rows from {later['since']} on a model "
        f"of the {later['n_earlier']:,} rows before has a log-loss of {value:.3f}, and says "
        f"{claimed:.3f} of itself out of bag. Either columns have come to mean something else, or "
        "rows hang together in time for longer than their blocks. Expect of the future what later "
        "rows show; leave such columns out, or train on recent rows alone, or weigh them more, and "
        "anew as labels come in."
    )


def _why_not(rows: TimedRows, earlier: Bools, later: Bools) -> str | None:
    """Why later rows cannot be measured, before anything is trained."""
    if not earlier.any():
        return "all rows that have a weight are of one instant"
    if later.sum() < _LEAST_ROWS:
        return (
            f"rows of the last tenth: {later.sum()}, and {_LEAST_ROWS} are the least to measure on"
        )
    if rows.blocks is not None and np.ptp(rows.blocks[earlier]) == 0:
        return "the rows before the last tenth are of one block of time"
    before, after = (len(np.unique(rows.codes[each])) for each in (earlier, later))
    if after == 1:
        return "all rows of the last tenth are of one class, and two are needed"
    if before <= rows.codes.max():
        return "the rows before the last tenth lack a class"
    return None


def _asked(
    model: Any, rows: TimedRows, preprocessor: Any, earlier: Bools, later: Bools
) -> tuple[Any, Floats, NDArray[np.intp]]:
    """The model of the earlier rows, what it says of the later ones, (m, K), and their labels."""
    trained = clone(model)
    if getattr(model, "checkpoint", None) is not None:
        trained.set_params(checkpoint=str(Path(model.checkpoint) / "later"))
    before, after = np.flatnonzero(earlier), np.flatnonzero(later)
    X, y = _safe_split(model, rows.X, rows.y, before)
    asked, _ = _safe_split(model, rows.X, rows.y, after, before)
    blocks = None if rows.blocks is None else rows.blocks[before]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model of all rows says it of all
        trained._fit(X, y, rows.weight[before], blocks, None, preprocessor, rows.called)
        ensemble, of_later = ensemble_of(trained), checked_rows(trained, asked)
        probability = ensemble.predict_proba(of_later)
        if trained.pair_ensembles_:
            return trained, probability, ensemble.decision_function(of_later).argmax(axis=1)
        return trained, probability, (probability[:, 1] > trained.decision_threshold_).astype(int)


def _out_of_bag(trained: Any) -> dict[str, list[float]]:
    """Out-of-bag metrics of the model of the earlier rows."""
    if trained.pair_ensembles_:
        return _limits(out_of_bag_class_intervals(trained, _LEVEL))
    return _limits(out_of_bag_intervals(trained, _LEVEL))


def _metrics(
    trained: Any,
    probability: Floats,
    decided: NDArray[np.intp],
    rows: TimedRows,
    later: Bools,
    blocks: Groups | None,
) -> dict[str, list[float]]:
    """The same of the later rows."""
    codes, weight = rows.codes[later], rows.counted[later]
    if trained.pair_ensembles_:
        return _limits(
            class_metric_intervals(
                codes, probability, weight, _LEVEL, decided=decided, groups=blocks
            )
        )
    return _limits(
        metric_intervals(
            codes, probability[:, 1], weight, _LEVEL, decided=decided == 1, groups=blocks
        )
    )


def _limits(found: dict[str, MetricInterval]) -> dict[str, list[float]]:
    """Values and limits; so few rows tell nothing of calibration in bins."""
    return {
        name: [each.value, each.lower, each.upper]
        for name, each in found.items()
        if name != "calibration_error"
    }


def _chance(
    trained: Any, probability: Floats, rows: TimedRows, earlier: Bools, later: Bools
) -> float:
    """How often as many rows from anywhere would be as bad as the later ones, by log-loss.

    Blocks of the earlier rows are drawn with replacement, with their losses out of bag; beside them
    the mean of all these losses is known but for its own error.
    """
    before = np.flatnonzero(earlier)
    left_out = trained.oob_proba_
    if not trained.pair_ensembles_:
        positive = cross_fitted_proba(trained)
        left_out = np.column_stack([1 - positive, positive])
    stated = left_out[np.arange(len(before)), rows.codes[before]]
    known = np.isfinite(stated)
    losses, weight = _losses(stated[known]), rows.counted[before][known]
    groups = None
    if rows.blocks is not None:
        groups = np.unique(rows.blocks[before][known], return_inverse=True)[1]
    mean = np.average(losses, weights=weight)
    apart, masses = (
        sums_of_groups(weight * each, groups) for each in (losses - mean, known[known])
    )
    error = np.linalg.norm(apart) / masses.sum()
    of_later = rows.counted[later]
    asked = _losses(probability[np.arange(len(of_later)), rows.codes[later]])
    worse = np.average(asked, weights=of_later) - mean
    size = max(1, round(of_later.sum() / masses.mean()))
    rng, as_bad = np.random.default_rng(0), 0
    for _ in range(_DRAWS // _AT_ONCE):
        drawn = rng.integers(len(apart), size=(_AT_ONCE, size))
        by_chance = apart[drawn].sum(axis=1) / masses[drawn].sum(axis=1)
        as_bad += int((by_chance + error * rng.standard_normal(_AT_ONCE) >= worse).sum())
    return (1 + as_bad) / (1 + _DRAWS)


def _losses(stated: Floats) -> Floats:
    """Log-loss of rows to whose class so much was given."""
    return row_log_loss(np.ones(len(stated)), stated)
