"""BootstrapSVC against scikit-learn's SVC on the literally resampled rows, and its promises."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bootprob import BootstrapClassifier, BootstrapSVC, DataError
from bootprob.calibration import Sigmoid
from bootprob.ensemble.scoring.out_of_bag import _alignment
from bootprob.ensemble.uncertainty.probability_intervals import OF_PROBABILITIES
from bootprob.intervals import OF_VOTES
from bootprob_gpu import Status
from linear_models import linear

# Labels of the table are flipped, which the test of the link finds; others have too many columns.
pytestmark = pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        90, 5, n_informative=3, n_redundant=1, flip_y=0.15, weights=[0.65], random_state=3
    )
    return X * [1, 10, 0.1, 1, 5] + [0, 3, 0, -2, 50], y


@pytest.fixture(scope="module", params=["linear", "rbf"])
def model(request, data):
    C = [0.1, 1.0, 10.0]
    model = BootstrapSVC(
        kernel=request.param, C=C, n_bootstraps=25, weighting="accuracy", random_state=0
    )
    return model.fit(*data)


def _refitted_scores(model, data, new):
    """Scores (m, R, B) of SVCs refitted on resampled, re-standardised rows."""
    X, y = data
    factor = len(y) / (2 * np.bincount(y))
    scores = np.empty((len(new), len(model.C_), model.n_bootstraps))
    for b, counts in enumerate(model.bootstrap_counts()):
        scaler = StandardScaler().fit(np.repeat(X, counts, axis=0))
        inside = np.repeat(scaler.transform(X), counts, axis=0)
        for r, C in enumerate(model.C_):
            gamma = 1.0 if model.gamma_ is None else model.gamma_[r]
            svc = SVC(C=C, kernel=model.kernel, gamma=gamma, tol=1e-8)
            svc.fit(inside, np.repeat(y, counts), sample_weight=factor[np.repeat(y, counts)])
            scores[:, r, b] = svc.decision_function(scaler.transform(new))
    return scores


def test_algorithm_2_by_hand(model, data):
    X, y = data
    scores = _refitted_scores(model, data, X)
    ours = np.concatenate(list(model.bootstrap_scores(X, chunk_size=40)))
    np.testing.assert_allclose(ours, scores, atol=5e-3)

    outside = (model.bootstrap_counts() == 0).T  # (n, B)
    right = (ours > 0) == (y == 1)[:, None, None]
    accuracy = [[right[outside[:, b], r, b].mean() for r in range(3)] for b in range(25)]
    np.testing.assert_allclose(model.accuracy_, accuracy)
    mean = np.mean(accuracy, axis=0)
    omega = np.where(mean >= mean.max() - 0.02, mean**2, 0)
    omega /= omega.sum()
    np.testing.assert_allclose(model.weights_, omega)

    votes = (ours > 0).mean(axis=2) @ omega
    np.testing.assert_allclose(model.vote_proba(X)[:, 1], votes, atol=1e-12)
    folded = np.einsum("irb,r->ib", ours, omega)
    left_out = [folded[outside[:, b], b] for b in range(25)]
    spread = np.array([np.abs(s - s.mean()).mean() for s in left_out])
    np.testing.assert_allclose(model.score_scale_, spread / spread.mean(), rtol=1e-8)
    mean = np.array([folded[outside[:, b], b].mean() for b in range(25)])
    folded = (folded - mean) / model.score_scale_ + mean.mean()
    oob = np.array([folded[i, outside[i]].mean() for i in range(90)])
    fitted = Sigmoid.fit(oob, y == 1, np.ones(90))
    folded += fitted.intercept / fitted.slope
    np.testing.assert_allclose(model.sigmoid_, (fitted.slope, 0), rtol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), folded.mean(axis=1), atol=1e-7)

    oob = np.array([folded[i, outside[i]].mean() for i in range(90)])
    np.testing.assert_allclose(model.oob_decision_function_, oob, atol=1e-7)
    variance = [folded[i, outside[i]].var(ddof=1) for i in range(90)]
    np.testing.assert_allclose(model.oob_score_variance_, variance, atol=1e-7)
    oob_votes = [(ours[i][:, outside[i]] > 0).mean(axis=1) @ omega for i in range(90)]
    np.testing.assert_allclose(model.oob_vote_proba_[:, 1], oob_votes, atol=1e-12)
    slope, intercept = model.sigmoid_
    np.testing.assert_allclose(model.oob_proba_[:, 1], expit(slope * oob + intercept))
    for k, row in enumerate(model.sampled_rows_):
        expected = np.where(outside[row], folded[row], np.nan)
        np.testing.assert_allclose(model.sampled_scores_[k], expected, atol=1e-7)


def test_every_model_is_certified(model):
    assert model.certificates_["gap"].shape == (25, 3)
    assert (model.certificates_["status"] == Status.CONVERGED).all()
    assert (model.certificates_["dual"] <= model.certificates_["primal"] * (1 + 1e-14)).all()
    assert model.certificates_["gap"].max() <= (1e-7 if model.kernel == "linear" else 1e-6)


def test_intervals_contain_what_they_are_centred_on(model, data):
    X, _ = data
    p, vote = model.predict_proba(X), model.vote_proba(X)
    centers = dict.fromkeys(OF_PROBABILITIES, p) | dict.fromkeys(OF_VOTES, vote)
    del centers["venn-abers"]  # which is no interval of this probability
    for method, center in centers.items():
        bounds = model.proba_interval(X, method=method)
        assert bounds.shape == (90, 2, 2)
        assert (bounds[..., 0] <= center + 1e-12).all()
        assert (center <= bounds[..., 1] + 1e-12).all()
        assert (bounds[..., 0] < bounds[..., 1]).all()
        np.testing.assert_allclose(bounds[:, 0], 1 - bounds[:, 1, ::-1])
    score = model.score_interval(X, method="percentile")
    f = model.decision_function(X)
    assert ((score[:, 0] <= f) & (f <= score[:, 1])).all()


def test_normal_interval_is_centred_on_the_logit(model, data):
    p = model.predict_proba(data[0])[:, 1]
    lower, upper = model.proba_interval(data[0], level=0.8, method="normal")[:, 1].T
    middle = (np.log(lower / (1 - lower)) + np.log(upper / (1 - upper))) / 2
    np.testing.assert_allclose(middle, np.log(p / (1 - p)), atol=1e-6)


def test_wald_keeps_its_width_where_all_votes_agree(model, data):
    far = data[0].mean(axis=0) + 50 * (data[0][data[1] == 1].mean(0) - data[0].mean(0))
    everywhere = np.vstack([data[0], far])
    width = np.diff(model.proba_interval(everywhere, method="wald"), axis=-1)
    np.testing.assert_allclose(width, 2 * 1.959964 * np.sqrt(0.25 / 25), rtol=1e-6)
    assert model.proba_interval(everywhere, method="wald").max() > 1
    assert model.proba_interval(everywhere, method="wald", clip=True).max() == 1


def test_shares_of_unanimous_votes_are_exactly_0_or_1(data):
    model = BootstrapSVC(
        kernel="linear", n_bootstraps=7, C=np.geomspace(0.5, 2, 13), random_state=0
    ).fit(*data)
    for seed in range(50):  # weights whose sum rounds to more than 1
        weights = np.random.default_rng(seed).uniform(size=13)
        model.weights_ = weights / weights.sum()
        p = model.vote_proba(np.vstack([data[0], 50 * data[0]]))
        assert p.min() >= 0
        assert p.max() <= 1


def test_wider_levels_give_wider_intervals(model, data):
    for method in OF_PROBABILITIES + OF_VOTES:
        narrow = model.proba_interval(data[0], level=0.8, method=method)[:, 1]
        wide = model.proba_interval(data[0], level=0.99, method=method)[:, 1]
        assert (wide[:, 0] <= narrow[:, 0]).all()
        assert (wide[:, 1] >= narrow[:, 1]).all()


def test_percentile_interval_is_that_of_calibrated_replicates(model, data):
    X = data[0][:10]
    scores = np.concatenate(list(model.bootstrap_scores(X)))
    folded = np.einsum("irb,r->ib", scores, model.weights_) / model.score_scale_
    folded += model.score_offset_
    slope, intercept = model.sigmoid_replicates_.T
    expected = expit(np.quantile(slope * folded + intercept, [0.05, 0.95], axis=1).T)
    bounds = model.proba_interval(X, level=0.9, method="percentile")[:, 1]
    np.testing.assert_allclose(bounds, expected, rtol=1e-9)


def test_oob_intervals_have_the_rows_own_number_of_replicates(model):
    bounds = model.oob_proba_interval(method="wald")[:, 1]
    half = 1.959964 * np.sqrt(0.25 / model.oob_counts_)
    np.testing.assert_allclose(np.diff(bounds)[:, 0], 2 * half, rtol=1e-6)
    assert np.isfinite(model.oob_proba_interval()).all()
    with pytest.raises(DataError, match="not kept"):
        model.oob_proba_interval(method="percentile")


def test_same_seed_same_bits_and_chunks_do_not_matter(model, data):
    again = linear(**{**model.get_params(), "memory_limit": 3_000_000}).fit(*data)
    np.testing.assert_allclose(
        again.predict_proba(data[0]), model.predict_proba(data[0]), atol=1e-9
    )
    same = linear(**model.get_params()).fit(*data)
    assert np.array_equal(same.predict_proba(data[0]), model.predict_proba(data[0]))


def test_paper_is_the_thesis_configuration(data):
    model = BootstrapSVC.paper(n_bootstraps=20, random_state=0)
    np.testing.assert_array_equal(2 * np.array(model.C), 2.0 ** np.arange(-5, 6))
    assert model.class_weight is None
    assert BootstrapSVC.paper().n_bootstraps == 500
    model.fit(*data)
    X = data[0]
    assert np.array_equal(model.predict_proba(X), model.vote_proba(X))
    wald = model.proba_interval(X, method="wald")
    assert np.array_equal(model.proba_interval(X), wald)
    assert (model.score_scale_ == 1).all()
    assert (model.score_offset_ == 0).all()
    scores = np.concatenate(list(model.bootstrap_scores(X)))
    folded = np.einsum("irb,r->ib", scores, model.weights_)
    center, tails = folded.mean(axis=1), np.quantile(folded, [0.975, 0.025], axis=1)
    np.testing.assert_allclose(model.score_interval(X), 2 * center[:, None] - tails.T)  # (3.6)
    best = np.nanmean(model.accuracy_, axis=0)
    assert np.array_equal(model.in_J_, best >= best.max() - model.accuracy_tolerance)
    assert np.array_equal(model.in_J_, model.weights_ > 0)
    with pytest.raises(DataError, match="describes calibrated probabilities"):
        model.proba_interval(X, method="normal")


def test_paper_ties_the_objective_to_its_convention(data):
    # ωᵀω + C Σ ξ is twice ½ωᵀω + (C/2) Σ ξ: the same minimiser.
    model = BootstrapSVC.paper(C=[0.25], n_bootstraps=2, random_state=0).fit(*data)
    import cvxpy as cp

    X = (data[0] - model.center_) / model.scale_
    counts, scale = model.bootstrap_counts()[0], model.bootstrap_scale_[0]
    w, b = cp.Variable(5), cp.Variable()
    margin = cp.multiply(2 * data[1] - 1, (X / scale) @ w + b)
    thesis = cp.sum_squares(w) + 0.5 * cp.sum(cp.multiply(counts, cp.pos(1 - margin)))
    cp.Problem(cp.Minimize(thesis)).solve(solver="CLARABEL")
    np.testing.assert_allclose(model.bootstrap_coef_[0, 0] * scale, w.value, atol=1e-4)


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic", None])
def test_predict_agrees_with_predict_proba(data, calibration):
    model = BootstrapSVC(
        kernel="linear", n_bootstraps=20, calibration=calibration, random_state=0
    ).fit(*data)
    p = model.predict_proba(data[0])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert np.array_equal(model.predict(data[0]), (p[:, 1] > 0.5).astype(int))
    if calibration == "sigmoid":
        assert np.array_equal(model.predict(data[0]), model.decision_function(data[0]) > 0)
    if calibration:
        bounds = model.proba_interval(data[0])
        assert (np.diff(bounds) > 0).all()


def test_probabilities_are_closer_to_the_truth_than_votes(rng):
    X, new = rng.normal(size=(400, 4)), rng.normal(size=(400, 4))
    slopes = np.array([1.0, -1.0, 0.5, 0.0])
    y = (rng.uniform(size=400) < expit(X @ slopes)).astype(int)
    model = BootstrapSVC(kernel="linear", n_bootstraps=60, random_state=0).fit(X, y)

    def error(p):
        return np.sqrt(np.square(p[:, 1] - expit(new @ slopes)).mean())

    assert error(model.predict_proba(new)) < 0.6 * error(model.vote_proba(new))


@pytest.mark.parametrize("standardize", ["bootstrap", "global", None])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_standardisation_is_what_it_says(data, kernel, standardize):
    X, y = data
    model = BootstrapSVC(
        kernel=kernel, C=1.0, gamma=0.05, n_bootstraps=3, standardize=standardize,
        random_state=0, tol=1e-10, class_weight=None,
    ).fit(X, y)  # fmt: skip
    seen = StandardScaler().fit_transform(X) if standardize == "global" else X
    ours = np.concatenate(list(model.bootstrap_scores(X)))[:, 0]
    for b, counts in enumerate(model.bootstrap_counts()):
        rows = seen
        if standardize == "bootstrap":
            rows = StandardScaler().fit(np.repeat(X, counts, axis=0)).transform(X)
        inside, labels = np.repeat(rows, counts, axis=0), np.repeat(y, counts)
        svc = SVC(C=1.0, kernel=kernel, gamma=0.05, tol=1e-8).fit(inside, labels)
        # libsvm holds kernel values in float32: on raw columns its own scores are off by 1e-3.
        atol = 1e-2 if standardize is None else 1e-3
        np.testing.assert_allclose(ours[:, b], svc.decision_function(rows), atol=atol)


def test_gamma_rules_and_grids(data):
    X, y = data
    Z = StandardScaler().fit_transform(X)

    def gammas(gamma):
        model = BootstrapSVC(kernel="rbf", gamma=gamma, C=[1, 2], n_bootstraps=3, random_state=0)
        return model.fit(X, y)

    np.testing.assert_allclose(gammas("scale").gamma_, 1 / 5)
    distances = np.square(Z[:, None] - Z).sum(-1)[np.triu_indices(90, 1)]
    lower = np.sort(distances)[(len(distances) - 1) // 2]
    np.testing.assert_allclose(gammas("median").gamma_, 1 / lower)
    grid = gammas([0.1, 1.0])
    np.testing.assert_array_equal(grid.gamma_, [0.1, 0.1, 1.0, 1.0])
    np.testing.assert_array_equal(grid.C_, [1, 2, 1, 2])
    alone = gammas(1.0)
    np.testing.assert_allclose(
        next(grid.bootstrap_scores(X))[:, 2:], next(alone.bootstrap_scores(X)), atol=1e-4
    )


def test_a_descending_gamma_grid_scores_with_its_own_gammas(data):
    X, y = data
    model = BootstrapSVC(kernel="rbf", gamma=[1.0, 0.1], C=1.0, n_bootstraps=3, random_state=0)
    up = BootstrapSVC(kernel="rbf", gamma=[0.1, 1.0], C=1.0, n_bootstraps=3, random_state=0)
    a, b = (next(m.fit(X, y).bootstrap_scores(X)) for m in (model, up))
    np.testing.assert_allclose(a, b[:, ::-1], atol=1e-4)


def test_more_columns_than_rows_go_through_the_gram_matrix(rng):
    X = rng.normal(size=(30, 200))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    model = BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0).fit(X, y)
    assert model.bootstrap_coef_ is None
    assert model.bootstrap_dual_coef_.shape == (10, 11, 30)
    assert (model.certificates_["gap"] <= 1e-7).all()
    assert np.isfinite(model.proba_interval(X)).all()


def test_float32_scores_agree(model, data):
    single = linear(**{**model.get_params(), "dtype": "float32"}).fit(*data)
    np.testing.assert_allclose(
        single.predict_proba(data[0]), model.predict_proba(data[0]), atol=2e-3
    )


def test_two_rows_a_class():
    X = np.array([[0.0, 1], [1, 0], [5, 6], [6, 5]])
    model = BootstrapSVC(kernel="linear", n_bootstraps=50, random_state=0).fit(X, [0, 0, 1, 1])
    assert model.n_redrawn_ > 0
    assert (model.predict(X) == [0, 0, 1, 1]).all()
    assert np.isfinite(model.proba_interval(X)).all()


def test_a_row_that_was_never_out_of_bag_is_nan():
    X, y = make_classification(30, 3, n_informative=3, n_redundant=0, random_state=0)
    model = BootstrapSVC(kernel="linear", n_bootstraps=2, random_state=1).fit(X, y)
    never = model.oob_counts_ == 0
    assert never.any()
    assert np.isnan(model.oob_proba_[never]).all()
    assert np.isfinite(model.oob_proba_[~never]).all()
    assert np.isnan(model.oob_score_variance_[model.oob_counts_ < 2]).all()


def test_pure_noise_and_constant_columns_give_the_base_rate(rng):
    X = np.hstack([rng.normal(size=(200, 2)), np.ones((200, 1))])
    y = (rng.uniform(size=200) < 0.3).astype(int)
    model = BootstrapSVC(kernel="linear", n_bootstraps=50, random_state=0).fit(X, y)
    assert abs(model.predict_proba(X)[:, 1].mean() - y.mean()) < 0.08
    assert np.isfinite(model.proba_interval(X)).all()
    constant = BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0).fit(
        np.ones((40, 2)), y[:40] | (np.arange(40) < 5)
    )
    assert np.ptp(constant.predict_proba(np.ones((3, 2)))[:, 1]) == 0


def test_unsolved_models_are_named(data):
    model = BootstrapSVC(
        kernel="rbf", n_bootstraps=3, C=[1e4], gamma=1e-3, tol=1e-15, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match=r"of 3 models were not solved .* gap is"):
        model.fit(*data)
    assert np.isfinite(model.predict_proba(data[0])).all()


def test_dict_class_weights_act_as_row_weights(data):
    X, y = data
    weighed = BootstrapSVC(
        kernel="linear", n_bootstraps=10, class_weight={0: 1, 1: 4}, random_state=0
    ).fit(X, y)
    rows = BootstrapSVC(kernel="linear", n_bootstraps=10, class_weight=None, random_state=0)
    rows.fit(X, y, sample_weight=np.where(y == 1, 4.0, 1.0))
    assert np.array_equal(weighed.predict_proba(X), rows.predict_proba(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "cosine"}, "kernel"),
        ({"C": -1.0}, "'C' parameter"),
        ({"C": [1.0, 0.0]}, "positive"),
        ({"C": []}, "positive"),
        ({"gamma": [1.0, -2.0], "kernel": "rbf"}, "positive"),
        ({"n_bootstraps": 1}, "n_bootstraps"),
        ({"class_weight": {0: 1, 1: -1}}, "positive"),
        ({"class_weight": {0: 1, 1: "a"}}, "class_weight of 1 is 'a'"),
        ({"class_weight": {"no": 2}}, r"of \['no'\], and the classes are \[0, 1\]"),
        ({"C": ["much"]}, "C is not an array of real numbers"),
        ({"device": "tpu"}, "device"),
        ({"device": "cuda:99"}, "device"),
        ({"tol": 0.0}, "tol"),
    ],
)
def test_impossible_parameters_are_refused_before_work(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        linear(**parameters).fit(*data)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"gaps \(NaN\) in 1 of 90 rows, the first in row 3.*column {}"),
        (np.inf, r"infinities in 1 of 90 rows, the first in row 3.*column {}"),
        (1j, "Complex data not supported"),
        ("much", "array with text.*data frame"),
    ],
)
def test_what_is_no_number_is_refused_with_its_place(data, value, message):
    X, y = data
    wrong = X.astype(object if value == "much" else type(value))
    wrong[3, 1] = value
    with pytest.raises(DataError, match=message.format("1 ")):
        BootstrapSVC(kernel="linear").fit(wrong, y)
    if value == "much":
        return
    names = [f"x{j}" for j in range(X.shape[1])]
    fitted = linear(n_bootstraps=3, C=1.0).fit(pd.DataFrame(X, columns=names), y)
    with pytest.raises(DataError, match=message.format("'x1'")):
        fitted.predict_proba(pd.DataFrame(wrong, columns=names))


def test_impossible_data_are_refused(data):
    X, y = data
    with pytest.raises(DataError, match=r"binary classification.*'tpr'.*3 classes"):
        BootstrapSVC(kernel="linear", control="threshold", rates={"tpr": 0.9}).fit(
            X, np.arange(90) % 3
        )
    with pytest.raises(ValueError, match="1 class"):
        BootstrapSVC(kernel="linear").fit(X, np.zeros(90))
    with pytest.raises(DataError, match="no row with a positive sample_weight"):
        BootstrapSVC(kernel="linear").fit(X, y, sample_weight=(y == 0).astype(float))
    with pytest.raises(ValueError, match="Negative values"):
        BootstrapSVC(kernel="linear").fit(X, y, sample_weight=-np.ones(90))
    for model in (BootstrapSVC(), BootstrapClassifier(LogisticRegression())):
        for unit, said in ((1e-200, "vanish; multiply"), (1e200, "overflow; divide")):
            with pytest.raises(DataError, match=f"largest sample_weight is .* {said} all by"):
                model.fit(X, y, sample_weight=np.full(90, unit))
    single = (np.arange(90) == 3).astype(int)
    for model in (BootstrapSVC(), BootstrapClassifier(LogisticRegression())):
        with pytest.raises(DataError, match="Class 1 has a single row; each class needs two"):
            model.fit(X, single)
    fitted = BootstrapSVC(kernel="linear", n_bootstraps=3, C=1.0, random_state=0).fit(X, y)
    with pytest.raises(DataError, match="method is 'exact'"):
        fitted.proba_interval(X, method="exact")
    with pytest.raises(DataError, match="method is 'wald'"):
        fitted.score_interval(X, method="wald")
    with pytest.raises(DataError, match="level is 95"):
        fitted.score_interval(X, level=95)


def test_unbalanced_replicates_without_class_weights_do_not_lose_the_rows(rng):
    # Nearly constant SVMs: their intercepts dwarf what tells rows apart. One draw of 40
    # positives varies (relative error .02 to .9 over 60 draws), so several are averaged.
    slopes = np.array([1.2, -0.8, 0.5, 0.0])
    relative_errors = []
    for _ in range(8):
        X, new = rng.normal(size=(500, 4)), rng.normal(size=(2000, 4))
        y, truth = rng.uniform(size=500) < expit(X @ slopes - 3), expit(new @ slopes - 3)
        model = BootstrapSVC(
            kernel="linear", n_bootstraps=40, class_weight=None, random_state=0
        ).fit(X, y)
        error = np.square(model.predict_proba(new)[:, 1] - truth).mean()
        relative_errors.append(error / np.square(y.mean() - truth).mean())
    assert np.mean(relative_errors) < 0.6


def test_balanced_weights_balance_the_weights_of_rows(data):
    X, y = data
    weight = np.where(y == 1, 5.0, 1.0)
    weighted = BootstrapSVC(kernel="linear", n_bootstraps=30, random_state=0).fit(
        X, y, sample_weight=weight
    )
    plain = BootstrapSVC(kernel="linear", n_bootstraps=30, random_state=0).fit(X, y)
    # The balance is struck by weight, so the machines are about the same in both.
    ours, theirs = (next(m.bootstrap_scores(X)).mean() for m in (weighted, plain))
    assert abs(ours - theirs) < 0.15
    assert weighted.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.1


def test_weights_have_no_unit(data):
    X, y = data
    model = BootstrapSVC(kernel="linear", C=[0.1, 1.0], n_bootstraps=20, random_state=0).fit(X, y)
    # C is in units of the weights, calibration is not.
    rescaled = BootstrapSVC(kernel="linear", C=[100.0, 1000.0], n_bootstraps=20, random_state=0)
    rescaled.fit(X, y, sample_weight=np.full(90, 1e-3))
    np.testing.assert_allclose(rescaled.predict_proba(X), model.predict_proba(X), atol=1e-5)


def test_a_failed_refit_leaves_the_model_as_it_was(data):
    X, y = data
    model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="positive"):
        model.set_params(C=[1.0, 0.0]).fit(X * 3 + 1, y)
    assert np.array_equal(model.predict_proba(X), before)
    fresh = BootstrapSVC(kernel="linear", C=[1.0, 0.0])
    with pytest.raises(ValueError, match="positive"):
        fresh.fit(X, y)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_grids_are_those_of_the_fit(data):
    X, y = data
    model = BootstrapSVC(
        kernel="rbf", C=[0.1, 1, 10], gamma=[0.1, 1.0], n_bootstraps=3, random_state=0
    )
    before = model.fit(X, y).decision_function(X)
    model.set_params(C=[1, 2], gamma="scale")
    assert np.array_equal(model.decision_function(X), before)


def test_summary_is_all_the_rest_in_one(model, data):
    X = data[0]
    for method in OF_PROBABILITIES + OF_VOTES:
        said = model.summarize(X, 0.9, method)
        others = {
            "probability": model.predict_proba(X)[:, 1],
            "score": model.decision_function(X),
            "score_interval": model.score_interval(X, 0.9),
            "probability_interval": model.proba_interval(X, 0.9, method)[:, 1],
        }
        for name, values in others.items():  # sums in another order
            np.testing.assert_allclose(said[name], values, rtol=1e-9, atol=1e-12, err_msg=name)
        np.testing.assert_array_equal(said["label"], model.predict(X))


def test_absurd_rows_are_refused(data):
    X, y = data
    model = BootstrapSVC(kernel="linear", n_bootstraps=3, C=1.0, random_state=0).fit(X, y)
    with pytest.raises(DataError, match=r"Row 0, column 2 .* such a number is an error"):
        model.predict(np.array([[0, 0, 1e150, 0, 0]]))
    with pytest.raises(DataError, match="squares overflow"):
        BootstrapSVC(kernel="linear").fit(X * 1e160, y)


def test_constant_machines_are_not_magnified(rng):
    """What the solver leaves of a spread is no spread; the machine says the same of every row."""
    X = rng.normal(size=(300, 6))
    coef = np.array([0.5, 1.0, 2.0, 1e-6, 0.0])  # the fourth is the fifth, solved to tolerance
    scores = X[:, :5] * coef + np.array([0.3, -1.0, 0.2, 1.0, 1.0])
    outside = rng.random(scores.shape) < 0.4
    scale, offset = _alignment(
        lambda: iter([(scores, outside, slice(0, 300))]), np.ones(300, dtype=bool), 5
    )
    np.testing.assert_array_equal(scale[3:], 1)
    assert scale[:3].mean() == pytest.approx(1)
    aligned = np.where(outside, scores / scale + offset, np.nan)
    middle = np.nanmean(aligned, axis=0)
    np.testing.assert_allclose(middle, middle[0], atol=1e-12)
    np.testing.assert_allclose(aligned[outside[:, 3], 3], middle[0], atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "auto"])
def test_a_fit_in_inference_mode_is_the_same(rng, kernel):
    X = rng.normal(size=(120, 3))
    model = BootstrapSVC(kernel=kernel, n_bootstraps=4, effort="low", random_state=0)
    expected = model.fit(X, X[:, 0] > 0).predict_proba(X)
    with torch.inference_mode():
        found = model.fit(X, X[:, 0] > 0).predict_proba(X)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(model.predict_proba(X), expected)
