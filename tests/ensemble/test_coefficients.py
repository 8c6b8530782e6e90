"""What others read off a linear model: the mean score's coefficients, in the columns' units."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import partial_dependence, permutation_importance

from bootprob import BootstrapSVC
from bootprob.persistence.file import read_model_file
from bootprob.persistence.save_load import load, save
from linear_models import linear

QUICK = {"n_bootstraps": 8, "C": [0.25, 4.0], "random_state": 0}
GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.model"))


@pytest.fixture
def table(rng):
    """Columns of different units, far from 0; one is a constant, one nearly always 0."""
    X = rng.normal(size=(80, 5)) * [1.0, 1e3, 1e-4, 1.0, 1.0] + [0.0, 5e3, 7.0, 0.0, 0.0]
    X[:, 3] = 12.5
    X[:, 4] = np.arange(80) % 20 == 0
    y = np.where(X[:, 0] + (X[:, 1] - 5e3) / 1e3 + rng.normal(size=80) > 0, "yes", "no")
    return X, y


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"standardize": "global"},
        {"calibration": None},
        {"calibration": "isotonic"},
        {"class_weight": None, "weighting": "accuracy"},
        {"control": "threshold", "rates": {"tpr": 0.9}},
        {"control": "threshold", "rates": {"tpr": 0.9}, "calibration": None},
        {"control": "constrained", "rates": {"tpr": 0.9}},
        {"dtype": "float32"},
    ],
    ids=str,
)
def test_they_make_the_decision_function(table, params):
    X, y = table
    model = linear(**QUICK, **params).fit(X, y, np.linspace(0.5, 2, len(y)))
    assert model.coef_.shape == (1, 5)
    assert model.intercept_.shape == (1,)
    new = X[:20].copy()
    new[:, 3] += 1  # what was constant need not be
    said = model.decision_function(new)
    rel = 1e-3 if params.get("dtype") == "float32" else 1e-7
    made = (new @ model.coef_.T + model.intercept_)[:, 0]
    np.testing.assert_allclose(made, said, rtol=0, atol=rel * np.abs(said).max())


@pytest.mark.parametrize("standardize", ["bootstrap", "global", None])
def test_they_are_made_of_dual_coefficients_where_those_are_kept(rng, standardize):
    X = rng.normal(size=(20, 40)) * np.geomspace(0.1, 10, 40)
    model = linear(**QUICK, standardize=standardize).fit(X, np.arange(20) % 2)
    assert model.bootstrap_coef_ is None
    made = (X @ model.coef_.T + model.intercept_)[:, 0]
    np.testing.assert_allclose(made, model.decision_function(X), atol=1e-9)


def test_they_follow_what_moves_the_scores(table):
    X, y = table
    model = linear(**QUICK).fit(X, y)
    model.score_offset_ = model.score_offset_ + 0.25
    made = (X @ model.coef_.T + model.intercept_)[:, 0]
    np.testing.assert_allclose(made, model.decision_function(X), atol=1e-7)


@pytest.mark.filterwarnings("ignore:The feature map's kernel")
def test_models_that_are_not_linear_have_none(table):
    X, y = table
    three = np.where(np.arange(80) % 3 == 0, "perhaps", y)
    with pytest.raises(NotFittedError):
        _ = BootstrapSVC(kernel="linear").coef_
    mapped = {"feature_map": "nystroem", "n_components": 60, "gamma": 0.01}
    for params, labels, why in [
        ({"kernel": "rbf"}, y, "not linear"),
        ({"kernel": "rbf", **mapped}, y, "not linear"),
        ({}, three, "pair_ensembles_"),
    ]:
        model = linear(**QUICK, **params).fit(X, labels)
        for name in ("coef_", "intercept_"):
            assert not hasattr(model, name)
            with pytest.raises(AttributeError, match=why):
                getattr(model, name)
    [first, *_] = model.pair_ensembles_
    made = (X @ first.coef_.T + first.intercept_)[:, 0]
    np.testing.assert_allclose(made, first.decision_function(X), atol=1e-7)


def test_selectors_find_the_columns_that_count(rng):
    X = rng.normal(size=(200, 6))
    y = X[:, 1] - X[:, 4] > 0
    model = linear(**QUICK)
    selected = SelectFromModel(model, max_features=2, threshold=-np.inf).fit(X, y)
    eliminated = RFE(model, n_features_to_select=2).fit(X, y)
    assert selected.get_support(indices=True).tolist() == [1, 4]
    assert eliminated.get_support(indices=True).tolist() == [1, 4]
    assert (eliminated.predict(X) == y).mean() > 0.9


def test_linear_attributions_add_up_to_the_score(table):
    """What shap.LinearExplainer computes from `coef_` and `intercept_` alone."""
    X, y = table
    model = linear(**QUICK).fit(X, y)
    coef, intercept, mean = model.coef_[0], model.intercept_[0], X.mean(axis=0)
    expected_value = mean @ coef + intercept
    attributions = (X - mean) * coef
    assert expected_value == pytest.approx(model.decision_function(X).mean(), abs=1e-7)
    np.testing.assert_allclose(
        expected_value + attributions.sum(axis=1), model.decision_function(X), atol=1e-7
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_inspection_by_scikit_learn(kernel):
    X = np.random.default_rng(0).normal(size=(120, 4))
    y = X[:, 0] > 0.2
    model = BootstrapSVC(**QUICK, kernel=kernel).fit(X, y)
    found = permutation_importance(
        model, X, y, scoring="neg_log_loss", n_repeats=3, random_state=0
    ).importances_mean
    assert found.argmax() == 0
    assert found[0] > 10 * np.abs(found[1:]).max()
    along = partial_dependence(model, X, [0], grid_resolution=5)
    [curve] = along["average"]
    moved = X.copy()
    moved[:, 0] = along["grid_values"][0][2]
    assert curve[2] == pytest.approx(model.predict_proba(moved)[:, 1].mean())
    assert abs(curve[-1] - curve[0]) > 0.5


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_files_keep_the_names_they_had(path, tmp_path):
    save(load(path), tmp_path / "again.model")
    content, arrays = read_model_file(tmp_path / "again.model")
    golden, golden_arrays = read_model_file(path)
    # A parameter that is younger than the file has its default.
    younger = content["params"].keys() - golden["params"].keys()
    defaults = BootstrapSVC(kernel="linear").get_params()
    assert {name: content["params"].pop(name) for name in younger} == {
        name: defaults[name] for name in younger
    }
    if "0.1.0" in path.name and content["table"]:  # they do not say how many values were missing
        assert content["table"]["preprocessor"].pop("missing") is None
    assert content == golden
    assert arrays.keys() == golden_arrays.keys()
    for name, array in arrays.items():
        assert array.dtype == golden_arrays[name].dtype
        np.testing.assert_array_equal(array, golden_arrays[name])
