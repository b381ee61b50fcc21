"""Recording on one node and following on another; in the middle the first one dies."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import quire
from demo import nodes
from demo.events import DAY_MS, Event, date_of
from demo.folder import DemoFolder
from demo.follow import Follower
from demo.journal import Journal
from demo.record import OnDay, Recording, disk_bytes, timed, totals_of
from demo.recorder import Progress, Recorder
from quire.formats.adapters import numbering_of


@dataclass(frozen=True, slots=True)
class FailOver:
    """
    What became of the events when the first node died.

    Attributes:
        written: Events that the first recorder had reported as written.
        acknowledged: Those of them that it knew a replica to have.
        kept: Events that the second node had when it was promoted.
        recorded_there: Events that the second recorder wrote.
        epoch: The epoch that began.
        seconds: From the kill until the second recorder had written its first events.

    """

    written: int
    acknowledged: int
    kept: int
    recorded_there: int
    epoch: int
    seconds: float


def record_on_two_nodes(
    folder: DemoFolder, events: Sequence[Event], on_day: OnDay
) -> tuple[Recording, FailOver]:
    """
    Record *events* on a first node, and follow on a second one that replicates it.

    In the middle the processes of the first node are killed. The second is promoted, and its
    recorder goes on after the last event that it has.

    Args:
        folder: Where the queues of both go.
        events: In time order; at least four.
        on_day: Called for each day.

    Raises:
        QuireError: A queue or a process failed.

    """
    first, second = Journal(folder.first_node), Journal(folder.queue)
    first.create(quire.ManualClock(events[0].time_ms)).close()
    folder.node_log.touch()
    with (
        nodes.source(first.path, folder.node_log) as source,
        nodes.sink(second.path, source.address, folder.node_log) as sink,
        Follower(second) as follower,
        # The first one cannot get to the end before it is killed.
        Recorder(first, events[: len(events) * 3 // 4], "recorder of node 1") as recorder,
        Recorder(second, events, "recorder of node 2") as standby,
    ):
        seen = _Seen(events, follower, on_day)
        start = time.perf_counter()
        recorder.begin()
        seen.until(recorder, len(events) // 2)
        died = seen.last
        source.kill()
        recorder.kill()
        killed = time.perf_counter()
        epoch = nodes.promote(second.path, folder.node_log)
        sink.wait()
        with second.open(read_only=True) as queue:
            kept = second.count(queue)
        standby.begin()
        seen.go_on_from(kept)
        seen.until(standby, kept + 1)
        went_on = time.perf_counter()
        seen.until(standby, len(events))
        end = time.perf_counter()
        followed = follower.finish(seen.last.last_index)
        caught_up = time.perf_counter()
    with second.open(read_only=True) as queue:
        recording = Recording(
            journal=second,
            written=totals_of(events),
            followed=followed,
            first_index=queue.first_index or 0,
            last_index=seen.last.last_index,
            write_s=end - start,
            catch_up_s=caught_up - end,
            disk_bytes=disk_bytes(second.path),
            messages=dict(Counter(date_of(it.time_ms // DAY_MS) for it in events)),
            timed=timed(seen.written_ns, follower.read_ns),
            metrics=second.metrics(queue),
            replicated=kept,
        )
    return recording, FailOver(
        written=died.count,
        acknowledged=_up_to(died.acknowledged_index, recording),
        kept=kept,
        recorded_there=len(events) - kept,
        epoch=epoch,
        seconds=went_on - killed,
    )


class _Seen:
    """What the recorders reported."""

    def __init__(self, events: Sequence[Event], follower: Follower, on_day: OnDay) -> None:
        self._events, self._follower, self._on_day = events, follower, on_day
        self.last = Progress(0)
        self.written_ns: dict[int, int] = {}

    def go_on_from(self, count: int) -> None:
        """Count from here, whatever a recorder that died wrote beyond."""
        self.last = Progress(count)

    def until(self, recorder: Recorder, count: int) -> None:
        """Return when a recorder has written this many events."""
        while self.last.count < count:
            self.last = recorder.progress()
            self.written_ns |= self.last.written_ns
            day = date_of(self._events[self.last.count - 1].time_ms // DAY_MS)
            self._on_day(day.isoformat(), self.last.count, self._follower.poll())


def _up_to(index: int | None, recording: Recording) -> int:
    """Return how many of the events that were to be written there are up to an index."""
    if index is None:
        return 0
    with recording.journal.open(read_only=True) as queue:
        numbering = numbering_of(queue)
    day, in_day = date_of(numbering.to_cycle(index)), numbering.to_sequence(index) + 1
    return sum(count for date, count in recording.messages.items() if date < day) + in_day
