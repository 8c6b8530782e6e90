"""A search for directions that meet the requirements, where no machine was found that does."""

from __future__ import annotations

import numpy as np

from bootprob.constrained.anchor_sets import shifted_margins
from bootprob.constrained.problem import ConstrainedProblem
from bootprob.runtime.arrays import Floats

__all__ = ["search_directions"]


_FOLLOWED = 6  # hyperplanes that the search goes on from
_TRIED = 24  # neighbours of each in a round
_ROUNDS = 25
_STEPS = (-2.0, 0.0)  # powers of ten between which a step lies, of the spread of the scores


def search_directions(problem: ConstrainedProblem, margins: Floats) -> Floats:
    """Climb towards the requirements by random changes of direction.

    What a hyperplane lacks is a step function of its direction: there is no slope to follow, and
    machines that are trained for a small loss need not pass where it is 0.

    Parameters
    ----------
    margins : ndarray, shape (b, n_anchors)
        Hyperplanes to start from, both ways round: no step of the climb is long enough to turn one
        about, and with few anchors of a class the best plane may look away from it.

    Returns
    -------
    ndarray, shape (m, n_anchors)
        Margins of hyperplanes that meet the requirements, all positive on anchors that are right;
        empty where none was found.
    """
    generator = np.random.default_rng(0)
    spread = problem.anchors.std(axis=0)
    # Centred, a column that is constant moves nothing; the intercept is free anyway.
    anchors = problem.anchors - problem.anchors.mean(axis=0)
    anchors /= np.where(spread > 0, spread, 1.0)
    found = _moved(problem, np.concatenate([margins, -margins]))
    for _ in range(_ROUNDS):
        lack = np.array([problem.shortfall(each > 0).sum() for each in found])
        if not lack.all():
            break
        # Of equals the newest: on a plateau the search walks on.
        found = found[np.lexsort((-np.arange(len(lack)), lack))[:_FOLLOWED]]
        noise = generator.normal(size=(len(found), _TRIED, len(spread)))
        moves = noise @ anchors.T
        length = moves.std(axis=2, keepdims=True)
        moves *= found.std(axis=1)[:, None, None] / np.where(length > 0, length, 1.0)
        moves *= 10 ** generator.uniform(*_STEPS, size=(len(found), _TRIED, 1))
        tried = found[:, None] + problem.anchor_y * moves
        found = np.concatenate([found, _moved(problem, tried.reshape(-1, found.shape[1]))])
    met = [not problem.shortfall(each > 0).any() for each in found]
    return found[met]


def _moved(problem: ConstrainedProblem, margins: Floats) -> Floats:
    return np.array([shifted_margins(problem, each, 0.0) for each in margins])
