"""The study of the Pareto paper: its numbers, and a run from rows to document."""

import json

import numpy as np
import pytest

from docs.studies.pareto import study
from docs.studies.pareto.printed import TABLE_3
from gpu.benchmarks.common.datasets import at_hand

TESTED = {"bupa": 115, "pima": 256, "wdbc": 190, "credit": 222}


@pytest.mark.parametrize("name", TESTED)
def test_printed_percentages_count_rows_held_out(name):
    assert len(TABLE_3[name]) == len(study.PEERS)
    for printed in TABLE_3[name]:
        rows = TESTED[name] * printed / 100
        assert 100 * round(rows) / TESTED[name] == pytest.approx(printed, abs=0.0051)


@pytest.mark.parametrize("name", TESTED)
def test_rows_held_out_are_as_many(name):
    if not at_hand({"wdbc": "wisconsin", "credit": "crx"}.get(name, name)):
        pytest.skip(f"{name} is not at hand")
    X, positive, columns = study.rows_of(name)
    training, held_out = study.split(len(X))
    assert len(held_out) == TESTED[name]
    assert sorted([*training, *held_out]) == list(range(len(X)))
    assert X.shape == (len(positive), len(columns))
    assert np.isfinite(X).all()


def test_costs_of_a_group(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "FOLDER", tmp_path)
    (tmp_path / "some").mkdir()
    table = tmp_path / "some" / "measurement_costs.csv"
    table.write_text("feature,cost,cost_in_group\na,1.0,\nb,17.61,15.51\nc,22.78,20.68\n")
    costs = {"a": 1.0, "b": 15.51, "c": 20.68}
    assert study.turneys_costs("some") == {"costs": costs, "shared_costs": [(["b", "c"], 2.1)]}
    table.write_text("feature,cost\na,1.0\nb,17.61\n")
    assert study.turneys_costs("some") == {"costs": {"a": 1.0, "b": 17.61}}


def test_a_run_is_written_and_not_repeated(rng, tmp_path, monkeypatch):
    positive = np.arange(60) % 2 == 1
    X = rng.normal(size=(60, 3)) + np.outer(positive, [0.5, 1, 2])
    monkeypatch.setattr(study, "rows_of", lambda name: (X, positive, ("a", "b", "c")))
    monkeypatch.setattr(study, "at_hand", lambda name: True)
    study.main([2], 60.0, tmp_path)
    results = json.loads((tmp_path / "results" / "pareto.json").read_text())
    found = results["figures"]["2"]
    training, held_out = study.split(60)
    assert found["status"] == "optimal"
    for point in found["points"]:
        assert point["cost"] == pytest.approx(
            sum(np.random.default_rng(0).uniform(size=3)["abc".index(j)] for j in point["columns"])
        )
    assert found["points"][0]["held out"] == np.mean(
        positive[held_out] == (positive[training].mean() > 0.5)
    )
    assert "<svg" in (tmp_path / "results" / "pareto_figure_2.svg").read_text()
    document = (tmp_path / "pareto.md").read_text()
    assert "Figure 2: bupa, g = 1, random costs" in document
    for point in found["points"]:
        assert f"{100 * point['held out']:.1f}" in document
    monkeypatch.setattr(study, "measure", lambda *_: pytest.fail("measured again"))
    study.main([2], 60.0, tmp_path)


def test_without_results_the_document_says_so(tmp_path):
    assert "Not measured" in study.write_document(tmp_path).read_text()
