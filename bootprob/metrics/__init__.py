"""How good probabilities and decisions are, with bounds: functions of labels and probabilities.

For rows that the model has not seen, of any model; a fitted one answers for its own rows out of
bag.

- `metric_intervals`: Brier score, log-loss, accuracy, AUC and others, each with its interval
  (docs/metric_intervals.md); `subgroup_metrics`: in each subgroup (docs/subgroups.md);
  `class_metrics`: of several classes.
- `calibration_band`, `reliability_curve`, `calibration_line`, `calibration_tests`: are
  probabilities right on average? (docs/calibration_band.md)
- `stability`, `effective_sample_size`, `net_benefit`: how far other training rows would move them,
  and what decisions by them are worth (docs/stability.md).
"""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.metrics.calibration_bands import CalibrationBand, calibration_band
    from bootprob.metrics.classes import class_metrics
    from bootprob.metrics.decision_curves import net_benefit
    from bootprob.metrics.intervals import MetricInterval, metric_intervals
    from bootprob.metrics.logistic_calibration import CalibrationCurve, calibration_line
    from bootprob.metrics.prediction_stability import Stability, effective_sample_size, stability
    from bootprob.metrics.reliability import ReliabilityCurve, reliability_curve
    from bootprob.metrics.subgroups import Subgroup, Subgroups, subgroup_metrics
    from bootprob.metrics.tests_of_calibration import CalibrationTest, calibration_tests

__all__ = [
    "CalibrationBand",
    "CalibrationCurve",
    "CalibrationTest",
    "MetricInterval",
    "ReliabilityCurve",
    "Stability",
    "Subgroup",
    "Subgroups",
    "calibration_band",
    "calibration_line",
    "calibration_tests",
    "class_metrics",
    "effective_sample_size",
    "metric_intervals",
    "net_benefit",
    "reliability_curve",
    "stability",
    "subgroup_metrics",
]

__getattr__ = late_names(
    __name__,
    {
        "CalibrationBand": "calibration_bands",
        "CalibrationCurve": "logistic_calibration",
        "CalibrationTest": "tests_of_calibration",
        "MetricInterval": "intervals",
        "ReliabilityCurve": "reliability",
        "Stability": "prediction_stability",
        "calibration_band": "calibration_bands",
        "calibration_line": "logistic_calibration",
        "calibration_tests": "tests_of_calibration",
        "Subgroup": "subgroups",
        "Subgroups": "subgroups",
        "class_metrics": "classes",
        "effective_sample_size": "prediction_stability",
        "metric_intervals": "intervals",
        "net_benefit": "decision_curves",
        "reliability_curve": "reliability",
        "stability": "prediction_stability",
        "subgroup_metrics": "subgroups",
    },
)
