"""Fits of classifiers that were stopped go on from their checkpoint, and only from their own."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bootprob import BootstrapClassifier, BootstrapSVC, DataError
from bootprob.ensemble.bases import replicates
from bootprob.ensemble.training.checkpoints import Checkpoint

pytest.importorskip("skops.io")
QUICK = {"n_bootstraps": 8, "calibration": None, "interval": "wald", "random_state": 0}
BOOSTING = HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=3)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(70, 3))
    return X, np.where(X[:, 0] + rng.normal(size=70) > 0, "yes", "no")


@pytest.fixture
def trained(monkeypatch):
    """Numbers of the replicates that are trained."""
    numbers, train = [], replicates._train

    def watched(task, number, count):
        numbers.append(number)
        return train(task, number, count)

    monkeypatch.setattr(replicates, "_train", watched)
    return numbers


def stopped_after(monkeypatch, count, model, *data):
    """A fit that Ctrl-C stops when so many replicates are kept."""
    write, kept = Checkpoint.write, []

    def counted(self, number, arrays):
        write(self, number, arrays)
        kept.append(number)
        if len(kept) == count:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "write", counted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*data)


def assert_same(one, other, X):
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert np.array_equal(one.proba_interval(X), other.proba_interval(X))
    assert len(one.estimators_) == len(other.estimators_)


@pytest.mark.parametrize("estimator", [BOOSTING, [GaussianNB(), LogisticRegression()]])
def test_only_what_is_missing_is_trained(table, tmp_path, monkeypatch, trained, estimator):
    X, y = table

    def make(**params):
        return BootstrapClassifier(estimator, **(QUICK | params))

    whole, folder = make().fit(X, y), str(tmp_path / "parts")
    stopped_after(monkeypatch, 3, make(checkpoint=folder), X, y)
    trained.clear()
    assert_same(whole, make(checkpoint=folder).fit(X, y), X)
    assert trained == list(range(3, 8))
    trained.clear()
    assert_same(whole, make(checkpoint=folder).fit(X, y), X)
    assert trained == [0]  # which says what types there are


def test_a_budget_that_was_up_is_raised(table, tmp_path, trained):
    X, y = table
    folder = str(tmp_path / "parts")
    short = QUICK | {"time_budget": 1e-9, "checkpoint": folder}
    with pytest.warns(UserWarning, match="time_budget"):
        few = BootstrapClassifier(BOOSTING, **short).fit(X, y)
    assert len(few.estimators_) == 2
    more = BootstrapClassifier(BOOSTING, **QUICK, checkpoint=folder).fit(X, y)
    assert_same(BootstrapClassifier(BOOSTING, **QUICK).fit(X, y), more, X)
    assert trained[:8] == list(range(8))


def test_a_seed_that_nobody_gave_is_kept(table, tmp_path, monkeypatch):
    X, y = table
    folder, params = str(tmp_path / "parts"), QUICK | {"random_state": None}
    stopped_after(
        monkeypatch, 2, BootstrapClassifier(GaussianNB(), **params, checkpoint=folder), X, y
    )
    resumed = BootstrapClassifier(GaussianNB(), **params, checkpoint=folder).fit(X, y)
    seed = json.loads((tmp_path / "parts" / "checkpoint.json").read_text())["seed"]
    params["random_state"] = np.random.RandomState(seed)
    assert_same(BootstrapClassifier(GaussianNB(), **params).fit(X, y), resumed, X)


def test_data_frames_and_machines_go_on(table, tmp_path, monkeypatch):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["d"] = pd.Categorical(np.where(X[:, 1] > 0, "up", "down"))
    frame.loc[3, "a"] = np.nan
    boosting = HistGradientBoostingClassifier(max_iter=2, categorical_features="from_dtype")
    folder = str(tmp_path / "parts")
    for estimator, rows in [
        (boosting, frame),
        ([BootstrapSVC(kernel="linear", C=[1.0]), BOOSTING], X),
    ]:
        own = f"{folder}{len(frame.columns)}{isinstance(rows, pd.DataFrame)}"
        whole = BootstrapClassifier(estimator, **QUICK).fit(rows, y)
        model = BootstrapClassifier(estimator, **QUICK, checkpoint=own)
        stopped_after(monkeypatch, 3, model, rows, y)
        assert_same(whole, model.fit(rows, y), rows)
    changed = frame.assign(d=frame["d"].cat.reorder_categories(["up", "down"]))
    with pytest.raises(DataError, match="with other rows"):
        BootstrapClassifier(boosting, **QUICK, checkpoint=f"{folder}4True").fit(changed, y)


def test_another_fit_is_refused(table, tmp_path, trained):
    X, y = table
    params = QUICK | {"checkpoint": str(tmp_path / "parts")}
    BootstrapClassifier(BOOSTING, **params).fit(X, y)
    trained.clear()
    others = {
        "rows": (BootstrapClassifier(BOOSTING, **params), X * 1.1, y),
        "labels": (BootstrapClassifier(BOOSTING, **params), X, np.roll(y, 1)),
        "weights": (BootstrapClassifier(BOOSTING, **params), X, y, np.full(70, 2.0)),
        "bootstrap samples": (BootstrapClassifier(BOOSTING, **params | {"random_state": 1}), X, y),
        "classifiers": (BootstrapClassifier(BOOSTING, {"max_iter": [4]}, **params), X, y),
    }
    for name, (model, *data) in others.items():
        with pytest.raises(DataError, match=f"of another fit, with other .*{name}"):
            model.fit(*data)
    assert trained == []


def test_damaged_replicates_are_trained_again(table, tmp_path, trained):
    X, y = table
    params = QUICK | {"checkpoint": str(tmp_path / "parts")}
    whole = BootstrapClassifier(BOOSTING, **params).fit(X, y)
    path = tmp_path / "parts" / "shard-00002.safetensors"
    path.write_bytes(path.read_bytes()[:-5])
    trained.clear()
    with pytest.warns(UserWarning, match=r"shard-00002.* is damaged.*trained again"):
        model = BootstrapClassifier(BOOSTING, **params).fit(X, y)
    assert_same(whole, model, X)
    assert trained == [2]


class Marker:
    """Of a type that skops does not trust."""

    def __init__(self):
        self.what = 1


class Odd(ClassifierMixin, BaseEstimator):
    """Keeps a marker, or a number."""

    made = Marker

    def fit(self, X, y):
        self.classes_, self.kept_ = np.unique(y), self.made()
        return self

    def decision_function(self, X):
        return X[:, 0]


def test_types_that_are_not_trained_now_are_not_made(table, tmp_path, monkeypatch, trained):
    X, y = table
    model = BootstrapClassifier(Odd(), **QUICK, checkpoint=str(tmp_path / "parts")).fit(X, y)
    trained.clear()
    model.fit(X, y)
    assert trained == [0]
    trained.clear()
    monkeypatch.setattr(Odd, "made", int)
    monkeypatch.setattr(Marker, "__init__", lambda self: pytest.fail("made"))
    with pytest.warns(UserWarning, match=r"has .*Marker, which the classifiers now do not"):
        model.fit(X, y)
    assert trained == [0, *range(8)]


def test_functions_without_a_name_are_refused(table, tmp_path, trained):
    nameless = make_pipeline(FunctionTransformer(lambda X: X), GaussianNB())
    model = BootstrapClassifier(nameless, **QUICK, checkpoint=str(tmp_path / "parts"))
    with pytest.raises(DataError, match="Give functions by name"):
        model.fit(*table)
    assert trained == []


_FIT = """
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from bootprob import BootstrapClassifier
data = np.load({table!r})
boosting = HistGradientBoostingClassifier(max_iter=40)
BootstrapClassifier(boosting, n_bootstraps=30, checkpoint={folder!r}).fit(data["X"], data["y"])
"""


@pytest.mark.endurance
def test_a_killed_process(table, tmp_path, trained):
    X, y = table
    folder, path = tmp_path / "parts", tmp_path / "table.npz"
    np.savez(path, X=X, y=y == "yes")
    script = _FIT.format(table=str(path), folder=str(folder))
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
    started = time.monotonic()
    while len(list(folder.glob("shard-*"))) < 3:
        assert process.poll() is None
        assert time.monotonic() - started < 120
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    kept = len(list(folder.glob("shard-*")))
    boosting = HistGradientBoostingClassifier(max_iter=40)
    params = {"n_bootstraps": 30, "checkpoint": str(folder)}
    resumed = BootstrapClassifier(boosting, **params).fit(X, y == "yes")
    assert trained == list(range(kept, 30))
    seed = json.loads((folder / "checkpoint.json").read_text())["seed"]
    params = {"n_bootstraps": 30, "random_state": np.random.RandomState(seed)}
    assert_same(BootstrapClassifier(boosting, **params).fit(X, y == "yes"), resumed, X)
