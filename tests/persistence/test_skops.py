"""skops stores estimators, and asks for the types that docs/model_files.md names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bootprob import (
    BootstrapClassifier,
    BootstrapSVC,
    ConstrainedSVC,
    ConvexConstrainedSVC,
    CostSensitiveClassifier,
)

skops = pytest.importorskip("skops.io")

PAGE = (Path(__file__).parents[2] / "docs" / "model_files.md").read_text(encoding="utf-8")
QUICK: dict[str, Any] = {"n_bootstraps": 8, "C": [0.25, 1.0], "random_state": 0}
LINEAR = QUICK | {"kernel": "linear"}
SVC = "BootstrapSVC"
FRAME = "BootstrapSVC, fitted on a data frame"


def said() -> dict[str, list[str]]:
    """What the page says is to be trusted, for each model."""
    (table,) = re.findall(r"<!-- trusted -->\n(.*?)<!-- end -->", PAGE, flags=re.DOTALL)
    rows = (line.split("|")[1:3] for line in table.strip().splitlines()[2:])
    return {name.strip().replace("`", ""): re.findall(r"`(.+?)`", types) for name, types in rows}


def models(rng: np.random.Generator) -> dict[str, tuple[str, Any, Any, np.ndarray]]:
    """Under a name: which row of the page it is of, an estimator, rows, labels."""
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    text = np.array(["u", "v", "w"])[np.arange(60) % 3]
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=text, known=X[:, 0] > 0)
    frame.loc[::7, "a"] = np.nan
    three = np.array(["fig", "pear", "plum"])[y + (X[:, 1] > 0)]
    default = BootstrapSVC(n_bootstraps=8, effort="low", random_state=0)
    any_one = BootstrapClassifier(LogisticRegression(), n_bootstraps=8, random_state=0)
    return {
        "default": (SVC, default, X, y),
        "linear": (SVC, BootstrapSVC(**LINEAR), X, y),
        "votes": (SVC, BootstrapSVC(**LINEAR, calibration=None), X, y),
        "isotonic": (SVC, BootstrapSVC(**LINEAR, calibration="isotonic"), X, y),
        "rbf": (SVC, BootstrapSVC(**QUICK, kernel="rbf"), X, y),
        "three classes": (SVC, BootstrapSVC(**LINEAR), X, three),
        "rates": (SVC, BootstrapSVC(**LINEAR, control="threshold", rates={"tpr": 0.7}), X, y),
        "pipeline": (SVC, make_pipeline(StandardScaler(), BootstrapSVC(**LINEAR)), X, y),
        "frame": (FRAME, BootstrapSVC(**LINEAR), frame, y),
        "logistic regression": ("BootstrapClassifier", any_one, X, y),
        "costs": ("CostSensitiveClassifier", CostSensitiveClassifier(LogisticRegression()), X, y),
        "constrained": ("ConstrainedSVC, linear", ConstrainedSVC(), X, y),
        "convex": ("ConvexConstrainedSVC", ConvexConstrainedSVC(), X, y),
    }


NAMES = list(models(np.random.default_rng(0)))


@pytest.mark.parametrize("name", NAMES)
def test_it_asks_for_what_the_page_names(name: str, rng: np.random.Generator) -> None:
    row, model, X, y = models(rng)[name]
    stored = skops.dumps(model.fit(X, y))
    trusted = said()[row]
    assert skops.get_untrusted_types(data=stored) == trusted
    loaded = skops.loads(stored, trusted=trusted)
    for method in ("predict_proba", "decision_function", "predict", "proba_interval"):
        if hasattr(model, method) and name not in ("votes", "pipeline"):
            found = getattr(loaded, method)(X)
            np.testing.assert_array_equal(found, getattr(model, method)(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_every_row_of_the_page_is_tried(rng: np.random.Generator) -> None:
    assert {row for row, *_ in models(rng).values()} == said().keys()


def test_tensors_are_not_stored(rng: np.random.Generator) -> None:
    _, _, X, y = models(rng)["constrained"]
    with pytest.raises(RuntimeError, match="TensorBase"):
        skops.dumps(ConstrainedSVC(kernel="rbf").fit(X, y))
