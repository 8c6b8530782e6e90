"""Beside other classifiers: each is what its name says, runs resume, numbers are right."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

from docs.studies.calibration import classifier_comparison as comparison
from docs.studies.calibration import classifier_results as results
from docs.studies.calibration import classifier_tables as tables
from docs.studies.calibration import classifiers, details
from docs.studies.calibration.classifiers import PEERS, SIGMOID, Classifier, measure
from docs.studies.calibration.comparison import splits
from gpu.benchmarks.common import datasets

GIVEN = {"rows": 1000, "seed": 4}


def two_clouds(rng, n: int = 60):
    positive = rng.permutation(np.arange(n) < 0.4 * n)
    return rng.normal(size=(n, 3)) + 0.8 * positive[:, None], positive


class Bayes(GaussianNB):
    """States of every training row what it has learned from it."""

    def fit(self, X, y):
        super().fit(X, y)
        self.oob_proba_ = self.predict_proba(X)
        return self


def quick(**options):
    return Classifier(lambda X, positive, splitter, seed: (Bayes(), "as it is"), **options)


@pytest.fixture
def table(monkeypatch, rng):
    """One table and classifiers that train in no time."""
    found = two_clouds(rng)
    made = {"BootstrapSVC": quick(), "bayes": quick(calibrations=(SIGMOID,))}
    made |= {"narrow": quick(widest=2), "last": quick(slow=True)}
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for module in (classifiers, results, tables):
        monkeypatch.setattr(module, "CLASSIFIERS", made)
    for module in (classifiers, details, results, tables):
        monkeypatch.setattr(module, "OURS", {"BootstrapSVC": made["BootstrapSVC"]})
    monkeypatch.setattr(comparison, "write_document", lambda docs: docs)
    monkeypatch.setattr(comparison, "LOADERS", {"zoo": lambda: found})
    monkeypatch.setattr(datasets, "at_hand", {"zoo"}.__contains__)
    return found


def run(folder, names=("BootstrapSVC", "bayes", "narrow"), **options):
    comparison.main(["zoo"], names, GIVEN, folder, folder / "kept", **options)


def test_tuning_takes_the_lowest_log_loss_and_calibrates_what_it_found(rng):
    X, positive = two_clouds(rng)
    found = measure("logistic regression, tuned", X, positive, X[:5], seed=3)
    splitter = StratifiedKFold(5, shuffle=True, random_state=3)
    standardised = classifiers._logistic(3)
    scores = {
        k: cross_val_score(
            standardised.set_params(logisticregression__C=10.0**k),
            X,
            positive,
            cv=splitter,
            scoring="neg_log_loss",
        ).mean()
        for k in range(-3, 4)
    }
    best = max(scores, key=scores.__getitem__)
    assert found["chosen"] == f"C {10.0**best:g}"
    direct = (X - X.mean(axis=0)) / X.std(axis=0)
    model = LogisticRegression(C=10.0**best, max_iter=5000).fit(direct, positive)
    np.testing.assert_allclose(
        found["p logistic regression, tuned"], model.predict_proba(direct[:5])[:, 1], rtol=1e-4
    )


@pytest.mark.parametrize(
    ("name", "module"),
    [("LightGBM, small steps", "lightgbm"), ("CatBoost, small steps", "catboost")],
)
def test_small_steps_are_200_trees_at_a_rate_of_3_percent(rng, name, module):
    package = pytest.importorskip(module)
    X, positive = two_clouds(rng)
    found = measure(name, X, positive, X[:5], seed=1)
    model = (
        package.LGBMClassifier(n_estimators=200, learning_rate=0.03, n_jobs=1, verbose=-1)
        if module == "lightgbm"
        else package.CatBoostClassifier(
            200,
            learning_rate=0.03,
            random_seed=1,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
        )
    )
    plain = model.fit(X, positive).predict_proba(X[:5])[:, 1]
    np.testing.assert_allclose(found[f"p {name}"], plain)
    splitter = StratifiedKFold(5, shuffle=True, random_state=1)
    sigmoid = CalibratedClassifierCV(model, cv=splitter, method="sigmoid", ensemble=True)
    np.testing.assert_allclose(
        found[f"p {name}, {SIGMOID}"], sigmoid.fit(X, positive).predict_proba(X[:5])[:, 1]
    )


def test_every_package_of_a_peer_is_an_extra_with_a_pinned_version():
    root = comparison.DOCS.parent
    pinned = (root / "constraints.txt").read_text(encoding="utf-8")
    extras = (root / "pyproject.toml").read_text(encoding="utf-8")
    assert {c.package for c in PEERS.values()} - {None} == set(classifiers.PACKAGES)
    for each in classifiers.PACKAGES.values():
        assert f"\n{each}==" in pinned
        assert f'"{each}>=' in extras


def test_runs_resume_and_a_new_classifier_measures_itself_alone(table, monkeypatch, tmp_path):
    asked = []
    real = measure
    limit = [13, np.inf]

    def interrupted(name, *given, **options):
        if len(asked) == limit[0]:
            raise KeyboardInterrupt
        asked.append(name)
        return real(name, *given, **options)

    monkeypatch.setattr(classifiers, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    assert asked == ["BootstrapSVC"] * 10 + ["bayes"] * 3
    assert results.read(tmp_path / "results" / "classifiers") == []
    del limit[0]
    asked.clear()
    run(tmp_path, seconds=-1)
    assert asked == []
    run(tmp_path)
    assert asked == ["bayes"] * 7  # the third takes no table of three columns
    asked.clear()
    for path in (tmp_path / "kept").iterdir():
        path.unlink()
    run(tmp_path, ["BootstrapSVC", "bayes", "last"])
    assert asked == ["last"] * 10
    run(tmp_path, ["bayes"], again=True)
    assert asked[10:] == ["bayes"] * 10


def test_files_have_the_losses_of_every_row(table, tmp_path):
    X, positive = table
    run(tmp_path)
    folder = tmp_path / "results" / "classifiers"
    (found,) = results.read(folder)
    probability = np.empty(len(X))
    rows = pd.read_csv(folder / "zoo.csv")
    for number, (training, held_out) in enumerate(splits(X, positive, GIVEN["seed"])):
        model = GaussianNB().fit(X[training], positive[training])
        probability[held_out] = model.predict_proba(X[held_out])[:, 1]
        assert (rows["fold"][held_out] == number).all()
    assert found.mean("log-loss", "bayes") == pytest.approx(log_loss(positive, probability))
    assert found.mean("Brier score", "bayes") == pytest.approx(
        brier_score_loss(positive, probability)
    )
    assert found.ratio("log-loss", "BootstrapSVC", "bayes") == 1
    assert found.compared("log-loss", "BootstrapSVC", "bayes").difference == 0
    assert found.peers == ["bayes", f"bayes, {SIGMOID}"]
    entry = json.loads((folder / "tables.json").read_text(encoding="utf-8"))["data sets"]["zoo"]
    assert entry["classifiers"]["bayes"]["chosen"] == {"as it is": 10}
    assert set(entry["classifiers"]["bayes"]["predict"]) == set(found.peers)
    assert results.incomplete(folder, ["zoo", "heart"]) == ["heart"]
    assert "last" in results.unmeasured([found])
    files = details.of_classifiers([found])
    losses = pd.read_csv(io.StringIO(files["classifiers/losses.csv"])).set_index("method")
    assert losses.loc["bayes", "log-loss"] == pytest.approx(log_loss(positive, probability), 1e-4)
    ratios = pd.read_csv(io.StringIO(files["classifiers/ratios.csv"])).set_index(["peer", "loss"])
    by_log_loss = ratios.loc[("bayes", "log-loss")]
    assert by_log_loss["geometric mean"] == by_log_loss["without floor"] == 1
    assert by_log_loss[["wins", "ties", "losses"]].tolist() == [0, 1, 0]
    assert "| bayes | **1.000** | 1.000 | 1.00 (zoo) | 0/1/0 |" in tables.ratios(
        [found], "log-loss", "BootstrapSVC", "Brier score"
    )
    costs = pd.read_csv(io.StringIO(files["classifiers/costs.csv"]))
    assert sorted(costs["method"]) == sorted(found.methods)
    stated = [
        log_loss(positive[a], GaussianNB().fit(X[a], positive[a]).predict_proba(X[a])[:, 1])
        for a, _ in splits(X, positive, GIVEN["seed"])
    ]
    assert entry["classifiers"]["BootstrapSVC"]["out of bag"] == pytest.approx(stated, abs=1e-6)
    own = np.where(positive, probability, 1 - probability)
    gap, error = -np.log(own).mean() - np.mean(stated), np.log(own).std(ddof=1) / np.sqrt(len(X))
    assert f"{gap:+.4f} ± {error:.4f}" in tables.out_of_bag([found])


def test_a_loss_below_one_in_n_counts_as_that():
    kept = {"held out": [25, 25], "log-loss": {"means": {"a": [0.0, 0.02], "b": [0.0, 0.0]}}}
    found = results.Beside("t", 50, 3, kept, {}, {})
    assert found.ratio("log-loss", "a", "b") == 1
    assert found.ratio("log-loss", "a", "b", floor=False) == np.inf


def test_geometric_mean_and_its_interval_are_those_of_the_logarithms(rng):
    ratios = rng.uniform(0.5, 2, size=7)
    center, low, high = results.geometric_mean(ratios)
    assert center == pytest.approx(stats.gmean(ratios))
    logs = np.log(ratios)
    expected = stats.t.interval(0.95, 6, logs.mean(), stats.sem(logs))
    np.testing.assert_allclose(np.log([low, high]), expected)
    assert results.geometric_mean([2.0])[1:] == (0, np.inf)


def test_time_of_scoring_is_that_of_all_rows_in_proportion(monkeypatch):
    clock = iter(np.arange(0.0, 100.0, 6.0))
    monkeypatch.setattr(classifiers.time, "process_time", lambda: next(clock))
    asked = []

    class Slow:
        def predict_proba(self, X):
            asked.append(len(X))

    assert classifiers.seconds_of_scoring(Slow(), np.zeros((7, 2))) == 6.0 * 20
    assert asked == [classifiers.BLOCK] * 2


def test_threads_and_packages_are_asked_for_before_any_work(table, monkeypatch, tmp_path):
    monkeypatch.setitem(classifiers.CLASSIFIERS, "bayes", quick(package="lightgbm"))
    monkeypatch.setattr(classifiers, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="lightgbm; install the extra"):
        run(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with pytest.raises(SystemExit, match="OMP_NUM_THREADS=1"):
        run(tmp_path)
