"""What compiled SMO does between its steps: objectives, new boxes, gradients made anew.

Arrays of shape (m,): signed dual variables `s` in ``[lo, hi]``, their gradient ``g = y − K s``, and
`rise` and `fall`, which put g far away where s may not go.
"""

from __future__ import annotations

import numpy as np

from bootprob_gpu.hardware.compiled import inner
from bootprob_gpu.hardware.compiled_arithmetic import larger, smaller

__all__ = [
    "FAR",
    "enter_box",
    "free_ends",
    "objectives",
    "renew",
    "stretch",
    "times_gram",
    "vote",
    "widen",
]

FAR = 1e300  # beyond every gradient; infinities would forbid fast arithmetic
_SNAP = 1e-14  # relative distance at which a stretched variable counts as on its bound
_SPARE = 0.01  # share of the gap spent on margins that rounding does not violate

# Vector instructions need divisions that do not raise. Sums must not be reordered, nor products
# fused: the gradient that is compared has to be the one that is stored.
_inner = inner(error_model="numpy")
_summing = inner(error_model="numpy", fastmath={"nnan", "nsz", "reassoc", "contract"})


@_inner
def free_ends(s, lo, hi, g, rise, fall, m):  # type: ignore[no-untyped-def]
    """Note what may grow and what may fall; largest g of the former, smallest of the latter."""
    g_max = -2 * FAR
    g_min = 2 * FAR
    for k in range(m):
        rise[k] = 0.0 if s[k] < hi[k] else -FAR
        fall[k] = 0.0 if s[k] > lo[k] else FAR
        g_max = larger(g[k] + rise[k], g_max)
        g_min = smaller(g[k] + fall[k], g_min)
    return g_max, g_min


@_inner
def times_gram(part, s, first, last, f):  # type: ignore[no-untyped-def]
    """``K s`` for the rows from `first` to before `last`."""
    out = f[first:last]
    out[:] = 0.0
    i = -1
    for j in range(s.shape[0]):
        if s[j] == 0:
            continue
        if i < 0:  # two at a time: half the traffic
            i = j
            continue
        _add_rows(s[i], part[i, first:last], s[j], part[j, first:last], out)
        i = -1
    if i >= 0:
        _add_rows(s[i], part[i, first:last], 0.0, part[i, first:last], out)


@_inner
def _add_rows(a, K_i, b, K_j, f):  # type: ignore[no-untyped-def]
    for k in range(f.shape[0]):
        f[k] += a * K_i[k] + b * K_j[k]


@_inner
def renew(part, label, s, f, g, m):  # type: ignore[no-untyped-def]
    """Compute ``f = K s`` of the rows of weight, and the gradient, anew."""
    times_gram(part, s, 0 * m, m, f)
    for k in range(m):
        g[k] = label[k] - f[k]


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


@_inner
def vote(label, box, order):  # type: ignore[no-untyped-def]
    """The sign of the only class that carries weight, or 0; and whether there is only one."""
    positive, negative = 0.0, 0.0
    for k in range(label.shape[0]):
        if label[k] > 0:
            positive += box[order[k]]
        else:
            negative += box[order[k]]
    return np.sign(positive - negative), positive == 0 or negative == 0


@_inner
def enter_box(label, box, order, s, lo, hi):  # type: ignore[no-untyped-def]
    """Set new bounds; returns whether an optimum within the old ones is one within these too.

    So it is where every variable keeps its bound, or was strictly below it and still fits.
    """
    still = True
    for k in range(label.shape[0]):
        u, before, a = box[order[k]], hi[k] - lo[k], abs(s[k])
        still = still and (u == before or (a < before and a <= u))
        lo[k] = 0.0 if label[k] > 0 else -u
        hi[k] = u if label[k] > 0 else 0.0
    return still


@_inner
def stretch(label, lo, hi, s, g):  # type: ignore[no-untyped-def]
    """Stretch `s` within the new box as far as the dual objective grows; ``Σ s = 0`` stays."""
    linear = 0.0
    quadratic = 0.0
    room = np.inf
    for k in range(s.shape[0]):
        if s[k] != 0:
            linear += label[k] * s[k]
            quadratic += s[k] * (label[k] - g[k])
            room = min(room, (hi[k] if label[k] > 0 else lo[k]) / s[k])
    if linear == 0:
        return
    t = min(linear / quadratic, room) if quadratic > 0 else room
    for k in range(s.shape[0]):
        s[k] = min(max(s[k] * t, lo[k]), hi[k])
        g[k] = label[k] + t * (g[k] - label[k])
        # What sat on its bound stays there: "almost" would cost iterations.
        if s[k] > hi[k] * (1 - _SNAP):
            s[k] = hi[k]
        if s[k] < lo[k] * (1 - _SNAP):
            s[k] = lo[k]


@_inner
def widen(label, lo, hi, s, g, d, norm, t, tol):  # type: ignore[no-untyped-def]
    """Stretch `s` by t if all margins are then kept within the box and the gap is closed.

    Where no bound is touched, however large C, this spares the iterations that would bring the
    violated margins to 0: the loss is 0 at once, and so it is for every larger C.
    """
    t *= 1 + _SPARE * tol
    primal = 0.5 * t * t * norm
    if t == 0.0 or not 2 * primal - t * (d + 0.5 * norm) <= tol * primal:
        return False
    for k in range(s.shape[0]):
        if t * s[k] > hi[k] or t * s[k] < lo[k]:
            return False
    for k in range(s.shape[0]):
        s[k] = t * s[k]
        g[k] = label[k] + t * (g[k] - label[k])
    return True
