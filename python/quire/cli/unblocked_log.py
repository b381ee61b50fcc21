"""A log on stderr that never blocks its callers: if nobody reads it, lines are dropped."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque
from typing import Final, TextIO

from quire.cli.exit_codes import error_line

_MOST: Final = 1000
_LAST_S: Final = 1.0


class UnblockedLog(logging.Handler):
    """
    Writes lines to stderr by a thread; as soon as too many wait, further ones are only counted.

    Stderr stays as it is: a flag that makes writing not wait would be that of all processes which
    have the same terminal or pipe. The thread may wait in a write for ever, so it writes past
    Python's own buffer, which the end of the process waits for.
    """

    def __init__(self) -> None:
        super().__init__()
        self._handle = _handle(sys.stderr)
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._is_ending = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="quire-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Have the thread write a line, or drop it."""
        is_own = record.name.partition(".")[0] == "quire"
        try:  # of other packages with the traceback, if there is one
            line = error_line(record.getMessage() if is_own else self.format(record))
        except Exception:  # noqa: BLE001 - a handler never raises into the code that logs
            self.handleError(record)
            return
        with self._changed:
            if len(self._lines) >= _MOST:
                self._dropped += 1
            else:
                self._lines.append(line)
                self._changed.notify()

    def close(self) -> None:
        """Write what waits, unless nobody reads it within a second."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        self._thread.join(_LAST_S)
        super().close()

    def _run(self) -> None:
        while (text := self._next()) is not None:
            try:
                _write(self._handle, text)
            except OSError:  # nobody will read any more
                return

    def _next(self) -> str | None:
        """Return the next line; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._dropped or self._is_ending)
            if self._lines:
                return self._lines.popleft()
            dropped, self._dropped = self._dropped, 0
        if not dropped:
            return None
        return error_line(f"log lines were dropped, as nothing read stderr: lines={dropped}")


def _handle(stream: TextIO) -> int | TextIO:
    """Return the file of a stream; the stream if it has none, as in a notebook."""
    try:
        return stream.fileno()
    except OSError:
        return stream


def _write(to: int | TextIO, text: str) -> None:
    if not isinstance(to, int):
        to.write(text)
        return
    data = text.encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(to, data) :]
