"""What if only this column changed?

Partial dependence: one column moves, the others stay as they are in the rows of the table. The band
is the 95 % interval.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from bootprob import BootstrapSVC
from bootprob.displays import PartialDependenceDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
fast = y > np.median(y)
model = BootstrapSVC(effort="low", n_bootstraps=60, random_state=0).fit(X, fast)
print(f"body mass index from {X['bmi'].min()} to {X['bmi'].max()}")
print(f"blood pressure from {X['bp'].min():.0f} to {X['bp'].max():.0f}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
for ax, column in zip(axes, ("bmi", "bp"), strict=True):
    PartialDependenceDisplay.from_estimator(model, column, X[:100], ax=ax)
figure.tight_layout()
figure.savefig("one_column_followed.png")
