"""Coverage of the bootstrap intervals for efficiencies, where the frontier is known."""

import numpy as np
import pytest

import bootprob.dea.efficiencies.intervals as module
from bootprob.dea import efficiency_interval

ANGLES = np.linspace(0, np.pi / 2, 300)
REPLICATES = 1000


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
    ("N", "K", "samples", "least"),
    [(1, 25, 400, 0.88), (1, 100, 200, 0.9), (2, 25, 400, 0.74), (2, 100, 200, 0.84)],
)
def test_coverage_and_bias(monkeypatch, record, N, K, samples, least):
    """One parameter of the frontier is covered as promised; more are less, as the docs say."""
    monkeypatch.setattr(module, "ReferenceScores", ClosedForm)
    rng = np.random.default_rng([2026, N, K])
    covered, raw, corrected = [], [], []
    for _ in range(samples):
        X, Y, true = sample(rng, K, N)
        seed = int(rng.integers(2**31))
        found = efficiency_interval(X, Y, n_replicates=REPLICATES, seed=seed)
        covered.append(np.mean((found.lower <= true) & (true <= found.upper)))
        raw.append(np.mean(found.result.scores - true))
        corrected.append(np.mean(found.corrected - true))
    coverage = np.mean(covered)
    record(
        f"efficiency_intervals_{N}_{K}",
        {
            "inputs": N,
            "outputs": 1,
            "units": K,
            "samples": samples,
            "replicates": REPLICATES,
            "level": 0.95,
            "coverage": round(float(coverage), 4),
            "standard error of the coverage": round(
                float(np.std(covered, ddof=1) / np.sqrt(samples)), 4
            ),
            "bias of the score": round(float(np.mean(raw)), 4),
            "bias of the corrected score": round(float(np.mean(corrected)), 4),
        },
    )
    assert least < coverage <= 0.995
    assert abs(np.mean(corrected)) < 0.4 * np.mean(raw)
