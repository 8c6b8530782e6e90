"""The benchmark of the default's speed: what it measures, and its table."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.benchmarks.default_speed import measure, table_of

FOUND = {
    "size": [1000, 61], "load": 0.5, "fit": 20.0, "fit of the peer": 4.0, "loading": 0.2,
    "models": 9000,
    "many": {"probability": 0.9, "interval": 1.2, "peer": 0.3},
    "one": {"probability": 0.002, "interval": 0.003, "peer": 0.001},
}  # fmt: skip


def test_the_table_says_seconds_and_ratios():
    line = table_of({"tables": {"german": FOUND}}).splitlines()[-1]
    assert [each.strip() for each in line.strip("|").split("|")] == [
        "german, 1,000 × 61", "20.0 s, 9,000 models", "5.00", "0.900 s, 1.20 s", "3.00",
        "2.00 ms, 3.00 ms", "2.00",
    ]  # fmt: skip


@pytest.mark.endurance
def test_both_are_measured():
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    found = measure(X, X[:, 0] + rng.logistic(size=120) > 0, n_rows=300)
    assert found.keys() == FOUND.keys()
    assert found["models"] % 500 == 0
    assert min(found["fit"], found["fit of the peer"], *found["many"].values()) > 0
    assert found["one"]["probability"] < found["many"]["probability"]
