"""What is doubtful of a model of a table is told by the names of its columns."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.special import expit
from typer.testing import CliRunner

from bootprob import BootstrapSVC, LackOfFitWarning
from bootprob.batch_scoring import score_batches
from bootprob.cli.__main__ import app
from bootprob.persistence.save_load import save
from bootprob.tables import TableModel

QUICK = {"kernel": "linear", "C": 1.0, "n_bootstraps": 20, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    """The slope of income changes with the house: no linear kernel follows."""
    rng = np.random.default_rng(0)
    income, house = rng.normal(size=600), rng.choice(["own", "rent"], 600)
    slope = np.where(house == "own", 3, -3)
    risk = np.where(rng.uniform(size=600) < expit(slope * income), "bad", "good")
    return pd.DataFrame({"age": rng.normal(size=600), "income": income, "house": house}).assign(
        risk=risk
    )


@pytest.fixture(scope="module")
def model(table):
    return TableModel.fit(table, "risk", "bad", **QUICK)


def test_features_of_text_have_the_names_of_the_preprocessor(model, table):
    columns = r"'(income' and 'house=\w+|house=\w+' and 'income)' interact"
    with pytest.warns(LackOfFitWarning, match=columns):
        model.predict(table[:3])
    with pytest.warns(LackOfFitWarning, match=columns):
        list(score_batches(model, [pa.RecordBatch.from_pandas(table[:3])]))


def test_plain_numbers_have_the_names_of_the_table(table):
    X = table[["age", "income"]].assign(rents=table["house"].eq("rent").astype(float))
    svc = BootstrapSVC(**QUICK).fit(X.to_numpy(), table["risk"].eq("bad"))
    with pytest.warns(LackOfFitWarning, match=r"X\[:, 1\]"):
        svc.proba_interval(X.to_numpy()[:3])
    with pytest.warns(LackOfFitWarning, match="'(income' and 'rents|rents' and 'income)' interact"):
        TableModel.of(svc, list(X.columns)).predict(X[:3])


@pytest.mark.parametrize("command", ["predict", "score"])
@pytest.mark.filterwarnings("default::bootprob.LackOfFitWarning")
def test_commands_name_the_columns(command, model, table, tmp_path):
    save(model, tmp_path / "m.model")
    table[:5].to_csv(tmp_path / "new.csv", index=False)
    given = [command, tmp_path / "m.model", tmp_path / "new.csv", "-o", tmp_path / "out.csv"]
    found = CliRunner().invoke(app, list(map(str, given)))
    assert found.exit_code == 0
    said = " ".join(found.output.split())
    assert "interact" in said
    assert "'income'" in said
