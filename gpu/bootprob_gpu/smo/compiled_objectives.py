"""Primal and dual objective in compiled SMO, and the intercept that goes with them."""

from __future__ import annotations

from bootprob_gpu.hardware.compiled import inner
from bootprob_gpu.hardware.compiled_arithmetic import larger, smaller
from bootprob_gpu.smo.compiled_working_set import FAR

__all__ = ["objectives"]

_summing = inner(error_model="numpy", fastmath={"nnan", "nsz", "reassoc", "contract"})


@_summing
def objectives(label, s, lo, hi, g, g_max, g_min):  # type: ignore[no-untyped-def]
    """Primal and dual objective with the best of some intercepts, ``sᵀ K s``, and a stretch.

    The intercepts are the middle of the ends of g, the mean of g over the free variables, and
    where all margins are kept, the middle between the classes. Stretched by the last number, the
    scores would keep all margins exactly.
    """
    norm = 0.0
    mass = 0.0
    free_sum = 0.0
    free = 0.0
    top = -FAR
    bottom = FAR
    for k in range(s.shape[0]):
        norm += s[k] * (label[k] - g[k])
        mass += label[k] * s[k]
        inside = 1.0 if (lo[k] < s[k]) & (s[k] < hi[k]) else 0.0
        free_sum += inside * g[k]
        free += inside
        top = larger(g[k] if hi[k] > 0 else -FAR, top)
        bottom = smaller(g[k] if lo[k] < 0 else FAR, bottom)
    if g_max < -0.5 * FAR or g_min > 0.5 * FAR:  # every variable at a bound on one side
        middle = g_min if g_max < -0.5 * FAR else g_max
    else:
        middle = 0.5 * (g_max + g_min)
    mean = free_sum / free if free > 0 else middle
    between = 0.5 * (top + bottom)
    loss_middle = 0.0
    loss_mean = 0.0
    loss_between = 0.0
    for k in range(s.shape[0]):
        u = hi[k] - lo[k]
        # 1 − y (f + b) with f = y − g
        loss_middle += u * larger(label[k] * (g[k] - middle), 0.0)
        loss_mean += u * larger(label[k] * (g[k] - mean), 0.0)
        loss_between += u * larger(label[k] * (g[k] - between), 0.0)
    loss, b = loss_middle, middle
    if loss_mean < loss:
        loss, b = loss_mean, mean
    if loss_between < loss:
        loss, b = loss_between, between
    margin = 1 - 0.5 * (top - bottom)
    return 0.5 * norm + loss, mass - 0.5 * norm, b, norm, 1 / margin if margin > 0 else 0.0
