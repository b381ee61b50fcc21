"""Addresses as text: ``HOST:PORT``."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, TypeAlias

Address: TypeAlias = tuple[str, int]

_LOCAL: Final = "127.0.0.1"
_PAST_PORTS: Final = 1 << 16


def parse_address(text: str) -> Address:
    """
    Parse ``HOST:PORT``, ``[HOST]:PORT``, ``:PORT`` or ``PORT``; without a host, 127.0.0.1.

    Raises:
        ValueError: It is none of them.

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


@contextmanager
def binding(address: Address) -> Generator[None]:
    """Have errors name the address that cannot be listened on."""
    try:
        yield
    except OSError as error:
        text = f"cannot listen: address={show_address(address)} reason={error.strerror}"
        raise OSError(error.errno, text) from error
