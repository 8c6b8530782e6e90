"""The form of requests and replies, checked by pydantic and shown in the OpenAPI document."""

from __future__ import annotations

from types import GenericAlias
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from bootprob.encoding.columns import LARGEST_CELL
from bootprob.encoding.dates import read_date
from bootprob.encoding.names import similar_name
from bootprob.runtime.version import __version__
from bootprob.server.columns import Columns

__all__ = [
    "SERVER",
    "UNKNOWN_KEY",
    "ErrorReply",
    "InferHead",
    "InferInput",
    "InferReply",
    "InferRequest",
    "ModelMetadata",
    "ModelReady",
    "PredictReply",
    "PredictRequest",
    "ServerLive",
    "ServerMetadata",
    "ServerReady",
    "form_of",
    "predict_request",
]

UNKNOWN_KEY = "extra_forbidden"  # pydantic's own name of this error
_SHOWN = 40  # characters of an unknown key

Level = Annotated[
    float, Field(strict=True, ge=0.01, le=0.9999, description="Nominal level of the intervals.")
]
Cost = Annotated[float, Field(strict=True, gt=0, le=LARGEST_CELL, allow_inf_nan=False)]
Number = Annotated[
    float, Field(strict=True, ge=-LARGEST_CELL, le=LARGEST_CELL, allow_inf_nan=False)
]
Size = Annotated[int, Field(ge=0, le=2**31)]
Category = (
    Annotated[str, Field(strict=True)]
    | Annotated[int, Field(strict=True)]
    | Annotated[float, Field(strict=True, allow_inf_nan=False)]
    | Annotated[bool, Field(strict=True)]
    | None
)


def _is_date(given: str) -> str:
    if given.strip() and read_date(given.strip()) is None:
        raise PydanticCustomError("date", "Input should be a date as 2024-12-31T18:30 (ISO 8601)")
    return given


Date = Annotated[
    str, Field(strict=True, description="A date or time of ISO 8601."), AfterValidator(_is_date)
]


def _is_list(given: Any) -> Any:
    if not isinstance(given, list):
        raise PydanticCustomError("list_type", "Input should be a valid list")
    return given


# Copied nowhere, and looked at no further than whoever uses it wants to.
Unread = Annotated[list[Any], PlainValidator(_is_list, json_schema_input_type=list[Any])]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _has_no_unknown_key(cls, given: Any) -> Any:
        """Name the first unknown key, cut short, and those known; pydantic would list them all."""
        known = list(cls.model_fields)
        unknown = (key for key in given if key not in known) if isinstance(given, dict) else ()
        if (first := next(iter(unknown), None)) is not None:
            shown = str(first)[:_SHOWN]
            close = similar_name(shown, known)
            hint = f" (did you mean {close!r}?)" if close else ""
            listed = f"known are {', '.join(known)}" if known else "none is"
            said = f"The key {shown!r} is not known; {listed}{hint}"
            raise PydanticCustomError(UNKNOWN_KEY, "{said}", {"said": said})
        return given


class PredictRequest(_Strict):
    """Records by name, the level of their intervals, and whether to explain them."""

    records: list[Any]  # each is checked by `bootprob.server.records`
    level: Level = 0.95
    explain: Annotated[
        bool,
        Field(strict=True, description="Whether contributions of the columns are wanted as well."),
    ] = False


class InferParameters(_Strict):
    """Parameters of an inference."""

    level: Level = 0.95
    binary_data_output: Annotated[
        bool, Field(description="Whether outputs that do not say so stand behind the JSON.")
    ] = False


class NoParameters(_Strict):
    """Beside ``binary_data_size``, read before, no parameter of a tensor is known."""


class InferInput(_Strict):
    """A tensor of a request; `data` is flat in row-major order, or nested as `shape` says."""

    name: str
    shape: Annotated[
        list[Annotated[int, Field(ge=0, le=2**31)]],
        Field(fail_fast=True, min_length=1, max_length=2),
    ]
    datatype: Literal["FP64", "FP32", "INT64", "INT32", "BOOL", "BYTES"]
    parameters: NoParameters = NoParameters()
    data: Unread


class OutputParameters(_Strict):
    """Parameters of a tensor wanted."""

    binary_data: Annotated[bool | None, Field(description="Whether it stands behind the JSON.")] = (
        None
    )


class InferOutput(_Strict):
    """A tensor wanted in the reply."""

    name: Literal[
        "probability", "probability_interval", "label", "threshold", "undecided", "ask",
        "cost", "cost_interval", "stable",
    ]  # fmt: skip
    parameters: OutputParameters = OutputParameters()


class InferHead(_Strict):
    """A request of the Open Inference Protocol v2, its tensors not yet looked at."""

    id: Annotated[str, Field(max_length=200)] | None = None
    parameters: InferParameters = InferParameters()
    inputs: Annotated[Unread, Field(min_length=1)]
    outputs: Annotated[list[InferOutput], Field(fail_fast=True, max_length=9)] | None = None


class InferRequest(InferHead):
    """A request of the Open Inference Protocol v2."""

    inputs: Annotated[list[InferInput], Field(fail_fast=True, min_length=1)]


class Tensor(BaseModel):
    """A tensor of a reply, flat in row-major order."""

    name: str
    shape: list[int]
    datatype: str
    data: list[float | int | bool | str]


class InferReply(BaseModel):
    """A reply of the Open Inference Protocol v2."""

    model_config = ConfigDict(protected_namespaces=())

    model_name: str
    model_version: str
    id: str | None = None
    parameters: dict[str, Any] = {}
    outputs: list[Tensor]


class Contribution(BaseModel):
    """What a column adds to the log-odds of a record, with its interval."""

    column: str
    contribution: float
    interval: list[float]


class Explanation(BaseModel):
    """Why a probability is what it is: base and contributions sum to its log-odds.

    Of several classes that of the `label`, against all others.
    """

    label: bool | int | float | str | None = None
    base: float
    contributions: list[Contribution]


class Prediction(BaseModel):
    """Of two classes, of the positive one; of several, for each class by its name.

    Of two classes the label is the positive one where the probability is above the threshold;
    where rows may be left `undecided`, that says of which nothing is promised. Where a person can
    be asked, `ask` says to do so, `cost` what the decision is expected to cost, and `stable`
    whether the whole interval leads to it.
    """

    label: bool | int | float | str
    threshold: float | None = None
    undecided: bool | None = None
    ask: bool | None = None
    cost: float | None = None
    cost_interval: list[float] | None = None
    stable: bool | None = None
    probability: float | dict[str, float]
    interval: list[float] | dict[str, list[float]]
    explanation: Explanation | None = None


class PredictReply(BaseModel):
    """Predictions in the order of the records."""

    model: str
    version: str
    level: float
    positive: bool | int | float | str | None
    predictions: list[Prediction]


class Problem(BaseModel):
    """Where a request is wrong: rows count from 0."""

    row: int | None = None
    column: str | None = None
    problem: str


class ErrorReply(BaseModel):
    """Why a request was refused."""

    error: str
    problems: list[Problem] = []
    request_id: str | None = None


class ServerMetadata(BaseModel):
    """The server."""

    name: str
    version: str
    extensions: list[str]


SERVER = ServerMetadata(
    name="bootprob", version=__version__, extensions=["binary_tensor_data", "model_repository"]
).model_dump()


class TensorMetadata(BaseModel):
    """A tensor; −1 stands for the number of rows."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(BaseModel):
    """The model, its tensors, and what there is to know about its intervals."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]
    parameters: dict[str, Any]


class ServerLive(BaseModel):
    """The server answers."""

    live: bool


class ServerReady(BaseModel):
    """The server takes requests."""

    ready: bool


class ModelReady(BaseModel):
    """The model takes requests."""

    name: str
    ready: bool


def predict_request(columns: Columns, max_rows: int) -> TypeAdapter[PredictRequest]:
    """The form of a request for predictions of records with these columns, for the document.

    Further keys of a record are ignored, as further columns of a table are.
    """
    make: Any = TypedDict  # mypy knows none whose fields are found at run time
    record = make("Record", {name: form_of(name, columns) for name in columns.kinds})
    record.__pydantic_config__ = ConfigDict(extra="ignore")
    records: Any = (GenericAlias(list, record), Field(min_length=1, max_length=max_rows))
    return TypeAdapter(create_model("PredictRequest", __base__=PredictRequest, records=records))


def form_of(name: str, columns: Columns) -> Any:
    """What a value of a column may be."""
    if name in columns.costs:
        return Cost
    if columns.kinds[name] == "date":
        return Date | None
    if columns.kinds[name] != "number":
        return Category
    return Number | None if columns.fills_gaps_of(name) else Number
