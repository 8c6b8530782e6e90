"""What figures 5.1 to 5.5 and table 5.3 show, and that they are drawn."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from statistics import quantiles, stdev

import numpy as np
import pandas as pd
import pytest

from bootprob.dea import (
    Panel,
    contribution_curve,
    efficiency_histograms,
    output_correlations,
    play_selection_game,
    selection_curve,
    suggested_size,
    summarise_curve,
    support_histograms,
)
from bootprob.dea.selection.summary import EfficiencyDistribution
from bootprob.exceptions import DataError
from bootprob.report.dea.figures import (
    box_plots,
    contributions,
    correlation_matrix,
    histogram_panels,
)


@pytest.fixture
def panel(rng):
    size = np.exp(rng.normal(size=(15, 1)))
    kinds = rng.normal(size=(15, 2)) @ rng.normal(size=(2, 6))
    X = size * rng.uniform(0.5, 2, (15, 1))
    return Panel.of(X, size * np.exp(kinds + 0.2 * rng.normal(size=(15, 6))))


@pytest.fixture
def curve(panel):
    return selection_curve(panel, 4)


def drawn(picture):
    """The picture as XML, which a browser could read."""
    return ElementTree.fromstring(
        '<svg xmlns:xlink="http://www.w3.org/1999/xlink">' + picture.svg + "</svg>"
    )


def words(picture):
    return [text.text for text in drawn(picture).iter("text")]


def test_correlations_are_those_of_numpy(panel):
    found = output_correlations(panel, ["output 5", 1])
    np.testing.assert_allclose(found.matrix, np.corrcoef(panel.outputs.T), atol=1e-12)
    assert found.chosen == (1, 4)
    few = found.of_chosen
    assert few.names == ("output 2", "output 5")
    assert few.matrix[0, 1] == pytest.approx(np.corrcoef(panel.outputs.T)[1, 4])
    assert few.to_frame().loc["output 2", "output 5"] == few.matrix[0, 1]
    with pytest.raises(DataError, match="no 'output 9'"):
        output_correlations(panel, ["output 9"])


def test_summary_is_table_5_3(curve):
    summary = summarise_curve(curve)
    frame = summary.to_frame()
    assert frame.columns.tolist() == [
        "min", "max", "mean", "st. dev.", "q1", "q2", "q3", "q3-q1", "selected features"
    ]  # fmt: skip
    assert frame.index.tolist() == [1, 2, 3, 4]
    for selection, line in zip(curve.selections, summary.lines, strict=True):
        values = selection.efficiencies.tolist()
        quartiles = quantiles(values, n=4, method="inclusive")
        assert (line.q1, line.q2, line.q3) == pytest.approx(tuple(quartiles))
        assert line.deviation == pytest.approx(stdev(values))
        assert line.mean == pytest.approx(selection.objective)
        reach = 1.5 * (quartiles[2] - quartiles[0])
        inside = [v for v in values if quartiles[0] - reach <= v <= quartiles[2] + reach]
        assert (line.lower_whisker, line.upper_whisker) == (min(inside), max(inside))
        assert len(line.outlying) == len(values) - len(inside)
        assert line.n_efficient == sum(v > 1 - 1e-6 for v in values)


def test_one_unit_has_no_spread():
    line = EfficiencyDistribution.of(np.array([1.0]), ("A",), ("y",))
    assert (line.deviation, line.interquartile_range, line.outlying) == (0, 0, ())
    outlier = EfficiencyDistribution.of(np.array([0.1, 0.8, 0.8, 0.8, 0.9]), tuple("ABCDE"), ("y",))
    assert outlier.outlying == ("A", "E")
    assert outlier.lower_whisker == outlier.upper_whisker == 0.8


def test_histograms_count_every_unit_once(curve):
    found = efficiency_histograms(curve, 0.1)
    assert found.counts.sum(axis=1).tolist() == [15] * 4
    for counts, selection in zip(found.counts, curve.selections, strict=True):
        for low, count in zip(found.edges, counts, strict=False):
            high = low + 0.1 if low < 0.85 else 2.0
            e = selection.efficiencies + 1e-9
            assert count == ((e >= low) & (e < high)).sum()
    frame = found.to_frame()
    assert frame.shape == (10, 4)
    assert 0.05 in frame.index[0]
    for width in (0, -1, 2, np.nan):
        with pytest.raises(DataError, match="width is"):
            efficiency_histograms(curve, width)


def test_support_is_counted_as_each_game_does(panel):
    games = {p: play_selection_game(panel, p, method="exchange") for p in (2, 1)}
    found = support_histograms(games, 20)
    assert found.sizes == (1, 2)
    for p, counts in zip(found.sizes, found.counts, strict=True):
        support = games[p].support
        assert counts[0] == (support < 20).sum()
        assert counts[-1] == (support >= 80).sum()
        assert counts.sum() == 15
    with pytest.raises(DataError, match="games is empty"):
        support_histograms([])


def test_suggested_size_waits_for_late_contributions():
    """Counterexample 5.1: 0.8, 0.867, 1.0."""
    toy = Panel.of(
        np.ones(5),
        [[0.6, 1 / 3, 1 / 3, 1 / 3], [0.7, 1 / 3, 1 / 3, 1 / 3], [0.8, 1, 0, 0],
         [0.9, 0, 1, 0], [1, 0, 0, 1]],
    )  # fmt: skip
    curve = selection_curve(toy, 4)
    np.testing.assert_allclose(curve.values, [0.8, 0.8 + 1 / 15, 1, 1], atol=1e-9)
    assert suggested_size(curve) == 3
    assert suggested_size(curve, 0.1) == 3  # the second contributes less, the third more
    assert suggested_size(curve, 0.2) == 1
    assert suggested_size(selection_curve(toy, 1)) == 1
    spread = replace(curve, selections=curve.selections[::2], nested=curve.nested[::2])
    assert suggested_size(spread, 0.1) == 3  # 0.2 by two outputs
    assert suggested_size(spread, 0.11) == 1
    for bad in (-1, np.nan, True):
        with pytest.raises(DataError, match="least_contribution is"):
            suggested_size(curve, bad)


def test_contributions_are_the_curve(curve):
    found = contribution_curve(curve)
    frame = found.to_frame()
    np.testing.assert_allclose(frame["objective"], [s.objective for s in curve.selections])
    np.testing.assert_allclose(frame["contribution"].iloc[1:], np.diff(frame["objective"]))
    assert np.isnan(frame["contribution"].iloc[0])
    assert (frame["gap"] == 0).all()


def test_pictures_say_what_they_show(panel, curve):
    matrix = output_correlations(panel, curve.selections[2].features)
    values = contribution_curve(curve)
    pictures = [
        correlation_matrix(matrix, "a"),
        correlation_matrix(matrix.of_chosen, "b"),
        box_plots(summarise_curve(curve), values, "c"),
        histogram_panels(efficiency_histograms(curve), "d", quantity="efficiency", things="units"),
        contributions(values, "e"),
    ]
    for picture in pictures:
        assert len(list(drawn(picture).iter())) > 20
        assert picture.alt.endswith(".")
    assert "output 3" in words(pictures[0])
    cells = [f"{v:.2f}".replace("-", "−") for v in matrix.of_chosen.matrix.ravel()]
    assert pd.Series(cells).isin(words(pictures[1])).all()
    assert {"p = 1", "p = 4"} <= set(words(pictures[3]))
    assert f"mean {curve.values[1]:.3f}" in pictures[2].alt
    assert correlation_matrix(matrix, "a") == pictures[0]


def test_many_outputs_are_numbered(rng):
    panel = Panel.of(np.ones(20), rng.uniform(1, 2, (20, 60)))
    picture = correlation_matrix(output_correlations(panel, [0, 30]), "m")
    assert "11" in words(picture)
    assert "output 11" not in words(picture)


def test_another_objective_is_drawn_beside_the_mean(panel):
    curve = selection_curve(panel, 2, objective="minimum")
    picture = box_plots(summarise_curve(curve), contribution_curve(curve), "o")
    assert {"mean", "minimum"} <= set(words(picture))
