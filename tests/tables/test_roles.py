"""Columns that are no features."""

import numpy as np
import pandas as pd
import pytest

from bootprob.exceptions import DataError
from bootprob.tables.roles import ColumnRoles


def visits() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [30.0, 31.0, 50.0, 51.0],
            "patient": ["a", "a", "b", "b"],
            "copies": [1, 2, 1, 0],
            "visit": [1, 2, 1, 2],
            "relapse": ["no", "no", "yes", "yes"],
        }
    )


def test_roles_are_no_features():
    roles = ColumnRoles(groups="patient", weight="copies", drop=("visit",))
    assert [*roles.features(visits(), "relapse").columns] == ["age"]
    of_rows = roles.of_rows(visits())
    assert of_rows["groups"].tolist() == ["a", "a", "b", "b"]
    assert of_rows["sample_weight"].tolist() == [1, 2, 1, 0]


def test_without_roles_every_column_is_a_feature():
    assert ColumnRoles().features(visits(), "relapse").shape == (4, 4)
    assert ColumnRoles().of_rows(visits()) == {}


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        (ColumnRoles(groups="pateint"), "Did you mean 'patient'?"),
        (ColumnRoles(drop=("none",)), "The table has no column 'none'"),
        (ColumnRoles(groups="patient", drop=("patient",)), "as groups and as drop"),
        (ColumnRoles(time="visit", groups="visit"), "as groups and as time"),
        (ColumnRoles(weight="relapse"), "as target and as weight"),
        (
            ColumnRoles(groups="patient", weight="copies", drop=("visit", "age")),
            "no column beside the target 'relapse', groups 'patient', weight 'copies', "
            "drop 'visit', drop 'age'",
        ),
    ],
)
def test_roles_that_cannot_be(roles, said):
    with pytest.raises(DataError) as error:
        roles.features(visits(), "relapse")
    assert said in str(error.value)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_group_is_named(missing):
    table = visits()
    table.loc[2, "patient"] = missing
    with pytest.raises(DataError, match="'patient' is empty in row 3"):
        ColumnRoles(groups="patient").of_rows(table)


@pytest.mark.parametrize("weight", [-1, np.nan])
def test_an_unusable_weight_is_named(weight):
    table = visits()
    table["copies"] = [1.0, weight, 1.0, 1.0]
    with pytest.raises(DataError, match="'copies' holds no number from 0 on in row 2"):
        ColumnRoles(weight="copies").of_rows(table)


def test_weights_of_text_are_told_what_they_are_for():
    table = visits().assign(copies=["2", "a", "1", "1"])
    words = r"'copies' is given as weight \(--weight\), which .* 'a' is not a number \(row 2\)"
    with pytest.raises(DataError, match=words):
        ColumnRoles(weight="copies").of_rows(table)


def test_a_column_of_time_is_read_and_no_feature():
    table = visits().assign(day=["2026-01-02", "2026-01-01", "2026-01-02", "2026-01-03"])
    roles = ColumnRoles(time="day", drop=("patient",))
    assert [*roles.features(table, "relapse").columns] == ["age", "copies", "visit"]
    assert roles.of_rows(table)["time"].tolist() == table["day"].tolist()


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("relapse", "The column of time 'relapse' holds 'no' in row 1, which is no date"),
        ("gap", "The column of time 'gap' is missing in 1 of 4 rows, the first of them row 3"),
        ("same", "The column of time 'same' is the same for all rows"),
    ],
)
def test_a_column_that_is_no_time_is_named(column, said):
    table = visits().assign(gap=[1.0, 2.0, None, 3.0], same="2026-01-01")
    with pytest.raises(DataError) as error:
        ColumnRoles(time=column).of_rows(table)
    assert said in str(error.value)


def test_a_column_dropped_twice_is_dropped():
    assert "visit" not in ColumnRoles(drop=("visit", "visit")).features(visits(), "relapse")
