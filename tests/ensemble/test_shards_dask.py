"""A fit on a real local Dask cluster, of which a worker is killed midway."""

import logging
import os
import signal
import warnings

import joblib
import pytest
from test_shards import assert_same_bits, case

from bootprob.ensemble.training import schedule as shard_jobs

distributed = pytest.importorskip("distributed")


@pytest.fixture
def client(n_workers):
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=2 // n_workers,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.endurance
@pytest.mark.parametrize("n_workers", [2])
def test_a_worker_is_killed_midway(rng, client, monkeypatch):
    X, y, weight, make = case(rng, "linear", n=150)
    whole = make(n_bootstraps=120).fit(X, y, weight)
    pids = set(client.run(os.getpid).values())
    assert len(pids | {os.getpid()}) == 3
    finished, through_joblib = [], shard_jobs._through_joblib

    def watched(*given, **more):
        for number, arrays in through_joblib(*given, **more):
            if len(finished) == 2:
                os.kill(next(iter(pids)), signal.SIGKILL)
            finished.append(number)
            yield number, arrays

    monkeypatch.setattr(shard_jobs, "_through_joblib", watched)
    with joblib.parallel_config("dask"), warnings.catch_warnings():
        # Whether the cluster made the loss good by itself, or the rest was sent again.
        warnings.filterwarnings("ignore", "A worker was lost")
        model = make(n_bootstraps=120).fit(X, y, weight)
    assert sorted(finished) == list(range(12))  # nothing lost, nothing twice
    assert_same_bits(whole, model)


# One that solves two shards at a time is a process less.
@pytest.mark.parametrize("n_workers", [1, pytest.param(2, marks=pytest.mark.endurance)])
def test_several_classes_on_a_cluster(rng, client):
    X, y, weight, make = case(rng, "three classes")
    with joblib.parallel_config("dask"):
        model = make().fit(X, y, weight)
    assert_same_bits(make().fit(X, y, weight), model)
