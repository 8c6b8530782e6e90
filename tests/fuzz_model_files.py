"""Mutate model files at random and see that loading them is harmless.

    python tests/fuzz_model_files.py --files 100000 --seed 0 [--minutes 10] [--keep FOLDER]

A third of the files are damaged as bytes. The others are opened, changed and signed again with a
right checksum, as an attacker would: a third in the structure of their JSON and their arrays, a
third in their numbers alone, which become denormal, huge, infinite or NaN, some or all at a time.

Every file must be refused with a `ModelFileError` and no warning, or give a model that answers all
that it can be asked (`model_answers`) with finite numbers or a typed error; within 2 s of a
processor and twice the file's memory plus 8 MiB (of every eighth file, as measuring is slow), and
without another process, a connection, a pickle or another file. Exits with 1 if one does not, and
keeps such files with the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
import traceback
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as to_bytes
from sklearn.base import clone

from bootprob import BootstrapSVC
from bootprob.exceptions import ModelFileError
from bootprob.persistence.save_load import load, save
from bootprob.tables.model import TableModel
from linear_models import linear
from mixed_tables import credit_table
from model_answers import ask

SECONDS, EXTRA_BYTES = 2.0, 2**23
_FORBIDDEN = (
    "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.remove", "os.rename",
    "os.mkdir", "socket.", "pickle.", "marshal.", "exec", "compile", "import", "ctypes.",
)  # fmt: skip
_NUMBERS: list[float] = [
    0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.nan, np.inf, -np.inf, 5e-324, 1e-300, 1e-99, -1e-99, 1e-30,
    1e30, -1e30, 1e99, -1e99, 1.1e100, 1.7e308, -1.7e308,
]  # fmt: skip
_MAGNITUDES = [(-324, -300), (-110, -90), (-40, -5), (-5, 5), (5, 40), (90, 110), (140, 308)]
_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 10**12, 2**63, -(2**63), 10**40, 10**999, 0.0, 0.5, -0.5, 1e300,
    1e-300, "", "x", "linear", "rbf", "sigmoid", "isotonic", "float32", "cuda:99", "cpu:7", "meta",
    "\x1b[2J", "\ud800", "\0", "ü" * 300, [], {}, [[]], {"": 0}, {"$float": "nan"},
    {"$float": "inf"}, {"$tuple": []}, {"$dict": [[0, 1]]}, {"$dict": [[[], 1]]},
    {"$scalar": 300, "dtype": "|i1"},
    {"$scalar": "x", "dtype": "<f8"}, {"$scalar": {}, "dtype": "|O"}, {"$pickle": "gASVAA=="},
    {"$array": [""], "dtype": "<U99999999", "shape": [1]},
    {"$array": [1], "dtype": "<f8", "shape": [2**62, 4]},
    {"$array": [], "dtype": "|O", "shape": [0, 2**62]},
    {"$array": [1], "dtype": "V8", "shape": [1]},
    {"$array": ["a", "b"], "dtype": "|O", "shape": [2]},
    {"$array": [1.0, 2.0], "dtype": "<f8", "shape": [2]},
]  # fmt: skip

Parts = tuple[dict[str, Any], dict[str, np.ndarray]]


def seed_models() -> dict[str, BootstrapSVC | TableModel]:
    """Small fitted models of every kind that a file can hold."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    y = (X[:, 0] + rng.normal(size=24) > 0).astype(int)
    three = np.array(["pear", "apple", "fig"])[y + (X[:, 1] > 0.4)]
    quick: dict[str, Any] = {"n_bootstraps": 5, "C": [0.25, 1.0], "random_state": 0}
    rbf = {"kernel": "rbf", "gamma": [0.1, 0.5]}
    mapped = {"kernel": "rbf", "gamma": 0.1, "n_components": 8}
    settings: dict[str, dict[str, Any]] = {
        "linear": {},
        "linear, float32": {"dtype": "float32"},
        "rbf": rbf,
        "rbf, one scale": rbf | {"standardize": "global", "dtype": "float32"},
        "nystroem": mapped | {"feature_map": "nystroem"},
        "random features": mapped | {"feature_map": "random-features"},
        "controlled": {"control": "threshold", "rates": {"tpr": 0.9}},
        "votes": {"calibration": None, "interval": "wilson"},
        **{name: {"calibration": name} for name in ("sigmoid-votes", "sigmoid-both", "isotonic")},
        **{name: {"calibration": name} for name in ("beta", "venn-abers")},
        "percentiles": {"interval": "percentile"},
        "poly": {"kernel": "poly", "gamma": [0.1, 0.5], "degree": 2, "coef0": 1.0},
    }
    found: dict[str, BootstrapSVC | TableModel] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rows and columns of a map
        for name, params in settings.items():
            found[name] = linear(**quick | params).fit(X, y)
        found["updated"] = found["linear"].recalibrated(base_rate=0.3).watched(X, y)
        values = np.exp(-0.3 * np.square(X[:, None] - X).sum(axis=2))
        given = BootstrapSVC(kernel="precomputed", **quick)
        found["precomputed"] = clone(given).fit(values, y)
        found["three classes, precomputed"] = clone(given).fit(values, three)
        found["wide"] = linear(**quick).fit(rng.normal(size=(12, 15)), y[:12])
        found["three classes"] = linear(**quick).fit(X, three)
        found["three classes, rbf"] = linear(**quick | rbf).fit(X, three)
        found["table"] = TableModel.fit(credit_table(40), "risk", "bad", kernel="linear", **quick)
    return found


# -- mutations -----------------------------------------------------------------------------------


def parts_of(data: bytes) -> Parts:
    """Content and arrays of a whole file."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["bootprob"])
    return header["content"], {n: a.copy() for n, a in sorted(tensors_of(data).items())}


def signed(content: Any, arrays: dict[str, np.ndarray], *, honest_shapes: bool = True) -> bytes:
    """A file with a right checksum."""
    if honest_shapes and isinstance(content, dict):
        shapes = {name: [a.dtype.name, *a.shape] for name, a in sorted(arrays.items())}
        content = content | {"shapes": shapes}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(arrays[name].tobytes())
    entries = {
        "protocol": 1, "bootprob": "0.1.0", "content": content, "sha256": digest.hexdigest()
    }  # fmt: skip
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return to_bytes(arrays, metadata={"bootprob": json.dumps(entries)})


def damaged(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """Change bytes; every third time within the header."""
    size = len(data) if rng.random() < 0.67 else 8 + int.from_bytes(data[:8], "little")
    start, stop = sorted(rng.integers(0, size + 1, 2).tolist())
    stop = min(stop, start + int(rng.integers(1, 200)))
    changed = bytearray(data)
    match int(rng.integers(9)):
        case 0:
            for place in rng.integers(0, size, rng.integers(1, 9)):
                changed[place] ^= 1 << int(rng.integers(8))
        case 1:
            del changed[start:]
        case 2:
            del changed[start:stop]
        case 3:
            changed[start:stop] = other[start:stop]
        case 4:
            changed[start:start] = changed[start:stop] * int(rng.integers(1, 50))
        case 5:
            changed[start:stop] = bytes(stop - start)
        case 6:
            length = int(rng.choice([0, 1, 2, 2**20, 2**25, 2**31, 2**63, len(data) - 8]))
            changed[:8] = length.to_bytes(8, "little")
        case 7:
            changed += rng.bytes(int(rng.integers(1, 5000)))
        case 8:  # within the header, its length put right
            length = int.from_bytes(data[:8], "little")
            place = 8 + int(rng.integers(length))
            pieces = ["[" * 2000, "{", '"', "0" * 5000, "1e999", '"a":', ",", "\\ud800", "\\", "}"]
            changed[place : place + int(rng.integers(3))] = str(rng.choice(pieces)).encode()
            changed[:8] = (length + len(changed) - len(data)).to_bytes(8, "little")
    return bytes(changed)


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """All entries of nested lists and objects, as (container, key)."""
    entries: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        entries = iter(list(value.items()))
    elif isinstance(value, list):
        entries = iter(list(enumerate(value)))
    for key, item in entries:
        found.append((value, key))
        _places(item, found)
    return found


def _copy(value: Any) -> Any:
    """Entries that are put twice must not change together, nor contain themselves."""
    return json.loads(json.dumps(value))


def change_json(content: dict[str, Any], rng: np.random.Generator) -> None:
    """Change an entry somewhere."""
    places = _places({name: content[name] for name in content if name != "shapes"}, [])
    container, key = places[int(rng.integers(len(places)))]
    if container is not content and isinstance(container, dict) and key in content:
        container = content  # entries at the top were listed from a copy
    match int(rng.integers(7)):
        case 0 | 1:
            container[key] = _copy(_VALUES[int(rng.integers(len(_VALUES)))])
        case 2:
            container.pop(key) if isinstance(container, dict) else container.__delitem__(key)
        case 3:
            other, place = places[int(rng.integers(len(places)))]
            container[key] = _copy(other[place])
        case 4:
            if isinstance(container, dict):
                container[str(rng.choice(["", "x", "$tuple", "$array", "coef_"]))] = 1
            else:
                container.append(_copy(container[key]))
        case 5:
            if type(container[key]) in (int, float):
                container[key] = container[key] * float(rng.choice([0, -1, 2, 1e10]))
            elif isinstance(container[key], str):
                container[key] += str(rng.choice([" ", "x", "\n", "\0"]))
        case 6:
            deep: Any = 0
            for _ in range(int(rng.integers(20, 200))):
                deep = [deep] if rng.random() < 0.5 else {"$tuple": [deep]}
            container[key] = deep


def change_arrays(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Change an array, or the names of two."""
    name = str(rng.choice(list(arrays)))
    array = arrays[name]
    match int(rng.integers(11)):
        case 0 | 1 | 2 | 3:  # some entries
            if array.size == 0:
                return
            flat = array.reshape(-1)
            places = rng.integers(0, flat.size, rng.integers(1, 4))
            if array.dtype.kind == "f":
                flat[places] = rng.choice(_NUMBERS)
            elif array.dtype.kind == "i":
                flat[places] = rng.choice([-1, 0, 1, 2, 10**6, 2**62, -(2**62)])
        case 4:
            with np.errstate(all="ignore"):
                number = rng.choice(_NUMBERS)
                arrays[name] = (array * number).astype(array.dtype) if array.size else array
        case 5:
            kinds = ["float32", "float16", "int64", "int8", "uint64", "bool", "complex64"]
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                arrays[name] = array.astype(str(rng.choice(kinds)))
        case 6:
            arrays[name] = array.reshape(-1) if rng.random() < 0.5 else array[None]
        case 7:  # another length, of all arrays that have it
            size = int(rng.choice(array.shape)) if array.ndim else 1
            for each, other in arrays.items():
                for axis in [axis for axis, length in enumerate(other.shape) if length == size]:
                    rows = rng.permutation(size)[: int(rng.integers(0, size + 1))]
                    arrays[each] = arrays[each].take(rows, axis=axis)
        case 8:
            del arrays[name]
        case 9:
            other = str(rng.choice(list(arrays)))
            arrays[name], arrays[other] = arrays[other], array
        case 10:
            arrays[str(rng.choice(["x", "dual_coef_", "classes_", "calibrator_.scores"]))] = array


def _extreme(rng: np.random.Generator) -> float:
    """A number that is rare in models: one of the list, or of a magnitude near some limit."""
    if rng.random() < 0.4:
        return float(rng.choice(_NUMBERS))
    lowest, highest = _MAGNITUDES[int(rng.integers(len(_MAGNITUDES)))]
    return float(rng.choice([1, 1, -1]) * 10.0 ** rng.uniform(lowest, highest))


def change_numbers(
    content: dict[str, Any], arrays: dict[str, np.ndarray], rng: np.random.Generator
) -> None:
    """Change the sizes of some numbers, and nothing else, so that many files are loaded."""
    number = _extreme(rng)
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.5:
            number = _extreme(rng)  # else the same again: what is divided by it may be as small
        if rng.random() < 0.2:
            found = {name: content[name] for name in ("values", "params", "table")}
            places = [(c, k) for c, k in _places(found, []) if type(c[k]) in (int, float)]
            container, key = places[int(rng.integers(len(places)))]
            container[key] = number if np.isfinite(number) else {"$float": str(number)}
            continue
        names = [name for name, array in arrays.items() if array.dtype.kind == "f" and array.size]
        array = arrays[str(rng.choice(names))]
        part: Any = ...
        if array.ndim and rng.random() < 0.7:
            axis = int(rng.integers(array.ndim))
            part = (slice(None),) * axis + (int(rng.integers(array.shape[axis])),)
        with np.errstate(all="ignore"):
            if rng.random() < 0.4:
                array[part] *= number
            elif rng.random() < 0.5:
                array[part] = number
            else:
                array.reshape(-1)[rng.integers(0, array.size, rng.integers(1, 4))] = number


def mutated(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    """One mutated file."""
    one, other = (seeds[int(k)] for k in rng.integers(0, len(seeds), 2))
    kind = rng.integers(3)
    if kind == 0:
        return damaged(one, other, rng)
    content, arrays = parts_of(one)
    if kind == 1:
        change_numbers(content, arrays, rng)
        return signed(content, arrays)
    honest = rng.random() < 0.95
    for _ in range(int(rng.integers(1, 3))):
        if rng.random() < 0.5:
            change_json(content, rng)
        elif arrays:
            change_arrays(arrays, rng)
    return signed(content, arrays, honest_shapes=honest)


# -- what must hold ------------------------------------------------------------------------------


@dataclass
class Watch:
    """Notes what a process does beside reading files, while it is asked to."""

    on: bool = False
    events: list[str] = field(default_factory=list)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take an event of `sys.addaudithook`."""
        if not self.on:
            return
        writes = event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes or event.startswith(_FORBIDDEN):
            self.events.append(f"{event}{arguments!r}"[:200])

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch inside."""
        self.on, self.events = True, []
        try:
            yield
        finally:
            self.on = False


WATCH = Watch()
sys.addaudithook(WATCH)


def examine(path: Path, rng: np.random.Generator, *, memory: bool = False) -> tuple[str, str]:
    """Load a file as a stranger's and use the model.

    Returns
    -------
    outcome : str
        "refused", "unusable" (the model answers something with a typed error) or "loaded".
    violation : str
        What must not be, or nothing.
    """
    others = set(path.parent.iterdir())
    if memory:
        tracemalloc.start()
    started = time.process_time()
    outcome, violation, model = "loaded", "", None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            with WATCH.watching(), warnings.catch_warnings(), np.errstate(all="warn"):
                warnings.simplefilter("error")  # a program may have asked for that
                model = load(path)
        except ModelFileError:
            outcome = "refused"
        except Exception:
            violation = traceback.format_exc()
        seconds = time.process_time() - started  # others may use this machine as well
        if memory:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            if peak > 2 * path.stat().st_size + EXTRA_BYTES:
                violation = f"{peak} bytes for a file of {path.stat().st_size}"
        if seconds > SECONDS:
            violation = f"it took {seconds:.1f} s to load"
        if WATCH.events:
            violation = "; ".join(WATCH.events)
        if model is not None:
            try:
                unusable, wrong = ask(model, rng)
                outcome = "unusable" if unusable else outcome
                violation = violation or wrong
            except Exception:
                violation = traceback.format_exc()
    if set(path.parent.iterdir()) != others:
        violation = "there are other files than before"
    return outcome, violation


def fuzz(
    files: int,
    seed: int,
    *,
    minutes: float = np.inf,
    keep: Path | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[Counter[str], list[str]]:
    """Examine mutated files; returns how many ended how, and the violations."""
    rng, outcomes, violations = np.random.default_rng(seed), Counter[str](), list[str]()
    until = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        path, seeds = Path(folder) / "m.model", []
        for name, model in seed_models().items():
            save(model, path)
            seeds.append(path.read_bytes())
            outcome, violation = examine(path, rng)  # what is loaded at first use is loaded now
            if outcome != "loaded" or (violation and not WATCH.events):
                raise AssertionError(f"{name}, not mutated: {outcome}, {violation}")
        for number in range(files):
            path.write_bytes(mutated(seeds, rng))
            outcome, violation = examine(path, rng, memory=number % 8 == 0)
            outcomes[outcome] += 1
            if violation:
                violations.append(f"file {number} of seed {seed}: {violation}")
                if keep is not None:
                    keep.mkdir(exist_ok=True)
                    (keep / f"{seed}-{number}.model").write_bytes(path.read_bytes())
                    (keep / f"{seed}-{number}.txt").write_text(violation)
            progress(number + 1)
            if time.monotonic() > until:
                break
    return outcomes, violations


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=np.inf)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), metavar="FOLDER")
    given = parser.parse_args()
    started = time.perf_counter()

    def progress(done: int) -> None:
        if done % 1000 == 0:
            print(f"{done} files, {time.perf_counter() - started:.0f} s", flush=True)

    outcomes, violations = fuzz(
        given.files, given.seed, minutes=given.minutes, keep=given.keep, progress=progress
    )
    total = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    print(f"{sum(outcomes.values())} files with seed {given.seed}: {total}.")
    for violation in violations[:20]:
        print(violation)
    print(f"{len(violations)} violations.")
    sys.exit(bool(violations))


if __name__ == "__main__":
    main()
