"""Kernels compile for an H200, which the interpreter says nothing about; no GPU is needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

INTERIOR_POINT = """
import torch
from compile_for_h200 import SHARED_BYTES, compiled_kernels
from bootprob_gpu.interior_point import interior_point
from bootprob_gpu.normal_matrices import NormalMatrices
from bootprob_gpu.triton_choice import triton_kernels

with compiled_kernels() as compiled, triton_kernels("always"):
    for n, q in ((569, 31), (900, 62), (4800, 101)):
        X1 = torch.ones(n, q, dtype=torch.float64)
        y = torch.ones(n, dtype=torch.float64)
        y[::2] = -1
        upper = torch.ones(2, n, dtype=torch.float64)
        penalty = torch.ones(2, q - 1, dtype=torch.float64)
        matrices = NormalMatrices(X1, 10**9)
        interior_point(X1, y, upper.clone(), penalty, matrices, tol=1e-7, max_iter=1)
        if n == 569:
            interior_point(X1, y.repeat(2, 1), upper, penalty, matrices, tol=1e-7, max_iter=1)
names = {name for name, _ in compiled}
assert names == {"_losses", "_judge", "_weigh", "_correct", "_move", "_factor", "_factor_damped",
                 "_solve"}, names
for name, kernel in compiled:
    assert kernel.metadata.shared <= SHARED_BYTES, (name, kernel.metadata.shared)
    assert "cubin" in kernel.asm
"""


@pytest.mark.parametrize("script", [INTERIOR_POINT], ids=["interior point"])
def test_kernels_compile(tmp_path, script):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=Path(__file__).parent,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
