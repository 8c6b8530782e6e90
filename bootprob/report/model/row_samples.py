"""What a report says of single rows: the score histograms and the intervals of the sampled rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bootprob.ensemble.uncertainty.probability_intervals import (
    NEEDS_REPLICATES,
    OF_PROBABILITIES,
)
from bootprob.intervals import OF_VOTES, basic

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC

__all__ = ["median_width", "out_of_bag_method", "row_histograms", "row_intervals"]

_N_BINS = 80
_MIN_SCORES = 10  # out-of-bag replicates that a row needs to be worth a histogram


def _chosen(model: BootstrapSVC) -> list[tuple[str, int]]:
    """Up to four telling rows: why chosen, position within `sampled_rows_`."""
    rows = model.sampled_rows_
    p, score = model.oob_proba_[rows, 1], model.oob_decision_function_[rows]
    left = set(np.flatnonzero((~np.isnan(model.sampled_scores_)).sum(axis=1) >= _MIN_SCORES))

    def from_middle(side: NDArray[np.bool_]) -> NDArray[np.float64]:
        if not side.any():
            return np.full(len(rows), np.inf)
        return np.where(side, np.abs(score - np.median(score[side])), np.inf)

    threshold = model.decision_threshold_
    where = "one half" if threshold == 0.5 else "the threshold"
    reasons = [
        (f"probability closest to {where}", np.abs(p - threshold)),
        ("probability furthest from the truth", -np.abs(p - model.y_[rows])),
        (f"middle of the rows with a probability below {where}", from_middle(p <= threshold)),
        (f"middle of the rows with a probability above {where}", from_middle(p > threshold)),
    ]
    chosen = []
    for reason, key in reasons:
        best = min(left, key=lambda k: (key[k], k), default=None)
        if best is not None and np.isfinite(key[best]):
            left.remove(best)
            chosen.append((reason, int(best)))
    return sorted(chosen, key=lambda item: score[item[1]])


def row_histograms(model: BootstrapSVC) -> dict[str, Any]:
    """Histograms of replicate scores on one axis; the threshold 0 is an edge of a bin."""
    half = None
    if model.calibration_ == "sigmoid" and model.sigmoid_[0] > 0:
        # Of the calibrated probability: control has moved the scores, 0 is where it decides.
        half = -model.sigmoid_[1] / model.sigmoid_[0] - model.score_threshold_
    chosen = _chosen(model)
    if not chosen:
        return {"edges": [], "rows": [], "score_at_one_half": half}
    scores = [_seen(model.sampled_scores_[k]) for _, k in chosen]
    low = min(0.0, *(values.min() for values in scores))
    high = max(0.0, *(values.max() for values in scores))
    width = ((high - low) or 1.0) / _N_BINS
    edges = np.arange(math.floor(low / width), max(math.ceil(high / width), 1) + 1) * width
    rows = []
    for (reason, k), values in zip(chosen, scores, strict=True):
        row = model.sampled_rows_[k]
        rows.append(
            {
                "row": row + 1,
                "reason": reason,
                "positive": bool(model.y_[row]),
                "probability": model.oob_proba_[row, 1],
                "vote": model.oob_vote_proba_[row, 1],
                "n_scores": len(values),
                "share_above_threshold": (values > 0).mean(),
                "mean": values.mean(),
                "standard_deviation": values.std(ddof=1),
                # A rounding error must not push an extreme score out of the outermost bin.
                "counts": np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0],
            }
        )
    return {"edges": edges, "rows": rows, "score_at_one_half": half}


def _seen(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Out-of-bag scores of one row, without the NaN of the samples that hold it."""
    return scores[~np.isnan(scores)]


def out_of_bag_method(model: BootstrapSVC) -> str:
    """The model's own kind of interval if it is had out of bag, else the default that is."""
    kinds = [kind for kind in OF_PROBABILITIES if kind not in NEEDS_REPLICATES] + [*OF_VOTES]
    kinds = [*OF_VOTES] if model.calibration is None else kinds
    return model.interval if model.interval in kinds else kinds[0]


def row_intervals(model: BootstrapSVC, level: float) -> dict[str, Any]:
    """Score and probability intervals of the sampled rows, from out-of-bag replicates.

    By `out_of_bag_method`.
    """
    method = out_of_bag_method(model)
    rows = model.sampled_rows_
    shown = model.oob_proba_interval(level, method)[rows, 1]
    wald = model.oob_proba_interval(level, "wald")[rows, 1]
    return {
        "method": method,
        "median_width": median_width(shown),
        "median_width_wald": median_width(wald),
        "rows": [
            {
                "row": row + 1,
                "positive": bool(model.y_[row]),
                "score": model.oob_decision_function_[row],
                "score_interval": _score_interval(model.sampled_scores_[k], level),
                "probability": model.oob_proba_[row, 1],
                "probability_interval": shown[k],
                "vote": model.oob_vote_proba_[row, 1],
                "vote_interval_wald": wald[k],
            }
            for k, row in enumerate(rows)
        ],
    }


def _score_interval(scores: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    seen = _seen(scores)
    return basic(seen[None], level)[0] if len(seen) > 1 else np.full(2, np.nan)


def median_width(interval: NDArray[np.float64]) -> float | None:
    """Of intervals (m, 2), those that are known."""
    width = np.diff(interval[~np.isnan(interval).any(axis=1)], axis=1)
    return float(np.median(width)) if width.size else None
