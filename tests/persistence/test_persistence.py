"""A saved model predicts to the same bit; anything that is no whole model file is refused."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as to_bytes
from sklearn.exceptions import NotFittedError

from bootprob import BootstrapSVC
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.exceptions import DataError, ModelFileError
from bootprob.persistence.save_load import load, save
from bootprob.persistence.values import decode, encode
from bootprob.tables.model import TableModel
from linear_models import linear
from mixed_tables import credit_table

QUICK = {"n_bootstraps": 12, "C": [0.25, 1.0], "random_state": 0}


def _rows(n: int = 60, p: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


@pytest.fixture(scope="module")
def table_model() -> TableModel:
    return TableModel.fit(credit_table(80), "risk", "bad", kernel="linear", **QUICK)


@pytest.fixture(scope="module")
def saved(table_model: TableModel, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "m.model"
    save(table_model, path)
    return path.read_bytes()


def _answers(model: BootstrapSVC, X: Any) -> list[np.ndarray]:
    answers = [
        model.predict_proba(X),
        model.vote_proba(X),
        model.decision_function(X),
        model.proba_interval(X),
        model.score_interval(X),
        *model.bootstrap_scores(X),
    ]
    return [*answers, model.oob_proba_, model.oob_proba_interval()]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"kernel": "rbf", "gamma": "median"},
        {"kernel": "rbf", "gamma": [0.1, 1.0], "standardize": "global"},
        {"calibration": "isotonic", "weighting": "log_loss"},
        {"standardize": None, "class_weight": {0: 1.0, 1: 2.5}},
        {"calibration": None, "interval": "wald", "class_weight": None},
        {"C": np.array([0.5, 2.0]), "tol": np.float64(1e-5)},
    ],
)
def test_round_trip(tmp_path: Path, params: dict[str, Any]) -> None:
    X, y = _rows()
    model = linear(**QUICK | params).fit(X, y)
    save(model, tmp_path / "m.model")
    loaded = load(tmp_path / "m.model")
    assert isinstance(loaded, BootstrapSVC)
    if params.get("calibration", "sigmoid") is None:
        before = [model.predict_proba(X), model.proba_interval(X)]
        after = [loaded.predict_proba(X), loaded.proba_interval(X)]
    else:
        before, after = _answers(model, X), _answers(loaded, X)
    for one, other in zip(before, after, strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    for name, value in model.get_params().items():
        assert type(loaded.get_params()[name]) is type(value)
        np.testing.assert_equal(loaded.get_params()[name], value)
    save(loaded, tmp_path / "again.model")
    assert (tmp_path / "again.model").read_bytes() == (tmp_path / "m.model").read_bytes()


def _three_classes(n: int = 90, p: int = 3) -> tuple[np.ndarray, np.ndarray]:
    X, y = _rows(n, p)
    return X, np.array(["pear", "apple", "fig"])[y + (X[:, 1] > 0.4)]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"kernel": "rbf", "gamma": [0.1, 1.0]},
        {"kernel": "rbf", "feature_map": "nystroem", "n_components": 60, "gamma": 0.01},
        {"calibration": "isotonic", "coupling": "hastie-tibshirani"},
        {"calibration": None, "interval": "wald"},
    ],
)
def test_round_trip_of_several_classes(tmp_path: Path, params: dict[str, Any]) -> None:
    X, y = _three_classes()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = linear(**QUICK | params).fit(frame, y)
    save(model, tmp_path / "m.model")
    loaded = load(tmp_path / "m.model")
    assert isinstance(loaded, BootstrapSVC)
    assert vars(loaded).keys() == vars(model).keys()
    assert loaded.predict(frame).tolist() == model.predict(frame).tolist()
    names = ["predict_proba", "vote_proba", "decision_function"]
    if model.calibration is not None:
        names.append("proba_interval")
    for name in names:
        assert getattr(loaded, name)(frame).tobytes() == getattr(model, name)(frame).tobytes()
    for name in ("oob_proba_", "oob_vote_proba_", "oob_decision_function_", "y_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    for pair, of_before in zip(loaded.pair_ensembles_, model.pair_ensembles_, strict=True):
        assert vars(pair).keys() == vars(of_before).keys()
        np.testing.assert_array_equal(pair.bootstrap_counts(), of_before.bootstrap_counts())
        np.testing.assert_array_equal(pair.oob_proba_, of_before.oob_proba_)
        assert pair.center_ is loaded.center_
    save(loaded, tmp_path / "again.model")
    assert (tmp_path / "again.model").read_bytes() == (tmp_path / "m.model").read_bytes()


@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")
def test_what_pairs_share_is_stored_once(tmp_path: Path) -> None:
    X, y = _three_classes(60, 300)
    model = linear(**QUICK).fit(X, y)
    save(model, tmp_path / "m.model")
    arrays = tensors_of((tmp_path / "m.model").read_bytes())
    assert sum(array.shape == (60, 300) for array in arrays.values()) == 1
    assert sum(name.endswith("bootstrap_scale_") for name in arrays) == 1
    pair = model.pair_ensembles_[2]
    save(pair, tmp_path / "pair.model")
    alone = load(tmp_path / "pair.model")
    np.testing.assert_array_equal(alone.bootstrap_counts(), pair.bootstrap_counts())
    assert alone.proba_interval(X).tobytes() == pair.proba_interval(X).tobytes()


def _one_pair_less(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    content["values"]["pair_ensembles_"].pop()


def _labels_that_skip(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["y_"] = np.where(arrays["y_"] == 1, 0, arrays["y_"])


def _no_intercepts(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    del arrays["pair_ensembles_.1.intercept_"]


def _a_pair_more(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["pair_ensembles_.3.intercept_"] = arrays["pair_ensembles_.1.intercept_"]


def _replicates_that_differ(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    for name in [name for name in arrays if name.startswith("pair_ensembles_.0.")]:
        of_replicates = [axis for axis, size in enumerate(arrays[name].shape) if size == 12]
        for axis in of_replicates:
            arrays[name] = arrays[name].take(range(11), axis=axis)


def _a_pair_of_text(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    content["values"]["pair_ensembles_"][1] = "pair"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_one_pair_less, "there are 2 pairs of 3 classes"),
        (_a_pair_of_text, "pair_ensembles_ are no list of entries"),
        (_labels_that_skip, "y_ does not number the classes"),
        (_no_intercepts, "arrays are missing or unknown: intercept_"),
        (_a_pair_more, r"arrays are unknown: pair_ensembles_\.3\.intercept_"),
        (_replicates_that_differ, "bootstrap_scale_ has the shape|intercept_ has the shape|B is"),
    ],
)
def test_pairs_that_are_no_whole_model(
    tmp_path: Path,
    change: Callable[[dict[str, Any], dict[str, np.ndarray]], None],
    message: str,
) -> None:
    model = linear(**QUICK).fit(*_three_classes())
    path = tmp_path / "m.model"
    save(model, path)
    _rewrite(path.read_bytes(), path, change)
    _refused(path, message)


def test_files_of_two_classes_from_before_there_were_several(tmp_path: Path) -> None:
    X, y = _rows()
    model = linear(**QUICK).fit(X, y)
    path = tmp_path / "m.model"
    save(model, path)

    def before(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        del content["params"]["coupling"]
        assert not [name for name in arrays if "shared" in name or "pair" in name]
        assert not [name for name in content["values"] if "shared" in name or "pair" in name]

    _rewrite(path.read_bytes(), path, before)
    loaded = load(path)
    assert loaded.coupling == "wu-lin-weng"
    assert loaded.proba_interval(X).tobytes() == model.proba_interval(X).tobytes()


@pytest.mark.parametrize("classes", [["no", "yes"], [3, 7], [-1.0, 2.0], [False, True]], ids=str)
def test_class_labels_keep_their_types(tmp_path: Path, classes: list[Any]) -> None:
    X, y = _rows()
    model = linear(**QUICK).fit(X, np.array(classes)[y])
    save(model, tmp_path / "m.model")
    loaded = load(tmp_path / "m.model")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert {type(label) for label in loaded.predict(X).tolist()} == {type(classes[0])}


def test_names_of_columns_and_a_generator(tmp_path: Path) -> None:
    X, y = _rows()
    frame = pd.DataFrame(X, columns=["a", "β", "c", "d"])
    state = np.random.RandomState(3)
    model = linear(**QUICK | {"random_state": state}).fit(frame, y)
    save(model, tmp_path / "m.model")
    loaded = load(tmp_path / "m.model")
    assert loaded.feature_names_in_.tolist() == ["a", "β", "c", "d"]
    assert loaded.predict_proba(frame).tobytes() == model.predict_proba(frame).tobytes()
    assert model.random_state is state
    assert loaded.random_state is None
    assert loaded.entropy_ == model.entropy_
    np.testing.assert_array_equal(loaded.bootstrap_counts(), model.bootstrap_counts())


def test_round_trip_of_a_table_model(table_model: TableModel, tmp_path: Path) -> None:
    new = credit_table(40, seed=1).drop(columns="risk").set_index(np.arange(40) * 2)
    save(table_model, tmp_path / "m.model")
    loaded = load(tmp_path / "m.model")
    assert isinstance(loaded, TableModel)
    assert loaded.target == table_model.target
    pd.testing.assert_frame_equal(
        loaded.predict(new), table_model.predict(new), check_exact=True, obj="predictions"
    )


def test_predictions_of_a_table_model(table_model: TableModel) -> None:
    new = credit_table(40, seed=1).drop(columns="risk").set_index(np.arange(40) * 2)
    predicted = table_model.predict(new, level=0.8)
    assert predicted.columns.tolist() == [
        "probability", "probability_lower", "probability_upper", "label", "threshold",
        "score", "score_lower", "score_upper",
    ]  # fmt: skip
    assert predicted.index.equals(new.index)
    X = table_model.preprocessor.transform(new)
    svc = table_model.svc
    np.testing.assert_allclose(predicted["probability"], svc.predict_proba(X)[:, 1], rtol=1e-12)
    np.testing.assert_allclose(predicted["score"], svc.decision_function(X), rtol=1e-12)
    for name, bounds in (
        ("probability", svc.proba_interval(X, level=0.8)[:, 1]),
        ("score", svc.score_interval(X, level=0.8)),
    ):
        np.testing.assert_array_equal(predicted[[f"{name}_lower", f"{name}_upper"]], bounds)
    expected = np.where(table_model.svc.predict(X) == 1, "bad", "good")
    assert predicted["label"].tolist() == expected.tolist()
    assert set(expected) == {"bad", "good"}
    assert (predicted["probability_lower"] <= predicted["probability"]).all()
    assert (predicted["probability"] <= predicted["probability_upper"]).all()
    wider = table_model.predict(new, level=0.95)
    assert (wider["score_upper"] > predicted["score_upper"]).all()


def test_sets_of_a_table_model(table_model: TableModel) -> None:
    new = credit_table(40, seed=1).drop(columns="risk")
    predicted = table_model.predict(new, sets=0.8)
    pd.testing.assert_frame_equal(predicted.drop(columns="set"), table_model.predict(new))
    X = table_model.preprocessor.transform(new)
    names = {(True, True): "good | bad", (True, False): "good", (False, True): "bad"}
    inside = table_model.svc.prediction_sets(X, 0.8)
    assert predicted["set"].tolist() == [names.get(tuple(row), "") for row in inside]
    assert predicted["set"].nunique() > 1
    with pytest.raises(DataError, match="give a number between 0 and 1"):
        table_model.predict(new, sets=80)


def test_a_table_model_of_several_classes(tmp_path: Path) -> None:
    table, new = credit_table(80), credit_table(40, seed=1).drop(columns="purpose")
    model = TableModel.fit(table, "purpose", kernel="linear", all_classes=True, **QUICK)
    assert model.target.labels == ("car", "other", "radio", "school")
    assert str(model.target).startswith("purpose: 4 classes, car (")
    predicted = model.predict(new, level=0.8)
    X = model.preprocessor.transform(new)
    p, bounds = model.svc.predict_proba(X), model.svc.proba_interval(X, 0.8)
    assert len(predicted.columns) == 13
    for k, name in enumerate(model.target.labels):
        np.testing.assert_array_equal(predicted[f"p_{name}"], p[:, k])
        np.testing.assert_array_equal(predicted[[f"low_{name}", f"high_{name}"]], bounds[:, k])
    assert predicted["label"].tolist() == np.array(model.target.labels)[p.argmax(1)].tolist()
    assert model.svc_with_class_names().classes_.tolist() == list(model.target.labels)
    save(model, tmp_path / "m.model")
    loaded = load(tmp_path / "m.model")
    assert isinstance(loaded, TableModel)
    assert loaded.target == model.target
    pd.testing.assert_frame_equal(loaded.predict(new, 0.8), predicted, check_exact=True)
    sets = loaded.predict(new, sets=0.9)["set"]
    names = model.target.labels
    assert sets.tolist() == [
        " | ".join(name for name, is_in in zip(names, row, strict=True) if is_in)
        for row in model.svc.prediction_sets(X, 0.9)
    ]
    with pytest.raises(DataError, match="has 4 classes, none of them the positive one"):
        _ = model.target.positive


@pytest.mark.parametrize("level", [95, 0.0, float("nan"), "0.95", None])
def test_levels_that_are_none(table_model: TableModel, level: Any) -> None:
    with pytest.raises(DataError, match="give a number between 0 and 1, such as"):
        table_model.predict(credit_table(), level=level)


def test_a_prediction_is_one_pass_over_the_ensemble(
    table_model: TableModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, passes, whole = table_model.predict(credit_table(25)), [], TwoClasses.summarize

    def summarize(self: TwoClasses, X: np.ndarray, *asked: Any, **more: Any) -> Any:
        passes.append(len(X))
        return whole(self, X, *asked, **more)

    monkeypatch.setattr(TwoClasses, "summarize", summarize)
    for other in ("predict", "predict_proba", "vote_proba", "proba_interval", "decision_function"):
        monkeypatch.setattr(TwoClasses, other, None)
    pd.testing.assert_frame_equal(table_model.predict(credit_table(25)), expected)
    assert passes == [25]


def test_rows_are_predicted_in_blocks(
    table_model: TableModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = credit_table(25, seed=2)
    whole = table_model.predict(new)
    monkeypatch.setattr("bootprob.tables.model._ROWS_AT_ONCE", 10)
    pd.testing.assert_frame_equal(table_model.predict(new), whole, rtol=1e-12)


def test_names_for_reports(table_model: TableModel) -> None:
    named = table_model.svc_with_class_names()
    assert named.classes_.tolist() == ["good", "bad"]
    assert named.oob_proba_ is table_model.svc.oob_proba_
    assert table_model.svc.classes_.tolist() == [0, 1]


def test_a_table_without_features() -> None:
    with pytest.raises(DataError, match="The table has no column beside the target 'risk'"):
        TableModel.fit(credit_table()[["risk"]], "risk")


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="BootstrapClassifier or TableModel can be saved, not dict"):
        save({}, tmp_path / "m.model")  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        save(BootstrapSVC(kernel="linear"), tmp_path / "m.model")
    assert list(tmp_path.iterdir()) == []


def test_a_parameter_that_was_set_after_fit(tmp_path: Path) -> None:
    model = linear(**QUICK).fit(*_rows()).set_params(kernel="rbf")
    with pytest.raises(DataError, match=r"set after fit.*set it back, or fit again"):
        save(model, tmp_path / "model")
    assert not any(tmp_path.iterdir())


def test_an_attribute_that_would_be_lost(tmp_path: Path) -> None:
    model = linear(**QUICK).fit(*_rows())
    model.medians_ = np.zeros(4)
    with pytest.raises(TypeError, match="attributes are missing or unknown: medians_"):
        save(model, tmp_path / "m.model")


def test_a_full_disk_leaves_the_old_model(
    table_model: TableModel, saved: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.model"
    path.write_bytes(saved)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        save(table_model, path)
    assert path.read_bytes() == saved
    assert list(tmp_path.iterdir()) == [path]


def _refused(path: Path, message: str) -> None:
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.3, 0.9, 0.9999])
def test_truncated_files(saved: bytes, tmp_path: Path, share: float) -> None:
    path = tmp_path / "m.model"
    path.write_bytes(saved[: int(share * len(saved))])
    _refused(path, "is no bootprob model or is damaged")


@pytest.mark.parametrize("share", np.linspace(0, 0.999, 40))
def test_a_flipped_bit(saved: bytes, tmp_path: Path, share: float) -> None:
    damaged = bytearray(saved)
    damaged[int(share * len(saved))] ^= 4
    path = tmp_path / "m.model"
    path.write_bytes(damaged)
    _refused(path, "is no bootprob model|is damaged|was written by")


def _csv() -> bytes:
    return credit_table().to_csv().encode()


def _other_safetensors() -> bytes:
    return to_bytes({"weight": np.zeros(3)}, metadata={"format": "pt"})


def _empty_entry() -> bytes:
    return to_bytes({"weight": np.zeros(3)}, metadata={"bootprob": "{}"})


def _deep_entry() -> bytes:
    return to_bytes({"weight": np.zeros(3)}, metadata={"bootprob": "[" * 100_000})


def _no_header() -> bytes:
    return to_bytes({"weight": np.zeros(3)})


def _half_precision() -> bytes:
    header = json.dumps({"w": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}).encode()
    return len(header).to_bytes(8, "little") + header + b"\0\0"


class _Trap:
    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return pytest.fail, ("the pickle was executed",)


@pytest.mark.parametrize(
    "foreign",
    [
        _csv,
        _other_safetensors,
        _no_header,
        _half_precision,
        _empty_entry,
        _deep_entry,
        lambda: pickle.dumps(_Trap()),
        lambda: b"\xff" * 100,
        lambda: b"\x00" * 100,
    ],
)
def test_foreign_files(tmp_path: Path, foreign: Callable[[], bytes]) -> None:
    path = tmp_path / "m.model"
    path.write_bytes(foreign())
    _refused(path, "is no bootprob model")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    _refused(tmp_path / "absent.model", "There is no file")
    _refused(tmp_path, "is not a file")


def _rewrite(
    saved: bytes,
    path: Path,
    change: Callable[[dict[str, Any], dict[str, np.ndarray]], object] = lambda content, arrays: 0,
    **header: object,
) -> None:
    """Write a file with a right checksum, as another version or an attacker would."""
    path.write_bytes(saved)
    with safe_open(path, framework="numpy") as file:
        entries = json.loads(file.metadata()["bootprob"])
    content, arrays = entries["content"], tensors_of(saved)
    shapes = content["shapes"]
    change(content, arrays)
    if content.get("shapes") == shapes:
        content["shapes"] = {name: [a.dtype.name, *a.shape] for name, a in arrays.items()}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(arrays[name].tobytes())
    entries = {**entries, "sha256": digest.hexdigest(), **header}
    path.write_bytes(to_bytes(arrays, metadata={"bootprob": json.dumps(entries)}))


def test_rewriting_itself_is_harmless(saved: bytes, tmp_path: Path) -> None:
    _rewrite(saved, tmp_path / "m.model")
    assert isinstance(load(tmp_path / "m.model"), TableModel)


def test_a_device_that_this_machine_lacks(saved: bytes, tmp_path: Path) -> None:
    _rewrite(
        saved,
        tmp_path / "m.model",
        lambda content, arrays: content["params"].update(device="meta9"),
    )
    loaded = load(tmp_path / "m.model")
    assert isinstance(loaded, TableModel)
    assert loaded.svc.device == "auto"
    assert len(loaded.predict(credit_table(5))) == 5


@pytest.mark.parametrize("protocol", [0, 3, "2", None])
def test_another_protocol(saved: bytes, tmp_path: Path, protocol: str) -> None:
    _rewrite(saved, tmp_path / "m.model", protocol=protocol)
    _refused(tmp_path / "m.model", f"was written by bootprob .* with protocol {protocol}; this is")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content, arrays: content.pop("params"), "entries are missing"),
        (lambda content, arrays: content.update(kind="Tree"), "holds a 'Tree'"),
        (lambda content, arrays: content.update(table=None), "is damaged"),
        (lambda content, arrays: content["table"].update(target={}), "target is damaged"),
        (lambda content, arrays: content["table"]["preprocessor"].pop("columns"), "preprocessing"),
        (lambda content, arrays: content.update(shapes={}), "arrays are missing or have another"),
        (lambda content, arrays: content["params"].update(colour="red"), "is damaged: "),
        (lambda content, arrays: content["params"].pop("device"), "is damaged: no entry 'device'"),
        (lambda content, arrays: content["params"].update(interval="wide"), "'interval' parameter"),
        (lambda content, arrays: content["params"].update(kernel="rbf"), "not fit gamma_"),
        (lambda content, arrays: arrays.pop("counts_gram_"), "or unknown: counts_gram_"),
        (lambda content, arrays: content.update(params=[]), "params are no entries"),
        (lambda content, arrays: content["params"].update(C={"$pickle": "x"}), "no known mark"),
        (lambda content, arrays: content.update(values=None), "values are no entries"),
        (lambda content, arrays: content["values"].pop("entropy_"), "missing or unknown: entropy_"),
        (
            lambda content, arrays: content["values"].update(predict=1),
            "missing or unknown: predict",
        ),
        (lambda content, arrays: content["values"].update(device_=3), "device_ is no str"),
        (lambda content, arrays: content["values"].update(n_features_in_=3), "; p is 3"),
        (lambda content, arrays: arrays.pop("intercept_"), "missing or unknown: intercept_"),
        (lambda content, arrays: arrays.update(more_=np.zeros(2)), "missing or unknown: more_"),
        (lambda content, arrays: arrays.pop("coef_"), "either coef_ or dual_coef_"),
        (lambda content, arrays: arrays.update(X_fit_=np.zeros((80, 16))), "belong together"),
        (lambda content, arrays: arrays.update(intercept_=np.zeros((3, 2))), "shape .3, 2.; B is"),
        (lambda content, arrays: arrays.update(intercept_=np.zeros(3)), "intercept_ has 1 axes"),
        (
            lambda content, arrays: arrays.update(weights_=np.zeros(2, int)),
            "weights_ has the dtype",
        ),
        (
            lambda content, arrays: content["table"]["preprocessor"]["columns"].pop(),
            "the preprocessing does not fit the ensemble",
        ),
    ],
)
def test_files_that_lie(
    saved: bytes, tmp_path: Path, change: Callable[[Any, Any], None], message: str
) -> None:
    _rewrite(saved, tmp_path / "m.model", change)
    _refused(tmp_path / "m.model", message)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 2.5, -0.0, 1e-308, 10**30, "text", "$tuple",
        [1, [2.0, "x"]], (1, (2,)), {"a": {"b": None}}, {1: "x", None: 2, "c": (3,)},
        {"$tuple": [1]}, {"$array": 1}, math.inf, -math.inf,
        np.float32(0.1), np.int8(3), np.bool_(True), np.str_("x"),
        np.arange(6.0).reshape(2, 3), np.zeros((0, 3)), np.array(2.0),
        np.array([math.nan, math.inf]), np.array(["a", "bc"]),
        np.array(["a", 1, None], dtype=object),
    ],
    ids=repr,
)  # fmt: skip
def test_values_survive_json(value: object) -> None:
    restored = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert type(restored) is type(value)
    np.testing.assert_equal(restored, value)
    if isinstance(value, (np.ndarray, np.generic)):
        assert restored.dtype == value.dtype
        assert restored.shape == value.shape


def test_nan_survives_json() -> None:
    assert math.isnan(decode(json.loads(json.dumps(encode(math.nan), allow_nan=False))))


@pytest.mark.parametrize("value", [object(), {1, 2}, len, 1j, np.array([1j]), b"x"])
def test_values_that_are_not_stored(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be stored"):
        encode({"x": [value]})
