"""Subgroups of a model's rows, out of bag, and prediction sets within them."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from bootprob import BootstrapClassifier, BootstrapSVC, DataError
from bootprob.ensemble import conformal_p_values, cross_fitted_proba, prediction_sets
from bootprob.metrics import subgroup_metrics

QUICK = {"kernel": "linear", "C": 1.0, "n_bootstraps": 30, "random_state": 0}


@pytest.fixture
def rng():
    """Always the same: what can be promised, and what is covered, depends on the rows drawn."""
    return np.random.default_rng(0)


def rows_of(rng, n=240):
    X, site = rng.normal(size=(n, 3)), rng.choice(["a", "b", "c"], n, p=[0.5, 0.4, 0.1])
    logit = 1.5 * X[:, 0] + np.where(site == "b", 1.5 * X[:, 1], 0.0)
    return X, (rng.uniform(size=n) < expit(logit)).astype(int), site


def test_out_of_bag_rows_are_told_apart_by_a_column_that_no_model_knows(rng):
    X, y, site = rows_of(rng)
    for model in (
        BootstrapSVC(**QUICK),
        BootstrapClassifier(LogisticRegression(), n_bootstraps=20, random_state=0),
        BootstrapSVC(**QUICK, control="threshold", rates={"tpr": 0.9}),
    ):
        model.fit(X, y)
        found = model.subgroup_metrics(site)
        p = cross_fitted_proba(model)
        decided = None if model.control is None else model.oob_proba_[:, 1] > (
            model.decision_threshold_
        )  # fmt: skip
        expected = subgroup_metrics(y, p, site, decided=decided, ranks=model.oob_proba_[:, 1])
        pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())
        assert [each.name for each in found.subgroups] == ["a", "b", "c"]


def test_several_classes_are_refused(rng):
    X, _, site = rows_of(rng, 60)
    model = BootstrapSVC(**QUICK).fit(X, np.resize([0, 1, 2], 60))
    with pytest.raises(DataError, match="3 classes"):
        model.subgroup_metrics(site)


@pytest.mark.parametrize("class_conditional", [False, True])
def test_sets_of_a_subgroup_are_those_of_a_table_of_it_alone(rng, class_conditional):
    X, y, site = rows_of(rng)
    new, _, new_site = rows_of(rng, 50)
    model = BootstrapSVC(**QUICK).fit(X, y)
    options = {"class_conditional": class_conditional}
    found = conformal_p_values(model, new, by=new_site, training_by=site, **options)
    # By definition: the share among the training rows of the same subgroup.
    counts = model.bootstrap_counts()
    scores = np.concatenate(list(model.bootstrap_scores(new)))[:, 0]
    own = np.concatenate(list(model.bootstrap_scores(X)))[:, 0]
    for j in range(50):
        for label, sign in ((0, -1), (1, 1)):
            rows = np.flatnonzero((site == new_site[j]) & ((y == label) | (not class_conditional)))
            no_better = 0
            for i in rows:
                out = counts[:, i] == 0
                fit = (1 if y[i] else -1) * own[i, out].mean()
                no_better += fit <= sign * scores[j, out].mean() + 1e-9
            assert found[j, label] == pytest.approx((1 + no_better) / (1 + len(rows)))
    sets = model.prediction_sets(new, 0.8, by=new_site, training_by=site, **options)
    np.testing.assert_array_equal(sets, found > 0.2 + 1e-12)
    unseen = prediction_sets(model, new, by=["z"] * 50, training_by=site)
    assert unseen.all()


def test_sets_keep_their_level_where_usual_ones_do_not(rng):
    # One subgroup is told easily, the other by nothing: usual sets give up the second.
    X, site = rng.normal(size=(1600, 2)), np.arange(1600) % 4 == 0
    X[:, 0] += 2 * np.sign(X[:, 0])
    y = (np.where(site, rng.normal(size=1600), X[:, 0]) > 0).astype(int)
    model = BootstrapSVC(**QUICK).fit(X[:400], y[:400])
    new, by, truth = X[400:], site[400:], y[400:]
    usual = model.prediction_sets(new, 0.8)[np.arange(1200), truth]
    within = model.prediction_sets(new, 0.8, by=by, training_by=site[:400])
    within = within[np.arange(1200), truth]
    assert usual[by].mean() < 0.5
    assert within[by].mean() > 0.6  # .8 but for 100 training rows and 300 new ones: 4 errors off


def test_frames_and_wrong_subgroups(rng):
    X, y, site = rows_of(rng, 80)
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    model = BootstrapSVC(**QUICK).fit(frame, y)
    same = BootstrapSVC(**QUICK).fit(X, y)
    by = pd.Series(site, index=np.arange(80) + 5)
    np.testing.assert_array_equal(
        model.prediction_sets(frame, by=by, training_by=by),
        same.prediction_sets(X, by=site, training_by=site),
    )
    for options, words in (
        ({"by": site}, "training_by is not given"),
        ({"training_by": site}, "by is not given"),
        ({"by": site[:3], "training_by": site}, "by has 3 values, and there are 80 rows"),
        ({"by": site, "training_by": [None, *site[1:]]}, "training_by is missing in 1 of 80"),
    ):
        with pytest.raises(DataError, match=words):
            same.prediction_sets(X, **options)
