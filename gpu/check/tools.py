"""Where NVIDIA's own tools are, and running one of them for a limited time."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpu.check.plan import ROOT

__all__ = ["find_tool", "kernel_functions", "run_tool"]

_JIT = re.compile(r"@triton\.jit(?:\([^)]*\))?\s+def (\w+)")
_CALLED = re.compile(r"(?<!def )\b(\w+)\(")
_GRACE = 3.0  # seconds to write down what was found
# Below the folder of CUDA, of NVIDIA's own installers, and of pip's packages.
_PLACES = ("bin", "compute-sanitizer", "nsight-compute*", "NsightCompute*", "cu*/bin", "*/bin")


def find_tool(name: str) -> str | None:
    """Path of a program: on PATH, in CUDA's usual folders, or in NVIDIA's packages for Python.

    Parameters
    ----------
    name : str
        "compute-sanitizer" or "ncu".
    """
    paths = (folder / name for folder in _folders())
    return shutil.which(name) or next((str(path) for path in paths if _can_run(path)), None)


def _folders() -> Iterator[Path]:
    roots = [Path(os.environ[key]) for key in ("CUDA_HOME", "CUDA_PATH") if key in os.environ]
    roots += sorted(Path("/usr/local").glob("cuda*"), reverse=True)
    roots += [Path("/opt/nvidia"), *sorted(Path("/opt/nvidia").glob("nsight-compute/*"))]
    installed = [Path(sysconfig.get_paths()["platlib"])]
    installed += [Path(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    roots += [folder / "nvidia" for folder in installed]
    for root in roots:
        yield root
        for place in _PLACES:
            yield from sorted(root.glob(place), reverse=True)


def _can_run(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def kernel_functions() -> set[str]:
    """Names of the kernels: functions that Triton compiles and that no other one calls."""
    paths = (ROOT / "gpu" / "bootprob_gpu").rglob("triton_*.py")
    texts = [path.read_text(encoding="utf-8") for path in paths]
    everywhere = {name for text in texts for name in _CALLED.findall(text)}
    return {
        name
        for text in texts
        for name in _JIT.findall(text)
        # Modules may have private functions of one name.
        if name not in (_CALLED.findall(text) if name.startswith("_") else everywhere)
    }


def run_tool(
    command: Sequence[str], seconds: float, variables: Mapping[str, str]
) -> tuple[str, int | None]:
    """What a program says on both its outputs, and its exit status; None if the time was over.

    Parameters
    ----------
    command : sequence of str
    seconds : float
        After so many it and all that it started are stopped.
    variables : mapping
        Its environment.
    """
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=dict(variables),
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=max(1.0, seconds - _GRACE))
        return said, process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        return said, None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
