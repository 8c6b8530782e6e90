"""Weights of all units in one batch: against SciPy, and what is done where they are not found."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

import bootprob.dea.efficiencies.batched as batch_module
from bootprob.dea import Panel, efficiency
from bootprob.dea.efficiencies.batched import propose
from bootprob.dea.efficiencies.envelopment import EnvelopmentSide
from bootprob.dea.efficiencies.interior_point import solve_weights
from bootprob_gpu import InputError

RETURNS = ("constant", "variable", "non-increasing", "non-decreasing")
CPU = torch.device("cpu")


def lognormal_panel(rng, K, N=3, M=3):
    X = rng.lognormal(size=(K, N))
    return Panel.of(X, X.mean(axis=1, keepdims=True) ** 0.9 * rng.lognormal(size=(K, M)))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_weights_are_those_of_linear_programs(rng, free, own):
    K, N, M = 30, 3, 2
    uses, makes = rng.uniform(0.1, 1, (K, N)), rng.uniform(0.1, 1, (K, M))
    rows = np.hstack((-uses, makes, np.ones((K, 1))))
    normal = np.hstack((uses, 0 * makes, np.zeros((K, 1))))
    cost = np.hstack((0 * uses, -makes, -np.ones((K, 1))))
    signed = np.array([True] * (N + M) + [not free])
    found = solve_weights(
        *(torch.from_numpy(part) for part in (rows, normal, cost, signed)),
        own=torch.arange(K) if own else None,
    )
    n_solved = 0
    for unit in range(K):
        holds = np.arange(K) != unit if own else np.ones(K, dtype=bool)
        program = linprog(
            cost[unit], A_ub=rows[holds], b_ub=np.zeros(holds.sum()), A_eq=normal[unit][None],
            b_eq=[1.0], bounds=[(0, None)] * (N + M) + [(None if free else 0, None)],
        )  # fmt: skip
        if program.status:  # others do not reach what the unit makes
            assert not found.solved[unit]
            continue
        n_solved += 1
        # A unit that is efficient leaves the program all but flat; the batch may give it up.
        if found.solved[unit]:
            assert found.objective[unit] == pytest.approx(program.fun, rel=1e-8)
            w = found.weights[unit].numpy()
            assert (rows[holds] @ w).max() < 1e-9
            assert normal[unit] @ w == pytest.approx(1, abs=1e-9)
            lam = found.multipliers[unit].numpy()
            assert (lam >= 0).all()
            assert not lam[~holds].any()
            reduced = cost[unit] + rows.T @ lam - found.objective[unit].item() * normal[unit]
            assert reduced[:-1].min() > -1e-8
    assert found.solved.sum() >= (n_solved - 3 if own else K // 2)


def test_a_unit_with_enough_is_let_go(rng):
    rows = torch.from_numpy(np.hstack((-np.ones((5, 1)), rng.uniform(0.1, 1, (5, 1)))))
    normal, cost = rows * torch.tensor([-1.0, 0.0]), rows * torch.tensor([0.0, -1.0])
    signed, own = torch.ones(2, dtype=torch.bool), torch.arange(5)
    found = solve_weights(rows, normal, cost, signed, own=own, enough=-1.0)
    best = int(rows[:, 1].argmax())
    assert found.enough.tolist() == [unit == best for unit in range(5)]
    assert found.solved.all()
    exact = rows[:, 1] / torch.tensor([np.delete(rows[:, 1].numpy(), k).max() for k in range(5)])
    keep = torch.arange(5) != best
    torch.testing.assert_close(-found.objective[keep], exact[keep], rtol=1e-9, atol=0)
    assert 1 < -found.objective[best] <= exact[best] * (1 + 1e-9)
    # Nothing limits the weights of a single unit, whose own row does not hold.
    alone = solve_weights(rows[:1], normal[:1], cost[:1], signed, own=own[:1])
    assert not alone.solved.any()


@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize("orientation", ["input", "output"])
def test_no_whole_program_is_solved_for_ordinary_units(rng, monkeypatch, returns, orientation):
    """More units than are taken as peers at once; scores by HiGHS for each."""
    panel = lognormal_panel(rng, 150)
    truth = EnvelopmentSide(panel, returns, orientation, False, True)
    expected = [truth.solve(unit) for unit in range(150)]
    solve, whole = EnvelopmentSide.solve, []

    def counted(self, unit, peers=None):
        whole.extend([unit] if peers is None else [])
        return solve(self, unit, peers)

    monkeypatch.setattr(EnvelopmentSide, "solve", counted)
    result = efficiency(panel, returns=returns, orientation=orientation)
    assert len(whole) <= 3
    np.testing.assert_allclose(result.scores, [v.score for v in expected], rtol=1e-8)
    assert result.certificate.worst.max() < 1e-8
    tops = panel.inputs.max(axis=0), panel.outputs.max(axis=0)
    ours = (result.input_slacks / tops[0]).sum(axis=1)
    ours += (result.output_slacks / tops[1]).sum(axis=1)
    lambdas = np.array([v.lambdas for v in expected])
    shrunk, grown = (result.scores[:, None], 1) if orientation == "input" else (
        1, result.scores[:, None]
    )  # fmt: skip
    theirs = ((shrunk * panel.inputs - lambdas @ panel.inputs) / tops[0]).sum(axis=1)
    theirs += ((lambdas @ panel.outputs - grown * panel.outputs) / tops[1]).sum(axis=1)
    # HiGHS's scores are off by their last digits, of which slacks may be 50,000 times as much: of
    # an efficient unit it then finds too many.
    efficient = np.abs(result.scores - 1) < 1e-8
    np.testing.assert_allclose(ours[~efficient], theirs[~efficient], atol=1e-3)
    assert (ours[efficient] <= theirs[efficient] + 1e-6).all()


def test_extreme_units_are_their_own_peers(rng):
    panel = lognormal_panel(rng, 80)
    known = propose(panel, "variable", "input", False, CPU)
    beyond = efficiency(panel, returns="variable", super_efficiency=True)
    scores = np.where(np.isnan(beyond.scores), np.inf, beyond.scores)
    np.testing.assert_array_equal(known.extreme[known.solved], (scores > 1 + 1e-7)[known.solved])
    assert known.solved.mean() > 0.95
    assert (known.scores[known.extreme] == 1).all()
    assert np.diag(known.near).all()


def test_units_of_which_a_batch_knows_nothing(rng):
    X, Y = rng.uniform(1, 2, (9, 2)), rng.uniform(1, 2, (9, 2))
    X[3, 1] = 0
    known = propose(Panel.of(X, Y), "constant", "input", False, CPU)
    assert np.flatnonzero(~known.solved).tolist() == [3]
    assert not propose(Panel.of([1], [1]), "constant", "input", False, CPU).solved.any()


@pytest.mark.parametrize("super_efficiency", [False, True])
def test_proposals_are_not_believed(rng, monkeypatch, super_efficiency):
    panel = lognormal_panel(rng, 20)
    right = efficiency(panel, super_efficiency=super_efficiency)

    def wrong(*arguments):
        known = propose(*arguments)
        return replace(
            known,
            input_weights=known.input_weights * rng.uniform(0.9, 1.1, known.input_weights.shape),
            near=known.near & (rng.random(known.near.shape) < 0.5),
        )

    monkeypatch.setattr(batch_module, "propose", wrong)
    found = efficiency(panel, super_efficiency=super_efficiency)
    np.testing.assert_allclose(found.scores, right.scores, rtol=1e-8)
    assert found.certificate.worst.max() < 1e-8


def test_unknown_device():
    with pytest.raises(InputError, match="give 'auto', 'cpu'"):
        efficiency([1, 2], [1, 2], device="abacus")
