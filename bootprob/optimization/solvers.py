"""CVXPY and the mixed-integer solvers, which are installed on request and loaded when used."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from bootprob.exceptions import DataError

__all__ = ["choose_solver", "load_cvxpy", "quiet_about_accuracy"]

_MODULES = {"SCIP": "pyscipopt", "HIGHS": "highspy", "GUROBI": "gurobipy"}


def choose_solver(solver: str | None = None) -> str:
    """Name of the solver to use: the one asked for, else SCIP, else HiGHS.

    Gurobi is used only when asked for: it needs a licence of the user's.

    Raises
    ------
    DataError
        It is unknown, or not installed, or none is; says what to install.
    """
    if solver is not None and (not isinstance(solver, str) or solver.upper() not in _MODULES):
        raise DataError(f"solver is {solver!r}; give 'SCIP', 'HIGHS', 'GUROBI' or None.")
    load_cvxpy()
    wanted = ("SCIP", "HIGHS") if solver is None else (solver.upper(),)
    for name in wanted:
        if find_spec(_MODULES[name]) is not None:
            return name
    what = " or ".join(f"{_MODULES[name]} (for {name})" for name in wanted)
    install = "gurobipy" if wanted == ("GUROBI",) else '"bootprob[mip]"'
    raise DataError(f"This method needs {what}, which is not installed: pip install {install}.")


def load_cvxpy() -> Any:
    """The module cvxpy, untyped: its type hints leave out most functions; or `DataError`."""
    if find_spec("cvxpy") is None:
        raise DataError(
            "This method needs CVXPY and a mixed-integer solver, which are not installed: "
            'pip install "bootprob[mip]".'
        )
    return import_module("cvxpy")


@contextmanager
def quiet_about_accuracy() -> Iterator[None]:
    """Without CVXPY's warning on inaccurate solutions: every solution is checked here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        yield
