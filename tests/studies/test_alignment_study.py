"""The alignment study: data as the paper prepares them, printed cells, the document."""

import numpy as np
import pytest

pytest.importorskip("cvxpy")

from docs.studies.alignment import study as alignment_study
from docs.studies.alignment.data import POSITIVE, clusters_on_cubes, prepared
from docs.studies.alignment.numbers import PRINTED, STOPPED
from docs.studies.alignment.rivals import CHOOSE
from gpu.benchmarks.common.datasets import at_hand
from gpu.benchmarks.common.study_results import standardised

SHAPES = {
    "hepatitis": (138, 15),
    "zoo": (101, 16),
    "parkinsons": (195, 22),
    "soybean-small": (47, 45),
}


@pytest.mark.parametrize("name", list(POSITIVE))
def test_the_papers_cells_with_three_columns(name):
    if not at_hand(name):
        pytest.skip(f"{name} is not at hand")
    X, y = prepared(name)
    assert X.shape == SHAPES[name]
    for beta in (0.25, 1.0, 4.0):
        printed, _, seconds = PRINTED[name][3, beta]
        found = alignment_study.search(X, y, 3, beta, None)
        assert found["status"] == "optimal"
        if seconds < STOPPED:
            assert abs(found["objective"] - printed) <= 0.0005 + 1e-9
        else:
            assert found["objective"] > printed


def test_clusters_on_cubes(rng):
    X, y = clusters_on_cubes(rng, 4000, 3, 6, 0.01)
    corners = np.abs(X[:, :3]).round(-2)
    assert (np.ptp(corners, axis=1) == 0).all()
    widths, counts = np.unique(corners[:, 0], return_counts=True)
    assert widths.tolist() == [100, 300, 500]
    np.testing.assert_allclose(counts / 4000, [1 / 7, 2 / 7, 4 / 7], atol=0.05)
    inner = corners[:, 0] == 100
    corner = (X[:, :3] > 0) @ [1, 2, 4]
    for each in range(8):  # one class outside, the other inside
        [outside] = np.unique(y[(corner == each) & ~inner])
        [inside] = np.unique(y[(corner == each) & inner])
        assert outside != inside
    assert np.abs(np.corrcoef(X[:, 3:].T, y)[-1, :-1]).max() < 0.1


@pytest.mark.parametrize("name", list(CHOOSE))
def test_every_method_finds_the_only_column_that_matters(rng, name):
    X = rng.normal(size=(60, 5))
    y = rng.permutation(np.arange(60) < 30)
    X[:, 3] += 6 * y
    support = CHOOSE[name](standardised(X), y, 1)
    assert np.flatnonzero(support).tolist() == [3]


def test_the_document_shows_what_was_measured(rng, monkeypatch, tmp_path):
    monkeypatch.setattr(alignment_study, "TEST_ROWS", 100)
    found = alignment_study.synthetic(25.0, 3, 50, 10, 2)
    assert all(len(each["F1"]) == 2 for each in found.values())
    X, y = clusters_on_cubes(rng, 40, 3, 5, 25.0)
    results = {
        "environment": {
            "date": "2000-01-01", "commit": "abc", "uncommitted changes": False,
            "processor": "P", "cores": 1,
        },
        "tables": {"zoo 3 1": alignment_study.search(X, y, 2, 1.0, None)},
        "synthetic": {"25 3 50 10": found},
    }  # fmt: skip
    text = alignment_study.render(results)
    assert "| zoo | 40 × 5 | 3 | 1.0 | 0.916 |" in text
    assert "| parkinsons | not measured | 7 |" in text
    assert "| 25 | 3 | 50 | 10 | 2 |" in text
