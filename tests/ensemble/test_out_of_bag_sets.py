"""P-values of training rows, against their definition one row, class and comparison at a time."""

import numpy as np
import pytest

from bootprob.calibration.coupling import class_pairs
from bootprob.ensemble.out_of_bag_sets import out_of_bag_p_values
from linear_models import linear


def fitted(rng, n_classes, groups=None, n_bootstraps=12):
    n = 48
    X = rng.normal(size=(n, 2))
    y = np.digitize(X[:, 0] + 0.7 * rng.normal(size=n), [-0.4, 0.5][: n_classes - 1])
    weight = np.where(np.arange(n) % 11 == 3, 0.0, 1.0)
    model = linear(C=[0.1, 1.0], n_bootstraps=n_bootstraps, random_state=0)
    return model.fit(X, y, sample_weight=weight, groups=groups), X


def scores_by_definition(model, X):
    """Least mean raw score of each class against each other, over replicates without the row."""
    n, K = len(X), len(model.classes_)
    left_out = model.bootstrap_counts().T == 0
    scores = np.full((n, K), np.inf)
    pairs = model.pair_ensembles_ or [model]
    for (first, second), pair in zip(class_pairs(K), pairs, strict=True):
        raw = np.concatenate(list(pair.bootstrap_scores(X))).mean(axis=1)
        for i in range(n):
            mean = raw[i, left_out[i]].mean() if left_out[i].any() else 0.0
            scores[i, second] = min(scores[i, second], mean)
            scores[i, first] = min(scores[i, first], -mean)
    return scores, left_out.any(axis=1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("grouped", [False, True])
def test_they_are_as_defined(rng, n_classes, grouped):
    groups = np.arange(48) // 3 if grouped else None
    model, X = fitted(rng, n_classes, groups, n_bootstraps=6)
    scores, seen = scores_by_definition(model, X)
    if n_classes == 3:
        np.testing.assert_allclose(model.oob_class_scores_, scores, atol=1e-9)
    counted, y = model.sample_weight_ > 0, model.y_
    of = np.arange(48) if groups is None else groups
    mass = np.array([1 / (counted & (of == g)).sum() if counted[of == g].any() else 0 for g in of])
    expected = np.full(scores.shape, np.nan)
    for i in np.flatnonzero(counted & seen):
        for k in range(n_classes):
            total = 1.0
            for j in np.flatnonzero(counted):
                if of[j] == of[i]:
                    continue
                if not seen[j] or scores[j, y[j]] <= scores[i, k] + 1e-9:
                    total += mass[j]
            expected[i, k] = total / len(np.unique(of[counted]))
    np.testing.assert_allclose(out_of_bag_p_values(model), expected, atol=1e-12)


def test_there_are_none_where_the_scores_were_not_kept(rng):
    model, _ = fitted(rng, 3)
    model.oob_class_scores_ = None  # as in files of before
    assert out_of_bag_p_values(model) is None
