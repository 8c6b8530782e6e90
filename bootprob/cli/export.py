"""The command ``bootprob export``: a model as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bootprob.cli.console import file_size
from bootprob.cli.options import Trust, check_level
from bootprob.exceptions import DataError
from bootprob.runtime.files import check_output

__all__ = ["export"]


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that bootprob fit wrote.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="The .onnx file to write.")
    ],
    float32: Annotated[
        bool, typer.Option("--float32", help="Numbers go in and come out as float32, not float64.")
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            callback=check_level,
            metavar="LEVEL",
            help="Also give the bounds of the intervals at this level, such as 0.95.",
        ),
    ] = None,
    trust: Trust = None,
) -> None:
    r"""Export a model as ONNX, for runtimes without Python.

    The file has an input for each column, any number of rows at a time, and
    gives the probabilities of the classes and the label, and of two classes
    their intervals on request. Needs the extra: pip install "bootprob\[onnx]".

    [bold]Examples[/bold]

    bootprob export loans.model -o loans.onnx
    bootprob export loans.model --interval 0.95 -o loans.onnx
    """
    if output.suffix.lower() != ".onnx":
        raise DataError(f"{output}: the name of an ONNX file must end in .onnx.")
    check_output(output, inputs=(model,))

    from bootprob.onnx_export.export import export_onnx
    from bootprob.persistence.save_load import load

    dtype: Literal["float32", "float64"] = "float32" if float32 else "float64"
    export_onnx(load(model, trust or ()), output, dtype=dtype, interval=interval)
    typer.echo(f"The model is in {output} ({file_size(output)}).")
