"""Single documents on stdout, as ``quire replay`` shows them."""

from __future__ import annotations

from typing import NamedTuple

import quire
from quire.cli.formats import FORMATS, as_it_is, framed
from quire.cli.output import Output


class Look(NamedTuple):
    """How messages are shown."""

    style: str
    with_index: bool


class Printer:
    """
    Shows documents on stdout.

    Args:
        look: How.
        at_once: Hand on each message before the next is read.

    """

    def __init__(self, look: Look, *, at_once: bool) -> None:
        """Begin with nothing shown."""
        self._look = look
        self._at_once = at_once
        self._output = Output()
        self._is_array = look.style == "json"
        self._between = "["
        self.flush = self._output.flush

    def show(self, document: quire.ReadDocument) -> None:
        """Show a message."""
        if self._look.style == "raw":
            self._output.write(document.bytes)
        else:
            self._write(document, FORMATS[self._look.style](document))
        if self._at_once:
            self.flush()

    def end(self) -> None:
        """Close what is open."""
        if self._is_array:
            self._output.write(b"[]\n" if self._between == "[" else b"\n]\n")
        self.flush()

    def _write(self, document: quire.ReadDocument, text: str) -> None:
        index = document.index if self._look.with_index else None
        frame = framed(self._look.style, text, index, is_metadata=document.is_metadata)
        if self._is_array:
            frame = f"{self._between}\n{frame.rstrip()}"
            self._between = ","
        self._output.write(as_it_is(frame))
