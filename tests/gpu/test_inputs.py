"""Wrong input is refused before any work, by an `InputError` that says what to do about it."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
import torch

from bootprob_gpu import (
    InputError,
    Problem,
    Status,
    fit,
    iter_fit,
    model_scores,
    replicate_scores,
    votes,
)
from bootprob_gpu.kernels.rbf import Rbf

N, P, B = 6, 2, 3


def arguments(**changes) -> dict:
    """A problem that is fine, with something changed; None takes an argument away."""
    rng = np.random.default_rng(0)
    fine = {
        "X": rng.normal(size=(N, P)),
        "y": np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]),
        "counts": np.ones((B, N), dtype=int),
        "C": np.array([0.5, 1.0]),
    }
    return {name: value for name, value in (fine | changes).items() if value is not None}


def with_entry(value: object, shape: tuple[int, ...] = (N, P), fill: object = 1.0) -> np.ndarray:
    """An array with one bad entry in its last place."""
    array = np.full(shape, fill)
    array[(-1,) * len(shape)] = value
    return array


POLY = {"kernel": "poly", "gamma": 0.5}
GRAM = {"kernel": "precomputed", "X": np.eye(N)}

BAD_PROBLEMS = {
    # X
    "nan": ({"X": with_entry(np.nan)}, r"X .*NaN.*\[5, 1\].*(impute|drop)"),
    "infinity": ({"X": with_entry(-np.inf)}, r"X .*infinity"),
    "strings": ({"X": with_entry("red", fill="blue")}, r"X .*numbers"),
    "objects": ({"X": with_entry({}, fill=None)}, r"X .*numbers"),
    "complex numbers": ({"X": np.ones((N, P), dtype=complex)}, r"X .*numbers"),
    "ragged rows": ({"X": [[1.0, 2.0]] * (N - 1) + [[1.0]]}, r"X .*numbers"),
    "no rows": ({"X": np.empty((0, P)), "y": [], "counts": np.ones((B, 0), int)}, r"X .*\(0, 2\)"),
    "no columns": ({"X": np.empty((N, 0))}, r"X .*\(6, 0\).*column"),
    "one dimension": ({"X": np.ones(N)}, r"X .*\(6,\).*2 dimensions"),
    "three dimensions": ({"X": np.ones((N, P, 1))}, r"X .*\(6, 2, 1\)"),
    # y
    "labels 0 and 1": ({"y": [0, 1, 0, 1, 0, 1]}, r"y .*-1 and \+1"),
    "three labels": ({"y": [-1, 1, 2, -1, 1, 2]}, r"y .*-1 and \+1"),
    "string labels": ({"y": ["a", "b"] * 3}, r"y .*numbers"),
    "nan label": ({"y": with_entry(np.nan, (N,))}, r"y .*NaN"),
    "too few labels": ({"y": [1, -1]}, r"y .*\(2,\).*\(6,\)"),
    "labels of other replicates": ({"y": np.ones((B + 1, N))}, r"y .*\(4, 6\).*\(3, 6\)"),
    "bad label of a replicate": ({"y": with_entry(0, (B, N), 1)}, r"y .*-1 and \+1"),
    "column of labels": ({"y": np.ones((N, 1))}, r"y .*\(6, 1\)"),
    # counts
    "negative count": ({"counts": with_entry(-2, (B, N), 1)}, r"counts .*-2.*≥ 0"),
    "fractional count": ({"counts": with_entry(0.5, (B, N))}, r"counts .*fraction.*row_weight"),
    "nan count": ({"counts": with_entry(np.nan, (B, N))}, r"counts .*NaN"),
    "flat counts": ({"counts": np.ones(N, int)}, r"counts .*\(6,\).*\(B, n\)"),
    "counts of other rows": ({"counts": np.ones((B, N + 1), int)}, r"counts .*\(3, 7\).*n = 6"),
    "no replicate": ({"counts": np.ones((0, N), int)}, r"counts .*\(0, 6\)"),
    "count beyond integers": ({"counts": with_entry(1e30, (B, N))}, r"counts"),
    # C and gamma
    "C = 0": ({"C": [1.0, 0.0]}, r"C .*positive"),
    "negative C": ({"C": -1.0}, r"C .*-1.*positive"),
    "no C": ({"C": []}, r"C .*positive"),
    "nan C": ({"C": [np.nan]}, r"C .*NaN"),
    "string C": ({"C": "scale"}, r"C .*number"),
    "table of C": ({"C": np.ones((2, 2))}, r"C "),
    "gamma for linear": ({"gamma": 0.5}, r"gamma .*linear"),
    "no gamma for rbf": ({"kernel": "rbf"}, r"(?i)rbf.*gamma"),
    "gamma = 0": ({"kernel": "rbf", "gamma": 0.0}, r"gamma .*positive"),
    "string gamma": ({"kernel": "rbf", "gamma": "scale"}, r"gamma .*number"),
    "infinite gamma": ({"kernel": "rbf", "gamma": np.inf}, r"gamma .*infinity"),
    "unknown kernel": ({"kernel": "sigmoid"}, r"kernel .*'sigmoid'.*'linear'.*'rbf'.*'poly'"),
    "unhashable kernel": ({"kernel": ["rbf"]}, r"kernel .*rbf"),
    # polynomial and precomputed kernels
    "no gamma for poly": ({"kernel": "poly"}, r"polynomial.*gamma"),
    "degree 0": ({**POLY, "degree": 0}, r"degree .*0.*whole number"),
    "negative degree": ({**POLY, "degree": -1}, r"degree .*-1"),
    "fractional degree": ({**POLY, "degree": 2.5}, r"degree .*2\.5"),
    "degree that is true": ({**POLY, "degree": True}, r"degree .*True"),
    "negative coef0": ({**POLY, "coef0": -0.5}, r"coef0 .*-0\.5.*≥ 0"),
    "nan coef0": ({**POLY, "coef0": np.nan}, r"coef0 .*nan.*finite"),
    "string coef0": ({**POLY, "coef0": "1"}, r"coef0 .*'1'"),
    "degree for rbf": ({"kernel": "rbf", "gamma": 1.0, "degree": 3}, r"degree .*RBF.*none"),
    "coef0 for linear": ({"coef0": 1.0}, r"coef0 .*linear.*none"),
    "values that overflow": ({**POLY, "gamma": 1e30, "degree": 5}, r"polynomial.*reaches"),
    "gamma for precomputed": ({**GRAM, "gamma": 1.0}, r"gamma .*precomputed.*none"),
    "scale for precomputed": ({**GRAM, "scale": np.full(N, 2.0)}, r"scale .*precomputed"),
    "scales for precomputed": ({**GRAM, "scale": np.ones((B, N))}, r"scale .*precomputed"),
    "precomputed, not square": ({"kernel": "precomputed"}, r"X .*\(6, 2\).*\(n, n\)"),
    "precomputed, not symmetric": (
        {**GRAM, "X": np.eye(N) + np.triu(np.ones((N, N)), 1)},
        r"not symmetric.*K\.T",
    ),
    "precomputed, indefinite": (
        {**GRAM, "X": np.diag([1.0, 1, 1, 1, 1, -0.1])},
        r"indefinite.*eigenvalue",
    ),
    "precomputed, nan": ({**GRAM, "X": with_entry(np.nan, (N, N))}, r"X .*NaN"),
    # weights, bounds, scale
    "negative weight": ({"row_weight": with_entry(-0.5, (N,))}, r"row_weight .*-0\.5.*≥ 0"),
    "nan weight": ({"row_weight": with_entry(np.nan, (N,))}, r"row_weight .*NaN"),
    "weights of other rows": ({"row_weight": np.ones(N + 1)}, r"row_weight .*\(7,\).*\(6,\)"),
    "bounds without models": ({"upper": np.ones((B, N))}, r"upper .*\(3, 6\).*\(3, 2, 6\)"),
    "bounds transposed": ({"upper": np.ones((2, B, N))}, r"upper .*\(2, 3, 6\).*\(3, 2, 6\)"),
    "negative bound": ({"upper": with_entry(-1.0, (B, 2, N))}, r"upper.*negative"),
    "nan bound": ({"upper": with_entry(np.nan, (B, 2, N))}, r"upper.*finite"),
    "string bounds": ({"upper": np.full((B, 2, N), "1")}, r"upper .*numbers"),
    "scale whose square overflows": ({"scale": [1.0, 1e200]}, r"scale reaches 1\.0e\+200"),
    "scale of other columns": ({"scale": np.ones(P + 1)}, r"scale .*\(3,\)"),
    "scale of other replicates": ({"scale": np.ones((B + 1, P))}, r"scale .*\(4, 2\).*\(3, 2\)"),
    "scale = 0": ({"scale": [1.0, 0.0]}, r"scale .*positive.*1 for constant"),
    "nan scale": ({"scale": [1.0, np.nan]}, r"scale .*NaN"),
}


@pytest.mark.parametrize(("changes", "message"), BAD_PROBLEMS.values(), ids=BAD_PROBLEMS)
def test_problem_refuses(changes, message):
    with pytest.raises(InputError, match=message) as caught:
        Problem(**arguments(**changes))
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 300


BAD_OPTIONS = {
    "unknown solver": ({"solver": "libsvm"}, r"solver .*'libsvm'.*smo-compiled"),
    "dtype float16": ({"dtype": torch.float16}, r"dtype .*float16.*float64"),
    "dtype of numpy": ({"dtype": np.float64}, r"dtype .*torch"),
    "dtype by name": ({"dtype": "float64"}, r"dtype .*torch"),
    "interior point in float32": (
        {"solver": "interior-point", "dtype": torch.float32},
        r"(?i)interior.point.*float64",
    ),
    "device that does not exist": ({"device": "abacus"}, r"device .*'abacus'.*cpu"),
    "device out of range": ({"device": "cuda:99"}, r"device .*cuda:99"),
    "device without arithmetic": ({"device": "meta"}, r"device .*meta"),
    "tol = 0": ({"tol": 0.0}, r"tol .*0.*between 0 and 1"),
    "negative tol": ({"tol": -1e-6}, r"tol .*-1e-06.*between 0 and 1"),
    "nan tol": ({"tol": np.nan}, r"tol .*nan.*between 0 and 1"),
    "no iterations": ({"max_iter": 0}, r"max_iter .*0"),
    "fractional iterations": ({"max_iter": 2.5}, r"max_iter .*2\.5"),
    "no memory": ({"memory_limit": 0}, r"memory_limit .*0.*positive"),
    "negative memory": ({"memory_limit": -1}, r"memory_limit .*-1.*positive"),
}


@pytest.mark.parametrize("train", [fit, iter_fit])
@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_training_refuses(train, options, message):
    """Without asking for the first block: `iter_fit` checks when it is called."""
    with pytest.raises(InputError, match=message):
        train(Problem(**arguments()), **options)


def test_interior_point_refuses_rbf():
    problem = Problem(**arguments(kernel="rbf", gamma=1.0))
    with pytest.raises(InputError, match=r"(?i)interior.point.*linear"):
        fit(problem, solver="interior-point")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_compiled_solver_refuses_a_gpu():
    with pytest.raises(InputError, match=r"smo-compiled.*(CPU|cpu)"):
        fit(Problem(**arguments()), solver="smo-compiled", device="cuda")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_missing_gpu_is_said():
    with pytest.raises(InputError, match=r"device .*cuda"):
        fit(Problem(**arguments()), device="cuda")


def test_scoring_refuses_other_columns():
    for fitted in (
        fit(Problem(**arguments())),
        fit(Problem(**arguments(kernel="rbf", gamma=1.0))),
    ):
        for score in (
            lambda X, fitted=fitted: list(model_scores(fitted, X)),
            lambda X, fitted=fitted: votes(fitted, X),
            lambda X, fitted=fitted: replicate_scores(fitted, X, torch.ones(2)),
        ):
            with pytest.raises(InputError, match=r"3.*2|columns"):
                score(torch.ones(4, P + 1, dtype=torch.float64))


def test_what_is_allowed_is_not_refused():
    """Lists, scalars, integers, booleans, whole numbers stored as floats, read-only arrays."""
    X = np.asfortranarray(np.arange(N * P).reshape(N, P))
    X.flags.writeable = False
    problem = Problem(
        X.tolist(),
        [1, -1] * 3,
        [[1.0] * N],
        1,
        row_weight=[0, 1, 1, 1, 1, 1],
        scale=[1, 2],
    )
    same = Problem(X, np.array([1, -1] * 3, dtype=np.int8), np.ones((1, N), np.uint8), [1.0])
    for each in (problem, same):
        assert int(fit(each, solver="auto").status[0, 0]) == Status.CONVERGED
    dummies = Problem(**arguments(X=np.eye(N, P, dtype=bool)))
    assert (fit(dummies).status == Status.CONVERGED).all()


def test_inputs_are_left_alone():
    given = arguments(
        kernel="rbf", gamma=np.array([0.5]), row_weight=np.ones(N), scale=np.full((B, P), 2.0)
    )
    before = {name: np.copy(value) for name, value in given.items()}
    fit(Problem(**given))
    for name, value in before.items():
        np.testing.assert_array_equal(given[name], value)


def test_bounds_may_be_a_memory_map(tmp_path):
    upper = np.memmap(tmp_path / "upper", dtype=np.float64, mode="w+", shape=(B, 2, N))
    upper[:] = 1.5
    problem = Problem(**arguments(upper=upper))
    assert isinstance(problem.upper, np.memmap)
    explicit = fit(problem)
    by_rule = fit(Problem(**arguments(C=[1.5, 1.5])))
    torch.testing.assert_close(explicit.primal, by_rule.primal, rtol=1e-6, atol=0)


@pytest.mark.parametrize("status", Status)
def test_every_status_comes_with_advice(status):
    assert re.fullmatch(r"[A-Z].{20,}\.", status.advice)


def test_options_of_fit_and_iter_fit_are_the_same():
    assert inspect.signature(fit).parameters == inspect.signature(iter_fit).parameters


def test_a_precomputed_kernel_may_be_rounded_to_float32():
    """Of rank 2: its negative eigenvalues are rounding."""
    rows = np.random.default_rng(0).normal(size=(40, 2))
    gram = (rows @ rows.T).astype(np.float32)
    labels, counts = np.where(rows[:, 0] > 0, 1.0, -1.0), np.ones((1, 40), dtype=int)
    assert np.linalg.eigvalsh(gram.astype(float)).min() < 0
    fitted = fit(Problem(gram, labels, counts, [1.0], kernel="precomputed"), tol=1e-5)
    assert (fitted.status == Status.CONVERGED).all()


def test_a_precomputed_kernel_may_be_asymmetric_by_rounding():
    gram = np.eye(N)
    gram[0, 1] = 1e-8
    problem = Problem(**arguments(kernel="precomputed", X=gram))
    np.testing.assert_array_equal(problem.X, (gram + gram.T) / 2)


def test_a_kernel_that_is_made_already():
    given = Problem(**arguments(**POLY, degree=2, coef0=1.0))
    again = Problem(**arguments(kernel=given.kernel_function))
    torch.testing.assert_close(fit(given).primal, fit(again).primal, rtol=0, atol=0)
    with pytest.raises(InputError, match=r"gamma .*positive"):
        Problem(**arguments(kernel=Rbf(torch.tensor([1.0, -1.0]))))
    with pytest.raises(InputError, match=r"gamma .*already"):
        Problem(**arguments(kernel=given.kernel_function, gamma=1.0))


@pytest.mark.parametrize("solver", ["smo-compiled", "smo-batched", "interior-point"])
def test_bounds_may_run_backwards(solver):
    given = arguments(C=[1.0])
    upper = np.linspace(0.5, 1.0, B * N).reshape(B, 1, N)
    backwards = np.ascontiguousarray(upper[:, :, ::-1])[:, :, ::-1]
    one, other = (fit(Problem(**given, upper=each), solver=solver) for each in (upper, backwards))
    torch.testing.assert_close(one.primal, other.primal)
