"""Of those said to be ill with 30 %, are 30 % ill?

A reliability curve out of bag, and on patients that were kept aside. Points on the diagonal: the
probabilities mean what they say.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from bootprob import BootstrapSVC
from bootprob.displays import ReliabilityDisplay

X, y = load_diabetes(return_X_y=True)
y = y > np.quantile(y, 0.6)
X, new, y, truth = train_test_split(X, y, train_size=0.5, random_state=1)
model = BootstrapSVC(kernel="linear", n_bootstraps=200, random_state=0).fit(X, y)
error = model.metric_intervals()["calibration_error"]
print(f"calibration error out of bag {error.value:.3f} [{error.lower:.3f}, {error.upper:.3f}]")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True)
ReliabilityDisplay.from_estimator(model, n_bins=6, ax=axes[0])
axes[0].set_title("out of bag")
ReliabilityDisplay.from_estimator(model, new, truth, n_bins=6, ax=axes[1])
axes[1].set_title("patients kept aside")
figure.tight_layout()
figure.savefig("reliability_of_svc.png")
