"""From a table and the parameters of a `BootstrapSVC` to its fitted attributes."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bootprob.alternatives import Alternatives
from bootprob.calibration import (
    CALIBRATORS,
    Calibrator,
    choose_calibration,
    sigmoid_replicates,
    vote_logits,
)
from bootprob.constrained_training import iter_fit_constrained
from bootprob.control import Controlled, control_ensemble, controlled_rates, rates_reached
from bootprob.ensemble import EnsembleTraining, train_ensemble
from bootprob.exceptions import DataError
from bootprob.feature_map import check_exact_rows, fit_feature_map
from bootprob.grids import c_grid, gamma_grid
from bootprob.labels import encode_labels, weigh_classes
from bootprob.lack_of_fit import lack_of_fit
from bootprob.out_of_bag import model_weights, score_out_of_bag
from bootprob.probabilities import Calibrated, both
from bootprob.probabilities import shares as vote_shares_of_both
from bootprob.probability_intervals import mean_variance
from bootprob.rates import RateFloor
from bootprob.resampling import bootstrap_counts, draw_entropy
from bootprob.standardization import bootstrap_scale, center_and_scale
from bootprob.thresholds import LeftOut, needed_shares
from bootprob.true_logit import TrueLogit
from bootprob_gpu import FittedBatch, Problem, iter_fit, resolve_device

if TYPE_CHECKING:
    from bootprob.estimator import BootstrapSVC

__all__ = ["learn"]

Floats = NDArray[np.float64]


def learn(svc: BootstrapSVC, X: Floats, y: NDArray[Any], weight: Floats) -> dict[str, Any]:
    """Train the ensemble, weight its models and calibrate it.

    Parameters
    ----------
    svc : BootstrapSVC
        Its parameters are read; nothing of it is changed.
    X : ndarray, shape (n, p)
        Training rows.
    y : ndarray, shape (n,)
        Labels.
    weight : ndarray, shape (n,)
        Row weights.

    Returns
    -------
    dict
        All attributes of the fit but the time it took.

    Raises
    ------
    ValueError
        As `BootstrapSVC.fit` says.
    """
    floors = controlled_rates(
        svc.control, svc.rates, svc.confidence, svc.bound, svc.calibration, svc.control_method
    )
    classes, positive = encode_labels(y, weight)
    weight, training_weight = weigh_classes(svc.class_weight, classes, y, weight)
    shares = needed_shares(floors, LeftOut(positive, weight))
    device = resolve_device(svc.device)
    center, scale = center_and_scale(X, weight)
    rows = (X - center) / scale
    gamma = _gammas(svc, X, rows, weight, device)
    random_state = check_random_state(svc.random_state)
    entropy = draw_entropy(random_state)
    counts, redrawn = bootstrap_counts(positive, weight, range(svc.n_bootstraps), entropy)
    if svc.standardize == "bootstrap" and svc.feature_map is None:
        replicate_scale = bootstrap_scale(rows, counts, weight)
    else:  # dividing standardised rows by 1 / scale takes the standardisation back
        replicate_scale = 1 / scale if svc.standardize is None else np.ones_like(scale)
    feature_map = error = None
    if svc.feature_map is not None:
        assert gamma is not None
        seen = rows / replicate_scale
        feature_map, error = fit_feature_map(
            svc.feature_map, seen[weight > 0], gamma[0], svc.n_components, random_state
        )
        rows = feature_map.transform(seen)
    problem = Problem(
        rows,
        np.where(positive, 1.0, -1.0),
        counts,
        c_grid(svc.C),
        kernel=svc.kernel if feature_map is None else "linear",
        gamma=gamma if feature_map is None else None,
        row_weight=training_weight,
        scale=replicate_scale if feature_map is None else None,
    )
    training, gap = _train(svc, problem, weight, floors, shares, device)
    # Weights have no unit here: n rows teach as much as n rows, whatever they sum to.
    teaching = weight * (np.count_nonzero(weight) / weight.sum())
    weights = model_weights(
        training,
        positive,
        teaching,
        weighting=svc.weighting,
        tolerance=svc.accuracy_tolerance,
    )
    scores = score_out_of_bag(
        training.models,
        rows,
        counts,
        positive,
        teaching,
        weights,
        align=svc.calibration is not None,
    )
    with np.errstate(invalid="ignore"):
        votes = training.votes @ weights / training.n_out_of_bag
    ruled = control_ensemble(
        svc.control,
        floors,
        shares,
        scores,
        votes,
        LeftOut(positive, weight),
        training.models,
        rows,
        counts,
        weights,
        calibrated=svc.calibration is not None,
    )
    n_votes = float(training.n_out_of_bag.mean())
    kind, calibrator = _calibrate(svc.calibration, ruled, positive, teaching, n_votes)
    if kind is None:
        oob_proba = vote_shares_of_both(ruled.votes)
    else:
        calibrated = Calibrated(ruled.scores.sigmoid, calibrator, ruled.moved, n_votes)
        oob_proba = both(calibrated.predict(ruled.scores.mean, ruled.votes))
    C = problem.C_per_model
    of_intervals = _of_intervals(ruled, training, positive, teaching, counts, svc.kernel)
    model_scores = training.score_sums
    model_scores /= np.maximum(training.n_out_of_bag, 1)[:, None]
    return {
        "classes_": classes,
        "y_": positive.astype(np.int64),
        "sample_weight_": weight,
        "center_": center,
        "scale_": scale,
        "bootstrap_scale_": replicate_scale,
        "entropy_": entropy,
        "n_redrawn_": redrawn,
        "C_": C,
        "gamma_": None if gamma is None else np.repeat(gamma, len(C) // len(gamma)),
        "feature_map_": None if feature_map is None else dict(feature_map.arrays),
        "feature_map_error_": error,
        "weights_": weights,
        "accuracy_": training.accuracy,
        **_models(training.models, rows),
        **_out_of_bag(ruled),
        **of_intervals,
        "lack_of_fit_": _lack_of_fit(ruled, rows, positive, weight) if kind else None,
        "calibration_": kind,
        "calibrator_": {} if kind in (None, "sigmoid") else dict(vars(calibrator)),
        "oob_counts_": training.n_out_of_bag,
        "oob_model_scores_": model_scores,
        "oob_proba_": oob_proba,
        "control_gap_": gap,
        "controlled_rates_": rates_reached(floors, oob_proba[:, 1], positive, weight, ruled.shares),
        "device_": str(device),
        "versions_": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("bootprob", "torch", "numpy", "scikit-learn")},
        },
    }


def _gammas(
    svc: BootstrapSVC, X: Floats, rows: Floats, weight: Floats, device: torch.device
) -> Floats | None:
    """Grid of γ, or None for the linear kernel; checks that it can be trained."""
    if svc.kernel == "linear":
        if svc.feature_map is not None:
            raise DataError(
                f"feature_map is {svc.feature_map!r}, but the linear kernel needs none; give "
                "kernel='rbf' or leave feature_map out."
            )
        return None
    gamma = gamma_grid(svc.gamma, (X if svc.standardize is None else rows)[weight > 0])
    if svc.feature_map is None:
        check_exact_rows(len(X), len(gamma), device, svc.memory_limit)
    elif not (np.isfinite(gamma) & (gamma > 0)).all():
        raise DataError(f"gamma is {gamma.tolist()}; give a positive number.")
    elif len(gamma) != 1:
        raise DataError(
            f"gamma gives {len(gamma)} values, but a feature map approximates the kernel of "
            "one; give one γ, and compare several by fitting a model for each."
        )
    return gamma


def _train(
    svc: BootstrapSVC,
    problem: Problem,
    weight: Floats,
    floors: Sequence[RateFloor],
    shares: dict[str, float],
    device: torch.device,
) -> tuple[EnsembleTraining, Floats | None]:
    """Train all machines; with what constraints on them cost at most, shape (B, R)."""
    options: dict[str, Any] = {
        "tol": svc.tol,
        "device": device,
        "dtype": getattr(torch, svc.dtype),
        "memory_limit": svc.memory_limit,
    }
    gaps: list[torch.Tensor] = []
    if svc.control_method == "exact":
        from bootprob.exact_training import choose_solver, prove  # needs the extra "mip"

        choose_solver()

    def constrained() -> Iterator[FittedBatch]:
        for block in iter_fit_constrained(problem, weight, floors, shares, **options):
            if svc.control_method == "exact":
                block = prove(block, problem, weight, floors, shares, time_limit=svc.time_limit)
            gaps.append(block.gap)
            yield block.models

    training = train_ensemble(
        problem,
        weight,
        constrained() if svc.control == "constrained" else iter_fit(problem, **options),
        device=device,
        description=f"{svc.kernel} SVMs",
        verbose=svc.verbose,
    )
    return training, torch.cat(gaps).cpu().numpy() if gaps else None


def _models(models: FittedBatch, rows: Floats) -> dict[str, Any]:
    return {
        "intercept_": models.intercept.cpu().numpy(),
        "coef_": None if models.coef is None else models.coef.cpu().numpy(),
        "dual_coef_": None if models.dual_coef is None else models.dual_coef.cpu().numpy(),
        "X_fit_": None if models.dual_coef is None else rows,
        "certificates_": {
            name: getattr(models, name).cpu().numpy()
            for name in ("primal", "dual", "gap", "n_iter", "status")
        },
    }


def _calibrate(
    calibration: str | None,
    ruled: Controlled,
    positive: NDArray[np.bool_],
    weight: Floats,
    n_votes: float,
) -> tuple[str | None, Calibrator]:
    """Name of the calibration, chosen if that is asked for, and the calibrator."""
    scores = ruled.scores
    if calibration is None or calibration == "sigmoid" or ruled.moved != 0:
        return calibration and "sigmoid", scores.sigmoid
    taught = np.isfinite(scores.mean) & (weight > 0)
    known = scores.mean[taught], positive[taught], weight[taught]
    logits = vote_logits(ruled.votes[taught], n_votes)
    if calibration == "auto":
        calibration = choose_calibration(known[0], logits, *known[1:])
        if calibration == "sigmoid":
            return calibration, scores.sigmoid
    return calibration, CALIBRATORS[calibration].fit(*known, logits)


def _lack_of_fit(
    ruled: Controlled, rows: Floats, positive: NDArray[np.bool_], weight: Floats
) -> dict[str, float]:
    probability = ruled.scores.sigmoid.predict(ruled.scores.mean + ruled.moved)
    return lack_of_fit(rows, positive, probability, weight)


def _of_intervals(
    ruled: Controlled,
    training: EnsembleTraining,
    positive: NDArray[np.bool_],
    weight: Floats,
    counts: NDArray[np.unsignedinteger[Any]],
    kernel: str,
) -> dict[str, Any]:
    scores, before = ruled.scores, ruled.scores.mean + ruled.moved
    taught = np.isfinite(before) & (weight > 0)
    alternatives, apart = Alternatives.none(), np.zeros(len(before))
    if kernel == "rbf":
        means = training.mean_scores(taught)
        alternatives = Alternatives.fit(means, positive[taught], weight[taught])
        logits = scores.sigmoid.slope * before[taught] + scores.sigmoid.intercept
        apart[taught] = alternatives.variance(means[:, alternatives.models], logits)
    true_logit = TrueLogit.fit(
        before[taught],
        mean_variance(scores.variance, scores.jackknife)[taught],
        apart[taught],
        positive[taught],
        weight[taught],
    )
    return {
        "oob_jackknife_variance_": scores.jackknife,
        "oob_model_variance_": apart,
        "alternatives_": dict(vars(alternatives)),
        "counts_gram_": scores.gram,
        "sigmoid_replicates_": sigmoid_replicates(scores.sigmoid, before, positive, weight, counts),
        "true_logit_": true_logit.arrays(),
    }


def _out_of_bag(ruled: Controlled) -> dict[str, Any]:
    scores = ruled.scores
    return {
        "score_scale_": scores.scale,
        "score_offset_": scores.offset,
        "score_threshold_": ruled.moved,
        "vote_thresholds_": ruled.vote_thresholds,
        "oob_decision_function_": scores.mean,
        "oob_score_variance_": scores.variance,
        "sigmoid_": (scores.sigmoid.slope, scores.sigmoid.intercept),
        "sigmoid_information_": scores.sigmoid.information,
        "oob_vote_proba_": vote_shares_of_both(ruled.votes),
        "sampled_rows_": scores.sampled_rows,
        "sampled_scores_": scores.sampled_scores,
    }
