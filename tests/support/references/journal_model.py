"""A queue as a list of messages: what its files hold, and where readers of it are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

import quire
from reference import ROLL_CYCLES

CYCLE = ROLL_CYCLES["TEST4_SECONDLY"]
SECOND_MS = CYCLE.length_ms
Entry = tuple[int, bytes]


payload = st.binary(min_size=1, max_size=60) | st.integers(1, 4096).map(lambda size: b"x" * size)
several = st.lists(payload, max_size=12)
ways = st.sampled_from(("one", "many", "generator", "batch", "document"))


def write(appender: quire.JournalAppender, way: str, payloads: Sequence[bytes]) -> int | None:
    """Append in one of the ways and return the last index."""
    last = None
    if way == "many":
        return appender.write_many(payloads)
    if way == "generator":
        return appender.write_many(iter(payloads))
    if way == "batch":
        return appender.write_batch(pa.array(payloads, type=pa.binary()))
    for data in payloads:
        if way == "one":
            last = appender.write_bytes(data)
        else:
            with appender.writing_document() as document:
                document.write_bytes(data[:7])
                document.write_bytes(data[7:])
            last = document.index
    return last


@dataclass
class Journal:
    """The messages of a queue, and its files."""

    messages: list[Entry] = field(default_factory=list[Entry])
    documents: list[Entry] = field(default_factory=list[Entry])  # the same, with metadata between
    counts: dict[int, int] = field(default_factory=dict[int, int])  # messages in each file

    def file(self, now_ms: int) -> int:
        """Return the cycle that is appended to at a time, whose file is made if need be."""
        cycle = max(CYCLE.cycle_at(now_ms), *self.counts, 0)
        self.counts.setdefault(cycle, 0)
        return cycle

    def append(self, now_ms: int, data: bytes) -> int:
        cycle = self.file(now_ms)
        index = CYCLE.to_index(cycle, self.counts[cycle])
        self.counts[cycle] += 1
        self.messages.append((index, data))
        self.documents.append((index, data))
        return index

    def append_metadata(self, now_ms: int, data: bytes) -> None:
        cycle = self.file(now_ms)
        self.documents.append((CYCLE.to_index(cycle, self.counts[cycle]), data))

    def delete_first(self) -> int:
        """Forget the oldest file and return its cycle."""
        gone = min(self.counts)
        del self.counts[gone]
        end = CYCLE.to_index(gone + 1, 0)
        self.messages = [entry for entry in self.messages if entry[0] >= end]
        self.documents = [entry for entry in self.documents if entry[0] >= end]
        return gone

    def after(self, index: int | None) -> list[Entry]:
        return [entry for entry in self.messages if index is None or entry[0] >= index]


class Place(NamedTuple):
    """Where a tailer is: the index it asks for next; None while it has not started."""

    at: int | None = None
    is_beyond_start: bool = False
    has_turned_there: bool = False


class Reader:
    """A tailer, and what it has to say."""

    def __init__(self, tailer: quire.JournalTailer, journal: Journal) -> None:
        self.tailer, self.journal = tailer, journal
        self.place, self.backward = Place(), False

    def next(self) -> Entry | None:
        return self._next_backward() if self.backward else self._next_forward()

    def _next_forward(self) -> Entry | None:
        if self.place.has_turned_there:
            self.place = Place()
            return None
        found = next(iter(self.journal.after(self.place.at)), None)
        if found:
            self.place = Place(found[0] + 1)
        elif self.journal.counts:  # it has gone on to the newest file, and waits there
            newest = CYCLE.to_index(max(self.journal.counts), 0)
            self.place = Place(max(self.place.at or 0, newest))
        return found

    def _next_backward(self) -> Entry | None:
        journal = self.journal
        if self.place.is_beyond_start or not journal.counts:
            return None
        start = CYCLE.to_index(min(journal.counts), 0)
        index = start if self.place.at is None else self.place.at
        before = [entry for entry in journal.messages if entry[0] <= index]
        self.place = Place(before[-2][0]) if len(before) > 1 else Place(is_beyond_start=True)
        return before[-1] if before else None

    def read(self) -> None:
        expected = self.next()
        assert self.tailer.read() == (quire.Excerpt(*expected) if expected else None)

    def read_many(self, count: int) -> None:
        expected: list[bytes] = []
        while len(expected) < count and (entry := self.next()):
            expected.append(entry[1])
        assert self.tailer.read_many(count) == expected

    def turn(self, *, backward: bool) -> None:
        if self.place.has_turned_there:
            return
        if self.backward and not backward and self.place.is_beyond_start:
            self.place = Place(has_turned_there=True)
        self.backward = backward
        self.tailer.direction = "backward" if backward else "forward"

    def seek(self, index: int) -> None:
        assert self.tailer.move_to_index(index) == (index in dict(self.journal.messages))
        assert self.tailer.index == index
        self.place = Place(index)

    def to_start(self) -> None:
        self.tailer.to_start()
        self.place = Place()

    def to_end(self) -> None:
        self.tailer.to_end()
        last = self.journal.messages[-1][0] if self.journal.messages else None
        self.place = Place(last if last is None or self.backward else last + 1)


class NamedReader:
    """A named tailer: the index it asks for next, and what is stored of that."""

    def __init__(self, tailer: quire.JournalTailer, journal: Journal, stored: int = 0) -> None:
        self.tailer, self.journal, self.stored, self.reached = tailer, journal, stored, stored

    def is_lost(self) -> bool:
        """Whether the file it stopped in was deleted."""
        cycle = self.reached >> 32
        return self.reached != 0 and bool(self.journal.counts) and cycle < min(self.journal.counts)

    def read_many(self, count: int) -> None:
        self.stored = self.reached
        expected = self.journal.after(self.reached)[:count]
        assert self.tailer.read_many(count) == [data for _, data in expected]
        self.reached = expected[-1][0] + 1 if expected else self.reached

    def finish(self) -> None:
        self.stored = self.reached
