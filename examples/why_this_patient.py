"""Why does this patient have this probability?

What each measurement adds to the log-odds of one patient, beside other patients, with an interval:
above 0 it speaks for a fast progress of the illness.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from bootprob import BootstrapSVC
from bootprob.displays import ContributionsDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
fast = y > np.median(y)
model = BootstrapSVC(kernel="linear", n_bootstraps=200, random_state=0).fit(X[1:], fast[1:])
patient = X[:1]
probability, interval = model.predict_proba(patient, return_interval=True)
print(f"probability {probability[0, 1]:.2f}, {interval[0, 1, 0]:.2f} to {interval[0, 1, 1]:.2f}")
print(patient.round(1).to_string(index=False))

# %%
figure, ax = plt.subplots(figsize=(7, 4))
ContributionsDisplay.from_estimator(model, patient, X[1:], ax=ax)
figure.tight_layout()
figure.savefig("why_this_patient.png")
