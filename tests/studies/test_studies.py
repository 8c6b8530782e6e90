"""Studies of the thesis: tuning finds what scikit-learn finds, cells are right, runs resume."""

import argparse
import json
import math

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from bootprob import BootstrapSVC
from bootprob.preparation.bootstrap import bootstrap_counts
from docs.studies.thesis import figures as thesis_figures
from docs.studies.thesis import svm_tuning, table_2_2
from docs.studies.thesis import tables_3_2_and_3_3 as probabilities
from docs.studies.thesis import tables_3_4_to_3_7 as chapter3
from docs.studies.thesis.numbers import (
    COLUMNS,
    PAPER_PROBABILITY_ERROR,
    PRINTED_TOO,
    PROBABILITY_ERROR,
    SQUARED_ERROR,
    TABLE_2_2,
    TARGET,
    TPR_IMPOSED,
)
from docs.studies.thesis.studies_document import main as write_document
from docs.studies.thesis.studies_probabilities import DATA_SETS
from docs.studies.thesis.svm_tuning import Grid, asked_share, choose
from gpu.benchmarks.common import datasets
from gpu.benchmarks.common.datasets import FOLDER
from gpu.benchmarks.common.study_results import save


def two_clouds(rng, n: int = 90, share: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    positive = rng.permutation(np.arange(n) < share * n)
    return rng.normal(size=(n, 3)) + 0.8 * positive[:, None], positive


@pytest.fixture
def small_grid(monkeypatch):
    monkeypatch.setattr(svm_tuning, "DEFAULT_C", (0.5, 4.0))
    monkeypatch.setattr(svm_tuning, "PAPER_GAMMA", (0.05, 0.5))


# Numbers of the thesis


@pytest.mark.parametrize("name", [name for name in TARGET if name not in PRINTED_TOO])
def test_printed_targets_are_the_printed_rate_of_the_svm_and_a_step(name):
    assert TARGET[name] == pytest.approx(TABLE_2_2[name]["svm"][0] + table_2_2.STEP, abs=1e-9)
    assert set(COLUMNS) == set(TARGET) == set(TABLE_2_2)


def test_printed_tables_agree_where_nothing_is_imposed():
    for own in SQUARED_ERROR.values():
        assert set(own["threshold"]) == set(own["constrained"]) == set(chapter3.NAMES)
        for name in chapter3.NAMES:
            both = own["threshold"][name], own["constrained"][name]
            assert both[0][0] == both[1][0]
            assert all(len(printed) == 1 + len(TPR_IMPOSED) for printed in both)


def test_what_the_document_says_of_the_printed_ctrl1_is_so():
    errors = {own: tables["threshold"].values() for own, tables in SQUARED_ERROR.items()}
    cells = {
        own: [(value, row[0]) for row in rows for value in row[1:] if value is not None]
        for own, rows in errors.items()
    }
    assert len(cells["positives"]) == len(cells["negatives"]) == 16
    assert sum(value < none for value, none in cells["negatives"]) == 5
    assert sum(abs(value - none / 2) <= 0.0011 for value, none in cells["positives"]) == 11


def test_what_the_document_says_of_the_printed_probabilities_is_so():
    assert set(DATA_SETS) == set(probabilities.NAMES)
    thesis = {name: row for name, row in PROBABILITY_ERROR.items() if "Sollich" in row}
    assert len(thesis) == 8
    assert sum(row["Sollich"] >= 0.2 for row in thesis.values()) == 4
    gene = thesis["leukemia"]
    assert gene["Sollich"] == 0.238
    assert all(value < 0.02 for method, value in gene.items() if method != "Sollich")
    assert len({value for method, value in gene.items() if method.startswith("Tao")}) == 1
    for name, method, values in (
        ("wisconsin", "bootstrap", (0.018, 0.003)),
        ("banknote", "Platt", (0.09, 0.008)),
        ("divorce", "bootstrap", (0.059, 0)),
        ("german", "best C", (0.24, 0.28)),
    ):
        both = PROBABILITY_ERROR[name][method], PAPER_PROBABILITY_ERROR[name][method]
        assert both == values


def test_printed_best_c_counts_rows_of_one_fold():
    rows = {  # of the validation sample, thesis table 3.1
        **{"australian": 69, "banknote": 137, "careval": 173, "german": 100, "heart": 72},
        **{"housing": 51, "leukemia": 7, "wisconsin": 57, "divorce": 17},
    }
    whole = {
        name
        for name, n in rows.items()
        if any(round(k / n, 3) == PROBABILITY_ERROR[name]["best C"] for k in range(n + 1))
    }
    assert set(rows) == set(PROBABILITY_ERROR)
    assert set(rows) - whole == {"careval"}


# Tuning


@pytest.mark.parametrize(("least", "n"), [(0.855, 138), (0.5, 20), (0.988, 120), (0.2, 1)])
def test_share_asked_is_hoeffdings(least, n):
    share = asked_share(least, n)
    if share < 1:  # (2.3): a rate of p0 shows a share of p* or more with probability 5 % at most
        assert math.exp(-2 * n * (share - least) ** 2) == pytest.approx(0.05)
    else:
        assert math.exp(-2 * n * (1 - least) ** 2) >= 0.05


@pytest.mark.parametrize("criterion", ["accuracy", "G-mean"])
def test_tuning_finds_what_a_search_with_scikit_learn_finds(rng, criterion):
    X, positive = two_clouds(rng)
    costs = np.array([[[0.5, 1.0], [4.0, 1.0]], [[0.5, 8.0], [4.0, 8.0]]])
    gamma = np.array([0.05, 0.5])
    found = choose(X, positive, Grid(costs, gamma), criterion, folds=3, seed=5)
    splitter = StratifiedKFold(3, shuffle=True, random_state=5)
    best = {}
    for g in gamma:
        for positive_cost, negative_cost in costs.reshape(-1, 2):
            svc = SVC(gamma=g, class_weight={True: positive_cost / 2, False: negative_cost / 2})
            svc.set_params(tol=1e-5)
            scores = [
                cross_val_score(svc, X, positive, cv=splitter, scoring=scoring)
                for scoring in ("recall", _specificity)
            ]
            tpr, tnr = scores
            mean = {
                "accuracy": cross_val_score(svc, X, positive, cv=splitter).mean(),
                "G-mean": np.sqrt(tpr * tnr).mean(),
            }
            best[g, positive_cost, negative_cost] = mean[criterion]
    chosen = best[found.gamma, found.C_positive, found.C_negative]
    # The engine stops at libsvm's tolerance: a row within 1e-3 of 0 may fall on the other side.
    assert found.criterion == pytest.approx(chosen, abs=0.02)
    assert found.criterion >= max(best.values()) - 0.02


def _specificity(model, X, positive):
    return (~model.predict(X)[~positive]).mean()


@pytest.mark.parametrize("per_class", [False, True])
def test_constrained_machines_of_the_tuning_keep_the_anchors_asked_for(rng, per_class):
    X, positive = two_clouds(rng, n=120)
    inside = np.ones((2, 120), dtype=bool)
    inside[0, :30] = inside[1, -30:] = False
    bounds = np.full((2, 1, 120), 3.0)
    gamma = np.array([0.2])
    scores = svm_tuning._constrained_scores(
        X, positive, inside, bounds, gamma, 0.6, per_class=per_class
    )
    for fold, rows in enumerate(inside):
        used = np.flatnonzero(rows)
        first, last = used[:45], used[45:]
        anchors = last[positive[last]]
        asked = math.ceil(asked_share(0.6, len(anchors)) * len(anchors) - 1e-9)
        assert (scores[fold, 0, anchors] >= 1 - 5e-3).sum() >= asked
        # The same machine by scikit-learn: I with its costs, and the kept anchors as hard rows.
        cost = np.full(120, 3.0)
        plain = SVC(C=1, gamma=0.2, tol=1e-6)
        if per_class:
            cost = 3.0 / np.where(positive, positive[used].sum(), (~positive[used]).sum())
        plain.fit(X[used], positive[used], sample_weight=cost[used])
        kept = anchors[np.argsort(-plain.decision_function(X[anchors]), kind="stable")[:asked]]
        if per_class:
            cost = 3.0 / np.where(positive, positive[first].sum(), (~positive[first]).sum())
        trained = np.concatenate([first, kept])
        weight = np.concatenate([cost[first], np.full(len(kept), 1e4)])
        machine = SVC(C=1, gamma=0.2, tol=1e-6)
        machine.fit(X[trained], positive[trained], sample_weight=weight)
        np.testing.assert_allclose(scores[fold, 0], machine.decision_function(X), atol=2e-2)


# Table 2.2


def test_every_method_meets_what_is_asked_of_the_anchors(rng, small_grid):
    X, positive = two_clouds(rng, n=150)
    found = {"settings": {"folds": 3, "inner folds": 2, "seed": 0}}
    table_2_2.measure("made up", X, positive, found, lambda: None)
    target = found["targets"]["measured"]
    plain = np.mean([row["tpr"] for row in found["methods"]["svm"]])
    assert target["TPR"] == pytest.approx(plain + 0.025)
    folds = table_2_2.folds_of(X, positive, found["settings"])
    for rows in target["methods"].values():
        for fold, row in zip(folds, rows, strict=True):
            J = fold.positive[len(fold.positive) // 2 :]
            assert row["share asked"] == asked_share(target["TPR"], J.sum())
            assert row["share of anchors"] >= row["share asked"] - 1e-9
            assert 0 <= row["tpr"] <= 1
            assert 0 <= row["tnr"] <= 1
    held_out = np.concatenate([fold.X_held_out for fold in folds])
    assert len(held_out) == len(np.unique(held_out, axis=0)) == 150


def test_table_2_2_resumes_and_writes_the_document(small_grid, monkeypatch, tmp_path, capsys):
    settings = {"folds": 2, "inner folds": 2, "seed": 3}
    table_2_2.main(["wisconsin"], settings, tmp_path)
    monkeypatch.setattr(table_2_2, "choose", lambda *_, **__: pytest.fail("measured again"))
    exact = {"name": "wisconsin", "folds": 1, "seconds": 5.0}
    table_2_2.main(["wisconsin"], settings, tmp_path, exact=exact)
    results = json.loads((tmp_path / "results" / "table_2_2.json").read_text(encoding="utf-8"))
    found = results["data sets"]["wisconsin"]
    heuristic = found["targets"]["measured"]["methods"]["constrained"][0]
    assert found["exact"]["folds"][0]["objective"] <= heuristic["objective"] * (1 + 1e-6)
    text = (tmp_path / "studies.md").read_text(encoding="utf-8")
    assert "| SVM | – | – | 0.948 (0.049) |" in text
    assert f"{found['targets']['measured']['TPR']:.3f}" in text
    capsys.readouterr()


@pytest.mark.skipif(not (FOLDER / "votes").exists(), reason="data absent")
def test_democrats_are_the_positives_of_votes():
    _, positive = table_2_2.rows_of("votes")
    assert positive.sum() == 267


# Tables 3.2 and 3.3


def settings_for(methods, bootstraps=3, inner_folds=2, seed=0):
    return {m: probabilities.settings_of(m, bootstraps, inner_folds, seed) for m in methods}


def results_in(folder) -> dict:
    path = folder / "results" / probabilities.FILE
    return json.loads(path.read_text(encoding="utf-8"))["data sets"]


@pytest.fixture
def two_data_sets(monkeypatch, rng):
    """Small tables in place of two of the thesis's."""
    tables = {name: two_clouds(rng, n=60, share=0.3) for name in ("wisconsin", "german")}
    monkeypatch.setattr(probabilities, "LOADERS", {n: lambda n=n: tables[n] for n in tables})
    monkeypatch.setattr(datasets, "at_hand", tables.__contains__)
    return tables


@pytest.mark.parametrize("method", probabilities.METHODS)
def test_a_fold_is_the_squared_error_of_that_estimator(rng, method):
    X, positive = two_clouds(rng, n=60)
    given = probabilities.settings_of(method, 5, 2, 3)
    training, held_out = probabilities.splits(X, positive, given)[4]
    found = probabilities.measure(X, positive, training, held_out, method, given)
    model = probabilities.METHODS[method](given).fit(X[training], positive[training])
    stated = model.predict_proba(X[held_out])
    np.testing.assert_allclose(stated.sum(axis=1), 1)
    pairs = zip(stated[:, 1], positive[held_out], strict=True)
    expected = sum((p - y) ** 2 for p, y in pairs) / len(held_out)
    assert found["squared error"] == pytest.approx(expected, abs=1e-12)
    assert 0 <= found["squared error"] <= 1


def test_methods_are_what_their_names_say():
    made = {
        m: probabilities.METHODS[m](given)
        for m, given in settings_for(probabilities.METHODS).items()
    }
    paper = BootstrapSVC.paper(n_bootstraps=3, random_state=0)
    assert made["bootstrap"].get_params() == paper.get_params()
    assert (
        made["default"].get_params()
        == BootstrapSVC(kernel="linear", n_bootstraps=3, random_state=0).get_params()
    )
    assert made["rbf"].kernel == "rbf"
    for name, r in (("0", 0), ("√10", 10), ("√20", 20), ("√30", 30)):
        assert made[f"Tao, r = {name}"].r ** 2 == pytest.approx(r)
    for method, model in made.items():
        grid = getattr(model, "C", None)
        if method not in ("default", "rbf") and grid is not None:
            np.testing.assert_allclose(grid, 2.0 ** np.arange(-6, 5))  # half of the thesis's
        if "cv" in model.get_params():
            assert model.cv == 2


def test_folds_partition_the_rows_and_keep_the_classes(rng):
    X, positive = two_clouds(rng, n=100, share=0.3)
    folds = probabilities.splits(X, positive, {"seed": 5})
    held_out = np.concatenate([rows for _, rows in folds])
    assert sorted(held_out) == list(range(100))
    for training, rows in folds:
        assert len(training) + len(rows) == 100
        assert positive[rows].sum() == 3


def test_tables_3_2_resume_fold_by_fold(two_data_sets, monkeypatch, tmp_path, capsys):
    methods = ["bootstrap", "default"]
    settings = settings_for(methods)
    real = probabilities.measure
    calls = []

    def interrupted(*given):
        if len(calls) == 7:
            raise KeyboardInterrupt
        calls.append(given[4])
        return real(*given)

    monkeypatch.setattr(probabilities, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        probabilities.main(["wisconsin"], methods, settings, tmp_path, folds=4)
    cells = results_in(tmp_path)["wisconsin"]["cells"]
    assert [len(cells[m]["folds"]) for m in methods] == [4, 3]
    monkeypatch.setattr(probabilities, "measure", lambda *g: calls.append(g[4]) or real(*g))
    probabilities.main(["wisconsin"], methods, settings, tmp_path, folds=4)
    assert calls == ["bootstrap"] * 4 + ["default"] * 4
    again = results_in(tmp_path)["wisconsin"]["cells"]
    assert again["bootstrap"] == cells["bootstrap"]
    # In one go the same numbers come out.
    probabilities.main(["wisconsin"], methods, settings, tmp_path / "whole", folds=4)
    whole = results_in(tmp_path / "whole")["wisconsin"]["cells"]
    for method in methods:
        errors = [
            [fold["squared error"] for fold in cell[method]["folds"]] for cell in (again, whole)
        ]
        np.testing.assert_allclose(*errors, rtol=1e-12)
    # Other settings are measured anew, and so is what is asked for again.
    calls.clear()
    other = settings_for(methods, seed=1) | {"default": settings["default"]}
    probabilities.main(["wisconsin"], methods, other, tmp_path, folds=4)
    assert calls == ["bootstrap"] * 4
    probabilities.main(["wisconsin"], ["default"], settings, tmp_path, folds=2, again=True)
    assert calls[4:] == ["default"] * 2
    calls.clear()
    probabilities.main(["wisconsin", "heart"], methods, settings, tmp_path, seconds=0, again=True)
    assert calls == []
    assert "heart: left out" in capsys.readouterr().out


def test_document_has_printed_and_measured_probabilities(two_data_sets, tmp_path, capsys):
    methods = ["bootstrap", "default", "best C"]
    probabilities.main(["german", "wisconsin"], methods, settings_for(methods), tmp_path)
    probabilities.main(["wisconsin"], ["rbf"], settings_for(["rbf"]), tmp_path, folds=3)
    text = (tmp_path / "studies.md").read_text(encoding="utf-8")
    cells = results_in(tmp_path)["german"]["cells"]
    means = {
        method: np.mean([fold["squared error"] for fold in cells[method]["folds"]])
        for method in methods
    }
    tables = text.split("## Tables 3.2 and 3.3")[1].split("## Tables 3.4")[0].split("\n\n")
    lines = [line for part in tables for line in part.splitlines() if line.startswith("| german")]
    first, second, third = ([c.strip() for c in line.split("|")[2:-1]] for line in lines)
    assert first[0] == "0.210"  # 18 of 60 positives
    here = {method: f"{means[method]:.3f}" for method in methods}
    lowest = min(here["bootstrap"], here["default"])
    marked = {m: f"**{here[m]}**" if here[m] == lowest else here[m] for m in methods}
    assert first[1] == f"0.203 / 0.197 / {marked['bootstrap']}"
    assert first[2] == "0.203 / 0.229 / …"
    assert first[-2:] == [marked["default"], "…"]
    assert second == [
        f"0.240 / 0.280 / {here['best C']}",
        "…",
        f"0.203 / 0.197 / {here['bootstrap']}",
    ]
    gaps = [
        a["squared error"] - b["squared error"]
        for a, b in zip(cells["default"]["folds"], cells["bootstrap"]["folds"], strict=True)
    ]
    error = np.std(gaps, ddof=1) / np.sqrt(10)
    assert third[0] == f"{np.mean(gaps):+.4f} ± {error:.4f}"
    assert third[1:3] == ["…", "…"]
    capsys.readouterr()


def test_results_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "results" / "some.json"
    save(path, "make", {"a": 1})
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save(path, "make", {"a": object()})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


# Figures


def test_scores_of_folds_are_scikit_learns(rng):
    X, positive = two_clouds(rng, n=41)
    X[:, 1] *= 1e3
    row, k = int(rng.integers(41)), 5
    found = thesis_figures.scores_of_folds(X, positive, row, 0.5, k, seed=7)
    others = np.random.default_rng(7).permutation(np.delete(np.arange(41), row))
    expected = []
    for left_out in np.array_split(others, k):
        kept = np.setdiff1d(others, left_out)
        mean, spread = X[kept].mean(axis=0), X[kept].std(axis=0)
        svc = SVC(kernel="linear", C=0.5, tol=1e-8).fit((X[kept] - mean) / spread, positive[kept])
        expected.append(svc.decision_function((X[[row]] - mean) / spread)[0])
    np.testing.assert_allclose(found, expected, atol=0.05)  # flat near the optimum


@pytest.mark.parametrize(
    ("kind", "numbers"), [("svg", list(thesis_figures.FIGURES)), ("png", ["3.6"])]
)
def test_figures_are_written(monkeypatch, tmp_path, capsys, kind, numbers):
    monkeypatch.setattr(thesis_figures, "FOLDS", (2, 5))
    monkeypatch.setattr(thesis_figures, "at_hand", lambda name: name == "wisconsin")
    given = argparse.Namespace(data="wisconsin", bootstraps=5, seed=0)
    paths = thesis_figures.main(tmp_path / "new", given, numbers, kind)
    expected = ("3_1", "3_2", "3_3", "3_6") if kind == "svg" else ("3_6",)
    assert [path.name for path in paths] == [f"figure_{number}.{kind}" for number in expected]
    start = b"<?xml" if kind == "svg" else b"\x89PNG"
    assert all(path.read_bytes().startswith(start) for path in paths)
    capsys.readouterr()


@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")  # of 4 bootstrap samples
def test_the_same_figure_is_the_same_file(monkeypatch, tmp_path, capsys):
    given = argparse.Namespace(data="wisconsin", bootstraps=4, seed=0)
    (one,) = thesis_figures.main(tmp_path / "a", given, ["3.6"])
    (two,) = thesis_figures.main(tmp_path / "b", given, ["3.6"])
    assert one.read_bytes() == two.read_bytes()
    capsys.readouterr()


# Tables 3.4 to 3.7


def test_squared_errors_of_each_class():
    found = chapter3.evaluate(np.array([1.0, 0.4, 0.5, 0.6]), np.array([True, True, False, False]))
    assert found == pytest.approx({"positives": 0.18, "negatives": 0.305, "tpr": 0.5, "tnr": 0.5})


def test_a_cell_is_the_mean_over_folds_of_the_papers_estimator(rng):
    X, positive = two_clouds(rng, n=80)
    settings = {"bootstraps": 4, "folds": 2, "seed": 1}
    cell = chapter3.measure(X, positive, "threshold", 0.9, settings)
    splitter = StratifiedKFold(10, shuffle=True, random_state=1)
    errors = []
    for training, held_out in list(splitter.split(X, positive))[:2]:
        model = BootstrapSVC.paper(
            n_bootstraps=4, random_state=1, control="threshold", rates={"tpr": 0.9}
        ).fit(X[training], positive[training])
        found = X[held_out][positive[held_out]]
        errors.append(((1 - model.predict_proba(found)[:, 1]) ** 2).mean())
    assert cell["positives"] == pytest.approx(np.mean(errors))


def test_tables_3_resume_after_the_time_is_up(monkeypatch, tmp_path, capsys):
    plain = {"bootstraps": 3, "folds": 1, "seed": 0}
    settings = {"none": plain, "threshold": plain, "constrained": plain | {"bootstraps": 2}}
    chapter3.main(["wisconsin"], settings, tmp_path, seconds=0)
    path = tmp_path / "results" / chapter3.FILE
    chapter3.main(["wisconsin"], settings, tmp_path)
    cells = json.loads(path.read_text(encoding="utf-8"))["data sets"]["wisconsin"]["cells"]
    imposed = [t for t in TPR_IMPOSED if t > cells["none"]["tpr"]]
    keys = {f"{control} {t:g}" for control in ("threshold", "constrained") for t in imposed}
    assert set(cells) == {"none"} | keys
    monkeypatch.setattr(chapter3, "measure", lambda *_: pytest.fail("measured again"))
    chapter3.main(["wisconsin"], settings, tmp_path)
    text = (tmp_path / "studies.md").read_text(encoding="utf-8")
    wanted = ("| imposed TPR |", "| positives, Ctrl1 (3.4)")
    lines = [line for line in text.splitlines() if line.startswith(wanted)]
    header, numbers = ([cell.strip() for cell in line.split("|")[2:-1]] for line in lines)
    assert numbers[0] == f"0.036 / {cells['none']['positives']:.3f}"
    assert {f"{t:g}" for t in imposed} <= set(header)
    for t, number in zip(header[1:], numbers[1:], strict=True):
        cell = cells.get(f"threshold {t}")
        assert number.endswith("–" if cell is None else f" / {cell['positives']:.3f}")
    capsys.readouterr()


def test_training_time_counts_samples_of_more_rows_than_a_byte_holds(rng):
    X, positive = two_clouds(rng, n=700, share=0.45)
    assert chapter3.training_time(X, positive, 0.9, 2)["largest shortfall, rows"] == 0


def test_training_time_counts_what_machines_lack(rng, monkeypatch):
    X, positive = two_clouds(rng, n=60)
    found = chapter3.training_time(X, positive, 0.9, 3)
    assert found["largest shortfall, rows"] == 0
    assert found["machines"] == 33
    # Trained for less than is counted, some machine lacks rows: as many as a plain count says.
    real = BootstrapSVC.paper

    def easier(**options):
        return real(**options | {"rates": {"tpr": 0.5}})

    monkeypatch.setattr(chapter3.BootstrapSVC, "paper", easier)
    lacking = chapter3.training_time(X, positive, 1.0, 3)["largest shortfall, rows"]
    model = easier(control="constrained", n_bootstraps=3, random_state=0).fit(X, positive)
    counts, _ = bootstrap_counts(positive, np.ones(60), range(3), model.entropy_)
    rows = np.where(positive)[0]
    expected = 0
    for b in range(3):
        for r in range(11):
            f = (X - model.center_) / model.scale_ @ model.bootstrap_coef_[b, r]
            f += model.bootstrap_intercept_[b, r]
            expected = max(expected, sum(int(counts[b, i]) for i in rows if f[i] < 1 - 1e-6))
    assert lacking == expected > 0


def test_document_of_nothing_measured_says_so(tmp_path):
    text = write_document(tmp_path).read_text(encoding="utf-8")
    assert text.count("Not measured") == 4
