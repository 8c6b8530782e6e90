"""A fit that was stopped goes on from its checkpoint, and only from its own."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import save as to_bytes
from test_shards import assert_same_bits, case

from bootprob import DataError
from bootprob.ensemble.training import checkpoints
from bootprob.ensemble.training import schedule as shard_jobs
from linear_models import linear


@pytest.fixture
def trained(monkeypatch):
    """Numbers of the shards that are trained."""
    numbers = []
    train = shard_jobs.train_shards

    def watched(work, shards, *more):
        for shard, found in zip(shards, train(work, shards, *more), strict=True):
            numbers.append(shard.number)
            yield found

    monkeypatch.setattr(shard_jobs, "train_shards", watched)
    return numbers


def stopped_after(monkeypatch, count, model, *data):
    """A fit that Ctrl-C stops when so many shards are kept."""
    write = checkpoints.Checkpoint.write
    kept = []

    def counted(self, number, arrays):
        write(self, number, arrays)
        kept.append(number)
        if len(kept) == count:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints.Checkpoint, "write", counted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*data)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("kind", ["linear", "three classes"])
def test_only_what_is_missing_is_trained(rng, tmp_path, monkeypatch, trained, kind):
    X, y, weight, make = case(rng, kind)
    whole = make().fit(X, y, weight)
    total, folder = len(trained), str(tmp_path / "parts")
    stopped_after(monkeypatch, 2, make(checkpoint=folder), X, y, weight)
    trained.clear()
    model = make(checkpoint=folder).fit(X, y, weight)
    assert trained == list(range(2, total))
    assert_same_bits(whole, model)
    trained.clear()
    assert_same_bits(whole, make(checkpoint=folder).fit(X, y, weight))
    assert trained == []


@pytest.mark.filterwarnings("ignore:The feature map's kernel")
@pytest.mark.parametrize("kind", ["linear", "nystroem"])
def test_a_seed_that_nobody_gave_is_kept(rng, tmp_path, monkeypatch, kind):
    X, y, weight, make = case(rng, kind)
    folder = str(tmp_path / "parts")
    stopped_after(monkeypatch, 1, make(random_state=None, checkpoint=folder), X, y, weight)
    begun = make(random_state=None, checkpoint=folder).fit(X, y, weight)
    assert_same_bits(begun, make(random_state=None, checkpoint=folder).fit(X, y, weight))
    seed = json.loads((tmp_path / "parts" / "checkpoint.json").read_text())["seed"]
    whole = make(random_state=np.random.RandomState(seed)).fit(X, y, weight)
    assert_same_bits(whole, begun)
    other = make(random_state=None, checkpoint=str(tmp_path / "other")).fit(X, y, weight)
    assert other.entropy_ != begun.entropy_


def test_another_fit_is_refused_and_nothing_is_lost(rng, tmp_path, trained):
    X, y, weight, make = case(rng, "linear")
    folder = str(tmp_path / "parts")
    make(checkpoint=folder).fit(X, y, weight)
    before = {path.name: path.read_bytes() for path in (tmp_path / "parts").iterdir()}
    trained.clear()
    others = {
        "rows": (make(checkpoint=folder), X * 1.001, y, weight),
        "labels": (make(checkpoint=folder), X, np.roll(y, 1), weight),
        "weights": (make(checkpoint=folder), X, y, weight * 1.1),
        "bootstrap samples": (make(checkpoint=folder, random_state=2), X, y, weight),
        "C": (make(checkpoint=folder, C=[0.1, 1, 9]), X, y, weight),
        "kernel": (make(checkpoint=folder, kernel="rbf"), X, y, weight),
        "tol": (make(checkpoint=folder, tol=1e-5), X, y, weight),
        "preparation": (make(checkpoint=folder, standardize="global"), X, y, weight),
        "constraints": (
            make(checkpoint=folder, control="constrained", rates={"tpr": 0.9}),
            *(X, y, weight),
        ),
    }
    for name, (model, *data) in others.items():
        with pytest.raises(DataError, match=f"of another fit, with other .*{name}"):
            model.fit(*data)
    assert trained == []
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "parts").iterdir()}


def test_another_version_is_refused(rng, tmp_path, monkeypatch):
    X, y, weight, make = case(rng, "linear")
    model = make(checkpoint=str(tmp_path / "parts")).fit(X, y, weight)
    monkeypatch.setattr(checkpoints, "version", lambda name: "99.9")
    with pytest.raises(DataError, match="version of torch"):
        model.fit(X, y, weight)


def cut(data):
    return data[: len(data) // 2]


def flip(data):
    where = len(data) - 9
    return data[:where] + bytes([data[where] ^ 1]) + data[where + 1 :]


def empty(data):
    return b""


def lie(data):
    return data.replace(b'\\"shard\\": 1', b'\\"shard\\": 2')


def deep(data):
    return to_bytes({}, metadata={"bootprob": "[" * 10**5})


@pytest.mark.parametrize("damage", [cut, flip, empty, lie, deep])
def test_damaged_shards_are_trained_again(rng, tmp_path, trained, damage):
    X, y, weight, make = case(rng, "linear")
    folder = tmp_path / "parts"
    whole = make(checkpoint=str(folder)).fit(X, y, weight)
    path = folder / "shard-00001.safetensors"
    good = path.read_bytes()
    path.write_bytes(damage(good))
    assert path.read_bytes() != good
    trained.clear()
    with pytest.warns(UserWarning, match=r"shard-00001.* is damaged.*trained again"):
        model = make(checkpoint=str(folder)).fit(X, y, weight)
    assert trained == [1]
    assert path.read_bytes() == good
    assert_same_bits(whole, model)


def test_a_shard_of_another_fit_is_not_taken(rng, tmp_path):
    X, y, weight, make = case(rng, "linear")
    for seed in (1, 2):
        make(checkpoint=str(tmp_path / str(seed)), random_state=seed).fit(X, y, weight)
    name = "shard-00000.safetensors"
    (tmp_path / "1" / name).write_bytes((tmp_path / "2" / name).read_bytes())
    with pytest.warns(UserWarning, match="of another fit"):
        model = make(checkpoint=str(tmp_path / "1")).fit(X, y, weight)
    assert_same_bits(make().fit(X, y, weight), model)


@pytest.mark.parametrize(
    "index",
    ["", "{", "[]", '{"protocol": 1}', '{"protocol":1,"made_of":3}', "[" * 10**5, '{"seed": NaN}'],
)
def test_a_damaged_index(rng, tmp_path, index):
    X, y, weight, make = case(rng, "linear")
    (tmp_path / "checkpoint.json").write_text(index)
    with pytest.raises(DataError, match=r"checkpoint\.json is damaged"):
        make(checkpoint=str(tmp_path)).fit(X, y, weight)


def test_a_later_protocol(rng, tmp_path):
    X, y, weight, make = case(rng, "linear")
    (tmp_path / "checkpoint.json").write_text('{"protocol": 7, "made_of": {}}')
    with pytest.raises(DataError, match="protocol 7"):
        make(checkpoint=str(tmp_path)).fit(X, y, weight)


def test_folders_that_are_none(rng, tmp_path, trained):
    X, y, weight, make = case(rng, "linear")
    (tmp_path / "table.csv").write_text("a,b")
    for folder, words in [
        (tmp_path / "table.csv", "not a folder"),
        (tmp_path / "missing" / "parts", "does not exist"),
        (tmp_path, "no checkpoint"),
    ]:
        with pytest.raises(DataError, match=words):
            make(checkpoint=str(folder)).fit(X, y, weight)
    assert trained == []
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_full_disk_keeps_what_is_finished(rng, tmp_path, monkeypatch, trained):
    X, y, weight, make = case(rng, "linear")
    folder, calls, flush = str(tmp_path / "parts"), [], os.fsync

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) > 6:  # a file and its folder for the index and each of two shards
            raise OSError(28, "No space left on device")
        flush(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space") as caught:
            make(checkpoint=folder).fit(X, y, weight)
    assert caught.value.filename.endswith("shard-00002.safetensors")
    trained.clear()
    model = make(checkpoint=folder).fit(X, y, weight)
    assert trained == [2]
    assert_same_bits(make().fit(X, y, weight), model)


@pytest.mark.endurance
def test_interrupted_jobs(rng, tmp_path, monkeypatch):
    X, y, weight, make = case(rng, "linear")
    folder = str(tmp_path / "parts")
    stopped_after(monkeypatch, 1, make(n_jobs=2, checkpoint=folder), X, y, weight)
    assert_same_bits(make().fit(X, y, weight), make(checkpoint=folder).fit(X, y, weight))


_FIT = """
import numpy as np
from bootprob import BootstrapSVC
data = np.load({table!r})
model = BootstrapSVC(
    kernel="rbf", gamma=[0.1, 0.3, 1.0], n_bootstraps=200, device="cpu", checkpoint={folder!r}
)
model.fit(data["X"], data["y"])
"""


@pytest.mark.endurance
def test_a_killed_process(rng, tmp_path, trained):
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + rng.normal(size=300) > 0
    folder, table = tmp_path / "parts", tmp_path / "table.npz"
    np.savez(table, X=X, y=y)
    script = _FIT.format(table=str(table), folder=str(folder))
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
    started = time.monotonic()
    while len(list(folder.glob("shard-*"))) < 2:
        assert process.poll() is None
        assert time.monotonic() - started < 120
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    kept = len(list(folder.glob("shard-*")))
    assert 2 <= kept < 20
    params = {"kernel": "rbf", "gamma": [0.1, 0.3, 1.0], "n_bootstraps": 200, "device": "cpu"}
    resumed = linear(**params, checkpoint=str(folder)).fit(X, y)
    assert trained == list(range(kept, 20))
    assert not list(folder.glob(".*"))
    seed = json.loads((folder / "checkpoint.json").read_text())["seed"]
    whole = linear(**params, random_state=np.random.RandomState(seed)).fit(X, y)
    assert_same_bits(whole, resumed)


def test_on_the_command_line(rng, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from bootprob.cli.__main__ import app
    from bootprob.persistence.save_load import load

    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60) > 0
    rows = [f"{a},{b},{'yes' if c else 'no'}" for (a, b), c in zip(X, y, strict=True)]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,answer", *rows]))
    (tmp_path / "less.csv").write_text("\n".join(["a,b,answer", *rows[:-1]]))
    options = ["--target", "answer", "--n-bootstraps", "20", "--checkpoint", "parts", "-o", "model"]
    for _ in range(2):  # the seed is kept: the same model
        assert CliRunner().invoke(app, ["fit", "table.csv", *options, "--jobs", "1"]).exit_code == 0
    assert len(list(tmp_path.glob("parts/shard-*"))) == 2
    svc = load(tmp_path / "model").svc
    assert svc.n_jobs is None
    assert svc.checkpoint is None
    end = CliRunner().invoke(app, ["fit", "less.csv", *options])
    assert end.exit_code == 1
    assert "of another fit" in end.output
    end = CliRunner().invoke(app, ["fit", "table.csv", *options, "--jobs", "0"])
    assert end.exit_code == 2
