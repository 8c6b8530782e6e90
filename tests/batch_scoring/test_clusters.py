"""What docs/scaling.md says of Spark, Dask and Ray, on one machine; models of worker processes."""

import gc
import os
import re
import shutil
import subprocess
import sys
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from bootprob import BootstrapClassifier
from bootprob.batch_scoring import load_once, worker_models
from bootprob.exceptions import DataError, ModelFileError
from bootprob.persistence.save_load import load, save
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

ROOT = Path(__file__).parents[2]
TREE = "sklearn.tree._tree.Tree"
SAID = ["probability", "probability_lower", "probability_upper", "threshold"]
# Every process of Python reads it, and then notes when it opens the file of the model.
NOTING = """
import os, sys

def note(event, given):
    if event == "open" and str(given[0]).endswith("churn.bootprob"):
        with open({path!r}, "a") as file:
            file.write(f"{{os.getpid()}}\\n")

sys.addaudithook(note)
"""


def block(engine: str) -> str:
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    [found] = re.findall(rf"```python no-run\n(# {engine}\n.*?)```", page, flags=re.DOTALL)
    return found


@pytest.mark.filterwarnings("ignore::bootprob.exceptions.LackOfFitWarning")  # so few samples
@pytest.mark.parametrize(
    ("engine", "package"),
    [
        ("Spark", "pyspark"),
        pytest.param("Dask", "distributed", marks=pytest.mark.endurance),
        ("Ray", "ray"),
    ],
)
def test_a_cluster_says_what_the_model_says(engine, package, tmp_path):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    table = credit_table(150)
    model = TableModel.fit(
        table[:90], "risk", "bad", kernel="linear", n_bootstraps=20, random_state=0
    )
    save(model, tmp_path / "churn.bootprob")
    table = table.drop(columns="risk").assign(id=range(150))
    (tmp_path / "customers").mkdir()
    for k in range(6):
        table[25 * k : 25 * k + 25].to_parquet(tmp_path / "customers" / f"{k}.parquet")
    (tmp_path / "job.py").write_text(block(engine), encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text(NOTING.format(path=str(tmp_path / "loads")))
    found = [str(tmp_path), str(ROOT), str(ROOT / "gpu"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "job.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(found), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    scored = pd.read_parquet(tmp_path / "scored").sort_values("id", ignore_index=True)
    expected = model.predict(table)
    assert scored["id"].tolist() == list(range(150))
    assert scored["label"].tolist() == expected["label"].tolist()
    pd.testing.assert_frame_equal(scored[SAID], expected[SAID], rtol=0, atol=1e-12)
    loads = Counter((tmp_path / "loads").read_text().split())
    assert set(loads.values()) == {1}


@pytest.fixture(scope="module")
def fitted_files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("clusters"), np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    for name, each in (("tree", DecisionTreeClassifier()), ("line", LogisticRegression())):
        save(BootstrapClassifier(each, n_bootstraps=20, random_state=0).fit(X, y), folder / name)
    return folder


@pytest.fixture
def files(fitted_files, tmp_path):
    return Path(shutil.copytree(fitted_files, tmp_path / "files"))


def test_a_file_is_loaded_once_until_it_is_replaced(files, monkeypatch):
    asked = []
    monkeypatch.setattr(worker_models, "load", lambda *given: asked.append(1) or load(*given))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(load_once, [files / "line"] * 8))
    assert len({id(each) for each in found}) == len(asked) == 1
    monkeypatch.chdir(files)
    assert load_once("line") is found[0]
    save(load("tree", [TREE]), "line")
    assert type(load_once("line", [TREE]).estimators_[0][0]) is DecisionTreeClassifier
    with pytest.raises(ModelFileError, match="tree"):
        load_once("line")
    Path("line").unlink()
    with pytest.raises(ModelFileError, match="no file line"):
        load_once("line", [TREE])


def test_what_one_call_trusts_another_does_not(files):
    assert load_once(files / "tree", [TREE]) is load_once(files / "tree", [TREE])
    with pytest.raises(ModelFileError, match=re.escape(TREE)):
        load_once(files / "tree")
    with pytest.raises(DataError, match="give a list of names"):
        load_once(files / "tree", TREE)
    with pytest.raises(DataError, match="give a list of names"):
        load_once(files / "tree", [[TREE]])
    assert load_once(files / "tree", (TREE,)) is load_once(files / "tree", [TREE])


def test_the_models_used_last_are_kept(files):
    first = load_once(files / "line")
    copies = [shutil.copy(files / "line", files / f"line{k}") for k in range(5)]
    others = [weakref.ref(load_once(each)) for each in copies[:3]]
    assert load_once(files / "line") is first  # now of the four the one used last
    load_once(copies[3])
    gc.collect()
    assert [each() is None for each in others] == [True, False, False]
    assert load_once(files / "line") is first
    for each in copies:
        load_once(each)
    assert load_once(files / "line") is not first
