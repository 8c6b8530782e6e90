"""What files say that a model learnt since its fit is looked at before it is believed."""

import numpy as np
import pytest

from bootprob import load, save
from bootprob.persistence.update_checks import check_updates
from linear_models import linear


@pytest.fixture(scope="module")
def updated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    model = linear(n_bootstraps=10, random_state=0).fit(X, y)
    return model.recalibrated(X, y).watched(X, y)


def _stored(model):
    parts = {"recalibration_": model.recalibration_, "monitor_": model.monitor_}
    arrays = {
        f"{name}.{part}": array.copy() for name, of in parts.items() for part, array in of.items()
    }
    return arrays, {name: set(of) for name, of in parts.items()}


def test_what_is_right_passes(updated, tmp_path):
    arrays, parts = _stored(updated)
    check_updates(arrays, {"history_": updated.history_}, parts)
    check_updates({}, {}, {"recalibration_": set(), "monitor_": set()})
    save(updated, tmp_path / "model")
    assert load(tmp_path / "model").history_ == updated.history_


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("recalibration_.coefficients", [0.0, -1.0], "coefficients"),
        ("recalibration_.coefficients", [1e9, 1.0], "coefficients"),
        ("recalibration_.covariance", [[-1.0, 0.0], [0.0, 1.0]], "covariance"),
        ("recalibration_.replaced", [[1e300, 0.0], [0.0, 1.0]], "replaced"),
        ("monitor_.rows", np.zeros(5), "bins"),
        ("monitor_.rows", np.zeros(769), "more positive rows"),
        ("monitor_.capital", np.zeros((2, 3)), "capital"),
        ("monitor_.values", [0.5, 0.0, 1.0], "e-values"),
        ("monitor_.values", [1.0, np.nan, 1.0], "e-values"),
        ("monitor_.numerators", [1e200, 0.0], "too large"),
    ],
)
def test_lies_are_refused(updated, name, value, words):
    arrays, parts = _stored(updated)
    arrays[name] = np.asarray(value)
    with pytest.raises(ValueError, match=words):
        check_updates(arrays, {}, parts)


def test_halves_are_refused(updated, tmp_path):
    arrays, parts = _stored(updated)
    for name in parts:
        with pytest.raises(TypeError, match="not complete"):
            check_updates(arrays, {}, parts | {name: set(list(parts[name])[:2])})
    with pytest.raises(TypeError, match="history_"):
        check_updates({}, {"history_": [3]}, {"recalibration_": set(), "monitor_": set()})
    broken = updated.watched(np.zeros((1, 2)))
    broken.recalibration_ = broken.recalibration_ | {"coefficients": np.array([0.0, -1.0])}
    with pytest.raises(ValueError, match="coefficients"):
        save(broken, tmp_path / "model")
