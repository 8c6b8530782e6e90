"""Which columns of a large table bear on its labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from bootprob.preparation import relevance
from bootprob.preparation.relevance import column_relevance
from bootprob.preparation.views import learn_views


def _found(rows, logit_or_codes, weight=None):
    codes = logit_or_codes
    if codes.dtype == np.float64:
        rng = np.random.default_rng(1)
        codes = (rng.uniform(size=len(rows)) < expit(logit_or_codes)).astype(np.intp)
    weight = np.ones(len(rows)) if weight is None else weight
    return column_relevance(rows, codes, weight, learn_views(rows, weight))


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(4000, 8))


@pytest.mark.parametrize(
    ("logit", "columns"),
    [
        (lambda X: X[:, 1] - X[:, 2], {1, 2}),
        (lambda X: 2.0 * np.abs(X[:, 3]) - 1.6, {3}),
        (lambda X: 2.0 * X[:, 4] * X[:, 5], {4, 5}),
        (lambda X: 4.0 * np.sin(2 * X[:, 0]) * np.sin(2 * X[:, 7]), {0, 7}),
        (lambda X: X[:, 1] + 2.0 * X[:, 1] * (X[:, 6] > 0), {1, 6}),
    ],
    ids=["line", "bend", "product", "checkerboard", "slope of a subgroup"],
)
def test_columns_that_count_are_found_and_no_others(rows, logit, columns):
    assert set(np.flatnonzero(_found(rows, logit(rows)))) == columns


def test_nothing_is_found_where_there_is_nothing():
    """Three kinds of tests at 1 % in 40 tables: chance finds more than 10 less than once in 1e7."""
    rng = np.random.default_rng(3)
    false = 0
    for _ in range(40):
        rows = rng.normal(size=(600, 5))
        false += bool(_found(rows, rng.integers(0, 2, 600)).any())
    assert false <= 10


def test_of_several_classes_the_columns_of_any(rows):
    codes = (rows[:, 0] > 0.5).astype(np.intp) + 2 * (rows[:, 1] * rows[:, 2] > 1)
    found = np.flatnonzero(_found(rows, np.minimum(codes, 2)))
    assert set(found) == {0, 1, 2}


def test_rows_of_weight_0_say_nothing(rows):
    weight = np.ones(len(rows))
    weight[:2000] = 0
    spoilt = rows.copy()
    spoilt[:2000, 3] = 10.0
    codes = (rows[:, 0] > 0).astype(np.intp)
    other = np.where(weight > 0, codes, (rows[:, 3] > 0).astype(np.intp))
    np.testing.assert_array_equal(_found(rows, codes, weight), _found(spoilt, other, weight))


def test_of_many_columns_the_most_promising_are_looked_at(rows, monkeypatch):
    monkeypatch.setattr(relevance, "_MOST", 3)
    monkeypatch.setattr(relevance, "_CROSSED", 2)
    found = _found(rows, 2.0 * rows[:, 1] - 2.0 * rows[:, 6])
    assert set(np.flatnonzero(found)) == {1, 6}
