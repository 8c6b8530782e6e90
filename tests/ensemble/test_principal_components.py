"""Columns that nearly follow from others: what they say besides is seen as principal components."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from bootprob import BootstrapSVC, load, save
from bootprob.exceptions import ModelFileError
from fuzz_model_files import parts_of, signed


def _columns(rng, n):
    """Three columns of which two are nearly one, and by how much these differ, of variance 1."""
    X = rng.normal(size=(n, 3))
    X[:, 1] = X[:, 0] + 0.03 * X[:, 1]
    return X, (X[:, 1] - X[:, 0]) / 0.03


@pytest.fixture(scope="module")
def bent():
    """A model of a bend in that difference, and rows with their true probabilities."""
    rng = np.random.default_rng(3)
    X, apart = _columns(rng, 250)
    y = rng.uniform(size=250) < expit(2 * apart**2 - 2)
    new, apart = _columns(rng, 200)
    model = BootstrapSVC(n_bootstraps=10, random_state=0).fit(X, y)
    return model, new, expit(2 * apart**2 - 2)


def test_a_bend_in_a_difference_of_columns_is_found(bent):
    """Without this view the interval was that of a straight line, and covered .2."""
    model, new, truth = bent
    assert sum(w for name, w in model.kernel_weights_.items() if "principal" in name) > 0.1
    lower, upper = model.proba_interval(new)[:, 1].T
    assert ((lower <= truth) & (truth <= upper)).mean() > 0.85
    assert np.corrcoef(model.predict_proba(new)[:, 1], truth)[0, 1] > 0.9


def test_a_straight_difference_of_columns_is_found():
    rng = np.random.default_rng(5)
    X, apart = _columns(rng, 250)
    y = rng.uniform(size=250) < expit(1.5 * apart)
    new, apart = _columns(rng, 200)
    model = BootstrapSVC(n_bootstraps=10, random_state=0).fit(X, y)
    lower, upper = model.proba_interval(new)[:, 1].T
    truth = expit(1.5 * apart)
    assert ((lower <= truth) & (truth <= upper)).mean() > 0.85


def test_the_same_from_a_file_and_no_other_components(bent, tmp_path):
    model, new, _ = bent
    path = tmp_path / "m.model"
    save(model, path)
    loaded = load(path)
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(loaded.proba_interval(new), model.proba_interval(new))
    content, arrays = parts_of(path.read_bytes())
    assert arrays["views_.components"].shape == (3, 3)
    shorter = arrays | {"views_.components": arrays["views_.components"][:2]}
    without = {name: each for name, each in arrays.items() if name != "views_.components"}
    for changed in (shorter, without):
        path.write_bytes(signed(content, changed))
        with pytest.raises(ModelFileError):
            load(path)


def test_the_same_as_a_graph(bent, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    from bootprob.onnx_export import export_onnx

    model, new, _ = bent
    export_onnx(model, tmp_path / "m.onnx", interval=0.95)
    session = onnxruntime.InferenceSession(
        str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"]
    )
    probability, label, lower, upper = session.run(None, {"X": new})
    bounds = np.stack([lower, upper], axis=-1)
    np.testing.assert_allclose(probability, model.predict_proba(new), atol=1e-9)
    np.testing.assert_allclose(bounds, model.proba_interval(new), atol=1e-9)
    np.testing.assert_array_equal(label, model.predict(new))
