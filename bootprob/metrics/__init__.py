"""How good probabilities and decisions are, with bounds: functions of labels and probabilities."""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.metrics.classes import class_metrics
    from bootprob.metrics.intervals import MetricInterval, metric_intervals
    from bootprob.metrics.reliability import ReliabilityCurve, reliability_curve
    from bootprob.metrics.subgroups import Subgroup, Subgroups, subgroup_metrics

__all__ = [
    "MetricInterval",
    "ReliabilityCurve",
    "Subgroup",
    "Subgroups",
    "class_metrics",
    "metric_intervals",
    "reliability_curve",
    "subgroup_metrics",
]

__getattr__ = late_names(
    __name__,
    {
        "MetricInterval": "intervals",
        "ReliabilityCurve": "reliability",
        "Subgroup": "subgroups",
        "Subgroups": "subgroups",
        "class_metrics": "classes",
        "metric_intervals": "intervals",
        "reliability_curve": "reliability",
        "subgroup_metrics": "subgroups",
    },
)
