"""How many programs of a kernel a multiprocessor works on at a time.

Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; units of
allocation: NVIDIA's occupancy calculator (CUDA toolkit, Nsight Compute).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LIMITS", "Limits", "programs"]

_REGISTERS = 65_536  # of a multiprocessor
_REGISTER_UNIT = 256  # registers of a warp are given in multiples of this
_WARP_UNIT = 4  # a multiprocessor has four parts, and a warp its registers in one of them
_SHARED_UNIT = 128  # bytes
_SHARED_OF_SYSTEM = 1024  # bytes of shared memory of each block that CUDA keeps


@dataclass(frozen=True)
class Limits:
    """Of a compute capability.

    Attributes
    ----------
    warps, blocks : int
        Resident on a multiprocessor.
    shared : int
        Bytes of shared memory of a multiprocessor.
    shared_of_block : int
        Bytes of it that one block may ask for.
    """

    warps: int
    blocks: int
    shared: int
    shared_of_block: int


LIMITS = {
    80: Limits(warps=64, blocks=32, shared=164 * 1024, shared_of_block=163 * 1024),
    90: Limits(warps=64, blocks=32, shared=228 * 1024, shared_of_block=227 * 1024),
    100: Limits(warps=64, blocks=32, shared=228 * 1024, shared_of_block=227 * 1024),
}


def programs(capability: int, *, registers: int, warps: int, shared: int) -> int:
    """Programs resident on a multiprocessor; 0 if not even one is possible.

    Parameters
    ----------
    capability : int
        A key of `LIMITS`.
    registers : int
        Of a thread.
    warps : int
        Of a program.
    shared : int
        Bytes of shared memory of a program.
    """
    limits = LIMITS[capability]
    if shared > limits.shared_of_block:
        return 0
    of_warp = _rounded_up(registers * 32, _REGISTER_UNIT)
    by_registers = _REGISTERS // of_warp // _WARP_UNIT * _WARP_UNIT // warps
    by_shared = limits.shared // _rounded_up(shared + _SHARED_OF_SYSTEM, _SHARED_UNIT)
    return min(limits.blocks, limits.warps // warps, by_registers, by_shared)


def _rounded_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
