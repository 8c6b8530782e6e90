"""What it costs a row, on average, to follow a rule: measured on rows whose class is known.

The rule of least expected cost beside those that need no costs: the threshold one half, and the
same decision for everyone. Where a person can be asked, beside asking about none and about all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bootprob.costs.given import cost_matrix_of
from bootprob.costs.matrix import CostMatrix
from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.metrics.reliability import check_rows, groups_of_rows, resampling_parts
from bootprob.runtime.arrays import Floats
from bootprob.runtime.counted import counted
from bootprob.runtime.groups import sums_of_groups
from bootprob.runtime.whole_numbers import checked_whole

__all__ = ["RuleCost", "cost_of_rules"]


_ASK = 2  # beside 0 and 1, the answers
_LABELS = {
    "least_cost": "least expected cost",
    "one_half": "threshold one half",
    "all_positive": "always positive",
    "all_negative": "always negative",
    "ask_none": "answering all",
    "ask_all": "asking about all",
}


@dataclass(frozen=True)
class RuleCost:
    """Mean cost of following a rule, with its interval.

    Attributes
    ----------
    name : str
        "least_cost", "one_half", "all_positive" or "all_negative"; with a cost of asking also
        "ask_none" (least expected cost of the two answers) and "ask_all".
    label : str
        The same for a reader.
    cost, lower, upper : float
        Weighted mean cost of a row, and its bounds.
    saving, saving_lower, saving_upper : float
        What the rule of least cost saves a row against this one, on the same rows; 0 for itself.
    false_positives, false_negatives : int
        Rows decided wrongly.
    n_rows : int
        Rows the numbers were computed from.
    n_left_out : int
        Rows without a probability, left out.
    n_asked : int
        Rows about which a person is asked.

    Examples
    --------
    >>> from bootprob import CostMatrix
    >>> from bootprob.costs import cost_of_rules
    >>> costs = CostMatrix(false_positive=1, false_negative=5)
    >>> rules = cost_of_rules([0, 0, 1, 1], [0.1, 0.3, 0.4, 0.9], costs)
    >>> rules["one_half"].label, rules["one_half"].cost  # one positive of four rows is missed
    ('threshold one half', 1.25)
    >>> rules["one_half"].saving  # what the rule of least cost saves a row
    1.0
    """

    name: str
    label: str
    cost: float
    lower: float
    upper: float
    saving: float
    saving_lower: float
    saving_upper: float
    false_positives: int
    false_negatives: int
    n_rows: int
    n_left_out: int
    n_asked: int = 0


def cost_of_rules(
    y: ArrayLike,
    p: ArrayLike,
    cost_matrix: CostMatrix | ArrayLike,
    weights: ArrayLike | None = None,
    *,
    level: float = 0.95,
    groups: ArrayLike | None = None,
    seed: int = 0,
) -> dict[str, RuleCost]:
    """Mean cost of the rule of least expected cost, and of the rules that it competes with.

    The intervals are percentiles of a Bayesian bootstrap over rows (D. B. Rubin, Annals of
    Statistics 9 (1981) 130–134: 1,000 draws of exponential weights, on top of the rows' own), to
    which the lower bound adds one row with the best outcome that the rule can have, and the upper
    bound one with the worst; with groups of whole groups. That is Clopper and Pearson's exact
    interval where there are two outcomes; without it, errors so rare that none or few were seen
    would be taken for impossible, and the costliest ones are rare. All rules share the draws, so
    that the bounds of a saving are those of a paired comparison, much closer than those of the two
    costs suggest. The probabilities are left as they are: the interval is for the cost of the rule
    on further rows, not for that of a model trained anew.

    Parameters
    ----------
    y : array_like, shape (n,)
        1 for the positive class, 0 for the negative one.
    p : array_like, shape (n,)
        Probability of the positive class from a model that did not see the row: out of bag, by
        cross-validation, or of a test set. Rows with NaN are left out and counted.
    cost_matrix : CostMatrix, array_like of shape (2, 2) or (n, 2, 2), or DataFrame
        For all rows alike, or one for each of the n rows; as of `CostMatrix.from_array`.
    weights : array_like, shape (n,), optional
        Row weights; rows of weight 0 are as good as absent.
    level : float, default 0.95
        Nominal coverage of the intervals.
    groups : array_like, shape (n,), optional
        Which rows belong together, such as those of one subject.
    seed : int, default 0
        Seed of the resampling.

    Returns
    -------
    dict of str to RuleCost
        Keys ``least_cost``, ``one_half``, ``all_positive``, ``all_negative``; with a cost of asking
        also ``ask_none`` and ``ask_all``.

    Raises
    ------
    DataError
        For labels other than 0 and 1, probabilities outside [0, 1], weights below 0, a level
        outside (0, 1), a seed that is no whole number, costs of another number of rows, or when no
        row is left.

    Examples
    --------
    >>> from bootprob.costs import CostMatrix, cost_of_rules
    >>> costs = CostMatrix(false_positive=1, false_negative=5)
    >>> rules = cost_of_rules([0, 0, 1, 1], [0.1, 0.3, 0.4, 0.9], costs)
    >>> {name: rule.cost for name, rule in rules.items()}
    {'least_cost': 0.25, 'one_half': 1.25, 'all_positive': 0.5, 'all_negative': 2.5}
    """
    level, seed = check_level(level), checked_whole("seed", seed, 0)
    codes = groups_of_rows(groups, p, weights)
    labels, stated, weight, n_left_out = check_rows(y, p, weights)
    of_rows = cost_matrix_of(cost_matrix, np.array([0, 1]))
    if of_rows.n_rows not in (None, np.size(p)):
        given, rows = counted(of_rows.n_rows, "row"), counted(np.size(p), "row")
        raise DataError(f"There are costs of {given}, and {rows}; give one each.")
    kept = ~np.isnan(np.asarray(p, dtype=np.float64))
    if weights is not None:
        kept &= np.asarray(weights) > 0
    costs, positive = of_rows.take(kept), labels == 1
    decided = {
        "least_cost": stated > costs.threshold,
        "one_half": stated > 0.5,
        "all_positive": np.ones_like(positive),
        "all_negative": np.zeros_like(positive),
    }
    nobody = np.zeros_like(positive)
    asked = dict.fromkeys(decided, nobody)
    if costs.ask is not None:
        decided |= {"ask_none": decided["least_cost"], "ask_all": decided["least_cost"]}
        found = costs.decide(stated).ask
        assert found is not None
        asked |= {"least_cost": found, "ask_none": nobody, "ask_all": ~nobody}
    cost = np.stack(
        [
            costs.incurred(positive, decision, None if costs.ask is None else asked[name])
            for name, decision in decided.items()
        ]
    )
    measured = np.concatenate([cost, cost - cost[0]])
    sums = np.stack([sums_of_groups(each * weight, codes) for each in measured])
    bounds = _bounds(sums, sums_of_groups(weight, codes), *_extremes(costs), level, seed)
    summary = np.stack([measured @ weight / weight.sum(), *bounds], axis=1)
    of_rules, of_savings = summary.reshape(2, len(decided), 3).tolist()
    rules = {}
    for i, (name, decision) in enumerate(decided.items()):
        mean, lower, upper = of_rules[i]
        saving, saving_lower, saving_upper = of_savings[i]
        rules[name] = RuleCost(
            name=name,
            label=_LABELS[name],
            cost=mean,
            lower=lower,
            upper=upper,
            saving=saving,
            saving_lower=saving_lower,
            saving_upper=saving_upper,
            false_positives=int((decision & ~positive & ~asked[name]).sum()),
            false_negatives=int((positive & ~decision & ~asked[name]).sum()),
            n_rows=len(positive),
            n_left_out=n_left_out,
            n_asked=int(asked[name].sum()),
        )
    return rules


def _extremes(costs: CostMatrix) -> tuple[Floats, Floats]:
    """Least and largest value that a row can have: cost of each rule, then saving against it."""
    cells = costs.array if costs.n_rows is None else costs.array.mean(axis=0)
    alike = {(0, 0), (1, 1)}  # decisions of the rule of least cost and of the other rule
    at_one_half = set(alike)
    if np.min(costs.threshold) < 0.5:
        at_one_half.add((1, 0))
    if np.max(costs.threshold) > 0.5:
        at_one_half.add((0, 1))
    pairs = [alike, at_one_half, {(0, 1), (1, 1)}, {(0, 0), (1, 0)}]
    if costs.ask is not None:
        asking = np.broadcast_to(np.mean(costs.ask), 2)[:, None]  # the same for both classes
        cells = np.concatenate([cells, asking], axis=1)
        pairs = [pair | {(_ASK, other) for _, other in pair} for pair in pairs]
        pairs += [alike | {(_ASK, 0), (_ASK, 1)}, {(least, _ASK) for least in range(3)}]
        pairs[0] = alike | {(_ASK, _ASK)}
    outcomes = [cells[:, [other for _, other in pair]].ravel() for pair in pairs]
    savings = [
        np.concatenate([cells[:, other] - cells[:, least] for least, other in pair])
        for pair in pairs
    ]
    values = [*outcomes, *savings]
    return np.array([v.min() for v in values]), np.array([v.max() for v in values])


def _bounds(
    sums: Floats, weights: Floats, least: Floats, largest: Floats, level: float, seed: int
) -> tuple[Floats, Floats]:
    """Bounds (k,) of means of which rows, or groups, have sums (k, n) and weights (n,).

    One more would have a mean in a range.
    """
    present = weights > 0  # groups without a row that is known are none
    sums, weights = sums[:, present], weights[present]
    rng = np.random.default_rng(seed)
    lower, upper = [], []
    for size in resampling_parts(len(weights)):
        mass = rng.standard_exponential((size, len(weights)))
        one_more = rng.standard_exponential((size, 1)) * weights.mean()
        drawn, total = mass @ sums.T, (mass @ weights)[:, None] + one_more
        lower.append((drawn + one_more * least) / total)
        upper.append((drawn + one_more * largest) / total)
    tail = (1 - level) / 2
    return (
        np.quantile(np.concatenate(lower), tail, axis=0),
        np.quantile(np.concatenate(upper), 1 - tail, axis=0),
    )
