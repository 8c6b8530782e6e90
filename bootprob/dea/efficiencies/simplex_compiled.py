"""Efficiencies of all units under one set of outputs, by a simplex method that shares its tableau.

With one input, ``r = y / x`` and ``γ = β x``, every unit maximises over the same polytope
``{γ ≥ 0, R γ ≤ 1}``, and what unit k maximises is ``r_k γ = 1 − s_k``: it minimises the slack of
its own constraint. Its row of the tableau is its objective; a row without a positive entry is at
its optimum, so one pivot settles many units. Columns of R are scaled to a largest entry of 1, so
that no variable exceeds 1 and entries below `TOLERANCE` cost at most that much efficiency each.

With several inputs each unit has a polyhedron of its own, of which the origin is a vertex again
once the normalisation ``α x_k = 1`` has eliminated the weight of the largest input.

Arrays are filled by loops: for an assignment to a slice Numba compiles an error message, which
takes two seconds.
"""

from __future__ import annotations

import numpy as np

from bootprob.runtime.arrays import Floats, Integers
from bootprob_gpu.hardware.compiled import compiled, inner

__all__ = [
    "LINEAR",
    "QUADRATIC",
    "RANK",
    "TOLERANCE",
    "judge",
    "settle_units",
]


TOLERANCE = 1e-10
LINEAR, QUADRATIC, RANK = 0, 1, 2  # objectives
_PATIENCE = 40  # pivots for one unit before Bland's rule, which cannot cycle
_MOST_PIVOTS = 20_000  # for one unit
_FEASIBLE = 1e-8  # relative
_ROUNDING = 1e-12  # in parts of the largest weight; amounts are at most 1


@inner()
def _pivot(
    table: Floats, right: Floats, basic: Integers, nonbasic: Integers, row: int, column: int
) -> None:
    """Exchange a basic variable for a nonbasic one; basic = right − tableᵀ nonbasic."""
    q, n = table.shape
    inverse = 1.0 / table[column, row]
    step = right[row] * inverse
    entering = table[column]
    for i in range(n):
        right[i] -= entering[i] * step
        if right[i] < 0.0:  # by rounding
            right[i] = 0.0
    right[row] = step
    for j in range(q):
        if j != column:
            other = table[j]
            factor = other[row] * inverse
            if factor != 0.0:
                for i in range(n):
                    other[i] -= entering[i] * factor
            other[row] = factor
    for i in range(n):
        entering[i] *= -inverse
    entering[row] = inverse
    basic[row], nonbasic[column] = nonbasic[column], basic[row]


@inner()
def _improve(
    table: Floats, right: Floats, basic: Integers, nonbasic: Integers, row: int, bland: bool
) -> int:
    """One pivot that lowers the basic variable of `row`; the row that left, or −1 at its least."""
    q, n = table.shape
    column, most = -1, TOLERANCE
    for j in range(q):
        entry = table[j, row]
        if entry > TOLERANCE:
            if bland:
                if column < 0 or nonbasic[j] < nonbasic[column]:
                    column = j
            elif entry > most:
                column, most = j, entry
    if column < 0:
        return -1
    entering = table[column]
    leaving, least = row, right[row] / entering[row]
    for i in range(n):
        if entering[i] > TOLERANCE:
            ratio = right[i] / entering[i]
            if ratio < least:
                leaving, least = i, ratio
            elif ratio == least and i != leaving:
                if bland:
                    if basic[i] < basic[leaving]:
                        leaving = i
                elif entering[i] > entering[leaving]:
                    leaving = i
    _pivot(table, right, basic, nonbasic, leaving, column)
    return leaving


@compiled(nogil=True)
def judge(efficiency: Floats, kind: int, weight: Floats, rank: int) -> float:
    """An objective of the efficiencies; more is better."""
    if kind == RANK:
        return float(np.sort(efficiency)[rank - 1])  # np.partition takes 4 seconds to compile
    value = 0.0
    for k in range(len(efficiency)):
        if kind == LINEAR:
            value += weight[k] * efficiency[k]
        else:
            value -= weight[k] * (1.0 - efficiency[k]) ** 2
    return value


@compiled("the selection of outputs", seconds=6, nogil=True)
def settle_units(
    inputs: Floats,
    outputs: Floats,
    chosen: Integers,
    ceiling: Floats,
    kind: int,
    weight: Floats,
    rank: int,
    enough: float,
    efficiency: Floats,
    tight: Integers,
) -> bool:
    """Efficiencies of all units, unless the objective turns out to be at most `enough`.

    Parameters
    ----------
    inputs : ndarray, shape (N, K)
        Scaled; all ones if N is 1.
    outputs : ndarray, shape (M, K)
        Scaled: the largest of each is 1, or all are 0.
    chosen : ndarray of int, shape (p,)
    ceiling : ndarray, shape (K,)
        Upper bounds of the efficiencies.
    weight : ndarray, shape (K,)
    rank : int
        Of the order statistic, 1 for the least.
    efficiency : ndarray, shape (K,)
        Where the efficiencies are put; the bounds of units not settled.
    tight : ndarray of int, shape (K, p) or (0, 0)
        With one input: the variables that are 0 at a unit's optimum, outputs as 0 … p − 1 and the
        slack of unit j as p + j. Left out where it is empty.

    Returns
    -------
    bool
        Whether all units were settled. False also where the pivots ran out: then a unit is nan.
    """
    n_units = outputs.shape[1]
    for k in range(n_units):
        efficiency[k] = ceiling[k]
    if kind == RANK:
        low = 0.0
        for k in range(n_units):
            low += ceiling[k] <= enough
        if low >= rank:
            return False
    else:
        low = judge(ceiling, kind, weight, rank)
        if low <= enough:
            return False
    if len(inputs) == 1:
        return _settle_shared(outputs, chosen, kind, weight, rank, enough, low, efficiency, tight)
    for k in range(n_units):
        value = _settle_one(inputs, outputs, chosen, k)
        if np.isnan(value):
            efficiency[k] = value
            return False
        low = _lowered(kind, weight[k], enough, low, efficiency[k], value)
        efficiency[k] = value
        if (low >= rank) if kind == RANK else (low <= enough):
            return False
    return True


@inner()
def _lowered(
    kind: int, weight: float, enough: float, low: float, before: float, value: float
) -> float:
    """The bound of the objective, or the number of low units, with one efficiency known."""
    if kind == LINEAR:
        return low + weight * (value - before)
    if kind == QUADRATIC:
        return low + weight * ((1.0 - before) ** 2 - (1.0 - value) ** 2)
    return low + (1.0 if value <= enough < before else 0.0)


@inner()
def _settle_shared(
    outputs: Floats,
    chosen: Integers,
    kind: int,
    weight: Floats,
    rank: int,
    enough: float,
    low: float,
    efficiency: Floats,
    tight: Integers,
) -> bool:
    q, n = len(chosen), outputs.shape[1]
    table, right = np.empty((q, n)), np.ones(n)
    for j in range(q):
        column, output = table[j], outputs[chosen[j]]
        for i in range(n):
            column[i] = output[i]
    basic, nonbasic = np.arange(q, q + n), np.arange(q)
    place = np.arange(n)  # row of each unit's slack, −1 when it is nonbasic
    waiting, most = np.arange(n), np.empty(n)
    left, pivots = n, 0
    while True:
        # Whoever is at an optimum here is settled.
        for i in range(n):
            most[i] = table[0, i]
        for j in range(1, q):
            column = table[j]
            for i in range(n):
                most[i] = max(most[i], column[i])
        before, still = left, 0
        for index in range(left):
            k = waiting[index]
            row = place[k]
            if row >= 0 and most[row] > TOLERANCE:
                waiting[still] = k
                still += 1
                continue
            value = 1.0 if row < 0 else 1.0 - right[row]
            low = _lowered(kind, weight[k], enough, low, efficiency[k], value)
            efficiency[k] = value
            if len(tight) > 0:
                for j in range(q):
                    tight[k, j] = nonbasic[j]
        left = still
        if (low >= rank) if kind == RANK else (low <= enough):
            return False
        if left == 0:
            return True
        pivots = 0 if left < before else pivots + 1
        if pivots > _MOST_PIVOTS:
            efficiency[waiting[0]] = np.nan
            return False
        row = place[waiting[0]]
        leaving = _improve(table, right, basic, nonbasic, row, pivots > _PATIENCE)
        # The variable that left sits in the column of the one that came.
        for j in range(q):
            if nonbasic[j] >= q:
                place[nonbasic[j] - q] = -1
        if basic[leaving] >= q:
            place[basic[leaving] - q] = leaving


@inner()
def _settle_one(inputs: Floats, outputs: Floats, chosen: Integers, unit: int) -> float:
    """The efficiency of a unit, with several inputs.

    nan where the pivots ran out, or where the weights found turn out not to be feasible: with
    data that range over more than ten orders of magnitude, rounding may do that.
    """
    n_inputs, n = inputs.shape
    p = len(chosen)
    q = n_inputs - 1 + p
    largest = int(np.argmax(inputs[:, unit]))
    scale = 1.0 / inputs[largest, unit]
    table, right = np.empty((q, n + 1)), np.empty(n + 1)
    for i in range(n):
        right[i] = inputs[largest, i] * scale
    right[n] = 1.0  # the weight that was eliminated, times its input
    others = np.array([i for i in range(n_inputs) if i != largest])
    for column in range(n_inputs - 1):
        i = others[column]
        share = inputs[i, unit] * scale
        for j in range(n):
            table[column, j] = inputs[largest, j] * share - inputs[i, j]
        table[column, unit] = 0.0
        table[column, n] = inputs[i, unit]
    for j in range(p):
        column = n_inputs - 1 + j
        for i in range(n):
            table[column, i] = outputs[chosen[j], i]
        table[column, n] = 0.0
    basic, nonbasic = np.arange(q, q + n + 1), np.arange(q)
    row, value = unit, np.nan
    for pivots in range(_MOST_PIVOTS):
        leaving = _improve(table, right, basic, nonbasic, row, pivots > _PATIENCE)
        if leaving < 0 or leaving == row:
            value = 1.0 - right[row] if leaving < 0 else 1.0
            break
    weights = np.zeros(q)
    for i in range(n + 1):
        if basic[i] < q:
            weights[basic[i]] = right[i]
    own = 1.0
    for column in range(n_inputs - 1):
        own -= weights[column] * inputs[others[column], unit]
    if own < -_FEASIBLE:
        return np.nan
    vanishing = _ROUNDING * max(own * scale, weights.max())
    for j in range(n):
        used = max(own, 0.0) * scale * inputs[largest, j]
        for column in range(n_inputs - 1):
            used += weights[column] * inputs[others[column], j]
        made = 0.0
        for column in range(p):
            made += weights[n_inputs - 1 + column] * outputs[chosen[column], j]
        if made > used + _FEASIBLE * max(used, made) + vanishing:
            return np.nan
        if j == unit and abs(made - value) > _FEASIBLE:
            return np.nan
    return value
