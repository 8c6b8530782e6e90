"""Whom to biopsy, if a missed cancer costs twenty times as much as a needless biopsy?

Train on half of the Wisconsin data; print what each rule costs, the closest calls, and what it
saves to ask a second pathologist.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from bootprob import BootstrapSVC, CostMatrix, CostSensitiveClassifier
from bootprob.costs import cost_of_rules

X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
X, y = X.iloc[:, :5], benign.map({0: "malignant", 1: "benign"})  # a harder task than all columns
costs = pd.DataFrame(  # true class down, decision across
    {"benign": [0, 20], "malignant": [1, 0]}, index=["benign", "malignant"]
)
svm = BootstrapSVC(kernel="linear", n_bootstraps=100, random_state=0)
model = CostSensitiveClassifier(svm, cost_matrix=costs).fit(X[::2], y[::2])
print(f"biopsy where the probability of a cancer is above {model.threshold_:.3f}\n")

new, truth = X[1::2], y[1::2]
on_new_rows = cost_of_rules(
    truth == "malignant", model.predict_proba(new)[:, 1], model.cost_matrix_
)
print("cost of a patient    out of bag, 95 % interval   saved by least cost     on new patients")
for name, rule in model.oob_costs().items():
    print(
        f"{rule.label:20s} {rule.cost:6.3f}  [{rule.lower:.3f}, {rule.upper:.3f}]"
        f"   {rule.saving:6.3f}  [{rule.saving_lower:.3f}, {rule.saving_upper:.3f}]"
        f"   {on_new_rows[name].cost:6.3f}"
    )

decisions = model.decide(new)
table = decisions.to_frame(index=new.index).assign(truth=truth)
print(f"\n{table['stable'].mean():.0%} of the decisions are stable; the closest calls:")
close = (table["cost"] - table["other_cost"]).abs().nsmallest(5).index
columns = ["label", "probability", "cost", "cost_lower", "cost_upper", "other_cost", "truth"]
print(table.loc[close, columns].round(3).to_string())

second = CostMatrix(false_positive=1, false_negative=20, ask=0.3)
asked = model.estimator_.decide(new, second)
rules = cost_of_rules(truth == "malignant", asked.probability, second)
saved = rules["ask_none"]
print(f"\na second opinion at 0.3 pays for {asked.ask.mean():.0%} of the patients, and saves")
print(f"{saved.saving:.3f} a patient  [{saved.saving_lower:.3f}, {saved.saving_upper:.3f}]")
# %% [markdown]
# What a patient costs on new rows at every threshold: the least is near the one that follows from
# the costs, which nobody tuned.

# %%
probability, cancer = model.predict_proba(new)[:, 1], (truth == "malignant").to_numpy()
if model.classes_[1] == "benign":
    probability = 1 - probability
thresholds = np.linspace(0.005, 0.6, 120)
cost = [np.where(probability > t, ~cancer * 1, cancer * 20).mean() for t in thresholds]
figure, ax = plt.subplots(figsize=(6, 3.5))
ax.step(thresholds, cost)
ax.axvline(1 / 21, color="black", linestyle="--", label="1 / (1 + 20)")
ax.set(xlabel="biopsy above this probability", ylabel="cost of a patient")
ax.legend()
figure.savefig("decide_by_cost.png")
