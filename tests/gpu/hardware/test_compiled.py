"""Machine code on disk: made anew when any source of it changes, and only then; and said once."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import bootprob
import bootprob_gpu
from bootprob_gpu import Problem, fit
from bootprob_gpu.hardware.compiled import compiled, inner
from bootprob_gpu.interior_point.compiled import interior_point_path

ENGINE = Path(bootprob_gpu.__file__).parent
PACKAGES = [ENGINE, Path(bootprob.__file__).parent]
SAID = "Compiling the toy, once an installation: about 1 s.\n"
COMPILED = '"compiled" if toy.toy.stats.cache_misses else "loaded"'
PROGRAM = f"import sys; from bootprob_gpu import toy; print(toy.toy(int(sys.argv[1])), {COMPILED})"
# Loads Numba, which takes longer than any of this, and becomes the programs that it is sent: those
# of a line at once.
FORKING = """
import json, os, sys, traceback
import filelock, numba, numba.core.caching, numba.extending, numba.misc.appdirs
numba.njit(lambda x: x)(1)  # what is loaded when something is first compiled
def become(program, environment, *files):
    for descriptor, file in enumerate(files, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    numba.config.reload_config()
    sys.path.insert(0, environment["PYTHONPATH"])
    sys.argv = ["-c", "4"]
    status = 1
    try:
        exec(program, {"__name__": "__main__"})
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

for line in sys.stdin:
    children = []
    for given in json.loads(line):
        children.append(os.fork())
        if not children[-1]:
            become(*given)
    print(json.dumps([os.waitpid(child, 0)[1] for child in children]), flush=True)
"""


@pytest.fixture(scope="module")
def forking() -> Iterator[subprocess.Popen[str] | None]:
    if not hasattr(os, "fork"):
        yield None
        return
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", FORKING],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield process


class Copy:
    """A package `bootprob_gpu` of its own, with a function of two modules."""

    def __init__(self, root: Path, forking: subprocess.Popen[str] | None) -> None:
        self.root = root
        self.forking = forking
        self.package = root / "bootprob_gpu"
        self.home = root / "home"

    def make(self) -> None:
        self.home.mkdir(parents=True)
        for folder in (self.package, self.package / "hardware"):
            folder.mkdir()
            (folder / "__init__.py").touch()
        shutil.copy(ENGINE / "hardware" / "compiled.py", self.package / "hardware")
        self.write("callee", "@inner()\ndef callee(x):\n    return 10 * x\n")
        self.write(
            "toy",
            "from bootprob_gpu.callee import callee\n\n"
            '@compiled("the toy", seconds=1)\ndef toy(x):\n    return callee(x) + 1\n',
        )

    def write(self, name: str, body: str) -> None:
        (self.package / f"{name}.py").write_text(
            f"from bootprob_gpu.hardware.compiled import compiled, inner\n{body}", encoding="utf-8"
        )

    def environment(self, changes: dict[str, str]) -> dict[str, str]:
        names = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPATH", "NUMBA_OPT")
        inherited = {name: value for name, value in os.environ.items() if name not in names}
        return inherited | {"PYTHONPATH": str(self.root), "HOME": str(self.home)} | changes

    def start_and_end(self, program: str = PROGRAM, **changes: str) -> tuple[str, str]:
        """What a process prints and says."""
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program, "4"],
            env=self.environment(changes), capture_output=True, text=True, check=False,
            timeout=300,  # no lock is waited for
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip(), done.stderr

    def run(self, program: str = PROGRAM, **changes: str) -> tuple[str, str]:
        """The same of a process that found Numba loaded, where processes can be forked."""
        (end,) = self.run_at_once(1, program, **changes)
        return end

    def run_at_once(
        self, number: int, program: str = PROGRAM, **changes: str
    ) -> list[tuple[str, str]]:
        """The same of several processes."""
        if self.forking is None:
            with ThreadPoolExecutor(number) as pool:
                ends = [pool.submit(self.start_and_end, program, **changes) for _ in range(number)]
                return [end.result() for end in ends]
        files = [(self.root / f"out{k}", self.root / f"said{k}") for k in range(number)]
        environment = self.environment(changes)
        given = [(program, environment, *map(str, pair)) for pair in files]
        print(json.dumps(given), file=self.forking.stdin, flush=True)
        statuses = json.loads(self.forking.stdout.readline())
        ends = []
        for status, pair in zip(statuses, files, strict=True):
            out, said = (file.read_text(encoding="utf-8") for file in pair)
            for file in pair:
                file.unlink()
            assert status == 0, said
            ends.append((out.strip(), said))
        return ends

    def kept(self, parent: Path | None = None) -> list[Path]:
        """Folders with machine code."""
        return sorted((parent or self.package / "__pycache__").glob("bootprob_gpu-*"))


@pytest.fixture
def copy(tmp_path: Path, forking) -> Copy:
    copy = Copy(tmp_path, forking)
    copy.make()
    return copy


@pytest.fixture(scope="module")
def made(tmp_path_factory, forking) -> Copy:
    """To be copied, with machine code."""
    made = Copy(tmp_path_factory.mktemp("made"), forking)
    made.make()
    assert made.run() == ("41 compiled", SAID)
    return made


@pytest.fixture
def kept(made: Copy, tmp_path: Path) -> Copy:
    """A package that was compiled before."""
    shutil.copytree(made.root, tmp_path, dirs_exist_ok=True)
    return Copy(tmp_path, made.forking)


def test_a_change_in_what_a_function_calls_is_seen(kept: Copy) -> None:
    assert kept.start_and_end() == ("41 loaded", "")
    kept.write("callee", "@inner()\ndef callee(x):\n    return 100 * x\n")
    assert kept.run() == ("401 compiled", SAID)
    assert len(kept.kept()) == 2
    kept.write("callee", "@inner()\ndef callee(x):\n    return 10 * x\n")  # as before
    assert kept.run() == ("41 loaded", "")


def test_an_edited_part_of_a_solver_runs(tmp_path: Path, forking) -> None:
    """The real package, but for what imports torch; and of it, a part that is soon compiled."""
    shutil.copytree(ENGINE, tmp_path / "bootprob_gpu", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "bootprob_gpu" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "bootprob_gpu" / "smo" / "primal.py").write_text(
        "from bootprob_gpu.hardware.compiled import compiled\n"
        "from bootprob_gpu.smo.compiled_steps import objectives\n\n"
        "@compiled()\ndef primal(y, s, lo, hi, g):\n"
        "    return objectives(y, s, lo, hi, g, 0.0, 0.0)[0]\n",
        encoding="utf-8",
    )
    program = """
import numpy as np
from bootprob_gpu.smo.primal import primal
y = np.array([1.0, -1.0])
print(primal(y, 0.5 * y, np.array([0.0, -1.0]), np.array([1.0, 0.0]), np.zeros(2)))
"""
    copy = Copy(tmp_path, forking)

    def primal() -> float:
        return float(copy.run(program, NUMBA_CACHE_DIR=str(tmp_path / "cache"))[0])

    assert primal() == 0.5
    edited = tmp_path / "bootprob_gpu" / "smo" / "compiled_steps.py"
    source = edited.read_text(encoding="utf-8")
    assert source.count("return 0.5 * norm + loss") == 1
    edited.write_text(source.replace("return 0.5 *", "return 1000.0 + 0.5 *"), encoding="utf-8")
    assert primal() == 1000.5


def test_several_processes_on_an_empty_folder_compile_once(copy: Copy) -> None:
    # The first takes so long that the others, if they did not wait, would compile as well.
    copy.write(
        "toy",
        "import time\nfrom bootprob_gpu.hardware import compiled as c\n"
        "keep = c._Kept.save_overload\n"
        "c._Kept.save_overload = lambda *a: (time.sleep(1), keep(*a))\n"
        '@compiled("the toy", seconds=1)\ndef toy(x):\n    return x\n',
    )
    ends = copy.run_at_once(3)
    assert sorted(out for out, _ in ends) == ["4 compiled", "4 loaded", "4 loaded"]
    assert sorted(said for _, said in ends) == ["", "", SAID]


def test_nobody_waits_for_himself(copy: Copy) -> None:
    copy.write(
        "toy",
        "from bootprob_gpu.hardware import compiled as c\nc._PATIENCE = 1e9\n"
        "@compiled()\ndef part(x):\n    return x\n\n"
        '@compiled("the toy", seconds=1)\ndef toy(x):\n    return part(x)\n',
    )
    assert copy.run() == ("4 compiled", SAID)
    (folder,) = copy.kept()
    assert len(list(folder.glob("*.code"))) == 2


def test_a_signature_beside_another_does_not_replace_it(kept: Copy) -> None:
    floats = PROGRAM.replace("toy(int(", "toy(float(")
    assert kept.run(floats) == ("41.0 compiled", SAID)
    assert kept.run() == ("41 loaded", "")
    assert kept.run(floats) == ("41.0 loaded", "")


def test_the_folder_of_the_user_is_taken_and_nothing_else(copy: Copy, tmp_path: Path) -> None:
    own = tmp_path / "own"
    assert copy.run(NUMBA_CACHE_DIR=str(own)) == ("41 compiled", SAID)
    assert len(copy.kept(own)) == 1
    assert not copy.kept()
    assert copy.run(NUMBA_CACHE_DIR=str(own)) == ("41 loaded", "")


def test_numbas_own_folders_stay_those_of_the_user(copy: Copy) -> None:
    program = PROGRAM + (
        "; import numba; from numba.core.caching import FunctionCache;"
        "print(repr(numba.config.CACHE_DIR), FunctionCache(toy.toy.py_func).cache_path)"
    )
    out, _ = copy.start_and_end(program)
    assert out.splitlines()[1] == f"'' {copy.package / '__pycache__'}"


def _block(folder: Path) -> None:
    """Let nobody, root included, make a folder there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.touch()


def test_an_installation_that_cannot_be_written_is_kept_for_the_user(copy: Copy) -> None:
    _block(copy.package / "__pycache__")
    places = {"XDG_CACHE_HOME": str(copy.home / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    assert copy.run(**places) == ("41 compiled", SAID)
    assert copy.run(**places) == ("41 loaded", "")
    _block(copy.home / "cache")
    out, said = copy.run(**places)
    assert out == "41 compiled"
    assert said.startswith("Compiling the toy, in every process, as no folder can be written")
    assert len(said.splitlines()) == 1


def test_what_an_installation_came_with_is_read(kept: Copy) -> None:
    unwritable = (
        "from bootprob_gpu.hardware import compiled; compiled._is_ready = lambda folder: False; "
    )
    assert kept.run(unwritable + PROGRAM) == ("41 loaded", "")


def test_files_of_an_installation_can_be_read_by_others(made: Copy) -> None:
    (folder,) = made.kept()
    (file,) = folder.glob("*.code")
    probe = made.root / "probe"
    probe.touch()
    assert file.stat().st_mode == probe.stat().st_mode


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b""])
def test_a_damaged_file_is_made_anew(kept: Copy, damage) -> None:
    (folder,) = kept.kept()
    (file,) = folder.glob("*.code")
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert kept.run() == ("41 compiled", SAID)
    assert kept.run() == ("41 loaded", "")


def test_old_folders_go(copy: Copy) -> None:
    for age in range(6):
        old = copy.package / "__pycache__" / f"bootprob_gpu-{age:016x}"
        old.mkdir(parents=True)
        os.utime(old, (1e9 - age, 1e9 - age))
    others = {"of_somebody_else", "bootprob_gpu-results", "bootprob_gpu-2026"}
    for name in others:
        (copy.package / "__pycache__" / name).mkdir()
        os.utime(copy.package / "__pycache__" / name, (1e8, 1e8))
    copy.run()
    kept = {each.name for each in (copy.package / "__pycache__").iterdir() if each.is_dir()}
    assert kept >= others | {f"bootprob_gpu-{age:016x}" for age in range(3)}
    assert len(kept - others) == 4


def test_a_setting_of_the_compiler_has_code_of_its_own(kept: Copy) -> None:
    assert kept.start_and_end(NUMBA_OPT="1")[0] == "41 compiled"
    assert kept.run()[0] == "41 loaded"


def test_inner_functions_are_python_too() -> None:
    @inner(error_model="numpy")
    def double(x):
        return 2 * x

    @compiled()
    def quadruple(x):
        return double(double(x))

    assert double([1]) == [1, 1]
    assert quadruple(3) == 12


def test_a_fit_compiles_the_path_once() -> None:
    """Two signatures of a solver would take twice as long."""
    X, y = np.array([[1.0], [-1.0], [0.5], [-0.2]]), np.array([1, -1, 1, -1])
    problem = Problem(X, y, np.ones((1, 4), dtype=int), [1.0, 2.0])
    found = fit(problem, solver="interior-point-compiled")
    assert len(interior_point_path.signatures) == 1
    assert not found.status.any()


def _modules() -> list[Path]:
    return [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]


def _imports(path: Path) -> dict[str, set[str]]:
    """Names by the module that they are imported from."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found.setdefault(node.module or "", set()).update(each.name for each in node.names)
        elif isinstance(node, ast.Import):
            found |= {each.name: set() for each in node.names}
    return found


def test_all_that_is_compiled_is_in_the_hash() -> None:
    """What Numba compiles is in modules that import `compiled`, and so is what those import."""
    harmless = {"types", "cgutils", "intrinsic", "get_cython_function_address"}
    imports = {
        path: _imports(path) for path in _modules() if path != ENGINE / "hardware" / "compiled.py"
    }
    hashed = {path for path, found in imports.items() if "bootprob_gpu.hardware.compiled" in found}
    assert hashed
    for path, found in imports.items():
        numbas = {name: names for name, names in found.items() if name.split(".")[0] == "numba"}
        assert path in hashed or not numbas, path
        assert "numba" not in numbas or numbas["numba"], path  # nobody imports all of it
        assert set().union(*numbas.values()) <= harmless, path
    for path in hashed:
        assert b"bootprob_gpu.hardware.compiled import" in path.read_bytes(), path
        for name in imports[path].keys() - {
            "bootprob_gpu.hardware.compiled",
            "bootprob.runtime.arrays",
        }:
            first, _, rest = name.partition(".")
            for package in PACKAGES:
                if package.name == first:
                    assert package / f"{rest.replace('.', '/')}.py" in hashed, (path, name)
