"""What a selection has found, and how good it can still be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Found", "SelectionResult"]


@dataclass(frozen=True)
class Found:
    """A subset that was the best in its time.

    Attributes
    ----------
    seconds : float
        Since the search began.
    objective : float
        Of these columns.
    features : tuple of int
        Columns, ascending.

    Examples
    --------
    >>> from bootprob.dea import Panel, select_outputs
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]])
    >>> last = select_outputs(toy, 2).path[-1]  # the best that the search came to
    >>> last.features, round(last.objective, 3)
    ((0, 2), 0.989)
    """

    seconds: float
    objective: float
    features: tuple[int, ...]


@dataclass(frozen=True)
class SelectionResult:
    """Result of a search for the best subset of columns.

    Attributes
    ----------
    features : tuple of int
        Columns chosen, ascending.
    objective : float
        Of them.
    bound : float
        What no subset can exceed, or go below where the objective is minimised.
    status : {"optimal", "time limit", "heuristic"}
        "optimal": the objective is the bound.
    seconds : float
        Of the whole search.
    path : tuple of Found
        Every subset that was the best in its time.
    n_evaluated : int
        Subsets whose objective was computed; 0 where a solver did the search.

    Examples
    --------
    >>> from bootprob.selection import SelectionResult
    >>> cut_short = SelectionResult((0, 3), 0.90, 0.99, "time limit", seconds=60.0, path=())
    >>> round(cut_short.gap, 2)  # another subset can be at most 10 % better
    0.1
    """

    features: tuple[int, ...]
    objective: float
    bound: float
    status: str
    seconds: float
    path: tuple[Found, ...]
    n_evaluated: int = 0

    @property
    def gap(self) -> float:
        """Distance of objective and bound, relative to the larger of 1e-12 and the objective."""
        return abs(self.bound - self.objective) / max(abs(self.objective), 1e-12)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the best objective over time, and the bound.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.

        Returns
        -------
        Axes

        Examples
        --------
        >>> from bootprob.dea import Panel, select_outputs
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]])
        >>> select_outputs(toy, 2).plot().get_xlabel()
        'seconds'
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(layout="constrained").subplots()
        seconds = [found.seconds for found in self.path] + [self.seconds]
        objectives = [found.objective for found in self.path] + [self.objective]
        ax.step(seconds, objectives, where="post", marker=".", label="best found")
        ax.axhline(self.bound, linestyle="--", color="0.5", label=f"bound ({self.status})")
        ax.set_xlabel("seconds")
        ax.set_ylabel("objective")
        ax.legend(frameon=False)
        return ax
