"""Would other training rows have given other probabilities? Each class against the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from bootprob.ensemble.fitted import ensemble_of
from bootprob.ensemble.replicate_stability import replicate_probabilities
from bootprob.metrics.prediction_stability import effective_sample_size
from bootprob.report.model.sections.section import Measured, Section
from bootprob.report.model.sections.stability import asked_rows

__all__ = ["SECTION"]


def _content(of: Measured) -> dict[str, Any]:
    asked = None if of.model.calibration is None else asked_rows(of)
    if asked is None:
        return {"stability": None}
    p = ensemble_of(of.model).predict_proba(asked.rows)
    replicates = replicate_probabilities(of.model, asked.rows)
    apart = np.abs(replicates - p).mean(axis=0)
    other = (replicates.argmax(axis=2) != p.argmax(axis=1)).mean(axis=0)
    return {
        "stability": {
            "held_out": asked.held_out,
            "n_rows": len(asked.codes),
            "n_rows_in_all": asked.n_rows_in_all,
            "n_replicates": len(replicates),
            "mean_classification_instability": np.average(other, weights=asked.weights),
            "classes": [
                {
                    "mean_absolute_error": np.average(apart[:, k], weights=asked.weights),
                    "median_effective_sample_size": np.median(
                        effective_sample_size(p[:, k], replicates[:, :, k])
                    ),
                }
                for k in range(p.shape[1])
            ],
        }
    }


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["stability"] for model in content["models"])


SECTION = Section(
    "stability", "Other training rows", _content, is_shown=_is_shown, folder="class_sections"
)
