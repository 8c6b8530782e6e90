"""The section on stability: the numbers of the model's own rows, and where it has none."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from bootprob import BootstrapClassifier, BootstrapSVC
from bootprob.ensemble import cross_fitted_proba
from bootprob.metrics import calibration_line, calibration_tests
from bootprob.report import write_report
from bootprob.report.model.sections.stability import _drawn
from bootprob.tables.held_out import HeldOut
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

pytestmark = pytest.mark.usefixtures("undrawn")
HEADING = "Would other training rows have given other probabilities?"


def report(model, folder, **options):
    path = folder / "report.html"
    write_report({"a model": model}, path, title="A title", **options)
    numbers = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return path.read_text(encoding="utf-8"), numbers["models"][0]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    return X, np.where(X[:, 0] + rng.logistic(size=80) > 0, "yes", "no")


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_training_rows_given_or_kept(table, tmp_path, kernel):
    X, y = table
    model = BootstrapSVC(kernel=kernel, C=1.0, n_bootstraps=20, random_state=0).fit(X, y)
    given = {"training": X} if kernel == "linear" else {}
    page, entry = report(model, tmp_path, **given)
    found, wanted = entry["stability"], model.stability(X, y)
    assert HEADING in page
    assert (found["n_rows"], found["n_replicates"], found["held_out"]) == (80, 20, False)
    for name in ("mean_absolute_error", "mean_classification_instability"):
        assert found[name] == pytest.approx(getattr(wanted, name), abs=1e-9)
    np.testing.assert_allclose(found["rows"]["interval"], wanted.interval, atol=1e-9)
    np.testing.assert_allclose(found["slope"], [wanted.slope, *wanted.slope_interval], atol=1e-6)
    assert sum(each["n_rows"] for each in found["tenths"]) == 80
    assert "80 training rows, 20 replicates" in page
    assert entry["calibration_tests"] is None
    line = calibration_line(y == "yes", cross_fitted_proba(model))
    for name, each in line.items():
        assert entry["calibration_line"][name]["upper"] == pytest.approx(each.upper, abs=1e-6)
    assert "The calibration slope is" in page


def test_held_out_rows_of_machines_that_keep_none(table, tmp_path):
    X, y = table
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=20, random_state=0).fit(X, y)
    page, entry = report(model, tmp_path, held_out=HeldOut(X[:40] + 0.1, y[:40]))
    assert "40 held-out rows, 20 replicates" in page
    wanted = model.stability(X[:40] + 0.1, y[:40])
    assert entry["stability"]["mean_absolute_error"] == pytest.approx(wanted.mean_absolute_error)
    tests = calibration_tests(y[:40] == "yes", wanted.probability)
    for name, each in tests.items():
        assert entry["calibration_tests"][name]["p_value"] == pytest.approx(each.p_value, abs=1e-6)
    assert "Kuiper’s test" in page or "Kuiper&rsquo;s test" in page
    page, entry = report(model, tmp_path)
    assert HEADING not in page
    assert entry["stability"] is None


def test_tables_classifiers_and_votes(table, tmp_path):
    X, y = table
    rows = credit_table(80)
    loans = TableModel.fit(rows, "risk", "bad", kernel="linear", n_bootstraps=20, random_state=0)
    svc = loans.svc_with_class_names()
    page, entry = report(svc, tmp_path, training=rows, table=loans)
    assert HEADING in page
    assert entry["stability"]["n_rows"] == 80
    other = BootstrapClassifier(LogisticRegression(), n_bootstraps=20, random_state=0).fit(X, y)
    assert report(other, tmp_path, training=X)[1]["stability"]["n_rows"] == 80
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = BootstrapSVC(kernel="rbf", C=1.0, n_bootstraps=20, random_state=0).fit(frame, y)
    assert report(named, tmp_path)[1]["stability"]["n_rows"] == 80
    votes = BootstrapSVC.paper(n_bootstraps=20, random_state=0).fit(X, y)
    assert report(votes, tmp_path, training=X)[1]["stability"] is None


def test_weighted_rows_have_groups_of_rows_in_place_of_a_band(table, tmp_path):
    X, y = table
    weight = np.random.default_rng(0).exponential(size=80)
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=20, random_state=0)
    page, entry = report(model.fit(X, y), tmp_path)
    assert entry["reliability"]["probability"]["band"]["n_rows"] == 80
    assert "The shaded band contains the whole curve" in page
    page, entry = report(model.fit(X, y, sample_weight=weight), tmp_path)
    assert entry["reliability"]["probability"]["band"] is None
    assert "Wilson intervals" in page


def test_rows_of_very_many_are_drawn_with_weights_that_make_up_for_it():
    codes = (np.arange(20_000) % 200 == 0).astype(int)
    weights = np.where(np.arange(20_000) % 3 == 0, 0.0, 2.0)
    kept, drawn = _drawn(codes, weights)
    assert 500 <= len(kept) <= 530
    assert (weights[kept] > 0).all()
    assert codes[kept].sum() == 25
    for k in (0, 1):
        whole = weights[codes == k].sum()
        assert drawn[kept][codes[kept] == k].sum() == pytest.approx(whole, rel=0.01)
