"""Log-odds of one of several classes against all others, looked at together, with intervals.

What is asked of the class is ``Σ_i a_i logit p_k(x_i)``. To first order what is not known of it is
that of the pairs of classes, each through ``Σ_i a_i s_ij logit(pair j at x_i)`` with
``s_ij = ∂ logit p_k(x_i) / ∂ logit(pair j)``: a combination as of two classes, whose interval is
joint over the rows. Those of the pairs are put together as those of probabilities are
(`bootprob.ensemble.several_classes`).
"""

from __future__ import annotations

import numpy as np
from scipy.special import logit

from bootprob.calibration.coupling import couple, coupling_derivative
from bootprob.calibration.logits import CLOSEST, logits_of
from bootprob.ensemble.scoring.rows import Rows
from bootprob.ensemble.several_classes import SeveralClasses, correlations, joint_width
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.intervals.mixtures import of_mixture
from bootprob.intervals.replicates import percentile
from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["of_class_posterior", "of_class_replicates"]


def of_class_posterior(
    several: SeveralClasses[TwoClasses], number: int, rows: Rows, mixing: Floats, level: float
) -> Floats | None:
    """Intervals (q, 2) of combinations (q, m) of a class's log-odds, by the pairs' posteriors.

    None where the pairs have none.
    """
    pairs, method = several.ensembles, several.coupling
    second = np.stack([each.predict_proba(rows)[:, 1] for each in pairs], axis=1)
    second = second.clip(CLOSEST, 1 - CLOSEST)
    p = couple(second, method).clip(CLOSEST, 1 - CLOSEST)
    own = p[:, number]
    slope = coupling_derivative(second, p, method)[:, number] / (own * (1 - own))[:, None]
    down, up, replicates = [], [], []
    for pair, of_pair, probability in zip(pairs, slope.T, second.T, strict=True):
        combined = mixing * of_pair
        moments = pair.scores.combined_logits(rows, combined)
        if moments is None:
            return None
        bounds = of_mixture(moments, pair.state.kernel_posterior_["weight"], level)
        middle = combined @ logit(probability)
        down.append(np.maximum(middle - bounds[:, 0], 0.0))
        up.append(np.maximum(bounds[:, 1] - middle, 0.0))
        replicates.append(np.zeros((len(mixing), 2 * pair.n_replicates)))
        for block in row_blocks(len(rows), 2 * pair.n_replicates):
            replicates[-1] += combined[:, block] @ pair.logits_both_ways(rows[block])
    together = correlations(np.stack(replicates, axis=2))
    below, above = joint_width(np.stack([down, up], axis=1).T, together).T
    value = mixing @ logit(own)
    return np.stack([value - below, value + above], axis=1)


def of_class_replicates(
    several: SeveralClasses[TwoClasses], number: int, rows: Rows, mixing: Floats, level: float
) -> Floats:
    """The same as percentiles of the replicates, each coupled by itself."""
    B, K = several.ensembles[0].n_replicates, len(several.classes)
    found = np.zeros((len(mixing), B))
    for block in row_blocks(len(rows), B * K):
        logits = logits_of(several.replicate_proba(rows[block])[..., number])
        found += mixing[:, block] @ logits
    return percentile(found, level)
