"""A column that is not there: what the message offers instead."""

import pandas as pd
import pytest

from bootprob.exceptions import DataError
from bootprob.tables.target import find_column


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
