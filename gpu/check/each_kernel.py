"""Each Triton kernel launched, and its twin beside it on copies of the same tensors.

python -m gpu.check.each_kernel DEVICE     launches alone, for a tool that watches them
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields, is_dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from bootprob_gpu import Certificate, Problem, fit, votes
from bootprob_gpu.hardware.triton_choice import triton_kernels, witnessed
from bootprob_gpu.interior_point.state import State
from bootprob_gpu.smo import triton_paths as triton_smo
from gpu.check.record import PartIncompleteError, Record

__all__ = ["launch_all", "run"]

_ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4}  # of the largest number of a tensor
_FLIPPED = 1e-3  # votes near 0, per row and model
_WORK_SPACE = ("left", "scores", "spare")  # of `State`: kernels leave in it what they like
_TOL = 1e-6

Call = Callable[..., Any]


def run(record: Record) -> None:
    """Compare the first launch of each kernel for each kind of job with its twin."""
    seen: set[tuple[str, str]] = set()
    job = ""

    def witness(name: str, launch: Call, twin: Call, args: tuple, kwargs: dict) -> Any:
        if (name, job) in seen:
            return launch(*args, **kwargs)
        seen.add((name, job))
        # Clones share no memory with what the launch changes.
        others, options = copy.deepcopy((args, kwargs))
        expected = twin(*others, **options)
        found = launch(*args, **kwargs)
        worst = _worst((expected, others), (found, args))
        record.measured(f"{name}; {job}", {"largest difference": worst, "allowed": 1.0})
        record.promise(f"{name}; {job}: as its twin", worst <= 1.0, found=worst)
        return found

    with witnessed(witness) as names:
        for title, work in _jobs(record.device, record.tiny):
            if record.seconds_left() < 5:
                raise PartIncompleteError(f"no time for {title} and what follows")
            job = title
            work()
    launched = {name for name, _ in seen}
    left_out = sorted(names - launched)
    record.promise("every kernel was launched", not left_out, **{"not launched": left_out})


def launch_all(device: torch.device) -> None:
    """Launch every kernel on small tensors, and wait for it."""
    for _, work in _jobs(device, tiny=device.type != "cuda"):
        work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _jobs(device: torch.device, tiny: bool) -> Iterator[tuple[str, Callable[[], object]]]:
    """Small problems that take every kernel in every form, with what they are called."""
    with _kernels(device):
        columns = (3,) if tiny else (3, 20, 61, 100)  # which the Cholesky factors depend on
        for p in columns:
            problem = _problem(24 if tiny else 300, p, "linear")
            title = f"linear, {len(problem.X)} × {p}"
            fitted = []

            def train(problem=problem, fitted=fitted) -> None:
                limits: Any = {"solver": "interior-point", "max_iter": 3 if tiny else None}
                fitted.append(fit(problem, device=device, **limits))

            yield title, train
            for dtype in (torch.float64, torch.float32):

                def vote(fitted=fitted, dtype=dtype, p=p) -> None:
                    draws = torch.Generator().manual_seed(0)
                    rows = torch.randn(20 if tiny else 1000, p, generator=draws)
                    votes(replace(fitted[0], dtype=dtype), rows.to(device, dtype))

                yield f"{title}, {str(dtype)[6:]}", vote
        # Paths in registers, and in tiles of memory as they are of more rows.
        for n, tile in ((12, None), (18, 16)) if tiny else ((200, None), (569, None), (600, 256)):
            problem = _problem(n, 3, "rbf")
            for dtype in (torch.float64, torch.float32):

                def train_dual(problem=problem, dtype=dtype, tile=tile) -> None:
                    limits: Any = {"solver": "smo-fused", "tol": _TOL}
                    tiles = patch.multiple(triton_smo, IN_REGISTERS=0, TILE=tile)
                    with tiles if tile else nullcontext():
                        fit(problem, device=device, dtype=dtype, **limits)

                where = "tiles" if tile else "registers"
                yield f"RBF, {n} rows in {where}, {str(dtype)[6:]}", train_dual


@contextmanager
def _kernels(device: torch.device) -> Iterator[None]:
    """Kernels and no twins, on a CPU by Triton's interpreter."""
    with triton_kernels("always"):
        if device.type == "cuda":
            yield
            return
        from bootprob_gpu.hardware.triton_interpreted import loop_bounds

        with loop_bounds():
            yield


def _problem(n: int, p: int, kernel: Any) -> Problem:
    """Two replicates with two values of C, noisy enough to take some iterations."""
    rng = np.random.default_rng([n, p])
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    counts = rng.multinomial(n - 2, np.full(n, 1 / n), size=2)
    counts[:, :2] += 1
    gamma = [0.3] if kernel == "rbf" else None
    return Problem(X, y, counts, [0.1, 1.0], kernel=kernel, gamma=gamma)


def _worst(expected: Any, found: Any) -> float:
    """Largest difference of two structures of tensors, where 1 is what is allowed."""
    if isinstance(expected, Certificate):
        return _apart_by_duality(expected, found)
    if isinstance(expected, torch.Tensor):
        return _apart(expected, found)
    if isinstance(expected, State):
        names = [each.name for each in fields(expected) if each.name not in _WORK_SPACE]
        return max(_worst(getattr(expected, name), getattr(found, name)) for name in names)
    if isinstance(expected, (tuple, list)):
        # Models come with a certificate, which is what two ways to an optimum have in common.
        certified = [k for k, each in enumerate(expected) if isinstance(each, Certificate)]
        if certified:
            return _worst(expected[certified[0]], found[certified[0]])
        pairs = zip(expected, found, strict=True)
        return max((_worst(one, other) for one, other in pairs), default=0.0)
    assert not is_dataclass(expected), type(expected)
    return 0.0


def _apart(expected: torch.Tensor, found: torch.Tensor) -> float:
    if expected.numel() == 0:
        return 0.0
    if not expected.is_floating_point():
        difference = (expected.double() - found.double()).abs()
        return difference.mean().item() / _FLIPPED
    same = (expected == found) | (expected.isnan() & found.isnan())
    difference = torch.where(same, 0.0, (expected - found).abs())
    scale = expected[expected.isfinite()].abs().max().item() if expected.isfinite().any() else 1.0
    worst = difference.max().item() / (_ROUNDING[expected.dtype] * max(scale, 1e-300))
    return worst if np.isfinite(worst) else float("inf")


def _apart_by_duality(one: Certificate, other: Certificate) -> float:
    """Each dual objective must be below the other's primal one, and both are solved or neither."""
    if not torch.equal(one.status, other.status):
        return float("inf")
    slack = 1e-5 * torch.maximum(one.primal.abs(), other.primal.abs())
    above = torch.maximum(one.dual - other.primal, other.dual - one.primal)
    return (above / slack).max().item()


if __name__ == "__main__":
    if sys.argv[1] == "cpu":
        os.environ.setdefault("TRITON_INTERPRET", "1")
    launch_all(torch.device(sys.argv[1]))
