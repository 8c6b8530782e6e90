"""Was every machine solved? Certificates, and what to do about those that were not."""

from __future__ import annotations

from typing import Any

import numpy as np

from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.report.model.sections.section import Measured, Section
from bootprob_gpu import Status

__all__ = ["SECTION"]


def _content(of: Measured) -> dict[str, Any]:
    if not isinstance(of.model, BootstrapSVC):
        return {"convergence": None}
    of_pairs = [each.certificates_ for each in of.model.pair_ensembles_ or [of.model]]
    certificates = {name: np.concatenate([each[name] for each in of_pairs]) for name in of_pairs[0]}
    status = certificates["status"]
    convergence = {
        "n_models": status.size,
        "n_unsolved": int((~np.isin(status, (Status.CONVERGED, Status.SINGLE_CLASS))).sum()),
        "not_converged": [
            {"status": s.name, "count": int((status == s).sum()), "advice": s.advice}
            for s in Status
            if s != Status.CONVERGED and (status == s).any()
        ],
        "largest_gap": certificates["gap"].max(),
        "median_iterations": np.median(certificates["n_iter"]),
        "largest_iterations": certificates["n_iter"].max(),
    }
    return {"convergence": convergence}


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["convergence"] for model in content["models"])


SECTION = Section("convergence", "Convergence", _content, is_shown=_is_shown)
