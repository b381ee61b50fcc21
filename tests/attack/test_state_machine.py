"""Writers, readers, crashes, deletions and lost markers in any order: the journal is a list."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import quire
from journal_model import (
    CYCLE,
    SECOND_MS,
    Entry,
    Journal,
    NamedReader,
    Reader,
    payload,
    several,
    ways,
    write,
)
from queues import START_MS, UNLOCKED, WRITE_LOCK, copy_of, exit_code, fork, poke, problems_of
from reference import Store, read_queue
from tally import TORTURE, Tally, scaled

NAMES, MARK = ("risk", "audit"), b"user metadata "
blocks = st.sampled_from((1, 2**14, 2**16, 2**20))
readers = st.integers(0, 1)
writers = st.integers(0, 1)
steps_run = [0]


def open_queue(
    path: Path, clock: quire.ManualClock, block: int, *, read_only: bool = False
) -> quire.JournalQueue:
    return quire.open(
        path,
        roll_cycle=CYCLE.name,
        clock=clock,
        block_bytes=block,
        wait=quire.WaitOptions(eof_grace_s=0.0),  # a lost marker holds nobody up
        timeout_s=20,
        read_only=read_only,
    )


class Attacked(RuleBasedStateMachine):
    """Two writers with clocks of their own, two readers, two named ones, beside a list."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path, self.journal = self.folder / "queue", Journal()
        self.clocks = [quire.ManualClock(START_MS), quire.ManualClock(START_MS)]
        self.stored = dict.fromkeys(NAMES, 0)
        self.changed = False

    @initialize(block=blocks)
    def open(self, block: int) -> None:
        self.queues = [open_queue(self.path, clock, block) for clock in self.clocks]
        self.appenders = [queue.appender() for queue in self.queues]
        self.readers = [Reader(queue.tailer(), self.journal) for queue in self.queues]
        self.named = {
            name: NamedReader(queue.tailer(name), self.journal, self.stored[name])
            for name, queue in zip(NAMES, self.queues, strict=True)
        }

    def close(self) -> None:
        for name, reader in self.named.items():
            reader.tailer.close()
            reader.finish()
            self.stored[name] = reader.stored
        for queue in self.queues:
            queue.close()

    # Writers.

    @rule(writer=writers, way=ways, payloads=several)
    def append(self, writer: int, way: str, payloads: list[bytes]) -> None:
        now_ms = self.clocks[writer].now_ms
        indexes = [self.journal.append(now_ms, data) for data in payloads]
        assert write(self.appenders[writer], way, payloads) == (indexes[-1] if indexes else None)

    @rule(writer=writers, data=payload)
    def append_metadata(self, writer: int, data: bytes) -> None:
        data = MARK + data[:1000]
        self.journal.append_metadata(self.clocks[writer].now_ms, data)
        with self.appenders[writer].writing_document(metadata=True) as document:
            document.write_bytes(data)

    @rule(writer=writers, data=payload, metadata=st.booleans())
    def roll_back(self, writer: int, data: bytes, *, metadata: bool) -> None:
        self.journal.file(self.clocks[writer].now_ms)
        with self.appenders[writer].writing_document(metadata=metadata) as document:
            document.write_bytes(data)
            document.rollback_on_close()

    @rule(writer=writers, seconds=st.sampled_from((1, 1, 2, 5, 100, -1, -3)))
    def move_a_clock(self, writer: int, seconds: int) -> None:
        self.clocks[writer].advance(seconds * SECOND_MS)

    @rule(writer=writers)
    def end_older_files(self, writer: int) -> None:
        self.appenders[writer].normalise_eofs()

    def in_a_child(self, work: Callable[[quire.JournalAppender], object], *, killed: bool) -> int:
        """Have a process of its own append with the first clock, and return its pid."""

        def child() -> None:
            queue = open_queue(self.path, self.clocks[0], 1)
            work(queue.appender())
            if killed:
                os.kill(os.getpid(), signal.SIGKILL)

        pid = fork(child)
        assert exit_code(pid) == (-signal.SIGKILL if killed else 0)
        self.changed = True
        return pid

    @rule(payloads=several, killed=st.booleans())
    def append_in_a_child(self, payloads: list[bytes], *, killed: bool) -> None:
        for data in payloads:
            self.journal.append(self.clocks[0].now_ms, data)
        self.in_a_child(lambda appender: write(appender, "many", payloads), killed=killed)

    @rule(data=payload, metadata=st.booleans())
    def die_in_a_document(self, data: bytes, *, metadata: bool) -> None:
        self.journal.file(self.clocks[0].now_ms)

        def begin(appender: quire.JournalAppender) -> None:
            appender.writing_document(metadata=metadata).write_bytes(data)

        pid = self.in_a_child(begin, killed=True)
        held = self.queues[0].table_value(WRITE_LOCK)
        assert held in (UNLOCKED, pid)

    @rule()
    def leave_the_lock_to_the_dead(self) -> None:
        poke(self.path, WRITE_LOCK, self.in_a_child(lambda _: None, killed=True))

    # The directory.

    @rule(block=blocks)
    def reopen(self, block: int) -> None:
        self.close()
        self.open(block)

    @precondition(lambda self: len(self.journal.counts) > 1)
    @rule(data=st.data())
    def lose_a_marker(self, data: st.DataObject) -> None:
        # A tailer leaves a file without its marker once a later one has a message.
        newest = max((it for it, count in self.journal.counts.items() if count), default=0)
        older = [it for it in sorted(self.journal.counts) if it < newest]
        if not older:
            return
        file = self.path / CYCLE.file_name(data.draw(st.sampled_from(older)))
        store = Store(file.read_bytes())
        if store.has_eof:
            handle = os.open(file, os.O_RDWR)
            os.pwrite(handle, bytes(8), store.tail)
            os.close(handle)

    @precondition(lambda self: len(self.journal.counts) > 1)
    @rule(block=blocks)
    def delete_the_oldest_file(self, block: int) -> None:
        self.close()
        (self.path / CYCLE.file_name(self.journal.delete_first())).unlink()
        self.open(block)
        for name, reader in self.named.items():
            if reader.is_lost():  # one read may find nothing, as in Java, and starts over
                found = reader.tailer.read()
                first = self.journal.messages[0] if self.journal.messages else None
                assert found is None or (found.index, found.data) == first
                reached = 0 if found is None else found.index + 1
                reader.stored, reader.reached = self.stored[name], reached

    @rule(data=payload, block=blocks)
    def go_on_from_a_copy(self, data: bytes, block: int) -> None:
        self.journal.file(self.clocks[0].now_ms)
        copy = self.folder / "copy"
        with self.appenders[0].writing_document() as document:
            document.write_bytes(b"not in the copy")
            document.rollback_on_close()
            copy_of(self.path, copy)
        with open_queue(copy, self.clocks[0], block) as queue:
            queue.appender().write_bytes(data)
        whole = read_queue(copy)
        assert whole[:-1] == self.journal.messages
        assert whole[-1][1] == data
        shutil.rmtree(copy)

    @precondition(lambda self: self.journal.counts)
    @rule(block=blocks)
    def read_without_writing(self, block: int) -> None:
        with open_queue(self.path, self.clocks[1], block, read_only=True) as queue:
            tailer = queue.tailer()
            assert [(it.index, it.data) for it in tailer] == self.journal.messages
            tailer.direction = "backward"
            tailer.to_end()
            assert [(it.index, it.data) for it in tailer] == self.journal.messages[::-1]

    # Readers.

    @rule(reader=readers, count=st.integers(1, 5))
    def read(self, reader: int, count: int) -> None:
        for _ in range(count):
            self.readers[reader].read()

    @rule(reader=readers, count=st.integers(0, 20))
    def read_many(self, reader: int, count: int) -> None:
        self.readers[reader].read_many(count)

    @rule(reader=readers, backward=st.booleans())
    def turn(self, reader: int, *, backward: bool) -> None:
        self.readers[reader].turn(backward=backward)

    @precondition(lambda self: self.journal.messages)
    @rule(reader=readers, behind=st.booleans(), data=st.data())
    def seek(self, reader: int, data: st.DataObject, *, behind: bool) -> None:
        index, _ = data.draw(st.sampled_from(self.journal.messages))
        self.readers[reader].seek(index + behind)

    @rule(reader=readers, end=st.booleans())
    def go_to_an_end(self, reader: int, *, end: bool) -> None:
        (self.readers[reader].to_end if end else self.readers[reader].to_start)()

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 6))
    def read_by_name(self, name: str, count: int) -> None:
        self.named[name].read_many(count)

    @rule(name=st.sampled_from(NAMES))
    def commit(self, name: str) -> None:
        self.named[name].tailer.commit()
        self.named[name].finish()

    @rule(name=st.sampled_from(NAMES), kill=st.booleans())
    def read_by_name_anew(self, name: str, *, kill: bool) -> None:
        reader = self.named[name]
        if kill:
            reader.tailer.__exit__(LookupError, None, None)  # it stores nothing
        else:
            reader.tailer.close()
            reader.finish()
        queue = self.queues[NAMES.index(name)]
        self.named[name] = NamedReader(queue.tailer(name), self.journal, reader.stored)

    # What holds after each step.

    @invariant()
    def the_queue_is_the_list(self) -> None:
        steps_run[0] += 1
        messages = self.journal.messages
        ends = (messages[0][0], messages[-1][0]) if messages else (None, None)
        for queue in self.queues:
            if self.changed:
                queue.refresh()
            assert (queue.first_index, queue.last_index) == ends
            assert queue.entry_count == len(messages)
            assert queue.cycles == sorted(self.journal.counts)
        self.changed = False
        if self.journal.counts:
            assert read_queue(self.path) == messages
        for name, reader in self.named.items():
            stored = self.queues[0].table_value(f"index.{name}")
            assert self.journal.after(stored) == self.journal.after(reader.stored)

    def teardown(self) -> None:
        reader, found = self.queues[0].tailer(), list[Entry]()
        while (document := reader.reading_document(include_metadata=True)).is_present:
            if not document.is_metadata or bytes(document.bytes).startswith(MARK):
                found.append((document.index, bytes(document.bytes)))
            document.close()
        self.close()
        assert found == self.journal.documents
        if self.journal.counts:
            assert problems_of(self.path) == []
        shutil.rmtree(self.folder)


@pytest.mark.slow
@pytest.mark.timeout(48 * 3600 if TORTURE else 900)
def test_whatever_is_done_the_journal_is_a_list(tally: Tally) -> None:
    steps_run[0] = 0
    chosen = settings(
        max_examples=scaled(60, 20_000),
        stateful_step_count=scaled(40, 80),
        derandomize=not TORTURE,
    )
    run_state_machine_as_test(Attacked, settings=chosen)
    tally(
        "Writers, readers, rolls, crashes, deletions and lost markers in any order: every message "
        "once, in order, at its index",
        steps_run[0],
        "steps of a state machine",
    )
