"""Rates kept by moving thresholds (Ctrl1): order statistics, votes, probabilities, errors."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from bootprob import BootstrapSVC, DataError, UnattainableRateError
from bootprob.ensemble.control.thresholds import (
    LeftOut,
    highest_threshold,
    needed_shares,
    score_threshold,
)
from bootprob.ensemble.control.vote_thresholds import _majority
from bootprob.ensemble.uncertainty.probability_intervals import OF_PROBABILITIES
from bootprob.intervals.shares import effective_rows
from bootprob.metrics.rates import RateFloor, rate_floors
from linear_models import linear


def overlapping(rng, n=160, p=3, share=0.35):
    positive = rng.uniform(size=n) < share
    positive[:6], positive[6:12] = True, False
    X = rng.normal(size=(n, p)) + 0.9 * positive[:, None]
    return X, positive.astype(int)


# The share that has to be right


@pytest.mark.parametrize("bound", ["binomial", "hoeffding"])
@pytest.mark.parametrize("n", [40, 200, 1000])
def test_the_required_share_is_rarely_reached_by_a_rate_too_low(rng, bound, n):
    # 40 rows, all right, show no more than .83 with (2.4)
    floor, confidence = float(rng.uniform(0.5, 0.82)), 0.9
    needed = RateFloor("tpr", floor, confidence, bound).required_rows(n)
    assert stats.binom.sf(needed - 1, n, floor) <= 0.1 + 1e-12
    if bound == "binomial":  # and one row fewer would be too few
        assert stats.binom.sf(needed - 2, n, floor) > 0.1
        assert stats.beta.ppf(0.1, needed, n - needed + 1) >= floor > 0  # Clopper and Pearson
    else:
        p_star = floor + np.sqrt(np.log(0.1) / (-2 * n))  # thesis (2.4)
        assert needed == np.ceil(p_star * n)


def test_without_confidence_the_share_itself_is_required():
    for n in (6, 10, 20, 33.3):  # of these rows, or of others: rounded where it is asked for
        assert RateFloor("tpr", 0.7).required_share(n) == 0.7
    assert RateFloor("tpr", 0.95).required_rows(20) == 19
    assert RateFloor("tpr", 0.7).required_rows(10) == 7
    assert RateFloor("tpr", 0.71).required_rows(10) == 8


def test_weights_whose_effective_number_is_whole_ask_for_no_more():
    rows = LeftOut(np.ones(4, dtype=bool), np.array([1.0, 1.0, 1.0, 3.0]))  # as 3 rows
    assert needed_shares(rate_floors({"tpr": 0.7}), rows)["tpr"] == 0.7


def test_hoeffding_is_not_rounded_to_the_rows_at_hand():
    share = RateFloor("tpr", 0.7, 0.9, "hoeffding").required_share(40)
    assert share == pytest.approx(0.7 + np.sqrt(np.log(0.1) / -80))  # 34.79 of 40, not 35


@pytest.mark.parametrize(("bound", "least"), [("binomial", 59), ("hoeffding", 600)])
def test_too_few_rows_are_said_with_how_many_there_must_be(bound, least):
    floor = RateFloor("tpr", 0.95, 0.95, bound)
    assert floor.least_rows() == least
    assert floor.required_rows(least) == least
    with pytest.raises(UnattainableRateError, match=f"at least {least} positives") as raised:
        floor.required_share(least - 1)
    assert raised.value.rate == "tpr"
    best = RateFloor("tpr", raised.value.attainable, 0.95, bound)
    assert best.required_rows(least - 1) == least - 1


def test_certainty_cannot_be_promised():
    floor = RateFloor("tnr", 1.0, 0.9)
    assert floor.least_rows() is None
    with pytest.raises(UnattainableRateError, match="To go on, lower the rate"):
        floor.required_share(10_000)


@pytest.mark.parametrize(
    ("rates", "confidence", "bound"),
    [
        ({"recall": 0.9}, None, "binomial"),
        ({"tpr": 0.0}, None, "binomial"),
        ({"tpr": 1.2}, None, "binomial"),
        ({"tpr": "high"}, None, "binomial"),
        ({"tpr": np.nan}, None, "binomial"),
        ({"tpr": True}, None, "binomial"),
        ([0.9], None, "binomial"),
        ({"tpr": 0.9}, 1.0, "binomial"),
        ({"tpr": 0.9}, 0.9, "normal"),
    ],
)
def test_what_cannot_be_asked_for(rates, confidence, bound):
    with pytest.raises(DataError, match="give"):
        rate_floors(rates, confidence, bound)


def test_effective_rows():
    assert effective_rows(np.full(7, 3.0)) == pytest.approx(7)
    assert effective_rows(np.array([1.0, 0.0])) == 1
    assert effective_rows(np.zeros(2)) == 0


# Thresholds


@pytest.mark.parametrize("ties", [False, True])
def test_the_highest_threshold_that_keeps_a_share(rng, ties):
    values = rng.normal(size=30).round(1 if ties else 12)
    weight = rng.integers(1, 4, size=30).astype(float)
    for share in (0.05, 0.5, 0.9, 1.0):
        threshold = highest_threshold(values, weight, share)
        assert weight[values > threshold].sum() >= share * weight.sum() * (1 - 1e-9)
        lowest_kept = values[values > threshold].min()
        assert weight[values > lowest_kept].sum() < share * weight.sum()


def test_both_rates_by_one_threshold(rng):
    scores = np.concatenate([rng.normal(1, 1, size=100), rng.normal(-1, 1, size=100)])
    rows = LeftOut(np.arange(200) < 100, np.ones(200))
    floors = rate_floors({"tpr": 0.7, "tnr": 0.7})
    threshold = score_threshold(scores, rows, floors)
    assert (scores[:100] > threshold).mean() >= 0.7
    assert (scores[100:] <= threshold).mean() >= 0.7
    with pytest.raises(UnattainableRateError, match="No threshold keeps both") as raised:
        score_threshold(scores, rows, rate_floors({"tpr": 0.99, "tnr": 0.99}))
    last = np.sort(scores[100:])[-2]  # 99 of 100 negatives are not above
    assert raised.value.attainable == pytest.approx((scores[:100] > last).mean())


@pytest.mark.parametrize(
    ("positives", "negatives", "rates", "threshold"),
    [
        ([-3.0, 0.2, 1.0, 2.0], [-2.0, -1.0, 5.0], {"tpr": 0.75}, 0.0),  # though −1.4 is halfway
        ([1.0, 2.0], [-2.0, -1.0, -0.2, 5.0], {"tnr": 0.75}, 0.0),
        ([0.3, 1.0], [0.1, 0.25, 6.0], {"tpr": 1.0, "tnr": 2 / 3}, 0.275),  # halfways cross
    ],
)
def test_thresholds_move_no_further_than_they_must(positives, negatives, rates, threshold):
    scores = np.array(positives + negatives)
    rows = LeftOut(np.arange(len(scores)) < len(positives), np.ones(len(scores)))
    assert score_threshold(scores, rows, rate_floors(rates)) == pytest.approx(threshold)


def test_rates_that_one_threshold_keeps_are_kept_whatever_votes_can():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    options = {"kernel": "linear", "C": [1.0], "n_bootstraps": 15, "random_state": 0}
    rates = {"tpr": 0.75, "tnr": 0.75}
    model = BootstrapSVC(**options, control="threshold", rates=rates).fit(X, y)
    assert all(each["out_of_bag"] >= 0.75 for each in model.controlled_rates_)
    assert not model.vote_thresholds_.any()
    with pytest.raises(UnattainableRateError, match="No threshold keeps both"):
        BootstrapSVC(**options, control="threshold", rates=rates, calibration=None).fit(X, y)


def test_a_threshold_that_need_not_move_stays(rng):
    rows = LeftOut(np.arange(40) < 20, np.ones(40))
    scores = np.where(rows.positive, 1.0, -1.0) + rng.normal(0, 0.1, size=40)
    assert score_threshold(scores, rows, rate_floors({"tpr": 0.9})) == 0


def test_majority_of_the_votes(rng):
    scores = rng.normal(size=(6, 2, 9))
    outside = rng.uniform(size=(6, 9)) < 0.6
    outside[:, 0] = True
    critical = _majority(scores, outside)
    for i in range(6):
        for r in range(2):
            left_out = scores[i, r, outside[i]]
            assert (left_out > critical[i, r] - 1e-12).mean() > 0.5
            assert (left_out > critical[i, r]).mean() <= 0.5


# The estimator


@pytest.mark.parametrize("calibration", ["sigmoid", None])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("rate", ["tpr", "tnr"])
def test_a_rate_is_kept_out_of_bag(rng, kernel, calibration, rate):
    X, y = overlapping(rng)
    given = {"C": [0.1, 1.0], "n_bootstraps": 20, "random_state": 0, "kernel": kernel}
    model = linear(control="threshold", rates={rate: 0.9}, calibration=calibration, **given).fit(
        X, y
    )
    of_class = y == (1 if rate == "tpr" else 0)
    threshold = model.decision_threshold_
    for decided in (model.oob_proba_[:, 1] > threshold, model.oob_vote_proba_[:, 1] > 0.5):
        known = of_class & np.isfinite(model.oob_decision_function_)
        assert (decided[known] == y[known]).mean() >= 0.9
    for r, C_threshold in enumerate(model.vote_thresholds_):
        assert C_threshold <= 0 if rate == "tpr" else C_threshold >= 0
        assert model.C_[r] in (0.1, 1.0)
    [found] = model.controlled_rates_
    assert found["rate"] == rate
    assert found["out_of_bag"] >= found["required_share"] >= 0.9
    plain = linear(calibration=calibration, **given).fit(X, y)
    if calibration is None:  # votes have moved thresholds of their own
        assert threshold == 0.5
    elif rate == "tpr":
        assert threshold <= 0.5
    else:
        assert threshold >= 0.5
    before = (plain.oob_proba_[~of_class, 1] > 0.5) == y[~of_class]
    after = (model.oob_proba_[~of_class, 1] > threshold) == y[~of_class]
    assert after.mean() <= before.mean() + 1e-9  # it has a price


@pytest.mark.parametrize("calibration", ["sigmoid", None])
def test_decisions_and_votes_follow_and_probabilities_stay(rng, calibration):
    X, y = overlapping(rng)
    fresh = overlapping(rng, n=50)[0]
    given = {"C": [0.1, 1.0], "n_bootstraps": 20, "random_state": 0, "calibration": calibration}
    plain = linear(**given).fit(X, y)
    model = linear(control="threshold", rates={"tpr": 0.97}, **given).fit(X, y)
    # Votes are counted about the thresholds, with the machines as they were.
    scores = np.concatenate(list(model.bootstrap_scores(fresh)))
    np.testing.assert_allclose(scores, np.concatenate(list(plain.bootstrap_scores(fresh))))
    votes = (scores > model.vote_thresholds_[:, None]).mean(axis=2) @ model.weights_
    np.testing.assert_allclose(model.vote_proba(fresh)[:, 1], votes)
    decision = model.decision_function(fresh)
    np.testing.assert_allclose(decision, plain.decision_function(fresh) - model.score_threshold_)
    probability = model.predict_proba(fresh)[:, 1]
    above = probability > model.decision_threshold_
    np.testing.assert_array_equal(model.predict(fresh), above.astype(int))
    if calibration is None:
        assert model.decision_threshold_ == 0.5
        return
    assert 0 < model.decision_threshold_ < 0.5
    np.testing.assert_array_equal(above, decision > 0)
    np.testing.assert_allclose(probability, plain.predict_proba(fresh)[:, 1])
    np.testing.assert_allclose(model.oob_proba_, plain.oob_proba_)
    for method in OF_PROBABILITIES:
        expected = plain.proba_interval(fresh, method=method)
        np.testing.assert_allclose(model.proba_interval(fresh, method=method), expected)
    np.testing.assert_allclose(model.oob_proba_interval(), plain.oob_proba_interval())
    found, same = model.summarize(fresh), plain.summarize(fresh)
    np.testing.assert_array_equal(found["label"], model.predict(fresh))
    for name in ("probability", "probability_interval"):
        np.testing.assert_allclose(found[name], same[name])


@pytest.mark.parametrize("control", ["threshold", "constrained"])
def test_what_control_leaves_of_the_numbers_shown(rng, control):
    X, y = overlapping(rng)
    model = BootstrapSVC(
        kernel="linear",
        C=[1.0],
        n_bootstraps=20,
        random_state=0,
        control=control,
        rates={"tpr": 0.9},
    ).fit(X, y)
    shown = model.metric_intervals()
    known = np.isfinite(model.oob_proba_[:, 1])
    decided = model.oob_proba_[known, 1] > model.decision_threshold_
    assert shown["sensitivity"].value == pytest.approx(decided[y[known] == 1].mean())
    assert shown["specificity"].value == pytest.approx(1 - decided[y[known] == 0].mean())
    assert shown["sensitivity"].value == pytest.approx(model.controlled_rates_[0]["out_of_bag"])
    assert shown["brier_score"].value < 0.25


def test_confidence_asks_for_more(rng):
    X, y = overlapping(rng, n=300)
    given = {"C": [1.0], "n_bootstraps": 15, "random_state": 0, "control": "threshold"}
    plain = linear(rates={"tpr": 0.85}, **given).fit(X, y)
    sure = linear(rates={"tpr": 0.85}, confidence=0.95, **given).fit(X, y)
    surer = linear(rates={"tpr": 0.85}, confidence=0.95, bound="hoeffding", **given).fit(X, y)
    shares = [m.controlled_rates_[0]["required_share"] for m in (plain, sure, surer)]
    assert 0.85 <= shares[0] < shares[1] <= shares[2]
    reached = [m.controlled_rates_[0]["out_of_bag"] for m in (plain, sure, surer)]
    assert all(r >= s - 1e-9 for r, s in zip(reached, shares, strict=True))


def test_weights_count_in_the_rates(rng):
    X, y = overlapping(rng)
    weight = rng.uniform(0.1, 3.0, size=len(y))
    model = BootstrapSVC(
        kernel="linear",
        C=[1.0],
        n_bootstraps=20,
        random_state=0,
        control="threshold",
        rates={"tpr": 0.9},
    ).fit(X, y, sample_weight=weight)
    known = (y == 1) & np.isfinite(model.oob_decision_function_)
    right = model.oob_proba_[known, 1] > model.decision_threshold_
    assert np.average(right, weights=weight[known]) >= 0.9 - 1e-9
    positives = LeftOut(y == 1, weight)
    assert needed_shares(rate_floors({"tpr": 0.9}), positives)["tpr"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rates": {"tpr": 0.9}}, "control is None"),
        ({"confidence": 0.9}, "control is None"),
        ({"control_method": "exact"}, "has anything to solve"),
        ({"control": "threshold"}, "rates is None"),
        ({"control": "threshold", "rates": {}}, "rates is {}"),
        ({"control": "threshold", "rates": {"accuracy": 0.9}}, "ConstrainedSVC"),
        (
            {"control": "threshold", "rates": {"tpr": 0.9}, "calibration": "isotonic"},
            "no threshold on it need keep a rate",
        ),
        ({"control": "threshold", "rates": {"tpr": 0.95}, "confidence": 0.99}, "positives"),
    ],
)
def test_bad_options_are_refused_before_any_training(rng, monkeypatch, options, words):
    X, y = overlapping(rng, n=60)
    monkeypatch.setattr("bootprob.ensemble.fitting.train_ensembles", None)  # nobody gets that far
    with pytest.raises(DataError, match=words):
        linear(n_bootstraps=5, **options).fit(X, y)


def test_scores_that_say_nothing_cannot_be_controlled_through_probabilities(rng):
    X, y = np.zeros((40, 2)), np.arange(40) % 2
    given = {"C": [1.0], "n_bootstraps": 10, "random_state": 0, "control": "threshold"}
    with pytest.raises(DataError, match="say nothing"):
        linear(rates={"tpr": 0.9}, **given).fit(X, y)
    votes = linear(rates={"tpr": 0.9}, calibration=None, **given).fit(X, y)
    assert votes.controlled_rates_[0]["out_of_bag"] >= 0.9


def test_control_is_cloned_saved_and_restored(rng, tmp_path):
    from bootprob.persistence.save_load import load, save

    X, y = overlapping(rng)
    model = BootstrapSVC(
        kernel="linear",
        C=[0.1, 1.0],
        n_bootstraps=10,
        random_state=0,
        control="threshold",
        rates={"tpr": 0.95},
    )
    assert clone(model).get_params()["rates"] == {"tpr": 0.95}
    model.fit(X, y)
    save(model, tmp_path / "model.bootprob")
    again = load(tmp_path / "model.bootprob")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.vote_proba(X), model.vote_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.controlled_rates_ == model.controlled_rates_
