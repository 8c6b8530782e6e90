"""Which clinics make the most of their staff, and by which outputs should they be compared?

Thirty made-up clinics, one input and six outputs; print scores with intervals, the selections, who
would object, and write everything to clinics.html.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bootprob.dea import Panel, benchmark_study, summarise_curve
from bootprob.report import write_dea_report

rng = np.random.default_rng(1)
size = np.exp(rng.normal(size=30))
focus = rng.normal(size=(30, 2))  # some operate, some advise
names = ["operations", "emergencies", "intensive care", "consultations", "prevention", "training"]
leaning = np.array([[1, 0.8, 0.6, 0, 0, 0.2], [0, 0.1, 0, 1, 0.7, 0.5]])
made = size[:, None] * np.exp(0.4 * focus @ leaning + 0.15 * rng.normal(size=(30, 6)))
spent = size / np.exp(-np.abs(rng.normal(0, 0.2, 30)))  # nobody spends less than need be
units = [f"clinic {k:02d}" for k in range(1, 31)]
clinics = Panel.of(pd.Series(spent, name="staff"), pd.DataFrame(made, columns=names), units=units)

study = benchmark_study(clinics, n_replicates=100, most_outputs=3, size=2, time_limit=20)

print(f"{study.result.efficient.sum()} of 30 clinics are efficient; the five that are least so:")
scores = study.interval.to_frame().nsmallest(5, "score")
print(scores[["score", "lower", "upper"]].round(3).to_string())
worst = scores.index[0]
print(f"{worst} could learn from {', '.join(study.result.peers[worst])}.")

print("\nWhich outputs to compare them by:")
table = summarise_curve(study.curve).to_frame()
print(table[["min", "mean", "q2", "selected features"]].round(3).to_string())

game = study.games[2]
rival = int(np.argmax(game.support))
print(
    f"\nThe selection that suits {units[rival]} best is preferred to the joint one of two outputs "
    f"by {game.support[rival]:.0f} % of the clinics."
)
write_dea_report(study, "clinics.html", title="Thirty clinics")

# %%
every = study.interval.to_frame().sort_values("score")
figure, ax = plt.subplots(figsize=(6, 6))
ax.hlines(every.index, every["lower"], every["upper"], linewidth=2)
ax.plot(every["score"], every.index, "o", color="black", markersize=4)
ax.set(xlabel="efficiency, with interval")
figure.tight_layout()
figure.savefig("benchmark_units.png")
