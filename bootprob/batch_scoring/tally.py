"""Counts of what was odd in the rows: which could not be used, which levels are unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from bootprob.exceptions import DataError

__all__ = ["MOST_BAD_ROWS", "MOST_LEVELS", "BadRow", "BadRowsError", "Tally"]

MOST_BAD_ROWS = 1000
"""Rows that are listed; more are only counted, so that memory stays constant."""

MOST_LEVELS = 100
"""Unknown levels of a column that are listed with their counts; rows of others are only counted."""

_SHOWN = 5


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used.

    Attributes
    ----------
    file : str or None
        Its file; None in a stream of batches.
    row : int
        Its number in the file, or in the stream; the first one below the header is 1.
    cells : dict of str to str
        What is wrong, by column.

    Examples
    --------
    >>> from bootprob.batch_scoring import BadRow
    >>> print(BadRow("april.csv", 3, {"age": "text where a number belongs"}))
    row 3 of april.csv (age: text where a number belongs)
    """

    file: str | None
    row: int
    cells: dict[str, str]

    def __str__(self) -> str:
        where = f"row {self.row}" + (f" of {self.file}" if self.file else "")
        return f"{where} ({', '.join(f'{name}: {what}' for name, what in self.cells.items())})"


@dataclass
class Tally:
    """What was odd so far.

    Attributes
    ----------
    n_rows : int
        Rows seen.
    n_bad : int
        Those that cannot be used.
    bad : list of BadRow
        The first `MOST_BAD_ROWS` of them.
    unknown_rows : Counter of str
        Rows with a level that the model does not know, by column.
    unknown_levels : dict of str to Counter of str
        Rows of each such level, by column; of the first `MOST_LEVELS` levels found.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from bootprob.batch_scoring import ScoringOptions, Tally, score_batches
    >>> from sklearn.datasets import load_iris
    >>> from bootprob.tables import TableModel
    >>> table = load_iris(as_frame=True).frame[50:]  # two species of three
    >>> model = TableModel.fit(table, "target", kernel="linear", n_bootstraps=20, random_state=0)
    >>> rows = pa.RecordBatch.from_pandas(table[:2].assign(**{"petal width (cm)": ["1.4", "wide"]}))
    >>> tally = Tally()
    >>> scored = list(score_batches(model, [rows], ScoringOptions(bad_rows="null"), tally))
    >>> print(tally.n_rows, tally.n_bad, tally.bad[0])
    2 1 row 2 (petal width (cm): not a number)
    """

    n_rows: int = 0
    n_bad: int = 0
    bad: list[BadRow] = field(default_factory=list)
    unknown_rows: Counter[str] = field(default_factory=Counter)
    unknown_levels: dict[str, Counter[str]] = field(default_factory=dict)

    def add_bad(self, n_bad: int, rows: list[BadRow]) -> None:
        """Count bad rows and list as many of them as there is room for.

        Parameters
        ----------
        n_bad : int
            How many there are.
        rows : list of BadRow
            Those that may be listed.

        Examples
        --------
        >>> from bootprob.batch_scoring import BadRow, Tally
        >>> tally = Tally()
        >>> tally.add_bad(3, [BadRow(None, 12, {"age": "no number"})])
        >>> tally.n_bad, len(tally.bad)  # three, of which one is listed
        (3, 1)
        """
        self.n_bad += n_bad
        self.bad += rows[: MOST_BAD_ROWS - len(self.bad)]

    def add_unknown(self, found: Mapping[str, Mapping[str, int]]) -> None:
        """Count unknown levels: for each column its levels and their numbers of rows.

        Parameters
        ----------
        found : mapping of str to mapping of str to int
            Number of rows, by column and level.

        Examples
        --------
        >>> from bootprob.batch_scoring import Tally
        >>> tally = Tally()
        >>> tally.add_unknown({"branch": {"Leeds": 2, "York": 1}})
        >>> tally.unknown_rows["branch"], tally.unknown_levels["branch"]["Leeds"]
        (3, 2)
        """
        for name, levels in found.items():
            self.unknown_rows[name] += sum(levels.values())
            self._list_levels(name, levels)

    def add(self, other: Tally) -> None:
        """Add what was found in the rows that follow.

        Parameters
        ----------
        other : Tally
            Of those rows.

        Examples
        --------
        >>> from bootprob.batch_scoring import BadRow, Tally
        >>> tally = Tally(n_rows=10)
        >>> tally.add(Tally(n_rows=5, n_bad=1, bad=[BadRow(None, 12, {"age": "no number"})]))
        >>> tally.n_rows, tally.n_bad
        (15, 1)
        """
        self.n_rows += other.n_rows
        self.add_bad(other.n_bad, other.bad)
        self.unknown_rows.update(other.unknown_rows)
        for name, levels in other.unknown_levels.items():
            self._list_levels(name, levels)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values that JSON can hold.

        Examples
        --------
        >>> from bootprob.batch_scoring import Tally
        >>> Tally(n_rows=5).to_dict()
        {'n_rows': 5, 'n_bad': 0, 'bad': [], 'unknown_rows': {}, 'unknown_levels': {}}
        """
        return {
            "n_rows": self.n_rows,
            "n_bad": self.n_bad,
            "bad": [asdict(row) for row in self.bad],
            "unknown_rows": dict(self.unknown_rows),
            "unknown_levels": {name: dict(found) for name, found in self.unknown_levels.items()},
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Restore what `to_dict` returned.

        Parameters
        ----------
        stored : dict
            As `to_dict` returned it.

        Examples
        --------
        >>> from bootprob.batch_scoring import Tally
        >>> tally = Tally(n_rows=5)
        >>> Tally.from_dict(tally.to_dict()) == tally
        True
        """
        levels = {name: Counter(counts) for name, counts in stored["unknown_levels"].items()}
        return cls(
            n_rows=stored["n_rows"],
            n_bad=stored["n_bad"],
            bad=[BadRow(**row) for row in stored["bad"]],
            unknown_rows=Counter(stored["unknown_rows"]),
            unknown_levels=levels,
        )

    def _list_levels(self, name: str, levels: Mapping[str, int]) -> None:
        listed = self.unknown_levels.setdefault(name, Counter())
        for level, count in levels.items():
            if level in listed or len(listed) < MOST_LEVELS:
                listed[level] += count


class BadRowsError(DataError):
    """Rows cannot be used, and were to be refused.

    Parameters
    ----------
    n_bad : int
        Those found so far.
    rows : list of BadRow
        The first of them.
    """

    def __init__(self, n_bad: int, rows: list[BadRow]) -> None:
        more = n_bad - len(rows[:_SHOWN])
        shown = "; ".join(map(str, rows[:_SHOWN])) + (f"; and {more} more near by" if more else "")
        super().__init__(
            f"Rows cannot be used: {shown}. Correct them, leave such cells empty (but for costs), "
            "or have their results left empty (--bad-rows null)."
        )
        self.n_bad, self.rows = n_bad, rows

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.n_bad, self.rows)
