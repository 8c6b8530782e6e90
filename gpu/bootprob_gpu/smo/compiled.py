"""Sequential minimal optimisation along the path of C, compiled for the CPU.

The dual in signed variables ``s = y a``: maximise ``Σ y s − ½ sᵀ K s`` over ``lower ≤ s ≤ upper``
and ``Σ s = 0``. Working sets of two by second-order information: R.-E. Fan, P.-H. Chen, C.-J. Lin,
JMLR 6 (2005) 1889–1918, algorithm WSS 2. Each larger C starts from ``t s`` of the one before, with
the ``t`` that maximises the dual objective along that ray within the larger box.
"""

from __future__ import annotations

import numpy as np

from bootprob_gpu.hardware.compiled import compiled
from bootprob_gpu.smo.compiled_descent import descend, gather, may_move
from bootprob_gpu.smo.compiled_steps import (
    enter_box,
    free_ends,
    objectives,
    renew,
    stretch,
    times_gram,
    vote,
    widen,
)

__all__ = ["OVER_ROWS", "smo_path"]

_CHECK_EVERY = 64  # iterations between evaluations of the duality gap
_CHECK_AFTER = 16  # at least, where the violation has become small enough for it
_REFRESH_EVERY = 64 * _CHECK_EVERY  # iterations after which the gradient is computed anew
_PATIENCE = 1024  # checks without a larger dual objective or smaller gap before a model is given up
_CONVERGED, _MAX_ITER, _STALLED, _SINGLE_CLASS = 0, 1, 2, 3  # `bootprob_gpu.Status`
_SETTLED = 0.5  # steps by rows after which it is asked which rows could still move
_FURTHER = 0.1  # share of the violation down to which steps are taken without them

OVER_ROWS = 17  # vectors that a path holds: labels, and twice what a step reads


@compiled("the solver for kernels", seconds=5, nogil=True, error_model="numpy")
def smo_path(  # type: ignore[no-untyped-def]
    base, index, squares, gamma, order, y, upper, tol, kkt_tol, max_iter, part, inverse, ready,
    few_part, few_inverse, over_rows, f, dual_coef, intercept, scores, primal, dual, n_iter, status,
):  # fmt: skip
    """Train one support vector machine per row of `upper`, each started from the one before.

    Rows of the Gram matrix are made when they are first needed, which many never are.

    Parameters
    ----------
    base : array, shape (·, ·)
        With `gamma` None a Gram matrix; else the products ``x·z`` of the rows of weight with all
        rows, in the order of `order`.
    index : array of int, shape (c,)
        Where in `base` the first c rows of `order` are: those of weight, and others that are to
        be scored as well. With a `gamma`, their number counts only.
    squares : array, shape (n,)
        With a `gamma`: ``‖x‖²`` in the order of `order`.
    gamma : float or None
        ``exp(−γ ‖x − z‖²)`` is the kernel.
    order : array of int, shape (n,)
        The rows, those m that carry weight in any of the models first.
    y : array, shape (n,)
        Labels, −1 or +1.
    upper : array, shape (R, n)
        Box bounds of the R models; fastest when they grow from model to model.
    tol, kkt_tol : float
        A model is done at this relative duality gap, or at this violation of the optimality
        conditions: ``max g − min g`` over what may grow and what may fall. Negative for never.
    max_iter : int
        Iterations allowed for each model.
    part, inverse, ready : arrays, shape (m, c) of float64, (m, m) of float32 and (m,) of False
        Room for rows of the Gram matrix and for inverse curvatures, and which are there. Or the
        matrix itself and inverse curvatures of all pairs, with `ready` all True.
    few_part, few_inverse : arrays, shape (l, l) of float64 and of float32
        Room for those of up to l rows, l < m, among which steps may be taken alone.
    over_rows, f : tuple of arrays, shape (m,), and array, shape (c,), of 0
        Room for `OVER_ROWS` vectors, and for scores.
    dual_coef, scores : arrays, shape (R, n)
        Filled in: signed dual variables, and scores of the first c rows.
    intercept, primal, dual, n_iter, status : arrays, shape (R,)
        Filled in: intercepts, objectives, iterations, values of `Status`.
    """
    m, c = part.shape
    # f = K s; g = y − f, the dual's gradient; added to g, rise and fall put it far away where s
    # may not go.
    label, diagonal, s, lo, hi, g, rise, fall = over_rows[:8]
    state, few = over_rows[1:9], over_rows[9:]
    active, made = np.empty(m, dtype=np.int64), np.ones(m, dtype=np.bool_)
    gram = (base, index, squares, part, inverse, ready)
    few_gram = (base, index, squares, few_part, few_inverse, made)
    for k in range(m):
        label[k] = g[k] = y[order[k]]
        diagonal[k] = base[index[k], index[k]] if gamma is None else 1.0
    end = max(kkt_tol, 0.0)
    solved, fresh, moved = False, True, True
    for r in range(upper.shape[0]):
        answer, single = vote(label, upper[r], order)
        if single:
            intercept[r], status[r] = answer, _SINGLE_CLASS
            for k in range(c):
                scores[r, order[k]] = answer
            continue
        still = enter_box(label, upper[r], order, s, lo, hi)
        if not (solved and still):
            stretch(label, lo, hi, s, g)
            fresh, moved = False, True
        g_max, g_min = free_ends(s, lo, hi, g, rise, fall, m)
        it, renewed, look, idle, stuck = 0, 0, _SETTLED * m, 0, False
        best, closest = -np.inf, np.inf
        while True:
            p, d, b, norm, t = objectives(label, s, lo, hi, g, g_max, g_min)
            idle += 1
            ending = (
                stuck or g_max - g_min <= end or it >= max_iter
                or abs(p - d) <= tol * p or idle > _PATIENCE
            )  # fmt: skip
            # The gap falls about as fast as the violation.
            promising = (g_max - g_min) * tol * p / max(p - d, 1e-300)
            if not (ending and fresh) and widen(label, lo, hi, s, g, d, norm, t, tol):
                ending, fresh, moved = True, False, True
            if not fresh and (ending or it - renewed >= _REFRESH_EVERY):
                renew(part, label, s, f, g, m)  # sheds the rounding of many updates
                g_max, g_min = free_ends(s, lo, hi, g, rise, fall, m)
                fresh, renewed = True, it
                p, d, b, norm, t = objectives(label, s, lo, hi, g, g_max, g_min)
            if fresh and (d > best or p - d < closest):  # updates may say more than is true
                idle, best, closest = 0, max(best, d), min(closest, p - d)
            if ending:  # unless the rounding only made it look solved
                solved = abs(p - d) <= tol * p or g_max - g_min <= kkt_tol
                given_up = stuck or g_max <= g_min or it >= max_iter or idle > _PATIENCE
                if solved or given_up:
                    break
            least, most, goal, a = _CHECK_AFTER, _CHECK_EVERY, promising, 0
            if it >= look:
                look = it + _SETTLED * m
                a = may_move(g, rise, fall, g_max, g_min, active, m)
            if 0 < a <= len(few_part):
                g_max, g_min = gather(gram, gamma, state, m, active, a, few_gram, few)
                least, most, goal = 0, _REFRESH_EVERY, max(_FURTHER * (g_max - g_min), 0.5 * goal)
                gram_now, state_now, m_now = few_gram, few, a
            else:
                gram_now, state_now, m_now = gram, state, m
            g_max, g_min, done, stuck = descend(
                gram_now, gamma, state_now, m_now, g_max, g_min, least, min(most, max_iter - it),
                goal, end,
            )  # fmt: skip
            it += done
            if m_now < m:
                for x in range(a):
                    s[active[x]] = few[1][x]
                renew(part, label, s, f, g, m)
                g_max, g_min = free_ends(s, lo, hi, g, rise, fall, m)
                fresh, moved, stuck, renewed, look = True, True, False, it, it + _CHECK_EVERY
            elif done > 0:
                fresh, moved = False, True
        if moved:
            times_gram(part, s, m, c, f)
            moved = False
        for k in range(m):
            dual_coef[r, order[k]] = s[k]
        for k in range(c):
            scores[r, order[k]] = f[k] + b
        intercept[r], primal[r], dual[r], n_iter[r] = b, p, d, it
        status[r] = _CONVERGED if solved else _MAX_ITER if it >= max_iter else _STALLED
