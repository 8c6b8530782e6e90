"""BLAS and LAPACK for compiled solvers: routines of scipy's own library, called by address.

numba's ``np.dot`` makes a new array each time, and reaches neither the symmetric product (half of
GEMM's work) nor products with a slice of an array, nor factorisations in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import get_cython_function_address, intrinsic
from numpy.typing import NDArray

from bootprob_gpu.hardware.compiled import inner

__all__ = [
    "add_symmetric_product",
    "factor",
    "solve_factored",
    "times",
    "times_transposed",
    "workspaces",
]

_ROUTINES = np.array(
    [
        get_cython_function_address(f"scipy.linalg.cython_{library}", name)
        for library, name in (
            ("blas", "dgemv"), ("blas", "dsyrk"), ("lapack", "dpotrf"), ("lapack", "dpotrs"),
        )
    ],
    dtype=np.intp,
)  # fmt: skip
_DGEMV, _DSYRK, _DPOTRF, _DPOTRS = range(4)
_LETTERS = np.array([76, 84, 78], dtype=np.uint8)
_REALS = np.array([1.0, 0.0])


def _call_typed(typing_context: Any, routine: Any, arguments: Any) -> Any:
    """Call a Fortran subroutine at an address with a tuple of addresses."""
    count = len(arguments)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address, packed = values
        integer = context.get_value_type(types.intp)
        subroutine = ir.FunctionType(ir.VoidType(), [integer] * count).as_pointer()
        unpacked = [builder.extract_value(packed, k) for k in range(count)]
        builder.call(builder.inttoptr(address, subroutine), unpacked)
        return context.get_dummy_value()

    return types.void(types.intp, types.UniTuple(types.intp, count)), generate


def _address_typed(typing_context: Any, array: Any) -> Any:
    """Where the numbers of an array begin."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(array)(context, builder, values[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.intp))

    return types.intp(array), generate


_call: Any = intrinsic(_call_typed)  # numba passes the first argument itself
_address: Any = intrinsic(_address_typed)
_inner = inner(error_model="numpy")


def workspaces(count: int) -> list[tuple[NDArray[Any], ...]]:
    """What the functions below want as their first argument, each for one thread at a time.

    Addresses of the routines, which as constants of a compiled function could not be kept on disk;
    and what the routines want by address: letters L, T, N; room for sizes; the numbers 1 and 0.
    """
    sizes = np.zeros((count, 4), dtype=np.int32)
    sizes[:, 0] = 1
    return [(_ROUTINES, _LETTERS, own, _REALS) for own in sizes]


@_inner
def times_transposed(blas, A, x, out):  # type: ignore[no-untyped-def]
    """``out = Aᵀ x`` for a contiguous A of shape (k, m)."""
    routines, letters, sizes, reals = blas
    sizes[1], sizes[2] = A.shape[1], A.shape[0]
    # Fortran reads Aᵀ where C wrote A.
    no_transpose, one, m = _address(letters) + 2, _address(sizes), _address(sizes) + 4
    plus, zero = _address(reals), _address(reals) + 8
    _call(
        routines[_DGEMV],
        (no_transpose, m, m + 4, plus, _address(A), m, _address(x), one, zero, _address(out), one),
    )


@_inner
def times(blas, A, x, out):  # type: ignore[no-untyped-def]
    """``out = A x`` for a contiguous A of shape (k, m)."""
    routines, letters, sizes, reals = blas
    sizes[1], sizes[2] = A.shape[1], A.shape[0]
    transpose, one, m = _address(letters) + 1, _address(sizes), _address(sizes) + 4
    plus, zero = _address(reals), _address(reals) + 8
    _call(
        routines[_DGEMV],
        (transpose, m, m + 4, plus, _address(A), m, _address(x), one, zero, _address(out), one),
    )


@_inner
def add_symmetric_product(blas, A, out):  # type: ignore[no-untyped-def]
    """``out += A Aᵀ`` for a contiguous A of shape (k, m), in the triangle that `factor` reads."""
    routines, letters, sizes, reals = blas
    sizes[1], sizes[2] = A.shape[1], A.shape[0]
    lower, transpose = _address(letters), _address(letters) + 1
    plus, m, k = _address(reals), _address(sizes) + 4, _address(sizes) + 8
    _call(
        routines[_DSYRK],
        (lower, transpose, k, m, plus, _address(A), m, plus, _address(out), k),
    )


@_inner
def factor(blas, H):  # type: ignore[no-untyped-def]
    """Cholesky factor in place; whether the matrix was positive definite."""
    routines, letters, sizes, _ = blas
    sizes[1] = H.shape[0]
    k, info = _address(sizes) + 4, _address(sizes) + 12
    _call(routines[_DPOTRF], (_address(letters), k, _address(H), k, info))
    return sizes[3] == 0


@_inner
def solve_factored(blas, H, x):  # type: ignore[no-untyped-def]
    """``H⁻¹ x`` in place of `x`, with H from `factor`."""
    routines, letters, sizes, _ = blas
    sizes[1] = H.shape[0]
    one, k, info = _address(sizes), _address(sizes) + 4, _address(sizes) + 12
    _call(
        routines[_DPOTRS],
        (_address(letters), k, one, _address(H), k, _address(x), k, info),
    )
