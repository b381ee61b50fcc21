"""The source of a replay: a range of a queue, in which each message waits until it is due."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from quire._common import arguments
from quire._native import ReadDocument
from quire.errors import CorruptError, WireError
from quire.formats.adapters import journal_tailer_of
from quire.handles.base import AnyExcerpt, Queue, Tailer
from quire.ranges.damage import Lost, Skipped, Skipper, go_to
from quire.ranges.event_time import TimeField
from quire.ranges.range import Chunks, Point, Range, range_of, require

_NS_PER_S: Final = 1_000_000_000
_BEGAN_ANEW_NS: Final = _NS_PER_S
LONGEST_SLEEP_S: Final = 86_400.0  # time.sleep refuses centuries


@dataclass(frozen=True, slots=True)
class RawDocument:
    """A message of an older format: its bytes alone."""

    index: int
    bytes: bytes


Document: TypeAlias = ReadDocument | RawDocument


def _raw_documents(tailer: Iterable[AnyExcerpt], past: int) -> Iterator[RawDocument]:
    for excerpt in tailer:
        if excerpt.index >= past:
            return
        yield RawDocument(excerpt.index, excerpt.data)


class Pace:
    """
    Waits until messages are due.

    Args:
        speed: How many times faster than the original pace.
        now: Returns the seconds of a monotonic clock.
        sleep: Waits for a number of seconds.

    """

    def __init__(
        self,
        speed: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """Begin with the first message."""
        if not 0 < arguments.count("speed", speed) < float("inf"):
            raise ValueError(f"the pace must be a finite number above 0: speed={speed}")
        self.behind_s = 0.0
        self.most_behind_s = 0.0
        self._speed = speed
        self._now = now
        self._sleep = sleep
        self._origin: tuple[float, int] | None = None
        self._newest_ns = 0

    def wait(self, time_ns: int | None, *, may_begin_anew: bool) -> None:
        """
        Wait until a message is due: not at all if it has no event time, or an earlier one.

        Args:
            time_ns: The message's event time.
            may_begin_anew: Whether a much earlier time means that the clock was reset.

        """
        if time_ns is None:
            return
        has_begun_anew = may_begin_anew and time_ns < self._newest_ns - _BEGAN_ANEW_NS
        if self._origin is None or has_begun_anew:
            self._origin = self._now(), time_ns
            self._newest_ns = time_ns
        self._newest_ns = max(self._newest_ns, time_ns)
        began_s, began_ns = self._origin
        due_s = began_s + (self._newest_ns - began_ns) / _NS_PER_S / self._speed
        while (left_s := due_s - self._now()) > 0:
            self._sleep(min(left_s, LONGEST_SLEEP_S))
        self.behind_s = -left_s
        self.most_behind_s = max(self.most_behind_s, self.behind_s)


class Replay:
    """
    A range of the current messages of a queue, to be replayed once.

    Args:
        source: The queue.
        start: The first message: an index, or a time. See :func:`quire.replay`.
        end: The first message after the range, as an index or a time.
        pace: Waits until each message is due; None: do not wait.
        time_field: The field that holds the event time; None: take the time from the history.
        skipped: Called with each range that cannot be read and is skipped; None: raise instead.

    """

    def __init__(  # noqa: PLR0913 - by keywords
        self,
        source: Queue,
        start: Point | None = None,
        end: Point | None = None,
        *,
        pace: Pace | None = None,
        time_field: str | None = None,
        skipped: Skipped | None = None,
    ) -> None:
        """Find the range."""
        self.source = source
        skips = skipped is not None
        self.range = range_of(source, start, end, time_field=time_field, skips=skips)
        self.skipped = skipped
        self._reported = set[int | None]()
        self.pace = pace
        self._limits = start, end
        self._field = None if time_field is None else TimeField(time_field)
        if isinstance(start, int):
            self._check_start(start)
        if pace is not None and not self.range.is_empty:
            self._check_times()

    @property
    def is_ahead(self) -> bool:
        """Whether the range begins at a time that no message has reached yet."""
        return isinstance(self._limits[0], datetime) and self.range.is_empty

    def again(self) -> Replay:
        """Return a replay of the same range with the current messages of the queue."""
        field = None if self._field is None else self._field.name
        return Replay(
            self.source, *self._limits, pace=self.pace, time_field=field, skipped=self.skipped
        )

    def skipper(self) -> Skipper | None:
        """Return a skipper, which reports each damaged range once; None: damage is an error."""
        return None if self.skipped is None else Skipper(self.source, self._report)

    def chunks(self, tailer: Tailer, left: Range | None = None) -> Chunks:
        """Return the messages of *left*, the part still to replay; None: of the whole range."""
        return Chunks(tailer, self.range if left is None else left, self.skipper())

    def _report(self, lost: Lost) -> None:
        if self.skipped is not None and lost.past not in self._reported:
            self._reported.add(lost.past)
            self.skipped(lost)

    def documents(self, left: Range | None = None) -> Iterator[Document]:
        """
        Yield each message, open, when it is due.

        Args:
            left: The part still to replay; None: the whole range.

        """
        with closing(self._documents(self.range if left is None else left)) as documents:
            for document in documents:
                if self.pace is not None:
                    by_history = self._field is None
                    self.pace.wait(self._time_ns(document), may_begin_anew=by_history)
                yield document

    def _documents(self, left: Range) -> Generator[Document]:
        """Yield each message, open."""
        if left.is_empty:
            return
        with self.source.tailer() as tailer:
            skipper = self.skipper()
            if not go_to(tailer, left.first, skipper):
                return
            journal = journal_tailer_of(tailer)
            if journal is None:
                yield from _raw_documents(tailer, left.past)
                return
            while True:
                try:
                    with journal.reading_document() as document:
                        if document.is_present and document.index < left.past:
                            yield document
                            continue
                        if skipper is not None and not document.is_present:
                            skipper.check_end(tailer.index)
                        return
                except CorruptError as error:
                    if skipper is None:
                        raise
                    if not skipper.skip(tailer, error):
                        return

    def _check_start(self, start: int) -> None:
        if start != self.range.first or self.range.is_empty:
            require(self.source, start)

    def _check_times(self) -> None:
        """Check that the first message has an event time; later ones need none."""
        with closing(self._documents(self.range)) as documents:
            if self._time_ns(next(documents)) is not None:
                return
        what = "no history" if self._field is None else f"no time in the field {self._field.name!r}"
        raise ValueError(
            f"cannot derive the pace: the first message has {what}: index={self.range.first:#x}"
            f" path={self.source.path}; name the time field of the messages, or omit the speed"
        )

    def _time_ns(self, document: Document) -> int | None:
        if self._field is not None:
            return self._field.of(document.bytes)
        if isinstance(document, RawDocument):
            return None
        try:
            history = document.history
        except WireError:
            return None
        return history.timings[-1] if history is not None and history.timings else None
