"""Explanations of classifiers fitted to plain numbers; what there is not is said at once."""

from __future__ import annotations

from itertools import permutations as orders_of
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from scipy.special import expit, logit
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from bootprob import BootstrapClassifier
from bootprob.ensemble.sensitivity import probability_sensitivity
from bootprob.exceptions import DataError
from bootprob.explanation import contributions, partial_dependence, permutation_importance
from bootprob.onnx_export import export_onnx
from bootprob.server import create_app

pytestmark = pytest.mark.filterwarnings(
    "ignore::bootprob.LackOfFitWarning", "ignore::bootprob.FewRowsWarning"
)


@pytest.fixture(scope="module")
def frame() -> tuple[pd.DataFrame, np.ndarray]:
    X = np.random.default_rng(8).normal(size=(50, 2))
    y = (expit(2 * X[:, 0]) > np.random.default_rng(9).random(50)).astype(int)
    return pd.DataFrame(X, columns=["age", "size"]), y


@pytest.fixture(scope="module")
def fitted(frame: tuple[pd.DataFrame, np.ndarray]) -> BootstrapClassifier:
    """Columns are told by their names, so that it matters what the classifiers are given."""
    bayes = make_pipeline(make_column_transformer(("passthrough", ["size", "age"])), GaussianNB())
    return BootstrapClassifier(bayes, n_bootstraps=6, random_state=0).fit(*frame)


def log_odds(model: Any, X: pd.DataFrame) -> np.ndarray:
    return logit(model.predict_proba(X)[:, 1])


def test_contributions_are_shapley_values(
    fitted: BootstrapClassifier, frame: tuple[pd.DataFrame, np.ndarray]
) -> None:
    X, others = frame[0].iloc[:3], frame[0].iloc[10:14]
    found = contributions(fitted, X, others)
    for k in range(3):
        expected = np.zeros(2)
        for b in range(4):
            for order in orders_of(range(2)):
                mixed = others.iloc[[b]].copy()
                before = log_odds(fitted, mixed)[0]
                for j in order:
                    mixed.iloc[0, j] = X.iloc[k, j]
                    after = log_odds(fitted, mixed)[0]
                    expected[j] += (after - before) / 8
                    before = after
        np.testing.assert_allclose(found.contribution[k], expected, atol=1e-9)
    lower, upper = found.interval[..., 0], found.interval[..., 1]
    assert ((lower <= found.contribution) & (found.contribution <= upper)).all()


def test_partial_dependence_is_the_mean_of_log_odds(
    fitted: BootstrapClassifier, frame: tuple[pd.DataFrame, np.ndarray]
) -> None:
    others = frame[0].iloc[:20]
    found = partial_dependence(fitted, "age", others, values=[-1.0, 1.0])
    for at, value in enumerate([-1.0, 1.0]):
        expected = log_odds(fitted, others.assign(age=value)).mean()
        assert found.log_odds[at] == pytest.approx(expected)
        assert found.interval[at, 0] <= expected <= found.interval[at, 1]


def test_importance_of_held_out_rows_and_out_of_bag(
    fitted: BootstrapClassifier, frame: tuple[pd.DataFrame, np.ndarray]
) -> None:
    X, y = frame
    found = permutation_importance(fitted, X, y, held_out=True, n_repeats=3)
    assert found.baseline == pytest.approx(log_loss(y, fitted.predict_proba(X)[:, 1]))
    of_training = permutation_importance(fitted, X, n_repeats=3)
    assert of_training.importances.mean(axis=1).argmax() == 0
    assert not of_training.held_out
    with pytest.raises(DataError, match="These are not the rows of fit"):
        permutation_importance(fitted, X[::-1])


def test_the_server_explains(
    fitted: BootstrapClassifier, frame: tuple[pd.DataFrame, np.ndarray]
) -> None:
    with TestClient(create_app(fitted)) as client:
        assert client.get("/v2/models/model").json()["parameters"]["explains"]
        sent = {"records": frame[0].head(2).to_dict("records"), "explain": True}
        reply = client.post("/predict", json=sent)
        assert reply.status_code == 200, reply.text
        for each in reply.json()["predictions"]:
            told = each["explanation"]
            total = told["base"] + sum(one["contribution"] for one in told["contributions"])
            assert total == pytest.approx(logit(each["probability"]))


def test_what_there_is_not(frame: tuple[pd.DataFrame, np.ndarray], tmp_path: Any) -> None:
    X, y = frame
    frozen = FrozenEstimator(GaussianNB().fit(X[:20], y[:20]))
    before = BootstrapClassifier(frozen, n_bootstraps=4, random_state=0).fit(X[20:], y[20:])
    with pytest.raises(DataError, match="does not keep its training rows"):
        contributions(before, X[:2])
    with pytest.raises(DataError, match="FrozenEstimator is not exported as ONNX"):
        export_onnx(before, tmp_path / "m.onnx")
    with pytest.raises(DataError, match="of support vector machines"):
        probability_sensitivity(before, X[:2], X[20:])
    assert not list(tmp_path.iterdir())
