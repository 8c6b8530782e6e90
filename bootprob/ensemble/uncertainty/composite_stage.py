"""Settings of a composite posterior on some rows: their evidence, and what may be near it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from bootprob.ensemble.uncertainty.additions import Added, Additions
from bootprob.ensemble.uncertainty.composite_columns import Columns, Found
from bootprob.ensemble.uncertainty.composite_model import (
    CURVED,
    Kernel,
    Model,
    Rest,
    Setting,
)
from bootprob.ensemble.uncertainty.curves import Curve
from bootprob.ensemble.uncertainty.expectation_propagation import (
    Sites,
    attempt,
    log_masses,
)
from bootprob.ensemble.uncertainty.labelled_rows import LabelledRows
from bootprob.ensemble.uncertainty.link_tails import LOGIT, Tails, bent, levels_off
from bootprob_gpu.kernels.views import RELEVANT

__all__ = ["LEAST_WEIGHT", "NEAR", "RISE", "Stage", "kernels_of"]

_MOST_CURVED = 24
_MOST_STRAIGHT = 16
_MOST_LEVELLED = 40  # of links with levels on either side
LEAST_WEIGHT = 0.005  # of a setting that is kept, by all of its evidence
_UNSETTLED = 1e12  # what the evidence of factors that do not converge is less: the last resort
RISE = 0.1  # of the logarithm of the evidence that is worth another look
NEAR = 20.0  # how far behind the best a kernel may be that more rows may make possible
_MOST_CURVES = 8  # of a sum
_REST_SCALES = CURVED[:3]
_REST_ODDS, _OF_STRAIGHT = 1.0, 0.1  # prior odds of a rest, beside curves without, beside none


class Stage:
    """Some rows with their labels, and the posteriors that have been found with them."""

    def __init__(self, data: LabelledRows, model: Model) -> None:
        self.data, self.model = data, model
        self._columns: dict[Kernel, Columns] = {}
        self._done: dict[Setting, Found] = {}
        self._few: dict[Setting, Found] = {}  # where few columns count
        self._added: dict[Setting, dict[Curve, Added]] = {}
        self._valued_beside: dict[Setting, dict[Setting, float]] = {}

    def add(self, setting: Setting, start: Sites) -> Found:
        """Condition on the labels."""
        done = self._done if setting.inclusion == 1 else self._few
        if setting not in done:
            columns, data = self._of(setting.curves), self.data
            which, precision = columns.of(setting)
            found = attempt(
                columns.blocks(which),
                data.label,
                data.weight,
                precision,
                start,
                partial(bent, tails=setting.tails),
                columns.missing(setting),
                columns.few(setting),
            )
            evidence = found.evidence + self._log_prior(setting)
            evidence -= 0.0 if found.settled else _UNSETTLED
            done[setting] = Found(setting, columns, found, evidence)
        return done[setting]

    def begin(self, setting: Setting) -> Found:
        """Condition on the labels, from nothing.

        Factors that fewer rows predict are no better to start from: where these rows go far astray
        they chase each other.
        """
        return self.add(setting, Sites.beginning(self.data.label, self.data.weight))

    def best(self, tails: Tails | None = None, *, straight: bool = False) -> Found:
        """The one with the largest evidence, of all, of those with a link or without curves.

        Where all columns count: what labels say of few that do ranks no others.
        """
        found = (
            each
            for setting, each in self._done.items()
            if tails in (None, setting.tails) and not (straight and setting.curves)
        )
        return max(found, key=lambda each: each.evidence)

    def best_with_and_without(self) -> list[Found]:
        """The best with a curve and the best without, of those there are."""
        found = sorted(self._done.values(), key=lambda each: each.evidence)
        return list({bool(each.setting.curves): each for each in found}.values())

    def best_of_few(self) -> Found | None:
        """The best whose curves look at few columns each, if there is one."""
        found = (
            each
            for setting, each in self._done.items()
            if setting.kernel and all(curve.columns for curve in setting.kernel)
        )
        return max(found, key=lambda each: each.evidence, default=None)

    def links(self) -> list[Tails]:
        """Those that have been tried."""
        return list(dict.fromkeys(setting.tails for setting in self._done))

    def likely(self) -> list[Found]:
        """Those of all so far that carry weight, best first."""
        found = [*self._done.values(), *self._few.values()]
        found.sort(key=lambda each: -each.evidence)
        levelled = [each for each in found if levels_off(each.setting.tails)][:_MOST_LEVELLED]
        others = [each for each in found if not levels_off(each.setting.tails)]
        straight = [each for each in others if not each.setting.curves][:_MOST_STRAIGHT]
        curved = [each for each in others if each.setting.curves][:_MOST_CURVED]
        found = sorted((*straight, *curved, *levelled), key=lambda each: -each.evidence)
        weight = np.exp([each.evidence - found[0].evidence for each in found])
        kept = weight > LEAST_WEIGHT * weight.sum()
        return [each for each, counts in zip(found, kept, strict=True) if counts]

    def straight(self) -> Found:
        """The best without a curve, with the logit, from nothing."""
        return self.climb(self.begin(Setting((), self.model.linear(())[0], (), LOGIT)), [])[0]

    def climb(self, base: Found, kernels: Sequence[Kernel]) -> tuple[Found, list[Kernel]]:
        """From one posterior to the best with its link; and kernels that are not far from it."""
        begun = base.evidence
        while True:
            ranked = self.ranked(base, [(), *kernels])
            behind = max(NEAR, (ranked[0][0] - begun) / 2)
            kernels = kernels_of((v, s) for v, s in ranked if v > ranked[0][0] - behind)
            found = self.add(ranked[0][1], base.found.sites)
            if found.evidence <= base.evidence + RISE:
                return max(base, found, key=lambda each: each.evidence), kernels
            base = found

    def grown(self, base: Found) -> Found:
        """With one more curve in few columns after the other, while the evidence rises."""
        while self.model.of_columns and len(base.setting.kernel) < _MOST_CURVES:
            likely = self.additions(base).likely()
            if not likely or likely[0].log_odds <= RISE:
                break
            found = self._with(base.setting, likely[0], base.found.sites)
            if found.evidence <= base.evidence + RISE:
                break
            base = found
        return self._refined(base)

    def _refined(self, base: Found) -> Found:
        """With those curves in the same few columns that go best with the others."""
        for curve in base.setting.kernel:
            if not curve.columns or curve not in base.setting.kernel:
                continue
            others = [*zip(base.setting.kernel, base.setting.scales, strict=True)]
            del others[base.setting.kernel.index(curve)]
            without = self.add(_summed(base.setting, others), base.found.sites)
            every = self.model.among(curve.columns, self.model.of_columns)
            best = max(map(self.additions(without).best, every), key=lambda each: each.log_odds)
            if best.curve != curve:
                found = self._with(without.setting, best, base.found.sites)
                if found.evidence > base.evidence + RISE:
                    base = found
        return base

    def _with(self, setting: Setting, added: Added, start: Sites) -> Found:
        """The best scales with one more curve."""
        curves = [*zip(setting.kernel, setting.scales, strict=True), (added.curve, added.scale)]
        more = _summed(setting, curves)
        return self.climb(self.add(more, start), [more.kernel])[0]

    def additions(self, base: Found) -> Additions:
        """What may be added to one."""
        known = self._added.setdefault(base.setting, {})
        return Additions(self.data, self.model, base, known)

    def ranked(self, base: Found, kernels: Iterable[Kernel]) -> list[tuple[float, Setting]]:
        """Settings with the logarithms of their evidence if factors are those of another.

        Exact for that other, and to first order around it: factors are where the evidence does
        not change with them. Of each kernel, σ of its curves for the linear parts of that other,
        and linear parts for the best of these.
        """
        known: dict[Setting, float] = {}
        offset = self._offset(base)
        for kernel in kernels:
            near = self._near(base.setting, kernel)
            of_scales = self._valued(base, offset, _scaled(near), known)
            self._valued(base, offset, self._linear_near(of_scales, near.linear), known)
        return sorted(((value, each) for each, value in known.items()), key=lambda e: -e[0])

    def with_rests(self, base: Found) -> list[tuple[float, Setting]]:
        """As `ranked`, the same with what may be there besides."""
        known: dict[Setting, float] = {}
        offset = self._offset(base)
        near = self.additions(base).near() if self.model.of_columns else None
        for rest in (*([near] if near else []), *self._in_all_columns(base)):
            more = replace(base.setting, rest=rest)
            self._valued(base, offset, self._linear_near(more, more.linear), known)
        return [(value, each) for each, value in known.items()]

    def _in_all_columns(self, base: Found) -> list[Rest]:
        """One more curve in all columns, of each of some σ.

        Its prior odds are those of all such curves together, of which the likeliest stands for the
        others.
        """
        every = self.model.of_all
        if any(not curve.columns for curve in base.setting.kernel) or not every:
            return []
        rests = [[Rest((curve,), (scale,), 0.0) for scale in _REST_SCALES] for curve in every]
        values = np.empty((len(every), len(_REST_SCALES)))
        for k, of_curve in enumerate(rests):
            settings = [replace(base.setting, rest=rest) for rest in of_curve]
            of_settings = self._values(settings, base)
            values[k] = [of_settings[setting] for setting in settings]
        best = int(np.logaddexp.reduce(values, axis=1).argmax())
        for k, curve in enumerate(every):
            if k != best:  # of which there are many
                del self._columns[(*base.setting.kernel, curve)]
        odds = _REST_ODDS if base.setting.kernel else _OF_STRAIGHT
        log_odds = np.logaddexp.reduce(values, axis=0) - values[best] - np.log(values.size / odds)
        likeliest = zip(rests[best], log_odds.tolist(), strict=True)
        return [replace(rest, log_odds=each) for rest, each in likeliest]

    def _offset(self, base: Found) -> float:
        """What `_values` leaves out, for the factors of one."""
        return base.evidence - self._values([base.setting], base)[base.setting]

    def _valued(
        self, base: Found, offset: float, settings: Sequence[Setting], known: dict[Setting, float]
    ) -> Setting:
        """The best of some, whose values are known then."""
        fresh = [each for each in settings if each not in known]
        for each, value in self._values(fresh, base).items():
            known[each] = offset + value
        return max(settings, key=lambda each: known[each])

    def _near(self, setting: Setting, kernel: Kernel) -> Setting:
        """The same with another kernel, and linear parts and σ that go with it."""
        linear = setting.linear
        if linear not in self.model.linear(kernel):
            linear = (max(linear),) * 2
        if kernel == setting.kernel:
            return replace(setting, linear=linear)
        known = [each for each in self._done.values() if each.setting.kernel == kernel]
        scales = (CURVED[len(CURVED) // 3],) * len(kernel)
        if known:
            scales = max(known, key=lambda each: each.evidence).setting.scales
        return replace(setting, kernel=kernel, scales=scales, linear=linear)

    def _linear_near(self, setting: Setting, linear: tuple[float, float]) -> list[Setting]:
        """With linear parts of which one is a given one, or both are alike."""
        every, (first, second) = self.model.linear(setting.curves), linear
        if not setting.curves:
            kept = [(a, b) for a, b in every if a in (first, b) or b == second]
        else:
            kept = [(a, b) for a, b in every if a == b or not b or (a, b) == (first, second)]
        return [replace(setting, linear=each) for each in kept]

    def _of(self, kernel: Kernel) -> Columns:
        if kernel not in self._columns:
            self._columns[kernel] = Columns(self.data, self.model, kernel)
        return self._columns[kernel]

    def _values(self, settings: Sequence[Setting], base: Found) -> dict[Setting, float]:
        """Logarithms of the integral of factors, but for what depends on them alone, and prior.

        Factors are those of another; what was valued by them once is remembered.
        """
        known = self._valued_beside.setdefault(base.setting, {})
        known |= self._new_values([e for e in settings if e not in known], base.found.sites)
        return {each: known[each] for each in settings}

    def _new_values(self, settings: Iterable[Setting], sites: Sites) -> dict[Setting, float]:
        groups: dict[tuple[Kernel, tuple[float, ...]], list[Setting]] = {}
        for each in settings:
            columns = self._of(each.curves)
            alike = () if columns.are_many else columns.alike(each)
            groups.setdefault((each.curves, alike), []).append(each)
        found: dict[Setting, float] = {}
        for (curves, _), group in groups.items():
            columns = self._of(curves)
            masses = (
                columns.masses_of_rows(group, sites)
                if columns.are_many
                else log_masses(
                    columns.blocks(), sites, columns.precisions(group), columns.missing(group[0])
                )
            )
            for each, mass in zip(group, masses, strict=True):
                found[each] = mass + self._log_prior(each)
        return found

    def _log_prior(self, setting: Setting) -> float:
        """Less what the evidence gains by views that these labels were seen for.

        A likelihood of labels that as many weights were fitted to is too high by their number
        (H. Akaike, IEEE Trans. Autom. Control 19 (1974) 716–723), of some of these rows by as much
        less.
        """
        found = self.model.log_prior(setting)
        if any(curve.view.startswith(RELEVANT) for curve in setting.curves):
            found -= self.model.n_relevant * len(self.data.rows) / self.model.n_rows
        return found


def _summed(setting: Setting, curves: Sequence[tuple[Curve, float]]) -> Setting:
    """The same with these curves and their σ, in the one order of a sum."""
    ordered = sorted(curves, key=lambda each: (bool(each[0].columns), *each))
    kernel, scales = zip(*ordered, strict=True) if ordered else ((), ())
    return replace(setting, kernel=kernel, scales=scales)


def _scaled(setting: Setting) -> list[Setting]:
    """With other σ of the curves: of one all, of a sum all by a factor, and each."""
    now = setting.scales
    if not now:
        return [setting]
    if len(now) == 1:
        return [replace(setting, scales=(float(scale),)) for scale in CURVED]
    found = [tuple(scale * factor for scale in now) for factor in (0.5, 1.0, 2.0)]
    for k, factor in product(range(len(now)), (0.5, 2.0)):
        found.append((*now[:k], now[k] * factor, *now[k + 1 :]))
    least, most = CURVED[0], CURVED[-1]
    return [replace(setting, scales=s) for s in found if least <= min(s) and max(s) <= most]


def kernels_of(ranked: Iterable[tuple[float, Setting]]) -> list[Kernel]:
    """The kernels of settings, each once, in their order."""
    return list(dict.fromkeys(s.kernel for _, s in ranked if s.kernel))
