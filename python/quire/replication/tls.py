"""TLS 1.3 for replication: both sides show a certificate of the same authority."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from os import PathLike

from quire.errors import OptionsError


@dataclass(frozen=True, slots=True)
class Tls:
    """
    The certificate of this side, and the authority that signs those of its peers.

    Peers without a certificate of that authority are refused, on both sides. A sink checks that the
    source's certificate is for the host that it connects to.

        Source(queue, host="10.0.0.1", tls=Tls("node.pem", "node.key", "authority.pem"))

    Attributes:
        certificate: A PEM file: the certificate, and those between it and the authority's.
        key: A PEM file: the private key.
        authority: A PEM file: the authority's certificate.

    """

    certificate: str | PathLike[str]
    key: str | PathLike[str]
    authority: str | PathLike[str]

    def context(self, *, is_listening: bool) -> ssl.SSLContext:
        """
        Return the context of a connection.

        Raises:
            OptionsError: A file cannot be read, or holds no valid certificate or key.

        """
        purpose = ssl.PROTOCOL_TLS_SERVER if is_listening else ssl.PROTOCOL_TLS_CLIENT
        context = ssl.SSLContext(purpose)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_cert_chain(self.certificate, self.key)
            context.load_verify_locations(self.authority)
        except (OSError, ssl.SSLError) as error:
            files = f"certificate={self.certificate} key={self.key} authority={self.authority}"
            raise OptionsError(f"cannot use TLS: {error} {files}") from None
        return context


def check_allowed(host: str, tls: Tls | None, *, insecure: bool) -> None:
    """
    Check that a connection beyond this machine is encrypted.

    Raises:
        OptionsError: The connection would not be encrypted, and *insecure* was not given.

    """
    if tls is None and not insecure and not is_loopback(host):
        text = "replication beyond this machine needs TLS"
        hint = "give a certificate, a key and an authority; insecure=True allows it without"
        raise OptionsError(f"{text}: host={host} ({hint})")


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_any_host(host: str) -> bool:
    """Whether an address stands for all of a machine's, and cannot be connected to."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host
