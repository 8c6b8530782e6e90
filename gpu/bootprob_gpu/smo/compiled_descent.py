"""Steps of compiled SMO: working sets of two, rows of the Gram matrix, and steps among few rows.

Arrays of shape (m,): signed dual variables `s` in ``[lo, hi]``, their gradient ``g = y − K s``, and
`rise` and `fall`, which put g far away where s may not go.
"""

from __future__ import annotations

from bootprob_gpu.hardware.compiled import inner
from bootprob_gpu.hardware.compiled_arithmetic import exponential, larger, smaller
from bootprob_gpu.smo.compiled_steps import FAR, free_ends

__all__ = ["MIN_CURVATURE", "STEEPEST", "descend", "gather", "may_move"]

MIN_CURVATURE = 1e-12
STEEPEST = 1e30  # largest inverse curvature, in float32
_AT_ONCE = 64  # rows passed at once by a search: one that may end at any row is not vectorised

# Vector instructions need divisions that do not raise. Sums must not be reordered, nor products
# fused: the gradient that is compared has to be the one that is stored.
_inner = inner(error_model="numpy")


@_inner
def descend(gram, gamma, state, m, g_max, g_min, least, most, goal, end):  # type: ignore[no-untyped-def]
    """Take steps until the violation ``g_max − g_min`` is no more than a goal.

    Parameters
    ----------
    gram, gamma
        As `fetch_row` has them.
    state : tuple of arrays, shape (m,) or longer
        ``(diagonal, s, lo, hi, g, rise, fall, gain)``, the last for scratch.
    m : int
        Rows.
    g_max, g_min : float
        Ends of g over what may grow and what may fall.
    least, most : int
        Steps; fewer where the violation is no more than `end`, or where what is left is rounding.
    goal, end : float

    Returns
    -------
    g_max, g_min : float
    done : int
        Steps taken.
    stuck : bool
        Whether only rounding is left.
    """
    diagonal, s, lo, hi, g, rise, fall, gain = state
    part, inverse = gram[3], gram[4]
    done = 0
    while done < most and g_max - g_min > end and (done < least or g_max - g_min > goal):
        i = first_equal(g, rise, g_max, m)
        fetch_row(gram, gamma, diagonal, i, m)
        j = steepest_partner(inverse[i], g_max, g, fall, gain, m)
        if j < 0:
            return g_max, g_min, done, True
        fetch_row(gram, gamma, diagonal, j, m)
        step = (g_max - g[j]) / max(diagonal[i] + diagonal[j] - 2 * part[i, j], MIN_CURVATURE)
        room_i = hi[i] - s[i]
        room_j = s[j] - lo[j]
        step = min(step, room_i, room_j)
        # Bounds are met exactly, or a variable would creep along them for ever.
        s[i] = hi[i] if step == room_i else s[i] + step
        s[j] = lo[j] if step == room_j else s[j] - step
        for k in (i, j):
            rise[k] = 0.0 if s[k] < hi[k] else -FAR
            fall[k] = 0.0 if s[k] > lo[k] else FAR
        g_max, g_min = move_gradient(part[i], part[j], step, g, rise, fall, m)
        done += 1
    return g_max, g_min, done, False


@_inner
def may_move(g, rise, fall, g_max, g_min, active, m):  # type: ignore[no-untyped-def]
    """List the rows that are part of a violation or are free; returns how many.

    Of the others the next steps will hardly take one (T. Joachims, 1999: "shrinking").
    """
    count = 0
    for k in range(m):
        if (rise[k] == 0.0 and g[k] >= g_min) or (fall[k] == 0.0 and g[k] <= g_max):
            active[count] = k
            count += 1
    return count


@_inner
def gather(gram, gamma, state, m, active, a, few_gram, few):  # type: ignore[no-untyped-def]
    """Copy what `descend` reads of `a` of the rows; returns the ends of their g."""
    diagonal, s, lo, hi, g = state[:5]
    few_diagonal, few_s, few_lo, few_hi, few_g, few_rise, few_fall = few[:7]
    part, inverse, few_part, few_inverse = gram[3], gram[4], few_gram[3], few_gram[4]
    for x in range(a):
        i = active[x]
        fetch_row(gram, gamma, diagonal, i, m)
        few_diagonal[x], few_s[x], few_lo[x], few_hi[x] = diagonal[i], s[i], lo[i], hi[i]
        few_g[x] = g[i]
        for z in range(a):
            few_part[x, z] = part[i, active[z]]
            few_inverse[x, z] = inverse[i, active[z]]
    return free_ends(few_s, few_lo, few_hi, few_g, few_rise, few_fall, a)


@_inner
def fetch_row(gram, gamma, diagonal, i, m):  # type: ignore[no-untyped-def]
    """Make row i of the Gram matrix, and of the inverse curvatures, if it is not there yet.

    `gram` is ``(base, index, squares, part, inverse, ready)``, as `smo_path` has them.
    """
    base, index, squares, part, inverse, ready = gram
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
    unit = MIN_CURVATURE
    for k in range(m):
        unit = larger(diagonal[k], unit)
    for k in range(m):
        curvature = larger(diagonal[i] + diagonal[k] - 2.0 * row[k], MIN_CURVATURE)
        inverse[i, k] = smaller(unit / curvature, STEEPEST)


@_inner
def first_equal(g, shift, value, m):  # type: ignore[no-untyped-def]
    """First row at which ``g + shift`` is a value that is there."""
    first = 0
    while first + _AT_ONCE <= m:
        top = -2 * FAR
        for k in range(_AT_ONCE):
            top = larger(g[first + k] + shift[first + k], top)
        if top >= value:
            break
        first += _AT_ONCE
    for k in range(first, m):
        if g[k] + shift[k] == value:
            return k
    return 0


@_inner
def steepest_partner(inverse_i, g_max, g, fall, gain, m):  # type: ignore[no-untyped-def]
    """The row that, paired with i, raises the dual objective most by a Newton step, or −1."""
    best = 0.0
    for k in range(m):
        drop = larger(g_max - (g[k] + fall[k]), 0.0)
        gain[k] = drop * drop * inverse_i[k]
        best = larger(gain[k], best)
    if best == 0.0:
        return -1
    first = 0
    while first + _AT_ONCE <= m:
        top = 0.0
        for k in range(_AT_ONCE):
            top = larger(gain[first + k], top)
        if top == best:
            break
        first += _AT_ONCE
    for k in range(first, m):
        if gain[k] == best:
            return k
    return -1


@_inner
def move_gradient(K_i, K_j, step, g, rise, fall, m):  # type: ignore[no-untyped-def]
    """Move the gradient after ``s_i += step, s_j −= step``; returns its new ends."""
    g_max = -2 * FAR
    g_min = 2 * FAR
    for k in range(m):
        value = g[k] - step * (K_i[k] - K_j[k])
        g[k] = value
        g_max = larger(value + rise[k], g_max)
        g_min = smaller(value + fall[k], g_min)
    return g_max, g_min
