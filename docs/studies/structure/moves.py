"""Files entered, and moves between them, by eight pieces of work.

    python -m docs.studies.structure.moves [--list] [NAME ...]

Each is done once before it is counted, so that neither imports nor compilation are in the numbers.
Prints a table in Markdown; docs/architecture.md has one.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_iris
from starlette.testclient import TestClient
from typer.testing import CliRunner

from bootprob import BootstrapSVC, load
from bootprob.cli.__main__ import app
from bootprob.server import create_app
from docs.studies.structure.way import followed

__all__ = ["pieces_of_work"]

Work = tuple[str, Callable[[], Any]]


def pieces_of_work(folder: Path) -> Iterator[Work]:
    """Names and functions; `folder` is for tables, models and reports."""
    X, y = (part[::4] for part in load_breast_cancer(return_X_y=True))
    settings: dict[str, Any] = {
        "kernel": "linear",
        "n_bootstraps": 20,
        "random_state": 0,
        "n_jobs": 1,
    }
    curved = settings | {"kernel": "rbf"}
    yield "fit, linear", lambda: BootstrapSVC(**settings).fit(X, y)
    yield "fit, RBF", lambda: BootstrapSVC(**curved).fit(X, y)
    iris = load_iris(return_X_y=True)
    yield "fit, three classes", lambda: BootstrapSVC(**settings).fit(*iris)
    fitted = BootstrapSVC(**settings).fit(X, y)
    yield "probability and interval", lambda: fitted.summarize(X[:3])
    table = pd.DataFrame(X).add_prefix("x").assign(
        kind=np.where(np.arange(len(y)) % 3 > 0, "a", "b"), target=y
    )  # fmt: skip
    rows, model = folder / "rows.csv", folder / "rows.model"
    table.to_csv(rows, index=False)
    few = ("--target", "target", "--n-bootstraps", 20)
    _command("fit", rows, *few, "-o", model)
    yield "bootprob predict", lambda: _command("predict", model, rows, "-o", folder / "p.csv")
    yield "bootprob score", lambda: _command("score", model, rows, "-o", _new(folder))
    yield "bootprob report", lambda: _command("report", rows, *few, "-o", folder / "r.html")
    with TestClient(create_app(load(model))) as client:
        record = table.drop(columns="target").iloc[0].to_dict()
        yield (
            "a request of one row",
            lambda: client.post("/predict", json={"records": [record]}).raise_for_status(),
        )


def _new(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=folder)) / "scored.parquet"


def _command(*arguments: object) -> None:
    done = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    if done.exit_code:
        raise RuntimeError(done.output)


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="pieces of work; default all")
    parser.add_argument("--list", action="store_true", help="and each move, often made first")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| | files | moves |\n| --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, work in pieces_of_work(Path(folder)):
            if options.names and name not in options.names:
                continue
            work()
            with followed() as way:
                work()
            print(f"| {name} | {len(way.files)} | {way.moves.total()} |", flush=True)
            if options.list:
                for (there, here), times in way.moves.most_common():
                    print(f"    {times:5d}  {there} -> {here}")


if __name__ == "__main__":
    main()
