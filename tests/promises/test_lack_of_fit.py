"""Do intervals warn where they cover too little, and only there?"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bootprob.metrics.lack_of_fit_reasons import reason_of
from docs.studies.coverage.known_truths import BANK
from linear_models import linear

pytestmark = pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")
SETS = {200: 40, 500: 60, 2000: 20}
SETS_OF_WIDE = 20  # of hundreds of columns
SETS_OF_CURVED = 10
BOOTSTRAPS, NEW_ROWS, LEVEL = 60, 100, 0.95
C = (2.0**-4, 1.0, 2.0**4)
SHORT, FIRES, FALSE_ALARMS = 0.85, 0.9, 0.02
BEYOND = {"links", "weak bends"}  # which even the likelihood ratio of the truth seldom finds
RIGHT = {
    "linear", "rare", "wide", "heavy tails", "uneven scales", "many levels", "near 0 and 1",
    "no signal",
}  # fmt: skip


def _measure(truth, n_sets, **options):
    covered, reasons = [], Counter()
    for trial in range(n_sets):
        generator = np.random.default_rng([2027, truth.n, trial])
        X, y = truth.draw(generator)
        if min(y.sum(), len(y) - y.sum()) < 2:
            continue
        new, p = truth.sample(generator, NEW_ROWS)
        model = linear(n_bootstraps=BOOTSTRAPS, random_state=trial, C=C, **options)
        lower, upper = model.fit(X, y).proba_interval(new, LEVEL)[:, 1].T
        covered.append(((lower <= p) & (p <= upper)).mean())
        reason = reason_of(model.lack_of_fit_)
        reasons[reason.test if reason else "none"] += 1
    return {
        "truth": truth.name,
        "family": truth.family,
        "n": truth.n,
        "training sets": len(covered),
        "coverage": round(float(np.mean(covered)), 4),
        "warned": round(1 - reasons.pop("none", 0) / len(covered), 4),
        "reasons": dict(reasons.most_common()),
    }


@pytest.mark.parametrize("n", SETS)
def test_linear_kernels_warn(n, record):
    cases = []
    for truth in BANK:
        sizes = {size for size in truth.sizes if size <= 200} if n == 200 else {n} & {*truth.sizes}
        for size in sizes:
            n_sets = min(SETS[n], SETS_OF_WIDE) if truth.n_features > 100 else SETS[n]
            cases.append(_measure(replace(truth, n=size), n_sets))
    right = [case for case in cases if case["family"] in RIGHT]
    false_alarms = np.average(
        [case["warned"] for case in right], weights=[case["training sets"] for case in right]
    )
    shared = {"bootstrap samples": BOOTSTRAPS, "C": C, "new rows of each": NEW_ROWS}
    record(
        f"lack_of_fit_{n}",
        shared | {"false alarms": round(float(false_alarms), 4), "cases": cases},
    )
    assert false_alarms <= FALSE_ALARMS
    if n >= 500:
        for case in cases:
            if case["coverage"] < SHORT and case["family"] not in BEYOND | RIGHT:
                assert case["warned"] >= FIRES, case


def test_repeated_rows_are_found_under_a_curved_kernel(record):
    families = {"clustered rows", "linear", "hills", "subgroup"}
    cases = [
        _measure(replace(truth, n=500), SETS_OF_CURVED, kernel="rbf", gamma="scale")
        for truth in BANK
        if truth.family in families and 500 in truth.sizes
    ]
    record("lack_of_fit_rbf", {"bootstrap samples": BOOTSTRAPS, "C": C, "cases": cases})
    for case in cases:
        if case["family"] == "clustered rows":
            assert case["reasons"].get("repeated", 0) >= FIRES * case["training sets"], case
        else:
            assert case["warned"] == 0, case
