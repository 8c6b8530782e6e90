"""What tests take out of Triton's interpreter changes no bit of what kernels compute."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bootprob_gpu.hardware.triton_choice import triton_kernels
from bootprob_gpu.interior_point.normal_matrices import solved
from bootprob_gpu.scoring.triton_votes import count_votes
from bootprob_gpu.smo.triton_paths import launch

pytest.importorskip("triton")
if torch.cuda.is_available():
    pytest.skip("kernels are not interpreted here", allow_module_level=True)

from quick_interpreter import as_it_comes

from bootprob_gpu.hardware.triton_interpreted import loop_bounds


def test_bits_are_those_of_the_interpreter_as_it_comes(rng):
    X = rng.normal(size=(6, 2))
    K = torch.from_numpy(np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))).float()[None]
    y = torch.tensor([1.0, -1.0] * 3).double()
    upper = torch.from_numpy(rng.uniform(0.5, 5.0, size=(2, 1, 6)))
    half = rng.normal(size=(2, 5, 5))
    matrices = torch.from_numpy(half @ half.transpose(0, 2, 1) + np.eye(5))
    rows, coef, intercept = (
        torch.from_numpy(rng.normal(size=shape)) for shape in ((7, 3), (2, 3, 4), (2, 4))
    )

    def found() -> list[torch.Tensor]:
        paths = [launch(K, y, upper, tol=1e-3, max_iter=4, block=block) for block in (None, 4)]
        with triton_kernels("always"), loop_bounds():
            working = torch.ones(2, dtype=torch.int64)
            step = solved(matrices[:, 0], matrices, matrices[:, 1], matrices[:, 2], working)
            votes = count_votes(rows, coef, intercept, precision="ieee")
        return [*paths[0][:2], *paths[1][:2], paths[0][2].gap, paths[1][2].n_iter, step, votes]

    quick = found()
    with as_it_comes():
        slow = found()
    assert all(torch.equal(one, other) for one, other in zip(quick, slow, strict=True))
