"""Evidence that rows or their labels are no longer what a model was trained on, at any time.

Evidence may be looked at after every row: a false alarm stays as rare as stated, however long one
watches. `DriftEvidence` needs no labels, `CalibrationEvidence` does. Guide: docs/updating.md.
"""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.monitoring.calibration_evidence import CalibrationEvidence
    from bootprob.monitoring.drift_evidence import DriftEvidence

__all__ = ["CalibrationEvidence", "DriftEvidence"]

__getattr__ = late_names(
    __name__,
    {"CalibrationEvidence": "calibration_evidence", "DriftEvidence": "drift_evidence"},
)
