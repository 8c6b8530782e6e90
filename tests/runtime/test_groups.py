"""Groups as people name them, and what they come to."""

import numpy as np
import pandas as pd
import pytest

from bootprob.exceptions import DataError
from bootprob.runtime.groups import checked_groups, one_of_each, sums_of_groups


@pytest.mark.parametrize(
    "groups",
    [
        ["b", "a", "b", "c"],
        [2, 1, 2, 3],
        [2.5, -1.0, 2.5, 3.0],
        np.array(["b", 1, "b", 2], dtype=object),
        pd.Series(pd.Categorical(["b", "a", "b", "c"])),
        pd.to_datetime(["2026-02-01", "2026-01-01", "2026-02-01", "2026-03-01"]),
    ],
)
def test_groups_are_told_apart_by_any_names(groups):
    codes = checked_groups(groups, 4)
    assert codes is not None
    assert codes[0] == codes[2]
    assert sorted(set(codes.tolist())) == [0, 1, 2]


def test_groups_of_one_row_each_are_none():
    assert checked_groups(["a", "b", "c"], 3) is None
    assert checked_groups(None, 3) is None


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (["a", "a"], "has the shape (2,), and there are 3 rows"),
        ([["a"], ["a"], ["b"]], "has the shape (3, 1), and there are 3 rows"),
        ([1.0, np.nan, 1.0], "is missing in 1 of 3 rows"),
        (["a", None, "a"], "is missing in 1 of 3 rows"),
        (["a", "a", "a"], "is the same for all rows"),
    ],
)
def test_groups_that_say_nothing_are_refused(groups, said):
    with pytest.raises(DataError) as error:
        checked_groups(groups, 3)
    assert said in str(error.value)


def test_one_used_row_stands_for_each_group():
    groups, used = np.array([0, 0, 1, 1, 2]), np.array([False, True, True, True, False])
    assert one_of_each(used, groups).tolist() == [False, True, True, False, False]
    assert one_of_each(used, None) is used


def test_sums_of_groups():
    assert sums_of_groups(np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1])).tolist() == [2.0, 5.0]
