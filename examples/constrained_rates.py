"""What does it cost to find 97 % of the malignant tumours?

The plain machine, the same with its intercept moved, and the machine that is trained to keep the
rate, each judged on patients that it has not seen (three folds, every patient once).
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from bootprob.constrained import ConstrainedSVC

X, y = load_breast_cancer(return_X_y=True)
X = X[:, :10]  # the means alone: an easier table would leave nothing to choose
malignant = y == 0
rates = {"tpr": 0.97}

machines = {
    "plain": ConstrainedSVC(),
    "sliding": ConstrainedSVC(rates=rates, method="slide", anchors="all"),
    "constrained": ConstrainedSVC(rates=rates, anchors="all"),
    "with confidence": ConstrainedSVC(rates=rates, anchors="all", confidence=0.95),
}
reached = {}
folds = StratifiedKFold(3, shuffle=True, random_state=0)
for name, machine in machines.items():
    found = cross_val_predict(machine, X, malignant, cv=folds)
    tpr, tnr = found[malignant].mean(), (~found[~malignant]).mean()
    reached[name] = tpr, tnr
    print(f"{name:15s} finds {tpr:.1%} of the malignant, spares {tnr:.1%} of the benign")

machine = machines["constrained"].fit(X, malignant)
result = machine.result_
print(f"on all rows: objective {result.objective:.3f}, no machine below {result.lower_bound:.3f}")
print(f"malignant tumours given up: rows {machine.given_up_.tolist()}")

# %%
figure, ax = plt.subplots(figsize=(6, 3.5))
for name, (tpr, tnr) in reached.items():
    ax.plot(tnr, tpr, "o")
    ax.annotate(name, (tnr, tpr), xytext=(6, -3), textcoords="offset points")
ax.axhline(rates["tpr"], color="black", linewidth=0.8, linestyle="--")
ax.margins(0.25)
ax.set(xlabel="benign spared", ylabel="malignant found")
figure.savefig("constrained_rates.png")
