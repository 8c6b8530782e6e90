"""Class probabilities from bootstrapped support vector machines, with intervals that cover."""

from bootprob.estimator import DEFAULT_C, BootstrapSVC
from bootprob.exceptions import BootprobError, DataError, ModelFileError

__all__ = ["DEFAULT_C", "BootprobError", "BootstrapSVC", "DataError", "ModelFileError"]
