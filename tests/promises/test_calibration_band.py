"""Does a calibration band hold the whole curve, and how often do tests of calibration reject?"""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.isotonic import isotonic_regression

from bootprob.ensemble import cross_fitted_proba
from bootprob.metrics import calibration_band, calibration_tests
from docs.studies.coverage.known_truths import BANK
from linear_models import linear

SAMPLES, LEVEL = 1000, 0.95
STATED = {
    "uniform": lambda generator, n: generator.random(n),
    "rare": lambda generator, n: generator.beta(0.5, 9.5, n),
    "near 0 and 1": lambda generator, n: generator.beta(0.3, 0.3, n),
}
# The true frequency by the probability stated.
CURVES = {
    "calibrated": lambda p: p,
    "too extreme": lambda p: expit(logit(p) / 1.5),
    "too timid": lambda p: expit(logit(p) * 1.5),
    "too low": lambda p: expit(logit(p) + 0.5),
    "a step": lambda p: np.where(p < 0.3, 0.15, 0.6),
    "a stretch too high": lambda p: np.where((p > 0.4) & (p < 0.7), 0.4, p),
}
SIZES = (100, 500, 2000)
TRAINING_SETS, BOOTSTRAPS = 100, 60


def _allowed(share, trials):
    """Five standard errors above a share."""
    return share + 5 * np.sqrt(share * (1 - share) / trials)


def holds(band, curve):
    """Whether a curve that does not fall is within the band, in between its values too."""
    x = band.probability
    within = np.nextafter(x, -1)[1:]  # as high as the curve gets before the next value
    lower, upper = band.at(x)
    return bool(
        (lower <= curve(x)).all()
        and (curve(x) <= upper).all()
        and (curve(within.clip(0)) <= band.upper[1:]).all()
    )


@pytest.mark.parametrize("name", CURVES)
def test_bands_hold_the_curve_and_tests_keep_their_level(name, record):
    curve, cases = CURVES[name], []
    for design, draw in STATED.items():
        for n in SIZES:
            generator = np.random.default_rng([2029, n, len(name), len(design)])
            held, widths, excluded, rejected = 0, [], 0, np.zeros(3)
            for _ in range(SAMPLES):
                p = draw(generator, n).clip(1e-12, 1 - 1e-12)
                y = generator.random(n) < curve(p)
                band = calibration_band(y, p, level=LEVEL)
                held += holds(band, curve)
                excluded += not band.contains_diagonal
                lower, upper = band.at(p)
                widths.append((upper - lower).mean())
                tests = calibration_tests(y, p)
                rejected += [each.p_value <= 1 - LEVEL for each in tests.values()]
            shares = dict(zip(tests, (rejected / SAMPLES).round(4).tolist(), strict=True))
            cases.append(
                {
                    "stated": design,
                    "n": n,
                    "coverage": held / SAMPLES,
                    "mean width": round(float(np.mean(widths)), 4),
                    "rejected": {"band": excluded / SAMPLES, **shares},
                }
            )
    record(
        f"calibration_band_{name.replace(' ', '_')}",
        {"truth": name, "samples": SAMPLES, "level": LEVEL, "cases": cases},
    )
    for case in cases:
        assert case["coverage"] >= LEVEL, case
        if name == "calibrated":
            for share in case["rejected"].values():
                assert share <= _allowed(1 - LEVEL, SAMPLES), case


def test_bands_out_of_bag(record):
    """Against the isotonic regression of the true probabilities, whose limit the curve is."""
    cases = []
    for truth in [each for each in BANK if each.family == "linear"][:2]:
        held = 0
        for trial in range(TRAINING_SETS):
            generator = np.random.default_rng([2030, trial, truth.n])
            X, p_true = truth.sample(generator, 300)
            y = (generator.random(300) < p_true).astype(int)
            p = cross_fitted_proba(linear(n_bootstraps=BOOTSTRAPS, random_state=trial).fit(X, y))
            known = np.isfinite(p)
            order = np.argsort(p[known], kind="stable")
            lower, upper = calibration_band(y, p, level=LEVEL).at(p[known][order])
            curve = isotonic_regression(p_true[known][order])
            held += bool(((lower <= curve) & (curve <= upper)).all())
        cases.append({"truth": truth.name, "n": 300, "coverage": held / TRAINING_SETS})
    record(
        "calibration_band_out_of_bag",
        {"training sets": TRAINING_SETS, "bootstrap samples": BOOTSTRAPS, "cases": cases},
    )
    for case in cases:
        assert case["coverage"] >= LEVEL, case
