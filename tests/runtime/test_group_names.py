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
        np.array([1, "1", 1.0, 2], dtype=object),
        pd.Series(["b", "a", "b", "c"], dtype="string"),
        pd.Series(pd.Categorical(["b", "a", "b", "c"])),
        pd.to_datetime(["2026-02-01", "2026-01-01", "2026-02-01", "2026-03-01"]),
    ],
)
def test_groups_are_told_apart_by_any_names(groups):
    codes = checked_groups(groups, 4)
    assert codes is not None
    assert codes[0] == codes[2]
    assert codes.tolist() == [0, 1, 0, 2]  # as they appear


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
        (["a", float("nan"), "a"], "is missing in 1 of 3 rows"),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), "is missing in 1 of 3 rows"),
        (pd.to_datetime(["2026-01-01", None, "2026-01-01"]), "is missing in 1 of 3 rows"),
        (["a", "a", "a"], "is the same for all rows"),
    ],
)
def test_groups_that_say_nothing_are_refused(groups, said):
    with pytest.raises(DataError) as error:
        checked_groups(groups, 3)
    assert said in str(error.value)


def test_one_used_row_stands_for_each_group():
    groups = np.repeat(np.arange(300), 4)
    used = np.tile([False, True, True, True], 300)
    used[-4:] = False
    found = one_of_each(used, groups)
    assert np.array_equal(np.bincount(groups[found], minlength=300), np.repeat([1, 0], [299, 1]))
    assert used[found].all()
    # Not always the first: of a table in order it may be like no other.
    assert np.bincount(np.flatnonzero(found) % 4, minlength=4)[1:].min() > 50
    assert np.array_equal(found, one_of_each(used, groups))
    assert one_of_each(used, None) is used


def test_sums_of_groups():
    assert sums_of_groups(np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1])).tolist() == [2.0, 5.0]
