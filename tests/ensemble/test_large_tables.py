"""``kernel="auto"`` on tables that are too large for kernel matrices; here 100 rows are."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from fastapi.testclient import TestClient
from scipy.special import expit
from sklearn.base import clone

from bootprob import BootstrapSVC, load, save
from bootprob.batch_scoring import ScoringOptions, score_batches
from bootprob.ensemble.state import state_of
from bootprob.ensemble.uncertainty import composite_model
from bootprob.ensemble.uncertainty.composite_model import Model, Setting
from bootprob.ensemble.uncertainty.composite_posterior import CompositePosterior
from bootprob.ensemble.uncertainty.composite_stage import Stage
from bootprob.ensemble.uncertainty.curves import Curve, Landmarks, candidates
from bootprob.ensemble.uncertainty.labelled_rows import LabelledRows
from bootprob.ensemble.uncertainty.link_tails import LOGIT
from bootprob.ensemble.uncertainty.straight import straight_columns
from bootprob.exceptions import DataError, ModelFileError
from bootprob.preparation import large_tables, views
from bootprob.preparation.bootstrap import bootstrap_counts
from bootprob.preparation.large_tables import mapped_columns, samples_of
from bootprob.preparation.relevance import column_relevance
from bootprob.preparation.view_map import ViewMap
from bootprob.preparation.views import learn_views, view_kernels
from bootprob.report import write_report
from bootprob.server import create_app
from bootprob.tables.model import TableModel
from mixed_tables import credit_table
from refitted import fitted_elsewhere_is_the_same

_FEW = {
    ("linear", "columns"): (1.0,),
    ("rbf", "columns"): (0.5,),
    ("rbf", "relevant scores"): (0.5,),
    ("laplacian", "relevant levels"): (1.0,),
}


@pytest.fixture(scope="module", autouse=True)
def _small_is_large():
    with pytest.MonkeyPatch.context() as patched:
        for name, number in (("EXACT_ROWS", 100), ("DRAWN", 120), ("COLUMNS", 30)):
            patched.setattr(large_tables, f"_{name}", number)
        patched.setattr(views, "_MULTIPLES", _FEW)
        patched.setattr(composite_model, "TAILS", ((-0.3, -0.3, 0.0, 0.0),))
        yield


@pytest.fixture(scope="module")
def interactions():
    """Two columns of which only the product counts, and one of noise."""
    rng = np.random.default_rng(20)
    X = rng.normal(size=(200, 3))
    y = (rng.uniform(size=200) < 1 / (1 + np.exp(-3 * X[:, 0] * X[:, 1]))).astype(int)
    return X, y


@pytest.fixture(scope="module")
def model(interactions):
    return BootstrapSVC(n_bootstraps=12, random_state=0).fit(*interactions)


def test_machines_see_parts_of_the_table_through_a_map(interactions, model):
    X, y = interactions
    counts = model.bootstrap_counts()
    assert model.n_drawn_ == 120
    assert (counts.sum(axis=1) == 120).all()
    assert model.bootstrap_coef_.shape[2] == len(model.feature_map_["landmarks"]) == 30
    assert model.feature_map_error_["n_rows"] == 170
    assert sum(model.kernel_weights_.values()) == pytest.approx(1)
    shares = model.feature_map_["shares"] * (1 - (model.posterior_share_ or 0))
    assert shares.sum() == pytest.approx(1 - model.kernel_weights_.get("posterior", 0))
    assert np.mean(model.predict(X) == y) > 0.7


def test_scores_are_those_of_the_machines_on_the_map(interactions, model):
    X, _ = interactions
    rows = (X[:7] - model.center_) / model.scale_
    kernel = state_of(model).kernel
    landmarks = model.feature_map_["landmarks"]
    values = np.zeros((7, 30))
    for family, view, gamma, share in zip(
        kernel.families, kernel.views, kernel.gamma, kernel.shares, strict=True
    ):
        seen, of = (kernel.of_columns.of(view, torch.from_numpy(e)) for e in (rows, landmarks))
        if family == "linear":
            own = gamma * seen @ of.T
        else:
            distance = torch.cdist(seen, of, p=1.0 if family == "laplacian" else 2.0)
            own = (-gamma * (distance if family == "laplacian" else distance.square())).exp()
        values += (share * own).numpy()
    mapped = values @ model.feature_map_["normalization"]
    raw = np.einsum("brd,md->mrb", model.bootstrap_coef_, mapped)
    raw += model.bootstrap_intercept_.T
    np.testing.assert_allclose(
        np.concatenate(list(model.bootstrap_scores(X[:7]))), raw, rtol=1e-6, atol=1e-7
    )


def test_a_map_of_all_rows_is_the_kernel_itself():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    kernels = view_kernels(rows, np.ones(40))
    shares = torch.from_numpy(rng.dirichlet(np.ones(kernels.n_values)))
    view_map = ViewMap.fit(kernels.summed(shares), rows)
    whole = sum(
        share * kernels.take(slice(g, g + 1)).matrix(rows, rows)
        for g, share in enumerate(shares.tolist())
    )
    np.testing.assert_allclose(view_map.kernel(rows, rows), whole, rtol=1e-9, atol=1e-12)
    mapped = view_map.transform(rows)
    np.testing.assert_allclose(mapped @ mapped.T, whole, atol=1e-6)


def test_intervals_hold_the_probability(interactions, model):
    X, _ = interactions
    lower, upper = np.moveaxis(model.proba_interval(X)[:, 1], -1, 0)
    p = model.predict_proba(X)[:, 1]
    assert ((lower < p) & (p < upper)).all()
    for method in ("normal", "jackknife", "percentile", "basic", "bca", "wilson"):
        bounds = model.proba_interval(X[:9], method=method)
        assert np.isfinite(bounds).all()
    assert np.isfinite(model.oob_proba_).all()


def test_the_same_from_a_file_and_again(interactions, model, tmp_path):
    X, y = interactions
    save(model, tmp_path / "model.bootprob")
    for other in (load(tmp_path / "model.bootprob"), clone(model).fit(X, y)):
        assert other.n_drawn_ == model.n_drawn_
        assert other.kernel_weights_ == model.kernel_weights_
        np.testing.assert_array_equal(other.bootstrap_counts(), model.bootstrap_counts())
        np.testing.assert_array_equal(other.predict_proba(X[:9]), model.predict_proba(X[:9]))
        np.testing.assert_array_equal(other.proba_interval(X[:9]), model.proba_interval(X[:9]))


@pytest.mark.endurance  # as of small tables, tests/ensemble/test_adaptive_kernel.py
def test_the_same_by_workers_and_from_a_checkpoint(interactions, model, tmp_path):
    fitted_elsewhere_is_the_same(model, *interactions, tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"control": "threshold", "rates": {"tpr": 0.9}},
        {"control": "constrained", "rates": {"tpr": 0.9}},
        {"weighting": "accuracy", "calibration": None},
        {"standardize": None},
        {"calibration": "auto", "class_weight": "balanced"},
        {"dtype": "float32"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_with_other_parameters(interactions, options):
    X, y = interactions
    model = BootstrapSVC(n_bootstraps=6, random_state=0, C=[0.1, 1.0], **options)
    model.fit(X * [1, 10, 0.1], y)
    assert np.mean((model.predict_proba(X * [1, 10, 0.1])[:, 1] > 0.5) == y) > 0.65


def test_of_several_classes(interactions, tmp_path):
    X, y = interactions
    three = y + (X[:, 2] > 0.8)
    model = BootstrapSVC(n_bootstraps=10, random_state=0).fit(X, three)
    assert np.mean(model.predict(X) == three) > 0.65
    assert all(pair.n_drawn_ == 120 for pair in model.pair_ensembles_)
    save(model, tmp_path / "model.bootprob")
    loaded = load(tmp_path / "model.bootprob")
    np.testing.assert_array_equal(loaded.proba_interval(X[:5]), model.proba_interval(X[:5]))


def test_a_row_of_weight_0_is_no_landmark_and_teaches_nothing(interactions):
    X, y = interactions
    weight = np.ones(len(X))
    weight[:60] = 0
    found = []
    for spoilt in (y, np.where(weight > 0, y, 1 - y)):
        model = BootstrapSVC(n_bootstraps=6, random_state=0).fit(X, spoilt, weight)
        found.append(model.predict_proba(X[60:70]))
    np.testing.assert_array_equal(*found)
    landmarks = model.feature_map_["landmarks"] * model.scale_ + model.center_
    assert (np.abs(landmarks[:, None] - X[:60]).max(axis=2) > 1e-6).all()


def test_samples_of_fewer_rows_than_there_are():
    labels, weight = np.arange(500) % 7 == 0, np.ones(500)
    counts, _ = bootstrap_counts(labels, weight, range(400), [1, 2], 50)
    assert (counts.sum(axis=1) == 50).all()
    # Of 20,000 draws each row expects 40, with a standard deviation of 6.3.
    assert counts.sum(axis=0).min() > 5
    again, _ = bootstrap_counts(labels, weight, range(7, 9), [1, 2], 50)
    np.testing.assert_array_equal(again, counts[7:9])
    assert (counts[:, labels].sum(axis=1) > 0).all()


def test_intervals_know_curves_in_few_columns():
    """A product of two columns and a bend, beside straight ones: no kernel of all is as near."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(900, 40)), rng.normal(size=(500, 40))

    def truth(X):
        return expit(2 * X[:, 0] * X[:, 1] + np.square(X[:, 2]) - 1 + X[:, 3:8].sum(1))

    model = BootstrapSVC(n_bootstraps=5, effort="low", random_state=0)
    model.fit(X, rng.uniform(size=900) < truth(X))
    assert model.feature_map_ is not None
    curves = CompositePosterior(**model.kernel_posterior_).curves(0)
    assert (0, 1) in [curve.columns for curve in curves]
    lower, upper = model.proba_interval(new)[:, 1].T
    assert np.mean((lower <= truth(new)) & (truth(new) <= upper)) > 0.9


def test_more_rows_do_not_take_more_of_machines():
    weight = np.ones(5_000)
    assert samples_of(weight, 500, 50) == (50, 120)
    assert samples_of(weight, 500, 200) == (200, 120)
    weight[1_000:] = 0  # 120 of those that count
    assert samples_of(weight, 20, 50) == (20, 600)
    assert mapped_columns(10**6) == 30
    assert mapped_columns(10**9) >= 30


def test_a_table_is_served_scored_in_batches_and_reported(tmp_path):
    table = TableModel.fit(credit_table(160), "risk", "bad", n_bootstraps=8, random_state=0)
    new = credit_table(12, seed=3).drop(columns="risk")
    probability = table.svc.predict_proba(table.preprocessor.transform(new))[:, 1]
    batches = [
        pa.RecordBatch.from_pandas(part, preserve_index=False) for part in (new[:5], new[5:])
    ]
    scored = pa.Table.from_batches(list(score_batches(table, batches, ScoringOptions())))
    np.testing.assert_allclose(scored["probability"].to_numpy(), probability, rtol=1e-9)
    with TestClient(create_app(table)) as client:
        reply = client.post("/predict", json={"records": json.loads(new.to_json(orient="records"))})
    assert reply.status_code == 200
    served = [each["probability"] for each in reply.json()["predictions"]]
    np.testing.assert_allclose(served, probability, rtol=1e-9)
    write_report({"large": table.svc}, tmp_path / "report.html", title="Large")
    assert "8 bootstrap samples of 120 rows" in (tmp_path / "report.html").read_text("utf-8")


def test_a_relevant_flag_that_few_rows_have_gets_its_step_between_its_values(rng):
    X = np.column_stack([rng.uniform(size=400) > 0.04, rng.normal(size=400)]).astype(float)
    y = rng.uniform(size=400) < np.where(X[:, 0] == 1, 0.3, 0.99)
    model = BootstrapSVC(n_bootstraps=5, random_state=0).fit(X, y)
    posterior = model.kernel_posterior_
    at = posterior["thresholds"][posterior["stepped"] == 0]
    low, high = np.unique((X[:, 0] - model.center_[0]) / model.scale_[0])
    np.testing.assert_allclose(at, [(low + high) / 2])
    moved = X + np.array([1e-9, 0.0])
    np.testing.assert_allclose(model.predict_proba(moved), model.predict_proba(X), atol=1e-7)


def test_noise_is_irrelevant_whatever_rows_weigh(rng):
    n, found = 3_000, 0
    for _ in range(10):
        rows, codes = rng.normal(size=(n, 3)), rng.integers(2, size=n)
        weight = np.where(rng.uniform(size=n) < 0.1, 20.0, 1.0)
        found += column_relevance(rows, codes, weight, learn_views(rows, weight)).any()
    assert found < 5  # of ten, at a level of 1 %


def test_rows_of_no_weight_take_no_machine_s_rows(rng):
    X, weight = rng.normal(size=(400, 2)), np.ones(400)
    weight[110:] = 0
    y = rng.uniform(size=400) < expit(2 * X[:, 0])
    model = BootstrapSVC(n_bootstraps=5, random_state=0).fit(X, y, sample_weight=weight)
    assert model.n_drawn_ == 400
    counts = model.bootstrap_counts()
    assert (counts[:, :110].sum(axis=1) > 70).all()
    weight[90:] = 0  # no large table any more
    assert (
        BootstrapSVC(n_bootstraps=5, random_state=0).fit(X, y, sample_weight=weight).n_drawn_
        is None
    )


def test_standard_errors_of_pairs_are_not_those_of_more_rows_than_were_drawn(rng):
    X = rng.normal(size=(300, 3))
    y = np.argmax(X + rng.normal(size=(300, 3)), axis=1)
    model = BootstrapSVC(n_bootstraps=30, random_state=0).fit(X, y)
    pair = model.pair_ensembles_[0]
    width = np.diff(pair.score_interval(X[:20], method="studentised"))
    assert (width > 0).mean() > 0.8


def test_a_file_whose_samples_draw_more_rows_than_there_are_is_refused(model, tmp_path):
    edited = copy(model)
    edited.n_drawn_ = 10**9
    save(edited, tmp_path / "model.bootprob")
    with pytest.raises(ModelFileError, match="n_drawn_"):
        load(tmp_path / "model.bootprob")


def test_another_effort_is_another_fit(interactions, tmp_path):
    X, y = interactions
    given = {"n_bootstraps": 6, "C": [0.5, 2.0], "random_state": 0}
    folder = str(tmp_path / "parts")
    BootstrapSVC(effort="low", checkpoint=folder, **given).fit(X, y)
    with pytest.raises(DataError, match="with other preparation"):
        BootstrapSVC(effort="high", checkpoint=folder, **given).fit(X, y)


def test_relevance_pays_for_what_labels_have_told(rng):
    """Of a third of the rows for a third; straight models pay nothing."""
    X = rng.normal(size=(90, 4))
    y = (X[:, 0] > 0).astype(int)
    kernels = view_kernels(X, np.ones(90), y)
    relevance = torch.tensor([1.0, 0.5, 0.0, 0.0], dtype=torch.float64)
    known = replace(kernels.of_columns, relevance=relevance)
    data = LabelledRows.of(X[:30], y[:30] > 0, np.ones(30), torch.device("cpu"))
    landmarks = Landmarks(data.rows, known)
    straight = straight_columns(data, known)
    stage = Stage(data, Model(landmarks, straight, candidates(kernels, landmarks), n_rows=90))
    linear = stage.model.linear(())[0]
    alone = Setting((), linear, (), LOGIT)
    curve = Curve("rbf", "relevant columns", 0.5)
    curved = Setting((curve,), linear, (1.0,), LOGIT)
    assert stage._log_prior(alone) == stage.model.log_prior(alone)
    assert stage._log_prior(curved) == pytest.approx(stage.model.log_prior(curved) - 2 / 3)
    found = stage.begin(curved)
    assert found.evidence == pytest.approx(found.found.evidence + stage._log_prior(curved))
