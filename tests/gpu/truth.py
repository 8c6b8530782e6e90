"""What the optimum is, found without the engine: scikit-learn, CVXPY, closed forms, and arithmetic.

Every truth is a `Truth`: a feasible dual point ``a`` and an intercept of somebody else's making,
from which numpy computes a lower and an upper bound of the optimum. So a comparison with it is a
theorem and not a matter of taste. For *any* weight vector ``w`` and intercept ``β`` with margins
``m_i = y_i f(x_i)``, any ``a`` in the box with ``Σ y_i a_i = 0``, and ``w_a = Σ y_i a_i φ(x_i)``,

``P(w, β) − D(a) = ½ ‖w − w_a‖² + Σ_i [(u_i − a_i) max(0, 1 − m_i) + a_i max(0, m_i − 1)]``

(write out both objectives and insert ``Σ a_i m_i = wᵀ w_a``). All terms on the right are ≥ 0, hence
with ``g = P(w, β) − D(a)``, where ``P`` is ours and ``D`` is the truth's,

- ``‖w − w_a‖ ≤ √(2g)``, so score *differences* between two rows are off by at most
  ``√(2g) ‖φ(x) − φ(z)‖``;
- ``|m_i − 1| ≤ g / min(a_i, u_i − a_i)``: a support vector inside its box pins the intercept.

Together they bound every score (`Truth.score_bound`). The truth's own gap enters in the same way,
so scikit-learn at its default tolerance serves as well as at a tight one: the bound is just wider.
(And wider it is: libsvm keeps its Gram matrix in single precision, so that even `tol=1e-9` leaves
relative gaps of 1e-7 to 1e-4, or runs for minutes. CLARABEL's are 1e-9 and below.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC

if TYPE_CHECKING:
    from problems import Case

DOUBLE = np.finfo(np.float64).eps
DEGREE, COEF0 = 3, 0.5  # of polynomial kernels


def numbers(tensor: torch.Tensor) -> np.ndarray:
    """A tensor of the engine as a float64 array."""
    return tensor.detach().cpu().double().numpy()


@dataclass(frozen=True, eq=False)
class Machine:
    """One weighted SVM in plain form: scaled rows, labels, box bounds, a kernel and its γ."""

    Z: np.ndarray
    y: np.ndarray
    upper: np.ndarray
    gamma: float | None = None
    name: str = "linear"

    def kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Kernel between the rows of A and those of B."""
        if self.name == "linear":
            return A @ B.T
        if self.name == "poly":
            return (self.gamma * A @ B.T + COEF0) ** DEGREE
        if self.name == "precomputed":
            return weighted_laplacian(A, B)
        if self.name == "laplacian":
            return np.exp(-self.gamma * cdist(A, B, "cityblock"))
        return np.exp(-self.gamma * squared_distances(A, B))

    def distances(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Feature-space distances ``‖φ(a) − φ(b)‖`` between the rows of A and those of B."""
        if self.name == "linear":
            return np.sqrt(squared_distances(A, B))
        if self.name == "rbf":
            return np.sqrt(-2 * np.expm1(-self.gamma * squared_distances(A, B)))
        if self.name == "laplacian":
            return np.sqrt(-2 * np.expm1(-self.gamma * cdist(A, B, "cityblock")))
        own_a, own_b = self._own(A), self._own(B)
        squares = own_a[:, None] + own_b - 2 * self.kernel(A, B)
        rounding = 16 * DOUBLE * (own_a[:, None] + own_b)  # differences of equal rows are not 0
        return np.sqrt(np.maximum(squares, 0) + rounding)

    def _own(self, A: np.ndarray) -> np.ndarray:
        """Kernel of each row with itself."""
        if self.name == "poly":
            return (self.gamma * (A**2).sum(axis=1) + COEF0) ** DEGREE
        return (1.5 + np.sin(A.sum(axis=1))) ** 2

    @cached_property
    def gram(self) -> np.ndarray:
        """Kernel between the rows, (n, n)."""
        return self.kernel(self.Z, self.Z)

    def rounding(self, A: np.ndarray, K: np.ndarray) -> np.ndarray:
        """By what multiple of the unit roundoff K, the kernel of A with Z, may be off."""
        values = np.abs(K)
        if self.name == "poly":
            # A sum of products that may cancel, and its power.
            products = self.gamma * np.abs(A) @ np.abs(self.Z).T + COEF0
            return DEGREE * products**DEGREE
        if self.name == "rbf":
            # ‖x − z‖² = ‖x‖² − 2 x·z + ‖z‖² loses eps · (‖x‖² + ‖z‖²), times γ k(x, z).
            squares = (A**2).sum(axis=1)[:, None] + (self.Z**2).sum(axis=1)
            return values * (1 + self.gamma * squares)
        if self.name == "laplacian":
            # |x − z| loses eps · (|x| + |z|) where rows are divided and moved, times γ k(x, z).
            sizes = np.abs(A).sum(axis=1)[:, None] + np.abs(self.Z).sum(axis=1)
            return values * (1 + self.gamma * sizes)
        return values

    def primal(self, squared_norm: float, scores: np.ndarray) -> float:
        """Primal objective from ``‖w‖²`` and the scores of the training rows."""
        return 0.5 * squared_norm + float(self.upper @ np.maximum(0, 1 - self.y * scores))

    def dual(self, alpha: np.ndarray) -> float:
        """Dual objective ``Σ a − ½ ‖Σ y a φ‖²``."""
        return float(alpha.sum()) - 0.5 * self.squared_norm(self.y * alpha)

    def squared_norm(self, dual_coef: np.ndarray) -> float:
        """``‖Σ_i dual_coef_i φ(x_i)‖²``."""
        if self.name == "linear":
            return float(np.sum((dual_coef @ self.Z) ** 2))
        return float(dual_coef @ self.gram @ dual_coef)

    def best_intercept(self, scores: np.ndarray) -> float:
        """Minimiser of the primal over the intercept alone, given scores without intercept.

        The hinge loss is piecewise linear in it, so one of the kinks ``y_i − f_i`` is optimal.
        """
        kinks = (self.y - scores)[self.upper > 0]
        if kinks.size == 0:
            return 0.0
        hinge = np.maximum(0, 1 - self.y * (scores + kinks[:, None]))
        return float(kinks[np.argmin(hinge @ self.upper)])


@dataclass(frozen=True, eq=False)
class Truth:
    """A feasible dual point and a primal point, with the bounds that follow from them.

    The primal point is ``(coef, intercept)``, or ``(w_a, intercept)`` where `coef` is None.
    """

    machine: Machine
    alpha: np.ndarray
    coef: np.ndarray | None
    intercept: float
    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """Relative duality gap of the truth itself."""
        return 0.0 if self.upper == 0 else (self.upper - self.lower) / self.upper

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """Scores of new scaled rows."""
        machine = self.machine
        if self.coef is not None:
            return Z @ self.coef + self.intercept
        return machine.kernel(Z, machine.Z) @ (machine.y * self.alpha) + self.intercept

    def weight_bound(self, excess: float) -> float:
        """Largest possible ``‖w − w_truth‖`` of an answer with ``P − lower = excess``."""
        own = 0.0 if self.coef is None else np.sqrt(2 * max(self.upper - self.lower, 0.0))
        return np.sqrt(2 * excess) + own

    def score_bound(self, excess: float, Z: np.ndarray) -> np.ndarray:
        """Largest possible difference to the scores of an answer with ``P − lower = excess``.

        Anchored at whichever support vector gives the smallest bound; infinite where no support
        vector is strictly inside its box, for then the optimal intercept is not unique.
        """
        machine = self.machine
        slack = np.minimum(self.alpha, machine.upper - self.alpha)
        free = slack > 0
        if not free.any():
            return np.full(len(Z), np.inf)
        distances = machine.distances(Z, machine.Z[free])
        anchor = (excess + max(self.upper - self.lower, 0.0)) / slack[free]
        return (self.weight_bound(excess) * distances + anchor).min(axis=1)


@dataclass(frozen=True, eq=False)
class Answer:
    """Model (b, r) of a batch, evaluated again in numpy from its coefficients alone.

    Scores come with a bound of what rounding may do to them: a multiple of the unit roundoff of
    the precision times the absolute values that are summed up.
    """

    case: Case
    b: int
    machine: Machine
    coef: np.ndarray | None
    dual_coef: np.ndarray | None
    intercept: float
    eps: float

    @classmethod
    def read(cls, fitted, case: Case, backend, b: int, r: int) -> Answer:
        def model(tensor: torch.Tensor | None) -> np.ndarray | None:
            return None if tensor is None else numbers(tensor)[b, r]

        return cls(
            case=case,
            b=b,
            machine=case.machine(backend.kernel, b, r),
            coef=model(fitted.coef),
            dual_coef=model(fitted.dual_coef),
            intercept=float(fitted.intercept[b, r]),
            eps=64 * backend.eps,
        )

    @cached_property
    def of_training_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Their scores by the definition, and their rounding."""
        return self.evaluate(self.case.X)

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores of some rows by the definition, and their rounding."""
        if self.coef is not None:
            size = np.abs(X) @ np.abs(self.coef) + abs(self.intercept)
            return X @ self.coef + self.intercept, self.eps * size
        machine, Z = self.machine, self.case.rows(self.b, self.machine.name, X)
        K = machine.gram if X is self.case.X else machine.kernel(Z, machine.Z)
        scores = K @ self.dual_coef + self.intercept
        if machine.name == "linear":
            # The intercept belongs to the rows as given, the machine's rows are centred.
            scale = self.case.scale_of(self.b)
            w = self.dual_coef @ machine.Z
            scores += w @ (self.case.centre / scale)
            sizes = np.abs(self.dual_coef) @ np.abs(machine.Z)
            size = np.abs(Z) @ sizes
            stored = np.abs(X / scale) @ sizes + abs(self.intercept)
        else:
            size = machine.rounding(Z, K) @ np.abs(self.dual_coef) + np.abs(scores)
            stored = abs(self.intercept)
        return scores, self.eps * (size + np.abs(scores)) + 256 * DOUBLE * stored

    @cached_property
    def squared_norm(self) -> float:
        """``‖w‖²`` in the features that the replicate sees."""
        if self.coef is not None:
            return float(np.sum((self.coef * self.case.scale_of(self.b)) ** 2))
        return self.machine.squared_norm(self.dual_coef)

    @cached_property
    def primal(self) -> float:
        """Primal objective at the coefficients."""
        return self.machine.primal(self.squared_norm, self.of_training_rows[0])

    @cached_property
    def doubt(self) -> float:
        """How far rounding may move the objectives."""
        rounding = self.of_training_rows[1]
        norm = 0.0 if self.dual_coef is None else np.abs(self.dual_coef) @ rounding
        return float(self.machine.upper @ rounding + norm + 1e-12 * self.primal)

    def excess(self, truth: Truth) -> float:
        """Our primal objective above the truth's dual one."""
        return max(self.primal - truth.lower, 0.0) + self.doubt


def weighted_laplacian(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """``w(a) w(b) exp(−½ ‖a − b‖₁)``: a kernel that the engine does not know, nor its diagonal."""
    weight_a, weight_b = (1.5 + np.sin(each.sum(axis=1)) for each in (A, B))
    distances = np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2)
    return weight_a[:, None] * weight_b * np.exp(-0.5 * distances)


def squared_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """By differences, not by expanding the square: exact where rows coincide."""
    return ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)


def certify(
    machine: Machine,
    alpha: np.ndarray,
    *,
    coef: np.ndarray | None = None,
    intercept: float | None = None,
) -> Truth:
    """Make a dual point feasible, and evaluate both objectives.

    The heavier class is scaled down until ``Σ y a = 0``. Without an intercept, the best one for
    this ``w`` is taken.
    """
    alpha = np.clip(alpha, 0, machine.upper)
    positive, negative = alpha[machine.y > 0].sum(), alpha[machine.y < 0].sum()
    if positive != negative:
        heavier = machine.y > 0 if positive > negative else machine.y < 0
        alpha[heavier] *= min(positive, negative) / max(positive, negative)
    dual_coef = machine.y * alpha
    if coef is None:
        scores = machine.gram @ dual_coef
        squared_norm = machine.squared_norm(dual_coef)
    else:
        scores, squared_norm = machine.Z @ coef, float(coef @ coef)
    if intercept is None:
        intercept = machine.best_intercept(scores)
    value = machine.primal(squared_norm, scores + intercept)
    return Truth(machine, alpha, coef, intercept, machine.dual(alpha), value)


def svc_on_resampled_rows(
    Z: np.ndarray,
    y: np.ndarray,
    counts: np.ndarray,
    C: float,
    row_weight: np.ndarray,
    kernel: str,
    gamma: float | None,
    tol: float,
) -> tuple[SVC, np.ndarray]:
    """Refit scikit-learn's SVC on rows that are literally repeated; returns it and its ``a``.

    The dual variables of the copies of a row are added up, which turns the bound C of every copy
    into the bound ``C · count`` of the row.
    """
    rows = np.repeat(np.arange(len(y)), counts)
    rows = rows[row_weight[rows] > 0]
    options = {"degree": DEGREE, "coef0": COEF0} if kernel == "poly" else {}
    given = partial(laplacian_kernel, gamma=gamma) if kernel == "laplacian" else kernel
    model = SVC(C=C, kernel=given, gamma=gamma or 1.0, tol=tol, **options)
    seen = Z[np.ix_(rows, rows)] if kernel == "precomputed" else Z[rows]
    model.fit(seen, y[rows], sample_weight=row_weight[rows])
    model.rows_ = rows
    alpha = np.zeros(len(y))
    np.add.at(alpha, rows[model.support_], np.abs(model.dual_coef_[0]))
    return model, alpha


def svc(machine: Machine, tol: float = 1e-6) -> Truth:
    """Truth from scikit-learn's SVC, which takes any box bounds as sample weights."""
    drawn = np.flatnonzero(machine.upper)
    K = machine.gram[np.ix_(drawn, drawn)]
    model = SVC(C=1.0, kernel="precomputed", tol=tol)
    model.fit(K, machine.y[drawn], sample_weight=machine.upper[drawn])
    alpha = np.zeros(len(machine.y))
    alpha[drawn[model.support_]] = np.abs(model.dual_coef_[0])
    return certify(machine, alpha)


def optimum(machine: Machine) -> Truth:
    """Truth from CLARABEL: the primal for the linear kernel, the dual for others."""
    if machine.name == "linear":
        try:
            return _primal_optimum(machine)
        except ArithmeticError:  # seen with an outlier of 1e6, one problem in some hundreds
            pass
    return _dual_optimum(machine)


def _primal_optimum(machine: Machine) -> Truth:
    drawn = machine.upper > 0
    Z, y, upper = machine.Z[drawn], machine.y[drawn], machine.upper[drawn]
    (n, p), spread = Z.shape, Z.std(axis=0)
    spread[spread == 0] = 1.0
    # In the unit of each column's own spread, so that columns of 1e-6 and of 1e6 can be solved.
    square = np.concatenate([1 / spread**2, np.zeros(1 + n)])
    linear = np.concatenate([np.zeros(p + 1), upper])
    hinge = np.hstack([y[:, None] * np.column_stack([Z / spread, np.ones(n)]), np.eye(n)])
    slack = np.eye(n, p + 1 + n, p + 1)
    x, z = _solve(square, linear, -np.vstack([hinge, slack]), np.repeat([-1.0, 0.0], n), 0)
    alpha = np.zeros(len(machine.y))
    alpha[drawn] = z[:n]
    return certify(machine, alpha, coef=x[:p] / spread)


def _dual_optimum(machine: Machine) -> Truth:
    drawn = machine.upper > 0
    Z, y, upper = machine.Z[drawn], machine.y[drawn], machine.upper[drawn]
    n = len(y)
    root = _root(machine.kernel(Z, Z))
    square, linear = np.repeat([0.0, 1.0], n), np.repeat([-1.0, 0.0], n)
    rows = np.vstack([
        np.hstack([root.T * y, -np.eye(n)]),  # t = Rᵀ (y a), of which ½ ‖t‖² is taken away
        np.concatenate([y, np.zeros(n)]),
        np.eye(n, 2 * n) * -1,
        np.eye(n, 2 * n),
    ])  # fmt: skip
    right = np.concatenate([np.zeros(n + 1 + n), upper])
    x, _ = _solve(square, linear, rows, right, n + 1)
    alpha = np.zeros(len(machine.y))
    alpha[drawn] = x[:n]
    return certify(machine, alpha)


def _root(K: np.ndarray) -> np.ndarray:
    """``R`` with ``K = R Rᵀ``."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


# Now and then rounding keeps the solver from its tightest tolerances. Looser ones are as good: the
# bounds of the optimum are computed from whatever it returns.
_TOLERANCES = [
    {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 200},
    {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-9, "tol_feas": 1e-9, "max_iter": 200},
    {"max_iter": 200},
]


def _solve(
    square: np.ndarray, linear: np.ndarray, rows: np.ndarray, right: np.ndarray, n_equal: int
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise ``½ Σ square x² + linearᵀ x`` where ``rows x ≤ right``, the first of them equal.

    Returns x and the multipliers of the rows. A model of CVXPY comes to the same, `cvxpy`, in eight
    times the time.
    """
    import clarabel

    cones = [clarabel.NonnegativeConeT(len(right) - n_equal)]
    if n_equal:
        cones.insert(0, clarabel.ZeroConeT(n_equal))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for tolerances in _TOLERANCES:
        for name, value in tolerances.items():
            setattr(settings, name, value)
        solver = clarabel.DefaultSolver(
            sparse.diags_array(square, format="csc"),
            linear, sparse.csc_array(rows), right, cones, settings,
        )  # fmt: skip
        found = solver.solve()
        if str(found.status) in ("Solved", "AlmostSolved"):
            return np.array(found.x), np.array(found.z)
    raise ArithmeticError(found.status)


def cvxpy(machine: Machine) -> Truth:
    """Truth from a CVXPY model of the dual."""
    import cvxpy as cp

    drawn = machine.upper > 0
    Z, y, upper = machine.Z[drawn], machine.y[drawn], machine.upper[drawn]
    a = cp.Variable(len(y))
    objective = cp.sum(a) - 0.5 * cp.sum_squares(_root(machine.kernel(Z, Z)).T @ cp.multiply(y, a))
    problem = cp.Problem(cp.Maximize(objective), [a >= 0, a <= upper, y @ a == 0])
    for tolerances in _TOLERANCES:
        try:
            problem.solve(solver=cp.CLARABEL, **tolerances)
            break
        except cp.SolverError:
            pass
    alpha = np.zeros(len(machine.y))
    alpha[drawn] = a.value
    return certify(machine, alpha)


def two_rows(squared_distance: float, upper: float) -> tuple[float, float]:
    """Closed form for one row a class with equal bounds: the dual variable and the optimum.

    ``max 2a − ½ a² d²`` over ``0 ≤ a ≤ u`` gives ``a = min(u, 2 / d²)``; strong duality the rest.
    """
    a = min(upper, 2 / squared_distance)
    return a, 2 * a - 0.5 * a**2 * squared_distance


def symmetric_column(t: np.ndarray, upper: np.ndarray) -> tuple[float, float]:
    """Closed form for one column with a row ``(t_i, +1)`` and a row ``(−t_i, −1)`` per i.

    By symmetry the intercept is 0 (the objective is convex and invariant under β → −β), and
    ``½ w² + 2 Σ u_i max(0, 1 − t_i w)`` is piecewise quadratic: its minimum is at a kink ``1/t_i``
    or where the derivative vanishes inside a piece. Returns ``w`` and the optimum.
    """

    def value(w: float) -> float:
        return 0.5 * w**2 + 2 * float(upper @ np.maximum(0, 1 - t * w))

    kinks = np.sort(1 / t)
    edges = np.concatenate([[0.0], kinks, [np.inf]])
    candidates = [*kinks, 0.0]
    for left, right in pairwise(edges):
        stationary = 2 * float(upper[1 / t >= right] @ t[1 / t >= right])
        if left <= stationary <= right:
            candidates.append(stationary)
    w = min(candidates, key=value)
    return w, value(w)
