"""Coverage of the bootstrap intervals for efficiencies, where the frontier is known."""

import numpy as np
import pytest

import bootprob.dea.efficiency_intervals as module
from bootprob.dea import efficiency_interval

ANGLES = np.linspace(0, np.pi / 2, 300)


class ClosedForm:
    """One output, constant returns: the best ratio, or the best of many price ratios."""

    def __init__(self, panel, *_):
        self.per_output = panel.inputs / panel.outputs

    def against(self, X, Y):
        X = X / Y
        if X.shape[1] == 1:
            return X.min() / self.per_output[:, 0]
        prices = np.stack((np.cos(ANGLES), np.sin(ANGLES)))
        return ((X @ prices).min(axis=0) / (self.per_output @ prices)).max(axis=1)


def sample(rng, K, N):
    """Half-normal log-efficiencies behind y = x, or behind (x1 - .2)(x2 - .2) = .64."""
    output, true = rng.uniform(1, 2, K), np.exp(-np.abs(rng.normal(0, 0.3, K)))
    along = rng.uniform(0.1, 1.5, K)
    frontier = np.stack((0.2 + 0.8 * np.exp(along - 0.8), 0.2 + 0.8 * np.exp(0.8 - along)), axis=1)
    if N == 1:
        frontier = np.ones((K, 1))
    return output[:, None] * frontier / true[:, None], output, true


@pytest.mark.parametrize(
    ("N", "K", "samples", "least"), [(1, 25, 100, 0.85), (2, 25, 60, 0.72), (2, 100, 25, 0.76)]
)
def test_coverage_and_bias(rng, monkeypatch, N, K, samples, least):
    monkeypatch.setattr(module, "ReferenceScores", ClosedForm)
    covered, raw, corrected = [], [], []
    for _ in range(samples):
        X, Y, true = sample(rng, K, N)
        found = efficiency_interval(X, Y, n_replicates=300, seed=int(rng.integers(2**31)))
        covered.append(np.mean((found.lower <= true) & (true <= found.upper)))
        raw.append(np.mean(found.result.scores - true))
        corrected.append(np.mean(found.corrected - true))
    assert least < np.mean(covered) <= 0.995
    assert abs(np.mean(corrected)) < 0.4 * np.mean(raw)
