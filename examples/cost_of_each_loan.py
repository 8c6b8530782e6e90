"""Every loan at its own threshold.

Refusing a good customer costs the interest, the same for all here; granting to a bad one costs the
amount. Large loans are then refused at smaller probabilities. A generated table.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from bootprob import BootstrapSVC, CostMatrix

rng = np.random.default_rng(0)


def loans(n):
    """Columns, the amount, and whether it is lost."""
    X = rng.normal(size=(n, 3))
    amount = np.exp(rng.normal(6, 0.8, n))
    return X, amount, rng.random(n) < expit(X @ [1.0, -0.7, 0.5] - 2.2)


X, _, lost = loans(800)
model = BootstrapSVC(kernel="linear", n_bootstraps=100, random_state=0).fit(X, lost)
new, amount, truth = loans(2000)
costs = CostMatrix(false_positive=60, false_negative=amount)
probability = model.predict_proba(new)[:, 1]
decided = costs.decide(probability)
rules = {
    "each at its own threshold": decided.label,
    "refuse above one half": probability > 0.5,
    "one threshold of the mean amount": probability > 60 / (60 + amount.mean()),
    "grant all": np.zeros(len(new), dtype=bool),
}
for name, refused in rules.items():
    cost = np.where(refused, ~truth * 60, truth * amount).mean()
    print(f"{name:34s} {cost:6.1f} a loan")

# %%
figure, ax = plt.subplots(figsize=(7, 4))
for refused, colour, name in ((False, "C0", "granted"), (True, "C1", "refused")):
    those = decided.label == refused
    ax.plot(amount[those], probability[those], ".", color=colour, label=name, markersize=4)
line = np.geomspace(amount.min(), amount.max(), 200)
ax.plot(line, 60 / (60 + line), "k", linewidth=1, label="threshold")
ax.set(xscale="log", xlabel="amount", ylabel="probability of a loss")
ax.legend()
figure.tight_layout()
figure.savefig("cost_of_each_loan.png")
