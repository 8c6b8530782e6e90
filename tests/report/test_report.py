"""The report: its numbers, what it must never hold, and how it looks in a browser."""

import copy
import html.parser
import json
import math
import re
import shutil
import subprocess

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss

from bootprob import BootstrapSVC
from bootprob.ensemble.out_of_bag_proba import cross_fitted_proba
from bootprob.exceptions import DataError
from bootprob.report import write_report
from bootprob.report.model.sections import settings
from bootprob.report.wording import (
    day,
    fine_probability,
    number,
    percent,
    probability,
    scientific,
    short,
)
from bootprob.tables.model import TableModel
from linear_models import linear
from report_pages import check_accessible, check_tables_of_figures

HOSTILE = '</svg></style></title><script>alert("1")</script>'
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


class Page(html.parser.HTMLParser):
    """What a browser would find: elements, their attributes, text and shown numbers."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.elements, self.shown, self.text, self._value = [], [], "", None
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "data":
            self._value = float(dict(attrs)["value"])

    def handle_data(self, data):
        self.text += data
        if self._value is not None:
            self.shown.append((self._value, data))
            self._value = None

    def attributes(self):
        return [(tag, name, value) for tag, attrs in self.elements for name, value in attrs.items()]

    def words(self):
        return " ".join(self.text.split())


@pytest.fixture(scope="module")
def table():
    """90 rows whose feature values nobody could take for anything else."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [55, 35])
    X = 4000 + 1000 * rng.random((90, 3)) + 400 * y[:, None]
    return pd.DataFrame(X, columns=["depth", "width", "<b>height</b>"]), np.where(y, "ill", "fine")


@pytest.fixture(scope="module")
def models(table):
    fits = {
        "linear": BootstrapSVC(
            kernel="linear", C=[0.01, 0.1, 1.0], n_bootstraps=60, random_state=1
        ),
        "rbf": BootstrapSVC(kernel="rbf", C=[0.1, 1.0], n_bootstraps=60, random_state=1),
    }
    return {label: model.fit(*table) for label, model in fits.items()}


@pytest.fixture(scope="module")
def written(models, tmp_path_factory):
    """One report on both models: path, source, parsed page, numbers."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(models, path, title="Is it <ill>?", command="bootprob fit 't.csv' --target <y>")
    source = path.read_text(encoding="utf-8")
    return path, source, Page(source), json.loads(path.with_suffix(".json").read_text("utf-8"))


def report(models, folder, **options):
    path = folder / "report.html"
    write_report(models, path, **{"title": "A title", **options})
    source = path.read_text(encoding="utf-8")
    return Page(source), json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def numbers_in(value):
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(item)
    elif isinstance(value, int | float):
        yield float(value)


class TestNumbers:
    def test_metrics_are_those_of_cross_fitted_probabilities(self, written, models, table):
        numbers = written[3]
        for entry in numbers["models"]:
            p = cross_fitted_proba(models[entry["label"]])
            assert entry["metrics"]["log_loss"]["value"] == pytest.approx(
                log_loss(table[1] == "ill", p)
            )
            found = models[entry["label"]].metric_intervals()
            assert entry["metrics"] == {name: vars(metric) for name, metric in found.items()}
            curve = entry["reliability"]["probability"]["bins"]
            assert np.average(curve["probability"], weights=curve["weight"]) == pytest.approx(
                p.mean()
            )
            confusion, predicted = entry["confusion"], np.where(p > 0.5, "ill", "fine")
            assert confusion["true_positive"] == np.sum((predicted == "ill") & (table[1] == "ill"))
            assert sum(confusion.values()) == 90

    def test_every_number_shown_is_in_the_json_file_and_rounded_rightly(self, written):
        *_, page, numbers = written
        known = set(numbers_in(numbers))
        assert len(page.shown) > 60
        for value, text in page.shown:
            assert value in known
            if "<" in text or ">" in text:
                continue
            plain = re.sub(r"[,\u202f%]|×.*", "", text).replace("−", "-")
            shown = float(plain) if "×" not in text else value
            scale = 100 if "%" in text else 1
            if value in (0.0, 1.0) or "×" in text:
                continue
            candidates = [abs(scale * value), abs(100 * value)]  # percentage points have no sign
            digits = len(text.partition(".")[2].rstrip("\u202f%"))
            nearest = min(abs(abs(shown) - c) for c in candidates)
            assert nearest <= 0.5001 * 10**-digits, (value, text)

    def test_metrics_table_shows_value_and_interval_of_every_metric(self, written):
        *_, page, numbers = written
        shown = [value for value, _ in page.shown]
        for entry in numbers["models"]:
            for metric in entry["metrics"].values():
                assert {metric["value"], metric["lower"], metric["upper"]} <= set(shown)
                assert metric["label"] in page.text
                assert metric["description"] in page.text

    def test_plots_are_drawn_from_the_json_file(self, written, models):
        for entry in written[3]["models"]:
            model = models[entry["label"]]
            grid = entry["grid"]
            assert grid["weight"] == pytest.approx(model.weights_)
            assert grid["accuracy"] == pytest.approx(model.accuracy_.mean(0))
            for kind in ("vote", "probability"):
                curve = entry["reliability"][kind]
                assert sum(curve["bins"]["n_rows"]) == 90
                assert sum(curve["distribution"]["share"]) == pytest.approx(1.0)

    def test_histograms_count_out_of_bag_scores_by_side_of_the_threshold(self, written, models):
        for entry in written[3]["models"]:
            model, histograms = models[entry["label"]], entry["histograms"]
            edges = np.array(histograms["edges"])
            assert 0.0 in edges
            assert len(histograms["rows"]) == 4
            for row in histograms["rows"]:
                k = model.sampled_rows_.tolist().index(row["row"] - 1)
                scores = model.sampled_scores_[k]
                assert row["n_scores"] == sum(row["counts"]) == np.sum(~np.isnan(scores))
                above = np.array(row["counts"])[edges[:-1] >= 0].sum()
                assert above == np.sum(scores > 0)
                assert row["mean"] == pytest.approx(model.oob_decision_function_[row["row"] - 1])

    def test_probability_is_one_half_at_the_dashed_score(self, written, models):
        for entry in written[3]["models"]:
            slope, intercept = models[entry["label"]].sigmoid_
            half = entry["histograms"]["score_at_one_half"]
            assert slope * half + intercept == pytest.approx(0.0, abs=1e-12)

    def test_intervals_of_rows(self, written, models):
        for entry in written[3]["models"]:
            model = models[entry["label"]]
            corrected = model.oob_proba_interval(0.95, "corrected")[:, 1]
            wald = model.oob_proba_interval(0.95, "wald")[:, 1]
            assert [r["row"] - 1 for r in entry["intervals"]["rows"]] == list(model.sampled_rows_)
            for k, row in enumerate(entry["intervals"]["rows"]):
                i = row["row"] - 1
                assert row["positive"] == (model.y_[i] == 1)
                assert row["probability_interval"] == pytest.approx(corrected[i])
                assert row["vote_interval_wald"] == pytest.approx(wald[i])
                scores = model.sampled_scores_[k][~np.isnan(model.sampled_scores_[k])]
                upper, lower = np.quantile(scores, [0.025, 0.975])
                expected = [2 * scores.mean() - lower, 2 * scores.mean() - upper]  # (3.6)
                assert row["score_interval"] == pytest.approx(expected)

    def test_comparison_is_between_the_two_models_on_the_same_rows(self, written, models, table):
        comparison = written[3]["comparison"]
        losses = {k: log_loss(table[1] == "ill", cross_fitted_proba(m)) for k, m in models.items()}
        best, second = sorted(losses, key=losses.get)
        assert (comparison["best"], comparison["second"]) == (best, second)
        assert comparison["log_loss_difference"]["value"] == pytest.approx(
            losses[best] - losses[second]
        )

    def test_how_it_was_made(self, written, models):
        *_, page, numbers = written
        for entry in numbers["models"]:
            model, made = models[entry["label"]], entry["provenance"]
            assert made["entropy"] == list(model.entropy_)
            assert made["parameters"]["n_bootstraps"] == 60
            assert made["versions"] == model.versions_
            assert entry["convergence"]["largest_gap"] == model.certificates_["gap"].max()
            assert ", ".join(map(str, model.entropy_)) in page.text
        assert "bootprob fit 't.csv' --target <y>" in page.text


class TestContents:
    def test_it_loads_nothing_and_runs_nothing(self, written):
        _, source, page, _ = written
        tags = {tag for tag, _ in page.elements}
        assert not tags & {"script", "link", "img", "image", "iframe", "object", "embed", "base"}
        for tag, name, value in page.attributes():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "srcset", "action", "data", "xlink:href"), (tag, name)
            if name == "href":
                assert value.startswith("#")
        assert not re.search(r"url\((?!#)|@import|https?:|//[a-z]", source)
        policy = next(a["content"] for _, a in page.elements if "http-equiv" in a)
        assert policy.startswith("default-src 'none'")

    def test_it_holds_no_feature_values(self, written, table):
        path, source, *_ = written
        for text in (source, path.with_suffix(".json").read_text(encoding="utf-8")):
            for value in table[0].to_numpy().ravel():
                for digits in (1, 2, 3):
                    assert f"{value:.{digits}f}" not in text

    def test_ids_are_unique_and_every_reference_finds_its_id(self, written):
        _, source, page, _ = written
        ids = [value for _, name, value in page.attributes() if name == "id"]
        assert len(ids) == len(set(ids))
        used = [value[1:] for _, name, value in page.attributes() if name == "href"]
        used += re.findall(r"url\(#([^)]+)\)", source)
        used += [value for _, name, value in page.attributes() if name == "aria-labelledby"]
        assert set(used) <= set(ids)

    def test_every_figure_has_a_caption_and_every_picture_a_text(self, written):
        _, source, page, numbers = written
        assert source.count("<figure") == source.count("<figcaption") == 9
        pictures = [a for tag, a in page.elements if tag == "svg" and a.get("role") == "img"]
        # Three of columns and one of stability, but for linear machines, which keep no rows.
        assert len(pictures) == 5 * len(numbers["models"]) + 4
        for picture in pictures:
            assert len(picture["aria-label"]) > 80

    def test_every_figure_is_also_a_table(self, written):
        _, source, page, numbers = written
        check_tables_of_figures(source, n_figures=9)
        check_accessible(source)
        shown = {value for value, _ in page.shown}
        for entry in numbers["models"]:
            for curve in entry["reliability"].values():
                assert set(curve["distribution"]["share"]) <= shown
                for name in ("probability", "observed", "lower", "upper", "n_rows"):
                    assert set(curve["bins"][name]) <= shown
            for name in ("C", "accuracy", "accuracy_tenth", "accuracy_ninetieth", "weight"):
                assert set(entry["grid"][name]) <= shown
            assert len(entry["histograms"]["rows"]) > 2
            for row in entry["histograms"]["rows"]:
                assert set(row["counts"]) <= shown
                assert {row["mean"], row["standard_deviation"]} <= shown

    def test_the_same_model_gives_the_same_bytes_apart_from_the_time(self, models, tmp_path):
        sources = []
        for run, style in enumerate(({}, {"font.size": 30, "svg.fonttype": "path"})):
            path = tmp_path / f"{run}" / "report.html"
            path.parent.mkdir()
            with mpl.rc_context(style):
                before = dict(mpl.rcParams)
                write_report({"rbf": models["rbf"]}, path, title="Twice")
                assert dict(mpl.rcParams) == before
            source = path.read_text(encoding="utf-8")
            numbers = path.with_suffix(".json").read_text(encoding="utf-8")
            sources.append(
                (
                    re.sub(r"<time.*?</time>", "", source),
                    re.sub(r'"written": "[^"]*"', "", numbers),
                )
            )
        assert sources[0] == sources[1]

    def test_what_the_intervals_mean_is_said(self, written):
        text = written[2].words()
        meaning = text[text.index("What the intervals mean, and") : text.index("Was every machine")]
        assert "it contained it about as often as its level says" in meaning
        assert "Nor is it to be trusted where the kernel cannot express the truth" in meaning
        assert "Wald" not in meaning
        wald = text[text.index("Wald interval, formula (3.5)") :]
        assert "contained it far less often than its level says" in wald
        # Measured coverage belongs to docs/coverage.md, which is written from measurements.
        assert not re.search(r"%.{0,20} cases", meaning)

    @pytest.mark.usefixtures("undrawn")
    def test_what_metrics_are_made_of_is_said(self, written, table, tmp_path):
        said = "each row was calibrated without its own label"
        quality = written[2].words().partition("How good are the probabilities?")[2]
        assert said in quality.partition("Can a probability be taken at its word?")[0]
        votes = BootstrapSVC.paper(n_bootstraps=20, random_state=1).fit(*table)
        alone, _ = report({"votes": votes}, tmp_path)
        assert said not in alone.words()

    @pytest.mark.usefixtures("undrawn")
    def test_lack_of_fit_is_said_first(self, written, rng, tmp_path):
        assert "test of lack of fit, p =" not in written[2].words()
        X = rng.uniform(-3, 3, size=(300, 1))
        y = (np.abs(X[:, 0]) > 1.5) ^ (rng.random(300) < 0.05)
        model = BootstrapSVC(kernel="linear", C=[0.1, 1.0], n_bootstraps=20, random_state=1).fit(
            X, y
        )
        page, numbers = report({"straight": model}, tmp_path)
        assert numbers["models"][0]["lack_of_fit"]["found"]
        summary = page.words().partition("What this report cannot tell")[0]
        assert "Intervals promise too much." in summary
        assert "the logit bends in X[:, 0]: the truth is out of the kernel's reach" in summary
        assert "Give kernel='auto'" in summary
        frame = pd.DataFrame({"size": X[:, 0], "high": y})
        of_table = TableModel.fit(frame, "high", estimator=model)
        page, _ = report({"straight": of_table.svc_with_class_names()}, tmp_path)
        assert "the logit bends in 'size': the truth" in page.words()
        page, _ = report({"straight": of_table.svc_with_class_names().fit(X, y)}, tmp_path)
        assert "the logit bends in X[:, 0]: the truth" in page.words()  # a fit forgets names
        assert page.words().count("test of lack of fit, p =") == 1


class TestUnusualModels:
    def test_hostile_names_stay_text(self, table, tmp_path):
        X, y = table
        X = X.set_axis([HOSTILE, "$x_1$", "a & b"], axis=1)
        y = np.where(y == "ill", HOSTILE, "良性 $fine_{x$ & 'quoted\"")
        model = BootstrapSVC(kernel="linear", C=[0.1, 1.0], n_bootstraps=30, random_state=0).fit(
            X, y
        )
        page, numbers = report({HOSTILE: model}, tmp_path, title=HOSTILE, command=HOSTILE)
        assert "script" not in {tag for tag, _ in page.elements}
        heading = page.words().index(HOSTILE)
        assert "In short" in page.words()[heading:]
        assert "良性 $fine_{x$ & 'quoted\"" in page.text  # letters that no font of matplotlib has
        assert numbers["title"] == numbers["models"][0]["label"] == HOSTILE
        assert numbers["data"]["feature_names"] == [HOSTILE, "$x_1$", "a & b"]

    @pytest.mark.usefixtures("undrawn")
    def test_unsolved_models_are_announced_with_advice(self, table, tmp_path):
        model = BootstrapSVC(
            kernel="linear", C=[0.1, 1.0], n_bootstraps=10, tol=1e-16, random_state=0
        )
        with pytest.warns(ConvergenceWarning):
            model.fit(*table)
        page, numbers = report({"tight": model}, tmp_path)
        convergence = numbers["models"][0]["convergence"]
        assert 0 < convergence["n_unsolved"] <= 20
        assert sum(s["count"] for s in convergence["not_converged"]) == convergence["n_unsolved"]
        assert f"{convergence['n_unsolved']} of 20 machines were not solved" in page.words()
        for status in convergence["not_converged"]:
            assert status["advice"] in page.words()

    def test_solved_models_are_not_announced(self, written):
        assert "were not solved" not in written[2].words()

    @pytest.mark.usefixtures("undrawn")
    def test_rows_never_out_of_bag_are_left_out_and_counted(self, table, tmp_path):
        X, y = table
        model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=4, random_state=0).fit(X, y)
        missing = int(np.isnan(model.oob_proba_[:, 1]).sum())
        assert missing > 0
        page, numbers = report({"small": model}, tmp_path)
        entry = numbers["models"][0]
        assert entry["metrics"]["auc"]["n_left_out"] == missing
        assert sum(entry["confusion"].values()) == 90 - missing
        assert entry["histograms"]["rows"] == []
        assert f"{missing} rows were never out of bag" in page.words()
        assert "too few bootstrap samples for this figure" in page.words()

    @pytest.mark.usefixtures("undrawn")
    def test_other_configurations(self, table, tmp_path):
        options = {"C": [0.1, 1.0], "n_bootstraps": 20, "random_state": 0}
        expected = {
            "wald": BootstrapSVC.paper(**options),
            "wilson": linear(interval="wilson", weighting="log_loss", **options),
            # There is no out-of-bag version of "percentile": the default is shown.
            "corrected": linear(
                interval="percentile", calibration="isotonic", weighting="accuracy", **options
            ),
        }
        models = {method: model.fit(*table) for method, model in expected.items()}
        page, numbers = report(models, tmp_path)
        for entry in numbers["models"]:
            assert entry["intervals"]["method"] == entry["label"]
            calibrated = entry["reliability"]["probability"] is not None
            assert calibrated == (entry["label"] != "wald")
            assert entry["histograms"]["score_at_one_half"] is None or entry["label"] == "wilson"
        for method in ("wilson", "corrected"):
            assert f"“{method}” interval of a probability" in page.words()
        assert "wald, corrected: weights by squared accuracy, formula (3.3)." in page.words()
        assert "wilson: weights by out-of-bag log-loss." in page.words()

    @pytest.mark.usefixtures("undrawn")
    def test_grid_of_gamma_and_weights_and_a_seed_that_is_an_object(self, table, tmp_path):
        X, y = table
        weight = np.tile([0.0, 1.0, 2.5], 30)
        model = BootstrapSVC(
            kernel="rbf",
            C=[0.1, 1.0, 10.0],
            gamma=[0.05, 0.5],
            n_bootstraps=20,
            random_state=np.random.RandomState(0),
        ).fit(X, y, weight)
        page, numbers = report({"grid": model}, tmp_path)
        entry = numbers["models"][0]
        assert entry["grid"]["gamma"] == model.gamma_.tolist()
        assert numbers["data"]["weighted"]
        assert numbers["data"]["n_rows"] == entry["metrics"]["auc"]["n_rows"] == 60
        assert entry["provenance"]["parameters"]["random_state"] == "RandomState"
        assert "2 values of γ" in page.words()

    @pytest.mark.usefixtures("undrawn")
    def test_long_lists_of_features_are_cut(self, models, tmp_path):
        model = copy.copy(models["linear"])
        model.feature_names_in_ = np.array([f"gene {k}" for k in range(7000)], dtype=object)
        page, numbers = report({"genes": model}, tmp_path)
        assert numbers["data"]["n_feature_names_not_listed"] == 6940
        assert "and 6,940 more" in page.words()

    def test_full_size_stays_under_a_megabyte(self, models, tmp_path):
        """B = 500, R = 11, n = 569: the arrays of a fit repeated to that size."""
        large = {}
        for label, model in models.items():
            model = copy.copy(model)
            rows = np.resize(np.arange(90), 569)
            for name in ("oob_proba_", "oob_vote_proba_", "oob_decision_function_", "oob_counts_"):
                setattr(model, name, getattr(model, name)[rows])
            model.y_, model.sample_weight_ = model.y_[rows], model.sample_weight_[rows]
            for name in ("oob_score_variance_", "oob_jackknife_variance_", "oob_model_scores_"):
                setattr(model, name, getattr(model, name)[rows])
            if model.oob_kernel_logits_ is not None:
                model.oob_kernel_logits_ = model.oob_kernel_logits_[rows]
            model.sampled_scores_ = np.resize(model.sampled_scores_, (20, 500))
            model.accuracy_ = np.resize(model.accuracy_, (500, 11))
            model.C_, model.weights_ = 2.0 ** np.arange(-5, 6), np.full(11, 1 / 11)
            model.gamma_ = None if model.gamma_ is None else np.full(11, model.gamma_[0])
            model.X_fit_ = None  # these machines could not be asked of so many rows
            large[label] = model
        report(large, tmp_path)
        assert (tmp_path / "report.html").stat().st_size < 600_000
        assert (tmp_path / "report.json").stat().st_size < 200_000


class TestRefusals:
    def test_models_of_other_rows(self, models, table, tmp_path):
        X, y = table
        other = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5, random_state=0).fit(
            X[5:], y[5:]
        )
        with pytest.raises(DataError, match="same rows"):
            write_report({**models, "other": other}, tmp_path / "r.html", title="t")
        assert list(tmp_path.iterdir()) == []

    def test_no_models(self, tmp_path):
        with pytest.raises(DataError, match="at least one"):
            write_report({}, tmp_path / "r.html", title="t")

    def test_a_model_that_is_not_fitted(self, tmp_path):
        with pytest.raises(NotFittedError):
            write_report({"new": BootstrapSVC(kernel="linear")}, tmp_path / "r.html", title="t")

    def test_a_name_that_the_numbers_need(self, models, tmp_path):
        with pytest.raises(DataError, match=r"end the name in \.html"):
            write_report(models, tmp_path / "r.json", title="t")

    def test_a_folder_that_is_not_there(self, models, tmp_path):
        with pytest.raises(DataError, match="does not exist"):
            write_report(models, tmp_path / "none" / "r.html", title="t")


class TestWording:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (0, "< 0.1"),
            (4e-4, "< 0.1"),
            (0.001, "0.1"),
            (0.5, "50.0"),
            (0.9996, "> 99.9"),
            (1, "> 99.9"),
        ],
    )
    def test_a_probability_never_claims_certainty(self, value, expected):
        assert probability(value) == f"{expected}\u202f%"

    def test_other_words(self):
        assert percent(0.95, 0) == "95\u202f%"
        assert scientific(1.04e-7) == "1.0\u202f×\u202f10⁻⁷"
        assert scientific(0.0) == "0"
        assert [number(c) for c in (2**-5, 0.5, 16.0, 1e6)] == ["0.031", "0.5", "16", "1e+06"]
        assert day("2026-03-01T09:05:00+00:00") == "1 March 2026, 09:05 UTC"
        assert short("twelve chars", 12) == "twelve chars"
        assert short("thirteen chars", 12) == "thirteen ch…"


MEASURE = """<script>
  addEventListener('load', () => {
    const out = {width: innerWidth, scroll: document.documentElement.scrollWidth,
                 pictures: [], spilled: []};
    for (const svg of document.querySelectorAll('svg[role=img]')) {
      const box = svg.getBoundingClientRect();
      out.pictures.push([box.width, box.height]);
      for (const text of svg.querySelectorAll('text')) {
        const t = text.getBoundingClientRect();
        if (t.left < box.left - 3 || t.right > box.right + 3 || t.top < box.top - 3
            || t.bottom > box.bottom + 3) out.spilled.push(text.textContent);
      }
    }
    parent.postMessage(out, '*');
  });
</script>"""
WIDTHS = (1200, 390)
# Frames, because a window of Chromium's cannot be as narrow as a phone.
FRAMES = """<!DOCTYPE html><html><script>
  const found = [];
  addEventListener('message', e => {
    found.push(e.data);
    document.documentElement.dataset.measured = JSON.stringify(found);
  });
</script>""" + "".join(
    f'<iframe src="measured.html" style="border:0;width:{width}px;height:900px"></iframe>'
    for width in WIDTHS
)


def browse(page, folder, *options):
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", f"--user-data-dir={folder / 'profile'}", "--hide-scrollbars",
        "--window-size=1300,1000", *options, page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


def check_layout(source, folder, n_pictures):
    """Check in a browser that the page fits its width, and every text of a picture its picture."""
    # Only to be measured: the page itself allows no script.
    source = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", source)
    page = folder / "measured.html"
    page.write_text(source.replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    frames = folder / "frames.html"
    frames.write_text(FRAMES, encoding="utf-8")
    found = browse(frames, folder, "--dump-dom", "--virtual-time-budget=5000").stdout
    each = json.loads(dict(Page(found).elements[0][1])["data-measured"])
    assert sorted(measured["width"] for measured in each) == sorted(WIDTHS)
    for measured in each:
        assert measured["scroll"] <= measured["width"]
        assert len(measured["pictures"]) == n_pictures
        assert min(min(box) for box in measured["pictures"]) > 150
        assert measured["spilled"] == []


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")
class TestInChromium:
    def test_nothing_is_cut_off(self, written, tmp_path):
        check_layout(written[1], tmp_path, n_pictures=14)

    def test_it_prints_with_all_details(self, written, tmp_path):
        path, *_ = written
        target = tmp_path / "report.pdf"
        browse(path, tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={target}")
        pages = target.read_bytes().count(b"/Type /Page\n")
        assert 4 <= pages <= 24


def test_nothing_in_the_numbers_is_nan(written):
    assert all(math.isfinite(value) for value in numbers_in(written[3]))


def test_a_value_of_c_that_a_kernel_was_not_trained_with_has_an_empty_cell() -> None:
    kernels = ["line", "line", "curve", "curve"]
    values = {
        "C": [0.1, 1.0, 1.0, 10.0],
        "kernel": kernels,
        "candidate": None,
        "gamma": None,
        "accuracy": [0.6, 0.7, 0.7, 0.8],
        "accuracy_tenth": [0.5] * 4,
        "accuracy_ninetieth": [0.9] * 4,
        "weight": [0.33, 0.33, 0.34, 0.0],
    }
    picture = settings._grid_maps(values, kernels, ["line", "curve"], "g")
    assert [picture.svg.count(text) for text in (">33<", ">34<", "·")] == [2, 1, 1]


def test_small_probabilities_have_three_digits():
    for value, said in (
        (0.42, "42.0"), (0.0423, "4.23"), (0.004_234, "0.423"), (0.000_42, "0.0420"),
        (0.000_004_2, "0.0004"), (1e-9, "< 0.0001"), (0.9958, "99.580"), (1 - 1e-9, "> 99.9999"),
    ):  # fmt: skip
        assert fine_probability(value) == f"{said}\u202f%"
    for value in np.logspace(-5.9, -0.31, 200):
        shown = float(fine_probability(value).rstrip("\u202f%")) / 100
        assert shown == pytest.approx(value, rel=0.005, abs=5e-7)


def test_subgroups_may_be_of_a_column_that_the_model_does_not_know(tmp_path):
    rng = np.random.default_rng(0)
    known = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    table = known.assign(site=np.where(rng.uniform(size=120) > 0.5, "u", "v"))
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=10, random_state=0)
    model.fit(known, known["a"] + rng.logistic(size=120) > 0)
    written = write_report({"l": model}, tmp_path / "r.html", title="t", training=table, by="site")
    assert "site" in json.dumps(written["models"][0])
    for models, training, message in (
        ({"l": model}, table[:50], "training has 50 rows, and fit had 120"),
        ([model], None, "give a dict of at least one fitted model"),
        ({"l": 3}, None, "'l' is of the type int"),
    ):
        with pytest.raises(DataError, match=message):
            write_report(models, tmp_path / "other.html", title="t", training=training)
    assert not (tmp_path / "other.html").exists()
