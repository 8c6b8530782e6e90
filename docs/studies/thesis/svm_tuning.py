"""C₊, C₋ and γ of RBF machines by cross-validation, all inner folds × grid in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.model_selection import StratifiedKFold

from bootprob.preparation.grids import DEFAULT_C, PAPER_GAMMA
from bootprob.runtime.arrays import Bools, Floats, Integers
from bootprob_gpu import Problem, iter_fit

__all__ = ["Chosen", "Criterion", "Grid", "asked_share", "choose", "equal_costs", "two_costs"]

Criterion = Literal["accuracy", "G-mean"]

_KKT = 1e-3  # libsvm's own; which rows are right hardly depends on less


@dataclass(frozen=True)
class Grid:
    """Pairs of costs, to be crossed with γ.

    Attributes
    ----------
    costs : ndarray, shape (K, n_C, 2)
        (C₊, C₋) in the thesis's convention ``‖w‖² + C Σ ξ``; the pairs of each of the K paths
        ascend, so that every machine starts from the one before.
    gamma : ndarray, shape (n_gamma,)
    """

    costs: Floats
    gamma: Floats


@dataclass(frozen=True)
class Chosen:
    """C₊, C₋ (the thesis's convention) and γ of one outer fold, and their mean criterion."""

    C_positive: float
    C_negative: float
    gamma: float
    criterion: float


def equal_costs() -> Grid:
    """The grid of thesis 2.3.3 with one C: 121 pairs."""
    C = np.asarray(DEFAULT_C)
    return Grid(np.stack([C, C], axis=1)[None], np.asarray(PAPER_GAMMA))


def two_costs() -> Grid:
    """The grid of thesis 2.3.3 for SVM(C₊, C₋): 1,331 triples."""
    C = np.asarray(DEFAULT_C)
    negative, positive = np.meshgrid(C, C, indexing="ij")  # a path over C₊ for each C₋
    return Grid(np.stack([positive, negative], axis=2), np.asarray(PAPER_GAMMA))


def asked_share(least: float, n: int, confidence: float = 0.95) -> float:
    """``min(1, p0 + √(log α / (−2 n)))``, thesis (2.4) and 2.3.1, for n positive anchors."""
    return min(1.0, least + float(np.sqrt(np.log(1 - confidence) / (-2 * n))))


def choose(
    X: Floats,
    positive: Bools,
    grid: Grid,
    criterion: Criterion,
    folds: int,
    seed: int,
    *,
    least: float | None = None,
    per_class: bool = False,
) -> Chosen:
    """Costs and γ with the highest mean criterion over inner folds.

    Parameters
    ----------
    X : ndarray, shape (n, p)
        Training rows of an outer fold.
    positive : ndarray of bool, shape (n,)
    grid : Grid
    criterion : {"accuracy", "G-mean"}
        G-mean is ``√(TPR · TNR)``.
    folds : int
        Number of inner folds, stratified.
    seed : int
    least : float, optional
        None trains plain machines. Otherwise machines that find this share of the positives, as
        thesis Algorithm 1 does: the first half of the rows are I, the others the anchors J; a plain
        machine on I ∪ J says which anchors are kept, those with the highest scores, and the
        machine on I is trained with these on its margin.
    per_class : bool, default False
        Divide the costs of the constrained machines by the rows of their class, ``C / |I₊|`` and
        ``C / |I₋|``.

    Returns
    -------
    Chosen
        Of equally good ones that with the smallest γ, then the smallest costs.
    """
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    inside = np.ones((folds, len(X)), dtype=bool)
    for fold, (_, held_out) in enumerate(splitter.split(X, positive)):
        inside[fold, held_out] = False
    found = []
    for path in grid.costs:
        costs = np.where(positive, path[:, :1], path[:, 1:]) / 2  # (n_C, n), in our convention
        bounds = np.tile(costs, (len(grid.gamma), 1)) * np.ones((folds, 1, 1))
        if least is None:
            scores = _scores(X, positive, inside, bounds, grid.gamma)
        else:
            scores = _constrained_scores(
                X, positive, inside, bounds, grid.gamma, least, per_class=per_class
            )
        found.append(_mean_criterion(scores, positive, ~inside, criterion))
    reached = np.stack(found).reshape(len(grid.costs), len(grid.gamma), -1).swapaxes(0, 1)
    g, path, c = np.unravel_index(np.argmax(reached.round(12)), reached.shape)
    C_positive, C_negative = grid.costs[path, c]
    return Chosen(
        float(C_positive), float(C_negative), float(grid.gamma[g]), float(reached[g, path, c])
    )


def _scores(X: Floats, positive: Bools, inside: Bools, bounds: Floats, gamma: Floats) -> Floats:
    """Scores of all rows under machines with these box bounds, both (folds, R, n)."""
    problem = Problem(
        X,
        np.where(positive, 1.0, -1.0),
        inside.astype(np.uint8),
        np.ones(bounds.shape[1] // len(gamma)),  # C is in the bounds
        kernel="rbf",
        gamma=gamma,
        upper=bounds * inside[:, None],
    )
    blocks = [block.train_scores for block in iter_fit(problem, kkt_tol=_KKT)]
    return np.concatenate([scores.numpy() for scores in blocks if scores is not None])


def _constrained_scores(
    X: Floats,
    positive: Bools,
    inside: Bools,
    bounds: Floats,
    gamma: Floats,
    least: float,
    *,
    per_class: bool,
) -> Floats:
    """As `_scores`, of machines on I that keep the best anchors of plain ones on I ∪ J."""
    first = inside & (inside.cumsum(axis=1) <= inside.sum(axis=1, keepdims=True) // 2)
    plain = bounds / _class_sizes(positive, inside) if per_class else bounds
    plain = _scores(X, positive, inside, plain, gamma)
    bounds = (bounds / _class_sizes(positive, first) if per_class else bounds) * first[:, None]
    for fold, anchors in enumerate(inside & ~first & positive):
        rows = np.flatnonzero(anchors)
        kept = int(np.ceil(asked_share(least, len(rows)) * len(rows) - 1e-9))
        best = rows[np.argsort(-plain[fold][:, rows], axis=1, kind="stable")[:, :kept]]
        # Σ y a = 0: no multiplier of a positive exceeds all bounds of the negatives.
        hard = 2 * bounds[fold][:, ~positive].sum(axis=1, keepdims=True)
        np.put_along_axis(bounds[fold], best, hard, axis=1)
    return _scores(X, positive, inside, bounds, gamma)


def _class_sizes(positive: Bools, rows: Bools) -> Integers:
    """How many of the rows of each fold are of the class of each row, shape (folds, 1, n)."""
    counted = [np.count_nonzero(rows & own, axis=1)[:, None] for own in (positive, ~positive)]
    return np.where(positive, *counted)[:, None]


def _mean_criterion(
    scores: Floats, positive: Bools, held_out: Bools, criterion: Criterion
) -> Floats:
    """Mean over the folds' held-out rows, shape (R,)."""
    found = []
    for values, rows in zip(scores, held_out, strict=True):
        own = positive[rows]
        right = (values[:, rows] > 0) == own
        if criterion == "accuracy":
            found.append(right.mean(axis=1))
        else:
            found.append(np.sqrt(right[:, own].mean(axis=1) * right[:, ~own].mean(axis=1)))
    return np.mean(found, axis=0)
