"""Settings of a composite posterior on some rows: their evidence, and what may be near it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from torch import Tensor

from bootprob.ensemble.uncertainty.additions import Added, Additions
from bootprob.ensemble.uncertainty.composite_columns import Columns, Found
from bootprob.ensemble.uncertainty.composite_model import (
    CURVED,
    NOTHING,
    Kernel,
    Model,
    Rest,
    Setting,
)
from bootprob.ensemble.uncertainty.composite_settings import (
    is_even,
    kernels_of,
    scaled,
    summed,
    with_weight,
)
from bootprob.ensemble.uncertainty.curves import Curve
from bootprob.ensemble.uncertainty.evidence_beside import EvidenceBeside, Known
from bootprob.ensemble.uncertainty.expectation_propagation import Sites, attempt
from bootprob.ensemble.uncertainty.labelled_rows import LabelledRows
from bootprob.ensemble.uncertainty.link_tails import LOGIT, Tails, bent
from bootprob_gpu.hardware.threads import one_core_for_each
from bootprob_gpu.kernels.views import RELEVANT

__all__ = ["NEAR", "RISE", "Stage"]

S = TypeVar("S")
T = TypeVar("T")

_UNSETTLED = 1e12  # what the evidence of factors that do not converge is less: the last resort
RISE = 0.1  # of the logarithm of the evidence that is worth another look
NEAR = 20.0  # how far behind the best a kernel may be that more rows may make possible
_MOST_CURVES = 8  # of a sum
_WORK = 4e10  # rows × squared columns of settings that get factors of their own besides
_REST_SCALES = CURVED[:3]
_REST_ODDS = 1.0  # prior odds of a rest beside curves without
_OF_A_COLUMN = 0.02  # the same beside none, for each column
_BESIDE_NONE = (0.1, 0.3)  # and at least, and at most


class Stage:
    """Some rows with their labels, and the posteriors that have been found with them."""

    def __init__(self, data: LabelledRows, model: Model, n_threads: int = 1) -> None:
        self.data, self.model = data, model
        self._n_threads = n_threads if data.rows.device.type == "cpu" else 1
        self._columns: dict[Kernel, Columns] = {}
        self._done: dict[Setting, Found] = {}
        self._few: dict[Setting, Found] = {}  # where few columns count
        self._added: dict[Setting, dict[Curve, Added]] = {}
        self._beside: dict[Setting, EvidenceBeside] = {}

    def add(self, setting: Setting, start: Sites) -> Found:
        """Condition on the labels."""
        return self.add_each([(setting, start)])[0]

    def add_each(self, starts: Iterable[tuple[Setting, Sites]]) -> list[Found]:
        """Condition on the labels, for each of several settings."""
        starts = list(starts)
        fresh = {each: start for each, start in starts if each not in self._kept(each)}
        self._get_ready([], [each.curves for each in fresh])
        for found in self._each(self._conditioned, list(fresh.items())):
            self._kept(found.setting)[found.setting] = found
        return [self._kept(each)[each] for each, _ in starts]

    def _kept(self, setting: Setting) -> dict[Setting, Found]:
        return self._done if setting.inclusion == 1 else self._few

    def _conditioned(self, start: tuple[Setting, Sites]) -> Found:
        (setting, sites), data = start, self.data
        columns = self._columns[setting.curves]
        which, precision = columns.of(setting)
        found = attempt(
            columns.blocks(which),
            data.label,
            data.weight,
            precision,
            sites,
            partial(bent, tails=setting.tails),
            columns.missing(setting),
            columns.few(setting),
            self.steepness(setting),
        )
        evidence = found.evidence
        if not found.settled:  # then it is any number, and that of labels is below 0
            evidence = (evidence if evidence < 0 else 0.0) - _UNSETTLED
        return Found(setting, columns, found, evidence + self._log_prior(setting))

    def steepness(self, setting: Setting) -> Tensor | None:
        """What logits of the rows are multiplied by, shape (n,); None for nothing."""
        return None if is_even(setting) else setting.steepness.of(self.scores)

    @cached_property
    def scores(self) -> Tensor:
        """Normal scores of the rows, (n, p)."""
        return self.model.landmarks.views.of("scores", self.data.rows)

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

    def best_of_each(self, of: Callable[[Setting], T]) -> dict[T, Found]:
        """The best of those of which something is the same."""
        found = sorted(self._done.values(), key=lambda each: each.evidence)
        return {of(each.setting): each for each in found}

    def best_of_each_kernel(self) -> list[Found]:
        """The best of each kernel, without a rest, best first."""
        best = self.best_of_each(lambda each: (each.kernel, each.rest == NOTHING))
        found = [each for (_, nothing), each in best.items() if nothing]
        return sorted(found, key=lambda each: -each.evidence)

    def best_of_few(self) -> Found | None:
        """The best whose curves look at few columns each, if there is one."""
        found = (
            each
            for setting, each in self._done.items()
            if setting.kernel and all(curve.columns for curve in setting.kernel)
        )
        return max(found, key=lambda each: each.evidence, default=None)

    def affordable(self, base: Found) -> int:
        """How many more of the same size may get factors of their own, 0 where none may."""
        return int(_WORK / (len(self.data.rows) * sum(base.columns.widths) ** 2))

    def links(self) -> list[Tails]:
        """Those that have been tried."""
        return list(dict.fromkeys(setting.tails for setting in self._done))

    def likely(self) -> list[Found]:
        """Those of all so far that carry weight, best first."""
        found = self._done | self._few
        return [found[each] for each in with_weight({each: found[each].evidence for each in found})]

    def would_be_likely(self, setting: Setting, evidence: float) -> bool:
        """Whether one with this evidence would be among these."""
        found = self._done | self._few
        evidences = {each: found[each].evidence for each in found}
        return setting in with_weight(evidences | {setting: evidence})

    def straight(self) -> Found:
        """The best without a curve, with the logit, from nothing."""
        return self.climb(self.begin(Setting((), self.model.linear(())[0], (), LOGIT)), [])[0]

    def climb(self, base: Found, kernels: Sequence[Kernel]) -> tuple[Found, list[Kernel]]:
        """From one posterior to the best with its link; and kernels that are not far from it."""
        return self.climb_each([(base, kernels)])[0]

    def climb_each(
        self, starts: Iterable[tuple[Found, Sequence[Kernel]]]
    ) -> list[tuple[Found, list[Kernel]]]:
        """As `climb`, from each of several posteriors with other links."""
        found = [(base, list(kernels)) for base, kernels in starts]
        begun = [base.evidence for base, _ in found]
        climbing = list(range(len(found)))
        while climbing:
            every = self.ranked_each((found[k][0], [(), *found[k][1]]) for k in climbing)
            likeliest = [ranked[0][1] for ranked in every]
            sites = [found[k][0].found.sites for k in climbing]
            reached = self.add_each(zip(likeliest, sites, strict=True))
            steps = list(zip(climbing, every, reached, strict=True))
            climbing = [k for k, _, one in steps if one.evidence > found[k][0].evidence + RISE]
            for k, ranked, one in steps:
                behind = max(NEAR, (ranked[0][0] - begun[k]) / 2)
                kernels = kernels_of((v, s) for v, s in ranked if v > ranked[0][0] - behind)
                found[k] = max(found[k][0], one, key=lambda each: each.evidence), kernels
        return found

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
        """With those curves in the same few columns that go best with the others, if any does."""
        for curve in base.setting.kernel:
            if not curve.columns or curve not in base.setting.kernel:
                continue
            others = [*zip(base.setting.kernel, base.setting.scales, strict=True)]
            del others[base.setting.kernel.index(curve)]
            without = self.add(summed(base.setting, others), base.found.sites)
            if without.evidence > base.evidence:
                base = without
                continue
            curves = self.model.among(curve.columns, self.model.of_columns)
            every = self.additions(without).best_each(curves)
            best = max(every, key=lambda each: each.log_odds)
            if best.curve != curve:
                found = self._with(without.setting, best, base.found.sites)
                if found.evidence > base.evidence + RISE:
                    base = found
        return base

    def _with(self, setting: Setting, added: Added, start: Sites) -> Found:
        """The best scales with one more curve."""
        curves = [*zip(setting.kernel, setting.scales, strict=True), (added.curve, added.scale)]
        more = summed(setting, curves)
        return self.climb(self.add(more, start), [more.kernel])[0]

    def additions(self, base: Found) -> Additions:
        """What may be added to one."""
        known = self._added.setdefault(base.setting, {})
        steepness = self.steepness(base.setting)

        def link(made: Tensor) -> Tensor:
            return bent(made if steepness is None else steepness * made, base.setting.tails)

        return Additions(self.data, self.model, base, known, link, self._n_threads)

    def ranked(self, base: Found, kernels: Iterable[Kernel]) -> list[tuple[float, Setting]]:
        """Settings and the logarithms of their evidence beside a posterior, best first.

        Of each kernel, σ of its curves for the linear parts of that posterior, and linear parts for
        the best of these.
        """
        return self.ranked_each([(base, kernels)])[0]

    def ranked_each(
        self, starts: Iterable[tuple[Found, Iterable[Kernel]]]
    ) -> list[list[tuple[float, Setting]]]:
        """As `ranked`, beside each of several posteriors, whose settings are other ones."""
        listed = [(base, list(dict.fromkeys(kernels))) for base, kernels in starts]
        pairs = [(base, kernel) for base, kernels in listed for kernel in kernels]
        self._get_ready(
            [base for base, _ in listed],
            [kernel + base.setting.rest.kernel for base, kernel in pairs],
        )
        of_pairs = iter(self._each(self._of_kernel, pairs))
        found = []
        for _, kernels in listed:
            values = [(v, s) for _ in kernels for s, v in next(of_pairs).items()]
            found.append(sorted(values, key=lambda each: -each[0]))
        return found

    def _of_kernel(self, pair: tuple[Found, Kernel]) -> dict[Setting, float]:
        base, kernel = pair
        beside = self._beside[base.setting]
        known: Known = {}
        near = self._near(base.setting, kernel)
        found = beside.of(scaled(near), known)
        best = max(found, key=lambda each: found[each])
        return found | beside.of(self._linear_near(best, near.linear), known)

    def with_rests(self, base: Found) -> list[tuple[float, Setting]]:
        """As `ranked`, the same with what may be there besides, in no order."""
        near = self.additions(base).near() if self.model.of_columns else None
        rests = [*([near] if near else []), *self._in_all_columns(base)]
        settings = [replace(base.setting, rest=rest) for rest in rests]
        self._get_ready([base], [each.curves for each in settings])

        def of_rest(setting: Setting) -> dict[Setting, float]:
            return self._beside[base.setting].of(self._linear_near(setting, setting.linear))

        of_rests = self._each(of_rest, settings)
        return [(value, each) for found in of_rests for each, value in found.items()]

    def _in_all_columns(self, base: Found) -> list[Rest]:
        """One more curve in all columns, of each of some σ.

        Its prior odds are those of all such curves together, of which the likeliest stands for the
        others.
        """
        every = self.model.of_all
        if any(not curve.columns for curve in base.setting.kernel) or not every:
            return []
        kept = set(self._columns)
        rests = [[Rest((curve,), (scale,), 0.0) for scale in _REST_SCALES] for curve in every]
        self._get_ready([base], [(*base.setting.kernel, curve) for curve in every])

        def of_curve(rests: list[Rest]) -> list[float]:
            settings = [replace(base.setting, rest=rest) for rest in rests]
            found = self._beside[base.setting].of(settings)
            return [found[setting] for setting in settings]

        values = np.array(self._each(of_curve, rests))
        best = int(np.logaddexp.reduce(values, axis=1).argmax())
        for k, curve in enumerate(every):
            kernel = *base.setting.kernel, curve
            if k != best and kernel not in kept:  # of which there are many
                del self._columns[kernel]
        odds = _REST_ODDS
        if not base.setting.kernel:
            of_columns = _OF_A_COLUMN * self.data.rows.shape[1]
            odds = float(np.clip(of_columns, *_BESIDE_NONE))
        log_odds = np.logaddexp.reduce(values, axis=0) - values[best] - np.log(values.size / odds)
        likeliest = zip(rests[best], log_odds.tolist(), strict=True)
        return [replace(rest, log_odds=each) for rest, each in likeliest]

    def _get_ready(self, bases: Iterable[Found], kernels: Iterable[Kernel]) -> None:
        """Make what several threads look at."""
        wanted = [each for each in dict.fromkeys(kernels) if each not in self._columns]
        self._columns.update(zip(wanted, self._each(self._made, wanted), strict=True))
        fresh = {each.setting: each for each in bases if each.setting not in self._beside}
        besides = self._each(self._made_beside, list(fresh.values()))
        self._beside.update(zip(fresh, besides, strict=True))

    def _made(self, kernel: Kernel) -> Columns:
        return Columns(self.data, self.model, kernel)

    def _made_beside(self, base: Found) -> EvidenceBeside:
        return EvidenceBeside(base, self._columns, self._log_prior)

    def _each(self, work: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """Do it to each, in any order: nothing may depend on what is done to the others."""
        return one_core_for_each(work, items, self._n_threads)

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
