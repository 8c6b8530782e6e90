"""Mixed columns become a matrix, the target two classes, and what cannot be used says so."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from bootprob.encoding.preprocessing import TablePreprocessor
from bootprob.exceptions import DataError
from bootprob.tables.files import read_table, write_table
from bootprob.tables.target import Target
from mixed_tables import credit_table


@pytest.fixture
def features() -> pd.DataFrame:
    return credit_table().drop(columns="risk")


def test_against_pandas(features: pd.DataFrame) -> None:
    preprocessor = TablePreprocessor().fit(features)
    columns = {}
    for name in ("months", "amount", "persons"):
        columns[name] = features[name].fillna(features[name].median()).astype(float)
    for name in ("status", "purpose", "foreign", "branch"):
        filled = features[name].fillna(features[name].mode()[0]).astype(str)
        for level in sorted(filled.unique()):
            columns[f"{name}={level}"] = (filled == level).astype(float)
    expected = pd.DataFrame(columns)
    assert preprocessor.get_feature_names_out().tolist() == expected.columns.tolist()
    matrix = preprocessor.transform(features)
    assert matrix.dtype == np.float64
    np.testing.assert_array_equal(matrix, expected.to_numpy())
    assert preprocessor.kinds_["foreign"] == "boolean"
    assert preprocessor.dropped_ == {}
    counts = ", ".join(
        f"{name} ({features[name].isna().sum()})" for name in ("status", "months", "amount")
    )
    assert preprocessor.notes_ == [f"Missing values were filled in: {counts}."]


def test_only_numbers_and_only_categories(features: pd.DataFrame) -> None:
    numbers = features[["months", "persons"]]
    assert TablePreprocessor().fit_transform(numbers).shape == (len(features), 2)
    preprocessor = TablePreprocessor().fit(features[["purpose"]])
    assert preprocessor.transform(features).sum(axis=1).tolist() == [1.0] * len(features)
    assert preprocessor.fills_ == {"purpose": features["purpose"].mode()[0]}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_way_a_table_is_stored_does_not_matter(
    features: pd.DataFrame, tmp_path: Path, suffix: str
) -> None:
    preprocessor = TablePreprocessor().fit(features)
    few = features.iloc[:5].assign(branch="01")  # codes only: pandas would take them for numbers
    write_table(few, tmp_path / f"few{suffix}")
    read = read_table(tmp_path / f"few{suffix}", text_columns=["branch"])
    others = [
        read,
        few.astype({"purpose": "category", "foreign": "boolean", "persons": "Int64"}),
        few.astype({"foreign": int, "persons": str, "purpose": object}),
        few.assign(foreign=few["foreign"].map({True: "TRUE", False: " false"})),
        few[few.columns[::-1]].assign(more=pd.Timestamp("2024-01-01")),
    ]
    for other in others:
        np.testing.assert_array_equal(preprocessor.transform(other), preprocessor.transform(few))
        assert preprocessor.unknown_levels(other) == {}


def test_kinds_by_value_where_the_dtype_says_nothing() -> None:
    table = pd.DataFrame(
        {
            "decimals": [Decimal("1.5"), None, Decimal("2.5")],
            "yes": [True, None, False],
            "codes": pd.Categorical([3, 3, 12]),
            "mixed": ["a", 1, 1.0],
        }
    )
    preprocessor = TablePreprocessor().fit(table)
    assert preprocessor.kinds_ == {
        "decimals": "number",
        "yes": "boolean",
        "codes": "text",
        "mixed": "text",
    }
    assert preprocessor.levels_ == {
        "yes": ["False", "True"],
        "codes": ["12", "3"],
        "mixed": ["1", "a"],
    }
    assert preprocessor.transform(table)[:, 0].tolist() == [1.5, 2.0, 2.5]


def test_unknown_levels_are_zeros_and_counted(features: pd.DataFrame) -> None:
    preprocessor = TablePreprocessor().fit(features)
    new = features.iloc[:4].assign(purpose=["boat", "boat", "car", None], branch=["1", "7", 7, 1])
    matrix = preprocessor.transform(new)
    purposes = [name.startswith("purpose=") for name in preprocessor.get_feature_names_out()]
    assert matrix[:, purposes].sum(axis=1).tolist() == [0, 0, 1, 1]
    assert preprocessor.unknown_levels(new) == {"purpose": {"boat": 2}, "branch": {"7": 2}}


def test_useless_columns_are_dropped_and_reported(features: pd.DataFrame) -> None:
    table = features.assign(
        empty=np.nan, blank="  ", name=[f"person {i}" for i in range(len(features))]
    )
    table.insert(0, "Unnamed: 0", range(len(features)))
    preprocessor = TablePreprocessor().fit(table)
    assert preprocessor.dropped_ == {
        "Unnamed: 0": "it has no name (a saved row index?)",
        "empty": "it has no values",
        "blank": "it has no values",
        "name": "it is text in which no value occurs twice (an identifier?)",
    }
    assert "Column 'empty' is left out: it has no values." in preprocessor.notes_
    plain = TablePreprocessor().fit(features)
    np.testing.assert_array_equal(preprocessor.transform(features), plain.transform(features))
    with pytest.raises(DataError, match=r"No usable column is left.*'empty'.*no values"):
        TablePreprocessor().fit(table[["empty"]])


def test_notes_on_likely_mistakes() -> None:
    ages = [str(age) for age in range(20, 70)] * 2
    ages[7] = ages[9] = "unknown"
    days = [f"{i // 28 % 12 + 1}/{i % 28 + 1}" for i in range(120)] * 2
    notes = TablePreprocessor().fit(pd.DataFrame({"age": ages})).notes_
    assert notes == [
        "Column 'age' is taken as categories because of text such as 'unknown' in rows 8 and 10; "
        "if it holds numbers, leave such cells empty."
    ]
    notes = TablePreprocessor().fit(pd.DataFrame({"day": days})).notes_
    said = "leave it out if it only tells rows apart."
    together = "a dummy for each, which together weigh as one column in calibrated models"
    assert notes == [f"Column 'day' has 120 levels, {together}; {said}"]
    animals = pd.DataFrame({"animal": ["frog", "frog", "toad", "newt"]})
    assert TablePreprocessor().fit(animals).notes_ == [
        f"Column 'animal' has 3 levels, a dummy for each; {said}"
    ]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.to_datetime(["2020-01-01", "2020-01-02", None]), "'x' holds dates or times; name it"),
        (pd.to_timedelta([1, 2, 3]), "'x' holds times or spans of time; turn it into numbers"),
        ([pd.Timestamp("2020").date(), None, None], "'x' holds dates or times"),
        ([1j, 2j, 3j], "'x' holds complex numbers; split them"),
        ([[1], [1], [2]], "'x' holds nested or binary values; leave it out"),
        ([1.0, np.inf, -np.inf], "'x' is infinite in rows 2 and 3; correct"),
        ([1.0, 1e150, -1.5e200], r"'x' holds -1\.5e\+200 in row 3, too large to reckon with; give"),
    ],
)
def test_columns_that_are_refused(column: object, message: str) -> None:
    table = pd.DataFrame({"y": [1, 2, 3], "x": column})
    with pytest.raises(DataError, match=message):
        TablePreprocessor().fit(table)


def test_tables_that_cannot_be_predicted(features: pd.DataFrame) -> None:
    preprocessor = TablePreprocessor().fit(features)
    with pytest.raises(DataError, match="lacks the column 'months' that the model was fitted on"):
        preprocessor.transform(features.drop(columns="months"))
    with pytest.raises(DataError, match="Is it 'Months' for 'months'"):
        preprocessor.transform(features.rename(columns={"months": "Months"}))
    with pytest.raises(DataError, match="lacks 2 columns 'status', 'foreign' that"):
        preprocessor.unknown_levels(features.drop(columns=["status", "foreign"]))
    with pytest.raises(
        DataError, match=r"'months' holds numbers in this model, but 'long' is not .* \(row 3\)"
    ):
        preprocessor.transform(features.iloc[:3].assign(months=["6", " 12 ", "long"]))
    with pytest.raises(DataError, match="'amount' is infinite in rows 1, 2, 3, 4, 5 and 115 more"):
        preprocessor.transform(features.assign(amount=np.inf))
    with pytest.raises(DataError, match="'status' holds dates or times"):
        preprocessor.transform(features.assign(status=pd.Timestamp("2024-01-01")))
    with pytest.raises(DataError, match="The table has no rows"):
        preprocessor.transform(features.iloc[:0])
    with pytest.raises(DataError, match="A pandas DataFrame is wanted, not ndarray"):
        preprocessor.transform(features.to_numpy())
    with pytest.raises(DataError, match="several columns named 'status'; rename them"):
        preprocessor.transform(pd.concat([features, features[["status"]]], axis=1))
    with pytest.raises(NotFittedError):
        clone(preprocessor).transform(features)


def test_state_survives_json_to_the_last_bit(features: pd.DataFrame) -> None:
    table = features.assign(third=np.arange(len(features)) / 3, empty=np.nan)
    table.columns = [*table.columns[:-1], 7]  # a name that is not text
    preprocessor = TablePreprocessor().fit(table)
    stored = json.dumps(preprocessor.to_dict(), allow_nan=False)
    restored = TablePreprocessor.from_dict(json.loads(stored))
    gaps = table.mask(np.random.default_rng(1).random(table.shape) < 0.3)
    assert restored.transform(gaps).tobytes() == preprocessor.transform(gaps).tobytes()
    assert restored.to_dict() == preprocessor.to_dict()
    assert (
        restored.get_feature_names_out().tolist() == preprocessor.get_feature_names_out().tolist()
    )
    assert restored.n_features_in_ == table.shape[1]
    assert restored.feature_names_in_.tolist() == [*features.columns, "third", "7"]


@pytest.mark.parametrize(
    "damage",
    [
        {"columns": None},
        {"missing": [1]},
        {"missing": {"unknown": 1}},
        {"missing": {}},
        {"columns": [{"name": "a", "kind": "number"}]},
        {"columns": [{"name": "a", "kind": "number", "fill": "x"}]},
        {"columns": [{"name": "a", "kind": "text", "fill": "x", "levels": None}]},
        {"columns": [{"name": "a", "kind": "colour", "fill": "x", "levels": ["x"]}]},
        {"columns": [{"name": "a", "kind": "text", "fill": "x", "levels": ["y"]}]},
        {"columns": [[]]},
        {"dropped": 3},
    ],
)
def test_damaged_state(features: pd.DataFrame, damage: dict[str, object]) -> None:
    stored = TablePreprocessor().fit(features).to_dict() | damage
    with pytest.raises(DataError, match="The stored preprocessing is damaged"):
        TablePreprocessor.from_dict(stored)


def _target(values: object, positive: object = None) -> tuple[Target, list[int]]:
    target, y = Target.from_table(pd.DataFrame({"y": values}), "y", positive)  # type: ignore[arg-type]
    return target, y.tolist()


@pytest.mark.parametrize(
    ("values", "positive", "classes", "y"),
    [
        (["b", "a", "b"], None, ("a", "b"), [1, 0, 1]),
        (["b", "a", "b"], "a", ("b", "a"), [0, 1, 0]),
        ([2, 1, 2], None, (1, 2), [1, 0, 1]),
        ([2, 1, 2], "1", (2, 1), [0, 1, 0]),
        ([2.0, 1.0, 2.0], "1", (2.0, 1.0), [0, 1, 0]),
        ([0.5, 1.5, 0.5], "1.50", (0.5, 1.5), [0, 1, 0]),
        (["2", "1"], 1, ("2", "1"), [0, 1]),
        ([True, False], None, (False, True), [1, 0]),
        ([True, False], "FALSE", (True, False), [0, 1]),
        ([True, False], "no", (True, False), [0, 1]),
        ([True, False], 0, (True, False), [0, 1]),
        ([1, 0], True, (0, 1), [1, 0]),
        ([" b ", "a"], "b", ("a", "b"), [1, 0]),
        (pd.Categorical(["x", "y", "x"]), None, ("x", "y"), [0, 1, 0]),
        (pd.array([3, 4, 3], dtype="Int64"), None, (3, 4), [0, 1, 0]),
        # More than two values: the largest is negative, against the rest (thesis, 3.3.1).
        (list("abbc"), None, ("b", "not b"), [1, 0, 0, 1]),
        (list("abbc"), "b", ("not b", "b"), [0, 1, 1, 0]),
        ([1, 2, 2, 3], None, ("2", "not 2"), [1, 0, 0, 1]),
        ([1, 2, 2, 3], "3.0", ("not 3", "3"), [0, 0, 0, 1]),
    ],
)
def test_two_classes(
    values: object, positive: object, classes: tuple[object, object], y: list[int]
) -> None:
    target, codes = _target(values, positive)
    assert (target.negative, target.positive) == classes
    assert (type(target.negative), type(target.positive)) == tuple(map(type, classes))
    assert codes == y
    assert (target.n_negative, target.n_positive) == (y.count(0), y.count(1))
    assert Target.from_dict(json.loads(json.dumps(target.to_dict()))) == target


@pytest.mark.parametrize(
    ("values", "positive", "message"),
    [
        (["a", "a"], None, "'y' has one value only, 'a'; two classes are needed"),
        (["a", None, "b", " "], None, "'y' has 2 missing values, in rows 2 and 4; complete"),
        ([1, np.nan, 0], None, "'y' has a missing value, in row 2; complete"),
        ([True, False], "maybe", "'y' has no value 'maybe'; it has False, True."),
        ([0, 1], "good", "'y' has no value 'good'; it has 0, 1."),
        (list("abc") * 9, "d", "'y' has no value 'd'; it has 'a', 'b', 'c'."),
        ([1.5, 2.5, 2.5], 3.5, "'y' has no value 3.5; it has 1.5, 2.5."),
        ([1.5, 2.5, 2.5, 3.5], None, "'y' has 3 different values, such as 1.5, and no main"),
        (["a", "b", "c"], None, "'y' has 3 different values, such as 'a', and no main"),
        ([*range(100), 7, 7, 7], None, "'y' has 100 different values, such as 0, and no main"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), None, "'y' holds dates .*; give one of cl"),
    ],
)
def test_targets_that_are_refused(values: object, positive: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        _target(values, positive)


@pytest.mark.parametrize(
    ("values", "labels", "y"),
    [
        (list("bcabca"), ("a", "b", "c"), [1, 2, 0, 1, 2, 0]),
        ([3, 1, 2, 1, 2, 3], (1, 2, 3), [2, 0, 1, 0, 1, 2]),
        (["b", "a", "b"], ("a", "b"), [1, 0, 1]),  # two are two, however often
    ],
)
def test_all_classes(values: list[object], labels: tuple[object, ...], y: list[int]) -> None:
    frame = pd.DataFrame({"y": values})
    target, codes = Target.from_table(frame, "y", all_classes=True)
    assert target.labels == labels
    assert target.counts == tuple(np.bincount(y).tolist())
    assert codes.tolist() == y
    assert Target.from_dict(json.loads(json.dumps(target.to_dict()))) == target


@pytest.mark.parametrize(
    ("values", "positive", "message"),
    [
        ([1.5, 2.5, 2.5, 1.5, 3.5], None, "'y' has 3 different values, and fractions; a class"),
        (
            list("aabbc"),
            None,
            "'y' has 3 different values, and values that occur once, such as 'c'",
        ),
        (list("aabbcc"), "a", "makes each value a class, and 'a' was given as the positive one"),
        (list("aa"), None, "one value only"),
    ],
)
def test_all_classes_that_are_refused(values: object, positive: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Target.from_table(pd.DataFrame({"y": values}), "y", positive, all_classes=True)


@pytest.mark.parametrize(
    "stored",
    [
        {"name": "y", "labels": ["a", "b"], "counts": [1, 2]},
        {"name": "y", "labels": ["a", "b", "c"], "counts": [1, 2]},
        {"name": "y", "labels": ["a", "b", None], "counts": [1, 2, 3]},
        {"name": "y", "labels": "abc", "counts": [1, 2, 3]},
        {"name": "y", "labels": ["a", "b", "c"], "counts": [1, 2, "3"]},
        {"name": 1, "labels": ["a", "b", "c"], "counts": [1, 2, 3]},
    ],
)
def test_stored_targets_that_are_damaged(stored: dict[str, object]) -> None:
    with pytest.raises(DataError, match="The stored target is damaged"):
        Target.from_dict(stored)


def test_a_target_that_is_not_there() -> None:
    with pytest.raises(DataError, match=r"no column 'Risk'. Did you mean 'risk'\?"):
        Target.from_table(credit_table(), "Risk")
    with pytest.raises(DataError, match=r"no column 'zzz'. The columns are: status, months, purp"):
        Target.from_table(credit_table(), "zzz")
    with pytest.raises(DataError, match="The stored target is damaged"):
        Target.from_dict({"name": "y"})


def test_numbers_with_marks_are_told() -> None:
    numbers = np.random.default_rng(0).uniform(1000, 99999, 60)
    table = pd.DataFrame(
        {
            "price": [f"{x:,.2f}" for x in numbers],
            "rate": [f"{x // 2000:.0f}%" for x in numbers],
            "paid": [f"$ {x:.0f}" for x in numbers],
            "size": [f"{k} kg" for k in range(5)] * 12,
            "code": [f"A{k}" for k in range(60)],
            "x": numbers,
        }
    )
    notes = "\n".join(TablePreprocessor().fit(table).notes_)
    for name, shown in ("price", f"{numbers[0]:,.2f}"), ("paid", f"$ {numbers[0]:.0f}"):
        assert f"Column '{name}' is left out: its numbers have marks, as in '{shown}'" in notes
    assert "Column 'rate' is taken as categories because its numbers have marks" in notes
    assert "Column 'code' is left out: it is text in which no value occurs twice" in notes
    assert "'size'" not in notes
