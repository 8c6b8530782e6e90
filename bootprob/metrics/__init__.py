"""How good probabilities and decisions are, with bounds: functions of labels and probabilities."""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.metrics.classes import class_metrics
    from bootprob.metrics.intervals import MetricInterval, metric_intervals
    from bootprob.metrics.reliability import ReliabilityCurve, reliability_curve

__all__ = [
    "MetricInterval",
    "ReliabilityCurve",
    "class_metrics",
    "metric_intervals",
    "reliability_curve",
]

__getattr__ = late_names(
    __name__,
    {
        "MetricInterval": "intervals",
        "ReliabilityCurve": "reliability",
        "class_metrics": "classes",
        "metric_intervals": "intervals",
        "reliability_curve": "reliability",
    },
)
