"""The names of sinks and nodes."""

from __future__ import annotations

from typing import Final

from quire.errors import OptionsError

LIMIT: Final = 200
"""The longest name, in bytes."""


def is_name(name: str) -> bool:
    """Whether a source stores the state of a sink with this name."""
    return name.isprintable() and 0 < len(name.encode()) <= LIMIT


def check_name(name: str) -> None:
    """
    Check the name of a sink or a node.

    Raises:
        OptionsError: The name is empty or too long, or cannot be printed.

    """
    if not is_name(name):
        text = f"a name must have 1 to {LIMIT} bytes of UTF-8 that can be printed"
        raise OptionsError(f"{text}: {name=}")


def default_name(host: str, path: str) -> str:
    """Return the default name of a sink: its machine and the path of its copy."""
    parts = (it if it.isprintable() else _escaped(it) for it in f"{host}:{path}")
    return "".join(parts).encode()[-LIMIT:].decode(errors="ignore")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
