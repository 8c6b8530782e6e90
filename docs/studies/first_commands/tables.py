"""Tables as people have them, in files as people have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

__all__ = ["write_tables"]


def write_tables(folder: Path) -> None:
    """Write what the commands are given.

    ``customers.csv`` has semicolons and decimal commas, a number of the customer, a date, gaps, and
    customers of whom nobody knows yet whether they leave.
    """
    table = _customers(120)
    _write(table, folder / "customers.csv")
    known = table[table["churn"] != ""]
    _write(known, folder / "known.csv")
    _write(known[known["churn"] == "yes"], folder / "leavers.csv")
    known.to_excel(folder / "known.xlsx", index=False)
    (folder / "book.csv").write_bytes((folder / "known.xlsx").read_bytes())
    (folder / "customers.txt").write_bytes((folder / "customers.csv").read_bytes())
    (folder / "empty.csv").touch()
    (folder / "data").mkdir()
    new = table[table["churn"] == ""].drop(columns="churn")
    _write(new, folder / "new.csv")
    _write(new.drop(columns="age"), folder / "without_age.csv")
    _write(new.assign(region="center", phone="555"), folder / "other.csv")
    _write(new.assign(age="old"), folder / "words.csv")
    flowers = load_iris(as_frame=True)
    species = flowers.frame.pop("target").map(dict(enumerate(flowers.target_names)))
    flowers.frame.assign(species=species).to_csv(folder / "flowers.csv", index=False)


def _write(table: pd.DataFrame, path: Path) -> None:
    table.to_csv(path, index=False, sep=";", decimal=",")


def _customers(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age, contract = rng.integers(18, 80, n), rng.choice(["monthly", "yearly"], n)
    logit = 1.5 * (contract == "monthly") - 0.04 * (age - 45) - 0.5
    leaves = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "yes", "no")
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D")
    return pd.DataFrame(
        {
            "customer": [f"C{1000 + k}" for k in range(n)],
            "signed_up": days.strftime("%Y-%m-%d"),
            "age": np.where(rng.random(n) < 0.08, "", age.astype(str)),
            "income": rng.lognormal(8, 0.3, n).round(2),
            "region": np.where(rng.random(n) < 0.05, "", rng.choice(["north", "south", "west"], n)),
            "contract": contract,
            "churn": np.where(rng.random(n) < 0.04, "", leaves),
        }
    )
