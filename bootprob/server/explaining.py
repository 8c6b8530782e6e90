"""Why the probability of a record is what it is, for requests that ask for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bootprob.ensemble.scoring.table_rows import TableRows
from bootprob.exceptions import DataError
from bootprob.explanation.answers import Explained
from bootprob.explanation.row_contributions import Contributions, divided
from bootprob.runtime.arrays import Floats
from bootprob.runtime.counted import counted
from bootprob.server.errors import RequestError, of_model
from bootprob.server.limits import Limits
from bootprob.server.served_model import ServedModel, ServedRows

__all__ = ["Explainer", "as_json"]

_BACKGROUND = 16  # training rows at most that a record is compared with
_REQUESTS = 4  # whose records may wait


@dataclass(frozen=True)
class _Ready:
    """What explains, the rows that it compares with, and what the classes are called."""

    explained: Explained
    background: Floats
    labels: Sequence[Any]

    def of(self, row: ServedRows, level: float) -> Contributions:
        """Of one row; of several classes why it has its label."""
        explained = self.explained
        if isinstance(row, TableRows):
            explained = explained.apart()
            row = explained.matrix(row)
        if len(self.labels) == 2:
            return divided(explained, row, self.background, level)
        number = explained.decided(row)
        found = divided(replace(explained, number=number), row, self.background, level)
        return replace(found, label=self.labels[number])


class Explainer:
    """Contributions of columns, one record after the other, in a thread of their own.

    So a deadline that passes or a client that leaves costs one record more at most, and records
    of several requests take turns.

    Parameters
    ----------
    served : ServedModel
    limits : Limits

    Attributes
    ----------
    refusal : str or None
        Why this model cannot.
    """

    def __init__(self, served: ServedModel, limits: Limits) -> None:
        self._limits, self._waiting = limits, 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bootprob-explain")
        self.refusal: str | None = None
        try:
            explained = Explained.of(served.model)
            # Its own answers: what one thread has made ready is not shared with another.
            explained = replace(explained, svc=copy(explained.svc))
            background = explained.compared_with(None, _BACKGROUND, 0)
            self._ready = _Ready(explained, background, served.classes)
            divided(explained, self._ready.background[:1], self._ready.background, 0.95, n_orders=4)
        except DataError as error:
            self.refusal = f"This model's probabilities cannot be explained: {error}"

    def check(self, n_rows: int) -> None:
        """Refuse requests that cannot be answered, before their records are looked at.

        Raises
        ------
        RequestError
            422: the model cannot, or the records are too many.
        """
        if self.refusal is not None:
            raise RequestError(422, self.refusal)
        if n_rows > self._limits.max_explained:
            most = counted(self._limits.max_explained, "record is", "records are")
            raise RequestError(422, f"Up to {most} explained in a request.")

    async def explain(self, X: Any, level: float, until: float) -> list[Contributions]:
        """Contributions to each of some rows (m, p), which were checked.

        Raises
        ------
        RequestError
            429: too many records wait; 503: the deadline passes; 422 or 500 as `of_model` says.
        """
        if self._waiting + len(X) > _REQUESTS * self._limits.max_explained:
            waiting = counted(self._waiting, "record waits", "records wait")
            message = f"{waiting} to be explained; try again later."
            raise RequestError(429, message, retry_after=1)
        loop, found = asyncio.get_running_loop(), []
        self._waiting += len(X)
        try:
            async with asyncio.timeout_at(until):
                for k in range(len(X)):
                    row = X[k : k + 1]
                    found.append(
                        await loop.run_in_executor(self._thread, self._ready.of, row, level)
                    )
        except TimeoutError:
            message = (
                f"{len(found)} of {len(X)} records were explained within "
                f"{self._limits.deadline:g} s; ask for fewer, or later."
            )
            raise RequestError(503, message, retry_after=1) from None
        except Exception as error:
            told = of_model(error, is_well=False)
            raise told from told.__cause__
        finally:
            self._waiting -= len(X)
        return found


def as_json(found: Contributions) -> dict[str, Any]:
    """Of one record, the columns that contribute most first."""
    order = np.argsort(-np.abs(found.contribution[0]), kind="stable")
    lower, upper = found.interval[0].T.tolist()
    value = found.contribution[0].tolist()
    of_class = {} if found.label is None else {"label": found.label}
    return of_class | {
        "base": found.base,
        "contributions": [
            {"column": found.columns[k], "contribution": value[k], "interval": [lower[k], upper[k]]}
            for k in order.tolist()
        ],
    }
