"""A progress bar for long fits, with the time left as measured so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(description: str, total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error while work is done.

    Parameters
    ----------
    description : str
        What is being done.
    total : int
        Steps in all.
    shown : bool
        Whether to show anything.

    Yields
    ------
    callable
        Call it with the number of steps just finished.
    """
    if not shown:
        yield lambda steps: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),  # it may be called like a file
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(description, total=total)
        yield lambda steps: progress.advance(task, steps)
