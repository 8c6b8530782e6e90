"""Evidence that rows or their labels are no longer what a model was trained on, at any time."""

from bootprob.runtime.late_names import late_names

__all__ = ["CalibrationEvidence", "DriftEvidence"]

__getattr__ = late_names(
    __name__,
    {"CalibrationEvidence": "calibration_evidence", "DriftEvidence": "drift_evidence"},
)
