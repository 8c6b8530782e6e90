"""Replicates of classifiers in a checkpoint, so that a stopped fit goes on from them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator, Sequence
from contextlib import closing
from pickle import PicklingError
from typing import Any

import joblib
import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from bootprob.encoding.frames import as_frame
from bootprob.ensemble.bases.replicates import Replicate, Task
from bootprob.ensemble.training.checkpoints import Checkpoint, checksum, versions_of
from bootprob.exceptions import DataError
from bootprob.runtime.skops_io import as_bytes, skops_io

__all__ = ["KeptReplicates", "checksum_of_rows"]


class KeptReplicates:
    """A task whose replicates are kept as they are trained, and trained only if they are not kept.

    Of what is kept only such types are made as the task itself trains: for that, a fit that finds
    replicates trains one before it reads them.

    Parameters
    ----------
    checkpoint : Checkpoint
    task : Task
    codes : ndarray of int, shape (n,)
        Classes, numbered from 0.
    counts : ndarray of int, shape (B, n)
        The bootstrap samples.

    Raises
    ------
    DataError
        The folder is of another fit, or classifiers have parameters that cannot be compared.
    ModelFileError
        skops is not installed.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        task: Task,
        codes: NDArray[np.intp],
        counts: NDArray[np.unsignedinteger[Any]],
    ) -> None:
        self.checkpoint, self.task, self.counts = checkpoint, task, counts
        self._types: set[str] | None = None
        skops_io()
        checkpoint.bind(
            {
                "labels": checksum(codes),
                "weights": checksum(task.weight),
                "bootstrap samples": checksum(counts),
                "classifiers": _parameters(task.candidates),
                **versions_of("numpy", "scikit-learn"),
                **_versions(task.candidates),
            }
        )

    def train(self, numbers: Sequence[int], n_jobs: int | None) -> Generator[Replicate, None, None]:
        """Replicates in their order, read or trained; as `Task.train` has it."""
        kept = self.checkpoint.intact(numbers)
        if kept and self._types is None:
            first = next((each for each in numbers if each not in kept), numbers[0])
            [replicate] = self.task.train(self.counts, [first], None)
            self._types = _types(as_bytes(replicate.classifiers))
            if first not in kept:
                self._keep(first, replicate)
                kept.add(first)
        missing = [each for each in numbers if each not in kept]
        with closing(self.task.train(self.counts, missing, n_jobs)) as trained:
            for number in numbers:
                if number in kept:
                    replicate = self._read(number)
                else:
                    replicate = next(trained)
                    self._keep(number, replicate)
                yield replicate

    def _keep(self, number: int, replicate: Replicate) -> None:
        stored = np.frombuffer(as_bytes(replicate.classifiers), dtype=np.uint8)
        self.checkpoint.write(number, {"classifiers": stored, "scores": replicate.scores})

    def _read(self, number: int) -> Replicate:
        arrays = self.checkpoint.read(number)
        data, known = arrays["classifiers"].tobytes(), self._types or set()
        if unknown := sorted(_types(data) - known):
            warnings.warn(
                f"Replicate {number} of {self.checkpoint.folder} has {', '.join(unknown)}, which "
                "the classifiers now do not; it is trained again.",
                stacklevel=2,
            )
            [replicate] = self.task.train(self.counts, [number], None)
            self._keep(number, replicate)
            return replicate
        classifiers = skops_io().loads(data, trusted=sorted(known))
        left_out = np.flatnonzero(self.counts[number] == 0)
        return Replicate(classifiers, left_out, arrays["scores"])


def checksum_of_rows(X: Any) -> str:
    """Of a matrix, a sparse one or a data frame, whose categories and types count."""
    is_sparse: bool = scipy.sparse.issparse(X)  # else mypy sees less of X below
    if is_sparse:
        return checksum(X.data, X.indices, X.indptr, repr(X.shape))
    if (frame := as_frame(X)) is None:
        return checksum(np.asarray(X))
    import pandas as pd

    types = [
        repr((name, str(dtype), list(getattr(dtype, "categories", ()))))
        for name, dtype in frame.dtypes.items()
    ]
    return checksum(*types, pd.util.hash_pandas_object(frame, index=False).to_numpy())


def _types(data: bytes) -> set[str]:
    """Types in stored classifiers that skops does not trust by itself."""
    return set(skops_io().get_untrusted_types(data=data))


def _parameters(candidates: Sequence[Any]) -> str:
    """A checksum of classifiers that are not fitted."""
    try:
        found = [joblib.hash((type(each).__qualname__, each.get_params())) for each in candidates]
    except (PicklingError, AttributeError, TypeError) as error:
        raise DataError(
            f"A checkpoint compares the parameters of classifiers, and some cannot be: {error}. "
            "Give functions by name, from a module."
        ) from error
    return checksum(*found)


def _versions(candidates: Sequence[Any]) -> dict[str, str]:
    """Of the packages that classifiers are from, beside scikit-learn."""
    packages = {type(each).__module__.partition(".")[0] for each in candidates} - {"sklearn"}
    return {
        f"version of {name}": str(getattr(sys.modules[name], "__version__", "not known"))
        for name in sorted(packages)
    }
