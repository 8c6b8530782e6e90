"""Figures 2 to 9 and table 3 of Carrizosa, Martin-Barragan, Romero Morales (2005), measured here.

    python -m docs.studies.pareto.study [FIGURE ...] [--seconds 900] [--again]

Writes docs/results/pareto.json, figure after figure, docs/results/pareto_figure_2.svg and so on,
and docs/pareto.md. What the file has with the same settings is not measured again.
"""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from bootprob.datasets import CATALOG
from bootprob.datasets.finding import places, present
from bootprob.runtime.arrays import Bools, Floats, Indices
from bootprob.selection import ParetoSVC
from docs.studies.pareto.printed import TABLE_3
from gpu.benchmarks.common import documents
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.datasets import FOLDER, at_hand, dataset
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import load, save
from gpu.benchmarks.common.tables import markdown

__all__ = ["CASES", "PEERS", "Case", "main", "measure", "rows_of", "split", "turneys_costs"]

FILE = "pareto.json"
COMMAND = "python -m docs.studies.pareto.study"
SEED = 0
CREDIT_NUMBERS = ("A2", "A3", "A8", "A11", "A14", "A15")


@dataclass(frozen=True)
class Case:
    """A figure of the paper: data set, degree g and costs ("random" or "Turney's")."""

    name: str
    degree: int
    costs: str


CASES = {
    2: Case("bupa", 1, "random"),
    3: Case("bupa", 1, "Turney's"),
    4: Case("pima", 1, "random"),
    5: Case("pima", 1, "Turney's"),
    6: Case("credit", 1, "random"),
    7: Case("credit", 2, "random"),
    8: Case("wdbc", 1, "random"),
    9: Case("wdbc", 2, "random"),
}
"""By number."""

PEERS: dict[str, Any] = {
    **{f"{k}-Nearest Neighbor": KNeighborsClassifier(k) for k in range(1, 6)},
    "Classification Tree": DecisionTreeClassifier(random_state=SEED),
    "SVM with linear kernel": SVC(kernel="linear"),
    **{
        f"SVM with polynomial kernel, grade ={grade}": SVC(kernel="poly", degree=grade, coef0=1.0)
        for grade in range(2, 6)
    },
    "SVM with radial basis function kernel": SVC(),
}
"""Table 3's methods as scikit-learn has them, with its defaults."""

_HERE = {"credit": "crx", "wdbc": "wisconsin"}


def main(numbers: list[int], seconds: float, docs: Path = DOCS, *, again: bool = False) -> None:
    """Measure what is missing and write the document; arguments as `study_results` says.

    Numbers are those of figures, of `CASES`, and the seconds are those of each front.
    """
    path = docs / "results" / FILE
    for number in numbers:
        case = CASES[number]
        if not at_hand(_HERE.get(case.name, case.name)):
            print(f"{case.name}: left out, not in {FOLDER}", flush=True)
            continue
        results = load(path)
        has = results.get("figures", {}).get(str(number), {}).get("settings")
        if again or has != {"seconds": seconds, "seed": SEED}:
            path.parent.mkdir(parents=True, exist_ok=True)
            found, model = measure(case, seconds)
            figure = model.plot_front()
            accuracy = figure.axes[1]
            held_out = [point["held out"] for point in found["points"]]
            accuracy.plot(model.front_.costs, held_out, marker=".", label="held out")
            accuracy.legend(frameon=False, loc="lower right")
            figure.savefig(path.with_name(f"pareto_figure_{number}.svg"), metadata={"Date": None})
            results.setdefault("figures", {})[str(number)] = found
            print(f"figure {number}, {case.name}: {found['status']}", flush=True)
        if case.name not in results.setdefault("peers", {}):
            results["peers"][case.name] = peers(case.name)
        save(path, COMMAND, results)
    print(f"wrote {write_document(docs)}")


def measure(case: Case, seconds: float) -> tuple[dict[str, Any], ParetoSVC]:
    """The front of a figure, and the accuracies of its points on the rows held out."""
    X, positive, columns = rows_of(case.name)
    training, held_out = split(len(X))
    options: dict[str, Any] = {"costs": np.random.default_rng(SEED).uniform(size=len(columns))}
    if case.costs != "random":
        options = turneys_costs(case.name)
    table = pd.DataFrame(X, columns=columns)
    model = ParetoSVC(case.degree, time_limit=seconds, **options)
    started, load_before = time.perf_counter(), os.getloadavg()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status says so
        model.fit(table.iloc[training], positive[training])
    front = model.front_
    tested = model.accuracies(table.iloc[held_out], positive[held_out])
    found = {
        "settings": {"seconds": seconds, "seed": SEED},
        "name": case.name,
        "degree": case.degree,
        "costs": case.costs,
        "rows": [len(training), len(held_out)],
        "columns": list(columns),
        "nu": model.nu_,
        "status": front.status,
        "programs": front.n_programs,
        "seconds": round(front.seconds, 1),
        "fit, s": round(time.perf_counter() - started, 1),
        "load": round(load_before, 1),
        "points": [
            {
                "cost": point.cost,
                "margin": point.margin,
                "bound": point.bound,
                "columns": [columns[j] for j in point.features],
                "supported": point.supported,
                "training": point.training_accuracy,
                "cross-validated": point.cv_accuracy,
                "held out": float(accuracy),
            }
            for point, accuracy in zip(front.points, tested, strict=True)
        ],
    }
    return found, model


def peers(name: str) -> dict[str, float]:
    """Share of the rows held out that table 3's methods get right."""
    X, positive, _ = rows_of(name)
    training, held_out = split(len(X))
    return {
        title: float(
            make_pipeline(StandardScaler(), method)
            .fit(X[training], positive[training])
            .score(X[held_out], positive[held_out])
        )
        for title, method in PEERS.items()
    }


def rows_of(name: str) -> tuple[Floats, Bools, tuple[str, ...]]:
    """A data set as the paper has it; of credit the numbers, and the rows that have them all."""
    if name != "credit":
        data = dataset(_HERE.get(name, name))
        return data.X, data.y, data.columns
    source = CATALOG["crx"]
    paths = present(source, places(FOLDER))
    if paths is None:
        raise SystemExit(f"crx is not in {FOLDER}.")
    table = pd.read_csv(paths[0], names=list(source.columns), na_values="?")
    table = table.dropna(subset=list(CREDIT_NUMBERS))
    numbers = table[list(CREDIT_NUMBERS)].to_numpy(dtype=np.float64)
    return numbers, (table["class"] == "+").to_numpy(), CREDIT_NUMBERS


def split(n: int) -> tuple[Indices, Indices]:
    """Two thirds of the rows at random, and the others."""
    order = np.random.default_rng(SEED).permutation(n)
    return order[: 2 * n // 3], order[2 * n // 3 :]


def turneys_costs(name: str) -> dict[str, Any]:
    """Options of `ParetoSVC` from a data set's measurement_costs.csv.

    Where a test costs less once another of its group is made, the difference is paid once.
    """
    table = pd.read_csv(FOLDER / name / "measurement_costs.csv").set_index("feature")
    own = table["cost"].to_dict()
    if "cost_in_group" not in table or table["cost_in_group"].isna().all():
        return {"costs": own}
    grouped = table.dropna(subset=["cost_in_group"])
    saved = (grouped["cost"] - grouped["cost_in_group"]).round(2)
    if saved.nunique() != 1:
        raise SystemExit(f"The group of {name} saves {saved.tolist()}, which is not one price.")
    own |= grouped["cost_in_group"].to_dict()
    return {"costs": own, "shared_costs": [(list(grouped.index), float(saved.iloc[0]))]}


def write_document(docs: Path = DOCS) -> Path:
    """Render docs/pareto.md from the results; nothing is measured here."""
    results = load(docs / "results" / FILE)
    return documents.write(
        docs / "pareto.md",
        "docs/studies/pareto/study.md.jinja",
        results=results,
        cases=CASES,
        front=_front,
        table_3=_table_3(results),
    )


def _front(found: dict[str, Any]) -> str:
    """A row for each point of a front; how far bounds are, where not every point is proven."""
    proven = found["status"] == "optimal"
    lines = []
    for point in found["points"]:
        line = [f"{point['cost']:.2f}"]
        line.append(f"{point['margin']:.4f}" + ("" if point["supported"] else " ○"))
        if not proven:
            line.append(f"{max(point['bound'] - point['margin'], 0.0):.0e}")
        rates = (f"{100 * point[r]:.1f}" for r in ("training", "cross-validated", "held out"))
        lines.append([*line, *rates, ", ".join(point["columns"]) or "none"])
    header = ["cost", "margin", *([] if proven else ["bound − margin"]), "training, %"]
    return markdown([*header, "cross-validated, %", "held out, %", "columns"], lines)


def _table_3(results: dict[str, Any]) -> str:
    """Printed and measured accuracies of the peers, and those of the fronts."""
    names = list(TABLE_3)
    measured = results.get("peers", {})
    lines = []
    for place, title in enumerate(PEERS):
        line = [title]
        for name in names:
            here = measured.get(name, {}).get(title)
            line += [f"{TABLE_3[name][place]:.2f}", "…" if here is None else f"{100 * here:.2f}"]
        lines.append(line)
    line = ["**largest margin** (figure)"]
    for name in names:
        found = (
            (number, max(each["points"], key=lambda point: point["margin"]))
            for number, each in results.get("figures", {}).items()
            if each["name"] == name
        )
        best = (f"**{100 * point['held out']:.2f}** ({number})" for number, point in found)
        line += ["", ", ".join(best)]
    lines.append(line)
    return markdown(
        ["", *(f"{name}, {what}" for name in names for what in ("paper", "here"))], lines
    )


if __name__ == "__main__":
    parser = docs_options(__doc__, CASES, "FIGURE")
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    main(given.names, given.seconds, given.docs, again=given.again)
