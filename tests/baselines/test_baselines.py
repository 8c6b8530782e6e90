"""The papers' benchmarks as estimators: conventions, ugly tables, Platt against scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import SkipTestWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bootprob import BootstrapSVC, DataError
from bootprob.baselines import (
    PAPER_C,
    BestCSVC,
    PlattSVC,
    PosteriorProbabilitySVC,
    SollichSVC,
)
from bootprob.baselines.inner_cross_validation import inner_folds
from configurations import parametrize_with_configurations

QUICK = {
    "platt": PlattSVC(C=[0.1, 1.0], random_state=0),
    "held out": PlattSVC(C=[0.1, 1.0], scores="held-out", random_state=0),
    "platt rbf": PlattSVC(C=[0.1, 1.0], kernel="rbf", random_state=0),
    "best": BestCSVC(C=[0.1, 1.0], random_state=0),
    "votes": BestCSVC(C=[0.1, 1.0], probability="votes", n_bootstraps=20, random_state=0),
    "neighbours": PosteriorProbabilitySVC(0.5, C=[0.1, 1.0], random_state=0),
    "score": PosteriorProbabilitySVC(0.5, C=[0.1, 1.0], probability="score", random_state=0),
    "tao rbf": PosteriorProbabilitySVC(0.5, C=[0.1, 1.0], kernel="rbf", random_state=0),
    "sollich": SollichSVC(C=[0.1, 1.0], amplitude=[1.0, 16.0], n_draws=40, random_state=0),
    "map": SollichSVC(C=1.0, amplitude=4.0, probability="map", random_state=0),
    "sollich rbf": SollichSVC(
        C=[0.1, 1.0], amplitude=16.0, kernel="rbf", evidence="laplace", n_draws=40, random_state=0
    ),
}
EVERY = pytest.mark.parametrize("name", QUICK)


@pytest.mark.filterwarnings(f"ignore::{SkipTestWarning.__module__}.{SkipTestWarning.__name__}")
@parametrize_with_configurations(
    [QUICK[name] for name in ("held out", "best", "neighbours", "sollich")],
    [QUICK[name] for name in ("votes", "sollich rbf")],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def draw(rng, n=80, p=3, spread=1.0):
    X = rng.normal(size=(n, p))
    y = X[:, 0] + spread * rng.normal(size=n) > 0
    y[:4] = [True, False, True, False]
    return X, y


@EVERY
def test_probabilities_classes_and_decisions_agree(rng, name):
    X, y = draw(rng)
    model = clone(QUICK[name]).fit(X, np.where(y, "sick", "healthy"))
    p = model.predict_proba(X)
    assert p.shape == (80, 2)
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert list(model.classes_) == ["healthy", "sick"]
    assert np.array_equal(model.predict(X), np.where(p[:, 1] > 0.5, "sick", "healthy"))
    decision = model.decision_function(X)
    order = np.argsort(decision)
    assert (np.diff(p[order, 1]) >= -1e-12).all()
    assert np.array_equal(decision > 0, p[:, 1] > 0.5)
    assert model.machine_score(X).shape == (80,)
    assert np.mean(model.predict(X) == np.where(y, "sick", "healthy")) > 0.6


@EVERY
def test_scales_shifts_and_constant_columns_change_nothing(rng, name):
    X, y = draw(rng)
    new = rng.normal(size=(20, 3))
    expected = clone(QUICK[name]).fit(X, y).decision_function(new)
    factor, shift = np.array([1e6, 1e-6, 3.0]), np.array([1e5, 0.0, -2.0])

    def moved(rows):
        return np.column_stack([rows * factor + shift, np.full(len(rows), 7.0)])

    found = clone(QUICK[name]).fit(moved(X), y).decision_function(moved(new))
    # A constant column dilutes γ = 1 / (p · variance), and the prior's columns are as they were.
    if "rbf" not in name and "sollich" not in name:
        np.testing.assert_allclose(found, expected, atol=2e-3)
    else:
        assert np.corrcoef(found, expected)[0, 1] > (0.9 if "rbf" in name else 0.2)


@EVERY
@pytest.mark.parametrize(
    "kind", ["separable", "two rows a class", "p > n", "duplicates", "noise", "one column", "rare"]
)
def test_ugly_tables_give_probabilities(rng, name, kind):
    X, y = draw(rng, 30)
    if kind == "separable":
        y = X[:, 0] > np.median(X[:, 0])
    elif kind == "two rows a class":
        X, y = X[:4], y[:4]
    elif kind == "p > n":
        X = rng.normal(size=(30, 60))
        X[:, 0] += 3 * y
    elif kind == "duplicates":
        X, y = np.repeat(X[:10], 3, axis=0), np.repeat(y[:10], 3)
    elif kind == "noise":
        y = rng.permutation(np.arange(30) % 2 == 0)
    elif kind == "one column":
        X = X[:, :1]
    else:
        y = np.arange(30) < 2
    if name == "held out" and kind in ("two rows a class", "rare"):
        with pytest.raises(DataError, match="held_out_share"):
            clone(QUICK[name]).fit(X, y)
        return
    model = clone(QUICK[name]).fit(X, y)
    p = model.predict_proba(rng.normal(size=(15, X.shape[1])))
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()


@EVERY
def test_what_cannot_be_learned_is_refused(rng, name):
    X, y = draw(rng)
    model = clone(QUICK[name])
    with pytest.raises(ValueError, match="1 class"):
        model.fit(X, np.zeros(80))
    with pytest.raises(ValueError, match="Only binary"):
        model.fit(X, np.arange(80) % 3)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(np.arange(80)[:, None] == 0, np.nan, X), y)
    with pytest.raises(ValueError, match="could not convert"):
        model.fit(X.astype(str).astype(object) + "x", y)
    with pytest.raises(ValueError, match="0 feature"):
        model.fit(X[:, :0], y)
    with pytest.raises(ValueError, match="C"):
        clone(model).set_params(C=[-1.0, 1.0]).fit(X, y)
    if hasattr(model, "cv") and name != "votes":
        with pytest.raises(DataError, match=r"two rows|held_out_share"):
            model.fit(X, np.arange(80) == 0)


def test_paper_halves_the_grid_of_the_thesis():
    assert tuple(2.0**k for k in range(-6, 5)) == PAPER_C
    for kind in (PlattSVC, BestCSVC, PosteriorProbabilitySVC, SollichSVC):
        assert kind.paper().C == PAPER_C
    assert PosteriorProbabilitySVC.paper(r=2.0, C=1.0).get_params()["C"] == 1.0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_best_c_is_that_of_a_grid_search(rng, kernel):
    X, y = draw(rng, 90)
    # Where every row is at its bound, as with a small C, the intercept is any of an interval.
    C, gamma = [0.3, 3.0, 30.0], ([0.1, 1.0] if kernel == "rbf" else "scale")
    model = BestCSVC(C=C, gamma=gamma, kernel=kernel, cv=5, random_state=7).fit(X, y)
    folds = inner_folds(y, 5, np.random.RandomState(7))
    machine = make_pipeline(StandardScaler(), SVC(kernel=kernel, tol=1e-6))
    grid = {"svc__C": C, **({} if kernel == "linear" else {"svc__gamma": gamma})}
    splits = [(np.flatnonzero(~out), np.flatnonzero(out)) for out in folds]
    search = GridSearchCV(machine, grid, cv=splits).fit(X, y)
    accuracy = search.cv_results_["mean_test_score"].reshape(3, -1).T
    # A score next to 0 may fall on either side within the tolerance.
    np.testing.assert_allclose(model.cv_accuracy_, accuracy, atol=1.1 / 18 / 5)
    best = np.unravel_index(np.argmax(model.cv_accuracy_.round(12)), accuracy.shape)
    assert C[best[1]] == model.C_
    again = machine.set_params(svc__C=model.C_, svc__gamma=model.gamma_ or "scale").fit(X, y)
    expected, found = again.decision_function(X), model.decision_function(X)
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=2e-3)
    p = model.predict_proba(X)
    assert set(np.unique(p)) <= {0.0, 1.0}


def test_votes_are_those_of_the_ensemble_with_the_best_c_alone(rng):
    X, y = draw(rng, spread=2.0)
    model = BestCSVC(C=[0.01, 1.0], probability="votes", n_bootstraps=60, random_state=3)
    model.fit(X, y)
    whole = BootstrapSVC.paper(C=[0.01, 1.0], n_bootstraps=60, random_state=3).fit(X, y)
    best = np.argmax(np.nanmean(whole.accuracy_, axis=0))
    assert whole.C_[best] == model.C_
    alone = BootstrapSVC.paper(C=[whole.C_[best]], n_bootstraps=60, random_state=3).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=0.02)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_platt_is_scikit_learns_calibration_of_cross_validated_scores(rng, kernel):
    X, y = draw(rng, 120)
    new = rng.normal(size=(40, 3))
    model = PlattSVC(C=0.5, gamma=0.3, kernel=kernel, cv=5, random_state=11).fit(X, y)
    folds = inner_folds(y, 5, np.random.RandomState(11))
    splits = [(np.flatnonzero(~out), np.flatnonzero(out)) for out in folds]
    machine = make_pipeline(StandardScaler(), SVC(C=0.5, gamma=0.3, kernel=kernel, tol=1e-6))
    peer = CalibratedClassifierCV(machine, method="sigmoid", cv=splits, ensemble=False).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(new), peer.predict_proba(new), atol=2e-3)


def newton_with_backtracking(scores, positive):
    """Slope and intercept by the method of Lin, Lin and Weng, section 3.2."""
    plus, minus = positive.sum(), (~positive).sum()
    target = np.where(positive, (plus + 1) / (plus + 2), 1 / (minus + 2))
    design = np.stack([scores, np.ones_like(scores)], axis=1)
    x = np.array([0.0, np.log((plus + 1) / (minus + 1))])

    def loss(x):
        logit = design @ x
        return (np.logaddexp(0, logit) - target * logit).sum()

    for _ in range(100):
        p = 1 / (1 + np.exp(-design @ x))
        gradient = design.T @ (p - target)
        if np.abs(gradient).max() < 1e-10:
            break
        hessian = design.T @ (design * (p * (1 - p))[:, None]) + 1e-12 * np.eye(2)
        step, length = -np.linalg.solve(hessian, gradient), 1.0
        while length > 1e-10 and loss(x + length * step) > loss(x) + 1e-4 * length * (
            gradient @ step
        ):
            length /= 2
        x = x + length * step
    return x, loss


@pytest.mark.parametrize("scores", ["cross-validated", "held-out"])
def test_the_sigmoid_is_the_optimum_of_lin_lin_and_weng(rng, scores):
    X, y = draw(rng, 150)
    model = PlattSVC(C=[0.1, 1.0], scores=scores, random_state=5).fit(X, y)
    (slope, intercept), loss = newton_with_backtracking(
        model.sigmoid_scores_, y[model.sigmoid_rows_]
    )
    assert slope > 0
    np.testing.assert_allclose(model.sigmoid_, (slope, intercept), rtol=1e-4, atol=1e-5)
    anywhere = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9})
    assert loss(np.array(model.sigmoid_)) <= anywhere.fun + 1e-8


def test_held_out_scores_are_of_rows_that_the_machine_did_not_see(rng):
    X, y = draw(rng, 100)
    model = PlattSVC(C=1.0, scores="held-out", held_out_share=0.3, random_state=2).fit(X, y)
    aside = model.sigmoid_rows_
    assert len(aside) == 30
    inside = np.setdiff1d(np.arange(100), aside)
    peer = make_pipeline(StandardScaler(), SVC(C=1.0, kernel="linear", tol=1e-6))
    peer.fit(X[inside], y[inside])
    np.testing.assert_allclose(model.sigmoid_scores_, peer.decision_function(X[aside]), atol=2e-3)
    np.testing.assert_allclose(model.machine_score(X), peer.decision_function(X), atol=2e-3)


def test_platt_probabilities_are_calibrated_and_beat_decisions(rng):
    X, y = make_classification(
        600, 5, n_informative=4, n_redundant=0, flip_y=0.3, random_state=int(rng.integers(1000))
    )
    train, test = next(StratifiedKFold(2, shuffle=True, random_state=0).split(X, y))
    soft = PlattSVC(C=[0.1, 1.0], random_state=0).fit(X[train], y[train])
    hard = BestCSVC(C=[0.1, 1.0], random_state=0).fit(X[train], y[train])

    def squared_error(model):
        return np.mean(np.square(model.predict_proba(X[test])[:, 1] - y[test]))

    assert squared_error(soft) < squared_error(hard)
    assert squared_error(hard) == pytest.approx(1 - hard.score(X[test], y[test]))


def test_a_seed_repeats_everything(rng):
    X, y = draw(rng)
    for model in QUICK.values():
        first = clone(model).fit(X, y).predict_proba(X)
        assert np.array_equal(clone(model).fit(X, y).predict_proba(X), first)


def test_words_of_errors_are_those_of_what_was_given(rng):
    X = rng.normal(size=(60, 2))
    with pytest.raises(DataError, match="Class a has a single row"):
        BestCSVC(probability="votes").fit(X, ["a"] + ["b"] * 59)
    y = np.arange(60) % 2
    for C in ([np.nan], [[1.0, 2.0], [3.0, 4.0]], [-1.0]):
        with pytest.raises(DataError, match="one positive number, or several in one list"):
            PlattSVC(C=C).fit(X, y)
