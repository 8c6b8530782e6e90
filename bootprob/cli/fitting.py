"""Options of fitting: each is declared once, with the parameter of `BootstrapSVC` that it sets.

An option that was not given is None, so that `BootstrapSVC` alone knows its defaults; the help
only repeats them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bootprob.calibration.names import CALIBRATIONS
from bootprob.cli.control import (
    OF_TWO_CLASSES,
    BoundName,
    Confidence,
    ControlName,
    LeastDecided,
    LeastNpv,
    LeastOfClasses,
    LeastPpv,
    LeastTnr,
    LeastTpr,
    control_parameters,
)
from bootprob.cli.options import Device

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC

__all__ = ["DemoOptions", "FittingOptions", "Kernel"]

_LARGEST_SEED = 2**32 - 1  # of scikit-learn


class Kernel(StrEnum):
    """Kernels on offer."""

    auto = "auto"
    linear = "linear"
    rbf = "rbf"
    laplacian = "laplacian"
    poly = "poly"


class Effort(StrEnum):
    """How much time the kernel auto may take."""

    low = "low"
    normal = "normal"
    high = "high"


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


def _parse_gamma(text: str) -> str | list[float]:
    if text in ("scale", "median", "grid"):
        return text
    if values := _positive_numbers(text):
        return values
    raise typer.BadParameter(
        f"{text!r} is neither scale nor median nor positive numbers such as 0.1 or 0.01,0.1,1, "
        "nor grid."
    )


def _parse_c(text: str) -> list[float]:
    if values := _positive_numbers(text):
        return values
    raise typer.BadParameter(f"{text!r} is no list of positive numbers such as 0.01,0.1,1.")


def _positive_numbers(text: str) -> list[float]:
    """Those in a text with commas; none if it holds anything else."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        return []
    return values if all(0 < value < float("inf") for value in values) else []


def _check_finite(value: float | None) -> float | None:
    if value is not None and math.isinf(value):
        raise typer.BadParameter(f"{value} is too large.")
    return value


def _of_fit(parameter: str | None = None, *others: str, report: bool = True) -> dict[str, Any]:
    """Metadata of an option of ``fit``, of other commands by name, and of ``report``.

    The parameter of `BootstrapSVC`, if there is one, is set to what is given.
    """
    return {"commands": ("fit", *(["report"] if report else []), *others), "parameter": parameter}


@dataclass(frozen=True, kw_only=True)
class FittingOptions:
    """What was asked of a fit: to add an option, add a field."""

    kernel: Annotated[
        Kernel | None,
        typer.Option(
            help="What suits the table best (auto, the default), or straight (linear) or curved "
            "(rbf, laplacian, poly) boundaries."
        ),
    ] = field(default=None, metadata=_of_fit("kernel"))
    effort: Annotated[
        Effort | None,
        typer.Option(
            help="Of the kernel auto: how many kernels and values of C are tried and trained. "
            "Default: normal."
        ),
    ] = field(default=None, metadata=_of_fit("effort"))
    n_bootstraps: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="B",
            help="Bootstrap samples; each trains an SVM for every C. Default: 500. The kernel auto "
            "takes fewer of more than 1,000 rows, and beyond 3,000 rows up to 20, 50 or 200, by "
            "--effort.",
        ),
    ] = field(default=None, metadata=_of_fit("n_bootstraps", "demo"))
    c: Annotated[
        str | None,
        typer.Option(
            "--C",
            metavar="NUMBERS",
            help="Values of C, with commas; what does better out of bag weighs more. Default: "
            "eleven from 1/32 to 32, every second of them for the kernel auto.",
        ),
    ] = field(default=None, metadata=_of_fit("C"))
    gamma: Annotated[
        str | None,
        typer.Option(
            metavar="GAMMA",
            help="Width of the rbf or laplacian kernel: scale (the default), median, a number, "
            "several numbers with commas, or grid for eleven around median. Of poly: scale or "
            "numbers.",
        ),
    ] = field(default=None, metadata=_of_fit("gamma"))
    degree: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Of the poly kernel. Default: 3."),
    ] = field(default=None, metadata=_of_fit("degree"))
    coef0: Annotated[
        float | None,
        typer.Option(
            "--coef0",
            min=0,
            callback=_check_finite,
            metavar="NUMBER",
            help="Of the poly kernel: above 0, lower degrees count too. Default: 0.",
        ),
    ] = field(default=None, metadata=_of_fit("coef0"))
    feature_map: Annotated[
        FeatureMap | None,
        typer.Option(
            help="Approximate the rbf kernel, for more than 20,000 rows; how far it is off is "
            "shown."
        ),
    ] = field(default=None, metadata=_of_fit("feature_map"))
    n_components: Annotated[
        int | None,
        typer.Option(
            "--n-components",
            min=1,
            metavar="D",
            help="Columns of the feature map: more are closer to the kernel, and slower. "
            "Default: 500.",
        ),
    ] = field(default=None, metadata=_of_fit("n_components"))
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=_LARGEST_SEED,
            metavar="N",
            help="Same seed, same result. Default: new each time.",
        ),
    ] = field(default=None, metadata=_of_fit("random_state", "demo"))
    device: Device = field(default=None, metadata=_of_fit("device", "demo"))
    calibration: Annotated[
        Calibration | None,
        typer.Option(
            help="How scores become probabilities. Default: sigmoid; none leaves the share of "
            "votes."
        ),
    ] = field(default=None, metadata=_of_fit("calibration", report=False))
    paper: Annotated[
        bool,
        typer.Option(
            "--paper",
            help="The thesis's configuration: its grid of C, share of votes, no class weights.",
        ),
    ] = field(default=False, metadata=_of_fit(report=False))
    tpr: LeastTpr = field(default=None, metadata=_of_fit())
    tnr: LeastTnr = field(default=None, metadata=_of_fit())
    ppv: LeastPpv = field(default=None, metadata=_of_fit())
    npv: LeastNpv = field(default=None, metadata=_of_fit())
    decided: LeastDecided = field(default=None, metadata=_of_fit())
    rate: LeastOfClasses = field(default=None, metadata=_of_fit())
    control: ControlName = field(default=None, metadata=_of_fit())
    confidence: Confidence = field(default=None, metadata=_of_fit())
    bound: BoundName = field(default=None, metadata=_of_fit())
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Train nothing where the table looks like a mistake, such as a column that alone "
            "gives the target; fail, too, where most weight lies at an end of the grid or later "
            "rows are worse.",
        ),
    ] = field(default=False, metadata=_of_fit())
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Processes, or GPUs, that train at the same time; -1 for all. Default: 1, which "
            "uses all cores already.",
        ),
    ] = field(default=None, metadata=_of_fit("n_jobs", report=False))
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="FOLDER",
            help="Keep what is trained in this folder: the same command, started again after it "
            "was stopped, goes on from there. Delete the folder when the model is saved.",
        ),
    ] = field(default=None, metadata=_of_fit("checkpoint", report=False))

    def estimator(self) -> BootstrapSVC:
        """Build an unfitted ensemble, which shows its progress.

        Raises
        ------
        typer.BadParameter
            `gamma` cannot be understood, the kernel has no such option, `feature_map` is given for
            several `gamma`, `n_components` without `feature_map`, `calibration` contradicts
            `paper`, options of control lack what they belong to, `jobs` is 0, or there is no such
            `device`.
        """
        steering = self._steering()
        params = {
            each.metadata["parameter"]: _as_parameter(each.name, getattr(self, each.name))
            for each in fields(self)
            if each.metadata["parameter"] and getattr(self, each.name) is not None
        }
        params |= steering
        if self.calibration == "none":
            del params["calibration"]
            if not self.paper:  # which is made of votes as it is, with the thesis's own interval
                # The default interval describes calibrated probabilities; this one describes votes.
                params |= {"calibration": None, "interval": "wilson"}

        from bootprob.ensemble.estimator import BootstrapSVC
        from bootprob_gpu import InputError, resolve_device

        try:
            resolve_device(self.device or "auto")
        except InputError as error:
            raise typer.BadParameter(str(error)) from None
        make = BootstrapSVC.paper if self.paper else BootstrapSVC
        return make(**params, verbose=1)

    def _steering(self) -> dict[str, Any]:
        """Parameters of control, once no option contradicts another."""
        if self.jobs == 0:
            raise typer.BadParameter("--jobs 0 would train nothing; give 1 or more, or -1 for all.")
        self._check_kernel()
        if self.paper and self.calibration not in (None, "none"):
            raise typer.BadParameter(
                f"--paper and --calibration {self.calibration} contradict each other: the thesis "
                "does not calibrate, its probability is the share of votes. Leave one of the two "
                "out."
            )
        steering = control_parameters(
            self.control,
            {name: getattr(self, name) for name in OF_TWO_CLASSES},
            self.confidence,
            self.bound,
            self.rate,
        )
        movable = (None, "sigmoid", "auto", "none")
        if steering and self.calibration not in movable:
            raise typer.BadParameter(
                f"--calibration {self.calibration} lets several scores share a probability, and no "
                "threshold on it need keep a rate; use sigmoid, or none to control votes."
            )
        return steering

    def _check_kernel(self) -> None:
        """Refuse options that the kernel does not have."""
        gamma = self.gamma
        kernel = self.kernel or (Kernel.linear if self.paper else Kernel.auto)
        if self.effort is not None and kernel is not Kernel.auto:
            raise typer.BadParameter(
                "--effort needs --kernel auto: no other tries several kernels."
            )
        if gamma is not None and kernel is Kernel.auto:
            raise typer.BadParameter(
                "--gamma needs --kernel rbf, laplacian or poly; without one the table chooses both."
            )
        if gamma is not None and kernel is Kernel.linear:
            raise typer.BadParameter(
                "--gamma needs --kernel rbf, laplacian or poly; the linear kernel has no width."
            )
        if gamma in ("median", "grid") and kernel is Kernel.poly:
            raise typer.BadParameter(
                f"--gamma {gamma} goes by distances, as --kernel rbf does; give scale or numbers."
            )
        for option, given in (("--degree", self.degree), ("--coef0", self.coef0)):
            if given is not None and kernel is not Kernel.poly:
                raise typer.BadParameter(f"{option} needs --kernel poly.")
        if self.feature_map is not None and kernel is not Kernel.rbf:
            raise typer.BadParameter(
                "--feature-map needs --kernel rbf, which is what it approximates."
            )
        if self.feature_map is not None and gamma is not None and (gamma == "grid" or "," in gamma):
            raise typer.BadParameter("--feature-map takes one --gamma, not a grid.")
        if self.n_components is not None and self.feature_map is None:
            raise typer.BadParameter("--n-components needs --feature-map.")


@dataclass(frozen=True, kw_only=True)
class DemoOptions(FittingOptions):
    """Options of ``demo``, which gives the same result each time."""

    seed: Annotated[
        int, typer.Option(min=0, max=_LARGEST_SEED, metavar="N", help="Same seed, same result.")
    ] = field(default=0, metadata=_of_fit("random_state", "demo"))


def _as_parameter(name: str, value: Any) -> Any:
    """What `BootstrapSVC` takes for an option."""
    if name == "gamma":
        return _parse_gamma(value)
    if name == "c":
        return _parse_c(value)
    if isinstance(value, StrEnum):
        return value.value
    return str(value) if isinstance(value, Path) else value
