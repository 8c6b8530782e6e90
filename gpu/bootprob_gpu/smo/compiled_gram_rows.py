"""Rows of the Gram matrix that compiled SMO makes on demand, and products with them."""

from __future__ import annotations

from bootprob_gpu.hardware.compiled import inner
from bootprob_gpu.hardware.compiled_arithmetic import exponential, larger, smaller

__all__ = ["MIN_CURVATURE", "fetch_row", "times_gram"]

MIN_CURVATURE = 1e-12
_STEEPEST = 1e30  # largest inverse curvature, in float32

_inner = inner(error_model="numpy")


@_inner
def fetch_row(base, index, squares, gamma, diagonal, i, part, inverse, ready):  # type: ignore[no-untyped-def]
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
    unit = MIN_CURVATURE
    for k in range(diagonal.shape[0]):
        unit = larger(diagonal[k], unit)
    for k in range(inverse.shape[0]):
        curvature = larger(diagonal[i] + diagonal[k] - 2.0 * row[k], MIN_CURVATURE)
        inverse[i, k] = smaller(unit / curvature, _STEEPEST)


@_inner
def times_gram(part, s, first, last, f):  # type: ignore[no-untyped-def]
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
