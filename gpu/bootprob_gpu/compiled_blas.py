"""BLAS and LAPACK for compiled solvers: routines of scipy's own library, called by address.

numba's ``np.dot`` makes a new array each time, and reaches neither the symmetric product (half of
GEMM's work) nor products with a slice of an array, nor factorisations in place.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import get_cython_function_address, intrinsic

__all__ = [
    "ROUTINES",
    "add_symmetric_product",
    "constants",
    "factor",
    "solve_factored",
    "times",
    "times_transposed",
]

# Addresses, to be handed to the functions below as their first argument: constants of a compiled
# function could not be cached on disk.
ROUTINES = np.array(
    [
        get_cython_function_address(f"scipy.linalg.cython_{library}", name)
        for library, name in (
            ("blas", "dgemv"), ("blas", "dsyrk"), ("lapack", "dpotrf"), ("lapack", "dpotrs"),
        )
    ],
    dtype=np.intp,
)  # fmt: skip
_DGEMV, _DSYRK, _DPOTRF, _DPOTRS = range(4)


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


_call: Any = intrinsic(_call_typed)  # numba passes the first argument itself


_compiled = numba.njit(cache=True, nogil=True, error_model="numpy")


@_compiled
def _address(values):  # type: ignore[no-untyped-def]
    return np.intp(values.ctypes.data)


@_compiled
def constants():  # type: ignore[no-untyped-def]
    """What routines want by address: letters L, T, N; room for sizes; the numbers 1 and 0."""
    letters = np.array([76, 84, 78], dtype=np.uint8)
    sizes = np.array([1, 0, 0, 0], dtype=np.int32)
    return letters, sizes, np.array([1.0, 0.0])


@_compiled
def times_transposed(routines, fixed, A, x, out):  # type: ignore[no-untyped-def]
    """``out = Aᵀ x`` for a contiguous A of shape (k, m)."""
    letters, sizes, reals = fixed
    sizes[1], sizes[2] = A.shape[1], A.shape[0]
    # Fortran reads Aᵀ where C wrote A.
    no_transpose, one, m = _address(letters) + 2, _address(sizes), _address(sizes) + 4
    plus, zero = _address(reals), _address(reals) + 8
    _call(
        routines[_DGEMV],
        (no_transpose, m, m + 4, plus, _address(A), m, _address(x), one, zero, _address(out), one),
    )


@_compiled
def times(routines, fixed, A, x, out):  # type: ignore[no-untyped-def]
    """``out = A x`` for a contiguous A of shape (k, m)."""
    letters, sizes, reals = fixed
    sizes[1], sizes[2] = A.shape[1], A.shape[0]
    transpose, one, m = _address(letters) + 1, _address(sizes), _address(sizes) + 4
    plus, zero = _address(reals), _address(reals) + 8
    _call(
        routines[_DGEMV],
        (transpose, m, m + 4, plus, _address(A), m, _address(x), one, zero, _address(out), one),
    )


@_compiled
def add_symmetric_product(routines, fixed, A, out):  # type: ignore[no-untyped-def]
    """``out += A Aᵀ`` for a contiguous A of shape (k, m), in the triangle that `factor` reads."""
    letters, sizes, reals = fixed
    sizes[1], sizes[2] = A.shape[1], A.shape[0]
    lower, transpose = _address(letters), _address(letters) + 1
    plus, m, k = _address(reals), _address(sizes) + 4, _address(sizes) + 8
    _call(
        routines[_DSYRK],
        (lower, transpose, k, m, plus, _address(A), m, plus, _address(out), k),
    )


@_compiled
def factor(routines, fixed, H):  # type: ignore[no-untyped-def]
    """Cholesky factor in place; whether the matrix was positive definite."""
    letters, sizes, _ = fixed
    sizes[1] = H.shape[0]
    k, info = _address(sizes) + 4, _address(sizes) + 12
    _call(routines[_DPOTRF], (_address(letters), k, _address(H), k, info))
    return sizes[3] == 0


@_compiled
def solve_factored(routines, fixed, H, x):  # type: ignore[no-untyped-def]
    """``H⁻¹ x`` in place of `x`, with H from `factor`."""
    letters, sizes, _ = fixed
    sizes[1] = H.shape[0]
    one, k, info = _address(sizes), _address(sizes) + 4, _address(sizes) + 12
    _call(
        routines[_DPOTRS],
        (_address(letters), k, one, _address(H), k, _address(x), k, info),
    )
