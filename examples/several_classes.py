"""Several classes: every class has a probability and an interval.

Iris and digits in stratified folds, beside scikit-learn's SVC with the best C, calibrated by
cross-validation. ``python examples/several_classes.py 100`` trains 100 bootstrap samples on 5
folds, as docs/several_classes.md does; without a number, 10 on 2 folds, with every third of the
digits 0 to 4.
"""

import sys
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bootprob import BootstrapSVC
from bootprob.metrics import class_metrics

n_bootstraps = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else None
n_folds = 5 if n_bootstraps else 2
grids = {"linear": [2.0**k for k in range(-5, 6)], "rbf": [0.5, 2.0, 8.0, 32.0]}


def of_scikit_learn(kernel, ensemble):
    """The best C by accuracy, within the folds of the calibration."""
    machine = make_pipeline(StandardScaler(), SVC(kernel=kernel))
    tuned = GridSearchCV(machine, {"svc__C": grids[kernel]}, cv=n_folds)
    return CalibratedClassifierCV(tuned, method="sigmoid", ensemble=ensemble, cv=n_folds)


def of_bootprob(kernel):
    """All C at once."""
    return BootstrapSVC(
        kernel=kernel,
        C=grids[kernel],
        n_bootstraps=n_bootstraps or 10,
        standardize="global" if kernel == "rbf" else "bootstrap",
        random_state=0,
    )


figure, axes = plt.subplots(1, 2, figsize=(9, 3.5))
for ax, (load, kernel) in zip(axes, ((load_iris, "linear"), (load_digits, "rbf")), strict=True):
    X, y = load(return_X_y=True)
    if n_bootstraps is None and len(y) > 1000:
        X, y = X[y < 5][::3], y[y < 5][::3]
    models = {
        "bootprob": of_bootprob(kernel),
        "SVC, calibrated": of_scikit_learn(kernel, ensemble=False),
        "SVC, ensemble of 5": of_scikit_learn(kernel, ensemble=True),
    }
    if n_bootstraps is None:
        del models["SVC, ensemble of 5"]
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    print(f"{load.__name__[5:]}: {len(y)} rows, {y.max() + 1} classes, {kernel} kernel")
    for name, model in models.items():
        p, start = np.empty((len(y), y.max() + 1)), time.perf_counter()
        for train, test in folds.split(X, y):
            fitted = clone(model).fit(X[train], y[train])
            p[test] = fitted.predict_proba(X[test])
        found = class_metrics(y, p, np.ones(len(y)))
        said = ", ".join(
            f"{key} {value:.4f} ± {error:.4f}" for key, (value, error) in found.items()
        )
        print(f"  {name:20} {said}, {time.perf_counter() - start:.0f} s")
        if isinstance(fitted, BootstrapSVC):
            last, of_bootstrap = test, fitted

    row = last[np.argmin(p[last].max(axis=1))]  # the row of the last fold that is hardest to tell
    bounds = of_bootstrap.proba_interval(X[[row]])[0]
    most = np.argsort(-of_bootstrap.predict_proba(X[[row]])[0])[:3]
    print(f"  the least certain row of the last fold is of class {y[row]}:")
    for k, (low, high) in zip(most, bounds[most], strict=True):
        print(f"    class {of_bootstrap.classes_[k]}: {low:.2f} to {high:.2f}")
    p = of_bootstrap.predict_proba(X[[row]])[0]
    ax.hlines(of_bootstrap.classes_, *bounds.T, linewidth=3)
    ax.plot(p, of_bootstrap.classes_, "o", color="black")
    ax.set(xlim=(-0.03, 1.03), yticks=of_bootstrap.classes_, xlabel="probability", ylabel="class")
    ax.set_title(f"{load.__name__[5:]}: the least certain row, of class {y[row]}", fontsize=10)
figure.tight_layout()
figure.savefig("several_classes.png")
