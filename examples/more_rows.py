"""How many rows are enough?

The same question to tables of growing size: the interval of the probability becomes narrower with
the root of the number of rows. More bootstrap samples do not make it narrower.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from bootprob import BootstrapSVC

rng = np.random.default_rng(0)
slopes = np.array([1.2, -0.8, 0.5, 0.0])
new = rng.normal(size=(200, 4))
truth = expit(new @ slopes)
sizes, widths, covered = [100, 200, 400, 800, 1600, 3200], [], []
for n in sizes:
    X = rng.normal(size=(n, 4))
    y = rng.random(n) < expit(X @ slopes)
    model = BootstrapSVC(kernel="linear", n_bootstraps=60, random_state=0).fit(X, y)
    lower, upper = model.proba_interval(new)[:, 1].T
    widths.append((upper - lower).mean())
    covered.append(((lower <= truth) & (truth <= upper)).mean())
    print(
        f"{n:5d} rows: mean width {widths[-1]:.3f}, contains the truth of {covered[-1]:.0%} of rows"
    )

# %%
figure, ax = plt.subplots(figsize=(6, 3.5))
ax.loglog(sizes, widths, "o-", label="measured")
ax.loglog(sizes, widths[0] * np.sqrt(sizes[0] / np.array(sizes)), "--", label="one over the root")
ax.set(xlabel="rows", ylabel="mean width of 95 % intervals", xticks=sizes, xticklabels=sizes)
ax.minorticks_off()
ax.legend()
figure.tight_layout()
figure.savefig("more_rows.png")
