"""Rows stream through the trained models in chunks; nothing of size rows × B × R is held."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from bootprob.encoding.frames import as_frame, dense
from bootprob.encoding.names import with_text_names
from bootprob.ensemble.scoring.table_rows import TableRows, new_rows
from bootprob.exceptions import DataError
from bootprob.runtime.array_forms import LARGEST
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import DeviceRows, take_rows
from bootprob.runtime.finite_rows import refuse_gaps, refuse_other_numbers, text_refused
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import FittedBatch, Status
from bootprob_gpu.scoring.few_rows import are_few, replicate_scores_of_few
from bootprob_gpu.scoring.model_scores import model_scores as scores_of_replicates
from bootprob_gpu.scoring.row_stream import blocks_on_device, blocks_on_host
from bootprob_gpu.scoring.scorers import ReplicateScores, Votes

__all__ = [
    "NewRows",
    "Rows",
    "WeighedScores",
    "checked_rows",
    "model_scores",
    "model_scores_there",
    "vote_shares",
    "warn_of_unsolved",
]


Rows = NDArray[np.floating[Any]] | DeviceRows | TableRows
"""Rows that were checked."""

_DTYPES = [np.float64, np.float32]
_NUMBERS_AT_ONCE = {"cpu": 2**20, "cuda": 2**24}  # of rows, or scores, in a block


def checked_rows(model: Any, X: Any) -> Rows:
    """Rows for a fitted model as an array of numpy, or as `DeviceRows`; errors of scikit-learn.

    Of a model with a `preprocessor_` those that it makes of a data frame.
    """
    if getattr(model, "estimators_", None) is not None:
        return new_rows(model, X)
    frame, preprocessor = as_frame(X), getattr(model, "preprocessor_", None)
    if preprocessor is not None:
        if frame is None:
            raise DataError(
                "The model was fitted on a data frame with columns of several kinds, or gaps, and "
                f"is given {type(X).__name__}; give a data frame with the same columns."
            )
        frame = with_text_names(frame)
        validate_data(model, frame, reset=False, skip_check_array=True)
        encoded: Rows = preprocessor.transform(frame)
        return encoded
    if frame is not None:
        X = frame
    if isinstance(rows := take_rows(model, X), DeviceRows):
        return rows
    names = getattr(model, "feature_names_in_", None)
    numbers = X if names is None and _is_plain(model, X) else _numbers(model, X)
    refuse_gaps(numbers, names)
    return numbers


def _is_plain(model: Any, X: Any) -> bool:
    """Whether scikit-learn, whose look takes a fifth of the time of one row, would find nothing."""
    is_matrix = type(X) is np.ndarray and X.dtype in _DTYPES and X.ndim == 2 and len(X) > 0
    return is_matrix and X.shape[1] == getattr(model, "n_features_in_", None)


def _numbers(model: Any, X: Any) -> NDArray[np.floating[Any]]:
    refuse_other_numbers(X)
    options = {"reset": False, "accept_sparse": "csr", "ensure_all_finite": False}
    with text_refused("X has text", "the model knows columns of numbers"):
        return np.asarray(dense(validate_data(model, X, dtype=_DTYPES, **options)))


@dataclass(frozen=True)
class NewRows:
    """Rows as they were given; a block is standardised when its turn to be scored comes.

    Attributes
    ----------
    X : ndarray or Tensor of float32 or float64, shape (m, p)
        The rows; a memory-mapped array is read block by block, a tensor stays on its device.
    center, scale : ndarray, shape (p,), or None
        What standardises them; None if they are standardised.
    feature_map : callable, optional
        Takes standardised rows (k, p) and returns the columns (k, D) that the models know.
    farthest : float
        Standard deviations from the training rows beyond which scores may overflow.
    """

    X: NDArray[np.floating[Any]] | torch.Tensor
    center: Floats | None = None
    scale: Floats | None = None
    feature_map: Callable[[Floats], Floats] | None = None
    farthest: float = LARGEST

    def blocks(self, size: int) -> Iterator[NDArray[np.floating[Any]] | torch.Tensor]:
        """Blocks of up to `size` rows: mapped, which is done on the host, or as they were given."""
        for rows in row_blocks(len(self.X), 1, size):
            if self.feature_map is not None:
                yield self.feature_map(self.standardized(rows).cpu().numpy())
            else:
                yield self._block(rows)

    def standardized(self, rows: slice) -> torch.Tensor:
        """Some of the rows in float64, standardised where they lie; errors as `as_seen` raises."""
        block = self._block(rows)
        if not isinstance(block, torch.Tensor):
            block = torch.from_numpy(block.astype(np.float64))
        return self._standardized(block, rows.start)

    def _block(self, rows: slice) -> NDArray[np.floating[Any]] | torch.Tensor:
        # Last bits of products hang on the order in memory, which tensors keep in what is made of
        # them.
        block = self.X[rows]
        return block.contiguous() if isinstance(block, torch.Tensor) else block

    def as_seen(self, block: torch.Tensor, first: int) -> torch.Tensor:
        """What the models are to be given of a block, once it is on their device."""
        return block if self.feature_map is not None else self._standardized(block, first)

    def _standardized(self, block: torch.Tensor, first: int) -> torch.Tensor:
        """Standardise rows, in float64.

        Raises
        ------
        DataError
            For rows so far out that their scores overflow; names the first one and its column.
        """
        if self.center is None or self.scale is None:
            return block
        block = block - torch.tensor(self.center, device=block.device)  # in float64
        block /= torch.tensor(self.scale, device=block.device)
        lowest, highest = torch.aminmax(block)
        if torch.maximum(-lowest, highest) > self.farthest:
            row, column = (block.abs() > self.farthest).nonzero()[0].tolist()
            raise DataError(
                f"Row {first + row}, column {column} (counted from 0) is "
                f"{block[row, column].abs().item():.0e} standard deviations from the training "
                "rows; such a number is an error."
            )
        return block


def vote_shares(models: FittedBatch, rows: NewRows, weights: Floats) -> Floats:
    """Weighted share of the replicates that score each row above 0, thesis (3.4), shape (m,).

    Parameters
    ----------
    models : FittedBatch
    rows : NewRows
    weights : ndarray, shape (R,)
        Weight of each model; one of weight 0 is not scored.
    """
    votes = Votes(models, torch.tensor(weights, device="cpu"))
    shares = np.empty(len(rows.X))
    done = 0
    for part in _stream(models, rows, votes.shares, columns=1):
        shares[done : done + len(part)] = part
        done += len(part)
    return shares


class WeighedScores:
    """Weighted scores of each replicate; models are made ready once, for all rows to come.

    Parameters
    ----------
    models : FittedBatch
    weights : ndarray, shape (R,)
        Weight of each model; one of weight 0 is not scored.
    """

    def __init__(self, models: FittedBatch, weights: Floats) -> None:
        self._models, self._weights = models, torch.tensor(weights, device="cpu")

    def of(self, rows: Floats | NewRows) -> Iterator[Floats]:
        """Scores in chunks of shape (rows, B); an array holds rows as the models know them.

        Raises
        ------
        DataError
            A score is beyond the precision of the models.
        """
        models, done = self._models, 0
        rows = rows if isinstance(rows, NewRows) else NewRows(rows)
        score: Callable[[torch.Tensor], torch.Tensor]
        if are_few(models, len(rows.X)):
            score = partial(replicate_scores_of_few, models, self._weights)
        else:
            score = self._of_many
        for part in _stream(models, rows, score, columns=len(models.intercept)):
            yield _finite(part, done, models.dtype).astype(np.float64, copy=False)
            done += len(part)

    @cached_property
    def _of_many(self) -> ReplicateScores:
        return ReplicateScores(self._models, self._weights)


def model_scores(
    models: FittedBatch, rows: NewRows, chunk_size: int | None = None
) -> Iterator[NDArray[Any]]:
    """Scores of rows under every model, in chunks of shape (rows, R, B).

    Parameters
    ----------
    models : FittedBatch
    rows : NewRows
    chunk_size : int, optional
        Rows in a chunk; default what makes about 128 MiB, kernels with the training rows included.

    Raises
    ------
    DataError
        A score is beyond the precision of the models.
    """
    score, size = _all_scores(models, chunk_size)
    done = 0
    for part in _stream(models, rows, score, size=size):
        yield _finite(part.transpose(2, 1, 0), done, models.dtype)
        done += part.shape[2]


def model_scores_there(
    models: FittedBatch, rows: NewRows, chunk_size: int | None = None
) -> Iterator[torch.Tensor]:
    """The same as `model_scores`, left on the models' device."""
    score, size = _all_scores(models, chunk_size)
    done = 0
    for part in _results(models, rows, score, size=size):
        if not part.sum().isfinite() and (wrong := ~part.isfinite()).any():
            raise _overflow(done + int(wrong.any(0).any(0).nonzero()[0]), models.dtype)
        yield part.permute(2, 1, 0)
        done += part.shape[2]


def _all_scores(
    models: FittedBatch, chunk_size: int | None
) -> tuple[Callable[[torch.Tensor], torch.Tensor], int]:
    """What scores a block of rows under every model, shape (B, R, rows), and rows of a block."""
    columns = models.intercept.numel()
    if models.X is not None and models.gamma is not None:
        columns = max(columns, 3 * len(models.gamma) * len(models.X))

    def score(block: torch.Tensor) -> torch.Tensor:
        return torch.cat([scores for _, scores in scores_of_replicates(models, block)])

    return score, chunk_size or _rows_at_once(models, columns, 2**24)


def _finite(scores: NDArray[Any], first: int, dtype: torch.dtype) -> NDArray[Any]:
    """Scores of rows from the one numbered `first` on, unless one of them has overflown."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = scores.sum()  # needs no array of answers, unlike a look at every score
    if not np.isfinite(total) and not (known := np.isfinite(scores)).all():
        raise _overflow(first + int(np.argwhere(~known)[0][0]), dtype)
    return scores


def _overflow(row: int, dtype: torch.dtype) -> DataError:
    advice = ", or use dtype='float64'" if dtype == torch.float32 else ""
    return DataError(
        f"Row {row} (counted from 0) has a score beyond {str(dtype).removeprefix('torch.')}; "
        f"bring the columns to a similar size{advice}."
    )


def _stream(
    models: FittedBatch,
    rows: NewRows,
    score: Callable[[torch.Tensor], torch.Tensor],
    *,
    columns: int = 1,
    size: int | None = None,
) -> Iterator[NDArray[Any]]:
    """Results of blocks of rows, each sent, scored and fetched while others are."""
    results = _results(models, rows, score, columns=columns, size=size)
    return blocks_on_host(results, models.intercept.device)


def _results(
    models: FittedBatch,
    rows: NewRows,
    score: Callable[[torch.Tensor], torch.Tensor],
    *,
    columns: int = 1,
    size: int | None = None,
) -> Iterator[torch.Tensor]:
    """Results of blocks of rows, on the models' device."""
    device = models.intercept.device
    if size is None:
        columns = max(columns, rows.X.shape[1], len(models.center))
        size = _rows_at_once(models, columns, _NUMBERS_AT_ONCE[device.type])
    first = 0
    for block in blocks_on_device(rows.blocks(size), device):
        yield score(rows.as_seen(block, first))
        first += len(block)


def _rows_at_once(models: FittedBatch, columns: int, numbers: int) -> int:
    return max(1, min(numbers, (models.memory_limit or 2**62) // 32) // columns)


def warn_of_unsolved(certificates: Mapping[str, NDArray[Any]], stacklevel: int = 3) -> None:
    """Warn of models that were not solved to the tolerance: how many, how far, what to do."""
    status = certificates["status"]
    unsolved = ~np.isin(status, (Status.CONVERGED, Status.SINGLE_CLASS))
    if unsolved.any():
        were = "was" if unsolved.sum() == 1 else "were"
        worst = certificates["gap"][unsolved].max()
        advice = " ".join(Status(code).advice for code in np.unique(status[unsolved]))
        warnings.warn(
            f"{unsolved.sum()} of {status.size} models {were} not solved to the tolerance; the "
            f"largest relative duality gap is {worst:.1e}. {advice}",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )
