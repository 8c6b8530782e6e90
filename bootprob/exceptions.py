"""Errors that say what was given, what is allowed and what to do."""

from functools import partial
from typing import Any

__all__ = [
    "BootprobError",
    "ClassifierError",
    "ConstantColumnWarning",
    "CopiedRowsWarning",
    "DataError",
    "DoubtfulTableWarning",
    "FewRowsWarning",
    "GridEdgeWarning",
    "LackOfFitWarning",
    "LaterRowsWarning",
    "ModelFileError",
    "TargetColumnError",
    "UnattainableRateError",
]


class BootprobError(Exception):
    """Base of every error that bootprob raises on purpose; the engine has its own `InputError`."""


class DataError(BootprobError, ValueError):
    """The data or the options given cannot be used; the message says which and why."""


class ClassifierError(DataError):
    """A classifier of others fails on rows, with an error by which values are seldom refused.

    The error itself is its ``__cause__``.
    """


class TargetColumnError(DataError):
    """A table does not have the columns wanted, and nobody has said which holds the classes."""


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
    """Columns differ by so little that they are constant where they are standardised."""


class DoubtfulTableWarning(UserWarning):
    """What a table has is often a mistake, such as a column that alone gives the target."""


class CopiedRowsWarning(DoubtfulTableWarning):
    """Many rows are copies of others; intervals, rates and out-of-bag numbers do not hold."""


class FewRowsWarning(UserWarning):
    """Rows are too few to show whether a logit bends: intervals hold where it is about straight."""


class GridEdgeWarning(UserWarning):
    """Most of the weight lies at an end of the grid of C or γ: better values may lie beyond."""


class LackOfFitWarning(UserWarning):
    """A test found that intervals of probabilities cover less often than they say."""


class LaterRowsWarning(UserWarning):
    """Later rows are worse than a model of earlier ones says of itself out of bag."""


class ModelFileError(BootprobError):
    """A model file is missing, damaged, not ours or of another version."""
