"""``bootprob update`` from a person's chair."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from bootprob import BootstrapClassifier, BootstrapSVC, load, save
from bootprob.cli.__main__ import app


def _run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def _loans(n, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    bad = rng.random(n) < expit(1.2 * X[:, 0] - 0.5 + shift)
    frame = pd.DataFrame(X, columns=["income", "debt"])
    return frame.assign(home=np.where(X[:, 1] > 0, "rent", "own"), risk=np.where(bad, "bad", "ok"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("update")
    _loans(200).to_csv(folder / "loans.csv", index=False)
    _loans(400, 2.0, seed=1).to_csv(folder / "june.csv", index=False)
    _loans(80, seed=2).drop(columns="risk").to_csv(folder / "july.csv", index=False)
    options = ["--kernel", "linear", "--n-bootstraps", 20, "--seed", 0]
    fitted = _run(
        "fit", folder / "loans.csv", "--target", "risk", "--positive", "bad", *options,
        "-o", folder / "loans.model",
    )  # fmt: skip
    assert fitted.exit_code == 0, fitted.output
    return folder


def test_labels_move_the_model_and_an_alarm_is_told(folder):
    found = _run("update", folder / "loans.model", folder / "june.csv", "-o", folder / "june.model")
    assert found.exit_code == 0, found.output
    said = " ".join(found.output.split())
    assert "400 rows with labels. Largest e-values so far: calibration" in said
    assert "Probabilities are no longer calibrated" in said
    assert "Of the probabilities of the fit, 10% is now" in said
    assert "Log-loss of these rows:" in said
    moved, before = load(folder / "june.model"), load(folder / "loans.model")
    assert [entry["what"] for entry in moved.svc.history_] == ["watched", "recalibrated by labels"]
    assert before.svc.history_ is None
    frame = _loans(50, seed=3)
    assert (moved.predict(frame)["probability"] > before.predict(frame)["probability"]).all()


def test_watching_leaves_probabilities_and_goes_on_in_the_same_file(folder, tmp_path):
    path = tmp_path / "watched.model"
    path.write_bytes((folder / "loans.model").read_bytes())
    for rows in ("july.csv", "july.csv"):
        found = _run("update", path, folder / rows, "--watch")
        assert found.exit_code == 0, found.output
        assert "has no column 'risk'" in " ".join(found.output.split())
    watched, frame = load(path), _loans(20, seed=3)
    assert len(watched.svc.history_) == 2
    pd.testing.assert_frame_equal(
        watched.predict(frame), load(folder / "loans.model").predict(frame)
    )


def test_base_rates_and_rows_without_labels(folder, tmp_path):
    for given in (["--base-rate", 0.8], [folder / "july.csv"]):
        found = _run("update", folder / "loans.model", *given, "-o", tmp_path / "model")
        assert found.exit_code == 0, found.output
        assert "is now" in found.output
        assert load(tmp_path / "model").svc.recalibration_ is not None


@pytest.mark.parametrize("of", ["names", "array", "classifier", "frame"])
def test_models_that_were_fitted_in_python_are_updated_as_there(of, folder, tmp_path):
    """What is written is what they were, and answers as `recalibrated` of the same rows does."""
    before, june = _loans(150), pd.read_csv(folder / "june.csv")
    columns = ["income", "debt", "home"] if of == "frame" else ["income", "debt"]
    X, new = before[columns], june[columns]
    if of in ("array", "classifier"):
        X, new = X.to_numpy(), new.to_numpy()
    model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
    if of == "classifier":
        model = BootstrapClassifier(LogisticRegression(), n_bootstraps=20, random_state=0)
    save(model.fit(X, before["risk"]), tmp_path / "python.model")
    rows = tmp_path / "june.csv"
    june[[*columns, "risk"]].to_csv(rows, index=False)
    found = _run("update", tmp_path / "python.model", rows, "--target", "risk")
    assert found.exit_code == 0, found.output
    moved, expected = load(tmp_path / "python.model"), model.watched(new, june["risk"])
    assert type(moved) is type(model)
    assert [entry["e_values"] for entry in moved.history_[:1]] == [
        entry["e_values"] for entry in expected.history_
    ]
    expected = expected.recalibrated(new, june["risk"])
    np.testing.assert_allclose(moved.predict_proba(X), expected.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(moved.proba_interval(X), expected.proba_interval(X), rtol=1e-9)
    written = (tmp_path / "python.model").read_bytes()
    mistyped = _run("update", tmp_path / "python.model", rows, "--target", "rsk")
    assert mistyped.exit_code == 1
    named = "no column 'rsk', as --target says" if of in ("names", "frame") else "--target COLUMN"
    assert named in " ".join(mistyped.stderr.split())
    assert (tmp_path / "python.model").read_bytes() == written
    june[columns].to_csv(rows, index=False)
    watched = _run("update", tmp_path / "python.model", rows, "--watch")
    assert "no column 'class' (--target says what it is called)" in " ".join(watched.output.split())
    rated = _run("update", tmp_path / "python.model", "--base-rate", 0.2)
    assert rated.exit_code == 0, rated.output
    assert [entry["what"] for entry in load(tmp_path / "python.model").history_] == [
        "watched",
        "recalibrated by labels",
        "watched",
        "recalibrated by a base rate",
    ]


@pytest.mark.parametrize("of", ["table", "names", "array", "classifier"])
def test_a_reason_to_fit_again_names_the_column(of, folder, tmp_path):
    """Of models that are given rows without names, too."""
    rows, rng, before = _loans(600, seed=4), np.random.default_rng(4), _loans(200)
    is_bad = rng.random(600) < expit(1.2 * rows["income"] - 0.5 + 0.6 * rows["debt"])
    rows = rows.assign(risk=np.where(is_bad, "bad", "ok"))
    path, target = folder / "loans.model", []
    if of != "table":
        model, path, target = BootstrapSVC(kernel="linear"), tmp_path / "m", ["--target", "risk"]
        if of == "classifier":
            model = BootstrapClassifier(LogisticRegression())
        rows, X = rows.drop(columns="home"), before[["income", "debt"]]
        model.set_params(n_bootstraps=20, random_state=0)
        save(model.fit(X if of == "names" else X.to_numpy(), before["risk"]), path)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    said = _run("update", path, tmp_path / "rows.csv", *target, "-o", tmp_path / "m")
    assert said.exit_code == 0, said.output
    # Beside the logit, which is nearly income, income and debt are nearly the same.
    named = r"errors of the probabilities go with '(income|debt)' \(p = "
    assert re.search(named, said.stderr)
    found = load(tmp_path / "m")
    assert re.search(named, getattr(found, "svc", found).history_[-1]["refit"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "Give either TABLE or --base-rate"),
        (["--watch", "--base-rate", 0.3], "--watch looks at rows"),
        (["--target", "risk", "--base-rate", 0.3], "--target is a column of TABLE"),
        (["june.csv", "--target", "debt"], "leave --target out"),
        (["july.csv", "--target", "risk"], "no column 'risk', as --target says"),
        (["--base-rate", 12], "--base-rate"),
        (["june.csv", "--base-rate", 0.3], "Give either TABLE or --base-rate"),
        (["other.csv"], "'income'"),
        (["labels.csv"], "terrible"),
    ],
)
def test_bad_input_changes_nothing(folder, given, words):
    pd.DataFrame({"age": [1, 2], "risk": ["bad", "ok"]}).to_csv(folder / "other.csv", index=False)
    _loans(9).assign(risk="terrible").to_csv(folder / "labels.csv", index=False)
    before = (folder / "loans.model").read_bytes()
    given = [folder / each if str(each).endswith(".csv") else each for each in given]
    found = _run("update", folder / "loans.model", *given)
    assert found.exit_code in (1, 2)
    assert words in " ".join(found.stderr.replace("│", " ").split())
    assert (folder / "loans.model").read_bytes() == before


def test_the_report_has_the_history(folder, tmp_path):
    from bootprob.report import write_report

    path = tmp_path / "june.model"
    _run("update", folder / "loans.model", folder / "june.csv", "-o", path)
    svc = load(path).svc_with_class_names()
    write_report({"june": svc}, tmp_path / "page.html", title="June")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What happened since the fit?" in page
    assert "alarm: calibration" in page
    [found] = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))["models"]
    assert [entry["what"] for entry in found["history"]] == ["watched", "recalibrated by labels"]
    held_out = folder / "august.csv"
    _loans(300, 2.0, seed=9).to_csv(held_out, index=False)
    told = _run("report", path, "--held-out", held_out, "-o", tmp_path / "held.html")
    assert told.exit_code == 0, told.output
    [found] = json.loads((tmp_path / "held.json").read_text(encoding="utf-8"))["models"]
    now, before = found["held_out_now"], found["held_out"]["metrics"]
    assert now["log_loss"]["value"] < before["log_loss"]["value"]
    assert "as the model answers now" in (tmp_path / "held.html").read_text(encoding="utf-8")
    write_report({"june": load(folder / "loans.model").svc}, tmp_path / "old.html", title="May")
    assert "What happened since the fit?" not in (tmp_path / "old.html").read_text(encoding="utf-8")
