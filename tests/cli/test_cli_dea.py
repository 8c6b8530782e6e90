"""``bootprob dea`` from an analyst's chair: what it writes, what it says, what it refuses."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from bootprob.cli.__main__ import app
from bootprob.dea import (
    Panel,
    SubsetEfficiencies,
    efficiency,
    efficiency_interval,
    select_outputs,
)

COLUMNS = ["--inputs", "x*", "--outputs", "y*", "--unit-column", "name"]


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["dea", *map(str, arguments)])


def _done(*arguments: object) -> str:
    result = _run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def _refused(message: str, *arguments: object, code: int = 1) -> None:
    result = _run(*arguments)
    said = " ".join(result.stderr.replace("│", " ").split())
    assert result.exit_code == code, result.output
    assert message in said
    assert result.stdout == ""


@pytest.fixture
def frame(rng: np.random.Generator) -> pd.DataFrame:
    size = np.exp(rng.normal(size=(10, 1)))
    values = size * rng.uniform(0.4, 2, (10, 6))
    frame = pd.DataFrame(values, columns=["x1", "x2", "y1", "y2", "y3", "y4"])
    frame.insert(0, "name", [f"0{k}" for k in range(10)])
    return frame.assign(group=list("aaabbbbbcc"), worth=np.arange(1.0, 11))


@pytest.fixture
def table(frame: pd.DataFrame, tmp_path: Path) -> Path:
    frame.to_csv(tmp_path / "units.csv", index=False)
    return tmp_path / "units.csv"


@pytest.fixture
def panel(frame: pd.DataFrame) -> Panel:
    return Panel.of(frame[["x1", "x2"]], frame[["y1", "y2", "y3", "y4"]], units=frame["name"])


def _ratio(table: Path) -> list[object]:
    """One input, so that efficiencies of subsets are quick."""
    return [table, "--inputs", "x1", "--outputs", "y*", "--unit-column", "name"]


def test_efficiency(table: Path, panel: Panel, tmp_path: Path) -> None:
    said = _done(
        "efficiency", table, *COLUMNS, "--returns", "variable", "--orientation", "output",
        "-o", tmp_path / "scores.csv",
    )  # fmt: skip
    truth = efficiency(panel, returns="variable", orientation="output")
    written = pd.read_csv(tmp_path / "scores.csv", dtype={"unit": str, "peers": str})
    assert written["unit"].tolist() == list(panel.units)
    np.testing.assert_allclose(written["score"], truth.scores)
    np.testing.assert_allclose(written["target of y3"], truth.output_targets[:, 2], rtol=1e-9)
    assert f"{truth.efficient.sum()} of 10 units are efficient" in said
    for unit, score in zip(panel.units, truth.scores, strict=True):
        line = next(line for line in said.splitlines() if line.startswith(f"│ {unit} "))
        assert f"{score:.4f}" in line
    _done("efficiency", table, *COLUMNS, "--super", "-o", tmp_path / "ranks.parquet")
    ranks = pd.read_parquet(tmp_path / "ranks.parquet")
    truth = efficiency(panel, super_efficiency=True)
    np.testing.assert_allclose(ranks["score"], truth.scores)


def test_intervals_and_json(table: Path, panel: Panel, tmp_path: Path) -> None:
    options = ["--intervals", "--replicates", 100, "--seed", 3, "--level", 0.9]
    said = _done("efficiency", table, *COLUMNS, *options, "-o", tmp_path / "scores.json")
    assert "90% interval" in said
    content = json.loads((tmp_path / "scores.json").read_text())
    truth = efficiency_interval(panel, n_replicates=100, seed=3, level=0.9)
    for k, unit in enumerate(content["units"]):
        assert unit["interval"]["lower"] == pytest.approx(truth.lower[k])
        assert unit["interval"]["corrected"] == pytest.approx(truth.corrected[k])
    assert content["data"]["outputs"] == ["y1", "y2", "y3", "y4"]


def test_cross(table: Path, panel: Panel, tmp_path: Path) -> None:
    said = _done("cross", table, *COLUMNS, "-o", tmp_path / "cross.csv")
    matrix = pd.read_csv(tmp_path / "cross.csv", index_col=0).to_numpy()
    np.testing.assert_allclose(np.diag(matrix), efficiency(panel).scores, atol=1e-7)
    best = panel.units[int(matrix.mean(axis=0).argmax())]
    assert said.splitlines()[4].startswith(f"│ {best} ")


def test_select(table: Path, panel: Panel, tmp_path: Path) -> None:
    one = panel.take(inputs=["x1"])
    evaluator = SubsetEfficiencies(one)
    best = {
        p: max(evaluator.of(s).mean() for s in itertools.combinations(range(4), p))
        for p in (1, 2, 3)
    }
    said = _done("select", *_ratio(table), "-p", 2, "-o", tmp_path / "chosen.json")
    content = json.loads((tmp_path / "chosen.json").read_text())
    assert content["objective"] == content["bound"] == pytest.approx(best[2])
    assert content["status"] == "optimal"
    assert f"Chosen: {', '.join(content['outputs'])}." in said
    assert "proven to be the best" in said
    said = _done("select", *_ratio(table), "-p", 3, "--curve", "-o", tmp_path / "curve.csv")
    curve = pd.read_csv(tmp_path / "curve.csv", index_col="p")
    np.testing.assert_allclose(curve["objective"], list(best.values()))
    assert curve["q3-q1"].notna().all()
    assert "contributes" in said


def test_objectives(table: Path, panel: Panel, frame: pd.DataFrame, tmp_path: Path) -> None:
    one, where = panel.take(inputs=["x1"]), tmp_path / "out.json"
    _refused("'percentile' needs percentile", "select", *_ratio(table), "-p", 2, "--objective",
             "percentile")  # fmt: skip
    _refused("only 'weighted' uses that", "select", *_ratio(table), "-p", 2, "--weight-column",
             "worth")  # fmt: skip
    _refused("Invalid value for '--time-limit'", "select", *_ratio(table), "-p", 2,
             "--time-limit", 0, code=2)  # fmt: skip
    for given, options in (
        (["--objective", "minimum"], {"objective": "minimum"}),
        (
            ["--objective", "percentile", "--percentile", 30],
            {"objective": "percentile", "percentile": 30},
        ),
        (
            ["--objective", "weighted", "--weight-column", "worth"],
            {"objective": "weighted", "weights": frame["worth"]},
        ),
    ):
        _done("select", *_ratio(table), "-p", 2, *given, "-o", where)
        truth = select_outputs(one, 2, **options)  # type: ignore[arg-type]
        assert json.loads(where.read_text())["objective"] == pytest.approx(truth.objective)


def test_rules(table: Path, panel: Panel, tmp_path: Path) -> None:
    about = tmp_path / "about.csv"
    about.write_text("output,cost,cluster\ny1,1,a\ny2,2,a\ny3,5,b\ny4,,\n")
    where = tmp_path / "out.json"
    rules = ["--output-table", about, "--budget", 3, "--cluster-max", "a=1"]
    _done("select", *_ratio(table), "-p", 2, *rules, "-o", where)
    evaluator = SubsetEfficiencies(panel.take(inputs=["x1"]))
    # y3 is too dear, and of y1 and y2 only one may be there.
    truth = max(evaluator.of(s).mean() for s in ((0, 3), (1, 3)))
    assert json.loads(where.read_text())["objective"] == pytest.approx(truth)
    _refused("No 3 of the 4 outputs keep all the rules", "select", *_ratio(table), "-p", 3, *rules)
    select = ["select", *_ratio(table), "-p", 1]
    _refused("--cluster-min needs an --output-table", *select, "--cluster-min", 1)
    _refused("--cluster-max is 'a=b'", *select, *rules[:2], "--cluster-max", "a=b")
    for text, message in (
        ("output,price\ny1,1\n", "has 'price'; its columns are output, cost"),
        ("cost\n1\n", "lacks 'output'"),
        ("output,cost\ny9,1\n", "describes 'y9', which is no output that was chosen"),
        ("output,cost\ny1,1\ny1,2\n", "describes 'y1' more than once"),
        ("output,cost\ny1,dear\n", "has the cost 'dear' in row 1"),
        ("output,weight_max\ny1,dear\n", "has the weight_max 'dear' in row 1"),
    ):
        about.write_text(text)
        _refused(message, *select, "--output-table", about, "--budget", 1)


def test_select_with_inputs_and_bounds_on_weights(
    table: Path, panel: Panel, tmp_path: Path
) -> None:
    where, about = tmp_path / "out.json", tmp_path / "about.csv"
    means = {
        (i, s): efficiency(panel.take(inputs=[i], outputs=s)).scores.mean()
        for i in (0, 1)
        for s in itertools.combinations(range(4), 2)
    }
    said = _done("select", table, *COLUMNS, "-p", 2, "--n-inputs", 1, "-o", where)
    content = json.loads(where.read_text())
    used, chosen = max(means, key=lambda one: means[one])
    assert content["objective"] == pytest.approx(means[used, chosen])
    assert content["inputs"] == [panel.input_names[used]]
    assert f"Inputs: {panel.input_names[used]}." in said
    said = _done(
        "select", table, *COLUMNS, "-p", 2, "--n-inputs", 1, "--curve", "-o", tmp_path / "c.csv"
    )
    curve = pd.read_csv(tmp_path / "c.csv", index_col="p")
    assert curve.loc[2, "inputs"] == panel.input_names[used]
    assert "inputs" in said
    about.write_text("output,weight_max\n" + "".join(f"{name},0\n" for name in content["outputs"]))
    _done("select", table, *COLUMNS, "-p", 2, "--output-table", about, "-o", where)
    names = [panel.output_names[j] for j in chosen]
    left = [j for j in range(4) if panel.output_names[j] not in names]
    truth = efficiency(panel.take(outputs=left)).scores.mean()
    assert json.loads(where.read_text())["objective"] == pytest.approx(truth)


def test_unit(table: Path, panel: Panel, tmp_path: Path) -> None:
    where, about = tmp_path / "unit.json", tmp_path / "about.csv"
    unit = "03"
    said = _done("unit", table, unit, *COLUMNS, "-p", 2, "--n-inputs", 1, "-o", where)
    content = json.loads(where.read_text())
    best = max(
        efficiency(panel.take(inputs=[i], outputs=s)).scores[3]
        for i in (0, 1)
        for s in itertools.combinations(range(4), 2)
    )
    assert content["efficiency"] == pytest.approx(best, abs=1e-5)
    assert f"Chosen for unit {unit}" in said
    chosen = content["outputs"][0]["name"]
    about.write_text(f"output,weight_max\n{chosen},0\n")
    _done("unit", table, unit, *COLUMNS, "-p", 2, "--output-table", about, "-o", where)
    weights = {one["name"]: one["weight"] for one in json.loads(where.read_text())["outputs"]}
    assert weights.get(chosen, 0) == 0
    _refused(
        "There is no '77' among the 10 units: 00, 01, 02", "unit", table, "77", *COLUMNS, "-p", 2
    )


def test_game(table: Path, panel: Panel, tmp_path: Path) -> None:
    where = tmp_path / "game.json"
    said = _done(
        "game", *_ratio(table), "-p", 2, "--joint", "y1,y2", "--group-column", "group",
        "--share", 50, "--method", "exact", "-o", where,
    )  # fmt: skip
    content = json.loads(where.read_text())
    evaluator = SubsetEfficiencies(panel.take(inputs=["x1"]))
    joint = evaluator.of((0, 1))
    subsets = list(itertools.combinations(range(4), 2))
    own = np.max([evaluator.of(s) for s in subsets], axis=0)
    for k, unit in enumerate(content["units"]):
        assert unit["gain"] == pytest.approx(own[k] - joint[k], abs=1e-6)
        strategy = [panel.output_names.index(name) for name in unit["strategy"]]
        support = 100 * (evaluator.of(strategy) - joint > 1e-7).mean()
        assert unit["support"] == pytest.approx(support)
    assert [one["members"] for one in content["coalitions"]] == [3, 5, 2]
    assert content["supported"]["share"] == 50
    assert "Joint selection: y1, y2." in said
    assert "Groups, and the selection" in said
    game = ["game", *_ratio(table), "-p", 2]
    _refused("There is no 'y9'", *game, "--joint", "y1,y9")
    _refused("joint holds 1 different outputs", *game, "--joint", "y1")
    _refused("--share 120 is no percentage", *game, "--share", 120, code=2)
    _refused("has no column 'region'", *game, "--group-column", "region")


def test_report(table: Path, tmp_path: Path) -> None:
    where = tmp_path / "report.html"
    said = _done(
        "report", *_ratio(table), "--replicates", 100, "--most-outputs", 2, "--title", "Ours",
        "-o", where,
    )  # fmt: skip
    page = where.read_text(encoding="utf-8")
    assert "<title>Ours</title>" in page
    content = json.loads(where.with_suffix(".json").read_text())
    assert content["data"]["n_units"] == 10
    assert len(content["selection"]["curve"]) == 2
    assert str(where.with_suffix(".json")) in said
    report = ["report", *_ratio(table)]
    _refused("must end in .html", *report, "-o", tmp_path / "report.txt")
    _refused("--replicates 50 are too few", *report, "--replicates", 50, "-o", where, code=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--inputs", "x9", "--outputs", "y1"], "has no column 'x9'; it has name, x1, x2"),
        (["--inputs", "x1", "--outputs", "z*"], "--outputs z* matches no column"),
        (["--inputs", "x1", "--outputs", ","], "--outputs names no column"),
        (["--inputs", "name", "--outputs", "y1", "--unit-column", "label"], "no column 'label'"),
        (["--inputs", "group", "--outputs", "y1"], "has 'a' in row 1, which is no number"),
        (["--inputs", "x1", "--outputs", "x1,y1"], "'x1' is an input and an output"),
        (["--inputs", "x1", "--outputs", "y1", "--unit-column", "group"], "'a' more than once"),
        ([*COLUMNS[:4], "-o", "nowhere/out.csv"], "nowhere does not exist"),
        ([*COLUMNS[:4], "-o", "out.xlsx"], "must end in .csv, .parquet or .json"),
    ],
)
def test_refusals(table: Path, options: list[str], message: str) -> None:
    _refused(message, "efficiency", table, *options)


def test_refused_amounts(table: Path, frame: pd.DataFrame, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    for value, message in (
        (np.nan, "'y2' of unit '04' is missing"),
        (-1.0, "'y2' of unit '04' is negative"),
        (np.inf, "'y2' of unit '04' is infinite"),
    ):
        frame.assign(y2=frame["y2"].where(frame["name"] != "04", value)).to_csv(bad, index=False)
        _refused(message, "efficiency", bad, *COLUMNS)
    idle = frame.copy()
    idle.loc[2, ["x1", "x2"]] = 0
    idle.to_csv(bad, index=False)
    _refused("All inputs of unit '02' are zero", "efficiency", bad, *COLUMNS)
    frame.assign(name=frame["name"].where(frame["name"] != "05")).to_csv(bad, index=False)
    _refused("has no name in row 6", "efficiency", bad, *COLUMNS)
    frame.assign(group=frame["group"].where(frame["name"] != "05")).to_csv(bad, index=False)
    _refused("says nothing of unit '05'", "game", bad, *COLUMNS, "-p", 1, "--group-column", "group")
    _refused("--super and --intervals", "efficiency", table, *COLUMNS, "--super", "--intervals",
             code=2)  # fmt: skip
    _refused("is the file that is read", "efficiency", table, *COLUMNS, "-o", table)


def test_names_with_commas_and_what_is_left(frame: pd.DataFrame, tmp_path: Path) -> None:
    odd = frame.rename(columns={"x1": "cost, total"}).drop(columns=["group", "worth"])
    odd.to_csv(tmp_path / "odd.csv", index=False)
    where = tmp_path / "out.json"
    _done(
        "efficiency", tmp_path / "odd.csv", "--inputs", "cost, total", "--inputs", "x2",
        "--outputs", "*", "--unit-column", "name", "-o", where,
    )  # fmt: skip
    data = json.loads(where.read_text())["data"]
    assert data["inputs"] == ["cost, total", "x2"]
    assert data["outputs"] == ["y1", "y2", "y3", "y4"]


def test_units_without_names_are_numbered(frame: pd.DataFrame, tmp_path: Path) -> None:
    table = tmp_path / "named.csv"
    frame.assign(name="unit " + frame["name"]).to_csv(table, index=False)
    result = _run("efficiency", table, "--inputs", "x1", "--outputs", "y1,y2")
    assert "--unit-column 'name' would name them" in result.stderr
    assert "│ 10 " in result.stdout


def test_help_answers_at_once() -> None:
    code = (
        "import sys; sys.argv[1:] = ['dea', '--help']\n"
        "from bootprob.cli.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = ['torch', 'sklearn', 'pandas', 'matplotlib', 'cvxpy', 'highspy', 'numpy']\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[-1] == "[]"
    for command in ("efficiency", "cross", "select", "unit", "game", "report"):
        assert command in said.stdout
        assert _run(command, "--help").exit_code == 0
