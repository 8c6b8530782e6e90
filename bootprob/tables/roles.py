"""Roles of a table's columns: what some say of its rows instead, which are dates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bootprob.encoding.columns import as_numbers, name_rows
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats
from bootprob.runtime.instants import checked_instants
from bootprob.tables.target import find_column

__all__ = ["ColumnRoles"]


@dataclass(frozen=True)
class ColumnRoles:
    """Which columns say something of a row that is not to be learned from, and which are dates.

    Attributes
    ----------
    groups : str, optional
        Which rows belong together, such as the patient's number.
    weight : str, optional
        How much each row counts.
    time : str, optional
        When each row is from.
    drop : tuple of str
        Left out altogether.
    dates : tuple of str
        Learned from as dates; see `bootprob.encoding.preprocessing.TablePreprocessor`.

    Examples
    --------
    >>> import pandas as pd
    >>> from bootprob.tables import ColumnRoles
    >>> roles = ColumnRoles(groups="patient", weight="n", drop=("remark",))
    >>> names = ["patient", "n", "age", "remark", "ill"]
    >>> roles.features(pd.DataFrame([[1, 2, 40, "", 0]], columns=names), target="ill").columns[0]
    'age'
    >>> roles.reasons["remark"]
    'it was to be dropped (drop)'
    """

    groups: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    time: str | None = None
    dates: tuple[str, ...] = ()

    def features(self, frame: pd.DataFrame, target: str) -> pd.DataFrame:
        """The other columns, less the target; dates are among them.

        Parameters
        ----------
        frame : DataFrame
            The whole table.
        target : str
            The column to predict.

        Raises
        ------
        DataError
            There is no such column, a column has two roles, or none is left.

        Examples
        --------
        >>> import pandas as pd
        >>> from bootprob.tables import ColumnRoles
        >>> visits = pd.DataFrame({"patient": [1, 1, 2], "age": [40, 41, 63], "ill": [0, 0, 1]})
        >>> roles = ColumnRoles(groups="patient")
        >>> roles.features(visits, target="ill").columns.tolist()
        ['age']
        """
        roles = {target: "target"}
        given = (
            ("groups", self.groups),
            ("weight", self.weight),
            ("time", self.time),
            *(("drop", n) for n in self.drop),
            *(("dates", n) for n in self.dates),
        )
        for role, name in given:
            if name is None:
                continue
            find_column(frame, name)
            if roles.setdefault(name, role) != role:
                raise DataError(
                    f"The column {name!r} is given as {roles[name]} and as {role}; leave one of "
                    "the two out."
                )
        used = [roles.get(str(name), "dates") == "dates" for name in frame.columns]
        found = frame.loc[:, used]
        if found.shape[1] == 0:
            others = ", ".join(f"{role} {name!r}" for name, role in roles.items())
            raise DataError(f"The table has no column beside the {others}.")
        return found

    @property
    def reasons(self) -> dict[str, str]:
        """Why each of these columns is no feature."""
        given = {self.groups: "it says which rows belong together (groups)"}
        given |= {self.weight: "it says how much a row counts (weight)"}
        given |= {self.time: "it says when a row is from (time)"}
        given |= dict.fromkeys(self.drop, "it was to be dropped (drop)")
        return {name: reason for name, reason in given.items() if name is not None}

    def of_rows(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Arguments of `BootstrapSVC.fit` beside rows and labels.

        Parameters
        ----------
        frame : DataFrame
            The whole table.

        Raises
        ------
        DataError
            A group or a time is missing, a weight is no number from 0 on, or a time is none.

        Examples
        --------
        >>> import pandas as pd
        >>> from bootprob.tables import ColumnRoles
        >>> visits = pd.DataFrame({"patient": [1, 1, 2], "age": [40, 41, 63], "ill": [0, 0, 1]})
        >>> roles = ColumnRoles(groups="patient")
        >>> list(roles.of_rows(visits))
        ['groups']
        """
        found: dict[str, Any] = {}
        if self.groups is not None:
            column = find_column(frame, self.groups)
            missing = np.asarray(pd.isna(column))
            if missing.any():
                raise DataError(
                    f"The column of groups {self.groups!r} is empty in {name_rows(missing)}; give "
                    "each row a group, one that belongs to no other one of its own."
                )
            found["groups"] = column
        if self.weight is not None:
            found["sample_weight"] = _weights(find_column(frame, self.weight), self.weight)
        if self.time is not None:
            column = found["time"] = find_column(frame, self.time)
            checked_instants(column, len(column), f"The column of time {self.time!r}")
        return found


def _weights(column: pd.Series, name: str) -> Floats:
    what = "is given as weight (--weight), which takes a column of numbers"
    weight = as_numbers(column, name, what)
    unusable = ~(weight >= 0)
    if unusable.any():
        raise DataError(
            f"The column of weights {name!r} holds no number from 0 on in {name_rows(unusable)}."
        )
    if not weight.any():
        raise DataError(f"The column of weights {name!r} holds nothing but 0; weigh some rows.")
    return weight
