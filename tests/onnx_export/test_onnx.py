"""Exported models say what the models say, whatever the number of rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
import typer
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

from bootprob import BootstrapSVC
from bootprob.calibration import CALIBRATORS
from bootprob.cli.console import Commands
from bootprob.cli.export import export
from bootprob.encoding.columns import level_text
from bootprob.exceptions import DataError
from bootprob.onnx_export.export import export_onnx
from bootprob.persistence.save_load import save
from bootprob.preparation import large_tables
from bootprob.tables.model import TableModel
from linear_models import linear
from mixed_tables import credit_table

onnxruntime = pytest.importorskip("onnxruntime")

QUICK: dict[str, Any] = {"n_bootstraps": 7, "C": [0.25, 1.0], "random_state": 0}
BATCHES = (1, 2, 8, 1000)


def _data(rng: np.random.Generator, n: int = 60, p: int = 4) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, p)) * rng.uniform(0.1, 30, p) + rng.normal(size=p) * 50
    score = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    y = (score + rng.normal(size=n) > 0).astype(int)
    y[:4] = [0, 1, 0, 1]
    return X, y


def _run(path: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(["probability", "label"], inputs)


def _agrees(
    model: BootstrapSVC,
    path: Path,
    X: np.ndarray,
    rng: np.random.Generator,
    of_float64: float = 1e-9,
) -> None:
    for dtype, tolerance in (("float64", of_float64), ("float32", 1e-5)):
        export_onnx(model, path, dtype=dtype)  # type: ignore[arg-type]
        for m in BATCHES:
            rows = X[rng.integers(0, len(X), m)] + rng.normal(size=(m, X.shape[1])) * X.std(axis=0)
            rows = rows.astype(dtype)
            probability, label = _run(path, {"X": rows})
            assert probability.dtype == dtype
            assert probability.shape == (m, 2)
            expected = model.predict_proba(rows.astype(np.float64))
            np.testing.assert_allclose(probability, expected, rtol=0, atol=tolerance)
            threshold = model.decision_threshold_
            clear = np.abs(expected[:, 1] - threshold) > tolerance
            assert label.shape == (m,)
            wanted = model.classes_[(expected[:, 1] > threshold).astype(int)]
            assert label[clear].tolist() == wanted[clear].tolist()


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"standardize": "global"},
        {"standardize": None, "C": [0.001]},
        {"kernel": "rbf", "gamma": [0.1, 0.5]},
        {"kernel": "rbf", "gamma": [0.5, 0.1], "standardize": "global"},
        {"kernel": "rbf", "gamma": 0.05, "feature_map": "nystroem", "n_components": 12},
        {"kernel": "rbf", "gamma": 0.05, "feature_map": "random-features", "n_components": 90},
        {"control": "threshold", "rates": {"tpr": 0.8}},
        {"calibration": None, "interval": "wilson", "weighting": "accuracy"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The feature map's kernel")
def test_kernels(params: dict[str, Any], tmp_path: Path, rng: np.random.Generator) -> None:
    X, y = _data(rng)
    _agrees(linear(**QUICK | params).fit(X, y), tmp_path / "m.onnx", X, rng)


@pytest.mark.parametrize("name", CALIBRATORS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_calibrations(name: str, kernel: Any, tmp_path: Path, rng: np.random.Generator) -> None:
    X, y = _data(rng)
    model = BootstrapSVC(**QUICK, kernel=kernel, calibration=name).fit(X, y)
    _agrees(model, tmp_path / "m.onnx", X, rng)


def test_votes_of_kernels_with_one_scale(tmp_path: Path, rng: np.random.Generator) -> None:
    X, y = _data(rng)
    params = {"gamma": [0.1, 0.5], "standardize": "global", "calibration": "sigmoid-both"}
    _agrees(BootstrapSVC(**QUICK, kernel="rbf", **params).fit(X, y), tmp_path / "m.onnx", X, rng)


@pytest.mark.parametrize("C", [[1.0], [0.25, 1.0]], ids=str)
def test_a_tie_of_votes_is_one(C: list[float], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(60, 3)), rng.normal(size=(5000, 3))
    y = (X[:, 0] - X[:, 1] + rng.logistic(size=60) > 0).astype(int)
    model = BootstrapSVC.paper(C=C, n_bootstraps=50, random_state=0).fit(X, y)
    export_onnx(model, tmp_path / "m.onnx")
    assert (model.predict_proba(new)[:, 1] == 0.5).any()
    assert (_run(tmp_path / "m.onnx", {"X": new})[1] == model.predict(new)).all()


@pytest.mark.parametrize("calibration", ["sigmoid", "sigmoid-votes"])
def test_more_columns_than_rows(calibration: str, tmp_path: Path, rng: np.random.Generator) -> None:
    X, y = _data(rng, 20, 60)
    model = linear(**QUICK, calibration=calibration).fit(X, y)
    assert model.bootstrap_dual_coef_ is not None
    _agrees(model, tmp_path / "m.onnx", X, rng)


@pytest.mark.parametrize(
    "params",
    [
        {"calibration": "sigmoid-both"},
        {"kernel": "rbf"},
        {"kernel": "rbf", "standardize": "global"},
        {"kernel": "rbf", "gamma": 0.05, "feature_map": "nystroem", "n_components": 12},
        {"kernel": "rbf", "gamma": 0.05, "feature_map": "random-features", "n_components": 20},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The feature map's kernel")
def test_one_column(params: dict[str, Any], tmp_path: Path, rng: np.random.Generator) -> None:
    # onnxruntime takes scales of one entry into products of matrices, as float32.
    X, y = _data(rng, 60, 1)
    _agrees(linear(**QUICK | params).fit(X, y), tmp_path / "m.onnx", X, rng)


@pytest.mark.parametrize(
    ("n", "p", "params"),
    [(60, 4, {}), (60, 1, {}), (20, 25, {"calibration": "sigmoid-both"})],
    ids=str,
)
def test_the_default_kernel(n: int, p: int, params: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)  # of which the posterior has a share in the scores
    X, y = _data(rng, n, p)
    X[:, 1:3] = X[:, 1:3].round()
    X[:, 3:5] = X[:, 3:5] > X[:, 3:5].mean(axis=0)
    model = BootstrapSVC(**QUICK | {"effort": "low", "C": [1.0]} | params).fit(X, y)
    assert model.posterior_slope_ is not None
    _agrees(model, tmp_path / "m.onnx", X, rng)
    export_onnx(model, tmp_path / "m.onnx")
    far = X * rng.choice([1e3, -1e6], size=X.shape)
    probability, _ = _run(tmp_path / "m.onnx", {"X": far})
    np.testing.assert_allclose(probability, model.predict_proba(far), rtol=0, atol=1e-9)
    assert _run(tmp_path / "m.onnx", {"X": X[:0]})[0].shape == (0, 2)
    assert np.isnan(_run(tmp_path / "m.onnx", {"X": np.full((1, p), np.nan)})[0]).all()


# Of labels without noise a forest may know more than an interval says.
@pytest.mark.filterwarnings("ignore::bootprob.exceptions.LackOfFitWarning")
def test_the_default_kernel_of_large_tables(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in (("EXACT_ROWS", 100), ("DRAWN", 120), ("COLUMNS", 30)):
        monkeypatch.setattr(large_tables, f"_{name}", number)
    X = rng.normal(size=(240, 3)) * 3 + 1
    y = (X[:, 0] > 2).astype(int)
    model = BootstrapSVC(**QUICK).fit(X, y)
    assert model.feature_map_ is not None
    assert model.views_["relevance"].any()
    # Landmarks that nearly depend on each other make 1e5 times of a rounding error in a kernel.
    _agrees(model, tmp_path / "m.onnx", X, rng, 1e-7)
    export_onnx(model, tmp_path / "m.onnx", interval=0.9)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    found = session.run(["probability_lower", "probability_upper"], {"X": X})
    expected = model.proba_interval(X, 0.9)
    np.testing.assert_allclose(np.stack(found, axis=-1), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("classes", [["no", "ÿes"], [3, 7], [-1.0, 2.0], [False, True]], ids=str)
def test_labels(classes: list[Any], tmp_path: Path, rng: np.random.Generator) -> None:
    X, y = _data(rng)
    model = linear(**QUICK).fit(X, np.array(classes)[y])
    export_onnx(model, tmp_path / "m.onnx")
    _, label = _run(tmp_path / "m.onnx", {"X": X})
    assert label.tolist() == model.predict(X).tolist()
    properties = onnx.load(tmp_path / "m.onnx").metadata_props
    assert json.loads(properties[0].value) == [str(label) for label in model.classes_.tolist()]


def test_a_linear_ensemble_is_one_vector(tmp_path: Path, rng: np.random.Generator) -> None:
    X, y = _data(rng, 200, 5)
    export_onnx(
        BootstrapSVC(kernel="linear", n_bootstraps=100, random_state=0).fit(X, y),
        tmp_path / "m.onnx",
    )
    assert (tmp_path / "m.onnx").stat().st_size < 4000


def test_no_rows_and_missing_numbers(tmp_path: Path, rng: np.random.Generator) -> None:
    X, y = _data(rng)
    export_onnx(linear(**QUICK).fit(X, y), tmp_path / "m.onnx")
    probability, label = _run(tmp_path / "m.onnx", {"X": X[:0]})
    assert probability.shape == (0, 2)
    assert label.shape == (0,)
    probability, _ = _run(tmp_path / "m.onnx", {"X": np.full((1, 4), np.nan)})
    assert np.isnan(probability).all()


def _columns(table: pd.DataFrame, model: TableModel, dtype: str) -> dict[str, np.ndarray]:
    found = {}
    for name, kind in model.preprocessor.kinds_.items():
        if kind == "number":
            found[name] = table[[name]].to_numpy(dtype=dtype)
        else:
            texts = ["" if pd.isna(value) else level_text(value) for value in table[name]]
            found[name] = np.array(texts, dtype=object)[:, None]
    return found


@pytest.mark.parametrize("kernel", ["auto", "linear", "rbf"])
@pytest.mark.usefixtures("one_link")
def test_tables(kernel: Any, tmp_path: Path, rng: np.random.Generator) -> None:
    model = TableModel.fit(credit_table(90), "risk", "bad", kernel=kernel, **QUICK)
    for dtype, tolerance in (("float64", 1e-9), ("float32", 1e-5)):
        export_onnx(model, tmp_path / "m.onnx", dtype=dtype)  # type: ignore[arg-type]
        for m in BATCHES:
            new = credit_table(m, seed=int(rng.integers(2**31)), missing=0.2)
            new.loc[0, "status"] = "A19"  # unknown
            probability, label = _run(tmp_path / "m.onnx", _columns(new, model, dtype))
            expected = model.predict(new)
            np.testing.assert_allclose(
                probability[:, 1], expected["probability"], rtol=0, atol=tolerance
            )
            clear = (np.abs(expected["probability"] - 0.5) > tolerance).to_numpy()
            assert label[clear].tolist() == expected["label"][clear].tolist()


def test_what_is_not_exported(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = _data(rng)
    path = tmp_path / "m.onnx"
    model = linear(**QUICK).fit(X, y)
    with pytest.raises(TypeError, match="is exported, not dict"):
        export_onnx({}, path)  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        export_onnx(BootstrapSVC(kernel="linear"), path)
    with pytest.raises(DataError, match="dtype is 'float16'"):
        export_onnx(model, path, dtype="float16")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="does not exist"):
        export_onnx(model, tmp_path / "none" / "m.onnx")
    laplacian = BootstrapSVC(**QUICK, kernel="laplacian").fit(X, y)
    with pytest.raises(DataError, match="kernel='laplacian' is not exported"):
        export_onnx(laplacian, path)
    with monkeypatch.context() as small:
        small.setattr("bootprob.onnx_export.graph.MOST_BYTES", 50)
        with pytest.raises(DataError, match="an ONNX file may have 2"):
            export_onnx(model, path)
    model.classes_ = np.array(["a", 1], dtype=object)
    with pytest.raises(DataError, match="The classes are 'a' and 1"):
        export_onnx(model, path)
    table = credit_table(60).rename(columns={"months": "label"})
    with pytest.raises(DataError, match="column 'label' is called"):
        export_onnx(TableModel.fit(table, "risk", "bad", kernel="linear", **QUICK), path)
    assert list(tmp_path.iterdir()) == []


def test_without_the_package(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = linear(**QUICK).fit(*_data(rng))
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(DataError, match=r'pip install "bootprob\[onnx\]"'):
        export_onnx(model, tmp_path / "m.onnx")


def test_the_command(tmp_path: Path, rng: np.random.Generator) -> None:
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)
    app.command()(export)
    app.command("other")(lambda: None)  # a single command would have no name
    model = TableModel.fit(credit_table(60), "risk", "bad", kernel="linear", **QUICK)
    save(model, tmp_path / "m.model")
    given = ["export", str(tmp_path / "m.model"), "-o", str(tmp_path / "m.onnx"), "--float32"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    new = credit_table(5, seed=2)
    probability, _ = _run(tmp_path / "m.onnx", _columns(new, model, "float32"))
    np.testing.assert_allclose(probability[:, 1], model.predict(new)["probability"], atol=1e-5)
    for output, message in (("m.txt", "must end in .onnx"), ("no/m.onnx", "does not exist")):
        given[3] = str(tmp_path / output)
        result = CliRunner().invoke(app, given)
        assert result.exit_code == 1
        assert message in result.output.replace("\n", " ")
