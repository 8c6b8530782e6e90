"""What fitted classifiers of an ensemble of two classes say of rows: scores and votes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bootprob.ensemble.bases.class_scores import class_scores, least_probability, of_pair
from bootprob.ensemble.bases.forests import scores_of_trees
from bootprob.ensemble.machines import Machines, farthest_rows, for_pair
from bootprob.ensemble.scoring.moments import ScoreMoments
from bootprob.ensemble.scoring.rows import NewRows
from bootprob.ensemble.scoring.table_rows import TableRows
from bootprob.ensemble.specs import PredictionSpec
from bootprob.ensemble.state import TwoClassState
from bootprob.exceptions import ClassifierError, DataError
from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import resolve_device

__all__ = ["Classifiers"]


@dataclass(frozen=True)
class Classifiers:
    """Classifiers of bootstrap samples: `bootprob.ensemble.scores.Replicates`."""

    state: TwoClassState
    spec: PredictionSpec

    def votes(self, X: TableRows) -> Floats:
        """Weighted shares of votes for the second class, shape (m,)."""
        thresholds = self.state.vote_thresholds_[:, None]
        parts = [
            np.einsum("mrb,r->m", scores > thresholds, self.state.weights_) / scores.shape[2]
            for scores in self.of_models(X)
        ]
        return np.concatenate(parts)

    def mean(self, X: TableRows) -> None:
        """There is no shorter way than through all scores."""
        return

    def weighed(self, X: TableRows) -> Iterator[Floats]:
        """Weighted scores of each replicate in chunks (m, B)."""
        for scores in self.of_models(X):
            yield np.einsum("mrb,r->mb", scores, self.state.weights_)

    def of_models(self, X: TableRows, chunk_size: int | None = None) -> Iterator[Floats]:
        """Raw scores under every model in chunks (m, R, B)."""
        scores = self._of_classes(X)
        numbers = 2**24 if chunk_size is None else chunk_size * scores[0].size
        for rows in row_blocks(len(X), scores[0].size, numbers):
            own, units = of_pair(scores[rows], *self.state.pair), self.state.candidate_units_
            if self._beside:
                own = np.concatenate([own, self._of_machines(X)[rows]], axis=1)
            yield own if units is None else own * units[:, :1] + units[:, 1:]

    def moments(self, X: TableRows) -> Iterator[ScoreMoments] | None:
        """There is no shorter way either."""
        return None

    def as_seen(self, X: TableRows | Floats, rows: slice) -> torch.Tensor:
        """Some of the rows as the posterior knows them, which looks at the matrix alone."""
        matrix, state = X.matrix if isinstance(X, TableRows) else X, self.state
        seen = NewRows(matrix, state.center_, state.scale_, farthest=self._farthest)
        return seen.standardized(rows).to(resolve_device(self.spec.device))

    @cached_property
    def _farthest(self) -> float:
        return farthest_rows(self.state.kernel)

    def _of_classes(self, X: TableRows) -> NDArray[Any]:
        """Scores of all classes, shape (m, R, B, 1) or (m, R, B, K), made once for these rows."""
        classifiers = self.state.estimators_
        assert classifiers is not None
        key = id(classifiers)
        if key not in X.known:
            B = self.state.n_replicates
            scores = self._made(classifiers, X)
            X.known[key] = np.broadcast_to(scores, (*scores.shape[:2], B, scores.shape[3]))
        return X.known[key]

    def _made(self, classifiers: list[list[Any]], X: TableRows) -> Floats:
        state = self.state
        K, least = state.n_classes, least_probability(state.whole_weight)
        try:
            if state.drawn_counts_ is not None:
                return scores_of_trees([tree for [tree] in classifiers], X.given)[:, None]
            of_each = [
                np.stack([class_scores(each, X.given, K, least) for each in replicate], axis=1)
                for replicate in classifiers
            ]
        except DataError:
            raise
        except ValueError as error:
            what = (str(error).strip().splitlines() or ["no reason is given"])[0].rstrip(".")
            raise DataError(f"A classifier does not take these rows: {what}.") from error
        except (MemoryError, OSError):
            raise
        except Exception as error:  # whatever the code of others raises
            raise ClassifierError(
                f"A classifier fails on these rows: {type(error).__name__}: {error}"
            ) from error
        return np.stack(of_each, axis=2)

    def _of_machines(self, X: TableRows) -> Floats:
        """Scores for this pair of classes by machines beside, (m, k, B), made once for the rows."""
        key = id(self._beside[0])
        if key not in X.known:
            made = [np.concatenate(list(each.weighed(X.matrix))) for each in self._machines]
            X.known[key] = np.stack(made, axis=1)
        return X.known[key]

    @cached_property
    def _machines(self) -> list[Machines]:
        """Of each `BootstrapSVC` beside the classifiers."""
        return [
            Machines(TwoClassState(vars(each)), PredictionSpec.of(vars(each)))
            for each in self._beside
        ]

    @cached_property
    def _beside(self) -> list[Any]:
        """Each `BootstrapSVC` beside the classifiers, of this pair of classes."""
        return [for_pair(each, self.state.pair) for each in self.state.machines_ or []]
