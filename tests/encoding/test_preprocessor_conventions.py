"""The preprocessor of tables keeps scikit-learn's conventions, but for what tables are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import check_array, get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from bootprob.encoding.preprocessing import TablePreprocessor

EXPECTED = {
    "check_n_features_in_after_fitting": "columns are found by name, and further ones ignored",
}


class OfArrays(TablePreprocessor):
    """Takes the arrays of scikit-learn's checks as data frames, checked as it checks them."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags

    def fit(self, X, y=None):
        return super().fit(_frame(X, self), y)

    def transform(self, X):
        return super().transform(_frame(X, self))


def _frame(X, estimator):
    if isinstance(X, pd.DataFrame):
        return X
    X = check_array(X, dtype=None, ensure_all_finite="allow-nan", estimator=estimator)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


@parametrize_with_checks([OfArrays()], expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_tags_say_what_is_taken():
    taken = get_tags(TablePreprocessor()).input_tags
    assert (taken.two_d_array, taken.sparse) == (False, False)
    assert (taken.allow_nan, taken.categorical, taken.string) == (True, True, True)
    with pytest.raises(ValueError, match="A pandas DataFrame is wanted, not ndarray"):
        TablePreprocessor().fit(np.ones((3, 2)))
