"""Linear Gram matrices of many replicates, each with a scale of its own, compiled for the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from bootprob_gpu.hardware.compiled import compiled, inner

__all__ = ["PADDING", "scaled_grams"]

_COLUMNS = 384  # columns at a time: seven rows of them stay in the first cache
_TALL, _WIDE = 4, 3  # a tile of the matrix: its sums and two of its factors fill the registers
PADDING = _TALL + _WIDE

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"nnan", "nsz", "reassoc", "contract"},
}
_inner = inner(**_OPTIONS)


@compiled(nogil=True, **_OPTIONS)
def scaled_grams(X, inverse_scale, orders, sizes, grams):  # type: ignore[no-untyped-def]
    """Gram matrices of the rows of weight of some replicates.

    Only half of each is computed; and columns are taken block by block for all replicates, so
    that the rows are read from memory once and not once a replicate.

    Parameters
    ----------
    X : array, shape (n, p)
        Rows, centred near 0.
    inverse_scale : array, shape (q, p)
        What replicate q multiplies the columns by.
    orders : array of int, shape (q, n)
        The rows of weight first.
    sizes : array of int, shape (q,)
        How many these are.
    grams : array, shape (q, ≥ max(sizes) + PADDING, the same)
        Filled in.
    """
    p = X.shape[1]
    rows = np.zeros((sizes.max() + PADDING, _COLUMNS))
    grams[:] = 0.0
    for start in range(0, p, _COLUMNS):
        count = min(_COLUMNS, p - start)
        for q in range(sizes.shape[0]):
            m = sizes[q]
            for i in range(m):
                _scaled(
                    X[orders[q, i], start : start + count],
                    inverse_scale[q, start : start + count],
                    rows[i],
                )
            for i in range(0, m, _TALL):
                for j in range(0, min(i + _TALL, m), _WIDE):
                    _add_tile(rows, i, j, count, grams[q])
    for q in range(sizes.shape[0]):
        for i in range(sizes[q]):
            for j in range(i):
                grams[q, j, i] = grams[q, i, j]


@_inner
def _scaled(row, factor, out):  # type: ignore[no-untyped-def]
    for k in range(row.shape[0]):
        out[k] = row[k] * factor[k]


@_inner
def _add_tile(rows, i, j, count, gram):  # type: ignore[no-untyped-def]
    """Add the products of rows i … i + 3 with rows j … j + 2."""
    a0, a1, a2, a3 = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
    b0, b1, b2 = rows[j], rows[j + 1], rows[j + 2]
    s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = s30 = s31 = s32 = 0.0
    for k in range(count):
        x, y, z = b0[k], b1[k], b2[k]
        s00 += a0[k] * x
        s01 += a0[k] * y
        s02 += a0[k] * z
        s10 += a1[k] * x
        s11 += a1[k] * y
        s12 += a1[k] * z
        s20 += a2[k] * x
        s21 += a2[k] * y
        s22 += a2[k] * z
        s30 += a3[k] * x
        s31 += a3[k] * y
        s32 += a3[k] * z
    gram[i, j] += s00
    gram[i, j + 1] += s01
    gram[i, j + 2] += s02
    gram[i + 1, j] += s10
    gram[i + 1, j + 1] += s11
    gram[i + 1, j + 2] += s12
    gram[i + 2, j] += s20
    gram[i + 2, j + 1] += s21
    gram[i + 2, j + 2] += s22
    gram[i + 3, j] += s30
    gram[i + 3, j + 1] += s31
    gram[i + 3, j + 2] += s32
