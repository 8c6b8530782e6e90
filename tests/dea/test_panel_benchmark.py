"""The benchmark on a panel of the thesis's size, on a panel small enough to check by hand."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

pytest.importorskip("cvxpy")

from docs.studies.dea import panel as dea_panel

SMALL = dea_panel.Settings(units=10, outputs=15, most=3, total=60.0, others=20.0)


def efficiencies(x, y):
    """(1.1) to (1.5) with one input."""
    scores = []
    for k in range(len(x)):
        found = linprog(-y[k] / x[k], A_ub=y / x[:, None], b_ub=np.ones(len(x)))
        assert found.status == 0
        scores.append(-found.fun)
    return np.array(scores)


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    """What a whole run writes."""
    folder = tmp_path_factory.mktemp("docs")
    dea_panel.main(list(dea_panel.PARTS), SMALL, False, folder)
    return folder


@pytest.fixture(scope="module")
def results(docs):
    return json.loads((docs / "results" / "dea_panel.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def truth():
    """Efficiencies under all sets of one to three outputs, a linear program for each unit."""
    panel, _ = dea_panel.synthetic_panel(SMALL.units, SMALL.outputs, SMALL.seed)
    return {
        chosen: efficiencies(panel.inputs[:, 0], panel.outputs[:, chosen])
        for p in (1, 2)
        for chosen in itertools.combinations(range(SMALL.outputs), p)
    }


def test_the_panel_is_what_is_said_of_it():
    panel, clusters = dea_panel.synthetic_panel(182, 100, 0)
    assert panel.inputs.shape == (182, 1)
    assert panel.outputs.shape == (182, 100)
    np.testing.assert_allclose(np.ptp(panel.outputs, axis=0), 1)
    assert np.bincount(clusters).tolist() == [10] * 10
    again, _ = dea_panel.synthetic_panel(182, 100, 0)
    assert (again.outputs == panel.outputs).all()
    other, _ = dea_panel.synthetic_panel(182, 100, 1)
    assert not (other.outputs == panel.outputs).all()
    found = dea_panel.correlations(panel, clusters)
    matrix = np.corrcoef(panel.outputs.T)
    pairs = matrix[np.triu_indices(100, 1)]
    assert sum(found["counts"]) + found["below 0"] == len(pairs) == 4950
    np.testing.assert_allclose(found["all pairs"], np.quantile(pairs, found["levels"]))
    together = [
        matrix[i, j] for i, j in itertools.combinations(range(100), 2) if clusters[i] == clusters[j]
    ]
    np.testing.assert_allclose(found["pairs of a cluster"], np.quantile(together, found["levels"]))
    assert found["pairs of a cluster"][3] > found["pairs apart"][3] > 0.4


def test_selections_are_the_best(results, truth):
    assert list(results["joint"]) == ["1", "2", "3"]
    for p in (1, 2):
        one = results["joint"][str(p)]
        best = max(scores.mean() for chosen, scores in truth.items() if len(chosen) == p)
        assert one["objective"] == pytest.approx(best, abs=1e-7)
        assert one["status"] == "optimal"
        assert one["bound"] == one["objective"]
        assert truth[tuple(one["outputs"])].mean() == pytest.approx(best, abs=1e-7)
        assert one["efficiencies"]["mean"] == pytest.approx(best, abs=1e-7)
        by = {"exact": -1.0} | {
            name: results["heuristics"][name][p - 1] for name in ("nested", "exchange")
        }
        assert one["found by"] in by
        assert by[one["found by"]] == pytest.approx(best) or one["found by"] == "exact"
    joint = results["joint"]
    assert joint["2"]["marginal"] == joint["2"]["objective"] - joint["1"]["objective"]
    least = min(scores.min() for scores in truth.values())
    best = max(scores.min() for chosen, scores in truth.items() if len(chosen) == 2)
    assert results["others"]["minimum 2"]["objective"] == pytest.approx(best, abs=1e-7) != least
    best = max(np.sort(scores)[1] for chosen, scores in truth.items() if len(chosen) == 2)
    found = results["others"]["percentile 25 2"]["objective"]
    assert found == pytest.approx(best, abs=1e-7)  # rank 2 of 10


def test_the_game_is_counted_as_figure_5_5_is(results, truth):
    game = results["game"]
    pairs = {chosen: scores for chosen, scores in truth.items() if len(chosen) == 2}
    joint = pairs[tuple(game["joint"])]
    own = np.max(list(pairs.values()), axis=0)
    gaining = own > joint + 1e-7
    assert game["prefer their own, %"] == pytest.approx(100 * gaining.mean())
    assert game["mean gain of those"] == pytest.approx((own - joint)[gaining].mean(), abs=1e-6)
    support = 100 * (pairs[tuple(game["most supported"])] > joint + 1e-7).mean()
    assert game["most support, %"] == pytest.approx(support)
    assert sum(game["counts"]) == 10
    assert game["proven"] == 10


def test_what_is_there_is_not_measured_again(docs, monkeypatch, capsys):
    for job in ("heuristics", "proof", "game", "select_outputs", "_compile"):
        monkeypatch.setattr(dea_panel, job, None)
    dea_panel.main(list(dea_panel.PARTS), SMALL, False, docs)
    assert capsys.readouterr().out == ""
    with pytest.raises(TypeError, match="not callable"):
        dea_panel.main(["joint"], replace(SMALL, seed=1), False, docs)


def test_an_interrupted_run_is_taken_up_where_it_was(results, tmp_path, monkeypatch):
    proof = dea_panel.proof

    def interrupted(panel, p, *others):
        if p == 2:
            raise KeyboardInterrupt
        return proof(panel, p, *others)

    monkeypatch.setattr(dea_panel, "proof", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dea_panel.main(["joint"], SMALL, False, tmp_path)
    stored = json.loads((tmp_path / "results" / "dea_panel.json").read_text(encoding="utf-8"))
    assert list(stored["joint"]) == ["1"]
    monkeypatch.setattr(dea_panel, "proof", proof)
    monkeypatch.setattr(dea_panel, "heuristics", None)
    dea_panel.main(["joint", "document"], SMALL, False, tmp_path)
    again = json.loads((tmp_path / "results" / "dea_panel.json").read_text(encoding="utf-8"))
    assert again["joint"]["1"] == stored["joint"]["1"]
    assert again["joint"]["3"]["outputs"] == results["joint"]["3"]["outputs"]
    assert "Not measured." in (tmp_path / "dea_panel.md").read_text(encoding="utf-8")


def test_no_more_time_is_taken_than_there_is(results):
    panel, _ = dea_panel.synthetic_panel(SMALL.units, SMALL.outputs, SMALL.seed)
    done = {"heuristics": results["heuristics"], "joint": {"1": results["joint"]["1"]}}
    begun = done["heuristics"]["seconds"] + done["joint"]["1"]["seconds"]
    found = dea_panel.proof(panel, 2, done, replace(SMALL, total=begun + 8))
    assert found["limit"] == pytest.approx(4)
    assert dea_panel.proof(panel, 2, done, replace(SMALL, seconds=2.5))["limit"] == 2.5
    assert dea_panel.proof(panel, 2, done, replace(SMALL, total=0.01))["limit"] == 0.1


def test_the_document_says_whether_it_is_kept(docs, results):
    text = (docs / "dea_panel.md").read_text(encoding="utf-8")
    assert text.startswith("# Selection of outputs at the size of the thesis's panel")
    assert "10 units, one input and 15 correlated outputs, made from seed 0" in text
    assert "| p = 3 proven within a minute | optimal, " in text
    assert "**not kept**" not in text
    for p, one in results["joint"].items():
        assert f"| {p} | {one['objective']:.4f} | " in text
    slow = json.loads(json.dumps(results))
    slow["joint"]["3"]["seconds"] = 61.0
    assert "optimal, 61.0 s | **not kept** |" in dea_panel.render(slow)
    slow["joint"]["3"] |= {"seconds": 1.0, "status": "time limit"}
    assert "time limit, 1.00 s | **not kept** |" in dea_panel.render(slow)
