"""skops, which makes no object of a type that is not trusted; imported where it is needed."""

from __future__ import annotations

from typing import Any

from bootprob.exceptions import ModelFileError

__all__ = ["as_bytes", "skops_io"]


def skops_io() -> Any:
    """The module `skops.io`.

    Raises
    ------
    ModelFileError
        It is not installed.
    """
    try:
        import skops.io
    except ImportError:
        raise ModelFileError(
            'Files of classifiers need the package skops: pip install "bootprob[skops]".'
        ) from None
    return skops.io


def as_bytes(classifiers: Any) -> bytes:
    """Classifiers as skops stores them.

    Raises
    ------
    ModelFileError
        skops is not installed, or cannot store one of them.
    """
    io = skops_io()
    try:
        found: bytes = io.dumps(classifiers)
    except Exception as error:  # of the classifiers' own, and of skops
        raise ModelFileError(f"skops cannot store the classifiers: {error}") from error
    return found
