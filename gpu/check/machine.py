"""What the check runs on, and with which versions."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from plan import ROOT

__all__ = ["facts", "name_the_source_tree"]

_PACKAGES = (
    "bootprob", "torch", "triton", "numpy", "scipy", "scikit-learn", "numba", "cvxpy", "pytest",
)  # fmt: skip


def facts(device: str) -> dict[str, Any]:
    """Device and versions; None for what is not installed.

    Parameters
    ----------
    device : str
        "cuda", "cuda:1", ... or "cpu".
    """
    found: dict[str, Any] = {
        "device": {"name": f"CPU rehearsal {platform.machine()}"},
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in _PACKAGES},
            "CUDA": torch.version.cuda,
            "driver": _driver(),
        },
        "processor cores": os.cpu_count(),
        "TRITON_INTERPRET": os.environ.get("TRITON_INTERPRET"),
        "usable": True,
    }
    if torch.device(device).type == "cuda":
        found["usable"] = torch.cuda.is_available()
        if found["usable"]:
            card = torch.cuda.get_device_properties(torch.device(device))
            found["device"] = {
                "name": card.name,
                "memory, bytes": card.total_memory,
                "multiprocessors": card.multi_processor_count,
                "compute capability": f"{card.major}.{card.minor}",
            }
    return found


def name_the_source_tree() -> None:
    """Let `importlib.metadata` know bootprob's version where it is not installed but on the path.

    On a lent machine only the tree is there; every fitted model writes down the version.
    """
    if _version("bootprob") is not None:
        return
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    folder = Path(tempfile.mkdtemp(prefix="bootprob-metadata-"))
    info = folder / f"bootprob-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: bootprob\nVersion: {project['version']}\n", encoding="utf-8"
    )
    sys.path.append(str(folder))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _driver() -> str | None:
    """Version of the NVIDIA driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.split()
    return lines[0] if done.returncode == 0 and lines else None
