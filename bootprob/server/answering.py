"""From a request to its reply: read, validate, queue, wait, write."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from bootprob.columns import level_text
from bootprob.exceptions import DataError
from bootprob.intervals import OF_PROBABILITIES
from bootprob.lack_of_fit import SIGNIFICANT
from bootprob.server.batching import MicroBatcher
from bootprob.server.bodies import read_json
from bootprob.server.errors import ClientGone, RequestError
from bootprob.server.limits import Limits
from bootprob.server.schemas import InferRequest, predict_request
from bootprob.server.served_model import Scores, ServedModel
from bootprob.server.tensors import (
    OUTPUTS,
    input_metadata,
    output_metadata,
    reply_tensors,
    rows_of,
)

__all__ = ["Answering", "json_reply"]

Floats = NDArray[np.float64]

_MOST_PROBLEMS = 20  # told at once
_CATEGORY = "Input should be text, a number, true, false or null"


class Answering:
    """Both kinds of requests, and what is said of the model.

    Parameters
    ----------
    served : ServedModel
    batcher : MicroBatcher
    limits : Limits

    Attributes
    ----------
    form : TypeAdapter
        Of requests for predictions.
    """

    def __init__(self, served: ServedModel, batcher: MicroBatcher, limits: Limits) -> None:
        self.served, self.batcher, self._limits = served, batcher, limits
        self.form = predict_request(served.columns, limits.max_rows)
        self._infer_form = TypeAdapter(InferRequest)

    async def predict(self, request: Request) -> Response:
        """Answer records by name."""
        until = self._deadline()
        given = self._valid(self.form, await read_json(request, self._limits, until))
        records, level = given.records, given.level
        columns = self.served.columns
        values = {name: [record[name] for record in records] for name in columns.kinds}
        scores = await self._scored(request, columns.encode(values, len(records)), level, until)
        head = {"model": self.served.name, "version": self.served.version, "level": level}
        return json_reply(head | self._predictions(scores))

    async def infer(self, request: Request) -> Response:
        """Answer tensors."""
        until = self._deadline()
        given = self._valid(self._infer_form, await read_json(request, self._limits, until))
        X = rows_of(given, self.served.columns, self._limits.max_rows)
        wanted = OUTPUTS
        if given.outputs is not None:
            wanted = tuple(dict.fromkeys(output.name for output in given.outputs)) or OUTPUTS
        scores = await self._scored(request, X, given.parameters.level, until)
        reply = {
            "model_name": self.served.name,
            "model_version": self.served.version,
            "parameters": {"level": given.parameters.level},
            "outputs": reply_tensors(scores, self.served, wanted),
        }
        return json_reply(reply if given.id is None else reply | {"id": given.id})

    def metadata(self) -> dict[str, Any]:
        """The model as the protocol describes it."""
        svc = self.served.svc
        parameters: dict[str, Any] = {
            "classes": self.served.classes,
            "interval": svc.interval,
            "default_level": 0.95,
        }
        if svc.interval in OF_PROBABILITIES and svc.lack_of_fit_ is not None:
            parameters["lack_of_fit"] = bool(svc.lack_of_fit_["p_value"] < SIGNIFICANT)
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
            raise RequestError(404, "There is no such model or version here; see /openapi.json.")

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._limits.deadline

    def _valid(self, form: TypeAdapter[Any], document: Any) -> Any:
        try:
            return form.validate_python(document)
        except ValidationError as error:
            problems = _problems(error)
        first = problems[0]
        where = ", ".join(f"{what} {first[what]!r}" for what in ("row", "column") if what in first)
        said = f"{where}: {first['problem']}." if where else f"{first['problem']}."
        raise RequestError(422, said, problems=problems)

    async def _scored(self, request: Request, X: Floats, level: float, until: float) -> Scores:
        try:
            self.served.check(X)
        except DataError as error:
            raise RequestError(422, str(error)) from None
        return await _while_connected(request, self.batcher.submit(X, level, until))

    def _predictions(self, scores: Scores) -> dict[str, Any]:
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
        return {
            "positive": classes[1] if len(classes) == 2 else None,
            "predictions": [
                {"label": label, "probability": p, "interval": bounds}
                for label, p, bounds in zip(labels, probability, interval, strict=True)
            ],
        }


def json_reply(
    content: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A reply as JSON; numbers are written so that reading them gives the same bits."""
    return Response(to_json(content), status, headers, "application/json")


async def _while_connected(request: Request, work: Coroutine[Any, Any, Scores]) -> Scores:
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


def _problems(error: ValidationError) -> list[dict[str, Any]]:
    """Where a request is wrong, without what it holds there."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        place, text = each["loc"], each["msg"]
        problem: dict[str, Any] = {}
        if len(place) > 1 and place[0] == "records":
            problem["row"] = place[1]
            if len(place) > 2:
                problem["column"] = place[2]
            if len(place) > 3:  # a union of kinds, each with its own complaint
                text = _CATEGORY
            place = place[:3]
        elif each["type"] == "extra_forbidden":
            text = "A key is not known"  # it may hold anything and is not repeated
        elif not place:
            text = "The body should be an object"
        else:
            text = f"{'.'.join(map(str, place))}: {text}"
        found.setdefault(tuple(place), problem | {"problem": text})
    return list(found.values())[:_MOST_PROBLEMS]
