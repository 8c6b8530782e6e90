"""How it was made: seed, device, versions and parameters."""

from __future__ import annotations

from typing import Any

from bootprob.report.model.sections.section import Measured, Section

__all__ = ["SECTION"]


def _content(of: Measured) -> dict[str, Any]:
    model = of.model
    provenance = {
        "entropy": model.entropy_,
        "device": model.device_,
        "fit_seconds": model.fit_seconds_,
        "n_redrawn": model.n_redrawn_,
        "versions": dict(sorted(model.versions_.items())),
        "parameters": dict(sorted(model.get_params(deep=False).items())),
    }
    return {"provenance": provenance}


SECTION = Section("made", "How it was made", _content)
