"""Scored tables for the tests, and the truth about them computed in plain numpy."""

from __future__ import annotations

import numpy as np
import pandas as pd


def scored_table(rng: np.random.Generator, n: int = 400) -> pd.DataFrame:
    """What ``bootprob predict`` writes, with made-up numbers and a column kept from the input."""
    p = rng.beta(0.8, 1.5, n)
    half = rng.uniform(0.001, 0.3, n)
    return pd.DataFrame(
        {
            "customer": [f"C{k:05d}" for k in rng.permutation(n)],
            "secret": rng.integers(10**8, 10**9, n),
            "probability": p,
            "probability_lower": np.maximum(p - half, 0),
            "probability_upper": np.minimum(p + half, 1),
            "label": np.where(p > 0.5, "bad", "good"),
            "score": rng.normal(size=n),
        }
    )
