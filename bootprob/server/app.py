"""The application: routes, and what is common to all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from bootprob.exceptions import DataError
from bootprob.server.answering import Answering, json_reply
from bootprob.server.batching import MicroBatcher
from bootprob.server.draining import Stopping
from bootprob.server.errors import ClientGone, RequestError
from bootprob.server.examples import infer_example, predict_example
from bootprob.server.limits import Limits
from bootprob.server.metrics import Counts, Metrics
from bootprob.server.middleware import (
    LOGGER,
    Bounded,
    Observed,
    log_exception,
    refuse_overload,
)
from bootprob.server.pages import PAGE_HEADERS, operations_page, pages
from bootprob.server.rates import ClientRate
from bootprob.server.schemas import (
    SERVER,
    ErrorReply,
    InferReply,
    InferRequest,
    ModelMetadata,
    ModelReady,
    PredictReply,
    ServerLive,
    ServerMetadata,
    ServerReady,
    predict_request,
)
from bootprob.server.served_model import Ensemble, ServedModel
from bootprob.server.tokens import Tokens

if TYPE_CHECKING:
    from bootprob.tables.mistake_costs import MistakeCosts
    from bootprob.tables.model import TableModel

__all__ = ["create_app"]

_NO_TELEMETRY: Any = {
    "tracing": False, "metrics": False, "logs": False, "operation_spans": False,
    "auto_configure": False,
}  # fmt: skip
"""FastAPI's own, which holds paths and queries; `bootprob.server.traces` has spans that do not."""

_REFUSALS = {
    400: "The body is no strict JSON, or nested too deep.",
    401: "The token is missing or wrong.",
    408: "The body came too slowly.",
    413: "The body, its number of values or a text in it, or the number of rows is too large.",
    415: "The body is of another type, or compressed.",
    422: "The body does not have the form of this request, or the model does not take its rows.",
    429: "Too many rows wait, or the client asks too often; Retry-After says when to come back.",
    500: "The model failed, whatever the rows; the log of the server says where, under request_id.",
    503: "The server is stopping, has too many requests, or was not done within the deadline.",
}


def create_app(
    model: Ensemble | TableModel,
    *,
    name: str = "model",
    version: str = "1",
    limits: Limits | None = None,
    token: str | Tokens | None = None,
    metrics: bool | Counts = True,
    costs: MistakeCosts | None = None,
    rate_limit: str | ClientRate | None = None,
    stopping: Stopping | None = None,
) -> FastAPI:
    """Make an ASGI application that serves a model, to be run or mounted.

    Parameters
    ----------
    model : BootstrapSVC, BootstrapClassifier or TableModel
        Fitted. It must not be changed while it is served.
    name, version : str, default "model" and "1"
        What it is called in addresses and replies.
    limits : Limits, optional
        How much is taken before requests are refused.
    token : str or Tokens, optional
        Clients must send it, or one of them, as ``Authorization: Bearer TOKEN``, except to the
        health endpoints.
    metrics : bool or Counts, default True
        Whether there is a /metrics for Prometheus; or what several models are counted in.
    costs : MistakeCosts, optional
        What mistakes cost: labels are then those of least expected cost. Columns of costs are
        columns of requests.
    rate_limit : str or ClientRate, optional
        How often each client may ask, such as "100/second"; beyond, 429.
    stopping : Stopping, optional
        Of a server of several models.

    Returns
    -------
    FastAPI

    Raises
    ------
    DataError
        A name, version or token cannot be used, the classes cannot be written as JSON, or costs
        do not fit the model.
    TypeError
        For another model.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob.tables import TableModel
    >>> table = load_iris(as_frame=True).frame[50:]  # two species of three
    >>> model = TableModel.fit(table, "target", kernel="linear", n_bootstraps=20, random_state=0)
    >>> from fastapi.testclient import TestClient
    >>> from bootprob.server import create_app
    >>> client = TestClient(create_app(model, name="iris"))
    >>> reply = client.post("/predict", json={"records": table[:2].to_dict("records")}).json()
    >>> [row["label"] for row in reply["predictions"]], reply["level"]
    ([1, 1], 0.95)
    """
    for what, text in (("name", name), ("version", version)):
        is_text = isinstance(text, str) and text.isprintable() and "/" not in text
        if not is_text or text in ("", ".", ".."):  # of an address clients leave these out
            raise DataError(
                f"{what} is {text!r}; give printable text without a slash, not '.' or '..'."
            )
    tokens = Tokens(token) if isinstance(token, str) else token
    limits = limits or Limits()
    served = ServedModel(model, name, version, costs)
    batcher = MicroBatcher(served.score, limits, joined=served.joined, is_well=served.is_well)
    counts = Counts() if metrics is True else metrics or None
    counted = None
    if counts is not None:
        counted = Metrics(counts, served, lambda: batcher.queued_rows)
        batcher.observe = counted.batch

    doubt = served.doubt  # the function below outlives the model

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if doubt:
            LOGGER.warning("%s: %s", name, doubt)
        yield
        batcher.close()
        await batcher.ended()

    app = FastAPI(
        title=f"bootprob: {name}",
        version=version,
        description="Class probabilities with intervals.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        telemetry=_NO_TELEMETRY,  # versions that know none keep it as they keep any word
    )
    answering = Answering(served, batcher, limits)
    app.state.stopping = stopping = stopping or Stopping()

    def release() -> None:
        """Let go of the model once all is answered; FastAPI keeps routes in caches of its own."""
        for each in (answering, batcher):
            vars(each).clear()

    app.state.release = release

    def is_ready() -> bool:
        return not (batcher.closed or stopping.begun)

    app.include_router(_health(is_ready))
    bounded = [Depends(refuse_overload)]
    protected = [*bounded, *(_token_check(tokens) if tokens is not None else [])]
    if rate_limit is not None:
        if isinstance(rate_limit, str):
            rate_limit = ClientRate(rate_limit, by_token=tokens is not None)
        protected.append(Depends(rate_limit))
    app.include_router(_models(answering, is_ready), dependencies=protected)
    app.include_router(_documents(app, answering, counts), dependencies=protected)
    app.include_router(pages(), dependencies=bounded)
    app.add_middleware(Bounded, most=limits.max_requests)
    # The outer one: it sees refusals.
    app.add_middleware(Observed, stopping=stopping, metrics=counted, model=name)
    app.add_exception_handler(RequestError, partial(_refuse, name))
    app.add_exception_handler(HTTPException, _refuse_http)
    app.add_exception_handler(ClientGone, _leave)
    return app


def _token_check(tokens: Tokens) -> list[Any]:
    """Dependencies that let only those in who send a token."""
    scheme = HTTPBearer(auto_error=False, description="The token the server was started with.")

    async def check(request: Request) -> None:
        given = await scheme(request)
        if not tokens.allow(b"" if given is None else given.credentials.encode()):
            raise RequestError(401, "Send the server's token as Authorization: Bearer TOKEN.")

    return [Depends(scheme), Depends(check)]


def _health(is_ready: Callable[[], bool]) -> APIRouter:
    """Open to everyone: they tell nothing of the model."""
    router = APIRouter(prefix="/v2/health", tags=["health"])

    @router.get("/live", response_model=ServerLive)
    async def live() -> Response:
        """Whether the process answers."""
        return json_reply({"live": True})

    @router.get("/ready", response_model=ServerReady, responses={503: {"model": ServerReady}})
    async def ready() -> Response:
        """Whether requests are taken."""
        ready = is_ready()
        return json_reply({"ready": ready}, 200 if ready else 503)

    return router


def _models(answering: Answering, is_ready: Callable[[], bool]) -> APIRouter:
    router = APIRouter()
    refusals: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorReply, "description": text} for status, text in _REFUSALS.items()
    }
    unknown: dict[int | str, dict[str, Any]] = {
        404: {"model": ErrorReply, "description": "There is no such model or version."},
        401: refusals[401], 429: refusals[429], 503: refusals[503],
    }  # fmt: skip
    binary: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "Outputs in the JSON, or behind it where that was asked for.",
            "content": {"application/octet-stream": {}},
        }
    }
    name, columns = answering.served.name, answering.served.columns

    @router.post(
        "/predict",
        tags=["records"],
        response_model=PredictReply,
        responses=refusals,
        openapi_extra=_body("PredictRequest", predict_example(columns)),
    )
    async def predict(request: Request) -> Response:
        """Probability, interval and label of each record; its columns are given by name."""
        return await answering.predict(request)

    @router.get(
        "/v2",
        tags=["v2"],
        response_model=ServerMetadata,
        responses={status: refusals[status] for status in (401, 429, 503)},
    )
    async def server_metadata() -> Response:
        """Name and version of the server."""
        return json_reply(SERVER)

    def add(path: str, version: str | None) -> None:
        # The same three with and without a version in the address.
        where = f"/v2/models/{{name}}{path}"
        options: dict[str, Any] = {"tags": ["v2"]}

        async def metadata(request: Request) -> Response:
            """Tensors taken and given, and what there is to know of the model."""
            answering.check_address(request)
            return json_reply(answering.metadata())

        async def ready(request: Request) -> Response:
            """Whether the model takes requests."""
            answering.check_address(request)
            ready = is_ready()
            return json_reply({"name": name, "ready": ready}, 200 if ready else 503)

        async def infer(request: Request) -> Response:
            """Score tensors."""
            answering.check_address(request)
            return await answering.infer(request)

        parameters = [_path("name", name)]
        if version is not None:
            parameters.append(_path("version", version))
        in_path: dict[str, Any] = {"parameters": parameters}
        router.get(
            where, response_model=ModelMetadata, responses=unknown, openapi_extra=in_path, **options
        )(metadata)
        router.get(
            f"{where}/ready",
            response_model=ModelReady,
            responses=unknown | {503: {"model": ModelReady | ErrorReply}},
            openapi_extra=in_path,
            **options,
        )(ready)
        router.post(
            f"{where}/infer",
            response_model=InferReply,
            responses=unknown | refusals | binary,
            openapi_extra=in_path
            | _body("InferRequest", infer_example(columns), "application/octet-stream"),
            **options,
        )(infer)

    add("", None)
    add("/versions/{version}", answering.served.version)
    return router


def _documents(app: FastAPI, answering: Answering, counts: Counts | None) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/openapi.json")
    async def openapi() -> Response:
        return JSONResponse(_openapi(app, answering))

    @router.get("/docs/operations")
    async def operations() -> Response:
        page = operations_page(_openapi(app, answering))
        return Response(page, media_type="text/html", headers=PAGE_HEADERS)

    if counts is not None:

        @router.get("/metrics")
        async def metrics() -> Response:
            return Response(counts.text(), media_type=CONTENT_TYPE_LATEST)

    return router


def _body(schema: str, example: dict[str, Any], *others: str) -> dict[str, Any]:
    """What is sent, as JSON, and of which other types it may be."""
    form = {"schema": {"$ref": f"#/components/schemas/{schema}"}, "example": example}
    content = {"application/json": form} | {each: {} for each in others}
    return {"requestBody": {"required": True, "content": content}}


def _path(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"const": value}}


def _openapi(app: FastAPI, answering: Answering) -> dict[str, Any]:
    """FastAPI's document, with the forms of the bodies that are parsed here and not by FastAPI."""
    if app.openapi_schema is None:
        document = app.openapi()
        schemas = document["components"]["schemas"]
        forms: dict[str, TypeAdapter[Any]] = {
            "PredictRequest": predict_request(answering.served.columns, answering.limits.max_rows),
            "InferRequest": TypeAdapter(InferRequest),
        }
        for name, form in forms.items():
            schema = form.json_schema(ref_template="#/components/schemas/{model}")
            schemas |= schema.pop("$defs", {})
            schemas[name] = schema
    assert app.openapi_schema is not None
    return app.openapi_schema


async def _refuse(model: str, request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    called = request.state.request_id
    if error.__cause__ is not None:
        log_exception(error.__cause__, called, model)
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    content: dict[str, Any] = {"error": error.message}
    if error.problems:
        content["problems"] = error.problems
    if error.status == 500:
        content["request_id"] = called
    return json_reply(content, error.status, headers)


async def _refuse_http(_: Request, error: Exception) -> Response:
    """Unknown addresses and methods, in the protocol's form."""
    assert isinstance(error, HTTPException)
    return json_reply({"error": str(error.detail)}, error.status_code, dict(error.headers or {}))


async def _leave(_: Request, error: Exception) -> Response:
    LOGGER.debug("a client left")
    return Response(status_code=499)
