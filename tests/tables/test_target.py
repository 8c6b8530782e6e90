"""Columns to predict: what is put together, and what is offered where there is none."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bootprob.exceptions import DataError
from bootprob.tables.model import TableModel
from bootprob.tables.target import Target, find_column
from mixed_tables import credit_table


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["age", "Class"], "Did you mean 'Class'?"),
        (["age", "house"], "The columns are: age, house.$"),
        ([f"x{k}" for k in range(54)] + ["y"], r"x11, … \(41 more\), x53, y\.$"),
        (["30.83", "u", "g"], "put a line of names above them"),
        (["A11 6 A34"], "must have commas, semicolons or tabs between them"),
    ],
)
def test_what_is_offered(names, said):
    with pytest.raises(DataError, match=said):
        find_column(pd.DataFrame(columns=names), "class")


@pytest.mark.parametrize(
    ("values", "positive", "together"),
    [
        (["a", "b"], None, []),
        (["a", "a", "b", "c"], None, ["b", "c"]),
        (["a", "a", "b", "c"], "b", ["a", "c"]),
        ([3, 3, 1, 2], 2, ["1", "3"]),
        (["a", "b", "not a"], "a", ["b", "not a"]),
        (["a", "not a"], "a", []),
    ],
)
def test_values_that_one_class_holds(values, positive, together):
    frame = pd.DataFrame({"of": values})
    assert Target.from_table(frame, "of", positive)[0].put_together(frame) == together
    several, _ = Target.from_table(pd.DataFrame({"of": values * 2}), "of", all_classes=True)
    assert several.put_together(frame) == []


def test_whole_numbers_beyond_floats_stay_apart():
    column = np.array([2**53 + 1, 2**53, 7] * 3)
    target, codes = Target.from_table(pd.DataFrame({"y": column}), "y", all_classes=True)
    assert target.labels == (7, 2**53, 2**53 + 1)
    assert np.bincount(codes).tolist() == [3, 3, 3]
    one, y = Target.from_table(pd.DataFrame({"y": column}), "y", str(2**53 + 1))
    assert one.positive == str(2**53 + 1)
    assert y.sum() == 3


def test_tables_of_arrow_are_taken_and_arrays_refused() -> None:
    table = credit_table(60)
    given = {"kernel": "linear", "C": 1.0, "n_bootstraps": 5, "random_state": 0}
    known = TableModel.fit(table, "risk", "bad", **given).predict(table)
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    found = TableModel.fit(arrow, "risk", "bad", **given).predict(table)
    np.testing.assert_allclose(found["probability"], known["probability"], rtol=1e-12)
    with pytest.raises(DataError, match="The table is of the type ndarray; give a data frame"):
        TableModel.fit(table.to_numpy(), "risk", **given)  # type: ignore[arg-type]
