"""Batches of weighted support vector machines, trained and scored with torch on any device.

This package knows nothing of bootstraps, probabilities, data frames or scikit-learn: it takes rows,
labels, multiplicities and a grid, and returns coefficients with a certificate for every model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bootprob_gpu.certificate import Certificate, Status
    from bootprob_gpu.inputs import InputError
    from bootprob_gpu.kernels.named import Kernel
    from bootprob_gpu.kernels.rbf import median_gamma, scale_gamma
    from bootprob_gpu.models import FittedBatch
    from bootprob_gpu.problem import Problem
    from bootprob_gpu.scoring.model_scores import model_scores, replicate_scores, vote_shares, votes
    from bootprob_gpu.solvers import Solver, choose_solver, resolve_device
    from bootprob_gpu.training import fit, iter_fit

__all__ = [
    "Certificate",
    "FittedBatch",
    "InputError",
    "Kernel",
    "Problem",
    "Solver",
    "Status",
    "choose_solver",
    "fit",
    "iter_fit",
    "median_gamma",
    "model_scores",
    "replicate_scores",
    "resolve_device",
    "scale_gamma",
    "vote_shares",
    "votes",
]

_HOMES = {
    "Certificate": "certificate",
    "FittedBatch": "models",
    "InputError": "inputs",
    "Kernel": "kernels.named",
    "Problem": "problem",
    "Solver": "solvers",
    "Status": "certificate",
    "choose_solver": "solvers",
    "fit": "training",
    "iter_fit": "training",
    "median_gamma": "kernels.rbf",
    "model_scores": "scoring.model_scores",
    "replicate_scores": "scoring.model_scores",
    "resolve_device": "solvers",
    "scale_gamma": "kernels.rbf",
    "vote_shares": "scoring.model_scores",
    "votes": "scoring.model_scores",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for: compiled loops alone need no torch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
