"""A program may tell torch to make tensors on a GPU unless told otherwise: nothing may hang on it.

Here such tensors hold no numbers at all.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from bootprob import BootstrapClassifier, BootstrapSVC
from bootprob.constrained import ConvexConstrainedSVC
from bootprob.dea import efficiency
from bootprob.selection import KernelAlignmentSelector

FEW = {"n_bootstraps": 6, "random_state": 0}


@contextmanager
def elsewhere() -> Iterator[None]:
    """Tensors without a device of their own are without numbers."""
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    return X, X[:, 0] + rng.logistic(size=90) > 0


@pytest.mark.parametrize(
    "estimator",
    [
        BootstrapSVC(**FEW),
        BootstrapSVC(kernel="linear", calibration="isotonic", **FEW),
        BootstrapSVC(kernel="rbf", gamma="grid", **FEW),
        BootstrapSVC(kernel="rbf", feature_map="nystroem", n_components=60, **FEW),
        BootstrapSVC(kernel="poly", **FEW),
        BootstrapSVC(kernel="linear", control="constrained", rates={"tpr": 0.9}, **FEW),
        BootstrapClassifier(LogisticRegression(), **FEW),
    ],
    ids=repr,
)
def test_ensembles(estimator, table):
    X, y = table
    expected = estimator.fit(X, y)
    answers = expected.predict_proba(X), expected.proba_interval(X), expected.oob_proba_
    with elsewhere():
        again = estimator.fit(X, y)
        found = again.predict_proba(X), again.proba_interval(X), again.oob_proba_
    for one, other in zip(answers, found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_other_models(table):
    X, y = table

    def answers():
        alignment = KernelAlignmentSelector().fit(X, y)
        scores = ConvexConstrainedSVC().fit(X, y).decision_function(X)
        efficiencies = efficiency(np.exp(X[:, :2]), np.exp(X[:, 2:])).scores
        return alignment.transform(X), scores, efficiencies

    expected = answers()
    with elsewhere():
        found = answers()
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
