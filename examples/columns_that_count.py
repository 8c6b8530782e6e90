"""Which columns do all probabilities depend on?

Each column is permuted, and the log-loss out of bag is looked at: how much worse does it become? No
rows have to be held back, and each importance has an interval.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from bootprob import BootstrapSVC
from bootprob.displays import ImportanceDisplay
from bootprob.explanation import permutation_importance

X, y = load_diabetes(return_X_y=True, as_frame=True)
fast = y > np.median(y)
model = BootstrapSVC(kernel="linear", n_bootstraps=100, random_state=0).fit(X, fast)
found = permutation_importance(model, X, fast)
print(found.to_frame().round(4).to_string(index=False))

# %%
figure, ax = plt.subplots(figsize=(7, 4))
ImportanceDisplay(found).plot(ax)
figure.tight_layout()
figure.savefig("columns_that_count.png")
