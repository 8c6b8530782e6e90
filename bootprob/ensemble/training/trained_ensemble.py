"""A trained ensemble, put together from its shards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from bootprob.ensemble.scoring.out_of_bag import WeighedMachines
from bootprob.ensemble.training.preparation import Prepared
from bootprob.ensemble.training.shards import ShardResult
from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import FittedBatch

__all__ = ["TrainedEnsemble"]


@dataclass(frozen=True)
class TrainedEnsemble:
    """Trained models and the out-of-bag sums that need no second look at the scores.

    Attributes
    ----------
    models : FittedBatch
        B × R trained models.
    accuracy : ndarray, shape (B, R)
        Weighted share of out-of-bag rows classified correctly; NaN where no row is out of bag.
    votes : ndarray of int, shape (n, R)
        Out-of-bag scores above 0, counted over the replicates.
    score_sums : ndarray, shape (n, R)
        Out-of-bag scores, summed over the replicates.
    n_out_of_bag : ndarray of int, shape (n,)
        Replicates in which each row is out of bag.
    control_gap : ndarray, shape (B, R) or None
        What constraints on the machines cost at most; None without.
    """

    models: FittedBatch
    accuracy: Floats
    votes: NDArray[np.int32]
    score_sums: Floats
    n_out_of_bag: NDArray[np.int64]
    control_gap: Floats | None

    @classmethod
    def of(cls, results: Iterable[ShardResult], drawn: NDArray[np.integer[Any]]) -> Self:
        """Put its shards together, in the order of their replicates.

        That order is what makes the sums the same to the last bit wherever the shards were trained.

        Parameters
        ----------
        results : iterable of ShardResult
            Of all its shards, in order.
        drawn : ndarray of int, shape (B, n)
            The bootstrap samples.
        """
        models, accuracies, gaps = [], [], []
        votes = scores = None
        for result in results:
            models.append(result.models)
            accuracies.append(result.accuracy)
            if result.control_gap is not None:
                gaps.append(result.control_gap)
            votes = result.votes if votes is None else votes.add_(result.votes)
            scores = result.score_sums if scores is None else scores.add_(result.score_sums)
            del result  # or its sums would live on while the next shard is trained
        assert votes is not None
        assert scores is not None
        n_out_of_bag = np.zeros(drawn.shape[1], dtype=np.int64)
        for rows in row_blocks(drawn.shape[1], len(drawn)):
            n_out_of_bag[rows] = (drawn[:, rows] == 0).sum(axis=0)
        return cls(
            models=FittedBatch.concatenate(models),
            accuracy=torch.cat(accuracies).cpu().numpy(),
            votes=votes.T.cpu().numpy(),
            score_sums=scores.T.cpu().numpy(),
            n_out_of_bag=n_out_of_bag,
            control_gap=torch.cat(gaps).cpu().numpy() if gaps else None,
        )

    def weighed(self, weights: Floats, table: Prepared) -> WeighedMachines:
        """The machines with weights of the models, shape (R,), and their training rows."""
        return WeighedMachines(self.models, weights, table.rows, table.counts, table.groups)

    def attributes(self, table: Prepared) -> dict[str, Any]:
        """Attributes of the fit that are the machines'."""
        models, dual_coef = self.models, self.models.dual_coef
        return {
            "bootstrap_intercept_": models.intercept.cpu().numpy(),
            "bootstrap_coef_": None if models.coef is None else models.coef.cpu().numpy(),
            "bootstrap_dual_coef_": None if dual_coef is None else dual_coef.cpu().numpy(),
            "X_fit_": None if dual_coef is None else table.rows,
            "certificates_": {
                name: values.cpu().numpy() for name, values in vars(models.certificate).items()
            },
        }
