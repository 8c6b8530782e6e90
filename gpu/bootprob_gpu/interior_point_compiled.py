"""Mehrotra's interior point for one linear support vector machine at a time, compiled.

The same method as `bootprob_gpu.interior_point`, on the rows of weight only and with all passes
over them fused, so that a problem stays in a core's caches.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["interior_point_path"]

CONVERGED, MAX_ITER, STALLED = 0, 1, 2  # values of `bootprob_gpu.certificate.Status`

_STALL_AFTER = 20  # iterations without a better gap before a problem is given up
_PLAIN_AFTER = 4  # such iterations after which second-order terms are left out
_PLAIN_CENTRING = 0.2
_STEP_TO_BOUNDARY = 0.995

_compiled = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"nsz", "contract", "reassoc", "arcp"}
)


@_compiled
def interior_point_path(X1, y, upper, penalty, tol, max_iter, w, primal, dual, n_iter, status):  # type: ignore[no-untyped-def]
    """Train one support vector machine for each row of `upper`.

    Parameters
    ----------
    X1 : array, shape (m, q)
        The rows that carry weight, columns of about unit scale, with a column of ones appended.
    y : array, shape (m,)
        Labels, −1 or +1, both with weight.
    upper : array, shape (R, m)
        Box bounds, positive.
    penalty : array, shape (q,)
        Diagonal of ``Λ``, 0 for the intercept and positive elsewhere.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Iterations allowed for each model.
    w : array, shape (R, q)
        Filled in: coefficients, intercept last.
    primal, dual, n_iter, status : arrays, shape (R,)
        Filled in.
    """
    m, q = X1.shape
    XT = X1.T.copy()
    weighted = np.empty((q, m))
    a, t, xi = np.empty(m), np.empty(m), np.empty(m)
    theta, rho, ca, cv = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    da, dt, dxi, v = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    for r in range(upper.shape[0]):
        u = upper[r]
        _start(y, u, a, t, xi)
        x = np.zeros(q)
        primal[r], dual[r] = np.inf, -np.inf
        status[r] = MAX_ITER
        best_gap, best_iteration = np.inf, 0
        for iteration in range(max_iter + 1):
            f = np.dot(X1, x)
            p = 0.0
            for j in range(q):
                p += 0.5 * penalty[j] * x[j] * x[j]
            for i in range(m):
                p += u[i] * max(0.0, 1.0 - y[i] * f[i])
            if p < primal[r]:
                primal[r] = p
                w[r] = x
            dual[r] = max(dual[r], _dual(XT, y, a, penalty, v))
            gap = (primal[r] - dual[r]) / primal[r]
            n_iter[r] = iteration
            if gap <= tol:
                status[r] = CONVERGED
                break
            if gap < 0.9 * best_gap:
                best_gap, best_iteration = gap, iteration
            if not np.isfinite(p) or iteration - best_iteration >= _STALL_AFTER:
                status[r] = STALLED
                break
            if iteration == max_iter:
                break
            mu = 0.0
            for i in range(m):
                mu += a[i] * t[i] + (u[i] - a[i]) * xi[i]
                theta[i] = 1.0 / (t[i] / a[i] + xi[i] / (u[i] - a[i]))
            mu /= 2 * m
            for j in range(q):
                for i in range(m):
                    weighted[j, i] = XT[j, i] * theta[i]
            H = np.dot(weighted, X1)
            for j in range(q):
                H[j, j] += penalty[j]
            if not _factor(H):
                status[r] = STALLED
                break
            # Predictor: straight for complementarity 0.
            for i in range(m):
                ca[i], cv[i] = 0.0, 0.0
            _direction(X1, XT, y, u, penalty, H, x, a, t, xi, theta, ca, cv, rho, da, dt, dxi, v)
            step_p, step_d = _longest(u, a, t, xi, da, dt, dxi)
            step_p, step_d = min(step_p, 1.0), min(step_d, 1.0)
            reached = 0.0
            for i in range(m):
                reached += (a[i] + step_d * da[i]) * (t[i] + step_p * dt[i])
                reached += (u[i] - a[i] - step_d * da[i]) * (xi[i] + step_p * dxi[i])
            target = min((reached / (2 * m) / mu) ** 3, 1.0) * mu
            # Corrector: towards the central path, second-order terms of the predictor included.
            # These terms, and with them the iterates, can cycle: then straight down the path.
            idle = iteration - best_iteration >= _PLAIN_AFTER
            for i in range(m):
                ca[i] = _PLAIN_CENTRING * mu if idle else target - da[i] * dt[i]
                cv[i] = _PLAIN_CENTRING * mu if idle else target + da[i] * dxi[i]
            dx = _direction(
                X1, XT, y, u, penalty, H, x, a, t, xi, theta, ca, cv, rho, da, dt, dxi, v
            )
            shy = max(0.9, 1 - 0.1 * 0.5**iteration) if iteration < 3 else _STEP_TO_BOUNDARY
            step_p, step_d = _longest(u, a, t, xi, da, dt, dxi)
            step_p, step_d = min(shy * step_p, 1.0), min(shy * step_d, 1.0)
            for j in range(q):
                x[j] += step_p * dx[j]
            for i in range(m):
                a[i] += step_d * da[i]
                t[i] += step_p * dt[i]
                xi[i] += step_p * dxi[i]


@_compiled
def _start(y, u, a, t, xi):  # type: ignore[no-untyped-def]
    mass_positive = 0.0
    mass_negative = 0.0
    for i in range(y.shape[0]):
        if y[i] > 0:
            mass_positive += u[i]
        else:
            mass_negative += u[i]
    lighter = min(mass_positive, mass_negative)
    for i in range(y.shape[0]):
        a[i] = 0.5 * u[i] * lighter / (mass_positive if y[i] > 0 else mass_negative)
        t[i] = 1.0
        xi[i] = 2.0


@_compiled
def _dual(XT, y, a, penalty, v):  # type: ignore[no-untyped-def]
    """Dual objective after the heavier class is scaled down, so that ``Σ y a = 0``."""
    mass_positive = 0.0
    mass_negative = 0.0
    for i in range(y.shape[0]):
        if y[i] > 0:
            mass_positive += a[i]
        else:
            mass_negative += a[i]
    lighter = min(mass_positive, mass_negative)
    for i in range(y.shape[0]):
        v[i] = y[i] * a[i] * lighter / (mass_positive if y[i] > 0 else mass_negative)
    gradient = np.dot(XT, v)
    value = 2 * lighter
    for j in range(penalty.shape[0] - 1):
        value -= 0.5 * gradient[j] * gradient[j] / penalty[j]
    return value


@_compiled
def _factor(H):  # type: ignore[no-untyped-def]
    """Cholesky factor in place, by rows; whether the matrix was positive definite."""
    q = H.shape[0]
    for j in range(q):
        for k in range(j + 1):
            total = H[j, k]
            for i in range(k):
                total -= H[j, i] * H[k, i]
            if k < j:
                H[j, k] = total / H[k, k]
            elif total > 0:
                H[j, j] = np.sqrt(total)
            else:
                return False
    return True


@_compiled
def _direction(X1, XT, y, u, penalty, H, x, a, t, xi, theta, ca, cv, rho, da, dt, dxi, v):  # type: ignore[no-untyped-def]
    """Newton step towards ``a t = ca`` and ``(u − a) xi = cv``; returns the step of ``x``."""
    m, q = X1.shape
    for i in range(m):
        rho[i] = ca[i] / a[i] - cv[i] / (u[i] - a[i]) - t[i] + xi[i]
        v[i] = (a[i] + theta[i] * rho[i]) * y[i]
    dx = np.dot(XT, v)
    for j in range(q):
        dx[j] -= penalty[j] * x[j]
    for j in range(q):
        for k in range(j):
            dx[j] -= H[j, k] * dx[k]
        dx[j] /= H[j, j]
    for j in range(q - 1, -1, -1):
        dx[j] /= H[j, j]
        for k in range(j):
            dx[k] -= H[j, k] * dx[j]
    df = np.dot(X1, dx)
    for i in range(m):
        da[i] = theta[i] * (rho[i] - y[i] * df[i])
        dt[i] = (ca[i] - t[i] * da[i]) / a[i] - t[i]
        dxi[i] = (cv[i] + xi[i] * da[i]) / (u[i] - a[i]) - xi[i]
    return dx


@_compiled
def _longest(u, a, t, xi, da, dt, dxi):  # type: ignore[no-untyped-def]
    """Step lengths to the boundary, primal (t, xi) and dual (a, u − a)."""
    primal = 1e-30
    dual = 1e-30
    for i in range(a.shape[0]):
        primal = max(primal, max(-dt[i] / t[i], -dxi[i] / xi[i]))
        dual = max(dual, max(-da[i] / a[i], da[i] / (u[i] - a[i])))
    return 1 / primal, 1 / dual
