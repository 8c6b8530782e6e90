"""Efficiencies of all pairs of outputs, and the last two levels of an enumeration of subsets."""

from __future__ import annotations

import numpy as np

from bootprob.dea.efficiencies.simplex_compiled import LINEAR, judge, settle_units
from bootprob.runtime.arrays import Bools, Floats, Integers
from bootprob_gpu.hardware.compiled import compiled

__all__ = ["fill_pairs", "scan_last_two"]


@compiled("the selection of outputs", seconds=10, nogil=True)
def fill_pairs(inputs: Floats, outputs: Floats, first: int, pairs: Floats) -> None:
    """Efficiencies under each pair of an output and a later one, both ways, and under it alone.

    As `SubsetEfficiencies.fill_pairs`, whose inputs (N, K) and outputs (M, K) these are.
    """
    n = outputs.shape[1]
    ceiling, weight = np.ones(n), np.full(n, 1.0 / n)
    none = np.empty((0, 0), dtype=np.int64)
    for other in range(first, len(outputs)):
        chosen = np.array([first, other]) if other > first else np.array([first])
        found = pairs[first, other]
        if not settle_units(
            inputs, outputs, chosen, ceiling, LINEAR, weight, 1, -np.inf, found, none
        ):
            found[:] = 1.0
        for k in range(n):
            pairs[other, first, k] = found[k]


@compiled("the selection of outputs", seconds=3, nogil=True)
def scan_last_two(
    inputs: Floats,
    outputs: Floats,
    prefix: Integers,
    candidates: Integers,
    starts: Integers,
    pairs: Floats,
    ceiling: Floats,
    kind: int,
    weight: Floats,
    rank: int,
    enough: float,
    rows: Floats,
    limits: Floats,
    clashes: Bools,
    doubts: Integers,
) -> tuple[float, int, int, int, int]:
    """The best way to add two candidates to a prefix, if it is better than `enough`.

    Parameters
    ----------
    inputs, outputs : ndarray, shape (N, K) and (M, K)
    prefix : ndarray of int, shape (p − 2,)
    candidates : ndarray of int, shape (c,)
        None of them clashes with the prefix.
    starts : ndarray of int
        Positions among the candidates of the first of the two; the second comes after it.
    pairs : ndarray, shape (M, M, K) or (0, 0, 0)
        Efficiencies under pairs, which bound those under what holds them.
    ceiling : ndarray, shape (K,)
        Bounds of the efficiencies.
    kind, weight, rank, enough
        Of the objective.
    rows, limits, clashes
        `SelectionRules`.
    doubts : ndarray of int, shape (starts × c, 2)
        Where those are put whose pivots ran out.

    Returns
    -------
    best : float
        `enough` if nothing is better.
    first, second : int
        Outputs; −1 if nothing is better.
    evaluated : int
    n_doubts : int
    """
    n, p = outputs.shape[1], len(prefix) + 2
    bounded = len(pairs) > 0 and p > 2
    bound, found = ceiling.copy(), np.empty(n)
    none = np.empty((0, 0), dtype=np.int64)
    chosen = np.empty(p, dtype=np.int64)
    for i in range(p - 2):
        chosen[i] = prefix[i]
    spent = np.zeros(len(rows))
    with_one = np.zeros((len(candidates) if bounded else 0, n))
    for i in range(p - 2):
        for row in range(len(rows)):
            spent[row] += rows[row, prefix[i]]
    if bounded:
        own = np.zeros(n)
        for i in range(p - 2):
            for j in range(i):
                for k in range(n):
                    own[k] += pairs[prefix[i], prefix[j], k]
        for c in range(len(candidates)):
            for k in range(n):
                with_one[c, k] = own[k] * 0.5
            for i in range(p - 2):
                for k in range(n):
                    with_one[c, k] += pairs[prefix[i], candidates[c], k]
    best, first, second, evaluated, n_doubts = enough, -1, -1, 0, 0
    share = 1.0 / (p - 1)
    for b in starts:
        chosen[p - 2] = candidates[b]
        for c in range(b + 1, len(candidates)):
            chosen[p - 1] = candidates[c]
            if clashes[candidates[b], candidates[c]]:
                continue
            allowed = True
            for row in range(len(rows)):
                total = spent[row] + rows[row, candidates[b]] + rows[row, candidates[c]]
                if total > limits[row] + 1e-9:
                    allowed = False
                    break
            if not allowed:
                continue
            if bounded:
                both = pairs[candidates[b], candidates[c]]
                for k in range(n):
                    sums = (with_one[b, k] + with_one[c, k] + both[k]) * share
                    bound[k] = min(ceiling[k], sums)
            evaluated += 1
            if settle_units(inputs, outputs, chosen, bound, kind, weight, rank, best, found, none):
                value = judge(found, kind, weight, rank)
                if value > best:
                    best, first, second = value, candidates[b], candidates[c]
            elif np.isnan(found).any():
                doubts[n_doubts] = candidates[b], candidates[c]
                n_doubts += 1
    return best, first, second, evaluated, n_doubts
