"""What the worker finds around it: packages that were carried along, compiled kernels."""

from __future__ import annotations

import os
import platform
import sys
import tarfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gpu.check.kernel_cache import unpack_kernels
from gpu.check.plan import ROOT

__all__ = ["CARRIED", "KERNELS", "environment", "fits_here", "installed"]

CARRIED = ROOT / "build" / "gpu-wheels"
"""Archives of `make gpu-wheels`: ``<package>-<version>-<tag>.tar.xz``."""

KERNELS = "kernels-sm"
"""Beginning of the name of an archive of compiled kernels there."""

_CACHE = ROOT / "build" / "gpu-kernels"


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
        Variables of the environment. Kernels that Triton compiles are kept in build/gpu-kernels
        unless TRITON_CACHE_DIR says otherwise; those that were carried join them.
    dict
        What became of each archive, by the package's name: "1.2.3", used; or why it is not.
    """
    variables = {**os.environ}
    cache = Path(variables.setdefault("TRITON_CACHE_DIR", str(_CACHE)))
    said, folders = {}, []
    for archive in sorted(carried.glob("*.tar.xz")):
        if archive.name.startswith(KERNELS):
            new = unpack_kernels(archive, cache)
            said[archive.name.removesuffix(".tar.xz")] = f"{new} kernels put into Triton's cache"
            continue
        name, number, tag = archive.name.removesuffix(".tar.xz").split("-")
        here = installed(name)
        if here is not None:
            said[name] = f"not used: {here} is installed"
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


def installed(package: str) -> str | None:
    """Version of a package; None where it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
