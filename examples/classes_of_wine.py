"""Which wines cannot be told apart?

Three growers, thirteen measurements. Every class has a probability and an interval of its own; the
wines that are hardest to tell are shown.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from bootprob import BootstrapSVC

X, y = load_wine(return_X_y=True, as_frame=True)
columns = ["alcohol", "color_intensity", "hue"]  # all thirteen would leave no doubt
X, new, y, truth = train_test_split(X[columns], y, test_size=0.4, random_state=0, stratify=y)
model = BootstrapSVC(kernel="linear", n_bootstraps=100, random_state=0).fit(X, y)
print(f"{model.score(new, truth):.0%} of {len(new)} new wines are given to the right grower")

# %%
probability, bounds = model.predict_proba(new), model.proba_interval(new)
hardest = np.argsort(probability.max(axis=1))[:6]
figure, axes = plt.subplots(2, 3, figsize=(9, 4), sharex=True, sharey=True)
for ax, row in zip(axes.flat, hardest, strict=True):
    ax.hlines(model.classes_, *bounds[row].T, linewidth=3)
    ax.plot(probability[row], model.classes_, "o", color="black")
    ax.set(yticks=model.classes_, title=f"of grower {truth.iloc[row]}")
for ax in axes[-1]:
    ax.set(xlabel="probability")
for ax in axes[:, 0]:
    ax.set(ylabel="grower")
figure.tight_layout()
figure.savefig("classes_of_wine.png")
