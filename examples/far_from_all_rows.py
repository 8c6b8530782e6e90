"""What does the model say of rows unlike any that it has seen?

One column, and a curved kernel. Where there are rows the interval is narrow; far from all of
them it is wide, which the probability alone does not show.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from bootprob import BootstrapSVC

rng = np.random.default_rng(1)
X = np.concatenate([rng.normal(-2, 0.6, 150), rng.normal(1.5, 0.8, 250)])
X = rng.permutation(X)[:, None]


def true_probability(x):
    """It rises and falls."""
    return expit(2 * np.sin(1.3 * x))


y = rng.random(len(X)) < true_probability(X[:, 0])
model = BootstrapSVC(kernel="rbf", gamma=[0.1, 0.5, 2.0], n_bootstraps=60, random_state=0).fit(X, y)
grid = np.linspace(-6, 6, 121)[:, None]
probability, bounds = model.predict_proba(grid, return_interval=True)
lower, upper = bounds[:, 1].T
near = np.abs(grid - X.T).min(axis=1) < 0.3
print(f"mean width where rows are: {(upper - lower)[near].mean():.2f}")
print(f"mean width where none are: {(upper - lower)[~near].mean():.2f}")

# %%
figure, ax = plt.subplots(figsize=(7, 3.8))
ax.fill_between(grid[:, 0], lower, upper, alpha=0.25, label="95 % interval")
ax.plot(grid[:, 0], probability[:, 1], label="probability")
ax.plot(grid[:, 0], true_probability(grid[:, 0]), "k--", label="truth")
ax.plot(X[:, 0], np.where(y, 1.03, -0.03), "|", color="grey")
ax.set(xlabel="column", ylabel="probability", ylim=(-0.07, 1.07))
ax.legend(loc="lower left", fontsize=9)
figure.tight_layout()
figure.savefig("far_from_all_rows.png")
