"""Where each kernel draws its boundary.

Two measurements of irises, two species, four kernels: the colour is the probability, and
the hatched band is where the interval contains one half.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from bootprob import BootstrapSVC

X, y = load_iris(return_X_y=True)
X, y = X[50:, [0, 2]], y[50:] == 2
grid = np.stack(np.meshgrid(np.linspace(4.5, 8.2, 60), np.linspace(2.7, 7.2, 60)), -1)
kernels = {
    "linear": {"kernel": "linear"},
    "poly, degree 2": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "rbf": {"kernel": "rbf", "gamma": "median"},
    "laplacian": {"kernel": "laplacian", "gamma": "median"},
}
figure, axes = plt.subplots(2, 2, figsize=(8, 7), sharex=True, sharey=True)
for ax, (name, given) in zip(axes.flat, kernels.items(), strict=True):
    model = BootstrapSVC(**given, n_bootstraps=60, random_state=0).fit(X, y)
    rows = grid.reshape(-1, 2)
    probability = model.predict_proba(rows)[:, 1].reshape(60, 60)
    lower, upper = model.proba_interval(rows)[:, 1].T.reshape(2, 60, 60)
    undecided = (lower < 0.5) & (upper > 0.5)
    print(f"{name:15s} undecided in {undecided.mean():.0%} of the picture")
    ax.contourf(
        *grid.T.swapaxes(1, 2), probability, np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.6
    )
    ax.contourf(*grid.T.swapaxes(1, 2), undecided, [0.5, 1], hatches=["///"], colors="none")
    ax.scatter(*X.T, c=y, cmap="RdBu_r", edgecolor="black", s=14)
    ax.set_title(name)
axes[1, 0].set(xlabel="sepal length", ylabel="petal length")
figure.tight_layout()
figure.savefig("boundaries.png")
