"""Errors that say what was given, what is allowed and what to do."""

__all__ = ["BootprobError", "DataError", "ModelFileError"]


class BootprobError(Exception):
    """Base of every error that bootprob raises on purpose."""


class DataError(BootprobError, ValueError):
    """The data or the options given cannot be used; the message says which and why."""


class ModelFileError(BootprobError):
    """A model file is missing, damaged, not ours or of another version."""
