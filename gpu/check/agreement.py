"""The same ensemble trained on the CPU and on the device says the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from jobs import GERMAN, Table, table
from record import Record

from bootprob import BootstrapSVC

__all__ = ["run"]

_ALLOWED = 1e-6  # of a probability, in float64
# Two devices take different ways to the optimum, and end anywhere within the tolerance of it: at
# the default ones their probabilities are up to 1e-5 apart, and neither is wrong. With these, two
# solvers of one CPU are some 1e-7 apart. Far below, an interior point is at the end of float64.
_TOL = {"linear": 1e-10, "rbf": 1e-9}


def run(record: Record) -> None:
    """Probabilities and ends of intervals of rows that were held out."""
    jobs = (
        ("Wisconsin", "linear", 200),
        ("Wisconsin", "rbf", 50),
        (GERMAN, "linear", 100),
        (GERMAN, "rbf", 20),
    )
    largest = 0.0
    for name, kernel, replicates in jobs:
        source = table(name)
        replicates = record.size(replicates, 4)
        third = np.arange(len(source.X)) % 3 == 0
        held_out = record.size(third, ~third)
        said: dict[str, dict[str, np.ndarray]] = {}
        for device, dtype in (
            ("cpu", "float64"),
            (str(record.device), "float64"),
            (str(record.device), "float32"),
        ):
            model = BootstrapSVC(
                kernel=kernel,
                n_bootstraps=replicates,
                device=device,
                dtype=dtype,
                tol=_TOL[kernel] if dtype == "float64" else None,
                random_state=0,
            ).fit(source.X[~held_out], source.positive[~held_out])
            answers = _answers(model, source, held_out)
            if not said:
                said["cpu"] = answers
                continue
            found = {key: _apart(said["cpu"][key], values) for key, values in answers.items()}
            record.measured(
                f"{source.title}, {kernel}, {dtype}",
                {
                    "replicates": replicates,
                    "rows held out": int(held_out.sum()),
                    **{f"largest difference of {key}": value for key, value in found.items()},
                    "seconds to fit": round(model.fit_seconds_, 2),
                },
            )
            if dtype == "float64":
                largest = np.fmax(largest, found["probabilities"])
    record.promise(
        f"CPU and {record.device.type.upper()} agree in float64 to {_ALLOWED:g} in probability",
        largest <= _ALLOWED,
        found=float(largest),
        allowed=_ALLOWED,
    )


def _answers(model: BootstrapSVC, source: Table, rows: np.ndarray) -> dict[str, Any]:
    X = source.X[rows]
    return {
        "probabilities": model.predict_proba(X),
        "ends of normal intervals": model.proba_interval(X, method="normal"),
        "ends of percentile intervals": model.proba_interval(X, method="percentile"),
        "vote shares": model.vote_proba(X),
        "out-of-bag probabilities": model.oob_proba_,
    }


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    """Largest difference; infinite where only one of the two is a number."""
    both = np.isnan(one) & np.isnan(other)
    difference = np.where(both, 0.0, np.abs(one - other))
    return float(np.where(np.isnan(difference), np.inf, difference).max())
