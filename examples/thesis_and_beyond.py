"""The thesis's vote share and Wald interval beside the calibrated probability and its interval.

The truth is known here: a logistic model in five features.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from bootprob import BootstrapSVC

rng = np.random.default_rng(0)
slopes = np.array([1.0, -0.8, 0.6, 0.4, 0.0])
X, new = rng.normal(size=(500, 5)), rng.normal(size=(500, 5))
y = (rng.uniform(size=500) < expit(X @ slopes)).astype(int)
truth = expit(new @ slopes)

paper = BootstrapSVC.paper(n_bootstraps=100, random_state=0).fit(X, y)
default = BootstrapSVC(kernel="linear", n_bootstraps=100, random_state=0).fit(X, y)
figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True)
for ax, (name, model) in zip(axes, (("paper()", paper), ("default", default)), strict=True):
    error = np.sqrt(np.square(model.predict_proba(new)[:, 1] - truth).mean())
    lower, upper = model.proba_interval(new)[:, 1].T
    inside = (lower <= truth) & (truth <= upper)
    covered = inside.mean()
    print(f"{name:8s} error {error:.3f}, 95 % interval covers {covered:.0%}")
    ax.vlines(
        truth[:100], lower[:100], upper[:100], color=np.where(inside[:100], "#2a6fa8", "#c2500c")
    )
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    ax.set(title=name, xlabel="true probability", ylim=(-0.05, 1.05))
axes[0].set(ylabel="95 % interval")
figure.savefig("thesis_and_beyond.png")
