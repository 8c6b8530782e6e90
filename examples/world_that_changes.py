"""When the world changes, a model of the past says so.

Four hundred days; in the last tenth the first column means the opposite. Told of the days, the fit
asks a model of the earlier rows about the later ones, and warns.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from bootprob import BootstrapSVC

rng = np.random.default_rng(0)
day = np.datetime64("2025-01-01") + np.arange(400)
X = rng.normal(size=(400, 3))
slope = np.where(np.arange(400) < 360, 1.5, -1.5)
y = rng.random(400) < expit(slope * X[:, 0])
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    model = BootstrapSVC(kernel="linear", n_bootstraps=60, random_state=0).fit(X, y, time=day)
print(*(f"{each.category.__name__}: {each.message}" for each in said), sep="\n")
later = model.later_rows_
for name in ("auc", "log_loss"):
    before, after = later["out_of_bag"][name][0], later["metrics"][name][0]
    print(f"{name}: {before:.2f} before, {after:.2f} since {later['since']}")

# %%
right = (model.oob_proba_[:, 1] > 0.5) == y
month = np.arange(400) // 20
share = [right[month == each].mean() for each in range(20)]
figure, ax = plt.subplots(figsize=(7, 3.2))
ax.plot(day[::20], share, "o-")
ax.axvline(np.datetime64(later["since"]), color="black", linestyle="--", label="the last tenth")
ax.axhline(0.5, color="grey", linewidth=0.8)
ax.set(ylabel="right out of bag, by 20 days", ylim=(0, 1))
ax.legend()
figure.autofmt_xdate()
figure.tight_layout()
figure.savefig("world_that_changes.png")
