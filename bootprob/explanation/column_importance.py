"""How much worse probabilities become when a column is permuted, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bootprob.ensemble.left_out_rows import Said
from bootprob.exceptions import DataError
from bootprob.explanation.answers import Explained
from bootprob.explanation.known_rows import LEAST_ROWS, held_out_rows, training_rows
from bootprob.explanation.row_values import METRICS
from bootprob.intervals.levels import check_level
from bootprob.runtime.arrays import Floats, Indices
from bootprob.runtime.progress import progress_bar
from bootprob.runtime.whole_numbers import checked_whole

if TYPE_CHECKING:
    from bootprob.ensemble.classifier import BootstrapClassifier
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["PermutationImportance", "permutation_importance"]


@dataclass(frozen=True)
class PermutationImportance:
    """How much a metric is worse when columns are permuted.

    Attributes
    ----------
    columns : list of str
        Names of the q columns, or groups of columns.
    importances : ndarray, shape (q, n_repeats)
        By each permutation: rise of the log-loss or the Brier score, fall of the AUC.
    interval : ndarray, shape (q, 2)
        Of the mean over new rows and permutations.
    metric : str
        Which one, such as "log_loss".
    baseline : float
        The metric of the rows as they are.
    n_rows : int
        Rows that were looked at.
    held_out : bool
        Whether these took no part in training; else they were asked out of bag.
    level : float
        Nominal confidence, between 0 and 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from bootprob.explanation import permutation_importance
    >>> found = permutation_importance(model, X, y, n_repeats=2)
    >>> found.importances.shape, found.metric, found.held_out
    ((4, 2), 'log_loss', False)
    """

    columns: list[str]
    importances: Floats
    interval: Floats
    metric: str
    baseline: float
    n_rows: int
    held_out: bool
    level: float

    @property
    def importances_mean(self) -> Floats:
        """Over the permutations, shape (q,)."""
        found: Floats = self.importances.mean(axis=1)
        return found

    @property
    def importances_std(self) -> Floats:
        """Their standard deviation over the permutations, shape (q,)."""
        found: Floats = self.importances.std(axis=1)
        return found

    def to_frame(self) -> pd.DataFrame:
        """A line for each column, the most important first.

        Returns
        -------
        DataFrame
            Columns column, importance, lower and upper.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from bootprob.explanation import permutation_importance
        >>> permutation_importance(model, X, y, n_repeats=2).to_frame().columns.tolist()
        ['column', 'importance', 'lower', 'upper']
        """
        mean = self.importances_mean
        order = np.argsort(-mean, kind="stable")
        lower, upper = self.interval[order].T
        names = [self.columns[k] for k in order]
        return pd.DataFrame(
            {"column": names, "importance": mean[order], "lower": lower, "upper": upper}
        )


def permutation_importance(
    model: BootstrapSVC | BootstrapClassifier | TableModel,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    held_out: bool = False,
    metric: str = "log_loss",
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    n_repeats: int = 5,
    max_rows: int | None = 2_000,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    seed: int = 0,
    progress: bool = False,
) -> PermutationImportance:
    """Permute each column and see how much worse the probabilities become.

    What `sklearn.inspection.permutation_importance` does (L. Breiman, Machine Learning 45 (2001)
    5–32; A. Fisher, C. Rudin, F. Dominici, J. Mach. Learn. Res. 20 (2019) 177), with training rows
    out of bag: each is asked of the replicates that did not draw it, of the posterior of
    ``kernel="auto"`` without its label, and calibrated by what was not fitted to it. So no rows
    have to be held back. All features of a column of a table are permuted together.

    Intervals are for the mean over new rows and all permutations of them, of this model. They hold
    what rows, or groups of rows, and permutations leave open, and, out of bag, what the labels
    leave open of the effect of the column (`bootprob.explanation.permuted_rows.Permuted.rise`);
    not how the importance in models of other training tables would differ.

    Parameters
    ----------
    model : BootstrapSVC, BootstrapClassifier or TableModel
        Fitted, calibrated.
    X : array_like or data frame, shape (n, columns), optional
        The rows of `fit`, in their order, or held-out ones. Default the training rows that the
        model keeps: machines of curved kernels do, linear ones and feature maps keep none.
    y : array_like, shape (n,), optional
        Their classes. Default those of `fit`; of a held-out table the column that it predicts.
    held_out : bool, default False
        Whether the rows took no part in training; the whole model is asked.
    metric : {"log_loss", "brier_score", "auc"}, default "log_loss"
        What becomes worse; of several classes the log-loss.
    columns : sequence of str, or mapping of str to sequence of str, optional
        Which ones, or groups of columns by a name, permuted together; default each by itself.
    n_repeats : int, default 5
        Permutations of each.
    max_rows : int, optional, default 2000
        Of more rows, so many are drawn; None looks at all.
    sample_weight, groups : array_like, shape (n,), optional
        Of held-out rows; training rows have those of `fit`. Weights are of the rows that get a
        value; all rows give theirs alike.
    level : float, default 0.95
        Of each interval by itself.
    seed : int, default 0
        Of the permutations, which are the same for all columns, and of the rows drawn.
    progress : bool, default False
        Whether to show a bar.

    Returns
    -------
    PermutationImportance

    Raises
    ------
    DataError
        The model has no calibration or a precomputed kernel, or several classes and another metric;
        it keeps no training rows and none are given; rows or classes are not those of `fit`; there
        is no such column or metric; fewer than 10 rows, or only one class, are left.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from bootprob.explanation import permutation_importance
    >>> found = permutation_importance(model, X, y, n_repeats=2)
    >>> found.to_frame()["column"].tolist()[0]  # the one that counts most
    'x3'
    """
    level = check_level(level)
    if not isinstance(metric, str) or metric not in METRICS:
        raise DataError(f"metric is {metric!r}; give one of {', '.join(METRICS)}.")
    n_repeats, seed = checked_whole("n_repeats", n_repeats, 1), checked_whole("seed", seed, 0)
    if max_rows is not None:
        max_rows = checked_whole("max_rows", max_rows, LEAST_ROWS)
    explained = Explained.of(model)
    if metric != "log_loss" and len(explained.svc.classes_) > 2:
        raise DataError(
            f"metric is {metric!r}, and of several classes importance is by the log-loss; leave it "
            "out, or fit one class against the rest."
        )
    chosen = _chosen(explained, columns)
    generator = np.random.default_rng(seed)
    if held_out:
        permuted = held_out_rows(
            model, explained, X, y, sample_weight, groups, max_rows, n_repeats, generator
        )
    elif sample_weight is not None or groups is not None:
        raise DataError(
            "Training rows have the weights and groups of fit; sample_weight and groups are of "
            "held-out rows (held_out=True)."
        )
    else:
        permuted = training_rows(model, explained, X, y, max_rows, n_repeats, generator)
    parts: list[list[Said]] = [[] for _ in chosen]
    n_steps = len(permuted.rows) * len(chosen)
    with progress_bar("Permuting", n_steps, shown=progress) as advance:
        for number, said in permuted.said(list(chosen.values())):
            parts[number].append(said)
            advance(said.score.shape[1])
    rises = [permuted.rise(Said.joined(each), METRICS[metric], level) for each in parts]
    baseline, importances, interval = zip(*rises, strict=True)
    return PermutationImportance(
        list(chosen),
        np.stack(importances),
        np.stack(interval),
        metric,
        baseline[0],
        len(permuted.rows),
        held_out,
        level,
    )


def _chosen(
    explained: Explained, columns: Sequence[str] | Mapping[str, Sequence[str]] | None
) -> dict[str, Indices]:
    """Where each column is, or group of columns, by its name."""
    known, given = dict(explained.columns), columns
    if columns is None:
        return known
    if isinstance(columns, str):
        columns = [columns]
    if not isinstance(columns, Mapping):
        columns = {name: [name] for name in columns} if isinstance(columns, Iterable) else {}
    unknown = [name for names in columns.values() for name in names if name not in known]
    if unknown or not columns or not all(map(len, columns.values())):
        raise DataError(
            f"columns are {given!r}; give names of the model's: {', '.join(list(known)[:20])}."
        )
    return {
        label: np.concatenate([known[name] for name in dict.fromkeys(names)])
        for label, names in columns.items()
    }
