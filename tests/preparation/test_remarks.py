"""What is often a mistake in a table is said, and nothing else is."""

import warnings

import numpy as np
import pandas as pd
import pytest

from bootprob import BootstrapSVC, CopiedRowsWarning, DoubtfulTableWarning, GridEdgeWarning
from bootprob.ensemble.noticed import remarks_of_edges
from bootprob.preparation.remarks import remarks_of_grid, remarks_of_table


def said(X, codes, *, levels=0, groups=None):
    """Remarks of a table of numbers, whose last columns are 0 and 1 for the levels of one."""
    X = np.asarray(X, dtype=float)
    n_numbers = X.shape[1] - levels
    columns = {f"x{j}": slice(j, j + 1) for j in range(n_numbers)}
    if levels:
        columns["levels"] = slice(n_numbers, X.shape[1])
    every = np.ones(len(X), dtype=bool)
    return remarks_of_table(X, np.asarray(codes), every, columns, groups)


@pytest.fixture
def table():
    """Two columns and a class that chance has a part in."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    return X, (X[:, 0] + rng.logistic(size=200) > 0).astype(int)


def of_one(remarks):
    [remark] = remarks
    return remark


def test_nothing_is_said_of_independent_rows():
    """Of 800 tables of noise; the bounds let chance say a word once in 100,000."""
    rng = np.random.default_rng(0)
    for k in range(800):
        n, p = rng.choice([40, 100, 300]), rng.integers(1, 8)
        X = [
            rng.normal(size=(n, p)),
            rng.integers(0, 5, (n, p)),
            rng.integers(0, n // 3, (n, p)),
            np.exp(3 * rng.normal(size=(n, p))),
        ][k % 4]
        codes = np.r_[np.repeat([0, 1], 10), rng.random(n - 20) < 0.2].astype(int)
        X[:, 0] += np.arange(n) % 7  # no column is constant
        assert said(X, rng.permutation(codes)) == []


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_threshold_that_gives_the_target(table, wrong):
    X, codes = table
    leak = codes * 3 + np.random.default_rng(1).random(200)
    leak[:wrong] = 10 * (1 - codes[0]) - 5
    remarks = said(np.c_[X, leak], codes)
    if wrong > 0.01 * np.bincount(codes).min():
        assert remarks == []
    else:
        assert "Column x2 alone gives the target: it puts 0 of 200 rows" in of_one(remarks)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_levels_that_give_the_target(table, n_classes):
    """As dummies, and as numbers in no order."""
    X, codes = table
    codes = codes + (X[:, 1] > 1) * (n_classes - 2)
    level = codes + n_classes * (np.arange(200) % 2)
    assert "Column levels alone" in of_one(
        said(np.c_[X, np.eye(2 * n_classes)[level]], codes, levels=2 * n_classes)
    )
    numbers = np.array([4, 1, 0, 9, 2, 7])[level]
    assert "Column x2 alone" in of_one(said(np.c_[X, numbers], codes))


def test_levels_of_a_row_each_give_nothing(table):
    """As those of a name would, if a row counted for its own level."""
    X, codes = table
    assert "more columns" in of_one(said(np.c_[X, np.eye(200)], codes, levels=200))


def test_columns_that_say_the_same(table):
    X, codes = table
    level = np.arange(200) * 7 % 3
    levels = np.c_[np.eye(3)[level], np.eye(3)[level]]
    columns = {"a": slice(0, 1), "b": slice(1, 2), "c": slice(2, 3)}
    columns |= {"d": slice(3, 6), "e": slice(6, 9)}
    rows = np.c_[X, 1e6 - 1e-3 * X[:, 0], levels]
    remark = of_one(remarks_of_table(rows, codes, np.ones(200, dtype=bool), columns))
    assert remark.startswith("Columns repeat others: c says what a says, e says what d says.")
    rows[0, 2] += 1e-5  # of 1e-3
    rows[0, 6:9] = np.roll(rows[0, 6:9], 1)
    assert remarks_of_table(rows, codes, np.ones(200, dtype=bool), columns) == []


def test_constant_columns_few_rows_many_columns(table):
    X, codes = table
    assert "Column x2 is the same everywhere" in of_one(said(np.c_[X, np.full(200, 3.0)], codes))
    few = np.zeros(200, dtype=int)
    few[:9] = 1
    assert "The smallest class has 9 rows" in of_one(said(X, few))
    wide = np.random.default_rng(2).normal(size=(60, 61))
    assert "more columns (61) than rows (60)" in of_one(said(wide, np.arange(60) % 2))


def test_ids_of_rows_with_their_class_in_common(table):
    X, _ = table
    subject = np.random.default_rng(3).permutation(np.arange(200) // 5)
    codes = (subject % 3 == 0).astype(int)
    rows = np.c_[X, subject]
    assert "If it says who or what a row is of, give it as groups" in of_one(said(rows, codes))
    groups = np.random.default_rng(5).permutation(np.arange(200) // 2)
    assert said(rows, codes, groups=groups) == []
    rows[::4, 2] = 0  # as where a zero stands for what is missing
    assert said(rows, codes) == []


def test_ids_of_few_rows_of_a_class_are_no_chance_find():
    """Where counts are small a normal approximation finds something once in 5,000 tables."""
    rng = np.random.default_rng(6)
    ids, codes = (
        rng.permutation(np.repeat(np.arange(20), 20)),
        np.r_[np.ones(12), np.zeros(388)].astype(int),
    )
    noise = rng.normal(size=400)
    for _ in range(3000):
        assert said(np.c_[noise, ids], rng.permutation(codes)) == []


def test_large_tables_in_any_order():
    """The rows that are looked at are of all classes."""
    rng = np.random.default_rng(7)
    codes = np.tile([0, 1], 30_000)
    X = np.c_[rng.integers(0, 5, 60_000), rng.normal(size=60_000)]
    assert said(X, codes) == []
    X[:, 1] = codes
    assert "Column x1 alone gives the target" in of_one(said(X, codes))


def test_classes_are_counted_in_groups_that_have_some():
    groups = np.repeat(np.arange(100), 20)
    codes = np.zeros(2000, dtype=int)
    codes[np.arange(0, 2000, 33)] = 1  # in 61 groups
    X = np.random.default_rng(8).normal(size=(2000, 2))
    assert said(X, codes, groups=groups) == []
    few = np.where(groups < 7, codes, 0)
    assert "The smallest class has 5 groups" in of_one(said(X, few, groups=groups))


def test_what_columns_say_is_told_by_all_rows_of_groups(table):
    """Any two columns of two rows, one of each group, say the same, or are constant."""
    X, codes = table
    columns = np.c_[X, np.arange(200) % 5 == 0]
    few, many = said(columns, codes, groups=np.arange(200) % 2)
    assert "The smallest class has 2 groups" in few
    assert "more columns (3) than groups (2)" in many


def test_drift_within_the_classes(table):
    X, codes = table
    X[:, 1] += np.arange(200) / 100
    assert "First and last rows differ in x1 (0." in of_one(said(X, codes))
    order = np.random.default_rng(4).permutation(200)
    assert said(X[order], codes[order]) == []
    order = np.argsort(codes, kind="stable")  # a table in order of its classes has no drift
    assert said(table[0][order][:, :1], codes[order]) == []


@pytest.mark.parametrize("step", [1, -5])
def test_a_number_of_the_row_is_called_one(table, step):
    X, codes = table
    X[:, 1] = 1000 + step * np.arange(200)
    assert of_one(said(X, codes)).startswith("Column x1 is counted from row to row: a number of")
    X[7, 1] += 1  # in order, and not counted
    assert "First and last rows differ in x1 (1.00)" in of_one(said(X, codes))


def test_the_edge_of_a_grid():
    C, weight = np.array([0.1, 1.0, 10.0]), np.array([0.1, 0.3, 0.6])
    [remark] = remarks_of_grid(C, None, weight, C)
    assert remark.startswith("The largest value of C, 10, has 60% of the weight")
    assert remarks_of_grid(C, None, weight, np.array([0.1, 1.0, 10.0, 100.0])) == []
    assert remarks_of_grid(C, None, weight[[0, 2, 1]], C) == []
    [remark] = remarks_of_grid(np.ones(3), C, weight[::-1], np.ones(1))
    assert remark.startswith("The smallest value of gamma, 0.1,")


def test_the_edge_of_a_grid_of_which_each_kernel_has_one_value():
    """At the end for both, which a pilot found hardly better than the value before."""
    weight, grid = np.array([0.4, 0.6]), np.array([2.0, 8.0, 32.0])
    prepared = {"C_": np.array([32.0, 32.0]), "views_": {"knots": None}, "gamma_": np.ones(2)}
    as_good, better = np.array([[0.2, 0.4, 0.4]] * 2), np.array([[0.0, 0.3, 0.7]] * 2)
    assert remarks_of_edges(prepared, weight, grid, as_good) == []
    with pytest.warns(GridEdgeWarning, match="value of C, 32, has 70% of the weight"):
        assert len(remarks_of_edges(prepared, weight, grid, better)) == 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fit_warns_its_caller_and_keeps_what_it_said(table, n_classes):
    X, codes = table
    codes = codes + (X[:, 1] > 0) * (n_classes - 2)
    X = pd.DataFrame(np.c_[X, 2 * X[:, 0]], columns=["dose", "age", "twice"])
    model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=[1e-9, 1e-8, 1e-7], random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, codes)
    assert [each.category for each in caught] == [DoubtfulTableWarning, GridEdgeWarning]
    assert {each.filename for each in caught} == {__file__}
    assert "'twice' says what 'dose' says" in str(caught[0].message)
    assert [str(each.message) for each in caught] == model.remarks_


def test_nothing_is_trained_where_remarks_are_errors(table):
    X, codes = table
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulTableWarning)
        with pytest.raises(CopiedRowsWarning):
            BootstrapSVC().fit(np.r_[X, X], np.r_[codes, codes])


def test_a_kernel_of_the_users_own_has_no_columns(table):
    X, codes = table
    model = BootstrapSVC(kernel="precomputed", n_bootstraps=5, C=1.0, random_state=0)
    assert model.fit(X @ X.T, codes).remarks_ == []


def test_in_blocks_of_time_what_hangs_together_is_no_drift():
    rng = np.random.default_rng(0)
    blocks = np.arange(1000) // 50
    slow = np.repeat(rng.normal(size=20), 50) + 0.1 * rng.normal(size=1000)
    slow += np.linspace(0, 2, 1000)
    codes, every = rng.integers(2, size=1000), np.ones(1000, dtype=bool)
    rare = (np.arange(1000) == 17).astype(float)
    X, columns = np.column_stack([slow, rare]), {"slow": slice(0, 1), "rare": slice(1, 2)}
    assert "First and last rows differ in slow" in of_one(
        remarks_of_table(X, codes, every, columns)
    )
    assert remarks_of_table(X, codes, every, columns, blocks=blocks) == []
    X[:, 0] = np.sqrt(np.arange(1000))
    found = of_one(remarks_of_table(X, codes, every, columns, blocks=np.arange(1000) // 10))
    assert "First and last rows differ in slow (1.00)" in found


def test_days_may_go_on():
    """A column that is named as a date is no number of the row, and no drift."""
    X = np.column_stack([np.arange(400.0), np.random.default_rng(0).normal(size=400)])
    codes, every = np.arange(400) % 2, np.ones(400, dtype=bool)
    columns = {"day": slice(0, 1), "other": slice(1, 2)}
    assert "counted from row to row" in of_one(remarks_of_table(X, codes, every, columns))
    assert remarks_of_table(X, codes, every, columns, dates={"day"}) == []


def test_the_edge_of_a_grid_beside_a_posterior():
    """Of two interacting columns the machines say less, whichever C they have."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = rng.logistic(size=300) < 3 * X[:, 0] * X[:, 1]
    model = BootstrapSVC(effort="low", n_bootstraps=10, random_state=0).fit(X, y)
    C = np.resize(model.C_, len(model.weights_))
    assert model.weights_[np.isclose(C, C.max())].sum() > 0.5
    assert model.posterior_share_ > 0.5
    assert model.remarks_ == []
