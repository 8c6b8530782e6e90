"""Confidence intervals for probabilities and for scores, each from its formula alone.

Functions of arrays: `wald` and `wilson` for shares of votes; `percentile`, `basic`, `bca` and
`studentised` for replicates; `jackknife_variance` and `after_bootstrap_variance` for the variance
of a mean. Which of them a model offers, and what each measures: docs/intervals.md.
"""

from bootprob.intervals.jackknife import (
    acceleration,
    after_bootstrap_gram,
    after_bootstrap_variance,
    counts_gram,
    jackknife_variance,
)
from bootprob.intervals.levels import (
    OF_SCORES,
    check_level,
    check_score_method,
    normal_quantile,
    separated,
    student_quantile,
)
from bootprob.intervals.mixtures import of_mixture
from bootprob.intervals.replicates import basic, bca, percentile, studentised
from bootprob.intervals.votes import OF_VOTES, of_votes, wald, wilson

__all__ = [
    "OF_SCORES",
    "OF_VOTES",
    "acceleration",
    "after_bootstrap_gram",
    "after_bootstrap_variance",
    "basic",
    "bca",
    "check_level",
    "check_score_method",
    "counts_gram",
    "jackknife_variance",
    "normal_quantile",
    "of_mixture",
    "of_votes",
    "percentile",
    "separated",
    "student_quantile",
    "studentised",
    "wald",
    "wilson",
]
