"""Write golden model files of this release, which every later one must load.

    python tests/golden/add.py

At each release: run it, and commit the files. They are called by the protocol and the version, an
existing one is never replaced, and `tests/persistence/test_model_files.py` compares what they
predict with the numbers written here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bootprob import BootstrapSVC, __version__
from bootprob.persistence.save_load import PROTOCOL, save
from bootprob.tables.model import TableModel
from linear_models import linear

HERE = Path(__file__).parent


def table(n: int) -> pd.DataFrame:
    """Numbers, text and gaps."""
    rng = np.random.default_rng(7)
    months, kind = rng.integers(4, 72, n).astype(float), rng.choice(["new", "used", "old"], n)
    frame = pd.DataFrame({"months": months, "kind": kind, "foreign": rng.random(n) < 0.3})
    frame["risk"] = np.where(months + 20 * (kind == "old") + rng.normal(size=n) * 15 > 40, "b", "g")
    frame.loc[::9, "months"] = np.nan
    return frame


def models() -> dict[str, tuple[BootstrapSVC | TableModel, Any]]:
    """Fitted models, each with rows to predict."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(24, 3))
    y = (X[:, 0] + rng.normal(size=24) > 0).astype(int)
    three = np.array(["pear", "apple", "fig"])[y + (X[:, 1] > 0.4)]
    quick: dict[str, Any] = {"n_bootstraps": 6, "C": [0.25, 1.0], "random_state": 0}
    rbf = BootstrapSVC(**quick, kernel="rbf", gamma=[0.1, 0.5], calibration="isotonic")
    return {
        "table": (
            TableModel.fit(table(40), "risk", "b", kernel="linear", **quick),
            table(6).drop(columns="risk"),
        ),
        "auto": (BootstrapSVC(n_bootstraps=6, effort="low", random_state=0).fit(X, y), X[:6]),
        "rbf": (rbf.fit(X, y), X[:6]),
        "three-classes": (linear(**quick).fit(X, three), X[:6]),
    }


def main() -> None:
    """Write the files that are missing."""
    for name, (model, rows) in models().items():
        path = HERE / f"{PROTOCOL}-{__version__}-{name}.model"
        if path.exists():
            continue
        if isinstance(model, TableModel):
            asked = {"table": json.loads(rows.to_json(orient="columns"))}
            p = model.predict(rows)["probability"].tolist()
        else:
            asked, p = {"rows": rows.tolist()}, model.predict_proba(rows).tolist()
        save(model, path)
        expected = json.dumps(asked | {"probability": p}, indent=1)
        path.with_suffix(".json").write_text(f"{expected}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
