"""What is tuned, on which job, and what is tried; what matters most comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from gpu.tuning.jobs_to_tune import Job, linear, rbf, votes

__all__ = ["Finding", "findings"]

Candidate = dict[str, int] | int


@dataclass(frozen=True)
class Finding:
    """One entry of the table.

    Attributes
    ----------
    place : tuple of str
        Where it stands in a device's entry, from the outside in.
    candidates : tuple
        Besides what holds without a measurement.
    make_job : callable
        Takes the device.
    """

    place: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    make_job: Callable[[torch.device], Job]

    @property
    def name(self) -> str:
        """Of the entry."""
        return " ".join(self.place)


def findings(*, tiny: bool) -> Iterator[Finding]:
    """All of them; `tiny` jobs are for rehearsals.

    Jobs are those of the benchmark in kind and shape, with as many problems as fill a large GPU.
    """
    yield from _of_votes(tiny)
    yield from _of_smo(tiny)
    yield from _of_interior_point(tiny)


def _of_votes(tiny: bool) -> Iterator[Finding]:
    size = {"m": 40, "p": 5, "models": 2, "replicates": 9}
    if not tiny:
        size = {"m": 1_000_000, "p": 61, "models": 11, "replicates": 500}
    for dtype, precision, tried in (
        (torch.float32, "ieee", _TILES),
        (torch.float64, "ieee", _TILES_FP64),
        (torch.float32, "tf32x3", _TILES_TF32),
    ):
        name = f"{str(dtype).removeprefix('torch.')} {precision}"
        job = partial(votes, dtype=dtype, precision=precision, **size)
        yield Finding(("votes", name), _some(tried, tiny), job)


def _of_smo(tiny: bool) -> Iterator[Finding]:
    def job(n: int, replicates: int) -> Callable[[torch.device], Job]:
        return partial(rbf, n=n, **(_TINY if tiny else {"replicates": replicates}))

    for block, n in _TINY_BLOCKS if tiny else _BLOCKS:
        tried = (
            {"ROWS": 2}, {"ROWS": 4}, {"ROWS": 8}, {"maxnreg": 168},
            *({"num_warps": _warps(block, rows)} for rows in (64, 128, 512)),
        )  # fmt: skip
        yield Finding(("smo", str(block)), _some(tried, tiny), job(n, 200))
    limit, tile, below, beyond = (8, 16, 12, 20) if tiny else (1024, 512, 1800, 3000)
    yield Finding(("smo_in_registers",), (limit,), job(below, 200))
    yield Finding(("smo_tile",), (tile,) if tiny else (tile, 2048), job(beyond, 100))


def _of_interior_point(tiny: bool) -> Iterator[Finding]:
    def job(n: int, p: int, replicates: int, **more: Any) -> Callable[[torch.device], Job]:
        size = {"n": n, "p": p, "replicates": replicates}
        return partial(linear, **{**size, **({"n": 8, "p": 2} | _TINY if tiny else {})}, **more)

    for columns, p in ((64, 61), (128, 100), (32, 30)):
        tried = tuple({"num_warps": warps} for warps in (1, 2, 4, 8, 16, 32))
        place = ("factor", "16" if tiny else str(columns))
        yield Finding(place, _some(tried, tiny), job(300, p, 900))
        if tiny:
            break
    blocks = tuple(
        {"BLOCK": rows, "num_warps": warps}
        for rows, warps in ((128, 4), (128, 2), (256, 2), (256, 8), (512, 4), (512, 8), (1024, 4))
    )
    yield Finding(("rows", "few"), _some(blocks, tiny), job(900, 61, 900))
    yield Finding(
        ("rows", "many"),
        _some((*blocks, {"BLOCK": 2048, "num_warps": 8}, {"BLOCK": 2048, "num_warps": 16}), tiny),
        job(29_000, 100, 50),
    )
    yield Finding(("many_rows",), (2048,), job(3000, 61, 200))
    yield Finding(("many_rows",), (8192,), job(6000, 61, 200))
    # Problems × rows: 5 million, then 10 and 20.
    for replicates, cells in ((900, 2**23), (1800, 2**24), (3600, 2**25)):
        yield Finding(("replayed_cells",), (cells,), job(900, 61, replicates))
    yield Finding(("twin_cells",), (2**20, 2**24, 2**26), job(900, 61, 200, kernels="never"))


def _tile(rows: int, replicates: int, columns: int, warps: int, stages: int) -> dict[str, int]:
    return {
        "BLOCK_M": rows, "BLOCK_B": replicates, "BLOCK_K": columns, "num_warps": warps,
        "num_stages": stages,
    }  # fmt: skip


_TINY = {"replicates": 1, "n_C": 2}
# Blocks, and rows that need them.
_BLOCKS = ((1024, 900), (512, 400), (2048, 1800), (256, 200), (128, 100))
_TINY_BLOCKS = ((16, 12), (32, 20))
_TILES = tuple(
    _tile(*tile)
    for tile in (
        (128, 64, 16, 4, 3), (128, 128, 16, 8, 3), (64, 128, 16, 4, 2), (64, 128, 16, 4, 4),
        (64, 128, 32, 4, 3), (64, 64, 16, 4, 3), (128, 128, 16, 4, 3), (64, 256, 16, 8, 3),
    )
)  # fmt: skip
_TILES_FP64 = tuple(
    _tile(*tile)
    for tile in (
        (64, 64, 16, 4, 2), (64, 64, 16, 4, 4), (64, 64, 32, 4, 3), (128, 64, 16, 4, 3),
        (64, 128, 16, 4, 3), (128, 64, 16, 8, 3), (64, 128, 16, 8, 3), (32, 64, 16, 4, 3),
    )
)  # fmt: skip
_TILES_TF32 = tuple(
    _tile(*tile)
    for tile in (
        (128, 128, 32, 8, 2), (128, 128, 16, 8, 3), (64, 128, 32, 4, 3), (128, 64, 32, 4, 3),
        (128, 256, 32, 8, 3), (128, 128, 32, 4, 3),
    )
)  # fmt: skip


def _warps(block: int, rows_of_a_warp: int) -> int:
    return max(1, min(16, block // rows_of_a_warp))


def _some(candidates: tuple[Any, ...], tiny: bool) -> tuple[Any, ...]:
    return candidates[:1] if tiny else candidates
