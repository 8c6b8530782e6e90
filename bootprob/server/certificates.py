"""Certificates of TLS, looked at before a server starts."""

from __future__ import annotations

import ssl
from pathlib import Path

from bootprob.exceptions import DataError

__all__ = ["check_certificate"]


def check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Refuse a chain and a key that do not make a server.

    Raises
    ------
    DataError
        A file is missing or no PEM, the key is another chain's or wants a password, or there is a
        key alone.
    """
    if certificate is None:
        if key is not None:
            raise DataError("There is a key without a certificate; give --certificate too.")
        return
    for path in (certificate, key):
        if path is not None and not path.is_file():
            raise DataError(f"{path} does not exist; give a PEM file.")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            certificate, key, password=_no_password
        )
    except (ssl.SSLError, OSError, ValueError) as error:
        with_key = "" if key is None else f" with {key}"
        raise DataError(
            f"{certificate}{with_key} cannot be used for TLS: {error}. Give the chain and its "
            "private key as PEM, without a password."
        ) from None


def _no_password() -> str:
    raise ValueError("the key wants a password")
