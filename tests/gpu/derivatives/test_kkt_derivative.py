"""Closed-form derivatives against finite differences of refits and against CVXPY's layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from problems import (
    KERNELS,
    REGULAR,
    UGLY,
    WITH_GAMMA,
    bootstrap_counts,
    duplicated_rows,
    overlapping,
)
from truth import weighted_laplacian

from bootprob_gpu import InputError, Problem, fit
from bootprob_gpu.derivatives.active_sets import SetStatus
from bootprob_gpu.derivatives.kkt import differentiable_scores, solve_exactly
from bootprob_gpu.kernels.polynomial import Polynomial
from bootprob_gpu.kernels.precomputed import Precomputed

STEP = 1e-6
TIGHT = {"eps": 1e-10, "max_iters": 100_000}  # its default is off by 5 % now and then


def tensor(values) -> torch.Tensor:
    return torch.tensor(np.asarray(values, dtype=np.float64))


def solved(case, kernel: str):
    problem = Problem(**case.arguments(kernel))
    upper = tensor(problem.upper_of(slice(0, problem.n_replicates)))
    fitted = fit(problem)
    return problem, fitted, solve_exactly(fitted, tensor(problem.X), tensor(problem.y), upper)


class Batch:
    """B replicates with scales of their own, and R models of two γ and two C."""

    def __init__(self, rng: np.random.Generator, kernel: str, *, shared: bool = False) -> None:
        X, y = overlapping(rng, n=40, p=3)
        self.X, self.y, self.B, self.R = tensor(X), tensor(y), 3, 4
        mass = bootstrap_counts(rng, 3, y)[:, None] * rng.uniform(0.5, 2, size=len(y))
        self.upper = tensor(np.array([0.1, 1.0, 0.1, 1.0])[:, None] * mass)
        self.gamma = tensor([0.1, 0.5]) if kernel in WITH_GAMMA else None
        self.scale = tensor(rng.uniform(0.5, 2, size=3 if shared else (3, 3)))
        self.new = tensor(rng.normal(size=(4, 3)))
        self.direction = tensor(rng.normal(size=self.upper.shape)) * self.upper
        self.loss = tensor(rng.normal(size=(3, 4, 4)))
        self.kernel = None
        if kernel == "poly":
            self.kernel = Polynomial(self.gamma, 3, 0.5)
        if kernel == "precomputed":
            self.kernel, self.scale = Precomputed(), None
            rows = self.new.numpy(), X
            self.new, self.X = (tensor(weighted_laplacian(each, X)) for each in rows)

    def scores(self, upper: torch.Tensor, gamma: torch.Tensor | None):
        return differentiable_scores(
            self.X, self.y, upper, self.new, kernel=self.kernel, gamma=gamma, scale=self.scale
        )

    def along(self, step: float, d_gamma: float = 0.0):
        gamma = None if self.gamma is None else self.gamma * (1 + d_gamma)
        return self.scores(self.upper + step * self.direction, gamma)

    def usable(self, *moved) -> torch.Tensor:
        """Models whose sets are the same on both sides, and have a free row: (B, R)."""
        first, second = (models for _, models in moved)
        same = (first.free == second.free) & (first.at_bound == second.at_bound)
        return same.all(-1) & (first.status == SetStatus.REGULAR)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shared", [False, True], ids=["own scale", "one scale"])
def test_box_bounds_against_refits(rng, kernel, shared):
    batch = Batch(rng, kernel, shared=shared)
    upper = batch.upper.clone().requires_grad_(True)
    scores, models = batch.scores(upper, batch.gamma)
    above, below = batch.along(STEP), batch.along(-STEP)
    usable = batch.usable(above, below)
    assert usable.float().mean() > 0.5
    change = (above[0] - below[0]) / (2 * STEP)
    forward = models.pushforward(batch.new, batch.direction)
    size = change[usable].abs().max()
    torch.testing.assert_close(forward[usable], change[usable], rtol=1e-5, atol=1e-5 * size)
    (scores * batch.loss * usable[..., None]).sum().backward()
    assert upper.grad is not None
    expected = (forward * batch.loss * usable[..., None]).sum()
    torch.testing.assert_close((upper.grad * batch.direction).sum(), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shared", [False, True], ids=["own scale", "one scale"])
@pytest.mark.parametrize("kernel", WITH_GAMMA)
def test_gamma_against_refits(rng, kernel, shared):
    batch = Batch(rng, kernel, shared=shared)
    gamma = batch.gamma.clone().requires_grad_(True)
    scores, models = batch.scores(batch.upper, gamma)
    above, below = batch.along(0, STEP), batch.along(0, -STEP)
    usable = batch.usable(above, below)
    change = (above[0] - below[0]) / (2 * STEP)
    rate = batch.gamma.repeat_interleave(2).expand(batch.B, -1)
    forward = models.pushforward(batch.new, torch.zeros_like(batch.upper), rate)
    size = change[usable].abs().max()
    torch.testing.assert_close(forward[usable], change[usable], rtol=1e-5, atol=1e-5 * size)
    (scores * batch.loss).sum().backward()
    expected = (forward * batch.loss).sum((0, 2)).view(2, 2).sum(1) / batch.gamma
    torch.testing.assert_close(gamma.grad, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_score_and_their_sum_agree(rng, kernel):
    batch = Batch(rng, kernel)
    _, models = batch.scores(batch.upper, batch.gamma)
    each, of_gamma = models.derivatives(batch.new)
    total, total_gamma = models.pullback(batch.new, batch.loss)
    torch.testing.assert_close((each * batch.loss[..., None]).sum(2), total)
    if kernel in WITH_GAMMA:
        torch.testing.assert_close((of_gamma * batch.loss).sum(2), total_gamma)
    else:
        assert of_gamma is None
        assert total_gamma is None


@pytest.mark.filterwarnings("ignore:.*copy keyword:DeprecationWarning")
def test_against_cvxpylayers(rng):
    """The same gradient by differentiating the optimality conditions of a cone program."""
    cp = pytest.importorskip("cvxpy")
    layers = pytest.importorskip("cvxpylayers.torch")
    X, y = overlapping(rng, n=16, p=3)
    new, loss = tensor(rng.normal(size=(5, 3))), tensor(rng.normal(size=5))
    cost = tensor(rng.uniform(0.1, 1.0, size=16)).requires_grad_(True)
    w, b, slack = cp.Variable(3), cp.Variable(), cp.Variable(16, nonneg=True)
    c = cp.Parameter(16, nonneg=True)
    problem = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(w) + c @ slack),
        [cp.multiply(y, X @ w + b) >= 1 - slack],
    )
    layer = layers.CvxpyLayer(problem, parameters=[c], variables=[w, b])
    coef, intercept = layer(cost, solver_args=TIGHT)
    ((new @ coef + intercept) @ loss).backward()
    theirs, cost.grad = cost.grad, None
    scores, models = differentiable_scores(tensor(X), tensor(y), cost[None, None], new)
    (scores[0, 0] @ loss).backward()
    if models.status[0, 0] != SetStatus.REGULAR:
        pytest.skip("degenerate draw")
    torch.testing.assert_close(scores[0, 0], new @ coef + intercept, rtol=1e-6, atol=1e-6)
    size = max(1.0, float(cost.grad.abs().max()))
    torch.testing.assert_close(theirs, cost.grad, rtol=0, atol=1e-4 * size)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("make", REGULAR.values(), ids=REGULAR)
def test_exact_solutions_are_what_was_trained(rng, make, kernel):
    """KKT conditions hold to rounding, so the objective is at most what the solver reached."""
    case = make(rng)
    problem, fitted, models = solved(case, kernel)
    assert (models.status != SetStatus.UNCONFIRMED).all()
    assert models.violation.max() <= 1e-6
    for b in range(problem.n_replicates):
        for r in range(problem.n_models):
            machine = case.machine(kernel, b, r)
            y = case.labels_of(b)
            a = y * models.dual_coef[b, r].numpy()
            assert (a >= -1e-8 * machine.upper).all()
            assert (a <= machine.upper * (1 + 1e-8)).all()
            assert abs((y * a).sum()) <= 1e-9 * a.sum()
            dual, gap = machine.dual(a), float(fitted.gap[b, r] * fitted.primal[b, r])
            assert dual >= float(fitted.dual[b, r]) - 1e-9 * abs(dual)
            assert dual <= float(fitted.dual[b, r]) + gap + 1e-9 * abs(dual)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", sorted(set(UGLY) - {"unequal_scales"}))
def test_ugly_problems_have_finite_derivatives(rng, name, kernel):
    _, _, models = solved(UGLY[name](rng), kernel)
    each, of_gamma = models.derivatives(models._rows[:2] + models._center)
    assert torch.isfinite(each).all()
    assert of_gamma is None or torch.isfinite(of_gamma).all()
    assert (each[~models.at_bound[:, :, None].expand_as(each)] == 0).all()
    right = models.status != SetStatus.UNCONFIRMED
    assert (models.violation[right] <= 1e-6).all()


def test_hopeless_problems_say_so(rng):
    """Columns from 1e-6 to 1e6: a condition number of 1e24 leaves no digit."""
    _, _, models = solved(UGLY["unequal_scales"](rng), "linear")
    assert (models.status == SetStatus.UNCONFIRMED).any()
    assert torch.isfinite(
        models.pullback(models._rows, torch.ones_like(models.free) * 1.0)[0]
    ).all()


def test_weight_of_duplicates_is_what_counts(rng):
    """A row given three times and one of threefold weight are one machine."""
    case = duplicated_rows(rng)
    one = torch.arange(0, 36, 3)
    X, y = tensor(case.X), tensor(case.y)
    gamma, new = tensor(0.3), tensor(rng.normal(size=(3, 3)))
    mass = tensor(rng.uniform(0.2, 2.0, size=12)).requires_grad_(True)
    split = (mass / 3).repeat_interleave(3)
    thrice, models = differentiable_scores(X, y, split[None, None], new, gamma=gamma)
    thrice.sum().backward()
    several, mass.grad = mass.grad, None
    once, _ = differentiable_scores(X[one], y[one], mass[None, None], new, gamma=gamma)
    once.sum().backward()
    if models.free.any():
        assert models.status[0, 0] in (SetStatus.SINGULAR, SetStatus.REGULAR)
    torch.testing.assert_close(thrice, once, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(several, mass.grad, rtol=1e-5, atol=1e-7)


def test_without_free_rows_the_middle_of_the_interval_is_differentiated():
    """Two rows a distance d apart and a small C: a = C, w = C d, and the intercept is free."""
    X, y = tensor([[-1.0], [1.0]]), tensor([-1.0, 1.0])
    C = tensor(0.1).requires_grad_(True)
    scores, models = differentiable_scores(X, y, C * torch.ones(1, 1, 2).double(), tensor([[3.0]]))
    assert models.status[0, 0] == SetStatus.NO_FREE
    scores.sum().backward()
    assert scores.item() == pytest.approx(0.1 * 2 * 3)
    assert C.grad.item() == pytest.approx(2 * 3)


def test_single_class_has_derivative_zero(rng):
    X, y = overlapping(rng, n=10, p=2)
    upper = tensor(np.where(y > 0, 1.0, 0.0))[None, None].requires_grad_(True)
    scores, models = differentiable_scores(tensor(X), tensor(y), upper, tensor(X[:2]))
    scores.sum().backward()
    assert models.status[0, 0] == SetStatus.SINGLE_CLASS
    assert (scores == 1).all()
    assert (upper.grad == 0).all()


def test_what_does_not_fit_is_refused(rng):
    batch = Batch(rng, "linear")
    _, models = batch.scores(batch.upper, None)
    with pytest.raises(InputError, match=r"Rows to score .*3 columns"):
        models.scores(batch.new[:, :2])
    for kernel in ("linear", "precomputed"):
        other = Batch(rng, kernel)
        _, models = other.scores(other.upper, None)
        with pytest.raises(InputError, match=f"{kernel} kernel has no gamma"):
            models.pushforward(other.new, other.upper, torch.ones(3, 4))
    fitted = fit(Problem(batch.X.numpy(), batch.y.numpy(), np.ones((1, 40), int), [1.0]))
    with pytest.raises(InputError, match="upper has shape"):
        solve_exactly(fitted, batch.X, batch.y, batch.upper)


def test_every_status_has_advice():
    assert all(each.advice.endswith(".") for each in SetStatus)
