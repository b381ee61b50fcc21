"""TLS 1.3 for a server: its certificate, and, if asked, certificates of its clients."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from quire.errors import OptionsError


@dataclass(frozen=True, slots=True)
class Certificates:
    """
    Files of certificates, for Arrow Flight, which reads them itself.

        Certificates("node.pem", "node.key")

    Attributes:
        certificate: A PEM file: the server's certificate, and those up to the authority's.
        key: A PEM file: its private key.
        authority: A PEM file: who signs the certificates of clients, which then need one.

    """

    certificate: str | PathLike[str]
    key: str | PathLike[str]
    authority: str | PathLike[str] | None = None


def name_in(certificate: Mapping[str, Any] | None) -> str:
    """
    Return the name in a certificate, as :meth:`ssl.SSLSocket.getpeercert` describes it.

    That is the common name of its subject, or without one its first alternative name; empty if
    there is no certificate, or it was not verified.
    """
    if not certificate:
        return ""
    subject = [pair for several in certificate.get("subject", ()) for pair in several]
    names = [text for kind, text in subject if kind == "commonName"]
    return next(iter([*names, *(text for _, text in certificate.get("subjectAltName", ()))]), "")


def tls_context(
    certificate: str | PathLike[str],
    key: str | PathLike[str],
    authority: str | PathLike[str] | None = None,
) -> ssl.SSLContext:
    """
    Return what a server shows its clients, and asks of them.

        Server("queues", host="10.0.0.1", tls=tls_context("node.pem", "node.key"), tokens="tokens")

    Args:
        certificate: A PEM file: its certificate, and those between it and the authority's.
        key: A PEM file: its private key.
        authority: A PEM file: who signs the certificates of clients, which then need one.

    Raises:
        OptionsError: A file cannot be read, or does not hold what it should.

    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(certificate, key)
        if authority is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        files = f"certificate={certificate} key={key} authority={authority}"
        raise OptionsError(f"cannot use TLS: {error} {files}") from None
    return context
