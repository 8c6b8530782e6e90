"""Models of tables on the command line: fitted, loaded, and what is told of them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bootprob.cli.console import metrics_table, note, rates_table
from bootprob.cli.fitting import FittingOptions
from bootprob.cli.roles import RoleOptions
from bootprob.exceptions import DataError, DoubtfulTableWarning

if TYPE_CHECKING:
    import pandas as pd

    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = [
    "check_all_classes",
    "check_strict",
    "fit_table",
    "load_table_model",
    "print_fit",
    "print_metrics",
]

_SLIGHT = 0.005  # a weight that would be shown as 0 %


def load_table_model(path: Path) -> TableModel:
    """Load a model of a table; a DataError if it is one of arrays."""
    from bootprob.persistence.save_load import load
    from bootprob.tables.model import TableModel

    model = load(path)
    table = model if isinstance(model, TableModel) else TableModel.of(model)
    if table is None:
        raise DataError(f"{path} was fitted on arrays, not on a table; use it from Python.")
    return table


def check_all_classes(positive: str | None, options: FittingOptions) -> None:
    """Refuse options that are of two classes, before anything is read."""
    if positive is not None:
        raise typer.BadParameter(
            "--all-classes and --positive contradict each other; leave one of the two out."
        )
    if options.paper or options.calibration == "none":
        raise typer.BadParameter(
            "--all-classes couples calibrated probabilities; leave --paper and --calibration none "
            "out."
        )


def fit_table(
    table: Path,
    target: str,
    positive: str | None,
    options: FittingOptions,
    *,
    all_classes: bool = False,
    columns: RoleOptions | None = None,
    encoding: str | None = None,
) -> tuple[TableModel, pd.DataFrame]:
    """Fit a model of a table file and tell what was done; the table as well."""
    from bootprob.tables.files import read_table
    from bootprob.tables.target import Target

    # First what fails more often than the rest, and sooner than torch loads.
    frame = read_table(table, encoding=encoding)
    Target.from_table(frame, target, positive, all_classes=all_classes)
    roles = (columns or RoleOptions()).roles()
    roles.features(frame, target)

    from bootprob.tables.model import TableModel

    with warnings.catch_warnings():
        if options.strict:
            warnings.simplefilter("error", DoubtfulTableWarning)
        try:
            model = TableModel.fit(
                frame,
                target,
                positive,
                all_classes=all_classes,
                roles=roles,
                estimator=options.estimator(),
            )
        except DoubtfulTableWarning as found:
            raise DataError(f"{found}\nNothing was trained, as --strict asks.") from None
    model.svc.set_params(verbose=0)  # the progress bar is this command's, not the model's
    for sentence in model.preprocessor.notes_:
        note(sentence)
    groups = model.svc.groups_
    of_groups = "" if groups is None else f" of {groups.max() + 1} groups"
    typer.echo(
        f"Fitted {len(frame)} rows{of_groups}, {len(model.preprocessor.kinds_)} columns "
        f"({model.svc.n_features_in_} features) in {model.svc.fit_seconds_:.1f} s.\n"
        f"Target {model.target}."
    )
    if model.svc.kernel == "auto":
        shares = model.svc.kernel_weights_.items()
        shown = ", ".join(f"{name} {share:.0%}" for name, share in shares if share >= _SLIGHT)
        typer.echo(f"Kernels by their weight: {shown}.")
    if (error := model.svc.feature_map_error_) is not None:
        name = model.svc.feature_map or "of the sum of these kernels"
        typer.echo(
            f"Feature map {name}: its kernel is off by {error['relative']:.1%} "
            f"(root mean square, relative, {error['n_rows']} rows) and by {error['largest']:.2f} "
            "at most."
        )
    return model, frame


def check_strict(model: TableModel, options: FittingOptions) -> None:
    """Refuse, with --strict, what is remarkable of a model that was written."""
    if options.strict and model.svc.remarks_:
        raise DataError("\n".join(model.svc.remarks_) + "\nThe file is written all the same.")


def print_fit(model: TableModel) -> None:
    """Tell how good a model of a table is, out of bag."""
    if len(model.target.labels) == 2:
        print_metrics({model.svc.kernel: model.svc})
        return
    from bootprob.ensemble.out_of_bag_metrics import out_of_bag_of_classes

    found = out_of_bag_of_classes(model.svc)
    shown = ", ".join(f"{name} {value:.3f} ± {error:.3f}" for name, (value, error) in found.items())
    typer.echo(f"Out of bag, ± standard error over rows: {shown}.")


def print_metrics(models: dict[str, BootstrapSVC]) -> None:
    """Show the out-of-bag metrics of models of two classes, and the rates under control."""
    from rich.console import Console

    console = Console()
    console.print(metrics_table(models))
    for name, model in models.items():
        if model.control is not None:
            console.print(rates_table(name, model))
