"""Rows stream through the models: in any type and any blocks, and without filling the memory."""

import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from bootprob import BootstrapSVC
from bootprob.ensemble.fitted import ensemble_of
from bootprob.ensemble.scoring import rows as scoring
from bootprob.ensemble.scoring.rows import NewRows, WeighedScores, model_scores, vote_shares
from bootprob.exceptions import DataError
from linear_models import linear

ENSEMBLES = {
    "linear": {},
    "rbf": {"kernel": "rbf", "gamma": [0.1, 0.5]},
    "rbf, standardised once": {"kernel": "rbf", "standardize": "global"},
    "mapped": {
        "kernel": "rbf",
        "standardize": "global",
        "feature_map": "nystroem",
        "n_components": 20,
        "gamma": 0.1,
    },
}


@pytest.fixture(params=ENSEMBLES)
def model(request, rng) -> BootstrapSVC:
    X = rng.normal(size=(60, 3)) * [1, 20, 0.1] + [0, 7, -3]
    y = X[:, 0] + rng.normal(size=60) > 0
    return linear(C=[0.1, 1], n_bootstraps=9, random_state=0, **ENSEMBLES[request.param]).fit(X, y)


@pytest.fixture
def X(rng) -> np.ndarray:  # noqa: N802
    return rng.normal(size=(70, 3)) * [1, 20, 0.1] + [0, 7, -3]


@pytest.fixture
def small_blocks(monkeypatch):
    """Five rows at a time."""
    monkeypatch.setattr(scoring, "_rows_at_once", lambda *given: 5)


def outputs(model, X) -> dict[str, np.ndarray]:
    return {
        "votes": model.vote_proba(X)[:, 1],
        "score": model.decision_function(X),
        "interval": model.proba_interval(X)[:, 1, 0],
        "scores": np.concatenate(list(model.bootstrap_scores(X))),
    }


def assert_same(found, expected):
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-9, err_msg=name)


def test_votes_and_scores_by_definition(model, X):
    said = ensemble_of(model).scores.machines
    rows, models = said.rows(X), said.models
    scores = np.concatenate(list(model_scores(models, rows)))
    weights = np.linspace(0, 1, scores.shape[1])
    shares = vote_shares(models, rows, weights)
    np.testing.assert_allclose(shares, (scores > 0).mean(axis=2) @ weights, atol=1e-12)
    summed = np.concatenate(list(WeighedScores(models, weights).of(rows)))
    assert summed.dtype == np.float64
    np.testing.assert_allclose(summed, np.einsum("mrb,r->mb", scores, weights), atol=1e-9)


def test_blocks_do_not_matter(model, X, small_blocks, monkeypatch):
    in_blocks, said = outputs(model, X), ensemble_of(model).scores.machines
    assert len(list(model_scores(said.models, said.rows(X)))) == 14
    monkeypatch.undo()
    assert_same(in_blocks, outputs(model, X))


def test_a_chunk_has_the_rows_asked_for(model, X):
    chunks = list(model.bootstrap_scores(X, chunk_size=30))
    assert [len(chunk) for chunk in chunks] == [30, 30, 10]
    np.testing.assert_allclose(np.concatenate(chunks), outputs(model, X)["scores"], atol=1e-9)


def test_rows_may_be_narrow_or_on_disk(model, X, small_blocks, tmp_path):
    narrow = X.astype(np.float32)
    expected = outputs(model, narrow.astype(np.float64))
    assert_same(outputs(model, narrow), expected)
    np.save(tmp_path / "rows.npy", narrow)
    assert_same(outputs(model, np.load(tmp_path / "rows.npy", mmap_mode="r")), expected)
    assert_same(outputs(model, np.asfortranarray(narrow)), expected)
    assert_same(outputs(model, narrow.tolist()), expected)


def test_rows_are_left_alone(model, X):
    before = X.copy()
    outputs(model, X)
    np.testing.assert_array_equal(X, before)


def test_standardised_rows_are_taken_as_they_are(model, X):
    said = ensemble_of(model).scores.machines
    models = said.models
    if model.feature_map_ is not None:
        pytest.skip("its models know other columns")
    known = (X - model.center_) / model.scale_
    weighed = WeighedScores(models, model.weights_)
    found, expected = (np.concatenate(list(weighed.of(each))) for each in (known, said.rows(X)))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    shares = vote_shares(models, NewRows(known), model.weights_)
    np.testing.assert_allclose(shares, model.vote_proba(X)[:, 1], rtol=1e-12)  # never beyond 1


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_first_absurd_row_is_named(model, X, small_blocks, sign):
    X[33, 2] = X[44, 0] = sign * 1e120
    far = f"{1e120 / model.scale_[2]:.0e}"
    for score in (
        model.vote_proba,
        model.decision_function,
        lambda X: [*model.bootstrap_scores(X)],
    ):
        with pytest.raises(
            DataError, match=re.escape(f"Row 33, column 2 (counted from 0) is {far} standard")
        ):
            score(X)


_SCORE = """
    import sys
    import numpy as np, torch
    from bootprob import BootstrapSVC

    def memory(field):
        lines = open("/proc/self/status").read().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))

    def peak_of(work):
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # forgets the peak so far
        before = memory("VmRSS")
        work()
        return memory("VmHWM") - before

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, {p}))
    model = BootstrapSVC(C=[0.1, 1, 10], n_bootstraps={B}, tol=0.1, device="cpu", random_state=0)
    model.fit(X, X[:, 0] + rng.normal(size=100) > 0)
    rows = rng.normal(size=({m}, {p})).astype(np.float32)
    for score in (model.vote_proba, model.predict_proba, model.proba_interval):
        score(rows[:9])
        print(peak_of(lambda: score(rows)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.endurance
def test_peak_memory_follows_only_what_is_returned():
    m, p, B = 400_000, 20, 100
    end = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_SCORE.format(m=m, p=p, B=B))],
        capture_output=True,
        text=True,
        check=False,
        # Large blocks go back to the system when they are freed: the peak is what was alive.
        env={**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"},
    )
    assert end.returncode == 0, end.stderr
    # A few columns of m numbers, and blocks of 2 ** 20 numbers; in full, rows in float64 would
    # take 64 MB, votes of 3 models 10 MB and replicate scores 320 MB.
    votes, probabilities, intervals = map(int, end.stdout.split())
    column, block = 8 * m, 8 * 2**20
    assert votes < 4 * column + 2 * block
    assert probabilities < 5 * column + 4 * block
    assert intervals < 5 * column + 5 * block < 0.2 * B * column
