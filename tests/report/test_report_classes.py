"""The report and the card of a model of several classes."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import confusion_matrix, log_loss, roc_auc_score
from typer.testing import CliRunner

from bootprob import BootstrapSVC
from bootprob.cli.__main__ import app
from bootprob.ensemble.conformal import prediction_sets
from bootprob.exceptions import DataError
from bootprob.explanation import partial_dependence, permutation_importance
from bootprob.persistence.save_load import save
from bootprob.report import model_card, write_report
from bootprob.tables.held_out import HeldOut
from bootprob.tables.model import TableModel
from linear_models import linear
from report_pages import check_tables_of_figures

NAMES = ["ash <b>", "birch", "cedar"]


def table(seed, n=120):
    rng = np.random.default_rng(seed)
    X = 4000 + 1000 * rng.normal(size=(n, 3))
    y = np.digitize((X[:, 0] - 4000) / 1000 + 0.6 * rng.normal(size=n), [-0.5, 0.6])
    frame = pd.DataFrame(X, columns=["height", "girth", "age"])
    frame["tree"] = np.array(NAMES)[y]
    return frame


@pytest.fixture(scope="module")
def model():
    estimator = linear(C=[0.1, 1.0], n_bootstraps=25, random_state=1)
    return TableModel.fit(table(0), "tree", all_classes=True, estimator=estimator)


@pytest.fixture(scope="module")
def written(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "trees.html"
    aside = HeldOut.of_table(model, table(5, 60))
    svc = model.svc_with_class_names()
    write_report({"linear": svc}, path, title="Which tree?", held_out=aside)
    source = path.read_text(encoding="utf-8")
    return source, json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def test_numbers_are_those_of_the_out_of_bag_probabilities(written, model):
    [entry] = written[1]["models"]
    p, y = model.svc.oob_proba_, model.svc.y_
    assert entry["metrics"]["log_loss"]["value"] == pytest.approx(log_loss(y, p))
    assert entry["metrics"]["accuracy"]["value"] == np.mean(p.argmax(axis=1) == y)
    assert entry["confusion"] == confusion_matrix(y, p.argmax(axis=1)).tolist()
    for k, found in enumerate(entry["classes"]):
        assert found["metrics"]["auc"]["value"] == pytest.approx(roc_auc_score(y == k, p[:, k]))
        bins = entry["reliability"][k]["bins"]
        assert np.average(bins["observed"], weights=bins["weight"]) == pytest.approx(
            np.mean(y == k)
        )
    assert [each["n_rows"] for each in written[1]["data"]["classes"]] == np.bincount(y).tolist()


def test_rows_set_aside_are_measured(written, model):
    [entry] = written[1]["models"]
    new, svc = table(5, 60), model.svc
    y = np.array([NAMES.index(name) for name in new["tree"]])
    X = model.preprocessor.transform(new)
    p = svc.predict_proba(X)
    assert entry["held_out"]["metrics"]["log_loss"]["value"] == pytest.approx(log_loss(y, p))
    assert entry["held_out"]["confusion"] == confusion_matrix(y, svc.predict(X)).tolist()
    sets = prediction_sets(svc, X, 0.95)
    every, *of_classes = entry["sets"]["held_out"]
    assert every["covered"]["value"] == pytest.approx(sets[range(60), y].mean())
    assert every["one"] == pytest.approx((sets.sum(axis=1) == 1).mean())
    assert of_classes[1]["n_rows"] == (y == 1).sum()
    width = np.diff(svc.proba_interval(X), axis=2)[:, 2, 0]
    assert entry["widths"]["classes"][2]["all"]["median"] == pytest.approx(np.median(width))
    own = np.quantile(width[y == 2], 0.9)
    assert entry["widths"]["classes"][2]["own"]["ninetieth"] == pytest.approx(own)


def test_effects_are_those_of_each_class(written, model):
    """Linear machines keep no rows: of the held-out ones."""
    source, content = written
    effects, aside = content["models"][0]["effects"], HeldOut.of_table(model, table(5, 60))
    svc = model.svc_with_class_names()
    first = effects["importance"]["columns"][0]
    assert first["column"] == "x0"  # the height
    assert first["lower"] > 0
    assert effects["importance"]["held_out"]
    held_out = permutation_importance(svc, aside.X, aside.y, held_out=True, n_repeats=3)
    assert first["importance"] == pytest.approx(held_out.importances_mean[0])
    for label, (curve, *_) in zip(NAMES, effects["classes"], strict=True):
        expected = partial_dependence(svc, 0, aside.X, values=curve["values"], label=label)
        np.testing.assert_allclose(curve["log_odds"], expected.log_odds)
        np.testing.assert_allclose(curve["interval"], expected.interval)
    ash, _, cedar = (curves[0]["log_odds"] for curves in effects["classes"])
    assert ash[0] > ash[-1]
    assert cedar[0] < cedar[-1]
    assert "What do the probabilities depend on?" in source


def test_effects_of_training_rows_are_out_of_bag(model, tmp_path):
    svc = BootstrapSVC(kernel="rbf", C=1.0, n_bootstraps=8, random_state=0)
    frame = table(0)
    svc.fit(frame.drop(columns="tree"), frame["tree"])
    write_report({"rbf": svc}, tmp_path / "r.html", title="Trees")
    [entry] = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["models"]
    assert not entry["effects"]["importance"]["held_out"]
    assert entry["effects"]["importance"]["columns"][0]["column"] == "height"
    votes = clone(svc).set_params(calibration=None, interval="wald")
    votes.fit(frame.drop(columns="tree"), frame["tree"])
    write_report({"votes": votes}, tmp_path / "v.html", title="Trees")
    assert 'id="effects"' not in (tmp_path / "v.html").read_text(encoding="utf-8")


def test_stability_is_that_of_each_class_against_the_rest(written, model):
    source, numbers = written
    found, new = numbers["models"][0]["stability"], table(5, 60)
    X = model.preprocessor.transform(new)
    y = [NAMES.index(name) for name in new["tree"]]
    for k, each in enumerate(found["classes"]):
        wanted = model.svc.stability(X, y, positive=k)
        assert each["mean_absolute_error"] == pytest.approx(wanted.mean_absolute_error, abs=1e-9)
        size = np.median(wanted.effective_sample_size)
        assert each["median_effective_sample_size"] == pytest.approx(size, rel=1e-6)
    replicates, p = model.svc.bootstrap_proba(X), model.svc.predict_proba(X)
    other = (replicates.argmax(axis=2) != p.argmax(axis=1)).mean()
    assert found["mean_classification_instability"] == pytest.approx(other)
    assert "60 held-out rows, 25 samples" in source


def test_pairs_are_described(written, model):
    [entry] = written[1]["models"]
    assert [pair["classes"] for pair in entry["pairs"]] == [[0, 1], [0, 2], [1, 2]]
    for found, pair in zip(entry["pairs"], model.svc.pair_ensembles_, strict=True):
        width = np.diff(pair.oob_proba_interval(0.95)[:, 1], axis=1)
        assert found["median_width"] == pytest.approx(np.nanmedian(width))
        assert found["log_loss"] == pytest.approx(pair.metric_intervals()["log_loss"].value)
        assert found["kernel_weights"] == {"linear": pytest.approx(1.0)}
    assert entry["n_models"] == entry["convergence"]["n_models"] == 3 * 25 * 2


def test_the_page_shows_what_the_json_holds_and_no_features(written):
    source, numbers = written
    check_tables_of_figures(source, n_figures=5)
    assert "ash <b>" not in source
    assert "ash &lt;b&gt;" in source
    known = set()

    def collect(value):
        if isinstance(value, dict | list):
            for each in value.values() if isinstance(value, dict) else value:
                collect(each)
        elif isinstance(value, int | float):
            known.add(float(value))

    collect(numbers)
    shown = [float(value) for value in re.findall(r'<data value="([^"]*)">', source)]
    assert len(shown) > 150
    assert set(shown) <= known
    ids = re.findall(r'\bid="([^"]*)"', source)
    assert len(ids) == len(set(ids))
    others = re.sub(r'(?s)<section id="effects".*?</section>', "", source)  # values of no row
    for value in table(0)[["height", "girth", "age"]].to_numpy().ravel():
        assert f"{value:.1f}" not in others


def test_a_model_of_before_has_no_sets(model, tmp_path):
    svc = model.svc_with_class_names()
    svc.oob_class_scores_ = None
    content = write_report({"linear": svc}, tmp_path / "r.html", title="Old")
    assert content["models"][0]["sets"] is None
    source = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Which classes cannot be excluded" not in source
    assert "With held-out rows the report has the widths" in source


def test_labels_that_the_model_does_not_know_are_refused(model, tmp_path):
    new = table(5, 9)
    new.loc[3, "tree"] = "oak"
    with pytest.raises(
        DataError, match="label 'oak' in row 4; the model knows 'ash <b>', 'birch' "
    ):
        HeldOut.of_table(model, new)
    svc = model.svc_with_class_names()
    X = model.preprocessor.transform(new)
    with pytest.raises(DataError, match="must be a vector of 'ash <b>', 'birch', 'cedar'"):
        write_report({"l": svc}, tmp_path / "r.html", title="", held_out=HeldOut(X, new["tree"]))


@pytest.mark.usefixtures("undrawn")
def test_the_command_fits_reports_and_writes_a_card(model, tmp_path):
    pytest.importorskip("skops.card")
    table(0).to_csv(tmp_path / "trees.csv", index=False)
    given = ["trees.csv", "--target", "tree", "--all-classes", "--kernel", "linear", "--C", "1"]
    more = ["--n-bootstraps", "10", "--seed", "1", "-o", "r.html", "--card", "c.md"]
    arguments = [tmp_path / each if "." in each else each for each in [*given, *more]]
    result = CliRunner().invoke(app, ["report", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    [entry] = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["models"]
    card = (tmp_path / "c.md").read_text(encoding="utf-8")
    assert f"{entry['metrics']['log_loss']['value']:.4f}" in card
    assert "## Prediction sets" in card
    assert "ash &lt;b&gt;" in card
    save(model, tmp_path / "m.model")
    source = [str(tmp_path / "m.model"), "--all-classes", "-o", str(tmp_path / "s.html")]
    result = CliRunner().invoke(app, ["report", *source])
    assert result.exit_code == 2
    assert "do not apply" in " ".join(result.stderr.split())


def test_the_card_of_rows_set_aside(model):
    pytest.importorskip("skops.card")
    text = model_card(model, held_out=HeldOut.of_table(model, table(5, 60))).render()
    assert "each of 3 classes" in text
    assert "Beside it 60 held-out rows." in text
    assert "True class in the set on held-out rows" in text
    assert "Half of 60 held-out rows have one wider than" in text
