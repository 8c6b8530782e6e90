"""Calibrators by name, and the choice among them by out-of-bag log-loss."""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from bootprob.calibration.beta import Beta
from bootprob.calibration.logits import logits_of
from bootprob.calibration.names import HOMES
from bootprob.calibration.sigmoid import Sigmoid
from bootprob.calibration.votes import ScoreAndVoteSigmoid
from bootprob.runtime.array_forms import ArrayForm
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, sums_of_groups

__all__ = ["CALIBRATORS", "Calibrator", "choose_calibration", "exact_logits", "held_out_losses"]


CALIBRATORS: dict[str, type[Calibrator]] = {
    name: getattr(import_module(f"bootprob.calibration.{home.module}"), home.calibrator)
    for name, home in HOMES.items()
}

_FOLDS = 10
_FEWEST = 5  # rows of a class, below which nothing but the sigmoid can be judged


class Calibrator(Protocol):
    """What turns out-of-bag quantities into probabilities; its fields are what is stored of it.

    Attributes
    ----------
    of_steps : bool
        Whether scores that differ share probabilities, which the labels have made.
    stored : dict of str to ArrayForm
        What its fields must look like in a file.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.calibration import CALIBRATORS
    >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    >>> positive = np.array([False, False, True, False, True, True])
    >>> votes = np.array([-3.0, -1.0, 0.0, 0.2, 2.0, 3.0])  # logits of vote shares
    >>> for name, kind in CALIBRATORS.items():
    ...     calibrator = kind.fit(scores, positive, np.ones(6), votes)
    ...     print(name, calibrator.predict(scores, votes).round(1))
    sigmoid [0.2 0.3 0.4 0.6 0.7 0.8]
    sigmoid-votes [0.1 0.3 0.5 0.5 0.8 0.9]
    sigmoid-both [0.1 0.3 0.5 0.5 0.8 0.9]
    isotonic [0.2 0.2 0.5 0.5 0.8 0.8]
    beta [0.2 0.3 0.4 0.6 0.7 0.8]
    venn-abers [0.2 0.3 0.5 0.5 0.7 0.7]
    """

    of_steps: ClassVar[bool]
    stored: ClassVar[dict[str, ArrayForm]]

    @property
    def needs_votes(self) -> bool:
        """Whether `fit` and `predict` need the logits of the vote shares."""

    @classmethod
    def fit(
        cls,
        scores: Floats,
        positive: NDArray[np.bool_],
        weight: Floats,
        vote_logits: Floats | None = None,
    ) -> Calibrator:
        """Fit on out-of-bag quantities.

        Parameters
        ----------
        scores : ndarray, shape (n,)
            Out-of-bag mean scores.
        positive : ndarray of bool, shape (n,)
            Which rows are of the positive class.
        weight : ndarray, shape (n,)
            Row weights, positive, of mean 1 or less.
        vote_logits : ndarray, shape (n,), optional
            Logits of out-of-bag vote shares, where votes count.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import CALIBRATORS
        >>> scores = np.array([-2.0, -1.0, 1.0, 2.0])
        >>> type(CALIBRATORS["sigmoid"].fit(scores, scores > 0, np.ones(4))).__name__
        'Sigmoid'
        """

    def check(self) -> None:
        """Check numbers from a file; a ValueError says what does not make sense.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import CALIBRATORS
        >>> scores = np.array([-2.0, -1.0, 1.0, 2.0])
        >>> CALIBRATORS["isotonic"].fit(scores, scores > 0, np.ones(4)).check()  # all is well
        """

    def predict(self, scores: Floats, vote_logits: Floats | None = None) -> Floats:
        """Probabilities of the positive class.

        Parameters
        ----------
        scores : ndarray, shape (m,)
            Mean scores of rows.
        vote_logits : ndarray, shape (m,), optional
            Logits of their vote shares (`vote_logits`), where votes count.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import CALIBRATORS
        >>> scores = np.array([-2.0, -1.0, 1.0, 2.0])
        >>> calibrator = CALIBRATORS["sigmoid"].fit(scores, scores > 0, np.ones(4))
        >>> calibrator.predict(np.array([-1.5, 0.0, 1.5])).round(1)
        array([0.2, 0.5, 0.8])
        """

    def derivative(self, scores: Floats, vote_logits: Floats | None = None) -> Floats:
        """Derivatives of the probabilities by the scores.

        Parameters
        ----------
        scores : ndarray, shape (m,)
            Mean scores of rows.
        vote_logits : ndarray, shape (m,), optional
            Logits of their vote shares (`vote_logits`), where votes count.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import CALIBRATORS
        >>> scores = np.array([-2.0, -1.0, 1.0, 2.0])
        >>> calibrator = CALIBRATORS["sigmoid"].fit(scores, scores > 0, np.ones(4))
        >>> steepest = calibrator.derivative(np.array([-1.5, 0.0, 1.5])).argmax()
        >>> int(steepest)  # where the probability is one half
        1
        """


def choose_calibration(
    scores: Floats,
    vote_logits: Floats,
    positive: NDArray[np.bool_],
    weight: Floats,
    groups: Groups | None = None,
) -> str:
    """Choose a calibration by its log-loss on out-of-bag rows it was not fitted to.

    The sigmoid stays unless another's mean log-loss is lower by more than the standard error of
    the paired difference: what cannot be told apart is not chosen for its noise.

    Parameters
    ----------
    scores, vote_logits : ndarray, shape (n,)
        Out-of-bag means and logits of vote shares.
    positive : ndarray of bool, shape (n,)
        Which rows are of the positive class.
    weight : ndarray, shape (n,)
        Row weights, positive, of mean 1 or less.
    groups : ndarray of int, shape (n,), optional
        Of rows that stay in one fold, and whose losses vary together.

    Returns
    -------
    str
        A key of `CALIBRATORS`.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.calibration import choose_calibration
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=200)
    >>> positive = rng.random(200) < 1 / (1 + np.exp(-2 * scores))
    >>> choose_calibration(scores, scores, positive, np.ones(200))
    'sigmoid'
    """
    if min(_units(positive, groups), _units(~positive, groups)) < _FEWEST:
        return "sigmoid"
    losses = held_out_losses(scores, vote_logits, positive, weight, groups)
    totals = {name: weight @ loss for name, loss in losses.items()}
    best = min(totals, key=lambda name: totals[name])
    difference = sums_of_groups(weight * (losses["sigmoid"] - losses[best]), groups)
    error = difference.std(ddof=1) * np.sqrt(len(difference))
    return best if difference.sum() > error else "sigmoid"


def _units(rows: NDArray[np.bool_], groups: Groups | None) -> int:
    """How many rows, or groups that hold one."""
    return int(np.count_nonzero(rows) if groups is None else len(np.unique(groups[rows])))


def held_out_losses(
    scores: Floats,
    vote_logits: Floats,
    positive: NDArray[np.bool_],
    weight: Floats,
    groups: Groups | None = None,
) -> dict[str, Floats]:
    """Log-loss of each row under each calibration when fitted to the other folds' rows.

    The folds are stratified, and always the same.

    Parameters
    ----------
    scores, vote_logits : ndarray, shape (n,)
        Out-of-bag means and logits of vote shares.
    positive : ndarray of bool, shape (n,)
        Which rows are of the positive class.
    weight : ndarray, shape (n,)
        Row weights, positive, of mean 1 or less.
    groups : ndarray of int, shape (n,), optional
        Of rows that stay in one fold.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.calibration import held_out_losses
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=200)
    >>> positive = rng.random(200) < 1 / (1 + np.exp(-2 * scores))
    >>> sorted(held_out_losses(scores, scores, positive, np.ones(200)))
    ['beta', 'isotonic', 'sigmoid', 'sigmoid-both', 'sigmoid-votes', 'venn-abers']
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold  # brings rich with it

    losses = {name: np.empty(len(scores)) for name in CALIBRATORS}
    folds = min(_FOLDS, _units(positive, groups), _units(~positive, groups))
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splits = kind(folds, shuffle=True, random_state=0).split(scores, positive, groups)
    for taught, asked in splits:
        for name, calibrator in CALIBRATORS.items():
            fitted = calibrator.fit(
                scores[taught], positive[taught], weight[taught], vote_logits[taught]
            )
            logits = exact_logits(fitted, scores[asked], vote_logits[asked])
            losses[name][asked] = np.logaddexp(0.0, np.where(positive[asked], -logits, logits))
    return losses


def exact_logits(calibrator: Calibrator, scores: Floats, vote_logits: Floats | None) -> Floats:
    """Logits of its probabilities, same shape as `scores`: of all digits, if there is a formula."""
    match calibrator:
        case Sigmoid():
            return calibrator.logit(scores)
        case Beta() | ScoreAndVoteSigmoid():
            return calibrator.logit(scores, vote_logits)
    return logits_of(calibrator.predict(scores, vote_logits))
