"""The composite posterior of true logits from rows and labels: over scales, kernels, functions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob.ensemble.uncertainty.composite_columns import Found
from bootprob.ensemble.uncertainty.composite_model import Kernel, Model
from bootprob.ensemble.uncertainty.composite_posterior import CompositePosterior, stored_curves
from bootprob.ensemble.uncertainty.composite_search import again, outline, search, some
from bootprob.ensemble.uncertainty.composite_stage import Stage
from bootprob.ensemble.uncertainty.curves import Landmarks, candidates
from bootprob.ensemble.uncertainty.expectation_propagation import warn_of_rough_intervals
from bootprob.ensemble.uncertainty.few_that_count import leave_out
from bootprob.ensemble.uncertainty.groups_left_out import without_groups
from bootprob.ensemble.uncertainty.labelled_rows import EXAMINED_ROWS, LabelledRows
from bootprob.ensemble.uncertainty.link_tails import Tails, bent_moments
from bootprob.ensemble.uncertainty.steep_logits import of_other_rates
from bootprob.ensemble.uncertainty.steepness import Steepness
from bootprob.ensemble.uncertainty.straight import straight_columns
from bootprob.preparation.labels import spaced_over_classes
from bootprob.preparation.large_tables import is_large
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups
from bootprob_gpu.hardware.threads import few_threads
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["fit_composite_posterior"]

_LANDMARKS, _OF_LARGE = 256, 512
_LEAST_WEIGHT = 0.02
_TEMPERED, _OF_KINDS = 0.75, 0.5  # powers of evidence, of settings and of what they have in common
_ROWS_OF_A_THREAD = 1000  # of operations that come one after another
_ROWS_OF_A_WORKER = 375  # fewer, and threads wait for the interpreter's lock more than they work


@torch.inference_mode()  # quicker, where tensors are small
def fit_composite_posterior(
    rows: Floats,
    positive: NDArray[np.bool_],
    weight: Floats,
    kernels: ViewKernels,
    device: torch.device,
    groups: Groups | None = None,
    few_columns: ViewKernels | None = None,
) -> tuple[CompositePosterior, Floats]:
    """Fit the posterior of the logits, and leave each training row out of it in turn.

    The model is that of `CompositePosterior`, and curves are those of the grid besides additive and
    quadratic ones and products (`bootprob.ensemble.uncertainty.curves`). Posterior and evidence for
    given scales and kernel are those of `bootprob.ensemble.uncertainty.expectation_propagation`;
    the curve is known on up to 256 landmarks, and the part of its prior variance that they do not
    reach is a row's own. No curve has a prior probability of 1 in 2; of curves, those in all
    columns have a third, all kernels the same, and each doubling of a σ has that of ``e^-½``. The
    rest is for sums of curves in few columns each (`Model.log_odds`): one more with probability ½,
    and of sets of so many columns all the same (J. Scott, J. Berger, Ann. Stat. 38 (2010)
    2587–2619, section 3). `bootprob.ensemble.uncertainty.additions` finds them, and what may be
    there besides. Of the straight columns few may count (`few_that_count`): that has half of the
    prior probability. Without a curve three fifths are for one linear part alone, a fifth for both
    of one scale. The logit has 30 % of links, and where any of them level off, all that do have a
    twentieth of what the others have; σ are told in logits of the base rate (`Model.unit`).
    Settings with less than a thousandth of the evidence are left out, others count by powers of it
    (`_weights`).

    What labels say as Gaussian factors under the best setting so far ranks all others, for which
    one Cholesky factor each is enough; those that may count get factors of their own. Of more than
    1,000 rows, that many tell which kernels are possible, then 10,000, and all rows which of those
    count. Linear parts have steps in relevant columns, where views have any; of more than 3,000
    rows the curve has 512 landmarks after the first stage, fewer settings get factors of their own
    (`outline` and `some` of `composite_search`), and of all rows those alone that were possible
    before.

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        Standardised.
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        Row weights, positive, of mean 1 or less; of groups less, by their design effects.
    kernels : ViewKernels
        Candidates of the curved part; linear ones among them say nothing new and are left out.
    device : torch.device
    groups : ndarray of int, shape (n,), optional
        Of rows that are left out together.
    few_columns : ViewKernels, optional
        Candidates of curves in few columns; default `kernels`.

    Returns
    -------
    posterior : CompositePosterior
    left_out : ndarray, shape (n, g, 2)
        Mean and standard deviation of the logit of each training row under each part, its own
        label, or those of its group, left out.

    Warns
    -----
    ConvergenceWarning
        Factors settle under no setting that counts.
    """
    # The posterior is part of the model and must not depend on its seed, nor, as stages and
    # landmarks are some of them, on the order of rows.
    rng = np.random.default_rng(0)
    order = np.lexsort((weight, positive, *rows.T))[rng.permutation(len(rows))]
    rows, positive, weight = rows[order], positive[order], weight[order]
    groups = None if groups is None else groups[order]
    every = LabelledRows.of(rows, positive, weight, device)
    stages = [spaced_over_classes(positive, size) for size in EXAMINED_ROWS if size < len(rows)]
    first = stages[0] if stages else np.arange(len(rows))
    kernels = kernels.to(device)
    views = kernels.of_columns

    def landmarks_of(which: NDArray[np.intp], size: int) -> Landmarks:
        drawn = which[np.sort(rng.permutation(len(which))[:size])]
        return Landmarks(every.rows[torch.from_numpy(drawn).to(device)], views)

    large = is_large(len(rows))
    with few_threads(max(1, len(rows) // _ROWS_OF_A_THREAD)) as cores:
        n_threads = max(1, min(cores, len(rows) // _ROWS_OF_A_WORKER))
        landmarks = landmarks_of(first, _LANDMARKS)
        straight = straight_columns(every, views)
        few = None if few_columns is None else candidates(few_columns.to(device), landmarks)
        curved = candidates(kernels, landmarks)
        model = Model(landmarks, straight, curved, few, len(rows), every.base)
        stage = Stage(every.part(first) if stages else every, model, n_threads)
        possible, near = outline(stage) if large else search(stage)
        if large and stages:
            model = replace(model, landmarks=landmarks_of(np.arange(len(rows)), _OF_LARGE))
        for data in (*(every.part(stage) for stage in stages[1:]), every)[: len(stages)]:
            stage = Stage(data, model, 1 if large else n_threads)
            if large:
                near = near if len(data.rows) <= EXAMINED_ROWS[-1] else []
                possible, near = some(stage, possible, near)
            else:
                possible, near = again(stage, possible, near)
        of_other_rates(stage)
        leave_out(stage)
        possible = stage.likely()
        if not possible[0].found.settled:
            warn_of_rough_intervals(stacklevel=2)
        posterior, left_out = _mixture(possible, stage, groups)
    return posterior, left_out[np.argsort(order)]


def _mixture(
    posteriors: list[Found], stage: Stage, groups: Groups | None
) -> tuple[CompositePosterior, Floats]:
    """All of them together, for new rows and for the training rows left out in turn.

    Those of one kernel and link, which differ in σ alone, become one part of their moments. Parts
    of 2 % or more of the weight are kept: each costs whoever asks about rows.
    """
    weight = _weights(posteriors)
    alike: dict[tuple[Kernel, Tails, Steepness], list[int]] = {}
    for number, each in enumerate(posteriors):
        key = each.setting.curves, each.setting.tails, each.setting.steepness
        alike.setdefault(key, []).append(number)
    of_parts = {key: weight[members].sum() for key, members in alike.items()}
    order = sorted(alike, key=lambda key: -of_parts[key])
    least = min(_LEAST_WEIGHT, of_parts[order[0]])
    alike = {key: alike[key] for key in order if of_parts[key] >= least}
    kept = [posteriors[number] for members in alike.values() for number in members]
    share_of = np.array([of_parts[key] for key in alike])
    size = sum(kept[0].columns.widths[:3])
    size += max(sum(len(basis) for basis in each.columns.bases) for each in kept)
    most = max(1, *(len(curves) for curves, _, _ in alike))
    coefficients, quadratic, variances, left_out = [], [], [], []
    for (_, link, _), members in alike.items():
        group, share = [posteriors[number] for number in members], weight[members]
        share /= share.sum()
        of_group = share @ [each.columns.unreached_variances(each.setting) for each in group]
        variances.append(np.pad(of_group, (0, most + 2 - len(of_group))))
        mean, form = _together(group, share, size)
        coefficients.append(mean)
        quadratic.append(form)
        steepness = stage.steepness(group[0].setting)
        left_out.append(_left_out(group, share, link, steepness, groups))
    landmarks, straight = stage.model.landmarks.rows, stage.model.straight
    parts = (*straight.directions, straight.stepped, straight.thresholds)
    arrays = [None if each is None else each.cpu().numpy() for each in parts]
    kernels = [kernel for kernel, _, _ in alike]
    tails, levels = np.split(np.array([link for _, link, _ in alike]), 2, axis=1)
    every = zip(*(steepness for _, _, steepness in alike), strict=True)
    columns, rates, shapes = (np.array(each) for each in every)
    posterior = CompositePosterior(
        weight=share_of / share_of.sum(),
        **stored_curves(kernels, landmarks.shape[1], most),
        deviation=np.sqrt(variances),
        tails=tails,
        coefficients=torch.stack(coefficients).cpu().numpy(),
        quadratic=torch.stack(quadratic).cpu().numpy(),
        landmarks=landmarks[: None if any(kernels) else 1].cpu().numpy(),
        scored=straight.scored.cpu().numpy(),
        column_directions=arrays[0],
        score_directions=arrays[1],
        stepped=arrays[2],
        thresholds=arrays[3],
        levels=levels if levels.any() else None,
        steep=columns if rates.any() else None,
        rates=rates if rates.any() else None,
        shapes=shapes if rates.any() else None,
    )
    return posterior, np.ascontiguousarray(torch.stack(left_out, dim=1).cpu().numpy())


def _weights(posteriors: list[Found]) -> Floats:
    """Shares of a mixture: by evidence to the power ¾, of links and of few columns by its root.

    That is prior probability and all, of settings that were kept by all of their evidence.
    Where no setting is quite true, evidence is too sure which of them is the best (P. Grünwald,
    T. van Ommen, Bayesian Anal. 12 (2017) 1069–1103), few labels lie where links differ, and of
    columns none may count for nothing, nor all for as much.
    """
    evidence = _TEMPERED * np.array([each.evidence for each in posteriors])
    settings = [each.setting for each in posteriors]
    links, few = [each.tails for each in settings], [each.inclusion < 1 for each in settings]
    for kinds in (links, few):
        _, kind = np.unique(kinds, axis=0, return_inverse=True)
        for alike in np.eye(kind.max() + 1, dtype=bool)[:, kind.ravel()]:
            evidence[alike] -= (1 - _OF_KINDS) * np.logaddexp.reduce(evidence[alike])
    weight = np.exp(evidence - evidence.max())
    return np.asarray(weight / weight.sum())


def _together(group: list[Found], share: Floats, size: int) -> tuple[Tensor, Tensor]:
    """The c and S of a mixture of one kernel and link: its mean and variance of logits."""
    coefficients, forms = zip(*(_on_landmarks(each, size) for each in group), strict=True)
    means = torch.stack(coefficients)
    shares = torch.from_numpy(share).to(means)
    mean = shares @ means
    apart = means - mean
    form = torch.tensordot(shares, torch.stack(forms), dims=1)
    return mean, form + apart.T @ (shares[:, None] * apart)


def _left_out(
    group: list[Found],
    share: Floats,
    tails: Tails,
    steepness: Tensor | None,
    groups: Groups | None,
) -> Tensor:
    """Mean and standard deviation of it for the training rows left out in turn, (n, 2)."""
    moments = (_left_out_of(each, groups) for each in group)
    means, variances = map(torch.stack, zip(*moments, strict=True))
    shares = torch.from_numpy(share).to(means)
    mean = shares @ means
    variance = shares @ (variances + (means - mean).square())
    factor = 1.0 if steepness is None else steepness
    return bent_moments(factor * mean, factor * variance.sqrt(), tails)


def _left_out_of(posterior: Found, groups: Groups | None) -> tuple[Tensor, Tensor]:
    """Mean and variance of each row's logit without its label, or those of its group."""
    found, columns = posterior.found, posterior.columns
    if groups is None:
        return found.left_out_mean, found.left_out_variance
    which, _ = columns.of(posterior.setting)
    noise = columns.missing(posterior.setting)
    return without_groups(columns.blocks(which), found, noise, groups)


def _on_landmarks(posterior: Found, size: int) -> tuple[Tensor, Tensor]:
    """The c and S of `CompositePosterior`, with zeros up to this size."""
    columns, found = posterior.columns, posterior.found
    straight = sum(columns.widths[:3])
    which, _ = columns.of(posterior.setting)
    to = torch.eye(straight, dtype=torch.float64, device=which.device)
    to = torch.block_diag(to, *columns.bases)
    coefficients = found.mean.new_zeros(size)
    quadratic = found.mean.new_zeros(size, size)
    end, own = len(to), to[:, which]
    coefficients[:end] = own @ found.mean
    quadratic[:end, :end] = own @ found.covariance @ own.T
    quadratic[:end, :end] += to * columns.untold(posterior.setting) @ to.T
    of_curves = columns.unreached_variances(posterior.setting)[2:]
    reached = [s * basis @ basis.T for s, basis in zip(of_curves, columns.bases, strict=True)]
    if reached:
        quadratic[straight:end, straight:end] -= torch.block_diag(*reached)
    return coefficients, quadratic
