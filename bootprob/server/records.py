"""Records by column name: checked column by column, no further than to the first things wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from types import GenericAlias
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError, create_model

from bootprob.server.columns import Columns
from bootprob.server.problems import MOST_PROBLEMS, refused, valid
from bootprob.server.schemas import PredictRequest, form_of

__all__ = ["RecordForm"]

_CATEGORY = "Input should be text, a number, true, false or null"


class RecordForm:
    """What a request with records must be.

    As `bootprob.server.schemas.predict_request` describes it to clients; that form itself would
    list every wrong value of every row before it told the first.
    """

    def __init__(self, columns: Columns, max_rows: int) -> None:
        self._kinds = columns.kinds
        records: Any = (list[Any], Field(min_length=1, max_length=max_rows))
        self._head = TypeAdapter(
            create_model("PredictRequest", __base__=PredictRequest, records=records)
        )
        forms: dict[Any, TypeAdapter[list[Any]]] = {}
        self._columns: dict[str, TypeAdapter[list[Any]]] = {}
        for name in columns.kinds:
            form = form_of(name, columns)
            if form not in forms:
                column: Any = Annotated[GenericAlias(list, form), Field(fail_fast=True)]
                forms[form] = TypeAdapter(column)
            self._columns[name] = forms[form]

    def read(self, document: Any) -> tuple[PredictRequest, dict[str, list[Any]]]:
        """Check a document.

        Returns
        -------
        request : PredictRequest
        values : dict of str to list
            For each column its values, one for each record.

        Raises
        ------
        RequestError
            422: columns that are missing, of at most 20 rows and columns; or else, of at most 20
            columns, the first row with a wrong value.
        """
        request = valid(self._head, document)
        records = request.records
        if problems := self._missing(records):
            raise refused(problems)
        values = {}
        for name, form in self._columns.items():
            values[name] = [record[name] for record in records]
            try:
                form.validate_python(values[name])
            except ValidationError as error:
                problems.append(_wrong(name, error))
                if len(problems) == MOST_PROBLEMS:
                    break
        if problems:
            raise refused(sorted(problems, key=lambda problem: problem["row"]))
        return request, values

    def _missing(self, records: Sequence[Any]) -> list[dict[str, Any]]:
        """Rows that are no objects, and columns that rows lack."""
        found: list[dict[str, Any]] = []
        for row, record in enumerate(records):
            if not isinstance(record, Mapping):
                found.append({"row": row, "problem": "Input should be an object"})
            elif not self._kinds.keys() <= record.keys():
                missing = (name for name in self._kinds if name not in record)
                found += [
                    {"row": row, "column": name, "problem": "Field required"}
                    for name in islice(missing, MOST_PROBLEMS)
                ]
            if len(found) >= MOST_PROBLEMS:
                break
        return found


def _wrong(column: str, error: ValidationError) -> dict[str, Any]:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    row, *within = first["loc"]  # within a union of kinds, each has its own complaint
    return {"row": row, "column": column, "problem": _CATEGORY if within else first["msg"]}
