"""Which measurements are worth it?

The best one, two, three … of thirteen columns, chosen anew in each fold, and what a model makes of
them on wines that it has not seen. What the rest is worth is the distance to the dashed line.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import shuffle

from bootprob import BootstrapSVC
from bootprob.selection import KernelAlignmentSelector

X, y = load_wine(return_X_y=True, as_frame=True)
X, second = shuffle(X, y == 1, random_state=0)  # the table is sorted by grower
folds = StratifiedKFold(4, shuffle=True, random_state=0)
svc = BootstrapSVC(kernel="rbf", gamma="median", n_bootstraps=30, random_state=0)
numbers, losses = [1, 2, 3, 4, 6], []
for number in numbers:
    model = make_pipeline(KernelAlignmentSelector(n_features_to_select=number), svc)
    losses.append(-cross_val_score(model, X, second, cv=folds, scoring="neg_log_loss").mean())
    chosen = KernelAlignmentSelector(n_features_to_select=number).fit(X, second)
    print(f"{number} of 13: log-loss {losses[-1]:.3f}, {', '.join(chosen.get_feature_names_out())}")
of_all = -cross_val_score(svc, X, second, cv=folds, scoring="neg_log_loss").mean()
print(f"all 13: log-loss {of_all:.3f}")

# %%
figure, ax = plt.subplots(figsize=(6, 3.5))
ax.plot(numbers, losses, "o-", label="the best columns")
ax.axhline(of_all, color="black", linestyle="--", label="all 13")
ax.set(xlabel="columns measured", ylabel="log-loss, cross-validated", xticks=np.arange(1, 7))
ax.legend()
figure.tight_layout()
figure.savefig("columns_worth_their_cost.png")
