"""Options that commands share, and how a command takes several of them as one argument."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from bootprob.exceptions import DataError, TargetColumnError

__all__ = [
    "AllClasses",
    "CsvSafe",
    "Device",
    "Encoding",
    "Level",
    "Positive",
    "Report",
    "Sets",
    "Trust",
    "check_level",
    "given_options",
    "listed_names",
    "takes_options",
    "takes_target",
]


def given_options(options: Any) -> list[str]:
    """Those of a dataclass of options that were given, as they are written."""
    types = get_type_hints(type(options), include_extras=True)
    found = []
    for each in fields(options):
        value = getattr(options, each.name)
        if value is not None and value is not False and value != []:
            option = types[each.name].__metadata__[0]
            # What is annotated has no default, and typer keeps the first name in its place.
            written = [option.default, *(option.param_decls or ())]
            names = [name for name in written if isinstance(name, str)]
            found.append(next(iter(names), f"--{each.name.replace('_', '-')}"))
    return found


def listed_names(given: Sequence[str], columns: Collection[str]) -> list[str]:
    """Names of columns, given one by one or with commas between them; a name may have commas."""
    parts: list[str] = []
    for text in given:
        whole = text.strip() in columns
        parts += [text.strip()] if whole else [part.strip() for part in text.split(",")]
    return [part for part in parts if part]


def takes_target(command: Callable[..., None]) -> Callable[..., None]:
    """Have a command with the option --target name it where the column of the classes is missed."""

    @wraps(command)
    def run(**given: Any) -> None:
        try:
            command(**given)
        except TargetColumnError as error:
            raise DataError(f"{error} Or say which column holds them: --target COLUMN.") from None

    return run


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses: each field is an option of its own.

    An option is then declared once, as a field, whatever commands have it and wherever it is used.
    A field's type says what typer is to make of it, and its metadata `commands`, if there is one,
    which commands have it.
    """
    hints = get_type_hints(command, include_extras=True)
    taken: dict[str, list[str]] = {}
    parameters = []
    for each in signature(command).parameters.values():
        kind = hints[each.name]
        if not is_dataclass(kind):
            parameters.append(each.replace(kind=Parameter.KEYWORD_ONLY, annotation=kind))
            continue
        types = get_type_hints(kind, include_extras=True)
        name = command.__name__
        own = [field for field in fields(kind) if name in field.metadata.get("commands", [name])]
        taken[each.name] = [field.name for field in own]
        parameters += [
            Parameter(
                field.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if field.default is MISSING else field.default,
                annotation=types[field.name],
            )
            for field in own
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        for argument, names in taken.items():
            given[argument] = hints[argument](**{name: given.pop(name) for name in names})
        command(**given)

    parameters.sort(key=lambda each: each.default is not Parameter.empty)  # the help's order
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def check_level(value: float | None) -> float | None:
    """Refuse a level that is none."""
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"{value} does not lie between 0 and 1; 0.95 is usual.")
    return value


Positive = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE",
        help="The target's value whose probability is wanted; all others are the negative class. "
        "Without it: of two values the larger in order; of more, all but the most frequent.",
    ),
]
AllClasses = Annotated[
    bool,
    typer.Option(
        "--all-classes",
        help="Of a target with more than two values each is a class of its own, with its own "
        "probability. Without it there are always two classes, see --positive.",
    ),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        metavar="TYPE",
        help="A type that the classifiers in MODEL are made of, as the refusal names it; may be "
        "given several times. Only of files whose origin you know.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(metavar="DEVICE", help="cpu, cuda, or auto (the default): a GPU if there is one."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Letters of a CSV or TSV file, such as cp1252 (Windows) or utf-16. Default: UTF-8.",
    ),
]
Level = Annotated[
    float,
    typer.Option(callback=check_level, metavar="LEVEL", help="Nominal level of the intervals."),
]
Sets = Annotated[
    float | None,
    typer.Option(
        callback=check_level,
        metavar="LEVEL",
        help="Also write the set of classes that cannot be excluded at this confidence.",
    ),
]
CsvSafe = Annotated[
    bool,
    typer.Option(
        "--csv-safe",
        help="In a CSV file, put ' before text that a spreadsheet program would run (=, +, -, @).",
    ),
]
Report = Annotated[
    Path, typer.Option("--output", "-o", metavar="HTML", help="The report to write.")
]
