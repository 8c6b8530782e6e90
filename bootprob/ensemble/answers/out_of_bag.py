"""What replicates say of the training rows that they did not see."""

from __future__ import annotations

from numpy.typing import ArrayLike

from bootprob.ensemble.fitted import two_classes_of
from bootprob.ensemble.out_of_bag_metrics import out_of_bag_intervals
from bootprob.ensemble.subgroups import out_of_bag_subgroups
from bootprob.metrics.intervals import Method, MetricInterval
from bootprob.metrics.subgroups import Subgroups
from bootprob.runtime.arrays import Floats

__all__ = ["OutOfBagAnswers"]


class OutOfBagAnswers:
    """How good the model is, and for whom, without other rows than those of `fit`."""

    def oob_proba_interval(
        self, level: float = 0.95, method: str | None = None, *, clip: bool = False
    ) -> Floats:
        """Intervals for the training rows, from the replicates that did not see them.

        Parameters
        ----------
        level, method, clip
            As for `proba_interval`; "percentile", "basic" and "bca" are not to be had here.

        Returns
        -------
        ndarray, shape (n, 2, 2)
            NaN for a row without enough out-of-bag replicates.

        Raises
        ------
        DataError
            As for `proba_interval`, and with several classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> model.oob_proba_interval(level=0.9).shape
        (100, 2, 2)
        """
        ensemble = two_classes_of(self, "out-of-bag intervals")
        return ensemble.oob_proba_interval(level, method, clip=clip)

    def metric_intervals(
        self, level: float = 0.95, method: Method = "auto", *, seed: int = 0
    ) -> dict[str, MetricInterval]:
        """Out-of-bag metrics of this model with intervals for what they would be on new rows.

        Parameters and result as for `bootprob.ensemble.out_of_bag_intervals`.

        Parameters
        ----------
        level : float, default 0.95
            Nominal confidence.
        method : {"auto", "bca", "percentile", "basic"}, default "auto"
            Where the bounds come from, as in `bootprob.metrics.metric_intervals`.
        seed : int, default 0
            Of what is drawn.

        Returns
        -------
        dict of str to MetricInterval

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> accuracy = model.metric_intervals()["accuracy"]
        >>> bool(accuracy.lower < accuracy.value < accuracy.upper)
        True
        """
        return out_of_bag_intervals(self, level, method, seed=seed)

    def subgroup_metrics(self, by: ArrayLike, level: float = 0.95, *, seed: int = 0) -> Subgroups:
        """Out-of-bag metrics, calibration and decisions of each subgroup of the training rows.

        Result and errors as for `bootprob.ensemble.out_of_bag_subgroups`.

        Parameters
        ----------
        by : array_like, shape (n,)
            What tells the subgroups of the training rows apart.
        level : float, default 0.95
            With which intervals hold in all subgroups at once.
        seed : int, default 0
            Of what is drawn.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> found = model.subgroup_metrics(X[:, 0] > 6.2)
        >>> [each.n_rows for each in found.subgroups]
        [49, 51]
        """
        return out_of_bag_subgroups(self, by, level, seed=seed)
