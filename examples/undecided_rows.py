"""Which patients should see a second physician?

Train on half of the Wisconsin data, and send on those whose interval contains one half.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer

from bootprob import BootstrapSVC
from bootprob.displays import IntervalDisplay

X, y = load_breast_cancer(return_X_y=True)
malignant = y == 0
model = BootstrapSVC(kernel="linear", n_bootstraps=100, random_state=0).fit(X[::2], malignant[::2])

new, truth = X[1::2], malignant[1::2]
lower, upper = model.proba_interval(new, level=0.95)[:, 1].T
undecided = (lower < 0.5) & (upper > 0.5)
right = model.predict(new) == truth

print(f"{undecided.sum()} of {len(new)} patients are undecided at 95 %")
print(f"accuracy where decided:   {right[~undecided].mean():.3f}")
print(f"accuracy where undecided: {right[undecided].mean():.3f}")
print("the three widest intervals:")
for row in np.argsort(lower - upper)[:3]:
    print(f"  patient {row}: {lower[row]:.2f} to {upper[row]:.2f}, malignant: {bool(truth[row])}")

# %% [markdown]
# Patients whose interval contains one half, in order; diamonds are malignant in truth.

# %%
display = IntervalDisplay.from_estimator(model, new[undecided], truth[undecided])
display.figure_.savefig("undecided_rows.png")
