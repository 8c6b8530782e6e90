"""What is compared: `BootstrapSVC` with every calibration, and the peers on a tuned SVC."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bootprob import BootstrapSVC
from bootprob.calibration import CALIBRATORS, choose_calibration, vote_logits
from bootprob.preparation.grids import DEFAULT_C
from bootprob.runtime.arrays import Bools, Floats

__all__ = [
    "AUTO",
    "CALIBRATED",
    "OURS",
    "PEERS",
    "VENN_ABERS",
    "OutOfBag",
    "ScoreAsProbability",
    "of_peers",
    "tuned_svc",
]


AUTO = "auto"
OURS = (*CALIBRATORS, AUTO)
"""Calibrations of `BootstrapSVC`."""

CALIBRATED = {
    f"{method}, {'ensemble' if ensemble else 'pooled'}": {"method": method, "ensemble": ensemble}
    for method in ("sigmoid", "isotonic")
    for ensemble in (True, False)
}
"""Options of scikit-learn's CalibratedClassifierCV."""

VENN_ABERS = {
    "Venn–Abers, inductive": {"inductive": True, "cal_size": 0.2},
    "Venn–Abers, cross": {"inductive": False},
}
"""Options of the package venn-abers."""

PEERS = (*CALIBRATED, *VENN_ABERS)


@dataclass(frozen=True)
class OutOfBag:
    """What an ensemble is calibrated with, and what it says of new rows before that.

    Attributes
    ----------
    positive : ndarray of bool, shape (n,)
        Of the training rows.
    scores, votes : ndarray, shape (n,)
        Mean scores and vote shares of the training rows, out of bag; NaN where they never were.
    n_votes : float
        Mean number of replicates that a training row is out of bag of.
    new_scores, new_votes : ndarray, shape (m,)
        The same of new rows, from all replicates.
    """

    positive: Bools
    scores: Floats
    votes: Floats
    n_votes: float
    new_scores: Floats
    new_votes: Floats

    @classmethod
    def of_ensemble(cls, X: Floats, positive: Bools, X_new: Floats, **options: Any) -> Self:
        """Train an ensemble.

        Parameters
        ----------
        X, positive : ndarray, shape (n, p) and (n,)
            Training rows.
        X_new : ndarray, shape (m, p)
        **options
            Of `BootstrapSVC`.
        """
        model = BootstrapSVC(**options).fit(X, positive)
        return cls(
            positive,
            model.oob_decision_function_,
            model.oob_vote_proba_[:, 1],
            float(model.oob_counts_.mean()),
            model.decision_function(X_new),
            model.vote_proba(X_new)[:, 1],
        )

    def probabilities(self) -> tuple[dict[str, Floats], str]:
        """Probabilities of the new rows under every calibration, as `BootstrapSVC` makes them.

        Nothing is trained for that: an ensemble does not depend on its calibration.

        Returns
        -------
        probabilities : dict of ndarray, shape (m,)
            By a name of `OURS`.
        chosen : str
            What "auto" takes.
        """
        taught = np.isfinite(self.scores)
        scores, positive = self.scores[taught], self.positive[taught]
        logits, weight = vote_logits(self.votes[taught], self.n_votes), np.ones(len(scores))
        new = self.new_scores, vote_logits(self.new_votes, self.n_votes)
        found = {
            name: calibrator.fit(scores, positive, weight, logits).predict(*new)
            for name, calibrator in CALIBRATORS.items()
        }
        chosen = choose_calibration(scores, logits, positive, weight)
        return found | {AUTO: found[chosen]}, chosen


def of_peers(
    X: Floats, positive: Bools, X_new: Floats, *, kernel: str, inner_folds: int, seed: int
) -> tuple[dict[str, Floats], float]:
    """Probabilities of the peers, all of which calibrate the same tuned SVC.

    Parameters
    ----------
    X, positive, X_new
        As for `OutOfBag.of_ensemble`.
    kernel : {"linear", "rbf"}
    inner_folds : int
        Of the search for C, of CalibratedClassifierCV and of cross Venn–Abers.
    seed : int
        Of all of them.

    Returns
    -------
    probabilities : dict of ndarray, shape (m,)
        By a name of `PEERS`.
    C : float
        What the search found.
    """
    splitter = StratifiedKFold(inner_folds, shuffle=True, random_state=seed)
    svc, C = tuned_svc(X, positive, kernel, splitter)
    found = {}
    for name, options in CALIBRATED.items():
        model = CalibratedClassifierCV(svc, cv=splitter, **options).fit(X, positive)
        found[name] = model.predict_proba(X_new)[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        # It looks for the steepest of slopes some or all of which are 0 / 0.
        warnings.filterwarnings("ignore", "All-NaN slice encountered", RuntimeWarning)
        from venn_abers import VennAbersCalibrator  # silences numpy for good where it is imported

        for name, options in VENN_ABERS.items():
            stratify = positive if options["inductive"] else None
            model = VennAbersCalibrator(
                ScoreAsProbability(svc),
                n_splits=inner_folds,
                random_state=seed,
                stratify=stratify,
                **options,
            )
            found[name] = model.fit(X, positive).predict_proba(X_new)[:, 1]
    for name, probability in found.items():
        if not np.isfinite(probability).all():
            raise ArithmeticError(f"{name} gave probabilities that are no numbers.")
    return found, C


def tuned_svc(
    X: Floats, positive: Bools, kernel: str, splitter: StratifiedKFold
) -> tuple[Pipeline, float]:
    """Make an SVC on standardised columns with the C of our grid that cross-validates best.

    Returns
    -------
    svc : Pipeline
        Not fitted.
    C : float
    """
    svc = make_pipeline(StandardScaler(), SVC(kernel=kernel, gamma="scale"))
    search = GridSearchCV(svc, {"svc__C": list(DEFAULT_C)}, cv=splitter, refit=False)
    best = search.fit(X, positive).best_params_
    return clone(svc).set_params(**best), best["svc__C"]


class ScoreAsProbability(ClassifierMixin, BaseEstimator):
    """A classifier whose probability is its score, squeezed between 0 and 1.

    Venn–Abers takes the order of scores alone, but asks for `predict_proba`.

    Parameters
    ----------
    estimator : estimator
        Has a `decision_function`.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Floats, y: NDArray[Any]) -> Self:
        """Fit a clone of the estimator."""
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Floats) -> NDArray[Any]:
        """Classes, as the estimator has them."""
        return self.estimator_.predict(X)

    def predict_proba(self, X: Floats) -> Floats:
        """``½ + s / (2 + 2 |s|)`` of the score s, and the rest; shape (m, 2)."""
        score = self.estimator_.decision_function(X)
        positive = 0.5 + score / (2 + 2 * np.abs(score))
        return np.stack([1 - positive, positive], axis=1)
