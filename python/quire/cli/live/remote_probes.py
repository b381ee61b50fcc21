"""Probes one queue of a server by a few requests, however long the queue is."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from quire.cli.live.counts import Point
from quire.cli.live.probes import NEWEST, Look, NamedTailer, since
from quire.cli.output.group_facts import facts_of_group
from quire.errors import EncryptionError, QuireError
from quire.formats.columns import Columns
from quire.formats.numbering import Numbering
from quire.ranges.event_time import TimeField
from quire.ranges.stored_positions import OUTPUT_POSITION
from quire.remote.group import state_of

if TYPE_CHECKING:
    from quire.remote.connection import Connection
    from quire.remote.place import RemotePlace

TIMEOUT_S: Final = 5.0
_PAST: Final = 1 << 63


class ServerCalls:
    """
    One connection to a server, for all of its watched queues.

    After a failure the next request reconnects, once, so that an unreachable server causes no
    delay.

    Args:
        place: Any place on the server.

    """

    def __init__(self, place: RemotePlace) -> None:
        self._place = place
        self._connection: Connection | None = None

    def ask(self, *words: bytes | str | int) -> Any:  # noqa: ANN401 - whatever the server says
        """
        Send a request, and return the answer.

        Raises:
            QuireError: The server refuses the request, or cannot be reached.

        """
        if self._connection is None:
            self._connection = self._place.connected()
        try:
            return self._connection.call(*words)
        except ConnectionError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        found, self._connection = self._connection, None
        if found is not None:
            found.close()


class RemoteProbe:
    """
    A queue of a server that is probed repeatedly: see :class:`quire.cli.live.probes.Probe`.

    Args:
        calls: The connection to its server.
        topic: Its name on the server.
        time_field: The field with the event time of its messages, if any.

    """

    def __init__(self, calls: ServerCalls, topic: str, time_field: TimeField | None) -> None:
        self._calls, self._topic, self._time_field = calls, topic, time_field
        facts = calls.ask("QUIRE.INFO", topic)
        self.format: str = facts["format"].decode()
        self._numbering = Numbering(facts["bits"], facts["step"], bool(facts["dense"]))
        self._has_cycles = "length_ms" in facts
        self._counts: dict[int, int] = {}
        self._listed_for: int | None = None
        self._end: int = facts["end"]

    def look(self) -> Look:
        """
        Return the state of the queue, and its changes since the previous look.

        Raises:
            QuireError: The server refuses the request, reports damage, or cannot be reached.

        """
        facts = self._calls.ask("QUIRE.INFO", self._topic)
        before, end = self._end, int(facts["end"])
        self._end = end
        point = self._point_of(end)
        stored = self._stored()
        self._list(point, [self._point_of(before), *(at for _, _, at in stored)])
        messages = self._between(self._point_of(before), point)
        sizes, latencies = self._newest(end, min(messages, point.sequence, NEWEST))
        return Look(
            end,
            messages,
            messages * sizes,
            latencies,
            "time field" if latencies else None,
            tuple(NamedTailer(name, at, self._between(it, point), it) for name, at, it in stored),
            tuple(self._groups()),
            None,
            (),
            len(self._counts) if self._has_cycles else None,
            self._next_roll_s(facts, point.cycle),
            None,
        )

    def has_shorter_files(self) -> bool:
        """Return False: the files are on the server."""
        return False

    def close(self) -> None:
        """Do nothing: all queues share the connection."""

    def _point_of(self, index: int) -> Point:
        if not self._has_cycles:
            return Point(0, index // self._numbering.step)
        return Point(self._numbering.to_cycle(index), self._numbering.to_sequence(index))

    def _list(self, end: Point, points: list[Point]) -> None:
        """Request the cycles, unless the known ones suffice."""
        if not self._has_cycles:
            return
        is_known = all(it.cycle >= min(self._counts, default=_PAST) for it in points)
        if self._listed_for == end.cycle and is_known:
            return
        answer = self._calls.ask("QUIRE.CYCLES", self._topic)
        cycles, counts = (array("q", it) for it in answer)
        self._counts = dict(zip(cycles, counts, strict=True))
        self._listed_for = end.cycle

    def _between(self, start: Point, end: Point) -> int:
        if start >= end:
            return 0
        if start.cycle == end.cycle:
            return end.sequence - start.sequence
        between = sum(it for at, it in self._counts.items() if start.cycle < at < end.cycle)
        return max(0, self._counts.get(start.cycle, 0) - start.sequence) + between + end.sequence

    def _newest(self, end: int, count: int) -> tuple[float, tuple[float, ...]]:
        """Return the mean length of the newest messages, and the latency of the last one."""
        if not count:
            return 0.0, ()
        start = end - count * self._numbering.step
        words = ("QUIRE.READ", self._topic, "FROM", start, "COUNT", count, "PACKED")
        with suppress(EncryptionError):  # messages cannot be read without a key
            _, *buffers = self._calls.ask(*words)
            found = Columns.of(*buffers)
            if not len(found):
                return 0.0, ()
            last = bytes(found.payload(len(found) - 1))
            latencies = () if self._time_field is None else since(self._time_field, last)[0]
            return len(found.data) / len(found), latencies
        return 0.0, ()

    def _stored(self) -> list[tuple[str, int, Point]]:
        rows = self._calls.ask("QUIRE.TAILER", "LIST", self._topic)
        named = [(name.decode("utf-8", "replace"), index) for name, index in rows]
        return [
            (name, index, self._point_of(index) if index > 0 else Point(-1, 0))
            for name, index in named
            if name != OUTPUT_POSITION
        ]

    def _groups(self) -> Iterator[dict[str, Any]]:
        try:
            rows = self._calls.ask("QUIRE.GROUP", "LIST", self._topic)
        except ConnectionError:
            raise
        except QuireError:  # a group that cannot be read, or a format without groups
            return
        for it in rows:
            yield facts_of_group(state_of(it))

    def _next_roll_s(self, facts: dict[str, Any], cycle: int) -> float | None:
        if not self._has_cycles or facts["zoned"] or not self._counts:
            return None
        next_ms = int(facts["epoch_ms"]) + (cycle + 1) * int(facts["length_ms"])
        return next_ms / 1000 - time.time()
