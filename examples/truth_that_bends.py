"""A straight model of a truth that bends, and the warning that says so.

The truth is a parabola. A linear kernel misses it, whatever the number of rows; `proba_interval`
tests for that and warns. The default kernel lets the table choose.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from bootprob import BootstrapSVC

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 2))
y = rng.random(600) < expit(1.2 * X[:, 0] ** 2 - 1.2 + 0.8 * X[:, 1])
grid = np.column_stack([np.linspace(-2.5, 2.5, 81), np.zeros(81)])
truth = expit(1.2 * grid[:, 0] ** 2 - 1.2)
models = {
    'kernel="linear"': BootstrapSVC(kernel="linear", n_bootstraps=60, random_state=0),
    "default": BootstrapSVC(effort="low", n_bootstraps=60, random_state=0),
}

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        lower, upper = model.fit(X, y).proba_interval(grid)[:, 1].T
    covered = ((lower <= truth) & (truth <= upper)).mean()
    print(f"{name}: contains the truth at {covered:.0%} of the points")
    print(*(f"  {each.category.__name__}: {each.message}" for each in said), sep="\n")
    ax.fill_between(grid[:, 0], lower, upper, alpha=0.3)
    ax.plot(grid[:, 0], truth, "k--")
    ax.set(title=name, xlabel="the first column")
axes[0].set(ylabel="probability: interval, and truth (dashed)")
figure.tight_layout()
figure.savefig("truth_that_bends.png")
