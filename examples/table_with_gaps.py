"""Words, numbers and gaps in one table.

A generated table of customers: text becomes a column for each level, gaps are filled in, and the
model keeps all of it. New levels and gaps later are no error.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bootprob import BootstrapSVC

rng = np.random.default_rng(0)
n = 500
table = pd.DataFrame(
    {
        "age": rng.integers(18, 80, n).astype(float),
        "plan": rng.choice(["basic", "family", "business"], n),
        "calls_to_support": rng.poisson(1.0, n),
    }
)
logit = 0.9 * (table["calls_to_support"] - 1) - 0.03 * (table["age"] - 45)
left = rng.random(n) < 1 / (1 + np.exp(-(logit - 0.8 * (table["plan"] == "family"))))
table.loc[rng.random(n) < 0.1, "age"] = np.nan
table.loc[rng.random(n) < 0.1, "plan"] = None
model = BootstrapSVC(kernel="linear", n_bootstraps=100, random_state=0).fit(table, left)
print(*model.preprocessor_.notes_, sep="\n")

# %%
new = pd.DataFrame(
    {
        "age": [25, np.nan, 60, 30],
        "plan": ["basic", "family", None, "student"],  # the last was never seen
        "calls_to_support": [4, 0, 1, 2],
    }
)
probability = model.predict_proba(new)[:, 1]
lower, upper = model.proba_interval(new)[:, 1].T
figure, ax = plt.subplots(figsize=(7, 2.8))
names = [f"{age:.0f}, {plan}, {calls} calls" for age, plan, calls in new.itertuples(index=False)]
ax.hlines(names, lower, upper, linewidth=3)
ax.plot(probability, names, "o", color="black")
ax.set(xlim=(0, 1), xlabel="probability of leaving, 95 % interval")
figure.tight_layout()
figure.savefig("table_with_gaps.png")
