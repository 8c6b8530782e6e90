"""Scores and weights of all units at once, over the few units that can be peers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from bootprob.dea.efficiencies.interior_point import solve_weights
from bootprob.dea.efficiencies.program import Orientation, Returns
from bootprob.dea.panel import Panel

__all__ = ["Proposals", "propose"]

_ALL = 64  # so many units are all taken as peers from the beginning
_DIRECTIONS = 12  # weights drawn at random, for each column
_MOST_ROUNDS = 30
_VIOLATED = 1e-10  # in parts of a constraint's terms
_NEAR = 1e-6
_BEYOND = 1e-7  # a score so far beyond 1 is that of a unit without which no other reaches it
_ENTRIES = 1_000_000  # of a unit × peer table; there are some twenty-five


@dataclass(frozen=True, eq=False)
class Proposals:
    """What is known of each unit's program; nothing of it is believed without a certificate.

    Attributes
    ----------
    solved : ndarray of bool (K,)
    extreme : ndarray of bool (K,)
        The others do not come near the unit: it is efficient, and its only peer.
    scores : ndarray (K,)
        θ or φ by the weights.
    near : ndarray of bool (K, K)
        Which units may be a peer of each: those that its weights leave with next to no slack.
    input_weights, output_weights : ndarray (K, N) and (K, M)
    intercepts : ndarray (K,)
    """

    solved: np.ndarray
    extreme: np.ndarray
    scores: np.ndarray
    near: np.ndarray
    input_weights: np.ndarray
    output_weights: np.ndarray
    intercepts: np.ndarray


def propose(
    panel: Panel,
    returns: Returns,
    orientation: Orientation,
    super_efficiency: bool,
    device: torch.device,
) -> Proposals:
    """Solve the multiplier side of all units by `solve_weights`.

    Each unit is measured against the others, which is never harder: where the others reach a score
    beyond 1 (or none at all, as may be with variable returns) the unit is efficient, and weights
    with a score of 1 follow from any that are feasible with a score beyond it. Only efficient units
    can be peers. Some of them are found as the best by random weights; those whose constraint a
    solution violates are added, until none is.

    Units with an input of zero are left unsolved: no mixture of others that uses some of it is
    a peer, and the program has no interior.

    Parameters
    ----------
    returns, orientation : str
    """
    table = _Table.of(panel, returns, orientation)
    K, s = table.rows.shape
    better = None
    if not super_efficiency:
        better = (-1.0 if orientation == "input" else 1.0) - _BEYOND
    batch = _Batch(table, better, device)
    found = _Found(
        np.zeros((K, s)), np.full(K, np.nan), np.zeros(K, dtype=bool), np.zeros(K, dtype=bool),
        np.zeros((K, K), dtype=bool),
    )  # fmt: skip
    going = np.flatnonzero((table.X > 0).all(axis=1) & (K > 1))
    peers = np.arange(K) if K <= _ALL else table.best_by_random_weights()
    for _ in range(_MOST_ROUNDS):
        violated, by = batch.solve(going, peers, found)
        new = np.setdiff1d(violated, peers)
        if not len(new):
            break
        going, peers = by, np.append(peers, new)
    return table.proposals(found, super_efficiency)


@dataclass(frozen=True, eq=False)
class _Found:
    """Of all units, in the scale of the table; see `Proposals` and `BatchedWeights`."""

    weights: np.ndarray
    objective: np.ndarray
    solved: np.ndarray
    enough: np.ndarray
    near: np.ndarray


class _Batch:
    """A table on a device."""

    def __init__(self, table: _Table, better: float | None, device: torch.device) -> None:
        self._better, self._device = better, device
        self._rows, self._cost, self._normal, self._signed = (
            self._moved(part) for part in (table.rows, table.cost, table.normal, table.signed)
        )

    def solve(
        self, units: np.ndarray, peers: np.ndarray, found: _Found
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve for some units over some peers; whose constraints are violated, and by which units.

        What is found is written down also of those, but for `solved`.
        """
        K = len(self._rows)
        own = np.full(K, len(peers))
        own[peers] = np.arange(len(peers))
        among, sizes = self._rows[self._moved(peers)], self._rows.abs().T
        width = max(len(peers), K // 8)  # the check has K columns, but few tables
        violated, by = [peers[:0]], [peers[:0]]
        for part in np.array_split(units, 1 + len(units) * width // _ENTRIES):
            at = self._moved(part)
            solution = solve_weights(
                among, self._normal[at], self._cost[at], self._signed,
                own=self._moved(own[part]), enough=self._better,
            )  # fmt: skip
            excess = solution.weights @ self._rows.T
            excess[torch.arange(len(part), device=at.device), at] = -torch.inf
            size = solution.weights.abs() @ sizes
            most, where = (kept.cpu().numpy() for kept in (excess / size).max(dim=1))
            # A constraint all of whose terms vanish is near, whatever they are to one another.
            near = excess > -_NEAR * size.amax(1, keepdim=True)
            good = solution.solved.cpu().numpy()
            found.weights[part] = solution.weights.cpu().numpy()
            found.objective[part] = solution.objective.cpu().numpy()
            found.enough[part] = solution.enough.cpu().numpy()
            found.near[part] = near.cpu().numpy()
            found.solved[part] = good & (most <= _VIOLATED)
            violated.append(where[good & (most > _VIOLATED)])
            by.append(part[good & (most > _VIOLATED)])
        return np.concatenate(violated), np.concatenate(by)

    def _moved(self, part: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(part).to(self._device)


@dataclass(frozen=True, eq=False)
class _Table:
    """Constraints, objectives and normalisations; columns in parts of their largest.

    Columns of zeros (`used` and `made` are False) are left out, and have no weight.
    """

    X: np.ndarray
    Y: np.ndarray
    used: np.ndarray
    made: np.ndarray
    orientation: Orientation
    returns: Returns
    rows: np.ndarray
    cost: np.ndarray
    normal: np.ndarray
    signed: np.ndarray
    tops: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, panel: Panel, returns: Returns, orientation: Orientation) -> _Table:
        used, made = panel.inputs.max(axis=0) > 0, panel.outputs.max(axis=0) > 0
        X, Y = panel.inputs[:, used], panel.outputs[:, made]
        tops = X.max(axis=0), Y.max(axis=0)
        uses, makes = X / tops[0], Y / tops[1]
        nothing = np.zeros((len(X), 0 if returns == "constant" else 1))
        sign = -1.0 if returns == "non-increasing" else 1.0  # of the intercept
        ones = nothing + sign
        rows = np.hstack((-uses, makes, ones))
        own_uses = np.hstack((uses, 0 * makes, nothing))
        own_makes = np.hstack((0 * uses, makes, nothing))
        intercept = np.hstack((0 * uses, 0 * makes, ones))
        cost, normal = (
            (-own_makes - intercept, own_uses)
            if orientation == "input"
            else (own_uses - intercept, own_makes)
        )
        signed = np.ones(rows.shape[1], dtype=bool)
        if returns == "variable":
            signed[-1] = False
        rows = rows / np.abs(rows).max(axis=1, keepdims=True)
        return cls(X, Y, used, made, orientation, returns, rows, cost, normal, signed, tops)

    def best_by_random_weights(self) -> np.ndarray:
        """Units that are the best by some weights."""
        X, Y = (part / part.mean(axis=0) for part in (self.X, self.Y))
        draw = np.random.default_rng(0).exponential
        n_draws = _DIRECTIONS * (X.shape[1] + Y.shape[1])
        used = draw(size=(n_draws, X.shape[1])) @ X.T / X.shape[1]
        made = draw(size=(n_draws, Y.shape[1])) @ Y.T / max(Y.shape[1], 1)
        ratio = np.divide(made, used, out=np.zeros_like(made), where=used > 0)
        best = ratio.argmax(axis=1)
        if self.returns != "constant":
            worth = draw(size=(n_draws, 1)) * ratio.max(axis=1, keepdims=True)
            best = np.append(best, (made - worth * used).argmax(axis=1))
        return np.unique(best)

    def proposals(self, found: _Found, super_efficiency: bool) -> Proposals:
        """In the data's own units, scores beyond 1 brought back to it."""
        K, N, M = len(self.X), self.X.shape[1], self.Y.shape[1]
        weights, solved, near = found.weights, found.solved, found.near
        inward = self.orientation == "input"
        alpha, beta = np.zeros((K, len(self.used))), np.zeros((K, len(self.made)))
        alpha[:, self.used] = np.maximum(weights[:, :N], 0.0) / self.tops[0]
        beta[:, self.made] = np.maximum(weights[:, N : N + M], 0.0) / self.tops[1]
        intercept = np.zeros(K)
        if self.returns != "constant":
            intercept = weights[:, -1] * (-1.0 if self.returns == "non-increasing" else 1.0)
        scores = -found.objective if inward else found.objective
        beyond = np.zeros_like(solved)
        if not super_efficiency:
            beyond = solved & (scores > 1.0 if inward else scores < 1.0)
        if inward:
            # All others stay within their constraints, as what they use has a positive value.
            beta[beyond] /= scores[beyond, None]
            intercept[beyond] /= scores[beyond]
        else:
            used = (alpha[:, self.used] * self.X).sum(axis=1)
            alpha[beyond] *= ((1.0 + intercept[beyond]) / used[beyond])[:, None]
        near[np.diag_indices(K)] = not super_efficiency
        return Proposals(
            solved, solved & found.enough, np.where(beyond, 1.0, scores), near,
            alpha, beta, intercept,
        )  # fmt: skip
