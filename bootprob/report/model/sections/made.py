"""How it was made: seed, device, versions and parameters."""

from __future__ import annotations

from typing import Any

from bootprob.report.model.sections.section import Measured, Section

__all__ = ["SECTION"]


def _content(of: Measured) -> dict[str, Any]:
    model = of.model
    parameters = model.get_params(deep=False)
    for name in ("estimator", "param_grid"):  # which have parameters of their own
        if parameters.get(name) is not None:
            parameters[name] = " ".join(repr(parameters[name]).split())
    provenance = {
        "entropy": model.entropy_,
        "device": model.device_,
        "fit_seconds": model.fit_seconds_,
        "n_redrawn": model.n_redrawn_,
        "versions": dict(sorted(model.versions_.items())),
        "parameters": dict(sorted(parameters.items())),
    }
    return {"provenance": provenance}


SECTION = Section("made", "How it was made", _content)
