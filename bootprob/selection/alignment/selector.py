"""The best subset of columns for an RBF kernel, by kernel–target alignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from bootprob.exceptions import DataError
from bootprob.optimization.search_result import SelectionResult
from bootprob.preparation.labels import encode_labels
from bootprob.preparation.standardization import center_and_scale
from bootprob.runtime.progress import progress_bar
from bootprob.selection.alignment.alignment import AlignmentPairs, NormalisedPairs, sigest_gamma
from bootprob.selection.alignment.objectives import Alignment, CentroidDistance, NormalisedAlignment
from bootprob.selection.alignment.search import SubsetSearch
from bootprob.selection.feature_costs import FeatureCosts
from bootprob_gpu import resolve_device
from bootprob_gpu.hardware.memory import free_bytes

__all__ = ["KernelAlignmentSelector"]


class KernelAlignmentSelector(SelectorMixin, BaseEstimator):
    """Columns that move the class centroids furthest apart in the space of an RBF kernel.

    Maximises the kernel–target alignment, (27) of R. Tamura, Y. Takano, R. Miyashiro, "Feature
    subset selection for kernel SVM classification via mixed-integer optimization", 2022, over all
    subsets of at most θ columns, and proves it, by branch and bound over the subsets with matrix
    products at the leaves instead of the paper's mixed-integer programs.

    Parameters
    ----------
    n_features_to_select : int, default 5
        θ, the largest number of columns.
    gamma : {"sigest"} or float, default "sigest"
        Width of the kernel on standardised columns; "sigest" is γ̂ of (54).
    gamma_factor : float, default 1.0
        β, which multiplies γ̂.
    normalised : bool, default False
        Maximise (22), the cosine of the kernel and ``y yᵀ``, in place of (27), which the paper
        takes for its numerator. (22) counts rows, not classes: where one class is much larger,
        a kernel that is 1 everywhere is well aligned, and few columns or none are chosen.
    costs : array_like of shape (p,), dict of str to float, or None
        Of measuring each column; for `budget`. None: 1 each.
    shared_costs : list of (columns, float), optional
        Paid once for any of the columns, by position or name.
    budget : float, optional
        What the columns may cost together.
    time_limit : float, optional
        Seconds, after which the best found counts, with a bound on what could still be better.
    device : str, default "cpu"
        Where the products are made: "cpu", "cuda" or "auto".
    verbose : int, default 0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        Class labels, sorted.
    support_ : ndarray of bool, shape (p,)
        Columns chosen.
    result_ : SelectionResult
        Objective, bound, gap, status, time and the path of what was found.
    gamma_ : float
        γ on standardised columns.
    cost_ : float
        Of the columns chosen.
    n_features_in_ : int
        Columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Only of tables with names.

    Notes
    -----
    Columns are standardised as in (25). Pairs of rows with the same differences are counted, not
    repeated, which is exact. A column that raises the alignment by no more than rounding is not
    chosen: constant ones never are. A column that is there twice may be chosen twice, which makes
    the kernel narrower in it.

    Memory: ``8 (2 p + 8) N`` bytes at most, with N = n (n − 1) / 2 pairs: 250 MB for 1,000 rows of
    30 columns.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob.selection import KernelAlignmentSelector
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> selector = KernelAlignmentSelector(n_features_to_select=2).fit(X[:150], y[:150])
    >>> selector.result_.status
    'optimal'
    >>> selector.get_feature_names_out().tolist()
    ['worst perimeter', 'worst concave points']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": [Interval(Integral, 1, None, closed="left")],
        "gamma": [StrOptions({"sigest"}), Interval(Real, 0, None, closed="neither")],
        "gamma_factor": [Interval(Real, 0, None, closed="neither")],
        "normalised": ["boolean"],
        "costs": ["array-like", dict, None],
        "shared_costs": [list, tuple, None],
        "budget": [Interval(Real, 0, None, closed="left"), None],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "device": [str],
        "verbose": ["verbose"],
    }

    classes_: NDArray[Any]
    support_: NDArray[np.bool_]
    result_: SelectionResult
    gamma_: float
    cost_: float

    def __init__(
        self,
        n_features_to_select: int = 5,
        *,
        gamma: float | str = "sigest",
        gamma_factor: float = 1.0,
        normalised: bool = False,
        costs: ArrayLike | Mapping[str, float] | None = None,
        shared_costs: Iterable[tuple[Sequence[int | str], float]] | None = None,
        budget: float | None = None,
        time_limit: float | None = None,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.normalised = normalised
        self.costs = costs
        self.shared_costs = shared_costs
        self.budget = budget
        self.time_limit = time_limit
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find the columns.

        Parameters
        ----------
        X : array_like, shape (n, p)
            Rows.
        y : array_like, shape (n,)
            Labels of two classes.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For data that scikit-learn's checks refuse, a number of classes other than two
            (`DataError`), costs that are none, a budget that no column fits into, or more rows
            than there is memory for.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from bootprob.selection import KernelAlignmentSelector
        >>> X, y = load_wine(return_X_y=True)
        >>> selector = KernelAlignmentSelector(n_features_to_select=2).fit(X, y == 1)
        >>> selector.get_support(indices=True)
        array([0, 9])
        """
        rows, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        self.classes_, positive = encode_labels(labels, np.ones(len(rows)))
        costs = FeatureCosts.stated_by(self)
        self._check_budget(costs)
        _check_memory(*rows.shape)
        center, scale = center_and_scale(rows, np.ones(len(rows)))
        rows = (rows - center) / scale
        largest = min(self.n_features_to_select, rows.shape[1])
        gamma = self.gamma if self.gamma != "sigest" else sigest_gamma(rows, largest)
        self.gamma_ = float(gamma) * self.gamma_factor
        pairs = (NormalisedPairs if self.normalised else AlignmentPairs).of_rows(rows, positive)
        self.result_ = self._search(pairs, largest, costs)
        self.support_ = np.isin(np.arange(rows.shape[1]), self.result_.features)
        self.cost_ = costs.total(self.result_.features)
        return self

    def _check_budget(self, costs: FeatureCosts) -> None:
        if self.budget is None:
            return
        columns = range(len(costs.own))
        if not any(costs.affordable([j], self.budget) for j in columns):
            cheapest = min(costs.total([j]) for j in columns)
            raise DataError(
                f"The budget is {self.budget:g}, and the cheapest column costs {cheapest:g}; "
                "raise the one or lower the other."
            )

    def _search(
        self, pairs: AlignmentPairs | NormalisedPairs, largest: int, costs: FeatureCosts
    ) -> SelectionResult:
        device = resolve_device(self.device)
        budget = self.budget
        factors, weight = (
            torch.from_numpy(each).to(device) for each in (pairs.factors(self.gamma_), pairs.weight)
        )
        objective: Alignment
        if isinstance(pairs, NormalisedPairs):
            count = torch.from_numpy(pairs.count).to(device)
            objective = NormalisedAlignment(factors, weight, count, pairs.n)
        else:
            objective = CentroidDistance(factors, weight, pairs.constant)
        search = SubsetSearch(
            objective,
            largest,
            allowed=None if budget is None else lambda some: costs.affordable(some, budget),
            time_limit=self.time_limit,
        )
        search.improve()
        with progress_bar("Subsets", search.n_subsets - 1, shown=self.verbose > 0) as advance:
            proven = search.exhaust(advance)
        features = search.path[-1].features
        support = np.isin(np.arange(len(pairs.squares)), features)
        found = pairs.alignment(self.gamma_, support)
        return SelectionResult(
            features=features,
            objective=found,
            bound=max(found, search.bound),
            status="optimal" if proven else "time limit",
            seconds=search.seconds,
            path=tuple(search.path),
            n_evaluated=search.n_evaluated,
        )

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_


def _check_memory(n: int, p: int) -> None:
    needed, free = AlignmentPairs.bytes_of_rows(n, p), free_bytes(torch.device("cpu"))
    if needed > free:
        raise DataError(
            f"All pairs of {n:,} rows in {p:,} columns take {needed / 2**30:.1f} GiB, of which "
            f"{free / 2**30:.1f} GiB may be used; select on a random part of the rows."
        )
