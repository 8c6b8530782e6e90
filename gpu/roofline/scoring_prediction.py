"""Predicted time of counting the votes of rows on the device."""

from __future__ import annotations

from typing import Any

import torch

from gpu.check.floors import Work
from gpu.roofline.hardware import ASSUMED, H100

__all__ = ["predicted"]


def predicted(work: Work) -> dict[str, Any]:
    """Seconds by cause, and their sum.

    Parameters
    ----------
    work : Work
        As `floors.vote_shares` counts it. Float32 is not rounded to TF32, so no tensor cores.
    """
    if work.dtype == torch.float32:
        arithmetic = work.flops / (ASSUMED.votes_share * H100.fp32)
    else:
        arithmetic = work.flops / (ASSUMED.votes_share * H100.fp64_tensor)
    memory = work.moved / (ASSUMED.memory_share * H100.memory)
    causes = {"arithmetic": arithmetic, "memory, beyond that": max(0.0, memory - arithmetic)}
    return {"seconds": sum(causes.values()), "causes": causes}
