"""From a request to its reply: read, validate, queue, wait, write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from bootprob.costs.matrix import CostMatrix
from bootprob.encoding.columns import level_text
from bootprob.ensemble.uncertainty.probability_intervals import OF_PROBABILITIES
from bootprob.exceptions import DataError, FewRowsWarning, LackOfFitWarning
from bootprob.explanation.row_contributions import Contributions
from bootprob.server.batching import MicroBatcher
from bootprob.server.binary import binary_reply, parts_of, with_data
from bootprob.server.bodies import BodyReader
from bootprob.server.errors import ClientGone, RequestError
from bootprob.server.explaining import Explainer, as_json
from bootprob.server.limits import Limits
from bootprob.server.problems import encoded, valid
from bootprob.server.records import RecordForm
from bootprob.server.schemas import InferHead
from bootprob.server.served_model import Scores, ServedModel, ServedRows
from bootprob.server.strict_json import PIECE, parse_json
from bootprob.server.tensors import (
    input_metadata,
    output_metadata,
    reply_tensors,
    rows_of,
)
from bootprob.tables.mistake_costs import asking_columns

__all__ = ["Answering", "json_reply"]


_T = TypeVar("_T")
_SHORT_REPLY = 256  # rows: written in a millisecond or two


@dataclass(frozen=True)
class _Wanted:
    """What a request says beside its rows; id and outputs are those of tensors."""

    level: float
    costs: CostMatrix | None
    explain: bool = False
    id: str | None = None
    outputs: tuple[str, ...] = ()
    binary: tuple[str, ...] = ()


class Answering:
    """Both kinds of requests, and what is said of the model.

    Bodies and replies that take more than a moment are read and written in a thread, one at a time,
    so that the event loop always has one for others.
    """

    def __init__(self, served: ServedModel, batcher: MicroBatcher, limits: Limits) -> None:
        self.served, self.batcher, self.limits = served, batcher, limits
        self._bodies, self._explainer = BodyReader(limits), Explainer(served, limits)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bootprob-read")
        self._record_form = RecordForm(served.columns, limits.max_rows)
        self._infer_head = TypeAdapter(InferHead)

    async def predict(self, request: Request) -> Response:
        """Answer records by name."""
        until = self._deadline()
        X, given = await self._read(request, self._records, until)
        scores = await _while_connected(request, self.batcher.submit(X, given.level, until))
        why: list[Contributions] = []
        if given.explain:
            explained = self._explainer.explain(X, given.level, until)
            why = await _while_connected(request, explained)

        def reply() -> Response:
            decided = self.served.decided(scores, given.costs)
            head = {"model": self.served.name, "version": self.served.version}
            return json_reply(head | {"level": given.level} | self._predictions(decided, why))

        return await self._written(reply, len(X))

    async def infer(self, request: Request) -> Response:
        """Answer tensors."""
        until = self._deadline()
        X, given = await self._read(request, partial(self._tensors, request), until)
        scores = await _while_connected(request, self.batcher.submit(X, given.level, until))

        def reply() -> Response:
            decided = self.served.decided(scores, given.costs)
            content: dict[str, Any] = {
                "model_name": self.served.name,
                "model_version": self.served.version,
                "parameters": {"level": given.level},
                "outputs": reply_tensors(decided, self.served, given.outputs),
            }
            if given.id is not None:
                content["id"] = given.id
            return binary_reply(content, given.binary) if given.binary else json_reply(content)

        return await self._written(reply, len(X))

    def metadata(self) -> dict[str, Any]:
        """The model as the protocol describes it."""
        svc = self.served.svc
        parameters: dict[str, Any] = {
            "classes": self.served.classes,
            "interval": svc.interval,
            "default_level": 0.95,
            "threshold": self.served.threshold,
            "explains": self._explainer.refusal is None,
        }
        if svc.interval in OF_PROBABILITIES:
            parameters["lack_of_fit"] = isinstance(self.served.doubt, LackOfFitWarning)
            parameters["few_rows"] = isinstance(self.served.doubt, FewRowsWarning)
        return {
            "name": self.served.name,
            "versions": [self.served.version],
            "platform": "bootprob",
            "inputs": input_metadata(self.served.columns),
            "outputs": output_metadata(self.served),
            "parameters": parameters,
        }

    def check_address(self, request: Request) -> None:
        """Refuse other models and versions."""
        given, served = request.path_params, self.served
        if given["name"] != served.name or given.get("version", served.version) != served.version:
            raise RequestError(
                404,
                "There is no such model or version here; "
                f"GET /v2/models/{served.name} says what there is.",
            )

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self.limits.deadline

    def _records(self, body: bytes) -> tuple[ServedRows, _Wanted]:
        """Rows of a request with records, and what it wants to know of them."""
        request, values = self._record_form.read(parse_json(body, self.limits))
        if request.explain:
            self._explainer.check(len(request.records))
        X = encoded(self.served.columns.encoder, values, len(request.records))
        costs = self.served.costs_of(values)
        return self._checked(X), _Wanted(request.level, costs, request.explain)

    def _tensors(self, incoming: Request, body: bytes) -> tuple[ServedRows, _Wanted]:
        """Rows of a request with tensors, and what it wants to know of them."""
        text, binary = parts_of(body, incoming)
        request = valid(self._infer_head, parse_json(text, self.limits))
        outputs = tuple(dict.fromkeys(each.name for each in request.outputs or ()))
        if "threshold" in outputs and len(self.served.classes) > 2:
            raise RequestError(422, "There is a threshold with two classes only.")
        known = [each["name"] for each in output_metadata(self.served)]
        if unknown := next((name for name in outputs if name not in known), None):
            said = f"The output {unknown!r} is of servers that know what asking a person costs."
            if unknown == "undecided":
                said = "The model leaves no row undecided."
            raise RequestError(422, said)
        inputs = request.inputs if binary is None else with_data(request.inputs, binary)
        X, values = rows_of(inputs, self.served.columns, self.limits.max_rows)
        costs = self.served.costs_of(values)
        always = request.parameters.binary_data_output
        asked = {each.name: each.parameters.binary_data for each in request.outputs or ()}
        as_bytes = tuple(
            each
            for each in outputs or known
            if (always if asked.get(each) is None else asked[each])
        )
        wanted = _Wanted(
            request.parameters.level, costs, id=request.id, outputs=outputs, binary=as_bytes
        )
        return self._checked(X), wanted

    def _checked(self, X: ServedRows) -> ServedRows:
        try:
            self.served.check(X)
        except DataError as error:
            raise RequestError(422, str(error)) from None
        return X

    async def _read(
        self, request: Request, make: Callable[[bytes], tuple[ServedRows, _Wanted]], until: float
    ) -> tuple[ServedRows, _Wanted]:
        """Read a body and make rows of it, in the thread if it is large."""
        async with self._bodies.body(request, until) as body:
            if len(body) <= PIECE:
                return make(body)
            loop = asyncio.get_running_loop()
            work = loop.run_in_executor(self._thread, _outcome, make, body)
            found = await _while_connected(request, self._in_time(work, until))
        if isinstance(found, RequestError):
            raise found
        return found

    async def _in_time(self, work: asyncio.Future[_T], until: float) -> _T:
        try:
            async with asyncio.timeout_at(until):
                return await work
        except TimeoutError:
            message = f"The body was not read within {self.limits.deadline:g} s; try again later."
            raise RequestError(503, message, retry_after=1) from None

    async def _written(self, reply: Callable[[], Response], n_rows: int) -> Response:
        """Write a reply, in the thread if it is long."""
        if n_rows * len(self.served.classes) <= _SHORT_REPLY:
            return reply()
        return await asyncio.get_running_loop().run_in_executor(self._thread, reply)

    def _predictions(self, scores: Scores, why: Sequence[Contributions]) -> dict[str, Any]:
        classes = self.served.classes
        labels = [classes[code] for code in scores.label.tolist()]
        probability: list[Any] = scores.probability.tolist()
        interval: list[Any] = scores.interval.tolist()
        if len(classes) == 2:
            probability = [of_row[1] for of_row in probability]
            interval = [of_row[1] for of_row in interval]
        else:
            names = [level_text(label) for label in classes]
            probability = [dict(zip(names, of_row, strict=True)) for of_row in probability]
            interval = [dict(zip(names, of_row, strict=True)) for of_row in interval]
        predictions: list[dict[str, Any]] = [
            {"label": label, "probability": p, "interval": bounds}
            for label, p, bounds in zip(labels, probability, interval, strict=True)
        ]
        if scores.threshold is not None:
            for said, threshold in zip(predictions, scores.threshold.tolist(), strict=True):
                said["threshold"] = threshold
        if scores.undecided is not None:
            for said, undecided in zip(predictions, scores.undecided.tolist(), strict=True):
                said["undecided"] = undecided
        if scores.decisions is not None:
            columns = asking_columns(scores.decisions)
            of_rows = zip(*(column.tolist() for column in columns.values()), strict=True)
            for said, (ask, cost, lower, upper, stable) in zip(predictions, of_rows, strict=True):
                said |= {
                    "ask": ask, "cost": cost, "cost_interval": [lower, upper], "stable": stable,
                }  # fmt: skip
        for said, found in zip(predictions, why, strict=False):
            said["explanation"] = as_json(found)
        return {
            "positive": classes[1] if len(classes) == 2 else None,
            "predictions": predictions,
        }


def json_reply(
    content: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A reply as JSON; numbers are written so that reading them gives the same bits."""
    return Response(to_json(content), status, headers, "application/json")


def _outcome(make: Callable[[bytes], _T], body: bytes) -> _T | RequestError:
    """A result or a refusal, which is not raised: a traceback would keep what was parsed."""
    try:
        return make(body)
    except RequestError as error:
        error.__context__ = None
        return error.with_traceback(None)


async def _while_connected(request: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """Wait for a result, or stop at once if the client leaves.

    The body has been read, so that the next message can only be of its leaving.
    """
    result = asyncio.create_task(work)
    leaving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({result, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not result.done():
            raise ClientGone
        return result.result()
    finally:
        for task in (result, leaving):
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
