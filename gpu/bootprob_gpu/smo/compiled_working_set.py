"""Working sets of two for compiled SMO: the ends of the gradient, and the pair that moves next.

Arrays of shape (m,): signed dual variables `s` in ``[lo, hi]``, their gradient ``g = y − K s``, and
`rise` and `fall`, which put g far away where s may not go.
"""

from __future__ import annotations

from bootprob_gpu.hardware.compiled import inner
from bootprob_gpu.hardware.compiled_arithmetic import larger, smaller

__all__ = ["FAR", "first_equal", "free_ends", "move_gradient", "steepest_partner"]

FAR = 1e300  # beyond every gradient; infinities would forbid fast arithmetic
_BLOCK = 32  # rows looked at together when one is searched for

# Vector instructions need divisions that do not raise. Sums must not be reordered, nor products
# fused: the gradient that is compared has to be the one that is stored.
_inner = inner(error_model="numpy")


@_inner
def free_ends(s, lo, hi, g, rise, fall):  # type: ignore[no-untyped-def]
    """Note what may grow and what may fall; largest g of the former, smallest of the latter."""
    g_max = -2 * FAR
    g_min = 2 * FAR
    for k in range(s.shape[0]):
        rise[k] = 0.0 if s[k] < hi[k] else -FAR
        fall[k] = 0.0 if s[k] > lo[k] else FAR
        g_max = larger(g[k] + rise[k], g_max)
        g_min = smaller(g[k] + fall[k], g_min)
    return g_max, g_min


@_inner
def move_gradient(K_i, K_j, step, g, rise, fall):  # type: ignore[no-untyped-def]
    """Move the gradient after ``s_i += step, s_j −= step``; returns its new ends."""
    g_max = -2 * FAR
    g_min = 2 * FAR
    for k in range(g.shape[0]):
        value = g[k] - step * (K_i[k] - K_j[k])
        g[k] = value
        g_max = larger(value + rise[k], g_max)
        g_min = smaller(value + fall[k], g_min)
    return g_max, g_min


@_inner
def first_equal(g, shift, value):  # type: ignore[no-untyped-def]
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


@_inner
def steepest_partner(inverse_i, g_max, g, fall, gain):  # type: ignore[no-untyped-def]
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
