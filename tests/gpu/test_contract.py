"""What every solver × device × precision promises, against truths that the engine had no part in.

The truths and the bounds that make the comparisons rigorous are in `truth`, the problems in
`problems`, the list of back ends in `conftest`: a new solver is one line there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from problems import CENTRED, KERNELS, REGULAR, UGLY, WITH_GAMMA, Case, bootstrap_counts, labels
from truth import (
    DOUBLE,
    Answer,
    Machine,
    Truth,
    cvxpy,
    numbers,
    optimum,
    symmetric_column,
    two_rows,
)

from bootprob_gpu import (
    FittedBatch,
    InputError,
    Problem,
    Status,
    iter_fit,
    model_scores,
    replicate_scores,
    votes,
)
from bootprob_gpu import fit as engine_fit

FINISHED = {Status.CONVERGED, Status.SINGLE_CLASS}
CERTIFICATE = ("primal", "dual", "gap", "n_iter", "status")


def all_scores(fitted: FittedBatch, case: Case, X: np.ndarray) -> np.ndarray:
    """Scores (B, R, m), put together from the stream; every replicate exactly once."""
    parts = list(model_scores(fitted, rows_of(fitted, case, X)))
    covered = [b for replicates, _ in parts for b in range(replicates.start, replicates.stop)]
    assert covered == list(range(len(fitted.intercept)))
    return np.concatenate([numbers(scores) for _, scores in parts])


def rows_of(fitted: FittedBatch, case: Case, X: np.ndarray) -> torch.Tensor:
    """Rows as the engine is given them."""
    return torch.from_numpy(case.given(fitted.kernel.name, X))


def outputs(fitted: FittedBatch) -> dict[str, np.ndarray]:
    """Everything that training returns, as arrays."""
    names = ("intercept", "coef", "dual_coef", *CERTIFICATE)
    tensors = {name: getattr(fitted, name) for name in names}
    return {name: numbers(tensor) for name, tensor in tensors.items() if tensor is not None}


def assert_same_bits(one: FittedBatch, other: FittedBatch, *, besides: str = "") -> None:
    ours, theirs = outputs(one), outputs(other)
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        if name == besides:
            continue
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


# --- the truths agree with one another -----------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # how much so is what `gap` says
@pytest.mark.parametrize("kernel", KERNELS)
def test_clarabel_svc_and_cvxpy_bracket_the_same_optimum(bench, regular, kernel):
    for b, r in bench.models(regular, kernel):
        truth, by_svc = bench.truth(regular, kernel, b, r), bench.by_svc(regular, kernel, b, r)
        assert truth.gap < 1e-7
        assert by_svc.gap < 1e-3
        assert_same_optimum(truth, by_svc)
    by_cvxpy = cvxpy(truth.machine)  # a model of CVXPY takes long: of the last one
    assert by_cvxpy.gap < 1e-7
    assert_same_optimum(truth, by_cvxpy)


def assert_same_optimum(one: Truth, other: Truth) -> None:
    assert one.lower <= other.upper * (1 + 1e-9)
    assert other.lower <= one.upper * (1 + 1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("upper", [0.05, 50.0])
def test_closed_form_of_two_rows_agrees_with_clarabel(bench, kernel, upper):
    Z = bench.rng("two rows").normal(size=(2, 3))
    machine = Machine(Z, np.array([1.0, -1.0]), np.full(2, upper), 0.7, kernel)
    a, value = two_rows(float(machine.distances(Z, Z)[0, 1]) ** 2, upper)
    truth = optimum(machine)
    assert truth.upper == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(truth.alpha, a, rtol=1e-6)


def test_closed_form_of_a_symmetric_column_agrees_with_clarabel(bench):
    rng = bench.rng("symmetric column")
    for strength in (0.01, 0.3, 10.0):
        t, upper = rng.uniform(0.1, 2.0, size=8), strength * rng.uniform(0.1, 2.0, size=8)
        _, value = symmetric_column(t, upper)
        machine = Machine(
            np.concatenate([t, -t])[:, None], np.repeat([1.0, -1.0], 8), np.tile(upper, 2)
        )
        assert optimum(machine).upper == pytest.approx(value, rel=1e-8)


# --- the optimum ---------------------------------------------------------------------------------


def test_objective_agrees_with_clarabel(bench, backend, regular):
    accuracy = max(1e-6, backend.tol)
    fitted = bench.fit(backend, regular)
    for (b, r), answer in bench.answers(backend, regular):
        truth = bench.truth(regular, backend.kernel, b, r)
        primal, dual = float(fitted.primal[b, r]), float(fitted.dual[b, r])
        assert abs(primal - truth.upper) <= accuracy * truth.upper + answer.doubt
        assert abs(dual - truth.upper) <= accuracy * truth.upper + answer.doubt


def test_scores_agree_with_clarabel(bench, backend, regular):
    """Within what our own objective, and nothing else, allows: see `truth`."""
    fitted, case = bench.fit(backend, regular), bench.case(regular)
    for X in (case.X, bench.fresh_rows(regular)):
        ours = all_scores(fitted, case, X)
        for (b, r), answer in bench.answers(backend, regular):
            truth, Z = bench.truth(regular, backend.kernel, b, r), case.rows(b, backend.kernel, X)
            excess, rounding = answer.excess(truth), answer.evaluate(X)[1]
            difference = ours[b, r] - truth.scores(Z)
            assert (np.abs(difference) <= truth.score_bound(excess, Z) + rounding).all()
            # Free of the intercept, which is unique only if a support vector is inside its box.
            differences = np.abs(difference[:, None] - difference)
            allowed = truth.weight_bound(excess) * truth.machine.distances(Z, Z)
            assert (differences <= allowed + rounding[:, None] + rounding + 1e-12).all()


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("name", sorted(REGULAR.keys() - {"own_bounds"}))
def test_agrees_with_svc_refitted_on_the_resampled_rows(bench, backend, name, tol):
    """1e-3 is SVC's default: whatever it leaves on the table only widens the bound of scores."""
    case = bench.case(name)
    X = np.vstack([case.X, bench.fresh_rows(name)])
    ours = all_scores(bench.fit(backend, name), case, X)
    for (b, r), answer in bench.answers(backend, name):
        truth, theirs = bench.refitted(name, backend.kernel, b, r, tol)
        assert answer.primal <= truth.upper * (1 + max(1e-6, backend.tol)) + answer.doubt
        assert answer.primal >= truth.lower - answer.doubt
        bound = truth.score_bound(answer.excess(truth), case.rows(b, backend.kernel, X))
        # SVC evaluates its scores in double precision, from coefficients that are rounded.
        slack = answer.evaluate(X)[1] + 1e-9 * (1 + np.abs(theirs))
        assert (np.abs(ours[b, r] - theirs) <= bound + slack).all()


def test_explicit_bounds_agree_with_svc_sample_weight(bench, backend):
    for (b, r), answer in bench.answers(backend, "own_bounds"):
        truth = bench.by_svc("own_bounds", backend.kernel, b, r)
        assert answer.primal <= truth.upper * (1 + max(1e-6, backend.tol)) + answer.doubt
        assert answer.primal >= truth.lower - answer.doubt


@pytest.mark.parametrize("C", [0.02, 40.0])
def test_two_rows(bench, backend, C):
    rng = bench.rng("two rows")
    X, y = rng.normal(size=(2, 3)), np.array([1.0, -1.0])
    case = Case(X, y, np.array([[1, 1], [3, 3]]), np.array([C]), np.array([0.7]))
    fitted = backend.fit(Problem(**case.arguments(backend.kernel)))
    for b, count in enumerate((1, 3)):
        answer = Answer.read(fitted, case, backend, b, 0)
        squared_distance = float(answer.machine.distances(X, X)[0, 1]) ** 2
        a, best = two_rows(squared_distance, C * count)
        assert float(fitted.primal[b, 0]) == pytest.approx(best, rel=backend.tol + answer.eps)
        # w = a (φ(x₁) − φ(x₂)), so the two scores are a d² apart, within ‖w − w*‖ d.
        apart = -float(np.diff(all_scores(fitted, case, X)[b, 0])[0])
        allowed = np.sqrt(2 * (backend.tol * best + answer.doubt) * squared_distance)
        assert apart == pytest.approx(a * squared_distance, abs=allowed + answer.doubt)
        # Where the margin is hard, the threshold is half way; in features, if the kernel is curved.
        if a < C * count and backend.kernel in CENTRED:
            assert float(all_scores(fitted, case, X.mean(axis=0)[None])[b, 0, 0]) == pytest.approx(
                0, abs=2 * allowed + (backend.tol * best + answer.doubt) / (C * count - a)
            )


def test_symmetric_column(bench, linear_backend):
    backend = linear_backend
    rng = bench.rng("symmetric column")
    t, weight = rng.uniform(0.1, 2.0, size=8), rng.uniform(0.1, 2.0, size=8)
    C = np.array([0.01, 0.3, 10.0])
    case = Case(
        X=np.concatenate([t, -t])[:, None],
        y=np.repeat([1.0, -1.0], 8),
        counts=np.ones((1, 16), dtype=int),
        C=C,
        gamma=np.ones(1),
        row_weight=np.tile(weight, 2),
    )
    fitted = backend.fit(Problem(**case.arguments("linear")))
    slope = np.diff(all_scores(fitted, case, np.array([[0.0], [1.0]]))[0])[:, 0]
    for r in range(3):
        w, best = symmetric_column(t, C[r] * weight)
        assert float(fitted.primal[0, r]) == pytest.approx(best, rel=2 * backend.tol)
        assert slope[r] == pytest.approx(w, abs=np.sqrt(4 * backend.tol * best))


# --- certificates --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGULAR | UGLY)
def test_certificate_is_what_the_coefficients_give(bench, backend, name):
    fitted = bench.fit(backend, name)
    for field, values in outputs(fitted).items():
        assert np.isfinite(values).all(), field
    for (b, r), answer in bench.answers(backend, name):
        assert_certified(fitted, answer, b, r)
        truth = bench.truth(name, backend.kernel, b, r)
        assert float(fitted.dual[b, r]) <= truth.upper + answer.doubt
        assert float(fitted.primal[b, r]) >= truth.lower - answer.doubt


def assert_certified(fitted: FittedBatch, answer: Answer, b: int, r: int) -> None:
    """Both objectives are what the coefficients give, and the dual point is feasible."""
    primal, dual = float(fitted.primal[b, r]), float(fitted.dual[b, r])
    assert abs(primal - answer.primal) <= answer.doubt
    assert dual <= primal * (1 + 1e-12)
    if answer.dual_coef is not None:
        alpha, upper = answer.machine.y * answer.dual_coef, answer.machine.upper
        assert (alpha >= 0).all()
        assert (alpha <= upper * (1 + DOUBLE)).all()
        assert abs(answer.dual_coef.sum()) <= 1e-12 * alpha.sum()
        assert abs(dual - answer.machine.dual(alpha)) <= answer.doubt


def test_tiny_problems_full_of_ties(bench, backend):
    """A few points on a grid: many optima, steps that end exactly on bounds, zero curvature."""
    for trial in range(8):
        rng = bench.rng(f"tiny problem {trial}")
        n, p = rng.integers(2, 7), rng.integers(1, 3)
        y = labels(rng, int(n))
        tiny = Case(
            X=rng.integers(-2, 3, size=(n, p)).astype(float),
            y=y,
            counts=bootstrap_counts(rng, 3, y),
            C=np.array([0.25, 1.0, 10.0]),
            gamma=np.array([0.5]),
            row_weight=rng.integers(1, 4, size=n).astype(float),
        )
        # Not a short decimal, so that sums round.
        for case in (tiny, replace(tiny, X=tiny.X * 1.072, row_weight=tiny.weight * 0.374)):
            fitted = backend.fit(Problem(**case.arguments(backend.kernel)))
            assert (numbers(fitted.status) == Status.CONVERGED).all(), trial
            for b, r in np.ndindex(fitted.gap.shape):
                assert -1e-12 <= float(fitted.gap[b, r]) <= backend.tol
                answer = Answer.read(fitted, case, backend, int(b), int(r))
                assert_certified(fitted, answer, int(b), int(r))


@pytest.mark.parametrize("name", REGULAR | UGLY)
def test_status_says_what_the_gap_says(bench, backend, name):
    fitted = bench.fit(backend, name)
    primal, dual, gap, status = (
        numbers(getattr(fitted, field)) for field in ("primal", "dual", "gap", "status")
    )
    with np.errstate(invalid="ignore"):
        expected = np.where(primal > 0, (primal - dual) / primal, 0.0)
    np.testing.assert_allclose(gap, expected, rtol=1e-9, atol=1e-12)
    finished = np.isin(status, list(FINISHED))
    np.testing.assert_array_equal(finished, gap <= backend.tol)
    assert (gap >= -1e-12).all()
    assert (numbers(fitted.n_iter) >= 0).all()
    if name not in backend.excused:
        assert finished.all(), [Status(int(value)).name for value in np.unique(status)]


@pytest.mark.parametrize("name", REGULAR | UGLY)
def test_converged_means_converged(bench, backend, name):
    """In double precision a model is as good as it says, whatever it was trained in.

    Ten times the tolerance is allowed to single precision.
    """
    fitted = bench.fit(backend, name)
    tol = backend.tol * (10 if backend.dtype == torch.float32 else 1)
    for (b, r), answer in bench.answers(backend, name):
        if int(fitted.status[b, r]) == Status.CONVERGED:
            truth = bench.truth(name, backend.kernel, b, r)
            rounding = replace(answer, eps=16 * DOUBLE).doubt
            assert answer.primal - truth.upper <= tol * answer.primal + rounding


def test_iterations_that_run_out_are_owned_up_to(bench, backend):
    problem = Problem(**bench.case("plain").arguments(backend.kernel))
    fitted = backend.fit(problem, max_iter=1)
    gap, status = numbers(fitted.gap), numbers(fitted.status)
    assert all(np.isfinite(values).all() for values in outputs(fitted).values())
    assert (status[gap > backend.tol] == Status.MAX_ITER).all()
    assert (status[gap <= backend.tol] == Status.CONVERGED).all()
    assert (status == Status.MAX_ITER).any()
    assert "max_iter" in Status.MAX_ITER.advice
    for b, r in bench.models("plain", backend.kernel):
        answer = Answer.read(fitted, bench.case("plain"), backend, b, r)
        truth = bench.truth("plain", backend.kernel, b, r)
        assert abs(float(fitted.primal[b, r]) - answer.primal) <= answer.doubt
        assert float(fitted.dual[b, r]) <= truth.upper + answer.doubt


def test_default_tolerance(bench, backend):
    fitted = backend.fit(Problem(**bench.case("clear").arguments(backend.kernel)), tol=None)
    assert (numbers(fitted.status) == Status.CONVERGED).all()
    assert (numbers(fitted.gap) <= backend.tol).all()


@pytest.mark.parametrize("name", ["class_missing", "nothing_drawn"])
def test_a_class_without_weight(bench, backend, name):
    fitted, case = bench.fit(backend, name), bench.case(name)
    scores = all_scores(fitted, case, case.X)
    for b in range(len(case.counts)):
        for r in range(case.n_models(backend.kernel)):
            if case.has_both_classes(backend.kernel, b, r):
                continue
            coefficients = fitted.coef if fitted.dual_coef is None else fitted.dual_coef
            assert (numbers(coefficients)[b, r] == 0).all()
            assert [float(getattr(fitted, field)[b, r]) for field in CERTIFICATE[:3]] == [0, 0, 0]
            assert int(fitted.status[b, r]) == Status.SINGLE_CLASS
            present = np.unique(case.y[case.counts[b] > 0])
            if present.size:
                assert (scores[b, r] == present[0]).all()


def test_scores_of_ugly_problems_are_finite_and_right(bench, backend, ugly):
    """The truth's bound again, from whatever objective was reached."""
    fitted, case = bench.fit(backend, ugly), bench.case(ugly)
    X = np.vstack([case.X, bench.fresh_rows(ugly)])
    ours = all_scores(fitted, case, X)
    assert np.isfinite(ours).all()
    for (b, r), answer in bench.answers(backend, ugly):
        truth, Z = bench.truth(ugly, backend.kernel, b, r), case.rows(b, backend.kernel, X)
        by_definition, rounding = answer.evaluate(X)
        assert (np.abs(ours[b, r] - by_definition) <= rounding).all()
        bound = truth.score_bound(answer.excess(truth), Z) + rounding
        assert (np.abs(ours[b, r] - truth.scores(Z)) <= bound + 1e-12).all()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda case: replace(case, X=case.X * 1e200), id="features"),
        pytest.param(
            lambda case: replace(case, scale=np.full(case.X.shape[1], 1e-200)), id="scale"
        ),
        pytest.param(lambda case: replace(case, C=np.array([1e300])), id="C"),
        pytest.param(lambda case: replace(case, gamma=np.array([1e300])), id="gamma"),
        pytest.param(lambda case: replace(case, X=case.X * 1e25), id="beyond single precision"),
        pytest.param(lambda case: replace(case, X=case.X * 1e-200), id="features that vanish"),
        pytest.param(lambda case: replace(case, C=np.array([1e-300])), id="C that vanishes"),
    ],
)
def test_numbers_out_of_range_are_refused_or_survived(bench, backend, change):
    """Squares that overflow: either an error that says so, or finite numbers and a status."""
    case = change(bench.case("plain"))
    try:
        fitted = backend.fit(Problem(**case.arguments(backend.kernel)), max_iter=100)
    except InputError as error:
        assert str(error)  # noqa: PT017
        return
    for field, values in outputs(fitted).items():
        assert np.isfinite(values).all(), field
    assert np.isfinite(all_scores(fitted, case, case.X)).all()
    finished = np.isin(numbers(fitted.status), list(FINISHED))
    np.testing.assert_array_equal(finished, numbers(fitted.gap) <= backend.tol)


# --- one solver is as good as another ------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_solvers_agree(bench, backends, regular, kernel):
    """Every dual objective is below every primal objective, whoever found it."""
    fits = [(each, bench.fit(each, regular)) for each in backends if each.kernel == kernel]
    for b, r in bench.models(regular, kernel):
        doubt = max(
            Answer.read(fitted, bench.case(regular), each, b, r).doubt for each, fitted in fits
        )
        duals = [float(fitted.dual[b, r]) for _, fitted in fits]
        primals = [float(fitted.primal[b, r]) for _, fitted in fits]
        assert max(duals) <= min(primals) + doubt


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["plain", "wide"])
def test_auto_is_one_of_them(bench, kernel, name):
    case = bench.case(name)
    fitted = engine_fit(Problem(**case.arguments(kernel)))
    for b, r in bench.models(name, kernel):
        truth = bench.truth(name, kernel, b, r)
        assert float(fitted.primal[b, r]) == pytest.approx(truth.upper, rel=2e-6)


# --- ways to say the same thing ------------------------------------------------------------------


def test_bounds_filled_by_the_rule_change_nothing(bench, backend):
    case = bench.case("weighted_and_scaled")
    C = np.tile(case.C, case.n_models(backend.kernel) // len(case.C))
    upper = C[:, None] * (case.counts * case.weight)[:, None, :]
    explicit = replace(case, bounds=lambda n_models: upper, row_weight=None)
    again = backend.fit(Problem(**explicit.arguments(backend.kernel)))
    assert_same_bits(bench.fit(backend, "weighted_and_scaled"), again)


def test_count_weight_and_c_are_interchangeable(bench, backend):
    """Doubling is exact in binary, so the bits are the same."""
    case = bench.case("plain")
    doubled = (
        replace(case, C=2 * case.C),
        replace(case, counts=2 * case.counts),
        replace(case, row_weight=np.full(len(case.y), 2.0)),
    )
    first, *others = (
        backend.fit(Problem(**each.arguments(backend.kernel)), max_iter=200) for each in doubled
    )
    for other in others:
        assert_same_bits(first, other)


def test_a_scale_is_the_same_as_scaled_rows(bench, backend):
    if backend.kernel == "precomputed":
        pytest.skip("kernel values have no scale")
    name = "weighted_and_scaled"
    case, fitted = bench.case(name), bench.fit(backend, name)
    for b in range(len(case.counts)):
        alone = replace(case, X=case.X / case.scale[b], scale=None, counts=case.counts[b : b + 1])
        arguments = alone.arguments(backend.kernel)
        if backend.kernel == "poly":  # that of all replicates
            arguments["gamma"] = case.gammas("poly")
        by_hand = backend.fit(Problem(**arguments))
        for r in range(case.n_models(backend.kernel)):
            doubt = Answer.read(fitted, case, backend, b, r).doubt
            assert float(by_hand.primal[0, r]) >= float(fitted.dual[b, r]) - 2 * doubt
            assert float(fitted.primal[b, r]) >= float(by_hand.dual[0, r]) - 2 * doubt


def test_models_are_ordered_by_gamma_then_c(bench, backend):
    name = "plain"
    case, fitted = bench.case(name), bench.fit(backend, name)
    problem = Problem(**case.arguments(backend.kernel))
    pairs = [case.parameters(backend.kernel, r) for r in range(case.n_models(backend.kernel))]
    np.testing.assert_array_equal(problem.C_per_model, [C for C, _ in pairs])
    if backend.kernel not in WITH_GAMMA:
        assert problem.gamma_per_model is None
    else:
        np.testing.assert_array_equal(problem.gamma_per_model, [gamma for _, gamma in pairs])
    for r, (C, gamma) in enumerate(pairs):
        alone = replace(case, C=np.array([C])).arguments(backend.kernel)
        single = backend.fit(Problem(**alone | ({"gamma": gamma} if gamma else {})))
        for b in range(len(case.counts)):
            doubt = Answer.read(fitted, case, backend, b, r).doubt
            assert float(single.primal[b, 0]) >= float(fitted.dual[b, r]) - 2 * doubt
            assert float(fitted.primal[b, r]) >= float(single.dual[b, 0]) - 2 * doubt


def test_equal_values_of_c_give_equal_models(bench, backend):
    """In whatever order the grid is worked through."""
    fitted = bench.fit(backend, "descending_c")
    primal, dual = numbers(fitted.primal), numbers(fitted.dual)
    for r in range(0, primal.shape[1], 4):  # the grid's second and last value are the same
        assert (primal[:, r + 1] >= dual[:, r + 3] * (1 - 1e-6)).all()
        assert (primal[:, r + 3] >= dual[:, r + 1] * (1 - 1e-6)).all()


def test_flipped_labels_flip_the_scores(bench, backend):
    case = bench.case("plain")
    flipped = replace(case, y=-case.y)
    fitted = backend.fit(Problem(**flipped.arguments(backend.kernel)))
    ours = all_scores(fitted, case, case.X)
    for b, r in bench.models("plain", backend.kernel):
        answer = Answer.read(fitted, flipped, backend, b, r)
        truth, Z = bench.truth("plain", backend.kernel, b, r), case.rows(b, backend.kernel)
        bound = truth.score_bound(answer.excess(truth), Z) + answer.evaluate(case.X)[1]
        assert (np.abs(ours[b, r] + truth.scores(Z)) <= bound).all()


# --- blocks, memory, repetition ------------------------------------------------------------------


def test_blocks_put_together_are_the_fit(bench, backend):
    case = bench.case("many_replicates")
    problem = Problem(**case.arguments(backend.kernel))
    blocks = list(iter_fit(problem, memory_limit=50_000, **backend.options))
    assert len(blocks) > 1
    covered = [b for block in blocks for b in range(block.replicates.start, block.replicates.stop)]
    assert covered == list(range(9))
    together = backend.fit(problem, memory_limit=50_000)
    assert_same_bits(FittedBatch.concatenate(blocks), together)
    for block in blocks:
        here = block.replicates
        n_models = case.n_models(backend.kernel)
        assert block.train_scores.shape == (here.stop - here.start, n_models, len(case.y))
        for b in range(here.start, here.stop):
            for r in range(n_models):
                by_definition, rounding = Answer.read(together, case, backend, b, r).evaluate(
                    case.X
                )
                train_scores = numbers(block.train_scores)[b - here.start, r]
                assert (np.abs(train_scores - by_definition) <= rounding).all()


@pytest.mark.parametrize("memory_limit", [1, 150_000])
def test_memory_limit_changes_the_blocks_only(bench, backend, memory_limit):
    """One byte is taken as: one replicate at a time."""
    case = bench.case("many_replicates")
    problem = Problem(**case.arguments(backend.kernel))
    whole = bench.fit(backend, "many_replicates")
    pieces = backend.fit(problem, memory_limit=memory_limit)
    if backend.solver.endswith("compiled"):  # model by model, so blocks cannot matter
        assert_same_bits(whole, pieces, besides="intercept")
        # It is moved to the rows' own coordinates for a block of models at a time.
        ours, theirs = numbers(pieces.intercept), numbers(whole.intercept)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max())
        return
    # Other batch sizes, other orders of summation. The interior point hardly feels them; SMO
    # may choose another pair of rows, and is then as good as its gap.
    accuracy = 1e-9 if backend.solver == "interior-point" else backend.tol
    for field in ("primal", "dual"):
        np.testing.assert_allclose(
            numbers(getattr(pieces, field)), numbers(getattr(whole, field)), rtol=accuracy
        )


def test_same_bits_every_time(bench, backend):
    name = "weighted_and_scaled"
    case = bench.case(name)
    problem = Problem(**case.arguments(backend.kernel))
    again = backend.fit(problem)
    first = bench.fit(backend, name)
    assert_same_bits(first, again)
    X = bench.fresh_rows(name)
    np.testing.assert_array_equal(all_scores(first, case, X), all_scores(again, case, X))


# --- scoring -------------------------------------------------------------------------------------


def test_scores_votes_and_replicate_scores_agree(bench, backend, regular):
    fitted, case = bench.fit(backend, regular), bench.case(regular)
    X = bench.fresh_rows(regular)
    scores, n_models = all_scores(fitted, case, X), case.n_models(backend.kernel)
    assert scores.shape == (len(case.counts), n_models, len(X))
    rounding = np.empty_like(scores)
    for b in range(len(case.counts)):
        for r in range(n_models):
            answer = Answer.read(fitted, case, backend, b, r)
            by_definition, rounding[b, r] = answer.evaluate(X)
            assert (np.abs(scores[b, r] - by_definition) <= rounding[b, r]).all()

    counted = votes(fitted, rows_of(fitted, case, X)).cpu().numpy()
    assert counted.shape == (len(X), n_models)
    assert np.issubdtype(counted.dtype, np.integer)
    # A score within its rounding of the threshold may be counted either way.
    sure, possible = (scores > rounding).sum(axis=0).T, (scores > -rounding).sum(axis=0).T
    assert (sure <= counted).all()
    assert (counted <= possible).all()

    weights = bench.rng("ensemble weights").uniform(size=n_models)
    weights[0] = 0.0
    summed = numbers(replicate_scores(fitted, rows_of(fitted, case, X), torch.from_numpy(weights)))
    assert summed.shape == (len(X), len(case.counts))
    expected = np.einsum("r,brm->mb", weights, scores)
    allowed = 2 * np.einsum("r,brm->mb", weights, rounding) + 1e-12
    assert (np.abs(summed - expected) <= allowed).all()


def test_scoring_in_small_pieces_changes_nothing(bench, backend):
    case = bench.case("many_replicates")
    fitted = bench.fit(backend, "many_replicates")
    X = np.repeat(case.X, 3, axis=0)
    whole = all_scores(fitted, case, X), numbers(votes(fitted, rows_of(fitted, case, X)))
    fitted = replace(fitted, memory_limit=1)
    pieces = all_scores(fitted, case, X), numbers(votes(fitted, rows_of(fitted, case, X)))
    assert len(list(model_scores(fitted, rows_of(fitted, case, X)))) > 1
    tolerance = 100 * backend.eps * np.abs(whole[0]).max()
    np.testing.assert_allclose(pieces[0], whole[0], rtol=0, atol=tolerance)
    unsure = (np.abs(whole[0]) <= tolerance).sum(axis=0).T
    assert (np.abs(pieces[1] - whole[1]) <= unsure).all()


def test_one_new_row(bench, backend):
    fitted, case = bench.fit(backend, "plain"), bench.case("plain")
    np.testing.assert_allclose(
        all_scores(fitted, case, case.X[:1])[..., 0],
        all_scores(fitted, case, case.X)[..., 0],
        rtol=0,
        atol=1e3 * backend.eps,
    )
