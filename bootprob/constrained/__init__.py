"""Support vector machines under constraints on their rates, thesis chapter 2."""

from bootprob.constrained.convex_svc import ConvexConstrainedSVC
from bootprob.constrained.estimator import ConstrainedSVC
from bootprob.constrained.problem import ConstrainedProblem, Requirement, Solution

__all__ = [
    "ConstrainedProblem",
    "ConstrainedSVC",
    "ConvexConstrainedSVC",
    "Requirement",
    "Solution",
]
