"""The methods that the papers compare with: thesis tables 3.2 and 3.3, each an estimator.

`PlattSVC`, `BestCSVC`, `PosteriorProbabilitySVC` and `SollichSVC` give probabilities of a single
machine, to compare with. How they do: docs/baselines.md.
"""

from bootprob.baselines.best_c import BestCSVC
from bootprob.baselines.inner_cross_validation import PAPER_C
from bootprob.baselines.platt import PlattSVC
from bootprob.baselines.posterior_probability import PosteriorProbabilitySVC
from bootprob.baselines.sollich import SollichSVC

__all__ = ["PAPER_C", "BestCSVC", "PlattSVC", "PosteriorProbabilitySVC", "SollichSVC"]
