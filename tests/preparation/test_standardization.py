"""Centre and scale against scikit-learn on the literally resampled rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from bootprob import BootstrapSVC, ConstantColumnWarning, DataError
from bootprob.ensemble.sensitivity import probability_sensitivity
from bootprob.persistence.save_load import load, save
from bootprob.preparation.standardization import bootstrap_scale, center_and_scale
from bootprob.tables.model import TableModel


def test_global_scale_is_scikit_learns(rng):
    X = rng.normal(size=(50, 4)) * [1, 1e-6, 1e6, 3] + [0, 5, -7, 1e3]
    scaler = StandardScaler().fit(X)
    center, scale = center_and_scale(X, np.ones(len(X)))
    np.testing.assert_allclose(center, scaler.mean_, rtol=1e-12)
    np.testing.assert_allclose(scale, scaler.scale_, rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.1, -3e-9])
def test_constant_columns_get_scale_one_and_turn_to_zero(value):
    X = np.full((37, 1), value)
    center, scale = center_and_scale(X, np.ones(len(X)))
    assert scale == 1
    assert ((X - center) / scale == 0).all()


def test_bootstrap_scale_is_that_of_the_resampled_rows(rng):
    X = rng.normal(size=(60, 5))
    X[:, 3] = rng.uniform(size=60) < 0.05  # a rare dummy
    X[:, 4] = 1e-3 * rng.normal(size=60)
    X[0, 4] = 1e4  # an outlier that many samples lack
    center, scale = center_and_scale(X, np.ones(len(X)))
    X = (X - center) / scale
    counts = np.stack([np.bincount(rng.integers(0, 60, 60), minlength=60) for _ in range(80)])
    counts[0, X[:, 3] > 0] = 0  # a sample that lacks the dummy's level for certain
    ours = bootstrap_scale(X, counts, np.ones(60))
    for b in range(80):
        resampled = np.repeat(X, counts[b], axis=0)
        constant = np.ptp(resampled, axis=0) == 0
        np.testing.assert_allclose(
            ours[b], np.where(constant, 1.0, resampled.std(axis=0)), rtol=1e-7
        )
    assert ours[0, 3] == 1


def test_row_weights_act_like_repetitions(rng):
    X = rng.normal(size=(30, 3))
    weight = rng.integers(1, 4, 30)
    counts = rng.integers(0, 3, (5, 30))
    expected = [np.repeat(X, c * weight, axis=0).std(axis=0) for c in counts]
    np.testing.assert_allclose(bootstrap_scale(X, counts, weight.astype(float)), expected)
    repeated = np.repeat(X, weight, axis=0)
    center, scale = center_and_scale(X, weight.astype(float))
    np.testing.assert_allclose(center, repeated.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(scale, repeated.std(axis=0))


def test_rows_of_no_weight_are_not_looked_at(rng):
    X = rng.normal(size=(30, 3))
    weight = np.ones(30)
    weight[:5] = 0
    poisoned = X.copy()
    poisoned[:5] = 1e6
    for a, b in zip(center_and_scale(X, weight), center_and_scale(poisoned, weight), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("large", [1e101, 1e200, 1e307])
def test_overflowing_columns_are_named(rng, large):
    X = rng.uniform(1, 2, size=(10, 3))
    X[:, 1] *= large
    with pytest.raises(DataError, match=r"Columns \[1\] .* squares overflow"):
        center_and_scale(X, np.ones(10))
    X[:, 1] = large
    with pytest.raises(DataError, match=r"Columns \['b'\] hold numbers up to 1e\+"):
        center_and_scale(X, np.ones(10), ["a", "b", "c"])


@pytest.mark.parametrize("tiny", [1e-102, 1e-158, 1e-165, 1e-200, 1e-307])
def test_columns_whose_squares_vanish_are_named(rng, tiny):
    X = rng.normal(size=(40, 12))
    X[:, 1] *= tiny
    with pytest.warns(ConstantColumnWarning, match=r"Columns \[1\] \(counted from 0\) hold"):
        center, scale = center_and_scale(X, np.ones(40))
    assert scale[1] == 1
    assert np.abs(center[1]) <= tiny
    X[:, 1:] = X[:, :1] * tiny
    with pytest.warns(ConstantColumnWarning, match=r"'k'\] and 1 more hold"):
        center_and_scale(X, np.ones(40), list("abcdefghijkl"))
    X[:, 1:] *= 1e-320  # now they are constant
    center_and_scale(X, np.ones(40))


@pytest.mark.parametrize("factor", [1e-99, 1e99])
def test_models_of_any_unit_that_is_taken_can_be_saved(rng, factor, tmp_path):
    X = rng.normal(size=(40, 2)) * [factor, 1]
    model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0).fit(X, X[:, 0] > 0)
    assert model.score(X, X[:, 0] > 0) > 0.9
    save(model, tmp_path / "m.model")
    assert np.array_equal(load(tmp_path / "m.model").predict_proba(X), model.predict_proba(X))


def test_estimators_name_such_columns(rng, tmp_path):
    X = pd.DataFrame(rng.normal(size=(40, 2)) * [1e-200, 1], columns=["charge", "mass"])
    y = X["mass"] > 0
    with pytest.warns(ConstantColumnWarning, match=r"Columns \['charge'\] hold"):
        model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0).fit(X, y)
    save(model, tmp_path / "m.model")
    with pytest.warns(ConstantColumnWarning):  # its squares do not vanish, and it is alone to know
        model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0).fit(
            [[x * 1e-120, z] for x, z in X.to_numpy() * [1e200, 1]], X["charge"] > 0
        )
    assert np.abs(model.coef_[0, 0]) <= 1e-100
    save(model, tmp_path / "m.model")
    table = TableModel.fit(
        X.assign(y=y), "y", kernel="linear", n_bootstraps=5, C=1.0, random_state=0
    )
    assert list(table.preprocessor.kinds_) == ["mass"]
    [note] = table.preprocessor.notes_
    assert note.startswith("Column 'charge' is left out: its numbers differ by ")


def _many_levels(rng: np.random.Generator, n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """A number, a column of more than 100 levels of one or two rows each, and one of three."""
    levels = [f"L{k}" for k in [*range(150), *rng.integers(0, 150, n - 150)]]
    table = pd.DataFrame(
        {"x": rng.normal(size=n), "few": rng.choice(list("abc"), n), "many": levels}
    )
    return table, (table["x"] + rng.normal(size=n) > 0).to_numpy()


def test_dummies_of_many_levels_have_the_variance_of_one_column(rng: np.random.Generator) -> None:
    table, y = _many_levels(rng)
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=4, random_state=0, tol=1e-9)
    model.fit(table, y)
    assert any("150 levels, a dummy for each, which together weigh as one column" in note
               for note in model.preprocessor_.notes_)  # fmt: skip
    X = model.preprocessor_.transform(table)
    places = model.preprocessor_.encoder_.places
    rows = (X - model.center_) / model.scale_
    variance = rows.var(axis=0)
    assert variance[places["many"]].sum() == pytest.approx(1)
    np.testing.assert_allclose(variance[:4], 1)  # the number and each of the three levels
    assert np.ptp(model.scale_[places["many"]]) == 0
    assert (model.bootstrap_scale_[:, places["many"]] == 1).all()
    assert (model.bootstrap_scale_[:, places["few"]] != 1).all()
    votes = BootstrapSVC.paper(n_bootstraps=4, random_state=0).fit(table, y)
    assert np.ptp(votes.scale_[places["many"]]) > 0  # to the letter
    # training rows are known again by their means
    found = probability_sensitivity(model, table[:2], X_train=table)
    assert np.isfinite(found.row_weight).all()


def test_many_levels_are_what_a_scaled_matrix_is(rng: np.random.Generator) -> None:
    table, y = _many_levels(rng)
    params = {
        "kernel": "linear",
        "C": [0.1, 1.0],
        "n_bootstraps": 5,
        "random_state": 0,
        "tol": 1e-9,
    }
    ours = BootstrapSVC(standardize="global", **params).fit(table, y)
    X = ours.preprocessor_.transform(table)
    scale = X.std(axis=0)
    share = X[:, 4:].mean(axis=0)
    scale[4:] = np.sqrt((share * (1 - share)).sum())
    scaled = (X - X.mean(axis=0)) / scale
    peer = BootstrapSVC(standardize=None, **params).fit(scaled, y)
    np.testing.assert_allclose(ours.predict_proba(table), peer.predict_proba(scaled), atol=1e-6)
