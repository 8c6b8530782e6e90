"""What is wrong with a request, told without values that the request holds there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from bootprob.server.errors import RequestError
from bootprob.server.schemas import UNKNOWN_KEY

__all__ = ["MOST_PROBLEMS", "encoded", "refused", "valid"]

MOST_PROBLEMS = 20  # told at once

if TYPE_CHECKING:
    from bootprob.encoding.encoder import TableEncoder
    from bootprob.ensemble.scoring.frame_encoder import FrameEncoder

_T = TypeVar("_T")


def valid(form: TypeAdapter[_T], document: Any, *place: str | int) -> _T:
    """Check a document, or a part of one.

    Parameters
    ----------
    form : TypeAdapter
        One that cannot find more than a few things wrong: pydantic lists all of them first.
    document : object
    *place : str or int
        Where in the request it is.

    Raises
    ------
    RequestError
        422.
    """
    try:
        return form.validate_python(document)
    except ValidationError as error:
        found: dict[tuple[str | int, ...], dict[str, Any]] = {}
        for each in error.errors(include_url=False, include_context=False, include_input=False):
            where = (*place, *each["loc"])
            if each["type"] == UNKNOWN_KEY and not where:
                text = each["msg"]
            elif not where:
                text = "The body should be an object"
            else:
                text = f"{'.'.join(map(str, where))}: {each['msg']}"
            found.setdefault(where, {"problem": text})
    raise refused(list(found.values()))


def encoded(
    encoder: TableEncoder | FrameEncoder, values: Mapping[str, list[Any]], n_rows: int
) -> Any:
    """Rows as a model takes them, of columns that were read.

    Raises
    ------
    RequestError
        422: numbers that are too far from those of training, the first of each column.
    """
    found = encoder.encode(values, n_rows, mark_bad=True)
    problems = [
        {"row": int(rows.argmax()), "column": name, "problem": f"Input is {reason}"}
        for name, reasons in found.bad.items()
        for reason, rows in reasons.items()
    ]
    if problems:
        raise refused(sorted(problems, key=lambda problem: problem["row"]))
    return found.X


def refused(problems: list[dict[str, Any]]) -> RequestError:
    """The reply that tells them, the first one in its message."""
    first = problems[0]
    where = ", ".join(f"{what} {first[what]!r}" for what in ("row", "column") if what in first)
    said = f"{where}: {first['problem']}." if where else f"{first['problem']}."
    return RequestError(422, said, problems=problems[:MOST_PROBLEMS])
