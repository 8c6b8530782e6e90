"""Rates of one or more of several classes: against brute force, and on new rows."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit, softmax
from sklearn.base import clone
from typer.testing import CliRunner

from bootprob import DataError, UnattainableRateError
from bootprob.cli.__main__ import app
from bootprob.ensemble.control.class_rates import ClassFloor, class_offsets, class_shares
from bootprob.ensemble.out_of_bag_metrics import out_of_bag_class_intervals
from bootprob.persistence.save_load import load, save
from bootprob.report import write_report
from bootprob.tables.held_out import HeldOut
from bootprob.tables.model import TableModel
from bootprob.tables.roles import ColumnRoles
from linear_models import linear

QUICK = {"C": [0.1, 1.0], "n_bootstraps": 15, "random_state": 0}
NAMES = np.array(["ash", "birch", "cedar"])


def drawn(rng, n, K=3):
    """Logits of true probabilities and the classes that come of them."""
    p = softmax(rng.normal(size=(n, K)) * 1.2 + np.linspace(0.8, 0, K), axis=1)
    return logit(p), (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)


def asked(confidence=None, **rates):
    return [
        ClassFloor("tpr", least, confidence, position=int(name[1:]), label=name)
        for name, least in rates.items()
    ]


def offsets_of(logits, codes, floors, weight=None):
    weight = np.ones(len(codes)) if weight is None else weight
    return class_offsets(logits, codes, weight, floors, class_shares(floors, codes, weight, None))


def table(rng, n=150):
    X = rng.normal(size=(n, 2))
    return X, NAMES[np.digitize(X[:, 0] + 0.8 * rng.normal(size=n), [-0.4, 0.6])]


def test_one_offset_is_as_small_as_the_rate_allows(rng):
    logits, codes = drawn(rng, 80)
    weight = rng.exponential(size=80)
    [offset] = offsets_of(logits, codes, asked(k2=0.8), weight)[[2]]

    def rate(b):
        given = (logits + np.array([0, 0, b])).argmax(axis=1) == 2
        return np.average(given[codes == 2], weights=weight[codes == 2])

    # Everything changes only where a row of the class does: between those, all is tried.
    changes = np.sort(logits[codes == 2, :2].max(axis=1) - logits[codes == 2, 2])
    between = [0.0, *((changes[1:] + changes[:-1]) / 2), changes[-1] + 1]
    least = min(b for b in between if b >= 0 and rate(b) >= 0.8)
    assert rate(offset) == pytest.approx(rate(least))
    assert offset > 0
    assert offsets_of(logits, codes, asked(k2=0.01), weight).tolist() == [0, 0, 0]


@pytest.mark.parametrize("rates", [{"k0": 0.55, "k1": 0.55}, {"k0": 0.5, "k1": 0.5, "k2": 0.5}])
def test_several_rates_hold_together(rng, rates):
    logits, codes = drawn(rng, 300)
    found = offsets_of(logits, codes, asked(**rates))
    decided = (logits + found).argmax(axis=1)
    for name, least in rates.items():
        k = int(name[1:])
        assert (decided[codes == k] == k).mean() >= least
    assert found.min() == 0


def test_rates_that_take_from_each_other_are_refused(rng):
    logits, codes = drawn(rng, 300)
    with pytest.raises(
        UnattainableRateError, match="No decision was found that keeps the rates"
    ) as e:
        offsets_of(logits, codes, asked(k0=0.9, k1=0.9, k2=0.9))
    assert e.value.wanted == 0.9
    assert e.value.attainable < 0.9


def test_a_rate_with_confidence_holds_on_new_rows(rng):
    """Wanted with 90 %: more than 22 of 60 tables below it would be chance once in a million."""
    many, truth = drawn(rng, 100_000)
    below = 0
    for _ in range(60):
        logits, codes = drawn(rng, 200)
        decided = (many + offsets_of(logits, codes, asked(0.9, k1=0.75))).argmax(axis=1)
        below += (decided[truth == 1] == 1).mean() < 0.75
    assert below <= 22


def test_decisions_follow_and_probabilities_stay(rng, tmp_path):
    X, y = table(rng)
    free = linear(**QUICK).fit(X, y)
    model = linear(control="threshold", rates={"birch": 0.8}, confidence=0.9, **QUICK).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), free.predict_proba(X))
    np.testing.assert_array_equal(model.proba_interval(X), free.proba_interval(X))
    assert model.class_offsets_[1] > 0
    assert model.class_offsets_[[0, 2]].tolist() == [0, 0]
    decided = NAMES[model.decision_function(X).argmax(axis=1)]
    assert model.predict(X).tolist() == decided.tolist() == model.summarize(X)["label"].tolist()
    assert (decided == "birch").sum() > (free.predict(X) == "birch").sum()
    [entry] = model.controlled_rates_
    own = y == "birch"
    needed = ClassFloor("tpr", 0.8, 0.9).required_share(own.sum())
    out_of_bag = model.oob_decision_function_.argmax(axis=1)[own] == 1
    assert entry["class"] == 1
    assert entry["n_rows"] == own.sum()
    assert entry["required_share"] == needed <= entry["out_of_bag"] == out_of_bag.mean()
    save(model, tmp_path / "m.model")
    again = load(tmp_path / "m.model")
    assert again.predict(X).tolist() == decided.tolist()
    assert again.controlled_rates_ == model.controlled_rates_
    pair = again.pair_ensembles_[0]
    assert pair.decision_threshold_ == 0.5
    assert pair.control is None


def test_the_label_of_a_graph_follows(rng, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    from bootprob.onnx_export.export import export_onnx

    X, y = table(rng)
    model = linear(control="threshold", rates={"birch": 0.9}, **QUICK).fit(X, y)
    export_onnx(model, tmp_path / "m.onnx")
    label = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(["label"], {"X": X})[0]
    assert label.tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"rates": {"tpr": 0.9}}, "with the rate 'tpr'. The type of the target is multiclass"),
        ({"rates": {"oak": 0.9}}, "rates has 'oak', which is no class; of 3 classes rates are by"),
        ({"rates": {"ash": 1.5}}, "is 1.5; give a number above 0, up to 1"),
        ({"rates": {}}, "such as rates={'ash': 0.9}"),
        ({"rates": {"ash": 0.9}, "control": None}, "but control is None"),
        ({"rates": {"ash": 0.9}, "control": "constrained"}, "give control='threshold'"),
        ({"rates": {"ash": 0.9}, "calibration": "isotonic"}, "give calibration='sigmoid'"),
        ({"rates": {"ash": 0.99}, "confidence": 0.999}, "rows of class 'ash'"),
    ],
)
def test_what_cannot_be_asked_for(rng, params, said):
    X, y = table(rng, 60)
    with pytest.raises(DataError, match=said):
        linear(**QUICK | {"control": "threshold"} | params).fit(X, y)


def test_tables_the_command_line_and_the_report(rng, tmp_path):
    X, y = table(rng)
    frame = pd.DataFrame(X, columns=["height", "girth"]).assign(tree=y)
    frame.assign(sex=np.where(X[:, 0] > 0, "f", "m")).to_csv(tmp_path / "trees.csv", index=False)
    fit = [
        "fit",
        str(tmp_path / "trees.csv"),
        "--target",
        "tree",
        "--drop",
        "sex",
        "-o",
        str(tmp_path / "m.model"),
    ]
    kind = ["--kernel", "linear", "--C", "0.1,1", "--n-bootstraps", "15", "--seed", "0"]
    given = [*fit, *kind, "--rate", "birch=0.8", "--confidence", "0.9"]
    result = CliRunner().invoke(app, [*given, "--all-classes"])
    assert result.exit_code == 0, result.output
    assert "Of class birch (wanted 0.8, required 0." in " ".join(result.stdout.split())
    model = load(tmp_path / "m.model")
    assert model.svc.rates == {1: 0.8}
    with_names = linear(control="threshold", rates={"birch": 0.8}, confidence=0.9, **QUICK)
    same = TableModel.fit(frame, "tree", all_classes=True, estimator=clone(with_names))
    assert model.predict(frame)["label"].tolist() == same.predict(frame)["label"].tolist()
    aside = HeldOut.of_table(model, frame.iloc[:40])
    svc = model.svc_with_class_names()
    content = write_report({"m": svc}, tmp_path / "r.html", title="", held_out=aside)
    wanted = [rate["wanted"] for rate in content["models"][0]["control"]["rates"]]
    assert wanted == [None, 0.8, None]
    reached = content["models"][0]["control"]["rates"][1]
    assert reached["out_of_bag"]["value"] == model.svc.controlled_rates_[0]["out_of_bag"]
    plain = model.svc.oob_proba_.argmax(axis=1)[model.svc.y_ == 1] == 1
    assert reached["without_control"]["value"] == plain.mean()
    assert "Rates under control" in (tmp_path / "r.html").read_text(encoding="utf-8")
    for more, said in (
        ([], "it needs --all-classes"),
        (["--all-classes", "--tpr", "0.9"], "with --all-classes say --rate"),
        (["--all-classes", "--rate", "oak=0.9"], "'oak' is no class of 'tree'"),
        (["--all-classes", "--rate", "birch"], "is no class and a rate"),
        (["--all-classes", "--rate", "birch=0.7"], "names 'birch' twice"),
        (["--all-classes", "--target", "sex"], "'sex' has two; leave --all-classes out"),
    ):
        result = CliRunner().invoke(app, [*given, *more])
        assert result.exit_code in (1, 2)
        assert said in " ".join(result.stderr.replace("│", " ").split())


def test_errors_of_tables_call_classes_as_the_table_does(rng):
    X, y = table(rng, 100)
    frame = pd.DataFrame(X, columns=["height", "girth"]).assign(tree=y, w=(y != "birch") * 1.0)
    sure = linear(**QUICK, control="threshold", rates={"birch": 0.999}, confidence=0.95)
    with pytest.raises(UnattainableRateError, match=r"the rate of class 'birch' ≥ 0.999"):
        TableModel.fit(frame, "tree", all_classes=True, estimator=sure)
    both = linear(**QUICK, control="threshold", rates=dict.fromkeys(np.unique(y).tolist(), 0.999))
    with pytest.raises(UnattainableRateError, match=r"Of class '[a-z]+' a share") as found:
        TableModel.fit(frame, "tree", all_classes=True, estimator=both)
    assert found.value.rate in y
    with pytest.raises(DataError, match="Class birch has no row with a positive sample_weight"):
        TableModel.fit(
            frame, "tree", "birch", roles=ColumnRoles(weight="w"), estimator=linear(**QUICK)
        )


def test_accuracy_is_that_of_the_decisions(rng):
    X, y = table(rng, 200)
    model = linear(**QUICK, control="threshold", rates={"birch": 0.97}).fit(X, y)
    decided = model.oob_decision_function_.argmax(axis=1)
    known = np.isfinite(model.oob_proba_).all(axis=1)
    assert (decided != model.oob_proba_.argmax(axis=1))[known].any()
    accuracy = out_of_bag_class_intervals(model)["accuracy"].value
    assert accuracy == pytest.approx((decided == model.y_)[known].mean())


def test_a_class_that_is_never_left_out_is_refused(rng):
    """All its rows are of one group, which has to be in every sample."""
    X, y = table(rng, 100)
    y[40:45] = "oak"
    model = linear(**QUICK, control="threshold", rates={"oak": 0.5})
    with pytest.raises(DataError, match="All rows of class oak are in one group"):
        model.fit(X, y, groups=np.arange(100) // 5)
