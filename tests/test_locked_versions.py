"""Files of hashes have all that pyproject.toml asks for, in the versions of constraints.txt."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = {
    "base": (), "server": ("server", "skops", "tracing"), "test": ("test",), "docs": ("docs",),
    "bench": ("bench",),
}  # fmt: skip


def locked(name: str) -> dict[str, Requirement]:
    """What a file of hashes pins; it says nothing else, no address of an index above all."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", "")
    pins = {}
    for line in text.splitlines():
        pin, *hashes = line.split(" --hash=")
        assert hashes, line
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each.strip()) for each in hashes), line
        assert len(set(hashes)) == len(hashes)
        requirement = Requirement(pin.strip())
        assert re.fullmatch(r"==[^,*]+", str(requirement.specifier)), line
        pins[canonicalize_name(requirement.name)] = requirement
    return pins


def asked(extra: str) -> list[Requirement]:
    """What the project asks for, with an extra and those that it names."""
    project = PROJECT["project"]
    found = []
    for line in project["optional-dependencies"][extra] if extra else project["dependencies"]:
        requirement = Requirement(line)
        if requirement.name == "bootprob":
            found += [each for more in sorted(requirement.extras) for each in asked(more)]
        else:
            found.append(requirement)
    return found


def version(requirement: Requirement) -> str:
    return str(requirement.specifier).removeprefix("==")


@pytest.fixture(scope="module", params=EXTRAS)
def lock(request):
    return request.param, {**locked("torch"), **locked(request.param)}


def test_all_that_is_asked_for_is_locked(lock):
    name, pins = lock
    everything = [each for extra in ("", *EXTRAS[name]) for each in asked(extra)]
    assert len(everything) >= 16
    for requirement in everything:
        pin = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version(pin)), f"{requirement}: {pin}"


def test_what_that_needs_is_locked_too(lock):
    """As far as it is installed here: what a file lacked, make would install without a hash."""
    name, pins = lock
    looked_at = 0
    for pin in locked(name).values():
        if pin.marker and not pin.marker.evaluate():
            continue
        try:
            needed = requires(pin.name) or []
        except PackageNotFoundError:
            assert name in ("docs", "bench"), f"{pin.name} is not installed"
            continue
        looked_at += 1
        for each in map(Requirement, needed):
            if each.marker is None or each.marker.evaluate({"extra": ""}):
                assert canonicalize_name(each.name) in pins, f"{pin.name} needs {each}"
    assert looked_at >= 40


def test_versions_are_those_of_the_constraints():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    constraints = {
        canonicalize_name(name): number for name, number in (line.split("==") for line in lines)
    }
    files = ["torch", *EXTRAS]
    pins = {name: pin for each in files for name, pin in locked(each).items()}
    assert constraints.keys() <= pins.keys()
    for each in files:
        for name, pin in locked(each).items():
            if (each, name) != ("torch", "triton"):  # interpreted in the tests, by an older one
                assert version(pin) == constraints.get(name, version(pins[name])), pin


def test_torch_is_one_version_with_and_without_cuda():
    with_cuda, (without,) = locked("torch")["torch"], locked("torch-cpu").values()
    assert version(without) == f"{version(with_cuda)}+cpu"
    (told,) = PROJECT["tool"]["uv"]["dependency-metadata"]
    assert (told["name"], told["version"]) == ("torch", version(with_cuda))
    needed = [Requirement(line) for line in requires("torch")]
    plain = {each.name for each in needed if not each.marker}
    assert {Requirement(line).name for line in told["requires-dist"]} == plain


def test_libraries_of_cuda_are_locked_with_torch():
    """All that it needs without them too, and for Linux those of CUDA."""
    pins = locked("torch")
    lines = [Requirement(line) for line in requires("torch")]
    assert {canonicalize_name(each.name) for each in lines if not each.marker} <= pins.keys()
    for name in ("triton", "cuda-bindings", "nvidia-cublas", "nvidia-cudnn-cu13"):
        assert "sys_platform" in str(pins[name].marker)
