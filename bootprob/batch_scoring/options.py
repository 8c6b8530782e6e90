"""What is asked of a run over many rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.tables.mistake_costs import MistakeCosts

__all__ = ["BadRows", "ScoringOptions"]

BadRows = Literal["refuse", "null"]


@dataclass(frozen=True)
class ScoringOptions:
    """What to write of each row, and what to do with rows that cannot be used.

    Attributes
    ----------
    level : float, default 0.95
        Nominal level of the intervals, between 0 and 1.
    scores : bool, default False
        Whether to write the score and its interval too. They need the score of every replicate,
        which linear models can do without otherwise, and are slower by far.
    keep : tuple of str, default ()
        Columns of the input to write before the results, such as a customer's number.
    costs : MistakeCosts, optional
        What mistakes cost: decisions are then those of least expected cost. Two classes only.
    bad_rows : {"refuse", "null"}, default "refuse"
        Rows that `TableModel.predict` refuses: text or infinity where a number belongs, a number
        beyond all reason, what is no date in a column of dates, or no cost in a column of costs.
        "refuse" raises a `DataError` that names the first ones; "null" leaves their results empty
        and counts them.
    csv_safe : bool, default False
        Whether text that a spreadsheet program would run as a formula gets an apostrophe before it
        in CSV output, in cells and in column names; see `bootprob.tables.csv_safety.neutralised`.

    Raises
    ------
    DataError
        A level that is none, another word for `bad_rows`, a `keep` that is no tuple of names or
        names one twice, or `costs` that are none.

    Examples
    --------
    >>> from bootprob.batch_scoring import ScoringOptions
    >>> options = ScoringOptions(level=0.9, keep=("customer",), bad_rows="null")
    >>> options.beside  # read from the files besides the model's columns
    ('customer',)
    >>> ScoringOptions(level=90)
    Traceback (most recent call last):
        ...
    bootprob.exceptions.DataError: level is 90; give a number between 0 and 1, such as 0.95.
    """

    level: float = 0.95
    scores: bool = False
    keep: tuple[str, ...] = ()
    costs: MistakeCosts | None = None
    bad_rows: BadRows = "refuse"
    csv_safe: bool = False

    def __post_init__(self) -> None:
        check_level(self.level)
        if self.bad_rows not in get_args(BadRows):
            raise DataError(f"bad_rows is 'refuse' or 'null', not {self.bad_rows!r}.")
        several = isinstance(self.keep, Iterable) and not isinstance(self.keep, str)
        keep = tuple(self.keep) if several else (None,)
        if not all(isinstance(name, str) for name in keep):
            raise DataError(f"keep is {self.keep!r}; give a tuple of names, such as ('customer',).")
        if not isinstance(self.costs, MistakeCosts | None):
            raise DataError(f"costs is {self.costs!r}; give MistakeCosts, or None.")
        object.__setattr__(self, "keep", keep)
        repeated = [repr(name) for name, count in Counter(self.keep).items() if count > 1]
        if repeated:
            raise DataError(f"Columns are to be kept twice: {', '.join(repeated)}.")

    @cached_property
    def beside(self) -> tuple[str, ...]:
        """Columns to read beside those that the model takes."""
        costs = () if self.costs is None else self.costs.columns
        return tuple(dict.fromkeys((*self.keep, *costs)))
