"""The joint selection of outputs as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bootprob.dea.panel import Panel
from bootprob.dea.selection.joint import select_outputs
from bootprob.dea.selection.results import JointSelection
from bootprob.exceptions import DataError

__all__ = ["OutputSelector"]


class OutputSelector(SelectorMixin, BaseEstimator):
    """The p outputs under which all units together look best: OSDEA(p), thesis section 5.3.

    `select_outputs` in scikit-learn's form: X holds the outputs to choose from and y the inputs,
    one row for each unit. `transform` keeps the columns chosen, also of other units.

    Parameters
    ----------
    n_features_to_select : int, default 3
        p, exactly so many outputs.
    objective, weights, percentile, method, costs, budget, clusters, cluster_min, cluster_max, \
max_correlation, n_inputs, weight_bounds, solver, time_limit
        As for `bootprob.dea.select_outputs`, and with its defaults.

    Attributes
    ----------
    support_ : ndarray of bool, shape (M,)
        Outputs chosen.
    efficiencies_ : ndarray, shape (K,)
        Of the units of `fit`, under them.
    result_ : JointSelection
        Objective, bound, gap, status and the path of what was found.
    panel_ : Panel
        What was fitted, with the names.
    n_features_in_ : int
        Columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Only of tables with names.

    Examples
    --------
    >>> selector = OutputSelector(2).fit([[5, 2, 1], [4, 4, 2], [1, 1, 6]], [1, 1, 1])
    >>> selector.get_support().tolist(), selector.efficiencies_.round(3).tolist()
    ([True, False, True], [1.0, 0.966, 1.0])
    """

    support_: NDArray[np.bool_]
    efficiencies_: NDArray[np.float64]
    result_: JointSelection
    panel_: Panel

    def __init__(
        self,
        n_features_to_select: int = 3,
        *,
        objective: str = "mean",
        weights: Any = None,
        percentile: float | None = None,
        method: str = "exact",
        costs: Any = None,
        budget: float | None = None,
        clusters: Mapping[str, Iterable[int | str]] | Sequence[Any] | None = None,
        cluster_min: int | Mapping[str, int] | None = None,
        cluster_max: int | Mapping[str, int] | None = None,
        max_correlation: float | None = None,
        n_inputs: int | None = None,
        weight_bounds: Mapping[int | str, Any] | None = None,
        solver: str | None = None,
        time_limit: float | None = 60.0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.objective = objective
        self.weights = weights
        self.percentile = percentile
        self.method = method
        self.costs = costs
        self.budget = budget
        self.clusters = clusters
        self.cluster_min = cluster_min
        self.cluster_max = cluster_max
        self.max_correlation = max_correlation
        self.n_inputs = n_inputs
        self.weight_bounds = weight_bounds
        self.solver = solver
        self.time_limit = time_limit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose outputs as `select_outputs` does: X is what units make, y what they use.

        Parameters
        ----------
        X : array_like or DataFrame, shape (K, M)
            What the units produce.
        y : array_like, DataFrame or Series, shape (K,) or (K, N)
            What they use.

        Returns
        -------
        self

        Raises
        ------
        PanelError
            The amounts cannot be used, see `Panel.of`.
        InfeasibleSelectionError
            No p outputs keep the rules.
        DataError
            y is missing, or a parameter cannot be used.

        Examples
        --------
        >>> from bootprob.dea import OutputSelector
        >>> made, used = [[5, 2, 1], [4, 4, 2], [1, 1, 6]], [1, 1, 1]
        >>> selector = OutputSelector(1).fit(made, used)
        >>> selector.transform(made).tolist(), selector.result_.status
        ([[5], [4], [1]], 'optimal')
        """
        if y is None:
            raise DataError(
                "OutputSelector requires y to be passed, but the target y is None; give the units' "
                "inputs."
            )
        if hasattr(X, "columns"):
            validate_data(self, X, skip_check_array=True)  # number and names of the columns
        else:
            X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        panel = Panel.of(y if hasattr(y, "index") else np.asarray(y), X)
        options = self.get_params(deep=False)
        size = options.pop("n_features_to_select")
        self.result_ = select_outputs(panel, size, **options)
        self.panel_ = panel
        self.efficiencies_ = self.result_.efficiencies
        self.support_ = np.isin(np.arange(panel.n_outputs), self.result_.features)
        return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_
