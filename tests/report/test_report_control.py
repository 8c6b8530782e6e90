"""The report on models under control: rates, the curve, and what is said of probabilities."""

import json

import numpy as np
import pytest
import test_report
from scipy import stats
from sklearn.metrics import brier_score_loss, roc_auc_score
from test_report import Page, numbers_in, report

from bootprob import BootstrapSVC, DataError
from bootprob.ensemble.controlled_rates import rates_under_control
from bootprob.ensemble.out_of_bag_proba import cross_fitted_proba
from bootprob.report import write_report
from bootprob.tables.held_out import HeldOut
from linear_models import linear
from report_pages import check_accessible, check_tables_of_figures

OPTIONS = {"C": [0.1, 1.0], "n_bootstraps": 30, "random_state": 0}


def rows(rng, n):
    y = np.arange(n) % 3 == 0
    return rng.normal(size=(n, 3)) + 0.8 * y[:, None], np.where(y, "ill", "fine")


@pytest.fixture(scope="module")
def table():
    return rows(np.random.default_rng(1), 180)


@pytest.fixture(scope="module")
def held_out():
    return HeldOut(*rows(np.random.default_rng(2), 90))


@pytest.fixture(scope="module")
def models(table):
    fits = {
        "threshold": linear(control="threshold", rates={"tpr": 0.85}, confidence=0.95, **OPTIONS),
        "constrained": linear(control="constrained", rates={"tpr": 0.8}, **OPTIONS),
        "votes": linear(
            control="threshold",
            rates={"tnr": 0.9},
            calibration=None,
            interval="wilson",
            **OPTIONS,
        ),
        "plain": linear(**OPTIONS),
    }
    return {name: model.fit(*table) for name, model in fits.items()}


@pytest.fixture(scope="module")
def written(models, held_out, tmp_path_factory):
    """A report on the model whose threshold was moved, with rows set aside."""
    path = tmp_path_factory.mktemp("control") / "report.html"
    write_report({"threshold": models["threshold"]}, path, title="Steered", held_out=held_out)
    source = path.read_text(encoding="utf-8")
    return path, source, Page(source), json.loads(path.with_suffix(".json").read_text("utf-8"))


def exact(right):
    return stats.binomtest(int(right.sum()), len(right)).proportion_ci(0.95, method="exact")


class TestNumbers:
    def test_rates_wanted_and_reached(self, written, models, table, held_out):
        model, control = models["threshold"], written[3]["models"][0]["control"]
        tpr, tnr = control["rates"]
        assert (tpr["wanted"], tpr["confidence"], tpr["bound"]) == (0.85, 0.95, "binomial")
        assert tnr["wanted"] is tnr["confidence"] is tnr["required_share"] is None
        [asked] = model.controlled_rates_
        assert tpr["required_share"] == asked["required_share"]
        assert tpr["out_of_bag"]["value"] == pytest.approx(asked["out_of_bag"])
        plain = models["plain"].oob_proba_[:, 1]  # the same machines, nothing moved
        decisions = {
            "out_of_bag": (model.oob_proba_[:, 1] > model.decision_threshold_, table[1]),
            "without_control": (plain > 0.5, table[1]),
            "held_out": (model.predict(held_out.X) == "ill", held_out.y),
        }
        for key, (decided, truth) in decisions.items():
            for rate, name in ((tpr, "ill"), (tnr, "fine")):
                right = (decided == (truth == "ill"))[truth == name]
                assert rate[key]["value"] == pytest.approx(right.mean())
                assert (rate[key]["n_right"], rate[key]["n_rows"]) == (right.sum(), len(right))
                assert (rate[key]["lower"], rate[key]["upper"]) == pytest.approx(exact(right))

    @pytest.mark.usefixtures("undrawn")
    def test_the_curve_is_that_of_the_scores_that_decide(self, written, models, table, tmp_path):
        _, votes = report({"votes": models["votes"]}, tmp_path)
        for numbers, scores in (
            (written[3], models["threshold"].oob_decision_function_),
            (votes, models["votes"].oob_proba_[:, 1]),
        ):
            control = numbers["models"][0]["control"]
            sensitivity, specificity = map(
                np.array, (control["curve"]["sensitivity"], control["curve"]["specificity"])
            )
            area = np.trapezoid(sensitivity, 1 - specificity)
            assert area == pytest.approx(roc_auc_score(table[1] == "ill", scores), abs=0.003)
            chosen = [rate["out_of_bag"]["value"] for rate in control["rates"]]
            distance = np.abs(sensitivity - chosen[0]) + np.abs(specificity - chosen[1])
            assert distance.min() < 0.04  # the choice lies on it

    def test_probabilities_are_those_without_control(self, written, models, table, held_out):
        model, plain, entry = models["threshold"], models["plain"], written[3]["models"][0]
        np.testing.assert_allclose(model.oob_proba_, plain.oob_proba_)
        found = entry["metrics"]["brier_score"]["value"]
        truth = table[1] == "ill"
        assert found == pytest.approx(brier_score_loss(truth, cross_fitted_proba(plain)))
        truth, p = held_out.y == "ill", plain.predict_proba(held_out.X)[:, 1]
        aside = entry["held_out"]
        assert aside["metrics"]["brier_score"]["value"] == pytest.approx(brier_score_loss(truth, p))
        assert (aside["n_rows"], aside["n_positive"]) == (90, truth.sum())

    def test_decisions_are_those_of_the_threshold(self, written, models, table, held_out):
        model, entry = models["threshold"], written[3]["models"][0]
        assert entry["decision_threshold"] == model.decision_threshold_ < 0.5
        decided, truth = model.oob_proba_[:, 1] > model.decision_threshold_, table[1] == "ill"
        assert entry["confusion"] == {
            "true_positive": (decided & truth).sum(),
            "false_negative": (~decided & truth).sum(),
            "false_positive": (decided & ~truth).sum(),
            "true_negative": (~decided & ~truth).sum(),
        }
        for name, of_class in (("sensitivity", truth), ("specificity", ~truth)):
            right = (decided == truth)[of_class].mean()
            assert entry["metrics"][name]["value"] == pytest.approx(right)
        truth, decided = held_out.y == "ill", model.predict(held_out.X) == "ill"
        aside = entry["held_out"]["metrics"]["accuracy"]["value"]
        assert aside == pytest.approx((decided == truth).mean())

    def test_one_half_of_the_calibrated_probability_is_where_control_left_it(
        self, written, models, held_out
    ):
        half = written[3]["models"][0]["histograms"]["score_at_one_half"]
        decision = models["threshold"].decision_function(held_out.X)
        calibrated = models["threshold"].predict_proba(held_out.X)[:, 1]
        np.testing.assert_array_equal(decision > half, calibrated > 0.5)
        assert half > 0

    def test_every_figure_is_also_a_table(self, written):
        _, source, page, numbers = written
        check_tables_of_figures(source, n_figures=9)
        check_accessible(source)
        shown = {value for value, _ in page.shown}
        for entry in numbers["models"]:
            curve = entry["control"]["curve"]
            assert set(curve["sensitivity"]) | set(curve["specificity"]) <= shown

    def test_every_number_shown_is_in_the_json_file(self, written):
        *_, page, numbers = written
        known = set(numbers_in(numbers))
        assert {value for value, _ in page.shown} <= known

    @pytest.mark.usefixtures("undrawn")
    def test_without_control_there_is_nothing_of_it(self, models, tmp_path):
        page, numbers = report({"plain": models["plain"]}, tmp_path)
        assert rates_under_control(models["plain"]) == []
        assert numbers["models"][0]["control"] is numbers["models"][0]["held_out"] is None
        assert "control" not in page.words().partition("Parameters and versions")[0]


@pytest.mark.usefixtures("undrawn")
class TestWords:
    def test_what_is_promised_and_what_is_not(self, written, models, tmp_path):
        text = written[2].words()
        section = text[text.index("Wanted: a sensitivity") :]
        assert "of at least 85 %" in section
        assert "With a confidence of 95 %, this rate holds on new rows" in section
        assert "The probabilities are the calibrated ones, as without control" in section
        assert "instead of one half" in section
        assert "Its decisions are steered" in text
        sure = BootstrapSVC.__new__(BootstrapSVC)
        sure.__dict__ = dict(models["threshold"].__dict__)
        sure.confidence = None
        sure.controlled_rates_ = [models["threshold"].controlled_rates_[0] | {"confidence": None}]
        page, _ = report({"no confidence": sure}, tmp_path)
        assert "No confidence was asked for" in page.words()

    def test_nothing_is_said_that_control_makes_untrue(self, written, models, tmp_path):
        plain, _ = report({"plain": models["plain"]}, tmp_path)
        for words, stays in (
            ("is still of class fine three times in ten", True),
            ("Among rows given a probability of 30 %", True),
            ("the calibrated probability, which the model reports", True),
            ("The counts above cut at one half", False),
            ("closest to one half", False),
        ):
            assert words in plain.words()
            assert (words in written[2].words()) == stays

    def test_constrained_machines_promise_nothing_of_other_rows(self, models, tmp_path):
        page, numbers = report({"constrained": models["constrained"]}, tmp_path)
        control = numbers["models"][0]["control"]
        assert control["rates"][0]["without_control"] is None
        gap = models["constrained"].control_gap_
        machines = control["machines"]
        assert machines["n_machines"] == gap.size == 60
        assert machines["largest_gap"] == gap.max() > 0
        assert machines["median_gap"] == np.median(gap)
        assert machines["n_without_cost"] == (gap <= 1e-6).sum()
        assert "That is no promise for other rows" in page.words()
        assert "Without control" not in page.words()

    def test_votes_are_counted_about_their_thresholds(self, models, tmp_path):
        page, numbers = report({"votes": models["votes"]}, tmp_path)
        assert numbers["models"][0]["decision_threshold"] == 0.5
        assert "as without control" not in page.words()
        assert "each machine votes about a threshold of its own value of C" in page.words()

    def test_models_beside_each_other(self, models, held_out, tmp_path):
        page, numbers = report(
            {"before": models["plain"], "steered": models["threshold"]},
            tmp_path,
            held_out=held_out,
        )
        # The same machines: control is no fault of the probabilities that it starts from.
        assert numbers["comparison"]["log_loss_difference"]["value"] == pytest.approx(0, abs=1e-9)
        assert "By log-loss, " in page.words()
        figures = [a for tag, a in page.elements if tag == "svg" and a.get("role") == "img"]
        assert len(figures) == 11 + 3 * 2
        assert sum("Curve of sensitivity" in a["aria-label"] for a in figures) == 1

    def test_both_rates_and_nothing_to_move(self, rng, tmp_path):
        X, y = rows(rng, 90)
        X = X + 4 * (y == "ill")[:, None]
        model = linear(
            control="threshold", rates={"tpr": 0.6, "tnr": 0.6}, **OPTIONS | {"n_bootstraps": 12}
        ).fit(X, y)
        page, numbers = report({"easy": model}, tmp_path)
        assert numbers["models"][0]["decision_threshold"] == 0.5
        assert "so nothing was moved" in page.words()
        assert "sensitivity of at least 60 % and a specificity of at least" in page.words()


@pytest.mark.usefixtures("undrawn")
class TestRowsSetAside:
    def test_any_model_can_be_measured_on_them(self, models, held_out, tmp_path):
        page, numbers = report({"plain": models["plain"]}, tmp_path, held_out=held_out)
        entry = numbers["models"][0]
        p = models["plain"].predict_proba(held_out.X)[:, 1]
        expected = brier_score_loss(held_out.y == "ill", p)
        assert entry["held_out"]["metrics"]["brier_score"]["value"] == pytest.approx(expected)
        assert "90 held-out rows, of which 30 are of class ill" in page.words()
        assert expected in [pytest.approx(value) for value, _ in page.shown]

    def test_unknown_labels_are_refused_before_anything_is_written(self, models, tmp_path):
        aside = HeldOut(np.zeros((2, 3)), ["ill", "well"])
        with pytest.raises(DataError, match="'fine' and 'ill'"):
            write_report(models, tmp_path / "r.html", title="t", held_out=aside)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(test_report.CHROMIUM is None, reason="no Chromium on PATH")
def test_nothing_is_cut_off(written, tmp_path):
    test_report.check_layout(written[1], tmp_path, n_pictures=9)
