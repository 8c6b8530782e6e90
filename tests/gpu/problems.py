"""Random and ugly problems for the engine, drawn afresh from a seed; no engine code in here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from truth import COEF0, DEGREE, Machine, weighted_laplacian

Generator = np.random.Generator


KERNELS = ("linear", "rbf", "laplacian", "poly", "precomputed")
CENTRED, WITH_GAMMA = ("linear", "rbf", "laplacian"), ("rbf", "laplacian", "poly")


@dataclass(frozen=True, eq=False)
class Case:
    """The arguments of a batch; γ is of RBF and Laplacian kernels, polynomial ones have their own.

    Labels are (n,), or (B, n) where each replicate has its own.
    """

    X: np.ndarray
    y: np.ndarray
    counts: np.ndarray
    C: np.ndarray
    gamma: np.ndarray
    row_weight: np.ndarray | None = None
    scale: np.ndarray | None = None
    bounds: Callable[[int], np.ndarray] | None = None
    """Explicit box bounds (B, R, n) for a number of models R, in place of the rule."""

    def n_models(self, kernel: str) -> int:
        """Models per replicate, R."""
        return len(self.C) * (len(self.gamma) if kernel in WITH_GAMMA else 1)

    def gammas(self, kernel: str) -> np.ndarray:
        """Grid of γ: as given, or such that ``γ ⟨x, z⟩`` is about 1 for the longest rows."""
        if kernel in ("rbf", "laplacian"):
            return self.gamma
        scales = np.atleast_2d(np.ones(self.X.shape[1]) if self.scale is None else self.scale)
        with np.errstate(over="ignore"):  # the engine is given numbers out of range, too
            longest = max(float(((self.X / scale) ** 2).sum(axis=1).max()) for scale in scales)
        return np.array([2.0, 0.5])[: len(self.gamma)] / (longest or 1.0)

    def given(self, kernel: str, X: np.ndarray) -> np.ndarray:
        """Rows as the engine is given them."""
        return weighted_laplacian(X, self.X) if kernel == "precomputed" else X

    def arguments(self, kernel: str) -> dict:
        """Keyword arguments of `bootprob_gpu.Problem`."""
        X = self.given(kernel, self.X)
        arguments = {"X": X, "y": self.y, "counts": self.counts, "C": self.C, "kernel": kernel}
        if kernel in WITH_GAMMA:
            arguments["gamma"] = self.gammas(kernel)
        if kernel == "poly":
            arguments |= {"degree": DEGREE, "coef0": COEF0}
        if self.bounds is not None:
            arguments["upper"] = self.bounds(self.n_models(kernel))
        if self.row_weight is not None:
            arguments["row_weight"] = self.row_weight
        if self.scale is not None and kernel != "precomputed":
            arguments["scale"] = self.scale
        return arguments

    @cached_property
    def weight(self) -> np.ndarray:
        """Row weights, ones where none are given; (n,)."""
        return np.ones(len(self.X)) if self.row_weight is None else self.row_weight

    @cached_property
    def centre(self) -> np.ndarray:
        """The mean row: taking it away changes no solution and saves digits; (p,)."""
        return self.X.mean(axis=0)

    def labels_of(self, b: int) -> np.ndarray:
        """Labels in replicate b, (n,)."""
        return self.y if self.y.ndim == 1 else self.y[b]

    def scale_of(self, b: int) -> np.ndarray:
        """Scale of replicate b, (p,)."""
        if self.scale is None:
            return np.ones(self.X.shape[1])
        return self.scale if self.scale.ndim == 1 else self.scale[b]

    def rows(self, b: int, kernel: str, X: np.ndarray | None = None) -> np.ndarray:
        """Scaled rows as replicate b sees them, centred where the kernel does not mind."""
        X = self.X if X is None else X
        if kernel == "precomputed":
            return X
        return (X - self.centre if kernel in CENTRED else X) / self.scale_of(b)

    def parameters(self, kernel: str, r: int) -> tuple[float, float | None]:
        """C and γ of model r, by the order ``r = g · n_C + c``."""
        g, c = divmod(r, len(self.C))
        return float(self.C[c]), float(self.gammas(kernel)[g]) if kernel in WITH_GAMMA else None

    def machine(self, kernel: str, b: int, r: int) -> Machine:
        """Model r of replicate b, written out; always the same object."""
        if (kernel, b, r) not in self._machines:
            self._machines[kernel, b, r] = self._machine(kernel, b, r)
        return self._machines[kernel, b, r]

    @cached_property
    def _machines(self) -> dict[tuple[str, int, int], Machine]:
        return {}

    def _machine(self, kernel: str, b: int, r: int) -> Machine:
        C, gamma = self.parameters(kernel, r)
        if self.bounds is None:
            upper = C * self.counts[b] * self.weight
        else:
            upper = self.bounds(self.n_models(kernel))[b, r]
        return Machine(self.rows(b, kernel), self.labels_of(b), upper, gamma, kernel)

    def has_both_classes(self, kernel: str, b: int, r: int) -> bool:
        """Whether both classes carry weight in this model."""
        machine = self.machine(kernel, b, r)
        return all((machine.upper[machine.y == label] > 0).any() for label in (-1, 1))


def bootstrap_counts(rng: Generator, n_replicates: int, y: np.ndarray) -> np.ndarray:
    """Counts of bootstrap samples that hold both classes, (B, n)."""
    counts = np.empty((n_replicates, len(y)), dtype=np.int64)
    for b in range(n_replicates):
        while True:
            counts[b] = np.bincount(rng.integers(len(y), size=len(y)), minlength=len(y))
            if all((counts[b][y == label] > 0).any() for label in (-1, 1)):
                break
    return counts


def labels(rng: Generator, n: int) -> np.ndarray:
    """Half of each, shuffled."""
    return rng.permutation(np.where(np.arange(n) < n // 2, 1.0, -1.0))


def overlapping(
    rng: Generator, n: int = 40, p: int = 4, shift: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussian classes whose means are `shift` apart along the diagonal."""
    y = labels(rng, n)
    return rng.normal(size=(n, p)) + shift * y[:, None] / (2 * np.sqrt(p)), y


def case(rng: Generator, X: np.ndarray, y: np.ndarray, n_replicates: int = 2, **changes) -> Case:
    """A case with the usual grids; anything can be replaced."""
    typical = 1 / (X.shape[1] * max(float(X.var()), 1e-12))
    arguments = {
        "counts": changes.pop("counts", None),
        "C": np.array([2.0**-5, 1.0, 4.0]),
        "gamma": typical * np.array([0.3, 2.0]),
    }
    if arguments["counts"] is None:
        arguments["counts"] = bootstrap_counts(rng, n_replicates, y)
    return Case(X, y, **(arguments | changes))


# --- well-behaved problems -----------------------------------------------------------------------


def plain(rng: Generator) -> Case:
    return case(rng, *overlapping(rng))


def clear(rng: Generator) -> Case:
    """Nearly separable."""
    X, y = overlapping(rng, n=50, p=3, shift=5.0)
    return case(rng, X, y)


def weighted_and_scaled(rng: Generator) -> Case:
    """Row weights and a scale of its own for every replicate."""
    X, y = overlapping(rng, n=30, p=3)
    counts = bootstrap_counts(rng, 2, y)
    scale = rng.uniform(0.3, 3.0, size=(2, X.shape[1]))
    weight = rng.uniform(0.2, 5.0, size=len(y))
    weight[:2] = 0.0
    return case(rng, X, y, counts=counts, scale=scale, row_weight=weight)


def one_scale_for_all(rng: Generator) -> Case:
    X, y = overlapping(rng, n=30)
    return case(rng, X, y, scale=rng.uniform(0.5, 2.0, size=X.shape[1]))


def own_bounds(rng: Generator) -> Case:
    """Box bounds that follow no rule, zeros among them."""
    X, y = overlapping(rng, n=30, p=3)
    seed = int(rng.integers(2**32))

    def bounds(n_models: int) -> np.ndarray:
        draw = np.random.default_rng(seed)
        upper = draw.exponential(size=(2, n_models, len(y)))
        return upper * (draw.random(upper.shape) < 0.7)

    return case(rng, X, y, bounds=bounds)


def pairs_of_classes(rng: Generator) -> Case:
    """Three classes: a replicate for each pair, in which the rows of the third have no weight."""
    classes = rng.permutation(np.repeat([0, 1, 2], 12))
    X = rng.normal(size=(36, 3)) + np.eye(3)[classes]
    y, counts = np.empty((3, 36)), np.zeros((3, 36), dtype=int)
    for b, (first, second) in enumerate([(0, 1), (0, 2), (1, 2)]):
        y[b] = np.where(classes == second, 1.0, -1.0)
        rows = np.flatnonzero(classes != 3 - first - second)
        counts[b, rows] = bootstrap_counts(rng, 1, y[b, rows])[0]
    return case(rng, X, y, counts=counts, scale=rng.uniform(0.5, 2.0, size=(3, 3)))


def wide(rng: Generator) -> Case:
    """More columns than rows."""
    X, y = overlapping(rng, n=24, p=60)
    return case(rng, X, y)


REGULAR = {
    function.__name__: function
    for function in (
        plain,
        clear,
        weighted_and_scaled,
        one_scale_for_all,
        own_bounds,
        pairs_of_classes,
        wide,
    )
}


def many_replicates(rng: Generator) -> Case:
    """Enough replicates to be worked through in several blocks."""
    X, y = overlapping(rng, n=30, p=3)
    counts = bootstrap_counts(rng, 9, y)
    scale = rng.uniform(0.5, 2.0, size=(9, 3))
    return case(rng, X, y, counts=counts, C=np.array([0.1, 1.0]), scale=scale)


BATCH = {"many_replicates": many_replicates}


# --- ugly problems -------------------------------------------------------------------------------


def ugly(rng: Generator, X: np.ndarray, y: np.ndarray, **changes) -> Case:
    """A case with one γ: there are many of them, each solved by CVXPY and by every back end."""
    usual = case(rng, X, y, **changes)
    return usual if "gamma" in changes else replace(usual, gamma=usual.gamma[1:])


def wide_margin(rng: Generator) -> Case:
    X, y = overlapping(rng, n=30, p=3, shift=0.0)
    return ugly(rng, X + 20 * y[:, None], y, gamma=np.array([0.01]))


def pure_noise(rng: Generator) -> Case:
    return ugly(rng, rng.normal(size=(40, 3)), labels(rng, 40))


def duplicated_rows(rng: Generator) -> Case:
    X, y = overlapping(rng, n=12, p=3)
    return ugly(rng, np.repeat(X, 3, axis=0), np.repeat(y, 3))


def contradicting_duplicates(rng: Generator) -> Case:
    """Every row occurs with both labels."""
    X = rng.normal(size=(15, 3))
    return ugly(rng, np.vstack([X, X]), np.repeat([1.0, -1.0], 15))


def one_point_for_all(rng: Generator) -> Case:
    """All rows are the same: nothing but an intercept can be learnt."""
    return ugly(rng, np.ones((12, 2)), labels(rng, 12), gamma=np.array([0.5]))


def constant_and_collinear(rng: Generator) -> Case:
    X, y = overlapping(rng, n=36, p=3)
    columns = [X, np.full((36, 1), 7.0), np.zeros((36, 1)), X[:, :1], X[:, :2] @ [[2.0], [-1.0]]]
    return ugly(rng, np.hstack(columns), y)


def rare_dummy(rng: Generator) -> Case:
    """A dummy column that is constant in one of the replicates."""
    X, y = overlapping(rng, n=30, p=2)
    dummy = np.zeros((30, 1))
    dummy[3] = 1.0
    counts = bootstrap_counts(rng, 2, y)
    counts[:, 3] = 0, 2
    counts[:, [np.argmax(y > 0), np.argmax(y < 0)]] += 1
    return ugly(rng, np.hstack([X, dummy]), y, counts=counts)


def one_column(rng: Generator) -> Case:
    X, y = overlapping(rng, n=30, p=1)
    return ugly(rng, X, y)


def many_columns(rng: Generator) -> Case:
    X, y = overlapping(rng, n=20, p=300)
    return ugly(rng, X, y)


def two_rows_a_class(rng: Generator) -> Case:
    y = np.array([1.0, 1.0, -1.0, -1.0])
    counts = np.array([[1, 1, 1, 1], [2, 0, 0, 2], [0, 1, 2, 1]])
    return ugly(rng, rng.normal(size=(4, 3)), y, counts=counts)


def class_missing(rng: Generator) -> Case:
    """The first replicate lacks the negatives, the second the positives, the third nothing."""
    X, y = overlapping(rng, n=20, p=3)
    counts = bootstrap_counts(rng, 3, y)
    counts[0, y < 0] = 0
    counts[1, y > 0] = 0
    return ugly(rng, X, y, counts=counts)


def nothing_drawn(rng: Generator) -> Case:
    """The first replicate is empty."""
    X, y = overlapping(rng, n=20, p=3)
    counts = bootstrap_counts(rng, 2, y)
    counts[0] = 0
    return ugly(rng, X, y, counts=counts)


def unequal_scales(rng: Generator) -> Case:
    """Columns from 1e-6 to 1e6."""
    X, y = overlapping(rng, n=30, p=7)
    return ugly(rng, X * 10.0 ** np.arange(-6, 7, 2), y, gamma=np.array([1e-12]))


def unequal_scales_undone(rng: Generator) -> Case:
    """Columns from 1e-6 to 1e6 and a scale per replicate that undoes it."""
    X, y = overlapping(rng, n=30, p=5)
    scale = 10.0 ** np.array([-6, -3, 0, 3, 6])
    return ugly(rng, X * scale, y, scale=scale * rng.uniform(0.5, 2, (2, 5)), gamma=np.array([0.3]))


def large_offset(rng: Generator) -> Case:
    X, y = overlapping(rng, n=30, p=3)
    return ugly(rng, X + 1e6, y, gamma=np.array([0.5]))


def outlier(rng: Generator) -> Case:
    """One row of each sample is ten thousand standard deviations away."""
    X, y = overlapping(rng, n=30, p=3)
    X[3] += 1e4 * rng.normal(size=3)
    counts = bootstrap_counts(rng, 2, y)
    counts[:, 3] = 1, 2
    return ugly(rng, X, y, counts=counts, gamma=np.array([0.5]))


def heavy_tails(rng: Generator) -> Case:
    """Cauchy features."""
    X, y = overlapping(rng, n=30, p=3)
    return ugly(rng, X + rng.standard_cauchy(size=X.shape), y, gamma=np.array([0.5]))


def extreme_c(rng: Generator) -> Case:
    X, y = overlapping(rng, n=24, p=3)
    return ugly(rng, X, y, C=np.array([1e-6, 1e-3, 1e2, 1e4]))


def descending_c(rng: Generator) -> Case:
    """A grid of C in no order, one value twice: nothing may depend on an ascending path."""
    X, y = overlapping(rng, n=24, p=3)
    return ugly(rng, X, y, C=np.array([4.0, 0.1, 1.0, 0.1]))


def unequal_weights(rng: Generator) -> Case:
    """Row weights from 1e-3 to 1e3."""
    X, y = overlapping(rng, n=30, p=3)
    return ugly(rng, X, y, row_weight=10.0 ** rng.uniform(-3, 3, size=30))


def imbalanced(rng: Generator) -> Case:
    """Four positives of 200."""
    y = np.where(np.arange(200) < 4, 1.0, -1.0)
    X = rng.normal(size=(200, 3)) + 0.8 * (y[:, None] > 0)
    weight = np.where(y > 0, 25.0, 200 / 392)
    return ugly(rng, X, y, n_replicates=1, C=np.array([0.1, 2.0]), row_weight=weight)


def narrow_and_wide_kernels(rng: Generator) -> Case:
    """γ so small that the Gram matrix is all ones, and so large that it is the identity."""
    X, y = overlapping(rng, n=24, p=2)
    return ugly(rng, X, y, gamma=np.array([1e-8, 1e6]))


UGLY = {
    function.__name__: function
    for function in (
        wide_margin,
        pure_noise,
        duplicated_rows,
        contradicting_duplicates,
        one_point_for_all,
        constant_and_collinear,
        rare_dummy,
        one_column,
        many_columns,
        two_rows_a_class,
        class_missing,
        nothing_drawn,
        unequal_scales,
        unequal_scales_undone,
        large_offset,
        outlier,
        heavy_tails,
        extreme_c,
        descending_c,
        unequal_weights,
        imbalanced,
        narrow_and_wide_kernels,
    )
}
