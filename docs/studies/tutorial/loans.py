"""The tables of the tutorial: loans that nobody took, with a truth that is known.

    python -m docs.studies.tutorial.loans

Writes loans.csv (of which the outcome is known), applicants.csv (of which it is not yet) and
truth.csv (what nobody knows in life: their true probabilities) into docs/tutorial.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from bootprob.runtime.arrays import Floats
from gpu.benchmarks.common.places import DOCS

__all__ = ["FOLDER", "main", "write_tables"]

FOLDER = DOCS / "tutorial"


def _loans(rng: np.random.Generator, n: int) -> tuple[pd.DataFrame, Floats]:
    """Rows, and the probability of each that the loan is not paid back."""
    age = rng.integers(21, 71, n)
    income = np.round(np.exp(rng.normal(3.5, 0.4, n)), 1)
    amount = np.round(np.exp(rng.normal(2.2, 0.6, n)), 1)
    job = rng.choice(["permanent", "temporary", "self-employed"], n, p=[0.65, 0.2, 0.15])
    housing = rng.choice(["owned", "rented", "family"], n, p=[0.4, 0.45, 0.15])
    late = rng.poisson(0.6, n)
    years = rng.integers(0, 15, n).astype(float)
    burden = np.log(amount / income) + 1.3
    logit = -1.9 + 1.1 * burden + 0.5 * np.maximum(burden, 0) ** 2 + 0.9 * np.minimum(late, 2)
    logit += (
        0.7 * (job == "temporary") + 0.4 * (job == "self-employed") - 0.5 * (housing == "owned")
    )
    logit += 0.0012 * (age - 45) ** 2 - 0.3 - 0.08 * (years - 5)
    years[rng.random(n) < 0.08] = np.nan  # nobody wrote it down
    table = pd.DataFrame(
        {
            "age": age,
            "income": income,
            "amount": amount,
            "job": job,
            "housing": housing,
            "late_payments": late,
            "years_at_bank": pd.array(years, dtype="Int64"),
        }
    )
    return table, expit(logit)


def write_tables(folder: Path) -> None:
    """Write the three tables into a folder.

    Parameters
    ----------
    folder : Path
    """
    rng = np.random.default_rng(7)
    loans, truth = _loans(rng, 800)
    loans["defaulted"] = np.where(rng.random(len(loans)) < truth, "yes", "no")
    applicants, unknown = _loans(rng, 200)
    applicants.insert(0, "applicant", np.arange(1, len(applicants) + 1))
    truths = applicants[["applicant"]].assign(probability=unknown.round(4))
    for name, table in (("loans", loans), ("applicants", applicants), ("truth", truths)):
        table.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def main() -> None:
    """Write them where the tutorial links to them."""
    write_tables(FOLDER)


if __name__ == "__main__":
    main()
