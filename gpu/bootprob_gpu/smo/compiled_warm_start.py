"""From one box to the next in compiled SMO: new bounds, and the solution stretched within them."""

from __future__ import annotations

import numpy as np

from bootprob_gpu.hardware.compiled import inner

__all__ = ["enter_box", "stretch", "vote", "widen"]

_SNAP = 1e-14  # relative distance at which a stretched variable counts as on its bound
_SPARE = 0.01  # share of the gap spent on margins that rounding does not violate

_inner = inner(error_model="numpy")


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
