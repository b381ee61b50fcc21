"""Messages for a remote queue, which a thread sends: together what came while it was waiting."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from quire._native import text_bytes
from quire.errors import QuireError, RefusedError

if TYPE_CHECKING:
    from quire.remote import RemoteAppender

_COUNT: Final = 16_384
_BYTES: Final = 1 << 20
_AHEAD: Final = 4 << 20


class SentBatches:
    """
    Appends messages by a thread, so that a slow connection does not hold up each of them.

    Nothing is held back: what comes alone is sent alone.

    Args:
        appender: Of a queue whose messages are BinaryWire.

    Attributes:
        line: Where the next message comes from.
        failed_line: Where the first message comes from that may not have been appended; None
            while all were.
        written: How many messages the server has.

    """

    def __init__(self, appender: RemoteAppender) -> None:
        self.line = 0
        self.failed_line: int | None = None
        self.written = 0
        self._appender = appender
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._error: BaseException | None = None
        self._ends = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="quire-write", daemon=True)
        self._thread.start()

    @property
    def last_index_appended(self) -> int | None:
        """The index of the last message that the server has; None before the first."""
        return self._appender.last_index_appended

    def write_bytes(self, data: bytes, /) -> None:
        """Append a message, or have it appended; an earlier one's error is raised."""
        if not data or len(data) > self._appender.longest:
            self.flush()
            self._appender.write_bytes(data)  # says what is wrong with it
            self.written += 1
            return
        with self._changed:
            self._changed.wait_for(lambda: self._error or self._bytes < _AHEAD)
            self._check()
            self._waiting.append((self.line, data))
            self._bytes += len(data)
            self._changed.notify_all()

    def write_text(self, text: str, /) -> None:
        """Append a text value: see :meth:`write_bytes`."""
        self.write_bytes(text_bytes(text))

    def flush(self) -> None:
        """Return when the server has all messages."""
        with self._changed:
            self._changed.wait_for(lambda: self._error or not self._waiting)
            self._check()

    def close(self) -> None:
        """Send nothing more, and wait for the answer to what was sent. Idempotent."""
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        self._thread.join()

    def _check(self) -> None:
        if isinstance(self._error, QuireError | OSError):
            raise self._error
        if self._error is not None:
            raise RefusedError(str(self._error)) from self._error

    def _run(self) -> None:
        while batch := self._next_batch():
            try:
                self._appender.write_many(batch)
            except BaseException as error:  # noqa: BLE001 - raised by the next call
                with self._changed:
                    self._error, self.failed_line = error, self._waiting[0][0]
                    self._changed.notify_all()
                return
            with self._changed:
                for data in batch:
                    self._waiting.popleft()
                    self._bytes -= len(data)
                self.written += len(batch)
                self._changed.notify_all()

    def _next_batch(self) -> list[bytes]:
        """Return what is to be sent together; nothing at the end."""
        found, size = list[bytes](), 0
        with self._changed:
            self._changed.wait_for(lambda: self._ends or self._waiting)
            if self._ends:
                return found
            for _, data in self._waiting:
                if found and (len(found) >= _COUNT or size + len(data) > _BYTES):
                    break
                found.append(data)
                size += len(data)
        return found
