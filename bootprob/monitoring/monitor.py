"""What a model has seen of rows that came after its fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bootprob.monitoring.calibration_evidence import CalibrationEvidence
from bootprob.monitoring.drift_evidence import DriftEvidence
from bootprob.runtime.arrays import Floats

__all__ = ["Monitor"]


@dataclass(frozen=True)
class Monitor:
    """What a model has seen of later rows."""

    calibration: CalibrationEvidence
    drift: DriftEvidence

    @classmethod
    def of(cls, known: Mapping[str, Floats]) -> Self:
        """Of what a model has kept: its `arrays`."""
        of_calibration, scale, of_drift = known["values"].tolist()
        return cls(
            CalibrationEvidence(
                known["rows"], known["positives"], known["numerators"], of_calibration
            ),
            DriftEvidence(known["pool"], known["capital"], scale, of_drift),
        )

    @classmethod
    def beside(cls, logits: Floats) -> Self:
        """Before any rows, beside those of these logits."""
        return cls(CalibrationEvidence(), DriftEvidence.beside(logits))

    @property
    def arrays(self) -> dict[str, Floats]:
        """For a model to keep."""
        seen, drift = self.calibration, self.drift
        return {
            "rows": seen.rows,
            "positives": seen.positives,
            "numerators": seen.numerators,
            "pool": drift.pool,
            "capital": drift.capital,
            "values": np.array([seen.largest, drift.log_scale, drift.largest]),
        }

    @property
    def found(self) -> dict[str, Any]:
        """The largest e-values so far, and which of them are alarms."""
        both: dict[str, CalibrationEvidence | DriftEvidence]
        both = {"calibration": self.calibration, "drift": self.drift}
        return {
            "e_values": {name: each.largest for name, each in both.items()},
            "alarms": [name for name, each in both.items() if each.alarm],
        }
