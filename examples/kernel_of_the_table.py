"""Straight, curved or in steps? The table chooses the kernel.

Three generated tables of the same size. The default tries kernels of several shapes, and weights
them by their log-loss out of bag; the posterior of the intervals is one of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from bootprob import BootstrapSVC

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
logits = {
    "straight": 1.5 * X[:, 0] - X[:, 1],
    "curved": 1.5 * X[:, 0] ** 2 - 1.5 + np.sin(2 * X[:, 1]),
    "in steps": 2.0 * np.sign(X[:, 0]) * (X[:, 1] > -0.5),
}
weights = {}
for name, logit in logits.items():
    y = rng.random(400) < expit(logit)
    model = BootstrapSVC(effort="low", n_bootstraps=60, random_state=0).fit(X, y)
    weights[name] = model.kernel_weights_
    said = ", ".join(f"{kernel} {share:.0%}" for kernel, share in weights[name].items())
    print(f"{name}: {said}")

# %%
kernels = sorted({kernel for each in weights.values() for kernel in each})
figure, ax = plt.subplots(figsize=(8, 3.4))
left = np.zeros(3)
for kernel in kernels:
    share = np.array([each.get(kernel, 0.0) for each in weights.values()])
    ax.barh(list(weights), share, left=left, label=kernel)
    left += share
ax.set(xlabel="weight", xlim=(0, 1))
ax.legend(fontsize=8, bbox_to_anchor=(1, 1), loc="upper left")
figure.tight_layout()
figure.savefig("kernel_of_the_table.png")
