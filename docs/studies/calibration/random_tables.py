"""The default beside other classifiers on tables that were drawn, not picked.

    OMP_NUM_THREADS=1 python -m docs.studies.calibration.random_tables FOLDER
        [--tables 60] [--rows 1000] [--seed 0] [--jobs 2] [--again]

FOLDER is a copy of github.com/vincentarelbundock/Rdatasets: `datasets.csv` and `csv/`. Tables are
taken in random order; the label is one of a table's columns of two values, drawn too, so that what
it depends on, if on anything, is as it comes. Writes docs/results/random_tables.json, table after
table, and the tables of docs/random_tables.md. A run that was ended goes on where it was.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from bootprob.runtime.arrays import Bools, Floats
from docs.studies.calibration.classifier_results import Beside, ratio
from docs.studies.calibration.classifiers import CLASSIFIERS, check_set_up, measure
from docs.studies.calibration.losses import summarise
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import load, save
from gpu.benchmarks.common.tables import figures, in_place, markdown

__all__ = [
    "COMPARED",
    "PAGE",
    "RESULTS",
    "Drawn",
    "command_line",
    "drawn_tables",
    "main",
    "measured_tables",
    "tables_of",
    "write_tables",
]

RESULTS = DOCS / "results" / "random_tables.json"
PAGE = DOCS / "random_tables.md"
_COMMAND = "python -m docs.studies.calibration.random_tables"

OURS = "BootstrapSVC"
PEERS = ("LightGBM, small steps", "CatBoost, small steps", "random forest", "logistic regression")
COMPARED = (OURS, *PEERS)

FOLDS = 3
ROWS, COLUMNS = (150, 20_000), (4, 60)
OF_A_CLASS = 20  # rows, of those that count
KNOWN = 0.8  # of the rows have a label
LEVELS = 12  # of text; a column of more is a name or a remark
WIDEST = 80  # columns as the classifiers see them

Drawn = tuple[Floats, Bools]


def drawn_tables(folder: Path, most_rows: int, seed: int) -> Iterator[tuple[str, Drawn]]:
    """Tables in random order: package, name and label; rows (n, p) and whether they are positive.

    Parameters
    ----------
    folder : Path
    most_rows : int
        Of a larger table so many are drawn.
    seed : int
    """
    index = pd.read_csv(folder / "datasets.csv")
    fits = index["Rows"].between(*ROWS) & index["Cols"].between(*COLUMNS) & (index["n_binary"] > 0)
    random, seen = np.random.default_rng(seed), set()
    for at in random.permutation(np.flatnonzero(fits)):
        package, item = index.loc[at, ["Package", "Item"]]
        path = folder / "csv" / package / f"{item}.csv"
        if not path.exists():  # the index has some more, one of several of a file among them
            continue
        table = pd.read_csv(path, low_memory=False)
        table = table.drop(columns="rownames", errors="ignore")
        same = len(table), *sorted(table.columns)[:3]  # tables are in several packages
        if same in seen:
            continue
        seen.add(same)
        labels = [name for name in table if _may_be_label(table[name])]
        if labels:
            label = labels[random.integers(len(labels))]
            found = _encoded(table[table[label].notna()], label, most_rows, random)
            if found is not None:
                yield f"{package} {item}: {label}", found


def _may_be_label(column: pd.Series[Any]) -> bool:
    counts = column.value_counts()
    return len(counts) == 2 and counts.min() >= OF_A_CLASS and column.notna().mean() > KNOWN


def _encoded(
    table: pd.DataFrame, label: str, most_rows: int, random: np.random.Generator
) -> Drawn | None:
    """Numbers, with the median for gaps and a column that tells them, and levels of text."""
    if len(table) > most_rows:
        table = table.iloc[random.permutation(len(table))[:most_rows]]
    positive = (table[label] == table[label].iloc[0]).to_numpy()
    columns = table.drop(columns=label).replace([np.inf, -np.inf], np.nan)
    text = columns.select_dtypes(exclude="number").columns
    columns = columns.drop(columns=[c for c in text if columns[c].nunique() > LEVELS])
    columns[columns.columns.intersection(text)] = columns.select_dtypes(exclude="number").astype(
        str
    )
    gaps = SimpleImputer(strategy="median", add_indicator=True)
    levels = OneHotEncoder(drop="if_binary", sparse_output=False)
    encoder = make_pipeline(
        ColumnTransformer(
            [
                ("numbers", gaps, make_column_selector(dtype_include="number")),
                ("levels", levels, make_column_selector(dtype_exclude="number")),
            ]
        ),
        VarianceThreshold(),
    )
    if columns.shape[1] < 2 or min(positive.sum(), (~positive).sum()) < OF_A_CLASS:
        return None
    X = encoder.fit_transform(columns)
    return (X, positive) if 2 <= X.shape[1] <= WIDEST else None


def main(given: argparse.Namespace) -> None:
    """Measure what is missing and write the page, by a `command_line`."""
    check_set_up(COMPARED)
    settings = {"rows": given.rows, "seed": given.seed, "folds": FOLDS}
    drawn = drawn_tables(given.folder, given.rows, given.seed)
    results = measured_tables(RESULTS, _COMMAND, settings, drawn, _measured, given)
    write_tables(PAGE, tables_of(results))


def measured_tables(
    path: Path,
    command: str,
    settings: Mapping[str, Any],
    drawn: Iterator[tuple[str, Drawn]],
    measure: Callable[[Floats, Bools, int], dict[str, Any]],
    given: argparse.Namespace,
) -> dict[str, Any]:
    """Results of the first tables drawn; what the file has with other settings is forgotten.

    Parameters
    ----------
    path : Path
        Of the results, which are saved table after table.
    command : str
    settings : mapping
    drawn : iterator
        As of `drawn_tables`.
    measure : callable
        Of rows, whether they are positive, and a seed.
    given : Namespace
        As of `command_line`.
    """
    results = load(path)
    if given.again or results.get("settings") != settings:
        results = {"settings": settings, "tables": {}}
    tables = dict(islice(drawn, given.tables))
    missing = [name for name in tables if name not in results["tables"]]
    calls = (joblib.delayed(measure)(*tables[name], given.seed) for name in missing)
    measured = joblib.Parallel(n_jobs=given.jobs, return_as="generator")(calls)
    for name, found in zip(missing, measured, strict=True):
        results["tables"][name] = found
        save(path, command, results)
        print(name, flush=True)
    results["tables"] = {name: results["tables"][name] for name in tables}
    save(path, command, results)
    return results


def write_tables(page: Path, tables: Mapping[str, str]) -> None:
    """Put tables in their places on a page."""
    text = page.read_text(encoding="utf-8")
    for part, table in tables.items():
        text = in_place(text, f"<!-- {part} -->\n", f"<!-- end of {part} -->", f"\n{table}\n\n")
    page.write_text(text, encoding="utf-8")


def _measured(X: Floats, positive: Bools, seed: int) -> dict[str, Any]:
    """What `Beside` needs to know of a table."""
    folds, seconds = [], dict.fromkeys(COMPARED, 0.0)
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    for training, held_out in splitter.split(X, positive):
        by: dict[str, Floats] = {}
        for name in COMPARED:
            found = measure(name, X[training], positive[training], X[held_out], seed=seed)
            by |= {key[2:]: found[key] for key in found if key.startswith("p ")}
            seconds[name] += found[f"fit {name}"] / FOLDS
        folds.append((by, positive[held_out]))
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "positive": int(positive.sum()),
        "kept": summarise(folds, [(OURS, other) for other in folds[0][0] if other != OURS]),
        "seconds of a fit": {name: round(each, 3) for name, each in seconds.items()},
    }


def tables_of(results: Mapping[str, Any]) -> dict[str, str]:
    """The tables of the page by the name of their places."""
    classifiers = dict.fromkeys(COMPARED)
    besides = [
        Beside(name, each["rows"], each["columns"], each["kept"], {}, classifiers)
        for name, each in results["tables"].items()
    ]
    methods = [m for name in PEERS for m in CLASSIFIERS[name].methods(name)]
    seconds = {
        name: median(each["seconds of a fit"][name] for each in results["tables"].values())
        for name in COMPARED
    }
    lines = []
    for peer in (*methods, None):
        found = {loss: ratio(besides, loss, OURS, peer) for loss in ("log-loss", "Brier score")}
        log, brier = found["log-loss"], found["Brier score"]
        assert log is not None
        assert brier is not None
        lines.append(
            [
                peer or "the best of them on each table, picked afterwards",
                f"{log.mean[0]:.3f} ({log.mean[1]:.3f} to {log.mean[2]:.3f})",
                " / ".join(map(str, log.counts)),
                f"{log.worst:.2f}",
                f"{brier.mean[0]:.3f} ({brier.mean[1]:.3f} to {brier.mean[2]:.3f})",
                figures(seconds[peer], 2) if peer in seconds else "",
            ]
        )
    header = ["beside", "log-loss", "better / even / worse", "worst", "Brier score"]
    header.append(f"seconds of a fit (median; ours {figures(seconds[OURS], 2)})")
    best = {each.name: each.best_peer("log-loss") for each in besides}
    by = sorted(besides, key=lambda each: -each.ratio("log-loss", OURS, best[each.name]))
    worst = [
        [
            each.name,
            f"{each.rows} × {each.columns}",
            f"{each.mean('log-loss', OURS):.4f}",
            f"{each.mean('log-loss', best[each.name]):.4f}, {best[each.name]}",
            f"{each.ratio('log-loss', OURS, best[each.name]):.2f}",
        ]
        for each in by[:10]
    ]
    return {
        "peers": markdown(header, lines),
        "worst": markdown(["table: label", "", OURS, "best", "ratio"], worst),
    }


def command_line(what: str | None, tables: int, seed: int) -> argparse.Namespace:
    """What a study of drawn tables was given, with these defaults."""
    parser = argparse.ArgumentParser(
        description=what, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", type=int, default=tables)
    parser.add_argument("--rows", type=int, default=1000, help="of a larger table")
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    return parser.parse_args()


if __name__ == "__main__":
    main(command_line(__doc__, tables=60, seed=0))
