"""The command line: ``bootprob demo``, ``fit``, ``predict`` and ``report``.

Everything heavy is imported inside the commands, so that ``--help`` answers at once.
"""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bootprob.cli.console import (
    Commands,
    file_size,
    note_filled,
    note_unknown,
    peak_memory,
    print_report,
    stop,
)
from bootprob.cli.costs import CostOptions
from bootprob.cli.dea.app import app as dea_app
from bootprob.cli.explain import explain
from bootprob.cli.export import export
from bootprob.cli.fitting import DemoOptions, FittingOptions, Kernel
from bootprob.cli.models import (
    check_all_classes,
    check_model_name,
    check_strict,
    fit_table,
    load_for,
    print_fit,
    print_metrics,
    print_training,
)
from bootprob.cli.options import (
    AllClasses,
    CsvSafe,
    Encoding,
    Level,
    Positive,
    Report,
    Sets,
    Trust,
    takes_options,
)
from bootprob.cli.report import check_report, report, write_html_report
from bootprob.cli.roles import RoleOptions
from bootprob.cli.score import score
from bootprob.cli.serve import serve
from bootprob.cli.update import update
from bootprob.runtime.counted import counted
from bootprob.runtime.files import check_output
from bootprob.runtime.version import __version__

__all__ = ["app", "main"]

_DEMO_REPORT = Path("demo/report.html")

app = typer.Typer(
    name="bootprob",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bootprob {__version__}")
        raise typer.Exit


@app.callback()
def bootprob(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Class probabilities from a table, with intervals.

    [bold]Examples[/bold]

    bootprob demo
    bootprob fit patients.csv --target diagnosis -o patients.model
    bootprob predict patients.model new.csv -o probabilities.csv
    bootprob report patients.model -o report.html
    """


@app.command()
@takes_options
def demo(*, output: Report = _DEMO_REPORT, options: DemoOptions) -> None:
    """Fit the Wisconsin breast cancer data and write a report.

    The data come with scikit-learn: 569 tumours, 30 measurements each, of
    which malignant is the positive class. Kernels that the table chooses
    (auto) are fitted beside a linear one.

    [bold]Example[/bold]

    bootprob demo
    """
    if output == _DEMO_REPORT:
        output.parent.mkdir(exist_ok=True)
    check_report(output)
    start = time.perf_counter()

    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    diagnosis = data.target_names[data.target]  # sorted, "malignant" is the positive class
    models = {
        kernel.value: replace(options, kernel=kernel).estimator().fit(data.data, diagnosis)
        for kernel in (Kernel.auto, Kernel.linear)
    }
    write_html_report(models, output, "Wisconsin breast cancer")
    print_metrics(models)
    print_report(output)
    seconds = time.perf_counter() - start
    typer.echo(f"It took {seconds:.0f} s and at most {peak_memory() / 1e6:.0f} MB of memory.")


@app.command()
@takes_options
def fit(
    *,
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE", help="Training rows: .csv, .tsv (.gz too), .parquet or .xlsx."
        ),
    ],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")
    ],
    positive: Positive = None,
    all_classes: AllClasses = False,
    encoding: Encoding = None,
    columns: RoleOptions,
    options: FittingOptions,
) -> None:
    """Fit a model of a table and save it.

    Numbers are standardised, text and yes/no columns become dummies, gaps
    are filled with the median or the most frequent value; the model keeps
    all of it. The metrics shown are measured out of bag.

    With --tpr, --tnr, --ppv, --npv or several, decisions are moved so that
    these rates hold; what was reached is shown, and what the other class pays.

    With --groups rows that belong together, such as those of one patient,
    are drawn and left out together: what is said is then said of new patients.

    With --time neighbours in time are drawn and left out together, and a second
    model shows how the rows of the last tenth fare by those before.

    With --all-classes every value of the target gets a probability of its own.

    With --checkpoint a long fit that was stopped goes on where it was.

    [bold]Examples[/bold]

    bootprob fit loans.csv --target risk --positive bad -o loans.model
    bootprob fit loans.parquet --target risk --kernel rbf -o loans.model
    bootprob fit calls.parquet --target answered --kernel rbf --feature-map nystroem -o calls.model
    bootprob fit loans.csv --target risk --positive bad --tpr 0.9 --confidence 0.95 -o loans.model
    bootprob fit visits.csv --target relapse --groups patient --drop visit -o visits.model
    bootprob fit loans.csv --target risk --time granted_on -o loans.model
    bootprob fit flowers.csv --target species --all-classes -o flowers.model
    bootprob fit calls.csv --target answered --checkpoint calls.parts -o calls.model
    """
    if all_classes:
        check_all_classes(positive, options)
    check_output(output, inputs=(table,))
    check_model_name(output)
    if options.checkpoint is not None and options.checkpoint.resolve() == output.resolve():
        raise typer.BadParameter(f"--checkpoint and --output are both {output}; give two names.")
    model, frame = fit_table(
        table,
        target,
        positive,
        options,
        all_classes=all_classes,
        columns=columns,
        encoding=encoding,
    )
    model.svc.set_params(n_jobs=None, checkpoint=None)  # this command's, not the model's

    from bootprob.persistence.save_load import save

    save(model, output)  # before a word is said, which nobody may be there to read
    print_training(model, len(frame))
    print_fit(model)
    typer.echo(f"The model is in {output} ({file_size(output)}).")
    check_strict(model, options)


@app.command()
@takes_options
def predict(
    *,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that bootprob fit wrote.")],
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE", help="Rows to predict: .csv, .tsv (.gz too), .parquet or .xlsx."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="CSV or Parquet file to write.")
    ],
    level: Level = 0.95,
    sets: Sets = None,
    encoding: Encoding = None,
    costs: CostOptions,
    csv_safe: CsvSafe = False,
    trust: Trust = None,
) -> None:
    """Predict every row of a table, with intervals.

    Writes probability, its interval, label, the threshold that it is above
    where the label is the positive class, score and its interval, one line
    for each row of TABLE and in its order. Columns are found by name; those
    that the model does not know are ignored. A model that was fitted to an
    array in Python knows no names: TABLE then has its columns, in their order.

    Of a model of all classes, writes p_X, low_X and high_X for each class X,
    and label.

    [bold]Examples[/bold]

    bootprob predict loans.model applicants.csv -o probabilities.csv
    bootprob predict loans.model applicants.csv --sets 0.9 -o probabilities.csv
    bootprob predict loans.model new.csv --cost-fp 1 --cost-fn 5 -o decided.csv
    bootprob predict loans.model new.csv --cost-fp 50 --cost-fn amount -o decided.csv
    bootprob predict loans.model new.csv --cost-fp 1 --cost-fn 5 --cost-ask 0.4 -o decided.csv
    """
    from bootprob.tables.files import read_table, write_table
    from bootprob.tables.suffixes import table_suffix

    decided_by = costs.mistakes()
    table_suffix(output, written=True)
    check_output(output, inputs=(model, table))
    fitted = load_for(model, trust, lambda: read_table(table, encoding=encoding).columns)
    target = fitted.target
    frame = read_table(table, text_columns=fitted.text_columns, encoding=encoding)
    unknown: dict[str, dict[str, int]] = {}
    predicted = fitted.predict(
        frame, level=level, sets=sets, costs=decided_by, unknown=unknown, progress=True
    )
    write_table(predicted, output, csv_safe=csv_safe)
    note_unknown(unknown)
    note_filled(frame, fitted.encoder.kinds)
    written = counted(len(predicted), "row is", "rows are")
    if len(target.labels) > 2:
        typer.echo(f"{written} in {output}, with {len(target.labels)} classes.")
        return
    positive = target.positive
    n_positive = int((predicted["label"] == positive).sum())
    asked = f"; ask a person about {predicted['ask'].sum()}" if "ask" in predicted else ""
    if "undecided" in predicted:
        asked = f"; {predicted['undecided'].sum()} are left undecided"
    labelled = f"{n_positive} of them labelled {target.name} = {positive}"
    typer.echo(f"{written} in {output}, {labelled}{asked}.")


app.command()(report)
app.command()(explain)
app.command()(update)
app.command()(export)
app.command()(score)
app.command()(serve)
app.add_typer(dea_app)


def main() -> None:
    """Run the command line and leave with its exit code."""
    signal.signal(signal.SIGTERM, stop)  # workers end with it, and nothing is left half-written
    try:
        app()
    finally:  # what was asked for is done, and workers that idle are being sent home
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)


if __name__ == "__main__":
    main()
