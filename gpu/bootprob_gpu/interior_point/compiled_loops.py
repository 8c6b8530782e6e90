"""Passes over the rows of the compiled interior point, each fused into one loop.

Arrays of shape (m,): dual variables `a` in ``[0, u]``, ``v = u − a``, slacks `t` and `xi`, their
reciprocals `ia`, `iv`, `it`, `ixi`, margins `f`, and steps `da`, `dt`, `dxi`, `df`.
"""

from __future__ import annotations

import numpy as np

from bootprob_gpu.hardware.compiled import inner

__all__ = [
    "aim",
    "balanced",
    "copy",
    "correct",
    "dual_norm",
    "loss",
    "middle_of_the_box",
    "move",
    "near_central_path",
    "norm",
    "predict",
    "total",
    "weigh",
]

_inner = inner(error_model="numpy", fastmath={"nsz", "contract", "reassoc", "arcp"})
# Largest ratios become vector instructions only where the compiler may forget about NaN; the
# objectives, by which NaN is noticed, are computed elsewhere.
_forgets_nan = inner(error_model="numpy", fastmath=True)


@_inner
def copy(source, out):  # type: ignore[no-untyped-def]
    """Numbers into another array; an assignment to a slice would take Numba a second to compile."""
    for i in range(source.shape[0]):
        out[i] = source[i]


@_inner
def total(values):  # type: ignore[no-untyped-def]
    """Sum."""
    found = 0.0
    for i in range(values.shape[0]):
        found += values[i]
    return found


@_inner
def norm(penalty, x):  # type: ignore[no-untyped-def]
    """``½ wᵀ Λ w``; the coefficients that only fill up the vector are 0."""
    total = 0.0
    for j in range(x.shape[0]):
        total += 0.5 * penalty[j] * x[j] * x[j]
    return total


@_inner
def dual_norm(penalty, G):  # type: ignore[no-untyped-def]
    """``½ gᵀ Λ⁻¹ g`` over the coefficients that are penalised."""
    total = 0.0
    for j in range(G.shape[0]):
        if penalty[j] > 0:
            total += 0.5 * G[j] * G[j] / penalty[j]
    return total


@_inner
def loss(u, f):  # type: ignore[no-untyped-def]
    """``Σ u max(0, 1 − f)``."""
    total = 0.0
    for i in range(u.shape[0]):
        total += u[i] * max(0.0, 1.0 - f[i])
    return total


@_inner
def balanced(y, values, out):  # type: ignore[no-untyped-def]
    """`values` with the heavier class scaled down, so that ``Σ y out = 0``; the sum of a class."""
    mass_positive, mass_negative = 0.0, 0.0
    for i in range(y.shape[0]):
        if y[i] > 0:
            mass_positive += values[i]
        else:
            mass_negative += values[i]
    lighter = min(mass_positive, mass_negative)
    for i in range(y.shape[0]):
        out[i] = values[i] * lighter / (mass_positive if y[i] > 0 else mass_negative)
    return lighter


@_inner
def middle_of_the_box(y, u, a, v, t, xi):  # type: ignore[no-untyped-def]
    """A start without knowledge: ``Σ y a = 0``, and the slacks that coefficients of 0 have."""
    balanced(y, u, a)
    for i in range(y.shape[0]):
        a[i] *= 0.5
        v[i] = u[i] - a[i]
        t[i] = 1.0
        xi[i] = 2.0


@_inner
def near_central_path(u, f, mu, a, v, t, xi):  # type: ignore[no-untyped-def]
    """Slacks and dual variables with ``a t = (u − a) xi = mu`` and ``t − xi = f − 1``, row by row.

    What is left of the conditions of the central path is that ``Z a = Λ w``.
    """
    for i in range(u.shape[0]):
        beyond = f[i] - 1.0
        half = mu / u[i]
        # t + xi, of the larger root: u t xi = mu (t + xi)
        both = 2 * half + np.sqrt(beyond * beyond + 4 * half * half)
        if beyond > 0:  # the smaller one from the product, free of cancellation
            t[i] = 0.5 * (both + beyond)
            xi[i] = half * both / t[i]
        else:
            xi[i] = 0.5 * (both - beyond)
            t[i] = half * both / xi[i]
        a[i] = mu / t[i]
        v[i] = mu / xi[i]


@_forgets_nan
def weigh(a, v, t, xi, ia, iv, it, ixi, theta, root, pull):  # type: ignore[no-untyped-def]
    """Reciprocals, weights of the normal matrix, the predictor's pull; returns mean ``a t``."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * t[i] + v[i] * xi[i]
        ia[i], iv[i], it[i], ixi[i] = 1.0 / a[i], 1.0 / v[i], 1.0 / t[i], 1.0 / xi[i]
        theta[i] = 1.0 / (t[i] * ia[i] + xi[i] * iv[i])
        root[i] = np.sqrt(theta[i])
        pull[i] = theta[i] * (xi[i] - t[i])
    return total / (2 * a.shape[0])


@_forgets_nan
def predict(a, v, t, xi, ia, iv, it, ixi, theta, df, da, dt, dxi):  # type: ignore[no-untyped-def]
    """Steps towards complementarity 0, and what they lead to.

    Returns the largest ratios of a step to the room it has (primal, dual), and the coefficients
    of ``Σ a t + (u − a) xi`` in the two step lengths and in their product.
    """
    ratio_p, ratio_d = 1e-30, 1e-30
    primal_part, dual_part, both = 0.0, 0.0, 0.0
    for i in range(a.shape[0]):
        d = theta[i] * (xi[i] - t[i] - df[i])
        d_t = -t[i] * d * ia[i] - t[i]
        d_xi = xi[i] * d * iv[i] - xi[i]
        da[i], dt[i], dxi[i] = d, d_t, d_xi
        primal_part += a[i] * d_t + v[i] * d_xi
        dual_part += (t[i] - xi[i]) * d
        both += d * (d_t - d_xi)
        ratio = -d_t * it[i]
        ratio_p = ratio if ratio > ratio_p else ratio_p
        ratio = -d_xi * ixi[i]
        ratio_p = ratio if ratio > ratio_p else ratio_p
        ratio = -d * ia[i]
        ratio_d = ratio if ratio > ratio_d else ratio_d
        ratio = d * iv[i]
        ratio_d = ratio if ratio > ratio_d else ratio_d
    return ratio_p, ratio_d, primal_part, dual_part, both


@_inner
def aim(target, second_order, t, xi, ia, iv, theta, da, dt, dxi, rho, pull):  # type: ignore[no-untyped-def]
    """Put the complementarities to aim at in place of `dt` and `dxi`, and what pulls there."""
    for i in range(t.shape[0]):
        dt[i] = target - second_order * da[i] * dt[i]
        dxi[i] = target + second_order * da[i] * dxi[i]
        rho[i] = dt[i] * ia[i] - dxi[i] * iv[i] - t[i] + xi[i]
        pull[i] = theta[i] * rho[i]


@_forgets_nan
def correct(t, xi, ia, iv, it, ixi, theta, rho, df, da, dt, dxi):  # type: ignore[no-untyped-def]
    """Steps towards the complementarities in `dt` and `dxi`, in their place; largest ratios."""
    ratio_p, ratio_d = 1e-30, 1e-30
    for i in range(t.shape[0]):
        d = theta[i] * (rho[i] - df[i])
        d_t = (dt[i] - t[i] * d) * ia[i] - t[i]
        d_xi = (dxi[i] + xi[i] * d) * iv[i] - xi[i]
        da[i], dt[i], dxi[i] = d, d_t, d_xi
        ratio = -d_t * it[i]
        ratio_p = ratio if ratio > ratio_p else ratio_p
        ratio = -d_xi * ixi[i]
        ratio_p = ratio if ratio > ratio_p else ratio_p
        ratio = -d * ia[i]
        ratio_d = ratio if ratio > ratio_d else ratio_d
        ratio = d * iv[i]
        ratio_d = ratio if ratio > ratio_d else ratio_d
    return ratio_p, ratio_d


@_inner
def move(step_p, step_d, a, v, t, xi, f, da, dt, dxi, df):  # type: ignore[no-untyped-def]
    """Take the steps."""
    for i in range(a.shape[0]):
        a[i] += step_d * da[i]
        v[i] -= step_d * da[i]
        t[i] += step_p * dt[i]
        xi[i] += step_p * dxi[i]
        f[i] += step_p * df[i]
