"""Rows in tensors, and in arrays of other libraries, are answered in kind with the same numbers."""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score

from bootprob import BootstrapSVC, CostMatrix, CostSensitiveClassifier, DataError
from bootprob.ensemble.scoring.rows import checked_rows
from bootprob.ensemble.sensitivity import probability_sensitivity
from bootprob.runtime.device_rows import on_host

METHODS = (
    "predict",
    "predict_proba",
    "vote_proba",
    "decision_function",
    "proba_interval",
    "summarize",
    "prediction_sets",
)
MODELS = {
    "linear": {},
    "linear in float32": {"dtype": "float32"},
    "votes": {"calibration": None, "interval": "wald"},
    "rbf": {"kernel": "rbf", "gamma": 0.5},
    "rbf, one scale": {"kernel": "rbf", "gamma": 0.5, "standardize": "global"},
    "mapped": {"kernel": "rbf", "gamma": 0.1, "feature_map": "nystroem", "n_components": 60},
    "several classes": {},
}


class Foreign:
    """An array that offers DLPack and nothing else, of a library that answers in its own kind."""

    def __init__(self, tensor):
        self.tensor, self.shape = tensor, tuple(tensor.shape)

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __array_namespace__(self):
        return SimpleNamespace(from_dlpack=lambda given: Foreign(torch.from_dlpack(given)))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(70, 3))
    return X, X[:, 0] + 0.6 * rng.normal(size=70), rng.normal(size=(15, 3))


@pytest.fixture(scope="module", params=MODELS)
def model(request, table):
    X, latent, _ = table
    several = request.param == "several classes"
    y = np.digitize(latent, [-0.5, 0.5]) if several else (latent > 0).astype(int)
    svc = BootstrapSVC(kernel="linear", n_bootstraps=11, C=[0.1, 1.0], random_state=0)
    return svc.set_params(**MODELS[request.param]).fit(X, y)


def assert_same(found, expected):
    """The same numbers in another library's array, to the last bit."""
    assert str(found.dtype).removeprefix("torch.") == expected.dtype.name
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tensors_are_answered_in_kind(model, table, dtype):
    new = table[2].astype(dtype)
    calls = [(name, {}) for name in METHODS]
    if not model.pair_ensembles_:
        calls.append(("score_interval", {}))
        if model.calibration is not None:
            calls.append(("proba_interval", {"method": "percentile"}))
    for name, options in calls:
        expected = getattr(model, name)(new, **options)
        for given in (torch.from_numpy(new), torch.from_numpy(np.asfortranarray(new))):
            found = getattr(model, name)(given, **options)
            if not isinstance(expected, dict):
                found, expected = {"": found}, {"": expected}
            assert found.keys() == expected.keys()
            for part, values in found.items():
                assert isinstance(values, torch.Tensor), (name, part)
                assert_same(values, expected[part])
            expected = expected.get("", expected)


def test_other_libraries_are_answered_in_kind(model, table):
    given = Foreign(torch.from_numpy(table[2]))
    for name in METHODS:
        found, expected = (getattr(model, name)(rows) for rows in (given, table[2]))
        if isinstance(expected, dict):
            found, expected = found["probability"], expected["probability"]
        assert isinstance(found, Foreign), name
        assert_same(found.tensor, expected)


def test_scores_of_all_models_come_in_kind(model, table):
    if model.pair_ensembles_:
        model = model.pair_ensembles_[0]
    for size in (None, 4):
        expected = list(model.bootstrap_scores(table[2], size))
        found = list(model.bootstrap_scores(torch.from_numpy(table[2]), size))
        assert len(found) == len(expected)
        for ours, numpys in zip(found, expected, strict=True):
            assert_same(ours, numpys)


def test_rows_are_read_where_they_lie(table):
    X, latent, new = table
    model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0).fit(X, latent > 0)
    given = torch.from_numpy(new)
    assert checked_rows(model, given).tensor.data_ptr() == given.data_ptr()
    assert checked_rows(model, Foreign(given)).tensor.data_ptr() == given.data_ptr()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.bool, torch.float16])
def test_other_numbers_become_float64(table, dtype):
    X, latent, new = table
    model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0).fit(X, latent > 0)
    given = torch.from_numpy(3 * new).to(dtype)
    assert_same(model.predict_proba(given), model.predict_proba(given.numpy()))


def test_words_stay_in_numpy(table):
    X, latent, new = table
    labels = np.where(latent > 0, "ill", "well")
    model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0).fit(X, labels)
    found = model.predict(torch.from_numpy(new))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, model.predict(new))


@pytest.mark.parametrize("wrap", [torch.from_numpy, lambda X: Foreign(torch.from_numpy(X))])
def test_fitting_takes_them_too(table, wrap):
    X, latent, new = table
    y, weight = (latent > 0).astype(int), np.linspace(1, 2, len(X))
    svc = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0)
    expected = svc.fit(X, y, weight).predict_proba(new)
    accuracy = svc.score(X, y, weight)
    svc.fit(wrap(X), wrap(y), wrap(weight))
    np.testing.assert_array_equal(svc.predict_proba(new), expected)
    assert svc.score(wrap(X), wrap(y), wrap(weight)) == accuracy
    assert isinstance(svc.classes_, np.ndarray)


def test_what_is_made_of_predictions_takes_them(table):
    X, latent, new = table
    y, given = latent > 0, torch.from_numpy(new)
    model = BootstrapSVC(kernel="linear", n_bootstraps=9, C=1.0, random_state=0).fit(X, y)
    ours, numpys = (probability_sensitivity(model, r, X_train=X) for r in (given, new))
    np.testing.assert_array_equal(ours.row_weight, numpys.row_weight)
    costs = CostMatrix(false_positive=1.0, false_negative=3.0)
    rule = CostSensitiveClassifier(model, cost_matrix=costs).fit(X, y)
    np.testing.assert_array_equal(rule.predict(given), rule.predict(new))
    np.testing.assert_array_equal(rule.decide(given).label, rule.decide(new).label)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X.index_fill(1, torch.tensor([2]), torch.nan), r"Row 0, column 2 .* is nan"),
        (lambda X: torch.where(X[3, 1] == X, torch.inf, X), r"Row 3, column 1 .* is inf .*on cpu"),
        (lambda X: X[0], r"shape \(3,\) \(torch.Tensor of torch.float64 on cpu\)"),
        (lambda X: X[:0], r"shape \(0, 3\)"),
        (lambda X: X[:, :2], "X has 2 features, but BootstrapSVC is expecting 3"),
        (lambda X: X.requires_grad_(), r"gradients do not pass .* give X.detach\(\)"),
        (lambda X: X.to(torch.complex64), r"torch.complex64 on cpu.* only real numbers"),
        (lambda X: X.to_sparse(), "only dense tables"),
        (lambda X: X.to("meta"), r"on meta, and only CPUs and CUDA devices.*X.cpu\(\)"),
    ],
)
def test_bad_rows_are_named(table, spoil, message):
    X, latent, new = table
    model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0).fit(X, latent > 0)
    spoilt = spoil(torch.from_numpy(new.copy()))
    for ask in (model.predict_proba, lambda X: next(model.bootstrap_scores(X))):
        with pytest.raises((DataError, ValueError), match=message):
            ask(spoilt)


def test_a_library_that_does_not_answer_is_named(table):
    class Mute(Foreign):
        __array_namespace__ = property()  # as if it had none

    class Deaf(Foreign):
        def __dlpack__(self, **options):
            raise BufferError("read-only memory")

    X, latent, new = table
    model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0).fit(X, latent > 0)
    with pytest.raises(DataError, match=r"library \S+ has no from_dlpack. Give torch.from_dlpack"):
        model.predict_proba(Mute(torch.from_numpy(new)))
    with pytest.raises(DataError, match=r"DLPack \(read-only memory\)"):
        model.predict_proba(Deaf(torch.from_numpy(new)))


def test_values_come_to_the_host():
    assert on_host([1, 2]) == [1, 2]
    assert on_host(torch.tensor([1.5, 2.0], dtype=torch.bfloat16)).tolist() == [1.5, 2.0]


def test_scikit_learns_dispatch_sees_arrays_of_one_kind():
    """Its metrics of our answers, computed by torch; in a process that scipy is told of it."""
    script = """if True:
        import numpy as np, sklearn, torch
        from sklearn.metrics import accuracy_score
        from bootprob import BootstrapSVC
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 3))
        y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
        rows, labels = torch.from_numpy(X), torch.from_numpy(y)
        with sklearn.config_context(array_api_dispatch=True):
            model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0)
            model.fit(rows, labels)
            found = model.predict(rows)
            assert isinstance(found, torch.Tensor), type(found)
            of_torch = accuracy_score(labels, found)  # in float32
            assert abs(of_torch - model.score(rows, labels)) < 1e-6
        np.testing.assert_array_equal(found.numpy(), model.predict(X))
    """
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr


def test_metrics_without_dispatch_take_our_answers(table):
    X, latent, _ = table
    y = latent > 0
    model = BootstrapSVC(kernel="linear", n_bootstraps=5, C=1.0, random_state=0).fit(X, y)
    assert accuracy_score(y, model.predict(torch.from_numpy(X))) == model.score(X, y)
