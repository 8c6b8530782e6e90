"""A class that is rare: weighed in training, put right by calibration.

One digit of ten. The machines weigh both classes equally, or the rare one would be drowned; the
calibration puts the base rate back, so that probabilities add up to what is there.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from bootprob import BootstrapSVC

X, y = load_digits(return_X_y=True)
X = X + np.random.default_rng(0).normal(0, 6, X.shape)
X, new, y, truth = train_test_split(X, y == 9, train_size=600, random_state=0, stratify=y == 9)
model = BootstrapSVC(kernel="linear", C=[0.01, 0.1], n_bootstraps=60, random_state=0).fit(X, y)
probability = model.predict_proba(new)[:, 1]
print(f"nines among the new digits: {truth.mean():.1%}; mean probability: {probability.mean():.1%}")

# %%
figure, ax = plt.subplots(figsize=(7, 3.5))
bins = np.linspace(0, 1, 26)
ax.hist(probability[~truth], bins, label="other digits", alpha=0.7)
ax.hist(probability[truth], bins, label="nines", alpha=0.7)
ax.set(yscale="log", xlabel="probability of a nine", ylabel="digits")
ax.legend()
figure.tight_layout()
figure.savefig("rare_class.png")
