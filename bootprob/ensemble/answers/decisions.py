"""Decisions of least expected cost, and what they would have cost out of bag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from bootprob.costs.decisions import Decisions
from bootprob.costs.given import cost_matrix_of, refuse_uncalibrated
from bootprob.costs.matrix import CostMatrix
from bootprob.costs.rules import RuleCost
from bootprob.ensemble.answers.intervals import IntervalAnswers
from bootprob.ensemble.fitted import two_classes_of
from bootprob.ensemble.out_of_bag_metrics import out_of_bag_costs
from bootprob.runtime.device_rows import on_host

__all__ = ["DecisionAnswers"]


class DecisionAnswers(IntervalAnswers):
    """What to do about rows, by their probabilities and the intervals of these."""

    if TYPE_CHECKING:
        classes_: NDArray[Any]

    def decide(self, X: ArrayLike, costs: CostMatrix | ArrayLike, level: float = 0.95) -> Decisions:
        """Yes, no, or ask a person: the decision of least expected cost for each row.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        costs : CostMatrix, array_like of shape (2, 2) or (m, 2, 2), or DataFrame
            What each outcome costs, and with ``CostMatrix(..., ask=...)`` what it costs to ask;
            arrays have true classes down and decided ones across.
        level : float, default 0.95
            Nominal confidence level of the intervals, for each row.

        Returns
        -------
        Decisions
            On the host. Its intervals are those of the probability carried over to the cost.

        Raises
        ------
        DataError
            With several classes, for vote shares, under control of a rate, or for costs that cannot
            be used.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from bootprob import BootstrapSVC, CostMatrix
        >>> X, benign = load_breast_cancer(return_X_y=True)
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
        >>> model = model.fit(X[60:, :5], benign[60:] == 0)
        >>> costs = CostMatrix(false_positive=1, false_negative=20, ask=0.2)
        >>> decisions = model.decide(X[:60, :5], costs)
        >>> int(decisions.ask.sum()), int((~decisions.ask & decisions.label).sum())
        (22, 29)
        """
        two_classes_of(self, "decisions by costs")
        refuse_uncalibrated(self)
        matrix = cost_matrix_of(costs, self.classes_)
        found = self.summarize(X, level, score_interval=False)
        probability, interval = (on_host(found[f"probability{of}"]) for of in ("", "_interval"))
        return matrix.decide(probability, interval, self.classes_)

    def oob_costs(
        self, costs: CostMatrix | ArrayLike, level: float = 0.95, *, seed: int = 0
    ) -> dict[str, RuleCost]:
        """Mean cost of `decide`, and of the rules that it competes with, from out-of-bag rows.

        Every training row is decided by the replicates that did not see it, and by a calibrator
        that did not either (`bootprob.ensemble.cross_fitted_proba`). Whole groups are drawn.

        Parameters
        ----------
        costs : CostMatrix, array_like of shape (2, 2) or (n, 2, 2), or DataFrame
            As for `decide`; one for all rows, or one for each training row.
        level : float, default 0.95
            Nominal coverage of the intervals.
        seed : int, default 0
            Of the resampling.

        Returns
        -------
        dict of str to RuleCost
            As of `bootprob.costs.cost_of_rules`. Rows that were never out of bag are left out and
            counted.

        Raises
        ------
        DataError
            As `decide`, or for costs of another number of rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> rules = model.oob_costs([[0, 1], [5, 0]])
        >>> rules["least_cost"].cost < rules["all_positive"].cost
        True
        """
        two_classes_of(self, "costs of decisions")
        refuse_uncalibrated(self)
        return out_of_bag_costs(self, cost_matrix_of(costs, self.classes_), level, seed=seed)
