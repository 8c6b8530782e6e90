"""The study and its report: the page says what the package computes."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from bootprob.dea import (
    Panel,
    benchmark_study,
    cross_efficiency,
    efficiency,
    efficiency_interval,
    select_outputs,
)
from bootprob.exceptions import DataError
from bootprob.report.dea.report import write_dea_report
from report_pages import check_accessible, check_tables_of_figures


class Page(HTMLParser):
    """Table rows, ids and what is open; refuses a page whose tags do not close."""

    VOID = frozenset(("meta", "link", "br"))

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.ids, self.text = [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


def panel_of(rng, K=12, N=2, M=4):
    size = np.exp(rng.normal(size=(K, 1)))
    return Panel.of(
        size * rng.uniform(0.5, 2, (K, N)),
        size * rng.uniform(0.2, 2, (K, M)),
        units=[f"unit <{k}>" for k in range(K)],
    )


def written(study, folder):
    content = write_dea_report(study, folder / "page.html", title="A & B", source="table.csv")
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert json.loads((folder / "page.json").read_text(encoding="utf-8")) == content
    assert "<script" not in text
    check_tables_of_figures(text, text.count("<figure"))
    check_accessible(text)
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", text)
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    return content, page


@pytest.mark.parametrize(
    ("returns", "orientation"), [("constant", "input"), ("variable", "output")]
)
def test_the_page_has_the_package_s_numbers(rng, tmp_path, returns, orientation):
    panel = panel_of(rng)
    options = {"returns": returns, "orientation": orientation}
    study = benchmark_study(panel, **options, n_replicates=100, most_outputs=3, size=2)
    content, page = written(study, tmp_path)
    result = efficiency(panel, **options)
    interval = efficiency_interval(panel, **options, n_replicates=100)
    crossed = cross_efficiency(panel)
    best = select_outputs(panel, 2)
    units = content["efficiency"]["units"]
    np.testing.assert_allclose([u["score"] for u in units], result.scores)
    np.testing.assert_allclose([u["interval"]["lower"] for u in units], interval.lower)
    np.testing.assert_allclose(content["cross"]["matrix"], crossed.matrix)
    for k, unit in enumerate(units):
        assert unit["unit"] == panel.units[k]
        target = [c["target"] for c in unit["inputs"] + unit["outputs"]]
        truth = np.append(result.input_targets[k], result.output_targets[k])
        np.testing.assert_allclose(target, truth)
        side = unit["inputs"] if orientation == "input" else unit["outputs"]
        assert sum(c["virtual"] for c in side) == pytest.approx(1)
        shown = f"{result.scores[k]:.4f}"
        assert any(row[:2] == [panel.units[k], shown] for row in page.rows)
    for side in ("inputs", "outputs"):
        shares = content["efficiency"]["shares"][side]
        assert sum(one["share"] for one in shares) == pytest.approx(1)
    selection = content["selection"]
    chosen = selection["curve"][1]
    assert chosen["outputs"] == list(best.outputs)
    assert chosen["objective"] == pytest.approx(best.objective)
    assert [game["size"] for game in selection["games"]] == [1, 2, 3]
    game = selection["games"][1]
    for unit, row in zip(game["units"], game["gains"], strict=True):
        assert unit["gain"] == pytest.approx(unit["own"] - unit["joint"])
        assert len(row) == panel.n_units
    gains = np.array(game["gains"])
    support = [100 * (column > 1e-7).mean() for column in gains.T]
    np.testing.assert_allclose([u["support"] for u in game["units"]], support)
    assert game["n_majorities"] == sum(s > 50 for s in support)
    assert "A & B" in page.text
    assert sum(len(row) == 1 + 4 for row in page.rows) >= 5  # the matrix of correlations


def test_without_intervals_selection_and_cross_efficiency(rng, tmp_path):
    """One output; and each unit uses nothing of what the other puts all weight on."""
    study = benchmark_study(Panel.of([[1, 0], [0, 1]], [1, 1]), n_replicates=0, goal="aggressive")
    assert study.curve is None
    assert study.games == {}
    assert study.crossed is None
    content, page = written(study, tmp_path)
    assert content["selection"] is None
    assert content["cross"]["refused"] in "".join(page.text)
    assert "game" not in page.ids


def test_all_efficient_units_leave_nothing_to_estimate(tmp_path):
    panel = Panel.of([1, 1], [[1, 2], [2, 1]])
    study = benchmark_study(panel)
    assert study.interval is None
    _, page = written(study, tmp_path)
    assert "There are no intervals: all units are efficient" in "".join(page.text)


def test_one_unit(tmp_path):
    study = benchmark_study(Panel.of([1], [[1, 2, 3]]), n_replicates=0)
    content, _ = written(study, tmp_path)
    assert content["efficiency"]["n_efficient"] == 1
    assert study.size == 1


def test_of_two_outputs_nothing_is_chosen(rng, tmp_path):
    panel = panel_of(rng, K=12, N=2, M=2)
    study = benchmark_study(panel, n_replicates=0)
    assert study.size == 2
    content, page = written(study, tmp_path)
    said = " ".join("".join(page.text).split())
    one, both = (each["objective"] for each in content["selection"]["curve"])
    assert both == pytest.approx(efficiency(panel).scores.mean())
    name = content["selection"]["curve"][0]["outputs"][0]
    assert (
        f"With all 2 outputs the mean efficiency is {both:.3f}; with the best one of them" in said
    )
    assert f"{name} , it is {one:.3f}." in said.replace(f"{name},", f"{name} ,")
    assert "Of all 2 outputs there is one selection only, so nobody has a rival to it." in said
    assert "2 of 2 outputs" not in said
    assert "The selected outputs only." not in said
    chosen = benchmark_study(panel, n_replicates=0, size=1)
    _, page = written(chosen, tmp_path)
    said = " ".join("".join(page.text).split())
    assert "1 of 2 outputs already give" in said
    assert "Each unit's own selection of 1" in said


def test_wide_tables_are_told_in_words(rng, tmp_path):
    panel = panel_of(rng, K=45, N=1, M=14)
    study = benchmark_study(panel, n_replicates=0, most_outputs=2, time_limit=1)
    content, page = written(study, tmp_path)
    told = [row for row in page.rows if len(row) == 3 and row[0] == "unit <0>" and "%" in row[2]]
    unit = content["efficiency"]["units"][0]
    if not unit["efficient"]:
        assert told
    assert any("output 1" in row[0] for row in page.rows)


def test_seconds_for_games_are_shared_out(rng):
    """However little time there is, the game that matters is played."""
    panel = panel_of(rng, M=6)
    study = benchmark_study(panel, n_replicates=0, size=3, time_limit=1e-6)
    assert list(study.games) == [3]
    assert study.games[3].efficiencies.shape == (12,)


def test_bad_options(rng):
    panel = panel_of(rng, K=4)
    for options, message in (
        ({"level": 95}, "level is 95"),
        ({"most_outputs": 0}, "most_outputs is 0"),
        ({"size": 5}, "one from 1 to 4"),
        ({"size": 3, "most_outputs": 2}, "one from 1 to 2"),
        ({"time_limit": -1}, "time_limit is -1"),
        ({"n_replicates": 10}, "give at least 100"),
        ({"goal": "fair"}, "goal is 'fair'"),
        ({"returns": "rising"}, "returns is 'rising'"),
    ):
        with pytest.raises(DataError, match=message):
            benchmark_study(panel, **options)
