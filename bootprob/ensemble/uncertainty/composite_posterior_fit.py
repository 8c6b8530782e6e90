"""The composite posterior of true logits from rows and labels: over scales, kernels, functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from bootprob.ensemble.uncertainty.composite_model import (
    CURVED,
    LOGIT,
    TAILS,
    Columns,
    Model,
    Setting,
    straight_columns,
)
from bootprob.ensemble.uncertainty.composite_posterior import CompositePosterior
from bootprob.ensemble.uncertainty.curves import FAMILIES, VIEWS, Curve, Landmarks, candidates
from bootprob.ensemble.uncertainty.expectation_propagation import (
    Approximation,
    Sites,
    attempt,
    log_mass,
    warn_of_rough_intervals,
)
from bootprob.ensemble.uncertainty.labelled_rows import EXAMINED_ROWS, LabelledRows
from bootprob.ensemble.uncertainty.link_tails import bent, bent_moments
from bootprob.preparation.labels import spaced_over_classes
from bootprob.preparation.large_tables import is_large
from bootprob.runtime.arrays import Floats
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["fit_composite_posterior"]

_LANDMARKS, _OF_LARGE = 256, 512
_MOST_CURVED = 8
_MOST_STRAIGHT = 16
_MOST_EXAMINED = 16
_LEAST_WEIGHT = 0.005
_UNSETTLED = 100.0  # what the evidence of factors that do not converge is less: the last resort
_RISE = 0.1  # of the logarithm of the evidence that is worth another look
_NEAR, _MOST_NEAR = 20.0, 10  # kernels that more rows may make possible: how far behind, how many
_MOST_NEAR_OF_LARGE = 6
_IMPOSSIBLE = 7.0  # logarithm of the evidence behind the best: 0.1 % of its weight
_WORK = 4e10  # rows × squared columns of settings that get factors of their own, of large tables
_NONE = Curve("none", "columns", 0.0)


def fit_composite_posterior(
    rows: Floats,
    positive: NDArray[np.bool_],
    weight: Floats,
    kernels: ViewKernels,
    device: torch.device,
) -> tuple[CompositePosterior, Floats]:
    """Fit the posterior of the logits, and leave each training row out of it in turn.

    The model is that of `CompositePosterior`, and curves are those of the grid besides additive and
    quadratic ones (`bootprob.ensemble.uncertainty.curves`). Posterior and evidence for given scales
    and kernel are those of `bootprob.ensemble.uncertainty.expectation_propagation`; the curve is
    known on up to 256 landmarks, and the part of its prior variance that they do not reach is a
    row's own. No curve has a prior probability of 2 in 3; of curves, all kernels have the same, and
    each doubling of σ₃ has that of ``e^-½``. The logit has 75 % of links. What labels say as
    Gaussian factors under the best setting so far ranks all others, for which one Cholesky factor
    each is enough; those that may count get factors of their own. Of more than 1,000 rows, that
    many tell which kernels are possible, then 10,000, and all rows which of those count. Of more
    than 3,000 rows linear parts have steps in relevant columns, the curve has 512 landmarks after
    the first stage, fewer settings get factors of their own (`_Stage.outline`, `_Stage.some`), and
    of all rows those alone that were possible before.

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        Standardised.
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        Row weights of mean 1, positive.
    kernels : ViewKernels
        Candidates of the curved part; linear ones among them say nothing new and are left out.
    device : torch.device

    Returns
    -------
    posterior : CompositePosterior
    left_out : ndarray, shape (n, g, 2)
        Mean and standard deviation of the logit of each training row under each part, its own
        label left out.

    Warns
    -----
    ConvergenceWarning
        Factors settle under no setting that counts.
    """
    every = LabelledRows.of(rows, positive, weight, device)
    stages = [spaced_over_classes(positive, size) for size in EXAMINED_ROWS if size < len(rows)]
    first = stages[0] if stages else np.arange(len(rows))
    # Always the same draw: the posterior is part of the model and must not depend on its seed.
    rng = np.random.default_rng(0)
    kernels = kernels.to(device)
    views = kernels.of_columns

    def landmarks_of(which: NDArray[np.intp], size: int) -> Landmarks:
        drawn = which[np.sort(rng.permutation(len(which))[:size])]
        return Landmarks(every.rows[torch.from_numpy(drawn).to(device)], views)

    landmarks, large = landmarks_of(first, _LANDMARKS), is_large(len(rows))
    model = Model(landmarks, straight_columns(every.rows, views), candidates(kernels, landmarks))
    stage = _Stage(every.part(first) if stages else every, model)
    possible = stage.outline() if large else stage.search()
    if large and stages:
        model = replace(model, landmarks=landmarks_of(np.arange(len(rows)), _OF_LARGE))
    for data in (*(every.part(stage) for stage in stages[1:]), every)[: len(stages)]:
        near, stage = stage.near, _Stage(data, model)
        if large:
            possible = stage.some(possible, near if len(data.rows) <= EXAMINED_ROWS[-1] else [])
        else:
            possible = stage.again(possible, near)
    if not possible[0].found.settled:
        warn_of_rough_intervals(stacklevel=2)
    return _mixture(possible, model)


@dataclass(frozen=True)
class _Posterior:
    """The posterior for one setting, of the coefficients of the columns.

    Its evidence is the logarithm of that times the prior probability of the setting.
    """

    setting: Setting
    columns: Columns
    found: Approximation
    evidence: float


class _Stage:
    """Some rows with their labels, and what has been found with them."""

    def __init__(self, data: LabelledRows, model: Model) -> None:
        self._data, self._model = data, model
        self._columns: dict[Curve | None, Columns] = {}
        self._done: dict[Setting, _Posterior] = {}
        self.near: list[Curve] = []

    def search(self) -> list[_Posterior]:
        """Find what the labels leave possible, best first."""
        model, data = self._model, self._data
        start = Sites.beginning(data.label, data.weight)
        first = Setting(None, model.linear(None)[0], 0.0, LOGIT)
        base = self._add(first, start)
        straight = self._climb(base, [None])
        leader = self._climb(straight, [None, *model.curved])
        for tails in TAILS:
            base = self._add(replace(straight.setting, tails=tails), straight.found.sites)
            self._climb(base, [None])
            self._add(replace(leader.setting, tails=tails), leader.found.sites)
        reached = leader.evidence
        while self._best().evidence > reached + _RISE:
            base = self._best()
            reached = base.evidence
            leader = self._climb(base, [None, *model.curved])
            for tails in (LOGIT, *TAILS):
                self._add(replace(leader.setting, tails=tails), leader.found.sites)
        return self._possible(model.curved)

    def again(self, before: Sequence[_Posterior], near: Sequence[Curve]) -> list[_Posterior]:
        """The same with more rows, near what was possible with fewer."""
        sites = self._predicted(before[0])
        for each in before:
            self._add(each.setting, sites)
        return self._possible(near)

    def outline(self) -> list[_Posterior]:
        """Find where to look with more rows: the best with the logit, and with another link."""
        start = Sites.beginning(self._data.label, self._data.weight)
        base = self._add(Setting(None, self._model.linear(None)[0], 0.0, LOGIT), start)
        leader = self._climb(self._climb(base, [None]), [None, *self._model.curved])
        others = [self._add(replace(leader.setting, tails=t), leader.found.sites) for t in TAILS]
        self.near = self._nearest(self._ranked(leader, self._model.curved))
        return [leader, max(others, key=lambda each: each.evidence)]

    def _nearest(self, ranked: Iterable[tuple[float, Setting]]) -> list[Curve]:
        """The kernels of the best settings."""
        return list(dict.fromkeys(s.kernel for _, s in ranked if s.kernel))[:_MOST_NEAR_OF_LARGE]

    def some(self, before: Sequence[_Posterior], near: Sequence[Curve]) -> list[_Posterior]:
        """The same with no more factors than can be afforded."""
        sites, most = self._predicted(before[0]), self._affordable(before[0])
        for each in before[:most]:
            self._add(each.setting, sites)
        best = self._best()
        ranked = self._ranked(best, [None, *near]) if near else []
        self.near = self._nearest(ranked)
        for value, setting in ranked[:most]:
            if value > best.evidence + np.log(_LEAST_WEIGHT):
                self._add(setting, best.found.sites)
        return self._likely()

    def _affordable(self, before: _Posterior) -> int:
        """How many settings may get factors of their own, 1 to 16."""
        size = len(self._data.rows) * sum(self._of(before.setting.kernel).widths) ** 2
        return int(np.clip(_WORK / size, 1, _MOST_EXAMINED))

    def _possible(self, kernels: Iterable[Curve]) -> list[_Posterior]:
        """All that may count, by what ranks them around the best of each link."""
        best = self._best()
        for tails in dict.fromkeys(s.tails for s in self._done):
            base = max(
                (each for s, each in self._done.items() if s.tails == tails),
                key=lambda each: each.evidence,
            )
            if base.evidence < best.evidence - _IMPOSSIBLE:
                continue
            near = kernels if base is best else {base.setting.kernel} - {None}
            ranked = self._ranked(base, [None, *near])
            if base is best:
                self.near = list(
                    dict.fromkeys(
                        s.kernel
                        for value, s in ranked
                        if s.kernel and value > best.evidence - _NEAR
                    )
                )[:_MOST_NEAR]
            for value, setting in ranked[:_MOST_EXAMINED]:
                if value > best.evidence + np.log(_LEAST_WEIGHT):
                    self._add(setting, base.found.sites)
        return self._likely()

    def _likely(self) -> list[_Posterior]:
        """Those of all so far that carry weight, best first."""
        best = self._best()
        found = sorted(self._done.values(), key=lambda each: -each.evidence)
        straight = [each for each in found if each.setting.kernel is None][:_MOST_STRAIGHT]
        curved = [each for each in found if each.setting.kernel is not None][:_MOST_CURVED]
        found = sorted((*straight, *curved), key=lambda each: -each.evidence)
        weight = np.exp([each.evidence - best.evidence for each in found])
        kept = weight > _LEAST_WEIGHT * weight.sum()
        return [each for each, counts in zip(found, kept, strict=True) if counts]

    def _best(self) -> _Posterior:
        return max(self._done.values(), key=lambda each: each.evidence)

    def _climb(self, base: _Posterior, kernels: Sequence[Curve | None]) -> _Posterior:
        """From one posterior to the best with its link."""
        while True:
            [(_, setting), *_] = self._ranked(base, kernels)
            found = self._add(setting, base.found.sites)
            if found.evidence <= base.evidence + _RISE:
                return found
            base = found

    def _add(self, setting: Setting, start: Sites) -> _Posterior:
        """Condition on the labels."""
        if setting not in self._done:
            columns, data = self._of(setting.kernel), self._data
            which, precision = columns.of(setting)
            link = partial(bent, tails=setting.tails)
            found = attempt(
                columns.blocks(which),
                data.label,
                data.weight,
                precision,
                start,
                link,
                columns.missing(setting),
            )
            evidence = found.evidence + self._model.log_prior(setting)
            evidence -= 0.0 if found.settled else _UNSETTLED
            self._done[setting] = _Posterior(setting, columns, found, evidence)
        return self._done[setting]

    def _ranked(
        self, base: _Posterior, kernels: Sequence[Curve | None]
    ) -> list[tuple[float, Setting]]:
        """Settings with the logarithms of their evidence if factors are those of another.

        Exact for that other, and to first order around it: factors are where the evidence does
        not change with them. Of each kernel, σ₃ for the linear parts of that other, and linear
        parts for the best σ₃.
        """
        setting, sites = base.setting, base.found.sites
        found: dict[Setting, float] = {}
        known = base.evidence - self._value(setting, sites)

        def best(settings: Iterable[Setting]) -> Setting:
            for each in settings:
                if each not in found:
                    found[each] = known + self._value(each, sites)
            return max(settings, key=lambda each: found[each])

        for kernel in kernels:
            curves = [0.0] if kernel is None else CURVED
            every = self._model.linear(kernel)
            linear = setting.linear if setting.linear in every else (max(setting.linear),) * 2
            near = replace(setting, kernel=kernel, linear=linear)
            of_curves = best([replace(near, curve=curve) for curve in curves])
            best([replace(of_curves, linear=linear) for linear in every])
        return sorted(((value, each) for each, value in found.items()), key=lambda each: -each[0])

    def _of(self, kernel: Curve | None) -> Columns:
        if kernel not in self._columns:
            self._columns[kernel] = Columns(self._data, self._model, kernel)
        return self._columns[kernel]

    def _value(self, setting: Setting, sites: Sites) -> float:
        """Logarithm of the integral of factors, but for what depends on them alone, and prior."""
        columns = self._of(setting.kernel)
        which, precision = columns.of(setting)
        found = log_mass(columns.blocks(which), sites, precision, columns.missing(setting))
        return found + self._model.log_prior(setting)

    def _predicted(self, before: _Posterior) -> Sites:
        """Factors as Laplace's method has them, at what fewer rows predict."""
        data = self._data
        columns = before.columns.at(data)  # whose landmarks may have been others
        which, _ = columns.of(before.setting)
        mean = torch.cat([part @ before.found.mean for _, part in columns.blocks(which)])
        probability = mean.sigmoid()
        precision = data.weight * probability * (1 - probability)
        return Sites(precision, precision * mean + data.weight * (data.label - probability))


def _mixture(posteriors: list[_Posterior], model: Model) -> tuple[CompositePosterior, Floats]:
    """All of them together, for new rows and for the training rows left out in turn."""
    evidence = np.array([each.evidence for each in posteriors])
    weight = np.exp(evidence - evidence.max())
    widths = posteriors[0].columns.widths
    straight = sum(widths[:3])
    reach = [0 if each.columns.basis is None else len(each.columns.basis) for each in posteriors]
    landmarks = model.landmarks.rows
    size = straight + max(reach)
    coefficients = landmarks.new_zeros(len(posteriors), size)
    quadratic = landmarks.new_zeros(len(posteriors), size, size)
    left_out = []
    for part, each in enumerate(posteriors):
        which, _ = each.columns.of(each.setting)
        found, basis = each.found, each.columns.basis
        to = torch.eye(straight, dtype=torch.float64, device=which.device)
        if basis is not None:
            to = torch.block_diag(to, basis)
        to = to[:, which]
        end = len(to)
        coefficients[part, :end] = to @ found.mean
        quadratic[part, :end, :end] = to @ found.covariance @ to.T
        if basis is not None:
            variance = each.setting.curve**2
            quadratic[part, straight:end, straight:end] -= variance * (basis @ basis.T)
        deviation = found.left_out_variance.sqrt()
        left_out.append(bent_moments(found.left_out_mean, deviation, each.setting.tails))
    chosen = [each.setting.kernel or _NONE for each in posteriors]
    directions = [None if d is None else d.cpu().numpy() for d in model.straight.directions]
    steps = model.straight.stepped, model.straight.thresholds
    posterior = CompositePosterior(
        weight=weight / weight.sum(),
        family=np.array([FAMILIES.index(each.family) for each in chosen]),
        view=np.array([VIEWS.index(each.view) for each in chosen]),
        gamma=np.array([each.gamma for each in chosen]),
        deviation=np.array([(*each.setting.linear, each.setting.curve) for each in posteriors]),
        tails=np.array([each.setting.tails for each in posteriors]),
        coefficients=coefficients.cpu().numpy(),
        quadratic=quadratic.cpu().numpy(),
        landmarks=landmarks[: len(landmarks) if any(reach) else 1].cpu().numpy(),
        scored=model.straight.scored.cpu().numpy(),
        column_directions=directions[0],
        score_directions=directions[1],
        stepped=None if steps[0] is None else steps[0].cpu().numpy(),
        thresholds=None if steps[1] is None else steps[1].cpu().numpy(),
    )
    return posterior, np.ascontiguousarray(torch.stack(left_out, dim=1).cpu().numpy())
