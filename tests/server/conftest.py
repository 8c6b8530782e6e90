"""Models to serve, and applications around them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sklearn.datasets import load_iris

from bootprob import BootstrapSVC
from bootprob.server import create_app
from bootprob.tables.model import TableModel
from mixed_tables import credit_table


@pytest.fixture(scope="session")
def table_model() -> TableModel:
    """Numbers, text, yes/no and a code; two classes that are called good and bad."""
    return TableModel.fit(
        credit_table(120), "risk", "bad", kernel="rbf", C=1.0, n_bootstraps=15, random_state=0
    )


@pytest.fixture(scope="session")
def array_model() -> BootstrapSVC:
    """Three unnamed columns; the classes are integers."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + rng.normal(size=80) > 0, 7, 2)
    return BootstrapSVC(kernel="linear", n_bootstraps=15, random_state=0).fit(X, y)


@pytest.fixture(scope="session")
def iris_model() -> BootstrapSVC:
    """Three classes, named columns."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    return BootstrapSVC(kernel="linear", n_bootstraps=10, C=[0.1, 1], random_state=0).fit(X, y)


@pytest.fixture
def client(table_model: TableModel) -> Iterator[TestClient]:
    with TestClient(create_app(table_model)) as client:
        yield client


@pytest.fixture
def array_client(array_model: BootstrapSVC) -> Iterator[TestClient]:
    with TestClient(create_app(array_model)) as client:
        yield client
