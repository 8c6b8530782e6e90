"""Sollich's Bayesian support vector machine: C by evidence, probabilities over the posterior."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from bootprob.baselines.hinge_posterior import PriorColumns, chained_evidence, gibbs
from bootprob.baselines.laplace_evidence import laplace_evidence
from bootprob.baselines.single_machine import (
    POSITIVE,
    SingleMachine,
    ascending,
    train_machine,
)
from bootprob.runtime.arrays import Bools, Floats
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import Kernel

__all__ = ["DEFAULT_AMPLITUDE", "SollichSVC"]


DEFAULT_AMPLITUDE = tuple(4.0**k for k in range(-1, 5))
"""Prior variances of the score, ¼ … 256 squared margins."""

_CHAINED_COLUMNS = 150  # of the prior that chains see; their time goes with the square


class SollichSVC(SingleMachine, ClassifierMixin, BaseEstimator):
    """Support vector machine as a Gaussian process: C from the evidence, averaged probabilities.

    P. Sollich, "Bayesian methods for support vector machines: evidence and predictive class
    probabilities", Machine Learning 46 (2002) 21–52. Two classes.

    The score ``θ(x) = w·φ(x) + b`` has a Gaussian process prior with covariance
    ``A k(x, x') / k̄``, k̄ the mean of k(x, x) over the training rows, and an intercept
    ``b ~ N(0, 10²)``, in effect free. A label has
    ``Q(y | θ) = κ(C) exp(−C max(0, 1 − y θ))``, ``κ(C) = 1 / (1 + exp(−2 C))``; what is missing
    to ``Q(+1 | θ) + Q(−1 | θ) = 1`` is the model's "don't know". The machine is the mode of the
    posterior.

    1. C and the amplitude A maximise the evidence ``Q(Y | X) = ∫ dθ Q(θ) Π_i Q(y_i | θ_i)`` of
       this model over a grid: by chaining, exact but for Monte-Carlo noise, or by Sollich's
       closed form with the marginal support vectors. The factor that normalises Q(Y | X) over
       all labellings of the rows is left out.
    2. ``P(y = +1 | x) = ⟨Q(+1 | θ(x))⟩ / ⟨Q(+1 | θ(x)) + Q(−1 | θ(x))⟩``, averages over the
       posterior, by Gibbs sampling; or both at its mode θ*(x), which is
       ``1 / (1 + exp(−2 C θ*))`` within the margin and
       ``1 / (1 + exp(−C (θ* + sign θ*)))`` beyond it.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default "linear"
        Of the machine.
    C : float or array_like, shape (n_C,), optional
        Grid of C, of ``½ ‖w‖² + C Σ ξ``, which is Sollich's convention and scikit-learn's; default
        ``2**-5, 2**-4, ..., 2**5``. `SollichSVC.paper` takes the thesis's grid, half of that.
    amplitude : float or array_like, shape (n_A,), optional
        Grid of A, the prior variance of the score at an average row, in squared margins; default
        ``¼, 1, 4, ..., 256``. The machine itself depends on ``C · A / k̄`` only, probabilities on
        both.
    gamma : {"scale", "median"} or float, default "scale"
        γ of the RBF kernel on the standardised columns, as for `bootprob.BootstrapSVC`.
    evidence : {"chaining", "laplace"}, default "chaining"
        "chaining" integrates the mean loss over C, from Gibbs samples at every pair; of a prior
        with more than 150 columns (rows, for RBF) it sees the 150 principal ones. "laplace" is
        the closed form: quick, and far off where many rows are near the margin
        (docs/baselines.md).
    probability : {"average", "map"}, default "average"
        Over the posterior, or at its mode.
    n_draws : int, default 500
        Draws from the posterior that probabilities are averaged over, after a fifth as many that
        are thrown away; a tenth as many in each chain of the evidence. With RBF each costs n³.
    device : str, default "auto"
        Where the machine is trained: "cpu", "cuda", ...; draws are made on the CPU.
    tol : float, optional
        Relative duality gap of every machine; defaults as for `bootprob.BootstrapSVC`.
    random_state : int, RandomState instance or None, default None
        Seed of the draws.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        Class labels; ``classes_[1]`` is the positive class.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    C_, amplitude_ : float
        The pair of greatest evidence.
    gamma_ : float or None
        γ of the RBF kernel.
    log_evidence_ : ndarray, shape (n_A, n_C), or None
        ``ln Q(Y | X)``, C and A ascending; "laplace" has a constant left out (its intercept has a
        flat prior). None where the grid has a single pair.
    draws_ : ndarray, shape (n_draws, q + 1), or None
        Draws of the coefficients of the prior's columns, intercept last; None with "map".
    prior_ : PriorColumns
        What makes those columns of rows.
    coef_ : ndarray, shape (1, p) or None
        Coefficients of the machine with the linear kernel, on ``(X - center_) / scale_``.
    dual_coef_ : ndarray, shape (1, n) or None
        Coefficients of the machine with the RBF kernel on ``k(x, X_fit_)``.
    X_fit_ : ndarray, shape (n, p)
        Training rows, ``(X - center_) / scale_``.
    intercept_ : ndarray, shape (1,)
        b.
    center_, scale_ : ndarray, shape (p,)
        Mean and standard deviation of the training columns.

    Notes
    -----
    `decision_function` is the logit of the probability; `machine_score` is the machine's own.
    With few marginal rows the two may disagree on the class.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob.baselines import SollichSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SollichSVC(C=1.0, amplitude=[4.0, 64.0], n_draws=50, random_state=0)
    >>> model.fit(X[50:, :5], y[50:]).amplitude_
    64.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SingleMachine._shared_constraints,
        "amplitude": [None, POSITIVE, "array-like"],
        "gamma": [StrOptions({"scale", "median"}), POSITIVE],
        "evidence": [StrOptions({"chaining", "laplace"})],
        "probability": [StrOptions({"average", "map"})],
        "n_draws": [Interval(Integral, 10, None, closed="left")],
        **SingleMachine._training_constraints,
    }

    def __init__(
        self,
        *,
        kernel: Kernel = "linear",
        C: float | ArrayLike | None = None,
        amplitude: float | ArrayLike | None = None,
        gamma: str | float = "scale",
        evidence: Literal["chaining", "laplace"] = "chaining",
        probability: Literal["average", "map"] = "average",
        n_draws: int = 500,
        device: str = "auto",
        tol: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.amplitude = amplitude
        self.gamma = gamma
        self.evidence = evidence
        self.probability = probability
        self.n_draws = n_draws
        self.device = device
        self.tol = tol
        self.random_state = random_state

    def _learn(self, rows: Floats, positive: Bools, table: dict[str, Any]) -> dict[str, Any]:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        C, gammas = self._grids(rows)
        amplitude = ascending(
            "amplitude", DEFAULT_AMPLITUDE if self.amplitude is None else self.amplitude
        )
        gamma = None if gammas is None else float(gammas[0])
        label = np.where(positive, 1.0, -1.0)
        prior = PriorColumns.of(rows, gamma)
        columns = prior.columns
        log_evidence = None
        a = c = 0
        if len(C) * len(amplitude) > 1:
            if self.evidence == "chaining":
                log_evidence = chained_evidence(
                    prior.leading(_CHAINED_COLUMNS), label, C, amplitude, self.n_draws // 10, rng
                )
            else:
                log_evidence = laplace_evidence(
                    prior, rows, label, C, amplitude, gamma, device=self.device, tol=self.tol
                )
            a, c = divmod(int(np.argmax(log_evidence)), len(C))
        cost = float(C[c] * amplitude[a] / prior.mean_square)
        machine = train_machine(rows, positive, cost, gamma, device=self.device, tol=self.tol)
        draws = None
        if self.probability == "average":
            start = np.zeros((1, columns.shape[1] + 1))
            path = gibbs(columns, label, C[[c]], amplitude[[a]], start, rng)
            kept = [next(path)[0][0] for _ in range(self.n_draws + self.n_draws // 5)]
            draws = np.array(kept[self.n_draws // 5 :])
        return machine | {
            "C_": float(C[c]),
            "amplitude_": float(amplitude[a]),
            "log_evidence_": log_evidence,
            "draws_": draws,
            "prior_": prior,
            "X_fit_": rows,
        }

    def decision_function(self, X: ArrayLike) -> Floats:
        """Logit of the probability of ``classes_[1]``, shape (m,).

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.baselines import SollichSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> model = SollichSVC(C=1.0, amplitude=4.0, n_draws=20, random_state=0).fit(X[50:], y[50:])
        >>> p = model.predict_proba(X[50:])[:, 1]
        >>> bool(np.allclose(model.decision_function(X[50:]), np.log(p / (1 - p))))
        True
        """
        rows = self._standardized(X)
        if self.draws_ is None:
            score = self._score_rows(rows)
            return self.C_ * (np.maximum(0.0, 1 + score) - np.maximum(0.0, 1 - score))
        assert self.X_fit_ is not None
        columns, residual = self.prior_.of_new(rows, self.X_fit_, self.gamma_)
        variance = self.amplitude_ * residual
        logit = np.empty(len(rows))
        for block in row_blocks(len(rows), len(self.draws_)):
            scores = columns[block] @ self.draws_[:, :-1].T + self.draws_[:, -1]
            for_and_against = [
                logsumexp(log_likelihood(side * scores, variance[block, None], self.C_), axis=1)
                for side in (1.0, -1.0)
            ]
            logit[block] = for_and_against[0] - for_and_against[1]
        return logit


def log_likelihood(score: Floats, variance: Floats, C: float) -> Floats:
    """``ln ⟨exp(−C max(0, 1 − θ))⟩`` for θ normal with this mean and variance.

    With s² the variance,
    ``⟨…⟩ = Φ((m − 1)/s) + exp(−C (1 − m) + C² s²/2) Φ((1 − m)/s − C s)``.

    Parameters
    ----------
    score : ndarray
    variance : ndarray
        Broadcasts with it; 0 for a θ that is known.
    C : float
    """
    known = variance == 0
    s = np.sqrt(np.where(known, 1.0, variance))
    missing = 1 - score
    averaged = np.logaddexp(
        log_ndtr(-missing / s),
        -C * missing + np.square(C * s) / 2 + log_ndtr(missing / s - C * s),
    )
    return np.where(known, -C * np.maximum(0.0, missing), averaged)
