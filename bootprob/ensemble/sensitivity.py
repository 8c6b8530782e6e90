"""What the probability of a row depends on: class costs, C, γ, and each of the training rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from bootprob.encoding.frames import as_frame
from bootprob.ensemble.fitted import of_matrix, two_classes_of
from bootprob.ensemble.scoring.rows import Rows, checked_rows
from bootprob.ensemble.state import TwoClassState
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.exceptions import DataError
from bootprob.preparation.labels import of_mean_one, weigh_classes
from bootprob.preparation.standardization import center_and_scale
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import on_host
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import Certificate, FittedBatch
from bootprob_gpu.derivatives.active_sets import SetStatus
from bootprob_gpu.derivatives.kkt import solve_exactly
from bootprob_gpu.hardware.memory import chunked, free_bytes
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["ProbabilitySensitivity", "probability_sensitivity"]


_NEGLIGIBLE = 1e-9  # weight of a model of the grid that is left out
_AT_ONCE = 2**28  # bytes worked on at a time on a CPU; more is slower
_ARRAYS = 6  # of shape (replicates, models, rows, training rows) that are held at a time
_ARRAYS_OF_MODEL = 20  # of shape (replicates, models, training rows)
_SAME_SCORE = 0.01  # in units of the margin
_SAME_ROWS = 1e-6  # standard deviations by which a column's mean may be off


@dataclass(frozen=True)
class ProbabilitySensitivity:
    """Derivatives of the probability of ``classes_[1]`` that `predict_proba` gives.

    All are with respect to logarithms: a derivative of 0.3 means that an increase by 1 % moves
    the probability by 0.003. Those of the score are the same divided by `probability_per_score`.

    Attributes
    ----------
    probability : ndarray, shape (m,)
        As `predict_proba` gives it.
    score : ndarray, shape (m,)
        As `decision_function` gives it.
    probability_per_score : ndarray, shape (m,)
        Slope of the calibrator at the score.
    row_weight : ndarray, shape (m, n)
        With respect to the log of each training row's weight. To first order, leaving row i out
        changes the probability by ``−row_weight[:, i]``.
    log_C : ndarray, shape (m,)
        With respect to log C, of all models of the grid alike.
    log_cost_positive, log_cost_negative : ndarray, shape (m,)
        With respect to the log of the cost of errors on ``classes_[1]``, on ``classes_[0]``:
        C₊ and C₋. They add up to `log_C`.
    log_gamma : ndarray, shape (m,), or None
        With respect to log γ, of all models of the grid alike; None for the linear kernel and for
        a feature map.
    status : dict of SetStatus to int
        How many of the models differentiated are of each status.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC, probability_sensitivity
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", C=[0.1, 1], n_bootstraps=10, random_state=0).fit(X, y)
    >>> found = probability_sensitivity(model, X[:2], X_train=X)
    >>> without_the_first_row = found.probability - found.row_weight[:, 0]  # to first order
    >>> bool(abs(found.log_cost_positive + found.log_cost_negative - found.log_C).max() < 1e-9)
    True
    """

    probability: Floats
    score: Floats
    probability_per_score: Floats
    row_weight: Floats
    log_C: Floats
    log_cost_positive: Floats
    log_cost_negative: Floats
    log_gamma: Floats | None
    status: dict[SetStatus, int]


def probability_sensitivity(
    model: Any, X: ArrayLike, X_train: ArrayLike | None = None
) -> ProbabilitySensitivity:
    """Differentiate the probabilities of rows through every machine of a fitted ensemble.

    Each machine's score is differentiated in closed form, by the Karush–Kuhn–Tucker conditions on
    its free support vectors (`bootprob_gpu.derivatives.kkt`); the derivatives are averaged over the
    replicates and weighted over the models as the scores are. What is made of the scores is held
    fixed: the bootstrap samples, the columns' standardisation, "balanced" class weights, the
    weights of the models, the alignment of the replicates (`score_scale_`, `score_offset_`) and
    the calibrator. A refit would make all of these anew; in particular, calibration takes back
    much of what a common change of C or of the class costs does to the scores.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted, with a calibration.
    X : array_like, shape (m, p)
        Rows whose probabilities are looked at.
    X_train : array_like, shape (n, p), optional
        The rows that `model` was fitted to, in the same order: needed where it does not keep them
        (`X_fit_` is None), which is so for linear models with no more columns than rows and for
        feature maps.

    Returns
    -------
    ProbabilitySensitivity

    Raises
    ------
    DataError
        If the model has no calibration or machines under constraints, or `X_train` is missing or
        is not what the model was fitted to.

    Warns
    -----
    ConvergenceWarning
        If the support vectors of some machines could not be told; says how many. Also if the
        machines, solved to rounding from the rows given, do not score as the model does.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BootstrapSVC(kernel="linear", C=[0.1, 1], n_bootstraps=10, random_state=0)
    >>> model = model.fit(X[50:], y[50:])
    >>> found = probability_sensitivity(model, X[:2], X_train=X[50:])
    >>> found.row_weight.shape
    (2, 519)
    """
    ensemble = two_classes_of(model, "sensitivities")
    ensemble.refuse_recalibrated("Sensitivities")
    state = ensemble.state
    if state.estimators_ is not None:
        raise DataError(
            "Sensitivities are derivatives of support vector machines, and the model is of "
            "classifiers of others; fit a BootstrapSVC with kernel='linear' or 'rbf'."
        )
    if state.shared_draws_ is not None:
        raise DataError(
            "The model is one pair of several classes, trained with the weights and centre of the "
            "whole table; fit it to its two classes alone."
        )
    if model.calibration is None:
        raise DataError(
            "The model has calibration=None: its vote shares are steps, with derivative 0; fit it "
            "with calibration='sigmoid'."
        )
    if getattr(model, "control", None) == "constrained":
        raise DataError(
            "The model has control='constrained': its machines are under constraints, of which the "
            "derivative knows nothing; fit it without, or with control='threshold'."
        )
    if state.posterior_slope_ is not None:
        raise DataError(
            "The model has kernel='auto', and a part of its scores is a posterior's, of which the "
            "derivative knows nothing; fit one with kernel='linear' or 'rbf'."
        )
    X, X_train = on_host(X), on_host(X_train)
    rows = _training_rows(model, ensemble, X_train)
    checked = checked_rows(model, X)
    score = ensemble.decision_function(checked)
    probability = ensemble.predict_proba(checked)[:, 1]
    calibrated = ensemble.calibrated
    votes = ensemble.vote_proba(checked)[:, 1] if calibrated.calibrator.needs_votes else None
    slope = calibrated.derivative(score, votes)
    weight = _training_weight(state, model.class_weight)
    seen = _seen(ensemble, checked)
    by_row, by_gamma, again, status = _of_scores(ensemble, weight, rows, seen)
    _warn_of_doubts(score, again, status)
    row_weight = by_row * slope[:, None]
    positive = state.y_ == 1
    has_gamma = state.gamma_ is not None and state.feature_map_ is None
    return ProbabilitySensitivity(
        probability=probability,
        score=score,
        probability_per_score=slope,
        row_weight=row_weight,
        log_C=row_weight.sum(axis=1),
        log_cost_positive=row_weight[:, positive].sum(axis=1),
        log_cost_negative=row_weight[:, ~positive].sum(axis=1),
        log_gamma=by_gamma * slope if has_gamma else None,
        status={each: int(status[each]) for each in SetStatus if status[each]},
    )


def _training_rows(model: Any, ensemble: TwoClasses, X_train: ArrayLike | None) -> Floats:
    """Training rows as the machines know them, shape (n, p) or (n, D)."""
    state = ensemble.state
    if X_train is None:
        if state.X_fit_ is None:
            raise DataError(
                "The model does not keep its training rows (X_fit_ is None); give them as X_train, "
                "in the order in which it was fitted to them."
            )
        return state.X_fit_
    if model.preprocessor_ is not None:
        X_train, model = model.preprocessor_.transform(as_frame(X_train)), of_matrix(model)
    given = np.asarray(X_train, dtype=np.float64)
    wanted = (len(state.y_), len(state.center_))
    if given.shape != wanted:
        raise DataError(
            f"X_train has shape {given.shape}; the model was fitted to {wanted}. Give the very "
            "rows that it was fitted to."
        )
    center, scale = center_and_scale(given, state.sample_weight_)
    off = np.abs(center - state.center_) / state.scale_
    # Of zeros and ones the mean says all, and dummies of many levels share a scale.
    same = np.isclose(scale, state.scale_, rtol=_SAME_ROWS) | np.isin(given, (0, 1)).all(axis=0)
    if not ((off <= _SAME_ROWS) & same).all():
        raise DataError(
            "X_train is not what the model was fitted to: its columns have other means or standard "
            "deviations than center_ and scale_. Give the very rows that it was fitted to."
        )
    return _seen(ensemble, checked_rows(model, X_train))


def _seen(ensemble: TwoClasses, X: Rows) -> Floats:
    """Rows as the machines know them: standardised, and mapped if there is a feature map."""
    rows = ensemble.scores.machines.rows(X)
    blocks = [np.asarray(block) for block in rows.blocks(max(1, len(rows.X)))]
    return rows.as_seen(torch.from_numpy(np.concatenate(blocks)), 0).to(torch.float64).numpy()


def _training_weight(state: TwoClassState, class_weight: object) -> Floats:
    """What multiplies C row by row, shape (n,)."""
    weight = state.sample_weight_
    if class_weight == "balanced":
        labels = state.classes_[state.y_]
        _, weight = weigh_classes("balanced", state.classes_, labels, weight)
    return of_mean_one(weight) if isinstance(state.kernel, ViewKernels) else weight


def _of_scores(
    ensemble: TwoClasses, weight: Floats, rows: Floats, new: Floats
) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """Derivatives of the mean score by log weights (m, n) and by log γ (m,); the score; status."""
    state, models = ensemble.state, ensemble.scores.machines.models
    device = models.intercept.device
    y = torch.from_numpy(np.where(state.y_ == 1, 1.0, -1.0)).to(device)
    train, scored = (torch.from_numpy(each).to(device) for each in (rows, new))
    mass = state.bootstrap_counts() * weight
    m, n = len(new), len(rows)
    weighed = state.weights_ > _NEGLIGIBLE
    grid = models.kernel.n_values if state.feature_map_ is None else 1
    kernels = np.repeat(np.arange(grid), len(weighed) // grid)
    gammas = np.ones(grid) if models.gamma is None else models.gamma.cpu().numpy()
    available = free_bytes(device, ensemble.spec.memory_limit)
    if device.type == "cpu":
        available = min(available, _AT_ONCE)
    by_row, by_gamma = np.zeros((m, n)), np.zeros(m)
    score = np.full(m, state.score_offset_.mean())
    status = np.zeros(len(SetStatus), dtype=np.int64)
    for kernel in np.unique(kernels[weighed]):
        used = np.flatnonzero(weighed & (kernels == kernel))
        per_model = 8.0 * n * (_ARRAYS_OF_MODEL + _ARRAYS)
        per_replicate = len(used) * per_model
        per_replicate += 8.0 * n * (3 * n if models.gamma is not None else len(models.center))
        at_once = max(1, int(available / 2 // (8.0 * _ARRAYS * len(used) * n)))

        def work(
            items: slice,
            used: NDArray[np.intp] = used,
            kernel: int = kernel,
            at_once: int = at_once,
        ) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
            fitted = _part(models, items, torch.from_numpy(used), kernel)
            upper = torch.from_numpy(state.C_[used][:, None] * mass[items, None]).to(device)
            solved = solve_exactly(fitted, train, y, upper)
            factor = state.weights_[used] / state.score_scale_[items, None] / len(mass)
            share = torch.from_numpy(factor).to(device)
            of_rows, of_gamma, scores = np.zeros((m, n)), np.zeros(m), np.zeros(m)
            for part in row_blocks(m, 1, max(1, at_once // len(factor))):
                seen = scored[part]
                scores[part] = torch.einsum("brm,br->m", solved.scores(seen), share).cpu()
                d_upper, d_gamma = solved.derivatives(seen)
                moved = torch.einsum("brmn,brn->mn", d_upper, upper * share[..., None])
                of_rows[part] = moved.cpu().numpy()
                if d_gamma is not None:
                    of_gamma[part] = (
                        gammas[kernel] * torch.einsum("brm,br->m", d_gamma, share).cpu()
                    )
            codes = solved.status.cpu().numpy().ravel()
            return of_rows, of_gamma, scores, np.bincount(codes, minlength=len(SetStatus))

        chunks = chunked(len(mass), work, bytes_per_item=per_replicate, available=available // 2)
        for _, (of_rows, of_gamma, scores, codes) in chunks:
            by_row += of_rows
            by_gamma += of_gamma
            score += scores
            status += codes
    return by_row, by_gamma, score, status


def _part(models: FittedBatch, items: slice, used: Tensor, kernel: int) -> FittedBatch:
    """Some replicates and some models of one value of γ, given by its number."""

    def taken(values: Tensor | None) -> Tensor | None:
        return None if values is None else values[items][:, used.to(values.device)]

    intercept = taken(models.intercept)
    assert intercept is not None
    certificate = {name: taken(each) for name, each in vars(models.certificate).items()}
    return replace(
        models,
        intercept=intercept,
        coef=taken(models.coef),
        dual_coef=taken(models.dual_coef),
        scale=models.scale if models.scale.ndim == 1 else models.scale[items],
        kernel=models.kernel.take(slice(kernel, kernel + 1)),
        certificate=Certificate(**certificate),  # type: ignore[arg-type]
        replicates=items,
    )


def _warn_of_doubts(score: Floats, again: Floats, status: NDArray[np.int64]) -> None:
    unconfirmed = status[SetStatus.UNCONFIRMED]
    if unconfirmed:
        warnings.warn(
            f"{unconfirmed} of {status.sum()} machines: {SetStatus.UNCONFIRMED.advice}",
            ConvergenceWarning,
            stacklevel=3,
        )
    away = again - score
    if status[SetStatus.NO_FREE]:  # an intercept is free within an interval, for all rows alike
        away -= np.median(away)
    off = np.abs(away)
    if not unconfirmed and (off > _SAME_SCORE).any():
        warnings.warn(
            f"Solved to rounding, the machines give scores up to {off.max():.1e} away from the "
            "model's, and it is they that were differentiated. Check that X_train is what the "
            "model was fitted to, in the same order, and that class_weight is as it was; else fit "
            "the model to a smaller tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
