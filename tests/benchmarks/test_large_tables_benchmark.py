"""The benchmark of large tables: its truths, and what its document says of results."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import expit

from gpu.benchmarks.large_tables import METHODS, NAMES, main, measure, table


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_drawn_from_the_truth(name):
    X, y, logit = table(name, 4000, 20)
    assert X.shape == (4000, 20)
    np.testing.assert_array_equal(table(name, 4000, 20)[1], y)
    if logit is not None:  # 4,000 labels: six standard errors are .05
        assert abs((y - expit(logit)).mean()) < 0.05
        assert np.corrcoef(y, expit(logit))[0, 1] > 0.3


@pytest.mark.endurance
def test_a_fit_is_measured_and_cases_that_are_there_are_shown(tmp_path, monkeypatch):
    monkeypatch.setattr("gpu.benchmarks.large_tables.NEW_ROWS", 300)
    ours = measure("bootprob", "linear", 120, 8) | {"load": 1.0, "commit": "a"}
    assert ours["least log-loss"] < ours["log-loss"] < 2.0
    assert 0.5 < ours["coverage"] <= 1
    assert ours["GiB"] > 0.05
    found = [{"size": "120x8", "table": "linear", "method": method} | ours for method in METHODS]
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "large_tables.json").write_text(json.dumps({"cases": found}))
    main(["linear"], ["120x8"], tmp_path)
    text = (tmp_path / "large_tables.md").read_text("utf-8")
    assert f"| 120 × 8 | linear | {ours['least log-loss']:.4f} | {ours['log-loss']:.4f} |" in text
    assert "| 1.00 |" in text
