"""How good will the model be on new rows? An answer without a test set.

Metrics out of bag, with intervals, beside what the same model reaches on rows that it never saw.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from bootprob import BootstrapSVC
from bootprob.metrics import metric_intervals

X, y = load_diabetes(return_X_y=True)
y = y > np.median(y)  # does the illness progress faster than in half of the patients?
X, new, y, truth = train_test_split(X, y, train_size=0.5, random_state=0)
model = BootstrapSVC(kernel="linear", n_bootstraps=200, random_state=0).fit(X, y)
out_of_bag = model.metric_intervals()
on_new_rows = metric_intervals(truth, model.predict_proba(new)[:, 1])
names = ["accuracy", "sensitivity", "specificity", "auc", "brier_score"]
for name in names:
    said, found = out_of_bag[name], on_new_rows[name]
    print(f"{name:12s} said {said.value:.3f} [{said.lower:.3f}, {said.upper:.3f}]", end="")
    print(f"   on new rows {found.value:.3f}")

# %%
figure, ax = plt.subplots(figsize=(7, 3.2))
for height, name in enumerate(reversed(names)):
    said = out_of_bag[name]
    ax.hlines(height, said.lower, said.upper, linewidth=4, alpha=0.5)
    ax.plot(said.value, height, "o", color="C0")
    ax.plot(on_new_rows[name].value, height, "D", color="C1")
ax.set(yticks=range(len(names)), yticklabels=reversed(names), xlim=(0, 1))
ax.plot([], [], "o", color="C0", label="out of bag, 95 % interval")
ax.plot([], [], "D", color="C1", label="on new rows")
ax.legend(fontsize=9, loc="lower right")
figure.tight_layout()
figure.savefig("how_good_on_new_rows.png")
