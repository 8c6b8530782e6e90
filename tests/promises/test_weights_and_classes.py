"""Do intervals cover under unequal weights of rows, and those of each of several classes alike?"""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.ensemble import HistGradientBoostingClassifier

from bootprob import BootstrapClassifier, BootstrapSVC

N, NEW, TRIALS, BOOTSTRAPS, LEVEL = 150, 80, 60, 20, 0.95
pytestmark = pytest.mark.filterwarnings("ignore::bootprob.exceptions.LackOfFitWarning")
_SLOPES = np.array([1.2, -1.0, 0.0, 0.0])


@pytest.mark.parametrize("spread", [1.0, 1.4])
@pytest.mark.parametrize("kernel", ["auto", "linear", "rbf"])
def test_rows_of_unequal_weight(kernel, spread, record):
    """Log-normal weights that have nothing to do with rows or labels; 55 or 21 of equal weight."""
    covered, widths = [], []
    for trial in range(TRIALS):
        rng = np.random.default_rng([2123, trial])
        X, new = rng.normal(size=(N, 4)), rng.normal(size=(NEW, 4))
        y = rng.uniform(size=N) < expit(X @ _SLOPES)
        weight = np.exp(spread * rng.normal(size=N))
        model = BootstrapSVC(kernel=kernel, n_bootstraps=BOOTSTRAPS, random_state=trial)
        lower, upper = model.fit(X, y, sample_weight=weight).proba_interval(new, LEVEL)[:, 1].T
        p = expit(new @ _SLOPES)
        covered.append(((lower <= p) & (p <= upper)).mean())
        widths.append((upper - lower).mean())
    coverage, error = _mean(covered)
    record(
        f"weighted_rows_{kernel}_{10 * spread:.0f}",
        {
            "kernel": kernel,
            "standard deviation of log weights": spread,
            "n": N,
            "training sets": TRIALS,
            "bootstraps": BOOTSTRAPS,
            "coverage": round(float(coverage), 4),
            "standard error of the coverage": round(float(error), 4),
            "mean width": round(float(np.mean(widths)), 4),
        },
    )
    assert coverage >= 0.93 - 3 * error


@pytest.mark.parametrize("kind", ["auto", "linear", "HistGradientBoosting"])
def test_classes_are_covered_alike(kind, record):
    """Of a truth that is the same for each of three classes."""
    covered, widths = [], []
    for trial in range(TRIALS):
        rng = np.random.default_rng([2124, trial])
        X, new = rng.normal(size=(N, 3)), rng.normal(size=(NEW, 3))
        y = (1.2 * X + rng.gumbel(size=X.shape)).argmax(axis=1)
        if kind == "HistGradientBoosting":
            boosting = HistGradientBoostingClassifier(max_iter=5)
            model = BootstrapClassifier(boosting, n_bootstraps=BOOTSTRAPS, random_state=trial)
        else:
            model = BootstrapSVC(kernel=kind, n_bootstraps=BOOTSTRAPS, random_state=trial)
        interval, p = model.fit(X, y).proba_interval(new, LEVEL), softmax(1.2 * new, axis=1)
        covered.append(((interval[..., 0] <= p) & (p <= interval[..., 1])).mean(axis=0))
        widths.append(np.ptp(interval, axis=2).mean(axis=0))
    coverage, error = _mean(covered)
    record(
        f"classes_alike_{kind}",
        {
            "kind": kind,
            "n": N,
            "training sets": TRIALS,
            "bootstraps": BOOTSTRAPS,
            "coverage of each class": np.round(coverage, 4).tolist(),
            "standard errors of the coverage": np.round(error, 4).tolist(),
            "mean width of each class": np.mean(widths, axis=0).round(4).tolist(),
        },
    )
    assert (coverage >= 0.93 - 3 * error).all()
    assert np.ptp(np.mean(widths, axis=0)) < 0.1 * np.mean(widths)


def _mean(of_sets):
    """Mean over the training sets, and its standard error."""
    return np.mean(of_sets, axis=0), np.std(of_sets, axis=0, ddof=1) / np.sqrt(len(of_sets))
