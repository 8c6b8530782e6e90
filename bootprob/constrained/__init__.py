"""Support vector machines under constraints on their rates, thesis chapter 2.

- `ConstrainedSVC`: finds at least a stated share of a class. By a heuristic with a lower bound, or
  proven by a mixed-integer solver (``method="exact"``, the extra ``bootprob[mip]``).
- `ConvexConstrainedSVC`: any convex constraints of one's own, written in CVXPY (the extra
  ``bootprob[layers]``).
- `ConstrainedProblem`, `Requirement` and `Solution`: what is solved, what it has to reach, and what
  was found, as `ConstrainedSVC.result_` has it.

One machine; whole ensembles whose rates hold are ``BootstrapSVC(control=...)``. Guides:
docs/constrained.md and docs/control.md.
"""

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
