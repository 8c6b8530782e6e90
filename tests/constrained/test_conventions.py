"""scikit-learn's own checks of machines under constraints, and what they leave open."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import SkipTestWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bootprob.constrained import ConstrainedSVC, ConvexConstrainedSVC
from configurations import parametrize_with_configurations

WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
SPLIT = (
    "a row of weight 2 falls into one half, a row that occurs twice may fall into both; "
    "with anchors='all', and without rates, the check passes"
)


GAMMA = (
    "gamma='scale' looks at the rows, not at their weights, as SVC's does; with a number it passes"
)


def expected(estimator):
    if isinstance(estimator, ConvexConstrainedSVC):
        return {}
    if estimator.rates and estimator.anchors == "halves":
        return {WEIGHTS: SPLIT}
    return {WEIGHTS: GAMMA} if estimator.kernel == "rbf" and estimator.gamma == "scale" else {}


@pytest.mark.filterwarnings(f"ignore::{SkipTestWarning.__module__}.{SkipTestWarning.__name__}")
@parametrize_with_configurations(
    [ConstrainedSVC(rates={"tpr": 0.9})],
    [
        ConstrainedSVC(kernel="rbf"),
        ConstrainedSVC(rates={"tnr": 0.9}, kernel="rbf", gamma=0.1, anchors="all"),
        ConstrainedSVC(rates={"tpr": 0.9}, method="slide", anchors="all"),
        ConvexConstrainedSVC(),
    ],
    expected_failed_checks=expected,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_works_in_pipelines_grids_and_clones():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X.iloc[:200, :6], y[:200]
    model = ConstrainedSVC(rates={"tpr": 0.95}, random_state=0)
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), model)
    search = GridSearchCV(
        pipeline,
        {
            "constrainedsvc__kernel": ["linear", "rbf"],
            "constrainedsvc__rates": [None, {"tnr": 0.9}],
        },
        scoring="recall",
        cv=2,
    ).fit(X, y)
    assert search.best_score_ > 0.5
    assert list(search.best_estimator_[-1].feature_names_in_) == list(X.columns)
    assert clone(model).get_params() == model.get_params()


def test_metadata_routing_passes_weights():
    import sklearn

    X, y = make_classification(60, 3, n_informative=3, n_redundant=0, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)
    model = ConstrainedSVC(rates={"tpr": 0.9}, random_state=0)
    direct = clone(model).fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(clone(model).set_fit_request(sample_weight=True))
        routed.fit(X, y, sample_weight=weight)
    assert np.array_equal(routed.decision_function(X), direct.decision_function(X))


@pytest.mark.parametrize("labels", [("benign", "malignant"), (False, True), (-1, 1), (2.0, 7.0)])
def test_labels_of_any_kind(labels):
    X, y = make_classification(60, 3, n_informative=3, n_redundant=0, random_state=0)
    model = ConstrainedSVC(rates={"tpr": 0.9}, random_state=0).fit(X, np.array(labels)[y])
    assert list(model.classes_) == list(labels)
    assert set(model.predict(X)) <= set(labels)
    found = model.predict(X)[model.anchors_] == labels[1]
    assert found[y[model.anchors_] == 1].mean() == model.rates_["tpr"] >= 0.9
