"""With the anchors given, the machines are those of a CVXPY model."""

import numpy as np
import pytest
from small_instances import by_cvxpy, random_problem

from bootprob.constrained.fixed_anchors import FixedAnchors
from bootprob.constrained.kernel_factor import KernelFactor
from bootprob.constrained.problem import ConstrainedProblem
from bootprob_gpu.kernels.named import kernel_function


def check(problem, kept):
    found = FixedAnchors(problem).solve(kept, tol=1e-9)
    for b, chosen in enumerate(kept):
        truth = by_cvxpy(problem, chosen)
        if np.isinf(truth):
            assert np.isinf(found.objective[b])
            continue
        assert found.objective[b] == pytest.approx(truth, rel=2e-6)
        assert found.lower_bound[b] <= truth * (1 + 1e-6)
        assert found.lower_bound[b] == pytest.approx(truth, rel=2e-6)
        coef, intercept = found.coef[b], found.intercept[b]
        assert (problem.margins(coef, intercept)[chosen] >= 1 - 1e-9).all()
        assert problem.objective(coef, intercept) == pytest.approx(found.objective[b], rel=1e-9)
        assert found.margins[b] == pytest.approx(problem.margins(coef, intercept))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("sign", [-1, 1])
def test_one_class_is_kept_exactly(rng, shared, sign):
    problem = random_problem(rng, shared=shared, rates={"tpr": 0.5, "tnr": 0.5})
    kept = rng.uniform(size=(6, len(problem.anchors))) < 0.5
    check(problem, kept & (problem.anchor_y == sign))


@pytest.mark.parametrize("shared", [False, True])
def test_both_classes_are_kept_or_found_impossible(rng, shared):
    problem = random_problem(rng, p=3, shared=shared, rates={"accuracy": 0.5})
    kept = rng.uniform(size=(12, len(problem.anchors))) < 0.2
    check(problem, kept)


def test_costs_far_below_the_multipliers(rng):
    problem = random_problem(rng, p=3, C=1e-5, rates={"accuracy": 0.5})
    kept = np.zeros((3, len(problem.anchors)), dtype=bool)
    kept[np.arange(3), :] = rng.uniform(size=(3, len(problem.anchors))) < 0.4
    check(problem, kept)


def test_an_anchor_of_the_wrong_side_costs_what_it_must(rng):
    """One positive anchor far among the negatives: the multiplier nears the other class's cost."""
    problem = random_problem(rng, p=1)
    anchors = np.array([[-50.0]])
    far = ConstrainedProblem(
        problem.X, problem.y, problem.cost, anchors, np.ones(1), np.ones(1),
        (type(problem.requirements[0])("tpr", np.ones(1, bool), 1.0),),
    )  # fmt: skip
    check(far, np.ones((1, 1), dtype=bool))


def test_many_columns_go_another_way_to_the_same_machines(rng):
    """On the factor of a kernel SMO trains; the truth knows nothing of that."""
    problem = random_problem(rng, n=24, n_anchors=12)
    factor = KernelFactor.of(
        kernel_function("rbf", 0.5), np.concatenate([problem.X, problem.anchors])
    )
    columns = ConstrainedProblem(
        factor.transform(problem.X), problem.y, problem.cost, factor.transform(problem.anchors),
        problem.anchor_y, problem.anchor_weight, problem.requirements,
    )  # fmt: skip
    kept = (rng.uniform(size=(4, 12)) < 0.5) & (problem.anchor_y > 0)
    check(columns, kept)
