"""Mehrotra's interior point along the path of C of one linear support vector machine, compiled.

The method of `bootprob_gpu.interior_point.batched` on the rows of weight only, with four
differences that suit one core: passes over the rows are fused; the normal matrix is a symmetric
product, summed over blocks of rows that stay in the cache; scores and the dual's gradient are moved
along with the steps, and computed anew before anything is certified; and every C but the first
starts near the central path, from coefficients of the C before.

Rows come as ``Z``: column i is ``y_i (x_i, 1)``, so that margins are ``Zᵀ w`` and the gradient of
the dual is ``Z a``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bootprob_gpu.hardware.compiled import compiled, inlined, inner
from bootprob_gpu.hardware.compiled_blas import (
    add_symmetric_product,
    factor,
    solve_factored,
    times,
    times_transposed,
)
from bootprob_gpu.interior_point.compiled_loops import (
    aim,
    balanced,
    copy,
    correct,
    dual_norm,
    loss,
    middle_of_the_box,
    move,
    near_central_path,
    norm,
    predict,
    total,
    weigh,
)

__all__ = ["BLOCK_NUMBERS", "OVER_COLUMNS", "OVER_ROWS", "interior_point_path"]

CONVERGED, MAX_ITER, STALLED = 0, 1, 2  # values of `bootprob_gpu.Status`

_STALL_AFTER = 20  # iterations without a better gap before a problem is given up
_PLAIN_AFTER = 4  # such iterations after which second-order terms are left out
_PLAIN_CENTRING = 0.2
_STEP_TO_BOUNDARY = 0.995
_EXACT_WITHIN = 2.0  # tolerances within which a gap is computed free of gathered rounding
_KEEP_AT = 1e-2  # gap at which coefficients are kept for the next C
_WARM_REACH = 16.0  # ratio of consecutive C beyond which the one says little about the other
_LEAST_SHARE, _LARGEST_SHARE, _SHARE_PER_NORM = 0.02, 2.0, 8.0  # of a warm start; by experiment
BLOCK_NUMBERS = 40_000  # in a block of weighted rows: within the second-level cache
_DAMPING = 1e-12
OVER_ROWS, OVER_COLUMNS = 18, 6  # vectors that a path holds

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"nsz", "contract", "reassoc", "arcp"},
}
_inner = inner(**_OPTIONS)


@compiled("the solver for linear kernels", seconds=5, nogil=True, **_OPTIONS)
def interior_point_path(  # type: ignore[no-untyped-def]
    X1, y, rows, upper, penalty, tol, max_iter, w, primal, dual, n_iter, status, Z, H, over_columns,
    over_rows, room, objectives, blas,
):  # fmt: skip
    """Train one support vector machine for each row of `upper`, each started from the one before.

    Parameters
    ----------
    X1 : array, shape (n, q)
        Rows, columns of about unit scale, with a column of ones appended.
    y : array, shape (n,)
        Labels, −1 or +1.
    rows : array of int, shape (m,)
        The rows that carry weight, of both classes.
    upper : array, shape (R, m)
        Box bounds of those rows, positive.
    penalty : array, shape (Q,) with Q ≥ q
        Diagonal of ``Λ``, 0 for the intercept (the last of q) and positive elsewhere.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Iterations allowed for each model.
    w : array, shape (R, q)
        Filled in: coefficients, intercept last.
    primal, dual, n_iter, status : arrays, shape (R,)
        Filled in.
    Z, H : arrays, shape (Q, m) of 0 and (Q, Q)
        Room for the rows and for normal matrices.
    over_columns, over_rows : tuples of arrays, shape (Q,) of 0 and (m,)
        Room for `OVER_COLUMNS` and `OVER_ROWS` vectors.
    room : array
        For a block of weighted rows: `BLOCK_NUMBERS` numbers, and no less than 64 Q.
    objectives : array, shape (2,)
    blas : tuple
        Of `workspaces`.
    """
    m, q = rows.shape[0], X1.shape[1]
    x, kept = over_columns[0], over_columns[1]
    labels = over_rows[0]
    for i in range(m):
        labels[i] = y[rows[i]]
        for j in range(q):
            Z[j, i] = labels[i] * X1[rows[i], j]
    mass = 0.0
    for r in range(upper.shape[0]):
        mass_before, mass = mass, total(upper[r])
        warm = r > 0 and mass < _WARM_REACH * mass_before and mass_before < _WARM_REACH * mass
        n_iter[r] = 0
        while True:
            for j in range(x.shape[0]):
                x[j] = kept[j] if warm else 0.0
            spent, status[r] = _solve(
                Z, upper[r], penalty, tol, max_iter, warm, H, over_columns, over_rows, room,
                objectives, blas,
            )  # fmt: skip
            n_iter[r] += spent
            if status[r] == CONVERGED or not warm:
                break
            warm = False  # once more, from the middle of the box
        for j in range(q):
            w[r, j] = x[j]
        primal[r], dual[r] = objectives[0], objectives[1]


@inlined(**_OPTIONS)
def _solve(  # type: ignore[no-untyped-def]
    Z, u, penalty, tol, max_iter, warm, H, over_columns, over_rows, room, objectives, blas
):  # fmt: skip
    """One model, from the coefficients `x` and to them; iterations and status.

    Leaves in `kept` coefficients for the next C to start from, in `objectives` primal and dual.
    """
    Q, m = Z.shape
    x, kept, best, certified, G, dx = over_columns
    y, a, v, t, xi, ia, iv, it, ixi, theta, root, pull, f, df, da, dt, dxi, rho = over_rows
    copy(x, best)
    copy(x, certified)
    times_transposed(blas, Z, x, f)
    if warm:
        penalised = norm(penalty, x)
        level = penalised + loss(u, f)
        # The less the penalty weighs, the less another C changes.
        share = min(max(_SHARE_PER_NORM * penalised / level, _LEAST_SHARE), _LARGEST_SHARE)
        near_central_path(u, f, share * level / (2 * m), a, v, t, xi)
    else:
        middle_of_the_box(y, u, a, v, t, xi)
    times(blas, Z, a, G)
    objectives[0], objectives[1] = np.inf, -np.inf
    lowest, best_gap, best_iteration = np.inf, np.inf, 0
    keep = True
    for iteration in range(max_iter + 1):
        p = norm(penalty, x) + loss(u, f)
        gap = (p - total(a) + dual_norm(penalty, G)) / p
        if p < lowest:
            lowest = p
            copy(x, best)
        if gap < 0.9 * best_gap:
            best_gap, best_iteration = gap, iteration
        given_up = not np.isfinite(p) or iteration - best_iteration >= _STALL_AFTER
        last = given_up or iteration == max_iter
        if gap <= _EXACT_WITHIN * tol or last:
            if last:
                copy(best, x)
            gap = _certify(blas, Z, y, u, penalty, x, a, f, G, pull, objectives, certified)
        if keep and (gap <= max(_KEEP_AT, tol) or last):
            copy(x, kept)
            keep = False
        if gap <= tol or last:
            copy(certified, x)
        if gap <= tol:
            return iteration, CONVERGED
        if last:
            return iteration, STALLED if given_up else MAX_ITER
        mu = weigh(a, v, t, xi, ia, iv, it, ixi, theta, root, pull)
        if not _normal_factor(blas, Z, root, penalty, room, H):
            copy(best, x)
            _certify(blas, Z, y, u, penalty, x, a, f, G, pull, objectives, certified)
            copy(certified, x)
            return iteration, STALLED
        # Predictor: straight for complementarity 0.
        _direction(blas, Z, pull, G, penalty, x, H, dx, df)
        ratio_p, ratio_d, primal_part, dual_part, both = predict(
            a, v, t, xi, ia, iv, it, ixi, theta, df, da, dt, dxi
        )
        step_p, step_d = min(1.0, 1 / ratio_p), min(1.0, 1 / ratio_d)
        change = step_p * primal_part + step_d * dual_part + step_p * step_d * both
        reached = mu + change / (2 * m)
        target = min(max(reached / mu, 0.0) ** 3, 1.0) * mu
        # Corrector: towards the central path, second-order terms of the predictor included.
        # These terms, and with them the iterates, can cycle: then straight down the path.
        if iteration - best_iteration >= _PLAIN_AFTER:
            target, second_order = _PLAIN_CENTRING * mu, 0.0
        else:
            second_order = 1.0
        aim(target, second_order, t, xi, ia, iv, theta, da, dt, dxi, rho, pull)
        _direction(blas, Z, pull, G, penalty, x, H, dx, df)
        ratio_p, ratio_d = correct(t, xi, ia, iv, it, ixi, theta, rho, df, da, dt, dxi)
        # The first steps stay further from the boundary: the start is far from the path.
        shy = max(0.9, 1 - 0.1 * 0.5**iteration) if iteration < 3 else _STEP_TO_BOUNDARY
        step_p, step_d = min(1.0, shy / ratio_p), min(1.0, shy / ratio_d)
        for j in range(Q):  # a full step makes the gradient of the dual Λ w, and Σ y a zero
            G[j] += step_d * (penalty[j] * (x[j] + dx[j]) - G[j])
            x[j] += step_p * dx[j]
        move(step_p, step_d, a, v, t, xi, f, da, dt, dxi, df)
    return max_iter, MAX_ITER


@_inner
def _certify(blas, Z, y, u, penalty, x, a, f, G, room, objectives, certified):  # type: ignore[no-untyped-def]
    """Objectives without what rounding gathered in `f` and `G`; returns the relative gap.

    The dual is taken after the heavier class is scaled down, so that ``Σ y a = 0``. The bounds of
    all iterates hold, so the best primal (its coefficients are left in `certified`) and the best
    dual make the certificate.
    """
    times_transposed(blas, Z, x, f)
    p = norm(penalty, x) + loss(u, f)
    if p < objectives[0]:
        objectives[0] = p
        copy(x, certified)
    mass = balanced(y, a, room)
    times(blas, Z, room, G)
    objectives[1] = max(objectives[1], 2 * mass - dual_norm(penalty, G))
    times(blas, Z, a, G)
    return (objectives[0] - objectives[1]) / objectives[0]


@_inner
def _normal_factor(blas, Z, root, penalty, room, H):  # type: ignore[no-untyped-def]
    """Cholesky factor of ``Λ + Z θ Zᵀ`` in `H`; whether there is one."""
    Q, m = Z.shape
    block = room.shape[0] // Q // 8 * 8
    damping = 0.0
    for _ in range(2):
        for i in range(Q):
            for j in range(Q):
                H[i, j] = 0.0
        for start in range(0, m, block):
            size = min(block, m - start)
            part = room[: Q * size].reshape(Q, size)
            for j in range(Q):
                for i in range(size):
                    part[j, i] = Z[j, start + i] * root[start + i]
            add_symmetric_product(blas, part, H)
        for j in range(Q):
            H[j, j] = (H[j, j] + penalty[j]) * (1 + damping)
        if factor(blas, H):
            return True
        damping = _DAMPING * Q  # rounding made the matrix indefinite
    return False


@_inner
def _direction(blas, Z, pull, G, penalty, x, H, dx, df):  # type: ignore[no-untyped-def]
    """Newton step of the coefficients, and of the margins."""
    times(blas, Z, pull, dx)
    for j in range(x.shape[0]):
        dx[j] += G[j] - penalty[j] * x[j]
    solve_factored(blas, H, dx)
    times_transposed(blas, Z, dx, df)
