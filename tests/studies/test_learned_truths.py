"""Truths that models learned: what is measured of one table; the page shows what was measured."""

from __future__ import annotations

import json

import numpy as np
import pytest

from docs.studies.coverage import learned_truths
from docs.studies.coverage.learned_truths import COMPARED, PAGE, RESULTS, SHAPES, tables_of


def test_what_is_measured_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    positive = X[:, 0] + rng.normal(size=150) > 0
    plane = next(iter(SHAPES))
    monkeypatch.setattr(learned_truths, "SHAPES", {plane: SHAPES[plane]})
    monkeypatch.setattr(learned_truths, "COMPARED", ("BootstrapSVC", "Gaussian process"))
    found = learned_truths.measured(X, positive, 0)
    assert (found["rows"], found["columns"]) == (100, 2)
    for of_method in found["truths"][plane].values():
        assert of_method["coverage"] > 0.8
        assert 0 < of_method["width"] < 0.5
    few = np.arange(150) < 25
    assert learned_truths.measured(X, few & positive, 0)["truths"] == {}


def test_the_page_shows_what_was_measured() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert len(results["tables"]) == 24
    for each in results["tables"].values():
        assert all(set(of_truth) == set(COMPARED) for of_truth in each["truths"].values())
    for table in tables_of(results).values():
        assert table in page
