"""Intervals for P(y = 1 | x) that users would take: ours, and those of other packages, by name.

A method is a line of `OURS` or of `OTHERS`. Packages are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.special import expit, ndtri
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bootprob import BootstrapSVC
from bootprob.runtime.arrays import Floats, Integers
from docs.studies.calibration.methods import ScoreAsProbability

__all__ = [
    "LEVEL",
    "LIMIT",
    "METHODS",
    "OTHERS",
    "OURS",
    "PACKAGES",
    "IntervalMethod",
    "distribution",
    "installed",
]

LEVEL = 0.95
LIMIT = "the true model's limit"
"""Made by the truth itself: `KnownTruth.limit`."""

_TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
_NORMAL = float(ndtri(_TAILS[1]))

Bounds = Callable[[Floats, Integers, Floats, int], Floats]
"""Limits of new rows, shape (m, 2), from training rows, labels, new rows and a seed."""


@dataclass(frozen=True)
class IntervalMethod:
    """What makes an interval.

    Attributes
    ----------
    bounds : callable
        See `Bounds`.
    what : str
        What it is, for the document.
    package : str, optional
        Module that must be installed, beside what the tests need.
    slow : bool
        Whether it is measured after all others.
    """

    bounds: Bounds
    what: str
    package: str | None = None
    slow: bool = False


def _ours(**options: Any) -> Bounds:
    def bounds(X: Floats, y: Integers, new: Floats, seed: int) -> Floats:
        model = BootstrapSVC(random_state=seed, **options).fit(X, y)
        return model.proba_interval(new, LEVEL)[:, 1]

    return bounds


def _bart(X: Floats, y: Integers, new: Floats, seed: int) -> Floats:
    from stochtree import BARTModel, OutcomeModel

    model = BARTModel()
    model.sample(
        X_train=X,
        y_train=y.astype(np.float64),
        num_gfr=0,
        num_burnin=100,
        num_mcmc=300,
        general_params={
            "random_seed": seed,
            "num_threads": 1,
            "outcome_model": OutcomeModel(outcome="binary", link="probit"),
        },
    )
    draws = model.predict(new, type="posterior", terms="y_hat", scale="probability")
    return np.quantile(draws, _TAILS, axis=1).T


def _forest(X: Floats, y: Integers, new: Floats, seed: int) -> Floats:
    from forestci import random_forest_error

    forest = RandomForestClassifier(500, n_jobs=1, random_state=seed).fit(X, y)
    p = forest.predict_proba(new)[:, 1]
    np.random.seed(seed)  # noqa: NPY002  (forestci permutes trees by the global generator)
    # Without class_index it is the variance of the share of trees that vote for a class.
    variance = random_forest_error(forest, X.shape, new, class_index=1)
    return _normal(p, variance).clip(0, 1)


def _lightgbm(X: Floats, y: Integers, new: Floats, seed: int) -> Floats:
    from lightgbm import LGBMClassifier

    generator = np.random.default_rng(seed)
    found: list[Floats] = []
    while len(found) < 40:
        drawn = generator.integers(len(X), size=len(X))
        if len(np.unique(y[drawn])) < 2:
            continue
        model = LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1)
        found.append(np.asarray(model.fit(X[drawn], y[drawn]).predict_proba(new))[:, 1])
    return np.quantile(found, _TAILS, axis=0).T


def _venn_abers(X: Floats, y: Integers, new: Floats, seed: int) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        from venn_abers import VennAbersCalibrator  # silences numpy for good where it is imported

        model = VennAbersCalibrator(
            ScoreAsProbability(make_pipeline(StandardScaler(), SVC())),
            inductive=True,
            cal_size=0.2,
            random_state=seed,
            stratify=y,
        )
        _, pairs = model.fit(X, y).predict_proba(new, p0_p1_output=True)
    return np.asarray(pairs[0])


def _wald(X: Floats, y: Integers, new: Floats, seed: int) -> Floats:
    from statsmodels.api import GLM, add_constant, families

    fitted = GLM(y, add_constant(X, has_constant="add"), family=families.Binomial()).fit()
    asked = fitted.get_prediction(add_constant(new, has_constant="add"))
    return np.asarray(asked.conf_int(alpha=1 - LEVEL))


def _gaussian_process(X: Floats, y: Integers, new: Floats, seed: int) -> Floats:
    scaler = StandardScaler().fit(X)
    kernel = ConstantKernel() * RBF(np.sqrt(X.shape[1]))
    model = GaussianProcessClassifier(kernel, random_state=seed).fit(scaler.transform(X), y)
    mean, variance = model.latent_mean_and_variance(scaler.transform(new))
    return expit(_normal(mean, variance))


def _normal(center: Floats, variance: Floats) -> Floats:
    half = _NORMAL * np.sqrt(variance)
    return np.column_stack([center - half, center + half])


OURS = {
    "BootstrapSVC": IntervalMethod(
        _ours(n_bootstraps=100),
        "as it is, but B = 100 for the time that it takes: its interval is a posterior's",
    ),
    "BootstrapSVC, linear": IntervalMethod(_ours(kernel="linear"), '`kernel="linear"`, B = 500'),
    "BootstrapSVC, RBF": IntervalMethod(
        _ours(kernel="rbf", gamma="grid", n_bootstraps=100),
        '`kernel="rbf", gamma="grid"`, B = 100 for the time that it takes',
        slow=True,
    ),
}
"""Estimators of this package; the first is the default."""

OTHERS = {
    "BART": IntervalMethod(
        _bart,
        "stochtree, probit link, 200 trees; quantiles of 300 draws of the posterior after 100",
        "stochtree",
    ),
    "forest, jackknife": IntervalMethod(
        _forest,
        "500 trees of scikit-learn; forestci's infinitesimal jackknife of the probability, "
        "calibrated as it does by default, ± 1.96 standard errors, cut at 0 and 1",
        "forestci",
    ),
    "LightGBM, bootstrap": IntervalMethod(
        _lightgbm, "percentiles of 40 models, each on rows drawn with replacement", "lightgbm"
    ),
    "Gaussian process": IntervalMethod(
        _gaussian_process,
        "scikit-learn's classifier by Laplace's method on standardised columns, one RBF kernel "
        "with variance and width by evidence; ± 1.96 standard deviations of the latent logit",
    ),
    "logistic, Wald": IntervalMethod(
        _wald, "maximum likelihood on the columns as they are, by statsmodels", "statsmodels"
    ),
    "Venn–Abers pair": IntervalMethod(
        _venn_abers,
        "package venn-abers, inductive, a fifth of the rows for calibration, on an RBF SVC; "
        "the pair is no confidence interval",
        "venn_abers",
    ),
}
"""What users would take instead."""

METHODS = OURS | OTHERS

PACKAGES = {
    "stochtree": "stochtree",
    "forestci": "forestci",
    "lightgbm": "lightgbm",
    "statsmodels": "statsmodels",
    "venn_abers": "venn-abers",
}
"""Distributions of the modules that methods need."""


def installed(name: str) -> bool:
    """Whether a method, or the limit, can be measured here."""
    package = _package(name)
    return package is None or find_spec(package) is not None


def distribution(name: str) -> str:
    """What must be installed for a method, and whose version counts."""
    package = _package(name)
    if package is not None:
        return PACKAGES[package]
    return "scikit-learn" if name in OTHERS else "bootprob"


def _package(name: str) -> str | None:
    return METHODS[name].package if name in METHODS else None
