"""Data frames, sparse matrices and pipelines around `BootstrapSVC`."""

from __future__ import annotations

import json
import pickle
import struct

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from bootprob import BootstrapClassifier, BootstrapSVC
from bootprob.ensemble.sensitivity import probability_sensitivity
from bootprob.exceptions import DataError, ModelFileError
from bootprob.onnx_export.export import export_onnx
from bootprob.persistence.save_load import load, save
from bootprob.server.served_model import ServedModel
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

TABLE = credit_table(400)
NEW = credit_table(40, seed=1).drop(columns="risk")
X, y = TABLE.drop(columns="risk"), TABLE["risk"]


def svc(**parameters) -> BootstrapSVC:
    return BootstrapSVC(**{"kernel": "linear", "n_bootstraps": 40, "random_state": 0} | parameters)


@pytest.fixture(scope="module")
def model() -> BootstrapSVC:
    return svc().fit(X, y)


@pytest.fixture(scope="module")
def of_command_line() -> TableModel:
    return TableModel.fit(TABLE, "risk", "good", estimator=svc())


def test_a_data_frame_is_read_as_on_the_command_line(model, of_command_line):
    probability, interval = model.predict_proba(NEW, return_interval=True)
    rows = of_command_line.preprocessor.transform(NEW)
    np.testing.assert_array_equal(probability, of_command_line.svc.predict_proba(rows))
    np.testing.assert_array_equal(interval, of_command_line.svc.proba_interval(rows))
    np.testing.assert_array_equal(model.predict(NEW), of_command_line.predict(NEW)["label"])
    assert model.n_features_in_ == X.shape[1]
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    names = model.preprocessor_.get_feature_names_out()
    assert model.center_.shape == model.scale_.shape == model.coef_[0].shape == names.shape


def test_other_answers_about_data_frames(model, of_command_line):
    rows = of_command_line.preprocessor.transform(NEW)
    own = of_command_line.svc
    for name in ("vote_proba", "decision_function", "score_interval", "prediction_sets"):
        np.testing.assert_array_equal(getattr(model, name)(NEW), getattr(own, name)(rows))
    np.testing.assert_array_equal(
        next(model.bootstrap_scores(NEW)), next(own.bootstrap_scores(rows))
    )
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    assert model.summarize(NEW)["label"].tolist() == model.predict(NEW).tolist()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda frame: pa.Table.from_pandas(frame, preserve_index=False), id="pyarrow"),
        pytest.param(lambda frame: frame.convert_dtypes(), id="nullable"),
        pytest.param(lambda frame: frame.astype({"status": "category"}), id="categories"),
    ],
)
def test_frames_of_others(model, other):
    np.testing.assert_array_equal(model.predict_proba(other(NEW)), model.predict_proba(NEW))
    again = svc().fit(other(X), y)
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


def test_gaps_are_filled_and_new_levels_are_none(model):
    numbers = X[["months", "amount"]]
    assert numbers.isna().any(axis=None)
    fitted = svc().fit(numbers, y)
    filled = svc().fit(numbers.fillna(numbers.median()), y)
    assert filled.preprocessor_ is None
    np.testing.assert_array_equal(
        fitted.predict_proba(numbers),
        filled.predict_proba(numbers.fillna(numbers.median())),
    )
    unknown = NEW.assign(purpose="boat")
    assert np.isfinite(model.predict_proba(unknown)).all()


def test_plain_numbers_stay_a_matrix():
    frame = pd.DataFrame({"a": [0, 1, 2, 3] * 5, "b": [True, False, True, True] * 5})
    labels = np.arange(20) % 2
    model = svc().fit(frame, labels)
    assert model.preprocessor_ is None
    arrow = pa.Table.from_pandas(frame)
    np.testing.assert_array_equal(model.predict_proba(arrow), model.predict_proba(frame))


def test_a_refit_forgets_the_columns_before(model):
    refitted = pickle.loads(pickle.dumps(model)).fit(np.c_[TABLE.index, TABLE.index % 3], y)
    assert refitted.preprocessor_ is None
    assert refitted.n_features_in_ == 2
    assert not hasattr(refitted, "feature_names_in_")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        pytest.param(lambda m: NEW.to_numpy(), "fitted on a data frame .* ndarray", id="array"),
        pytest.param(
            lambda m: m.preprocessor_.transform(NEW), "fitted on a data frame", id="matrix"
        ),
        pytest.param(lambda m: NEW[["months"]], "now missing", id="columns are missing"),
        pytest.param(lambda m: NEW[NEW.columns[::-1]], "same order", id="order"),
        pytest.param(lambda m: NEW.assign(extra=1), "unseen at fit", id="one more"),
        pytest.param(lambda m: NEW.assign(months="long"), "'long' is not a number", id="text"),
        pytest.param(lambda m: NEW[:0], "no rows", id="empty"),
    ],
)
def test_what_does_not_fit_is_refused(model, wrong, says):
    with pytest.raises(ValueError, match=says):
        model.predict_proba(wrong(model))


def test_what_cannot_be_learned_from_is_refused():
    with pytest.raises(DataError, match="dates or times"):
        svc().fit(X.assign(day=pd.Timestamp("2026-01-01")), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        svc().fit(X, y[:-1])
    with pytest.raises(DataError, match="several columns named 'months'"):
        svc().fit(X.rename(columns={"amount": "months"}), y)


@pytest.mark.parametrize("labels", [y, TABLE["purpose"]], ids=["two", "several"])
def test_files(labels, tmp_path):
    model = svc().fit(X.drop(columns="purpose"), labels)
    save(model, tmp_path / "model")
    found = load(tmp_path / "model")
    new = NEW.drop(columns="purpose")
    np.testing.assert_array_equal(found.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(found.proba_interval(new), model.proba_interval(new))
    assert found.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert found.n_features_in_ == model.n_features_in_
    save(found, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_file_whose_columns_do_not_fit_is_damaged(model, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "bootprob.persistence.save_load.table_to_dict",
        lambda model: (
            {"preprocessor": svc().fit(X[["months"]], y).preprocessor_.to_dict()} | {"target": None}
        ),
    )
    save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match="preprocessing does not fit the ensemble"):
        load(tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    content = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["bootprob"])["content"]
    assert content["kind"] == "BootstrapSVC"


def test_it_is_a_model_of_a_table_elsewhere(model, of_command_line, tmp_path):
    table = TableModel.of(model)
    assert table.target.labels == ("bad", "good")
    assert table.target.counts == of_command_line.target.counts
    pd.testing.assert_frame_equal(table.predict(NEW), of_command_line.predict(NEW))
    served = ServedModel(model, "credit", "1")
    assert set(served.columns.kinds) == set(X.columns)
    assert served.classes == ["bad", "good"]
    export_onnx(model, tmp_path / "model.onnx")
    export_onnx(of_command_line, tmp_path / "table.onnx")
    ours, theirs = (tmp_path / name for name in ("model.onnx", "table.onnx"))
    assert ours.read_bytes() == theirs.read_bytes()
    assert TableModel.of(svc().fit(np.c_[TABLE.index, TABLE.index % 7], y)) is None


def test_sensitivities_take_the_data_frame(model, of_command_line):
    found = probability_sensitivity(model, NEW[:3], X)
    rows = of_command_line.preprocessor
    expected = probability_sensitivity(
        of_command_line.svc, rows.transform(NEW[:3]), rows.transform(X)
    )
    np.testing.assert_array_equal(found.row_weight, expected.row_weight)


def test_sparse_matrices_are_what_they_are_as_arrays(rng):
    rows = scipy.sparse.random(80, 12, 0.4, format="csc", rng=rng)
    labels = np.asarray(rows.sum(axis=1)).ravel() > 2.4
    array = rows.tocsr().toarray()
    expected = svc().fit(array, labels).predict_proba(array)
    np.testing.assert_array_equal(svc().fit(rows, labels).predict_proba(rows.tocoo()), expected)


def test_sparse_matrices_that_do_not_fit_into_memory_are_refused():
    huge = scipy.sparse.csr_matrix((10**7, 10**6))
    with pytest.raises(DataError, match=r"GiB as an array.* TruncatedSVD"):
        svc().fit(huge, np.arange(10**7) % 2)


def test_a_pipeline_hands_intervals_on(rng):
    rows = rng.normal(size=(60, 3))
    labels = (rows[:, 0] > 0).astype(int)
    pipeline = make_pipeline(MaxAbsScaler(), svc()).fit(rows, labels)
    probability, interval = pipeline.predict_proba(rows, return_interval=True, level=0.8)
    np.testing.assert_array_equal(probability, pipeline.predict_proba(rows))
    np.testing.assert_array_equal(
        interval, pipeline[-1].proba_interval(pipeline[:-1].transform(rows), 0.8)
    )


def test_times_are_no_numbers():
    numbers = np.random.default_rng(0).normal(size=(60, 2))
    frame = pd.DataFrame(numbers, columns=["a", "b"])
    labels = numbers[:, 0] > 0
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5, random_state=0)
    with pytest.raises(DataError, match="times or spans of time"):
        model.fit((1000 * numbers).astype("datetime64[D]"), labels)
    model.fit(frame, labels)
    for one in (pd.Timestamp("2024-01-01"), pd.Timedelta(hours=1)):
        for later in (frame.assign(a=one), frame.assign(a=one, b=one)):
            with pytest.raises(DataError, match="times or spans of time"):
                model.predict_proba(later)


def test_columns_of_several_levels_of_names():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)))
    X.columns = pd.MultiIndex.from_tuples([("x", "a"), ("x", "b"), ("y", "c")])
    labels = X.iloc[:, 0] > 0
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5, random_state=0)
    assert np.isfinite(model.fit(X.mask(X > 2), labels).predict_proba(X)).all()
    model = BootstrapClassifier(HistGradientBoostingClassifier(max_iter=5), n_bootstraps=4)
    assert np.isfinite(model.fit(X.mask(X > 1.5), labels).predict_proba(X)).all()


def test_labels_of_pandas_types_are_exact():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5, random_state=0)
    large = pd.Series([2**53, 2**53 + 1, 2**53 + 4] * 20, dtype="Int64")
    assert model.fit(X, large).classes_.tolist() == [2**53, 2**53 + 1, 2**53 + 4]
    for kind in ("boolean", "bool[pyarrow]"):
        labels = pd.Series(X[:, 0] > 0, dtype=kind)
        assert model.fit(X, labels).classes_.dtype == bool


def test_columns_of_other_types_are_named():
    X = pd.DataFrame({"a": np.random.default_rng(0).normal(size=60)})
    labels = X["a"] > 0
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5, random_state=0)
    with pytest.raises(DataError, match="'i' holds values of the type interval"):
        model.fit(X.assign(i=pd.arrays.IntervalArray.from_breaks(range(61))), labels)
    kind = pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    model.fit(X.assign(i=pd.array(list("ab") * 30, dtype=kind)), labels)
    with pytest.raises(DataError, match="The table has no columns"):
        model.fit(pd.DataFrame(index=range(60)), labels)
