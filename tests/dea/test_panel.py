"""Panels: what is read, what is refused, and what the errors say."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from bootprob.dea import Panel, PanelError
from bootprob.exceptions import DataError


@pytest.fixture
def table():
    return pd.DataFrame(
        {"staff": [3, 5, 4], "beds": [1.5, 2.5, 0], "patients": [10, 12, 9]},
        index=["Aarhus", "Odense", "Vejle"],
    )


def test_frames_give_names(table):
    panel = Panel.of(table[["staff", "beds"]], table["patients"])
    assert panel.units == ("Aarhus", "Odense", "Vejle")
    assert panel.input_names == ("staff", "beds")
    assert panel.output_names == ("patients",)
    assert (panel.n_units, panel.n_inputs, panel.n_outputs) == (3, 2, 1)
    pd.testing.assert_frame_equal(panel.to_frame(), table.astype(float), check_names=False)


def test_arrays_are_numbered_and_copied():
    inputs = np.array([[1, 2], [3, 4]])
    panel = Panel.of(inputs, [5, 6])
    inputs[:] = 0
    assert panel.inputs.tolist() == [[1, 2], [3, 4]]
    assert panel.inputs.dtype == panel.outputs.dtype == np.float64
    assert panel.outputs.shape == (2, 1)
    assert panel.units == ("1", "2")
    assert panel.input_names == ("input 1", "input 2")
    with pytest.raises(ValueError, match="read-only"):
        panel.inputs[0, 0] = 7


def test_numbers_that_pandas_made_up_are_no_names():
    panel = Panel.of(pd.DataFrame([[1, 2]]), pd.Series([3]))
    assert panel.units == ("1",)
    assert panel.input_names == ("input 1", "input 2")
    assert panel.output_names == ("output 1",)


def test_names_that_are_given_win(table):
    panel = Panel.of(
        table[["staff"]], table["patients"], units=[7, 8, 9], input_names=["people"]
    )  # fmt: skip
    assert panel.units == ("7", "8", "9")
    assert panel.input_names == ("people",)


def test_text_that_spells_numbers_is_read():
    panel = Panel.of(pd.DataFrame({"a": ["1", "2.5"]}), np.array([["3"], ["4e1"]]))
    assert panel.inputs.tolist() == [[1.0], [2.5]]
    assert panel.outputs.tolist() == [[3.0], [40.0]]


def test_take_by_name_and_position(table):
    panel = Panel.of(table[["staff", "beds"]], table["patients"])
    part = panel.take(units=["Vejle", 0], inputs=["beds"])
    assert part.units == ("Vejle", "Aarhus")
    assert part.inputs.tolist() == [[0.0], [1.5]]
    assert part.outputs.tolist() == [[9.0], [10.0]]
    with pytest.raises(PanelError, match="'Vejle' are zero"):
        part.require_activity()
    part.require_activity(inputs=False)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["Ribe"], r"no 'Ribe' among the 3 units.*'Aarhus'"),
        ([3], r"no 3 among the 3 units; give positions from 0 to 2"),
        ([-1], "no -1"),
        ([True], "no True"),
        ("Vejle", "units is 'Vejle'; give a list"),
        ([0, "Aarhus"], "more than once"),
        ([], "at least one"),
    ],
)
def test_take_refuses(table, wanted, message):
    panel = Panel.of(table[["staff"]], table["patients"])
    with pytest.raises(PanelError, match=message):
        panel.take(units=wanted)


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([1, np.nan], [1, 1], "'input 1' of unit '2' is missing"),
        ([1, 1], [1, None], "'output 1' of unit '2' is missing"),
        ([[1, np.inf], [1, -np.inf]], [1, 1], r"'input 2' of unit '1' is infinite \(1 more\)"),
        ([1, 2], [3, -4], "'output 1' of unit '2' is negative"),
        ([[0, 0], [1, 2]], [1, 1], "All inputs of unit '1' are zero"),
        ([1, 2], [[0, 0], [0, 0]], "All outputs of units '1', '2' are zero"),
        ([], [], "at least one of each"),
        (np.ones((3, 0)), np.ones(3), "at least one of each"),
        (np.ones((2, 2, 2)), np.ones(2), r"shape \(2, 2, 2\)"),
        ([1, 2, 3], [1, 2], "inputs has 3 units and outputs 2"),
        (["many", "few"], [1, 2], "inputs cannot be read as numbers.*many"),
        ("12", [1, 2], "inputs is str"),
        ({"a": [1]}, [1], "inputs is dict"),
        (5, 6, "inputs is int"),
        ([1j], [1], "complex"),
        (np.ma.masked_less([1.0, 2.0], 1.5), [1, 1], "'input 1' of unit '1' is missing"),
        (pd.date_range("2020-01-01", periods=2), [1, 1], "dates or times"),
        (pd.DataFrame({"a": pd.date_range("2020-01-01", periods=2)}), [1, 1], "dates or times"),
        (np.array(["2020", "2021"], dtype="M8[Y]"), [1, 1], "dates or times"),
        ([[1, 2], [3]], [1, 2], "cannot be read as numbers"),
        (pd.DataFrame({"a": [1, pd.NA]}), [1, 1], "'a' of unit '2' is missing"),
    ],
)
def test_bad_numbers(inputs, outputs, message):
    with pytest.raises(PanelError, match=message):
        Panel.of(inputs, outputs)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"units": ["a", "a"]}, "units holds 'a' more than once"),
        ({"units": ["a"]}, "units has 1 names; 2 are needed"),
        ({"units": []}, "units has 0 names; 2 are needed"),
        ({"units": "ab"}, "give a list"),
        ({"units": ["a", " "]}, "empty name"),
        ({"input_names": ["x"], "output_names": ["x"]}, "'x' is an input and an output"),
        ({"output_names": ["y", "z"]}, "output_names has 2 names; 1 are needed"),
    ],
)
def test_bad_names(names, message):
    with pytest.raises(PanelError, match=message):
        Panel.of([1, 2], [3, 4], **names)


def test_frames_must_have_one_index(table):
    with pytest.raises(PanelError, match="different indexes"):
        Panel.of(table[["staff"]], table["patients"].iloc[::-1])


def test_errors_say_whom_they_are_about():
    with pytest.raises(PanelError) as caught:
        Panel.of([[1, -2], [3, 4], [-5, 6]], [1, 1, 1], units=["a", "b", "c"])
    assert isinstance(caught.value, DataError)
    assert caught.value.units == ("a", "c")
    assert caught.value.columns == ("input 1", "input 2")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.units, str(again)) == (caught.value.units, str(caught.value))


def test_panels_can_be_copied_and_stored(table):
    panel = Panel.of(table[["staff"]], table["patients"])
    for other in (copy.deepcopy(panel), pickle.loads(pickle.dumps(panel))):
        assert other.units == panel.units
        assert np.array_equal(other.inputs, panel.inputs)
