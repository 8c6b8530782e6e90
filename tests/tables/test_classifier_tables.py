"""Classifiers fitted to a data frame are given one again: from tables, files and requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from bootprob import BootstrapClassifier
from bootprob.batch_scoring import score_batches
from bootprob.cli.__main__ import app
from bootprob.encoding.given_columns import GivenColumns
from bootprob.exceptions import DataError
from bootprob.persistence.save_load import save
from bootprob.tables.held_out import HeldOut
from bootprob.tables.model import TableModel

QUICK: dict[str, Any] = {
    "n_bootstraps": 4,
    "calibration": None,
    "interval": "wald",
    "random_state": 0,
}


def applicants(n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """Gaps, categories in an order that is not the alphabet's, codes, and texts that differ."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, "yes", "no")
    frame = pd.DataFrame({"age": np.round(10 * X[:, 0] + 40), "size": X[:, 1]})
    frame["kids"] = rng.integers(0, 4, n)
    frame["house"] = pd.Categorical(
        np.where(X[:, 1] > 0, "own", "rent"), ["rent", "own", "ship"], ordered=True
    )
    frame["flag"], frame["zip"] = rng.random(n) < 0.5, pd.Categorical(rng.integers(1, 4, n) * 100)
    frame["letter"] = [f"row{k} {'dear' if each == 'yes' else 'oh'}" for k, each in enumerate(y)]
    frame.loc[::9, "age"], frame.loc[::11, "zip"] = np.nan, np.nan
    return frame, y


def pipeline() -> Any:
    columns = make_column_transformer(
        (CountVectorizer(), "letter"),
        (OneHotEncoder(handle_unknown="ignore"), ["house", "zip", "flag"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "kids"]),
    )
    return make_pipeline(columns, LogisticRegression())


@pytest.fixture(scope="module")
def fitted() -> tuple[BootstrapClassifier, pd.DataFrame]:
    frame, y = applicants()
    return BootstrapClassifier(pipeline(), **QUICK).fit(frame, y), frame


def of(model: Any) -> TableModel:
    table = TableModel.of(model)
    assert table is not None
    return table


def test_a_frame_is_made_as_it_was(fitted: tuple[BootstrapClassifier, pd.DataFrame]) -> None:
    model, frame = fitted
    encoder = of(model).encoder
    assert encoder.kinds["letter"] == "text"  # no column of the matrix
    mixed = frame.iloc[:, ::-1].astype(object)
    made = encoder.encode({name: mixed[name] for name in mixed}, len(frame)).X
    pd.testing.assert_frame_equal(made.given, frame)
    np.testing.assert_array_equal(made.matrix, model.preprocessor_.transform(frame))
    as_json = {
        name: [None if pd.isna(value) else value for value in frame[name].tolist()]
        for name in frame
    }
    made = encoder.encode(as_json, len(frame)).X
    pd.testing.assert_frame_equal(made.given, frame)
    again = encoder.joined([made[:20], made[20:21], made[21:]])
    pd.testing.assert_frame_equal(again.given, frame)
    np.testing.assert_array_equal(again.matrix, made.matrix)


def test_what_was_not_there_stays_what_it_is() -> None:
    frame, _ = applicants(6)
    odd = {name: frame[name].tolist() for name in frame}
    odd |= {"house": ["boat", None, "own", "own", "rent", "boat"]}
    odd |= {"kids": [0.5, 1, None, 2, 3, 4], "flag": [True, None, "maybe", 0, "FALSE", 1]}
    made = GivenColumns.of(frame).frame(odd, 6, {}, {})
    assert made["house"].cat.categories.tolist() == ["rent", "own", "ship", "boat"]
    assert made["house"].astype(object).where(made["house"].notna(), None).tolist() == odd["house"]
    np.testing.assert_array_equal(made["kids"], [0.5, 1, np.nan, 2, 3, 4])
    flags = made["flag"].astype(object).where(made["flag"].notna(), None)
    assert flags.tolist() == [True, None, "maybe", False, False, True]


def test_a_table_model_predicts_what_the_classifier_does(
    fitted: tuple[BootstrapClassifier, pd.DataFrame],
) -> None:
    model, frame = fitted
    table = of(model)
    found = table.predict(frame[reversed(frame.columns)], 0.9, sets=0.8)
    np.testing.assert_array_equal(found["probability"], model.predict_proba(frame)[:, 1])
    interval = found[["probability_lower", "probability_upper"]]
    np.testing.assert_array_equal(interval, model.proba_interval(frame, 0.9)[:, 1])
    assert found["label"].tolist() == model.predict(frame).tolist()
    in_set = found["set"].str.contains("yes").to_numpy()
    np.testing.assert_array_equal(in_set, model.prediction_sets(frame, 0.8)[:, 1])
    assert model.classes_.tolist() == ["no", "yes"]  # it is not the table's own
    with pytest.raises(DataError, match="lacks the column 'letter'"):
        table.predict(frame.drop(columns="letter"))
    held_out = HeldOut.of_table(table, frame.assign(**{"class": model.predict(frame)}))
    answers = table.svc.predict_proba(held_out.X)
    np.testing.assert_array_equal(answers, model.predict_proba(frame))


def test_several_classes_and_their_pairs_take_the_frame() -> None:
    frame, y = applicants()
    three = np.where(frame["kids"] == 3, "maybe", y)
    model = BootstrapClassifier(pipeline(), **QUICK).fit(frame, three)
    table = of(model)
    rows = table.preprocessor.encode(frame, table.encoder).X
    np.testing.assert_array_equal(table.svc.predict_proba(rows), model.predict_proba(frame))
    pair = model.pair_ensembles_[0]
    [scores] = pair.bootstrap_scores(frame)
    direct = model.estimators_[0][0].decision_function(frame)
    np.testing.assert_allclose(scores[:, 0, 0], direct[:, 1] - direct[:, 0])


def test_gaps_of_a_matrix_stay_gaps() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] > 0
    X[::5, 0] = np.nan
    boosting = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5)
    model = BootstrapClassifier(boosting, **QUICK).fit(X, y)
    found = of(model).predict(pd.DataFrame(X, columns=["0", "1"]))
    np.testing.assert_array_equal(found["probability"], model.predict_proba(X)[:, 1])


def test_categories_by_their_types() -> None:
    """Boosting tells categories by the type of the column, which text has not."""
    frame, y = applicants()
    frame = frame.drop(columns="letter")
    boosting = HistGradientBoostingClassifier(max_iter=3, categorical_features="from_dtype")
    model = BootstrapClassifier(boosting, **QUICK).fit(frame, y)
    plain = frame.astype({"house": str, "zip": float})
    found = of(model).predict(plain)
    np.testing.assert_array_equal(found["probability"], model.predict_proba(frame)[:, 1])


def test_columns_that_no_file_has_are_refused() -> None:
    frame, y = applicants()
    frame["since"] = pd.NaT  # left out of the matrix, as it has no values
    model = BootstrapClassifier(pipeline(), **QUICK).fit(frame, y)
    assert np.isfinite(model.predict_proba(frame)).all()
    with pytest.raises(DataError, match="Column 'since' holds values that no file or request has"):
        TableModel.of(model)


def test_the_command_line(fitted: tuple[BootstrapClassifier, pd.DataFrame], tmp_path: Path) -> None:
    model, frame = fitted
    save(model, tmp_path / "m.model")
    frame.to_csv(tmp_path / "new.csv", index=False)
    frame.to_parquet(tmp_path / "new.parquet")
    expected = model.predict_proba(frame)[:, 1]

    def run(*arguments: object) -> Any:
        return CliRunner().invoke(app, [str(each) for each in arguments])

    given = [tmp_path / "m.model", tmp_path / "new.csv", "-o", tmp_path / "out.csv"]
    refused = run("predict", *given)
    assert refused.exit_code == 1
    assert "--trust numpy.dtype" in refused.stderr
    for command, source in (("predict", "csv"), ("score", "csv"), ("score", "parquet")):
        given[1] = tmp_path / f"new.{source}"
        assert run(command, *given, "--trust", "numpy.dtype").exit_code == 0
        found = pd.read_csv(tmp_path / "out.csv")["probability"]
        np.testing.assert_array_equal(found, expected)
    refused = run("score", *given, "--trust", "numpy.dtype", "--device", "cpu")
    assert "--device is of support vector machines" in refused.stderr


def test_bad_cells_are_marked_beside_rows_that_are_scored(
    fitted: tuple[BootstrapClassifier, pd.DataFrame],
) -> None:
    import pyarrow as pa

    from bootprob.batch_scoring import ScoringOptions

    model, frame = fitted
    odd = frame.assign(kids=frame["kids"].astype(str).where(np.arange(60) != 3, "many"))
    batch = pa.RecordBatch.from_pandas(odd)
    [scored] = score_batches(of(model), [batch], ScoringOptions(bad_rows="null"))
    found = scored["probability"].to_numpy(zero_copy_only=False)
    assert np.isnan(found).tolist() == (np.arange(60) == 3).tolist()
    good = np.arange(60) != 3
    np.testing.assert_array_equal(found[good], model.predict_proba(frame)[good, 1])


def test_columns_of_a_file_are_checked() -> None:
    columns = list(map(dict, GivenColumns.of(applicants()[0]).columns))
    GivenColumns.checked(columns)
    for wrong in (
        [{"kind": "number", "dtype": "float64"}],
        [{"name": "a", "kind": "sound", "dtype": "float64"}],
        [{"name": "a", "kind": "number", "dtype": ["float64"]}],
        [{"name": "a", "kind": "number", "dtype": "nothing"}],
        [{"name": "a", "kind": "text", "categories": [1, "1"], "ordered": False}],
        [{"name": "a", "kind": "text", "categories": [[]], "ordered": False}],
        ["a"],
    ):
        with pytest.raises((TypeError, ValueError)):
            GivenColumns.checked(wrong)
