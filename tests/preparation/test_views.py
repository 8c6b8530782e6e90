"""Kernels of views: what the views are, and that each kernel is the plain one of its view."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, rbf_kernel

from bootprob.preparation.views import learn_views, view_kernels
from bootprob_gpu import Problem, fit, model_scores
from bootprob_gpu.inputs import InputError
from bootprob_gpu.kernels.precomputed import Precomputed
from bootprob_gpu.kernels.views import ViewKernels

OF = {"linear": linear_kernel, "rbf": rbf_kernel, "laplacian": laplacian_kernel}


def _table(rng, n=80):
    X = rng.normal(size=(n, 5))
    X[:, 1] = X[:, 1] > 0.3
    X[:, 2] = rng.integers(4, size=n)
    X[:, 3] = np.exp(X[:, 3])
    X[:, 4] = 2.0
    return X


def test_normal_scores_are_those_of_ranks_and_straight_between_rows(rng):
    X = _table(rng)
    views = learn_views(X, np.ones(len(X)))
    scores = views.of("scores", torch.from_numpy(X)).numpy()
    np.testing.assert_array_equal(scores[:, 1], X[:, 1])  # of two values
    np.testing.assert_array_equal(scores[:, 4], 2.0)
    np.testing.assert_allclose(rankdata(scores[:, 3]), rankdata(X[:, 3]))
    np.testing.assert_allclose(scores[:, [0, 2, 3]].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(scores[:, [0, 2, 3]].std(axis=0), 1.0)
    lower, upper = np.sort(X[:, 0])[[3, 4]]
    new = np.repeat([[lower], [(lower + upper) / 2], [upper], [1e9], [-1e9]], 5, axis=1)
    found = views.of("scores", torch.from_numpy(new)).numpy()[:, 0]
    assert found[1] == pytest.approx((found[0] + found[2]) / 2)
    assert found[3] == scores[:, 0].max()
    assert found[4] == scores[:, 0].min()


def test_normal_scores_of_many_values_are_close_to_those_of_all(rng):
    X = rng.normal(size=(5000, 1)) ** 3
    views = learn_views(X, np.ones(len(X)))
    scores = views.of("scores", torch.from_numpy(X)).numpy()[:, 0]
    exact = ndtri((rankdata(X[:, 0]) - 0.5) / len(X))
    assert views.knots.shape[1] <= 258
    np.testing.assert_allclose(scores, exact / exact.std(), atol=0.03)


def test_levels_are_eighths_of_the_rows_or_the_values_of_short_columns(rng):
    X = _table(rng)
    levels = learn_views(X, np.ones(len(X))).of("levels", torch.from_numpy(X)).numpy()
    np.testing.assert_array_equal(levels[:, 2], X[:, 2])
    np.testing.assert_array_equal(np.bincount(levels[:, 0].astype(int)), 10)
    np.testing.assert_array_equal(levels[:, 4], 0.0)


def test_components_are_those_of_columns_that_nearly_follow_from_others():
    """Uncorrelated and of variance 1, as many as there is something besides rounding to say of."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    ones, columns = np.ones(200), (X - X.mean(axis=0)) / X.std(axis=0)
    nearly = columns[:, 0] + 0.05 * rng.normal(size=200)
    rows = np.column_stack([columns, nearly, columns[:, 2], columns[:, 0] + 1e-5 * columns[:, 2]])
    views = learn_views(rows, ones)
    assert views.components.shape == (6, 4)  # what a column says in its fifth digit is not asked
    found = views.of("components", torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(
        found.T @ found / 200 - np.outer(found.mean(0), found.mean(0)), np.eye(4), atol=1e-9
    )
    for others in (columns, np.column_stack([columns, columns, np.ones(200)]), columns[:, :1]):
        assert learn_views(others, ones).components is None  # nothing is said anew, or by little
    assert "components" not in learn_views(columns, ones).known


def test_of_more_columns_than_rows_components_are_few():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 100)) + 0.01 * rng.normal(size=(40, 100))
    views = learn_views(wide, np.ones(40))
    assert views.components.shape == (100, 10)
    found = views.of("components", torch.from_numpy(wide)).numpy()
    np.testing.assert_allclose(np.cov(found.T, bias=True), np.eye(10), atol=1e-9)
    assert learn_views(rng.normal(size=(40, 100)), np.ones(40)).components is None
    assert learn_views(wide[:3], np.ones(3)).components is None


def test_rows_of_weight_0_teach_nothing_and_weights_are_repetitions(rng):
    X = _table(rng, 40)
    weight = rng.integers(3, size=40).astype(float)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    found, same = learn_views(X, weight), learn_views(repeated, np.ones(len(repeated)))
    for one, other in zip(vars(found).values(), vars(same).values(), strict=True):
        torch.testing.assert_close(one, other)


def test_each_kernel_is_the_plain_one_of_its_view(rng):
    X, Z = _table(rng), _table(rng, 30)
    kernel = view_kernels(X, np.ones(len(X)))
    assert {"linear", "rbf", "laplacian"} == set(kernel.families)
    assert {"columns", "scores", "levels"} == set(kernel.views)
    rows, others = torch.from_numpy(Z), torch.from_numpy(X)
    gram = kernel.gram(rows, others)
    assert gram.shape == (kernel.n_values, 30, 80)
    at, one = torch.arange(80), torch.ones(5, dtype=torch.float64)
    torch.testing.assert_close(
        kernel.with_known(rows, others, at, one, torch.float64), gram, rtol=1e-12, atol=1e-12
    )
    seen = kernel.of_columns
    for g, (family, view) in enumerate(zip(kernel.families, kernel.views, strict=True)):
        A, B = seen.of(view, rows).numpy(), seen.of(view, others).numpy()
        gamma = kernel.gamma[g].item()
        wanted = gamma * linear_kernel(A, B) if family == "linear" else OF[family](A, B, gamma)
        np.testing.assert_allclose(gram[g], wanted, rtol=1e-9, atol=1e-12)
        [alone] = kernel.take(slice(g, g + 1)).gram(rows, others)
        torch.testing.assert_close(alone, gram[g])


def _scores(models, rows):
    return torch.cat([part for _, part in model_scores(models, rows)]).double()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("solver", ["smo-compiled", "smo-batched"])
def test_machines_are_those_of_the_values_precomputed(rng, solver, dtype):
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1, -1)
    counts = rng.multinomial(60, np.full(60, 1 / 60), size=3)
    kernel = view_kernels(X, np.ones(60)).take(torch.tensor([0, 3, 8, -1]))
    C = [0.1, 3.0]
    found = fit(Problem(X, y, counts, C, kernel=kernel), solver=solver, dtype=dtype)
    new = rng.normal(size=(7, 4))
    scores = _scores(found, torch.from_numpy(new)).reshape(3, 4, 2, 7)
    for g in range(4):
        one = kernel.take(slice(g, g + 1))
        known, to_new = (one.gram(*map(torch.from_numpy, pair))[0] for pair in ((X, X), (new, X)))
        same = fit(Problem(known.numpy(), y, counts, C, kernel=Precomputed()), solver=solver)
        wanted = _scores(same, to_new)
        atol = 1e-4 if dtype is torch.float64 else 0.02
        np.testing.assert_allclose(scores[:, g], wanted, atol=atol)


def test_slope_is_the_difference_quotient(rng):
    X = rng.normal(size=(20, 3))
    kernel = view_kernels(X, np.ones(20)).take(torch.tensor([0, 2, 9, -1]))
    rows = torch.from_numpy(X)
    step = 1e-6
    up, down = (
        replace(kernel, gamma=kernel.gamma * (1 + s)).gram(rows, rows) for s in (step, -step)
    )
    gamma = kernel.gamma[:, None, None]
    wanted = (up - down) / (2 * step * gamma)
    found = kernel.slope(kernel.gram(rows, rows), gamma, None)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-7)


def test_wrong_parts_are_refused(rng):
    X = rng.normal(size=(20, 3))
    kernel = view_kernels(X, np.ones(20))
    with pytest.raises(InputError, match="each kernel needs one of each"):
        replace(kernel, gamma=kernel.gamma[:2])
    with pytest.raises(InputError, match="'cubic' is none of linear, rbf, laplacian"):
        replace(kernel, families=("cubic", *kernel.families[1:]))
    with pytest.raises(InputError, match="4 columns, and the views are of 3"):
        Problem(np.zeros((4, 4)), [1, -1, 1, -1], np.ones((1, 4)), [1.0], kernel=kernel)
    with pytest.raises(InputError, match="two knots or more"):
        replace(kernel.of_columns, knots=kernel.of_columns.knots[:, :1])
    assert isinstance(kernel, ViewKernels)


def test_of_relevant_columns_views_are_the_same_times_relevance():
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(50, 3)))
    views = learn_views(rows.numpy(), np.ones(50))
    assert not any(view.startswith("relevant") for view in views.known)
    told = replace(views, relevance=torch.tensor([0.5, 0.0, 2.0], dtype=torch.float64))
    for view in ("columns", "scores", "levels"):
        expected = views.of(view, rows)[:, [0, 2]] * torch.tensor([0.5, 2.0])
        torch.testing.assert_close(told.of(f"relevant {view}", rows), expected)
    with pytest.raises(InputError, match="relevance has the shape"):
        replace(views, relevance=torch.ones(2))


def test_a_sum_of_kernels_is_one_kernel():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3))
    kernels = view_kernels(rows, np.ones(30))
    shares = torch.from_numpy(rng.dirichlet(np.ones(kernels.n_values)))
    whole = kernels.summed(shares)
    seen = torch.from_numpy(rows)
    assert whole.n_values == 1
    assert whole.take(slice(0, 1)) is whole
    each = kernels.gram(seen[:9], seen)
    torch.testing.assert_close(
        whole.gram(seen[:9], seen)[0], torch.einsum("g,gmn->mn", shares, each)
    )
    with pytest.raises(InputError, match="shares are not of the kernels"):
        kernels.summed(-shares)
    with pytest.raises(InputError, match="is none of"):
        replace(kernels, views=("relevant columns", *kernels.views[1:]))
