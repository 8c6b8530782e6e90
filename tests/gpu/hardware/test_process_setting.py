"""Scores are computed in float32 whatever precision the process allows, which it gets back."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bootprob_gpu import FittedBatch, Problem, fit, model_scores, replicate_scores
from bootprob_gpu.hardware import process_setting
from bootprob_gpu.hardware.process_setting import ieee_products
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.scoring import scorers, votes
from bootprob_gpu.scoring.scorers import ReplicateScores, Votes

MATMUL = torch.backends.cuda.matmul
ON_CPU = torch.backends.mkldnn.matmul if process_setting._SETTINGS else None
by_device = pytest.mark.skipif(ON_CPU is None, reason="torch has one setting for all devices")


def state() -> tuple:
    """Of all devices, and of each kind; the first cannot be read where the others were set."""
    try:
        together = torch.get_float32_matmul_precision()
    except RuntimeError:
        together = "mixed"
    if ON_CPU is None:
        return together, MATMUL.allow_tf32
    return together, torch.backends.fp32_precision, MATMUL.fp32_precision, ON_CPU.fp32_precision


def is_ieee() -> bool:
    if ON_CPU is None:
        return torch.get_float32_matmul_precision() == "highest"
    return {MATMUL.fp32_precision, ON_CPU.fp32_precision} <= {"none", "ieee"}


@pytest.fixture(autouse=True)
def _restored():
    yield
    torch.set_float32_matmul_precision("highest")
    if ON_CPU is not None:
        torch.backends.fp32_precision = MATMUL.fp32_precision = ON_CPU.fp32_precision = "none"
    assert is_ieee()


def allow_nothing():
    pass


def allow_high():
    torch.set_float32_matmul_precision("high")


def allow_medium():
    torch.set_float32_matmul_precision("medium")


def allow_tf32():
    MATMUL.allow_tf32 = True


def allow_on_cuda():
    MATMUL.fp32_precision = "tf32"


def allow_on_cpu():
    ON_CPU.fp32_precision = "bf16"


def allow_everywhere():
    torch.backends.fp32_precision = "tf32"


ALLOWED = pytest.mark.parametrize(
    "allow",
    [
        allow_nothing,
        allow_high,
        allow_medium,
        allow_tf32,
        pytest.param(allow_on_cuda, marks=by_device),
        pytest.param(allow_on_cpu, marks=by_device),
        pytest.param(allow_everywhere, marks=by_device),
    ],
)


@ALLOWED
def test_products_are_exact_inside_and_as_before_outside(allow):
    allow()
    before = state()
    assert is_ieee() == (allow is allow_nothing)
    with ieee_products:
        assert is_ieee()
        with ieee_products:
            assert is_ieee()
        assert is_ieee()
    assert state() == before


@ALLOWED
def test_an_error_restores_too(allow):
    allow()
    before = state()
    with pytest.raises(ValueError, match="on purpose"), ieee_products:
        raise ValueError("on purpose")
    assert state() == before


@by_device
def test_what_was_said_for_all_devices_can_be_said_again():
    allow_everywhere()
    with ieee_products:
        pass
    torch.backends.fp32_precision = "ieee"
    assert is_ieee()


@pytest.mark.parametrize("allow", [allow_high, allow_medium])
def test_the_one_setting_of_an_older_torch(monkeypatch, allow):
    monkeypatch.setattr(process_setting, "_SETTINGS", ())
    allow()
    before = torch.get_float32_matmul_precision()
    with ieee_products:
        assert torch.get_float32_matmul_precision() == "highest"
    assert torch.get_float32_matmul_precision() == before


def test_the_last_of_several_threads_restores():
    allow_high()
    before, found = state(), []
    entered, left = Barrier(2), Barrier(2)

    def first():
        with ieee_products:
            entered.wait(30)
        found.append(is_ieee())  # the second one is still inside
        left.wait(30)

    def second():
        with ieee_products:
            entered.wait(30)
            left.wait(30)
            found.append(is_ieee())

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result(60)
    assert found == [True, True]
    assert state() == before


# --- scoring -------------------------------------------------------------------------------------


@pytest.fixture(params=["linear", "linear dual", "rbf", "rbf, one scale"])
def models(request, rng):
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1, -1)
    counts = rng.multinomial(40, np.full(40, 1 / 40), size=5)
    is_rbf = request.param.startswith("rbf")
    problem = Problem(
        X,
        y,
        counts,
        [0.1, 1.0],
        kernel="rbf" if is_rbf else "linear",
        gamma=[0.1, 0.5] if is_rbf else None,
        scale=np.ones(3) if request.param == "rbf, one scale" else rng.uniform(0.5, 2, (5, 3)),
    )
    solver = "smo-compiled" if request.param == "linear dual" else "auto"
    return replace(fit(problem, solver=solver, tol=1e-2), dtype=torch.float32)


class Products(TorchDispatchMode):
    """Notes of every product of float32 matrices whether it was exact."""

    def __init__(self):
        super().__init__()
        self.exact = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        name = operation.__name__.split(".")[0]
        if name in ("mm", "addmm", "bmm", "addmm_") and result.dtype == torch.float32:
            self.exact.append(is_ieee())
        return result


@pytest.fixture
def in_torch(monkeypatch):
    """Votes are counted as on a GPU without Triton."""

    def vote_counter(coef, intercept):
        return lambda rows: votes._count_in_torch(rows, coef, intercept)

    monkeypatch.setattr(scorers, "vote_counter", vote_counter)


@pytest.mark.parametrize("allow", [allow_high, allow_medium])
@pytest.mark.parametrize("score", ["votes", "shares", "replicate scores", "scores"])
def test_scores_are_computed_in_float32(rng, models, in_torch, allow, score):
    X = torch.from_numpy(rng.normal(size=(30, 3)))
    weights = torch.full((models.intercept.shape[1],), 0.25, dtype=torch.float64)
    allow()
    before = state()
    with Products() as products:
        if score == "votes":
            Votes(models, weights).counts(X)
        elif score == "shares":
            Votes(models, weights).shares(X)
        elif score == "replicate scores":
            ReplicateScores(models, weights)(X)
        else:
            for _ in model_scores(models, X):
                assert state() == before  # a caller's own products are not touched
    assert products.exact
    assert all(products.exact)
    assert state() == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpus_scores_do_not_change_with_the_setting(rng, models):
    X = torch.from_numpy(rng.normal(size=(3000, 3)))
    on_gpu = FittedBatch(
        **{
            name: value.to("cuda") if isinstance(value, (torch.Tensor, KernelFunction)) else value
            for name, value in vars(models).items()
        }
    )
    weights = torch.ones(models.intercept.shape[1])
    expected = replicate_scores(on_gpu, X, weights)
    allow_high()
    assert torch.equal(replicate_scores(on_gpu, X, weights), expected)
