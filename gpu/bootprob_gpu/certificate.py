"""What a solver says of every model: objectives, duality gap, iterations and status."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum

import torch
from torch import Tensor

__all__ = ["Certificate", "Status", "feasible_dual", "relative_gap"]


class Status(IntEnum):
    """How the training of a model ended."""

    CONVERGED = 0
    MAX_ITER = 1
    STALLED = 2
    SINGLE_CLASS = 3

    @property
    def advice(self) -> str:
        """What this status means and what to do about it, a full sentence or two."""
        return _ADVICE[self]


_ADVICE = {
    Status.CONVERGED: (
        "The relative duality gap is within the tolerance asked for, or the violation of the KKT "
        "conditions within kkt_tol."
    ),
    Status.MAX_ITER: (
        "The iterations ran out before the tolerance was reached: loosen tol, drop the largest "
        "values of C, or allow the engine a larger max_iter."
    ),
    Status.STALLED: (
        "Rounding stopped all progress before the tolerance was reached: standardise the "
        "features, loosen tol, or train in float64."
    ),
    Status.SINGLE_CLASS: (
        "Only one class carries weight in this replicate, so the answer is that class for every "
        "row: redraw the replicate."
    ),
}


@dataclass(frozen=True)
class Certificate:
    """Evidence for every model of a batch; each a tensor of shape (B, R).

    Attributes
    ----------
    primal : Tensor of float64
        Primal objective at the coefficients returned.
    dual : Tensor of float64
        Dual objective at a feasible dual point: a lower bound of the optimum.
    gap : Tensor of float64
        ``(primal − dual) / primal``, 0 where the primal objective is 0.
    n_iter : Tensor of int64
        Iterations of the solver.
    status : Tensor of int64
        Values of `Status`.

    Examples
    --------
    >>> import torch
    >>> from bootprob_gpu import Problem, fit
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
    >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
    >>> models = fit(Problem(X, y, counts, C=[0.1, 1.0]))
    >>> proof = models.certificate
    >>> bool((proof.dual <= proof.primal).all()), proof.status.tolist()
    (True, [[0, 0], [0, 0]])
    """

    primal: Tensor
    dual: Tensor
    gap: Tensor
    n_iter: Tensor
    status: Tensor

    @classmethod
    def empty(cls, *shape: int, device: torch.device) -> Certificate:
        """Room for certificates that a solver fills in.

        Parameters
        ----------
        *shape : int
            Replicates and models of each.
        device : torch.device
            Where they lie.

        Examples
        --------
        >>> import torch
        >>> from bootprob_gpu import Certificate, Status
        >>> room = Certificate.empty(2, 3, device=torch.device("cpu"))
        >>> room.gap.shape, Status(int(room.status[0, 0])).name  # until a solver has been there
        (torch.Size([2, 3]), 'MAX_ITER')
        """
        infinite = torch.full(shape, torch.inf, dtype=torch.float64, device=device)
        zeros = torch.zeros(shape, dtype=torch.int64, device=device)
        return cls(
            primal=infinite,
            dual=-infinite,
            gap=infinite.clone(),
            n_iter=zeros,
            status=torch.full_like(zeros, Status.MAX_ITER),
        )

    def view(self, *shape: int) -> Certificate:
        """The same certificates in another shape.

        Parameters
        ----------
        *shape : int
            As of `Tensor.view`.

        Examples
        --------
        >>> import torch
        >>> from bootprob_gpu import Problem, fit
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
        >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
        >>> models = fit(Problem(X, y, counts, C=[0.1, 1.0]))
        >>> models.certificate.view(-1).gap.shape  # replicates and models in a row
        torch.Size([4])
        """
        return Certificate(*(getattr(self, f.name).reshape(shape) for f in fields(self)))

    def put(self, rows: Tensor, those: Certificate) -> None:
        """Replace some rows by others.

        Parameters
        ----------
        rows : Tensor of int, shape (k,)
            Positions along the first axis.
        those : Certificate
            Of k rows.

        Examples
        --------
        >>> import torch
        >>> from bootprob_gpu import Certificate
        >>> room, one = (Certificate.empty(n, 1, device=torch.device("cpu")) for n in (3, 1))
        >>> one.n_iter[:] = 7
        >>> room.put(torch.tensor([1]), one)
        >>> room.n_iter.flatten().tolist()
        [0, 7, 0]
        """
        for f in fields(self):
            getattr(self, f.name)[rows] = getattr(those, f.name)

    def take(self, replicates: slice) -> Certificate:
        """Those of some replicates.

        Parameters
        ----------
        replicates : slice
            Which of them, counted from the first.

        Examples
        --------
        >>> import torch
        >>> from bootprob_gpu import Problem, fit
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
        >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
        >>> models = fit(Problem(X, y, counts, C=[0.1, 1.0]))
        >>> models.certificate.take(slice(1, 2)).gap.shape
        torch.Size([1, 2])
        """
        return Certificate(*(getattr(self, f.name)[replicates] for f in fields(self)))

    @classmethod
    def concatenate(cls, parts: list[Certificate]) -> Certificate:
        """Join the certificates of consecutive replicates.

        Parameters
        ----------
        parts : list of Certificate
            In the order of the replicates.

        Examples
        --------
        >>> import torch
        >>> from bootprob_gpu import Problem, fit
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
        >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
        >>> models = fit(Problem(X, y, counts, C=[0.1, 1.0]))
        >>> from bootprob_gpu import Certificate
        >>> proof = models.certificate
        >>> Certificate.concatenate([proof.take(slice(0, 1)), proof.take(slice(1, 2))]).gap.shape
        torch.Size([2, 2])
        """
        return cls(*(torch.cat([getattr(part, f.name) for part in parts]) for f in fields(cls)))


def relative_gap(primal: Tensor, dual: Tensor) -> Tensor:
    """``(primal − dual) / primal``; 0 for the model whose objective is 0 (a single class)."""
    return torch.where(primal > 0, (primal - dual) / primal, torch.zeros_like(primal))


def feasible_dual(a: Tensor, positive: Tensor) -> Tensor:
    """Scale the heavier class down, so that ``Σ y a = 0`` holds exactly; the box still does.

    Parameters
    ----------
    a : Tensor, shape (..., n)
        Dual variables within their box.
    positive : Tensor of bool, shape (n,) or (..., n)
        Which rows are positive.
    """
    mass_positive = (a * positive).sum(-1, keepdim=True)
    mass_negative = (a * ~positive).sum(-1, keepdim=True)
    lighter = torch.minimum(mass_positive, mass_negative)
    tiny = torch.finfo(a.dtype).tiny
    return a * torch.where(
        positive, lighter / mass_positive.clamp_min(tiny), lighter / mass_negative.clamp_min(tiny)
    )
