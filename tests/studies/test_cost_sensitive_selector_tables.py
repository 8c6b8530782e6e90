"""The study of thesis chapter 4: its comparison method, its parts, its document."""

import numpy as np
import pytest

from docs.studies.thesis import tables_4
from docs.studies.thesis.cardinality_bounded import cardinality_bounded
from docs.studies.thesis.numbers_4 import TABLE_4_2, TABLE_4_4, TABLE_4_9, TABLES
from docs.studies.thesis.tables_4_document import main as write_document
from gpu.benchmarks.common.study_results import save


def clouds(rng, n=60, p=4):
    positive = rng.permutation(np.arange(n) < 0.6 * n)
    return rng.normal(size=(n, p)) + 2.5 * positive[:, None] * (np.arange(p) == 1), positive


def test_printed_numbers():
    assert set(TABLE_4_9) == set(range(1, 35))
    assert np.sum(TABLE_4_4) == 690
    for rows in TABLES.values():
        assert set(rows) <= set(TABLE_4_2)
        for _, (accuracy, tpr, tnr) in rows.values():
            # A mean over both classes, up to means over folds.
            assert min(tpr, tnr) - 0.01 <= accuracy <= max(tpr, tnr) + 0.01


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_columns_than_allowed_and_the_telling_one_first(rng, most):
    X, positive = clouds(rng)
    chosen = cardinality_bounded(X, positive, most)
    assert 1 <= len(chosen) <= most
    assert 1 in chosen


def test_a_copied_column_does_not_leave_none(rng):
    X, positive = clouds(rng)
    assert len(cardinality_bounded(X[:, [1, 1, 1]], positive, 1)) == 1


def test_thresholds(rng):
    positive = np.arange(50) < 30
    floors = {"tpr": 0.8, "tnr": 0.9}
    assert tables_4._shares(floors, positive, "4.3") == floors
    more = tables_4._shares(floors, positive, "4.4")
    assert more["tpr"] == min(1.0, 0.8 + np.sqrt(-np.log(0.05) / 60))
    assert more["tnr"] == 1.0


def test_the_study_measures_once_and_says_what_it_measured(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(tables_4, "POWERS", [0.1, 1.0])
    monkeypatch.setattr(tables_4, "SMALL", 60)
    X, positive = clouds(rng)
    settings = {"seconds": 2.0, "folds": 3, "seed": 0}
    found = {"settings": settings}
    kept = []
    tables_4.measure("wisconsin", X, positive, found, lambda: kept.append(len(found)))
    n = len(kept)
    assert n == 10
    tables_4.measure("wisconsin", X, positive, found, lambda: kept.append(len(found)))
    assert len(kept) == n  # nothing again
    svm = found["svm"]["value"]
    assert len(svm) == 3
    assert found["floors"]["tpr"] == pytest.approx(np.mean([r["tpr"] for r in svm]) - 0.025)
    chosen = found["selected by 4.3"]["value"]
    for row, other in zip(chosen, found["compared with 4.3"]["value"], strict=True):
        assert (row["features"] == []) == (other is None)
        assert other is None or 1 <= other["columns"] <= len(row["features"])
    save(tmp_path / "results" / tables_4.FILE, "test", {"data sets": {"wisconsin": found}})
    text = write_document(tmp_path).read_text(encoding="utf-8")
    assert f"{np.mean([row['acc'] for row in svm]):.3f}" in text
    assert "Not measured: votes; nursery;" in text


def test_the_document_without_results(tmp_path):
    assert "Not measured: wisconsin" in write_document(tmp_path).read_text(encoding="utf-8")
