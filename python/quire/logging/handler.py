"""The handler that appends log records to a queue."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext, suppress
from os import PathLike
from typing import Any, Final

from quire._common import arguments
from quire.errors import ForkedError, NotAQueueError, QuireError, TableLostError, WireError
from quire.handles.base import Queue
from quire.handles.journal.queue import JournalQueue
from quire.logging.log_record import plain, record_of
from quire.opening.opener import open as open_queue
from quire.sealed.key_ring import KeyRing, default_allows_plain, default_ring, ring_of

_UNENCODABLE: Final = (OverflowError, TypeError, UnicodeError, WireError)


class Handler(logging.Handler):
    """
    Appends each log record to a queue as one self-describing message, a :class:`Record`.

    The message is not formatted: its template and arguments are stored, and the reader of the
    record formats them. A failure never reaches the program: it goes to ``handleError``, as for
    every handler. A forked child opens the queue again, and any number of processes may log to one
    queue. If *queue* is a path and its directory is renamed or removed, a new queue is created
    there.

    Args:
        queue: The queue, or the path of one.
        level: The lowest level that is written.
        options: Options of :func:`quire.open`, for a path.

    Raises:
        QuireError: The path cannot be opened.
        TypeError: *queue* is neither a queue nor a path.

    Examples:
        >>> import logging.config
        >>> logging.config.dictConfig({
        ...     "version": 1,
        ...     "handlers": {
        ...         "queue": {
        ...             "class": "quire.logging.Handler",
        ...             "queue": "logs",
        ...             "roll_cycle": "FAST_DAILY",
        ...         }
        ...     },
        ...     "loggers": {"orders": {"level": "INFO", "handlers": ["queue"]}},
        ... })
        >>> logging.getLogger("orders").info("filled", extra={"order": 17})
        >>> with quire.open("logs", read_only=True) as log:
        ...     record = log.tailer().read_message(quire.logging.Record)
        >>> record.text, record.extra
        ('filled', {'order': 17})
        >>> for handler in [*logging.getLogger("orders").handlers]:
        ...     logging.getLogger("orders").removeHandler(handler)
        ...     handler.close()

    """

    _is_open = False

    def __init__(
        self,
        queue: JournalQueue | str | PathLike[str],
        level: int | str = logging.NOTSET,
        **options: Any,  # noqa: ANN401 - those of `quire.open`
    ) -> None:
        """Open the queue if it is a path."""
        super().__init__(level)
        self._is_own = self._is_by_path = not isinstance(queue, Queue)
        self._queue = _opened(queue, options)
        self._options = options
        self._keys = _keys_of(options)
        self._appender = self._queue.appender()
        self._is_open = True

    @property
    def queue(self) -> JournalQueue:
        """The queue to which records are appended."""
        return self._queue

    def emit(self, record: logging.LogRecord) -> None:
        """Append a record, as the standard library's ``logging.Handler`` asks."""
        try:
            self._appender.write_message(record_of(record))
        except Exception as error:  # noqa: BLE001 - the program logs, it does not handle its log
            self._append_after(error, record)

    def close(self) -> None:
        """Close the appender, and the queue if this handler opened it."""
        super().close()
        if not self._is_open:  # `logging` closes at exit what could not be opened, too
            return
        with suppress(ForkedError):
            self._appender.close()
            if self._is_own:
                self._queue.close()

    def _append_after(self, error: Exception, record: logging.LogRecord) -> None:
        """Append a record after the first attempt failed."""
        try:
            if isinstance(error, _UNENCODABLE):
                self._append_plain(record)
            elif self._is_open_again(error):
                self._append_again(record)
            else:
                self.handleError(record)
        except Exception:  # noqa: BLE001 - as above
            self.handleError(record)

    def _append_plain(self, record: logging.LogRecord) -> None:
        try:
            self._appender.write_message(plain(record))
        except QuireError as error:
            if not self._is_open_again(error):
                raise
            self._appender.write_message(plain(record))

    def _append_again(self, record: logging.LogRecord) -> None:
        try:
            self._appender.write_message(record_of(record))
        except _UNENCODABLE:
            self._appender.write_message(plain(record))

    def _is_open_again(self, error: Exception) -> bool:
        """Open the queue again if the error calls for it; return whether it was opened."""
        if isinstance(error, ForkedError):
            self._reopen()
        elif isinstance(error, TableLostError | NotAQueueError) and self._is_by_path:
            self._begin_anew()
        else:
            return False
        return True

    def _reopen(self) -> None:
        """Open the queue again in a child, which cannot use the parent's handles."""
        reopen, of_queue = self._queue.__reduce__()
        with self._with_keys():
            self._queue = reopen(*of_queue)
        self._is_own = True
        self._appender = self._queue.appender()

    def _begin_anew(self) -> None:
        """Open the queue that is now at the path: the previous one was renamed or removed."""
        with self._with_keys():
            queue = _opened(self._queue.path, self._options)
        before, self._queue = self._queue, queue
        self._appender = queue.appender()
        with suppress(QuireError, OSError):
            before.close()

    def _with_keys(self) -> AbstractContextManager[None]:
        ring, allow_plain = self._keys
        return nullcontext() if ring is None else ring.as_default(allow_plain=allow_plain)


def _keys_of(options: dict[str, Any]) -> tuple[KeyRing | None, bool]:
    """Return the keys that a queue is opened with, and whether it may have plain messages."""
    if (key := options.get("key")) is not None:
        return ring_of(key), bool(options.get("allow_plain"))
    return default_ring(), default_allows_plain()


def _opened(queue: Queue | str | PathLike[str], options: dict[str, Any]) -> JournalQueue:
    if not isinstance(queue, Queue):
        path = arguments.queue_path("queue", queue)
        return open_queue(path, **options, format="chronicle")
    if not isinstance(queue, JournalQueue):
        expected = "a path, or a Chronicle queue, which can hold documents"
        raise arguments.refusal("queue", expected, queue)
    if options:
        raise TypeError(f"an open queue takes no options: options={sorted(options)}")
    return queue
