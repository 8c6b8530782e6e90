"""The page for those who come from SVC shows what was measured, and measuring is honest."""

import json

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from docs.studies.calibration.coming_from_svc import PAGE, RESULTS, measure, table_of


def test_the_table_is_that_of_the_results():
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert table_of(results) in PAGE.read_text(encoding="utf-8")


def test_every_row_is_judged_by_a_model_that_has_not_seen_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    found = measure(LogisticRegression, X, y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    proba = cross_val_predict(LogisticRegression(), X, y, cv=folds, method="predict_proba")
    assert found["log_loss"] == log_loss(y, proba)
    assert found["contradictions"] == 0


def test_contradictions_are_counted():
    class Contrary(LogisticRegression):
        def predict(self, X):
            return 1 - super().predict(X)

    X = np.arange(40.0)[:, None]
    assert measure(Contrary, X, (np.arange(40) > 20).astype(int))["contradictions"] == 40
