"""
Options of a queue in any combination, and what is done to it in any order: it stays a list.

A course is repeated by the seed that its failure names: `QUIRE_SEED=7 pytest ...`.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import quire
from queues import START_MS, exit_code, fork
from quire.errors import QuireError
from quire.maintenance import seal
from quire.replication import Sink, Source
from replicas import HANG_S
from tally import RUN, Tally, scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

SEED = os.environ.get("QUIRE_SEED")
COURSES = scaled(24, 4000)
STEPS = 60
KEYS = (bytes(range(32)), bytes(range(1, 33)))
TOLD = {"unsealed", "pruned-seals"}  # what verify says of a good queue

Kept = bytes | str | dict[str, Any]


def options_of(chance: random.Random) -> dict[str, Any]:
    """Choose how the queue stores its messages, and what stands beside them."""
    ring = chance.random() < 0.2
    keys = [None, KEYS[0], quire.KeyRing({"a": KEYS[0], "b": KEYS[1]}, current=chance.choice("ab"))]
    return {
        "roll_cycle": "TEST_SECONDLY",
        "block_bytes": 1 << 16,
        "key": None if ring else chance.choice(keys),  # a ring would hold what is not encrypted
        "compression": chance.choice([None, "zstd", "lz4", "snappy", "gzip", "lzw"]),
        "wire_type": chance.choice([None, None, "DELTA_BINARY", "DEFAULT_ZERO_BINARY"]),
        "integrity": chance.random() < 0.3,
        "time_index": chance.random() < 0.3,
        "buffer_mode": "async" if ring else None,
        "durability": "process" if ring else chance.choice(["process", "batch", "each"]),
    }


def quote(chance: random.Random) -> dict[str, Any]:
    """Return a message of which much is as in the one before."""
    fields = {
        "symbol": chance.choice(["EURUSD", "GBPUSD"]),
        "price": chance.choice([1.1, chance.random()]),
        "quantity": chance.choice([1, 100, 10**6, -1]),
        "note": chance.choice(["", "x" * chance.randrange(300), "é€"]),
    }
    return {name: fields[name] for name in fields if name != "note" or chance.random() < 0.7}


class Course:
    """One queue, what is in it, and the steps that have been taken."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Make the queue."""
        self.chance = random.Random(seed)  # noqa: S311 - to be repeated
        self.folder, self.path = folder, folder / "queue"
        self.clock = quire.ManualClock(START_MS)
        self.options = options_of(self.chance)
        self.kept: list[Kept] = []
        self.deleted = self.named = 0
        self.replica, self.replicated = folder / "replica", 0
        self.open()

    def opened(self) -> quire.JournalQueue:
        """Open the queue with its options."""
        open_any: Any = quire.open
        queue: quire.JournalQueue = open_any(self.path, clock=self.clock, **self.options)
        return queue

    def open(self) -> None:
        """Open the handles that the steps use."""
        self.queue = self.opened()
        self.appender, self.tailer = self.queue.appender(), self.queue.tailer()
        self.at = self.deleted
        self.consumer = self.queue.group("workers").consumer("one")

    def close(self) -> None:
        """Close them."""
        self.consumer.close()
        self.queue.close()

    @contextmanager
    def reader(self, path: Path) -> Generator[quire.JournalQueue]:
        """Open a queue for reading alone."""
        with quire.open(path, read_only=True, key=self.options["key"]) as queue:
            yield queue

    def flush(self) -> None:
        """Have what is in the ring appended."""
        if self.queue.ring is not None:
            self.queue.ring.flush()

    def check(self, queue: quire.JournalQueue, first: int | None = None) -> None:
        """Read all that is kept, and nothing else, forward and backward."""
        wanted = self.kept[self.deleted if first is None else first :]
        with queue.tailer() as tailer:
            for kept in wanted:
                read(tailer, kept)
            assert tailer.read_bytes() is None
        with queue.tailer() as tailer:
            tailer.to_end()
            tailer.direction = "backward"
            for kept in reversed(wanted):
                read(tailer, kept)

    def check_files(self, path: Path, first: int | None = None) -> None:
        """Check a directory from outside."""
        with self.reader(path) as queue:
            self.check(queue, first)
        findings = [it for it in quire.verify(path).findings if it.kind not in TOLD]
        assert not findings

    # The steps.

    def append(self) -> None:
        """Append one message or a few, in one of the ways."""
        chance, appender = self.chance, self.appender
        match chance.randrange(6):
            case 0:
                data = chance.randbytes(chance.choice([1, 40, 5000]))
                appender.write_bytes(data)
                self.kept.append(data)
            case 1:
                text = "hé" * chance.randrange(100)
                appender.write_text(text)
                self.kept.append(text)
            case 2:
                many = [chance.randbytes(chance.randrange(1, 100)) for _ in range(20)]
                appender.write_many(many)
                self.kept += many
            case 3:
                with appender.writing_document() as document:
                    for name, value in (fields := quote(chance)).items():
                        document.write(name, value)
                self.kept.append(fields)
            case 4:
                with appender.writing_document() as document:
                    document.write_bytes(b"never")
                    document.rollback_on_close()
            case _:
                for fields in [quote(chance) for _ in range(chance.choice([1, 1, 70]))]:
                    appender.write_map(fields)
                    self.kept.append(fields)

    def tick(self) -> None:
        """Let time pass, mostly into another cycle."""
        self.flush()
        self.clock.advance(self.chance.choice([100, 1000, 1000, 5000]))

    def read_on(self) -> None:
        """Read on with a tailer that stays open."""
        self.at = self.read_with(self.tailer, self.at, self.chance.randrange(30))

    def read_named(self) -> None:
        """Read on with a named tailer."""
        with self.queue.tailer("risk") as tailer:
            self.named = self.read_with(tailer, self.named, self.chance.randrange(20))

    def read_with(self, tailer: quire.JournalTailer, at: int, count: int) -> int:
        """Read at most *count* messages, and return where that ends."""
        at = max(at, self.deleted)
        for kept in self.kept[at : at + count]:
            read(tailer, kept)
        return min(at + count, len(self.kept))

    def read_by_index(self) -> None:
        """Find any message by its index."""
        with self.queue.tailer() as tailer:
            indexes = [message.index for message in tailer]
        assert len(indexes) == len(self.kept) - self.deleted == self.queue.entry_count
        if indexes:
            number = self.chance.randrange(len(indexes))
            with self.queue.tailer() as tailer:
                assert tailer.move_to_index(indexes[number])
                read(tailer, self.kept[self.deleted + number])

    def consume(self) -> None:
        """Work on messages as a consumer of a group."""
        for _ in range(self.chance.randrange(1, 10)):
            if (message := self.consumer.read()) is not None:
                message.ack() if self.chance.random() < 0.8 else message.nack()

    def reopen(self) -> None:
        """Start over."""
        self.close()
        self.open()

    def append_in_a_child(self) -> None:
        """Append in another process, which is killed at its end, or is not."""
        new = [quote(self.chance) for _ in range(self.chance.randrange(1, 10))]
        is_killed = self.chance.random() < 0.5

        def child() -> None:
            with self.opened() as queue, queue.appender() as appender:
                for fields in new:
                    appender.write_map(fields)
                if queue.ring is not None:
                    queue.ring.flush()
                if is_killed:
                    os.kill(os.getpid(), signal.SIGKILL)

        assert exit_code(fork(child)) == (-signal.SIGKILL if is_killed else 0)
        self.kept += new

    def copy(self) -> None:
        """Copy the queue, and check the copy."""
        copy = self.folder / "copy"
        quire.copy_queue(self.path, copy)
        self.check_files(copy)
        shutil.rmtree(copy)

    def replicate(self) -> None:
        """Bring a replica up to date, which keeps what is pruned here."""
        last = self.queue.last_index
        if last is None:
            return
        if not self.replica.exists():
            self.replicated = self.deleted

        async def work() -> None:
            async with (
                Source(self.queue) as source,
                Sink(self.replica, port=source.address[1], reconnect_s=0.01) as sink,
            ):
                await asyncio.wait_for(sink.stored(last), HANG_S)

        asyncio.run(work())
        self.check_files(self.replica, self.replicated)

    def repair(self) -> None:
        """Repair what is whole."""
        quire.repair(self.path, dry_run=False)
        self.check(self.queue)

    def compress(self) -> None:
        """Compress the older cycles."""
        cycles = self.chance.choice([1, 2, 3])
        quire.prune(self.path, max_cycles=cycles, action="compress", clock=self.clock)

    def prune(self) -> None:
        """Delete the oldest cycles, but those that consumers still need."""
        quire.prune(self.path, max_cycles=self.chance.choice([3, 5]), clock=self.clock)
        self.deleted = len(self.kept) - self.queue.entry_count

    def seal(self) -> None:
        """Seal what there is."""
        seal(self.path)

    def columns(self) -> None:
        """Read it as a table."""
        assert self.queue.to_arrow().num_rows == len(self.kept) - self.deleted


STEPS_OF: dict[Callable[[Course], None], int] = {
    Course.append: 8,
    Course.tick: 3,
    Course.read_on: 3,
    Course.read_named: 1,
    Course.read_by_index: 1,
    Course.consume: 2,
    Course.reopen: 1,
    Course.append_in_a_child: 2,
    Course.copy: 1,
    Course.replicate: 2,
    Course.repair: 1,
    Course.compress: 1,
    Course.prune: 1,
    Course.seal: 1,
    Course.columns: 1,
}


def read(tailer: quire.JournalTailer, kept: Kept) -> None:
    """Read one message as it was written."""
    match kept:
        case bytes():
            assert tailer.read_bytes() == kept
        case str():
            assert tailer.read_text() == kept
        case _:
            assert tailer.read_map() == kept


def run(folder: Path, seed: int) -> None:
    """Take the steps of a course."""
    course, taken = Course(folder, seed), list[str]()
    try:
        for step in course.chance.choices([*STEPS_OF], [*STEPS_OF.values()], k=STEPS):
            taken.append(step.__name__)
            if step is not Course.append:
                course.flush()
            step(course)
        course.flush()
        course.check(course.queue)
        course.close()
        course.check_files(course.path)
    except (AssertionError, QuireError, OSError) as error:
        error.add_note(f"QUIRE_SEED={seed} options={course.options} steps={taken}")
        raise


def test_whatever_is_combined_the_journal_is_a_list(tally: Tally) -> None:
    first = RUN * 1_000_000
    seeds = range(first, first + COURSES) if SEED is None else [int(SEED)]
    for seed in seeds:
        with tempfile.TemporaryDirectory(dir=memory()) as folder:
            run(Path(folder), seed)
    tally(
        "Encryption, compression, differences, seals, rings, groups, retention, replicas, copies "
        "and repair in any combination and order: every message once, in order",
        COURSES,
        "queues of 60 steps",
    )


def memory() -> str | None:
    """Return a directory in memory, if the system has one: all is synced again and again."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a name of its own below
