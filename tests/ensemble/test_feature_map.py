"""Feature maps against the kernel itself, scikit-learn's SVC on mapped rows, and their promises."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import SkipTestWarning
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.svm import SVC
from test_sklearn_conventions import EXPECTED
from typer.testing import CliRunner

from bootprob import BootstrapSVC, DataError, ModelFileError
from bootprob.cli.__main__ import app
from bootprob.persistence.save_load import load, save
from bootprob.preparation.feature_map import FeatureMap, fit_feature_map, kernel_error
from bootprob.report import write_report
from configurations import parametrize_with_configurations
from mixed_tables import credit_table

COARSE = pytest.mark.filterwarnings("ignore:The feature map's kernel is off")
KINDS = pytest.mark.parametrize("kind", ["nystroem", "random-features"])


def _rows(rng, n=150, p=3):
    X = rng.normal(size=(n, p)) * np.array([1.0, 5.0, 0.2])[:p] + 3
    return X, (np.sin(2 * X[:, 0]) + rng.normal(size=n) > 0).astype(int)


def _model(kind, **params):
    given = {"gamma": 0.3, "C": [0.3, 1.0], "n_components": 40, "n_bootstraps": 12}
    return BootstrapSVC(kernel="rbf", feature_map=kind, random_state=0, **given | params)


def _mapped(model, X):
    """The map by its textbook formula, from the fitted attributes."""
    rows = (X - model.center_) / model.scale_ / model.bootstrap_scale_
    parts, gamma = model.feature_map_, model.gamma_[0]
    if "landmarks" in parts:
        kernel = np.exp(-gamma * cdist(rows, parts["landmarks"], "sqeuclidean"))
        return kernel @ parts["normalization"]
    D = len(parts["phases"])
    return np.sqrt(2 / D) * np.cos(rows @ parts["frequencies"] + parts["phases"])


def test_all_rows_as_landmarks_are_the_kernel_itself(rng):
    X, y = _rows(rng, 90)
    new = _rows(rng)[0]
    mapped = _model("nystroem", n_components=90).fit(X, y)
    exact = _model(None, standardize="global").fit(X, y)
    assert mapped.feature_map_error_["largest"] < 1e-6
    assert mapped.feature_map_error_["n_rows"] == 90
    for name in ("predict_proba", "vote_proba", "proba_interval", "decision_function"):
        ours, theirs = (getattr(model, name)(new) for model in (mapped, exact))
        atol = 0.05 if name == "vote_proba" else 2e-3  # a score of nearly 0 may change sides
        np.testing.assert_allclose(ours, theirs, atol=atol)
    np.testing.assert_allclose(mapped.oob_proba_, exact.oob_proba_, atol=2e-3)
    np.testing.assert_array_equal(mapped.bootstrap_counts(), exact.bootstrap_counts())


@COARSE
@KINDS
@pytest.mark.parametrize("standardize", ["bootstrap", "global", None])
def test_models_are_svms_on_the_mapped_rows(rng, kind, standardize):
    X, y = _rows(rng, 80)
    params = {"standardize": standardize, "class_weight": None, "tol": 1e-9}
    model = _model(kind, gamma=0.05, n_bootstraps=3, n_components=12, **params).fit(X, y)
    assert model.bootstrap_scale_.shape == (3,)
    seen = (X - model.center_) / model.scale_ / model.bootstrap_scale_
    expected = X.std(axis=0) if standardize is None else 1.0  # no column is rescaled twice
    np.testing.assert_allclose(seen.std(axis=0), expected)
    mapped = _mapped(model, X)
    assert model.bootstrap_coef_.shape == (3, 2, 12)
    (scores,) = model.bootstrap_scores(X)
    for b, counts in enumerate(model.bootstrap_counts()):
        drawn = np.repeat(np.arange(80), counts)
        for r, C in enumerate(model.C_):
            svc = SVC(C=C, kernel="linear", tol=1e-8).fit(mapped[drawn], y[drawn])
            theirs = svc.decision_function(mapped)
            # Where no row lies on the margin, a range of intercepts is optimal.
            assert abs(scores[:, r, b].mean() - theirs.mean()) < 0.2
            centred = scores[:, r, b] - scores[:, r, b].mean()
            np.testing.assert_allclose(centred, theirs - theirs.mean(), atol=1e-3)


@KINDS
def test_the_map_is_scikit_learn_s(rng, monkeypatch, kind):
    rows = rng.normal(size=(60, 4))
    ours = FeatureMap.fit(kind, rows, 0.2, 25, np.random.RandomState(5))
    library = Nystroem if kind == "nystroem" else RBFSampler
    theirs = library(gamma=0.2, n_components=25, random_state=5).fit(rows)
    new = rng.normal(size=(30, 4))
    assert ours.n_components == 25
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), atol=1e-10)
    whole = ours.transform(new)
    monkeypatch.setattr(
        "bootprob.preparation.feature_map._NUMBERS_AT_ONCE", 7 * 25
    )  # seven rows at a time
    np.testing.assert_allclose(ours.transform(new), whole, atol=1e-12)


@COARSE
@KINDS
def test_the_error_is_that_of_all_pairs_of_rows_without_landmarks(rng, kind):
    X, y = _rows(rng, 200)
    model = _model(kind).fit(X, y)
    rows = (X - model.center_) / model.scale_
    if kind == "nystroem":
        landmarks = model.feature_map_["landmarks"]
        rows = rows[cdist(rows, landmarks).min(axis=1) > 0]
        assert len(rows) == 160
        across = np.exp(-0.3 * cdist(rows, landmarks, "sqeuclidean"))
        inside = np.exp(-0.3 * cdist(landmarks, landmarks, "sqeuclidean"))
        approximate = across @ np.linalg.solve(inside, across.T)
    else:
        approximate = _mapped(model, X) @ _mapped(model, X).T
    kernel = np.exp(-0.3 * cdist(rows, rows, "sqeuclidean"))
    difference = approximate - kernel
    norm = np.linalg.norm  # of Frobenius
    expected = {
        "relative": norm(difference) / norm(kernel),
        "root_mean_square": norm(difference) / len(rows),
        "largest": np.abs(difference).max(),
        "n_rows": len(rows),
    }
    assert model.feature_map_error_ == pytest.approx(expected, rel=1e-4)


def test_the_error_is_measured_on_few_rows_and_falls_with_more_columns(rng):
    rows = rng.normal(size=(1000, 3))
    for kind in ("nystroem", "random-features"):
        errors = []
        for D in (10, 100, 600):
            feature_map, error = fit_feature_map(kind, rows, 0.3, D, np.random.RandomState(0))
            assert error["n_rows"] == 300
            again = kernel_error(feature_map, rows, np.random.RandomState(1))
            assert again["n_rows"] == 300
            if kind == "random-features":  # that of landmarks hangs on a few rows far out
                assert again["relative"] == pytest.approx(error["relative"], rel=0.3)
            errors.append(error["relative"])
        assert errors[0] > errors[1] > errors[2]


def test_a_coarse_map_is_announced(rng):
    X, y = _rows(rng)
    with pytest.warns(UserWarning, match=r"off by \d+% .* Raise n_components \(it is 5\) or"):
        model = _model("random-features", n_components=5, gamma=3.0).fit(X, y)
    assert model.feature_map_error_["relative"] > 0.1
    _model("nystroem", n_components=100, gamma=0.02).fit(X, y)  # a warning would be an error


# The median rule is too smooth for sharp moons, and the intervals may say so.
@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")
def test_a_curved_boundary_is_found(rng):
    X, y = make_moons(800, noise=0.2, random_state=int(rng.integers(2**31)))
    model = _model("nystroem", gamma="median", n_components=60).fit(X[:400], y[:400])
    exact = _model(None, gamma="median").fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.9
    difference = model.predict_proba(X[400:]) - exact.predict_proba(X[400:])
    assert np.sqrt(np.square(difference).mean()) < 0.03
    interval = model.proba_interval(X[400:])
    assert (np.diff(interval) > 0).all()


@COARSE
@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")  # of columns of unlike scales
@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("nystroem", {}),
        ("random-features", {"calibration": "isotonic"}),
        ("random-features", {"n_components": 200, "standardize": None}),  # more than rows
        ("nystroem", {"calibration": None, "interval": "wald", "gamma": "median"}),
    ],
)
def test_a_saved_model_answers_with_the_same_bits(rng, tmp_path, kind, params):
    X, y = _rows(rng)
    model = _model(kind, **params).fit(X, y)
    save(model, tmp_path / "m.model")
    loaded = load(tmp_path / "m.model")
    assert loaded.get_params() == model.get_params()
    assert loaded.feature_map_error_ == model.feature_map_error_
    assert loaded.feature_map_.keys() == model.feature_map_.keys()
    for name in ("predict_proba", "vote_proba", "decision_function", "proba_interval"):
        assert getattr(loaded, name)(X).tobytes() == getattr(model, name)(X).tobytes()
    save(loaded, tmp_path / "again.model")
    assert (tmp_path / "again.model").read_bytes() == (tmp_path / "m.model").read_bytes()


@COARSE
def test_a_map_with_parts_missing_is_refused(rng, tmp_path):
    X, y = _rows(rng)
    model = _model("nystroem").fit(X, y)
    for name, value, message in (
        ("feature_map_", {"landmarks": model.feature_map_["landmarks"]}, "do not make a feature"),
        ("feature_map_error_", None, "belong together"),
        ("feature_map_", None, "belong together"),
        (
            "feature_map_",
            {**model.feature_map_, "normalization": np.eye(3)},
            "normalization has the shape",
        ),
    ):
        damaged = copy.copy(model)
        setattr(damaged, name, value)
        with pytest.raises((TypeError, ValueError), match=message):
            save(damaged, tmp_path / "m.model")
    with pytest.raises(ModelFileError):
        load(tmp_path / "m.model")


@COARSE
@KINDS
def test_rows_without_weight_take_no_part(rng, kind):
    X, y = _rows(rng)
    weight = np.ones(150)
    weight[::3] = 0
    poisoned = X.copy()
    poisoned[::3] = 1e3
    model = _model(kind, n_components=100)
    kept = model.fit(X, y, weight).predict_proba(X[1:3])
    error = model.feature_map_error_
    assert error["n_rows"] == 100
    other = clone(model).fit(poisoned, y, weight)
    assert other.predict_proba(X[1:3]) == pytest.approx(kept, abs=1e-6)
    assert other.feature_map_error_ == pytest.approx(error)
    with pytest.raises(DataError, match=r"only 100 rows \(of positive weight\)"):
        _model("nystroem", n_components=101).fit(X, y, weight)


@COARSE
@KINDS
def test_a_fit_can_be_repeated_and_replaced(rng, kind):
    X, y = _rows(rng)
    model = _model(kind).fit(X, y)
    before = model.predict_proba(X)
    assert np.array_equal(clone(model).fit(X, y).predict_proba(X), before)
    assert not np.array_equal(
        clone(model).set_params(random_state=1).fit(X, y).predict_proba(X), before
    )
    model.set_params(feature_map=None, n_components=1, gamma=9.0)
    assert np.array_equal(model.predict_proba(X), before)
    chunks = [chunk.shape for chunk in model.bootstrap_scores(X, chunk_size=40)]
    assert chunks == [(40, 2, 12)] * 3 + [(30, 2, 12)]
    model.fit(X, y)
    assert model.feature_map_ is None
    assert model.feature_map_error_ is None
    assert model.bootstrap_dual_coef_.shape == (12, 2, 150)


@pytest.mark.filterwarnings(f"ignore::{SkipTestWarning.__module__}.{SkipTestWarning.__name__}")
@COARSE
@parametrize_with_configurations(
    [],
    [BootstrapSVC(kernel="rbf", feature_map="nystroem", n_components=5, n_bootstraps=5, C=1.0)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "'n_components' parameter"),
        ({"n_components": 2.5}, "'n_components' parameter"),
        ({"n_components": 151}, "n_components is 151, but there are only 150 rows"),
        ({"feature_map": "fourier"}, "'feature_map' parameter"),
        ({"kernel": "linear"}, "the linear kernel needs none"),
        ({"gamma": [0.1, 1.0]}, "gamma gives 2 values, but a feature map"),
        ({"gamma": "grid"}, "gamma gives 11 values, but a feature map"),
        ({"gamma": [-1.0]}, "positive"),
        ({"gamma": []}, r"gamma is array\(\[\]"),
    ],
)
def test_impossible_parameters_are_refused(rng, params, message):
    X, y = _rows(rng)
    with pytest.raises(ValueError, match=message):
        _model("nystroem").set_params(**params).fit(X, y)


def test_too_many_rows_for_the_kernel_itself_are_refused_before_any_work(rng, monkeypatch):
    X, y = _rows(rng, 20_001, 2)
    monkeypatch.setattr(
        "bootprob.ensemble.training.preparation.bootstrap_counts", None
    )  # would fail
    exact = BootstrapSVC(kernel="rbf")
    with pytest.raises(DataError, match=r"on 20,001 rows .* 6 GB .* feature_map='nystroem'") as e:
        exact.fit(X, y)
    assert "memory_limit of 6400640016 bytes" in str(e.value)
    with pytest.raises(DataError, match=r"and 0 GB may be used .* feature_map='nystroem'"):
        exact.set_params(memory_limit=10_000_000).fit(X, y)
    with pytest.raises(DataError, match="at least 38 GB"):
        exact.set_params(memory_limit=None, gamma="grid").fit(X, y)


def test_a_memory_limit_asks_for_the_kernel_itself(rng, monkeypatch):
    X, y = _rows(rng)
    monkeypatch.setattr("bootprob.preparation.feature_map.EXACT_ROWS", 100)
    model = _model(None)
    with pytest.raises(DataError, match="on 150 rows"):
        model.fit(X, y)
    asked = clone(model).set_params(memory_limit=100_000_000).fit(X, y)
    monkeypatch.undo()
    np.testing.assert_allclose(asked.predict_proba(X), model.fit(X, y).predict_proba(X), atol=1e-9)


LARGE = """
import time
import numpy as np
from bootprob import BootstrapSVC
from bootprob.cli.console import peak_memory

rng = np.random.default_rng({seed})
X = rng.normal(size=(26_000, 6))
y = (np.abs(X[:, 0]) + 0.3 * rng.normal(size=26_000) > 0.7).astype(int)
model = BootstrapSVC(
    kernel="rbf", feature_map="nystroem", n_components=60, gamma=0.1, C=1.0, n_bootstraps=4,
    device="cpu", random_state=0,
)
before, started = peak_memory(), time.perf_counter()
model.fit(X[:25_000], y[:25_000])
accuracy = model.score(X[25_000:], y[25_000:])
print(peak_memory() - before, time.perf_counter() - started, accuracy)
"""


@pytest.mark.endurance
def test_25_000_rows_take_seconds_and_little_memory(rng):
    program = LARGE.format(seed=int(rng.integers(2**31)))
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    memory, seconds, accuracy = map(float, result.stdout.split())
    assert memory < 1e9  # one Gram matrix would take 5e9
    assert seconds < 120  # a few; the rest is for crowded machines
    assert accuracy > 0.75  # a linear model finds nothing: 0.5


@pytest.mark.usefixtures("undrawn")
def test_the_command_line_and_the_report_say_what_the_map_is(rng, tmp_path):
    table = tmp_path / "loans.csv"
    credit_table(80).to_csv(table, index=False)
    options = ["--kernel", "rbf", "--feature-map", "nystroem", "--n-components", "60"]
    common = ["--target", "risk", "--n-bootstraps", "10", "--seed", "0", "--gamma", "0.01"]
    result = CliRunner().invoke(
        app, ["fit", str(table), *common, *options, "-o", str(tmp_path / "m.model")]
    )
    assert result.exit_code == 0, result.output
    svc = load(tmp_path / "m.model").svc
    error = svc.feature_map_error_
    assert (svc.feature_map, svc.n_components, svc.bootstrap_coef_.shape[2]) == ("nystroem", 60, 60)
    said = " ".join(result.stdout.split())
    assert f"Feature map nystroem: its kernel is off by {error['relative']:.1%}" in said
    page = tmp_path / "r.html"
    exact = clone(svc).set_params(feature_map=None)
    X, y = _rows(rng, len(svc.y_))
    y = svc.y_
    models = {"exact": exact.fit(X, y), "mapped": clone(svc).fit(X, y)}
    write_report(models, page, title="Both")
    numbers = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))["models"]
    assert numbers[0]["feature_map"] is None
    expected = models["mapped"].feature_map_error_
    assert numbers[1]["feature_map"] == {"kind": "Nyström", "n_components": 60, "error": expected}
    text = page.read_text(encoding="utf-8")
    assert 'Nyström, <data value="60">60</data> columns' in text
    assert f'at most <data value="{expected["largest"]}">{expected["largest"]:.2f}</data>' in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--feature-map", "nystroem"], "--feature-map needs --kernel rbf"),
        (["--kernel", "rbf", "--n-components", "9"], "--n-components needs --feature-map"),
        (["--kernel", "rbf", "--feature-map", "x"], "'x' is not one of 'nystroem'"),
        (
            ["--kernel", "rbf", "--feature-map", "nystroem", "--gamma", "grid"],
            "--feature-map takes one --gamma",
        ),
        (
            ["--kernel", "rbf", "--feature-map", "nystroem", "--n-components", "0"],
            "should be greater than or equal to 1",
        ),
    ],
)
def test_wrong_command_lines(tmp_path, options, message):
    credit_table(40).to_csv(tmp_path / "t.csv", index=False)
    result = CliRunner().invoke(
        app, ["fit", str(tmp_path / "t.csv"), "--target", "risk", "-o", "m", *options]
    )
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
