"""Class probabilities from bootstrapped support vector machines, with intervals that cover."""

from typing import TYPE_CHECKING, Any

from bootprob.exceptions import BootprobError, DataError, ModelFileError

if TYPE_CHECKING:
    from bootprob.estimator import DEFAULT_C, BootstrapSVC

__all__ = ["DEFAULT_C", "BootprobError", "BootstrapSVC", "DataError", "ModelFileError"]


def __getattr__(name: str) -> Any:
    # torch and scikit-learn take seconds to load; `bootprob --help` needs neither.
    if name in ("DEFAULT_C", "BootstrapSVC"):
        from bootprob import estimator

        return getattr(estimator, name)
    raise AttributeError(f"module 'bootprob' has no attribute {name!r}")
