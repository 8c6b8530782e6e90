"""Votes of new rows on a CPU, compiled: scores are counted in registers and never written.

A matrix product with few columns spends its time on writing the result. Here the scores of 6 models
and two vectors of rows stay in registers from the first column to the last; then their signs are
added to the counts. So this is faster than the bare product.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import llvmlite.binding  # type: ignore[import-untyped, unused-ignore]
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from bootprob_gpu.hardware.compiled import compiled

__all__ = ["PackedModels", "count_votes"]

_MODELS = 6  # with two vectors of rows: 12 sums, of the 16 registers of AVX2
_VECTORS = 2
# Vectors wider than the machine's would be split, and the sums would not fit into its registers.
_VECTOR_BYTES = 64 if llvmlite.binding.get_host_cpu_features().get("avx512f") else 32
_TILE_BYTES = _VECTORS * _VECTOR_BYTES  # rows of a tile, one column
_BLOCK_ROWS = 128  # rows that see all models before the next rows do
_BLOCK_BYTES = 2**19  # of such rows, so that they stay in the second-level cache
_BLOCKS_PER_TASK = 8


class PackedModels:
    """Linear models, their coefficients in the order in which they are multiplied.

    Parameters
    ----------
    coef : ndarray of float32 or float64, shape (R, k, B)
        Coefficients of the R models of each of B replicates on k columns.
    intercept : ndarray, shape (R, B)
        Intercepts.
    """

    def __init__(self, coef: NDArray[Any], intercept: NDArray[Any]) -> None:
        R, k, B = coef.shape
        self.columns, self.n_models = k, R
        self.groups = -(-B // _MODELS)
        # Models added to fill the last group score −1 everywhere, which is no vote.
        padded = np.full((R, self.groups * _MODELS), -1, dtype=coef.dtype)
        padded[:, :B] = intercept
        self.intercept = padded.ravel()
        packed = np.zeros((R, self.groups, k, _MODELS), dtype=coef.dtype)
        whole = B // _MODELS
        grouped = coef[:, :, : whole * _MODELS].reshape(R, k, whole, _MODELS)
        packed[:, :whole] = grouped.transpose(0, 2, 1, 3)
        packed[:, whole:, :, : B - whole * _MODELS] = coef[:, None, :, whole * _MODELS :]
        self.coef = packed.ravel()


def count_votes(rows: NDArray[Any], models: PackedModels, threads: int) -> NDArray[np.int32]:
    """How many replicates score each row above 0.

    Parameters
    ----------
    rows : ndarray, shape (m, k)
        Rows, of the type of the coefficients.
    models : PackedModels
    threads : int
        Threads that may work at the same time.

    Returns
    -------
    ndarray of int32, shape (R, m)
    """
    m, k = rows.shape
    counts = np.empty((models.n_models, m), dtype=np.int32)
    tile = _TILE_BYTES // rows.itemsize
    fitting = _BLOCK_BYTES // max(1, k * rows.itemsize)
    block = max(tile, min(_BLOCK_ROWS, fitting) // tile * tile)

    def work(start: int) -> None:
        stop = min(start + size, m)
        packed = np.zeros(block * k, dtype=rows.dtype)
        votes = np.empty(block, dtype=f"i{rows.itemsize}")
        _count(
            rows, models.coef, models.intercept, models.groups, start, stop, tile, packed, votes,
            counts,
        )  # fmt: skip

    size = _BLOCKS_PER_TASK * block
    if m <= block or threads == 1:
        size = m
        work(0)
    else:
        size = min(size, -(-m // (threads * block)) * block)  # something to do for every thread
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(0, m, size)))
    return counts


@intrinsic
def _add_votes(
    typing_context: Any, k: Any, rows: Any, at_row: Any, coef: Any, at_coef: Any,
    intercept: Any, at_intercept: Any, votes: Any, at_vote: Any,
) -> Any:  # fmt: skip
    """Score one tile of rows (k, 2 vectors) by 6 models, coefficients (k, 6), and add the votes.

    Arrays are one-dimensional, each followed by the place in it where the tile begins. `votes` are
    integers as wide as the scores, so that a comparison, −1 where it holds, is subtracted as it
    comes.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = signature.args[1]
        bits = array.dtype.bitwidth
        lanes = 8 * _VECTOR_BYTES // bits
        scalar = context.get_data_type(array.dtype)
        vector = ir.VectorType(scalar, lanes)
        mask = ir.VectorType(ir.IntType(bits), lanes)
        index, short = ir.IntType(64), ir.IntType(32)
        undefined = ir.Constant(vector, ir.Undefined)
        first_lane = ir.Constant(ir.VectorType(short, lanes), [0] * lanes)
        multiply_add = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fmuladd.v{lanes}f{bits}"
        )

        def beginning(argument: int) -> Any:
            made = context.make_array(signature.args[argument])
            data = made(context, builder, values[argument]).data
            return builder.gep(data, [values[argument + 1]])

        def after(pointer: Any, numbers: int) -> Any:
            return builder.gep(pointer, [ir.Constant(index, numbers)])

        def vector_at(pointer: Any, kind: Any) -> Any:
            return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=bits // 8)

        def repeated(pointer: Any) -> Any:
            one = builder.insert_element(undefined, builder.load(pointer), ir.Constant(short, 0))
            return builder.shuffle_vector(one, undefined, first_lane)

        x, w, bias, count = (beginning(argument) for argument in (1, 3, 5, 7))
        start = [repeated(after(bias, model)) for model in range(_MODELS)]
        before, loop, end = (
            builder.block,
            builder.append_basic_block("columns"),
            builder.append_basic_block("signs"),
        )
        some = builder.icmp_signed(">", values[0], ir.Constant(index, 0))
        builder.cbranch(some, loop, end)

        builder.position_at_end(loop)
        column = builder.phi(index)
        column.add_incoming(ir.Constant(index, 0), before)
        sums = [builder.phi(vector) for _ in range(_MODELS * _VECTORS)]
        x_column = builder.gep(x, [builder.mul(column, ir.Constant(index, _VECTORS * lanes))])
        w_column = builder.gep(w, [builder.mul(column, ir.Constant(index, _MODELS))])
        parts = [vector_at(after(x_column, v * lanes), vector) for v in range(_VECTORS)]
        grown = []
        for model in range(_MODELS):
            weight = repeated(after(w_column, model))
            for v, part in enumerate(parts):
                term = sums[model * _VECTORS + v]
                grown.append(builder.call(multiply_add, [weight, part, term]))
        following = builder.add(column, ir.Constant(index, 1))
        column.add_incoming(following, loop)
        for i, (term, value) in enumerate(zip(sums, grown, strict=True)):
            term.add_incoming(start[i // _VECTORS], before)
            term.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", following, values[0]), loop, end)

        builder.position_at_end(end)
        zero = ir.Constant(vector, [0.0] * lanes)
        scores = [builder.phi(vector) for _ in grown]
        for i, score in enumerate(scores):
            score.add_incoming(start[i // _VECTORS], before)
            score.add_incoming(grown[i], loop)
        for v in range(_VECTORS):
            place = builder.bitcast(after(count, v * lanes), mask.as_pointer())
            total = builder.load(place, align=bits // 8)
            for model in range(_MODELS):
                above = builder.fcmp_ordered(">", scores[model * _VECTORS + v], zero)
                total = builder.sub(total, builder.sext(above, mask))
            builder.store(total, place, align=bits // 8)
        return context.get_dummy_value()

    arguments = (
        k, rows, at_row, coef, at_coef, intercept, at_intercept, votes, at_vote,
    )  # fmt: skip
    return types.void(*arguments), generate


@compiled(nogil=True)
def _count(rows, coef, intercept, groups, start, stop, tile, packed, votes, counts):  # type: ignore[no-untyped-def]
    """Votes of the rows from `start` to `stop`, in blocks that meet all models one after another.

    Coefficients stream past a block of rows, which stays in the cache; a group of 6 models stays
    in the first-level cache while it passes the tiles of the block. `packed` takes the rows of a
    block as (tiles, columns, rows of a tile), `votes` one number for each of them.
    """
    k, block = rows.shape[1], votes.shape[0]
    for first in range(start, stop, block):
        n = min(block, stop - first)
        tiles = (n + tile - 1) // tile
        for i in range(n):
            place = i // tile * tile * k + i % tile
            for j in range(k):
                packed[place + j * tile] = rows[first + i, j]
        for r in range(counts.shape[0]):
            votes[:] = 0
            for group in range(r * groups, (r + 1) * groups):
                for t in range(tiles):
                    _add_votes(  # type: ignore[call-arg]
                        k, packed, t * tile * k, coef, group * k * _MODELS,
                        intercept, group * _MODELS, votes, t * tile,
                    )  # fmt: skip
            for i in range(n):
                counts[r, first + i] = votes[i]
