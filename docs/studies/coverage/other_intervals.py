"""Our intervals for P(y = 1 | x) beside those of other packages, on truths that are known.

    python -m docs.studies.coverage.other_intervals [TRUTH ...] [--methods METHOD ...]
        [--rows 500] [--sets 8] [--minutes M]

Every method is fitted to the same training sets, drawn as tests/promises/test_coverage.py draws
them, and its interval is compared with the true probability of 100 new rows. First the first set
of every truth, then the second; slow methods come last. What is done is kept at once in a folder
(`--kept`), and a run that was ended goes on after it. docs/results/other_intervals.json has the
sums of it, and a method that it has with so many sets is not measured again; at the end
docs/other_intervals.md is written. A method whose package is missing is left out, and said.

Times are those of one thread: OMP_NUM_THREADS must be 1.
"""

from __future__ import annotations

import math
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import chain, count, islice, product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bootprob.runtime.arrays import Floats, Integers
from docs.studies.calibration.store import Store
from docs.studies.coverage.interval_methods import (
    LEVEL,
    LIMIT,
    METHODS,
    distribution,
    installed,
)
from docs.studies.coverage.known_truth import KnownTruth
from docs.studies.coverage.known_truths import BANK
from docs.studies.coverage.other_intervals_page import FILE
from docs.studies.coverage.other_intervals_page import write as write_page
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.places import DOCS, ROOT
from gpu.benchmarks.common.study_results import load, save

__all__ = ["COMMAND", "KEPT", "NEW_ROWS", "main", "measure", "summary", "training_sets"]

COMMAND = "make intervals"
KEPT = ROOT / "build" / "other_intervals"
NEW_ROWS = 100
SEED = 2026

TrainingSet = tuple[int, Floats, Integers, Floats]
"""Number, rows, labels, new rows."""


def training_sets(truth: KnownTruth) -> Iterator[TrainingSet]:
    """Those of tests/promises/test_coverage.py, without those of fewer than two rows of a class."""
    for number in count():
        generator = np.random.default_rng([SEED, truth.n, number])
        X, y = truth.draw(generator)
        if min(y.sum(), len(y) - y.sum()) >= 2:
            yield number, X, y, truth.rows(generator, NEW_ROWS)


def measure(name: str, truth: KnownTruth, drawn: TrainingSet) -> dict[str, Any]:
    """Fit a method to a training set and ask for the intervals of its new rows.

    Parameters
    ----------
    name : str
        Of `METHODS`, or `LIMIT`.
    truth : KnownTruth
    drawn : tuple
        See `training_sets`.

    Returns
    -------
    dict
        "true", "lower" and "upper" of the new rows; "seconds" of this process's cores to fit and
        predict; "warnings", the names of their categories. Of a method that raises, or gives what
        is no interval of a probability, the message as "failure" and no limits.
    """
    number, X, y, new = drawn
    found: dict[str, Any] = {"true": truth.probability(new)}
    started = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if name == LIMIT:
                bounds = truth.limit(X, y, new, LEVEL)
            else:
                bounds = METHODS[name].bounds(X, y, new, number)
            lower, upper = _checked(bounds, len(new))
            found |= {"lower": lower, "upper": upper}
        except Exception as error:  # what others' packages raise is a result
            found["failure"] = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - started
    return found | {
        "seconds": round(seconds, 3),
        "warnings": sorted({warning.category.__name__ for warning in caught}),
    }


def _checked(bounds: Floats, rows: int) -> Floats:
    """Limits as they are shown, lower and upper; shape (2, rows)."""
    if bounds.shape != (rows, 2) or not np.isfinite(bounds).all():
        raise ArithmeticError("not all rows have an interval")
    lower, upper = bounds.T
    if (lower > upper).any() or (lower < 0).any() or (upper > 1).any():
        raise ArithmeticError("not all are intervals of a probability")
    return bounds.T


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the sets of a truth say of a method.

    Parameters
    ----------
    found : sequence of dict
        What `measure` returned, set by set.

    Returns
    -------
    dict
        Sets, and how many failed; of the others coverage, mean width and their standard errors
        over sets, coverage of the tenth of all their rows with the lowest and the highest true
        probability, median seconds; sets with a warning, by category.
    """
    whole = [each for each in found if "failure" not in each]
    entry: dict[str, Any] = {
        "sets": len(found),
        "failed": len(found) - len(whole),
        "warnings": dict(Counter(str(name) for each in found for name in each["warnings"])),
        "seconds": round(median(float(each["seconds"]) for each in found), 3),
    }
    if not whole:
        return entry
    true, lower, upper = (np.array([each[k] for each in whole]) for k in ("true", "lower", "upper"))
    covered = (lower <= true) & (true <= upper)
    low, high = np.quantile(true, (0.1, 0.9))
    return entry | {
        "coverage": _mean_of_sets(covered.mean(axis=1)),
        "width": _mean_of_sets((upper - lower).mean(axis=1)),
        "lowest tenth": round(float(covered[true <= low].mean()), 4),
        "highest tenth": round(float(covered[true >= high].mean()), 4),
    }


def _mean_of_sets(values: Floats) -> list[float | None]:
    """With its standard error, which one set does not tell."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else None
    return [round(float(values.mean()), 4), None if error is None else round(float(error), 4)]


def main(
    truths: Iterable[KnownTruth],
    names: Iterable[str],
    rows: int,
    sets: int,
    docs: Path = DOCS,
    kept: Path = KEPT,
    *,
    seconds: float = math.inf,
    again: bool = False,
) -> None:
    """Measure what is missing, set by set, and write the document.

    Parameters
    ----------
    truths : iterable of KnownTruth
        One that is not for so many rows is drawn with its own number.
    names : iterable of str
        Of `METHODS`, the limit goes with them; those that are not installed are left out.
    rows, sets : int
    docs, kept : Path
    seconds : float
        After these nothing is begun.
    again : bool
        Measure what is there, too.
    """
    if os.environ.get("OMP_NUM_THREADS") != "1":
        raise SystemExit("Times are those of one thread: set OMP_NUM_THREADS=1.")
    started = time.perf_counter()
    path = docs / "results" / FILE
    results = load(path)
    found = results.setdefault("rows", {}).setdefault(str(rows), {})
    truths = [replace(each, n=rows) if rows in each.sizes else each for each in truths]
    drawn = {each.name: list(islice(training_sets(each), sets)) for each in truths}
    stores = {each.name: _store(kept, each) for each in truths}
    groups = _measurable([LIMIT, *names])
    if again:
        for truth, name in product(truths, chain(*groups)):
            found.get(truth.name, {}).get("methods", {}).pop(name, None)
            for number, *_ in drawn[truth.name]:
                stores[truth.name].forget(name, number)
    for group, upto in product(groups, range(1, sets + 1)):
        for truth in truths:
            store = stores[truth.name]
            entry = found.setdefault(truth.name, {"n": truth.n, "methods": {}})
            for name in group:
                if entry["methods"].get(name, {"sets": 0})["sets"] >= upto:
                    continue
                for each in drawn[truth.name][:upto]:
                    if store.has(name, each[0]):
                        continue
                    if time.perf_counter() - started > seconds:
                        print(f"out of time; wrote {write_page(docs)}")
                        return
                    store.put(name, each[0], measure(name, truth, each))
                of_sets = [store.found(name, number) for number, *_ in drawn[truth.name][:upto]]
                entry["methods"][name] = summary(of_sets)
                results.setdefault("versions", {})[name] = _version(name)
            save(path, COMMAND, results)
        taken = time.perf_counter() - started
        print(f"{upto} of {sets} sets, {taken:.0f} s: {', '.join(group)}", flush=True)
    print(f"wrote {write_page(docs)}")


def _measurable(names: Iterable[str]) -> list[list[str]]:
    """The fast and the slow of those that are installed, if there are any; tells what is not."""
    groups: list[list[str]] = [[], []]
    for name in names:
        if installed(name):
            groups[name in METHODS and METHODS[name].slow].append(name)
        else:
            print(f"{name}: left out, {distribution(name)} is not installed (extra 'bench').")
    return [group for group in groups if group]


def _store(kept: Path, truth: KnownTruth) -> Store:
    return Store(kept, re.sub(r"\W+", "_", truth.name), {"n": truth.n})


def _version(name: str) -> str:
    package = distribution(name)
    return f"{package} {version(package)}"


if __name__ == "__main__":
    by_name = {truth.name: truth for truth in BANK}
    parser = docs_options(__doc__, by_name, "TRUTH")
    every = tuple(METHODS)
    parser.add_argument("--methods", nargs="+", metavar="METHOD", choices=every, default=every)
    parser.add_argument("--rows", type=int, choices=(200, 500, 2000), default=500)
    parser.add_argument("--sets", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing after these")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    parser.add_argument("--kept", type=Path, default=KEPT, metavar="FOLDER")
    given = parser.parse_args()
    main(
        [by_name[name] for name in given.names],
        given.methods,
        given.rows,
        given.sets,
        given.docs,
        given.kept,
        seconds=60 * given.minutes,
        again=given.again,
    )
