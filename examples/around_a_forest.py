"""A random forest that says how sure it is.

The forest stays what it is; around it its probabilities are calibrated out of bag, and each gets an
interval.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from bootprob import BootstrapClassifier
from bootprob.displays import IntervalDisplay

X, y = load_diabetes(return_X_y=True)
y = (y > np.median(y)).astype(int)
X, new, y, truth = train_test_split(X, y, train_size=300, random_state=0)
forest = RandomForestClassifier(200, min_samples_leaf=3, random_state=0)
alone = forest.fit(X, y).predict_proba(new)[:, 1]
model = BootstrapClassifier(forest, random_state=0).fit(X, y)
print(f"log-loss on new rows: forest {log_loss(truth, alone):.4f}", end=", ")
print(f"around it {log_loss(truth, model.predict_proba(new)[:, 1]):.4f}")

# %%
figure, ax = plt.subplots(figsize=(7, 5))
IntervalDisplay.from_predictions(
    model.predict_proba(new[:50])[:, 1], model.proba_interval(new[:50])[:, 1], truth[:50], ax=ax
)
figure.tight_layout()
figure.savefig("around_a_forest.png")
