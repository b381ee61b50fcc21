"""Whatever is done to a queue, in whatever order: it is what a list of messages would be."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import quire
from queues import START_MS, UNLOCKED, WRITE_LOCK, problems_of
from reference import ROLL_CYCLES, read_queue

CYCLE = ROLL_CYCLES["TEST4_SECONDLY"]
SECOND_MS, FIRST_CYCLE, LONGEST = CYCLE.length_ms, START_MS // CYCLE.length_ms, 4096
KEY, MARK = "index.risk", b"user metadata "

payload = st.binary(min_size=1, max_size=60) | st.integers(1, LONGEST).map(lambda size: b"x" * size)
several = st.lists(payload, max_size=12)
Way = Literal["one", "many", "generator", "batch", "document"]
ways: st.SearchStrategy[Way] = st.sampled_from(("one", "many", "generator", "batch", "document"))


def write(appender: quire.Appender, way: Way, payloads: Sequence[bytes]) -> int | None:
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


@given(st.lists(st.tuples(st.integers(0, 3), ways, several), max_size=12))
def test_whatever_is_appended_is_what_the_reference_reads(
    steps: list[tuple[int, Way, list[bytes]]],
) -> None:
    path, clock = Path(tempfile.mkdtemp()), quire.ManualClock(START_MS)
    expected: list[tuple[int, bytes]] = []
    with quire.open(path, roll_cycle=CYCLE.name, clock=clock, block_bytes=1) as queue:
        appender, counts = queue.appender(), dict[int, int]()
        for seconds, way, payloads in steps:
            cycle = CYCLE.cycle_at(clock.advance(seconds * SECOND_MS))
            for data in payloads:
                sequence = counts[cycle] = counts.get(cycle, -1) + 1
                expected.append((CYCLE.to_index(cycle, sequence), data))
            last = write(appender, way, payloads)
            assert last == (expected[-1][0] if payloads else None)
        assert [(excerpt.index, excerpt.data) for excerpt in queue.tailer()] == expected
        assert queue.cycles == sorted(counts)
        for start in range(len(expected)):
            assert (
                queue.count_excerpts(expected[start][0], expected[-1][0])
                == len(expected) - start - 1
            )

    if expected:
        assert read_queue(path) == expected
        assert problems_of(path) == []
    shutil.rmtree(path)


class Place(NamedTuple):
    """Where a tailer is: the index it asks for next; None while it has not started."""

    at: int | None = None
    is_beyond_start: bool = False
    has_turned_there: bool = False


class Journal(RuleBasedStateMachine):
    """A queue, a tailer and a named tailer beside a list of messages."""

    def __init__(self) -> None:
        super().__init__()
        self.path, self.clock = Path(tempfile.mkdtemp()), quire.ManualClock(START_MS)
        self.messages: list[tuple[int, bytes]] = []
        self.documents: list[tuple[int, bytes]] = []  # the same, with metadata between
        self.counts: dict[int, int] = {}  # messages in each file
        self.backward, self.place = False, Place()
        self.stored, self.reached = 0, 0  # of the named tailer; 0: the start
        self.open()

    def open(self) -> None:
        self.queue = quire.open(
            self.path, roll_cycle=CYCLE.name, clock=self.clock, block_bytes=1, eof_grace_s=None
        )
        self.appender, self.tailer = self.queue.appender(), self.queue.tailer()
        self.named = self.queue.tailer("risk")
        self.backward, self.place, self.reached = False, Place(), self.stored

    def file(self) -> int:
        """Return the cycle that is appended to next, whose file is made if it is not there."""
        cycle = max(CYCLE.cycle_at(self.clock.now_ms), *self.counts, 0)
        self.counts.setdefault(cycle, 0)
        return cycle

    def expect(self, data: bytes) -> int:
        cycle = self.file()
        index = CYCLE.to_index(cycle, self.counts[cycle])
        self.counts[cycle] += 1
        self.messages.append((index, data))
        self.documents.append((index, data))
        return index

    @rule(way=ways, payloads=several)
    def append(self, way: Way, payloads: list[bytes]) -> None:
        indexes = [self.expect(data) for data in payloads]
        assert write(self.appender, way, payloads) == (indexes[-1] if indexes else None)

    @rule(data=payload)
    def append_by_another(self, data: bytes) -> None:
        assert self.queue.appender().write_bytes(data) == self.expect(data)

    @rule(data=payload)
    def append_metadata(self, data: bytes) -> None:
        data = MARK + data[:1000]
        cycle = self.file()
        self.documents.append((CYCLE.to_index(cycle, self.counts[cycle]), data))
        with self.appender.writing_document(metadata=True) as document:
            document.write_bytes(data)

    @rule(data=payload, metadata=st.booleans())
    def roll_back(self, data: bytes, *, metadata: bool) -> None:
        self.file()
        with self.appender.writing_document(metadata=metadata) as document:
            document.write_bytes(data)
            document.rollback_on_close()

    @rule(seconds=st.sampled_from((1, 1, 2, 5, 100, -1, -3)))
    def move_the_clock(self, seconds: int) -> None:
        self.clock.advance(seconds * SECOND_MS)

    @rule()
    def reopen(self) -> None:
        self.named.close()
        self.stored = self.reached
        self.queue.close()
        self.open()

    @rule()
    def end_older_files(self) -> None:
        self.appender.normalise_eofs()

    def after(self, index: int | None) -> list[tuple[int, bytes]]:
        return [entry for entry in self.messages if index is None or entry[0] >= index]

    def next_forward(self) -> tuple[int, bytes] | None:
        if self.place.has_turned_there:
            self.place = Place()
            return None
        found = next(iter(self.after(self.place.at)), None)
        if found:
            self.place = Place(found[0] + 1)
        elif self.counts:  # it has gone on to the newest file, and waits there
            self.place = Place(max(self.place.at or 0, CYCLE.to_index(max(self.counts), 0)))
        return found

    def next_backward(self) -> tuple[int, bytes] | None:
        if self.place.is_beyond_start or not self.counts:
            return None
        start = CYCLE.to_index(min(self.counts), 0)
        index = start if self.place.at is None else self.place.at
        before = [entry for entry in self.messages if entry[0] <= index]
        self.place = Place(before[-2][0]) if len(before) > 1 else Place(is_beyond_start=True)
        return before[-1] if before else None

    @rule(count=st.integers(1, 5))
    def read(self, count: int) -> None:
        for _ in range(count):
            expected = self.next_backward() if self.backward else self.next_forward()
            found = self.tailer.read()
            assert found == (quire.Excerpt(*expected) if expected else None)

    @rule(count=st.integers(0, 20))
    def read_many(self, count: int) -> None:
        expected: list[bytes] = []
        for _ in range(count):
            entry = self.next_backward() if self.backward else self.next_forward()
            if entry is None:
                break
            expected.append(entry[1])
        assert self.tailer.read_many(count) == expected

    @precondition(lambda self: not self.place.has_turned_there)
    @rule(backward=st.booleans())
    def turn(self, *, backward: bool) -> None:
        if self.backward and not backward and self.place.is_beyond_start:
            self.place = Place(has_turned_there=True)
        self.backward = backward
        self.tailer.direction = "backward" if backward else "forward"

    @precondition(lambda self: self.messages)
    @rule(data=st.data())
    def seek(self, data: st.DataObject) -> None:
        index, _ = data.draw(st.sampled_from(self.messages))
        assert self.tailer.move_to_index(index)
        assert self.tailer.index == index
        self.place = Place(index)

    @precondition(lambda self: self.messages)
    @rule(data=st.data())
    def seek_behind(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(self.messages))[0] + 1
        assert self.tailer.move_to_index(index) == (index in dict(self.messages))
        self.place = Place(index)

    @rule()
    def to_start(self) -> None:
        self.tailer.to_start()
        self.place = Place()

    @rule()
    def to_end(self) -> None:
        self.tailer.to_end()
        last = self.messages[-1][0] if self.messages else None
        self.place = Place(last if last is None or self.backward else last + 1)

    @rule(count=st.integers(1, 6))
    def read_by_name(self, count: int) -> None:
        self.stored = self.reached
        expected = self.after(self.reached)[:count]
        assert self.named.read_many(count) == [data for _, data in expected]
        self.reached = expected[-1][0] + 1 if expected else self.reached

    @rule()
    def commit(self) -> None:
        self.named.commit()
        self.stored = self.reached

    @rule(kill=st.booleans())
    def read_by_name_anew(self, *, kill: bool) -> None:
        if kill:
            self.reached = self.stored
        else:
            self.named.close()
            self.stored = self.reached
        self.named = self.queue.tailer("risk")

    @invariant()
    def counts_agree(self) -> None:
        ends = (self.messages[0][0], self.messages[-1][0]) if self.messages else (None, None)
        assert (self.queue.first_index, self.queue.last_index) == ends
        assert self.queue.entry_count == len(self.messages)
        assert self.queue.cycles == sorted(self.counts)
        assert self.after(self.queue.table_value(KEY)) == self.after(self.stored)
        assert self.queue.table_value(WRITE_LOCK) == UNLOCKED

    def teardown(self) -> None:
        reader, found = self.queue.tailer(), list[tuple[int, bytes]]()
        while (document := reader.reading_document(include_metadata=True)).is_present:
            if not document.is_metadata or bytes(document.bytes).startswith(MARK):
                found.append((document.index, bytes(document.bytes)))
            document.close()
        self.queue.close()
        assert found == self.documents
        if self.counts:
            assert read_queue(self.path) == self.messages
            assert problems_of(self.path) == []
        shutil.rmtree(self.path)


TestJournal = Journal.TestCase
