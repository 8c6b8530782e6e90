"""Data sets by name: prepared as thesis 3.3.1 says, checked when read, clear errors."""

import hashlib
import re
import socket
import subprocess
import sys
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from bootprob.datasets import CATALOG, NAMES, DatasetError, Source, at_hand, finding, load, reading
from bootprob.datasets.preparation import numbers
from bootprob.datasets.source import File, OpenML
from bootprob.exceptions import DataError
from gpu.benchmarks.common import datasets_document
from gpu.benchmarks.common.datasets import FOLDER, LOADERS
from gpu.benchmarks.common.datasets import at_hand as in_benchmarks

HERE = [name for name in NAMES if FOLDER.is_dir() and at_hand(name, FOLDER)]
BUNDLED = [name for name in NAMES if CATALOG[name].form == "bundled"]


@pytest.fixture(autouse=True)
def no_folder_and_an_empty_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("BOOTPROB_DATASETS", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))


@pytest.fixture
def no_network(monkeypatch):
    """What a machine without a network says."""

    def refuse(*_, **__):
        assert socket.getdefaulttimeout() is not None
        raise URLError("Name or service not known")

    monkeypatch.setattr(sklearn.datasets, "fetch_file", refuse)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)


def write_table(folder: Path, rng, n: int = 24) -> tuple[Source, list[list[str]]]:
    """A raw table with gaps, text, codes and a name, in a folder of its own."""
    kinds = np.array(["a", "b", "c"])[np.r_[[0] * 11, [1] * 7, [2] * 6][rng.permutation(n)]]
    cells = [
        [
            f"row{i}",
            "?" if i == 3 else f"{rng.normal() * 10.0 ** rng.integers(-6, 7):.9g}",
            "?" if i == 5 else rng.choice(["red", "blue", "green, dark"]).replace(",", ""),
            str(rng.choice([1, 2, 10])) + rng.choice(["", ".0"]),
            kinds[i],
        ]
        for i in range(n)
    ]
    for i, level in zip(range(6, 12), ["red", "blue", "green dark", "1", "2", "10"], strict=True):
        cells[i][2 if i < 9 else 3] = level  # every level occurs
    (folder / "made up").mkdir(parents=True)
    text = "\n".join(";".join(row) for row in cells) + "\n"
    path = folder / "made up" / "made.data"
    path.write_text(text, encoding="utf-8")
    source = Source(
        name="made up",
        title="A table",
        columns=("who", "size", "colour", "code", "kind"),
        target="kind",
        rows=n,
        prepared=7,
        classes=(("b", 7), ("a", 11), ("c", 6)),
        missing=2,
        left_out=("who",),
        categorical=("colour", "code"),
        separator=";",
        folder="made up",
        files=(File("made.data", hashlib.sha256(path.read_bytes()).hexdigest(), ()),),
        origin="nowhere",
        licence="none",
        citation="none",
    )
    return source, cells


@pytest.fixture
def made(monkeypatch, rng, tmp_path):
    source, cells = write_table(tmp_path / "local", rng)
    monkeypatch.setitem(CATALOG, "made up", source)
    return source, cells, tmp_path / "local"


# Preparation


def test_a_table_is_prepared_as_the_thesis_says(made):
    _, cells, folder = made
    found = load("made up", folder)
    sizes = [float(row[1]) for row in cells if row[1] != "?"]
    colours = [row[2] for row in cells if row[2] != "?"]
    commonest = max(sorted(set(colours)), key=colours.count)
    expected = []
    for _, size, colour, code, _ in cells:
        number = np.median(sizes) if size == "?" else float(size)
        known = commonest if colour == "?" else colour
        dummies = [known == level for level in ("blue", "green dark", "red")]
        dummies += [float(code) == level for level in (1, 10, 2)]
        expected.append([number, *map(float, dummies)])
    np.testing.assert_array_equal(found.X, expected)
    assert found.X.dtype == np.float64
    assert found.columns == (
        *("size", "colour=blue", "colour=green dark", "colour=red"),
        *("code=1", "code=10", "code=2"),
    )
    kinds = [row[4] for row in cells]
    assert found.labels.tolist() == kinds
    assert found.y.dtype == bool
    assert found.y.tolist() == [kind != "a" for kind in kinds]  # "a" is the largest
    assert found.positives == ("b", "c")
    assert "24 rows, 7 columns, 13 positives (b or c)" in found.description


def test_a_class_can_be_taken_for_positive(made):
    found = load("made up", made[2], positive="a")
    assert found.y.tolist() == (found.labels == "a").tolist()
    with pytest.raises(DatasetError, match=r"no class 'd'; positive may be 'b', 'a', 'c'"):
        load("made up", made[2], positive="d")


def test_rows_with_gaps_can_be_left_out(made, monkeypatch):
    source, cells, folder = made
    complete = [row for row in cells if "?" not in row]
    counts = tuple((kind, sum(row[4] == kind for row in complete)) for kind in "abc")
    monkeypatch.setitem(
        CATALOG,
        "made up",
        replace(source, complete_rows=True, rows=22, classes=counts, missing=0),
    )
    found = load("made up", folder)
    assert found.X[:, 0].tolist() == [float(row[1]) for row in complete]


@pytest.mark.parametrize(
    ("cell", "message"),
    [("seven", "size should hold numbers"), ("inf", "size has infinite numbers")],
)
def test_cells_that_are_no_numbers_are_refused(made, cell, message):
    path = made[2] / "made up" / "made.data"
    rows = [line.split(";") for line in path.read_text().splitlines()]
    rows[0][1] = cell
    path.write_text("\n".join(map(";".join, rows)))
    with pytest.raises(DatasetError, match=message) as caught:
        load("made up", made[2])
    assert str(path) in str(caught.value)


def test_an_empty_column_is_refused():
    with pytest.raises(DatasetError, match="b has missing cells only"):
        numbers(pd.DataFrame({"a": ["1", "2"], "b": [None, None]}), ())


# Checks


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lines: lines[1:], "rows 23, not 24"),
        (lambda lines: [*lines, lines[-1]], "rows 25, not 24"),
        (lambda lines: [*lines[:-1], lines[-1][:-1] + "d"], "classes .*'d': 1.*, not"),
        (lambda lines: [line.replace("red", "?", 1) for line in lines], r"missing cells \d+, not"),
        (lambda lines: [line + ";1" for line in lines], "has 6 columns where A table has 5"),
        (lambda lines: [line.replace("blue", "red") for line in lines], "gives 6 columns, not 7"),
        (lambda lines: [*lines[:5], lines[5] + ";;;;", *lines[6:]], "cannot be read"),
        (lambda lines: ["\xff\x00"], "cannot be read|columns"),
        (lambda lines: [], "is empty"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused(made, damage, message):
    path = made[2] / "made up" / "made.data"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(damage(lines)), encoding="latin-1")
    with pytest.raises(DatasetError, match=message) as caught:
        load("made up", made[2])
    assert "made up" in str(caught.value)


def test_a_header_line_may_be_there_or_not(made, monkeypatch):
    source, _, folder = made
    monkeypatch.setitem(CATALOG, "made up", replace(source, header=("kind",)))
    without = load("made up", folder)
    path = folder / "made up" / "made.data"
    path.write_text("who;size;colour;code;kind\r\n" + path.read_text().replace("\n", "\r\n"))
    np.testing.assert_array_equal(load("made up", folder).X, without.X)


# Where the files are


def test_names_that_are_not_known_are_refused():
    with pytest.raises(DatasetError, match=r"no data set 'iriss'; known are wisconsin, iris"):
        load("iriss")
    with pytest.raises(DatasetError, match="no data set"):
        at_hand("iriss")
    assert issubclass(DatasetError, DataError)


def test_a_folder_that_is_not_there_is_refused(monkeypatch, tmp_path):
    with pytest.raises(DatasetError, match=r"There is no folder .*nowhere.*`folder`"):
        load("german", tmp_path / "nowhere")
    monkeypatch.setenv("BOOTPROB_DATASETS", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError, match=r"There is no folder .*nowhere.*BOOTPROB_DATASETS"):
        at_hand("german")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DatasetError) as caught:
        load("german", tmp_path, download=False)
    message = str(caught.value)
    for part in ("Statlog (German Credit Data)", "german/german.data", str(tmp_path), "folder"):
        assert part in message
    assert not at_hand("german", tmp_path)
    assert not (tmp_path / "cache").exists()  # nothing is made by looking


def test_without_a_network_it_is_said_what_was_tried(no_network, tmp_path):
    with pytest.raises(DatasetError) as caught:
        load("pima", tmp_path)
    message = str(caught.value)
    for part in ("githubusercontent", "Name or service not known", "OpenML data set 37", "network"):
        assert part in message
    assert socket.getdefaulttimeout() is None


def test_the_environment_variable_names_the_folder(made, monkeypatch):
    monkeypatch.setenv("BOOTPROB_DATASETS", str(made[2]))
    assert at_hand("made up")
    assert len(load("made up", download=False).X) == 24


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(made, monkeypatch, tmp_path):
    """The table to be downloaded, from the second of two addresses."""
    source, _, folder = made
    monkeypatch.setenv("no_proxy", "*")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        urls = f"{address}/no such file", f"{address}/made up/made.data"
        source = replace(source, files=(replace(source.files[0], urls=urls),))
        monkeypatch.setitem(CATALOG, "made up", source)
        cached = tmp_path / "cache" / "bootprob" / "made up" / "made.data"
        yield source, folder / "made up" / "made.data", cached
        server.shutdown()


def test_a_download_is_kept_and_not_made_again(served):
    _, path, cached = served
    X = load("made up").X
    assert cached.read_bytes() == path.read_bytes()
    path.unlink()
    np.testing.assert_array_equal(load("made up").X, X)
    assert at_hand("made up")


def test_a_damaged_file_in_the_cache_is_downloaded_again(served):
    _, path, cached = served
    load("made up")
    cached.write_bytes(cached.read_bytes()[:-9])
    assert not at_hand("made up")
    with pytest.raises(DatasetError, match="is not at hand"):
        load("made up", download=False)
    load("made up")
    assert cached.read_bytes() == path.read_bytes()


def test_a_download_without_its_checksum_is_refused_and_not_kept(served):
    _, path, cached = served
    path.write_bytes(path.read_bytes().replace(b"red", b"rot", 1))
    with pytest.raises(DatasetError, match=r"made\.data cannot be downloaded .*SHA256 checksum"):
        load("made up")
    assert not cached.exists()
    assert list(cached.parent.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_said(served, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(DatasetError, match=r"cache .* cannot be written"):
        load("made up")


def test_openml_is_asked_last(served, monkeypatch, rng):
    source, path, _ = served
    expected = load("made up", path.parents[1])
    file = replace(source.files[0], urls=source.files[0].urls[:1])
    labels = (("kind_a", "a"), ("kind_b", "b"), ("kind_c", "c"))
    source = replace(source, files=(file,), openml=OpenML(4711, labels), categorical=())
    raw = pd.read_csv(path, sep=";", header=None, names=source.columns, na_values="?")
    raw["colour"] = raw["colour"].map({"red": 1.5, "blue": 2.5, "green dark": 3.5})
    raw["kind"] = ("kind_" + raw["kind"]).astype("category")
    frames = {4711: raw}

    def fetch(*, data_id, **_):
        return sklearn.utils.Bunch(frame=frames[data_id])

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    monkeypatch.setitem(CATALOG, "made up", replace(source, prepared=3))
    found = load("made up")
    np.testing.assert_allclose(found.X[:, 0], expected.X[:, 0])
    assert found.labels.tolist() == expected.labels.tolist()
    frames[4711] = raw.rename(columns={"size": "weight"})
    with pytest.raises(DatasetError, match="OpenML data set 4711 has the columns who, weight"):
        load("made up")


# The catalogue


@pytest.mark.parametrize("name", NAMES)
def test_the_catalogue_is_consistent(name):
    source = CATALOG[name]
    assert source.name == name
    assert sum(count for _, count in source.classes) == source.rows
    assert 0 < source.n_positive < source.rows
    assert (source.form == "bundled") == (not source.files)
    for file in source.files:
        assert re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert file.urls
        assert all(url.startswith("https://") for url in file.urls)
    if source.columns:
        assert len(set(source.columns)) == len(source.columns)
        assert {source.target, *source.left_out, *source.categorical} <= set(source.columns)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_data_are_scikit_learns(name):
    found = load(name, download=False)
    loader = {"wisconsin": "breast_cancer"}.get(name, name)
    bunch = getattr(sklearn.datasets, f"load_{loader}")()
    np.testing.assert_array_equal(found.X, bunch.data)
    np.testing.assert_array_equal(found.labels, bunch.target_names.astype(str)[bunch.target])
    assert found.y.sum() == found.source.n_positive
    assert at_hand(name)


@pytest.mark.parametrize("name", [name for name in NAMES if CATALOG[name].files])
def test_files_at_hand_are_those_of_the_catalogue(name):
    if name not in HERE:
        pytest.skip(f"{name} is not at hand; set BOOTPROB_DATASETS")
    found = load(name, FOLDER, download=False)
    assert found.X.shape == (found.source.rows, found.source.prepared)
    assert found.y.sum() == found.source.n_positive
    assert np.isfinite(found.X).all()
    assert len(found.columns) == found.X.shape[1]
    for file in found.source.files:
        content = (FOLDER / found.source.folder / file.name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file.sha256
    if name in LOADERS:
        assert in_benchmarks(name)
        X, positive = LOADERS[name]()
        np.testing.assert_array_equal(X, found.X)
        np.testing.assert_array_equal(positive, found.y)


@pytest.mark.skipif(not (FOLDER / "SOURCES.md").is_file(), reason="data absent")
def test_counts_are_those_of_the_collection():
    lines = (FOLDER / "SOURCES.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    seen = set()
    for row in rows:
        if row[0].strip() not in NAMES or row[0].strip() in ("heart", "leukemia"):
            continue
        name, _, size, target = row[0].strip(), *row[1:4]
        source = CATALOG[name]
        n, p = map(int, re.findall(r"\d+", size))
        assert (source.rows, len(source.columns)) == (n, p), name
        named = [int(count) for count in re.findall(r"\b\d+\b", target)]
        counts = dict(source.classes)
        assert set(counts.values()) & set(named), name
        if source.positive is not None:
            assert source.n_positive in named, name
        seen.add(name)
    assert len(seen) >= 14


@pytest.mark.skipif("votes" not in HERE, reason="data absent")
def test_democrats_can_be_the_positives_of_votes():
    assert load("votes", FOLDER, positive="democrat").y.sum() == 267


def test_the_document_has_the_table_of_the_catalogue():
    path = Path(__file__).parents[2] / "docs" / "datasets.md"
    text = path.read_text(encoding="utf-8")
    begin, end = datasets_document.BEGIN, datasets_document.END
    assert text.split(begin)[1].split(end)[0] == datasets_document.table()


def test_importing_is_light():
    heavy = ("numpy", "pandas", "scipy", "sklearn", "torch")
    code = f"import sys, bootprob.datasets; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_waiting_for_a_server_has_an_end(monkeypatch):
    seen = []

    def fetch(*_, **__):
        seen.append(socket.getdefaulttimeout())
        raise URLError("no")

    monkeypatch.setattr(sklearn.datasets, "fetch_file", fetch)
    with pytest.raises(DatasetError, match="cannot be downloaded"):
        finding.fetch_files(CATALOG["zoo"])
    assert seen
    assert None not in seen


def test_a_folder_that_is_not_there_is_refused_of_bundled_data_too(tmp_path):
    for asked in (load, at_hand):
        with pytest.raises(DatasetError, match="no folder"):
            asked("wisconsin", tmp_path / "none")
        with pytest.raises(DatasetError, match="no data set"):
            asked(["german"])
        with pytest.raises(DatasetError, match="folder is 5"):
            asked("german", 5)


def test_a_gap_in_the_target_is_not_taken_for_a_class():
    source = CATALOG["housing"]
    table = pd.DataFrame({name: [1.0, 2.0] for name in ["rooms", *source.left_out]})
    table[source.target] = [30.0, np.nan]
    with pytest.raises(DatasetError, match=r"row 1 .* has no"):
        reading.from_columns(source, table)
