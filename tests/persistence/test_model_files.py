"""Files from strangers: damaged, hostile, from older versions; and skops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save as to_bytes

from bootprob import BootstrapSVC
from bootprob.encoding.columns import Kind
from bootprob.ensemble.uncertainty.curves import FAMILIES
from bootprob.exceptions import DataError, ModelFileError
from bootprob.persistence import file as model_file_module
from bootprob.persistence import tables as stored_tables
from bootprob.persistence.file import HEADER_BYTES, TENSORS
from bootprob.persistence.save_load import load, save
from bootprob.persistence.state import join_state, split_state
from bootprob.persistence.values import decode
from bootprob.runtime.bounded_json import CONTAINERS, DEPTH, DIGITS, ENTRIES, parse
from bootprob.tables.model import TableModel
from fuzz_model_files import EXTRA_BYTES, SECONDS, WATCH, examine, fuzz, parts_of, signed
from linear_models import linear
from model_answers import ask

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.model"))
QUICK: dict[str, Any] = {"n_bootstraps": 6, "C": [0.25, 1.0], "random_state": 0}
EXTRA = 2**27  # bytes beyond twice the file, for the JSON of the largest header


@pytest.fixture(scope="module")
def fitted() -> tuple[BootstrapSVC, np.ndarray]:
    X = np.random.default_rng(5).normal(size=(30, 3))
    return linear(**QUICK).fit(X, X[:, 0] > 0.2 * X[:, 1]), X


@pytest.fixture(scope="module")
def saved(
    fitted: tuple[BootstrapSVC, np.ndarray], tmp_path_factory: pytest.TempPathFactory
) -> bytes:
    path = tmp_path_factory.mktemp("model") / "m.model"
    save(fitted[0], path)
    return path.read_bytes()


def _refused(path: Path, message: str) -> None:
    started = time.process_time()
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert time.process_time() - started < 2
    assert len(str(caught.value)) < 400 + len(str(path))
    assert str(caught.value).replace("\n", "").isprintable()


def test_the_memory_of_a_large_header(saved: bytes, tmp_path: Path) -> None:
    content, arrays = parts_of(saved)
    n = CONTAINERS // 8
    content["params"] |= {"C": [[] for _ in range(n)], "colour": "red"}
    path = tmp_path / "m.model"
    path.write_bytes(signed(content, arrays))
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 2 * path.stat().st_size + EXTRA / 8


# -- older versions --------------------------------------------------------------------------------


def test_there_are_golden_files() -> None:
    assert {path.name.rpartition("-")[2] for path in GOLDEN} >= {"table.model", "rbf.model"}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_files(path: Path) -> None:
    assert path.stat().st_size < 150_000
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    model = load(path)
    if isinstance(model, TableModel):
        found = model.predict(pd.DataFrame(expected["table"]))["probability"].to_numpy()
    else:
        found = model.predict_proba(expected["rows"])
    assert np.ptp(expected["probability"]) > 0.1
    np.testing.assert_allclose(found, expected["probability"], rtol=0, atol=1e-9)


# -- what is no file, or too large -----------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
def test_pipes_and_devices(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    _refused(tmp_path / "pipe", "is not a file")
    _refused(Path("/dev/zero"), "is not a file")
    _refused(tmp_path, "is not a file")


def test_links(saved: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.model").write_bytes(saved)
    (tmp_path / "link").symlink_to("m.model")
    assert isinstance(load(tmp_path / "link"), BootstrapSVC)
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load(tmp_path / "circle")


def test_a_path_that_is_none() -> None:
    with pytest.raises(ModelFileError, match="is no path"):
        load("a\0b")


def _sparse(path: Path, start: bytes) -> None:
    with path.open("wb") as file:
        file.write(start)
        file.truncate(10 * 2**30)


def test_ten_gigabytes_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.model"
    path.write_bytes(b"")
    _refused(path, "is no bootprob model or is damaged")
    _sparse(path, b"")
    _refused(path, "is no bootprob model or is damaged")
    _sparse(path, (2**33).to_bytes(8, "little"))
    _refused(path, "is no bootprob model or is damaged")
    free = type("Memory", (), {"available": 15 * 2**30})
    monkeypatch.setattr("psutil.virtual_memory", free)
    _sparse(path, (1000).to_bytes(8, "little"))
    _refused(path, "has 10.7 GB, and loading takes twice that; 16.1 GB of memory are free")


@pytest.mark.parametrize("start", ["no JSON", "not ours", "of another size"])
def test_arrays_are_not_read_if_the_header_is_refused(
    start: str, saved: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "m.model"
    header = {"no JSON": "x" * 1000, "not ours": json.dumps({"a": 1}) + " " * 1000}.get(start)
    data = saved if header is None else len(header).to_bytes(8, "little") + header.encode()
    with path.open("wb") as file:
        file.write(data)
        file.truncate(2**30)
    tracemalloc.start()
    _refused(path, "is no bootprob model or is damaged")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


def test_a_file_that_shrinks_while_it_is_read(
    saved: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.model"
    path.write_bytes(saved)

    def shrink(*_: object) -> None:
        os.truncate(path, 100)

    monkeypatch.setattr(model_file_module, "_check_extent", shrink)
    _refused(path, "it changed while it was read|is damaged")


# -- JSON ------------------------------------------------------------------------------------------


def _bomb(text: str) -> bytes:
    """A file with this text where the JSON is."""
    return to_bytes({"x": np.zeros(1)}, metadata={"bootprob": text})


def _plain(header: str) -> bytes:
    """A file with this header, whatever it is."""
    return len(header).to_bytes(8, "little") + header.encode()


@pytest.mark.parametrize(
    "bomb",
    [
        lambda: _bomb("[" * 10**6),
        lambda: _bomb('{"a":' * 10**6),
        lambda: _bomb("[" + "[]," * 10**6 + "0]"),
        lambda: _bomb('{"protocol": ' + "9" * 10**6 + "}"),
        lambda: _bomb('{"protocol": 1e999}'),
        lambda: _bomb('{"protocol": NaN}'),
        lambda: _bomb('{"protocol": 1, "protocol": 1}'),
        lambda: _bomb('{"protocol": "\\ud800"}'),
        lambda: _bomb("x" * (HEADER_BYTES + 1)),
        # What a pattern could look at again from each of its characters.
        lambda: _bomb(f'{{"a": [{",".join(["9" * 1000] * 16_000)}]}}'),
        lambda: _bomb(f'{{"a": [{",".join(["9" * 199] * 80_000)}]}}'),
        lambda: _bomb('{"a": "' + '\\"' * 2**21),
        lambda: _plain('{"a": "' + '\\"' * 2**22),
        lambda: _plain("\\" * 2**23),
        lambda: _plain("]" * 2**23),
        lambda: _bomb('{"protocol": ' + "9" * 250 + "e99}"),
        lambda: to_bytes({f"x{i}": np.zeros(1, np.int8) for i in range(TENSORS + 1)}),
    ],
)
def test_bombs(bomb: Callable[[], bytes], tmp_path: Path) -> None:
    path = tmp_path / "m.model"
    path.write_bytes(bomb())
    _refused(path, "is no bootprob model or is damaged")


@pytest.mark.parametrize(
    "value",
    [
        lambda: [[] for _ in range(CONTAINERS - 1000)],
        lambda: [{"a": 0} for _ in range(CONTAINERS - 1000)],
        lambda: ["ab"] * (ENTRIES - 2000),
        lambda: [{"$array": [""], "dtype": "<U9999999", "shape": [1]}] * 20,
        lambda: {"$array": [""] * 4000, "dtype": "<U9999", "shape": [4000]},
        lambda: {"$array": [1], "dtype": "<f8", "shape": [2**62, 4]},
        lambda: {"$array": [], "dtype": "<f8", "shape": [0, 2**62, 2**62]},
        lambda: {"$array": [1], "dtype": "f8,f8", "shape": [1]},
        lambda: {"$array": [300], "dtype": "|i1", "shape": [1]},
        lambda: {"$array": [[1]], "dtype": "|O", "shape": [1]},
        lambda: {"$scalar": 10**400, "dtype": "<f8"},
        lambda: {"$float": "1" * 10**6},
        lambda: {"$tuple": [], "$array": []},
        lambda: {"$dict": [[[], 1]]},
    ],
)
def test_signed_bombs(value: Callable[[], Any], saved: bytes, tmp_path: Path) -> None:
    content, arrays = parts_of(saved)
    content["params"]["C"] = {"$tuple": [value()]}
    content["params"]["colour"] = "red"  # so that what passes is refused as well
    path = tmp_path / "m.model"
    path.write_bytes(signed(content, arrays))
    _refused(path, "is damaged")


def test_limits_are_exact() -> None:
    assert parse("[" * DEPTH + "]" * DEPTH)
    assert len(parse(f"[{'[],' * (CONTAINERS - 2)}[]]")) == CONTAINERS - 1
    assert len(parse(f"[{'1,' * ENTRIES}1]")) == ENTRIES + 1
    assert parse("9" * DIGITS) == 10**DIGITS - 1
    for text in (
        "[" * (DEPTH + 1) + "]" * (DEPTH + 1),
        f"[{'[],' * (CONTAINERS - 1)}[]]",
        f"[{'1,' * (ENTRIES + 1)}1]",
        "9" * (DIGITS + 1),
    ):
        with pytest.raises(ValueError, match="more than"):
            parse(text)
    assert parse(json.dumps({"[[{": "]\\\"[,:" * 9, "é": "\U0001f600"})) == {
        "[[{": "]\\\"[,:" * 9, "é": "\U0001f600"
    }  # fmt: skip
    assert parse("[1e-400, 1.5e+300]") == [0.0, 1.5e300]


def test_words_of_a_file_do_not_reach_a_terminal(saved: bytes, tmp_path: Path) -> None:
    content, arrays = parts_of(saved)
    content["params"]["\x1b[2J" + "x" * 5000] = 1
    path = tmp_path / "m.model"
    path.write_bytes(signed(content, arrays))
    _refused(path, "is damaged: ")


# -- contents that are signed and wrong --------------------------------------------------------


def _set(name: str, number: float) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    def change(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays[name].reshape(-1)[-1] = number

    return change


def _fill(name: str, numbers: Any) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    def change(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays[name][...] = numbers

    return change


def _fit(**entries: float) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    """What a test of lack of fit might have found."""
    return lambda content, arrays: content["values"]["lack_of_fit_"].update(entries)


def _rate(number: Any) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    """Rates that a model might keep, one with this number."""
    rate = {"rate": "tpr", "at_least": 0.9, "confidence": None, "bound": "exact", "n_rows": 9}
    rate |= {"required_share": 0.9, "out_of_bag": number}
    return lambda content, arrays: content["values"].update(controlled_rates_=[rate])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *((_set("coef_", each), "coef_ has numbers") for each in (np.nan, np.inf, 1e101)),
        *((_set("scale_", each), "scale_ has numbers") for each in (0.0, -1.0, 1e-101)),
        (_set("weights_", 0.9), "weights_ do not sum to 1"),
        (_set("score_scale_", 1e-101), "score_scale_ has numbers"),
        (
            lambda c, a: (_set("coef_", 1e10)(c, a), _set("bootstrap_scale_", 1e-99)(c, a)),
            "coef_ is too large for",
        ),
        (_set("y_", 2), "y_ does not number"),
        (_set("y_", 2**62), "y_ does not number"),
        (_set("sample_weight_", 1e-101), "sample_weight_ has numbers that are not positive or 0"),
        (_set("oob_counts_", 0), "never out of bag have an oob_decision_function_"),
        (_set("oob_counts_", 7), "oob_counts_ has 7, and there are 7"),
        (_set("oob_counts_", -1), "oob_counts_ has numbers"),
        (_set("certificates_.status", 99), "certificates_.status has 99"),
        (_set("sampled_rows_", 30), "sampled_rows_ has 30"),
        (_set("true_logit_", np.nan), "true_logit_ has numbers"),
        (_set("sigmoid_information_", -5.0), "sigmoid_information_ is no information"),
        *(
            (_fill("sigmoid_information_", numbers), "sigmoid_information_ is no information")
            for numbers in (5e-324, np.eye(2) * 5e-324, np.eye(2) * 1e-300)
        ),
        (_set("counts_gram_", 1e99), "counts_gram_ is no matrix"),
        (lambda c, a: c["values"].update(n_features_in_=10**18), "has the shape|; p is"),
        (lambda c, a: c["values"].update(n_features_in_=-3), "no number of columns"),
        (lambda c, a: c["values"].update(n_features_in_=True), "no number of columns"),
        (lambda c, a: c["values"].update(remarks_=[7]), "remarks_ are no texts"),
        (lambda c, a: c["values"].update(entropy_=[-1]), "entropy_ is no seed"),
        (lambda c, a: c["values"].update(sigmoid_={"$tuple": [-1.0, 0.0]}), "none of a sigmoid"),
        (lambda c, a: c["values"].update(sigmoid_={"$tuple": ["a", 0.0]}), "no slope"),
        *(
            (_rate(each), "out_of_bag of controlled_rates_ is")
            for each in ({"$float": "nan"}, {"$float": "inf"}, 1.1, -0.1, None)
        ),
        (lambda c, a: c["values"].pop("lack_of_fit_"), "lack_of_fit_"),
        (_fit(magic=1.0), "lack_of_fit_ has other entries"),
        (_fit(column=0.0, other_column=99.0), "columns that are not there"),
        (_fit(column=0.5, other_column=0.0), "columns that are not there"),
        (lambda c, a: c["values"].update(calibration_="magic"), "no calibration"),
        (lambda c, a: a.update({"weights_": a["weights_"].astype(np.float32)}), "the dtype"),
        (lambda c, a: a.update({n: x[:0] for n, x in a.items()}), "is damaged"),
        (lambda c, a: c["text_arrays"].update(y_=1), "text_arrays are no arrays"),
    ],
)
def test_signed_nonsense(
    change: Callable[[Any, Any], object], message: str, saved: bytes, tmp_path: Path
) -> None:
    content, arrays = parts_of(saved)
    change(content, arrays)
    path = tmp_path / "m.model"
    path.write_bytes(signed(content, arrays))
    _refused(path, message)


def test_products_of_rows_divided_by_next_to_nothing(rng, tmp_path: Path) -> None:
    """A linear model of more columns than rows, as the fuzzer had it: its scores overflowed."""
    X = rng.normal(size=(10, 15))
    model = BootstrapSVC(
        kernel="linear", C=1.0, n_bootstraps=5, standardize="bootstrap", random_state=0
    ).fit(X, np.arange(10) % 2)
    assert model.bootstrap_dual_coef_ is not None
    save(model, tmp_path / "m.model")
    content, arrays = parts_of((tmp_path / "m.model").read_bytes())
    _set("bootstrap_scale_", 1e-99)(content, arrays)
    (tmp_path / "m.model").write_bytes(signed(content, arrays))
    _refused(tmp_path / "m.model", "dual_coef_ is too large for")


@pytest.mark.parametrize(
    ("kernel", "name", "number", "message"),
    [
        ("poly", "X_fit_", 1e40, "dual_coef_ is too large for"),  # its third power is a value
        ("poly", "gamma_", 1e40, "dual_coef_ is too large for"),
        ("poly", "kernel_posterior_.gamma", 0.0, "the kernel does not fit kernel_posterior_"),
        ("poly", "kernel_posterior_.gamma", 1e50, "kernel_posterior_ has a kernel whose values"),
        (
            "precomputed",
            "kernel_posterior_.gamma",
            0.5,
            "the kernel does not fit kernel_posterior_",
        ),
    ],
)
def test_numbers_that_a_kernel_cannot_have(
    kernel: str, name: str, number: float, message: str, rng, tmp_path: Path
) -> None:
    """As the fuzzer had them: scores that overflowed, and a γ where there is none."""
    X = rng.normal(size=(20, 3))
    X /= np.linalg.norm(X, axis=1)[:, None]  # a diagonal of 1, so that there is a posterior
    given: dict[str, Any] = {"kernel": kernel, "C": 1.0, "n_bootstraps": 5, "random_state": 0}
    save(
        linear(**given).fit(X @ X.T if kernel == "precomputed" else X, np.arange(20) % 2),
        tmp_path / "m.model",
    )
    content, arrays = parts_of((tmp_path / "m.model").read_bytes())
    arrays[name].reshape(-1)[-1] = number
    (tmp_path / "m.model").write_bytes(signed(content, arrays))
    _refused(tmp_path / "m.model", message)


def test_curves_that_a_posterior_cannot_have(rng, tmp_path: Path) -> None:
    """As many γ as machines have in place of those of curves, and a sum with a hole."""
    X = rng.normal(size=(60, 2))
    model = BootstrapSVC(**QUICK).fit(X, X[:, 0] * X[:, 1] > 0)
    save(model, tmp_path / "m.model")
    content, arrays = parts_of((tmp_path / "m.model").read_bytes())
    assert arrays["kernel_posterior_.family"].any()
    refused = "kernel_posterior_.gamma has another shape than its kernels"
    flat = arrays | {"kernel_posterior_.gamma": arrays["kernel_posterior_.gamma"][:, 0]}
    holed = dict(arrays)
    for name in ("family", "view", "gamma", "columns_of_curve", "deviation"):
        at = 2 if name == "deviation" else 0
        before = holed[f"kernel_posterior_.{name}"]
        holed[f"kernel_posterior_.{name}"] = np.insert(before, at, 0, axis=1)
    for changed, message in ((flat, refused), (holed, "curves without a kernel")):
        (tmp_path / "m.model").write_bytes(signed(content, changed))
        _refused(tmp_path / "m.model", message)


@pytest.mark.parametrize(
    ("family", "n_columns"), [("product", 9), ("varying", 1), ("interaction", 5), ("moderated", 2)]
)
def test_curves_of_columns_that_they_cannot_have(rng, tmp_path: Path, family, n_columns) -> None:
    """Far rows would overflow products of many; slopes vary with another column, or with one."""
    X = rng.normal(size=(100, 9))
    model = BootstrapSVC(**QUICK).fit(X, X[:, 0] * X[:, 1] > 0)
    save(model, tmp_path / "m.model")
    content, arrays = parts_of((tmp_path / "m.model").read_bytes())
    there = arrays["kernel_posterior_.family"] > 0
    assert there.any()
    arrays["kernel_posterior_.family"] = np.where(there, FAMILIES.index(family), 0)
    arrays["kernel_posterior_.columns_of_curve"][there] = np.arange(9) < n_columns
    (tmp_path / "m.model").write_bytes(signed(content, arrays))
    _refused(tmp_path / "m.model", "of too few or many columns")


@pytest.mark.parametrize("name", ["coef_", "intercept_", "score_offset_"])
def test_numbers_beyond_float32(name: str, rng, tmp_path: Path) -> None:
    X = rng.normal(size=(30, 3))
    model = linear(**QUICK, dtype="float32").fit(X, X[:, 0] + rng.normal(size=30) > 0)
    save(model, tmp_path / "m.model")
    content, arrays = parts_of((tmp_path / "m.model").read_bytes())
    arrays[name].reshape(-1)[-1] = -1e99
    (tmp_path / "m.model").write_bytes(signed(content, arrays))
    _refused(tmp_path / "m.model", f"{name} .*too large for (float32|score_)")


@pytest.mark.parametrize(
    ("params", "name", "number"),
    [
        ({}, "bootstrap_scale_", 1e24),
        ({"feature_map": "nystroem", "n_components": 8}, "feature_map_.normalization", 1e50),
        ({"kernel": "linear", "gamma": "scale"}, "X_fit_", 1e38),
        ({"kernel": "linear", "gamma": "scale"}, "bootstrap_scale_", 1e-30),
    ],
)
def test_scores_beyond_float32_are_an_error(
    params: dict[str, Any], name: str, number: float, rng, tmp_path: Path
) -> None:
    """Each number is possible, and their products are not finite in float32."""
    X = rng.normal(size=(12, 15))
    given = QUICK | {"kernel": "rbf", "gamma": 0.1, "dtype": "float32"} | params
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few columns of a map
        model = linear(**given).fit(X, np.arange(12) % 2)
    save(model, tmp_path / "m.model")
    content, arrays = parts_of((tmp_path / "m.model").read_bytes())
    arrays[name].reshape(-1)[-1] = number
    (tmp_path / "m.model").write_bytes(signed(content, arrays))
    assert examine(tmp_path / "m.model", rng) == ("unusable", "")
    with pytest.raises(DataError, match=r"Row \d+ \(counted from 0\) has a score beyond float32"):
        load(tmp_path / "m.model").predict_proba(X * np.logspace(0, 6, 12)[:, None])


def test_classes_of_a_table_are_whole_numbers(tmp_path: Path) -> None:
    path = next(path for path in GOLDEN if path.stem.endswith("table"))
    content, arrays = parts_of(path.read_bytes())
    arrays["classes_"] = arrays["classes_"].astype(np.float16)
    (tmp_path / "m.model").write_bytes(signed(content, arrays))
    _refused(tmp_path / "m.model", "the target does not fit")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["target"].update(positive="good", negative="good"), "not distinct"),
        (lambda t: t["target"].update(positive=None), "target is damaged"),
        (lambda t: t["preprocessor"]["columns"][0]["levels"].reverse(), ""),
        (lambda t: t["preprocessor"]["columns"][0]["levels"].__setitem__(0, " A"), "no levels"),
        (lambda t: t["preprocessor"]["columns"][0]["levels"].__setitem__(0, ""), "distinct"),
        (lambda t: t["preprocessor"]["columns"][1].update(fill=1e300), "too large"),
        (lambda t: t["preprocessor"]["columns"][1].update(name="status"), "the same name"),
        (lambda t: t["preprocessor"].update(notes=[1]), "no texts"),
    ],
)
def test_signed_nonsense_of_a_table(
    change: Callable[[Any], object], message: str, tmp_path: Path
) -> None:
    from mixed_tables import credit_table

    path = tmp_path / "m.model"
    save(TableModel.fit(credit_table(60), "risk", "bad", kernel="linear", **QUICK), path)
    content, arrays = parts_of(path.read_bytes())
    change(content["table"])
    path.write_bytes(signed(content, arrays))
    if message:
        _refused(path, message)
    else:
        assert examine(path, np.random.default_rng(0)) == ("loaded", "")


def test_levels_of_all_columns_are_compared_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Column by column, a small file could keep a processor busy for a minute."""
    path = next(path for path in GOLDEN if path.stem.endswith("table"))
    asked, as_levels = [], stored_tables.as_levels

    def watched(column: pd.Series, kind: Kind) -> np.ndarray:
        asked.append(kind)
        return as_levels(column, kind)

    monkeypatch.setattr(stored_tables, "as_levels", watched)
    content, arrays = parts_of(path.read_bytes())
    columns = content["table"]["preprocessor"]["columns"]
    columns += [{"name": f"c{k}", "kind": "text", "fill": "a", "levels": ["a"]} for k in range(50)]
    (tmp_path / "m.model").write_bytes(signed(content, arrays))
    _refused(tmp_path / "m.model", "the preprocessing does not fit the ensemble")
    assert len(asked) <= 2


def test_arrays_of_several_classes_are_gone_through_once(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each pair, 60 classes took as long as their square squared."""

    class Counted(dict[str, np.ndarray]):
        looks = 0

        def __iter__(self) -> Iterator[str]:
            Counted.looks += 1
            return super().__iter__()

        def items(self) -> Any:
            Counted.looks += 1
            return super().items()

        def keys(self) -> Any:
            Counted.looks += 1
            return super().keys()

    X, y = rng.normal(size=(40, 2)), np.arange(40) % 5
    svc = BootstrapSVC(kernel="linear", n_bootstraps=3, C=1.0, random_state=0).fit(X, y)
    arrays, values = split_state(svc)
    again = join_state(svc.get_params(deep=False), Counted(arrays), values)
    np.testing.assert_array_equal(again.predict_proba(X), svc.predict_proba(X))
    assert Counted.looks < 5  # of 10 pairs
    # Nor are pairs made that the file does not have: of very many classes they would fill memory.
    monkeypatch.setattr("bootprob.persistence.state.class_pairs", None)
    with pytest.raises(ValueError, match="there are 0 pairs of 5 classes"):
        join_state(svc.get_params(deep=False), arrays, values | {"pair_ensembles_": []})


def test_a_model_that_is_too_large_is_not_saved(
    fitted: tuple[BootstrapSVC, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_file_module, "TENSORS", 5)
    with pytest.raises(ModelFileError, match=r"too large for a model file: there are .* arrays"):
        save(fitted[0], tmp_path / "m.model")
    assert list(tmp_path.iterdir()) == []


def test_a_kill_leaves_the_old_file_or_the_new(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.model"
    path.write_bytes(saved)
    code = (
        "import sys\nfrom bootprob import load, save\nmodel = load(sys.argv[1])\n"
        "model.fit_seconds_ = 99.0\nprint('ready', flush=True)\n"
        "while True: save(model, sys.argv[1])"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == b"ready\n"
        time.sleep(float(np.random.default_rng().uniform(0, 0.1)))
        process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        process.wait()
    found = load(path)
    assert isinstance(found, BootstrapSVC)
    assert found.fit_seconds_ == 99.0 or path.read_bytes() == saved


# -- the fuzzer ------------------------------------------------------------------------------------


def test_mutated_files(rng: np.random.Generator, tmp_path: Path) -> None:
    outcomes, violations = fuzz(120, int(rng.integers(2**31)), keep=tmp_path / "found")
    assert violations == []
    assert outcomes["refused"] > 60
    assert outcomes["loaded"] > 0


def _work(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_the_fuzzer_sees_what_must_not_be(
    saved: bytes, tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.model"
    path.write_bytes(saved)
    assert examine(path, rng, memory=True) == ("loaded", "")

    def loads(action: Callable[[], object]) -> str:
        def instead(given: Path) -> BootstrapSVC:
            action()
            return load(given)  # type: ignore[return-value]

        monkeypatch.setattr("fuzz_model_files.load", instead)
        return examine(path, rng, memory=True)[1]

    assert "os.system" in loads(lambda: os.system("true"))
    assert "open" in loads(lambda: path.write_bytes(saved))
    assert "there are other files" in loads(lambda: (tmp_path / "other").touch()) or WATCH.events
    assert "bytes for a file" in loads(lambda: bytes(EXTRA_BYTES + 4 * len(saved)))
    monkeypatch.setattr("fuzz_model_files.SECONDS", 0.2)
    assert "s to load" in loads(lambda: _work(0.3))
    monkeypatch.setattr("fuzz_model_files.SECONDS", SECONDS)
    assert "KeyError" in loads(lambda: {}["x"])
    assert "UserWarning" in loads(lambda: warnings.warn("of the file", stacklevel=1))
    monkeypatch.setattr("fuzz_model_files.load", load)
    monkeypatch.setattr("bootprob.runtime.array_forms._check_numbers", lambda *_: None)
    for check in ("_check_two_classes", "_check_machines"):
        monkeypatch.setattr(f"bootprob.persistence.checks.{check}", lambda *_: None)
    for name, number, said in (
        ("coef_", np.nan, "Eigenvalues did not converge"),
        ("sigmoid_information_", 5e-324, "interval 'corrected' is not finite"),
    ):
        content, arrays = parts_of(saved)
        arrays[name][:] = number
        path.write_bytes(signed(content, arrays))
        assert said in examine(path, rng)[1]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"predict_proba": np.full((4, 2), np.nan)}, "probability is not finite"),
        ({"predict_proba": np.full((4, 2), 0.4)}, "probability does not sum to 1"),
        ({"vote_proba": np.tile([1.1, -0.1], (4, 1))}, "votes is not between 0 and 1"),
        ({"decision_function": np.full(4, np.inf)}, "score is not finite"),
        ({"proba_interval": np.full((4, 2, 2), 0.5)[..., ::-1] - [0, 0.1]}, "is upside down"),
        ({"score_interval": np.array([[1.0, np.inf]] * 4)}, "score interval 'basic' is not finite"),
        ({"predict": np.full(4, 7)}, "label is no class"),
        ({"oob_proba_interval": np.full((30, 2, 2), np.nan)}, "out-of-bag interval"),
    ],
)
def test_every_answer_is_looked_at(
    answer: dict[str, np.ndarray],
    said: str,
    fitted: tuple[BootstrapSVC, np.ndarray],
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ask(fitted[0], rng) == (False, "")
    for name, numbers in answer.items():
        monkeypatch.setattr(BootstrapSVC, name, lambda *_, numbers=numbers, **__: numbers)
    assert said in ask(fitted[0], rng)[1]


def test_arrays_of_text_are_as_wide_as_they_were() -> None:
    assert decode({"$array": ["a"], "dtype": "<U9", "shape": [1]}).dtype == "<U9"
