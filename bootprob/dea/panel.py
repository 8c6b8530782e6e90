"""Decision-making units with what they use and what they produce, checked once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from bootprob.dea.panel_tables import (
    PanelError,
    check_values,
    checked_names,
    column_names,
    enumerated,
    index_names,
    listed,
    numbers_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from bootprob.dea.panel_tables import Table

__all__ = ["Panel", "PanelError", "require_panel"]


@dataclass(frozen=True, eq=False)
class Panel:
    """K decision-making units, N inputs and M outputs; read-only.

    `of` makes one from arrays or data frames.

    Attributes
    ----------
    inputs : ndarray (K, N) float64
        What each unit uses; finite, not negative.
    outputs : ndarray (K, M) float64
        What each unit produces; finite, not negative.
    units, input_names, output_names : tuple of str
        All different; no input is called as an output is.

    Raises
    ------
    PanelError
        The numbers or the names do not keep to this.

    Examples
    --------
    >>> panel = Panel.of([20, 30], [[5, 1], [6, 0]], units=["A", "B"])
    >>> panel.n_units, panel.n_inputs, panel.output_names
    (2, 1, ('output 1', 'output 2'))
    """

    inputs: np.ndarray
    outputs: np.ndarray
    units: tuple[str, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    def __post_init__(self) -> None:
        for field, kind in (("inputs", "input"), ("outputs", "output")):
            values = numbers_of(getattr(self, field), field)
            names = checked_names(getattr(self, f"{kind}_names"), f"{kind}_names", values.shape[1])
            object.__setattr__(self, field, values)
            object.__setattr__(self, f"{kind}_names", names)
        if len(self.inputs) != len(self.outputs):
            raise PanelError(
                f"inputs has {len(self.inputs)} units and outputs {len(self.outputs)}; both need "
                "one row for each unit, in the same order."
            )
        object.__setattr__(self, "units", checked_names(self.units, "units", len(self.inputs)))
        shared = [name for name in self.input_names if name in self.output_names]
        if shared:
            raise PanelError(
                f"{shared[0]!r} is an input and an output; give it another name on one side.",
                columns=shared,
            )
        for values, names in (
            (self.inputs, self.input_names), (self.outputs, self.output_names)
        ):  # fmt: skip
            check_values(values, self.units, names)
            values.flags.writeable = False

    @classmethod
    def of(
        cls,
        inputs: Table,
        outputs: Table,
        *,
        units: Iterable[object] | None = None,
        input_names: Iterable[object] | None = None,
        output_names: Iterable[object] | None = None,
    ) -> Self:
        """Make a panel in which every unit uses and produces something.

        Parameters
        ----------
        inputs, outputs : array-like (K, N) and (K, M), DataFrame or Series
            One row for each unit, in the same order; (K,) is one column. Numbers, or text that
            spells them.
        units : iterable (K,), optional
            Their names; default the index of a data frame that is not just numbered, else
            "1" to "K".
        input_names, output_names : iterable, optional
            Default the columns of the data frame, else "input 1", "output 1" and so on.

        Returns
        -------
        Panel

        Raises
        ------
        PanelError
            Nothing is given, lengths or indexes differ, a value is missing, infinite, negative or
            not a number, names repeat, or a unit has no input or no output above zero.

        Examples
        --------
        >>> import pandas as pd
        >>> from bootprob.dea import Panel
        >>> names = ["North", "South"]
        >>> clinics = pd.DataFrame({"beds": [20, 30], "patients": [500, 600]}, index=names)
        >>> panel = Panel.of(clinics[["beds"]], clinics[["patients"]])
        >>> panel.units, panel.input_names, panel.output_names
        (('North', 'South'), ('beds',), ('patients',))
        """
        if units is None:
            units = index_names(inputs, outputs)
        tables = {}
        for kind, table in (("input", inputs), ("output", outputs)):
            tables[kind] = numbers_of(table, f"{kind}s")
        given = {"input": input_names, "output": output_names}
        names = {}
        for kind, table in (("input", inputs), ("output", outputs)):
            default = column_names(table) or [
                f"{kind} {number}" for number in range(1, tables[kind].shape[1] + 1)
            ]
            own = listed(given[kind], f"{kind}_names")
            names[kind] = tuple(default if own is None else own)
        if units is None:
            units = range(1, len(tables["input"]) + 1)
        panel = cls(
            tables["input"], tables["output"], tuple(listed(units, "units") or ()),
            names["input"], names["output"],
        )  # fmt: skip
        panel.require_activity()
        return panel

    @property
    def n_units(self) -> int:
        """K."""
        return len(self.units)

    @property
    def n_inputs(self) -> int:
        """N."""
        return len(self.input_names)

    @property
    def n_outputs(self) -> int:
        """M."""
        return len(self.output_names)

    def require_activity(self, *, inputs: bool = True, outputs: bool = True) -> None:
        """Check that every unit uses something and produces something.

        Parameters
        ----------
        inputs, outputs : bool, default True
            Which to check.

        Raises
        ------
        PanelError
            Some unit does not.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> panel = Panel.of([1, 1], [[5, 0], [0, 4]], units=["A", "B"])
        >>> panel.take(outputs=[0]).require_activity()
        Traceback (most recent call last):
            ...
        bootprob.dea.panel_tables.PanelError: All outputs of unit 'B' are zero; ...
        """
        for kind, values, wanted in (
            ("inputs", self.inputs, inputs), ("outputs", self.outputs, outputs)
        ):  # fmt: skip
            idle = [self.units[row] for row in np.flatnonzero(~values.any(axis=1))]
            if wanted and idle:
                their, them = ("their", "them") if len(idle) > 1 else ("its", "it")
                raise PanelError(
                    f"All {kind} of {enumerated('unit', idle)} are zero; {their} efficiency has no "
                    f"meaning. Leave {them} out or correct {them}.",
                    units=idle,
                )

    def take(
        self,
        *,
        units: Iterable[int | str] | None = None,
        inputs: Iterable[int | str] | None = None,
        outputs: Iterable[int | str] | None = None,
    ) -> Self:
        """Part of the panel, in the order asked for.

        Units that use or produce nothing of what is taken stay: `require_activity` finds them.

        Parameters
        ----------
        units, inputs, outputs : iterable of int or str, optional
            Positions from 0 or names; default all.

        Returns
        -------
        Panel

        Raises
        ------
        PanelError
            One is not there, or is asked for twice, or nothing is.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> some = toy.take(units=["C", "A"], outputs=["output 2"])
        >>> some.units, some.outputs.tolist()
        (('C', 'A'), [[1.0], [2.0]])
        """
        rows = self.positions("units", units)
        used = self.positions("inputs", inputs)
        made = self.positions("outputs", outputs)
        return type(self)(
            self.inputs[np.ix_(rows, used)],
            self.outputs[np.ix_(rows, made)],
            tuple(self.units[row] for row in rows),
            tuple(self.input_names[column] for column in used),
            tuple(self.output_names[column] for column in made),
        )

    def positions(self, kind: str, wanted: Iterable[int | str] | None = None) -> list[int]:
        """Positions from 0 of units, inputs or outputs that are given by position or by name.

        Parameters
        ----------
        kind : {"units", "inputs", "outputs"}
            Of what.
        wanted : iterable of int or str, optional
            Default all of them.

        Returns
        -------
        list of int

        Raises
        ------
        PanelError
            One is not there.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> toy.positions("outputs", ["output 3", 0])
        [2, 0]
        >>> toy.positions("units")
        [0, 1, 2]
        """
        known = {
            "units": self.units, "inputs": self.input_names, "outputs": self.output_names
        }[kind]  # fmt: skip
        if wanted is None:
            return list(range(len(known)))
        found = []
        for item in listed(wanted, kind) or []:
            if isinstance(item, str) and item in known:
                found.append(known.index(item))
            elif (
                isinstance(item, (int, np.integer))
                and not isinstance(item, bool)
                and 0 <= item < len(known)
            ):
                found.append(int(item))
            else:
                raise PanelError(
                    f"There is no {item!r} among the {len(known)} {kind}; give positions from 0 "
                    f"to {len(known) - 1} or names, such as {known[0]!r}."
                )
        return found

    def to_frame(self) -> pd.DataFrame:
        """Inputs, then outputs, as columns; units as the index.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> toy.to_frame()
              input 1  output 1  output 2  output 3
        unit
        A         1.0       5.0       2.0       1.0
        B         1.0       4.0       4.0       2.0
        C         1.0       1.0       1.0       6.0
        """
        import pandas as pd

        return pd.DataFrame(
            np.hstack((self.inputs, self.outputs)),
            index=pd.Index(self.units, name="unit"),
            columns=list(self.input_names + self.output_names),
        )


def require_panel(panel: object) -> None:
    """Raise a `PanelError` for what is no panel."""
    if not isinstance(panel, Panel):
        raise PanelError(
            f"panel is {type(panel).__name__}; give a Panel, made by Panel.of(inputs, outputs)."
        )
