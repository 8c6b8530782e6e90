"""Rows on a pretended CUDA device are scored there: its rules are kept, and nothing is fetched."""

import numpy as np
import pytest
import torch
from pretended_cuda import CudaTensor

from bootprob import BootstrapSVC, DataError

MODELS = {
    "linear": {},
    "rbf": {"kernel": "rbf", "gamma": 0.5},
    "rbf, one scale": {"kernel": "rbf", "gamma": 0.5, "standardize": "global"},
    "mapped": {"kernel": "rbf", "gamma": 0.1, "feature_map": "nystroem", "n_components": 50},
    "several classes": {},
}
ASKED = (
    "predict", "predict_proba", "vote_proba", "decision_function", "proba_interval",
    "prediction_sets",
)  # fmt: skip


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("name", MODELS)
def test_rows_on_a_gpu_are_answered_there(pretended_gpu, name, device):
    """By models on the same device, and on the host."""
    rng = np.random.default_rng(5)
    X, new = rng.normal(size=(60, 3)), rng.normal(size=(9, 3))
    latent = X[:, 0] + 0.6 * rng.normal(size=60)
    y = np.digitize(latent, [-0.5, 0.5]) if name == "several classes" else (latent > 0).astype(int)
    model = BootstrapSVC(
        kernel="linear", n_bootstraps=8, C=[0.1, 1.0], random_state=0, device="cpu"
    )
    model.set_params(**MODELS[name]).fit(X, y)
    expected = {asked: getattr(model, asked)(new) for asked in ASKED}
    model.set_params(device=device)
    rows = torch.from_numpy(new).to("cuda")
    for asked in ASKED:
        found = getattr(model, asked)(rows)
        assert isinstance(found, CudaTensor)
        np.testing.assert_allclose(
            found.cpu().numpy(), expected[asked], rtol=1e-9, atol=1e-12, err_msg=asked
        )
    rows[2, 1] = np.nan
    with pytest.raises(DataError, match=r"Row 2, column 1 .* is nan .* on cuda:0\)"):
        model.predict_proba(rows)


def test_scores_of_all_models_stay_there(pretended_gpu):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(50, 3))
    model = BootstrapSVC(
        kernel="linear", n_bootstraps=5, C=[0.1, 1.0], random_state=0, device="cpu"
    )
    model.fit(X, X[:, 0] > 0)
    expected = np.concatenate(list(model.bootstrap_scores(X)))
    model.set_params(device="cuda")
    parts = list(model.bootstrap_scores(torch.from_numpy(X).to("cuda"), 20))
    assert all(isinstance(part, CudaTensor) for part in parts)
    np.testing.assert_allclose(torch.cat(parts).cpu().numpy(), expected, rtol=1e-9, atol=1e-12)


def test_training_rows_come_to_the_host(pretended_gpu):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(50, 3))
    y = (X[:, 0] > 0).astype(int)
    svc = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0, device="cpu")
    expected = svc.fit(X, y).predict_proba(X)
    svc.fit(torch.from_numpy(X).to("cuda"), torch.from_numpy(y).to("cuda"))
    np.testing.assert_array_equal(svc.predict_proba(X), expected)
