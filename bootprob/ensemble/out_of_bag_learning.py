"""Weights, control and calibration of a trained ensemble of two classes, from rows left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bootprob.calibration import (
    CALIBRATORS,
    Calibrator,
    choose_calibration,
    sigmoid_replicates,
    vote_logits,
)
from bootprob.calibration.calibrated import Calibrated
from bootprob.calibration.calibrated import shares as vote_shares_of_both
from bootprob.ensemble.control.decisions import (
    Control,
    Controlled,
    control_ensemble,
    rates_reached,
)
from bootprob.ensemble.control.thresholds import LeftOut
from bootprob.ensemble.scoring.out_of_bag import (
    OutOfBagScores,
    WeighedReplicates,
    score_out_of_bag,
)
from bootprob.ensemble.specs import CalibrationSpec
from bootprob.ensemble.training.preparation import Prepared
from bootprob.ensemble.uncertainty.composite_posterior_fit import fit_composite_posterior
from bootprob.ensemble.uncertainty.kernel_posterior_fit import fit_kernel_posterior
from bootprob.ensemble.uncertainty.true_logit import TrueLogit, mean_variance
from bootprob.ensemble.weighting import (
    accuracy_weights,
    log_loss_weights,
    log_losses,
    pooled_weights,
    tempered_weights,
)
from bootprob.exceptions import DataError
from bootprob.intervals.mixtures import deviation_of_mixture, logit_of_mixture
from bootprob.intervals.shares import in_effective_rows
from bootprob.metrics.intraclass import design_effects, intraclass_correlation
from bootprob.metrics.lack_of_fit import ScoreNoise, lack_of_fit
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups
from bootprob_gpu.hardware.threads import few_threads
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["Ensemble", "learn_out_of_bag"]

_CONSTANT = 1e-6  # relative, of a diagonal made in float32
_ROWS_OF_A_THREAD = 500  # of the posterior of a kernel that is named
_LEAST_OF_POSTERIOR, _MOST_OF_POSTERIOR = 0.01, 0.99  # of its share, else none, or at most


class Ensemble(Protocol):
    """Trained models of two classes, and sums of what they say of rows out of bag."""

    @property
    def accuracy(self) -> Floats:
        """Weighted share of out-of-bag rows right, shape (B, R); NaN where no row is out of bag."""

    @property
    def votes(self) -> NDArray[np.signedinteger[Any]]:
        """Out-of-bag scores above 0, counted over the replicates, shape (n, R)."""

    @property
    def score_sums(self) -> Floats:
        """Out-of-bag scores, summed over the replicates, shape (n, R)."""

    @property
    def n_out_of_bag(self) -> NDArray[np.int64]:
        """Replicates in which each row is out of bag, shape (n,)."""

    def weighed(self, weights: Floats, table: Prepared) -> WeighedReplicates:
        """The models with weights, shape (R,), and their training rows."""

    def attributes(self, table: Prepared) -> dict[str, Any]:
        """Attributes of the fit that are theirs alone."""


def learn_out_of_bag(
    spec: CalibrationSpec,
    table: Prepared,
    ensemble: Ensemble,
    positive: NDArray[np.bool_],
    weight: Floats,
    control: Control | None = None,
    *,
    own: NDArray[np.bool_] | slice = slice(None),
) -> dict[str, Any]:
    """Weight, control and calibrate a trained ensemble of two classes.

    Parameters
    ----------
    spec : CalibrationSpec
    table : Prepared
        What it was trained on.
    ensemble : Ensemble
        Loses the sums of its scores, which become their means.
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        Row weights; 0 for rows of other classes, which are scored but teach nothing.
    control : Control, optional
        Rates that must hold; by default none.
    own : ndarray of bool, shape (n,), optional
        Rows of the two classes; by default all.

    Returns
    -------
    dict
        The attributes of the fit that depend on the labels.
    """
    control = control or Control()
    # Weights have no unit: rows teach as much as so many of equal weight, whatever they sum to.
    teaching = in_effective_rows(weight)
    taught = _taught(ensemble, positive, teaching, table.groups)
    weights = _weigh(spec, table, ensemble, positive, teaching, taught)
    machines = ensemble.weighed(weights, table)
    calibrated = spec.calibration is not None
    scores = score_out_of_bag(machines, positive, teaching, align=calibrated)
    effects = _design_effects(scores, positive, teaching, table.groups)
    independent = teaching / effects  # with it rows tell no more than independent ones
    kernel_posterior: dict[str, Any] = {}
    oob_kernel_logits = posterior_slope = None
    if calibrated and not table.kernel.is_linear:
        kernel_posterior, oob_kernel_logits = _kernel_posterior(table, positive, independent)
    share, of_posterior = 0.0, None
    if isinstance(table.kernel, ViewKernels) and oob_kernel_logits is not None:
        mixture = oob_kernel_logits, kernel_posterior["weight"]
        of_posterior = logit_of_mixture(*mixture)
        share = _posterior_share(control, scores, of_posterior, positive, independent)
    if share and of_posterior is not None:
        deviation = deviation_of_mixture(*mixture)
        mixed = scores.mixed_with(of_posterior, deviation, share, positive, teaching)
        scores, posterior_slope = mixed
    with np.errstate(invalid="ignore"):
        votes = ensemble.votes @ weights / ensemble.n_out_of_bag
    left_out = LeftOut(positive, weight, table.groups)
    ruled = control_ensemble(control, machines, scores, votes, left_out, calibrated=calibrated)
    n_votes = float(ensemble.n_out_of_bag[own].mean())
    # Control decides by the score, in which the sigmoid strictly rises; "auto" may choose steps.
    asked = "sigmoid" if control.method and calibrated else spec.calibration
    kind, calibrator = _calibrate(asked, ruled, positive, teaching, n_votes, table.groups)
    oob_vote_proba = vote_shares_of_both(ruled.votes)
    if kind is None:
        oob_proba, decided_above = oob_vote_proba, 0.5
    else:
        reported = Calibrated(ruled.scores.sigmoid, calibrator, ruled.moved, n_votes)
        votes_needed = ruled.votes if calibrator.needs_votes else None
        oob_proba = reported.predict_both(ruled.scores.mean, votes_needed)
        decided_above = reported.decision_threshold
    between = None
    if ruled.between is not None:
        lower, upper = ruled.scores.sigmoid.predict(np.array(ruled.between)).tolist()
        between = lower, upper
    of_intervals = _of_intervals(ruled, taught, positive, teaching, independent, table.counts)
    model_scores = ensemble.score_sums
    model_scores /= np.maximum(ensemble.n_out_of_bag, 1)[:, None]
    return {
        "y_": positive.astype(np.int64),
        "sample_weight_": weight,
        "weights_": weights,
        "accuracy_": ensemble.accuracy,
        **ensemble.attributes(table),
        **_out_of_bag(ruled),
        **of_intervals,
        "sigmoid_information_": ruled.scores.sigmoid.information * _worth(teaching, independent),
        "kernel_posterior_": kernel_posterior,
        "oob_kernel_logits_": oob_kernel_logits,
        "posterior_slope_": posterior_slope,
        "posterior_share_": share or None,
        "lack_of_fit_": _lack_of_fit(
            ruled, table, positive, weight, effects, of_intervals["true_logit_"], of_posterior
        )
        if kind
        else None,
        "calibration_": kind,
        "calibrator_": {} if kind in (None, "sigmoid") else dict(vars(calibrator)),
        "recalibration_": None,
        "monitor_": None,
        "history_": None,
        "oob_counts_": ensemble.n_out_of_bag,
        "oob_model_scores_": model_scores,
        "oob_proba_": oob_proba,
        "oob_vote_proba_": oob_vote_proba,
        "controlled_rates_": rates_reached(
            control.floors,
            oob_proba[:, 1],
            (decided_above, decided_above) if between is None else between,
            left_out,
            ruled.shares,
        ),
        "undecided_between_": None if between is None else np.array(between),
    }


def _taught(
    ensemble: Ensemble, positive: NDArray[np.bool_], weight: Floats, groups: Groups | None
) -> NDArray[np.bool_]:
    """Rows of weight that were ever out of bag, shape (n,); a DataError if a class has none."""
    found: NDArray[np.bool_] = (ensemble.n_out_of_bag > 0) & (weight > 0)
    if not (found & positive).any() or not (found & ~positive).any():
        more = "rows" if groups is None else "groups, which are left out as a whole,"
        raise DataError(
            f"No row of one class was ever out of bag in {len(ensemble.accuracy)} bootstrap "
            f"samples; give more {more} or raise n_bootstraps."
        )
    return found


def _mean_scores(ensemble: Ensemble, rows: NDArray[np.bool_]) -> Floats:
    """Mean out-of-bag scores, shape (rows.sum(), R), of rows that were ever out of bag."""
    scores = ensemble.score_sums[rows]
    scores /= ensemble.n_out_of_bag[rows, None]
    return scores


def _design_effects(
    scores: OutOfBagScores, positive: NDArray[np.bool_], weight: Floats, groups: Groups | None
) -> Floats:
    """By how much rows tell less than independent ones, shape (n,)."""
    if groups is None:
        return np.ones_like(weight)
    known = np.isfinite(scores.mean) & (weight > 0)
    probability = scores.sigmoid.predict(scores.mean[known])
    correlation = intraclass_correlation(positive[known], probability, weight[known], groups[known])
    return design_effects(weight, groups, correlation)


def _worth(weight: Floats, independent: Floats) -> float:
    """Share of what the rows would tell if they were independent."""
    return float(independent.sum() / weight.sum())


def _weigh(
    spec: CalibrationSpec,
    table: Prepared,
    ensemble: Ensemble,
    positive: NDArray[np.bool_],
    weight: Floats,
    taught: NDArray[np.bool_],
) -> Floats:
    """Weights of the models of the grid, shape (R,)."""
    if spec.weighting == "log_loss":
        known = _mean_scores(ensemble, taught), positive[taught], weight[taught]
        if table.likely_C is not None:  # machines of kernels that a pilot kept
            return pooled_weights(*known)
        if isinstance(table.kernel, ViewKernels):
            return tempered_weights(log_losses(*known))
        return log_loss_weights(*known)
    accuracy = np.nanmean(ensemble.accuracy, axis=0)
    return accuracy_weights(accuracy, spec.accuracy_tolerance)


def _posterior_share(
    control: Control,
    scores: OutOfBagScores,
    logits: Floats,
    positive: NDArray[np.bool_],
    weight: Floats,
) -> float:
    """Weight of the posterior's own logits beside the machines' scores; 0 where they are no use.

    Under constraints it is 0: the posterior knows nothing of them. Rows are left out one by one of
    each part of the posterior, but not of the weights of the parts, and it has learned from n − 1
    rows where a machine has from about .63 n: both favour it a little.
    """
    if control.method == "constrained":
        return 0.0
    taught = np.isfinite(scores.mean) & (weight > 0)
    candidates = np.stack([scores.mean[taught], logits[taught]], axis=1)
    _, share = tempered_weights(log_losses(candidates, positive[taught], weight[taught]))
    return min(float(share), _MOST_OF_POSTERIOR) if share > _LEAST_OF_POSTERIOR else 0.0


def _calibrate(
    calibration: str | None,
    ruled: Controlled,
    positive: NDArray[np.bool_],
    weight: Floats,
    n_votes: float,
    groups: Groups | None,
) -> tuple[str | None, Calibrator]:
    """Name of the calibration, chosen if that is asked for, and the calibrator."""
    scores = ruled.scores
    if calibration is None or calibration == "sigmoid":
        return calibration, scores.sigmoid
    taught = np.isfinite(scores.mean) & (weight > 0)
    known = scores.mean[taught], positive[taught], weight[taught]
    logits = vote_logits(ruled.votes[taught], n_votes)
    if calibration == "auto":
        taught_groups = None if groups is None else groups[taught]
        calibration = choose_calibration(known[0], logits, *known[1:], taught_groups)
        if calibration == "sigmoid":
            return calibration, scores.sigmoid
    return calibration, CALIBRATORS[calibration].fit(*known, logits)


def _lack_of_fit(
    ruled: Controlled,
    table: Prepared,
    positive: NDArray[np.bool_],
    weight: Floats,
    effects: Floats,
    true_logit: Floats,
    of_posterior: Floats | None,
) -> dict[str, float]:
    sigmoid, kernel = ruled.scores.sigmoid, table.kernel
    probability = sigmoid.predict(ruled.scores.mean + ruled.moved)
    noise = None
    if kernel.is_linear:
        noise = ScoreNoise(float(true_logit[0]), sigmoid.slope_in_errors())
    rows = table.rows if table.feature_map is None else table.unmapped
    return lack_of_fit(
        rows,
        positive,
        probability,
        weight,
        precomputed=not kernel.has_features,
        noise=noise,
        groups=table.groups,
        effects=effects,
        of_interval=None if of_posterior is None else expit(of_posterior),
    )


def _of_intervals(
    ruled: Controlled,
    taught: NDArray[np.bool_],
    positive: NDArray[np.bool_],
    weight: Floats,
    independent: Floats,
    counts: NDArray[np.unsignedinteger[Any]],
) -> dict[str, Any]:
    scores, before = ruled.scores, ruled.scores.mean + ruled.moved
    true_logit = TrueLogit.fit(
        scores.sigmoid,
        before[taught],
        mean_variance(scores.variance, scores.jackknife)[taught],
        weight[taught],
        _worth(weight, independent),
    )
    return {
        "oob_jackknife_variance_": scores.jackknife,
        "counts_gram_": scores.gram,
        "sigmoid_replicates_": sigmoid_replicates(scores.sigmoid, before, positive, weight, counts),
        "true_logit_": true_logit.parameters(),
    }


def _kernel_posterior(
    table: Prepared, positive: NDArray[np.bool_], weight: Floats
) -> tuple[dict[str, Any], Floats | None]:
    """Arrays of the kernel's posterior, and its logits of rows (n, g, 2) left out in turn.

    Nothing of a precomputed kernel whose diagonal varies: that of new rows is not known.
    """
    used, kernel = weight > 0, table.kernel
    rows, groups = table.unmapped, None if table.groups is None else table.groups[used]
    known = rows if used.all() else rows[used]  # of a million rows there is no need for a copy
    if not kernel.has_features:
        known = known[:, used]
        if np.ptp(known.diagonal()) > _CONSTANT * known.diagonal().mean():
            return {}, None
    labelled = known, positive[used], weight[used]
    if isinstance(table.candidates, ViewKernels):
        composite, left_out = fit_composite_posterior(
            *labelled, table.candidates, table.device, groups, table.few_columns
        )
        others = composite.moments(rows[~used], table.candidates, table.device)
        arrays = composite.arrays()
    else:
        with few_threads(max(1, len(known) // _ROWS_OF_A_THREAD)):
            posterior, left_out = fit_kernel_posterior(*labelled, kernel, table.device, groups)
            if posterior.support is not None:
                posterior = replace(posterior, support=np.flatnonzero(used)[posterior.support])
            others = posterior.moments(rows[~used], kernel, table.device)
            arrays = posterior.arrays()
    logits = np.empty((len(rows), *left_out.shape[1:]))
    logits[used], logits[~used] = left_out, others
    return arrays, logits


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
        "sampled_rows_": scores.sampled_rows,
        "sampled_scores_": scores.sampled_scores,
    }
