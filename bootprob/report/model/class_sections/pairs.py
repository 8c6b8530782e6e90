"""What stands behind the classes: the ensemble of each pair of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from bootprob.calibration.coupling import class_pairs
from bootprob.ensemble.out_of_bag_proba import cross_fitted_proba
from bootprob.report.model.members import weights_of
from bootprob.report.model.row_samples import median_width, out_of_bag_method
from bootprob.report.model.sections.section import Measured, Section

__all__ = ["SECTION"]


def _content(of: Measured) -> dict[str, Any]:
    model = of.model
    method = out_of_bag_method(model)
    pairs = zip(class_pairs(len(model.classes_)), model.pair_ensembles_, strict=True)
    return {
        "coupling": model.coupling,
        "interval_method": method,
        "pairs": [
            {
                "classes": both,
                "n_rows": int((pair.sample_weight_ > 0).sum()),
                "kernel_weights": weights_of(pair),
                "calibration": pair.calibration_,
                "log_loss": _log_loss(pair),
                "median_width": _width(pair, of.level, method),
                "lack_of_fit": pair.lack_of_fit_,
            }
            for both, pair in pairs
        ],
    }


def _log_loss(pair: Any) -> float | None:
    """Out of bag, by calibrators that had not seen the row; None where no row can be judged."""
    p = cross_fitted_proba(pair)
    known = np.isfinite(p) & (pair.sample_weight_ > 0)
    if not known.any():
        return None
    weight = pair.sample_weight_[known]
    return float(log_loss(pair.y_[known], p[known], sample_weight=weight, labels=[0, 1]))


def _width(pair: Any, level: float, method: str) -> float | None:
    """Median width of the interval of the pair's probability over its rows, out of bag."""
    counted = pair.sample_weight_ > 0
    return median_width(pair.oob_proba_interval(level, method)[counted, 1])


SECTION = Section("pairs", "Pairs of classes", _content, folder="class_sections")
