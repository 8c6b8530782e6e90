"""What the worker finds around it: packages that were carried along, compiled kernels."""

from __future__ import annotations

import os
import platform
import sys
import tarfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from plan import ROOT

__all__ = ["CARRIED", "environment", "fits_here"]

CARRIED = ROOT / "build" / "gpu-wheels"
"""Archives of `make gpu-wheels`: ``<package>-<version>-<tag>.tar.xz``."""

_KERNELS = ROOT / "build" / "gpu-kernels"


def environment(unpacked: Path, carried: Path = CARRIED) -> tuple[dict[str, str], dict[str, str]]:
    """Variables for the worker, and the packages that were carried and are used.

    Parameters
    ----------
    unpacked : Path
        An empty folder for the packages.
    carried : Path
        The folder of the archives; it need not exist.

    Returns
    -------
    dict
        Variables of the environment. Compiled Triton kernels are kept in build/gpu-kernels, which
        can be carried too, unless TRITON_CACHE_DIR says otherwise.
    dict
        What became of each archive, by the package's name: "1.2.3", used; or why it is not.
    """
    variables = {**os.environ}
    variables.setdefault("TRITON_CACHE_DIR", str(_KERNELS))
    said, folders = {}, []
    for archive in sorted(carried.glob("*.tar.xz")):
        name, number, tag = archive.name.removesuffix(".tar.xz").split("-")
        installed = _installed(name)
        if installed is not None:
            said[name] = f"not used: {installed} is installed"
        elif not fits_here(tag):
            said[name] = f"not used: made for {tag}"
        else:
            said[name] = number
            folders.append(unpacked / name)
            with tarfile.open(archive) as file:
                file.extractall(folders[-1], filter="data")
    path = [*map(str, (*folders, ROOT, ROOT / "gpu")), variables.get("PYTHONPATH", "")]
    variables["PYTHONPATH"] = os.pathsep.join(each for each in path if each)
    return variables, said


def fits_here(tag: str) -> bool:
    """Whether an archive is for this interpreter: "any", or such as "cp312_linux_x86_64"."""
    here = f"cp{sys.version_info[0]}{sys.version_info[1]}_{sys.platform}_{platform.machine()}"
    return tag in ("any", here)


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
