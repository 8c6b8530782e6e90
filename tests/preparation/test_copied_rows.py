"""Copies of rows are told from rows that are equal by chance."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from bootprob import BootstrapSVC, CopiedRowsWarning
from bootprob.datasets import NAMES, at_hand, load
from bootprob.preparation.copied_rows import equal_rows, remark_of_copies


def warned(X, codes, weight=None):
    said = remark_of_copies(X, codes, np.ones(len(X)) if weight is None else weight)
    return [] if said is None else [said]


def dummies(codes):
    return np.eye(codes.max() + 1)[codes]


def some_table(rng, n):
    """Numbers and categories."""
    X = np.column_stack([rng.normal(size=(n, 2)), dummies(rng.integers(0, 4, n))])
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def ages(rng, n):
    return rng.integers(18, 80, n).astype(float)


NATURAL = {
    "dummies": lambda rng, n: np.column_stack([dummies(rng.integers(0, 5, n)) for _ in range(3)]),
    "a scale from 0 to 10": lambda rng, n: rng.integers(0, 11, (n, 2)).astype(float),
    "whole numbers and dummies": lambda rng, n: np.column_stack(
        [ages(rng, n), dummies(rng.integers(0, 3, n))]
    ),
    "whole numbers that hang together": lambda rng, n: np.column_stack(
        [age := ages(rng, n), np.round(age - 18 + 3 * rng.normal(size=n)), rng.random(n) < 0.5]
    ),
    "rounded": lambda rng, n: np.round(rng.normal(size=(n, 2)), 1),
    "a single column": lambda rng, n: ages(rng, n)[:, None],
    "a single column that varies": lambda rng, n: np.column_stack([ages(rng, n), np.ones(n)]),
    "mostly zeros": lambda rng, n: np.exp(rng.normal(size=(n, 8))) * (rng.random((n, 8)) < 0.1),
    "customers of whom half bought nothing": lambda rng, n: (
        np.exp(rng.normal(size=(n, 8))) * (rng.random((n, 1)) < 0.5)
    ),
}


@pytest.mark.parametrize("noisy", [True, False])
@pytest.mark.parametrize("kind", NATURAL)
def test_rows_that_are_equal_by_chance(kind, noisy):
    rng = np.random.default_rng(0)
    X = np.asarray(NATURAL[kind](rng, 4000), dtype=float)
    score = (X - X.mean(axis=0)) @ np.linspace(1, 0.5, X.shape[1])
    y = (score + noisy * score.std() * rng.normal(size=4000) > 0).astype(int)
    found = equal_rows(X, y)
    assert found.n_rows > 1000
    assert warned(X, y) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_false_alarm_on_a_known_table(name):
    if not at_hand(name):
        pytest.skip(f"{name} is not at hand")
    data = load(name)
    codes = np.unique(data.y, return_inverse=True)[1]
    assert warned(np.asarray(data.X, dtype=float), codes) == []


@pytest.mark.parametrize("source", [load_iris, load_wine, load_breast_cancer, load_digits])
@pytest.mark.parametrize("how", ["drawn", "twice", "oversampled", "subjects"])
def test_copies_in_known_tables(source, how):
    X, y = source(return_X_y=True)
    rng = np.random.default_rng(1)
    rows = {
        "drawn": rng.integers(0, len(y), len(y)),
        "twice": np.tile(np.arange(len(y)), 2),
        "oversampled": np.r_[np.arange(len(y)), np.flatnonzero(y == 0)],
        "subjects": np.repeat(rng.permutation(len(y))[: len(y) // 5], 5),
    }[how]
    assert warned(X, y) == []
    [said] = warned(X[rows], y[rows])
    times = np.unique(X[rows], axis=0, return_counts=True)[1]
    assert said.startswith(f"{times[times > 1].sum()} of {len(rows)} rows equal another")
    assert f"only {len(times)} rows differ" in said


def test_what_is_counted(rng):
    X, y = some_table(rng, 100)
    rows = np.r_[np.arange(100), np.repeat([3, 4, 5, 6], 2)]
    found = equal_rows(X[rows], y[rows])
    assert (found.n_rows, found.n_distinct) == (12, 100)
    assert found.pairs == 3 * 3  # but for those of one row
    other_class = y[rows]
    other_class[100:] = 1 - other_class[100:]
    assert equal_rows(X[rows], other_class).n_distinct == 104
    signs = X[rows]
    signs[:, 2:] = np.where(signs[:, 2:] == 0, np.where(np.arange(108) % 2, 0.0, -0.0)[:, None], 1)
    assert equal_rows(signs, y[rows]).n_distinct == 100


def test_few_copies_say_nothing(rng):
    X, y = some_table(rng, 400)
    for n_copies, n_warnings in [(0, 0), (15, 0), (40, 1)]:
        rows = np.r_[np.arange(400), np.arange(n_copies)]
        assert len(warned(X[rows], y[rows])) == n_warnings


def test_rows_of_no_weight_do_not_count(rng):
    X, y = some_table(rng, 100)
    weight = np.repeat([1.0, 0.0], 100)
    assert warned(np.r_[X, X], np.r_[y, y], weight) == []
    assert len(warned(np.r_[X, X], np.r_[y, y])) == 1


def test_the_order_of_rows_and_columns_does_not_matter(rng):
    X, y = some_table(rng, 60)
    X, y = np.r_[X, X], np.r_[y, y]
    rows, columns = rng.permutation(120), rng.permutation(X.shape[1])
    ours, theirs = equal_rows(X, y), equal_rows(X[rows][:, columns], y[rows])
    assert (ours.n_rows, ours.n_distinct) == (theirs.n_rows, theirs.n_distinct) == (120, 60)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fit_warns_once_and_points_at_its_caller(rng, n_classes):
    X, y = some_table(rng, 60)
    y = y + (X[:, 1] > 0) * (n_classes - 2)
    model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0)
    with pytest.warns(CopiedRowsWarning, match="120 of 120 rows equal another") as caught:
        model.fit(np.r_[X, X], np.r_[y, y])
    assert [each.filename for each in caught] == [__file__]
    model.fit(X, y, sample_weight=np.full(60, 2.0))  # which is what to do, and warns of nothing


def test_what_the_warning_says_is_so():
    """Out of bag, copies of noise look learnt; on new rows nothing is."""
    X, y = np.random.default_rng(0).normal(size=(60, 30)), np.arange(60) % 2
    model = BootstrapSVC(kernel="linear", n_bootstraps=30, C=1.0, random_state=0)
    with pytest.warns(CopiedRowsWarning):
        copied = model.fit(np.repeat(X, 5, axis=0), np.repeat(y, 5))
    copied_accuracy = np.mean((copied.oob_proba_[:, 1] > 0.5) == (copied.y_ == 1))
    once = BootstrapSVC(kernel="linear", n_bootstraps=30, C=1.0, random_state=0).fit(X, y)
    accuracy = np.mean((once.oob_proba_[:, 1] > 0.5) == (once.y_ == 1))
    assert copied_accuracy > accuracy + 0.15


@pytest.mark.parametrize("times", [2, 5, 20])
def test_copies_of_rows_with_many_zeros(times):
    rng = np.random.default_rng(5)
    flags = rng.integers(0, 2, (200, 12))
    amount = np.where(rng.random(200) < 0.6, 0.0, np.exp(rng.normal(size=200)))
    X, y = np.column_stack([flags, amount]).astype(float), rng.integers(0, 2, 200)
    assert warned(X, y) == []
    assert len(warned(np.repeat(X, times, axis=0), np.repeat(y, times))) == 1
