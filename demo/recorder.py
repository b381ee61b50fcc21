"""A recorder in a process of its own, which can be killed."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Final, Self

import quire
from demo.events import Event
from demo.journal import Journal
from demo.record import Writer
from quire.errors import QuireError, WaitTimeoutError

_REPORTS: Final = 400
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Progress:
    """
    How far a recorder is.

    Attributes:
        count: The number of events in its journal.
        last_index: The index of the last one.
        acknowledged_index: The last message that a replica has acknowledged; None before that.
        written_ns: When the timed events since the last report were appended, by their number.

    """

    count: int
    last_index: int = 0
    acknowledged_index: int | None = None
    written_ns: dict[int, int] = field(default_factory=dict[int, int])


class Recorder:
    """
    A recorder's process, seen from the run. It waits until :meth:`begin`.

    Leaving the context kills it.

    Args:
        journal: Where it writes.
        events: What it writes, except for as many as the journal has when it begins.
        name: Its name.

    """

    def __init__(self, journal: Journal, events: Sequence[Event], name: str) -> None:
        context = get_context("spawn")
        self._pipe, self._far_end = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(journal, events, self._far_end), name=name, daemon=True
        )

    def __enter__(self) -> Self:
        """Start the process, and return when it is ready to begin."""
        self._process.start()
        self._far_end.close()
        self._received()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the process."""
        self.kill()
        self._pipe.close()

    def begin(self) -> None:
        """Have it record; what its journal has already is left out."""
        self._pipe.send(None)

    def progress(self) -> Progress:
        """
        Return the next report.

        Raises:
            QuireError: The recorder failed or ended.

        """
        return self._received()

    def kill(self) -> None:
        """End it as ``kill -9`` does: it gets no chance to finish anything."""
        self._process.kill()
        self._process.join()

    def _received(self) -> Progress:
        if not self._pipe.poll(_TIMEOUT_S):
            raise WaitTimeoutError(f"no report from the recorder: timeout_s={_TIMEOUT_S}")
        try:
            report = self._pipe.recv()
        except EOFError:
            raise QuireError("the recorder's process ended") from None
        if isinstance(report, Exception):
            raise report
        found: Progress = report
        return found


def _serve(journal: Journal, events: Sequence[Event], pipe: Connection) -> None:
    """Run in the child process: record what the journal lacks, and report all the time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run decides when to stop
    try:
        pipe.send(Progress(0))
        pipe.recv()
        _record(journal, events, pipe)
        pipe.recv()  # nothing comes: it ends when it is killed, or the run is gone
    except (EOFError, ConnectionError):
        return
    except (QuireError, OSError) as error:
        pipe.send(error)


def _record(journal: Journal, events: Sequence[Event], pipe: Connection) -> None:
    clock = quire.ManualClock(events[0].time_ms)
    with journal.create(clock) as queue, queue.appender() as appender:
        first = journal.count(queue)
        writer = Writer(journal, appender, clock, first)
        step = len(events) // _REPORTS + 1
        for start in range(first, len(events), step):
            writer.written_ns.clear()
            writer.write(events[start : start + step])
            pipe.send(
                Progress(
                    writer.count,
                    writer.last_index,
                    journal.acknowledged_index(queue),
                    writer.written_ns,
                )
            )
