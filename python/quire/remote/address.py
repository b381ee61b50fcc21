"""Addresses of remote queues: ``quire://HOST:PORT/QUEUE``."""

from __future__ import annotations

import ssl
from os import PathLike, fspath
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote, unquote, urlsplit

from quire.errors import OptionsError

SCHEME: Final = "quire://"
Tls: TypeAlias = "ssl.SSLContext | str | PathLike[str] | bytes | bool | None"
"""What verifies a server's certificate: see *tls* of :func:`quire.open`."""


class RemoteAddress(NamedTuple):
    """
    The address of a queue on a server.

    Attributes:
        host: The server's host.
        port: Its port.
        topic: The name of the queue; empty for the server itself.

    """

    host: str
    port: int
    topic: str

    @property
    def url(self) -> str:
        """The address as text."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}{host}:{self.port}/{quote(self.topic)}".rstrip("/")


def is_remote(path: object) -> bool:
    """Return whether a path is the address of a remote queue."""
    return isinstance(path, str) and path.startswith(SCHEME)


def parse(url: str, *, names_queue: bool = True) -> RemoteAddress:
    """
    Parse ``quire://HOST:PORT/QUEUE``; without *names_queue*, the queue may be left out.

    Raises:
        OptionsError: The text is not such an address.

    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise OptionsError(f"invalid address of a queue: {error} url={url!r:.200}") from None
    if parts.username is not None or parts.password is not None:
        raise OptionsError(
            "a token does not belong in an address, as addresses are logged: pass token="
        )
    topic = unquote(parts.path).strip("/")
    is_short = names_queue and not topic
    if not host or not port or is_short or parts.query or parts.fragment:
        form = "quire://HOST:PORT/QUEUE" if names_queue else "quire://HOST:PORT or .../QUEUE"
        raise OptionsError(f"invalid address of a queue: url={url!r:.200} (expected {form})")
    return RemoteAddress(host, port, topic)


def is_own_authority(tls: Tls) -> bool:
    """Return whether only servers with a certificate of the user's own authority are trusted."""
    return isinstance(tls, str | PathLike | bytes)


def client_context(tls: Tls) -> ssl.SSLContext | None:
    """
    Return the TLS context of connections; None without TLS.

    Raises:
        OptionsError: The file has no certificate of an authority.

    """
    if isinstance(tls, ssl.SSLContext):
        return tls
    if tls is None or tls is False:
        return None
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if tls is not True:
        try:
            context = _trusting(tls)
        except (OSError, ssl.SSLError, UnicodeDecodeError) as error:
            shown = "(its text)" if isinstance(tls, bytes) else tls
            raise OptionsError(f"cannot use TLS: authority={shown} error={error}") from None
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def _trusting(authority: str | PathLike[str] | bytes) -> ssl.SSLContext:
    if isinstance(authority, bytes):
        return ssl.create_default_context(cadata=authority.decode("ascii"))
    return ssl.create_default_context(cafile=fspath(authority))
