"""The cross-efficiency matrix and its secondary goals."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from bootprob.dea import Panel, cross_efficiency, efficiency
from bootprob.exceptions import DataError


@pytest.mark.parametrize("goal", [None, "benevolent", "aggressive"])
def test_every_row_keeps_to_its_unit(rng, goal):
    X, Y = rng.uniform(1, 2, (12, 2)), rng.uniform(1, 2, (12, 3))
    found = cross_efficiency(X, Y, goal=goal)
    np.testing.assert_allclose(np.diag(found.matrix), efficiency(X, Y).scores, atol=1e-7)
    assert found.matrix.max() <= 1 + 1e-7
    np.testing.assert_allclose((found.input_weights * X).sum(axis=1), 1)
    for k in range(12):
        ratio = (Y @ found.output_weights[k]) / (X @ found.input_weights[k])
        np.testing.assert_allclose(found.matrix[k], ratio)


@pytest.mark.parametrize(("goal", "sign"), [("benevolent", -1), ("aggressive", 1)])
def test_goals_are_met(rng, goal, sign):
    """Share of the other units' weighted inputs that their weighted outputs come to."""
    X, Y = rng.uniform(1, 2, (10, 2)), rng.uniform(1, 2, (10, 2))
    scores = efficiency(X, Y).scores
    found = cross_efficiency(X, Y, goal=goal)
    for k in range(10):
        rest = np.arange(10) != k
        reached = (Y[rest] @ found.output_weights[k]).sum()
        reached /= (X[rest] @ found.input_weights[k]).sum()
        best = linprog(
            np.r_[0, 0, sign * Y[rest].sum(axis=0)],
            A_ub=np.vstack((np.hstack((-X, Y)), np.r_[(scores[k] - 1e-8) * X[k], -Y[k]])),
            b_ub=np.zeros(11), A_eq=[np.r_[X[rest].sum(axis=0), 0, 0]], b_eq=[1],
        )  # fmt: skip
        assert reached == pytest.approx(sign * best.fun, abs=1e-5)


def test_goals_are_apart(rng):
    X, Y = rng.uniform(1, 2, (12, 2)), rng.uniform(1, 2, (12, 3))
    kind, unkind = (cross_efficiency(X, Y, goal=goal) for goal in ("benevolent", "aggressive"))
    assert kind.scores.mean() > unkind.scores.mean()
    assert unkind.maverick.mean() > kind.maverick.mean()


def test_scales_do_not_matter(rng):
    X, Y = rng.uniform(1, 2, (8, 2)), rng.uniform(1, 2, (8, 2))
    factor, size = np.array([1e6, 1e-6]), 10.0 ** rng.uniform(-3, 3, (8, 1))
    plain = cross_efficiency(X, Y, goal="benevolent")
    np.testing.assert_allclose(
        cross_efficiency(X * factor, Y * factor).matrix, plain.matrix, atol=1e-5
    )
    diagonal = np.diag(cross_efficiency(X * size, Y * size).matrix)
    np.testing.assert_allclose(diagonal, np.diag(plain.matrix), atol=1e-6)


def test_one_output_one_input_is_the_ratio():
    found = cross_efficiency([1, 2, 4], [1, 1, 3])
    np.testing.assert_allclose(found.matrix, np.tile([1, 0.5, 0.75], (3, 1)), atol=1e-9)
    np.testing.assert_allclose(found.maverick, 0, atol=1e-9)
    assert cross_efficiency([2], [3]).maverick.tolist() == [0]


def test_names_are_kept():
    table = pd.DataFrame({"a": [1, 2], "b": [1, 1]}, index=["x", "y"])
    frame = cross_efficiency(table[["a"]], table["b"]).to_frame()
    assert frame.loc["y", "x"] == pytest.approx(1)
    assert frame.index.name == "weights of"


def test_errors():
    with pytest.raises(DataError, match="goal is 'kind'"):
        cross_efficiency([1, 2], [1, 2], goal="kind")
    with pytest.raises(DataError, match="unit '1' are only on inputs that it does not use"):
        cross_efficiency(Panel.of([[1, 0], [0, 1]], [1, 1]), goal="aggressive")
    with pytest.raises(DataError, match="'2' uses nothing, so it has no value there"):
        cross_efficiency([[1, 0], [0, 1]], [[1, 0], [0, 1]], goal=None)
