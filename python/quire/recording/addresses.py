"""Addresses as text: ``HOST:PORT``, and URLs."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, TypeAlias
from urllib.parse import urlsplit

Address: TypeAlias = tuple[str, int]

_SCHEMES: Final = ("ws", "wss")
_BACKLOG: Final = 100
_LOCAL: Final = "127.0.0.1"
_PAST_PORTS: Final = 1 << 16


def parse_address(text: str) -> Address:
    """
    Parse ``HOST:PORT``, ``[HOST]:PORT``, ``:PORT`` or ``PORT``; without a host, 127.0.0.1.

    Raises:
        ValueError: The text has none of these forms.

    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not (port.isascii() and port.isdecimal()) or int(port) >= _PAST_PORTS:
        raise ValueError(f"invalid address: expected HOST:PORT, found {text!r}")
    return host or _LOCAL, int(port)


def show_address(address: tuple[object, ...]) -> str:
    """Return an address as text."""
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_url(text: str) -> str:
    """
    Return the URL of a WebSocket, ``ws://...`` or ``wss://...``.

    Raises:
        ValueError: The text is not the URL of a WebSocket.

    """
    parts = urlsplit(text)  # raises ValueError for some invalid ports and addresses itself
    if parts.scheme not in _SCHEMES or not parts.hostname or parts.fragment or parts.port == 0:
        raise ValueError(f"invalid URL: expected ws://HOST or wss://HOST, found {text!r}")
    return text


def show_url(url: str) -> str:
    """Return a URL without its possibly secret parts: user, password and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def listen(address: Address) -> socket.socket:
    """
    Return a socket that listens for connections.

    Raises:
        OSError: The address cannot be listened on.

    """
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with binding(address):
        return socket.create_server(address, family=family, backlog=_BACKLOG)


@contextmanager
def binding(address: Address) -> Generator[None]:
    """Add to errors the address that cannot be listened on."""
    try:
        yield
    except OSError as error:
        text = f"cannot listen: address={show_address(address)} reason={error.strerror}"
        raise OSError(error.errno, text) from error
