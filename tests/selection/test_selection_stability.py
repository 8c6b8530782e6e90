"""Selection on bootstrap samples: what is counted, and that optimism is paid for."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectFromModel, SelectKBest, SelectorMixin
from sklearn.linear_model import LogisticRegression

from bootprob import BootstrapSVC, DataError
from bootprob.preparation.bootstrap import bootstrap_counts, draw_entropy
from bootprob.selection import KernelAlignmentSelector
from bootprob.selection.stability import selection_stability

QUICK = LogisticRegression()


def noise(rng, n=60, p=5):
    X = rng.normal(size=(n, p))
    y = rng.permutation(np.arange(n) < n // 2)
    return X, y


class NoColumn(SelectorMixin, BaseEstimator):
    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def _get_support_mask(self):
        return np.zeros(self.n_features_in_, dtype=bool)


def test_counts_are_those_of_the_samples(rng):
    X, y = noise(rng)
    X[:, 2] += 0.8 * y
    found = selection_stability(
        SelectKBest(k=2), X, y, model=QUICK, n_bootstraps=12, random_state=5
    )
    entropy = draw_entropy(np.random.RandomState(5))
    counts, _ = bootstrap_counts(y, np.ones(len(y)), range(12), entropy)
    expected, losses = [], [[] for _ in y]
    for drawn in counts:
        rows = np.repeat(np.arange(len(y)), drawn)
        support = SelectKBest(k=2).fit(X[rows], y[rows]).get_support()
        model = clone(QUICK).fit(X[rows][:, support], y[rows])
        out = np.flatnonzero(drawn == 0)
        for i, p in zip(out, model.predict_proba(X[out][:, support]), strict=True):
            losses[i].append((p[1] - y[i]) ** 2)
        expected.append(support)
    np.testing.assert_array_equal(found.chosen, expected)
    np.testing.assert_allclose(found.frequency, np.mean(expected, axis=0))
    means = [np.mean(each) if each else np.nan for each in losses]
    np.testing.assert_allclose(found.inside["brier_score"], means, rtol=1e-4)
    np.testing.assert_allclose(np.diag(found.together), found.frequency)
    both = np.mean([s[0] and s[2] for s in expected])
    assert found.together[0, 2] == pytest.approx(both)
    assert (found.interval[:, 0] <= found.frequency).all()
    assert (found.interval[:, 1] >= found.frequency).all()


def test_choosing_once_from_noise_looks_better_than_it_is(rng):
    """Labels that no column knows: the truth is an error rate of one half, and log 2."""
    errors = []
    for _ in range(6):  # of one table the error of choosing once varies by .05
        X, y = noise(rng, 60, 150)
        seed = int(rng.integers(2**31))
        found = selection_stability(
            SelectKBest(k=5), X, y, model=QUICK, n_bootstraps=40, random_state=seed
        )
        difference, error = found.optimism("error_rate")
        inside, once = np.nanmean([found.inside["error_rate"], found.once["error_rate"]], axis=1)
        errors.append([difference / error, inside, once, np.nanmean(found.inside["log_loss"])])
    optimism, inside, once, log_loss = np.mean(errors, axis=0)
    assert optimism > 3
    assert once < 0.4 < inside
    assert log_loss > np.log(2)


def test_a_column_that_tells_the_classes_apart_is_always_chosen(rng):
    X, y = noise(rng, 50, 4)
    X[:, 1] = y + 0.1 * rng.normal(size=50)
    frame = pd.DataFrame(X, columns=list("abcd"))
    svc = BootstrapSVC(kernel="linear", n_bootstraps=5, C=[1.0])
    found = selection_stability(
        KernelAlignmentSelector(1), frame, y, model=svc, n_bootstraps=4, random_state=0
    )
    assert found.frequency.tolist() == [0, 1, 0, 0]
    assert found.names == ("a", "b", "c", "d")
    table = found.to_frame()
    assert table.index[0] == "b"
    assert table.loc["b", "chosen once"]
    assert found.optimism() == (0.0, 0.0)
    assert table.loc["b", "lower"] < 0.6 < table.loc["b", "upper"] == 1
    assert np.nanmean(found.inside["error_rate"]) < 0.1


def test_workers_and_seeds_do_not_matter(rng):
    X, y = noise(rng, 40, 4)
    forest = SelectFromModel(LogisticRegression(solver="saga", max_iter=5000), max_features=2)
    given = {"model": QUICK, "n_bootstraps": 6, "random_state": 3}
    ours = selection_stability(forest, X, y, **given)
    with joblib.parallel_config(backend="threading"):
        theirs = selection_stability(forest, X, y, **given, n_jobs=2)
    np.testing.assert_array_equal(ours.chosen, theirs.chosen)
    np.testing.assert_array_equal(ours.inside["log_loss"], theirs.inside["log_loss"])


def test_no_column_leaves_the_shares_of_the_classes(rng):
    X, y = noise(rng)
    found = selection_stability(NoColumn(), X, y, model=QUICK, n_bootstraps=30, random_state=1)
    assert not found.chosen.any()
    assert np.nanmean(found.inside["brier_score"]) == pytest.approx(0.25, abs=0.05)


def test_several_classes(rng):
    X = rng.normal(size=(60, 4))
    y = np.array(["a", "b", "c"])[np.arange(60) % 3]
    X[:, 0] += np.arange(60) % 3 * 5
    found = selection_stability(SelectKBest(k=1), X, y, model=QUICK, n_bootstraps=5, random_state=0)
    assert found.frequency[0] == 1
    assert np.nanmean(found.inside["error_rate"]) < 0.1


@pytest.mark.parametrize(
    ("selector", "options", "message"),
    [
        (SelectKBest(k=1), {"n_bootstraps": 1}, "n_bootstraps is 1; give an integer"),
        (SelectKBest(k=1), {"n_bootstraps": 2.5}, "n_bootstraps is 2.5"),
        (SelectKBest(k=1), {"level": 1.0}, "between 0 and 1"),
        (QUICK, {}, "LogisticRegression has no get_support"),
    ],
)
def test_what_cannot_be_done(rng, selector, options, message):
    with pytest.raises(DataError, match=message):
        selection_stability(selector, *noise(rng), **options)


def test_data_that_the_selector_refuses(rng):
    X, y = noise(rng)
    with pytest.raises(ValueError, match="NaN"):
        selection_stability(KernelAlignmentSelector(2), np.where(X > 2, np.nan, X * np.nan), y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        selection_stability(KernelAlignmentSelector(2), X, y[:-1])
    found = selection_stability(SelectKBest(k=1), X, y, model=QUICK, n_bootstraps=2, random_state=0)
    with pytest.raises(DataError, match="metric is 'auc'"):
        found.optimism("auc")
