"""The selection of outputs as a transformer: what scikit-learn does with it."""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from bootprob.dea import InfeasibleSelectionError, OutputSelector, Panel, PanelError, select_outputs
from bootprob.exceptions import DataError

ZEROS = "its units use or produce nothing, which has no efficiency"
EXPECTED = {
    "check_positive_only_tag_during_fit": "our error names the unit and the column",
    "check_estimators_dtypes": ZEROS,
    "check_transformer_data_not_an_array": ZEROS,
    "check_transformer_general": ZEROS,
    "check_transformer_preserve_dtypes": ZEROS,
    "check_fit2d_1feature": ZEROS,
}


@parametrize_with_checks([OutputSelector(1)], expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def outputs(rng):
    size = np.exp(rng.normal(size=(12, 1)))
    names = [f"y{o}" for o in range(6)]
    units = [f"unit {k}" for k in range(12)]
    return pd.DataFrame(size * rng.uniform(0.3, 2, (12, 6)), units, names)


@pytest.fixture
def inputs(rng, outputs):
    values = outputs.mean(axis=1).to_numpy()[:, None] * rng.uniform(0.5, 2, (12, 2))
    return pd.DataFrame(values, outputs.index, ["staff", "cost"])


def test_it_chooses_as_the_function_does(outputs, inputs):
    selector = OutputSelector(2, objective="minimum").fit(outputs, inputs)
    truth = select_outputs(Panel.of(inputs, outputs), 2, objective="minimum")
    assert selector.result_.features == truth.features
    assert selector.get_support(indices=True).tolist() == list(truth.features)
    np.testing.assert_array_equal(selector.efficiencies_, truth.efficiencies)
    assert selector.get_feature_names_out().tolist() == list(truth.outputs)
    assert selector.panel_.units == tuple(outputs.index)
    assert selector.n_features_in_ == 6


def test_frames_stay_frames_and_arrays_arrays(outputs, inputs):
    selector = OutputSelector(2).set_output(transform="pandas")
    kept = selector.fit_transform(outputs, inputs["cost"])
    pd.testing.assert_frame_equal(kept, outputs[list(selector.result_.outputs)])
    bare = OutputSelector(2).fit(outputs.to_numpy(), inputs["cost"].to_numpy())
    np.testing.assert_array_equal(bare.transform(outputs.to_numpy()), kept.to_numpy())
    with pytest.raises(ValueError, match="feature names"):
        selector.transform(outputs.rename(columns={"y0": "other"}))
    with pytest.raises(ValueError, match="features"):
        bare.transform(outputs.to_numpy()[:, :3])


def test_pipelines_and_clones(outputs, inputs):
    options = {"objective": "percentile", "percentile": 25, "max_correlation": 0.99}
    selector = OutputSelector(2, **options)
    again = clone(selector)
    assert again.get_params() == selector.get_params()
    with pytest.raises(NotFittedError):
        selector.get_support()
    pipeline = make_pipeline(FunctionTransformer(), selector).fit(outputs, inputs)
    direct = again.fit(outputs, inputs)
    assert pipeline[-1].result_.features == direct.result_.features


def test_its_parameters_are_those_of_the_function():
    function = inspect.signature(select_outputs).parameters
    own = inspect.signature(OutputSelector).parameters
    shared = set(function) - {"panel", "size", "start"}
    assert set(own) == shared | {"n_features_to_select"}
    for name in shared:
        assert own[name].default == function[name].default


def test_refusals(outputs, inputs):
    with pytest.raises(DataError, match="the target y is None"):
        OutputSelector(2).fit(outputs)
    bad = outputs.copy()
    bad.loc["unit 4", "y3"] = -1
    with pytest.raises(PanelError, match="'y3' of unit 'unit 4' is negative"):
        OutputSelector(2).fit(bad, inputs)
    with pytest.raises(PanelError, match="different indexes"):
        OutputSelector(2).fit(outputs, inputs[::-1])
    with pytest.raises(DataError, match="from 1 to 6"):
        OutputSelector(7).fit(outputs, inputs)
    with pytest.raises(InfeasibleSelectionError, match="No 3 of the 6"):
        OutputSelector(3, budget=2).fit(outputs, inputs)
