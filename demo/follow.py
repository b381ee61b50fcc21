"""A named tailer in a process of its own that keeps running totals of a growing journal."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import quire
from demo.journal import Journal
from quire.errors import QuireError, WaitTimeoutError

TAILER: Final = "flight-totals"

# One message in this many is timed, here and in the recorder.
TIMED_EVERY: Final = 200

_BATCH: Final = 2_000
_IDLE_S: Final = 0.000_5
_REPORT_INTERVAL_S: Final = 0.05


# Returns the next event, or None when nothing is there yet.
_Read: TypeAlias = Callable[[], Mapping[str, Any] | None]


@dataclass(slots=True)
class Totals:
    """
    What was counted so far. Equal when the same events were counted.

    Attributes:
        delay_minutes: Sum over the departures.
        last_ms: Time of the newest event, in epoch milliseconds.

    """

    departed: int = 0
    arrived: int = 0
    cancelled: int = 0
    delay_minutes: int = 0
    last_ms: int = 0

    @property
    def events(self) -> int:
        """How many events were counted."""
        return self.departed + self.arrived + self.cancelled

    def add(self, event: Mapping[str, Any]) -> None:
        """Count one message of the journal."""
        kind = event["event"]
        if kind == "departed":
            self.departed += 1
            self.delay_minutes += event["delay"]
        elif kind == "arrived":
            self.arrived += 1
        else:
            self.cancelled += 1
        self.last_ms = max(self.last_ms, event["actual"] or event["sched"])

    def __add__(self, other: Totals) -> Totals:
        """Return the totals over the events of both."""
        return Totals(
            self.departed + other.departed,
            self.arrived + other.arrived,
            self.cancelled + other.cancelled,
            self.delay_minutes + other.delay_minutes,
            max(self.last_ms, other.last_ms),
        )


class Follower:
    """
    The tailer's process, seen from the recorder.

    Leaving the context ends the process if it still runs.
    """

    def __init__(self, journal: Journal, *, timeout_s: float = 60.0) -> None:
        """Prepare to follow a journal; no answer may take longer than *timeout_s*."""
        context = get_context("spawn")
        self._pipe, self._far_end = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(journal, self._far_end), name=TAILER, daemon=True
        )
        self._timeout_s = timeout_s
        self.totals = Totals()
        self.read_ns: list[int] = []

    def __enter__(self) -> Self:
        """Start the process and return when its tailer is ready."""
        self._process.start()
        self._far_end.close()
        self._receive()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(timeout=1.0)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()

    def poll(self) -> Totals:
        """Return the newest totals that were reported, without waiting."""
        while self._pipe.poll():
            self._receive()
        return self.totals

    def finish(self, last_index: int) -> Totals:
        """
        Wait until the tailer has passed *last_index* and return its totals.

        ``read_ns`` then holds when each timed message was read, by the monotonic clock, which all
        processes of a machine share.

        Raises:
            WaitTimeoutError: The process read no message within its timeout.
            QuireError: The tailing process failed or ended.

        """
        self._pipe.send(last_index)
        events, deadline = -1, 0.0
        while not self._receive():
            if self.totals.events != events:
                events, deadline = self.totals.events, time.monotonic() + self._timeout_s
            elif time.monotonic() > deadline:
                raise WaitTimeoutError(f"the tailer is stuck: events={events} {last_index=:#x}")
        return self.totals

    def _receive(self) -> bool:
        """Take one report; True when it is the last."""
        if not self._pipe.poll(self._timeout_s):
            raise WaitTimeoutError(f"no report from the tailer: timeout_s={self._timeout_s}")
        try:
            report = self._pipe.recv()
        except EOFError:
            raise QuireError("the tailer's process ended") from None
        if isinstance(report, Exception):
            raise report
        self.totals, self.read_ns, is_last = report
        return bool(is_last)


def _serve(journal: Journal, pipe: Connection) -> None:
    """Run in the child process: follow until the end of the journal is known, then report."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the recorder decides when to stop
    try:
        with (
            journal.open(read_only=False) as queue,
            journal.tailer(queue, TAILER) as tailer,
        ):
            pipe.send((*_follow(partial(journal.read, tailer), tailer, pipe), True))
    except (EOFError, ConnectionError):
        return  # the recorder is gone
    except (QuireError, OSError) as error:
        pipe.send(error)


def _follow(read: _Read, tailer: quire.Tailer, pipe: Connection) -> tuple[Totals, list[int]]:
    """Return the totals, and when each timed message was read."""
    totals, last_index = Totals(), None
    read_ns: list[int] = []
    report_at = 0.0
    while last_index is None or tailer.index <= last_index:
        if _take(read, totals, read_ns) < _BATCH:
            time.sleep(_IDLE_S)
        if pipe.poll():
            last_index = pipe.recv()
        if time.monotonic() >= report_at:
            pipe.send((totals, [], False))
            report_at = time.monotonic() + _REPORT_INTERVAL_S
    return totals, read_ns


def _take(read: _Read, totals: Totals, read_ns: list[int]) -> int:
    """Read at most a batch of the available messages; return how many, counted and timed."""
    for taken in range(_BATCH):
        event = read()
        if event is None:
            return taken
        if totals.events % TIMED_EVERY == 0:
            read_ns.append(time.monotonic_ns())
        totals.add(event)
    return _BATCH
