"""A replayed batch that shrinks, on the pretended CUDA device: its graph is captured anew."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bootprob_gpu import Problem, fit
from bootprob_gpu.hardware.cuda import Replayed
from bootprob_gpu.interior_point import answered_problems


@pytest.mark.parametrize("own_labels", [False, True])
def test_a_batch_that_shrinks_gives_the_same_models(rng, pretended_gpu, monkeypatch, own_labels):
    n, B = 10, 2
    X = rng.normal(size=(n, 2))
    y = np.where(rng.random((B, n) if own_labels else n) < 0.5, 1, -1)
    y[..., :2] = 1, -1
    counts = 1 + rng.multinomial(n, np.full(n, 1 / n), size=B)
    problem = Problem(X, y, counts, 10.0 ** np.array([-4.0, -1.0, 3.0]))
    monkeypatch.setattr(answered_problems, "_RECAPTURED_CELLS", 0)
    renewed: list[int] = []
    renew = Replayed.renew

    def noted(self: Replayed) -> None:
        renewed.append(pretended_gpu.replays)
        renew(self)

    monkeypatch.setattr(Replayed, "renew", noted)
    shrunk = fit(problem, device="cuda", tol=1e-6)
    replays = pretended_gpu.replays
    again = fit(problem, device="cuda", tol=1e-6)
    cpu = fit(problem, solver="interior-point", tol=1e-6)
    # Both are within the tolerance of the same optimum.
    torch.testing.assert_close(shrunk.primal.cpu(), cpu.primal, rtol=1e-6, atol=1e-12)
    for name in ("coef", "primal", "dual", "n_iter", "status"):
        assert torch.equal(getattr(shrunk, name).cpu(), getattr(again, name).cpu()), name
    # Half were answered well before the last: graphs were replayed before they left, and after.
    n_iter = np.sort(shrunk.n_iter.cpu().numpy().ravel())
    if n_iter[2] + 3 < n_iter[-1]:
        assert 0 < renewed[0] < replays
