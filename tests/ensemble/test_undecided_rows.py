"""Rows left undecided so that rates hold of the others: thresholds, files, tables, server."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from bootprob import BootstrapClassifier, BootstrapSVC, DataError, UnattainableRateError
from bootprob.batch_scoring import score_batches
from bootprob.ensemble.control.thresholds import LeftOut
from bootprob.ensemble.control.undecided_rows import thresholds_of_all
from bootprob.ensemble.controlled_rates import rates_under_control
from bootprob.metrics.decision_rates import decision_rates, predictive_values, rates_between
from bootprob.metrics.rates import RateFloor, rate_floors
from bootprob.persistence.save_load import load, save
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

QUICK = {"kernel": "linear", "C": 1.0, "n_bootstraps": 25, "random_state": 0}
ALL = ("tpr", "tnr", "ppv", "npv", "decided")


@pytest.fixture
def rng():
    """Always the same: what can be promised, and what is covered, depends on the rows drawn."""
    return np.random.default_rng(0)


def rows_of(rng, n=400, slope=2.0):
    X = rng.normal(size=(n, 3))
    return X, (rng.uniform(size=n) < expit(slope * X[:, 0])).astype(int)


def test_the_pair_of_class_rates_is_that_of_their_order_statistics(rng):
    scores = rng.normal(size=300)
    positive = rng.uniform(size=300) < expit(2 * scores)
    rows = LeftOut(positive, np.ones(300))
    floors = rate_floors({"tpr": 0.9, "tnr": 0.9, "decided": 0.2}, None, "binomial", ALL)
    found = thresholds_of_all(scores, rows, floors)
    lower, upper = found.between
    assert lower < upper
    # As little as does: one positive, or one negative, more on the wrong side would be too many.
    below = np.sort(scores[positive])
    assert (below <= lower).sum() == int(0.1 * positive.sum() + 1e-9)
    above = np.sort(scores[~positive])
    assert (above > upper).sum() == int(0.1 * (~positive).sum() + 1e-9)
    # No other pair that does would leave fewer undecided.
    every = np.concatenate([[-np.inf], np.sort(scores)])
    kept = [(scores[positive] > a).mean() >= 0.9 for a in every]
    most = every[np.flatnonzero(kept)[-1]]
    kept = [(scores[~positive] <= b).mean() >= 0.9 for b in every]
    least = every[np.flatnonzero(kept)[0]]
    fewest = ((scores > most) & (scores <= least)).sum()
    assert ((scores > lower) & (scores <= upper)).sum() == fewest
    easy = rate_floors({"tpr": 0.6, "tnr": 0.6, "decided": 0.2}, None, "binomial", ALL)
    same = thresholds_of_all(scores, rows, easy).between
    assert same[0] == same[1]  # one threshold keeps both: all are decided


@pytest.mark.parametrize("names", [("ppv",), ("npv",), ("ppv", "npv"), ("tpr", "ppv", "npv")])
def test_no_candidates_would_leave_fewer_undecided(rng, names):
    scores = rng.normal(size=500)
    positive = rng.uniform(size=500) < expit(2 * scores)
    rows = LeftOut(positive, np.ones(500))
    least = {"tpr": 0.7, "ppv": 0.8, "npv": 0.8}
    rates = {name: least[name] for name in names} | {"decided": 0.05}
    found = thresholds_of_all(scores, rows, rate_floors(rates, 0.9, "binomial", ALL))
    lower, upper = found.between
    measured = rates_between(positive, scores, (lower, upper), np.ones(500), 0.9)
    for name in names:
        assert measured[name].value >= found.shares[name] - 1e-9 >= least[name] - 1e-9
    assert measured["decided"].value >= found.shares["decided"]
    # Alone, each side reaches no further.
    for name, side in (("ppv", upper), ("npv", lower)):
        if name in names and len(names) == 2:
            [floor] = rate_floors({name: least[name]}, 0.9, "binomial", ALL)
            alone = thresholds_of_all(
                scores, rows, (floor, RateFloor("decided", 0.01, None))
            )  # fmt: skip
            assert alone.between[0] == alone.between[1]
            assert (alone.threshold <= side) if name == "ppv" else (alone.threshold >= side)


def test_rates_of_decisions_with_rows_between_by_hand(rng):
    p, positive = rng.uniform(size=200), rng.uniform(size=200) < 0.5
    weight = rng.uniform(0, 2, 200)
    found = rates_between(positive, p, (0.3, 0.6), weight, 0.9)
    by_hand = {
        "tpr": (positive, p > 0.3),
        "tnr": (~positive, p <= 0.6),
        "ppv": (p > 0.6, positive),
        "npv": (p <= 0.3, ~positive),
        "decided": (np.ones(200, bool), (p > 0.6) | (p <= 0.3)),
    }
    for name, (members, right) in by_hand.items():
        expected = np.average(right[members], weights=weight[members])
        assert found[name].value == pytest.approx(expected)
        assert found[name].n_rows == members.sum()
    one = rates_between(positive, p, (0.5, 0.5), weight, 0.9)
    plain = decision_rates(positive, p > 0.5, weight, 0.9)
    plain |= predictive_values(positive, p > 0.5, weight, 0.9)
    assert {name: one[name] for name in plain} == plain
    assert one["decided"].value == 1


def test_the_model_its_file_and_what_it_says(rng, tmp_path):
    X, y = rows_of(rng)
    rates = {"ppv": 0.75, "npv": 0.75, "decided": 0.2}
    model = BootstrapSVC(**QUICK, control="threshold", rates=rates, confidence=0.9).fit(X, y)
    lower, upper = model.undecided_between_
    assert lower < model.decision_threshold_ <= upper or lower <= model.decision_threshold_ < upper
    p = model.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(model.undecided(X), (p > lower) & (p <= upper))
    np.testing.assert_array_equal(model.summarize(X)["undecided"], model.undecided(X))
    assert 0 < model.undecided(X).mean() < 0.8
    oob = model.oob_proba_[:, 1]
    known = np.isfinite(oob)
    for entry in model.controlled_rates_:
        assert entry["out_of_bag"] >= entry["required_share"] - 1e-9
    reached = {entry["rate"]: entry["out_of_bag"] for entry in model.controlled_rates_}
    assert reached["ppv"] == pytest.approx(y[known & (oob > upper)].mean())
    assert reached["npv"] == pytest.approx(1 - y[known & (oob <= lower)].mean())
    assert reached["decided"] == pytest.approx(((oob > upper) | (oob <= lower))[known].mean())
    shown = {rate.rate: rate.out_of_bag.value for rate in rates_under_control(model)}
    assert {name: shown[name] for name in reached} == pytest.approx(reached)
    save(model, tmp_path / "m.model")
    again = load(tmp_path / "m.model")
    np.testing.assert_array_equal(again.undecided(X), model.undecided(X))
    assert again.controlled_rates_ == model.controlled_rates_
    again.undecided_between_ = again.undecided_between_[::-1]
    with pytest.raises(ValueError, match="falling order"):
        save(again, tmp_path / "falling.model")
    again.undecided_between_ = None
    with pytest.raises(ValueError, match="belong together"):
        save(again, tmp_path / "none.model")
    plain = BootstrapSVC(**QUICK).fit(X, y)
    assert plain.undecided_between_ is None
    assert not plain.undecided(X).any()
    np.testing.assert_allclose(plain.predict_proba(X)[:, 1], p)


def test_tables_batches_and_files(tmp_path):
    rates = {"tpr": 0.9, "tnr": 0.9, "decided": 0.1}
    model = TableModel.fit(
        credit_table(160), "risk", "bad", control="threshold", rates=rates, **QUICK
    )
    new = credit_table(80, seed=2).drop(columns="risk")
    found = model.predict(new)
    lower, upper = model.svc.undecided_between_
    p = found["probability"]
    np.testing.assert_array_equal(found["undecided"], (p > lower) & (p <= upper))
    assert 0 < found["undecided"].mean() < 1
    rows = pa.RecordBatch.from_pandas(new, preserve_index=False)
    [scored] = score_batches(model, [rows])
    pd.testing.assert_series_equal(scored.to_pandas()["undecided"], found["undecided"])


def test_what_cannot_be_had(rng):
    X, y = rows_of(rng, slope=1.0)
    asked = {**QUICK, "control": "threshold"}
    with pytest.raises(UnattainableRateError, match=r"decided ≥ 0\.\d+ could be had") as raised:
        BootstrapSVC(**asked, rates={"tpr": 0.95, "tnr": 0.95, "decided": 0.9}).fit(X, y)
    assert raised.value.rate == "decided"
    assert 0 < raised.value.attainable < 0.9
    can = {"tpr": 0.95, "tnr": 0.95, "decided": raised.value.attainable - 1e-6}
    BootstrapSVC(**asked, rates=can).fit(X, y)
    with pytest.raises(UnattainableRateError, match="bound of all thresholds"):
        BootstrapSVC(**asked, confidence=0.95, rates={"tpr": 0.8, "decided": 0.95}).fit(X, y)
    rates = {"ppv": 0.97, "decided": 0.1}
    with pytest.raises(UnattainableRateError, match="ppv ≥ 0"):
        BootstrapSVC(**asked, confidence=0.95, rates=rates).fit(X, y)
    for options, words in (
        ({"rates": {"decided": 0.9}}, "'decided' alone"),
        ({"rates": {"tpr": 0.9, "decided": 0.9}, "calibration": None}, "'decided'"),
        ({"rates": {"tpr": 0.9, "decided": 0.9}, "control": "constrained"}, "'decided'"),
    ):
        with pytest.raises(DataError, match=words):
            BootstrapSVC(**asked | options).fit(X, y)


def test_the_bound_of_the_share_decided():
    floor = RateFloor("decided", 0.7, 0.95)
    assert floor.required_share(500) == pytest.approx(0.7 + 2 * np.sqrt(np.log(40) / 1000))
    n = floor.least_rows()
    assert floor.required_share(n) <= 1
    assert floor.attainable(n) == pytest.approx(0.7, abs=1e-3)
    with pytest.raises(UnattainableRateError, match=f"at least {n} rows"):
        floor.required_share(n - 1)


def test_the_share_that_tied_scores_have_to_reach_is_a_number():
    """Some of the candidates with one score hold, and others have no chance left."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, size=(600, 2)).astype(float)
    y = rng.random(600) < expit(X @ [1.6, 1.0] - 2.6)
    frozen = FrozenEstimator(LogisticRegression().fit(X[300:], y[300:]))
    model = BootstrapClassifier(
        frozen,
        n_bootstraps=20,
        control="threshold",
        rates={"ppv": 0.7, "npv": 0.7, "decided": 0.1},
        confidence=0.9,
        random_state=0,
    ).fit(X[:300], y[:300])
    assert all(0.7 <= each["required_share"] <= 1 for each in model.controlled_rates_[:2])
