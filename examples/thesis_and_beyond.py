"""The thesis's vote share and Wald interval beside the calibrated probability and its interval.

The truth is known here: a logistic model in five features.
"""

import numpy as np
from scipy.special import expit

from bootprob import BootstrapSVC

rng = np.random.default_rng(0)
slopes = np.array([1.0, -0.8, 0.6, 0.4, 0.0])
X, new = rng.normal(size=(500, 5)), rng.normal(size=(500, 5))
y = (rng.uniform(size=500) < expit(X @ slopes)).astype(int)
truth = expit(new @ slopes)

paper = BootstrapSVC.paper(n_bootstraps=100, random_state=0).fit(X, y)
default = BootstrapSVC(kernel="linear", n_bootstraps=100, random_state=0).fit(X, y)
for name, model in (("paper()", paper), ("default", default)):
    error = np.sqrt(np.square(model.predict_proba(new)[:, 1] - truth).mean())
    lower, upper = model.proba_interval(new)[:, 1].T
    covered = ((lower <= truth) & (truth <= upper)).mean()
    print(f"{name:8s} error {error:.3f}, 95 % interval covers {covered:.0%}")
