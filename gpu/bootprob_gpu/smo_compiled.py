"""Sequential minimal optimisation along the path of C, compiled for the CPU.

The dual in signed variables ``s = y a``: maximise ``Σ y s − ½ sᵀ K s`` over ``lower ≤ s ≤ upper``
and ``Σ s = 0``. Working sets of two by second-order information: R.-E. Fan, P.-H. Chen, C.-J. Lin,
JMLR 6 (2005) 1889–1918, algorithm WSS 2. Each larger C starts from ``t s`` of the one before, with
the ``t`` that maximises the dual objective along that ray within the larger box.
"""

from __future__ import annotations

import numba
import numpy as np

from bootprob_gpu.compiled_arithmetic import exponential, larger, smaller

__all__ = ["smo_path"]

_CHECK_EVERY = 64  # iterations between evaluations of the duality gap
_CHECK_AFTER = 16  # at least, where the violation has become small enough for it
_REFRESH_EVERY = 64 * _CHECK_EVERY  # iterations after which the gradient is computed anew
_PATIENCE = 256  # checks without a larger dual objective before a model is given up
_MIN_CURVATURE = 1e-12
_SNAP = 1e-14  # relative distance at which a stretched variable counts as on its bound
_FAR = 1e300  # beyond every gradient; infinities would forbid fast arithmetic
_SPARE = 0.01  # share of the gap spent on margins that rounding does not violate
_STEEPEST = 1e30  # largest inverse curvature, in float32
_BLOCK = 32  # rows looked at together when one is searched for
_CONVERGED, _MAX_ITER, _STALLED, _SINGLE_CLASS = 0, 1, 2, 3  # `bootprob_gpu.certificate.Status`

# Vector instructions need divisions that do not raise. Sums must not be reordered, nor products
# fused: the gradient that is compared has to be the one that is stored.
_compiled = numba.njit(cache=True, nogil=True, error_model="numpy")
_summing = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz", "reassoc", "contract"}
)


@_compiled
def smo_path(  # type: ignore[no-untyped-def]
    base, index, squares, gamma, order, m, y, upper, tol, kkt_tol, max_iter, part_room,
    inverse_room, dual_coef, intercept, scores, primal, dual, n_iter, status,
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
        The rows, those that carry weight in any of the models first.
    m : int
        How many of them carry weight.
    y : array, shape (n,)
        Labels, −1 or +1.
    upper : array, shape (R, n)
        Box bounds of the R models; fastest when they grow from model to model.
    tol, kkt_tol : float
        A model is done at this relative duality gap, or at this violation of the optimality
        conditions: ``max g − min g`` over what may grow and what may fall. Negative for never.
    max_iter : int
        Iterations allowed for each model.
    part_room, inverse_room : arrays, shape (≥ m · c,) of float64 and (≥ m · m,) of float32
        Room for rows of the Gram matrix and for inverse curvatures.
    dual_coef, scores : arrays, shape (R, n)
        Filled in: signed dual variables, and scores of the first c rows.
    intercept, primal, dual, n_iter, status : arrays, shape (R,)
        Filled in: intercepts, objectives, iterations, values of `Status`.
    """
    c = index.shape[0]
    part, inverse = part_room[: m * c].reshape(m, c), inverse_room[: m * m].reshape(m, m)
    ready = np.zeros(m, dtype=np.bool_)
    label, diagonal = np.empty(m), np.ones(m)
    for k in range(m):
        label[k] = y[order[k]]
        if gamma is None:
            diagonal[k] = base[index[k], index[k]]
    s, g, f = np.zeros(m), label.copy(), np.zeros(c)  # f = K s; g = y − f, the dual's gradient
    lo, hi, gain = np.zeros(m), np.zeros(m), np.empty(m)
    rise, fall = np.empty(m), np.empty(m)  # added to g, they put it far away where s may not go
    solved, fresh, moved = False, True, True
    for r in range(upper.shape[0]):
        answer, single = _vote(label, upper[r], order)
        if single:
            intercept[r], status[r] = answer, _SINGLE_CLASS
            for k in range(c):
                scores[r, order[k]] = answer
            continue
        still = _enter_box(label, upper[r], order, s, lo, hi)
        if not (solved and still):
            _stretch(label, lo, hi, s, g)
            fresh, moved = False, True
        g_max, g_min = _free_ends(s, lo, hi, g, rise, fall)
        it, checked, renewed, idle, stuck = 0, -_CHECK_EVERY, 0, 0, False
        best, promising = -np.inf, -1.0
        while True:
            ending = stuck or g_max - g_min <= max(kkt_tol, 0.0) or it >= max_iter
            wait = _CHECK_AFTER if g_max - g_min <= promising else _CHECK_EVERY
            if ending or it - checked >= wait:
                p, d, b, norm, t = _objectives(label, s, lo, hi, g, g_max, g_min)
                idle = 0 if d > best else idle + 1
                best = max(best, d)
                ending = ending or abs(p - d) <= tol * p or idle > _PATIENCE
                # The gap falls about as fast as the violation.
                checked, promising = it, (g_max - g_min) * tol * p / max(p - d, 1e-300)
                if not (ending and fresh) and _widen(label, lo, hi, s, g, d, norm, t, tol):
                    ending, fresh, moved = True, False, True
                if not fresh and (ending or it - renewed >= _REFRESH_EVERY):
                    renewed = it
                    _through(part, s, 0, m, f)  # sheds the rounding of many updates
                    for k in range(m):
                        g[k] = label[k] - f[k]
                    fresh = True
                    g_max, g_min = _free_ends(s, lo, hi, g, rise, fall)
                    p, d, b, norm, t = _objectives(label, s, lo, hi, g, g_max, g_min)
                if ending:  # unless the rounding only made it look solved
                    solved = abs(p - d) <= tol * p or g_max - g_min <= kkt_tol
                    given_up = stuck or g_max <= g_min or it >= max_iter or idle > _PATIENCE
                    if solved or given_up:
                        break
            i = _first_equal(g, rise, g_max)
            _fetch(base, index, squares, gamma, diagonal, i, part, inverse, ready)
            j = _steepest_partner(inverse[i], g_max, g, fall, gain)
            if j < 0:  # what is left of the violation is rounding
                stuck = True
                continue
            _fetch(base, index, squares, gamma, diagonal, j, part, inverse, ready)
            step = (g_max - g[j]) / max(diagonal[i] + diagonal[j] - 2 * part[i, j], _MIN_CURVATURE)
            room_i = hi[i] - s[i]
            room_j = s[j] - lo[j]
            step = min(step, room_i, room_j)
            # Bounds are met exactly, or a variable would creep along them for ever.
            s[i] = hi[i] if step == room_i else s[i] + step
            s[j] = lo[j] if step == room_j else s[j] - step
            for k in (i, j):
                rise[k] = 0.0 if s[k] < hi[k] else -_FAR
                fall[k] = 0.0 if s[k] > lo[k] else _FAR
            g_max, g_min = _update(part[i], part[j], step, g, rise, fall)
            fresh, moved = False, True
            it += 1
        if moved:
            _through(part, s, m, c, f)
            moved = False
        for k in range(m):
            dual_coef[r, order[k]] = s[k]
        for k in range(c):
            scores[r, order[k]] = f[k] + b
        intercept[r], primal[r], dual[r], n_iter[r] = b, p, d, it
        status[r] = _CONVERGED if solved else _MAX_ITER if it >= max_iter else _STALLED


@_compiled
def _vote(label, box, order):  # type: ignore[no-untyped-def]
    """The sign of the only class that carries weight, or 0; and whether there is only one."""
    positive, negative = 0.0, 0.0
    for k in range(label.shape[0]):
        if label[k] > 0:
            positive += box[order[k]]
        else:
            negative += box[order[k]]
    return np.sign(positive - negative), positive == 0 or negative == 0


@_compiled
def _enter_box(label, box, order, s, lo, hi):  # type: ignore[no-untyped-def]
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


@_compiled
def _stretch(label, lo, hi, s, g):  # type: ignore[no-untyped-def]
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


@_compiled
def _free_ends(s, lo, hi, g, rise, fall):  # type: ignore[no-untyped-def]
    """Note what may grow and what may fall; largest g of the former, smallest of the latter."""
    g_max = -2 * _FAR
    g_min = 2 * _FAR
    for k in range(s.shape[0]):
        rise[k] = 0.0 if s[k] < hi[k] else -_FAR
        fall[k] = 0.0 if s[k] > lo[k] else _FAR
        g_max = larger(g[k] + rise[k], g_max)
        g_min = smaller(g[k] + fall[k], g_min)
    return g_max, g_min


@_compiled
def _update(K_i, K_j, step, g, rise, fall):  # type: ignore[no-untyped-def]
    """Move the gradient after ``s_i += step, s_j −= step``; returns its new ends."""
    g_max = -2 * _FAR
    g_min = 2 * _FAR
    for k in range(g.shape[0]):
        value = g[k] - step * (K_i[k] - K_j[k])
        g[k] = value
        g_max = larger(value + rise[k], g_max)
        g_min = smaller(value + fall[k], g_min)
    return g_max, g_min


@_compiled
def _first_equal(g, shift, value):  # type: ignore[no-untyped-def]
    """First row at which ``g + shift`` is a value that is there."""
    for start in range(0, g.shape[0], _BLOCK):
        hits = 0
        for k in range(start, min(start + _BLOCK, g.shape[0])):
            hits += 1 if g[k] + shift[k] == value else 0
        if hits > 0:
            k = start
            while g[k] + shift[k] != value:
                k += 1
            return k
    return 0


@_compiled
def _steepest_partner(inverse_i, g_max, g, fall, gain):  # type: ignore[no-untyped-def]
    """The row that, paired with i, raises the dual objective most by a Newton step, or −1."""
    best = 0.0
    for k in range(g.shape[0]):
        drop = larger(g_max - (g[k] + fall[k]), 0.0)
        gain[k] = drop * drop * inverse_i[k]
        best = larger(gain[k], best)
    if best == 0.0:
        return -1
    for start in range(0, g.shape[0], _BLOCK):
        hits = 0
        for k in range(start, min(start + _BLOCK, g.shape[0])):
            hits += 1 if gain[k] == best else 0
        if hits > 0:
            k = start
            while gain[k] != best:
                k += 1
            return k
    return -1


@_compiled
def _fetch(base, index, squares, gamma, diagonal, i, part, inverse, ready):  # type: ignore[no-untyped-def]
    """Make row i of the Gram matrix, and of the inverse curvatures, if it is not there yet."""
    if ready[i]:
        return
    ready[i] = True
    row, source = part[i], base[index[i]] if gamma is None else base[i]
    for k in range(row.shape[0]):
        if gamma is None:
            row[k] = source[index[k]]
        else:
            distance = larger(squares[i] + squares[k] - 2.0 * source[k], 0.0)
            row[k] = exponential(-gamma * distance)
    if gamma is not None:
        row[i] = 1.0
    # They only rank pairs: float32 will do, in a unit that keeps them within its range.
    unit = max(diagonal.max(), _MIN_CURVATURE)
    for k in range(inverse.shape[0]):
        curvature = larger(diagonal[i] + diagonal[k] - 2.0 * row[k], _MIN_CURVATURE)
        inverse[i, k] = smaller(unit / curvature, _STEEPEST)


@_compiled
def _through(part, s, first, last, f):  # type: ignore[no-untyped-def]
    """``K s`` for the rows from `first` to before `last`."""
    for k in range(first, last):
        f[k] = 0.0
    i = -1
    for j in range(s.shape[0]):
        if s[j] == 0:
            continue
        if i < 0:  # two at a time: half the traffic
            i = j
            continue
        for k in range(first, last):
            f[k] += s[i] * part[i, k] + s[j] * part[j, k]
        i = -1
    if i >= 0:
        for k in range(first, last):
            f[k] += s[i] * part[i, k]


@_summing
def _objectives(label, s, lo, hi, g, g_max, g_min):  # type: ignore[no-untyped-def]
    """Primal and dual objective with the best of some intercepts, ``sᵀ K s``, and a stretch.

    The intercepts are the middle of the ends of g, the mean of g over the free variables, and
    where all margins are kept, the middle between the classes. Stretched by the last number, the
    scores would keep all margins exactly.
    """
    norm = 0.0
    mass = 0.0
    free_sum = 0.0
    free = 0.0
    top = -_FAR
    bottom = _FAR
    for k in range(s.shape[0]):
        norm += s[k] * (label[k] - g[k])
        mass += label[k] * s[k]
        inside = 1.0 if (lo[k] < s[k]) & (s[k] < hi[k]) else 0.0
        free_sum += inside * g[k]
        free += inside
        top = larger(g[k] if hi[k] > 0 else -_FAR, top)
        bottom = smaller(g[k] if lo[k] < 0 else _FAR, bottom)
    if g_max < -0.5 * _FAR or g_min > 0.5 * _FAR:  # every variable at a bound on one side
        middle = g_min if g_max < -0.5 * _FAR else g_max
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


@_compiled
def _widen(label, lo, hi, s, g, d, norm, t, tol):  # type: ignore[no-untyped-def]
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
