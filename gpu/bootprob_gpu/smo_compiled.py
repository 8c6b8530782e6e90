"""Sequential minimal optimisation along the path of C, compiled for the CPU.

The dual in signed variables ``s = y a``: maximise ``Σ y s − ½ sᵀ K s`` over ``lower ≤ s ≤ upper``
and ``Σ s = 0``. Working sets of two by second-order information: R.-E. Fan, P.-H. Chen, C.-J. Lin,
JMLR 6 (2005) 1889–1918, algorithm WSS 2. Each larger C starts from ``t s`` of the one before, with
the ``t`` that maximises the dual objective along that ray within the larger box.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["gather", "smo_path"]

_CHECK_EVERY = 64  # iterations between evaluations of the duality gap
_REFRESH_EVERY = 64 * _CHECK_EVERY  # iterations after which the gradient is computed anew
_PATIENCE = 256  # checks without a larger dual objective before a model is given up
_MIN_CURVATURE = 1e-12
_SNAP = 1e-14  # relative distance at which a stretched variable counts as on its bound
_FAR = 1e30  # beyond every gradient; infinities would forbid fast arithmetic

_compiled = numba.njit(cache=True, nogil=True)
# Vector instructions need divisions that do not raise. Sums must not be reordered, nor products
# fused: the gradient that is compared has to be the one that is stored.
_vectorised = numba.njit(cache=True, nogil=True, error_model="numpy")


@_compiled
def gather(K, rows, room):  # type: ignore[no-untyped-def]
    """``K[rows][:, rows]`` at the beginning of the one-dimensional array `room`."""
    m = rows.shape[0]
    part = room[: m * m].reshape(m, m)
    for i in range(m):
        K_i = K[rows[i]]
        for k in range(m):
            part[i, k] = K_i[rows[k]]
    return part


@_compiled
def smo_path(K, y, upper, tol, max_iter, s, dual_coef, intercept, primal, dual, n_iter, converged):  # type: ignore[no-untyped-def]
    """Train one support vector machine per row of `upper`, each started from the one before.

    Parameters
    ----------
    K : array, shape (m, m)
        Gram matrix of the rows that carry weight, float32 or float64; all else is float64.
    y : array, shape (m,)
        Labels, −1 or +1, both with weight.
    upper : array, shape (R, m)
        Box bounds of the R models; fastest when they grow from model to model.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Iterations allowed for each model.
    s : array, shape (m,)
        Signed dual variables to start from, overwritten; zeros for a cold start.
    dual_coef, intercept, primal, dual, n_iter, converged : arrays of first dimension R
        Filled in: signed dual variables, intercepts, objectives, iterations, tolerance reached.
    """
    m = K.shape[0]
    g = np.empty(m)  # y − K s: the gradient of the dual
    gain = np.empty(m)
    lo = np.empty(m)
    hi = np.empty(m)
    diagonal = np.empty(m)
    for k in range(m):
        diagonal[k] = K[k, k]
    _gradient(K, y, s, g)
    for r in range(upper.shape[0]):
        for k in range(m):
            lo[k] = 0.0 if y[k] > 0 else -upper[r, k]
            hi[k] = upper[r, k] if y[k] > 0 else 0.0
        _start_from_previous(y, lo, hi, s, g)
        it = 0
        best = -np.inf
        idle = 0
        step = 0.0
        i = 0
        j = 0
        while True:
            # The most violating pair: g_max over what may grow, g_min over what may fall.
            i_next, g_max, g_min = _update(K[i], K[j], step, s, lo, hi, g)
            optimal = g_max - g_min <= 0
            if it % _CHECK_EVERY == 0 or optimal or it >= max_iter:
                p, d, _ = _objectives(y, s, lo, hi, g, g_max, g_min)
                idle = 0 if d > best else idle + 1
                best = max(best, d)
                final = abs(p - d) <= tol * p or optimal or it >= max_iter or idle > _PATIENCE
                if final or (it % _REFRESH_EVERY == 0 and it > 0):
                    _gradient(K, y, s, g)  # sheds the rounding of thousands of updates
                    i_next, g_max, g_min = _update(K[i], K[j], 0.0, s, lo, hi, g)
                if final:  # what the rounding made look solved goes on
                    p, d, _ = _objectives(y, s, lo, hi, g, g_max, g_min)
                    optimal = g_max - g_min <= 0
                    if abs(p - d) <= tol * p or optimal or it >= max_iter or idle > _PATIENCE:
                        break
            i = i_next
            j = _steepest_partner(K[i], diagonal, diagonal[i], g_max, s, lo, g, gain)
            if j < 0:  # what is left of the violation is rounding
                break
            step = (g_max - g[j]) / max(diagonal[i] + diagonal[j] - 2 * K[i, j], _MIN_CURVATURE)
            room_i = hi[i] - s[i]
            room_j = s[j] - lo[j]
            step = min(step, room_i, room_j)
            # Bounds are met exactly, or a variable would creep along them for ever.
            s[i] = hi[i] if step == room_i else s[i] + step
            s[j] = lo[j] if step == room_j else s[j] - step
            it += 1
        _gradient(K, y, s, g)
        _, g_max, g_min = _update(K[i], K[j], 0.0, s, lo, hi, g)
        p, d, b = _objectives(y, s, lo, hi, g, g_max, g_min)
        dual_coef[r] = s
        intercept[r] = b
        primal[r] = p
        dual[r] = d
        n_iter[r] = it
        converged[r] = abs(p - d) <= tol * p


@_vectorised
def _gradient(K, y, s, g):  # type: ignore[no-untyped-def]
    for k in range(y.shape[0]):
        g[k] = y[k]
    for i in range(y.shape[0]):
        if s[i] != 0:
            for k in range(y.shape[0]):
                g[k] -= s[i] * K[i, k]


@_vectorised
def _update(K_i, K_j, step, s, lo, hi, g):  # type: ignore[no-untyped-def]
    """Move the gradient after ``s_i += step, s_j −= step``; returns the next i and both ends."""
    g_max = -_FAR
    g_min = _FAR
    i = 0
    for k in range(g.shape[0]):
        value = g[k] - step * (K_i[k] - K_j[k])
        g[k] = value
        if value > g_max and s[k] < hi[k]:
            g_max = value
            i = k
        if value < g_min and s[k] > lo[k]:
            g_min = value
    return i, g_max, g_min


@_vectorised
def _steepest_partner(K_i, diagonal, K_ii, g_max, s, lo, g, gain):  # type: ignore[no-untyped-def]
    """The row that, paired with i, raises the dual objective most by a Newton step."""
    for k in range(g.shape[0]):  # no branches and no reduction: this loop is vectorised
        fall = g_max - g[k]
        fall = fall if fall > 0.0 else 0.0
        fall = fall if s[k] > lo[k] else 0.0
        curvature = K_ii + diagonal[k] - 2.0 * K_i[k]
        gain[k] = fall * fall / max(curvature, _MIN_CURVATURE)
    best = 0.0
    j = -1
    for k in range(g.shape[0]):
        if gain[k] > best:
            best = gain[k]
            j = k
    return j


@_compiled
def _start_from_previous(y, lo, hi, s, g):  # type: ignore[no-untyped-def]
    """Stretch `s` within the new box as far as the dual objective grows; ``Σ s = 0`` stays."""
    linear = 0.0
    quadratic = 0.0
    room = np.inf
    for k in range(y.shape[0]):
        if s[k] != 0:
            linear += y[k] * s[k]
            quadratic += s[k] * (y[k] - g[k])
            room = min(room, (hi[k] if y[k] > 0 else lo[k]) / s[k])
    if linear == 0:
        return
    t = min(linear / quadratic, room) if quadratic > 0 else room
    for k in range(y.shape[0]):
        s[k] = min(max(s[k] * t, lo[k]), hi[k])
        g[k] = y[k] + t * (g[k] - y[k])
        # What sat on its bound stays there: "almost" would cost iterations.
        if s[k] > hi[k] * (1 - _SNAP):
            s[k] = hi[k]
        if s[k] < lo[k] * (1 - _SNAP):
            s[k] = lo[k]


@_compiled
def _objectives(y, s, lo, hi, g, g_max, g_min):  # type: ignore[no-untyped-def]
    """Primal and dual objective, and the better of two candidate intercepts."""
    norm = 0.0
    mass = 0.0
    free_sum = 0.0
    free = 0
    for k in range(y.shape[0]):
        norm += s[k] * (y[k] - g[k])
        mass += y[k] * s[k]
        if lo[k] < s[k] < hi[k]:
            free_sum += g[k]
            free += 1
    if g_max <= -_FAR or g_min >= _FAR:  # every variable at a bound on one side
        middle = g_min if g_max <= -_FAR else g_max
    else:
        middle = 0.5 * (g_max + g_min)
    mean = free_sum / free if free > 0 else middle
    loss_middle = 0.0
    loss_mean = 0.0
    for k in range(y.shape[0]):
        u = hi[k] - lo[k]
        # 1 − y (f + b) with f = y − g
        loss_middle += u * max(y[k] * (g[k] - middle), 0.0)
        loss_mean += u * max(y[k] * (g[k] - mean), 0.0)
    if loss_mean < loss_middle:
        return 0.5 * norm + loss_mean, mass - 0.5 * norm, mean
    return 0.5 * norm + loss_middle, mass - 0.5 * norm, middle
