"""Six ways from a score to a probability.

The machines stay the same, and only what is put on their out-of-bag scores changes. With few rows
what bends most is not what is best; ``calibration="auto"`` leaves the sigmoid only for one that is
better by more than chance.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from bootprob import BootstrapSVC

X, y = load_breast_cancer(return_X_y=True)
X, new, y, truth = train_test_split(X[:, :5], y, train_size=250, random_state=0)
ways = ["sigmoid", "sigmoid-votes", "sigmoid-both", "beta", "isotonic", "venn-abers"]
figure, ax = plt.subplots(figsize=(7, 4))
for way in ways:
    model = BootstrapSVC(kernel="linear", calibration=way, n_bootstraps=100, random_state=0)
    probability = model.fit(X, y).predict_proba(new)[:, 1]
    print(f"{way:14s} log-loss on new rows {log_loss(truth, probability):.4f}")
    score = model.decision_function(new)
    order = np.argsort(score)
    if "votes" not in way and "both" not in way:  # those are no functions of the score alone
        ax.plot(score[order], probability[order], label=way)
chosen = BootstrapSVC(kernel="linear", calibration="auto", n_bootstraps=100, random_state=0)
print(f'"auto" chose {chosen.fit(X, y).calibration_}')
ax.set(xlabel="mean score", ylabel="probability")
ax.legend()
figure.tight_layout()
figure.savefig("calibrators.png")
