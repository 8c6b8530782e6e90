"""What decisions on scored rows are expected to cost, with bounds that hold for their mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bootprob.costs.matrix import CostMatrix
from bootprob.report.scored.counts import ASK, ScoredCounts, Sums

if TYPE_CHECKING:
    from bootprob.report.scored.model import ScoredModel

__all__ = ["cost_content"]

_LABELS = {
    "least_cost": "least expected cost",
    "as_labelled": "as labelled in the table",
    "all_positive": "always positive",
    "all_negative": "always negative",
    "ask_none": "answering all",
    "ask_all": "asking about all",
}


def cost_content(
    counts: ScoredCounts,
    costs: CostMatrix | None,
    positive: int | None,
    known: ScoredModel | None,
) -> dict[str, Any]:
    """Mean expected cost of a row for several rules, each with its bounds.

    An expected cost is linear in the probability (`bootprob.costs.matrix`), so that the mean over
    rows that are decided alike is that of the mean probability, and its bounds are those of the
    mean lower and upper ends: each row at that end of its interval at which its decision costs
    least, or most. That is wide enough however the errors of the rows hang together, as far as the
    intervals are right and their errors roughly normal, because the standard deviation of a sum is
    never above the sum of the standard deviations; where errors are not all of one sign it is too
    wide.

    Parameters
    ----------
    counts : ScoredCounts
    costs : CostMatrix or None
        Without, each mistake costs 1: an expected share of mistakes.
    positive : int or None
        Position of the positive class among the labels.
    known : ScoredModel or None

    Returns
    -------
    dict
        ``refused`` says why there are no ``rules``, if so.
    """
    used = CostMatrix(false_positive=1.0, false_negative=1.0) if costs is None else costs
    content: dict[str, Any] = {
        "given": costs is not None,
        "false_positive": used.false_positive,
        "false_negative": used.false_negative,
        "true_negative": used.true_negative,
        "true_positive": used.true_positive,
        "threshold": used.threshold,
        "ask": used.ask,
        "asking_between": used.asking_between,
        "refused": None if known is None else known.no_frequencies,
        "rules": [],
    }
    if content["refused"]:
        return content
    every = _added(list(counts.by_threshold.values()))
    decided: dict[str, dict[int, Sums]] = {
        "least_cost": counts.by_cost,
        "as_labelled": _as_labelled(counts, positive, asked=used.ask is not None),
        "all_positive": {1: every},
        "all_negative": {0: every},
    }
    if used.ask is not None:
        decided["ask_none"] = dict(counts.by_threshold.items())
        decided["ask_all"] = {ASK: every}
    content["rules"] = [
        {"name": name, "label": _LABELS[name]} | _rule(groups, used)
        for name, groups in decided.items()
    ]
    return content


def _as_labelled(counts: ScoredCounts, positive: int | None, *, asked: bool) -> dict[int, Sums]:
    """Rows by label, without those that the table has a person asked about, if that has a price."""
    groups: dict[int, list[Sums]] = {0: [], 1: [], ASK: []}
    apart = counts.asked if asked and counts.asked is not None else {}
    for label, sums in counts.by_label.items():
        of_person = apart.get(label, Sums())
        groups[int(label == positive)].append(_added([sums, _negated(of_person)]))
        groups[ASK].append(of_person)
    return {decision: _added(each) for decision, each in groups.items()}


def _negated(sums: Sums) -> Sums:
    return Sums(**{name: -value for name, value in vars(sums).items()})


def _added(sums: list[Sums]) -> Sums:
    return Sums(
        n_rows=sum(s.n_rows for s in sums),
        probability=sum(s.probability for s in sums),
        lower=sum(s.lower for s in sums),
        upper=sum(s.upper for s in sums),
        variance=sum(s.variance for s in sums),
    )


def _rule(groups: dict[int, Sums], costs: CostMatrix) -> dict[str, Any]:
    """Mean cost, its bounds, and how far the classes that turn out may move it by chance."""
    n = sum(sums.n_rows for sums in groups.values())
    total = np.zeros(3)
    variance = 0.0
    for decision, sums in groups.items():
        if sums.n_rows == 0:
            continue
        if decision == ASK:
            assert costs.ask is not None
            total += sums.n_rows * float(costs.ask)
            continue
        means = np.array([sums.probability, sums.lower, sums.upper]) / sums.n_rows
        cost = costs.expected(means.clip(0, 1))[:, int(decision)]
        total += sums.n_rows * np.array([cost[0], *sorted(cost[1:])])
        by_class = costs.array[:, int(decision)]
        variance += sums.variance * float(by_class[1] - by_class[0]) ** 2
    return {
        "n_positive": groups.get(1, Sums()).n_rows,
        "n_asked": groups.get(ASK, Sums()).n_rows,
        "cost": total[0] / n,
        "lower": total[1] / n,
        "upper": total[2] / n,
        "total": total[0],
        "total_lower": total[1],
        "total_upper": total[2],
        "standard_deviation": np.sqrt(variance) / n,
    }
