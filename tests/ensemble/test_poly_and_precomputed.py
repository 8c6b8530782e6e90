"""Polynomial, precomputed, Laplacian kernels: as one that they equal, and as scikit-learn's."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from bootprob import BootstrapSVC, DataError, load, save
from bootprob.ensemble.sensitivity import probability_sensitivity
from bootprob.metrics.residual_neighbours import residual_neighbours
from linear_models import linear

pytestmark = pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")
FEW = {"n_bootstraps": 30, "random_state": 0, "C": [0.5, 2.0]}
METHODS = ("corrected", "normal", "jackknife", "percentile", "basic", "bca", "wald")


@pytest.fixture(scope="module")
def circle():
    """A class inside the other: rows, labels, new rows."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 3))
    return X, (np.square(X).sum(axis=1) + rng.normal(size=90) > 3).astype(int), X[:12] + 0.1


def same(one, other, X, Z, *, among_methods=METHODS, rtol=1e-5):
    for name in ("predict_proba", "vote_proba", "decision_function"):
        np.testing.assert_allclose(getattr(one, name)(X), getattr(other, name)(Z), rtol, 1e-6)
    for method in among_methods:
        of_one, of_other = one.proba_interval(X, 0.9, method), other.proba_interval(Z, 0.9, method)
        np.testing.assert_allclose(of_one, of_other, rtol, 1e-5, err_msg=method)
    for name in ("oob_proba_", "oob_decision_function_", "weights_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol, 1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_precomputed_rbf_kernel_is_the_rbf_kernel(circle, weighted):
    X, y, new = circle
    weight = np.where(np.arange(90) % 7, 1.5, 0.0) if weighted else None
    settings = FEW | {"tol": 1e-9}
    rbf = BootstrapSVC(kernel="rbf", gamma=0.2, standardize=None, **settings)
    given = BootstrapSVC(kernel="precomputed", **settings)
    rbf.fit(X, y, sample_weight=weight)
    given.fit(rbf_kernel(X, gamma=0.2), y, sample_weight=weight)
    same(rbf, given, new, rbf_kernel(new, X, gamma=0.2))
    assert given.lack_of_fit_["p_value"] > 0


@pytest.mark.parametrize("standardize", ["bootstrap", "global", None])
def test_a_polynomial_of_degree_one_is_linear(circle, standardize):
    X, y, new = circle
    settings = FEW | {"tol": 1e-9, "standardize": standardize}
    straight = linear(**settings).fit(X, y)
    poly = BootstrapSVC(kernel="poly", degree=1, gamma=1.0, **settings).fit(X, y)
    # "corrected" is another method for linear kernels.
    same(straight, poly, new, new, among_methods=METHODS[1:], rtol=1e-4)


def test_a_precomputed_polynomial_is_the_polynomial(circle):
    X, y, new = circle
    X, new = X + 1, new + 1  # which no kernel but this would see
    settings = FEW | {"tol": 1e-9}
    parameters = {"degree": 2, "coef0": 1.0, "gamma": 0.3}
    poly = BootstrapSVC(kernel="poly", standardize=None, **parameters, **settings).fit(X, y)
    given = BootstrapSVC(kernel="precomputed", **settings)
    given.fit(polynomial_kernel(X, **parameters), y)
    values = polynomial_kernel(new, X, **parameters)
    same(poly, given, new, values, among_methods=METHODS[1:])
    with pytest.raises(DataError, match=r"needs k\(x, x\) of new rows.*sqrt"):
        given.proba_interval(values)
    with pytest.raises(DataError, match=r"needs k\(x, x\) of new rows"):
        given.summarize(values)
    with pytest.raises(DataError, match=r"needs k\(x, x\) of new rows"):
        given.oob_proba_interval()


def test_machines_are_those_of_scikit_learn(circle):
    X, y, new = circle
    X, new = X + 0.5, new + 0.5
    model = BootstrapSVC(
        kernel="poly", degree=3, gamma=0.5, coef0=1.0, C=[2.0], n_bootstraps=3, random_state=0,
        standardize=None, class_weight=None, calibration=None, tol=1e-9,
    ).fit(X, y)  # fmt: skip
    counts = model.bootstrap_counts()
    [[scores]] = [np.moveaxis(part, 2, 0)[:, :, 0][None] for part in model.bootstrap_scores(new)]
    for of_sample, found in zip(counts, scores, strict=True):
        seen = of_sample > 0
        peer = SVC(kernel="poly", degree=3, gamma=0.5, coef0=1.0, C=2.0, tol=1e-9)
        peer.fit(X[seen], y[seen], sample_weight=of_sample[seen].astype(float))
        np.testing.assert_allclose(found, peer.decision_function(new), 1e-4, 1e-4)


def test_a_curved_truth_is_within_reach(circle):
    X, y, new = circle
    poly = BootstrapSVC(kernel="poly", degree=2, coef0=1.0, **FEW).fit(X, y)
    straight = linear(**FEW).fit(X, y)
    assert poly.metric_intervals()["auc"].value > straight.metric_intervals()["auc"].value + 0.1
    lower, upper = poly.proba_interval(new)[:, 1].T
    assert (lower < poly.predict_proba(new)[:, 1]).all()
    assert (poly.predict_proba(new)[:, 1] < upper).all()


@pytest.mark.parametrize("kernel", ["poly", "precomputed", "laplacian"])
def test_several_classes_and_files(kernel, tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], np.array(["a", "b", "c"])[y[::3]]
    given, new = X, X[:7] + 0.05
    model = BootstrapSVC(kernel=kernel, degree=2, coef0=0.5, **FEW)
    reference = None
    if kernel == "precomputed":
        reference = BootstrapSVC(kernel="rbf", gamma=0.3, standardize=None, **FEW).fit(X, y)
        given, new = rbf_kernel(X, gamma=0.3), rbf_kernel(new, X, gamma=0.3)
    model.fit(given, y)
    found = model.predict_proba(new), model.proba_interval(new), model.prediction_sets(new)
    if reference is not None:
        expected = reference.predict_proba(X[:7] + 0.05)
        np.testing.assert_allclose(found[0], expected, atol=1e-4)
        bounds = reference.proba_interval(X[:7] + 0.05)
        np.testing.assert_allclose(found[1], bounds, atol=1e-3)
    save(model, tmp_path / "m.model")
    for again in (load(tmp_path / "m.model"), pickle.loads(pickle.dumps(model))):
        assert again.kernel_ == model.kernel_
        for one, other in zip(found, (again.predict_proba(new), again.proba_interval(new),
                                      again.prediction_sets(new)), strict=True):  # fmt: skip
            np.testing.assert_array_equal(one, other)


def test_two_classes_come_back_from_a_file(circle, tmp_path):
    X, y, new = circle
    for model, rows, asked in (
        (BootstrapSVC(kernel="poly", degree=2, coef0=1.0, **FEW), X, new),
        (BootstrapSVC(kernel="precomputed", **FEW), rbf_kernel(X), rbf_kernel(new, X)),
    ):
        save(model.fit(rows, y), tmp_path / "m.model")
        again = load(tmp_path / "m.model")
        np.testing.assert_array_equal(again.proba_interval(asked), model.proba_interval(asked))
        # What a model was fitted with is part of it, whatever its parameters are set to.
        again.set_params(degree=5, coef0=0.0)
        np.testing.assert_array_equal(again.predict_proba(asked), model.predict_proba(asked))


@pytest.mark.parametrize(
    "kernel_",
    [
        {"kernel": "poly", "degree": 2.5, "coef0": 1.0},
        {"kernel": "poly", "degree": 2, "coef0": -1.0},
        {"kernel": "poly", "degree": 2},
        {"kernel": "rbf"},
        {"kernel": "cosine"},
        {"kernel": "precomputed"},
        {},
        None,
    ],
)
def test_another_kernel_than_was_fitted_is_refused(circle, tmp_path, kernel_):
    X, y, _ = circle
    model = BootstrapSVC(kernel="poly", degree=2, coef0=1.0, **FEW).fit(X, y)
    model.kernel_ = kernel_
    with pytest.raises((TypeError, ValueError)):  # by the checks that reading makes as well
        save(model, tmp_path / "m.model")


@pytest.mark.parametrize(
    ("one", "other", "rates"),
    [
        ({"kernel": "rbf", "gamma": 0.2, "standardize": None}, "precomputed", {"tpr": 1.0}),
        ({"kernel": "rbf", "gamma": 0.2, "standardize": None}, "precomputed", {"tpr": 1, "tnr": 1}),
        ({"kernel": "linear"}, "poly", {"tnr": 1.0}),
    ],
)
def test_machines_under_constraints_are_those_of_the_kernel_that_they_equal(
    circle, one, other, rates
):
    """Where there is no choice of rows: of some as good as each other, rounding chooses."""
    X, y, new = circle
    settings = FEW | {"n_bootstraps": 4, "tol": 1e-9, "calibration": None}
    settings |= {"control": "constrained", "rates": rates}
    known = linear(**one, **settings).fit(X, y)
    model = BootstrapSVC(kernel=other, degree=1, gamma=1.0, **settings)
    given, asked = X, new
    if other == "precomputed":
        given, asked = rbf_kernel(X, gamma=0.2), rbf_kernel(new, X, gamma=0.2)
    model.fit(given, y)
    for expected, found in zip(known.bootstrap_scores(new), model.bootstrap_scores(asked),
                               strict=True):  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.control_gap_, known.control_gap_, atol=1e-5)


@pytest.mark.parametrize("kernel", ["poly", "precomputed", "laplacian"])
def test_a_model_under_constraints_answers_all_that_others_do(circle, tmp_path, kernel):
    X, y, new = circle
    if kernel == "precomputed":
        X, new = rbf_kernel(X), rbf_kernel(new, X)
    model = BootstrapSVC(
        kernel=kernel, degree=2, coef0=1.0, control="constrained", rates={"tpr": 0.9}, **FEW
    )
    model.fit(X, y)
    scores = np.concatenate(list(model.bootstrap_scores(X)))  # (n, R, B)
    mass = model.bootstrap_counts().T[:, None] * (y == 1)[:, None, None]
    assert ((mass * (scores >= 1 - 1e-5)).sum(0) >= 0.9 * mass.sum(0) - 1e-9).all()
    assert ((model.control_gap_ >= -1e-6) & (model.control_gap_ < 1)).all()
    p = model.predict_proba(new)
    for method in METHODS:
        bounds = model.proba_interval(new, 0.9, method)
        assert ((bounds[..., 0] <= p) & (p <= bounds[..., 1])).all() or method != "corrected"
        assert np.isfinite(bounds).all()
    np.testing.assert_allclose(model.summarize(new)["probability"], p[:, 1])
    assert model.controlled_rates_[0]["rate"] == "tpr"
    with pytest.raises(DataError, match="its machines are under constraints"):
        probability_sensitivity(model, new)
    save(model, tmp_path / "m.model")
    again = load(tmp_path / "m.model")
    np.testing.assert_array_equal(again.predict_proba(new), p)
    np.testing.assert_array_equal(again.control_gap_, model.control_gap_)


def test_folds_take_rows_and_columns(circle):
    X, y, _ = circle
    model = BootstrapSVC(kernel="precomputed", n_bootstraps=10, random_state=0, C=[1.0])
    assert cross_val_score(model, rbf_kernel(X), y, cv=3).mean() > 0.6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "poly", "gamma": "median"}, "goes by the distances that RBF kernels see"),
        ({"kernel": "poly", "gamma": "grid"}, "goes by the distances that RBF kernels see"),
        ({"kernel": "poly", "degree": 0}, "'degree' parameter"),
        ({"kernel": "poly", "degree": 2.5}, "'degree' parameter"),
        ({"kernel": "poly", "coef0": -0.1}, "'coef0' parameter"),
        ({"kernel": "poly", "feature_map": "nystroem"}, "approximates RBF kernels"),
        ({"kernel": "precomputed", "feature_map": "nystroem"}, "approximates RBF kernels"),
        ({"kernel": "laplacian", "feature_map": "nystroem"}, "approximates RBF kernels"),
        ({"kernel": "precomputed"}, "must be the .n, n. matrix"),
        ({"kernel": "cosine"}, "'kernel' parameter"),
    ],
)
def test_what_cannot_be_is_refused(circle, parameters, message):
    X, y, _ = circle
    with pytest.raises(ValueError, match=message):
        BootstrapSVC(**(FEW | parameters)).fit(X, y)


def test_no_kernel_matrix_is_refused(circle):
    X, y, _ = circle
    model = BootstrapSVC(kernel="precomputed", **FEW)
    lopsided = rbf_kernel(X)
    lopsided[0, 1] += 0.5
    with pytest.raises(ValueError, match="not symmetric"):
        model.fit(lopsided, y)
    with pytest.raises(ValueError, match="indefinite"):
        model.fit(-cdist(X, X), y)
    model.fit(rbf_kernel(X), y)
    with pytest.raises(ValueError, match="is expecting 90 features"):
        model.predict_proba(X)


def test_rows_whose_kernel_overflows_are_told(circle):
    X, y, _ = circle
    model = BootstrapSVC(kernel="poly", degree=3, coef0=1.0, **FEW).fit(X, y)
    assert np.isfinite(model.predict_proba(np.full((1, 3), 1e12))).all()
    with pytest.raises(DataError, match="standard deviations from the training rows"):
        model.predict_proba(np.full((1, 3), 1e60))


def test_there_are_no_coefficients(circle):
    X, y, _ = circle
    model = BootstrapSVC(kernel="poly", **FEW).fit(X, y)
    with pytest.raises(AttributeError, match="polynomial kernel are not linear"):
        model.coef_  # noqa: B018
    assert not hasattr(BootstrapSVC(kernel="precomputed", **FEW).fit(rbf_kernel(X), y), "coef_")


def test_distances_in_feature_space_are_those_between_rows(circle):
    X, y, _ = circle
    p = np.clip(np.linspace(0, 1, 90), 0.05, 0.95)
    weight = np.ones(90)
    found = residual_neighbours(X @ X.T, y == 1, p, weight, precomputed=True)
    assert found == pytest.approx(residual_neighbours(X, y == 1, p, weight))


def test_too_many_rows_are_told_of_the_map_that_there_is():
    X = np.zeros((20_001, 1))
    X[::2] = 1
    with pytest.raises(DataError, match=r"kernel='poly' on 20,001 rows.*kernel='rbf' and feature_"):
        BootstrapSVC(kernel="poly", **FEW).fit(X, X[:, 0] > 0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "parameters",
    [{"degree": 3}, {"degree": 2, "coef0": 1.0}, {"kernel": "laplacian", "gamma": "median"}],
    ids=str,
)
@pytest.mark.parametrize(
    "case", ["constant", "one column", "copies", "separable", "wide", "scales"]
)
def test_ugly_rows_have_probabilities_and_intervals(rng, case, parameters):
    y = np.tile([0, 1], 20)
    X = {
        "constant": np.ones((40, 2)),
        "one column": rng.normal(size=(40, 1)),
        "copies": np.repeat(rng.normal(size=(10, 3)), 4, axis=0),
        "separable": np.column_stack([5.0 * y, rng.normal(size=40)]),
        "wide": rng.normal(size=(40, 200)),
        "scales": rng.normal(size=(40, 2)) * [1e6, 1e-6],
    }[case]
    settings = {"n_bootstraps": 3, "random_state": 0, "C": [0.1, 1e4]}
    model = BootstrapSVC(**{"kernel": "poly", **parameters, **settings}).fit(X, y)
    p, bounds = model.predict_proba(X[:4]), model.proba_interval(X[:4])
    assert (bounds[..., 0] <= p).all()
    assert (p <= bounds[..., 1]).all()
    assert ((bounds >= 0) & (bounds <= 1)).all()


@pytest.mark.parametrize("K", [np.zeros((40, 40)), np.ones((40, 40)), 1e-12 * np.eye(40)])
def test_kernels_that_tell_nothing_have_probabilities_and_intervals(K):
    model = BootstrapSVC(kernel="precomputed", **FEW).fit(K, np.tile([0, 1], 20))
    p, bounds = model.predict_proba(K[:4]), model.proba_interval(K[:4])
    assert (bounds[..., 0] <= p).all()
    assert (p <= bounds[..., 1]).all()
