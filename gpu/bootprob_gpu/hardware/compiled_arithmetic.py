"""Arithmetic that numba lacks: extrema and the exponential in vectors, products of 128 bits."""

from __future__ import annotations

from math import factorial

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from bootprob_gpu.hardware.compiled import inner

__all__ = ["exponential", "high_product", "larger", "smaller"]


def _extremum(comparison: str):  # type: ignore[no-untyped-def]
    """One of two float64 numbers, neither of which may be NaN.

    Python's own ``a if a > b else b`` loses the promise that nothing is NaN on its way to LLVM,
    and without it a loop that looks for the largest number is not vectorised.
    """

    @intrinsic
    def extremum(_, a, b):  # type: ignore[no-untyped-def]
        def build(context, builder, signature, values):  # type: ignore[no-untyped-def]
            flags = ("nnan", "nsz")
            chosen = builder.fcmp_ordered(comparison, *values, flags=flags)
            return builder.select(chosen, *values, flags=flags)

        return types.float64(types.float64, types.float64), build

    return extremum


larger, smaller = _extremum(">"), _extremum("<")


@intrinsic
def high_product(_, a, b):  # type: ignore[no-untyped-def]
    """Bits 64 to 127 of the product of two uint64 numbers."""

    def build(context, builder, signature, values):  # type: ignore[no-untyped-def]
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(value, wide) for value in values))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), build


def _same_bits(source, target):  # type: ignore[no-untyped-def]
    """The bits of a number of one type, read as another type."""

    @intrinsic
    def reread(_, number):  # type: ignore[no-untyped-def]
        def build(context, builder, signature, values):  # type: ignore[no-untyped-def]
            return builder.bitcast(values[0], context.get_value_type(target))

        return target(source), build

    return reread


_as_integer = _same_bits(types.float64, types.int64)
_as_float = _same_bits(types.int64, types.float64)

_SMALLEST = -708.0  # its exponential is the last one that is not subnormal
_ROUNDER = 1.5 * 2.0**52  # added, it leaves the nearest whole number in the last bits
_LOG2_E = 1.4426950408889634
_LN_2 = 0.6931471803691238  # with 20 zeros at the end, so that its multiples are exact
_LN_2_REST = 1.9082149292705877e-10
_C = [1 / factorial(k) for k in range(14)]
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = _C[2:]


@inner(error_model="numpy", fastmath={"contract"})
def exponential(x):  # type: ignore[no-untyped-def]
    """``exp(x)`` for x ≤ 0 to within one unit in the last place; 0 from −708 down.

    ``x = n ln 2 + r`` with whole n and ``|r| ≤ ½ ln 2``, Taylor's series of ``exp(r)`` to the
    13th power (its remainder is below 1e-17), and n added to the exponent.
    """
    kept = larger(x, _SMALLEST)
    shifted = kept * _LOG2_E + _ROUNDER
    n = shifted - _ROUNDER
    r = (kept - n * _LN_2) - n * _LN_2_REST
    series = _C13
    series = series * r + _C12
    series = series * r + _C11
    series = series * r + _C10
    series = series * r + _C9
    series = series * r + _C8
    series = series * r + _C7
    series = series * r + _C6
    series = series * r + _C5
    series = series * r + _C4
    series = series * r + _C3
    series = series * r + _C2
    series = series * r + 1.0
    series = series * r + 1.0
    value = _as_float(_as_integer(series) + (_as_integer(shifted) << 52))
    return value if x > _SMALLEST else 0.0
