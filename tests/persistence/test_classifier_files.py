"""Files of classifiers of others: the same answers, no type without consent, and damage refused."""

from __future__ import annotations

import builtins
import json
import pickle
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from bootprob import BootstrapClassifier, BootstrapSVC
from bootprob.exceptions import DataError, ModelFileError
from bootprob.persistence.save_load import load, save
from bootprob.tables.model import TableModel
from fuzz_model_files import parts_of, signed

TREE = "sklearn.tree._tree.Tree"
BOOSTING = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
VOTES: dict[str, Any] = {"n_bootstraps": 4, "calibration": None, "interval": "wald"}

pytestmark = pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")


def rows(n: int = 50) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(3).normal(size=(n, 2))
    return X, np.where(X[:, 0] + 0.5 * np.sin(9 * X[:, 1]) > 0, "yes", "no")


def frame_of(X: np.ndarray) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=["age", "size"])
    frame["house"] = np.where(X[:, 1] > 0, "own", "rent")
    frame.loc[::9, "age"] = np.nan
    return frame


def fitted(estimator: Any, X: Any, y: Any, **params: Any) -> BootstrapClassifier:
    return BootstrapClassifier(estimator, random_state=0, **VOTES | params).fit(X, y)


def kinds() -> dict[str, tuple[BootstrapClassifier, Any, list[str]]]:
    """Models of every kind, rows to ask them about, and types to trust."""
    X, y = rows()
    three = np.where(X[:, 1] > 0.8, "maybe", y)
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["house"])), LogisticRegression()
    )
    svc = BootstrapSVC(kernel="linear", C=[0.1, 1.0])
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    gaps = np.where(np.arange(100).reshape(50, 2) % 9, X, np.nan)
    boosting = HistGradientBoostingClassifier(max_iter=2)
    made = {
        "calibrated": fitted(GaussianNB(), X, y, calibration="sigmoid", interval="corrected"),
        "grid": fitted(DecisionTreeClassifier(), X, y, param_grid={"max_depth": [1, 2]}),
        "classifiers of two kinds": fitted([GaussianNB(), DecisionTreeClassifier()], X, y),
        "beside machines": fitted([svc, GaussianNB()], X, y),
        "forest": fitted(RandomForestClassifier(5, max_depth=2), X, y),
        "frozen": fitted(frozen, X, y, calibration="sigmoid", interval="corrected"),
        "several beside machines": fitted([svc, GaussianNB()], X, three),
        "several classes": fitted(GaussianNB(), X, three),
        "forest of several": fitted(RandomForestClassifier(5, max_depth=2), X, three),
        "data frame": fitted(pipeline, frame_of(X), y),
        "several, data frame": fitted(pipeline, frame_of(X), three),
        "gaps without names": fitted(boosting, gaps, y),
        "groups": BootstrapClassifier(GaussianNB(), random_state=0, **VOTES).fit(
            X, y, groups=np.arange(50) // 2
        ),
    }
    asked = {"data frame": frame_of(X), "several, data frame": frame_of(X)}
    asked["gaps without names"] = gaps
    types = {"grid": [TREE], "classifiers of two kinds": [TREE], "forest": [TREE]}
    types |= {"forest of several": [TREE], "gaps without names": [BOOSTING]}
    return {name: (each, asked.get(name, X), types.get(name, [])) for name, each in made.items()}


@pytest.mark.filterwarnings("ignore::UserWarning")  # so few rows of the posterior
def test_round_trip(tmp_path: Path) -> None:
    for name, (model, X, trusted) in kinds().items():
        path = tmp_path / f"{name}.model"
        save(model, path)
        if trusted:
            with pytest.raises(ModelFileError, match=trusted[0]):
                load(path)
        again = load(path, trusted)
        assert isinstance(again, BootstrapClassifier)
        assert vars(again).keys() == vars(model).keys(), name
        for method in ("predict_proba", "proba_interval", "vote_proba", "decision_function"):
            if method != "proba_interval" or not model.pair_ensembles_ or model.calibration:
                found, before = getattr(again, method)(X), getattr(model, method)(X)
                assert found.tobytes() == before.tobytes(), (name, method)
        assert again.predict(X).tolist() == model.predict(X).tolist()
        np.testing.assert_array_equal(again.bootstrap_counts(), model.bootstrap_counts())
        np.testing.assert_array_equal(again.oob_proba_, model.oob_proba_)
        assert str(again) == str(model)
        for pair, of_before in zip(again.pair_ensembles_, model.pair_ensembles_, strict=True):
            assert vars(pair).keys() == vars(of_before).keys()
            assert pair.estimators_ is again.estimators_
        save(again, tmp_path / "again.model")
        content, arrays = parts_of(path.read_bytes())
        content_again, arrays_again = parts_of((tmp_path / "again.model").read_bytes())
        for each in (content, content_again):
            del each["shapes"]["classifiers"]  # numbers of objects by which skops knows them
        assert content_again == content
        assert arrays_again.keys() == arrays.keys()


def test_a_pair_and_a_model_of_its_table_have_files(tmp_path: Path) -> None:
    X, y = rows()
    three = np.where(X[:, 1] > 0.8, "maybe", y)
    pair = fitted(RandomForestClassifier(5, max_depth=2), X, three).pair_ensembles_[1]
    save(pair, tmp_path / "pair.model")
    again = load(tmp_path / "pair.model", [TREE])
    assert again.vote_proba(X).tobytes() == pair.vote_proba(X).tobytes()  # type: ignore[union-attr]
    both = [BootstrapSVC(kernel="linear", C=1.0), GaussianNB()]
    pair = fitted(both, X, three).pair_ensembles_[2]
    save(pair, tmp_path / "pair.model")
    again = load(tmp_path / "pair.model")
    assert again.vote_proba(X).tobytes() == pair.vote_proba(X).tobytes()  # type: ignore[union-attr]
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["house"])), LogisticRegression()
    )
    table = TableModel.of(fitted(pipeline, frame_of(X), y))
    assert table is not None
    save(table, tmp_path / "table.model")
    read = load(tmp_path / "table.model")
    assert isinstance(read, TableModel)
    assert isinstance(read.svc, BootstrapClassifier)
    assert read.target == table.target


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save(fitted([GaussianNB(), DecisionTreeClassifier(max_depth=1)], *rows()), tmp_path / "m.model")
    return tmp_path / "m.model"


def test_the_refusal_says_what_to_trust_and_how(saved: Path) -> None:
    with pytest.raises(ModelFileError) as refused:
        load(saved, ["collections.OrderedDict"])
    assert f"load(path, trusted=['{TREE}'])" in str(refused.value)
    assert f"--trust {TREE}" in str(refused.value)
    for wrong in (True, TREE, [DecisionTreeClassifier]):
        with pytest.raises(DataError, match="give a list of names"):
            load(saved, wrong)  # type: ignore[arg-type]


class Opens:
    """What a pickle would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return open, ("executed", "w")


def changed(saved: Path, classifiers: bytes) -> None:
    """Put other bytes in place of the classifiers, with a right checksum."""
    content, arrays = parts_of(saved.read_bytes())
    arrays["classifiers"] = np.frombuffer(classifiers, dtype=np.uint8)
    saved.write_bytes(signed(content, arrays))


def entries(data: bytes, schema: Any) -> bytes:
    """The bytes of skops with another schema."""
    made = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            new.writestr(name, json.dumps(schema) if name == "schema.json" else old.read(name))
    return made.getvalue()


def test_nothing_of_a_type_that_is_not_trusted_is_made(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for hostile in (pickle.dumps(Opens()), skops.io.dumps({"estimator": Opens}), b"", b"PK"):
        changed(saved, hostile)
        with pytest.raises(ModelFileError, match=r"m.model (are damaged|holds classifiers)"):
            load(saved, [TREE])
    schema = {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"}
    schema |= {"content": {"module_path": "os", "function": "system"}, "__id__": 1}
    changed(saved, entries(skops.io.dumps({}), {**schema, "protocol": 2, "_skops_version": "0.16"}))
    with pytest.raises(ModelFileError, match=r"os\.system|posix\.system|damaged"):
        load(saved, [TREE])
    assert not (tmp_path / "executed").exists()


def test_damaged_classifiers_are_refused(saved: Path) -> None:
    data, rng = saved.read_bytes(), np.random.default_rng(0)
    _, arrays = parts_of(data)
    whole, loaded = arrays["classifiers"].tobytes(), 0
    for _ in range(60):
        broken = bytearray(whole)
        for place in rng.integers(0, len(whole), 40):
            broken[place] = rng.integers(256)
        saved.write_bytes(data)
        changed(saved, bytes(broken))
        try:
            load(saved, [TREE])
            loaded += 1
        except ModelFileError:
            pass
    assert loaded < 60
    with zipfile.ZipFile(BytesIO(whole)) as archive:
        schema = json.loads(archive.read("schema.json"))
    del schema["content"]["estimators_"]
    changed(saved, entries(whole, schema))
    with pytest.raises(ModelFileError, match="entries are missing or unknown"):
        load(saved, [TREE])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("estimators_", lambda each: each[:-1], "not of 4 bootstrap samples"),
        ("estimators_", lambda each: [row[:1] for row in each], "are not 2 of each"),
        ("estimators_", lambda each: [[OneHotEncoder()] * 2] * 4, "have a OneHotEncoder"),
        ("estimators_", lambda each: None, "not of 4 bootstrap samples"),
        ("candidates_", lambda each: each[:1], "candidates_ are not 2"),
        ("estimator", lambda each: "forest", "'estimator' parameter"),
        ("estimator", lambda each: [{"BootstrapSVC": {"C": "red"}}, each[1]], "'C' parameter"),
        ("candidates_", lambda each: [{"other": {}}, each[1]], "a classifier is none"),
    ],
)
def test_classifiers_that_do_not_fit_the_rest(
    saved: Path, name: str, change: Any, message: str
) -> None:
    _, arrays = parts_of(saved.read_bytes())
    found = skops.io.loads(arrays["classifiers"].tobytes(), trusted=[TREE])
    changed(saved, skops.io.dumps({**found, name: change(found[name])}))
    with pytest.raises(ModelFileError, match=message):
        load(saved, [TREE])


def test_kind_and_classifiers_belong_together(saved: Path) -> None:
    content, arrays = parts_of(saved.read_bytes())
    del arrays["classifiers"]
    saved.write_bytes(signed(content, arrays))
    with pytest.raises(ModelFileError, match="kind and classifiers do not fit each other"):
        load(saved, [TREE])


def test_what_skops_cannot_store_and_where_it_is_missing(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(saved, [TREE])
    model.estimators_[0][0].odd = (n for n in ())  # type: ignore[union-attr]
    with pytest.raises(ModelFileError, match="skops cannot store the classifiers"):
        save(model, tmp_path / "other.model")
    assert not (tmp_path / "other.model").exists()
    imported = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.startswith("skops"):
            raise ImportError(name)
        return imported(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModelFileError, match=r'pip install "bootprob\[skops\]"'):
        load(saved, [TREE])
    with pytest.raises(ModelFileError, match=r'pip install "bootprob\[skops\]"'):
        save(model, tmp_path / "other.model")
