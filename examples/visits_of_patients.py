"""Ten visits of a patient are not ten patients.

Fifty generated patients with ten visits each. Told of the groups, the model leaves patients out
whole: the metrics out of bag are then those of new patients. Untold, they are far too good.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from bootprob import BootstrapSVC
from bootprob.metrics import metric_intervals

rng = np.random.default_rng(0)


def visits(n_patients):
    """Columns that hardly change between visits, the illness of the patient, and who it is."""
    patient = np.repeat(np.arange(n_patients), 10)
    of_patient = rng.normal(size=(n_patients, 6))
    ill = rng.random(n_patients) < expit(1.2 * of_patient[:, 0])
    X = of_patient[patient] + 0.15 * rng.normal(size=(len(patient), 6))
    return X, ill[patient], patient


X, y, patient = visits(50)
new, truth, who = visits(400)
kernel = {"kernel": "rbf", "gamma": "median", "n_bootstraps": 60, "random_state": 0}
untold = BootstrapSVC(**kernel).fit(X, y)
told = BootstrapSVC(**kernel).fit(X, y, groups=patient)
said = {
    "untold": untold.metric_intervals()["auc"],
    "told of patients": told.metric_intervals()["auc"],
}
reached = {}
for name, model in (("untold", untold), ("told of patients", told)):
    probability = model.predict_proba(new)[:, 1]
    reached[name] = metric_intervals(truth, probability, groups=who)["auc"].value
    print(f"{name:17s} AUC out of bag {said[name].value:.2f}, of new patients {reached[name]:.2f}")

# %%
figure, ax = plt.subplots(figsize=(6.5, 2.6))
for name, each in said.items():
    ax.hlines(name, each.lower, each.upper, linewidth=4, alpha=0.5)
ax.plot([each.value for each in said.values()], list(said), "o", label="out of bag")
ax.plot(list(reached.values()), list(reached), "D", label="new patients")
ax.set(ylim=(-0.5, 1.5), xlabel="AUC", xlim=(0.4, 1.02))
ax.legend(fontsize=9, loc="lower left")
figure.tight_layout()
figure.savefig("visits_of_patients.png")
