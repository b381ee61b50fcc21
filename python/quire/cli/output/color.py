"""Colour, where a person looks: on a terminal, unless NO_COLOR is set."""

from __future__ import annotations

import os
import sys
from typing import IO, Any

import click


def has_color(stream: IO[Any] | None = None) -> bool:
    """Return whether text on *stream*, by default stdout, may be coloured."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return (stream or sys.stdout).isatty()


def styled(text: str, stream: IO[Any] | None = None, /, **style: Any) -> str:  # noqa: ANN401
    """
    Return text in a style of ``click.style``, such as ``fg="red"``; plain where nobody looks.

    The text must be harmless already: see :mod:`quire._common.terminal`.
    """
    return click.style(text, **style) if has_color(stream) else text
