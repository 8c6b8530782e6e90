"""Ugly cells mean the same to `predict`, `score` and `serve`: one matrix, one set of bad rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from bootprob.batch_scoring import ScoringOptions, Tally
from bootprob.batch_scoring.row_scoring import RowScorer
from bootprob.encoding.preprocessing import TablePreprocessor
from bootprob.exceptions import DataError
from bootprob.server.columns import Columns
from bootprob.server.errors import RequestError
from bootprob.server.records import RecordForm
from bootprob.server.served_model import ServedModel
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

NUMBERS = [None, -0.0, 7, 2.5, 1e99, -1e140, 1e149, 1.5e150, -1e300]
TEXTS = [None, "", "  ", "A11", " A14 ", "boat", "nan", "01", "1", "true", " FALSE "]
PLAIN = [1, 0, 2.0, 2.5, True, False]  # of categories, beside text


@pytest.fixture(scope="module")
def model() -> TableModel:
    return TableModel.fit(
        credit_table(120), "risk", "bad", kernel="linear", n_bootstraps=10, random_state=0
    )


def _records(rng: np.random.Generator, model: TableModel, n: int) -> list[dict[str, Any]]:
    """Honest rows in which every fifth cell is an ugly one."""
    table = credit_table(n, seed=int(rng.integers(2**31))).drop(columns="risk")
    records = table.astype(object).where(table.notna(), None).to_dict(orient="records")
    for record in records:
        for name, kind in model.preprocessor.kinds_.items():
            pool = NUMBERS if kind == "number" else TEXTS + PLAIN
            if rng.random() < (0.05 if kind == "number" else 0.2):
                record[name] = pool[rng.integers(len(pool))]
    return records


def _predicted(model: TableModel, frame: pd.DataFrame) -> np.ndarray | None:
    """The matrix as `bootprob predict` makes it, None if it refuses the rows."""
    try:
        X = model.preprocessor.transform(frame)
        model.svc.predict_proba(X)
    except DataError:
        return None
    return X


def _served(served: ServedModel, form: RecordForm, records: list[Any]) -> np.ndarray | None:
    """The matrix as a request makes it, None if it is refused."""
    try:
        _, values = form.read({"records": records})
        X = served.columns.encoder.encode(values, len(records)).X
        served.check(X)
    except (RequestError, DataError):
        return None
    return X


def _as_arrow(value: Any) -> Any:
    """A column of Arrow has one type: categories come as text there."""
    return value if value is None or isinstance(value, str) else str(value)


def test_all_three_ways_are_one(model: TableModel, rng: np.random.Generator) -> None:
    kinds = model.preprocessor.kinds_
    served = ServedModel(model, "m", "1")
    form = RecordForm(Columns.of(model), 100)
    records = _records(rng, model, 80)
    frame = pd.DataFrame(records, dtype=object)
    numbers = [name for name, kind in kinds.items() if kind == "number"]
    predicted = [_predicted(model, frame.iloc[[row]]) for row in range(len(frame))]
    refused = np.array([X is None for X in predicted])
    assert 0 < refused.sum() < 60
    # serve: row by row, and those that are not refused together
    for row, record in enumerate(records):
        X = _served(served, form, [record])
        assert (X is None) == refused[row]
        if X is not None:
            np.testing.assert_array_equal(X, predicted[row])
    good = frame[~refused]
    expected = np.concatenate([X for X in predicted if X is not None])
    kept = [record for record, is_bad in zip(records, refused, strict=True) if not is_bad]
    np.testing.assert_array_equal(_served(served, form, kept), expected)
    # predict: neighbours do not change what a row means
    np.testing.assert_array_equal(model.preprocessor.transform(good), expected)
    # score: all rows, the bad ones marked
    texts = frame.apply(
        lambda column: column.map(_as_arrow) if column.name not in numbers else column
    )
    batch = pa.RecordBatch.from_pandas(texts.astype(dict.fromkeys(numbers, float)))
    tally = Tally()
    scorer = RowScorer(model, ScoringOptions(bad_rows="null"), batch.schema)
    prepared = scorer.prepare(batch, tally, file=None, first=0)
    marked = prepared.bad_rows
    assert marked is not None
    np.testing.assert_array_equal(marked, refused)
    plain = frame[~refused].map(_as_arrow)
    plain[numbers] = frame.loc[~refused, numbers]
    np.testing.assert_array_equal(prepared.X[~marked], model.preprocessor.transform(plain))


@pytest.mark.parametrize("order", [[True, 1, "x"], [1, True, "x"], ["x", 1.0, True]])
def test_true_is_not_one_in_a_column_of_codes(order: list[object]) -> None:
    codes = pd.DataFrame({"code": ["1", "1", "True", "True"], "y": [0, 1, 0, 1]})
    encoder = TablePreprocessor().fit(codes).encoder_
    column = pd.Series(order, dtype=object)
    expected = {"1": [1, 0], "1.0": [1, 0], "True": [0, 1], "x": [0, 0]}
    found = encoder.encode({"code": column, "y": [0.0] * 3}, 3).X
    assert found[:, 1:].tolist() == [expected[str(value)] for value in order]
    as_json = encoder.encode({"code": list(order), "y": [0.0] * 3}, 3).X
    np.testing.assert_array_equal(as_json, found)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_scikit_learn_makes(seed: int) -> None:
    table = credit_table(90, seed=seed, missing=0.3).drop(columns="risk")
    numbers = ["months", "amount", "persons"]
    categories = ["status", "purpose", "foreign", "branch"]
    texts = table.astype(dict.fromkeys(categories, object))
    texts["foreign"] = texts["foreign"].map(str)
    texts[categories] = texts[categories].where(texts[categories].notna(), np.nan)
    modes = SimpleImputer(strategy="most_frequent")
    peer = make_column_transformer(
        (SimpleImputer(strategy="median"), numbers),
        (
            make_pipeline(modes, OneHotEncoder(handle_unknown="ignore", sparse_output=False)),
            categories,
        ),
    ).fit(texts[:60])
    ours = TablePreprocessor().fit(table[:60])
    assert ours.transform(table).tobytes() == peer.transform(texts).tobytes()
