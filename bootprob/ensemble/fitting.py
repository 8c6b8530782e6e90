"""From a table and the parameters of a `BootstrapSVC` to its fitted attributes."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bootprob.ensemble.control.control import controlled_rates
from bootprob.ensemble.control.thresholds import LeftOut, needed_shares
from bootprob.ensemble.description import describe
from bootprob.ensemble.training.checkpoints import Checkpoint
from bootprob.ensemble.training.out_of_bag_sums import train_ensemble
from bootprob.ensemble.training.schedule import all_results
from bootprob.ensemble.training.shards import Draws, Recipe, ShardResult, Work
from bootprob.exceptions import DataError
from bootprob.preparation.bootstrap import bootstrap_counts, draw_entropy
from bootprob.preparation.copied_rows import warn_of_copies
from bootprob.preparation.feature_map import FeatureMap, check_exact_rows, fit_feature_map
from bootprob.preparation.grids import c_grid, gamma_grid
from bootprob.preparation.labels import encode_classes, weigh_classes
from bootprob.preparation.standardization import bootstrap_scale, center_and_scale
from bootprob.runtime.arrays import Floats
from bootprob.runtime.progress import progress_bar
from bootprob.runtime.version import __version__
from bootprob_gpu import Problem, resolve_device

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC

__all__ = ["Prepared", "learn", "prepare", "trained_shards"]


def learn(svc: BootstrapSVC, X: Floats, y: NDArray[Any], weight: Floats) -> dict[str, Any]:
    """Train the ensemble, weight its models and calibrate it; of several classes, every pair's.

    Parameters
    ----------
    svc : BootstrapSVC
        Its parameters are read; nothing of it is changed.
    X : ndarray, shape (n, p)
        Training rows.
    y : ndarray, shape (n,)
        Labels.
    weight : ndarray, shape (n,)
        Row weights.

    Returns
    -------
    dict
        All attributes of the fit but the time it took.

    Raises
    ------
    ValueError
        As `BootstrapSVC.fit` says.
    """
    floors = controlled_rates(
        svc.control, svc.rates, svc.confidence, svc.bound, svc.calibration, svc.control_method
    )
    classes, codes = encode_classes(y, weight)
    if svc.control is not None and len(classes) > 2:
        raise DataError(
            f"Only binary classification is supported with control={svc.control!r}. The type of "
            f"the target is multiclass, with {len(classes)} classes; leave control out, or fit one "
            "class against the rest."
        )
    warn_of_copies(X, codes, weight)
    weight, training_weight = weigh_classes(svc.class_weight, classes, y, weight)
    checkpoint = None
    if svc.checkpoint is not None:
        preparation = f"{svc.standardize} {svc.feature_map} {svc.n_components}"
        checkpoint = Checkpoint(svc.checkpoint, X, preparation)
    if len(classes) > 2:
        from bootprob.ensemble.pairs import learn_pairs  # which needs this module

        table = prepare(svc, X, codes, weight, checkpoint)
        found = learn_pairs(svc, table, codes, weight, training_weight, checkpoint)
        return {"classes_": classes, **found}
    positive = codes == 1
    shares = needed_shares(floors, LeftOut(positive, weight))
    if svc.control_method == "exact":
        from bootprob.ensemble.training.proven import choose_solver  # needs the extra "mip"

        choose_solver()
    table = prepare(svc, X, codes, weight, checkpoint)
    problem = table.problem(svc, np.where(positive, 1.0, -1.0), table.counts, training_weight)
    recipe = Recipe(
        svc.tol,
        svc.dtype,
        svc.memory_limit,
        tuple(floors) if svc.control == "constrained" else (),
        shares,
        svc.control_method == "exact",
        svc.time_limit,
    )
    work = Work(problem, table.counts, weight[None], recipe, Draws(codes, weight, table.entropy))
    with trained_shards(svc, work, table.device, checkpoint, f"{svc.kernel} SVMs") as results:
        training = train_ensemble(results, table.counts)
    return {
        "classes_": classes,
        **table.attributes(problem),
        **describe(svc, table, training, positive, weight, floors, shares),
        "control_gap_": training.control_gap,
        "shared_draws_": None,
        "pair_ensembles_": [],
    }


@dataclass(frozen=True)
class Prepared:
    """A training table as the machines see it, and its bootstrap samples.

    Attributes
    ----------
    rows : ndarray, shape (n, p)
        Standardised; with a feature map (n, D), mapped.
    unmapped : ndarray, shape (n, p)
        Standardised rows as the kernel sees them, but for scales of each bootstrap sample.
    center, scale : ndarray, shape (p,)
        What standardised them.
    replicate_scale : ndarray, shape (B, p) or (p,)
        As `bootstrap_scale_` of `BootstrapSVC`.
    gamma : ndarray or None
        Grid of γ.
    counts : ndarray of int, shape (B, n)
        The bootstrap samples.
    redrawn : int
    entropy : list of int
        As returned by, and given to, `bootstrap_counts`.
    feature_map : FeatureMap or None
    feature_map_error : dict or None
    device : torch.device
    """

    rows: Floats
    unmapped: Floats
    center: Floats
    scale: Floats
    replicate_scale: Floats
    gamma: Floats | None
    counts: NDArray[np.unsignedinteger[Any]]
    redrawn: int
    entropy: list[int]
    feature_map: FeatureMap | None
    feature_map_error: dict[str, float] | None
    device: torch.device

    def problem(
        self,
        svc: BootstrapSVC,
        y: NDArray[Any],
        counts: NDArray[np.unsignedinteger[Any]],
        training_weight: Floats,
    ) -> Problem:
        """What to train; counts may be those of several pairs of classes, one after the other."""
        mapped, scale = self.feature_map is not None, self.replicate_scale
        if scale.ndim > 1 and len(scale) < len(counts):
            scale = np.tile(scale, (len(counts) // len(scale), 1))
        return Problem(
            self.rows,
            y,
            counts,
            c_grid(svc.C),
            kernel="linear" if mapped else svc.kernel,
            gamma=None if mapped else self.gamma,
            row_weight=training_weight,
            scale=None if mapped else scale,
        )

    def attributes(self, problem: Problem) -> dict[str, Any]:
        """Attributes of the fit that say how the table was prepared."""
        C, gamma = problem.C_per_model, self.gamma
        return {
            "center_": self.center,
            "scale_": self.scale,
            "bootstrap_scale_": self.replicate_scale,
            "entropy_": self.entropy,
            "n_redrawn_": self.redrawn,
            "C_": C,
            "gamma_": None if gamma is None else np.repeat(gamma, len(C) // len(gamma)),
            "feature_map_": None if self.feature_map is None else dict(self.feature_map.arrays),
            "feature_map_error_": self.feature_map_error,
            "device_": str(self.device),
            "versions_": {
                "python": platform.python_version(),
                "bootprob": __version__,
                **{name: version(name) for name in ("torch", "numpy", "scikit-learn")},
            },
        }


def prepare(
    svc: BootstrapSVC,
    X: Floats,
    codes: NDArray[np.intp],
    weight: Floats,
    checkpoint: Checkpoint | None = None,
) -> Prepared:
    """Standardise a table, draw its bootstrap samples, and map it where that is asked for.

    What is drawn without a `random_state` follows the seed of the checkpoint, if there is one.
    """
    device = resolve_device(svc.device)
    center, scale = center_and_scale(X, weight, getattr(svc, "feature_names_in_", None))
    rows = (X - center) / scale
    gamma = _gammas(svc, X, rows, weight, device)
    if checkpoint is None:
        random_state = check_random_state(svc.random_state)
    else:
        random_state = checkpoint.random_state(svc.random_state)
    entropy = draw_entropy(random_state)
    counts, redrawn = bootstrap_counts(codes, weight, range(svc.n_bootstraps), entropy)
    if svc.standardize == "bootstrap" and svc.feature_map is None:
        replicate_scale = bootstrap_scale(rows, counts, weight)
    else:  # dividing standardised rows by 1 / scale takes the standardisation back
        replicate_scale = 1 / scale if svc.standardize is None else np.ones_like(scale)
    unmapped = rows if replicate_scale.ndim > 1 else rows / replicate_scale
    feature_map = error = None
    if svc.feature_map is not None:
        assert gamma is not None
        # scikit-learn's kernels follow joblib's number of jobs, and their last bits with it.
        with parallel_config("sequential"):
            feature_map, error = fit_feature_map(
                svc.feature_map, unmapped[weight > 0], gamma[0], svc.n_components, random_state
            )
        rows = feature_map.transform(unmapped)
    return Prepared(
        rows=rows,
        unmapped=unmapped,
        center=center,
        scale=scale,
        replicate_scale=replicate_scale,
        gamma=gamma,
        counts=counts,
        redrawn=redrawn,
        entropy=entropy,
        feature_map=feature_map,
        feature_map_error=error,
        device=device,
    )


def _gammas(
    svc: BootstrapSVC, X: Floats, rows: Floats, weight: Floats, device: torch.device
) -> Floats | None:
    """Grid of γ, or None for the linear kernel; checks that it can be trained."""
    if svc.kernel == "linear":
        if svc.feature_map is not None:
            raise DataError(
                f"feature_map is {svc.feature_map!r}, but the linear kernel needs none; give "
                "kernel='rbf' or leave feature_map out."
            )
        return None
    gamma = gamma_grid(svc.gamma, (X if svc.standardize is None else rows)[weight > 0])
    if svc.feature_map is None:
        check_exact_rows(len(X), len(gamma), device, svc.memory_limit)
    elif not (np.isfinite(gamma) & (gamma > 0)).all():
        raise DataError(f"gamma is {gamma.tolist()}; give a positive number.")
    elif len(gamma) != 1:
        raise DataError(
            f"gamma gives {len(gamma)} values, but a feature map approximates the kernel of "
            "one; give one γ, and compare several by fitting a model for each."
        )
    return gamma


@contextmanager
def trained_shards(
    svc: BootstrapSVC,
    work: Work,
    device: torch.device,
    checkpoint: Checkpoint | None,
    description: str,
) -> Iterator[Iterator[ShardResult]]:
    """Train all shards of a fit as they are asked for, in their order, under a progress bar."""
    if checkpoint is not None:
        checkpoint.bind(work, device)
    n_replicates = work.problem.n_replicates
    with progress_bar(description, n_replicates, shown=svc.verbose > 0) as advance:
        results = all_results(
            work, device, n_jobs=svc.n_jobs, checkpoint=checkpoint, advance=advance
        )
        with closing(results):
            yield results
