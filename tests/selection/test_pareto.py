"""The front of margin and cost, against the margins of all subsets of columns."""

import warnings
from itertools import chain, combinations, product

import cvxpy as cp
import numpy as np
import pytest

from bootprob import BootprobError, DataError
from bootprob.selection import FeatureCosts, ParetoSVC
from bootprob.selection.pareto.margin import MarginProblem, Rule, largest_nu, smallest_nu
from bootprob.selection.pareto.monomials import Monomials
from bootprob.selection.pareto.program import MarginCostProgram, Solved
from bootprob.selection.pareto.ranges import CostLevels
from configurations import parametrize_covering

SHARED = [([1, 2], 0.4)]


def table(rng, n=24, p=4, classes=2, gap=0.0):
    """Classes that overlap, or with a gap do not; the first column says little."""
    codes = np.arange(n) % classes
    X = rng.normal(size=(n, p))
    X[:, 1:] += (0.8 + gap) * np.eye(classes)[codes][:, :1]
    X[:, 2] -= (0.8 + gap) * (codes == 1)
    return X, codes


def features_of(X, degree):
    """Products of standardised columns, standardised, by the columns they need."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    found = {}
    for powers in product(range(degree + 1), repeat=X.shape[1]):
        if 1 <= sum(powers) <= degree:
            values = np.prod(Z ** np.array(powers), axis=1)
            found[powers] = (values - values.mean()) / values.std()
    return found


def best_margin(features, codes, norm, nu):
    """(20) with all K score functions, written out as it stands."""
    n, classes = len(codes), codes.max() + 1
    A, b = cp.Variable((classes, max(features.shape[1], 1))), cp.Variable(classes)
    if features.shape[1] == 0:
        features = np.zeros((n, 1))
    scores = features @ A.T + np.ones((n, 1)) @ cp.reshape(b, (1, classes), order="C")
    own = cp.sum(cp.multiply(np.eye(classes)[codes], scores), axis=1)
    margins = cp.hstack(
        [
            cp.reshape(
                own[codes == c] - cp.max(scores[codes == c][:, np.arange(classes) != c], axis=1),
                (int((codes == c).sum()),),
                order="C",
            )
            for c in range(classes)
        ]
    )
    theta = cp.Variable()
    objective = cp.min(margins)
    if nu is not None:
        objective = theta - cp.sum(cp.pos(theta - margins)) / (nu * n)
    size = cp.sum(cp.abs(A)) if norm == "l1" else cp.max(cp.abs(A))
    return cp.Problem(cp.Maximize(objective), [size <= 1, b[0] == 0]).solve(solver="CLARABEL")


def all_points(X, codes, degree, norm, nu, costs):
    """Cost and margin of every subset of the columns."""
    features = features_of(X, degree)
    p = X.shape[1]
    for some in chain.from_iterable(combinations(range(p), k) for k in range(p + 1)):
        columns = [
            values
            for powers, values in features.items()
            if all(j in some for j in range(p) if powers[j])
        ]
        values = np.column_stack(columns) if columns else np.zeros((len(X), 0))
        yield costs.total(some), max(best_margin(values, codes, norm, nu), 0.0)


def pareto(points, tolerance=1e-5):
    kept = []
    for cost, margin in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or margin > kept[-1][1] + tolerance:
            kept.append((cost, margin))
    return np.array(kept)


def vertices(front, tolerance=1e-5):
    """Points that lie above every line between a cheaper and a dearer one."""
    return [
        all(
            margin > low[1] + (cost - low[0]) / (high[0] - low[0]) * (high[1] - low[1]) + tolerance
            for low in front[:place]
            for high in front[place + 1 :]
        )
        for place, (cost, margin) in enumerate(front)
    ]


@pytest.mark.parametrize(
    ("norm", "margin", "degree", "classes"),
    [
        ("l1", "soft", 1, 2),
        ("linf", "soft", 1, 2),
        ("l1", "soft", 2, 2),
        ("linf", "soft", 2, 2),
        ("l1", "hard", 1, 2),
        ("l1", "soft", 1, 3),
        ("linf", "soft", 1, 3),
        ("linf", "hard", 1, 3),
        ("l1", "soft", 1, 4),
    ],
)
def test_the_whole_front(rng, norm, margin, degree, classes):
    X, codes = table(
        rng, 24, 4 if degree == 1 and classes == 2 else 3, classes, gap=6.0 * (margin == "hard")
    )
    if margin == "hard" and classes > 2:
        X[:, :2] += 8 * np.column_stack([np.cos(2 * codes), np.sin(2 * codes)])
    own = rng.uniform(size=X.shape[1])
    own[rng.integers(len(own))] = 0.0
    options = {"norm": norm, "margin": margin, "costs": own, "shared_costs": SHARED, "cv": None}
    model = ParetoSVC(degree, **options).fit(X, codes)
    costs = FeatureCosts.of(own, SHARED, len(own))
    truth = pareto(all_points(X, codes, degree, norm, model.nu_, costs))
    front = model.front_
    assert front.status == "optimal"
    np.testing.assert_allclose(front.costs, truth[:, 0], atol=1e-9)
    np.testing.assert_allclose(front.margins, truth[:, 1], atol=2e-6)
    assert [point.supported for point in front.points] == vertices(truth)
    for point in front.points:
        assert point.cost == pytest.approx(costs.total(point.features))
        assert -1e-12 <= point.bound - point.margin < 2e-6
    both = ParetoSVC(degree, method="two-phase", **options).fit(X, codes).front_
    np.testing.assert_allclose(both.costs, truth[:, 0], atol=1e-9)
    np.testing.assert_allclose(both.margins, truth[:, 1], atol=2e-6)
    hull = ParetoSVC(degree, method="two-phase", front="supported", **options).fit(X, codes).front_
    np.testing.assert_allclose(hull.costs, truth[vertices(truth)][:, 0], atol=1e-9)
    assert hull.n_programs <= both.n_programs


def test_scip_finds_the_same(rng):
    X, codes = table(rng)
    costs = rng.uniform(size=4)
    options = {"costs": costs, "cv": None}
    highs = ParetoSVC(**options).fit(X, codes).front_
    scip = ParetoSVC(solver="SCIP", method="two-phase", **options).fit(X, codes).front_
    np.testing.assert_allclose(scip.costs, highs.costs, atol=1e-9)
    np.testing.assert_allclose(scip.margins, highs.margins, atol=2e-6)
    assert max(point.gap for point in scip.points) < 1e-5


def test_points_that_the_step_of_31_leaves_out(rng):
    """From cost 1.5, (31) goes on with 0.5 at most: the smallest cost is 1."""
    codes = np.arange(30) % 2
    X = codes[:, None] + rng.uniform(-1, 1, size=(30, 2)) * np.array([0.45, 0.2])
    model = ParetoSVC(norm="l1", margin="hard", costs=[1.0, 1.5]).fit(X, codes)
    assert model.front_.costs.tolist()[:3] == [0.0, 1.0, 1.5]


def test_a_product_is_free_once_its_columns_are_paid(rng):
    X = rng.uniform(-1, 1, size=(60, 3))
    codes = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = ParetoSVC(2, costs=[1.0, 2.0, 4.0], shared_costs=[([0, 1], 0.5)]).fit(X, codes)
    by_features = {point.features: point.cost for point in model.front_.points}
    assert by_features[0, 1] == 3.5
    assert model.select(budget=3.5).score(X, codes) > 0.8
    used = {model.monomials_.terms[k] for k in np.flatnonzero(model.coef_[0])}
    assert (0, 1) in used
    assert used <= {(0,), (1,), (0, 0), (0, 1), (1, 1)}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_the_margin_is_that_of_the_worst_rows(rng, classes, norm):
    X, codes = table(rng, 30, classes=classes)
    model = ParetoSVC(norm=norm, nu="auto").fit(X, codes)
    scores = model.decision_function(X)
    if classes == 2:
        each = np.where(codes == 1, scores, -scores)
    else:
        own = scores[np.arange(30), codes]
        rest = np.where(np.eye(classes)[codes] == 1, -np.inf, scores).max(axis=1)
        each = own - rest
    worst, share = np.sort(each), model.nu_ * 30
    whole = int(share)
    mean = (worst[:whole].sum() + (share - whole) * worst[whole]) / share
    assert model.front_.margins[-1] == pytest.approx(mean, abs=1e-9)
    limit = 2 if (norm, classes) == ("linf", 2) else 1
    size = np.abs(model.coef_)
    assert (size.sum() if norm == "l1" else size.max()) == pytest.approx(limit)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_range_of_nu(rng, classes):
    X, codes = table(rng, 30, classes=classes)
    codes[: 4 * classes] = 0
    features = Monomials.of_rows(X, 1).values(X)
    least, most = smallest_nu(features, codes), largest_nu(codes)
    everything = np.ones(4, dtype=bool)
    assert 0 < least < most

    def margin(nu):
        return MarginProblem(features, codes, "l1", nu).best_rule(everything).margin

    assert margin(0.99 * least) < 1e-9 < margin(least + 0.05 * (most - least))
    with pytest.raises(BootprobError, match="not solved"):
        margin(1.01 * most)
    for nu in (0.99 * least, min(1.01 * most, 0.9999)):
        with pytest.raises(DataError, match="between"):
            ParetoSVC(nu=nu).fit(X, codes)


def test_costs_that_differ_by_little_and_a_lot(rng):
    X, codes = table(rng)
    own = np.array([1e5, 1.0, 1.5, 2.0])
    model = ParetoSVC(costs=own, cv=None).fit(X, codes)
    truth = pareto(all_points(X, codes, 1, "l1", model.nu_, FeatureCosts.of(own, None, 4)))
    np.testing.assert_allclose(model.front_.costs, truth[:, 0])


def test_out_of_time_it_says_so():
    rng = np.random.default_rng(0)  # of a front with points between its ends
    X, codes = table(rng)
    with pytest.warns(UserWarning, match="time limit of 1e-09 s was reached"):
        model = ParetoSVC(time_limit=1e-9).fit(X, codes)
    whole = ParetoSVC().fit(X, codes)
    assert model.front_.status == "time limit"
    assert model.front_.margins.tolist() == whole.front_.margins[[0, -1]].tolist()
    # One program begun and out of time: whatever it has found is within its bound.
    assert all(point.gap >= 0 for point in model.front_.points)
    np.testing.assert_allclose(model.front_.unproven, [(0, model.front_.costs[-1])], atol=1.001)


def in_time_for(monkeypatch, programs):
    """Let time be over after some programs, whatever the clock says."""
    solve, left = MarginCostProgram._solve, [programs]

    def counted(program, deadline):
        left[0] -= 1
        return solve(program, deadline) if left[0] >= 0 else Solved(None, np.inf, False)

    monkeypatch.setattr(MarginCostProgram, "_solve", counted)


@parametrize_covering(
    2, method=["epsilon-constraint", "two-phase"], shared=[None, SHARED], norm=["l1", "linf"]
)
def test_out_of_time_what_it_says_is_so(rng, monkeypatch, method, shared, norm):
    """The ranges that are not unproven hold the front, and every bound holds."""
    X, codes = table(rng, 26, 6)
    X[:, 3:] += 0.5 * rng.normal(size=3) * codes[:, None]
    own = rng.uniform(0.5, 1.5, size=6) if shared else np.ones(6)
    options = {"costs": own, "shared_costs": shared, "norm": norm, "method": method, "cv": None}
    whole = ParetoSVC(**options).fit(X, codes).front_
    assert whole.status == "optimal"
    assert whole.unproven == ()
    some = {0, 1, whole.n_programs // 2, whole.n_programs - 1}
    for programs in some & set(range(whole.n_programs)):
        with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            in_time_for(patch, programs)
            front = ParetoSVC(time_limit=1e6, **options).fit(X, codes).front_
        assert (front.status == "time limit") == bool(front.unproven) == bool(said)
        assert all("elsewhere all are found" in str(each.message) for each in said)
        for point in whole.points:
            if not any(low < point.cost <= high + 1e-9 for low, high in front.unproven):
                known = front.margins[front.costs <= point.cost + 1e-9].max()
                assert known == pytest.approx(point.margin, abs=2e-6)
        for point in front.points:
            best = whole.margins[whole.costs <= point.cost + 1e-9].max()
            assert point.margin <= best + 2e-6
            assert point.bound >= best - 2e-6
            if point.status == "optimal":
                assert point.margin == pytest.approx(best, abs=2e-6)
            assert point.status in ("optimal", "heuristic")


@pytest.mark.parametrize("method", ["epsilon-constraint", "two-phase"])
def test_out_of_time_there_are_rules_of_all_costs(monkeypatch, method):
    """After four programs: the cheap end and the dear end are proven, and rules lie between."""
    rng = np.random.default_rng(0)
    X, codes = table(rng, 60, 12)
    X[:, 3:] += 0.7 * codes[:, None] + 0.3 * rng.normal(size=(60, 9))
    in_time_for(monkeypatch, 4)
    with pytest.warns(UserWarning, match="time limit"):
        model = ParetoSVC(norm="linf", time_limit=1e6, method=method, cv=None).fit(X, codes)
    front = model.front_
    assert front.costs[-1] == 12
    assert np.diff(front.costs).max() <= 3
    if method == "epsilon-constraint":
        (unproven,) = front.unproven
        # Which end is next is a matter of the time that each has taken.
        assert 0 <= unproven[0] < unproven[1] <= 12
        assert unproven[1] - unproven[0] < 12
        outside = (front.costs < unproven[0]) | (front.costs > unproven[1])
        proven = [point for point, is_out in zip(front.points, outside, strict=True) if is_out]
        assert all(point.status == "optimal" for point in proven)


def test_two_phases_within_a_budget():
    """The best compromise of two points may cost more than both, and then does not count."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        X, codes = table(rng, 30, 4)
        own = rng.uniform(0.2, 1, size=4)
        whole = ParetoSVC(costs=own, cv=None).fit(X, codes).front_
        for budget in whole.costs[1:-1] + 1e-6:
            options = {"costs": own, "cv": None, "budget": budget}
            one = ParetoSVC(method="two-phase", **options).fit(X, codes).front_
            other = ParetoSVC(**options).fit(X, codes).front_
            np.testing.assert_allclose(one.costs, other.costs, atol=1e-9)
            assert one.costs[-1] <= budget


@pytest.mark.parametrize(
    ("own", "shared", "cost", "below", "up_to"),
    [
        ([1, 1, 1], [], 2.0, 1.0, 2.0),
        ([0.1, 0.3, 0.7], [], 0.3, 0.2, 0.3),
        ([1, 2, 0], [([0, 2], 3.0)], 2.5, 2.0, 2.0),
        ([1, 1.5], [], 1.5, 1.5 - 2.5e-6, 1.5),
        ([0, 0], [], 0.0, 0.0, 0.0),
    ],
)
def test_what_columns_can_cost(own, shared, cost, below, up_to):
    costs = FeatureCosts.of(own, shared, len(own))
    levels = CostLevels(costs, 1e-6 * costs.total(range(len(own))))
    assert levels.below(cost) == pytest.approx(below, abs=1e-12)
    assert levels.up_to(cost) == pytest.approx(up_to, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("nu", [None, 0.6])
def test_what_a_feature_adds_to_the_margin(rng, classes, nu):
    """Without it the mean of the same rows is less by that, and the worst rows are not better."""
    X, codes = table(rng, 30, 5, classes)
    problem = MarginProblem(X, codes, "l1", nu)
    shape = (1, 5) if classes == 2 else (classes, 5)
    rule = Rule(rng.normal(size=shape), rng.normal(size=shape[0]), 0.0)
    margin = problem.margin(rule.scores(X))
    adds = problem.contributions(rule)
    for j in range(5):
        without = Rule(np.where(np.arange(5) == j, 0.0, rule.coef), rule.intercept, 0.0)
        scores = without.scores(X)
        assert problem.margin(scores) <= margin - adds[j] + 1e-9
