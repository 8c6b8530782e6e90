"""Is it a 3 or an 8? The digits that the model is least sure of.

Handwritten digits of 8 × 8 pixels. An image whose interval contains one half should be read by a
person.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from bootprob import BootstrapSVC

X, y = load_digits(return_X_y=True)
kept = np.isin(y, (3, 8))
X, new, y, truth = train_test_split(X[kept], y[kept], train_size=150, random_state=0)
model = BootstrapSVC(kernel="rbf", gamma="median", n_bootstraps=100, random_state=0).fit(X, y)
probability = model.predict_proba(new)[:, 1]
lower, upper = model.proba_interval(new)[:, 1].T
print(f"right: {model.score(new, truth):.1%} of {len(new)}")
print(f"intervals that contain one half: {((lower < 0.5) & (upper > 0.5)).sum()}")

# %%
hardest = np.argsort(abs(probability - 0.5))[:8]
figure, axes = plt.subplots(2, 4, figsize=(8, 5))
for ax, row in zip(axes.flat, hardest, strict=True):
    ax.imshow(new[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(
        f"8 with {probability[row]:.0%}\n{lower[row]:.0%} to {upper[row]:.0%}", fontsize=10
    )
    ax.set(xticks=[], yticks=[], xlabel=f"in truth {truth[row]}")
figure.tight_layout()
figure.savefig("hardest_digits.png")
