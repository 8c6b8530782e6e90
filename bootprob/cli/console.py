"""What the command line says: errors in a line or two, tables of metrics, memory and time."""

from __future__ import annotations

import io
import shlex
import signal
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer
from typer.core import TyperGroup

from bootprob.exceptions import BootprobError
from bootprob.runtime.counted import counted

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.metrics.intervals import MetricInterval

__all__ = [
    "LEVEL",
    "Commands",
    "PlainHelp",
    "command_line",
    "file_size",
    "later_table",
    "metrics_table",
    "note",
    "note_unknown",
    "peak_memory",
    "print_report",
    "rates_table",
    "stop",
]

LEVEL = 0.95  # of intervals


class PlainHelp(TyperGroup):
    """A group of commands whose help does not ask for a value where an option takes none."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Options of the group."""
        return _without_value(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, None where there is none."""
        found = super().get_command(ctx, cmd_name)
        if found is not None:
            _without_value(found.get_params(ctx))
        return found


def _without_value(params: list[Any]) -> list[Any]:
    """Have help say nothing, not ``<bool>``, behind those that are given or not."""
    for each in params:
        if getattr(each, "is_flag", False) and each.metavar is None:
            each.metavar = ""
    return params


class Commands(PlainHelp):
    """The group of commands; turns what can go wrong into a message and an exit code.

    0 for success, 1 for data, models and files that cannot be used, 2 for a wrong command line
    (typer's own), 130 after Ctrl-C, 143 after SIGTERM. Any other exception is a bug and keeps its
    traceback.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command given."""
        for stream in (sys.stdout, sys.stderr):  # of a console that knows few letters
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except BootprobError as error:
                _fail(str(error))
            except typer.BadParameter as error:
                missing = not error.message and error.param is not None
                error.message = (
                    getattr(error.param, "help", "") or ""  # what it is that has to be given
                    if missing
                    else error.message.removeprefix("Value error, ")  # pydantic's
                )
                raise
            except BrokenPipeError:
                raise  # the reader has left (`bootprob ... | head`); typer ends quietly
            except ValueError as error:
                from bootprob_gpu.inputs import InputError  # which who raised it has loaded

                if not isinstance(error, InputError):
                    raise
                _fail(str(error))
            except OSError as error:
                reason = error.strerror or str(error)
                _fail(f"{error.filename}: {reason}." if error.filename else f"{reason}.")
            except MemoryError:
                _fail("There is not enough memory; use fewer rows or a smaller --n-bootstraps.")
            except KeyboardInterrupt as interrupt:
                typer.secho("Stopped.", fg="yellow", err=True)
                signal_number = interrupt.args[0] if interrupt.args else signal.SIGINT
                raise typer.Exit(128 + signal_number) from None


def stop(signal_number: int, _: object) -> None:
    """Handle a signal as Ctrl-C is."""
    raise KeyboardInterrupt(signal_number)


def _fail(message: str) -> None:
    typer.secho("Error: ", fg="red", bold=True, nl=False, err=True)
    typer.echo(message, err=True)
    raise typer.Exit(1)


def note(message: str) -> None:
    """Tell a person something worth knowing, beside the results."""
    typer.secho("Note: ", fg="yellow", nl=False, err=True)
    typer.echo(message, err=True)


def note_unknown(levels: dict[str, dict[str, int]]) -> None:
    """Tell which levels of which columns a model does not know, and their rows."""
    for name, found in levels.items():
        shown = ", ".join(f"{text!r} ({count})" for text, count in list(found.items())[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        note(f"Column {name!r} has values that the model does not know (rows): {shown}{more}.")


def note_filled(frame: pd.DataFrame, names: Iterable[str]) -> None:
    """Tell in how many rows columns that a model asks for have no value."""
    missing = {name: int(frame[name].isna().sum()) for name in names}
    rows = {name: counted(n, "row") for name, n in missing.items() if n}
    if rows:
        shown = ", ".join(f"{name!r} ({n})" for name, n in list(rows.items())[:5])
        more = f" and {len(rows) - 5} more columns" if len(rows) > 5 else ""
        note(f"Missing values are filled as the model learned to: {shown}{more}.")


def command_line() -> str:
    """What was typed."""
    return shlex.join(["bootprob", *sys.argv[1:]])


def file_size(path: Path) -> str:
    """How large a file is, for a reader."""
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"


def print_report(output: Path) -> None:
    """Say where a report is."""
    typer.echo(f"The report is in {output}, its numbers are in {output.with_suffix('.json')}.")


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    for line in str(message).splitlines():
        typer.secho("Warning: ", fg="yellow", bold=True, nl=False, err=True)
        typer.echo(line, err=True)


def metrics_table(models: dict[str, dict[str, MetricInterval]]) -> Table:
    """Out-of-bag metrics of several models, one column each."""
    from rich.table import Table

    table = Table(title=f"Out of bag, with {LEVEL:.0%} intervals", title_justify="left")
    table.add_column("")
    for name in models:
        table.add_column(name, justify="right")
    for key, first in next(iter(models.values())).items():
        cells = [
            f"{metrics[key].value:.3f}  ({metrics[key].lower:.3f} to {metrics[key].upper:.3f})"
            for metrics in models.values()
        ]
        table.add_row(first.label, *cells)
    return table


def later_table(later: dict[str, Any]) -> Table:
    """Metrics of later rows by a model of the earlier ones, beside what that says of itself."""
    from rich.table import Table

    from bootprob.metrics.metrics import METRICS

    title = (
        f"Later rows: the {later['n_rows']:,} from {later['since']} on, by a model of the "
        f"{later['n_earlier']:,} before"
    )
    table = Table(title=title, title_justify="left")
    for heading in ("", "later rows", "earlier ones, out of bag"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, found in later["metrics"].items():
        cells = (found, later["out_of_bag"][name])
        shown = (f"{value:.3f}  ({lower:.3f} to {upper:.3f})" for value, lower, upper in cells)
        table.add_row(METRICS[name][0], *shown)
    return table


def rates_table(name: str, model: BootstrapSVC) -> Table:
    """Rates wanted and reached out of bag by a model under control, and what to know about them."""
    from rich.table import Table

    from bootprob.ensemble.controlled_rates import rates_under_control
    from bootprob.metrics.rates import RATE_NAMES

    rates = rates_under_control(model, LEVEL)
    sure = "" if model.confidence is None else f", wanted with confidence {model.confidence:g}"
    notes = []
    if model.control == "constrained":
        notes.append(
            "Every machine keeps the rates in its own bootstrap sample; that promises nothing of "
            "other rows."
        )
    elif model.confidence is None:
        notes.append("No confidence was asked for: on new rows a rate may come out lower.")
    if model.decision_threshold_ != 0.5:
        notes.append(
            "The probabilities are the calibrated ones; a row is decided positive where its own is "
            f"above {model.decision_threshold_:.3g}."
        )
    between = getattr(model, "undecided_between_", None)
    if between is not None and between[0] < between[1]:
        notes.append(
            f"Above {between[0]:.3g} and up to {between[1]:.3g} it is left undecided, which counts "
            "as no mistake in its class; no rate is promised of the label that it is given."
        )
    table = Table(
        title=f"Rates of {name} under control ({model.control}{sure}), out of bag, "
        f"with exact {LEVEL:.0%} intervals",
        title_justify="left",
        caption="\n".join(notes) or None,
        caption_justify="left",
    )
    table.add_column("")
    for heading in ("wanted", "required", "reached"):
        table.add_column(heading, justify="right")
    compared = any(rate.without_control is not None for rate in rates)
    if compared:
        table.add_column("without control", justify="right")
    for rate in rates:
        reached = rate.out_of_bag
        cells = [
            RATE_NAMES[rate.rate],
            "–" if rate.floor is None else f"≥ {rate.floor.at_least:g}",
            "–" if rate.required_share is None else f"{rate.required_share:.3f}",
            "–"
            if reached is None
            else f"{reached.value:.3f}  ({reached.lower:.3f} to {reached.upper:.3f})",
        ]
        if rate.without_control is not None:
            cells.append(f"{rate.without_control.value:.3f}")
        table.add_row(*cells)
    return table


def peak_memory() -> int:
    """Most memory that this process has held so far, in bytes."""
    if sys.platform == "win32":
        import psutil

        return psutil.Process().memory_info().peak_wset
    if sys.platform == "linux":
        # getrusage would count what the parent process held when it started this one.
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
