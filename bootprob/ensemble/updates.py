"""A fitted model after rows that came later: evidence that they are others, and recalibration."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.utils.validation import check_consistent_length, column_or_1d

from bootprob.calibration.logits import logits_of
from bootprob.calibration.recalibration import Recalibration, base_rate_of_scores
from bootprob.ensemble.fitted import column_names, two_classes_of
from bootprob.ensemble.scoring.rows import checked_rows
from bootprob.ensemble.scoring.table_rows import TableRows
from bootprob.ensemble.state import TwoClassState
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.exceptions import DataError
from bootprob.intervals.shares import in_effective_rows
from bootprob.metrics.column_residuals import column_residuals
from bootprob.metrics.metrics import row_log_loss
from bootprob.metrics.reliability import numbers_of_rows
from bootprob.monitoring.monitor import Monitor
from bootprob.runtime.arrays import Bools, Floats
from bootprob.runtime.device_rows import on_host

__all__ = ["recalibrated", "watched", "with_updates_of"]

_SPREADS = 1e-8, 1e4  # of variances of a logit
_STEP = 1e-3  # of a derivative by differences
_OF_BASE_RATE = ("ppv", "npv")  # rates that change with it
_MOST_ENTRIES = 1_000
_BY_LABELS = "recalibrated by labels"
_RATES = 1e-6, 1 - 1e-6  # of classes that nearly never overlap
_DIFFERENT = 0.8  # of rows, that are not few over and over
_LEAST_LABELS = 50  # of which it is asked whether recalibration is enough
_SIGNIFICANT = 0.01
_LESS = 0.7  # of the slope: scores that tell the classes apart so much less are those of others


@dataclass(frozen=True)
class _NewRows:
    """Checked rows, their labels, and what the model as it was fitted says of them."""

    matrix: Floats
    positive: Bools | None
    weight: Floats
    before: Floats

    @classmethod
    def of(cls, model: Any, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None) -> Self:
        ensemble = _calibrated(model)
        rows = checked_rows(model, on_host(X))
        positive = None if y is None else _positive(ensemble.state, y)
        check_consistent_length(rows, positive, sample_weight)
        weight = np.ones(len(rows))
        if sample_weight is not None:
            weight = numbers_of_rows("sample_weight", column_or_1d(sample_weight))
            if not (np.isfinite(weight).all() and (weight > 0).all()):
                raise DataError("sample_weight has numbers that are not positive; leave rows out.")
            weight = in_effective_rows(weight)
        fitted = replace(ensemble, state=_without_recalibration(ensemble.state))
        before = logits_of(fitted.predict_proba(rows)[:, 1])
        matrix = rows.matrix if isinstance(rows, TableRows) else np.asarray(rows)
        return cls(matrix, positive, weight, before)


def watched(model: Any, X: Any, y: ArrayLike | None = None) -> Any:
    """See whether rows, and their labels, are still those that a model was fitted to.

    Parameters
    ----------
    model : BootstrapSVC or BootstrapClassifier
        Fitted, of two classes, with a calibration.
    X : array_like or data frame, shape (k, p)
        New rows, in the order in which they came; each may be shown once.
    y : array_like, shape (k,), optional
        Their labels; without them drift alone is looked for.

    Returns
    -------
    model
        A copy that keeps what was seen (`monitor_`), with one more entry in `history_`: "alarms"
        names "calibration", "drift" or both once their "e_values" have reached 80. It answers as
        before.

    Raises
    ------
    DataError
        For several classes, no calibration, rows that the model cannot take, or labels that it
        does not know.
    """
    rows, state = _NewRows.of(model, X, y, None), two_classes_of(model, "updates").state
    monitor, since = _monitor(state, rows.before), _recalibration(state)
    served = since.logit(rows.before)
    calibration = monitor.calibration
    if rows.positive is not None:
        calibration = calibration.after(served, rows.positive, _left_open(state))
    monitor = Monitor(calibration, monitor.drift.after(rows.before))
    found = copy(model)
    found.monitor_ = monitor.arrays
    entry = _entry("watched", rows, served) | monitor.found
    found.history_ = _with_entry(model, entry)
    return found


def recalibrated(
    model: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    base_rate: float | None = None,
) -> Any:
    """Move the probabilities of a model, and their intervals, to what later rows say.

    It starts from the last recalibration, if there was one: another base rate keeps a slope that
    was learnt.

    Parameters
    ----------
    model : BootstrapSVC or BootstrapClassifier
        Fitted, of two classes, with a calibration.
    X : array_like or data frame, shape (k, p), optional
        New rows.
    y : array_like, shape (k,), optional
        Their labels: intercept and slope of the logit are learnt from them, beginning with what is
        known (`bootprob.calibration.recalibration.Recalibration.of_labels`). Without labels the
        base rate of the rows is estimated
        (`bootprob.calibration.recalibration.base_rate_of_scores`), which takes for granted that
        rows of each class look as they did.
    sample_weight : array_like, shape (k,), optional
        Weights of the rows; positive. They have no unit: rows tell as much as so many of equal
        weight, ``(Σ w)² / Σ w²``. A row that stands for several labels is given several times.
    base_rate : float, optional
        Share of the positive class where the model is used from now on, if it is known: then
        without rows. Also this takes for granted that rows of each class look as they did.

    Returns
    -------
    model
        A copy with `recalibration_`, which starts to be watched anew. Its entry of `history_` has
        "refit", the reason why new probabilities should come from a new fit, or None.

    Raises
    ------
    DataError
        As `watched`; for a base rate outside (0, 1), or beside rows, or neither.
    """
    state = _calibrated(model).state
    since, rate = _recalibration(state), _base_rate(model, state)
    if base_rate is not None:
        if X is not None or y is not None or sample_weight is not None:
            raise DataError("base_rate is given, and rows or weights are too; give one of them.")
        if not isinstance(base_rate, Real) or not 0 < base_rate < 1:
            raise DataError(f"base_rate is {base_rate!r}; give a share between 0 and 1.")
        learnt = _shifted(since, rate, base_rate)
        known = {"what": "recalibrated by a base rate", "base_rate": float(base_rate)}
        return _with(model, learnt, known, np.empty(0))
    if X is None:
        raise DataError(
            "There is nothing to recalibrate by; give rows, labelled ones or base_rate."
        )
    rows = _NewRows.of(model, X, y, sample_weight)
    if rows.positive is None:
        served = replace(rows, before=since.logit(rows.before))
        share, variance = base_rate_of_scores(served.before, rate, rows.weight)
        if not np.isfinite(variance):
            raise DataError(
                "The probabilities of these rows are alike and say nothing of their base rate; "
                "give labels, or base_rate."
            )
        variance += _by_calibration(served, rate, _left_open(state))
        learnt = _shifted(since, rate, share, variance)
        entry = _entry("recalibrated by rows", rows, served.before)
        return _with(model, learnt, entry | {"base_rate": share}, _alike(rows))
    open_before = _of_training(state)
    start = Recalibration(since.coefficients, _definite(_open(since, open_before)))
    learnt = Recalibration.of_labels(rows.before, rows.positive, rows.weight, start, open_before)
    entry = _entry(_BY_LABELS, rows, since.logit(rows.before))
    after = _probability(learnt.logit(rows.before))
    entry |= {
        "log_loss_after": _log_loss(after, rows),
        "refit": _reason_to_refit(learnt, after, rows, column_names(model)),
    }
    return _with(model, learnt, entry, _alike(rows))


def _calibrated(model: Any) -> TwoClasses:
    """What answers for a model that can be updated; a DataError says of another why not."""
    ensemble = two_classes_of(model, "updates")
    if ensemble.spec.calibration is None:
        raise DataError(
            "What is updated are calibrated probabilities, and this model has "
            "calibration=None; fit it with calibration='sigmoid'."
        )
    return ensemble


def with_updates_of(other: Any, model: Any) -> Any:
    """A copy of a model that has seen and learnt what another copy of the same fit has."""
    found = copy(model)
    for name in ("monitor_", "recalibration_", "history_"):
        setattr(found, name, getattr(other, name))
    return found


def _by_calibration(rows: _NewRows, rate: float, covariance: Floats) -> float:
    """Variance of the logit of an estimated base rate by what training left of the calibration."""

    def estimate(intercept: float, slope: float) -> float:
        moved = rows.before + intercept + slope * rows.before
        return float(logit(base_rate_of_scores(moved, rate, rows.weight)[0]))

    moves = _STEP * np.eye(2)
    slopes = np.array([(estimate(*move) - estimate(*-move)) / (2 * _STEP) for move in moves])
    return float(slopes @ covariance @ slopes)


def _with(model: Any, learnt: Recalibration, entry: dict[str, Any], logits: Floats) -> Any:
    """A copy that answers otherwise, and is watched beside the rows of these logits."""
    found = copy(model)
    found.recalibration_ = dict(vars(learnt))
    found.monitor_ = Monitor.beside(logits).arrays
    if rates := [each["rate"] for each in model.controlled_rates_ if each["rate"] in _OF_BASE_RATE]:
        kept = f"{' and '.join(rates)} were kept at the base rate of the fit"
        entry = entry | {"refit": entry.get("refit") or kept}
    intercept, slope = learnt.coefficients.tolist()
    errors = np.sqrt(np.diag(learnt.covariance)).tolist()
    told = {"intercept": [intercept, errors[0]], "slope": [slope, errors[1]]}
    found.history_ = _with_entry(model, _NOTHING | _now() | entry | told)
    return found


def _alike(rows: _NewRows) -> Floats:
    """Logits that later rows can be compared with: of rows that were drawn as those will be."""
    return rows.before if np.ptp(rows.weight) == 0 else rows.before[:0]


def _with_entry(model: Any, entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The history with one more entry; of very many the oldest that only watched goes."""
    history = [*(model.history_ or []), entry]
    if len(history) > _MOST_ENTRIES:
        watched_at = (k for k, each in enumerate(history) if each["what"] == "watched")
        del history[next(watched_at, 0)]
    return history


_NOTHING: dict[str, Any] = {
    "n_rows": 0,
    "n_labels": 0,
    "base_rate": None,
    "mean_probability": None,
    "log_loss": None,
    "log_loss_after": None,
    "e_values": None,
    "alarms": [],
    "intercept": None,
    "slope": None,
    "refit": None,
}


def _entry(what: str, rows: _NewRows, served: Floats) -> dict[str, Any]:
    """What every entry of the history has."""
    probability, weight, n = _probability(served), rows.weight, len(served)
    found = _NOTHING | {"what": what, **_now(), "n_rows": n}
    found["mean_probability"] = float(np.average(probability, weights=weight))
    if rows.positive is not None:
        found["n_labels"] = n
        found["base_rate"] = float(np.average(rows.positive, weights=weight))
        found["log_loss"] = _log_loss(probability, rows)
    return found


def _now() -> dict[str, str]:
    return {"at": datetime.now(UTC).isoformat(timespec="seconds")}


def _log_loss(probability: Floats, rows: _NewRows) -> float:
    assert rows.positive is not None
    return float(
        np.average(row_log_loss(rows.positive.astype(np.float64), probability), weights=rows.weight)
    )


def _reason_to_refit(
    learnt: Recalibration, probability: Floats, rows: _NewRows, names: Any
) -> str | None:
    """Why a straight line of the logit does not do; None where nothing says so."""
    assert rows.positive is not None
    if learnt.coefficients[1] > 0 and len(probability) >= _LEAST_LABELS:
        p_value, column = column_residuals(rows.matrix, rows.positive, probability, rows.weight)
        if p_value < _SIGNIFICANT and column is not None:
            name = f"column {column + 1}" if names is None else repr(str(names[column]))
            return f"errors of the probabilities go with {name} (p = {p_value:.2g})"
    slope, error = learnt.coefficients[1], np.sqrt(learnt.covariance[1, 1])
    if slope + 2 * error >= _LESS:
        return None
    return (
        f"the scores tell the classes apart less than they did (slope {slope:.2f}, with a standard "
        f"error of {error:.2f})"
    )


def _left_open(state: TwoClassState) -> Floats:
    """Covariance of (a, b) in ``a + b · logit`` of what the model answers now; (0, 1) is right."""
    since = _recalibration(state)
    intercept, slope = since.coefficients
    slope = max(slope, 1e-3)
    move = np.array([[1.0, -intercept / slope], [0.0, 1 / slope]])
    return _definite(move @ _open(since, _of_training(state)) @ move.T)


def _open(since: Recalibration, of_training: Floats) -> Floats:
    """What is open of intercept and slope: labels have counted what training left of it."""
    return since.covariance if since.replaced.any() else since.covariance + of_training


def _shifted(
    since: Recalibration, before: float, after: float, variance: float = 0.0
) -> Recalibration:
    """Another base rate on top of what was learnt before."""
    more = Recalibration.of_base_rates(before, after, variance)
    return Recalibration(
        since.coefficients + np.array([more.coefficients[0], 0.0]),
        since.covariance + more.covariance,
        since.replaced,
    )


def _base_rate(model: Any, state: TwoClassState) -> float:
    """Share of the positive class that probabilities are of now.

    The last one that was given or estimated. Labels, which may be few, or of chosen rows, leave the
    share with which probabilities have its mean, where rows of each class are those of the fit: of
    positive ones they have the mean A, of the others B, and ``π = π A + (1 − π) B``.
    """
    changes = [each for each in model.history_ or [] if each["slope"] is not None]
    if not changes:
        return float(np.average(state.y_, weights=state.sample_weight_))
    if changes[-1]["what"] != _BY_LABELS:
        return float(changes[-1]["base_rate"])
    known = np.isfinite(state.oob_proba_[:, 1]) & (state.sample_weight_ > 0)
    now = _probability(_recalibration(state).logit(logits_of(state.oob_proba_[known, 1])))
    positive, weight = state.y_[known] == 1, state.sample_weight_[known]
    of_positive, of_others = (
        float(np.average(now[which], weights=weight[which])) for which in (positive, ~positive)
    )
    either = max(1 - of_positive + of_others, _RATES[0])
    return float(np.clip(of_others / either, *_RATES))


def _of_training(state: TwoClassState) -> Floats:
    """The same of the model as it was fitted, by the out-of-bag sigmoid."""
    slope, intercept = state.sigmoid_
    covariance = np.linalg.pinv(state.sigmoid_information_)
    slope = max(slope, 1e-3)
    move = np.array([[-intercept / slope, 1.0], [1 / slope, 0.0]])
    return _definite(move @ covariance @ move.T)


def _definite(covariance: Floats) -> Floats:
    """The same, with an inverse, whatever a file says of it."""
    sizes, directions = np.linalg.eigh((covariance + covariance.T) / 2)
    found: Floats = (directions * np.clip(sizes, *_SPREADS)) @ directions.T
    return found


def _monitor(state: TwoClassState, logits: Floats) -> Monitor:
    """What is kept; of a model that has seen no rows, beside its training rows out of bag.

    It begins with none where later rows are not drawn as these were, or the first of them tell that
    few rows differ: out of bag equal rows do, each by its own replicates, and later ones do not.
    """
    if state.monitor_ is not None:
        return Monitor.of(state.monitor_)
    used = state.sample_weight_ > 0
    known = state.oob_proba_[used & np.isfinite(state.oob_proba_[:, 1]), 1]
    alike = len(np.unique(logits.round(9))) < _DIFFERENT * len(logits)
    if alike or np.ptp(state.sample_weight_[used]) > 0:
        known = known[:0]
    return Monitor.beside(logits_of(known))


def _recalibration(state: TwoClassState) -> Recalibration:
    known = state.recalibration_
    return Recalibration() if known is None else Recalibration(**known)


def _without_recalibration(state: TwoClassState) -> TwoClassState:
    found = copy(state)
    found.recalibration_ = None
    return found


def _positive(state: TwoClassState, y: ArrayLike) -> Bools:
    labels: NDArray[Any] = column_or_1d(np.asarray(y))
    known = np.isin(labels, state.classes_)
    if not known.all():
        raise DataError(
            f"The label {labels[~known].tolist()[0]!r} is none of the model's, "
            f"{state.classes_.tolist()}; give rows with these."
        )
    return np.asarray(labels == state.classes_[1])


def _probability(logits: Floats) -> Floats:
    found: Floats = expit(logits)
    return found
