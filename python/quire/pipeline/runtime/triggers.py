"""Waiting for a stream to finish, or stopping it between two batches."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, cast

from pyspark.sql.streaming.query import StreamingQuery

from quire.errors import StoppedError

_POLL_S: Final = 0.1
_COMMITTED_WITHIN_S: Final = 10.0


class Stop:
    """
    Stops a run after the current batch.

    Examples:
        >>> import quire.pipeline
        >>> stop = quire.pipeline.Stop()
        >>> stop.ask()  # from another thread or a signal handler
        >>> stop.is_asked
        True

    """

    def __init__(self) -> None:
        """Start without a request to stop."""
        self._asked = threading.Event()
        self._batch = threading.Lock()

    @property
    def is_asked(self) -> bool:
        """Whether the run was asked to stop."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Stop the run after the current batch. Safe in a signal handler."""
        self._asked.set()

    @contextmanager
    def held(self) -> Generator[None]:
        """
        Hold off the stop while a batch is computed.

        Raises:
            StoppedError: The run is stopping.

        """
        with self._batch:
            if self.is_asked:
                raise StoppedError("the run is stopping")
            yield

    def wait_for_batch(self) -> None:
        """Wait for the current batch."""
        with self._batch:
            pass

    @contextmanager
    def on_signals(self) -> Generator[None]:
        """Ask on SIGTERM and SIGINT; the second signal interrupts."""

        def ask(_number: int, _frame: FrameType | None) -> None:
            if self.is_asked:
                raise KeyboardInterrupt
            self.ask()

        before = {it: signal.signal(it, ask) for it in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def until_finished(
    query: StreamingQuery,
    stop: Stop,
    progress: Callable[[dict[str, Any]], None],
    waited: Callable[[], None],
) -> None:
    """
    Wait until the stream ends or *stop* ends it, and report the progress of its batches.

    *waited* is called repeatedly meanwhile.

    Raises:
        StreamingQueryException: A batch failed.

    """
    try:
        while not query.awaitTermination(cast("int", _POLL_S)):  # it takes fractions
            if (latest := query.lastProgress) is not None:
                progress(latest)
            waited()
            if stop.is_asked:
                _end(query, stop)
                break
    except Exception:
        if not stop.is_asked:
            raise
    finally:
        for found in query.recentProgress:
            progress(found)
        query.stop()


def _end(query: StreamingQuery, stop: Stop) -> None:
    """Wait until the current batch is done and Spark has committed it."""
    stop.wait_for_batch()
    deadline = time.monotonic() + _COMMITTED_WITHIN_S
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(_POLL_S)
