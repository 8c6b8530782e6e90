"""Do prediction sets contain the class of new rows as often as they say, and how large are they?"""

from dataclasses import replace

import numpy as np
import pytest

from bootprob import BootstrapSVC
from bootprob.ensemble.conformal import prediction_sets
from docs.studies.coverage.known_truths import BANK, TRUTHS
from linear_models import linear

TRIALS, BOOTSTRAPS, NEW_ROWS, LEVEL = 120, 100, 400, 0.9
CASES = (
    (replace(TRUTHS[0], n=100), {}),
    (replace(TRUTHS[0], n=500), {}),
    (replace(TRUTHS[1], n=500), {}),
    (replace(TRUTHS[2], n=100), {}),
    (replace(TRUTHS[0], n=40), {"kernel": "rbf"}),
)
# The pilot of kernel="auto" has seen the labels of all training rows: least is known of the choice
# where rows are few and columns many.
OF_DEFAULT = (replace(TRUTHS[0], n=100), replace(TRUTHS[2], n=100), replace(BANK[15], n=200))
LEVELS, TRIALS_OF_DEFAULT, BOOTSTRAPS_OF_DEFAULT = (0.8, 0.9), 200, 30
NAMES = ["coverage", "coverage of class 0", "coverage of class 1", "mean size", "empty"]


@pytest.mark.parametrize(
    ("truth", "parameters"),
    CASES,
    ids=[f"{truth.name}, n = {truth.n}{', RBF' * bool(kernel)}" for truth, kernel in CASES],
)
def test_sets_cover(truth, parameters, record):
    found = {}
    for trial, X, y, new in _samples(truth, TRIALS):
        model = linear(n_bootstraps=BOOTSTRAPS, random_state=trial, **parameters).fit(X, y)
        for weights in ("equal", "ensemble"):
            for class_conditional in (False, True):
                sets = prediction_sets(
                    model, new, LEVEL, class_conditional=class_conditional, weights=weights
                )
                kind = "class-conditional" if class_conditional else "marginal"
                found.setdefault((weights, kind), []).append(_of_sets(truth, new, sets))
    means, noise, oracle = *_summary(found), _smallest_sizes(truth, LEVEL)
    case = {"kernel": parameters.get("kernel", "linear"), "bootstraps": BOOTSTRAPS, "level": LEVEL}
    record(
        f"prediction_sets_{CASES.index((truth, parameters))}",
        _case(truth, TRIALS, case, means, noise, oracle),
    )
    for kind, promised in (
        ("marginal", ["coverage"]),
        ("class-conditional", [name for name in NAMES if "coverage" in name]),
    ):
        of_equal = means["equal", kind]
        for name in promised:
            assert of_equal[name] >= LEVEL - 3 * noise["equal", kind][name], (kind, name)
        # Sharpness: what the ensemble's own weights would gain.
        assert of_equal["mean size"] <= 1.05 * means["ensemble", "class-conditional"]["mean size"]
        if truth.n == 500:
            assert of_equal["mean size"] <= 1.15 * oracle["class-conditional"]


@pytest.mark.parametrize("number", range(len(OF_DEFAULT)), ids=lambda k: OF_DEFAULT[k].name)
def test_sets_of_the_default_cover(number, record):
    truth, found = OF_DEFAULT[number], {level: {} for level in LEVELS}
    for trial, X, y, new in _samples(truth, TRIALS_OF_DEFAULT):
        model = BootstrapSVC(n_bootstraps=BOOTSTRAPS_OF_DEFAULT, random_state=trial).fit(X, y)
        for level in LEVELS:
            for kind in ("marginal", "class-conditional"):
                sets = prediction_sets(model, new, level, class_conditional=kind != "marginal")
                found[level].setdefault(("equal", kind), []).append(_of_sets(truth, new, sets))
    results = {level: _summary(found[level]) for level in LEVELS}
    for level, measured in results.items():
        case = {"kernel": "auto", "bootstraps": BOOTSTRAPS_OF_DEFAULT, "level": level}
        record(
            f"prediction_sets_auto_{number}_{round(100 * level)}",
            _case(truth, TRIALS_OF_DEFAULT, case, *measured, _smallest_sizes(truth, level)),
        )
    for level, (means, noise) in results.items():
        for kind in means:
            error = noise[kind]["coverage"]
            assert error <= 0.01
            assert means[kind]["coverage"] >= level - 3 * error, (level, kind)


def _samples(truth, trials):
    for trial in range(trials):
        generator = np.random.default_rng([2028, trial])
        X, y = truth.draw(generator)
        while min(y.sum(), len(y) - y.sum()) < 2:
            X, y = truth.draw(generator)
        yield trial, X, y, truth.rows(generator, NEW_ROWS)


def _of_sets(truth, new, sets):
    """A number for each of `NAMES`; labels are averaged out: a row is of each class by its p."""
    p = np.stack([1 - truth.probability(new), truth.probability(new)], axis=1)
    return [
        (p * sets).sum(axis=1).mean(),
        *(p * sets).sum(axis=0) / p.sum(axis=0),
        sets.sum(axis=1).mean(),
        (~sets.any(axis=1)).mean(),
    ]


def _summary(found):
    """Means over the training sets, and their standard errors, by kind of sets and name."""
    means = {
        kind: dict(zip(NAMES, np.mean(rows, axis=0), strict=True)) for kind, rows in found.items()
    }
    noise = {
        kind: dict(zip(NAMES, np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows)), strict=True))
        for kind, rows in found.items()
    }
    return means, noise


def _case(truth, trials, case, means, noise, oracle):
    return {
        "truth": truth.name,
        "n": truth.n,
        "kernel": case["kernel"],
        "training sets": trials,
        "bootstraps": case["bootstraps"],
        "level": case["level"],
        "sets": {
            ", ".join(kind): {
                name: [round(float(means[kind][name]), 3), round(float(noise[kind][name]), 4)]
                for name in NAMES
            }
            for kind in means
        },
        "smallest mean size of sets that know the truth": oracle,
    }


SLOPES = np.array([[1.2, 0.0, -0.6], [-0.4, 1.0, 0.5], [-0.8, -1.0, 0.1]])
INTERCEPTS = np.array([0.3, 0.0, -1.2])  # about a sixth of the rows are of class 2


def _softmax_truth(X):
    odds = np.exp(X @ SLOPES.T + INTERCEPTS)
    return odds / odds.sum(axis=1, keepdims=True)


def test_sets_of_three_classes_cover(record):
    n, found = 300, {}
    for trial in range(TRIALS):
        generator = np.random.default_rng([2029, trial])
        X, new = generator.normal(size=(n, 3)), generator.normal(size=(NEW_ROWS, 3))
        y = (generator.uniform(size=(n, 1)) > _softmax_truth(X).cumsum(axis=1)).sum(axis=1)
        p = _softmax_truth(new)
        model = BootstrapSVC(kernel="linear", n_bootstraps=BOOTSTRAPS, random_state=trial).fit(X, y)
        for kind in ("marginal", "class-conditional"):
            sets = model.prediction_sets(new, LEVEL, class_conditional=kind != "marginal")
            of_classes = (p * sets).sum(axis=0) / p.sum(axis=0)
            row = [(p * sets).sum(axis=1).mean(), *of_classes, sets.sum(axis=1).mean()]
            found.setdefault(kind, []).append(row)
    names = ["coverage", *(f"coverage of class {k}" for k in range(3)), "mean size"]
    means = {kind: np.mean(rows, axis=0) for kind, rows in found.items()}
    noise = {kind: np.std(rows, axis=0, ddof=1) / np.sqrt(TRIALS) for kind, rows in found.items()}
    oracle = _smallest(_softmax_truth(np.random.default_rng(0).normal(size=(200_000, 3))), LEVEL)
    record(
        "prediction_sets_three_classes",
        {
            "truth": "softmax, 3 columns, 3 classes",
            "n": n,
            "training sets": TRIALS,
            "bootstraps": BOOTSTRAPS,
            "level": LEVEL,
            "sets": {
                kind: {
                    name: [round(float(means[kind][k]), 3), round(float(noise[kind][k]), 4)]
                    for k, name in enumerate(names)
                }
                for kind in found
            },
            "smallest mean size of sets that know the truth": oracle,
        },
    )
    assert means["marginal"][0] >= LEVEL - 3 * noise["marginal"][0]
    of_each = slice(0, 4)
    lowest = LEVEL - 3 * noise["class-conditional"][of_each]
    assert (means["class-conditional"][of_each] >= lowest).all()
    for kind in found:
        assert means[kind][4] <= 1.15 * oracle[kind]


def _smallest_sizes(truth, level):
    """Mean sizes of the smallest sets that cover as often, were the probabilities known."""
    generator = np.random.default_rng(0)
    one = truth.probability(truth.rows(generator, 200_000))
    return _smallest(np.stack([1 - one, one], axis=1), level)


def _smallest(p, level):
    def smallest(masses):
        masses = np.sort(masses)[::-1]
        return int(np.searchsorted(np.cumsum(masses), level * masses.sum())) + 1

    return {
        "marginal": round(smallest(p.ravel()) / len(p), 3),
        "class-conditional": round(sum(map(smallest, p.T)) / len(p), 3),
    }
