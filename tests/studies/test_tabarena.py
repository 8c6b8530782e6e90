"""TabArena's protocol: 30 splits, areas that are scikit-learn's, runs resume."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.naive_bayes import GaussianNB

from docs.studies.calibration import classifiers, tabarena, tabarena_table
from docs.studies.calibration.classifiers import Classifier
from gpu.benchmarks.common import datasets
from gpu.benchmarks.common.study_results import load


def test_areas_are_those_of_thirty_splits_and_are_not_measured_twice(monkeypatch, tmp_path, rng):
    positive = rng.random(60) < 0.4
    X = rng.normal(size=(60, 2)) + positive[:, None]
    bayes = Classifier(lambda X, positive, splitter, seed: (GaussianNB(), ""))
    asked = []
    real = classifiers.measure

    def counted(*given, **options):
        asked.append(given)
        return real(*given, **options)

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for module in (classifiers, tabarena_table):
        monkeypatch.setattr(module, "CLASSIFIERS", {"bayes": bayes})
    monkeypatch.setattr(classifiers, "measure", counted)
    monkeypatch.setattr(tabarena, "write_document", lambda docs: docs)
    monkeypatch.setattr(tabarena, "LOADERS", {"pima": lambda: (X, positive)})
    monkeypatch.setattr(datasets, "at_hand", {"pima"}.__contains__)
    for _ in range(2):
        tabarena.main(["pima"], ["bayes"], tmp_path, tmp_path / "kept")
    assert len(asked) == 30
    splitter = RepeatedStratifiedKFold(n_splits=3, n_repeats=10, random_state=0)
    expected = []
    for training, held_out in splitter.split(X, positive):
        model = GaussianNB().fit(X[training], positive[training])
        expected.append(roc_auc_score(positive[held_out], model.predict_proba(X[held_out])[:, 1]))
    folder = tmp_path / "results" / "classifiers"
    found = load(folder / tabarena_table.FILE)["tables"]["pima"]["bayes"]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    text = tabarena_table.measured(folder)
    assert f"| bayes | … | {np.mean(expected):.4f} ({np.std(expected, ddof=1):.3f}) |" in text


def test_published_errors_become_areas():
    line = next(x for x in tabarena_table.published().splitlines() if "CatBoost, default" in x)
    assert line == "| CatBoost, default | 0.7927 | 0.8335 |"
    assert all(0.1 < error < 0.3 for both in tabarena_table.PUBLISHED.values() for error in both)


def test_threads_are_asked_for_before_any_work(monkeypatch, tmp_path):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with pytest.raises(SystemExit, match="OMP_NUM_THREADS=1"):
        tabarena.main(["pima"], [], tmp_path)
