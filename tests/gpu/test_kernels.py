"""What a kernel is asked: by definition, and one that is no more than a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from problems import bootstrap_counts, overlapping
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel
from torch import Tensor

from bootprob_gpu import Problem, Status, fit, model_scores
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.laplacian import Laplacian
from bootprob_gpu.kernels.linear import Linear
from bootprob_gpu.kernels.polynomial import Polynomial
from bootprob_gpu.kernels.precomputed import Precomputed
from bootprob_gpu.kernels.rbf import Rbf

GAMMAS = torch.tensor([0.1, 0.7], dtype=torch.float64)
SOLVERS = ["smo-compiled", "smo-batched"]


@dataclass(frozen=True, eq=False)
class RationalQuadratic(KernelFunction):
    """``1 / (1 + γ ‖x − z‖²)``: all that a kernel has to say."""

    name: ClassVar[str] = "rational quadratic"
    ignores_offset: ClassVar[bool] = True
    has_unit_diagonal: ClassVar[bool] = True

    def of_products(self, products: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        squares = rows.square().sum(-1)[..., :, None] + others.square().sum(-1)[..., None, :]
        distances = (squares - 2 * products).clamp_min(0).unsqueeze(-3)
        return 1 / (1 + self.gamma.to(distances)[:, None, None] * distances)


@pytest.mark.parametrize("n_values", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "by_definition"),
    [
        (Linear(), lambda A, B, gamma: linear_kernel(A, B)),
        (Rbf(GAMMAS), lambda A, B, gamma: rbf_kernel(A, B, gamma=gamma)),
        (Laplacian(GAMMAS), lambda A, B, gamma: laplacian_kernel(A, B, gamma=gamma)),
        (
            Polynomial(GAMMAS, 4, 0.3),
            lambda A, B, gamma: polynomial_kernel(A, B, degree=4, gamma=gamma, coef0=0.3),
        ),
    ],
    ids=["linear", "rbf", "laplacian", "poly"],
)
def test_values_are_those_of_scikit_learn(rng, kernel, by_definition, n_values):
    kernel = kernel.take(slice(0, n_values))
    A, B = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 7, 3))
    found = kernel.gram(torch.from_numpy(A), torch.from_numpy(B))
    gammas = [None] if kernel.gamma is None else kernel.gamma.tolist()
    assert found.shape == (2, kernel.n_values, 5, 7)
    for k, g in np.ndindex(2, len(gammas)):
        np.testing.assert_allclose(found[k, g], by_definition(A[k], B[k], gammas[g]), rtol=1e-12)
        alone = kernel.take(slice(g, g + 1)).matrix(A[k], B[k])
        np.testing.assert_allclose(alone, found[k, g], rtol=1e-12)
    if not kernel.has_terms:
        return
    scale = rng.uniform(0.5, 2.0, size=3)  # by terms, one row at a time
    unit = torch.from_numpy(rng.uniform(0.5, 2.0, size=3))
    terms = kernel.terms(*(torch.from_numpy(each) for each in (B[0], A[0, 0])), unit, unit.dtype)
    sums = terms @ (unit / torch.from_numpy(scale)) ** kernel.term_degree
    for gamma in gammas:
        expected = by_definition(A[0, :1] / scale, B[0] / scale, gamma)[0]
        np.testing.assert_allclose(kernel.of_sums(sums, gamma), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [Rbf(GAMMAS), Laplacian(GAMMAS), Polynomial(GAMMAS, 3, 0.5)],
    ids=["rbf", "laplacian", "poly"],
)
def test_slope_is_the_difference_quotient(rng, kernel):
    rows = torch.from_numpy(rng.normal(size=(6, 3)))
    gram = kernel.gram(rows, rows)
    slope = kernel.slope(gram, GAMMAS[:, None, None], (rows @ rows.T).expand_as(gram))
    above, below = (kernel.with_gamma(GAMMAS + step).gram(rows, rows) for step in (1e-6, -1e-6))
    torch.testing.assert_close(slope, (above - below) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [RationalQuadratic(GAMMAS), Laplacian(GAMMAS)],
    ids=["rational quadratic", "laplacian"],
)
@pytest.mark.parametrize("own_scale", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_new_kernel_is_one_class(rng, kernel, solver, own_scale, dtype):
    """Trained, certified and scored like its values, precomputed for each replicate."""
    X, y = overlapping(rng, n=30, p=3)
    counts, new = bootstrap_counts(rng, 3, y), rng.normal(size=(4, 3))
    scale = rng.uniform(0.5, 2.0, size=(3, 3) if own_scale else 3)
    options = {"solver": solver, "dtype": dtype}
    problem = Problem(X, y, counts, [0.1, 2.0], kernel=kernel, scale=scale)
    fitted = fit(problem, **options)
    assert (fitted.status == Status.CONVERGED).all()
    scores = torch.cat([each for _, each in model_scores(fitted, torch.from_numpy(new))])
    tolerance = 1e-6 if dtype == torch.float64 else 1e-4
    for b, g in np.ndindex(3, 2):
        seen, known = (
            torch.from_numpy(each / problem.scale_of(slice(b, b + 1))) for each in (new, X)
        )
        values = kernel.gram(known, known)[g].numpy()
        alone = Problem(values, y, counts[b : b + 1], [0.1, 2.0], kernel=Precomputed())
        expected = fit(alone, **options)
        part = slice(2 * g, 2 * g + 2)
        torch.testing.assert_close(
            fitted.primal[b, part], expected.primal[0], rtol=2 * tolerance, atol=0
        )
        ours = scores[b, part].double()
        coef = fitted.dual_coef[b, part]
        by_hand = coef @ kernel.gram(seen, known)[g].T + fitted.intercept[b, part, None]
        torch.testing.assert_close(ours, by_hand, rtol=0, atol=1e3 * torch.finfo(dtype).eps)
