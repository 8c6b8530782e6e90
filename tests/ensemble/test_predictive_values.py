"""PPV and NPV kept by testing thresholds in turn: levels, choices, both ensembles, refusals."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from bootprob import BootstrapClassifier, BootstrapSVC, DataError, UnattainableRateError
from bootprob.ensemble.control.predictive_values import Candidates
from bootprob.ensemble.control.thresholds import LeftOut
from bootprob.ensemble.controlled_rates import rates_under_control
from bootprob.intervals.shares import effective_rows
from bootprob.metrics.rates import RateFloor
from bootprob.persistence.save_load import load, save

QUICK = {"kernel": "linear", "C": 1.0, "n_bootstraps": 25, "random_state": 0}


@pytest.fixture
def rng():
    """Always the same: what can be promised, and what is covered, depends on the rows drawn."""
    return np.random.default_rng(0)


def rows_of(rng, n=400, slope=2.5):
    X = rng.normal(size=(n, 3))
    return X, (rng.uniform(size=n) < expit(slope * X[:, 0])).astype(int)


def test_a_promise_is_wrong_no_more_often_than_stated():
    # Scores without any signal, whose predictive value is one half everywhere: of 400 tables, 40 at
    # most may promise more in the mean. The seed is fixed.
    rng, wrong, floor = np.random.default_rng(0), 0, RateFloor("ppv", 0.5, 0.9)
    for _ in range(400):
        scores, positive = rng.normal(size=120), rng.uniform(size=120) < 0.5
        found = Candidates.of(scores, LeftOut(positive, np.ones(120)), floor, [floor])
        wrong += np.isfinite(found.needed(floor)).any()
    assert 0.02 < wrong / 400 <= 0.12


@pytest.mark.parametrize("rate", ["ppv", "npv"])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_holds_is_shown_at_its_level_by_brute_force(rng, rate, weighted):
    n = 300
    scores = rng.normal(size=n).round(2)
    positive = rng.uniform(size=n) < expit(2 * scores)
    weight = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    groups = rng.integers(0, 120, n) if weighted else None
    floor = RateFloor(rate, 0.7, 0.9)
    found = Candidates.of(scores, LeftOut(positive, weight, groups), floor, [floor])
    needed = found.needed(floor)
    own, handed = 0.1 / 4, 0.0
    for turn, j in enumerate(found.order):
        level, handed = handed + (own if turn % 6 == 0 else 0.0), 0.0
        decided = (scores > found.thresholds[j]) == (rate == "ppv")
        if level == 0 or not decided.any():
            assert np.isnan(needed[j])
            continue
        right = np.average((positive == (rate == "ppv"))[decided], weights=weight[decided])
        m = int(effective_rows(weight[decided], None if groups is None else groups[decided]) + 1e-9)
        # The tail of as many right ones, or more, were the rate no more than the floor.
        holds = stats.binom.sf(np.ceil(right * m - 1e-9) - 1, m, 0.7) <= level
        if weighted:  # shares between whole rows are rounded up
            holds = stats.binom.sf(np.floor(right * m + 1e-9) - 1, m, 0.7) <= level
        assert np.isfinite(needed[j]) == holds
        handed = level if holds else 0.0
    assert np.isfinite(needed).any()


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_rates_hold_out_of_bag_together(rng, confidence):
    X, y = rows_of(rng)
    rates = {"tpr": 0.3, "ppv": 0.75, "npv": 0.55}
    asked = {"control": "threshold", "rates": rates, "confidence": confidence}
    logistic = LogisticRegression()
    for model in (
        BootstrapSVC(**QUICK, **asked),
        BootstrapClassifier(logistic, n_bootstraps=20, random_state=0, **asked),
    ):
        model.fit(X, y)
        p, t = model.oob_proba_[:, 1], model.decision_threshold_
        known = np.isfinite(p)
        decided = p[known] > t
        reached = {entry["rate"]: entry for entry in model.controlled_rates_}
        assert list(reached) == ["tpr", "ppv", "npv"]
        assert reached["ppv"]["out_of_bag"] == pytest.approx(y[known][decided].mean())
        assert reached["npv"]["out_of_bag"] == pytest.approx(1 - y[known][~decided].mean())
        assert reached["ppv"]["n_rows"] == decided.sum()
        for name, entry in reached.items():
            assert entry["out_of_bag"] >= entry["required_share"] - 1e-9
            assert entry["required_share"] >= rates[name] - 1e-9
        shown = rates_under_control(model)
        assert [rate.rate for rate in shown] == ["tpr", "tnr", "ppv", "npv"]
        assert shown[2].out_of_bag.value == pytest.approx(reached["ppv"]["out_of_bag"])
        assert shown[2].without_control is not None
        np.testing.assert_array_equal(model.predict(X), model.predict_proba(X)[:, 1] > t)


def test_probabilities_stay_and_files_keep_the_decision(rng, tmp_path):
    X, y = rows_of(rng)
    model = BootstrapSVC(**QUICK, control="threshold", rates={"ppv": 0.75}, confidence=0.9)
    plain = BootstrapSVC(**QUICK).fit(X, y)
    model.fit(X, y)
    assert model.decision_threshold_ != 0.5
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X))
    assert not model.vote_thresholds_.any()
    save(model, tmp_path / "m.model")
    again = load(tmp_path / "m.model")
    assert again.controlled_rates_ == model.controlled_rates_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_rows_of_groups_count_as_groups(rng):
    X, y = rows_of(rng, 80, slope=6.0)
    X, y, groups = np.repeat(X, 5, axis=0), np.repeat(y, 5), np.repeat(np.arange(80), 5)
    X += 0.1 * rng.normal(size=X.shape)
    asked = {"control": "threshold", "rates": {"ppv": 0.7}, "confidence": 0.9}
    model = BootstrapSVC(**QUICK, **asked).fit(X, y, groups=groups)
    [entry] = model.controlled_rates_
    decided = model.oob_proba_[:, 1] > model.decision_threshold_
    # Of some 40 groups a larger share has to be right than of as many rows.
    of_rows = RateFloor("ppv", 0.7, 0.9).required_share(int(decided.sum()))
    assert entry["required_share"] > of_rows + 0.03
    assert entry["n_rows"] == decided.sum() > len(np.unique(groups[decided]))


def test_what_cannot_be_had_is_said_with_what_can(rng):
    X, y = rows_of(rng, slope=1.0)
    asked = {"control": "threshold", "confidence": 0.95}
    with pytest.raises(UnattainableRateError, match=r"ppv ≥ 0\.\d+ could be had") as raised:
        BootstrapSVC(**QUICK, **asked, rates={"ppv": 0.97}).fit(X, y)
    found = raised.value
    assert (found.rate, found.wanted) == ("ppv", 0.97)
    assert 0.4 < found.attainable < 0.97
    with pytest.raises(UnattainableRateError, match=r"keeps tpr ≥ 0\.8") as raised:
        BootstrapSVC(**QUICK, **asked, rates={"tpr": 0.8, "ppv": 0.75}).fit(X, y)
    assert 0.4 < raised.value.attainable < 0.75
    with pytest.raises(UnattainableRateError, match=r"with confidence 0\.95 .* at least 437 rows"):
        BootstrapSVC(**QUICK, **asked, rates={"ppv": 0.99}).fit(X, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"control": "constrained", "rates": {"ppv": 0.9}}, "control='constrained'"),
        ({"control": "threshold", "rates": {"npv": 0.9}, "calibration": None}, "calibration=None"),
        ({"control": "threshold", "rates": {"recall": 0.9}}, "give 'tpr', 'tnr', 'ppv', 'npv' or"),
        ({"control": "threshold", "rates": {"ppv": 1.5}}, "up to 1"),
    ],
)
def test_what_cannot_be_asked_for(rng, options, words):
    X, y = rows_of(rng, 60)
    with pytest.raises(DataError, match=words):
        BootstrapSVC(**QUICK | options).fit(X, y)


def test_several_classes_have_rates_of_their_own(rng):
    X, _ = rows_of(rng, 60)
    model = BootstrapSVC(**QUICK, control="threshold", rates={"ppv": 0.9})
    with pytest.raises(DataError, match="Only binary classification"):
        model.fit(X, np.resize([0, 1, 2], 60))
