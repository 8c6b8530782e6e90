"""Own selections against the joint one, and selections that a majority supports."""

import itertools

import numpy as np
import pandas as pd
import pytest

from bootprob.dea.panel import Panel
from bootprob.dea.selection.game import play_selection_game, supported_selection
from bootprob.dea.selection.joint import select_outputs
from bootprob.dea.selection.subsets import SubsetEfficiencies
from bootprob.exceptions import DataError


@pytest.fixture
def panel(rng):
    size = np.exp(rng.normal(size=(10, 1)))
    X = size * rng.uniform(0.5, 2, (10, 1))
    return Panel.of(X, size * rng.uniform(0.2, 2, (10, 6)), units=list("ABCDEFGHIJ"))


def test_the_game_is_the_thesis_definition(panel):
    game = play_selection_game(panel, 2)
    evaluator = SubsetEfficiencies(panel)
    scores = {s: evaluator.of(s) for s in itertools.combinations(range(6), 2)}
    assert game.efficiencies.mean() == pytest.approx(max(e.mean() for e in scores.values()))
    assert all(game.proven)
    for k in range(10):
        assert game.cross[k, k] == pytest.approx(max(e[k] for e in scores.values()), abs=1e-6)
        np.testing.assert_allclose(game.cross[:, k], scores[game.strategies[k]])
    np.testing.assert_allclose(game.gains, game.cross - scores[game.joint][:, None])
    truth = [100 * sum(g > 1e-7 for g in column) / 10 for column in game.gains.T]
    np.testing.assert_allclose(game.support, truth)
    counts, edges = game.histogram()
    assert counts.sum() == 10
    assert len(counts) == 20
    assert edges[[0, 1, -1]].tolist() == [0, 5, 100]
    frame = game.to_frame()
    assert frame.index.tolist() == list("ABCDEFGHIJ")
    assert (frame["own"] >= frame["joint"] - 1e-6).all()


def test_another_status_quo_and_no_solver(panel):
    game = play_selection_game(panel, 2, joint=["output 3", "output 5"], method="exchange")
    assert game.joint == (2, 4)
    assert (np.diag(game.gains) >= -1e-9).all()
    selection = select_outputs(panel, 2)
    assert play_selection_game(panel, 2, joint=selection, method="exchange").joint == (
        selection.features
    )


def test_coalitions(panel):
    game = play_selection_game(panel, 2, method="exchange")
    labels = ["x", "y"] * 5
    table = game.coalitions(labels)
    assert table.index.tolist() == ["x", "y"]
    assert table.equals(game.coalitions(dict(zip(panel.units, labels, strict=True))))
    for offset, label in enumerate("xy"):
        shares = [np.mean(game.gains[offset::2, k] > 1e-7) * 100 for k in range(10)]
        assert table.loc[label, "share"] == pytest.approx(max(shares))
        assert table.loc[label, "members"] == 5
        k = panel.units.index(table.loc[label, "prefers"])
        assert table.loc[label, "mean gain"] == pytest.approx(game.gains[offset::2, k].mean())


def test_supported_selection_is_the_best_of_all(panel):
    evaluator = SubsetEfficiencies(panel)
    rivals = play_selection_game(panel, 2, method="exchange").strategies
    floors = np.array([evaluator.of(rival) for rival in rivals])
    for share in (20, 50, 80, 100):
        support, mean = {}, {}
        for chosen in itertools.combinations(range(6), 3):
            scores = evaluator.of(chosen)
            support[chosen] = 100 * (scores >= floors - 1e-7).mean(axis=1).min()
            mean[chosen] = scores.mean()
        enough = [s for s in support if support[s] >= share]
        found = supported_selection(panel, 3, rivals, share=share)
        assert found.status == "optimal"
        assert found.enough == bool(enough)
        assert found.support == pytest.approx(support[found.features])
        if enough:
            assert found.objective == pytest.approx(max(mean[s] for s in enough))
        else:
            assert found.support == pytest.approx(max(support.values()))


def test_exchanges_where_there_are_too_many(panel, monkeypatch):
    monkeypatch.setattr("bootprob.dea.selection.game._ENUMERATED", 3)
    best = select_outputs(panel, 2)
    found = supported_selection(panel, 2, [best.features], share=100)
    assert found.status == "heuristic"
    assert found.enough
    assert found.objective == pytest.approx(best.objective)


def test_bad_options(panel):
    with pytest.raises(DataError, match="the game is with 2"):
        play_selection_game(panel, 2, joint=[1])
    with pytest.raises(DataError, match="no 'nothing'"):
        play_selection_game(panel, 2, joint=["nothing", 1])
    with pytest.raises(DataError, match="at least one"):
        supported_selection(panel, 2, [])
    with pytest.raises(DataError, match="per cent"):
        supported_selection(panel, 2, [[0]], share=0)
    game = play_selection_game(panel, 1, method="exchange")
    with pytest.raises(DataError, match="in no group"):
        game.coalitions({"A": 1})
    with pytest.raises(DataError, match="one for each of"):
        game.coalitions([1, 2])
    for groups in (None, 3, ["a", None] * 5, [np.nan] * 10):
        with pytest.raises(DataError, match="label"):
            game.coalitions(groups)
    for width in (0, "wide", None, True):
        with pytest.raises(DataError, match="width"):
            game.histogram(width)
    for share in (None, "half", True):
        with pytest.raises(DataError, match="per cent"):
            supported_selection(panel, 2, [[0]], share=share)
    with pytest.raises(DataError, match="holds no output"):
        supported_selection(panel, 2, [[0], []])
    with pytest.raises(DataError, match="give a Panel"):
        play_selection_game(panel.to_frame(), 2)
    with pytest.raises(DataError, match="give a Panel"):
        supported_selection(panel.to_frame(), 2, [[0]])


def test_a_series_of_groups_is_taken_by_its_names(panel):
    game = play_selection_game(panel, 1, method="exchange")
    groups = dict(zip(panel.units, list("aaabbbbbcc"), strict=True))
    series = pd.Series(groups).iloc[::-1]
    pd.testing.assert_frame_equal(game.coalitions(series), game.coalitions(groups))


def test_a_joint_selection_of_another_panel_is_found_by_its_names():
    wide = Panel.of(
        [1, 1, 1], [[9, 5, 2, 1], [1, 4, 4, 2], [7, 1, 1, 6]],
        output_names=["other", "first", "second", "third"],
    )  # fmt: skip
    narrow = Panel.of([1, 1, 1], [[5, 2], [4, 4], [1, 1]], output_names=["first", "second"])
    joint = select_outputs(wide, 2)
    assert "third" in joint.outputs
    with pytest.raises(DataError, match="third"):
        play_selection_game(narrow, 2, joint=joint)
