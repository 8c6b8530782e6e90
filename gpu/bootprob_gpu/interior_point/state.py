"""What an interior point keeps of the problems that are still in its batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bootprob_gpu.certificate import Certificate, Status, relative_gap
from bootprob_gpu.hardware.launch_shapes import tuned_limit

__all__ = [
    "PLAIN_AFTER",
    "PLAIN_CENTRING",
    "ROW_ARRAYS",
    "STALL_AFTER",
    "TWIN_CELLS",
    "State",
    "start",
]

ROW_ARRAYS = 7  # tensors of shape (problems, n) in a `State`, besides labels
# Entries of a temporary in plain torch: a CPU's caches, or enough to keep a GPU busy.
TWIN_CELLS = {"cpu": 2**16, "cuda": 2**22}
STALL_AFTER = 20  # iterations without a better gap before a problem is given up
PLAIN_AFTER = 4  # such iterations after which second-order terms are left out
PLAIN_CENTRING = 0.2
# Share of the way to the boundary in the first steps and in all later ones: the starting point is
# far from the path.
_REACH = (0.9, 0.95, 0.975, 0.995)
_PER_ROW = ("upper", "a", "t", "xi")
_PER_PROBLEM = (
    "index", "penalty", "w", "best_w", "primal", "dual", "best_gap", "best_iteration", "n_iter",
    "status", "working",
)  # fmt: skip


@dataclass
class State:
    """Iterates and certificates of the problems still in the batch; rows are problems.

    Primal ``w = (v, β)``, slacks ``t, xi ≥ 0`` with ``y f(x) − 1 = t − xi``; dual ``a`` in
    ``[0, u]``. Rows of no weight (``u = 0``) idle at harmless values. All is changed in place.

    Attributes
    ----------
    y : Tensor, shape (n,) or (problems, n)
        Labels, −1 or +1.
    upper, a, t, xi : Tensor, shape (problems, n)
        Box bounds and iterates.
    index : Tensor of int64, shape (problems,)
        Where these problems stand among all.
    penalty, w, best_w : Tensor, shape (problems, q)
        Diagonal of ``Λ`` (0 for the intercept), iterate, and the iterate of the best primal.
    primal, dual : Tensor, shape (problems,)
        The best bounds so far; those of all iterates hold.
    best_gap, best_iteration : Tensor, shape (problems,)
        Last substantial progress of the gap.
    n_iter, status, working : Tensor of int64, shape (problems,)
        Iterations so far, values of `Status`, and 1 until a problem is answered. What is written
        of a problem that is answered stays as it is, however long it stays in the batch.
    iteration : Tensor of int64, shape (1,)
        Steps taken by the batch.
    tol : Tensor, shape (1,)
        Relative duality gap at which a problem is answered.
    reach : Tensor
        Share of the way to the boundary that a step may go, by iteration; the last for the rest.
    left, scores, spare : Tensor, shape (problems, n)
        Work space: left factors of matrix products; scores or the predictor's change of them;
        a second one of either.
    """

    y: Tensor
    upper: Tensor
    a: Tensor
    t: Tensor
    xi: Tensor
    index: Tensor
    penalty: Tensor
    w: Tensor
    best_w: Tensor
    primal: Tensor
    dual: Tensor
    best_gap: Tensor
    best_iteration: Tensor
    n_iter: Tensor
    status: Tensor
    working: Tensor
    iteration: Tensor
    tol: Tensor
    reach: Tensor
    left: Tensor
    scores: Tensor
    spare: Tensor

    @property
    def label_step(self) -> int:
        """From the labels of a problem to those of the next: 0 where all share them."""
        return 0 if self.y.ndim == 1 else self.y.shape[1]

    def labels(self, problems: slice) -> Tensor:
        """Labels of some problems, shape (n,) or (problems, n)."""
        return self.y if self.y.ndim == 1 else self.y[problems]

    def blocks(self) -> Iterator[slice]:
        """Slices of the problems that keep temporaries of plain torch small."""
        problems, n = self.upper.shape
        device = self.upper.device
        step = max(1, tuned_limit(TWIN_CELLS[device.type], "twin_cells", device) // n)
        return (slice(start, start + step) for start in range(0, problems, step))

    def keep_working(self, count: int) -> None:
        """Take answered problems out, so that `count` are left; no more than that are at work.

        Large tensors are gathered into the one that is spare and swap places with it, so nothing
        large is allocated.
        """
        kept = torch.argsort(self.working, descending=True, stable=True)[:count]
        for name in _PER_ROW if self.y.ndim == 1 else ("y", *_PER_ROW):
            values, gathered = getattr(self, name), self.left[:count]
            torch.index_select(values, 0, kept, out=gathered)
            setattr(self, name, gathered)
            self.left = values
        self.left, self.scores, self.spare = (
            each[:count] for each in (self.left, self.scores, self.spare)
        )
        for name in _PER_PROBLEM:
            setattr(self, name, getattr(self, name).index_select(0, kept))

    def record(self, solution: Tensor, certificate: Certificate) -> None:
        """Write what is known of the problems in the batch to their places among all."""
        solution[self.index] = self.best_w
        certificate.primal[self.index] = self.primal
        certificate.dual[self.index] = self.dual
        certificate.gap[self.index] = relative_gap(self.primal, self.dual)
        certificate.n_iter[self.index] = self.n_iter
        certificate.status[self.index] = self.status


def start(
    y: Tensor,
    upper: Tensor,
    penalty: Tensor,
    solution: Tensor,
    certificate: Certificate,
    tol: float,
) -> State:
    """The starting point; problems of a single class are answered at once.

    Parameters
    ----------
    y : Tensor, shape (n,) or (problems, n)
        Labels, −1 or +1; those of problems become part of the state and are overwritten.
    upper : Tensor, shape (problems, n)
        Box bounds; becomes part of the state and is overwritten.
    penalty : Tensor, shape (problems, q − 1)
        Diagonal of ``Λ`` without the intercept.
    solution : Tensor, shape (problems, q)
        Zeros, filled in for the problems of a single class.
    certificate : Certificate
        Filled in for the problems of a single class.
    tol : float
        Relative duality gap to reach.
    """
    if y.ndim == 1:
        classes = torch.stack([y > 0, y < 0]).to(upper.dtype)
        mass = upper @ classes.T
    else:
        mass = torch.stack([(upper * (y > 0)).sum(1), (upper * (y < 0)).sum(1)], dim=1)
    single = (mass == 0).any(1)
    solution[:, -1] = torch.where(single, torch.sign(mass[:, 0] - mass[:, 1]), solution[:, -1])
    for values, end in (
        (certificate.primal, 0.0), (certificate.dual, 0.0), (certificate.gap, 0.0),
        (certificate.status, Status.SINGLE_CLASS),
    ):  # fmt: skip
        values.masked_fill_(single, end)
    index = torch.nonzero(~single).squeeze(1)
    if len(index) < len(upper):
        upper, penalty, mass = upper[index], penalty[index], mass[index]
        y = y if y.ndim == 1 else y[index]
    share = 0.5 * (mass.amin(1, keepdim=True) / mass)
    a = share @ classes if y.ndim == 1 else torch.where(y > 0, share[:, :1], share[:, 1:])
    problems = len(index)
    w = upper.new_zeros(problems, solution.shape[1])
    infinite = upper.new_full((problems,), torch.inf)
    zeros = torch.zeros_like(index)
    return State(
        y=y,
        upper=upper,
        a=a.mul_(upper).masked_fill_(upper <= 0, 0.5),
        t=torch.ones_like(upper),
        xi=torch.full_like(upper, 2.0),
        index=index,
        penalty=torch.cat([penalty, penalty.new_zeros(problems, 1)], dim=1),
        w=w,
        best_w=w.clone(),
        primal=infinite,
        dual=-infinite,
        best_gap=infinite.clone(),
        best_iteration=zeros,
        n_iter=zeros.clone(),
        status=torch.full_like(index, Status.MAX_ITER),
        working=torch.ones_like(index),
        iteration=index.new_zeros(1),
        tol=upper.new_tensor([tol]),
        reach=upper.new_tensor(_REACH),
        left=torch.empty_like(upper),
        scores=torch.empty_like(upper),
        spare=torch.empty_like(upper),
    )
