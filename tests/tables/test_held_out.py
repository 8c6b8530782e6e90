"""Labels of rows set aside: those that the model knows, however the table spells them."""

import numpy as np
import pandas as pd
import pytest

from bootprob import BootstrapSVC, DataError
from bootprob.tables.files import read_table
from bootprob.tables.held_out import HeldOut, known_codes, text_columns
from bootprob.tables.model import TableModel
from bootprob.tables.target import Target
from mixed_tables import credit_table


@pytest.mark.parametrize(
    ("fitted_on", "positive", "new", "expected"),
    [
        (["bad", "good"], "bad", [" good", "bad "], [False, True]),
        ([0, 1], None, [1.0, 0.0], [True, False]),
        ([0, 1], None, [True, False], [True, False]),
        ([0, 1], 0, [0, 1], [True, False]),
        ([True, False], None, [1, 0], [True, False]),
        (["no", "yes"], None, ["yes", "yes"], [True, True]),  # one class is no reason to refuse
        (["a", "a", "b", "c"], None, ["c", "a", "d"], [True, False, True]),
        (["a", "a", "b", "c"], "b", ["b", "a", "d"], [True, False, False]),
        ([0, 0, 1, 2], None, [2, 0, 1.0], [True, False, True]),
        (["01", "1"], None, ["1", "01"], [True, False]),
    ],
)
def test_labels_are_those_of_the_fit(fitted_on, positive, new, expected):
    target, _ = Target.from_table(pd.DataFrame({"y": fitted_on}), "y", positive)
    assert known_codes(target, pd.DataFrame({"y": new})).tolist() == expected


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"z": ["bad"]}), "has no column 'y'"),
        (pd.DataFrame({"y": ["bad", None]}), "lacks the label 'y' in row 2"),
        (pd.DataFrame({"y": ["bad", "ugly"]}), "the label 'ugly' in row 2; the model knows 'good'"),
    ],
)
def test_labels_that_cannot_be_used(frame, words):
    target, _ = Target.from_table(pd.DataFrame({"y": ["bad", "good"]}), "y", "bad")
    with pytest.raises(DataError, match=words):
        known_codes(target, frame)


def test_a_table_as_the_model_takes_it(tmp_path):
    model = TableModel.fit(
        credit_table(60), "risk", "bad", kernel="linear", n_bootstraps=5, C=[1.0], random_state=0
    )
    new = credit_table(30, seed=1)
    new.to_csv(tmp_path / "new.csv", index=False)
    frame = read_table(tmp_path / "new.csv", text_columns=text_columns(model))
    held_out = HeldOut.of_table(model, frame)
    named = model.svc_with_class_names()
    np.testing.assert_array_equal(held_out.positive_rows(named), new["risk"] == "bad")
    p = named.predict_proba(held_out.X)[:, 1]
    np.testing.assert_allclose(p, model.predict(new)["probability"])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["a", "c"], "must be a vector of 'a' and 'b'"),
        ([["a", "b"]], "must be a vector"),
        (["a", "a"], "none of class 'b'"),
        (["b", "b"], "none of class 'a'"),
        ([], "none of class"),
    ],
)
def test_arrays_need_both_classes_and_no_other(rng, y, words):
    X = rng.normal(size=(20, 2))
    model = BootstrapSVC(kernel="linear", n_bootstraps=4, C=1.0).fit(X, np.repeat(["a", "b"], 10))
    with pytest.raises(DataError, match=words):
        HeldOut(X, y).positive_rows(model)
