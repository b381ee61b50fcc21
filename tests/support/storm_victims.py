"""
Processes that append and read until they are killed, for tests/attack/test_kill_storm.py.

What their calls had returned they store in a file of their own, outside of the queue: stores into
a shared mapping outlive the process that made them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import mmap
import os
import random
import signal
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import quire
from quire_peer import PAYLOAD, encode

Role: TypeAlias = Literal["bytes", "many", "column", "document", "metadata", "mixed"]
Reader: TypeAlias = Literal["tailer", "named"]
Handler: TypeAlias = Literal["default", "exit", "flag"]
WRITERS: tuple[Role, ...] = ("bytes", "many", "column", "document", "metadata", "mixed", "mixed")
HANDLERS: tuple[Handler, ...] = ("default", "exit", "flag")
SIGNALS: Final = {signal.SIGINT, signal.SIGTERM}
NAME: Final = "storm"  # of the named tailer
NEVER_SEEN: Final = 2**39  # the counter in what is rolled back, or metadata
GRACE_S: Final = 0.1
BUDGET: Final = 1000  # after so many messages a writer slows down: a round is to be read many times
COUNTER_BITS: Final = 40
NO_INDEX: Final = -1


@dataclass(frozen=True)
class Life:
    """All that a victim needs to know, and to be started again."""

    number: int
    role: Role | Reader
    seed: int
    queue: str
    log: str
    errors: str
    block_bytes: int
    epoch_ms: int  # what the clock of the storm showed at the monotonic time `started_s`
    started_s: float
    speed: int
    handler: Handler
    resume_after: int | None = None  # readers: the last index that was delivered before


class Record(NamedTuple):
    """A writer: all counters below `mark` were acknowledged. A reader: what was delivered."""

    mark: int
    at: int


class Log:
    """
    The calls that had returned, and what was under way, in a file that outlives its writer.

    The storm makes the file, its first page with bytes of its own; the victim finds it there.
    """

    HEAD = struct.Struct("<QQ")  # records, and what is under way or, of a reader, committed
    RECORD = struct.Struct("<Qq")
    CAPACITY = 2**18

    def __init__(self, path: Path, *, new: bool = False) -> None:
        with path.open("x+b" if new else "r+b") as file:
            if new:
                file.write(bytes(mmap.PAGESIZE))
                file.truncate(self.HEAD.size + self.CAPACITY * self.RECORD.size)
            self._map = mmap.mmap(file.fileno(), 0)
        self._count = 0

    def is_full(self) -> bool:
        """Whether there is no room for another call."""
        return self._count + 1000 >= self.CAPACITY

    def begin(self, mark: int) -> None:
        """Note what is about to be done, or is known to be done with."""
        struct.pack_into("<Q", self._map, 8, mark)

    def add(self, mark: int, index: int) -> None:
        """Note a call that has returned."""
        self.RECORD.pack_into(
            self._map, self.HEAD.size + self._count * self.RECORD.size, mark, index
        )
        self._count += 1
        struct.pack_into("<Q", self._map, 0, self._count)

    def read(self) -> tuple[int, list[Record]]:
        """Return the last mark of `begin`, and what was added."""
        count, mark = self.HEAD.unpack_from(self._map)
        data = self._map[self.HEAD.size : self.HEAD.size + count * self.RECORD.size]
        return mark, [Record(*found) for found in self.RECORD.iter_unpack(data)]

    def begun(self) -> int:
        """Return the last mark of `begin`."""
        return int.from_bytes(self._map[8:16], "little")

    def close(self) -> None:
        """Release the mapping."""
        self._map.close()


class Writer:
    """Appends in the way of its role, each message with the number of its life and a counter."""

    def __init__(self, life: Life, appender: quire.JournalAppender, log: Log) -> None:
        self._life, self._appender, self._log = life, appender, log
        self._rng = random.Random(life.seed)  # noqa: S311 - another course for each
        self._longest = self._rng.choice([40, 200, 5000, min(life.block_bytes, 2**18) // 5])
        self._pause_s = self._rng.choice([0, 1e-4, 1e-4, 3e-4, 1e-3])
        self._counter = 0

    def step(self) -> None:
        """Do one thing."""
        role = self._life.role
        if role == "mixed":
            role = self._rng.choice(WRITERS[:-2])
        {
            "bytes": self._bytes,
            "many": self._many,
            "column": self._column,
            "document": self._document,
            "metadata": self._metadata,
        }[role]()
        pause_s = self._pause_s if self._counter < BUDGET else 0.005
        if pause_s:
            time.sleep(self._rng.uniform(0, 2 * pause_s))

    def _next(self, ahead: int = 0) -> bytes:
        length = self._rng.randint(PAYLOAD.size, max(PAYLOAD.size, self._longest))
        return encode(self._life.number, self._counter + ahead, length, self._rng)

    def _log_around(self, count: int, write: Callable[[], int | None]) -> None:
        self._log.begin(self._counter + count)
        index = write()
        self._counter += count
        self._log.add(self._counter, index or 0)

    def _bytes(self) -> None:
        payload = self._next()
        self._log_around(1, lambda: self._appender.write_bytes(payload))

    def _bulk(self) -> list[bytes]:
        most = max(2, min(self._rng.choice([10, 10, 10, 300]), 2**18 // self._longest))
        return [self._next(ahead) for ahead in range(self._rng.randint(1, most))]

    def _many(self) -> None:
        payloads = self._bulk()
        self._log_around(len(payloads), lambda: self._appender.write_many(payloads))

    def _column(self) -> None:
        """Append what `write_batch` hands on, without loading pyarrow."""
        payloads = self._bulk()
        ends = [0]
        for payload in payloads:
            ends.append(ends[-1] + len(payload))
        offsets, data = struct.pack(f"<{len(ends)}i", *ends), b"".join(payloads)
        count = len(payloads)
        self._log_around(
            count,
            lambda: self._appender._write_column(
                offsets, data, count=count, start=0, wide=False, text=False
            ),
        )

    def _document(self) -> None:
        """Hold the lock for a while; one document in four is rolled back."""
        if self._rng.random() < 0.25:
            with self._appender.writing_document() as document:
                document.write_bytes(encode(self._life.number, NEVER_SEEN, 100, self._rng))
                document.rollback_on_close()
            return
        payload = self._next()
        half = len(payload) // 2
        self._log.begin(self._counter + 1)
        with self._appender.writing_document() as document:
            document.write_bytes(payload[:half])
            time.sleep(self._rng.choice([0, 1e-4, 2e-3]))
            document.write_bytes(payload[half:])
        self._counter += 1
        self._log.add(self._counter, document.index)

    def _metadata(self) -> None:
        with self._appender.writing_document(metadata=True) as document:
            document.write_bytes(encode(self._life.number, NEVER_SEEN, 100, self._rng))
        self._bytes()


def write(life: Life, log: Log, queue: quire.JournalQueue, go_on: Callable[[], bool]) -> None:
    """Append until told to stop."""
    with queue.appender() as appender:
        writer = Writer(life, appender, log)
        while go_on():
            writer.step()


def read(life: Life, log: Log, queue: quire.JournalQueue, go_on: Callable[[], bool]) -> None:
    """Read on after the last life."""
    with queue.tailer() as tailer:
        if life.resume_after is not None:
            assert tailer.move_to_index(life.resume_after)
            assert tailer.read() is not None
        while go_on():
            for excerpt in islice(tailer, 500):
                log.add(mark_of(excerpt.data), excerpt.index)
            wait(tailer)


def wait(tailer: quire.JournalTailer) -> None:
    """Wait a moment for the next message."""
    with contextlib.suppress(quire.errors.WaitTimeoutError):
        tailer.wait(0.01)


def read_named(life: Life, log: Log, queue: quire.JournalQueue, go_on: Callable[[], bool]) -> None:
    """Read where the name stands, one by one or so many at a time, with or without commits."""
    rng = random.Random(life.seed)  # noqa: S311 - another way for each life
    most, commits = rng.choice([1, 1, 7, 100]), rng.random() < 0.5
    with queue.tailer(NAME) as tailer:
        delivered = 0
        while go_on():
            batch = take(tailer, most)
            log.begin(delivered)  # asking for more finished what was delivered before
            for payload in batch:
                log.add(mark_of(payload), NO_INDEX)
            delivered += len(batch)
            time.sleep(rng.choice([0, 0, 0, 0, 0, 0.002]))  # at work on them
            if commits:
                tailer.commit()
                log.begin(delivered)
            if not batch:
                wait(tailer)


def take(tailer: quire.JournalTailer, most: int) -> list[bytes]:
    """Read one message, or up to so many with one call."""
    if most > 1:
        return tailer.read_many(most)
    payload = tailer.read_bytes()
    return [] if payload is None else [payload]


def mark_of(payload: bytes) -> int:
    """Return the message's producer and counter as one number."""
    producer, counter = (
        int.from_bytes(payload[4:8], "little"),
        int.from_bytes(payload[8:16], "little"),
    )
    return producer << COUNTER_BITS | counter


def live(life: Life) -> None:
    """Do what the role says until a signal comes."""
    go_on = [True]

    def stop(number: int, _frame: object) -> None:
        if life.handler == "exit":
            sys.exit(number)
        go_on[0] = False

    if life.handler != "default":
        for number in SIGNALS:
            signal.signal(number, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    logging.disable()  # recoveries and the like are logged as warnings
    log = Log(Path(life.log))

    def now_ms() -> int:
        return life.epoch_ms + int((time.monotonic() - life.started_s) * 1000 * life.speed)

    work = {"tailer": read, "named": read_named}.get(life.role, write)
    rng = random.Random(life.seed)  # noqa: S311 - as above
    with quire.open(
        life.queue,
        clock=now_ms if life.speed > 1 else None,
        block_bytes=life.block_bytes,
        wait=quire.WaitOptions(double_buffer=rng.random() < 0.2, eof_grace_s=GRACE_S),
        timeout_s=30,
    ) as queue:
        work(life, log, queue, lambda: go_on[0] and not log.is_full())
    while go_on[0]:
        time.sleep(1)


def guarded(life: Life) -> int:
    """Live, and leave a note of an error that no signal explains."""
    try:
        live(life)
    except (KeyboardInterrupt, SystemExit):
        return 0
    except BaseException:  # noqa: BLE001 - the storm must hear of it
        with contextlib.suppress(KeyboardInterrupt, SystemExit), Path(life.errors).open("a") as out:
            out.write(f"{life}\n{traceback.format_exc()}\n")
        return 1
    return 0


def start(life: Life, *, fresh: bool) -> int:
    """Start a victim, forked or as a new interpreter, and return its pid."""
    if fresh:
        command = [sys.executable, str(Path(__file__).resolve()), json.dumps(asdict(life))]
        silent = [(os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
        return os.posix_spawn(sys.executable, command, os.environ, file_actions=silent)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # no exception before there is a `try`
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
            pid = os.fork()
        if not pid:
            code = 1
            try:
                code = guarded(life)
            finally:
                os._exit(code)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    return pid


if __name__ == "__main__":
    sys.exit(guarded(Life(**json.loads(sys.argv[1]))))
