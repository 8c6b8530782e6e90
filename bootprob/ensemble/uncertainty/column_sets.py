"""Which columns bend a logit: sets of few, for curves that look at no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from math import comb

import numpy as np
import torch
from torch import Tensor

from bootprob.ensemble.uncertainty.curves import OF_ALL_COLUMNS, Seen
from bootprob_gpu.hardware.threads import one_core_for_each

__all__ = [
    "ColumnSet",
    "likely_sets",
    "moderators",
    "score_statistics",
    "singles_and_pairs",
    "telling_triples",
]

ColumnSet = tuple[int, ...]
"""Columns, ascending."""

_MOST_PAIRED, _MOST_IN_THREES = 64, 24  # columns whose products are looked at
_MOST_TRIPLES = 3  # that are kept
_MOST_MODERATORS = 3
_POWERS = (1, 1), (1, 2), (2, 1)  # a slope may rise with another column, or with its distance
_THREE = 3
_LEFT = 1e-6  # share of its size that a term must have beyond the columns to be one
_STARTS = 6  # single columns and pairs that a search may begin with
_MORE = 4  # columns that may be the next
_MOST_BACKWARDS = 10  # columns of which one after the other is left out
_RISE = 0.1  # of the logarithm of the evidence that is worth another step
_NEAR, _MOST_SETS = 3.0, 2  # sets that are kept: how far behind the best, how many


def score_statistics(
    seen: Seen,
    weight: Tensor,
    residual: Tensor,
    reach: Tensor,
    bent: Sequence[int] = (),
    n_threads: int = 1,
) -> Tensor:
    """Squared score statistics of terms in one or two columns, shape (p, p), symmetric.

    Of two columns the term is their product, or one times the square of the other, of one its
    square, cube or levels; of these, and of the views of the columns, the largest counts. With
    factors of precision W and residuals ``r = ν − W A m`` of a posterior of coefficients of columns
    A, with prior precision P, a term φ that is added has the score ``φᵀ r`` of variance
    ``φᵀ W φ − φᵀ W A (Aᵀ W A + P)⁻¹ Aᵀ W φ`` (C. Rao, Proc. Camb. Phil. Soc. 44 (1948) 50–57). Of
    wide tables products of those 64 columns are looked at that bend the logit already, or whose own
    terms are the largest; others are 0.

    Parameters
    ----------
    seen : mapping of str to Tensor, shape (n, p)
        Views of the rows.
    weight : Tensor, shape (n,)
        The diagonal of W.
    residual : Tensor, shape (n,)
        r.
    reach : Tensor, shape (d, n)
        ``L⁻¹ Aᵀ W`` with ``L Lᵀ = Aᵀ W A + P``.
    bent : sequence of int, optional
        Columns with curves among A, which leave their own terms nothing to say.
    n_threads : int
    """
    known, smooth = (weight, residual, reach), _smooth(seen)
    powers = [partial(torch.pow, own, power) for own in smooth for power in (2, 3)]
    alone = _largest([lambda: seen["levels"], *powers], *known, n_threads)
    every = torch.diag(alone)
    order = alone.clone()
    order[list(bent)] = torch.inf
    paired = order.argsort(descending=True)[:_MOST_PAIRED].sort().values
    first, second = paired[torch.triu_indices(len(paired), len(paired), 1, device=paired.device)]
    if len(first):

        def of_pairs(own: Tensor, a: int, b: int) -> Tensor:
            return own[:, first] ** a * own[:, second] ** b

        terms = [partial(of_pairs, own, *powers) for own in smooth for powers in _POWERS]
        every[first, second] = every[second, first] = _largest(terms, *known, n_threads)
    return every


def telling_triples(
    seen: Seen,
    weight: Tensor,
    residual: Tensor,
    reach: Tensor,
    statistics: Tensor,
    n_threads: int = 1,
) -> list[ColumnSet]:
    """Three columns whose product says more than chance would make the largest of all say.

    Of a product of three that stands alone, no column and no pair tells anything. Half a statistic
    is about what the logarithm of the evidence gains, so it has to be worth more than what three
    columns lose for being one set of so many (`Model.log_odds` of `composite_model`).

    Parameters
    ----------
    seen, weight, residual, reach
        As for `score_statistics`.
    statistics : Tensor, shape (p, p)
        From it. Of wide tables those 24 columns are looked at that have the largest.
    n_threads : int

    Returns
    -------
    list of tuple of int
        Up to three, the largest first; none holds all columns.
    """
    p = len(statistics)
    if p <= _THREE:
        return []
    which = statistics.amax(0).argsort(descending=True)[:_MOST_IN_THREES].sort().values
    sets = torch.combinations(which, _THREE)
    first, second, third = sets.T

    def of_three(own: Tensor) -> Tensor:
        return own[:, first] * own[:, second] * own[:, third]

    terms = [partial(of_three, own) for own in _smooth(seen)]
    found = _largest(terms, weight, residual, reach, n_threads)
    least = 2 * np.log(_THREE * (_THREE + 1) * comb(p, _THREE))
    order = found.argsort(descending=True, stable=True)[:_MOST_TRIPLES]
    return [tuple(each) for each in sets[order[found[order] > least]].tolist()]


def _of_terms(terms: Tensor, weight: Tensor, residual: Tensor, reach: Tensor) -> Tensor:
    """Statistics of columns (n, k), shape (k,)."""
    terms = terms - terms.mean(0)
    size = weight @ terms.square()
    left = size - (reach @ terms).square().sum(0)
    return torch.where(left > _LEFT * size, (residual @ terms).square() / left, 0.0)


def _smooth(seen: Seen) -> list[Tensor]:
    return [seen[view] for view in OF_ALL_COLUMNS if view != "levels"]


def _largest(
    terms: Sequence[Callable[[], Tensor]],
    weight: Tensor,
    residual: Tensor,
    reach: Tensor,
    n_threads: int,
) -> Tensor:
    """Of the statistics of several terms of the same columns."""

    def of_terms(made: Callable[[], Tensor]) -> Tensor:
        return _of_terms(made(), weight, residual, reach)

    return torch.stack(one_core_for_each(of_terms, terms, n_threads)).amax(0)


def singles_and_pairs(statistics: Tensor) -> list[ColumnSet]:
    """Those with statistics above 0, the largest first; none holds all columns."""
    known = statistics.triu().cpu().numpy()
    found = np.argwhere(known)
    order = np.argsort(-known[tuple(found.T)], kind="stable")
    sets = (tuple(sorted({*pair})) for pair in found[order].tolist())
    return [each for each in sets if len(each) < len(known)]


def moderators(statistics: Tensor) -> list[ColumnSet]:
    """Columns whose terms with others are the largest together."""
    total = (statistics.sum(1) - statistics.diagonal()).cpu().numpy()
    return [(int(k),) for k in np.argsort(-total, kind="stable")[:_MOST_MODERATORS]]


def likely_sets(
    statistics: Tensor,
    triples: Sequence[ColumnSet],
    evidence: Callable[[Sequence[ColumnSet]], list[float]],
) -> list[ColumnSet]:
    """Sets of columns that are the most likely to be those that bend the logit.

    A stepwise search of the set with the largest evidence, from the columns and pairs with the
    largest statistics, from triples, and, where columns are few, from all of them.

    Parameters
    ----------
    statistics : Tensor, shape (p, p)
        From `score_statistics`.
    triples : sequence of tuple of int
        From `telling_triples`.
    evidence : callable
        Logarithms of the evidence, priors of the sets included, of curves in sets of columns.

    Returns
    -------
    list of tuple of int
        The best first; up to two, none of which holds all columns.
    """
    known, p = statistics.cpu().numpy(), len(statistics)
    done: dict[ColumnSet, float] = {}

    def best_of(sets: Sequence[ColumnSet]) -> ColumnSet:
        fresh = [each for each in dict.fromkeys(sets) if each not in done]
        done.update(zip(fresh, evidence(fresh), strict=True))
        return max(sets, key=lambda each: done[each])

    def next_to(columns: ColumnSet) -> list[ColumnSet]:
        found = [tuple(j for j in columns if j != k) for k in columns if len(columns) > 1]
        if len(columns) < p - 1:
            promise = known[:, list(columns)].max(axis=1)
            promise = [max(promise[j], known[j, j]) for j in range(p)]
            order = sorted(set(range(p)) - set(columns), key=lambda j: -promise[j])
            found += [tuple(sorted((*columns, j))) for j in order[:_MORE]]
        apart = (each for each in promising if len(each) > 1 and not {*each} & {*columns})
        found += [tuple(sorted((*columns, *pair))) for pair in islice(apart, _MORE)]
        return [each for each in found if len(each) < p]

    promising = singles_and_pairs(statistics)
    begun = [promising[:_STARTS], list(triples)]
    if 2 < p <= _MOST_BACKWARDS:
        begun.append(next_to(tuple(range(p))))
    for candidates in begun:
        reached = -torch.inf
        while candidates:
            best = best_of(candidates)
            if done[best] <= reached + _RISE:
                break
            reached, candidates = done[best], next_to(best)
    order = sorted(done, key=lambda each: -done[each])
    return [each for each in order if done[each] > done[order[0]] - _NEAR][:_MOST_SETS]
