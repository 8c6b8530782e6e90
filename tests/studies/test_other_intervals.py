"""Intervals of others: what is measured is what it says, runs resume, failures are shown."""

import json
import shutil
import warnings
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier

from docs.studies.coverage import interval_methods, other_intervals, other_intervals_page
from docs.studies.coverage.interval_methods import LIMIT, METHODS, PACKAGES, IntervalMethod
from docs.studies.coverage.known_truths import BANK
from docs.studies.coverage.other_intervals import measure, summary, training_sets
from docs.studies.coverage.other_intervals_page import Case
from gpu.benchmarks.common.places import DOCS, ROOT

STRAIGHT = BANK[0]
TINY = replace(STRAIGHT, n=60)


def first(truth):
    return next(training_sets(truth))


def halves(X, y, new, seed):
    return np.column_stack([np.full(len(new), 0.25), np.full(len(new), 0.75)])


@pytest.fixture
def methods(monkeypatch):
    """Two methods that train in no time, one of them after the other."""
    made = {"halves": IntervalMethod(halves, "-"), "late": IntervalMethod(halves, "-", slow=True)}
    for module in (interval_methods, other_intervals, other_intervals_page):
        monkeypatch.setattr(module, "METHODS", made)
    monkeypatch.setattr(other_intervals_page, "OURS", {"halves": made["halves"]})
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return made


def run(folder, names=("halves", "late"), sets=2, truths=(STRAIGHT, BANK[1]), **options):
    other_intervals.main(truths, names, 200, sets, folder, folder / "kept", **options)
    return stored(folder)


def stored(folder):
    text = (folder / "results" / "other_intervals.json").read_text(encoding="utf-8")
    return json.loads(text)["rows"]["200"]


def test_training_sets_are_those_of_the_promises_without_lone_rows():
    rare = replace(BANK[2], n=40)
    found = list(islice(training_sets(rare), 6))
    numbers = [number for number, *_ in found]
    for number in range(numbers[-1] + 1):
        generator = np.random.default_rng([2026, 40, number])
        X, y = rare.draw(generator)
        assert (number in numbers) == (2 <= y.sum() <= 38)
        if number in numbers:
            _, rows, labels, new = found[numbers.index(number)]
            np.testing.assert_array_equal(rows, X)
            np.testing.assert_array_equal(labels, y)
            np.testing.assert_array_equal(new, rare.rows(generator, 100))
    assert numbers[-1] > 5


def test_the_limit_is_that_of_the_truth():
    number, X, y, new = first(STRAIGHT)
    found = measure(LIMIT, STRAIGHT, (number, X, y, new))
    bounds = np.column_stack([found["lower"], found["upper"]])
    np.testing.assert_array_equal(bounds, STRAIGHT.limit(X, y, new, 0.95))
    np.testing.assert_array_equal(found["true"], STRAIGHT.probability(new))


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (lambda X, y, new, seed: 1 / 0, "ZeroDivisionError"),
        (lambda X, y, new, seed: halves(X, y, new, seed) * np.nan, "have an interval"),
        (lambda X, y, new, seed: halves(X, y, new[1:], seed), "have an interval"),
        (lambda X, y, new, seed: halves(X, y, new, seed)[:, ::-1], "intervals of a probability"),
        (lambda X, y, new, seed: halves(X, y, new, seed) * 2, "intervals of a probability"),
    ],
)
def test_failures_are_results(methods, bounds, message):
    methods["halves"] = IntervalMethod(bounds, "-")
    found = [measure("halves", TINY, each) for each in islice(training_sets(TINY), 2)]
    assert message in found[0]["failure"]
    entry = summary(found)
    assert (entry["sets"], entry["failed"]) == (2, 2)
    case = Case("t", 60, {"halves": entry})
    assert not case.covers("halves")
    assert case.misses("halves")
    assert "failed" in other_intervals_page.by_truth([case])


def test_warnings_are_kept_by_category(methods):
    def loud(X, y, new, seed):
        warnings.warn("once", FutureWarning, stacklevel=1)
        warnings.warn("twice", FutureWarning, stacklevel=1)
        return halves(X, y, new, seed)

    methods["halves"] = IntervalMethod(loud, "-")
    found = [measure("halves", TINY, each) for each in islice(training_sets(TINY), 2)]
    assert summary(found)["warnings"] == {"FutureWarning": 2}


def test_the_summary_counts_rows_and_sets():
    true = np.linspace(0.005, 0.995, 100)
    common = {"true": true, "seconds": 1.0, "warnings": []}
    narrow = common | {"lower": np.full(100, 0.4), "upper": np.full(100, 0.6)}
    low = common | {"lower": np.zeros(100), "upper": np.full(100, 0.5)}
    entry = summary([narrow, low, common | {"failure": "no"}])
    assert entry["coverage"] == pytest.approx([0.35, 0.15], abs=1e-4)  # ± half the difference
    assert entry["width"] == pytest.approx([0.35, 0.15], abs=1e-4)
    assert (entry["lowest tenth"], entry["highest tenth"]) == (0.5, 0)
    assert (entry["sets"], entry["failed"]) == (3, 1)
    assert summary([low])["coverage"] == [0.5, None]


def test_runs_resume_and_what_is_there_is_not_measured_again(methods, monkeypatch, tmp_path):
    asked = []
    limit = [5]

    def interrupted(name, truth, drawn):
        if len(asked) == limit[0]:
            raise KeyboardInterrupt
        asked.append((name, truth.name, drawn[0]))
        return measure(name, truth, drawn)

    monkeypatch.setattr(other_intervals, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    names = [truth.name for truth in (STRAIGHT, BANK[1])]
    first_round = [(name, truth, 0) for truth in names for name in (LIMIT, "halves")]
    assert asked == [*first_round, (LIMIT, names[0], 1)]
    assert stored(tmp_path)[names[1]]["methods"]["halves"]["sets"] == 1
    limit[0] = np.inf
    found = run(tmp_path)
    assert len(set(asked)) == len(asked) == 2 * 2 * 3
    assert asked[-4:] == [("late", truth, k) for k in (0, 1) for truth in names]
    assert all(entry["sets"] == 2 for entry in found[names[0]]["methods"].values())
    shutil.rmtree(tmp_path / "kept")
    assert run(tmp_path) == found
    assert len(asked) == 12
    methods["new"] = IntervalMethod(halves, "-")
    run(tmp_path, methods)
    assert [name for name, *_ in asked[12:]] == ["new"] * 4
    run(tmp_path, ["halves"], again=True)
    assert [name for name, *_ in asked[16:]] == [LIMIT, "halves"] * 4
    run(tmp_path, ["late"], again=True, seconds=-1)
    assert len(asked) == 24


def test_what_is_not_installed_is_left_out_and_said(methods, monkeypatch, tmp_path, capsys):
    methods["halves"] = IntervalMethod(halves, "-", package="stochtree")
    monkeypatch.setattr(interval_methods, "find_spec", lambda name: None)
    found = run(tmp_path, sets=1)
    assert set(found[STRAIGHT.name]["methods"]) == {LIMIT, "late"}
    assert "halves: left out, stochtree is not installed" in capsys.readouterr().out
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with pytest.raises(SystemExit, match="OMP_NUM_THREADS=1"):
        run(tmp_path)


def test_truths_keep_their_own_number_of_rows(methods, tmp_path):
    levels = next(truth for truth in BANK if truth.n == 1000)
    found = run(tmp_path, ["halves"], sets=1, truths=[STRAIGHT, levels])
    assert [found[truth.name]["n"] for truth in (STRAIGHT, levels)] == [200, 1000]


def test_every_package_is_an_extra_with_a_pinned_version():
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert {method.package for method in METHODS.values()} - {None} == set(PACKAGES)
    for each in PACKAGES.values():
        assert f"\n{each}==" in pinned
        assert f'"{each}>=' in extras


def entry(coverage, error, width, failed=0):
    return {
        "sets": 8, "failed": failed, "warnings": {"LackOfFitWarning": 3}, "seconds": 1.0,
        "coverage": [coverage, error], "width": [width, 0.01], "lowest tenth": coverage,
        "highest tenth": coverage,
    }  # fmt: skip


def test_the_page_says_who_covers_everywhere_and_how_wide():
    limit = entry(0.95, 0.01, 0.1)
    cases = [
        Case("a", 500, {
            LIMIT: limit, "BootstrapSVC": entry(0.94, 0.01, 0.11), "BART": entry(0.99, 0.01, 0.4),
            "logistic, Wald": entry(0.92, 0.01, 0.1),
        }),
        Case("b", 500, {
            LIMIT: limit, "BootstrapSVC": entry(0.5, 0.02, 0.2), "BART": entry(0.96, 0.01, 0.1),
            "logistic, Wald": entry(0.95, 0.01, 0.09, failed=1),
        }),
    ]  # fmt: skip
    assert [case.narrowest() for case in cases] == ["BootstrapSVC", "BART"]
    assert [case.misses("logistic, Wald") for case in cases] == [False, True]
    assert [case.misses("BootstrapSVC") for case in cases] == [False, True]
    said = other_intervals_page.verdict(cases)
    assert "each of the 2 truths: BART (2.00 × the limit's width)." in said
    assert "BART on 2, BootstrapSVC on 1, logistic, Wald on 0; the limit" in said
    assert other_intervals_page.warned(cases) == (
        "`BootstrapSVC` warned of lack of fit in 3 of 8 sets on truths where it covers less than "
        "93 %, and in 3 of 8 sets on the others."
    )
    table = other_intervals_page.by_truth(cases)
    assert "| a | 95.0 ± 1.0 / 0.100 | 94.0 ± 1.0 / 0.110 | the same |" in table
    assert "| 50.0 ± 2.0 / 0.200 | BART: 96.0 ± 1.0 / 0.100 |" in table
    assert "b,500,BART,8,0,1.0,0.96,0.01,0.1,0.01" in other_intervals_page.every(cases)
    lines = other_intervals_page.overview(cases).splitlines()
    (ours,) = (line for line in lines if line.startswith("| `BootstrapSVC` |"))
    assert ours.split(" | ")[1:7] == ["2 × 8", "1", "1", "1", "50.0 (b)", "72.0 ± 1.5"]
    assert sum("…" in line for line in lines) == len(METHODS) - 3  # not measured


def test_the_page_is_what_its_template_makes_of_the_results(tmp_path):
    (tmp_path / "results").mkdir()
    shutil.copy(DOCS / "results" / "other_intervals.json", tmp_path / "results")
    text = other_intervals_page.write(tmp_path).read_text(encoding="utf-8")
    assert text == (DOCS / "other_intervals.md").read_text(encoding="utf-8")
    tables = [folder / "results" / "other_intervals.csv" for folder in (tmp_path, DOCS)]
    assert tables[0].read_text(encoding="utf-8") == tables[1].read_text(encoding="utf-8")


def bounds_of(name, truth=TINY):
    drawn = first(truth)
    found = measure(name, truth, drawn)
    assert "failure" not in found
    return drawn, np.column_stack([found["lower"], found["upper"]])


def test_the_gaussian_process_has_its_probability_inside():
    _, bounds = bounds_of("Gaussian process")
    assert (bounds[:, 0] < bounds[:, 1]).all()
    assert np.ptp(bounds.mean(axis=1)) > 0.2


def test_walds_interval_is_the_limit_where_the_truth_is_logistic():
    pytest.importorskip("statsmodels")
    (_, X, y, new), bounds = bounds_of("logistic, Wald", STRAIGHT)
    np.testing.assert_allclose(bounds, STRAIGHT.limit(X, y, new, 0.95), atol=1e-4)


def test_the_forests_variance_is_the_infinitesimal_jackknife_of_its_probability():
    forestci = pytest.importorskip("forestci")
    number, X, y, new = first(TINY)
    forest = RandomForestClassifier(500, n_jobs=1, random_state=number).fit(X, y)
    of_trees = np.array([tree.predict_proba(new)[:, 1] for tree in forest])
    drawn = forestci.calc_inbag(len(X), forest)
    covariance = (drawn - 1) @ (of_trees - of_trees.mean(axis=0)) / 500
    bias = len(X) * drawn.var(axis=1).mean() * of_trees.var(axis=0) / 500
    plain = np.square(covariance).sum(axis=0) - bias
    variance = forestci.random_forest_error(forest, X.shape, new, calibrate=False, class_index=1)
    np.testing.assert_allclose(variance, plain)
    _, bounds = bounds_of("forest, jackknife")
    p = forest.predict_proba(new)[:, 1]
    inside = (bounds > 0).all(axis=1) & (bounds < 1).all(axis=1)
    assert inside.any()
    np.testing.assert_allclose(bounds[inside].mean(axis=1), p[inside])
    half = (bounds[inside, 1] - bounds[inside, 0]) / 2 / 1.96
    assert np.corrcoef(np.square(half), plain[inside])[0, 1] > 0.8


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("BART", "stochtree"),
        ("LightGBM, bootstrap", "lightgbm"),
        ("Venn–Abers pair", "venn_abers"),
    ],
)
def test_others_follow_a_strong_signal_and_a_seed_decides(name, package):
    pytest.importorskip(package)
    sharp = replace(TINY, predictor=lambda X: 5 * X[:, 0], n=120)
    (_, _, _, new), bounds = bounds_of(name, sharp)
    np.testing.assert_array_equal(bounds, bounds_of(name, sharp)[1])
    middle = bounds.mean(axis=1)
    assert np.corrcoef(middle, expit(5 * new[:, 0]))[0, 1] > 0.7
