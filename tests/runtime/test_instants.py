"""Times as people have them, and what they come to."""

import datetime

import numpy as np
import pandas as pd
import pytest

from bootprob.exceptions import DataError
from bootprob.runtime.instants import checked_instants

DAYS = ["2026-02-01", "2026-01-31", "2026-02-01", "2026-03-05"]


@pytest.mark.parametrize(
    "time",
    [
        DAYS,
        np.array(DAYS),
        np.array(DAYS, dtype="datetime64[D]"),
        pd.to_datetime(DAYS),
        pd.Series(pd.to_datetime(DAYS), index=[7, 7, 3, 1]),
        pd.Series(DAYS, dtype="string"),
        pd.Series(pd.Categorical(DAYS)),
        pd.PeriodIndex(DAYS, freq="D"),
        [datetime.date.fromisoformat(day) for day in DAYS],
        [datetime.datetime.fromisoformat(day) for day in DAYS],
        ["20260201", "2026-01-31", "2026-02-01T00:00", "2026-03-05T01:00+01:00"],
    ],
)
def test_dates_are_put_in_order(time):
    found = checked_instants(time, 4)
    assert found.ranks.tolist() == [1, 0, 1, 2]
    assert list(found.names) == sorted(set(DAYS))


@pytest.mark.parametrize(
    ("time", "names"),
    [
        ([3, -1, 3, 2**62], ["-1", "3", str(2**62)]),
        ([0.5, -2.0, 0.5, 1e9], ["-2", "0.5", "1000000000"]),
        (np.array([2, 1, 2, 3], dtype=object), ["1", "2", "3"]),
        (pd.Series([2, 1, 2, 3], dtype="Int64"), ["1", "2", "3"]),
        (["2026-01-01T12", "2026-01-01", "2026-01-01T12:00", "2026-01-02"],
         ["2026-01-01T00:00:00", "2026-01-01T12:00:00", "2026-01-02T00:00:00"]),
        (pd.to_datetime(["2026-01-01T01:00", "2026-01-01T01:30"] * 2).tz_localize("Asia/Tokyo"),
         ["2026-01-01T01:00:00+09:00", "2026-01-01T01:30:00+09:00"]),
    ],
)  # fmt: skip
def test_numbers_and_hours_have_names(time, names):
    found = checked_instants(time, 4)
    assert list(found.names) == names
    values = pd.Series(time) if not isinstance(time, list) or isinstance(time[0], int) else None
    if values is not None and values.dtype != object:
        assert np.array_equal(np.argsort(values, kind="stable"),
                              np.argsort(found.ranks, kind="stable"))  # fmt: skip


@pytest.mark.parametrize(
    ("time", "said"),
    [
        ([1, 2], "time has the shape (2,), and there are 3 rows"),
        ([[1], [2], [3]], "time has the shape (3, 1)"),
        (pd.to_datetime(["2026-01-01", None, "2026-01-02"]), "time is missing in 1 of 3 rows, the "
         "first of them row 2"),
        ([1.0, 2.0, np.nan], "time is missing in 1 of 3 rows, the first of them row 3"),
        (["2026-01-01", None, "2026-01-02"], "time is missing in 1 of 3 rows"),
        (["2026-01-01", "March", "2026-01-02"], "time holds 'March' in row 2, which is no date in"),
        (["1/2/2026", "2/2/2026", "3/2/2026"], "time holds '1/2/2026' in row 1"),
        (["2026-13-01", "2026-01-01", "2026-01-02"], "time holds '2026-13-01' in row 1"),
        (["2026-01-01"] * 3, "time is the same for all rows"),
        ([5, 5, 5], "time is the same for all rows"),
        ([1.0, np.inf, 2.0], "time is infinite"),
        ([True, False, True], "time holds boolean values, which are no times"),
        ([1, "2026-01-01", 2], "which are no times"),
        ([1j, 2j, 3j], "time holds complex values"),
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused(time, said):
    with pytest.raises(DataError) as error:
        checked_instants(time, 3)
    assert said in str(error.value)
