"""scikit-learn's own checks, and what they leave open."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bootprob import BootstrapClassifier, BootstrapSVC
from bootprob.exceptions import DataError
from configurations import parametrize_with_configurations

EXPECTED = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "a row of weight 2 and a row that occurs twice lead to different bootstrap samples; "
    "test_weights_and_repetitions_agree_on_average stands in its place",
)

# Their rows are noise: "Out of bag, the scores say nothing", and no rate can be kept by them.
NOISE = dict.fromkeys(
    (
        "check_class_weight_classifiers",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_nan_inf",
        "check_fit_score_takes_y",
        "check_n_features_in_after_fitting",
        "check_sample_weights_list",
        "check_supervised_y_2d",
    ),
    "control refuses scores that say nothing of the classes",
)


@pytest.mark.filterwarnings(f"ignore::{SkipTestWarning.__module__}.{SkipTestWarning.__name__}")
@parametrize_with_configurations(
    [BootstrapSVC(kernel="linear", n_bootstraps=10, C=1.0)],
    [
        BootstrapSVC(kernel="rbf", n_bootstraps=5, C=1.0),
        BootstrapSVC(
            kernel="linear",
            n_bootstraps=10,
            C=1.0,
            control="threshold",
            rates={"tpr": 0.6},
            random_state=0,
        ),
    ],
    slow=[BootstrapSVC(n_bootstraps=3, C=1.0)],
    expected_failed_checks=lambda estimator: EXPECTED | (NOISE if estimator.control else {}),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::bootprob.CopiedRowsWarning")
def test_weights_and_repetitions_agree_on_average():
    X, y = make_classification(120, 4, n_informative=3, n_redundant=0, flip_y=0.2, random_state=1)
    weight = np.random.default_rng(0).integers(1, 3, len(y))
    new = X[:40] + 0.1
    differences = []
    for seed in range(8):
        model = BootstrapSVC(kernel="linear", n_bootstraps=60, C=1.0, random_state=seed)
        weighted = model.fit(X, y, sample_weight=weight).decision_function(new)
        repeated = clone(model).set_params(random_state=seed + 100)
        repeated = repeated.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        differences.append((weighted - repeated.decision_function(new)).mean())
    # The two draw different samples; what they estimate on average is the same.
    assert ttest_1samp(differences, 0.0).pvalue > 1e-3
    assert abs(np.mean(differences)) < 0.1


def test_weight_zero_removes_a_row_from_everything_but_the_draw():
    X, y = make_classification(80, 3, n_informative=3, n_redundant=0, random_state=2)
    weight = np.ones(80)
    weight[::5] = 0
    poisoned = X.copy()
    poisoned[::5] *= 1e3
    model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
    kept = model.fit(X, y, sample_weight=weight).predict_proba(X[1:5])
    # Only the shared centre and scale saw the poisoned rows, and those cancel.
    assert clone(model).fit(poisoned, y, sample_weight=weight).predict_proba(X[1:5]) == (
        pytest.approx(kept, abs=1e-4)
    )


def test_works_in_pipelines_grids_and_clones():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X.iloc[:200, :6], y[:200]
    model = BootstrapSVC(kernel="linear", n_bootstraps=10, C=[0.1, 1.0], random_state=0)
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), model)
    search = GridSearchCV(
        pipeline, {"bootstrapsvc__kernel": ["linear", "rbf"]}, scoring="neg_log_loss", cv=3
    ).fit(X, y)
    assert search.best_score_ > -0.5
    assert list(search.best_estimator_[-1].feature_names_in_) == list(X.columns)
    p = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    assert p.shape == (200, 2)
    log_p = cross_val_predict(model, X, y, cv=3, method="predict_log_proba")
    assert (log_p == np.log(p)).all()
    assert clone(model).get_params() == model.get_params()


def test_metadata_routing_passes_weights():
    import sklearn

    X, y = make_classification(60, 3, n_informative=3, n_redundant=0, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)
    direct = BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0).fit(
        X, y, sample_weight=weight
    )
    with sklearn.config_context(enable_metadata_routing=True):
        model = BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0)
        routed = make_pipeline(model.set_fit_request(sample_weight=True))
        routed.fit(X, y, sample_weight=weight)
    assert np.array_equal(routed.predict_proba(X), direct.predict_proba(X))


@pytest.mark.parametrize("labels", [("benign", "malignant"), (False, True), (-1, 1), (2.0, 7.0)])
def test_labels_of_any_kind(labels):
    X, y = make_classification(60, 3, n_informative=3, n_redundant=0, random_state=0)
    named = np.array(labels)[y]
    model = BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0).fit(X, named)
    assert list(model.classes_) == list(labels)
    assert set(model.predict(X)) <= set(labels)
    assert (model.predict(X) == np.array(labels)[model.predict_proba(X).argmax(axis=1)]).all()


@pytest.mark.parametrize(
    "estimator",
    [BootstrapSVC(n_bootstraps=10), BootstrapClassifier(LogisticRegression(), n_bootstraps=10)],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA], ids=repr)
def test_missing_labels_are_counted(estimator, missing):
    X, y = make_classification(60, 3, n_informative=3, n_redundant=0, random_state=0)
    labels = ["yes" if each else "no" for each in y]
    labels[7] = labels[30] = missing
    array = np.array(labels, dtype=object)
    for given in (labels, array, pd.Series(array), pd.Series(array, dtype="string")):
        with pytest.raises(DataError, match=r"2 labels in y are missing, the first in row 7 "):
            estimator.fit(X, given)


@pytest.mark.parametrize(
    "estimator",
    [BootstrapSVC(n_bootstraps=10), BootstrapClassifier(LogisticRegression(), n_bootstraps=10)],
    ids=lambda each: type(each).__name__,
)
def test_text_beside_numbers_is_no_label(estimator):
    X, y = make_classification(60, 3, n_informative=3, n_redundant=0, random_state=0)
    mixed = [1 if each else "b" for each in y]
    for given in (mixed, np.array(mixed, dtype=object), pd.Series(mixed)):
        with pytest.raises(DataError, match="text beside numbers, such as 'b' and 1;"):
            estimator.fit(X, given)


def test_a_single_class_is_an_error_of_ours():
    with pytest.raises(DataError, match="Two classes are needed in y"):
        BootstrapSVC(n_bootstraps=10).fit(np.eye(6), np.ones(6))
