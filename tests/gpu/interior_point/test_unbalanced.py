"""A rare class: the interior points solve every model, as they once did not."""

import numpy as np
import pytest

from bootprob_gpu import Problem, Status, fit


@pytest.mark.parametrize("solver", ["interior-point", "interior-point-compiled"])
def test_a_rare_class_is_solved_for_every_c(rng, solver):
    X = rng.normal(size=(500, 4))
    y = np.where(X @ [1.2, -0.8, 0.5, 0.0] + rng.logistic(size=500) > 3, 1, -1)
    y[0] = 1
    counts = rng.multinomial(500, np.full(500, 1 / 500), size=20)
    counts[:, 0] = 1
    batch = fit(Problem(X, y, counts, 2.0 ** np.arange(-5, 6)), solver=solver)
    assert (batch.status == Status.CONVERGED).all()
    assert batch.gap.max() <= 1e-7
