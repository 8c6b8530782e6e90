"""Sets of classes that contain the true one as often as they say, from the same replicates.

Every training row is compared with a new row under the replicates that saw neither of them: the
jackknife+-after-bootstrap (B. Kim, C. Xu, R. F. Barber, NeurIPS 2020) with the comparison that
Y. Romano, M. Sesia, E. Candès (NeurIPS 2020) use for classes. How well a label fits a row is its
score, with the sign of the label; of several classes, its score against the class that fits best
of the others. docs/prediction_sets.md says what is guaranteed, and when.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from bootprob.calibration.coupling import class_pairs, number_of_classes
from bootprob.ensemble.fitted import ensemble_of
from bootprob.ensemble.scoring.rows import Rows, checked_rows
from bootprob.ensemble.state import State, state_of
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.metrics.subgroup_rows import names_of_rows
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["ROUNDING", "Mixture", "conformal_p_values", "p_values", "prediction_sets", "sets_of"]


# Differences, relative to the largest score, that rounding makes: closer scores are ties.
ROUNDING = {"float64": 1e-9, "float32": 1e-5}


def prediction_sets(
    model: Any,
    X: ArrayLike,
    level: float = 0.9,
    *,
    class_conditional: bool = False,
    weights: str | ArrayLike = "equal",
    allow_empty: bool = True,
    by: ArrayLike | None = None,
    training_by: ArrayLike | None = None,
) -> NDArray[np.bool_]:
    """Sets of classes that contain the class of a new row with the stated confidence.

    A set of several classes says that the row cannot be told; an empty set, that no class has
    such rows. The true class is in the set with probability ``1 − 2 α`` at least, where
    ``α = 1 − level``, whatever the distribution, and with about ``1 − α`` in practice. The
    probability is over training sets and new rows together, not for each training set.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted.
    X : array_like, shape (m, p)
        New rows.
    level : float, default 0.9
        Nominal confidence, ``1 − α``.
    class_conditional : bool, default False
        Keep the confidence within each class, so that a rare class is not given up for a
        frequent one. A class with fewer than ``1 / α − 1`` training rows is then in every set.
    weights : {"equal", "ensemble"} or array_like, shape (R,), default "equal"
        How the models of the grid are averaged.

        - "equal": raw scores, all models alike. Nothing in it was chosen by the training labels
          beyond each bootstrap sample, which is what the guarantee needs; but for
          ``kernel="auto"``, whose few kernels were, so that it is approximate.
        - "ensemble": `decision_function` before control, with the weights of the fit (of
          ``kernel="auto"`` without the posterior's share). These and
          the alignment of the replicates were chosen on the very rows that are compared, so
          nothing is guaranteed, and with 100 rows or fewer the sets cover less than they say.
          They are slightly smaller, and rank labels by probability: where one class is rare they
          leave it out unless `class_conditional` is set. Of several classes, each pair's own.
        - Numbers that were chosen without the training rows keep the guarantee.
    allow_empty : bool, default True
        False puts the label that fits better into a set that would be empty, which can only
        raise the coverage.
    by, training_by : array_like, shapes (m,) and (n,), optional
        Subgroups of the new and of the training rows, such as a site: the confidence is then kept
        within each of them (Mondrian sets: V. Vovk, A. Gammerman, G. Shafer, Algorithmic Learning
        in a Random World, 2005, 4.5). Of a subgroup with fewer than ``1 / α − 1`` training rows,
        or none, all classes are in every set.

    Returns
    -------
    ndarray of bool, shape (m, K)
        Whether the set contains each class, in the order of ``classes_``.

    Raises
    ------
    DataError
        For a level outside (0, 1), other weights than these, or `by` of one kind of rows alone, of
        another number of rows or with missing values.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob import BootstrapSVC
    >>> from bootprob.ensemble import prediction_sets
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=50, random_state=0)
    >>> model = model.fit(X[69:], y[69:])
    >>> sets = prediction_sets(model, X[:69], level=0.95)
    >>> bool(sets[range(69), y[:69]].mean() > 0.9)
    True
    """
    check_level(level)
    p_values = conformal_p_values(
        model,
        X,
        class_conditional=class_conditional,
        weights=weights,
        by=by,
        training_by=training_by,
    )
    return sets_of(p_values, level, allow_empty=allow_empty)


def sets_of(p_values: Floats, level: float, *, allow_empty: bool = True) -> NDArray[np.bool_]:
    """Sets (m, K) of p-values (m, K); parameters as for `prediction_sets`."""
    alpha = 1 - check_level(level)
    # They are multiples of 1 / (n + 1); rounding must not decide between .1 and .1.
    sets = p_values > alpha + 1e-12
    if not allow_empty:
        empty = ~sets.any(axis=1)
        sets[empty] = p_values[empty] == p_values[empty].max(axis=1, keepdims=True)
    return sets


def conformal_p_values(
    model: Any,
    X: ArrayLike,
    *,
    class_conditional: bool = False,
    weights: str | ArrayLike = "equal",
    by: ArrayLike | None = None,
    training_by: ArrayLike | None = None,
) -> Floats:
    """How many training rows fit their label no better than a new row fits each label.

    ``p(y) = (1 + #{i : y_i f_i(x_i) ≤ y f_i(x)}) / (n + 1)`` with labels −1 and 1 and ``f_i`` the
    mean score over the replicates that left row i out: the set at a level holds the labels with
    ``p(y) > 1 − level``. Of several classes, ``y f_i(x)`` is the least of y's mean scores against
    each other class. Ties count, and so do rows that no replicate left out. Rows of weight 0
    are as good as absent; all others count once, whatever their weight. Of rows in groups each
    counts ``1 / m`` of the m of its group, and n is the number of groups: exchangeable are groups,
    and a new row is of a new one (Y. Lee, R. Barber, R. Willett, "Distribution-free inference with
    hierarchical data", 2023).

    Parameters
    ----------
    model, X, weights, by, training_by
        As in `prediction_sets`; n is then the number of rows of the same subgroup.
    class_conditional : bool, default False
        Compare with the training rows of that label only (Mondrian).

    Returns
    -------
    ndarray, shape (m, K)
        In the order of ``classes_``; multiples of ``1 / (n + 1)``, never 0. The true class has
        ``p ≤ α`` with probability ``2 α`` at most.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from bootprob.ensemble import conformal_p_values
    >>> p_values = conformal_p_values(model, X[:3])
    >>> (p_values > 1 - 0.9).tolist() == model.prediction_sets(X[:3], level=0.9).tolist()
    True
    """
    ensemble, state = ensemble_of(model), state_of(model)
    members = [ensemble] if isinstance(ensemble, TwoClasses) else ensemble.ensembles
    if not class_conditional:  # other base rates leave the rows of each class what they were
        members[0].refuse_recalibrated("Prediction sets without class_conditional=True")
    elif members[0].recalibration is not None and members[0].recalibration.coefficients[1] != 1:
        members[0].refuse_recalibrated("Prediction sets")  # labels say that they are others
    mixtures = [_Mixture.of(member, weights) for member in members]
    options: dict[str, Any] = {
        "class_conditional": class_conditional,
        "rounding": ROUNDING[members[0].spec.dtype],
    }
    if by is None and training_by is None:
        return p_values(state, mixtures, checked_rows(model, X), **options)
    for what, given in (("by", by), ("training_by", training_by)):
        if given is None:
            raise DataError(f"by and training_by belong together, and {what} is not given.")
    names = names_of_rows("by", by, _num_samples(X))
    of_training = names_of_rows("training_by", training_by, len(state.y_))
    found = np.empty((len(names), number_of_classes(len(mixtures))))
    for name in np.unique(names):
        own = np.flatnonzero(names == name)
        rows = checked_rows(model, _safe_indexing(X, own))
        found[own] = p_values(state, mixtures, rows, among=of_training == name, **options)
    return found


def p_values(
    state: State,
    mixtures: Sequence[Mixture],
    X: Rows,
    *,
    class_conditional: bool,
    rounding: float = ROUNDING["float64"],
    among: NDArray[np.bool_] | None = None,
) -> Floats:
    """`conformal_p_values` of checked rows, by how scores of each pair of classes are mixed.

    Compared with training rows `among` some of them, by default with all.
    """
    known = _TrainingRows.of(state, mixtures, among)
    tolerance = rounding * float(np.abs(known.fit).max(initial=0.0))
    no_better = [
        _no_better_rows(known, scores, class_conditional, tolerance)
        for scores in zip(*(mixed.replicate_scores(X) for mixed in mixtures), strict=True)
    ]
    n, ties = known.totals(class_conditional)
    return (1 + ties + np.concatenate(no_better)) / (n + 1)


class Mixture(Protocol):
    """Scores of two classes, one for each replicate."""

    def replicate_scores(self, X: Rows) -> Iterator[Floats]:
        """Of rows, in chunks (rows, B)."""

    def out_of_bag_scores(self) -> Floats:
        """Of the training rows, the mean over the replicates that left each out."""


@dataclass(frozen=True)
class _Mixture:
    """How scores of a row under the R × B models of two classes become one for each replicate."""

    ensemble: TwoClasses
    weights: Floats
    scale: Floats | float = 1.0
    offset: Floats | float = 0.0
    of_ensemble: bool = False

    @classmethod
    def of(cls, ensemble: TwoClasses, weights: str | ArrayLike) -> _Mixture:
        state = ensemble.state
        R = len(state.weights_)
        if isinstance(weights, str):
            if weights == "equal":
                return cls(ensemble, np.full(R, 1 / R))
            if weights == "ensemble":
                # Control moves 0 to where it decides; the sets stay where labels are even.
                offset = state.score_offset_ + state.score_threshold_
                return cls(ensemble, state.weights_, state.score_scale_, offset, of_ensemble=True)
            raise DataError(f"weights is {weights!r}; give 'equal', 'ensemble' or {R} numbers.")
        try:
            given = np.asarray(weights, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.full(0, np.nan)
        if given.shape != (R,) or not (np.isfinite(given) & (given >= 0)).all() or not given.any():
            raise DataError(
                f"weights must be {R} numbers of at least 0, not all 0, one for each model that "
                f"a bootstrap sample trains; got {weights!r}."
            )
        return cls(ensemble, given / given.sum())

    def replicate_scores(self, X: Rows) -> Iterator[Floats]:
        """Scores of rows in chunks (rows, B)."""
        for scores in self.ensemble.scores.of_models(X):
            yield (self.weights @ scores) / self.scale + self.offset

    def out_of_bag_scores(self) -> Floats:
        """Of the training rows, the mean over the replicates that left each out."""
        state = self.ensemble.state
        if self.of_ensemble:
            scores = state.oob_decision_function_ + state.score_threshold_
            # Of the machines alone: the posterior of new rows has seen every training row.
            return scores - self.ensemble.scores.out_of_bag_of_posterior
        return state.oob_model_scores_ @ self.weights


@dataclass(frozen=True)
class _TrainingRows:
    """Training rows of some weight that were out of bag, as the k rows to compare with.

    Attributes
    ----------
    pairs : list of (int, int)
        Classes that each mixture tells apart; its scores speak for the second.
    fit : ndarray, shape (k,)
        Mean score for the row's own class, over the replicates that left the row out; the least
        of those against each other class.
    code : ndarray of int, shape (k,)
        Classes.
    outside : ndarray of bool, shape (B, k)
        Which replicates left the row out.
    never_out : ndarray of int, shape (n - k,)
        Classes of the rows of some weight that every replicate saw.
    groups : ndarray of int, shape (n,), or None
        Of the k rows, then of those.
    """

    pairs: list[tuple[int, int]]
    fit: Floats
    code: NDArray[np.integer[Any]]
    outside: NDArray[np.bool_]
    never_out: NDArray[np.integer[Any]]
    groups: Groups | None

    @classmethod
    def of(
        cls,
        state: State,
        mixtures: Sequence[Mixture],
        among: NDArray[np.bool_] | None = None,
    ) -> Self:
        outside = state.bootstrap_counts() == 0
        counted, left_out = state.sample_weight_ > 0, outside.any(axis=0)
        if among is not None:
            counted = counted & among
        pairs = class_pairs(number_of_classes(len(mixtures)))
        fit = np.full(len(state.y_), np.inf)
        for (first, second), mixed in zip(pairs, mixtures, strict=True):
            of_pair = np.isin(state.y_, (first, second))
            sign = np.where(state.y_[of_pair] == second, 1, -1)
            fit[of_pair] = np.minimum(fit[of_pair], sign * mixed.out_of_bag_scores())
        used = counted & left_out
        never, groups = counted & ~left_out, state.groups_
        if groups is not None:
            groups = np.concatenate([groups[used], groups[never]])
        return cls(pairs, fit[used], state.y_[used], outside[:, used], state.y_[never], groups)

    @property
    def n_classes(self) -> int:
        return number_of_classes(len(self.pairs))

    def mass(self, class_conditional: bool) -> tuple[Floats, Floats]:
        """What each row counts, of the k rows and of those never out of bag."""
        k, code = len(self.code), np.concatenate([self.code, self.never_out])
        if self.groups is None:
            return np.ones(k), np.ones(len(code) - k)
        alike = self.groups * self.n_classes + (code if class_conditional else 0)
        found = 1 / np.bincount(alike)[alike]
        return found[:k], found[k:]

    def totals(self, class_conditional: bool) -> tuple[Floats, Floats]:
        """Rows that each label is compared with, and those of them never out of bag, (K,) each.

        In groups, where rows have any.
        """
        K = self.n_classes
        codes, masses = (self.code, self.never_out), self.mass(class_conditional)
        found = np.stack([np.bincount(*each, K) for each in zip(codes, masses, strict=True)])
        if not class_conditional:
            found = np.repeat(found.sum(axis=1, keepdims=True), K, axis=1)
        used, never_out = found
        return used + never_out, never_out


def _no_better_rows(
    known: _TrainingRows, scores: Sequence[Floats], class_conditional: bool, tolerance: float
) -> Floats:
    """Training rows that fit their label no better than new rows fit each label.

    Each is compared under the replicates that left it out: one matrix product for each pair of
    classes, in blocks of training rows and of new ones.

    Parameters
    ----------
    known : _TrainingRows
    scores : sequence of ndarray, shape (m, B)
        Scores of the new rows by each replicate, of each pair.
    class_conditional : bool
    tolerance : float

    Returns
    -------
    ndarray, shape (m, K)
        In groups, where rows have any.
    """
    K, m = known.n_classes, len(scores[0])
    found = np.zeros((m, K))
    mass, _ = known.mass(class_conditional)
    for known_rows in row_blocks(len(known.fit), len(known.outside)):
        code, outside = known.code[known_rows], known.outside[:, known_rows]
        shares = outside / outside.sum(axis=0)
        fit = known.fit[known_rows] - tolerance
        for rows in row_blocks(m, K * len(fit)):
            margin = np.full((K, rows.stop - rows.start, len(fit)), np.inf)
            for (first, second), of_pair in zip(known.pairs, scores, strict=True):
                left_out = of_pair[rows] @ shares
                np.minimum(margin[second], left_out, out=margin[second])
                np.minimum(margin[first], -left_out, out=margin[first])
            for label in range(K):
                no_better = fit <= margin[label]
                if class_conditional:
                    no_better &= code == label
                found[rows, label] += no_better @ mass[known_rows]
    return found
