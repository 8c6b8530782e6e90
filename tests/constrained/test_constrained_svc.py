"""`ConstrainedSVC`: what it keeps, what it refuses, and the comparisons."""

import pickle

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC
from small_instances import best_by_enumeration

from bootprob import DataError, UnattainableRateError
from bootprob.constrained import ConstrainedProblem, ConstrainedSVC, Requirement
from bootprob.constrained.all_rows import plain_bound
from bootprob_gpu.kernels.named import kernel_function
from configurations import parametrize_covering


def clouds(rng, n=120, p=3, share=0.4, apart=1.0):
    y = np.arange(n) % 10 < 10 * share
    return rng.normal(size=(n, p)) + apart * y[:, None], np.where(y, "ill", "fit")


def reached(model, X, y):
    """Rates over the anchors, from decision_function alone."""
    rows = model.anchors_
    positive, score = y[rows] == model.classes_[1], model.decision_function(X[rows])
    return {
        "tpr": (score[positive] > 0).mean(),
        "tnr": (score[~positive] < 0).mean(),
        "accuracy": ((score > 0) == positive).mean(),
    }


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("anchors", ["halves", "all"])
@pytest.mark.parametrize("method", ["heuristic", "slide"])
@pytest.mark.parametrize("rates", [{"tpr": 0.9}, {"tnr": 0.95}, {"accuracy": 0.65}])
def test_rates_hold_over_the_anchors(rng, kernel, anchors, method, rates):
    X, y = clouds(rng)
    y = np.where(y == "ill", 1, 0)
    model = ConstrainedSVC(kernel=kernel, anchors=anchors, method=method, rates=rates)
    model.fit(X, y)
    found = reached(model, X, y)
    assert found == pytest.approx(model.rates_)
    for name, least in rates.items():
        assert found[name] >= least
    sign = np.where(y == 1, 1, -1)[model.anchors_]
    margins = sign * model.decision_function(X[model.anchors_])
    level = 0 if method == "slide" else 1 - 1e-6
    members = {"tpr": sign > 0, "tnr": sign < 0, "accuracy": sign != 0}[next(iter(rates))]
    assert np.array_equal(model.given_up_, model.anchors_[members & (margins <= level)])
    assert np.array_equal(model.result_.kept, margins > level)


def test_without_rates_it_is_the_svm_of_scikit_learn(rng):
    X, y = clouds(rng)
    X = (X - X.mean(axis=0)) / X.std(axis=0) + 0.5
    weight = rng.uniform(0.5, 2, len(y))
    shape = {"gamma": 0.3, "degree": 2, "coef0": 0.5}
    for kernel in ("linear", "rbf", "poly"):
        model = ConstrainedSVC(
            kernel=kernel, **shape, C_positive=3.0, C_negative=0.5, standardize=False
        ).fit(X, y, sample_weight=weight)
        # "ill" sorts behind "fit", so it is the positive class
        assert list(model.classes_) == ["fit", "ill"]
        peer = SVC(kernel=kernel, **shape, class_weight={"ill": 3.0, "fit": 0.5}, tol=1e-8)
        peer.fit(X, y, sample_weight=weight)
        assert model.decision_function(X) == pytest.approx(peer.decision_function(X), abs=2e-3)
        assert model.result_.status == "optimal"
        assert model.result_.gap <= 1e-6
        assert model.rates_ == {}
        assert len(model.anchors_) == 0


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_a_solution_solves_the_kernel_problem_of_cvxpy(rng, kernel):
    """With the anchors it keeps, the dual coefficients are optimal among all of them."""
    X, y = clouds(rng, n=60, apart=0.6)
    model = ConstrainedSVC(
        kernel=kernel, gamma=0.4, degree=2, coef0=1.0, C=2.0, rates={"tpr": 0.9}, random_state=0
    ).fit(X, y)
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    I, J = model.training_rows_, model.anchors_  # noqa: E741
    kept = J[(y[J] == "ill") & np.isin(J, model.given_up_, invert=True)]
    fit = np.concatenate([I, kept])
    if kernel == "rbf":
        K = np.exp(-0.4 * np.square(rows[fit][:, None] - rows[fit]).sum(axis=-1))
    else:
        K = (0.4 * rows[fit] @ rows[fit].T + 1) ** 2
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    sign = np.where(y[fit] == "ill", 1.0, -1.0)
    w, b = cp.Variable(len(fit)), cp.Variable()
    margins = cp.multiply(sign, root @ w + b)
    truth = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(w) + 2.0 * cp.sum(cp.pos(1 - margins[: len(I)]))),
        [margins[len(I) :] >= 1],
    )
    truth.solve(solver=cp.CLARABEL)
    assert model.result_.objective == pytest.approx(truth.value, rel=1e-5)


KERNELS = {
    "rbf": ({"gamma": 0.2}, lambda A, B: rbf_kernel(A, B, gamma=0.2)),
    "poly": (
        {"gamma": 0.3, "degree": 2, "coef0": 1.0},
        lambda A, B: polynomial_kernel(A, B, degree=2, gamma=0.3, coef0=1.0),
    ),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "options",
    [
        {"rates": {"tpr": 1.0}},
        {"rates": {"tnr": 1.0}, "anchors": "all"},
        {"rates": {"accuracy": 0.8}, "method": "slide"},
        {"rates": None},
    ],
    ids=str,
)
def test_a_precomputed_kernel_is_the_kernel(rng, kernel, options):
    """Where there is no choice of anchors: of some as good as each other, rounding chooses."""
    X, y = clouds(rng, n=60)
    parameters, values = KERNELS[kernel]
    weight = np.where(np.arange(60) % 7, 1.5, 0.0)
    settings = options | {"random_state": 0}
    named = ConstrainedSVC(kernel=kernel, **parameters, **settings)
    named.fit(X, y, sample_weight=weight)
    rows = (X - named.center_) / named.scale_
    given = ConstrainedSVC(kernel="precomputed", **settings)
    given.fit(values(rows, rows), y, sample_weight=weight)
    assert given.result_.objective == pytest.approx(named.result_.objective, rel=1e-6)
    new = rng.normal(size=(5, 3))
    expected = named.decision_function(new * named.scale_ + named.center_)
    for model in (given, pickle.loads(pickle.dumps(given)).set_params(degree=9)):
        found = model.decision_function(values(new, rows))
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert given.given_up_.tolist() == named.given_up_.tolist()
    assert given.dual_coef_.shape == (1, 60)
    assert (given.dual_coef_[0, weight == 0] == 0).all()


def test_a_polynomial_of_degree_one_is_linear(rng):
    X, y = clouds(rng)
    settings = {"rates": {"tpr": 1.0}, "random_state": 0}
    linear = ConstrainedSVC(**settings).fit(X, y)
    poly = ConstrainedSVC(kernel="poly", degree=1, gamma=1.0, **settings)
    expected = linear.decision_function(X)
    assert poly.fit(X, y).decision_function(X) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert poly.gamma_ == 1
    assert poly.coef_ is None


@pytest.mark.parametrize("options", [{"rates": {"tpr": 0.9}}, {"rates": None}], ids=str)
def test_condensed_rows_of_polynomial_and_precomputed_kernels(rng, options):
    X, y = many_rows(rng)
    parameters, values = KERNELS["poly"]
    settings = CONDENSED | parameters | options
    named = ConstrainedSVC(kernel="poly", **settings).fit(X, y)
    rows = (X - named.center_) / named.scale_
    K = values(rows, rows)
    given = ConstrainedSVC(kernel="precomputed", **settings).fit(K, y)
    whole = ConstrainedSVC(kernel="precomputed", **settings | {"max_rows": None}).fit(K, y)
    for model, seen in ((named, X), (given, K)):
        assert reached(model, seen, y)["tpr"] >= 0.9 if options["rates"] else model.rates_ == {}
        assert model.result_.lower_bound <= whole.result_.objective * (1 + 1e-6)
        assert model.result_.objective == pytest.approx(whole.result_.objective, rel=0.3)
    assert len(named.X_fit_) <= named.n_centres_ <= 100
    # All rows of a matrix that is there are no more than a linear machine has.
    assert (given.n_centres_ is None) == (options["rates"] is None)


def test_confidence_asks_for_more(rng):
    X, y = clouds(rng, n=400)
    shares = []
    for bound in (None, "binomial", "hoeffding"):
        options = {} if bound is None else {"confidence": 0.95, "bound": bound}
        model = ConstrainedSVC(rates={"tpr": 0.8}, random_state=0, **options).fit(X, y)
        shares.append(model.rates_["tpr"])
    assert shares[0] >= 0.8
    # 80 positive anchors: P(Bin(80, .8) ≥ 71) ≤ .05 < P(... ≥ 70), and .8 + √(ln 20 / 160) = .937
    assert shares[1] >= 71 / 80 - 1e-9
    assert shares[2] >= 75 / 80 - 1e-9
    with pytest.raises(UnattainableRateError, match="give at least 59 positives") as caught:
        ConstrainedSVC(rates={"tpr": 0.95}, confidence=0.95).fit(X[:60], y[:60])
    assert caught.value.rate == "tpr"


def test_the_thesis_halves_and_costs(rng):
    X, y = clouds(rng)
    model = ConstrainedSVC.paper(C=8.0, kernel="linear", method="heuristic", rates={"tpr": 0.3})
    assert model.bound == "hoeffding"
    assert model.big_m == 100
    model.fit(X, y)
    assert np.array_equal(model.training_rows_, np.arange(60))
    assert np.array_equal(model.anchors_, np.arange(60, 120))
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    score, sign = model.decision_function(X)[:60], np.where(y == "ill", 1, -1)[:60]
    slack = np.maximum(0, 1 - sign * score)
    theirs = np.square(model.coef_).sum() + 8 * slack[sign > 0].mean() + 8 * slack[sign < 0].mean()
    assert 2 * model.result_.objective == pytest.approx(theirs)
    assert score == pytest.approx(rows[:60] @ model.coef_[0] + model.intercept_[0])


def test_sliding_moves_the_intercept_alone_and_no_further_than_needed(rng):
    X, y = clouds(rng, n=200)
    plain = ConstrainedSVC().fit(X, y)
    slid = ConstrainedSVC(rates={"tpr": 0.97}, method="slide", random_state=0).fit(X, y)
    assert slid.coef_ == pytest.approx(plain.coef_, rel=1e-5)
    score = slid.decision_function(X[slid.anchors_])
    positive = y[slid.anchors_] == "ill"
    assert (score[positive] > 0).sum() == np.ceil(0.97 * positive.sum())
    assert slid.intercept_ > plain.intercept_
    # By a hair beyond the last score that has to be positive.
    assert 0 < score[positive & (score > 0)].min() < 1e-5
    easy = ConstrainedSVC(rates={"tpr": 0.01}, method="slide", random_state=0).fit(X, y)
    assert easy.intercept_ == pytest.approx(plain.intercept_, abs=1e-4)
    with pytest.raises(UnattainableRateError, match="method='heuristic'") as caught:
        ConstrainedSVC(rates={"tpr": 1.0, "tnr": 1.0}, method="slide", random_state=0).fit(X, y)
    assert 0 <= caught.value.attainable < 1


def test_both_rates_with_rbf_and_not_with_duplicates_of_opposite_label(rng):
    X, y = clouds(rng, n=50, apart=0.5)
    model = ConstrainedSVC(kernel="rbf", gamma=3.0, rates={"tpr": 1.0, "tnr": 1.0}, anchors="all")
    model.fit(X, y)
    assert model.score(X, y) == 1
    assert model.result_.status == "optimal"
    X, y = np.concatenate([X, X]), np.concatenate([y, np.where(y == "ill", "fit", "ill")])
    with pytest.raises(UnattainableRateError, match="at once"):
        model.fit(X, y)
    assert model.score(X[:50], y[:50]) == 1  # a refit that fails leaves the model as it was


CONDENSED = {"gamma": 0.3, "C": 2.0, "max_rows": 100, "shuffle": False, "standardize": False}


def many_rows(rng):
    X, y = clouds(rng, n=600, p=2)
    order = rng.permutation(600)
    return X[order], y[order]


def objective_over_all_rows(model, X, y, C=2.0):
    """``½ ‖w‖² + Σ C ξ`` over I, from decision_function and the coefficients alone."""
    rows = model.training_rows_
    slack = np.maximum(0, 1 - np.where(y == "ill", 1, -1) * model.decision_function(X))[rows]
    if model.coef_ is not None:
        square = np.square(model.coef_).sum()
    else:
        distances = np.square(model.X_fit_[:, None] - model.X_fit_).sum(axis=-1)
        square = model.dual_coef_[0] @ np.exp(-model.gamma_ * distances) @ model.dual_coef_[0]
    return 0.5 * square + C * slack.sum()


@parametrize_covering(
    2,
    kernel=["linear", "rbf"],
    anchors=["halves", "all"],
    rates=[{"tpr": 0.9}, {"tnr": 1.0}, {"accuracy": 0.6}],
)
def test_what_is_said_of_condensed_rows_is_said_of_all(rng, kernel, anchors, rates):
    X, y = many_rows(rng)
    options = {"kernel": kernel, "anchors": anchors, "rates": rates} | CONDENSED
    model = ConstrainedSVC(**options).fit(X, y)
    assert 90 <= model.n_centres_ <= 102
    found = model.result_
    assert found.objective == pytest.approx(objective_over_all_rows(model, X, y), rel=1e-6)
    [(name, least)] = rates.items()
    assert reached(model, X, y)[name] >= least - 1e-9
    sign = np.where(y == "ill", 1, -1)[model.anchors_]
    margins = sign * model.decision_function(X[model.anchors_])
    np.testing.assert_array_equal(found.kept, margins >= 1 - 1e-6)
    # The bound is one of all rows.
    options |= {"max_rows": None}
    if kernel == "linear":
        whole = ConstrainedSVC(**options).fit(X, y)
        assert whole.n_centres_ is None
        assert found.lower_bound == pytest.approx(whole.result_.lower_bound, rel=1e-5)
        assert found.lower_bound <= whole.result_.objective * (1 + 1e-6)
    else:  # that of the machine without rates
        rows = model.training_rows_
        plain = ConstrainedSVC(**options | {"rates": None}).fit(X[rows], y[rows]).result_.objective
        assert 0.8 * plain < found.lower_bound <= plain * (1 + 1e-6)
    assert found.status == ("optimal" if found.gap <= 1e-6 else "condensed")


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_condensed_rows_without_a_seed(rng, kernel):
    """Nothing is drawn where the halves are not: the same table gives the same machine."""
    X, y = many_rows(rng)
    options = {"kernel": kernel, "rates": {"tpr": 0.9}} | CONDENSED
    first, second = (ConstrainedSVC(**options).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))


def test_what_needs_no_choice_of_anchors_is_not_condensed_but_for_a_kernel(rng):
    X, y = many_rows(rng)
    for options in ({}, {"rates": {"tpr": 0.95}, "method": "slide"}):
        model = ConstrainedSVC(**options | CONDENSED).fit(X, y)
        whole = ConstrainedSVC(**options | CONDENSED | {"max_rows": None}).fit(X, y)
        assert model.n_centres_ is None
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        near = ConstrainedSVC(kernel="rbf", **options | CONDENSED).fit(X, y)
        exact = ConstrainedSVC(kernel="rbf", **options | CONDENSED | {"max_rows": None}).fit(X, y)
        assert 90 < near.n_centres_ <= 102
        assert near.result_.status == "condensed"
        assert near.result_.objective == pytest.approx(objective_over_all_rows(near, X, y))
        assert near.result_.objective == pytest.approx(exact.result_.objective, rel=0.3)
        assert near.result_.lower_bound <= exact.result_.lower_bound * (1 + 1e-6)


def test_an_exact_solution_of_centres_is_not_called_optimal(rng):
    X, y = many_rows(rng)
    options = {"rates": {"tpr": 0.99}, "anchors": "all", "method": "exact", "time_limit": 20}
    found = ConstrainedSVC(**CONDENSED | options | {"max_rows": 40}).fit(X, y).result_
    assert found.status == ("optimal" if found.gap <= 1e-4 else "condensed")
    whole = ConstrainedSVC(rates={"tpr": 0.99}, **CONDENSED | {"max_rows": None}, anchors="all")
    assert found.lower_bound <= whole.fit(X, y).result_.objective * (1 + 1e-6)


def test_rates_that_hold_over_centres_only_are_said():
    X, y = many_rows(np.random.default_rng(0))  # whose four centres a line can tell apart
    options = CONDENSED | {"rates": {"tpr": 0.97, "tnr": 0.97}, "anchors": "all", "max_rows": 4}
    with pytest.warns(UserWarning, match="over the 4 centres .* but no machine was found"):
        model = ConstrainedSVC(**options).fit(X, y)
    assert model.result_.status == "condensed"
    assert min(reached(model, X, y).values()) < 0.97
    assert model.result_.lower_bound <= model.result_.objective


def test_no_time_for_a_bound_leaves_none(rng):
    rows, own = rng.normal(size=(40, 2)), np.arange(40) // 2
    y = np.where(np.arange(40) < 20, 1.0, -1.0)
    nothing = np.zeros((0, 2)), np.zeros(0), np.zeros(0)
    problem = ConstrainedProblem(rows, y, np.ones(40), *nothing, ())
    centres = rows.reshape(20, 2, 2).mean(axis=1)
    kernel = kernel_function("rbf", 0.5)
    assert plain_bound(problem, rows, own, centres, kernel, deadline=0.0) == 0
    bound = plain_bound(problem, rows, own, centres, kernel, deadline=np.inf)
    peer = SVC(kernel="rbf", gamma=0.5, tol=1e-8).fit(rows, y)
    kernel = np.exp(-0.5 * np.square(rows[:, None] - rows).sum(axis=-1))
    a, support = peer.dual_coef_[0], peer.support_
    best = np.abs(a).sum() - 0.5 * a @ kernel[np.ix_(support, support)] @ a
    assert 0.5 * best < bound <= best * (1 + 1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("anchors", ["all", np.arange(60, 120)])
def test_equal_rows_are_weights(rng, kernel, anchors):
    """With every positive right the problem is convex, so that its solution is one."""
    X, y = clouds(rng)
    times = rng.integers(1, 5, len(X))
    options = {"kernel": kernel, "gamma": 0.5, "rates": {"tpr": 1.0}, "standardize": False}
    X -= np.average(X, axis=0, weights=times)
    once = ConstrainedSVC(anchors=anchors, **options).fit(X, y, sample_weight=times)
    of = np.repeat(np.arange(len(X)), times)
    chosen = anchors if isinstance(anchors, str) else np.flatnonzero(np.isin(of, anchors))
    repeated = ConstrainedSVC(anchors=chosen, **options).fit(X[of], y[of])
    assert repeated.result_.objective == pytest.approx(once.result_.objective, rel=1e-5)
    assert repeated.decision_function(X) == pytest.approx(once.decision_function(X), abs=2e-3)
    assert len(repeated.result_.kept) == len(repeated.anchors_)
    kept = dict(zip(once.anchors_, once.result_.kept, strict=True))
    margins = np.where(y == "ill", 1, -1) * repeated.decision_function(X)
    for anchor, right in zip(repeated.anchors_, repeated.result_.kept, strict=True):
        assert right == kept[of[anchor]] or abs(margins[of[anchor]] - 1) < 2e-3


def test_many_rows_that_are_few(rng):
    """40,000 rows of two columns of few levels, with a kernel matrix of 13 GB if each counted."""
    X = rng.integers(0, 4, size=(40_000, 2)).astype(float)
    y = rng.uniform(size=40_000) < 0.1 + 0.25 * X[:, 0]
    model = ConstrainedSVC(kernel="rbf", gamma=1.0, rates={"tpr": 0.9}, max_rows=None).fit(X, y)
    assert model.rates_["tpr"] >= 0.9
    assert len(model.X_fit_) == 16
    assert len(model.result_.kept) == len(model.anchors_)


def test_given_anchors_and_weights(rng):
    X, y = clouds(rng, n=150)
    weight = rng.integers(0, 3, 150).astype(float)
    J = rng.permutation(150)[:60]
    model = ConstrainedSVC(rates={"tnr": 0.9}, anchors=J).fit(X, y, sample_weight=weight)
    assert np.array_equal(model.anchors_, np.sort(J[weight[J] > 0]))
    assert not np.intersect1d(model.training_rows_, J).size
    right = (model.decision_function(X[model.anchors_]) < 0)[y[model.anchors_] == "fit"]
    mass = weight[model.anchors_][y[model.anchors_] == "fit"]
    assert right @ mass >= 0.9 * mass.sum() * (1 - 1e-9)
    mask = np.isin(np.arange(150), J)
    same = ConstrainedSVC(rates={"tnr": 0.9}, anchors=mask).fit(X, y, sample_weight=weight)
    assert np.array_equal(same.coef_, model.coef_)
    # Rows of weight 0 might as well not be there.
    poisoned = X.copy()
    poisoned[weight == 0] = 1e3
    again = ConstrainedSVC(rates={"tnr": 0.9}, anchors=J).fit(poisoned, y, sample_weight=weight)
    assert again.coef_ == pytest.approx(model.coef_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rates": {"recall": 0.9}}, "give 'tpr'"),
        ({"rates": {"tpr": 1.5}}, "up to 1"),
        ({"rates": {"tpr": "high"}}, "up to 1"),
        ({"rates": 0.9}, "rates"),
        ({"rates": {"tpr": 0.9}, "anchors": [0, 500]}, "rows 0 to 119"),
        ({"rates": {"tpr": 0.9}, "anchors": [0.5]}, "row numbers"),
        ({"rates": {"tpr": 0.9}, "anchors": []}, "row numbers"),
        ({"rates": {"tpr": 0.9}, "anchors": np.arange(120)}, "no positive row"),
        ({"rates": {"tpr": 0.9}, "anchors": "some"}, "anchors"),
        ({"rates": {"tpr": 0.9}, "confidence": 95}, "confidence"),
        ({"C": 0}, "C"),
        ({"kernel": "cosine"}, "'kernel' parameter"),
        ({"kernel": "poly", "degree": 0}, "'degree' parameter"),
        ({"kernel": "poly", "coef0": -1.0}, "'coef0' parameter"),
        ({"kernel": "poly", "gamma": "median"}, "goes by the distances that RBF kernels see"),
        ({"kernel": "poly", "gamma": 1e60}, "polynomial kernel reaches"),
        ({"kernel": "precomputed"}, "must be the .n, n. matrix"),
    ],
)
def test_bad_options_are_refused(rng, options, message):
    X, y = clouds(rng)
    with pytest.raises(ValueError, match=message):
        ConstrainedSVC(**options).fit(X, y)


def test_a_matrix_that_is_indefinite_is_refused(rng):
    X, y = clouds(rng, n=20)
    distances = np.linalg.norm(X[:, None] - X, axis=-1)
    with pytest.raises(ValueError, match="indefinite"):
        ConstrainedSVC(kernel="precomputed", rates={"tpr": 0.9}).fit(-distances, y)


@pytest.mark.parametrize(
    "K", [np.zeros((20, 20)), np.ones((20, 20)), 1e-12 * np.eye(20), 1e6 * np.eye(20)]
)
def test_matrices_that_tell_nothing_have_an_answer(K):
    y = np.tile([0, 1], 10)
    model = ConstrainedSVC(kernel="precomputed", rates={"tpr": 0.9}, anchors="all").fit(K, y)
    assert reached(model, K, y)["tpr"] >= 0.9


def test_anchors_without_the_class_asked_for(rng):
    X, y = clouds(rng)
    with pytest.raises(DataError, match="no row that"):
        ConstrainedSVC(rates={"tpr": 0.9}, anchors=np.flatnonzero(y == "fit")[:20]).fit(X, y)
    order = np.argsort(y)
    with pytest.raises(DataError, match="shuffle=True"):
        ConstrainedSVC(rates={"tpr": 0.9}, shuffle=False).fit(X[order], y[order])


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize(
    "table",
    ["separable", "noise", "duplicated", "constant", "one column", "wide", "two rows a class",
     "large", "small"],
)  # fmt: skip
def test_ugly_tables(rng, kernel, table):
    X, y = clouds(rng, n=40, p=4)
    y = (y == "ill").astype(int)
    if table == "separable":
        X[:, 0] += 100 * y
    elif table == "noise":
        y = rng.permutation(y)
    elif table == "duplicated":
        X, y = np.concatenate([X, X]), np.concatenate([y, y])
    elif table == "constant":
        X[:, 1:] = 7.0
    elif table == "one column":
        X = X[:, :1]
    elif table == "wide":
        X = rng.normal(size=(40, 200))
    elif table == "two rows a class":
        keep = np.concatenate([np.flatnonzero(y == 0)[:2], np.flatnonzero(y == 1)[:2]])
        X, y = X[keep], y[keep]
    elif table == "large":
        X = 1e6 * X + 1e9
    else:
        X = 1e-6 * X
    for options in ({}, {"anchors": "all"}, {"anchors": "all", "C": 1e4}):
        model = ConstrainedSVC(kernel=kernel, rates={"tpr": 0.9}, random_state=0, **options)
        model.fit(X, y)
        assert model.rates_["tpr"] >= 0.9
        assert reached(model, X, y)["tpr"] >= 0.9


def test_constant_rows_have_an_answer():
    X, y = np.full((10, 2), 3.0), np.arange(10) % 2
    model = ConstrainedSVC(rates={"tpr": 1.0}, random_state=0).fit(X, y)
    assert (model.predict(X) == 1).all()


def test_verbose_reports(rng, capsys):
    X, y = clouds(rng)
    ConstrainedSVC(rates={"tpr": 0.95}, verbose=1).fit(X, y)
    captured = capsys.readouterr()
    assert "alternation: objective" in captured.err
    assert captured.out == ""


def test_same_seed_same_bits():
    X, y = load_breast_cancer(return_X_y=True)
    fits = [ConstrainedSVC(rates={"tnr": 0.97}, random_state=3).fit(X, y) for _ in range(2)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


def test_exact_proves_what_an_enumeration_finds(rng):
    X, y = clouds(rng, n=32, p=2, apart=1.5)
    model = ConstrainedSVC(
        rates={"tpr": 0.7}, method="exact", shuffle=False, gap=1e-5, time_limit=60
    ).fit(X, y)
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    sign = np.where(y == "ill", 1.0, -1.0)
    problem = ConstrainedProblem(
        rows[:16], sign[:16], np.ones(16), rows[16:], sign[16:], np.ones(16),
        (Requirement("tpr", sign[16:] > 0, np.ceil(0.7 * (sign[16:] > 0).sum() - 1e-9)),),
    )  # fmt: skip
    assert model.result_.status == "optimal"
    assert model.result_.objective == pytest.approx(best_by_enumeration(problem), rel=1e-4)
    assert model.rates_["tpr"] >= 0.7
    with pytest.raises(DataError, match="solver"):
        ConstrainedSVC(rates={"tpr": 0.7}, method="exact", solver="CPLEXX").fit(X, y)


@pytest.mark.parametrize("solver", ["SCIP", "HIGHS"])
def test_exact_finds_what_the_search_does_not(solver):
    """A plane that gives up the second row alone, and is large."""
    if solver == "SCIP":
        pytest.importorskip("pyscipopt")
    # fmt: off
    X = np.array([
        [-1.1124777235587486, -0.03856123551212463, 0.12037530748488055],
        [0.10663689577585052, -0.1042407985093843, 1.232530689869076],
        [-1.1127525480151939, -1.0746160713104755, 1.5572019604065397],
        [-1.370904881865972, -0.596625580041302, 1.0433617068612504],
        [-1.0735217322002069, -0.4942802381775142, 0.2760240054791484],
        [-0.22636675561667954, -0.6254828071606076, 0.47736567449924516],
        [-0.9950211443821821, 1.324423617438367, -0.9789856477334112],
        [-2.4080385162640794, -0.4848860785345699, 0.7307704312796879],
        [0.8798760650975419, -0.9104031529197555, 0.3719106813305753],
        [-0.3693587614271196, -0.23784513337389407, -0.1387892736558306],
    ])
    # fmt: on
    y = np.array([0, 1, 1, 1, 1, 0, 0, 1, 1, 1])
    options = {"rates": {"tpr": 0.5, "tnr": 1.0, "accuracy": 0.9}, "anchors": "all"}
    with pytest.raises(UnattainableRateError, match="a search, not a proof"):
        ConstrainedSVC(**options).fit(X, y)
    model = ConstrainedSVC(**options, method="exact", solver=solver).fit(X, y)
    assert (model.predict(X) != y).tolist() == [k == 1 for k in range(10)]
    with pytest.raises(UnattainableRateError, match="a search, not a proof"):
        ConstrainedSVC(**options | {"rates": {"accuracy": 1.0}}, method="exact").fit(X, y)


def test_a_confidence_needs_rates(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(DataError, match="no rates that it could be of"):
        ConstrainedSVC(confidence=0.9).fit(X, y)
