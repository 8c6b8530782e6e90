"""The comparison of calibrations: its methods are what they say, its numbers right, runs resume."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.svm import SVC

from bootprob.calibration import VennAbers
from docs.studies.calibration import comparison, document
from docs.studies.calibration import methods as calibration_methods
from docs.studies.calibration.losses import LOSSES, compare, summarise
from docs.studies.calibration.methods import (
    CALIBRATED,
    OURS,
    PEERS,
    OutOfBag,
    ScoreAsProbability,
    of_peers,
    tuned_svc,
)
from docs.studies.calibration.store import Store
from gpu.benchmarks.common import datasets
from linear_models import linear

GIVEN = {"bootstraps": 12, "rows": 1000, "seed": 4}


def two_clouds(rng, n: int = 90, share: float = 0.4, apart: float = 0.8):
    positive = rng.permutation(np.arange(n) < share * n)
    return rng.normal(size=(n, 3)) + apart * positive[:, None], positive


# What is compared


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_training_gives_what_a_training_for_each_calibration_gives(rng, kernel):
    X, positive = two_clouds(rng)
    new = rng.normal(size=(7, 3))
    options = {"kernel": kernel, "n_bootstraps": 15, "random_state": 3, "class_weight": None}
    found, chosen = OutOfBag.of_ensemble(X, positive, new, **options).probabilities()
    assert set(found) == set(OURS)
    for calibration in OURS:
        model = linear(calibration=calibration, **options).fit(X, positive)
        np.testing.assert_allclose(
            found[calibration], model.predict_proba(new)[:, 1], rtol=0, atol=1e-7
        )
        if calibration == "auto":
            assert model.calibration_ == chosen


def test_rows_never_out_of_bag_teach_nothing(rng):
    X, positive = two_clouds(rng, n=40)
    options = {
        "kernel": "linear", "n_bootstraps": 2, "random_state": 1, "calibration": "isotonic",
    }  # fmt: skip
    found = OutOfBag.of_ensemble(X, positive, X[:5], **options)
    assert np.isnan(found.scores).any()
    model = linear(**options).fit(X, positive)
    np.testing.assert_allclose(
        found.probabilities()[0]["isotonic"], model.predict_proba(X[:5])[:, 1]
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_peers_svc_is_the_one_that_cross_validates_best(rng, kernel):
    X, positive = two_clouds(rng, n=80)
    X[:, 0] *= 1e3
    splitter = StratifiedKFold(5, shuffle=True, random_state=2)
    svc, C = tuned_svc(X, positive, kernel, splitter)
    scores = {
        k: cross_val_score(
            clone(svc).set_params(svc__C=2.0**k), X, positive, cv=splitter, scoring="accuracy"
        ).mean()
        for k in range(-5, 6)
    }
    assert scores[round(np.log2(C))] == pytest.approx(max(scores.values()))
    assert svc["svc"].C == C
    assert svc["svc"].kernel == kernel
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    direct = SVC(kernel=kernel, C=C, gamma=1 / 3).fit(standardised, positive)
    np.testing.assert_allclose(
        svc.fit(X, positive).decision_function(X), direct.decision_function(standardised)
    )


def test_peers_are_what_their_names_say(rng):
    pytest.importorskip("venn_abers")
    X, positive = two_clouds(rng, n=70)
    new = rng.normal(size=(9, 3))
    before = np.geterr()
    found, C = of_peers(X, positive, new, kernel="linear", inner_folds=5, seed=8)
    assert np.geterr() == before
    assert tuple(found) == PEERS
    splitter = StratifiedKFold(5, shuffle=True, random_state=8)
    svc, again = tuned_svc(X, positive, "linear", splitter)
    assert again == C
    for name, options in CALIBRATED.items():
        method, _, how = name.partition(", ")
        assert options == {"method": method, "ensemble": how == "ensemble"}
        model = CalibratedClassifierCV(svc, cv=splitter, **options).fit(X, positive)
        np.testing.assert_allclose(found[name], model.predict_proba(new)[:, 1])
    # Venn–Abers by the implementation of this project, on the same splits.
    rows = train_test_split(np.arange(70), test_size=0.2, random_state=8, stratify=positive)
    lower, upper = _bounds(svc, X, positive, new, *rows)
    np.testing.assert_allclose(
        found["Venn–Abers, inductive"], upper / (1 - lower + upper), atol=1e-6
    )
    folds = [_bounds(svc, X, positive, new, *fold) for fold in splitter.split(X, positive)]
    below = np.exp(np.mean([np.log(1 - lower) for lower, _ in folds], axis=0))
    above = np.exp(np.mean([np.log(upper) for _, upper in folds], axis=0))
    np.testing.assert_allclose(found["Venn–Abers, cross"], above / (below + above), atol=1e-6)


def _bounds(svc, X, positive, new, proper, asked):
    fitted = clone(svc).fit(X[proper], positive[proper])
    calibrator = VennAbers.fit(
        fitted.decision_function(X[asked]), positive[asked], np.ones(len(asked))
    )
    return calibrator.bounds(fitted.decision_function(new)).T


def test_squeezed_scores_keep_their_order(rng):
    X, positive = two_clouds(rng)
    model = ScoreAsProbability(SVC(C=100.0)).fit(X, positive)
    scores = model.estimator_.decision_function(X)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert ((probability > 0) & (probability < 1)).all()
    np.testing.assert_array_equal(np.argsort(scores), np.argsort(probability[:, 1]))
    np.testing.assert_array_equal(model.predict(X), probability[:, 1] > 0.5)


# Losses and comparisons


def test_losses_are_scikit_learns(rng):
    positive = rng.random(50) < 0.5
    p = rng.random(50)
    assert LOSSES["Brier score"](p, positive).mean() == pytest.approx(brier_score_loss(positive, p))
    assert LOSSES["log-loss"](p, positive).mean() == pytest.approx(log_loss(positive, p))
    certain = LOSSES["log-loss"](np.array([0.0, 1.0, 0.0, 1.0]), np.array([1, 0, 0, 1]) > 0)
    np.testing.assert_allclose(certain, [-np.log(1e-15)] * 2 + [0, 0])


def test_comparison_is_that_of_the_rows_and_of_the_folds(rng):
    folds = []
    for n in (20, 21, 19, 20):
        positive = rng.random(n) < 0.4
        folds.append(({"a": rng.random(n), "b": rng.random(n), "c": rng.random(n)}, positive))
    kept = json.loads(json.dumps(summarise(folds, [("a", "b"), ("c", "c")])))
    for name, loss in LOSSES.items():
        gaps = [loss(by["a"], positive) - loss(by["b"], positive) for by, positive in folds]
        found = compare(kept, name, "a", "b", rows=80)
        rows = np.concatenate(gaps)
        assert found.difference == pytest.approx(rows.mean(), abs=1e-9)
        low, high = stats.norm.interval(0.95, rows.mean(), stats.sem(rows))
        assert found.of_rows == pytest.approx((high - low) / 2, rel=1e-6)
        means = np.array([gap.mean() for gap in gaps])
        error = np.sqrt((1 / 4 + 20 / 60) * means.var(ddof=1))
        assert found.of_folds == pytest.approx(stats.t.ppf(0.975, 3) * error, rel=1e-6)
        assert found.verdict == (0 if low <= 0 <= high else -np.sign(rows.mean()))
        same = compare(kept, name, "c", "c", rows=80)
        assert (same.difference, same.of_rows, same.of_folds, same.verdict) == (0, 0, 0, 0)


def test_a_difference_without_spread_is_a_verdict(rng):
    positive = rng.random(30) < 0.5
    near = np.where(positive, 0.99, 0.01)
    folds = [({"near": near, "sure": positive * 1.0}, positive)]
    kept = summarise(folds, [("near", "sure"), ("sure", "near")])
    for loss in LOSSES:
        assert compare(kept, loss, "near", "sure", rows=300).verdict == -1
        assert compare(kept, loss, "sure", "near", rows=300).verdict == 1
        assert compare(kept, loss, "sure", "near", rows=300).of_folds == np.inf


# Running and resuming


@pytest.fixture
def calls(monkeypatch, rng):
    """Two small tables, peers that are quick, and a list of what is trained."""
    tables = {"wisconsin": two_clouds(rng, n=60), "zoo": two_clouds(rng, n=44, apart=9.0)}
    monkeypatch.setattr(comparison, "LOADERS", {n: lambda n=n: tables[n] for n in tables})
    monkeypatch.setattr(datasets, "at_hand", tables.__contains__)
    monkeypatch.setattr(comparison, "find_spec", lambda name: name)
    monkeypatch.setattr(comparison, "of_peers", _quick_peers)
    made: list[str] = []
    real = comparison.measure
    monkeypatch.setattr(
        comparison, "measure", lambda *given: (made.append(given[3]), real(*given))[1]
    )
    return made


@pytest.fixture
def quick_choice(monkeypatch):
    """A choice among calibrations that fits nothing, for what does not look at it."""
    monkeypatch.setattr(calibration_methods, "choose_calibration", lambda *given: "beta")


def _quick_peers(X, positive, X_new, *, kernel, inner_folds, seed):
    """Peers that know nothing, and one that is sure."""
    assert (kernel, inner_folds, seed) == ("linear", 5, GIVEN["seed"])
    found = {name: np.full(len(X_new), 0.3 + 0.05 * i) for i, name in enumerate(PEERS)}
    return found | {"isotonic, pooled": (X_new.sum(axis=1) > X.sum(axis=1).mean()) * 1.0}, 0.5


def results_in(folder) -> dict:
    path = folder / "results" / comparison.FILE
    return json.loads(path.read_text(encoding="utf-8"))["data sets"]


def run(folder, names=("wisconsin",), groups=("ours", "peers"), given=None, **options):
    comparison.main(
        names, ["linear"], groups, GIVEN | (given or {}), folder, folder / "kept", **options
    )


def test_runs_resume_fold_by_fold_and_group_by_group(
    calls, quick_choice, monkeypatch, tmp_path, capsys
):
    real = comparison.measure

    def interrupted(*given):
        if len(calls) == 5:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(comparison, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, folds=4)
    assert results_in(tmp_path)["wisconsin"]["linear"]["folds"] == 2
    monkeypatch.setattr(comparison, "measure", real)
    run(tmp_path, folds=4)
    assert calls == ["ours", "peers"] * 4
    once = results_in(tmp_path)["wisconsin"]["linear"]
    run(tmp_path / "whole", folds=4)
    whole = results_in(tmp_path / "whole")["wisconsin"]["linear"]
    assert once["log-loss"] == whole["log-loss"]
    assert once["chosen"] == whole["chosen"]
    calls.clear()
    run(tmp_path, folds=4)  # nothing is missing
    run(tmp_path, folds=3)
    assert calls == []
    run(tmp_path, groups=["no class weights"], folds=4)
    assert calls == ["no class weights"] * 4
    wider = results_in(tmp_path)["wisconsin"]["linear"]
    assert wider["groups"] == ["ours", "peers", "no class weights"]
    assert wider["log-loss"]["means"].items() >= once["log-loss"]["means"].items()
    calls.clear()
    run(tmp_path, groups=["peers"], folds=4, again=True)
    assert calls == ["peers"] * 4
    assert results_in(tmp_path)["wisconsin"]["linear"]["log-loss"] == wider["log-loss"]
    calls.clear()
    run(tmp_path, given={"seed": 4, "bootstraps": 13}, folds=1)  # other settings
    assert calls == ["ours", "peers"]
    calls.clear()
    run(tmp_path, ("zoo", "heart"), seconds=0)
    assert calls == []
    assert "out of time" in capsys.readouterr().out
    run(tmp_path, ("heart",))
    assert "heart: left out" in capsys.readouterr().out


def test_calibrators_are_fitted_again_to_what_is_kept(calls, quick_choice, tmp_path, capsys):
    run(tmp_path, folds=2)
    before = results_in(tmp_path)
    (tmp_path / "results" / comparison.FILE).unlink()
    calls.clear()
    run(tmp_path, folds=2)
    assert calls == []
    assert results_in(tmp_path) == before
    damaged = next((tmp_path / "kept").glob("*-ours-1.npz"))
    damaged.write_bytes(damaged.read_bytes()[:300])
    (tmp_path / "results" / comparison.FILE).unlink()
    with pytest.raises(SystemExit, match="is damaged; delete it"):
        run(tmp_path, folds=2)
    capsys.readouterr()


def test_losses_are_those_of_the_estimators(calls, tmp_path, capsys):
    run(tmp_path, groups=["ours", "peers", "accuracy weights"], folds=2)
    found = results_in(tmp_path)["wisconsin"]["linear"]
    X, positive = comparison.LOADERS["wisconsin"]()
    training, held_out = comparison.splits(X, positive, GIVEN["seed"])[1]
    for method, options in (
        ("beta", {"calibration": "beta"}),
        ("accuracy weights: auto", {"calibration": "auto", "weighting": "accuracy"}),
    ):
        model = linear(n_bootstraps=12, random_state=GIVEN["seed"], **options)
        p = model.fit(X[training], positive[training]).predict_proba(X[held_out])[:, 1]
        means = {loss: found[loss]["means"][method][1] for loss in LOSSES}
        assert means["Brier score"] == pytest.approx(brier_score_loss(positive[held_out], p))
        assert means["log-loss"] == pytest.approx(log_loss(positive[held_out], p))
    capsys.readouterr()


def test_large_tables_are_cut_down_alike_for_all(calls, quick_choice, tmp_path, capsys):
    run(tmp_path, given={"rows": 35}, folds=1)
    found = results_in(tmp_path)["wisconsin"]
    assert (found["rows"], found["positives"]) == (35, 14)
    assert found["linear"]["held out"] == [4]
    capsys.readouterr()


def test_a_missing_package_is_said_before_any_work(calls, monkeypatch, tmp_path):
    monkeypatch.setattr(comparison, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="venn-abers"):
        run(tmp_path)
    assert calls == []


def test_store_keeps_settings_and_groups_apart(tmp_path):
    stores = [Store(tmp_path, "a-linear", {"rows": rows}) for rows in (10, 20)]
    stores[0].put("no class weights", 3, {"p x": np.array([0.25]), "chosen": 2.0})
    assert stores[0].has("no class weights", 3)
    assert not stores[0].has("ours", 3)
    assert not stores[0].has("no class weights", 4)
    assert not stores[1].has("no class weights", 3)
    _, by, chosen = Store(tmp_path, "a-linear", {"rows": 10}).get("no class weights", 3)
    assert (by["x"].tolist(), chosen) == ([0.25], 2.0)


# The document


def test_document_compares_with_the_best_peer_of_each_table(calls, quick_choice, tmp_path, capsys):
    run(tmp_path, ("wisconsin", "zoo"), groups=None, folds=3)
    capsys.readouterr()
    text = (tmp_path / "calibration.md").read_text(encoding="utf-8")
    found = results_in(tmp_path)
    assert found["wisconsin"]["linear"]["groups"] == list(comparison.GROUPS)
    assert found["zoo"]["linear"]["groups"] == ["ours", "peers", "accuracy weights"]
    pairs = [
        [
            np.average(cell["log-loss"]["means"][method], weights=cell["held out"])
            for method in ("accuracy weights: sigmoid", "sigmoid")
        ]
        for cell in (found[name]["linear"] for name in ("wisconsin", "zoo"))
    ]
    other, default = np.mean(pairs, axis=0)
    assert f"| linear, `sigmoid`, accuracy weights | 2 | {other:.4f} | {default:.4f} |" in text
    assert "| linear, `sigmoid`, no class weights | 1 |" in text
    losses = pd.read_csv(tmp_path / "results" / "calibration" / "losses.csv")
    losses = losses.set_index(["kernel", "table", "method"])
    gaps = pd.read_csv(tmp_path / "results" / "calibration" / "differences.csv")
    gaps = gaps.set_index(["kernel", "table", "loss", "one", "other"]).sort_index()
    for name in ("wisconsin", "zoo"):
        cell = found[name]["linear"]
        means = {
            m: np.average(values, weights=cell["held out"])
            for m, values in cell["log-loss"]["means"].items()
        }
        peer = min(PEERS, key=lambda m, means=means: means[m])
        assert document.best_peer(cell, "log-loss") == peer
        line = next(x for x in text.splitlines() if x.startswith(f"| {name} | {peer} | "))
        gap = means["sigmoid"] - means[peer]
        shown = line.split(" | ")[2].strip("*")
        assert shown.startswith(f"{gap:+.4f} ± ")
        for method in (*OURS, *PEERS):
            stated = losses.loc[("linear", name, method), "log-loss"]
            assert stated == pytest.approx(means[method], rel=1e-4)
        row = gaps.loc[("linear", name, "log-loss", "sigmoid", peer)]
        assert row["difference"] == pytest.approx(gap, rel=1e-4)
        assert (row["verdict"] == "tie") == (abs(row["difference"]) <= row["± rows"])
    assert found["zoo"]["linear"]["log-loss"]["means"]["isotonic, pooled"] == [0, 0, 0]
    verdicts = document.unlike(found, "linear", "log-loss", "sigmoid")
    assert verdicts[-1] == ["zoo"] or "zoo" in verdicts[-1]
    assert "worse on" in text


def test_the_page_and_its_tables_are_what_the_results_make():
    text, files = document.pages()
    assert (document.DOCS / "calibration.md").read_text(encoding="utf-8") == text
    assert len(files) == 6
    for name, table in files.items():
        assert (document.DOCS / "results" / name).read_text(encoding="utf-8") == table, name


def test_document_without_results_says_how_to_get_them(tmp_path):
    path = document.main(tmp_path)
    assert "make calibration" in path.read_text(encoding="utf-8").split("Not measured")[1]
