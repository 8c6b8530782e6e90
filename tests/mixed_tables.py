"""Tables of several kinds of columns for the tests, shaped like the German credit data."""

from __future__ import annotations

import numpy as np
import pandas as pd


def credit_table(n: int = 120, seed: int = 0, missing: float = 0.05) -> pd.DataFrame:
    """Numbers, text, yes/no, a code that looks like a number, and gaps; the target is `risk`."""
    rng = np.random.default_rng(seed)
    months = rng.integers(4, 72, n).astype(float)
    amount = np.round(rng.lognormal(7.8, 0.8, n), 2)
    status = rng.choice(["A11", "A12", "A13", "A14"], n, p=[0.3, 0.25, 0.05, 0.4])
    score = 0.05 * (months - 30) + 1.5 * (status == "A11") - 1.2 * (status == "A14")
    bad = rng.random(n) < 1 / (1 + np.exp(-score))
    table = pd.DataFrame(
        {
            "status": status,
            "months": months,
            "purpose": rng.choice(["car", "radio", "school", "other"], n),
            "amount": amount,
            "foreign": rng.random(n) < 0.1,
            "persons": rng.integers(1, 3, n),
            "branch": rng.choice(["01", "1", "02"], n),
        }
    )
    for name in ("months", "status", "amount"):
        table.loc[rng.random(n) < missing, name] = np.nan
    table["risk"] = np.where(bad, "bad", "good")
    return table
