"""The engine and an estimator where nothing but torch, NumPy and scikit-learn is to be had."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from bootprob_gpu import InputError, Problem, choose_solver, fit, training
from bootprob_gpu.hardware import numba_choice
from bootprob_gpu.scoring.votes import vote_counter

ROOT = Path(__file__).parents[3]
BARE = Path(__file__).parents[1] / "bare"


def bare(script: str) -> subprocess.CompletedProcess:
    """Run a script with the tree on the path, on a machine that has few packages."""
    path = os.pathsep.join(str(each) for each in (BARE, ROOT, ROOT / "gpu"))
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=300,
        check=False,
    )


def test_an_estimator_is_fitted_where_it_is_not_installed():
    """Its kernels' solvers, votes, intervals and out-of-bag probabilities; with its version.

    Beside it is nothing that is not named.
    """
    done = bare("""
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
import pytest, torch
for package in ("numba", "llvmlite", "cvxpy", "psutil", "pandas", "pyarrow", "safetensors"):
    assert find_spec(package) is None, package
    with pytest.raises(ModuleNotFoundError):
        __import__(package)
with pytest.raises(PackageNotFoundError):
    version("bootprob")
print(version("torch"))

import numpy as np
import bootprob
from bootprob import BootstrapSVC
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = X[:, 0] + rng.normal(size=60) > 0
for kernel in ("linear", "rbf"):
    model = BootstrapSVC(kernel=kernel, n_bootstraps=4, C=[0.1, 1.0], random_state=0).fit(X, y)
    assert model.versions_["bootprob"] == bootprob.__version__
    assert np.isfinite(model.predict_proba(X)).all()
    assert np.isfinite(model.proba_interval(X, method="percentile")).all()
    assert model.vote_proba(X).shape == (60, 2)
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == torch.__version__
    assert done.stderr.count("Numba cannot be loaded") == 1


@pytest.fixture
def without_numba(monkeypatch):
    def fails(name):
        raise ImportError("no numba")

    monkeypatch.setattr(numba_choice, "import_module", fails)
    numba_choice.numba_error.cache_clear()
    yield
    numba_choice.numba_error.cache_clear()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_without_numba_the_optimum_is_the_same(rng, kernel, without_numba, monkeypatch):
    X = rng.normal(size=(40, 3))
    y = np.where(rng.random(40) < 0.5, 1, -1)
    y[:2] = 1, -1
    counts = np.vstack([np.ones(40, dtype=int), rng.multinomial(38, np.full(40, 1 / 40))])
    counts[:, :2] += 1
    gamma = [0.2] if kernel == "rbf" else None
    problem = Problem(X, y, counts, [0.1, 1.0], kernel=kernel, gamma=gamma)
    plain = fit(problem, tol=1e-7)
    assert choose_solver(problem, torch.device("cpu")) in ("interior-point", "smo-batched")
    monkeypatch.undo()
    numba_choice.numba_error.cache_clear()
    assert choose_solver(problem, torch.device("cpu")).endswith("-compiled")
    compiled = fit(problem, tol=1e-7)
    # Both duals are lower bounds of one optimum, both primals upper ones.
    assert (plain.dual <= compiled.primal * (1 + 1e-9)).all()
    assert (compiled.dual <= plain.primal * (1 + 1e-9)).all()
    assert (plain.gap <= 1e-7).all()


def test_without_numba_votes_are_counted_by_torch(rng, without_numba):
    shapes = (30, 4), (2, 4, 7), (2, 7)
    rows, coef, intercept = (torch.from_numpy(rng.integers(-3, 4, size=s)).double() for s in shapes)
    expected = ((rows @ coef + intercept[:, None]) > 0).sum(2)
    assert torch.equal(vote_counter(coef, intercept)(rows).long(), expected)


def test_compiled_solvers_ask_for_numba(without_numba):
    X, y = np.array([[0.0], [1.0]]), np.array([-1, 1])
    problem = Problem(X, y, np.ones((1, 2), dtype=int), [1.0])
    for solver in ("smo-compiled", "interior-point-compiled"):
        with pytest.raises(InputError, match="Numba, which cannot be loaded"):
            training.fit(problem, solver=solver)
