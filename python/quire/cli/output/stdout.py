"""Bytes on stdout: pushed out where a person waits for them, or another program."""

from __future__ import annotations

import sys


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
        """Write the collected bytes."""
        self._stream.flush()
