"""Smoothed bootstrap: its draws, its arithmetic, and whether its intervals cover."""

import numpy as np
import pytest

import bootprob.dea.efficiencies.intervals as module
from bootprob.dea import Panel, efficiency, efficiency_interval
from bootprob.dea.efficiencies.intervals import reflected_bandwidth, smoothed_draw
from bootprob.dea.efficiencies.replicates import ReferenceScores
from bootprob.exceptions import DataError

ANGLES = np.linspace(0, np.pi / 2, 300)


class TwoInputScores:
    """Scores of two inputs, one output, constant returns: the best of many price ratios."""

    def __init__(self, panel, *_):
        self.panel = panel

    def against(self, X, Y):
        prices = np.stack((np.cos(ANGLES), np.sin(ANGLES)))
        cheapest = (X / Y @ prices).min(axis=0)
        return (cheapest / (self.panel.inputs / self.panel.outputs @ prices)).max(axis=1)


def two_inputs(rng, K):
    """Units at known distances from the isoquant (x1 - .2)(x2 - .2) = .64 of one output."""
    along, output = rng.uniform(0.1, 1.5, K), rng.uniform(1, 2, K)
    frontier = output[:, None] * np.stack(
        (0.2 + 0.8 * np.exp(along - 0.8), 0.2 + 0.8 * np.exp(0.8 - along)), axis=1
    )
    true = np.exp(-np.abs(rng.normal(0, 0.3, K)))
    return frontier / true[:, None], output, true


def test_intervals_cover_a_known_frontier(rng, monkeypatch):
    """Nominal 95 %; docs/dea.md has larger simulations. Scores alone are all too good."""
    monkeypatch.setattr(module, "ReferenceScores", TwoInputScores)
    covered, raw, corrected = [], [], []
    for _ in range(25):
        X, Y, true = two_inputs(rng, 25)
        found = efficiency_interval(X, Y, n_replicates=150, seed=int(rng.integers(2**31)))
        covered.append((found.lower <= true) & (true <= found.upper))
        raw.append(found.result.scores - true)
        corrected.append(found.corrected - true)
    assert 0.6 < np.mean(covered) < 0.97  # 25 panels, whose units share their luck
    assert np.min(raw) > -1e-9
    assert abs(np.mean(corrected)) < 0.5 * np.mean(raw)


@pytest.mark.parametrize("returns", ["constant", "variable", "non-increasing", "non-decreasing"])
@pytest.mark.parametrize("orientation", ["input", "output"])
def test_replicates_are_scores_against_the_pseudo_sample(rng, returns, orientation, monkeypatch):
    """Each unit beside pseudo-units, one program each; with highspy and without."""
    panel = Panel.of(rng.uniform(1, 2, (6, 2)), rng.uniform(1, 2, (6, 2)))
    options = {"returns": returns, "orientation": orientation}
    scores = efficiency(panel, **options).scores
    for without in (False, True):
        if without:
            monkeypatch.setattr("bootprob.dea.efficiencies.replicates.find_spec", lambda name: None)
        reference = ReferenceScores(panel, returns, orientation, scores)
        assert (reference._shared is None) == without
        X, Y = panel.inputs, panel.outputs
        if orientation == "input":
            X = X * rng.uniform(1, 1.5, (6, 1))
        else:
            Y = Y / rng.uniform(1, 1.5, (6, 1))
        found = reference.against(X, Y)
        for unit in range(6):
            # Super-efficiency of a unit put beside all the others is its score against them.
            beside = efficiency(
                np.vstack((X, panel.inputs[unit])), np.vstack((Y, panel.outputs[unit])),
                super_efficiency=True, **options,
            )  # fmt: skip
            assert found[unit] == pytest.approx(beside.scores[-1], abs=1e-7)


def test_sizes_too_far_apart_for_one_model_are_solved_one_by_one(rng):
    size = 10.0 ** np.linspace(-5, 5, 8)[:, None]
    X, Y = rng.uniform(1, 2, (8, 2)) * size, rng.uniform(1, 2, (8, 1)) * size
    panel = Panel.of(X, Y)
    scores = efficiency(panel, returns="variable").scores
    again = ReferenceScores(panel, "variable", "input", scores).against(X, Y)
    np.testing.assert_allclose(again, scores, rtol=1e-6)


@pytest.mark.parametrize("orientation", ["input", "output"])
def test_arithmetic_of_the_interval(rng, orientation):
    X, Y = rng.uniform(1, 2, (10, 1)), rng.uniform(1, 2, (10, 1))
    found = efficiency_interval(X, Y, orientation=orientation, n_replicates=100, level=0.8, seed=3)
    inverse = (lambda v: 1 / v) if orientation == "input" else (lambda v: v)
    delta, drawn = inverse(found.result.scores), inverse(found.replicates)
    ends = np.sort(inverse(2 * delta - np.quantile(drawn, [0.1, 0.9], axis=0)), axis=0)
    np.testing.assert_allclose([found.lower, found.upper], ends)
    np.testing.assert_allclose(found.bias, drawn.mean(axis=0) - delta)
    np.testing.assert_allclose(inverse(found.corrected), 2 * delta - drawn.mean(axis=0))
    wider = efficiency_interval(X, Y, orientation=orientation, n_replicates=100, seed=3)
    assert np.array_equal(wider.replicates, found.replicates)
    assert (wider.upper - wider.lower > found.upper - found.lower).all()
    other = efficiency_interval(X, Y, orientation=orientation, n_replicates=100, seed=4)
    assert not np.array_equal(other.replicates, found.replicates)
    assert found.to_frame().columns[0] == "score"
    assert found.correction_pays.shape == (10,)


def test_one_input_one_output_is_the_ratio_to_the_best(rng):
    """Each pseudo-sample has one best ratio, so all replicates of a draw have one factor."""
    X, Y = rng.uniform(1, 2, 8), rng.uniform(1, 2, 8)
    found = efficiency_interval(X, Y, n_replicates=100)
    factor = found.replicates / found.result.scores
    np.testing.assert_allclose(factor, factor[:, :1] * np.ones(8), rtol=1e-7)
    assert factor.min() >= 1 - 1e-9


def test_draws_keep_the_variance_around_one(rng):
    distances = 1 + np.abs(rng.normal(0, 0.3, 40_000))
    distances[:5000] = 1
    for bandwidth in (0.01, 0.2):
        drawn = smoothed_draw(distances, bandwidth, rng)
        assert drawn.min() >= 1
        assert np.mean((drawn - 1) ** 2) == pytest.approx(np.mean((distances - 1) ** 2), rel=0.05)
    assert np.unique(drawn).size == len(drawn)


def test_draws_are_of_the_reflected_density(rng):
    """Daraio and Simar (2007): draw from distances and reflections, shrink, then fold.

    Folding first and shrinking towards the mean, as in the paper of 1998, would leave no draws
    next to the frontier.
    """
    distances, bandwidth = 1 + np.abs(rng.normal(0, 0.3, 20_000)), 0.15
    drawn = smoothed_draw(distances, bandwidth, rng)
    both = np.concatenate((distances, 2 - distances))
    moved = rng.choice(both, 200_000) + bandwidth * rng.standard_normal(200_000)
    shrunk = 1 + (moved - 1) / np.sqrt(1 + bandwidth**2 / both.var())
    shares = [0.02, 0.1, 0.25, 0.5, 0.75, 0.9]
    truth = np.quantile(np.where(shrunk < 1, 2 - shrunk, shrunk), shares)
    np.testing.assert_allclose(np.quantile(drawn, shares), truth, atol=0.015)
    kept = 1 / np.sqrt(1 + bandwidth**2 / distances.var())
    least_if_folded_first = 1 + (1 - kept) * (distances.mean() - 1)
    assert least_if_folded_first > 1.03
    assert np.mean(drawn < least_if_folded_first) > 0.05


def test_bandwidth_is_of_the_normal_reference_rule(rng):
    """Reflected half-normal distances are normal, for which the rule is .9 s n^(-1/5)."""
    distances = 1 + np.abs(rng.normal(0, 0.3, 50_000))
    assert reflected_bandwidth(distances) == pytest.approx(0.9 * 0.3 * 100_000**-0.2, rel=0.03)
    assert reflected_bandwidth(np.array([1.0, 1.0, 1.4])) > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 95}, "level is 95"),
        ({"n_replicates": 10}, "give at least 100"),
        ({"n_replicates": 200.5}, "n_replicates is 200.5; give a whole number"),
        ({"bandwidth": 0}, "bandwidth is 0; give a number above zero"),
        ({"bandwidth": np.nan}, "bandwidth is nan"),
        ({"seed": -1}, "seed is -1"),
        ({"returns": "rising"}, "returns is 'rising'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(DataError, match=message):
        efficiency_interval([1, 2, 3], [1, 3, 2], **options)


def test_nothing_to_draw_from():
    with pytest.raises(DataError, match="All 3 units have a score of 1"):
        efficiency_interval([1, 2, 3], [1, 2, 3])
    panel = Panel.of([1, 1, 2], [[1, 0], [0, 1], [1, 1]]).take(outputs=[0])
    with pytest.raises(DataError, match="no score above zero"):
        efficiency_interval(panel)
