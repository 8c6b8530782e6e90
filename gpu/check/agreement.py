"""The same ensemble trained on the CPU and on the device says the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from bootprob import BootstrapSVC
from bootprob_gpu.hardware.numba_choice import numba_loads
from gpu.check.jobs import GERMAN, Table, table
from gpu.check.record import Record

__all__ = ["run"]

_ALLOWED = 1e-6  # of a probability, in float64
# Two devices take different ways to the optimum, and end anywhere within the tolerance of it: at
# the default ones their probabilities are up to 1e-5 apart, and neither is wrong. With these, two
# solvers of one CPU are some 1e-7 apart. Far below, an interior point is at the end of float64.
_TOL = {"linear": 1e-10, "rbf": 1e-9}
# Replicates, and those of a CPU without Numba: 3 s a replicate and core (Wisconsin, RBF).
_JOBS = (
    ("Wisconsin", "linear", 200, 200),
    (GERMAN, "linear", 100, 100),
    ("Wisconsin", "rbf", 50, 5),
    (GERMAN, "rbf", 20, 2),
)


def run(record: Record) -> None:
    """Probabilities and ends of intervals of rows that were held out; the smallest job first.

    What the CPU says is reported before the device is asked, and what one device says before the
    next job begins: a limit of time costs what was under way.
    """
    for name, kernel, with_numba, without in _JOBS:
        source = table(name)
        replicates = record.size(with_numba if numba_loads() else without, 4)
        third = np.arange(len(source.X)) % 3 == 0
        held_out = record.size(third, ~third)
        title = f"{source.title}, {kernel}"
        said = {
            "replicates": replicates,
            "rows held out": int(held_out.sum()),
            "CPU by": "Numba" if numba_loads() else "plain torch",
        }

        def answers(
            device: str, dtype: str, kernel=kernel, source=source, B=replicates, held_out=held_out
        ) -> tuple[BootstrapSVC, dict[str, Any]]:
            model = BootstrapSVC(
                kernel=kernel,
                n_bootstraps=B,
                device=device,
                dtype=dtype,
                tol=_TOL[kernel] if dtype == "float64" else None,
                random_state=0,
            ).fit(source.X[~held_out], source.positive[~held_out])
            return model, _answers(model, source, held_out)

        model, expected = answers("cpu", "float64")
        half = f"{title}, CPU, float64"
        record.measured(half, {**said, "seconds to fit": round(model.fit_seconds_, 2)})
        for dtype in ("float64", "float32"):
            model, found = answers(str(record.device), dtype)
            apart = {key: _apart(expected[key], values) for key, values in found.items()}
            record.measured(
                f"{title}, {dtype}",
                {
                    **said,
                    **{f"largest difference of {key}": value for key, value in apart.items()},
                    "seconds to fit": round(model.fit_seconds_, 2),
                },
            )
            if dtype == "float64":
                record.promise(
                    f"{title}: CPU and {record.device.type.upper()} agree in float64 to "
                    f"{_ALLOWED:g} in probability",
                    apart["probabilities"] <= _ALLOWED,
                    found=apart["probabilities"],
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
