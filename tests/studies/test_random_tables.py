"""Tables that were drawn: what is drawn and how it is encoded; the page shows what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from docs.studies.calibration.random_tables import PAGE, RESULTS, drawn_tables, tables_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    n = 200
    table = pd.DataFrame(
        {
            "size": np.where(np.arange(n) == 7, np.nan, np.arange(n, dtype=float)),
            "color": rng.choice(["red", "green", "blue"], n),
            "who": [f"person {each}" for each in range(n)],
            "sick": np.where(np.arange(n) % 4 == 0, "yes", "no"),
            "rare": np.arange(n) == 3,
        }
    )
    tables = {
        "one": table,
        "again": table,
        "short": table.iloc[:100],
        "without": table.drop(columns="sick").assign(more=1.5),
    }
    (tmp_path / "csv" / "pkg").mkdir(parents=True)
    for name, each in tables.items():
        each.to_csv(tmp_path / "csv" / "pkg" / f"{name}.csv", index_label="rownames")
    index = [("pkg", name, len(each), each.shape[1], 2) for name, each in tables.items()]
    index.append(("pkg", "not there", 200, 5, 2))
    names = ["Package", "Item", "Rows", "Cols", "n_binary"]
    pd.DataFrame(index, columns=names).to_csv(tmp_path / "datasets.csv", index=False)
    return tmp_path


def test_what_is_drawn(folder: Path) -> None:
    ((name, (X, positive)),) = drawn_tables(folder, 1000, 0)
    assert name in ("pkg one: sick", "pkg again: sick")
    assert X.shape == (200, 1 + 1 + 3 + 1)  # sizes, the gap, colors, whether rare
    assert positive.sum() in (50, 150)
    assert X[7, 0] == np.median(np.delete(np.arange(200), 7))
    assert X[:, 1].nonzero()[0].tolist() == [7]
    ((_, (fewer, of_fewer)),) = drawn_tables(folder, 120, 0)
    assert len(fewer) == len(of_fewer) == 120


def test_the_page_shows_what_was_measured() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert len(results["tables"]) == 60
    for table in tables_of(results).values():
        assert table in page
