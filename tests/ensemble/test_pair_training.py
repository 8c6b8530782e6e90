"""Several classes in `BootstrapSVC`: pairs against scikit-learn, the whole against its pairs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit, logit, softmax
from scipy.stats import false_discovery_control
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight

from bootprob import BootstrapSVC, DataError, LackOfFitWarning
from bootprob.calibration.coupling import class_pairs, couple
from bootprob.ensemble.fitted import ensemble_of
from bootprob.ensemble.out_of_bag_metrics import out_of_bag_class_intervals
from bootprob.ensemble.several_classes import SeveralClasses, lack_of_fit_of_pairs
from bootprob.metrics import class_metrics
from linear_models import linear

QUICK = {"n_bootstraps": 20, "C": [0.1, 1.0], "random_state": 0}
KINDS = {
    "linear": {},
    "more columns than rows": {"standardize": "global"},
    "rbf": {"kernel": "rbf", "gamma": [0.1, 0.3]},
    "feature map": {"kernel": "rbf", "feature_map": "nystroem", "n_components": 40},
    "as it is": {"standardize": None, "class_weight": None},
    "isotonic": {"calibration": "isotonic"},
    "votes": {"calibration": "sigmoid-votes"},
}


def draw(rng: np.random.Generator, n: int = 90, K: int = 3, p: int = 3):
    """Labels of a softmax truth, each class there."""
    coef = 1.5 * rng.normal(size=(K, p))
    X = rng.normal(size=(n, p))
    chances = softmax(X @ coef.T, axis=1)
    y = (rng.random((n, 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    y[: 4 * K] = np.repeat(np.arange(K), 4)
    return X, y, chances


def fitted(rng: np.random.Generator, kind: str, **more: object):
    X, y, _ = draw(rng, p=120 if kind == "more columns than rows" else 3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The feature map's kernel is off")
        return X, y, linear(**QUICK | KINDS[kind] | more).fit(X, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_machines_of_a_pair_are_scikit_learn_s(rng, kernel):
    """Each on the pair's rows of the shared sample, with weights of all classes."""
    X, y, _ = draw(rng)
    weight = rng.uniform(0.5, 2, len(y))
    model = linear(**QUICK | {"kernel": kernel, "gamma": 0.2, "tol": 1e-9})
    model.fit(X, y, sample_weight=weight)
    # Weighted class sizes, as scikit-learn's are without sample weights.
    balance = weight.sum() / (3 * np.bincount(y, weights=weight))
    rows = (X - model.center_) / model.scale_
    whole = model.bootstrap_counts()
    for pair, (i, j) in zip(model.pair_ensembles_, class_pairs(3), strict=True):
        scores = np.concatenate(list(pair.bootstrap_scores(X)))
        for b in (0, 7):
            seen = rows / model.bootstrap_scale_[b]
            used = np.isin(y, (i, j)) & (whole[b] > 0)
            for r, C in enumerate(model.C_):
                machine = SVC(kernel=kernel, C=C, gamma=0.2, tol=1e-8)
                machine.fit(seen[used], y[used] == j, (whole[b] * weight * balance[y])[used])
                expected = machine.decision_function(seen)
                np.testing.assert_allclose(scores[:, r, b], expected, atol=2e-4)


def test_balanced_weights_are_scikit_learn_s(rng):
    from bootprob.preparation.labels import weigh_classes

    y = rng.integers(0, 4, 60)
    _, training = weigh_classes("balanced", np.arange(4), y, np.ones(60))
    np.testing.assert_allclose(training, compute_sample_weight("balanced", y))


@pytest.mark.parametrize("kind", KINDS)
def test_out_of_bag_probabilities_by_brute_force(rng, kind):
    """Every row, of the pair or not, by the replicates whose whole sample lacks it."""
    X, _, model = fitted(rng, kind)
    outside = (model.bootstrap_counts() == 0).T
    second, votes = [], []
    for pair in model.pair_ensembles_:
        raw = np.concatenate(list(pair.bootstrap_scores(X)))
        scores = np.einsum("mrb,r->mb", raw, pair.weights_) / pair.score_scale_ + pair.score_offset_
        mean = (scores * outside).sum(axis=1) / outside.sum(axis=1)
        vote = np.einsum("mrb,r->mb", raw > 0, pair.weights_)
        votes.append(((vote * outside).sum(axis=1) / outside.sum(axis=1)).clip(0, 1))
        second.append(ensemble_of(pair).calibrated.predict(mean, votes[-1]))
        own = pair.shared_draws_["rows"]
        np.testing.assert_allclose(pair.oob_proba_[:, 1], second[-1][own], atol=1e-9)
        np.testing.assert_allclose(pair.oob_decision_function_, mean[own], atol=1e-9)
    np.testing.assert_allclose(model.oob_proba_, couple(np.stack(second, axis=1)), atol=1e-8)
    np.testing.assert_allclose(model.oob_vote_proba_, couple(np.stack(votes, axis=1)), atol=1e-8)
    np.testing.assert_array_equal(model.oob_counts_, outside.sum(axis=1))
    expected = logit(model.oob_proba_.clip(1e-15, 1 - 1e-15))
    np.testing.assert_allclose(model.oob_decision_function_, expected)


@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")  # more columns than rows
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_of_several_classes(rng, kind):
    X, _, model = fitted(rng, kind)
    new = rng.normal(size=(25, X.shape[1]))
    p = model.predict_proba(new)
    second = np.stack([pair.predict_proba(new)[:, 1] for pair in model.pair_ensembles_], axis=1)
    np.testing.assert_allclose(p, couple(second), rtol=1e-12)
    assert (model.predict(new) == p.argmax(axis=1)).all()
    assert (model.decision_function(new).argmax(axis=1) == p.argmax(axis=1)).all()
    np.testing.assert_allclose(expit(model.decision_function(new)), p, atol=1e-12)
    np.testing.assert_allclose(model.vote_proba(new).sum(axis=1), 1)
    bounds = model.proba_interval(new)
    assert bounds.shape == (25, 3, 2)
    assert (bounds[..., 0] < bounds[..., 1]).all()
    if kind != "isotonic":  # whose probabilities the interval of the sigmoid may leave out
        assert (bounds[..., 0] <= p + 1e-12).all()
        assert (p <= bounds[..., 1] + 1e-12).all()
    said = model.summarize(new, 0.8)
    np.testing.assert_array_equal(said["probability"], p)
    np.testing.assert_array_equal(said["label"], model.predict(new))
    np.testing.assert_array_equal(said["probability_interval"], model.proba_interval(new, 0.8))


def test_labels_keep_their_order(rng):
    X, y, _ = draw(rng, K=4)
    names = np.array(["pear", "apple", "quince", "fig"])
    model = linear(**QUICK).fit(X, names[y])
    assert model.classes_.tolist() == ["apple", "fig", "pear", "quince"]
    assert (model.classes_[model.y_] == names[y]).all()
    assert len(model.pair_ensembles_) == 6
    fit_on_numbers = linear(**QUICK).fit(X, np.argsort(np.argsort(names))[y])
    np.testing.assert_array_equal(fit_on_numbers.predict_proba(X), model.predict_proba(X))
    assert (model.predict(X) == names[y]).mean() > 0.35


def test_a_pair_draws_its_samples_again(rng):
    """Also those that were drawn again for want of a third class, which the pair does not know."""
    X, y, _ = draw(rng)
    y[y == 2] = rng.integers(0, 2, (y == 2).sum())
    y[:2] = 2
    weight = np.ones(len(y))
    weight[[5, 11]] = 0.0
    model = linear(**QUICK | {"kernel": "rbf"}).fit(X, y, sample_weight=weight)
    assert model.n_redrawn_ > 0
    whole = model.bootstrap_counts()
    assert (whole[:, :2].sum(axis=1) > 0).all()
    for pair, (i, j) in zip(model.pair_ensembles_, class_pairs(3), strict=True):
        rows, counts = np.isin(y, (i, j)), pair.bootstrap_counts()
        np.testing.assert_array_equal(counts, whole[:, rows])
        np.testing.assert_array_equal((counts == 0).sum(axis=0), pair.oob_counts_)
        # What was not drawn, or weighs nothing, has no share in a machine.
        unused = (counts == 0) | (pair.sample_weight_ == 0)
        assert not np.moveaxis(pair.bootstrap_dual_coef_, 1, 2)[unused].any()
        assert np.moveaxis(pair.bootstrap_dual_coef_, 1, 2)[~unused].any()
        np.testing.assert_array_equal(pair.y_, y[rows] == j)


def test_pairs_are_models_of_two_classes(rng):
    """What several classes cannot be asked, their pairs can."""
    X, _, model = fitted(rng, "rbf")
    pair = model.pair_ensembles_[1]
    n = len(pair.y_)
    assert pair.oob_proba_interval().shape == (n, 2, 2)
    assert pair.score_interval(X, method="studentised").shape == (len(X), 2)
    assert pair.prediction_sets(X).shape == (len(X), 2)
    assert {len(each) for each in (pair.X_fit_, pair.oob_model_scores_, pair.sample_weight_)} == {n}
    assert 0 < pair.metric_intervals()["brier_score"].value < 0.3


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, X: model.score_interval(X),
        lambda model, X: model.metric_intervals(),
        lambda model, X: model.oob_proba_interval(),
        lambda model, X: next(model.bootstrap_scores(X)),
    ],
)
def test_what_is_of_two_classes_is_refused(rng, ask):
    X, _, model = fitted(rng, "linear")
    with pytest.raises(DataError, match=r"has 3 classes, and .* are of two; ask one of pair_ensem"):
        ask(model, X)


def test_intervals_of_votes_are_refused(rng):
    X, _, model = fitted(rng, "linear")
    with pytest.raises(DataError, match=r"'wilson' says nothing of how the errors of several"):
        model.proba_interval(X, method="wilson")
    votes = BootstrapSVC.paper(**QUICK).fit(X, model.y_)
    np.testing.assert_array_equal(votes.predict_proba(X), votes.vote_proba(X))
    with pytest.raises(DataError, match="'wald' says nothing"):
        votes.proba_interval(X)


def test_rates_of_two_classes_are_refused_of_several_before_any_work(rng, monkeypatch):
    monkeypatch.setattr("bootprob.ensemble.fitting.prepare", None)  # nobody gets that far
    X, y, _ = draw(rng)
    for control, said in (("threshold", "ask for rates by class"), ("constrained", "threshold")):
        model = BootstrapSVC(kernel="linear", control=control, rates={"tpr": 0.9})
        with pytest.raises(DataError, match=f"target is multiclass, with 3 classes; .*{said}"):
            model.fit(X, y)


def test_classes_that_hardly_a_sample_holds_are_refused(rng):
    X = rng.normal(size=(90, 2))
    with pytest.raises(DataError, match=r"40 classes, of which the smallest has 2 of 90 rows"):
        linear(**QUICK).fit(X, np.minimum(np.arange(90) // 2, 39))


def test_two_rows_a_class_are_enough_and_one_is_not(rng):
    X, y = rng.normal(size=(60, 2)), np.minimum(np.arange(60) // 2, 3)
    model = linear(**QUICK).fit(X, y)
    assert model.n_redrawn_ > 0
    assert np.isfinite(model.predict_proba(X)).all()
    assert np.isfinite(model.proba_interval(X, method="normal")).all()
    weight = np.ones(60)
    weight[3] = 0.0
    with pytest.raises(DataError, match=r"Class 1 has a single row; .* Put rare classes together"):
        linear(**QUICK).fit(X, y, sample_weight=weight)


def test_every_class_needs_weight(rng):
    X, y, _ = draw(rng)
    with pytest.raises(DataError, match=r"Class 1 has no row .* every class needs some"):
        linear(**QUICK).fit(X, y, sample_weight=(y != 1).astype(float))
    with pytest.raises(DataError, match="all must be positive"):
        linear(**QUICK, class_weight={0: 1.0, 1: 0.0}).fit(X, y)


def test_a_refit_leaves_nothing_behind(rng):
    X, y, _ = draw(rng)
    two = linear(**QUICK).fit(X, y == 1)
    three = linear(**QUICK).fit(X, y)
    attributes = {name: set(vars(model)) for name, model in (("two", two), ("three", three))}
    again, other = clone(two).fit(X, y == 1).fit(X, y), clone(two).fit(X, y).fit(X, y == 1)
    assert set(vars(again)) == attributes["three"]
    assert set(vars(other)) == attributes["two"]
    np.testing.assert_array_equal(again.predict_proba(X), three.predict_proba(X))
    np.testing.assert_array_equal(other.predict_proba(X), two.predict_proba(X))
    with pytest.raises(ValueError, match="1 class"):
        again.fit(X, np.zeros(len(y)))
    np.testing.assert_array_equal(again.predict_proba(X), three.predict_proba(X))


def test_pairs_follow_the_parameters(rng):
    X, y, model = fitted(rng, "linear")
    wide = model.proba_interval(X, method="percentile")
    model.set_params(interval="percentile", coupling="hastie-tibshirani", memory_limit=2**28)
    of_pairs = [ensemble_of(pair) for pair in model.pair_ensembles_]
    pairs = SeveralClasses(model.classes_, of_pairs, "hastie-tibshirani")
    np.testing.assert_array_equal(model.predict_proba(X), pairs.predict_proba(X))
    np.testing.assert_allclose(model.proba_interval(X), wide, atol=0.2)
    assert {pair.memory_limit for pair in model.pair_ensembles_} == {2**28}
    with pytest.raises(ValueError, match="'coupling' parameter"):
        BootstrapSVC(kernel="linear", coupling="voting").fit(X, y)


def test_one_progress_bar(rng, capsys):
    fitted(rng, "linear", verbose=1)
    assert capsys.readouterr().err.count("linear SVMs of 3 pairs") == 1


def test_lack_of_fit_is_warned_of_once(rng):
    """Rings around one another are out of a linear kernel's reach."""
    X = rng.normal(size=(400, 2))
    y = np.searchsorted([0.8, 1.6], np.hypot(*X.T) + 0.1 * rng.normal(size=400))
    model = linear(**QUICK).fit(X, y)
    assert model.lack_of_fit_["p_value"] < 0.005
    with pytest.warns(LackOfFitWarning) as caught:
        model.proba_interval(X[:5])
    assert len(caught) == 1
    curved = linear(**QUICK | {"kernel": "rbf", "C": [1.0, 8.0]}).fit(X, y)
    assert (curved.predict(X) == y).mean() > 0.75


def test_lack_of_fit_of_pairs_is_simes_s(rng):
    p_values = rng.uniform(0.001, 1, 6)
    found = [
        {"p_value": p, "statistic": 1.0, "n_rows": 9.0, "informative_rows": 100 * p}
        for p in p_values
    ]
    combined = lack_of_fit_of_pairs(found)
    assert combined["informative_rows"] == 100 * p_values.min()
    assert combined["p_value"] == pytest.approx(false_discovery_control(p_values).min())
    assert lack_of_fit_of_pairs([None, None]) is None


def test_intervals_contain_a_softmax_truth(rng):
    covered, widths = [], []
    for _ in range(6):
        coef = rng.normal(size=(3, 2))
        X, new = rng.normal(size=(300, 2)), rng.normal(size=(200, 2))
        chances = softmax(X @ coef.T, axis=1)
        y = (rng.random((300, 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(0, 2)
        model = BootstrapSVC(kernel="linear", n_bootstraps=40, random_state=0).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LackOfFitWarning)
            lower, upper = np.moveaxis(model.proba_interval(new), 2, 0)
        truth = softmax(new @ coef.T, axis=1)
        covered.append(((lower <= truth) & (truth <= upper)).mean())
        widths.append((upper - lower).mean())
    # The errors of a training set are those of all its rows: six tell that much.
    assert np.mean(covered) >= 0.85
    assert np.mean(widths) < 0.35


def test_metrics_of_classes(rng):
    from sklearn.metrics import log_loss

    X, y = load_iris(return_X_y=True)
    model = linear(**QUICK).fit(X, y)
    known = np.isfinite(model.oob_proba_).all(axis=1)
    p = model.oob_proba_[known]
    found = class_metrics(y[known], p, np.ones(len(p)))
    of_bag = out_of_bag_class_intervals(model)
    assert [found[name][0] for name in ("accuracy", "log-loss", "Brier score")] == pytest.approx(
        [of_bag[name].value for name in ("accuracy", "log_loss", "brier_score")]
    )
    assert found["log-loss"][0] == pytest.approx(log_loss(y[known], p))
    share = (p.argmax(axis=1) == y[known]).mean()
    assert found["accuracy"] == pytest.approx((share, np.sqrt(share * (1 - share) / known.sum())))
    assert share > 0.93
    assert found["Brier score"][0] == pytest.approx(
        np.square(p - np.eye(3)[y[known]]).sum(1).mean()
    )
    # A row of weight 2 counts as often as two rows.
    twice = rng.integers(1, 3, known.sum())
    weighted = class_metrics(y[known], p, twice)
    repeated = np.repeat(np.arange(known.sum()), twice)
    for name, (value, _) in class_metrics(
        y[known][repeated], p[repeated], np.ones(len(repeated))
    ).items():
        assert weighted[name][0] == pytest.approx(value)


def test_no_row_was_out_of_bag(rng):
    model = linear(**QUICK).fit(*draw(rng)[:2])
    model.oob_proba_ = np.full_like(model.oob_proba_, np.nan)
    with pytest.raises(DataError, match="No row was ever out of bag"):
        out_of_bag_class_intervals(model)
