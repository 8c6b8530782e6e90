"""Options that commands share, and the ensemble that they describe.

An option that was not given is None, so that `BootstrapSVC` alone knows its defaults; the help
only repeats them.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bootprob.calibration.names import CALIBRATIONS
from bootprob.cli.control import Bound, Control, control_parameters

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC

__all__ = [
    "AllClasses",
    "Bootstraps",
    "CalibrationName",
    "CheckpointFolder",
    "CsvSafe",
    "Device",
    "FeatureMapName",
    "Gamma",
    "Jobs",
    "KernelName",
    "Level",
    "MapColumns",
    "Paper",
    "Positive",
    "Report",
    "Seed",
    "Sets",
    "build_estimator",
]


class Kernel(StrEnum):
    """Kernels on offer."""

    linear = "linear"
    rbf = "rbf"


class FeatureMap(StrEnum):
    """Approximations of the RBF kernel on offer."""

    nystroem = "nystroem"
    random_features = "random-features"


if TYPE_CHECKING:
    Calibration = str
else:
    Calibration = StrEnum(
        "Calibration", [(name.replace("-", "_"), name) for name in (*CALIBRATIONS, "none")]
    )


def _parse_gamma(text: str | None) -> str | list[float] | None:
    if text in (None, "scale", "median", "grid"):
        return text
    try:
        values = [float(part) for part in str(text).split(",")]
    except ValueError:
        values = []
    if not values or not all(0 < value < float("inf") for value in values):
        raise typer.BadParameter(
            f"{text!r} is neither scale nor median nor positive numbers such as 0.1 or 0.01,0.1,1, "
            "nor grid."
        )
    return values


def _check_level(value: float) -> float:
    if not 0 < value < 1:
        raise typer.BadParameter(f"{value} does not lie between 0 and 1; 0.95 is usual.")
    return value


def _check_sets(value: float | None) -> float | None:
    return None if value is None else _check_level(value)


Positive = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE",
        help="The target's value whose probability is wanted; all others are the negative class. "
        "Without it: of two values the larger in order; of more, all but the most frequent.",
    ),
]
AllClasses = Annotated[
    bool,
    typer.Option(
        "--all-classes",
        help="Of a target with more than two values each is a class of its own, with its own "
        "probability. Without it there are always two classes, see --positive.",
    ),
]
KernelName = Annotated[
    Kernel | None,
    typer.Option(help="Straight (linear, the default) or curved (rbf) boundaries."),
]
Bootstraps = Annotated[
    int | None,
    typer.Option(
        min=2, metavar="B", help="Bootstrap samples; each trains an SVM for every C. Default: 500."
    ),
]
Gamma = Annotated[
    str | None,
    typer.Option(
        metavar="GAMMA",
        help="Width of the rbf kernel: scale (the default), median, a number, several numbers "
        "with commas, or grid for eleven around median.",
    ),
]
FeatureMapName = Annotated[
    FeatureMap | None,
    typer.Option(
        help="Approximate the rbf kernel, for more than 20,000 rows; how far it is off is shown."
    ),
]
MapColumns = Annotated[
    int | None,
    typer.Option(
        "--n-components",
        min=1,
        metavar="D",
        help="Columns of the feature map: more are closer to the kernel, and slower. Default: 500.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Same seed, same result. Default: new each time."),
]
Device = Annotated[
    str | None,
    typer.Option(metavar="DEVICE", help="cpu, cuda, or auto (the default): a GPU if there is one."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Processes, or GPUs, that train at the same time; -1 for all. Default: 1, which uses "
        "all cores already.",
    ),
]
CheckpointFolder = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FOLDER",
        help="Keep what is trained in this folder: the same command, started again after it was "
        "stopped, goes on from there. Delete the folder when the model is saved.",
    ),
]
CalibrationName = Annotated[
    Calibration | None,
    typer.Option(
        help="How scores become probabilities. Default: sigmoid; none leaves the share of votes.",
    ),
]
Paper = Annotated[
    bool,
    typer.Option(
        "--paper",
        help="The thesis's configuration: its grid of C, share of votes, no class weights.",
    ),
]
Level = Annotated[
    float,
    typer.Option(callback=_check_level, metavar="LEVEL", help="Nominal level of the intervals."),
]
Sets = Annotated[
    float | None,
    typer.Option(
        callback=_check_sets,
        metavar="LEVEL",
        help="Also write the set of classes that cannot be excluded at this confidence.",
    ),
]
CsvSafe = Annotated[
    bool,
    typer.Option(
        "--csv-safe",
        help="In a CSV file, put ' before text that a spreadsheet program would run (=, +, -, @).",
    ),
]
Report = Annotated[
    Path, typer.Option("--output", "-o", metavar="HTML", help="The report to write.")
]


def build_estimator(
    *,
    kernel: Kernel | None = None,
    n_bootstraps: int | None = None,
    gamma: str | None = None,
    feature_map: FeatureMap | None = None,
    n_components: int | None = None,
    seed: int | None = None,
    device: str | None = None,
    calibration: Calibration | None = None,
    paper: bool = False,
    control: Control | None = None,
    tpr: float | None = None,
    tnr: float | None = None,
    confidence: float | None = None,
    bound: Bound | None = None,
    jobs: int | None = None,
    checkpoint: Path | None = None,
) -> BootstrapSVC:
    """Build an unfitted ensemble, which shows its progress, from the options given.

    Raises
    ------
    typer.BadParameter
        `gamma` cannot be understood or is given for the linear kernel, `feature_map` is given for
        the linear kernel or several `gamma`, `n_components` without `feature_map`, `calibration`
        contradicts `paper`, options of control lack what they belong to, `jobs` is 0, or there is
        no such `device`.
    """
    if jobs == 0:
        raise typer.BadParameter("--jobs 0 would train nothing; give 1 or more, or -1 for all.")
    if gamma is not None and kernel is not Kernel.rbf:
        raise typer.BadParameter("--gamma needs --kernel rbf; the linear kernel has no width.")
    if feature_map is not None and kernel is not Kernel.rbf:
        raise typer.BadParameter("--feature-map needs --kernel rbf, which is what it approximates.")
    if feature_map is not None and gamma is not None and (gamma == "grid" or "," in gamma):
        raise typer.BadParameter("--feature-map takes one --gamma, not a grid.")
    if n_components is not None and feature_map is None:
        raise typer.BadParameter("--n-components needs --feature-map.")
    if paper and calibration not in (None, "none"):
        raise typer.BadParameter(
            f"--paper and --calibration {calibration} contradict each other: the thesis does not "
            "calibrate, its probability is the share of votes. Leave one of the two out."
        )
    steering = control_parameters(control, tpr, tnr, confidence, bound)
    movable = (None, "sigmoid", "auto", "none")
    if steering and calibration not in movable:
        raise typer.BadParameter(
            f"--calibration {calibration} lets several scores share a probability, and no "
            "threshold on it need keep a rate; use sigmoid, or none to control votes."
        )
    votes = calibration == "none"
    given: dict[str, Any] = {
        "kernel": kernel and kernel.value,
        "n_bootstraps": n_bootstraps,
        "gamma": _parse_gamma(gamma),
        "feature_map": feature_map and feature_map.value,
        "n_components": n_components,
        "random_state": seed,
        "device": device,
        "n_jobs": jobs,
        "checkpoint": checkpoint and str(checkpoint),
        "calibration": None if votes else calibration and str(calibration),
    }
    params = {name: value for name, value in given.items() if value is not None} | steering
    if votes and not paper:  # which is made of votes as it is, with the thesis's own interval
        # The default interval describes calibrated probabilities; this one describes votes.
        params |= {"calibration": None, "interval": "wilson"}

    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob_gpu import InputError, resolve_device

    try:
        resolve_device(device or "auto")
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    make = BootstrapSVC.paper if paper else BootstrapSVC
    return make(**params, verbose=1)
