"""`BootstrapSVC`: training, probabilities, intervals and sets of a bootstrap ensemble.

The two estimators, and functions of a fitted one: `prediction_sets` (docs/prediction_sets.md),
`out_of_bag_intervals` (docs/metric_intervals.md), `out_of_bag_subgroups` and `subgroup_rates`
(docs/subgroups.md), `probability_sensitivity` (docs/sensitivity.md). What the intervals measure:
docs/intervals.md.
"""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.ensemble.classifier import BootstrapClassifier
    from bootprob.ensemble.conformal import conformal_p_values, prediction_sets
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.ensemble.out_of_bag_metrics import out_of_bag_intervals
    from bootprob.ensemble.out_of_bag_proba import cross_fitted_proba
    from bootprob.ensemble.rates_in_subgroups import SubgroupRates, subgroup_rates
    from bootprob.ensemble.sensitivity import ProbabilitySensitivity, probability_sensitivity
    from bootprob.ensemble.subgroups import out_of_bag_subgroups

__all__ = [
    "BootstrapClassifier",
    "BootstrapSVC",
    "ProbabilitySensitivity",
    "SubgroupRates",
    "conformal_p_values",
    "cross_fitted_proba",
    "out_of_bag_intervals",
    "out_of_bag_subgroups",
    "prediction_sets",
    "probability_sensitivity",
    "subgroup_rates",
]

__getattr__ = late_names(
    __name__,
    {
        "BootstrapClassifier": "classifier",
        "BootstrapSVC": "estimator",
        "ProbabilitySensitivity": "sensitivity",
        "SubgroupRates": "rates_in_subgroups",
        "conformal_p_values": "conformal",
        "cross_fitted_proba": "out_of_bag_proba",
        "out_of_bag_intervals": "out_of_bag_metrics",
        "out_of_bag_subgroups": "subgroups",
        "prediction_sets": "conformal",
        "probability_sensitivity": "sensitivity",
        "subgroup_rates": "rates_in_subgroups",
    },
)
