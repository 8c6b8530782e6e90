"""What the hardware allows, and what is assumed of it: every constant that predictions rest on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import torch

from gpu.check.ceilings import COPY, HOST_TO_DEVICE, gemm

__all__ = ["ASSUMED", "H100", "UNCERTAINTY", "Assumptions", "Hardware", "ceilings", "stated"]

UNCERTAINTY = 0.4
"""Share by which a prediction may be off: what is assumed below was measured nowhere."""


@dataclass(frozen=True)
class Hardware:
    """A data sheet.

    Attributes
    ----------
    name : str
    fp64_tensor, fp64, fp32 : float
        FLOP/s: of matrix products in float64 on tensor cores, and of other arithmetic.
    memory : float
        Bytes/s.
    host_to_device : float
        Bytes/s of pinned memory.
    multiprocessors : int
    """

    name: str
    fp64_tensor: float
    fp64: float
    fp32: float
    memory: float
    host_to_device: float
    multiprocessors: int


# NVIDIA's data sheet of the H100 SXM5; PCIe 5.0 × 16 as 55 of its 64 GB/s.
H100 = Hardware("NVIDIA H100 SXM", 67e12, 33.5e12, 67e12, 3.35e12, 55e9, 132)


@dataclass(frozen=True)
class Assumptions:
    """Shares of the data sheet that are reached, and times that no data sheet has.

    Attributes
    ----------
    product_share : float
        Of the rate of matrix products, by small batched ones.
    memory_share : float
        Of the rate of memory.
    votes_share : float
        Of the float32 rate, by a kernel that feeds its FFMAs from shared memory.
    launch : float
        Seconds for which a launch occupies the host.
    node : float
        Seconds between two kernels of a replayed graph.
    capture : float
        Seconds for which a capture occupies the host.
    wait : float
        Seconds from a count's copy to the host until the next launch reaches the device.
    column : float
        Seconds that a column of a Cholesky factor takes however small it is: a square root, a
        division, two barriers and an exchange.
    row : float
        Seconds until a row of a Gram matrix has come from memory.
    reduction : float
        Seconds of a reduction over a block of threads.
    smo_operations : float
        Float64 instructions that an iteration of SMO spends on a row.
    """

    product_share: float = 0.6
    memory_share: float = 0.75
    votes_share: float = 0.55
    launch: float = 5e-6
    node: float = 1.3e-6
    capture: float = 1e-3
    wait: float = 2e-5
    column: float = 4e-7
    row: float = 4e-7
    reduction: float = 1e-7
    smo_operations: float = 12.0


ASSUMED = Assumptions()


def ceilings(hardware: Hardware) -> dict[str, Any]:
    """A data sheet in the form in which `gpu/check` keeps what it measured.

    Parameters
    ----------
    hardware : Hardware
    """
    rates = {
        COPY: hardware.memory,
        HOST_TO_DEVICE: hardware.host_to_device,
        gemm(torch.float64): hardware.fp64_tensor,
        gemm(torch.float32): hardware.fp32,
    }
    return {name: {"rate": rate} for name, rate in rates.items()}


def stated() -> dict[str, Any]:
    """Data sheet and assumptions for the file."""
    return {
        "data sheet": {each.name: getattr(H100, each.name) for each in fields(H100)},
        "assumed": asdict(ASSUMED),
        "uncertain by": UNCERTAINTY,
    }
