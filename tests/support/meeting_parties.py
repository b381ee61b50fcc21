"""
Parties that meet: what a process or thread does to a queue, for `meetings.py`.

Each says what it begins before it begins it and what was acknowledged when it was: ``begin text``,
``ack index text``, ``put text`` for what went into a ring, ``got name index``, ``done index`` for
what a group's consumer acknowledged, ``removed cycles``, ``copied path``, ``waits error`` for each
documented wait that ran out and is tried again.
"""

# ruff: noqa: ANN401 - appenders of four formats, and whatever a call returns

from __future__ import annotations

import importlib
import os
import signal
import struct
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import quire
from any_format import open_vanilla
from queues import START_MS
from quire.errors import LockHeldError
from reference import Store

SECOND_MS = 1000
CYCLES, EACH, LAST = 4, 4, 3  # finished cycles, messages of each, messages of the newest
HELD = 3  # the first cycle that the named tailer and the group still need
BLOCK, BIG, HUGE = 65_536, 15_000, 60_000
TIMEOUT_S, PAUSE_S = 0.1, 0.01
CHILD_S = 240  # a forked child's life, at most
TAILER, GROUP, LATE = "risk", "desk", "late"
VANILLA_MS = 1_700_006_400_000
VANILLA: dict[str, Any] = {"index_block_bytes": 64, "data_block_bytes": 256}
QUICK_BYTES = 64  # of a page
# The other party is at work, as documented: the caller tries again.
WAITS = (
    quire.errors.LockTimeoutError,
    quire.errors.WaitTimeoutError,
    quire.errors.RingFullError,
    quire.errors.TailerInUseError,
    LockHeldError,
)

Say = Callable[..., None]


@dataclass
class Meeting:
    """One party's side of a meeting."""

    path: Path
    name: str
    say: Say
    shared: Any = None
    """The queue that two threads of a process have in common."""
    number: int = field(default=0, init=False)

    def clock(self, cycle: int) -> quire.ManualClock:
        return quire.ManualClock(START_MS + cycle * SECOND_MS)

    @contextmanager
    def queue(self, cycle: int = CYCLES, **options: Any) -> Generator[quire.JournalQueue]:
        if self.shared is not None and not options and cycle == CYCLES:
            yield self.shared
            return
        queue: quire.JournalQueue = self.patiently(
            lambda: open_queue(self.path, self.clock(cycle), **options)
        )
        try:
            yield queue
        finally:
            self.patiently(queue.close)

    def patiently(self, work: Callable[[], Any]) -> Any:
        """Do it, again and again while it is refused because of the other party."""
        while True:
            try:
                return work()
            except WAITS as error:
                self.say("waits", type(error).__name__)
                time.sleep(PAUSE_S)

    def text(self, length: int = 0) -> str:
        self.number += 1
        text = f"{self.name} {self.number} "
        self.say("begin", text)
        return text.ljust(length, ".") if length else text

    def write(self, appender: Any, length: int = 0) -> None:
        text = self.text(length)
        index = self.patiently(lambda: appender.write_bytes(text.encode()))
        self.say("ack", index, text.split(".")[0])

    def put(self, appender: Any, length: int = 0) -> None:
        text = self.text(length)
        self.patiently(lambda: appender.write_bytes(text.encode()))
        self.say("put", text.split(".")[0])


def open_queue(path: Path, clock: quire.ManualClock, **options: Any) -> quire.JournalQueue:
    wanted: dict[str, Any] = {
        "roll_cycle": "TEST4_SECONDLY",
        "layout": quire.LayoutOptions(index_count=8, index_spacing=2),
        "block_bytes": BLOCK,
        "clock": clock,
        "timeout_s": TIMEOUT_S,
        "pretouch": False,
        "wait": quire.WaitOptions(eof_grace_s=0),
    }
    opener: Callable[..., Any] = quire.open
    return cast("quire.JournalQueue", opener(path, **(wanted | options)))


# What is there before.


def make_chronicle(path: Path) -> None:
    for cycle in range(CYCLES + 1):
        with (
            open_queue(path, quire.ManualClock(START_MS + cycle * SECOND_MS)) as queue,
            queue.appender() as appender,
        ):
            for number in range(EACH if cycle < CYCLES else LAST):
                appender.write_text(f"old {cycle * EACH + number} ")
    with open_queue(path, quire.ManualClock(START_MS + CYCLES * SECOND_MS)) as queue:
        with queue.appender() as appender:
            appender.normalise_eofs()
        with queue.tailer(TAILER) as tailer:
            for _ in range(HELD * EACH + 1):
                tailer.read_bytes()
            tailer.commit()
        with queue.group(GROUP).consumer() as consumer:
            consumer.ack_many(consumer.read_many(HELD * EACH + 1))


def make_damaged(path: Path) -> None:
    """A queue whose second cycle lost its end mark, and whose newest one its index."""
    make_chronicle(path)
    files = sorted(path.glob("*.cq4"))
    second, newest = Store(files[1].read_bytes()), Store(files[-1].read_bytes())
    with files[1].open("r+b") as file:
        file.seek(second.tail)
        file.write(bytes(4))
    with files[-1].open("r+b") as file:
        file.seek(newest.offsets["lastIndex"])
        file.write(bytes(8))


def make_restarted(path: Path) -> None:
    """A queue whose newest file is from before a restart, and whose words lead too far."""
    make_chronicle(path)
    newest = max(path.glob("*.cq4"))
    store = Store(newest.read_bytes())
    with newest.open("r+b") as file:
        file.seek(store.offsets["writePosition"])
        file.write(struct.pack("<q", store.tail + 64))
        file.seek(store.tail + 64)
        file.write(b"lost")
    os.utime(newest, (1, 1))


def make_compressed(path: Path) -> None:
    make_chronicle(path)
    quire.prune(path, max_cycles=1, action="compress")


def make_vanilla(path: Path) -> None:
    with open_vanilla(path, clock=quire.ManualClock(VANILLA_MS), **VANILLA) as queue:
        for number in range(EACH):
            queue.appender().write_bytes(f"old {number} ".encode())


def make_quick(path: Path) -> None:
    with (
        quire.quick_queue.open(path, page_bytes=QUICK_BYTES) as queue,
        queue.appender("AA0") as appender,
    ):
        for number in range(EACH):
            appender.write_bytes(f"old {number} ".encode())


# Parties of a Chronicle queue.


def append(it: Meeting) -> None:
    with it.queue() as queue, queue.appender() as appender:
        for _ in range(3):
            it.write(appender)
        texts = [it.text() for _ in range(5)]
        last = it.patiently(lambda: appender.write_many([text.encode() for text in texts]))
        for number, text in enumerate(reversed(texts)):
            it.say("batch", last - number, text)
        it.write(appender)


def document(it: Meeting) -> None:
    with it.queue() as queue, queue.appender() as appender:
        text = it.text()

        def work() -> int:
            with appender.writing_document() as opened:
                opened.write("text", text)
            return opened.index

        it.say("wired", it.patiently(work), text)
        it.write(appender)


def grow(it: Meeting) -> None:
    with it.queue() as queue, queue.appender() as appender:
        for _ in range(24):  # beyond what a pretoucher prepares
            it.write(appender, HUGE)


def roll(it: Meeting) -> None:
    with it.queue(CYCLES + 1) as queue, queue.appender() as appender:
        it.write(appender)
        it.write(appender)


def durable(it: Meeting) -> None:
    with it.queue(durability="each") as queue, queue.appender() as appender:
        it.write(appender)
        it.write(appender)


def counted(it: Meeting) -> None:
    with it.queue(metrics=True, time_index=True) as queue, queue.appender() as appender:
        it.write(appender)
        it.write(appender)
        queue.metrics()


def pretouch(it: Meeting) -> None:
    with it.queue() as queue, queue.pretoucher() as pretoucher:
        it.patiently(pretoucher.execute)
        it.patiently(pretoucher.execute)


def prepare_next(it: Meeting) -> None:
    with (
        it.queue() as queue,
        queue.pretoucher(early_acquire_next_cycle=True, preroll_time_s=1) as pretoucher,
    ):
        it.patiently(pretoucher.execute)


def create(it: Meeting) -> None:
    """Open a queue that may not be there yet."""
    with it.queue() as queue, queue.appender() as appender:
        it.write(appender)


def read(it: Meeting) -> None:
    with it.queue(read_only=True) as queue, queue.tailer() as tailer:
        forward = [
            (excerpt.index, excerpt.data.split(b".")[0].decode("latin-1")) for excerpt in tailer
        ]
        tailer.direction = "backward"
        tailer.to_end()
        backward = [excerpt.index for excerpt in tailer]
    it.say("saw", [index for index, _ in forward], backward)


def read_named(it: Meeting) -> None:
    with it.queue() as queue:
        tailer = it.patiently(lambda: queue.tailer(TAILER))
        with tailer:
            for _ in range(3):
                excerpt = tailer.read()
                if excerpt is not None:
                    it.say("got", excerpt.index)
                    tailer.commit()


def hold(it: Meeting) -> None:
    """Become somebody who needs every message that is there."""
    with it.queue() as queue:
        with queue.tailer("audit") as tailer:
            excerpt = tailer.read()
            assert excerpt is not None
            tailer.to_start()
            it.say("holds", excerpt.index)
        with queue.group(LATE).consumer() as consumer:
            message = consumer.read()
            if message is not None:
                message.nack()


def name(it: Meeting) -> None:
    with it.queue() as queue:
        it.patiently(lambda: queue.tailer(f"of {it.name}")).close()
        it.patiently(lambda: queue.rename_tailer(f"of {it.name}", f"once {it.name}"))
        it.patiently(lambda: queue.delete_tailer(f"once {it.name}"))


def consume(it: Meeting) -> None:
    with it.queue() as queue, queue.group(GROUP).consumer() as consumer:
        for message in consumer.read_many(3):
            assert message.ack()
            it.say("done", message.index)


def put(it: Meeting) -> None:
    with (
        it.queue(buffer_mode="async", ring=quire.RingOptions(capacity_bytes=BLOCK)) as queue,
        queue.appender() as appender,
    ):
        for _ in range(4):
            it.put(appender)
        ring = queue.ring
        assert ring is not None
        it.patiently(lambda: ring.flush(timeout_s=TIMEOUT_S))
        it.put(appender)


def grow_ring(it: Meeting) -> None:
    """Put more into a ring than it holds, while nothing can be drained."""
    with (
        it.queue(force_unlock="never") as plain,
        plain.appender() as appender,
        it.queue(
            buffer_mode="async", ring=quire.RingOptions(capacity_bytes=BLOCK, on_full="grow")
        ) as queue,
        queue.appender() as producer,
    ):
        document = it.patiently(lambda: appender.writing_document().__enter__())
        for _ in range(8):
            it.put(producer, BIG)
        document.rollback_on_close()
        document.__exit__(None, None, None)
        assert queue.ring is not None
        ring = queue.ring
        it.patiently(lambda: ring.flush(timeout_s=TIMEOUT_S))


def read_ring(it: Meeting) -> None:
    with (
        it.queue(ring=quire.RingOptions(read_buffer_mode="async", capacity_bytes=BLOCK)) as queue,
        queue.tailer() as tailer,
    ):
        it.patiently(lambda: sum(1 for _ in tailer))


def prune(it: Meeting) -> None:
    _prune(it)


def compress(it: Meeting) -> None:
    _prune(it, action="compress")


def move(it: Meeting) -> None:
    _prune(it, action="move", dest=it.path.with_name(f"moved-{it.name}"))


def _prune(it: Meeting, **options: Any) -> None:
    report = it.patiently(lambda: quire.prune(it.path, max_cycles=1, **options))
    it.say(
        "removed",
        options.get("action", "delete"),
        [Path(cycle.file).name for cycle in report.removed],
    )


def copy(it: Meeting) -> None:
    dest = it.path.with_name(f"copy-{it.name}")
    it.patiently(lambda: quire.copy_queue(it.path, dest))
    it.say("copied", str(dest))


def verify(it: Meeting) -> None:
    it.say("verified", [finding.kind for finding in quire.verify(it.path).findings])


def repair(it: Meeting) -> None:
    it.patiently(lambda: quire.repair(it.path, dry_run=False, timeout_s=TIMEOUT_S))


def forked(it: Meeting) -> None:
    """A child of the process whose thread stands opens everything anew."""
    pid = os.fork()
    if not pid:
        signal.alarm(CHILD_S)
        vars(importlib.import_module("quire._native"))["set_fault"]("")
        child = Meeting(it.path, it.name, it.say)
        try:
            append(child)
            consume(child)
            read(child)
        except BaseException as error:  # noqa: BLE001 - reported by the parent's check
            it.say("failed", repr(error))
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 0, f"the forked child ended with {code}"


# Parties of the older formats.


def vanilla_append(it: Meeting) -> None:
    tid = {"first": 1, "other": 2}[it.name]
    clock = quire.ManualClock(VANILLA_MS)
    with (
        open_vanilla(it.path, clock=clock, **VANILLA) as queue,
        queue.appender(thread_id=tid) as appender,
    ):
        for _ in range(8):
            it.write(appender)


def vanilla_read(it: Meeting) -> None:
    with open_vanilla(it.path, read_only=True, **VANILLA) as queue:
        it.say("saw", [excerpt.index for excerpt in queue.tailer()], None)


def vanilla_named(it: Meeting) -> None:
    with (
        open_vanilla(it.path, **VANILLA) as queue,
        it.patiently(lambda: queue.tailer(TAILER)) as tailer,
    ):
        for _ in range(3):
            tailer.read()


def quick_append(it: Meeting) -> None:
    producer = {"first": "BB1", "other": "CC2"}[it.name]
    with (
        quire.quick_queue.open(it.path, page_bytes=QUICK_BYTES) as queue,
        queue.appender(producer) as appender,
    ):
        for _ in range(6):
            it.write(appender)


def quick_read(it: Meeting) -> None:
    with quire.open(it.path, read_only=True, format="quick-queue") as queue:
        it.say("saw", [excerpt.index for excerpt in queue.tailer(on_dead="skip")], None)


@dataclass(frozen=True)
class Family:
    """Parties that meet at a queue of one format."""

    make: Callable[[Path], None]
    firsts: str
    others: str
    beside: str = ""
    """Other parties that may be threads of the first one's process, with the same queue."""


FIRSTS = (
    "append document grow roll durable counted pretouch prepare_next read_named hold name "
    "consume put grow_ring read_ring prune compress move copy verify repair read"
)
FAMILIES = {
    "chronicle": Family(
        make_chronicle,
        FIRSTS,
        FIRSTS.replace("durable ", ""),
        "append grow roll pretouch read_named consume forked",
    ),
    "damaged": Family(
        make_damaged,
        "repair",
        "append roll read read_named hold consume put prune copy repair",
        "append forked",
    ),
    "restarted": Family(
        make_restarted,
        "append read_named",
        "append roll read read_named consume put prune copy verify",
    ),
    "compressed": Family(
        make_compressed,
        "read hold copy",
        "append read read_named compress prune copy verify",
        "forked append",
    ),
    "new": Family(lambda _: None, "create put", "create put append consume"),
    "vanilla": Family(
        make_vanilla,
        "vanilla_append vanilla_named copy",
        "vanilla_append vanilla_named vanilla_read copy verify",
    ),
    "quick-queue": Family(make_quick, "quick_append copy", "quick_append quick_read copy verify"),
}


def live(it: Meeting, party: str) -> None:
    """Do what a party of this name does."""
    globals()[party](it)
