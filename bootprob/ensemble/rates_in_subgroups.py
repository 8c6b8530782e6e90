"""Rates that hold in each subgroup of rows, by thresholds of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.ensemble.control.decisions import choose_thresholds, needed_of_all, rates_reached
from bootprob.ensemble.control.thresholds import LeftOut
from bootprob.ensemble.fitted import two_classes_of
from bootprob.ensemble.state import two_class_state
from bootprob.exceptions import DataError, UnattainableRateError
from bootprob.metrics.rates import OF_TWO_CLASSES, rate_floors
from bootprob.metrics.subgroup_rows import names_of_rows
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import on_host

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SubgroupRates", "subgroup_rates"]


@dataclass(frozen=True)
class SubgroupRates:
    """A fitted model with thresholds for each subgroup.

    Attributes
    ----------
    model : BootstrapSVC or BootstrapClassifier
        Whose probabilities are decided by.
    between : dict of str to (float, float)
        By subgroup the probability up to which a row is decided ``classes_[0]``, and that above
        which it is decided ``classes_[1]``: the same unless rows may be left undecided.
    rates : dict of str to list of dict
        By subgroup what was asked for and reached out of bag, as in `controlled_rates_`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob import BootstrapSVC
    >>> from bootprob.ensemble import subgroup_rates
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X[:, :2], y)
    >>> large = X[:, 2] > 100
    >>> found = subgroup_rates(model, large, {"tpr": 0.9})
    >>> sorted(found.between)
    ['False', 'True']
    """

    model: Any
    between: dict[str, tuple[float, float]]
    rates: dict[str, list[dict[str, Any]]]

    def predict(self, X: ArrayLike, by: ArrayLike) -> NDArray[Any]:
        """Classes of rows, by the thresholds of their subgroups, shape (m,).

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        by : array_like, shape (m,)
            The subgroup of each.

        Raises
        ------
        DataError
            A subgroup that there was not.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from bootprob import BootstrapSVC
        >>> from bootprob.ensemble import subgroup_rates
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X[:, :2], y)
        >>> large = X[:, 2] > 100
        >>> found = subgroup_rates(model, large, {"tpr": 0.9})
        >>> found.predict(X[:3, :2], large[:3]).shape
        (3,)
        """
        p, (lower, upper) = self._placed(X, by)
        # Of undecided rows the nearer side, as the model itself has it.
        return self.model.classes_[(p > np.clip(0.5, lower, upper)).astype(int)]

    def undecided(self, X: ArrayLike, by: ArrayLike) -> NDArray[np.bool_]:
        """Rows that are left undecided, shape (m,).

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        by : array_like, shape (m,)
            The subgroup of each.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from bootprob import BootstrapSVC
        >>> from bootprob.ensemble import subgroup_rates
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X[:, :2], y)
        >>> large = X[:, 2] > 100
        >>> found = subgroup_rates(model, large, {"tpr": 0.9})
        >>> found.undecided(X[:, :2], large).any()  # nothing is left undecided unless asked for
        np.False_
        """
        p, (lower, upper) = self._placed(X, by)
        return (p > lower) & (p <= upper)

    def to_frame(self) -> pd.DataFrame:
        """A row for each subgroup and rate.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from bootprob import BootstrapSVC
        >>> from bootprob.ensemble import subgroup_rates
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X[:, :2], y)
        >>> large = X[:, 2] > 100
        >>> found = subgroup_rates(model, large, {"tpr": 0.9})
        >>> found.to_frame()["subgroup"].tolist()
        ['False', 'True']
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {"subgroup": name, "lower": self.between[name][0], "upper": self.between[name][1]}
                | entry
                for name, entries in self.rates.items()
                for entry in entries
            ]
        )

    def _placed(self, X: ArrayLike, by: ArrayLike) -> tuple[Floats, Floats]:
        """Probabilities of rows, and their thresholds (2, m)."""
        p = on_host(self.model.predict_proba(X))[:, 1]
        names = names_of_rows("by", by, len(p))
        if unknown := sorted(set(names.tolist()) - self.between.keys()):
            known = ", ".join(map(repr, self.between))
            raise DataError(
                f"by has {unknown[0]!r}, of which there was no training row; there are thresholds "
                f"for {known}."
            )
        return p, np.array([self.between[name] for name in names.tolist()]).reshape(-1, 2).T


def subgroup_rates(
    model: Any,
    by: ArrayLike,
    rates: Mapping[str, float],
    confidence: float | None = None,
    bound: str = "binomial",
) -> SubgroupRates:
    """Find the thresholds with which rates hold in each subgroup of the training rows, out of bag.

    What ``control="threshold"`` does with all rows is done with those of each subgroup; nothing is
    trained again, and probabilities stay. Decisions then need to be told the subgroup, and rows of
    the same probability can be decided differently: whether that is wanted, or allowed, is for the
    use to say.

    Parameters
    ----------
    model : BootstrapSVC or BootstrapClassifier
        Fitted to two classes, with a sigmoid.
    by : array_like, shape (n,)
        The subgroup of each training row.
    rates : dict
        As the parameter `rates` of `BootstrapSVC`.
    confidence : float, optional
        Of each rate in each subgroup, by itself.
    bound : {"binomial", "hoeffding"}, default "binomial"
        As the parameter of `BootstrapSVC`.

    Returns
    -------
    SubgroupRates

    Raises
    ------
    UnattainableRateError
        A subgroup cannot keep the rates; it is named, with what could be had there.
    DataError
        For several classes, other calibrations, unknown rates, or values of `by` that are missing.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X[:, :2], y)
    >>> large = X[:, 2] > 100
    >>> found = subgroup_rates(model, large, {"tpr": 0.9})
    >>> all(entry["out_of_bag"] >= 0.9 for [entry] in found.rates.values())
    True
    """
    state = two_class_state(model, "rates of subgroups")
    if state.calibration_ != "sigmoid":
        raise DataError(
            f"calibration is {state.calibration_!r}; thresholds that keep rates are of a sigmoid, "
            "in which no scores share a probability: fit the model with calibration='sigmoid'."
        )
    floors = rate_floors(rates, confidence, bound, OF_TWO_CLASSES)
    if not floors or [floor.rate for floor in floors] == ["decided"]:
        raise DataError(
            f"rates is {rates!r}; give the rates that must hold, such as {{'tpr': 0.9}}."
        )
    names = names_of_rows("by", by, len(state.y_))
    scores = state.oob_decision_function_ + state.score_threshold_  # 0 is one half
    classes = two_classes_of(model, "rates of subgroups")
    known, positive = np.isfinite(scores), state.y_ == 1
    between, found = {}, {}
    for name in np.unique(names).tolist():
        weight = np.where(known & (names == name), state.sample_weight_, 0.0)
        rows = LeftOut(positive, weight, state.groups_)
        for code, label in enumerate(state.classes_.tolist()):
            if not ((weight > 0) & (state.y_ == code)).any():
                raise UnattainableRateError(
                    f"In the subgroup {name!r} no row of class {label!r} was left out, so that "
                    "nothing is known of its rates; put it together with another.",
                    rate=floors[0].rate,
                    wanted=floors[0].at_least,
                    attainable=None,
                )
        try:
            needed_of_all(floors, rows)
            chosen = choose_thresholds(scores, rows, floors)
        except UnattainableRateError as error:
            raise UnattainableRateError(
                f"In the subgroup {name!r}: {error} Or put it together with another.",
                rate=error.rate,
                wanted=error.wanted,
                attainable=error.attainable,
            ) from None
        ends = chosen.between or (chosen.threshold, chosen.threshold)
        fitted = classes.calibrated.sigmoid.predict(np.array(ends))
        found[name] = rates_reached(
            floors, state.oob_proba_[:, 1], tuple(fitted.tolist()), rows, chosen.shares
        )
        between[name] = tuple(classes.recalibrated(fitted).tolist())
    return SubgroupRates(model, between, found)
