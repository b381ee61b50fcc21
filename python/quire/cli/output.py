"""Bytes on stdout: pushed out where a person waits for them, or another program."""

from __future__ import annotations

import sys
import time
from typing import Final

_LOOK_EVERY: Final = 256
_TELL_EVERY_S: Final = 0.2


class Output:
    """
    Stdout as it is, without an encoding.

    What goes to a terminal is shown at once. Elsewhere it is collected, until :meth:`flush`.
    """

    def __init__(self) -> None:
        """Take over this process's stdout."""
        self._stream = sys.stdout.buffer
        self.is_terminal = self._stream.isatty()

    def write(self, data: bytes | memoryview) -> None:
        """Write bytes as they are."""
        self._stream.write(data)
        if self.is_terminal:
            self._stream.flush()

    def flush(self) -> None:
        """Hand on what was collected."""
        self._stream.flush()


class Progress:
    """How many messages were handled, on stderr while that is a terminal."""

    def __init__(self) -> None:
        """Say nothing for a moment."""
        self._looked = 0
        self._is_shown = sys.stderr.isatty()
        self._next_s = time.monotonic() + _TELL_EVERY_S

    def tell(self, count: int) -> None:
        """Show the number, now and then."""
        if not self._is_shown or count < self._looked + _LOOK_EVERY:
            return
        self._looked = count
        if (now_s := time.monotonic()) >= self._next_s:
            self._next_s = now_s + _TELL_EVERY_S
            sys.stderr.write(f"\r{count:,} messages")
            sys.stderr.flush()

    def clear(self) -> None:
        """Leave the line to others."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
