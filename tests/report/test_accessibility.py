"""Reports before axe-core, in a browser: where both are to be had.

BOOTPROB_AXE names axe-core's script, such as node_modules/axe-core/axe.min.js.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from bootprob import BootstrapClassifier
from bootprob.dea import Panel, benchmark_study
from bootprob.report import write_report, write_scored_report
from bootprob.report.dea.report import write_dea_report
from bootprob.tables.files import write_table
from bootprob.tables.held_out import HeldOut
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

AXE = os.environ.get("BOOTPROB_AXE")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)

# The answer goes into the page, which --dump-dom prints.
ASK = """<script>
document.querySelectorAll("details").forEach(each => each.open = true);
axe.run().then(found => {
  const said = found.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 120))]);
  document.body.innerHTML = "<pre id=found></pre>";
  document.getElementById("found").textContent = JSON.stringify([found.passes.length, said]);
});
</script>"""


def model_report(folder):
    table = credit_table(150)
    model = TableModel.fit(
        table[:120], "risk", "bad", kernel="linear", n_bootstraps=30, random_state=0,
        control="threshold", rates={"tpr": 0.8}, confidence=0.9,
    )  # fmt: skip
    named, held_out = model.svc_with_class_names(), HeldOut.of_table(model, table[120:])
    write_report({"linear": named}, folder / "page.html", title="Loans", held_out=held_out)
    return model, table


def scored_report(folder):
    model, table = model_report(folder)
    write_table(table, folder / "table.parquet")
    write_table(model.predict(table), folder / "scored.parquet")
    write_scored_report(
        folder / "scored.parquet",
        folder / "page.html",
        model=model,
        input_table=folder / "table.parquet",
    )


def scored_classes_report(folder):
    iris = load_iris(as_frame=True)
    table = iris.data.assign(target=iris.target_names[iris.target])
    model = TableModel.fit(
        table, "target", all_classes=True, kernel="linear", n_bootstraps=10, random_state=0
    )
    assert len(model.svc.classes_) == 3
    write_table(model.predict(table), folder / "scored.parquet")
    write_scored_report(folder / "scored.parquet", folder / "page.html", model=model)


def classifier_report(folder):
    X, y = load_breast_cancer(return_X_y=True)
    trees = [DecisionTreeClassifier(max_depth=2), GaussianNB()]
    model = BootstrapClassifier(trees, n_bootstraps=10, random_state=0).fit(X[:150, :3], y[:150])
    write_report({"trees": model}, folder / "page.html", title="Cells")


def dea_report(folder):
    rng = np.random.default_rng(0)
    panel = Panel.of(rng.uniform(1, 2, (12, 2)), rng.uniform(1, 2, (12, 3)))
    study = benchmark_study(panel, n_replicates=100)
    write_dea_report(study, folder / "page.html", title="Clinics", source="clinics.csv")


def browse(page, folder):
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=60000", "--dump-dom",
        page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout


@pytest.mark.endurance
@pytest.mark.skipif(AXE is None or CHROMIUM is None, reason="no Chromium, or no BOOTPROB_AXE")
@pytest.mark.parametrize(
    "write",
    [model_report, scored_report, scored_classes_report, classifier_report, dea_report],
)
def test_no_violation(write, tmp_path):
    write(tmp_path)
    source = (tmp_path / "page.html").read_text(encoding="utf-8")
    source = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", source)
    asked = tmp_path / "asked.html"
    script = f"<script>{Path(AXE).read_text(encoding='utf-8')}</script>{ASK}</body>"
    head, end = source.rsplit("</body>", 1)
    asked.write_text(head + script + end, encoding="utf-8")
    said = re.search(r'<pre id="found">(.*?)</pre>', browse(asked, tmp_path), re.DOTALL)
    passed, violations = json.loads(
        said[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    )
    assert passed > 15
    assert violations == []
