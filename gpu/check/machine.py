"""What the check runs on, and with which versions."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from typing import Any

import torch

from bootprob import __version__
from gpu.check.surroundings import installed

__all__ = ["facts"]

_PACKAGES = (
    "torch", "triton", "numpy", "scipy", "scikit-learn", "numba", "cvxpy", "pytest",
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
            "bootprob": __version__,
            **{name: installed(name) for name in _PACKAGES},
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
