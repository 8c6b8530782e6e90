"""Rates that hold in each subgroup: thresholds as of its rows alone, decisions, refusals."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from bootprob import BootstrapClassifier, BootstrapSVC, DataError, UnattainableRateError
from bootprob.ensemble import subgroup_rates
from bootprob.metrics.rates import RateFloor

QUICK = {"kernel": "linear", "C": 1.0, "n_bootstraps": 30, "random_state": 0}


@pytest.fixture
def rng():
    """Always the same: what can be promised, and what is covered, depends on the rows drawn."""
    return np.random.default_rng(0)


def rows_of(rng, n=400):
    X, site = rng.normal(size=(n, 3)), rng.choice(["a", "b"], n, p=[0.7, 0.3])
    logit = 1.5 * X[:, 0] + np.where(site == "b", -1.0, 0.5)
    return X, (rng.uniform(size=n) < expit(logit)).astype(int), site


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_a_rate_holds_in_each_where_one_threshold_does_not(rng, confidence):
    X, y, site = rows_of(rng)
    logistic = LogisticRegression()
    for model in (
        BootstrapSVC(**QUICK),
        BootstrapClassifier(logistic, n_bootstraps=20, random_state=0),
        BootstrapSVC(**QUICK, control="threshold", rates={"tpr": 0.6}),
    ):
        model.fit(X, y)
        found = subgroup_rates(model, site, {"tpr": 0.85}, confidence)
        assert list(found.between) == ["a", "b"]
        oob = model.oob_proba_[:, 1]
        for name, (lower, upper) in found.between.items():
            assert lower == upper
            own = (site == name) & (y == 1) & np.isfinite(oob)
            share = RateFloor("tpr", 0.85, confidence).required_share(own.sum())
            [entry] = found.rates[name]
            assert entry["n_rows"] == own.sum()
            assert entry["required_share"] == pytest.approx(share)
            assert entry["out_of_bag"] == pytest.approx((oob[own] > lower).mean())
            assert entry["out_of_bag"] >= share - 1e-9
            # As little as does: the next row up would be one too many, or one half keeps it.
            kept = np.sort(oob[own & (oob > lower)])
            assert lower == 0.5 or (oob[own] > kept[0]).mean() < share
        new, _, new_site = rows_of(rng, 50)
        p = model.predict_proba(new)[:, 1]
        threshold = np.array([found.between[name][0] for name in new_site])
        np.testing.assert_array_equal(found.predict(new, new_site), (p > threshold).astype(int))
        assert not found.undecided(new, new_site).any()
        frame = found.to_frame()
        assert frame["subgroup"].tolist() == ["a", "b"]
        assert frame["out_of_bag"].tolist() == [found.rates[name][0]["out_of_bag"] for name in "ab"]


def test_a_subgroup_is_as_its_rows_alone(rng):
    X, y, site = rows_of(rng)
    model = BootstrapSVC(**QUICK).fit(X, y)
    every = subgroup_rates(model, ["all"] * len(y), {"tnr": 0.9})
    controlled = BootstrapSVC(**QUICK, control="threshold", rates={"tnr": 0.9}).fit(X, y)
    assert every.between["all"][0] == pytest.approx(controlled.decision_threshold_)
    assert every.rates["all"][0]["out_of_bag"] == controlled.controlled_rates_[0]["out_of_bag"]
    split = subgroup_rates(model, site, {"tnr": 0.9})
    own = (site == "b") & (y == 0)
    assert split.rates["b"][0]["n_rows"] == own.sum()


def test_several_rates_and_rows_left_undecided(rng):
    X, y, site = rows_of(rng)
    model = BootstrapSVC(**QUICK).fit(X, y)
    rates = {"tpr": 0.9, "tnr": 0.9, "decided": 0.1}
    found = subgroup_rates(model, pd.Series(site), rates)
    for name, entries in found.rates.items():
        assert [entry["rate"] for entry in entries] == ["tpr", "tnr", "decided"]
        lower, upper = found.between[name]
        assert lower < upper
    p = model.predict_proba(X)[:, 1]
    lower, upper = np.array([found.between[name] for name in site]).T
    np.testing.assert_array_equal(found.undecided(X, site), (p > lower) & (p <= upper))
    sure = ~found.undecided(X, site)
    np.testing.assert_array_equal(found.predict(X, site)[sure], (p > upper)[sure].astype(int))


def test_refusals(rng):
    X, y, site = rows_of(rng)
    model = BootstrapSVC(**QUICK).fit(X, y)
    few = np.where(np.arange(400) < 12, "few", site)
    with pytest.raises(UnattainableRateError, match="In the subgroup 'few': tpr") as raised:
        subgroup_rates(model, few, {"tpr": 0.9}, 0.95)
    assert raised.value.attainable < 0.9
    lone = np.where((np.arange(400) < 20) & (y == 1), "lone", site)
    with pytest.raises(UnattainableRateError, match="'lone' no row of class 0"):
        subgroup_rates(model, lone, {"tpr": 0.9})
    found = subgroup_rates(model, site, {"tpr": 0.9})
    with pytest.raises(DataError, match="by has 'z', of which there was no training row"):
        found.predict(X[:2], ["a", "z"])
    with pytest.raises(DataError, match="by has 1 value, and there are 2 rows"):
        found.predict(X[:2], ["a"])
    for given, words in (
        (({},), "give the rates that must hold"),
        (({"decided": 0.5},), "give the rates that must hold"),
        (({"recall": 0.5},), "give 'tpr'"),
    ):
        with pytest.raises(DataError, match=words):
            subgroup_rates(model, site, *given)
    votes = BootstrapSVC(**QUICK, calibration="isotonic").fit(X, y)
    with pytest.raises(DataError, match="calibration='sigmoid'"):
        subgroup_rates(votes, site, {"tpr": 0.9})


def test_a_rate_holds_after_recalibration(rng):
    X, y, site = rows_of(rng)
    model = BootstrapSVC(**QUICK).fit(X, y)
    before = subgroup_rates(model, site, {"tpr": 0.85})
    for moved in (model.recalibrated(base_rate=0.05), model.recalibrated(X[:50], y[:50])):
        found = subgroup_rates(moved, site, {"tpr": 0.85})
        assert found.rates == before.rates
        np.testing.assert_array_equal(found.predict(X, site), before.predict(X, site))
