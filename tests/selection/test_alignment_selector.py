"""The best subset of columns by kernel–target alignment, against all subsets and their formula."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from bootprob import BootstrapSVC, DataError
from bootprob.selection import FeatureCosts, KernelAlignmentSelector
from bootprob.selection.alignment.alignment import AlignmentPairs, sigest_gamma
from bootprob.selection.alignment.objectives import CentroidDistance
from bootprob.selection.alignment.search import SubsetSearch


def table(rng, n=30, p=6):
    X = rng.normal(size=(n, p))
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=n) > 0
    y[:2] = True, False
    return X, y


def standardised(X):
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1)


def centroid_distance(X, y, gamma, subset):
    """(24) as the squared distance of the class centroids, by the kernel matrix."""
    K = rbf_kernel(X[:, list(subset)], gamma=gamma) if subset else np.ones((len(X), len(X)))
    return K[y][:, y].mean() + K[~y][:, ~y].mean() - 2 * K[y][:, ~y].mean()


@pytest.mark.parametrize(("n", "p", "theta"), [(20, 6, 3), (25, 7, 7), (12, 4, 1), (15, 5, 2)])
@pytest.mark.parametrize("levels", [None, 2])
def test_the_best_of_all_subsets(rng, n, p, theta, levels):
    X, y = table(rng, n, p)
    if levels:  # many equal pairs
        X = (X > 0).astype(float)
    selector = KernelAlignmentSelector(theta, gamma_factor=rng.choice([0.25, 1, 4])).fit(X, y)
    Z = standardised(X)
    subsets = [s for k in range(theta + 1) for s in combinations(range(p), k)]
    values = {s: centroid_distance(Z, y, selector.gamma_, s) for s in subsets}
    best = max(values.values())
    found = selector.result_
    assert found.objective == pytest.approx(best, abs=1e-9)
    assert values[found.features] == pytest.approx(best, abs=1e-9)
    assert found.status == "optimal"
    assert found.bound == pytest.approx(best, abs=1e-9)
    assert found.gap < 1e-8
    assert selector.transform(X).shape == (n, len(found.features))
    objectives = [each.objective for each in found.path]
    assert objectives == sorted(objectives)
    for each in found.path:
        assert each.objective == pytest.approx(values[each.features], abs=1e-9)


def normalised_alignment(X, y, gamma, subset):
    """(22), as it stands there."""
    K = rbf_kernel(X[:, list(subset)], gamma=gamma) if subset else np.ones((len(X), len(X)))
    labels = np.where(y, 1, -1)
    return labels @ K @ labels / (len(X) * np.sqrt(np.square(K).sum()))


@pytest.mark.parametrize(("n", "p", "theta"), [(20, 6, 3), (25, 7, 7), (12, 4, 1), (30, 8, 5)])
@pytest.mark.parametrize("levels", [None, 2])
@pytest.mark.parametrize("smaller", [0.5, 0.15])
def test_the_best_normalised_alignment_of_all_subsets(rng, n, p, theta, levels, smaller):
    X, _ = table(rng, n, p)
    y = X[:, 0] * X[:, 1] > np.quantile(X[:, 0] * X[:, 1], 1 - smaller)
    if levels:  # many equal pairs
        X = (X > 0).astype(float)
    factor = rng.choice([0.05, 0.25, 1, 4, 30])
    selector = KernelAlignmentSelector(theta, normalised=True, gamma_factor=factor).fit(X, y)
    Z = standardised(X)
    subsets = [s for k in range(theta + 1) for s in combinations(range(p), k)]
    values = {s: normalised_alignment(Z, y, selector.gamma_, s) for s in subsets}
    best = max(values.values())
    found = selector.result_
    assert found.objective == pytest.approx(best, abs=1e-9)
    assert values[found.features] == pytest.approx(best, abs=1e-9)
    assert found.status == "optimal"
    assert found.bound == pytest.approx(best, abs=1e-9)
    for each in found.path:
        assert each.objective == pytest.approx(values[each.features], abs=1e-9)
    stopped = KernelAlignmentSelector(
        theta, normalised=True, gamma_factor=factor, time_limit=1e-9
    ).fit(X, y)
    assert stopped.result_.objective <= best + 1e-12
    assert stopped.result_.bound >= best - 1e-9


def test_gamma_is_formula_54(rng):
    X, _ = table(rng)
    Z = standardised(X)
    distances = [np.square(Z[i] - Z[h]).sum() for i in range(30) for h in range(i)]
    assert sigest_gamma(Z, 3) == pytest.approx(1 / ((3 / 6) * np.median(distances)))
    assert sigest_gamma(np.zeros((4, 2)), 1) == 1


def test_every_subset_is_evaluated_or_excluded_once(rng):
    X, y = table(rng, 40, 9)
    pairs = AlignmentPairs.of_rows(standardised(X), y)
    factors = torch.from_numpy(pairs.factors(0.2))
    search = SubsetSearch(CentroidDistance(factors, torch.from_numpy(pairs.weight)), 4)
    told = []
    assert search.exhaust(told.append)
    assert sum(told) == search.n_subsets - 1 == 9 + 36 + 84 + 126
    assert search.n_evaluated <= search.n_subsets


def test_out_of_time_the_bound_still_holds(rng):
    X, y = table(rng, 60, 14)
    full = KernelAlignmentSelector(5).fit(X, y).result_
    stopped = KernelAlignmentSelector(5, time_limit=1e-9).fit(X, y).result_
    assert stopped.status == "time limit"
    assert stopped.objective <= full.objective + 1e-12
    assert stopped.bound >= full.objective - 1e-9
    assert stopped.gap >= 0


def test_costs_and_a_budget(rng):
    X, y = table(rng, 25, 6)
    costs = np.array([3.0, 2.0, 1.0, 0.5, 0.0, 2.5])
    shared = [([0, 1], 1.0), ([2, 3, 4], 0.7)]
    for budget in (0.7, 2.5, 6.0):
        selector = KernelAlignmentSelector(4, costs=costs, shared_costs=shared, budget=budget)
        selector.fit(X, y)
        given = FeatureCosts.of(costs, shared, 6)
        Z = standardised(X)
        best = max(
            centroid_distance(Z, y, selector.gamma_, s)
            for k in range(5)
            for s in combinations(range(6), k)
            if given.total(s) <= budget
        )
        assert selector.cost_ == given.total(selector.result_.features) <= budget
        assert selector.result_.objective == pytest.approx(best, abs=1e-9)


def test_costs_of_groups_are_paid_once():
    costs = FeatureCosts.of({"a": 1.0, "c": 2.0}, [(["a", "b"], 5.0)], 3, ["a", "b", "c"])
    assert [costs.total(s) for s in ([], [0], [1], [0, 1], [0, 1, 2], [2])] == [0, 6, 5, 6, 8, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"costs": [1, 2]}, "one for each of 6 columns"),
        ({"costs": [1, 1, 1, 1, 1, -1]}, "positive"),
        ({"costs": [1, 1, 1, 1, 1, np.nan]}, "positive"),
        ({"costs": [1, 1, 1, 1, 1, "much"]}, "no number"),
        ({"costs": {"age": 1.0}}, "no column 'age'"),
        ({"shared_costs": [([9], 1.0)]}, "no column 9"),
        ({"budget": 0.5}, "cheapest column costs 1"),
    ],
)
def test_costs_that_are_none(rng, options, message):
    with pytest.raises(DataError, match=message):
        KernelAlignmentSelector(**options).fit(*table(rng))


def test_constant_columns_are_not_chosen(rng):
    X, y = table(rng, 40, 3)
    X = np.column_stack([np.full(40, 5.0), X, np.zeros(40)])
    assert not KernelAlignmentSelector(5).fit(X, y).support_[[0, 4]].any()


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(rng, scale):
    X, y = table(rng)
    ours = KernelAlignmentSelector(3).fit(X, y)
    theirs = KernelAlignmentSelector(3).fit(X * scale + scale, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)


def test_more_columns_than_rows_and_two_rows(rng):
    X, y = table(rng, 10, 40)
    assert KernelAlignmentSelector(2).fit(X, y).result_.status == "optimal"
    two = KernelAlignmentSelector(2).fit(X[:2], [0, 1])
    assert two.support_.sum() == 2


def test_names_and_pipelines(rng):
    X, y = table(rng, 80, 4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    selector = KernelAlignmentSelector(2, costs={"a": 1.0}, budget=0.0).fit(frame, y)
    assert "a" not in selector.get_feature_names_out()
    svc = BootstrapSVC(kernel="rbf", C=[1.0], n_bootstraps=10, random_state=0)
    model = make_pipeline(KernelAlignmentSelector(2), svc).fit(frame, y)
    assert model.predict_proba(frame).shape == (80, 2)


def test_plot_shows_what_was_found(rng):
    result = KernelAlignmentSelector(2).fit(*table(rng)).result_
    axes = result.plot()
    assert axes.get_legend_handles_labels()[1] == ["best found", "bound (optimal)"]


@parametrize_with_checks([KernelAlignmentSelector(2), KernelAlignmentSelector(2, normalised=True)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_a_budget_can_be_spent_to_the_last(rng):
    X = rng.normal(size=(40, 2))
    y = (X.sum(1) > 0).astype(int)
    selector = KernelAlignmentSelector(2, costs=[0.1, 0.2], budget=0.3).fit(X, y)  # .1 + .2 > .3
    assert selector.support_.all()


def test_costs_go_by_the_names_of_a_series():
    by_name = {"c": 1.0, "a": 100.0}
    for given in (by_name, pd.Series(by_name)):
        assert FeatureCosts.of(given, None, 3, ["a", "b", "c"]).own.tolist() == [100, 0, 1]
    assert FeatureCosts.of(pd.Series([1, 2, 3]), None, 3, ["a", "b", "c"]).own.tolist() == [1, 2, 3]
    with pytest.raises(DataError, match="There is no column 'c'"):
        FeatureCosts.of(pd.Series(by_name), None, 3)
    with pytest.raises(DataError, match="'a' twice"):
        FeatureCosts.of(pd.Series([1, 2], index=["a", "a"]), None, 2, ["a", "b"])


@pytest.mark.parametrize(
    "shared", [[([False, True], 5)], [([0, 1.0], 5)], [("ab", 5)], [(0, 5)], [0], [([None], 5)]]
)
def test_columns_that_share_a_cost_are_positions_or_names(shared):
    with pytest.raises(DataError, match=r"positions|give pairs"):
        FeatureCosts.of(None, shared, 2, ["a", "b"])
