"""Ensembles of linear kernels, for tests of what has nothing to do with the choice of a kernel."""

from typing import Any

from bootprob import BootstrapSVC


def linear(**parameters: Any) -> BootstrapSVC:
    """A `BootstrapSVC` of linear kernels, unless the parameters name another."""
    return BootstrapSVC(**{"kernel": "linear"} | parameters)
