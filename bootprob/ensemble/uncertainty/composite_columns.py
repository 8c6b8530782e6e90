"""Columns of rows, linear and of curves, and the posterior of their coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bootprob.ensemble.uncertainty.composite_model import Kernel, Model, Setting
from bootprob.ensemble.uncertainty.expectation_propagation import Approximation, Sites
from bootprob.ensemble.uncertainty.labelled_rows import LabelledRows
from bootprob.ensemble.uncertainty.masses import log_masses_of_rows
from bootprob.ensemble.uncertainty.spike_and_slab import SpikeAndSlab
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["Columns", "Found"]

_HELD = 2**25  # numbers of columns that are kept rather than made again, 256 MiB
_ROUNDING = 1e-9  # share of a prior variance below which a curve's landmarks reach all of it
_NONE = 1e-10  # prior variance of what a setting leaves out
_CHANGED = 0.15  # standard deviation of what the logarithm of the evidence may be off


class Columns:
    """Columns of rows for one kernel: 1, linear parts, curves; kept, or made again when looked at.

    Attributes
    ----------
    bases : list of Tensor, shape (l, r)
        Of each curve.
    widths : list of int
        Columns of each of these.
    """

    def __init__(self, data: LabelledRows, model: Model, kernel: Kernel) -> None:
        self._data, self._model, self._kernel = data, model, kernel
        self.bases = [model.landmarks.basis(curve) for curve in kernel]
        linear, _ = model.straight.of(model.landmarks.seen(data.rows[:1]))
        of_curves = (basis.shape[1] for basis in self.bases)
        self.widths = [1, *(part.shape[1] for part in linear), *of_curves]
        widths = torch.tensor(self.widths, device="cpu")
        self._part = torch.arange(len(widths), device="cpu").repeat_interleave(widths)
        own = model.straight.own_scores(data.rows.shape[1])
        self._part[1 + torch.tensor(own, dtype=torch.int64, device="cpu")] = len(widths)
        self._told: dict[tuple[float, ...], Tensor] = {}
        held = len(data.rows) * sum(self.widths) <= _HELD
        missing, kept = [], []
        information = torch.zeros(sum(self.widths), dtype=torch.float64, device=data.rows.device)
        for block, columns, unreached in self._made():
            missing.append(unreached)
            information += columns.square().mT @ data.weight[block] / 4
            if held:
                kept.append((block, columns))
        self._information = information  # the most that labels say, as a precision
        self._missing = torch.cat(missing)  # (n, 2 and curves), of unit variances
        self._unreached = self._missing.any(dim=0).nonzero().flatten().tolist()
        self._held = kept if held else None

    def of(self, setting: Setting) -> tuple[Tensor, Tensor]:
        """Which columns a setting looks at, and their prior precision.

        Where few count, of those that may the precision is that of those that do.
        """
        every = self._variances(setting)
        which = (every * self.told(setting)).nonzero().flatten()
        return which, 1 / every[which]

    def told(self, setting: Setting) -> Tensor:
        """Which columns labels may say anything of, with this σ of the curves.

        They may of all linear ones. Of curves those directions are left out, and what they vary is
        `missing`, of which labels say least: prior variance times information x, for which the
        logarithm of the evidence is off by about ``½ Σ x (z² − 1)`` with standard normal z.
        Variances are of the base rate's logits, times by how much a link is flatter there than for
        rows near one half, of which labels say more.
        """
        unit = self._model.unit(setting.tails)
        flatter = max(1.0, unit)
        key = flatter, *setting.scales, *setting.rest.scales
        if key not in self._told:
            variances = self._variances(setting) * flatter / unit**2
            said = (variances * self._information).square()
            said[: sum(self.widths[:3])] = torch.inf
            order = said.argsort()
            found = torch.empty_like(said, dtype=torch.bool)
            found[order] = said[order].cumsum(0) > 2 * _CHANGED**2
            self._told[key] = found
        return self._told[key]

    def untold(self, setting: Setting) -> Tensor:
        """Prior variances of those of which they may not; of others 0."""
        return self._variances(setting) * ~self.told(setting)

    def _of_parts(self, setting: Setting) -> list[float]:
        """The same, and that of columns that are their own scores, which both parts have."""
        _, first, second, *_ = every = self._model.variances(setting)
        return [*every, first or second]

    def _variances(self, setting: Setting) -> Tensor:
        every = torch.tensor(self._of_parts(setting), dtype=torch.float64, device="cpu")[self._part]
        if setting.inclusion < 1:
            for start, width, own in self._linear():
                every[start + len(own) : start + width] *= self._model.spike**2
        return every.to(self._data.rows.device)

    def few(self, setting: Setting) -> SpikeAndSlab | None:
        """What is known beforehand of the linear parts, where few of their coefficients count."""
        if setting.inclusion == 1:
            return None
        which, precision = self.of(setting)
        position = {at: k for k, at in enumerate(which.tolist())}
        together: dict[int, list[int]] = {}  # coefficients of each column
        for start, _, own in self._linear():
            for at, column in enumerate(own, start):
                if at in position:
                    together.setdefault(column, []).append(position[at])
        groups = [[own for own in together.values() if len(own) == size] for size in (1, 2)]
        return SpikeAndSlab(
            precision,
            [torch.tensor(group, device=which.device) for group in groups if group],
            setting.inclusion,
            self._model.spike,
        )

    def unreached_variances(self, setting: Setting) -> list[float]:
        """Prior variances of what no columns look at, of both linear parts and the curves."""
        share = 1.0 if setting.inclusion == 1 else self._model.spike**2
        first, second, *of_curves = self._model.variances(setting)[1:]
        return [share * first, share * second, *of_curves]

    def _linear(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """Where either linear part begins, how wide it is, and which columns its first are."""
        first, second = self.widths[1:3]
        starts, alone = (1, 1 + first), self._model.alone
        return list(zip(starts, (first, second), alone, strict=True))

    def alike(self, setting: Setting) -> tuple[float, ...]:
        """What is the same of settings of which `missing` and `told` are."""
        first, second, *of_curves = self._model.variances(setting)[1:]
        linear = (v for k, v in enumerate((first, second)) if k in self._unreached)
        return *linear, *of_curves

    def precisions(self, settings: Sequence[Setting]) -> Tensor:
        """Prior precisions of what is told of several settings that are alike.

        Of those left out a huge one.
        """
        every = torch.stack([self._variances(each) for each in settings])
        return 1 / every[:, self.told(settings[0])].clamp_min(_NONE)

    @property
    def are_many(self) -> bool:
        """Whether there are more than rows."""
        return self._held is not None and sum(self.widths) > len(self._data.rows)

    def masses_of_rows(self, settings: Sequence[Setting], sites: Sites) -> list[float]:
        """What `log_masses_of_rows` says of several settings."""
        every = torch.cat([columns for _, columns in self.blocks()])
        parts = (every[:, self._part == k] for k in range(len(self.widths) + 1))
        grams = torch.stack([part @ part.mT for part in parts])
        variances = grams.new_tensor([self._of_parts(each) for each in settings])
        noise = self._missing @ variances[:, 1:-1].mT if self._unreached else None
        return log_masses_of_rows(grams, sites, variances, None if noise is None else noise.mT)

    def blocks(self, which: Tensor | None = None) -> Iterable[tuple[slice, Tensor]]:
        """Slices of rows with some columns, or all."""
        if which is None:
            which = torch.arange(sum(self.widths), device=self._data.rows.device)
        if self._held is None:
            return _Again(self._made, which)
        if len(which) == sum(self.widths):
            return self._held
        return [(block, columns[:, which]) for block, columns in self._held]

    def missing(self, setting: Setting) -> Tensor | None:
        """Prior variance of rows that `told` columns do not reach, (n,); None where they do."""
        variances = self._missing.new_tensor(self.unreached_variances(setting))
        found = [self._missing @ variances] if self._missing[:, variances > 0].any() else []
        untold = self.untold(setting)
        if len(which := untold.nonzero().flatten()):
            squares = [columns.square() @ untold[which] for _, columns in self.blocks(which)]
            found.append(torch.cat(squares))
        return sum(found[1:], found[0]) if found else None

    def _made(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Slices of rows with their columns, and the variances that these do not reach."""
        landmarks = self._model.landmarks
        views = dict.fromkeys(("columns", "scores", *(curve.view for curve in self._kernel)))
        for block in row_blocks(len(self._data.rows), sum(self.widths), 2**22):
            rows = self._data.rows[block]
            seen = landmarks.seen(rows, views)
            linear, missing = self._model.straight.of(seen)
            parts, unreached = [torch.ones_like(rows[:, :1]), *linear], [missing]
            for curve, basis in zip(self._kernel, self.bases, strict=True):
                columns = landmarks.values(curve, seen) @ basis
                diagonal = landmarks.diagonal(curve, seen)
                left = diagonal - columns.square().sum(1)
                parts.append(columns)
                unreached.append(torch.where(left > _ROUNDING * diagonal, left, 0.0).unsqueeze(1))
            yield block, torch.cat(parts, dim=1), torch.cat(unreached, dim=1)


@dataclass(frozen=True)
class Found:
    """The posterior for one setting, of the coefficients of the columns.

    Its evidence is the logarithm of that times the prior probability of the setting.
    """

    setting: Setting
    columns: Columns
    found: Approximation
    evidence: float


@dataclass(frozen=True)
class _Again:
    """Blocks that are made whenever they are looked at."""

    made: Callable[[], Iterator[tuple[slice, Tensor, Tensor]]]
    which: Tensor

    def __iter__(self) -> Iterator[tuple[slice, Tensor]]:
        return ((block, columns[:, self.which]) for block, columns, _ in self.made())
