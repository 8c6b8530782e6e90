"""A few rows are scored for all replicates at once: the same scores as replicate by replicate."""

import numpy as np
import pytest
import torch

from bootprob_gpu import InputError, Problem, fit, model_scores
from bootprob_gpu.scoring import few_rows as few
from bootprob_gpu.scoring.scorers import ReplicateScores


def trained(rng, gamma, dtype=torch.float64, shift=0.0, n=40, p=3, B=5, kernel="rbf"):
    X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-6, 7, size=p) + shift
    y = np.where(rng.permutation(n) < n // 2, 1.0, -1.0)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=B)
    scale = X.std(axis=0) * rng.uniform(0.5, 2, size=(B, p))
    problem = Problem(X, y, counts, [0.1, 1.0], kernel=kernel, gamma=gamma, scale=scale)
    new = X[rng.integers(n, size=4)] + rng.normal(size=(4, p)) * X.std(axis=0)
    return fit(problem, dtype=dtype), torch.from_numpy(np.vstack([new, X[:2]]))


@pytest.mark.parametrize("gamma", [[0.3], [0.05, 0.4, 2.0]])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_scores_are_those_of_each_replicate_alone(rng, monkeypatch, gamma, dtype, kernel):
    models, new = trained(rng, gamma, dtype, kernel=kernel)
    assert few.are_few(models, len(new))
    weights = torch.from_numpy(rng.dirichlet(np.ones(models.intercept.shape[1])))
    weights[0] = 0.0
    ours = few.replicate_scores_of_few(models, weights, new)
    of_models = torch.cat([scores for _, scores in model_scores(models, new)])
    expected = ReplicateScores(models, weights)(new)
    monkeypatch.setattr(few, "_FEW", 0)
    assert not few.are_few(models, len(new))
    of_models_alone = torch.cat([scores for _, scores in model_scores(models, new)])
    tolerance = 1e-11 if dtype == torch.float64 else 1e-3
    assert ours.dtype == expected.dtype == dtype
    for found, truth in ((ours, expected), (of_models, of_models_alone)):
        assert found.shape == truth.shape
        torch.testing.assert_close(found, truth, rtol=tolerance, atol=tolerance)


def test_rows_far_from_everything_get_the_intercept(rng):
    models, _ = trained(rng, [0.3])
    far = torch.full((1, 3), 1e100, dtype=torch.float64)
    (found,) = few.model_scores_of_few(models, far).unbind(2)
    torch.testing.assert_close(found, models.intercept)


def test_what_is_not_few(rng):
    models, new = trained(rng, [0.3])
    assert not few.are_few(models, 0)
    assert not few.are_few(models, 10**6)
    with pytest.raises(InputError, match="3 columns"):
        few.model_scores_of_few(models, new[:, :2])


def test_one_scale_for_all_has_a_way_of_its_own(rng):
    X = rng.normal(size=(20, 2))
    problem = Problem(
        X, np.tile([1.0, -1.0], 10), np.ones((2, 20), int), [1.0], kernel="rbf", gamma=[1.0]
    )
    assert not few.are_few(fit(problem), 1)
