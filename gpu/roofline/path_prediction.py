"""Predicted time of training RBF models, from what `smo_counts` counted of their paths."""

from __future__ import annotations

from typing import Any

from gpu.roofline.hardware import ASSUMED, H100

__all__ = ["AFTER", "BEFORE", "predicted"]

# The order of the paths, and the bytes of a number in the Gram matrices that are iterated with.
BEFORE, AFTER = ("by number", 8), ("hardest γ first", 4)
_CHECK_EVERY = 64  # iterations between evaluations of the duality gap
_ROWS_AHEAD = 2  # rows on their way when a gradient is computed anew
_GRID = 11  # values of γ, whose kernels are made of one product


def predicted(
    found: dict[str, Any], rows: int, p: int, how: tuple[str, int], replicates: int
) -> dict[str, Any]:
    """Seconds by cause, and their sum.

    Paths take as long as their iterations one after the other, or as long as memory needs for the
    rows of Gram matrices, whichever is more. Gram matrices are made before.

    Parameters
    ----------
    found : dict
        "before" or "after" of `smo_counts.counted`.
    rows : int
        Rows that a path holds.
    p : int
        Columns.
    how : (str, int)
        `BEFORE` or `AFTER`.
    replicates : int
        Of the job, which schedules are of; other counts are of fewer, and taken in proportion.
    """
    order, item_bytes = how
    more = replicates * _GRID * _GRID / found["models"]
    models = found["models"] * more
    at_once = found["paths on a multiprocessor"]
    slots = at_once * H100.multiprocessors
    block = 1 << (rows - 1).bit_length()
    fma = H100.fp64 / 2 / H100.multiprocessors
    iteration = 2 * ASSUMED.row + 3 * ASSUMED.reduction
    iteration += 2 * ASSUMED.reduction / _CHECK_EVERY
    iteration += at_once * block * ASSUMED.smo_operations / fma
    renewed = found["rows renewed of a model"] / _ROWS_AHEAD * ASSUMED.row
    memory = ASSUMED.memory_share * H100.memory
    cells = models / _GRID * rows**2
    made = max(
        2 * cells / _GRID * p / (ASSUMED.product_share * H100.fp64_tensor),
        cells * (8 + (8 + item_bytes if how == AFTER else 0)) / memory,
    )
    even, last = (found["schedule"][key] * iteration for key in ("no shorter than", order))
    read = more * 1e12 * found["TB of kernel rows"] / memory
    causes = {
        "Gram matrices": made,
        "iterations, paths side by side": even,
        "beyond that, the last paths": last - even,
        "gradients anew": models * renewed / slots,
        "rows from memory, beyond that": max(0.0, read - last),
    }
    return {
        "seconds": sum(causes.values()),
        "causes": causes,
        "an iteration, s": iteration,
        "paths at work": slots,
    }
