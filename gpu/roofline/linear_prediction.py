"""Predicted time of training linear models, from what the interior point executes."""

from __future__ import annotations

from typing import Any

from gpu.roofline.hardware import ASSUMED, H100
from gpu.roofline.interior_point_counts import (
    STEP_LAUNCHES,
    Executed,
    kernel_bytes,
    product_bytes,
    product_operations,
)

__all__ = ["predicted"]

# Programs of `_factor` that a multiprocessor holds, by the power of 2 at or above its columns:
# registers and warps as compiled for compute capability 9.0 by triton 3.6.
_FACTORS_AT_ONCE = {16: 32, 32: 20, 64: 3, 128: 1}


def predicted(done: Executed, n: int, q: int) -> dict[str, Any]:
    """Seconds by cause, and their sum.

    Kernels and products run one after the other. The host's launches are hidden behind them unless
    they take longer; captures, and waits for a count, are not.

    Parameters
    ----------
    done : Executed
        What the job executes, by `interior_point_counts`.
    n, q : int
        Rows, and columns with that of ones.
    """
    memory = ASSUMED.memory_share * H100.memory
    products = max(
        done.products * product_operations(n, q) / (ASSUMED.product_share * H100.fp64_tensor),
        done.products * product_bytes(n, q) / memory,
    )
    passes = done.kernels * kernel_bytes(n, q) / memory
    factors = _factors(done.kernels, q)
    # Before a graph is replayed, one step is run and one is captured.
    replays = max(0, done.steps - 2 * done.captures) if done.captures else 0
    gaps = replays * STEP_LAUNCHES * ASSUMED.node
    on_device = products + passes + factors + gaps
    launched = done.launches * ASSUMED.launch
    causes = {
        "matrix products": products,
        "passes over rows": passes,
        "Cholesky factors": factors,
        "between kernels of a graph": gaps,
        "launches beyond that": max(0.0, launched - on_device),
        "captures": done.captures * ASSUMED.capture,
        "waits of the device for the host": done.waits * ASSUMED.wait,
    }
    return {"seconds": sum(causes.values()), "causes": causes}


def _factors(factored: int, q: int) -> float:
    """Seconds of all Cholesky factors: column by column, as many at once as registers allow."""
    width = 1 << (q - 1).bit_length()
    at_once = _FACTORS_AT_ONCE[max(16, width)]
    fma = H100.fp64 / 2 / H100.multiprocessors
    column = ASSUMED.column + at_once * width**2 / fma
    return factored / (at_once * H100.multiprocessors) * q * column
