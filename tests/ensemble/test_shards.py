"""However the training is split, and whoever does it: the same model to the last bit."""

import warnings

import joblib
import numpy as np
import pytest
import torch

from bootprob import BootstrapSVC, DataError, UnattainableRateError
from bootprob.ensemble.training import schedule as shard_jobs
from bootprob.ensemble.training.shards import Draws, Recipe, Work
from bootprob.ensemble.training.train import train_shards
from bootprob.persistence.save_load import load, save
from bootprob_gpu import Problem, iter_fit
from linear_models import linear

CPU = torch.device("cpu")


def fitted_values(model):
    """All fitted attributes, by name, but those that say where and when."""
    found = {}

    def walk(name, value):
        if isinstance(value, dict):
            for key, part in value.items():
                walk(f"{name}.{key}", part)
        elif isinstance(value, BootstrapSVC):
            for key, part in vars(value).items():
                if key.endswith("_") and key not in ("fit_seconds_", "versions_", "device_"):
                    walk(f"{name}.{key}", part)
        elif isinstance(value, list) and any(isinstance(each, BootstrapSVC) for each in value):
            for number, each in enumerate(value):
                walk(f"{name}.{number}", each)
        else:
            found[name] = value

    walk("", model)
    return found


def assert_same_bits(one, other):
    mine, its = fitted_values(one), fitted_values(other)
    assert mine.keys() == its.keys()
    assert len(mine) > 15
    for name, value in mine.items():
        assert type(value) is type(its[name]), name
        np.testing.assert_array_equal(value, its[name], err_msg=name)


KINDS = {
    "linear": {},
    "rbf": {"kernel": "rbf", "gamma": [0.1, 0.4]},
    "rbf, one scale": {"kernel": "rbf", "standardize": "global"},
    "rbf, float32": {"kernel": "rbf", "dtype": "float32"},
    "class weights": {"class_weight": {0: 1.0, 1: 3.0}},
    "threshold": {"control": "threshold", "rates": {"tpr": 0.9}},
    "constrained": {"control": "constrained", "rates": {"tpr": 0.9}, "C": [0.1, 1]},
    "constrained, precomputed": {
        "kernel": "precomputed",
        "control": "constrained",
        "rates": {"tpr": 0.9},
        "C": [0.1],
    },
    "nystroem": {"kernel": "rbf", "feature_map": "nystroem", "n_components": 12},
    "columns": {"n_columns": 90},
    "three classes": {"n_classes": 3},
    "three classes, rbf": {"n_classes": 3, "kernel": "rbf"},
}


def case(rng, kind, n=61):
    """Rows, labels, weights, and a function that makes an estimator with some parameters."""
    params = {"C": [0.1, 1, 10], "n_bootstraps": 23, "random_state": 1, "device": "cpu"}
    params |= KINDS[kind]
    p, K = params.pop("n_columns", 5), params.pop("n_classes", 2)
    X = rng.normal(size=(n, p))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    if K == 3:
        y[X[:, 1] > 0.7] = 2
    if params.get("kernel") == "precomputed":
        X = X @ X.T
    weight = rng.uniform(0.5, 2, n)
    weight[::9] = 0
    return X, y, weight, lambda **more: linear(**(params | more))


@pytest.fixture
def threads():
    """Restores the number of torch's threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.filterwarnings("ignore:The feature map's kernel")
@pytest.mark.parametrize("kind", KINDS)
def test_any_split_gives_the_same_bits(rng, tmp_path, kind):
    X, y, weight, make = case(rng, kind)
    whole = make().fit(X, y, weight)
    with joblib.parallel_config("threading", n_jobs=3):
        assert_same_bits(whole, make(checkpoint=str(tmp_path / "parts")).fit(X, y, weight))
    files = sorted((tmp_path / "parts").glob("shard-*"))
    assert len(files) == (9 if kind.startswith("three") else 3)
    files[1].unlink()
    again = make(checkpoint=str(tmp_path / "parts")).fit(X, y, weight)
    assert_same_bits(whole, again)
    mine, other = map(fitted_values, (whole, make(random_state=2).fit(X, y, weight)))
    name = next(name for name in mine if name.endswith("intercept_"))
    assert not np.array_equal(mine[name], other[name])


def test_processes_give_the_same_bits(rng):
    for kind in ("linear", "three classes, rbf", "constrained, precomputed"):
        X, y, weight, make = case(rng, kind)
        assert_same_bits(make().fit(X, y, weight), make(n_jobs=2).fit(X, y, weight))


@pytest.mark.parametrize(
    ("n", "p", "more"),
    [
        (151, 7, {}),
        (47, 80, {}),
        (47, 80, {"one_scale": True}),
        (101, 5, {"kernel": "rbf", "gamma": [0.1, 0.5]}),
        (301, 5, {"kernel": "rbf", "gamma": [0.1], "one_scale": True}),
    ],
)
def test_a_machine_does_not_depend_on_those_beside_it(rng, threads, n, p, more):
    more = dict(more)
    X = rng.normal(size=(n, p)) + 3
    y = np.where(X[:, 0] + rng.normal(size=n) > 3, 1, -1)
    counts = rng.integers(0, 3, (9, n))
    scale = rng.uniform(0.5, 2, (9, p))
    if more.pop("one_scale", False):
        scale = scale[0]
    C = 2.0 ** np.arange(-4, 1)

    def train(sizes):
        found, start = [], 0
        for size in sizes:
            part = slice(start, start + size)
            own = scale if scale.ndim == 1 else scale[part]
            blocks = iter_fit(Problem(X, y, counts[part], C, scale=own, **more))
            found += [
                [t for t in (b.intercept, b.coef, b.dual_coef, b.train_scores) if t is not None]
                for b in blocks
            ]
            start += size
        return [torch.cat(parts) for parts in zip(*found, strict=True)]

    torch.set_num_threads(1)
    together = train([9])
    for count, sizes in ((1, [1] * 9), (2, [2, 7]), (5, [9]), (3, [4, 1, 4])):
        torch.set_num_threads(count)
        for one, other in zip(together, train(sizes), strict=True):
            assert torch.equal(one, other)


def some_work(rng, n=40, B=23):
    X = rng.normal(size=(n, 3))
    codes = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    draws = Draws(codes, np.ones(n), [1, 2, 3, 4])
    counts = draws.counts(slice(0, B))
    problem = Problem(X, np.where(codes, 1, -1), counts, [0.1, 1.0])
    return Work(problem, counts, np.ones((1, n)), Recipe(None, "float64", None), draws)


@pytest.mark.parametrize("B", [2, 10, 11, 23])
def test_shards_cover_every_replicate_once(rng, B):
    work = some_work(rng, B=B)
    for device in (CPU, torch.device("cuda")):
        shards = work.shards(device)
        covered = [b for shard in shards for b in range(B)[shard.replicates]]
        assert covered == list(range(B))
        assert [shard.number for shard in shards] == list(range(len(shards)))
    assert len(work.shards(torch.device("cuda"))) == 1  # many small machines keep a GPU busy


def test_sums_of_a_shard_by_hand(rng):
    work = some_work(rng)
    shards = work.shards(CPU)
    results = list(train_shards(work, shards, CPU))
    scores = np.concatenate([block.train_scores for block in iter_fit(work.problem)])
    for shard, found in zip(shards, results, strict=True):
        mine = scores[shard.replicates]
        outside = work.drawn[shard.replicates][:, None] == 0
        np.testing.assert_allclose(found.score_sums, (mine * outside).sum(0), rtol=1e-12)
        np.testing.assert_array_equal(found.votes, ((mine > 0) & outside).sum(0))
        right = ((mine > 0) == (work.problem.y > 0)) & outside
        np.testing.assert_allclose(found.accuracy, right.sum(2) / outside.sum(2))


def test_a_thread_for_each_device(rng, monkeypatch):
    work = some_work(rng, B=60)
    used = []

    def train(work, shards, device, *more):
        used.append(str(device))
        return train_shards(work, shards, CPU, *more)

    monkeypatch.setattr(shard_jobs, "train_shards", train)
    done = []
    devices = ["cuda:0", "cuda:1", "cuda:2"]
    found = dict(shard_jobs._through_joblib(work, work.shards(CPU), devices, done.append))
    assert set(used) <= set(devices)
    assert sum(done) == 60
    for shard, expected in zip(
        work.shards(CPU), train_shards(work, work.shards(CPU), CPU), strict=True
    ):
        for name, array in expected.to_arrays().items():
            np.testing.assert_array_equal(found[shard.number][name], array)


def test_which_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    any_gpu = torch.device("cuda")
    assert shard_jobs._gpus(any_gpu, 99) == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]
    assert shard_jobs._gpus(any_gpu, 2) == ["cuda:0", "cuda:1"]
    assert shard_jobs._gpus(torch.device("cuda:3"), 99) == ["cuda:3"]


def test_lost_workers_are_made_good(rng, monkeypatch):
    X, y, weight, make = case(rng, "linear")
    whole = make().fit(X, y, weight)
    train, fails = shard_jobs._train_alone, [2]

    def sometimes(device, shard, *given):
        if shard.number == 1 and fails[0] > 0:
            fails[0] -= 1
            raise joblib.externals.loky.process_executor.TerminatedWorkerError("gone")
        return train(device, shard, *given)

    monkeypatch.setattr(shard_jobs, "_train_alone", sometimes)
    with (
        joblib.parallel_config("threading", n_jobs=2),
        pytest.warns(UserWarning, match=r"worker was lost \(TerminatedWorkerError\)"),
    ):
        model = make().fit(X, y, weight)
    assert fails == [0]
    assert_same_bits(whole, model)


def test_workers_that_are_always_lost_end_the_fit(rng, monkeypatch):
    X, y, weight, make = case(rng, "linear")
    tried = []

    def never(device, shard, *given):
        tried.append(shard.number)
        raise RuntimeError("no such worker")

    monkeypatch.setattr(shard_jobs, "_train_alone", never)
    model = make(n_jobs=2)
    with (
        joblib.parallel_config("threading"),
        warnings.catch_warnings(action="ignore"),
        pytest.raises(RuntimeError, match="no such worker"),
    ):
        model.fit(X, y, weight)
    assert 4 <= len(tried) <= 12
    assert not hasattr(model, "classes_")


def test_what_a_shard_raises_is_raised_at_once(rng, monkeypatch):
    X = rng.normal(size=(40, 2))
    y = rng.permutation(np.arange(40) % 2)  # which no straight line tells apart
    calls = []
    train = shard_jobs._train_alone
    monkeypatch.setattr(shard_jobs, "_train_alone", lambda *given: calls.append(1) or train(*given))
    rates = {"tpr": 0.99, "tnr": 0.99}
    model = BootstrapSVC(
        kernel="linear", control="constrained", rates=rates, C=[1.0], n_bootstraps=23
    )
    with joblib.parallel_config("threading", n_jobs=2), pytest.raises(UnattainableRateError):
        model.fit(X, y)
    assert 1 <= len(calls) <= 3


def test_progress_in_shards(rng, capsys, tmp_path):
    X, y, weight, make = case(rng, "linear")
    for _ in range(2):  # the second time all is there already
        make(n_jobs=2, verbose=1, checkpoint=str(tmp_path / "parts")).fit(X, y, weight)
        assert "23/23" in capsys.readouterr().err


def test_one_job_and_nested_jobs_stay_in_the_process(rng, monkeypatch):
    X, y, weight, make = case(rng, "linear")
    monkeypatch.setattr(shard_jobs, "_through_joblib", None)
    make(n_jobs=1).fit(X, y, weight)
    with joblib.parallel_config("loky", n_jobs=3):
        make(n_jobs=1).fit(X, y, weight)
    with pytest.raises(TypeError):  # so the replaced function would have been called
        make(n_jobs=2).fit(X, y, weight)


def test_parameters_survive_a_file(rng, tmp_path):
    X, y, weight, make = case(rng, "three classes")
    model = make(n_jobs=1, checkpoint=str(tmp_path / "parts")).fit(X, y, weight)
    save(model, tmp_path / "model")
    found = load(tmp_path / "model")
    assert found.get_params() == model.get_params()
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))
    with pytest.raises(DataError, match="rows"):  # the folder is of the model's own fit
        found.fit(X + 1, y, weight)


@pytest.mark.parametrize("bad", [{"n_jobs": 1.5}, {"checkpoint": 3}])
def test_parameters_of_the_wrong_type(rng, bad):
    X, y, weight, make = case(rng, "linear")
    with pytest.raises(ValueError, match=next(iter(bad))):
        make(**bad).fit(X, y, weight)


def test_no_jobs_at_all(rng):
    X, y, weight, make = case(rng, "linear")
    with pytest.raises(ValueError, match="n_jobs"):
        make(n_jobs=0).fit(X, y, weight)
