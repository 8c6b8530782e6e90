"""How often columns are chosen again on other samples, and what choosing them once hides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, column_or_1d

from bootprob.exceptions import DataError
from bootprob.intervals.votes import wilson
from bootprob.preparation.bootstrap import bootstrap_counts, draw_entropy
from bootprob.preparation.labels import encode_classes, refuse_single_rows
from bootprob.runtime.arrays import Bools, Floats
from bootprob.runtime.progress import progress_bar
from bootprob.runtime.workers import end_with_parent, outcomes_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SelectionStability", "selection_stability"]


METRICS = ("log_loss", "brier_score", "error_rate")
_LEAST_PROBABILITY = 1e-15  # of what happened, for the log-loss


@dataclass(frozen=True)
class SelectionStability:
    """What was chosen on bootstrap samples, and how models on it did out of bag.

    Attributes
    ----------
    names : tuple of str
        Of the columns; "x0", "x1", ... where they have none.
    chosen_once : ndarray of bool, shape (p,)
        Columns chosen on all rows.
    chosen : ndarray of bool, shape (B, p)
        Columns chosen on each bootstrap sample.
    interval : ndarray, shape (p, 2)
        Wilson's interval of each column's frequency: what B samples leave open of how often it is
        chosen on bootstrap samples of these data; not what other data would choose.
    inside, once : dict of ndarray, each of shape (n,)
        For "log_loss", "brier_score" and "error_rate" the mean of each row over the samples that
        did not draw it: of models on the columns chosen on their own sample, and of models of the
        same samples on `chosen_once`, whose choice has seen the row. NaN for a row that all drew.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.feature_selection import SelectKBest
    >>> from bootprob import BootstrapSVC
    >>> from bootprob.selection import selection_stability
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=10, C=1.0)
    >>> selector = SelectKBest(k=2)
    >>> found = selection_stability(
    ...     selector, X[50:], y[50:], model=model, n_bootstraps=5, random_state=0
    ... )
    >>> found.chosen.shape, found.chosen_once.tolist()
    ((5, 4), [False, False, True, True])
    >>> found.frequency.tolist()
    [0.0, 0.0, 1.0, 1.0]
    """

    names: tuple[str, ...]
    chosen_once: Bools
    chosen: Bools
    interval: Floats
    inside: dict[str, Floats]
    once: dict[str, Floats]

    @property
    def frequency(self) -> Floats:
        """Share of the samples that choose each column, shape (p,)."""
        return self.chosen.mean(axis=0, dtype=np.float64)

    @property
    def together(self) -> Floats:
        """Share of the samples that choose both columns of each pair, shape (p, p)."""
        both = self.chosen.astype(np.float64)
        return both.T @ both / len(both)

    def optimism(self, metric: str = "log_loss") -> tuple[float, float]:
        """How much better models look whose columns were chosen once, on all rows.

        Parameters
        ----------
        metric : {"log_loss", "brier_score", "error_rate"}, default "log_loss"
            Which loss to compare by.

        Returns
        -------
        difference, standard_error : float
            Mean over the rows of `inside` − `once`, and its standard error over the rows.

        Raises
        ------
        DataError
            There is no such metric.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.feature_selection import SelectKBest
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from bootprob.selection import selection_stability
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(60, 40)), rng.random(60) < 0.5  # nothing but noise
        >>> best, model = SelectKBest(k=3), GaussianNB()
        >>> found = selection_stability(best, X, y, model=model, n_bootstraps=20, random_state=0)
        >>> difference, error = found.optimism("brier_score")
        >>> difference > 2 * error  # the columns look useful, as their choice has seen all rows
        True
        """
        if metric not in METRICS:
            raise DataError(f"metric is {metric!r}; give one of {', '.join(METRICS)}.")
        difference = self.inside[metric] - self.once[metric]
        difference = difference[np.isfinite(difference)]
        if len(difference) < 2:
            return float("nan"), float("nan")
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        return float(difference.mean()), float(error)

    def to_frame(self) -> pd.DataFrame:
        """Columns by frequency: "chosen once", "frequency", "lower" and "upper".

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.feature_selection import SelectKBest
        >>> from bootprob import BootstrapSVC
        >>> from bootprob.selection import selection_stability
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=10, C=1.0)
        >>> selector = SelectKBest(k=2)
        >>> found = selection_stability(
        ...     selector, X[50:], y[50:], model=model, n_bootstraps=5, random_state=0
        ... )
        >>> found.to_frame()[["chosen once", "frequency"]]
            chosen once  frequency
        x2         True        1.0
        x3         True        1.0
        x0        False        0.0
        x1        False        0.0
        """
        import pandas as pd

        table = pd.DataFrame(
            {
                "chosen once": self.chosen_once,
                "frequency": self.frequency,
                "lower": self.interval[:, 0],
                "upper": self.interval[:, 1],
            },
            index=list(self.names),
        )
        return table.sort_values("frequency", ascending=False, kind="stable")


def selection_stability(
    selector: BaseEstimator,
    X: ArrayLike | pd.DataFrame,
    y: ArrayLike,
    *,
    model: BaseEstimator | None = None,
    n_bootstraps: int = 50,
    level: float = 0.95,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> SelectionStability:
    """Choose columns on bootstrap samples, and measure models on them on the rows left out.

    Samples are drawn as `BootstrapSVC` draws its own: n of n rows, again where a class is missing.
    The selector sees drawn rows as often as they were drawn; the model sees each once, weighted,
    so that its own out-of-bag rows are new to its machines.

    Parameters
    ----------
    selector : estimator
        With `fit(X, y)` and `get_support()`, such as `KernelAlignmentSelector` or one of
        scikit-learn's.
    X : array_like or DataFrame, shape (n, p)
        Rows.
    y : array_like, shape (n,)
        Their classes.
    model : estimator, optional
        A classifier with `predict_proba` and sample weights; default
        ``BootstrapSVC(kernel="rbf", n_bootstraps=50)``.
    n_bootstraps : int, default 50
        Number of samples, B.
    level : float, default 0.95
        Of the intervals of the frequencies.
    random_state : int, RandomState instance or None, default None
        Of the samples, and of selectors and models whose own `random_state` is None.
    n_jobs : int, optional
        Samples worked on at the same time, through joblib.
    verbose : int, default 0
        1 shows a progress bar on standard error.

    Returns
    -------
    SelectionStability

    Raises
    ------
    DataError
        The selector does not say which columns it chose, or a number is out of its range.
    ValueError
        What the selector and the model refuse.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.feature_selection import SelectKBest
    >>> from bootprob import BootstrapSVC
    >>> from bootprob.selection import selection_stability
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> found = selection_stability(
    ...     SelectKBest(k=3),
    ...     X[:150],
    ...     y[:150],
    ...     model=BootstrapSVC(kernel="linear", n_bootstraps=20, C=1.0),
    ...     n_bootstraps=5,
    ...     random_state=0,
    ... )
    >>> found.to_frame().index[0]
    'worst perimeter'
    """
    if not (isinstance(n_bootstraps, Integral) and n_bootstraps >= 2):
        raise DataError(f"n_bootstraps is {n_bootstraps!r}; give an integer from 2 on.")
    if not 0 < level < 1:
        raise DataError(f"level is {level!r}; give a number between 0 and 1.")
    if not hasattr(selector, "get_support"):
        raise DataError(
            f"{type(selector).__name__} has no get_support, which tells the columns it chose."
        )
    if model is None:
        from bootprob.ensemble.estimator import BootstrapSVC

        model = BootstrapSVC(kernel="rbf", n_bootstraps=50)
    if not hasattr(model, "get_params"):
        raise DataError(f"model is {model!r}; give a classifier of scikit-learn's kind.")
    labels = column_or_1d(y)
    check_consistent_length(X, labels)
    table = X if hasattr(X, "iloc") else np.asarray(X)
    entropy = draw_entropy(check_random_state(random_state))
    chosen_once = _choose(selector, table, labels, [*entropy, 0])
    classes, codes = encode_classes(labels, np.ones(len(labels)))
    refuse_single_rows(codes, np.ones(len(labels)), classes.tolist())
    counts, _ = bootstrap_counts(codes, np.ones(len(labels)), range(int(n_bootstraps)), entropy)
    jobs = (
        joblib.delayed(_replicate)(
            selector, model, table, labels, classes, drawn, chosen_once, [*entropy, b + 1]
        )
        for b, drawn in enumerate(counts)
    )
    chosen = np.empty((len(counts), len(chosen_once)), dtype=bool)
    losses = np.zeros((2, len(METRICS), len(labels)))
    workers = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    with (
        progress_bar("Samples", len(counts), shown=verbose > 0) as advance,
        outcomes_of(workers, jobs) as outcomes,
    ):
        for b, (support, lost) in enumerate(outcomes):
            chosen[b] = support
            losses[:, :, counts[b] == 0] += lost
            advance(1)
    times = (counts == 0).sum(axis=0)
    means = np.divide(losses, times, out=np.full_like(losses, np.nan), where=times > 0)
    frequency = chosen.mean(axis=0)
    return SelectionStability(
        names=_names(table, len(chosen_once)),
        chosen_once=chosen_once,
        chosen=chosen,
        interval=wilson(frequency, np.full(len(frequency), len(counts)), level).clip(0, 1),
        inside=dict(zip(METRICS, means[0], strict=True)),
        once=dict(zip(METRICS, means[1], strict=True)),
    )


def _replicate(
    selector: BaseEstimator,
    model: BaseEstimator,
    table: Any,
    labels: NDArray[Any],
    classes: NDArray[Any],
    drawn: NDArray[np.unsignedinteger[Any]],
    chosen_once: Bools,
    seed: Sequence[int],
) -> tuple[Bools, Floats]:
    """Columns chosen on a sample, and losses (2, metrics, rows left out) of the two models."""
    end_with_parent()
    rows = np.repeat(np.arange(len(labels)), drawn)
    support = _choose(selector, _safe_indexing(table, rows), labels[rows], seed)
    inside = _losses(model, table, labels, classes, drawn, support, seed)
    if (support == chosen_once).all():
        return support, np.stack([inside, inside])
    once = _losses(model, table, labels, classes, drawn, chosen_once, seed)
    return support, np.stack([inside, once])


def _choose(
    selector: BaseEstimator, table: Any, labels: NDArray[Any], seed: Sequence[int]
) -> Bools:
    fitted = _seeded(selector, seed).fit(table, labels)
    return np.asarray(fitted.get_support(), dtype=bool)


def _losses(
    model: BaseEstimator,
    table: Any,
    labels: NDArray[Any],
    classes: NDArray[Any],
    drawn: NDArray[np.unsignedinteger[Any]],
    support: Bools,
    seed: Sequence[int],
) -> Floats:
    """Log-loss, Brier score and error of each row left out, (metrics, rows)."""
    inside, outside = np.flatnonzero(drawn), np.flatnonzero(drawn == 0)
    weight = drawn[inside].astype(np.float64)
    happened = labels[outside][:, None] == classes
    if len(outside) == 0:
        return np.empty((len(METRICS), 0))
    if support.any():
        columns = _safe_indexing(table, np.flatnonzero(support), axis=1)
        fitted = _seeded(model, seed).fit(
            _safe_indexing(columns, inside), labels[inside], sample_weight=weight
        )
        proba = np.asarray(fitted.predict_proba(_safe_indexing(columns, outside)))
    else:  # nothing to tell rows apart by: the classes' shares
        shares = np.array([weight[labels[inside] == each].sum() for each in classes]) / weight.sum()
        proba = np.broadcast_to(shares, happened.shape)
    logs = -np.log(np.maximum(proba[happened], _LEAST_PROBABILITY))
    two = 2 if len(classes) == 2 else 1  # the Brier score of two classes is of one of them
    squares = np.square(proba - happened).sum(axis=1) / two
    wrong = proba.argmax(axis=1) != happened.argmax(axis=1)
    return np.stack([logs, squares, wrong.astype(np.float64)])


def _seeded(estimator: BaseEstimator, seed: Sequence[int]) -> Any:
    """A copy whose seeds that were left open come from this one."""
    copy = clone(estimator)
    state = np.random.SeedSequence(seed).generate_state(1)
    parameters = copy.get_params(deep=True)
    return copy.set_params(
        **{
            name: int(state[0])
            for name, value in parameters.items()
            if value is None and name.rpartition("__")[2] == "random_state"
        }
    )


def _names(table: Any, p: int) -> tuple[str, ...]:
    if hasattr(table, "columns"):
        return tuple(map(str, table.columns))
    return tuple(f"x{j}" for j in range(p))
