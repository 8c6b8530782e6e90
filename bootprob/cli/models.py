"""Models of tables on the command line: fitted, loaded, and what is told of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bootprob.cli.console import LEVEL, later_table, metrics_table, note, rates_table
from bootprob.cli.control import OF_TWO_CLASSES
from bootprob.cli.fitting import FittingOptions
from bootprob.cli.roles import RoleOptions
from bootprob.exceptions import DataError, DoubtfulTableWarning, ModelFileError
from bootprob.runtime.counted import counted
from bootprob.tables.suffixes import is_table_name

if TYPE_CHECKING:
    import pandas as pd

    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.metrics.intervals import MetricInterval
    from bootprob.tables.model import TableModel
    from bootprob.tables.target import Target

__all__ = [
    "as_table",
    "check_all_classes",
    "check_model_name",
    "check_strict",
    "fit_table",
    "load_for",
    "load_model",
    "print_fit",
    "print_metrics",
    "print_training",
]

_SLIGHT = 0.005  # a weight that would be shown as 0 %
_MOST_VALUES = 10  # of a target, named in a note


def load_for(
    path: Path,
    trusted: Sequence[str] | None,
    columns: Callable[[], Iterable[str]],
    target: str | None = None,
) -> TableModel:
    """Load a model for a table; what comes after the first two is of `as_table`."""
    return as_table(load_model(path, trusted), columns, target)


def as_table(
    model: Any, columns: Callable[[], Iterable[str]], target: str | None = None
) -> TableModel:
    """A model for a table; one of plain numbers is given the table's `columns`.

    Parameters
    ----------
    model : BootstrapSVC, BootstrapClassifier or TableModel
    columns : callable
        Names of the table's columns, looked for if they are needed.
    target : str, optional
        What the column of the classes is called, where the model does not know; default "class".
    """
    from bootprob.tables.model import TableModel
    from bootprob.tables.plain_numbers import knows_names

    if isinstance(model, TableModel):
        if target not in (None, model.target.name):
            raise DataError(
                f"--target is {target!r}, and the model predicts {model.target.name!r}; it was "
                "fitted to a table and knows so: leave --target out."
            )
        return model
    table = TableModel.of(model, target=target or "class")
    if table is None:
        table = TableModel.of(model, list(map(str, columns())), target or "class")
        assert table is not None
        names = list(table.preprocessor.kinds_)
        if not knows_names(model) and names[0] != "x0":
            shown = ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
            note(f"The model knows no names of columns; they are taken in this order: {shown}.")
    return table


def load_model(path: Path, trusted: Sequence[str] | None) -> Any:
    """Load a model of any kind; of a file that is a table say that the model comes first."""
    from bootprob.persistence.save_load import load

    try:
        return load(path, trusted or ())
    except ModelFileError as error:
        if not is_table_name(path) or not path.is_file():
            raise
        raise DataError(f"{error} The model comes first, then the table.") from None


def check_model_name(output: Path) -> None:
    """Refuse a name by which a model would be taken for a table, and may replace one."""
    if is_table_name(output):
        raise DataError(
            f"{output} is the name of a table; give the model another one, such as "
            f"{output.with_suffix('.model').name}."
        )


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
    of_two = [f"--{name}" for name in OF_TWO_CLASSES if getattr(options, name) is not None]
    if of_two:
        raise typer.BadParameter(
            f"{' and '.join(of_two)}: of two classes; with --all-classes say --rate CLASS=RATE."
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
    needed: str | None = None,
) -> tuple[TableModel, pd.DataFrame]:
    """Fit a model of a table file; the table as well.

    A column that is `needed` besides is missed before anything is trained.
    """
    from bootprob.tables.files import read_table
    from bootprob.tables.target import Target

    if options.rate and not all_classes:
        raise typer.BadParameter("--rate is of several classes; it needs --all-classes.")
    # First what fails more often than the rest, and sooner than torch loads.
    roles = (columns or RoleOptions()).roles()
    texts = roles.dates if roles.groups is None else (*roles.dates, roles.groups)
    frame = read_table(table, text_columns=texts, encoding=encoding)
    classes, _ = Target.from_table(frame, target, positive, all_classes=all_classes)
    if options.rate and len(classes.labels) == 2:
        raise typer.BadParameter(
            f"--rate is of several classes, and {target!r} has two; leave --all-classes out, and "
            "say --tpr or --tnr."
        )
    roles.features(frame, target)
    if needed is not None and needed not in [str(name) for name in frame.columns]:
        raise DataError(f"{table} has no column {needed!r} to tell subgroups apart.")
    _note_put_together(classes, frame, positive)  # before a long fit

    import bootprob.persistence.save_load  # noqa: F401 - not after hours, when it may be another
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
            raise DataError(f"{found}\nNo model is written, as --strict asks.") from None
    model.svc.set_params(verbose=0)  # the progress bar is this command's, not the model's
    return model, frame


def _note_put_together(classes: Target, frame: pd.DataFrame, positive: str | None) -> None:
    """Tell that a target of several values became two classes, and which."""
    together = classes.put_together(frame)
    if not together:
        return
    values = ", ".join(map(repr, together[:_MOST_VALUES]))
    if len(together) > _MOST_VALUES:
        values += f" and {len(together) - _MOST_VALUES} more"
    found = f"{classes.positive!r} is positive, against all others together ({values})."
    if positive is None:
        found = (
            f"{classes.negative!r}, the most frequent, is negative, and all others ({values}) are "
            f"one positive class, {classes.positive!r}. --positive names another value."
        )
    note(
        f"The target column {classes.name!r} has {len(together) + 1} values, which became two "
        f"classes: {found} --all-classes keeps them apart."
    )


def check_strict(model: TableModel, options: FittingOptions) -> None:
    """Refuse, with --strict, what is remarkable of a model that was written."""
    if options.strict and model.svc.remarks_:
        raise DataError("\n".join(model.svc.remarks_) + "\nThe file is written all the same.")


def print_training(model: TableModel, n_rows: int) -> None:
    """Tell what a model of a table was made of; all that is to be kept is written before."""
    for sentence in model.preprocessor.notes_:
        note(sentence)
    groups = model.svc.groups_
    of_groups = "" if groups is None else f" of {groups.max() + 1} groups"
    if groups is not None and model.svc.later_rows_ is not None:
        of_groups = f" in {groups.max() + 1} blocks of time"
    typer.echo(
        f"Fitted {counted(n_rows, 'row')}{of_groups}, "
        f"{counted(len(model.preprocessor.kinds_), 'column')} "
        f"({counted(model.svc.n_features_in_, 'feature')}) in {model.svc.fit_seconds_:.1f} s.\n"
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


def print_fit(model: TableModel) -> None:
    """Tell how good a model of a table is, out of bag."""
    svc = model.svc
    typer.echo(_in_words(model, print_metrics({svc.kernel: svc})[svc.kernel]["accuracy"]))
    if len(model.target.labels) > 2:
        _print_class_rates(model)
    _print_later(svc)


def _print_class_rates(model: TableModel) -> None:
    """Tell which rates of several classes were wanted, and are reached."""
    from bootprob.ensemble.controlled_rates import class_rates_under_control

    svc = model.svc
    for label, rate in zip(model.target.labels, class_rates_under_control(svc), strict=False):
        wanted = ""
        if rate.asked is not None:
            wanted = (
                f" (wanted {rate.asked['at_least']:g}, required {rate.asked['required_share']:.3f})"
            )
        if rate.out_of_bag is not None and rate.without_control is not None:
            typer.echo(
                f"Of class {label}{wanted} {rate.out_of_bag.value:.3f} are given it out of bag, "
                f"{rate.without_control.value:.3f} without control."
            )


def _print_later(svc: BootstrapSVC) -> None:
    """Tell how a model of the rows before the last tenth does on it."""
    later = svc.later_rows_
    if later is None:
        return
    if later["why_not"] is not None:
        note(f"Nothing is known of later rows: {later['why_not']}.")
        return
    from rich.console import Console

    Console().print(later_table(later))


def _in_words(model: TableModel, accuracy: MetricInterval) -> str:
    """What an accuracy means, beside that of who always names the most frequent class."""
    import numpy as np

    sizes = np.bincount(model.svc.y_, weights=model.svc.sample_weight_)
    most = int(sizes.argmax())
    value, lower, upper = map(_of_100, (accuracy.value, accuracy.lower, accuracy.upper))
    return (
        f"In words: of 100 rows kept out of training, about {value} get the right label ({lower} "
        f"to {upper}); to say {model.target.labels[most]} each time would get "
        f"{_of_100(sizes[most] / sizes.sum())} right."
    )


def _of_100(share: float) -> str:
    """A share of 100 rows, which rounding makes neither none nor all of them."""
    return f"{100 * share:.0f}" if 0.005 < share < 0.995 else f"{100 * share:.3g}"


def print_metrics(models: dict[str, BootstrapSVC]) -> dict[str, dict[str, MetricInterval]]:
    """Show the out-of-bag metrics of models, and the rates of two classes under control."""
    from rich.console import Console

    from bootprob.ensemble.out_of_bag_metrics import (
        out_of_bag_class_intervals,
        out_of_bag_intervals,
    )

    console = Console()
    found = {
        name: (out_of_bag_intervals if len(model.classes_) == 2 else out_of_bag_class_intervals)(
            model, LEVEL
        )
        for name, model in models.items()
    }
    console.print(metrics_table(found))
    for name, model in models.items():
        if model.control is not None and len(model.classes_) == 2:
            console.print(rates_table(name, model))
    return found
