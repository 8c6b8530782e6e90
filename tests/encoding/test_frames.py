"""What is a data frame, and what is none."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from bootprob import BootstrapClassifier, BootstrapSVC
from bootprob.encoding.frames import as_frame
from bootprob.exceptions import DataError


def test_tables_of_arrow_are_data_frames():
    frame = pd.DataFrame({"age": [1.0, 2.0], "house": ["own", "rent"]})
    assert as_frame(frame) is frame
    pd.testing.assert_frame_equal(as_frame(pa.Table.from_pandas(frame)), frame)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_column_is_no_data_frame():
    assert as_frame(pd.Series([1.0, 2.0])) is None
    X = pd.DataFrame({"age": np.arange(40.0), "size": np.arange(40) % 7.0})
    model = BootstrapClassifier(LogisticRegression(), n_bootstraps=4, random_state=0)
    for each in (model, BootstrapSVC(kernel="linear", n_bootstraps=4, C=1.0, random_state=0)):
        each.fit(X, X["age"] % 3 > 1)
        with pytest.raises(ValueError, match="Expected a 2-dimensional container"):
            each.predict_proba(X.iloc[0])
        with pytest.raises(ValueError, match="Expected a 2-dimensional container"):
            each.fit(X["age"], X["age"] > 20)


@pytest.mark.parametrize("kind", ["any", "svc"])
def test_a_refit_that_fails_leaves_the_columns(kind):
    X = pd.DataFrame({"age": np.arange(40.0), "size": np.arange(40) % 7.0})
    if kind == "any":
        model = BootstrapClassifier(LogisticRegression(), n_bootstraps=4, random_state=0)
    else:
        model = BootstrapSVC(kernel="linear", n_bootstraps=4, C=1.0, random_state=0)
    with pytest.raises(ValueError, match="1 class"):
        model.fit(X, np.ones(40))
    assert not hasattr(model, "feature_names_in_")
    found = model.fit(X, X["age"] % 3 > 1).predict_proba(X)
    for other in (X[["size", "age"]], X.to_numpy()[:, :1]):
        with pytest.raises(ValueError, match="1 class"):
            model.fit(other, np.ones(40))
        np.testing.assert_array_equal(model.predict_proba(X), found)


@pytest.mark.parametrize(
    "model", [BootstrapClassifier(LogisticRegression()), BootstrapSVC()], ids=["any", "svc"]
)
def test_columns_of_the_same_name_are_refused(model):
    X = pd.DataFrame(np.eye(4), columns=["age", "size", "age", "kids"])
    with pytest.raises(DataError, match="The table has several columns named 'age'"):
        model.fit(X, [0, 1, 0, 1])
