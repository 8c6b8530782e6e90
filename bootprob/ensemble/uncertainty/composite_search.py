"""Which scales, kernels and links labels leave possible, found by the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from bootprob.ensemble.uncertainty.column_sets import ColumnSet, likely_sets, score_statistics
from bootprob.ensemble.uncertainty.composite_model import (
    CURVED,
    LOGIT,
    TAILS,
    Columns,
    Model,
    Setting,
)
from bootprob.ensemble.uncertainty.curves import OF_ALL_COLUMNS, Curve
from bootprob.ensemble.uncertainty.expectation_propagation import (
    Approximation,
    Sites,
    attempt,
    log_mass,
)
from bootprob.ensemble.uncertainty.labelled_rows import LabelledRows
from bootprob.ensemble.uncertainty.link_tails import bent

__all__ = ["Found", "Stage"]

_MOST_CURVED = 8
_MOST_STRAIGHT = 16
_MOST_EXAMINED = 16
_LEAST_WEIGHT = 0.005
_UNSETTLED = 100.0  # what the evidence of factors that do not converge is less: the last resort
_RISE = 0.1  # of the logarithm of the evidence that is worth another look
_NEAR, _MOST_NEAR = 20.0, 10  # kernels that more rows may make possible: how far behind, how many
_MOST_NEAR_OF_LARGE = 6
_WORK = 4e10  # rows × squared columns of settings that get factors of their own, of large tables
_IMPOSSIBLE = 7.0  # logarithm of the evidence behind the best: 0.1 % of its weight
_PROBED = 96  # landmarks of curves that are compared
_PROBE = CURVED[2]  # σ₃ of these


@dataclass(frozen=True)
class Found:
    """The posterior for one setting, of the coefficients of the columns.

    Its evidence is the logarithm of that times the prior probability of the setting.
    """

    setting: Setting
    columns: Columns
    found: Approximation
    evidence: float


class Stage:
    """Some rows with their labels, and what has been found with them."""

    def __init__(self, data: LabelledRows, model: Model) -> None:
        self._data, self._model = data, model
        self._columns: dict[Curve | None, Columns] = {}
        self._done: dict[Setting, Found] = {}
        self.near: list[Curve] = []

    def search(self) -> list[Found]:
        """Find what the labels leave possible, best first."""
        straight = self._straight()
        _, possible = self._climb(straight, self._model.curved)
        kernels = [*possible, *self._of_few_columns(straight)]
        leader, kernels = self._climb(self._best(), kernels)
        for tails in TAILS:
            base = self._add(replace(straight.setting, tails=tails), straight.found.sites)
            self._climb(base, [])
            self._add(replace(leader.setting, tails=tails), leader.found.sites)
        reached = leader.evidence
        while self._best().evidence > reached + _RISE:
            base = self._best()
            reached = base.evidence
            leader, kernels = self._climb(base, kernels)
            for tails in (LOGIT, *TAILS):
                self._add(replace(leader.setting, tails=tails), leader.found.sites)
        return self._possible(kernels)

    def again(self, before: Sequence[Found], near: Sequence[Curve]) -> list[Found]:
        """The same with more rows, near what was possible with fewer."""
        sites = self._predicted(before[0])
        for each in before:
            self._add(each.setting, sites)
        first = replace(before[0].setting, kernel=None, curve=0.0)
        straight, _ = self._climb(self._add(first, sites), [])
        few = self._of_few_columns(straight)
        self._climb(self._best(), few)
        return self._possible(dict.fromkeys([*near, *few]))

    def outline(self) -> list[Found]:
        """Find where to look with more rows: the best with the logit, and with another link."""
        straight = self._straight()
        leader, kernels = self._climb(straight, self._model.curved)
        kernels = [*kernels, *self._of_few_columns(straight)]
        leader, kernels = self._climb(leader, kernels)
        others = [self._add(replace(leader.setting, tails=t), leader.found.sites) for t in TAILS]
        self.near = kernels[:_MOST_NEAR_OF_LARGE]
        return [leader, max(others, key=lambda each: each.evidence)]

    def some(self, before: Sequence[Found], near: Sequence[Curve]) -> list[Found]:
        """The same with no more factors than can be afforded."""
        sites, most = self._predicted(before[0]), self._affordable(before[0])
        for each in before[:most]:
            self._add(each.setting, sites)
        best = self._best()
        ranked = self._ranked(best, [None, *near]) if near else []
        self.near = _kernels_of(ranked)[:_MOST_NEAR_OF_LARGE]
        for value, setting in ranked[:most]:
            if value > best.evidence + np.log(_LEAST_WEIGHT):
                self._add(setting, best.found.sites)
        return self._likely()

    def _affordable(self, before: Found) -> int:
        """How many settings may get factors of their own, 1 to 16."""
        size = len(self._data.rows) * sum(self._of(before.setting.kernel).widths) ** 2
        return int(np.clip(_WORK / size, 1, _MOST_EXAMINED))

    def _possible(self, kernels: Iterable[Curve]) -> list[Found]:
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
                near = _kernels_of((v, s) for v, s in ranked if v > best.evidence - _NEAR)
                self.near = near[:_MOST_NEAR]
            for value, setting in ranked[:_MOST_EXAMINED]:
                if value > best.evidence + np.log(_LEAST_WEIGHT):
                    self._add(setting, base.found.sites)
        return self._likely()

    def _likely(self) -> list[Found]:
        """Those of all so far that carry weight, best first."""
        best = self._best()
        found = sorted(self._done.values(), key=lambda each: -each.evidence)
        straight = [each for each in found if each.setting.kernel is None][:_MOST_STRAIGHT]
        curved = [each for each in found if each.setting.kernel is not None][:_MOST_CURVED]
        found = sorted((*straight, *curved), key=lambda each: -each.evidence)
        weight = np.exp([each.evidence - best.evidence for each in found])
        kept = weight > _LEAST_WEIGHT * weight.sum()
        return [each for each, counts in zip(found, kept, strict=True) if counts]

    def _best(self) -> Found:
        return max(self._done.values(), key=lambda each: each.evidence)

    def _climb(self, base: Found, kernels: Sequence[Curve]) -> tuple[Found, list[Curve]]:
        """From one posterior to the best with its link; and kernels that are not far from it."""
        begun = base.evidence
        while True:
            ranked = self._ranked(base, [None, *kernels])
            behind = max(_NEAR, (ranked[0][0] - begun) / 2)
            kernels = _kernels_of((v, s) for v, s in ranked if v > ranked[0][0] - behind)
            found = self._add(ranked[0][1], base.found.sites)
            if found.evidence <= base.evidence + _RISE:
                return found, kernels
            base = found

    def _straight(self) -> Found:
        """The best without a curve, with the logit, from nothing."""
        start = Sites.beginning(self._data.label, self._data.weight)
        first = Setting(None, self._model.linear(None)[0], 0.0, LOGIT)
        return self._climb(self._add(first, start), [])[0]

    def _of_few_columns(self, straight: Found) -> list[Curve]:
        """Curves in the columns that bend the logit, those with the largest evidence."""
        model, rows = self._model, self._data.rows
        p = rows.shape[1]
        if p == 1 or not model.of_columns:
            return []
        columns = self._of(None)
        which, precision = columns.of(straight.setting)
        known = torch.cat([part for _, part in columns.blocks(which)])
        seen = model.landmarks.seen(rows, OF_ALL_COLUMNS)
        statistics = score_statistics(seen, known, straight.found, precision)
        probed: dict[Curve, float] = {}
        few = Stage(self._data, replace(model, landmarks=model.landmarks.few(_PROBED)))

        def evidence(curve: Curve) -> float:
            if curve not in probed:
                probed[curve] = few._probed(straight, curve)
            return probed[curve]

        def of_set(which: ColumnSet) -> float:
            return max(evidence(each.among(which, p)) for each in model.plain)

        sets = likely_sets(statistics, of_set)
        curves = [each.among(which, p) for which in sets for each in model.of_columns]
        curves.sort(key=lambda each: -evidence(each))
        return [c for c in curves if evidence(c) > evidence(curves[0]) - _NEAR][:_MOST_NEAR]

    def _probed(self, base: Found, kernel: Curve) -> float:
        """What ranks a kernel, by one value of σ₃, but for what all have."""
        near = replace(self._near(base.setting, kernel), curve=_PROBE)
        found = self._value(near, base.found.sites)
        del self._columns[kernel]  # of which there are many
        return found

    def _add(self, setting: Setting, start: Sites) -> Found:
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
            self._done[setting] = Found(setting, columns, found, evidence)
        return self._done[setting]

    def _ranked(self, base: Found, kernels: Sequence[Curve | None]) -> list[tuple[float, Setting]]:
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
            near = self._near(setting, kernel)
            of_curves = best([replace(near, curve=curve) for curve in curves])
            best([replace(of_curves, linear=linear) for linear in self._linear_near(near)])
        return sorted(((value, each) for each, value in found.items()), key=lambda each: -each[0])

    def _near(self, setting: Setting, kernel: Curve | None) -> Setting:
        """The same with another kernel, and linear parts that go with it."""
        linear = setting.linear
        if linear not in self._model.linear(kernel):
            linear = (max(linear),) * 2
        return replace(setting, kernel=kernel, linear=linear)

    def _linear_near(self, setting: Setting) -> list[tuple[float, float]]:
        """Linear parts of which one is that of a setting, or both are alike."""
        every, (first, second) = self._model.linear(setting.kernel), setting.linear
        if setting.kernel is None:
            return [(a, b) for a, b in every if a in (first, b) or b == second]
        return [(a, b) for a, b in every if a == b or not b or (a, b) == (first, second)]

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

    def _predicted(self, before: Found) -> Sites:
        """Factors as Laplace's method has them, at what fewer rows predict."""
        data = self._data
        columns = before.columns.at(data)  # whose landmarks may have been others
        which, _ = columns.of(before.setting)
        mean = torch.cat([part @ before.found.mean for _, part in columns.blocks(which)])
        probability = mean.sigmoid()
        precision = data.weight * probability * (1 - probability)
        return Sites(precision, precision * mean + data.weight * (data.label - probability))


def _kernels_of(ranked: Iterable[tuple[float, Setting]]) -> list[Curve]:
    """The kernels of settings, each once, in their order."""
    return list(dict.fromkeys(s.kernel for _, s in ranked if s.kernel is not None))
