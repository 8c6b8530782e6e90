"""Tables come in whole and clear, or not at all; outputs are complete or absent."""

from __future__ import annotations

import errno
import gzip
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bootprob.exceptions import DataError
from bootprob.runtime import files
from bootprob.runtime.files import check_output, replace_when_complete
from bootprob.tables.files import read_table, write_table
from bootprob.tables.model import TableModel
from mixed_tables import credit_table


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".CSV"])
def test_round_trip(tmp_path: Path, suffix: str) -> None:
    table = credit_table().drop(columns="branch")
    path = tmp_path / f"table{suffix}"
    write_table(table.set_index(table.index + 7), path)
    pd.testing.assert_frame_equal(read_table(path), table)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_blanks_around_names(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    write_table(pd.DataFrame({" age": [1.5], "house ": ["own"]}), path)
    assert read_table(path).columns.tolist() == ["age", "house"]
    write_table(pd.DataFrame({" age": [1.5], "age": [2.5]}), path)
    with pytest.raises(DataError, match="several columns named 'age'"):
        read_table(path)


def test_text_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    table = pd.DataFrame(
        {
            "=a": ["=1+1", "-2", "+1,5e3", None, "@x", "-2+3", "\r\n=1", "x=1"],
            "b": pd.Categorical(["+x", "＝1"] * 4),
            "-1": np.linspace(-1, 1, 8),
            "c": [True, -1, "-", "+", "", "'", "=", "."],
        }
    )
    write_table(table, path)
    assert read_table(path, text_columns=["=a"])["=a"].tolist()[:3] == ["=1+1", "-2", "+1,5e3"]
    write_table(table, path, csv_safe=True)
    found = pd.read_csv(path, dtype=str, keep_default_na=False, lineterminator="\n")
    assert found.columns.tolist() == ["'=a", "b", "-1", "c"]
    assert found["'=a"].tolist() == [
        "'=1+1", "-2", "+1,5e3", "", "'@x", "'-2+3", "'\r\n=1", "x=1",
    ]  # fmt: skip
    assert found["b"].tolist() == ["'+x", "'＝1"] * 4
    assert found["-1"].astype(float).tolist() == table["-1"].tolist()
    assert found["c"].tolist() == ["True", "-1", "'-", "'+", "", "'", "'=", "."]
    write_table(table.drop(columns="c"), tmp_path / "table.parquet", csv_safe=True)
    assert read_table(tmp_path / "table.parquet")["=a"].tolist()[0] == "=1+1"


def test_marks_of_missing_values_and_blanks(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("\ufeffage , house\n1, own\n?, ?\n,NA\n", encoding="utf-8")
    table = read_table(path)
    assert table.columns.tolist() == ["age", "house"]
    assert table["age"].tolist()[0] == 1.0
    assert table["age"].isna().tolist() == [False, True, True]
    assert table["house"].tolist()[0] == "own"
    assert table["house"].isna().tolist() == [False, True, True]


def test_text_columns_keep_leading_zeros(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(" branch,n\n01,1\n1,2\n")
    assert read_table(path)["branch"].tolist() == [1, 1]
    assert read_table(path, text_columns=["branch", "absent"])["branch"].tolist() == ["01", "1"]


@pytest.mark.parametrize(
    ("header", "separator", "names"),
    [
        ("a;b;c", ";", ["a", "b", "c"]),
        ("a\tb\tc", "\t", ["a", "b", "c"]),
        ("height, m;weight;sex", ";", ["height, m", "weight", "sex"]),
        ('"height, m";"weight, kg";"sex"', ";", ["height, m", "weight, kg", "sex"]),
        ('a,b,"f;m;x"', ",", ["a", "b", "f;m;x"]),
        ('a,b,"f;m;x;y"', ",", ["a", "b", "f;m;x;y"]),
        ('"say ""m""";b;c', ";", ['say "m"', "b", "c"]),
    ],
)
def test_separators(tmp_path: Path, header: str, separator: str, names: list[str]) -> None:
    path = tmp_path / "table.csv"
    rows = [["1", "70", "x"], ["", "60", "y z"]]
    path.write_text("\n".join([header, *map(separator.join, rows)]))
    expected = pd.DataFrame([[1.0, 70, "x"], [np.nan, 60, "y z"]], columns=names)
    pd.testing.assert_frame_equal(read_table(path), expected)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_tables_from_a_country_of_decimal_commas(tmp_path: Path, separator: str) -> None:
    table = credit_table()
    path = tmp_path / "table.csv"
    table.to_csv(path, sep=separator, decimal=",", index=False)
    pd.testing.assert_frame_equal(read_table(path, text_columns=["branch"]), table)
    table.to_csv(path, sep=separator, decimal=".", index=False)
    pd.testing.assert_frame_equal(read_table(path, text_columns=["branch"]), table)


def test_a_decimal_comma_is_none_where_commas_separate_or_points_are_decimal(
    tmp_path: Path,
) -> None:
    path = tmp_path / "table.csv"
    path.write_text('size,"rooms"\n1.5,"1,2"\n')
    assert read_table(path).iloc[0].tolist() == [1.5, "1,2"]
    path.write_text("size;rooms\n1.5;1,2\n")
    assert read_table(path).iloc[0].tolist() == [1.5, "1,2"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "table.txt",
            b"a,b\n1,2\n",
            r"\.parquet or \.xlsx \(\.csv and \.tsv also with \.gz, \.bz2, \.xz after it\), not in",
        ),
        ("table", b"a,b\n1,2\n", "not in nothing"),
        ("table.csv", b"", "is empty"),
        ("table.csv", b"\n\n", "is empty"),
        ("table.csv", b"a,b\n", "has column names but no rows"),
        ("table.csv", b"a,b,a,b\n1,2,3,4\n", "has several columns named 'a', 'b'; rename them"),
        ("table.csv", b"a,b,a \n1,2,3\n", "has several columns named 'a'"),
        ("table.csv", b"a|b\n1|2\n", "is separated by bars; save it with commas"),
        ("table.csv", b"a,b;c\n1,2\n", "whether commas or semicolons separate the cells is not"),
        ("table.csv", b"a;b;a\n1;2;3\n", "has several columns named 'a'; rename them"),
        ("table.csv", b"a;b\n1;2\n1;2;3\n", "as CSV: Expected 2 fields in line 3, saw 3.$"),
        ("table.csv", b"a\tb\n1\t2\t3\n1\t2\t3\n", "rows with more cells than its first line"),
        ("table.csv", b"a,b\n1,2\n1,2,3\n", "as CSV: Expected 2 fields in line 3, saw 3.$"),
        ("table.csv", b"a,b\n1,2,3\n1,2,3\n", "rows with more cells than its first line"),
        ("table.csv", b'a,b\n"1,2\n3,4\n', "cannot be read as CSV: "),
        (
            "table.csv",
            b"a,b\n1,\xe9t\xe9\n",
            "If 'été' reads well, give encoding='cp1252'",
        ),
        ("table.parquet", b"a,b\n1,2\n", "cannot be read as Parquet: "),
        ("table.parquet", b"", "cannot be read as Parquet: "),
        ("table.csv", "a,b\n1,2\n".encode("utf-16"), "is UTF-16 text; give encoding='utf-16'"),
        (
            "table.csv.gz",
            gzip.compress("a\n1\n".encode("utf-16"), mtime=0),
            "give encoding='utf-16'",
        ),
        ("table.csv.gz", b"a,b\n1,2\n", "cannot be read as CSV: Not a gzipped file"),
        (
            "table.csv.gz",
            gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-20],
            "as CSV: Compressed file ended",
        ),
        ("table.csv.xz", b"a,b\n1,2\n", "cannot be read as CSV: "),
        ("table.csv.bz2", b"a,b\n1,2\n", "cannot be read as CSV: "),
        ("table.xlsx", b"a,b\n1,2\n", "is no Excel file; if it holds text, let its name end in"),
        ("table.csv", b"PK\x03\x04...", r"an Excel file \(or .*\); let its name end in .xlsx"),
        ("table.csv", b"\xd0\xcf\x11\xe0", "an Excel file of the old kind; save it from"),
        ("table.xlsx", b"\xd0\xcf\x11\xe0", "an Excel file of the old kind; save it from"),
        ("table.tsv", b"PAR1", "a Parquet file; let its name end in .parquet"),
        ("table.csv", gzip.compress(b"a\n1\n", mtime=0), "by gzip; let its name end in .csv.gz"),
        ("table.xls", b"", "not in .xls. Save it from the spreadsheet program as .xlsx or CSV"),
        ("table.csv", b"1,2,1\n3,4,5\n", "named '1'; rename them. If these are values and not"),
        ("table.xlsx", b"", "cannot be read as Excel: File is not a zip file"),
    ],
)
def test_unusable_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_table(path)
    assert name in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "name", ["t.tsv", "t.tsv.gz", "t.csv.gz", "t.csv.bz2", "t.csv.xz", "T.XLSX"]
)
def test_other_files_hold_the_same_table(tmp_path: Path, name: str) -> None:
    table, path = credit_table(), tmp_path / name
    if name.endswith("XLSX"):
        table.to_excel(path, index=False, engine="openpyxl")
    else:
        table.to_csv(path, sep="\t" if ".tsv" in name else ",", index=False)
    expected = tmp_path / "t.csv"
    write_table(table, expected)
    for texts in ([], ["branch"]):
        found = read_table(path, text_columns=texts)
        pd.testing.assert_frame_equal(found, read_table(expected, text_columns=texts))


def test_an_excel_file_is_read_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    table = pd.DataFrame({" code ": ["01", "?", "1"], 2019: [1.5, None, 2.0]})
    with pd.ExcelWriter(path, engine="openpyxl") as book:
        table.to_excel(book, sheet_name="first", index=False)
        credit_table().to_excel(book, sheet_name="second", index=False)
    found = read_table(path, text_columns=["code"])
    expected = pd.DataFrame({"code": ["01", None, "1"], "2019": [1.5, None, 2.0]})
    pd.testing.assert_frame_equal(found, expected.astype({"code": found["code"].dtype}))
    table.rename(columns={2019: "code"}).to_excel(path, index=False)
    with pytest.raises(DataError, match="has several columns named 'code'"):
        read_table(path)


def test_excel_columns_are_read_as_those_of_text(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "number": [1, 2.5, None],
            "whole": [1, 2, 3],
            "number as text": ["1", "2", None],
            "answer": [True, False, True],
            "answer and gap": [True, None, False],
            "answer as text": ["TRUE", "false", None],
            "text": ["a", " b", "NA"],
            "empty": [None] * 3,
        }
    )
    table.to_excel(tmp_path / "t.xlsx", index=False)
    table.to_csv(tmp_path / "t.csv", index=False)
    found = read_table(tmp_path / "t.xlsx")
    pd.testing.assert_frame_equal(found, read_table(tmp_path / "t.csv").assign(text=found["text"]))
    assert found["text"].tolist()[:2] == ["a", " b"]


def test_true_is_no_number_in_an_excel_file(tmp_path: Path) -> None:
    path, numbers = tmp_path / "t.xlsx", [31.5, 40.0, 27.0, 64.0] * 10
    model = TableModel.fit(
        pd.DataFrame({"age": numbers, "y": list("abba") * 10}),
        *("y", "a"),
        **{"kernel": "linear", "C": 1.0, "n_bootstraps": 5, "random_state": 0},
    )
    pd.DataFrame({"age": [*numbers[:3], True]}).to_excel(path, index=False)
    table = read_table(path)
    assert table["age"].tolist() == [*numbers[:3], True]
    with pytest.raises(DataError, match=r"'True' is not a number \(row 4\)"):
        model.predict(table)


def test_excel_needs_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd.DataFrame({"a": [1]}).to_excel(tmp_path / "t.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r'pip install "bootprob\[excel\]"'):
        read_table(tmp_path / "t.xlsx")


def test_a_tsv_file_has_tabs_whatever_its_names_hold(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("height, cm\tweight, kg\n1\t2\n")
    assert read_table(tmp_path / "t.tsv").columns.tolist() == ["height, cm", "weight, kg"]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "UTF-8-SIG"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("größe;stadt\n1,5;Köln\n2,5;Bonn\n".encode(encoding))
    assert read_table(path, encoding=encoding).to_dict("list") == {
        "größe": [1.5, 2.5],
        "stadt": ["Köln", "Bonn"],
    }


@pytest.mark.parametrize(
    ("name", "encoding", "message"),
    [
        ("t.csv", "utf-16", "is not text in the encoding given"),
        ("t.csv", "ascii", "is not text in the encoding given"),
        ("t.csv", "cp125", "There is no encoding 'cp125'; cp1252"),
        ("t.csv", "undefined", "There is no encoding 'undefined'"),
        ("t.csv", "base64", "There is no encoding 'base64'"),
        ("t.parquet", "utf-8", "An encoding is of CSV and TSV files; leave it out"),
    ],
)
def test_wrong_encodings(tmp_path: Path, name: str, encoding: str, message: str) -> None:
    (tmp_path / name).write_bytes("stadt\nKöln\n".encode())
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / name, encoding=encoding)


def test_truncated_parquet(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    write_table(credit_table(), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="cannot be read as Parquet: "):
        read_table(path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_missing_file_and_folder(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    with pytest.raises(DataError, match="There is no file "):
        read_table(path)
    path.mkdir()
    with pytest.raises(DataError, match="is a folder, not a table"):
        read_table(path)


def test_parquet_without_columns(tmp_path: Path) -> None:
    pd.DataFrame(index=range(3)).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(DataError, match="has no columns"):
        read_table(tmp_path / "table.parquet")


def test_write_refuses_other_suffixes(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"must end in .csv or .parquet, not in \.xlsx"):
        write_table(credit_table(), tmp_path / "table.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_replacing_keeps_permissions_and_links(tmp_path: Path) -> None:
    path, link = tmp_path / "old", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    with replace_when_complete(link) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_failed_write_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "old"
    path.write_text("old")

    def write() -> None:
        with replace_when_complete(path) as file:
            file.write(b"half of the ne")
            raise error

    with pytest.raises(type(error)) as caught:
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    if isinstance(caught.value, OSError):
        assert caught.value.filename == str(path)
        assert caught.value.errno == errno.ENOSPC


def test_failed_flush_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_table(credit_table(), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_disk_that_fills_up(tmp_path: Path, suffix: str) -> None:
    import resource

    path = tmp_path / f"table{suffix}"
    path.write_text("old")
    table = pd.DataFrame({"a": np.random.default_rng(0).random(20_000)})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            write_table(table, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_kill_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    program = f"""
        import os, signal
        from bootprob.runtime.files import replace_when_complete
        with replace_when_complete({str(path)!r}) as file:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert killed.returncode == -9
    assert path.read_text() == "old"


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
def test_a_rerun_removes_what_a_kill_left_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "table[1].csv"
    program = f"""
        import os, signal
        from bootprob.runtime.files import replace_when_complete
        with replace_when_complete({str(path)!r}) as file:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    [left] = tmp_path.iterdir()
    others = {
        tmp_path / name
        for name in (f"{left.name}.csv", ".table1.csv.0123abcd.part", ".table[1].csv.mine.part")
    }
    for each in others:
        each.touch()
    with replace_when_complete(path) as file:
        at_work = set(tmp_path.iterdir()) - others - {left}
        check_output(path)  # as another process does that is given the same output
        assert set(tmp_path.iterdir()) == others | at_work
        file.write(b"whole")
    assert path.read_bytes() == b"whole"
    assert set(tmp_path.iterdir()) == others | {path}


@pytest.mark.skipif(sys.platform == "win32", reason="an open file is not removed there")
@pytest.mark.parametrize("at", ["_hold", "move_into_place"])
def test_a_finished_file_is_not_taken_for_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Whenever another process is given the same output."""
    path, step, looked = tmp_path / "out.csv", getattr(files, at), []

    def meanwhile(*given: object) -> None:
        if not looked:
            looked.append(True)
            check_output(path)
        step(*given)

    monkeypatch.setattr(files, at, meanwhile)
    with replace_when_complete(path) as file:
        file.write(b"whole")
    assert looked
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


def test_outputs_that_are_refused(tmp_path: Path) -> None:
    given = tmp_path / "table.csv"
    given.write_text("a\n1\n")
    with pytest.raises(DataError, match="absent does not exist; create it first"):
        check_output(tmp_path / "absent" / "out.csv")
    with pytest.raises(DataError, match="is a folder; give the name of a file in it"):
        check_output(tmp_path)
    with pytest.raises(DataError, match="is the file that is read"):
        check_output(tmp_path / "." / "table.csv", inputs=(given,))
    with pytest.raises(DataError, match=r"table\.csv does not exist"):
        check_output(given / "out.csv")
    with pytest.raises(DataError, match="/dev/null is not an ordinary file"):
        check_output("/dev/null")
    assert check_output(tmp_path / "new.csv", inputs=(given,)) == tmp_path / "new.csv"
    assert list(tmp_path.iterdir()) == [given]


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A real read-only folder does not stop the administrator, who often runs the tests.
    def refuse(**options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(DataError, match="cannot be written: Permission denied"):
        check_output(tmp_path / "out.csv")


def test_a_folder_without_a_suffix(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder, not a table; give a file in it"):
        read_table(tmp_path)


def test_a_named_index_of_a_parquet_file_is_a_column(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"b": [1, 2], "a": [3.0, 4.0]})
    frame.set_index("a").to_parquet(path)
    assert read_table(path)[["b", "a"]].equals(frame)
    frame[frame["b"] > 1].to_parquet(path)  # an index without a name is no column
    assert read_table(path).columns.tolist() == ["b", "a"]


@pytest.mark.parametrize("lines", ["x\n1\n\n3\n", "x\n1\n\n"])
def test_blank_lines_of_one_column_are_not_left_out(tmp_path: Path, lines: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(lines)
    with pytest.raises(DataError, match=r"one column and blank lines.*write NA for a gap"):
        read_table(path)
    path.write_text('x\n1\n""\n3\n')
    assert read_table(path)["x"].isna().tolist() == [False, True, False]
    path.write_text("x,y\n1,2\n\n3,4\n")
    assert len(read_table(path)) == 2


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y,z\n1,2,3\n4,5")
    with pytest.raises(DataError, match="ends within a row: its last line has 2 of 3 cells"):
        read_table(path)
    rows = ("1,2,3\n4,5\n", "1,2,3\n4,5,6", '1,2,"3\n4"', "1,2,3\r\n4,5\r\n")
    for each in rows:
        path.write_text(f"x,y,z\n{each}", newline="")
        assert read_table(path).columns.tolist() == ["x", "y", "z"]
    path.write_text("x,y,z\n1,2,3\n4,5", encoding="utf-16")
    assert len(read_table(path, encoding="utf-16")) == 2
