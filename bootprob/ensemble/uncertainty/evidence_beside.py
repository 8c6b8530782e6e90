"""Evidence of settings, to first order around one whose posterior is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from bootprob.ensemble.uncertainty.composite_columns import Columns, Found
from bootprob.ensemble.uncertainty.composite_model import Kernel, Setting
from bootprob.ensemble.uncertainty.masses import Masses

__all__ = ["EvidenceBeside", "Known"]

Known = dict[tuple[float, ...], Masses]
"""Of settings of the same curves: what those share that miss the same variances."""


class EvidenceBeside:
    """Logarithms of the evidence of settings if factors are those of another.

    Exact for that other, and to first order around it: factors are where the evidence does not
    change with them. What was looked at once is remembered.

    Parameters
    ----------
    base : Found
        The other.
    columns : mapping of Kernel to Columns
        Of all curves that are asked about.
    log_prior : callable
        Logarithm of the prior probability of a setting.
    """

    def __init__(
        self,
        base: Found,
        columns: Mapping[Kernel, Columns],
        log_prior: Callable[[Setting], float],
    ) -> None:
        self._sites = base.found.sites
        self._columns, self._log_prior = columns, log_prior
        self._offset, self._values = 0.0, dict[Setting, float]()
        self._offset = base.evidence - self.of([base.setting])[base.setting]
        self._values = {base.setting: base.evidence}

    def of(self, settings: Iterable[Setting], known: Known | None = None) -> dict[Setting, float]:
        """Of some settings, which have the same curves if anything is `known` of these."""
        settings = list(settings)
        groups: dict[tuple[Kernel, tuple[float, ...]], list[Setting]] = {}
        for each in settings:
            if each not in self._values:
                columns = self._columns[each.curves]
                missed = () if columns.are_many else columns.alike(each)
                groups.setdefault((each.curves, missed), []).append(each)
        for (curves, missed), group in groups.items():
            columns = self._columns[curves]
            if columns.are_many:
                masses = columns.masses_of_rows(group, self._sites)
            else:
                shared = None if known is None else known.get(missed)
                if shared is None:
                    told = columns.told(group[0]).nonzero().flatten()
                    noise = columns.missing(group[0])
                    shared = Masses.of(columns.blocks(told), self._sites, noise)
                if known is not None:
                    known[missed] = shared
                masses = shared.beside(columns.precisions(group))
            for each, mass in zip(group, masses, strict=True):
                self._values[each] = self._offset + mass + self._log_prior(each)
        return {each: self._values[each] for each in settings}
