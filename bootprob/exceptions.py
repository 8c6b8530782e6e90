"""Errors that say what was given, what is allowed and what to do."""

from functools import partial
from typing import Any

__all__ = [
    "BootprobError",
    "ConstantColumnWarning",
    "CopiedRowsWarning",
    "DataError",
    "LackOfFitWarning",
    "ModelFileError",
    "UnattainableRateError",
]


class BootprobError(Exception):
    """Base of every error that bootprob raises on purpose."""


class DataError(BootprobError, ValueError):
    """The data or the options given cannot be used; the message says which and why."""


class UnattainableRateError(DataError):
    """A rate that was asked for cannot be kept.

    Attributes
    ----------
    rate : str
        Which one: "tpr", "tnr" or "accuracy".
    wanted : float
        What was asked for.
    attainable : float or None
        The best that can be had instead, other things equal; None where it is not known.
    """

    def __init__(self, message: str, *, rate: str, wanted: float, attainable: float | None) -> None:
        super().__init__(message)
        self.rate, self.wanted, self.attainable = rate, wanted, attainable

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            partial(type(self), rate=self.rate, wanted=self.wanted, attainable=self.attainable),
            self.args,
        )


class ConstantColumnWarning(UserWarning):
    """Columns differ by so little that they are taken for constant and say nothing of a row."""


class CopiedRowsWarning(UserWarning):
    """Many rows are copies of others; intervals, rates and out-of-bag numbers do not hold."""


class LackOfFitWarning(UserWarning):
    """A test found that intervals of probabilities cover less often than they say."""


class ModelFileError(BootprobError):
    """A model file is missing, damaged, not ours or of another version."""
