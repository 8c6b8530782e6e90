"""Many rows: sums in blocks of rows against sums by hand, and memory that does not follow B × R."""

import os
import subprocess
import sys
import textwrap
import tracemalloc
from functools import partial

import numpy as np
import pytest

from bootprob import BootstrapSVC
from bootprob.calibration import Sigmoid
from bootprob.ensemble.scoring import out_of_bag
from bootprob.ensemble.scoring.out_of_bag import WeighedMachines, score_out_of_bag
from bootprob.ensemble.training import train
from bootprob.preparation import standardization
from bootprob.preparation.standardization import bootstrap_scale, center_and_scale
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import Problem, fit

MB = 1e6


@pytest.mark.parametrize("n", [1, 99, 100, 101, 1000])
def test_blocks_cover_every_row_once(n):
    blocks = list(row_blocks(n, 7, at_once=700))
    assert np.concatenate([np.arange(n)[b] for b in blocks]).tolist() == list(range(n))
    assert max(b.stop - b.start for b in blocks) == min(n, 100)


def test_a_row_beyond_the_limit_is_a_block_of_its_own():
    assert list(row_blocks(3, 50, at_once=10)) == [slice(0, 1), slice(1, 2), slice(2, 3)]


def drawn(rng, B, n) -> np.ndarray:
    """Multiplicities 0, 1 and 2, of the type that bootstrap samples come in."""
    return rng.integers(0, 3, (B, n), dtype=np.uint8)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that little data are many blocks, and no score is held."""
    for module in (out_of_bag, standardization):
        monkeypatch.setattr(module, "row_blocks", partial(row_blocks, at_once=200))
    monkeypatch.setattr(standardization, "_NUMBERS_IN_CACHE", 200)
    monkeypatch.setitem(train._AT_ONCE, "cpu", 200)
    for kind in out_of_bag._HELD_SCORES:
        monkeypatch.setitem(out_of_bag._HELD_SCORES, kind, 0)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_out_of_bag_statistics_by_hand(rng, small_blocks, kernel):
    n, B, R = 130, 30, 3
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + rng.normal(size=n) > 0
    weight = rng.uniform(0.5, 2, n)
    weight[::9] = 0
    model = BootstrapSVC(kernel=kernel, C=[0.1, 1, 10], n_bootstraps=B, random_state=0)
    model.fit(X, y, sample_weight=weight)
    scores = np.concatenate(list(model.bootstrap_scores(X)))
    outside = (model.bootstrap_counts() == 0).T
    count = outside.sum(axis=1)
    assert (count > 1).all()
    np.testing.assert_array_equal(model.oob_counts_, count)

    for b in range(B):
        right = (scores[:, :, b] > 0) == y[:, None]
        expected = np.average(right, axis=0, weights=weight * outside[:, b])
        np.testing.assert_allclose(model.accuracy_[b], expected)
    votes = ((scores > 0) & outside[:, None]).sum(axis=2) @ model.weights_ / count
    np.testing.assert_allclose(model.oob_vote_proba_[:, 1], votes, atol=1e-12)

    used = weight > 0
    teaching = weight[used] * (weight.sum() / np.square(weight).sum())
    losses = []
    for r in range(R):
        mean = np.array([scores[i, r, outside[i]].mean() for i in range(n)])[used]
        p = Sigmoid.fit(mean, y[used], teaching).predict(mean)
        losses.append(-teaching @ np.log(np.where(y[used], p, 1 - p)))
    expected = np.exp(min(losses) - np.array(losses))
    np.testing.assert_allclose(model.weights_, expected / expected.sum(), atol=1e-9)

    folded = np.einsum("nrb,r->nb", scores, model.weights_)
    own = [folded[outside[:, b] & used, b] for b in range(B)]
    center, spread = np.array([[s.mean(), np.abs(s - s.mean()).mean()] for s in own]).T
    scale = spread / spread.mean()
    np.testing.assert_allclose(model.score_scale_, scale, rtol=1e-9)
    slope, intercept = model.sigmoid_
    assert slope > 0
    assert intercept == 0
    # The offset is moved so that the sigmoid crosses one half at 0: by the same for all.
    shift = model.score_offset_ - (center.mean() - center / scale)
    np.testing.assert_allclose(shift, shift[0], rtol=1e-9, atol=1e-9)
    aligned = folded / scale + model.score_offset_
    mean, variance = np.array(
        [[row[o].mean(), row[o].var(ddof=1)] for row, o in zip(aligned, outside, strict=True)]
    ).T
    np.testing.assert_allclose(model.oob_decision_function_, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.oob_score_variance_, variance, rtol=1e-7)
    kept = np.where(outside, aligned, np.nan)[model.sampled_rows_]
    np.testing.assert_allclose(model.sampled_scores_, kept, rtol=1e-9, atol=1e-9)


def test_scale_in_blocks_is_that_of_the_repeated_rows(rng, small_blocks):
    n, B = 150, 12
    X = rng.normal(size=(n, 4)) * [1, 1e-4, 50, 1] + [0, 3, -7, 0]
    X[:, 3] = 0.1  # constant
    X[: n // 2, 2] = 8.0  # one value in the first blocks, many in the others
    weight = rng.integers(0, 4, n)
    X[weight == 0] = 1e9
    repeated = np.repeat(X, weight, axis=0)
    center, scale = center_and_scale(X, weight.astype(float))
    np.testing.assert_allclose(center, repeated.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scale[:3], repeated.std(axis=0)[:3], rtol=1e-9)
    assert center[3] == 0.1
    assert scale[3] == 1
    X = (X - center) / scale
    X[:, 3] = np.arange(n) < 2  # a dummy that some replicates lack
    X = np.column_stack([X, np.full(n, 0.3)])
    counts = drawn(rng, B, n)
    counts[:3, :2] = 0
    ours = bootstrap_scale(X, counts, weight.astype(float))
    for b in range(B):
        resampled = np.repeat(X, counts[b] * weight, axis=0)
        expected = np.where(np.ptp(resampled, axis=0) == 0, 1.0, resampled.std(axis=0))
        np.testing.assert_allclose(ours[b], expected, rtol=1e-9)
    assert (ours[:3, 3] == 1).all()
    assert (ours[:, 4] == 1).all()


def test_narrow_counts_make_the_boxes_that_wide_ones_make(rng):
    counts = rng.integers(0, 256, (3, 40)).astype(np.uint8)
    counts[0, 0] = 255
    X, y, weight = rng.normal(size=(40, 2)), np.repeat([-1, 1], 20), rng.uniform(1, 50, 40)
    narrow = Problem(X, y, counts, [1.0, 300.0], row_weight=weight)
    assert narrow.counts is counts
    expected = np.array([1.0, 300.0])[:, None] * (counts.astype(float) * weight)[:, None]
    np.testing.assert_array_equal(narrow.upper_of(slice(0, 3)), expected)
    as_floats = Problem(X, y, counts.astype(float), [1.0, 300.0], row_weight=weight)
    assert as_floats.counts.dtype.kind in "iu"
    np.testing.assert_array_equal(as_floats.counts, counts)


def peak_of(work) -> float:
    """Bytes that numpy and Python held at most while `work` ran, beyond those before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_a_problem_is_checked_without_copies(rng):
    n, B = 50_000, 400
    X, y = rng.normal(size=(n, 40)), np.where(rng.uniform(size=n) < 0.5, -1.0, 1.0)
    counts = drawn(rng, B, n)
    # A few columns of n numbers; X is 16 MB, and so much as a byte for each count 20 MB.
    assert peak_of(lambda: Problem(X, y, counts, [1.0])) < 10 * 8 * n < 5 * MB


def test_scale_of_many_rows_is_found_in_blocks(rng):
    n, p, B = 50_000, 80, 200
    X, counts = rng.normal(size=(n, p)), drawn(rng, B, n)
    # Blocks of 4 MiB and a few columns; squares of X are 32 MB, counts as floats 80 MB.
    budget = 4 * 2**22 + 10 * 8 * n
    assert budget < 21 * MB
    assert peak_of(lambda: center_and_scale(X, np.ones(n))) < budget
    assert peak_of(lambda: bootstrap_scale(X, counts, np.ones(n))) < budget


def test_out_of_bag_scores_of_many_rows_are_not_held(rng):
    n, B = 50_000, 200
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + rng.normal(size=n) > 0
    few = slice(0, 200)
    counts = drawn(rng, B, n)
    models = fit(Problem(X[few], np.where(y[few], 1, -1), counts[:, few], [0.1, 1.0]), tol=1e-2)
    ones = np.ones(n)

    def work() -> None:
        machines = WeighedMachines(models, np.array([0.4, 0.6]), X, counts)
        score_out_of_bag(machines, y, ones, align=True)

    # Calibration takes some 20 columns of n numbers, chunks a few blocks; all scores are 80 MB.
    budget = 30 * 8 * n + 6 * 2**22
    assert budget < 38 * MB
    assert peak_of(work) < budget


_FIT = """
    import numpy as np, torch
    from bootprob import BootstrapSVC

    def memory(field):
        lines = open("/proc/self/status").read().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))

    def fit(n):
        X = rng.normal(size=(n, {p}))
        y = X[:, 0] + rng.normal(size=n) > 0
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # forgets the peak so far
        before = memory("VmRSS")
        BootstrapSVC(
            C={C}, n_bootstraps={B}, tol=0.01, random_state=0, device="cpu", memory_limit={limit}
        ).fit(X, y)
        return memory("VmHWM") - before

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    fit(200)  # loads and compiles what has to be
    print(fit({n}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.endurance
def test_peak_memory_of_a_fit_does_not_follow_the_models():
    n, p, B, C = 50_000, 4, 100, [0.1, 0.4, 1.6]
    R = len(C)
    script = textwrap.dedent(_FIT.format(n=n, p=p, B=B, C=C, limit=20_000_000))
    # Large blocks go back to the system when they are freed, so that the peak is what was alive.
    end = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"},
    )
    assert end.returncode == 0, end.stderr
    rows = 8 * n * (p + 1)
    budget = (
        n * B  # the counts
        + 6 * rows  # standardised, for the solver, of one path, and while medians are found
        + 8 * n * 6 * R  # votes, sums, boxes and scores of one replicate
        + 8 * n * 30  # a solver's state, labels, weights, calibration
        + 3 * 2**22  # blocks of rows
    )
    held = 8 * n * B * R  # what a score, or a bound, of every row and model would take
    assert int(end.stdout) < budget < held / 2
