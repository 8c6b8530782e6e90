"""What the device does at best, measured: copies, and matrix products in both precisions."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gpu.check.record import Record
from gpu.check.timing import timed

__all__ = ["COPY", "HOST_TO_DEVICE", "gemm", "run"]

COPY = "copy on the device, bytes/s"
HOST_TO_DEVICE = "copy from pinned host memory, bytes/s"


def gemm(dtype: torch.dtype) -> str:
    """Key of the rate of matrix products."""
    return f"GEMM {str(dtype).removeprefix('torch.')}, FLOP/s"


def run(record: Record) -> None:
    """Best of several runs each, on random numbers."""
    # TF32 would be another precision.
    torch.set_float32_matmul_precision("highest")
    _copies(record)
    for dtype in (torch.float64, torch.float32):
        _products(record, dtype)


def _copies(record: Record) -> None:
    size = record.size(2**31, 2**20)
    half = size // 2
    source = torch.randint(0, 127, (size,), dtype=torch.int8, device=record.device)
    target = torch.empty_like(source)
    what = f"{size} bytes, each read and written"
    _rate(record, COPY, 2.0 * size, lambda: target.copy_(source), what)
    host = torch.empty(half, dtype=torch.int8, pin_memory=record.device.type == "cuda")
    host.copy_(source[:half])
    into = target[:half]

    def send() -> None:
        into.copy_(host, non_blocking=True)

    _rate(record, HOST_TO_DEVICE, float(half), send, f"{half} bytes")


def _products(record: Record, dtype: torch.dtype) -> None:
    n = record.size(8192, 128)
    A, B = (torch.randn(n, n, dtype=dtype, device=record.device) for _ in range(2))
    C = torch.empty_like(A)

    def multiply() -> None:
        torch.matmul(A, B, out=C)

    _rate(record, gemm(dtype), 2.0 * n**3, multiply, f"{n} × {n} × {n}, no TF32")


def _rate(record: Record, name: str, amount: float, work: Callable[[], object], what: str) -> None:
    times = timed(record.device, work, seconds=record.size(1.5, 0.05), most=50)
    record.measured(name, {"rate": 1e3 * amount / times["least, ms"], "what": what, **times})
