"""Which digits are possible? Sets that contain the right one as often as they say.

Prediction sets need no assumption about the shape of the truth, only rows that are drawn alike. The
higher the level, the larger the sets.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from bootprob import BootstrapSVC

X, y = load_digits(return_X_y=True)
kept = np.isin(y, (1, 4, 7, 8, 9))
X = X[kept] + np.random.default_rng(0).normal(0, 6, (kept.sum(), 64))  # noise: else all is clear
X, new, y, truth = train_test_split(X, y[kept], train_size=300, random_state=0)
model = BootstrapSVC(kernel="linear", C=[0.05], n_bootstraps=60, random_state=0).fit(X, y)
levels, shares, sizes = np.linspace(0.6, 0.99, 14), [], []
columns = np.searchsorted(model.classes_, truth)
for level in levels:
    sets = model.prediction_sets(new, level=level)
    shares.append(sets[np.arange(len(new)), columns].mean())
    sizes.append(sets.sum(axis=1).mean())
print(f"at {levels[-2]:.0%}: contain the right digit {shares[-2]:.1%}, mean size {sizes[-2]:.2f}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3.5))
axes[0].plot(levels, shares, "o-")
axes[0].plot(levels, levels, "k--", linewidth=0.8)
axes[0].set(xlabel="level", ylabel="share of new digits in their set")
axes[1].plot(levels, sizes, "o-")
axes[1].set(xlabel="level", ylabel="mean number of digits in a set")
figure.tight_layout()
figure.savefig("sets_of_digits.png")
