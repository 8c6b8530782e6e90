"""Class probabilities from bootstrapped support vector machines, with intervals that cover."""

from typing import TYPE_CHECKING, Any

from bootprob.exceptions import (
    BootprobError,
    DataError,
    ModelFileError,
    UnattainableRateError,
)

if TYPE_CHECKING:
    from bootprob.estimator import BootstrapSVC
    from bootprob.grids import DEFAULT_C

__all__ = [
    "DEFAULT_C",
    "BootprobError",
    "BootstrapSVC",
    "DataError",
    "ModelFileError",
    "UnattainableRateError",
]


def __getattr__(name: str) -> Any:
    # torch and scikit-learn take seconds to load; `bootprob --help` needs neither.
    if name == "BootstrapSVC":
        from bootprob.estimator import BootstrapSVC

        return BootstrapSVC
    if name == "DEFAULT_C":
        from bootprob.grids import DEFAULT_C

        return DEFAULT_C
    raise AttributeError(f"module 'bootprob' has no attribute {name!r}")
