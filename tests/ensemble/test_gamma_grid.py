"""The grid of C × γ in one call: every model is its own, and weights are over the whole grid."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from bootprob import DEFAULT_C, BootstrapSVC
from bootprob.calibration import Sigmoid
from bootprob.cli.__main__ import app
from bootprob.persistence.save_load import load, save
from bootprob.preparation.grids import GAMMA_MULTIPLES, PAPER_GAMMA, gamma_grid
from bootprob.report import write_report
from bootprob_gpu import Status, median_gamma
from mixed_tables import credit_table


@pytest.fixture(scope="module")
def wisconsin():
    X, y = load_breast_cancer(return_X_y=True)
    return X[::4], y[::4]


@pytest.fixture(scope="module")
def model(wisconsin):
    return BootstrapSVC(kernel="rbf", gamma="grid", n_bootstraps=5, random_state=0).fit(*wisconsin)


def test_121_models_a_replicate_in_one_call(model, wisconsin):
    X, _ = wisconsin
    assert model.bootstrap_intercept_.shape == model.accuracy_.shape == (5, 121)
    assert model.bootstrap_dual_coef_.shape == (5, 121, len(X))
    assert model.C_.shape == model.gamma_.shape == model.weights_.shape == model.in_J_.shape
    assert (model.certificates_["status"] == Status.CONVERGED).all()
    expected = median_gamma(StandardScaler().fit_transform(X)) * 2.0 ** np.arange(-5, 6)
    np.testing.assert_allclose(model.gamma_.reshape(11, 11), np.tile(expected, (11, 1)).T)
    np.testing.assert_array_equal(model.C_.reshape(11, 11), np.tile(DEFAULT_C, (11, 1)))
    assert next(model.bootstrap_scores(X)).shape == (len(X), 121, 5)
    assert model.predict_proba(X).shape == (len(X), 2)


def test_a_model_of_the_grid_is_the_model_of_its_gamma_alone(model, wisconsin):
    X, y = wisconsin
    scores = next(model.bootstrap_scores(X)).reshape(len(X), 11, 11, 5)
    accuracy = model.accuracy_.reshape(5, 11, 11)
    for g in (0, 4, 10):
        alone = BootstrapSVC(
            kernel="rbf", gamma=model.gamma_[11 * g], n_bootstraps=5, random_state=0
        ).fit(X, y)
        np.testing.assert_allclose(scores[:, g], next(alone.bootstrap_scores(X)), atol=1e-3)
        np.testing.assert_allclose(accuracy[:, g], alone.accuracy_, atol=0.02)


def test_weights_are_over_the_whole_grid(model, wisconsin):
    X, y = wisconsin
    scores = next(model.bootstrap_scores(X))  # (n, R, B)
    outside = model.bootstrap_counts() == 0
    seen = outside.any(axis=0)
    mean = np.einsum("irb,bi->ir", scores, outside)[seen] / outside.sum(axis=0)[seen, None]
    loss = np.empty(121)
    for r in range(121):
        sigmoid = Sigmoid.fit(mean[:, r], y[seen] == 1, np.ones(seen.sum()))
        p = sigmoid.predict(mean[:, r])
        loss[r] = -np.log(np.where(y[seen] == 1, p, 1 - p)).sum()
    expected = np.exp(loss.min() - loss)
    np.testing.assert_allclose(model.weights_, expected / expected.sum(), rtol=1e-4, atol=1e-9)
    assert model.weights_.sum() == pytest.approx(1)
    by_gamma = model.weights_.reshape(11, 11).sum(axis=1)
    assert (by_gamma > 1e-3).sum() > 1  # no γ is picked; several take part


def test_accuracy_weights_are_over_the_whole_grid(wisconsin):
    X, y = wisconsin
    model = BootstrapSVC(
        kernel="rbf", gamma=[1e-3, 0.05, 50.0], C=[0.1, 10.0], weighting="accuracy",
        n_bootstraps=6, random_state=0,
    ).fit(X, y)  # fmt: skip
    mean = np.nanmean(model.accuracy_, axis=0)
    inside = mean >= mean.max() - 0.02
    np.testing.assert_array_equal(model.in_J_, inside)
    squares = np.where(inside, mean**2, 0)
    np.testing.assert_allclose(model.weights_, squares / squares.sum())
    assert not inside[4:].any()  # γ = 50: every row is a stranger


def test_the_papers_grid_has_a_name(wisconsin):
    assert PAPER_GAMMA == tuple(2.0**k for k in range(-5, 6)) == GAMMA_MULTIPLES
    X, y = wisconsin
    model = BootstrapSVC(
        kernel="rbf", gamma=PAPER_GAMMA, C=1.0, n_bootstraps=2, random_state=0
    ).fit(X, y)
    np.testing.assert_array_equal(model.gamma_, PAPER_GAMMA)
    assert BootstrapSVC.paper().gamma == "scale"
    assert BootstrapSVC.paper().kernel == "linear"


def test_the_rule_grid_follows_the_rows(rng):
    rows = rng.normal(size=(50, 3))
    grid = gamma_grid("grid", rows)
    np.testing.assert_allclose(gamma_grid("grid", 10 * rows), grid / 100)
    assert grid[5] == gamma_grid("median", rows)[0]


def test_a_saved_grid_answers_with_the_same_bits(model, wisconsin, tmp_path):
    X, _ = wisconsin
    save(model, tmp_path / "m.model")
    loaded = load(tmp_path / "m.model")
    assert loaded.gamma == "grid"
    assert loaded.gamma_.tobytes() == model.gamma_.tobytes()
    for name in ("predict_proba", "vote_proba", "proba_interval"):
        assert getattr(loaded, name)(X).tobytes() == getattr(model, name)(X).tobytes()


def test_the_report_shows_both_axes(model, tmp_path):
    page = tmp_path / "r.html"
    write_report({"grid": model}, page, title="A grid")
    (entry,) = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))["models"]
    assert entry["n_parameter_values"] == 121
    assert entry["grid"]["gamma"] == model.gamma_.tolist()
    assert entry["grid"]["weight"] == model.weights_.tolist()
    text = page.read_text(encoding="utf-8")
    assert "11 values of γ" in text
    assert page.stat().st_size < 600_000


def test_the_command_line_takes_the_grid(tmp_path):
    credit_table(60).to_csv(tmp_path / "t.csv", index=False)
    options = ["--kernel", "rbf", "--gamma", "grid", "--n-bootstraps", "4", "--seed", "0"]
    arguments = ["fit", str(tmp_path / "t.csv"), "--target", "risk", *options]
    result = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "m.model")])
    assert result.exit_code == 0, result.output
    svc = load(tmp_path / "m.model").svc
    assert svc.gamma == "grid"
    assert svc.weights_.shape == (121,)
