"""A queue's life with everything that a writer, a reader and their heirs do, in a build that can be
stopped at any step of it.

As a program it runs in the build with fault points and forks a child for each life asked for, a
line of JSON each way; `fault_peer.py` talks to it. A journal outside the queue says what was begun
and what had returned.
"""

from __future__ import annotations

import errno
import gc
import importlib
import itertools
import json
import os
import resource
import signal
import struct
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import quire
from queues import START_MS, WRITE_LOCK, poke
from reference import Store, open_queue, parse

NATIVE = importlib.import_module("quire._native")  # has more in the build with fault points
NOBODY = 2**22 + 1  # a pid above the greatest
UNFINISHED = struct.pack("<I", 0x80000000)
BLOCK, BIG = 2**16, 15_000
SECOND_MS = 1000
LONGEST_S = 300
HEALED, FRESH = 2, 3  # which attempts at a step come after the fault, and on fresh handles
NAMES = ("reader", "replicated:reader")


class Journal:
    """What was begun and what returned, a line each, in a file that survives the writer."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        lines = [line.split() for line in path.read_text("utf-8").splitlines()]
        sent = (int(line[2]) + int(line[3]) for line in lines if line[0] == "send")
        self._next = max(sent, default=0)

    def say(self, *words: object) -> None:
        os.write(self._handle, (" ".join(map(str, words)) + "\n").encode())

    def send(self, kind: str, count: int, work: Callable[[range], object]) -> None:
        """Write messages of the next numbers; *work* returns the index of the last."""
        numbers = range(self._next, self._next + count)
        self._next = numbers.stop
        self.say("send", kind, numbers.start, count)
        try:
            index = work(numbers)
        except Exception:
            self.say("fail", numbers.start)
            raise
        self.say("ack", numbers.start, index)

    def close(self) -> None:
        os.close(self._handle)


def text(number: int, length: int = 0) -> bytes:
    return f"<{number}>".encode().ljust(max(length, 8 + number % 40), b".")


class Life:
    """Handles of one queue, used and opened again; every step can be tried once more."""

    def __init__(self, directory: Path, now_ms: int, *, may_fail: bool = False) -> None:
        self.path, self.may_fail = directory / "queue", may_fail
        self.clock = quire.ManualClock(now_ms)
        self.journal = Journal(directory / "journal")
        self.holders = itertools.cycle((NOBODY, os.getppid()))  # the second is no user of the queue
        self.failures, self.hits = 0, dict[str, int]()

    def live(self, steps: Iterator[Callable[[], object]]) -> None:
        for step in steps:
            self.attempt(step)
        self.close()
        self.journal.close()

    def attempt(self, step: Callable[[], object]) -> None:
        """Three times on the same handles, from the third on with the fault gone, then on fresh
        ones."""
        for number in range(4):
            try:
                if number == FRESH:
                    self.open()
                step()
            except (OSError, quire.QuireError):
                self.failures += 1
                self.journal.say("error", traceback.format_exc().splitlines()[-1])
                if number == FRESH or not self.may_fail:
                    raise
                if number == HEALED - 1:
                    self.hits = hits()
                    arm("")
            else:
                return

    # What a writer and its readers do.

    def whole(self) -> Iterator[Callable[[], object]]:
        yield self.open
        yield from [self.write] * 18
        yield from (self.write_document, self.roll_back, self.write_metadata)
        yield partial(self.write_many, 7)
        yield from [partial(self.read, name) for name in NAMES]
        yield self.delete_name
        yield from [partial(self.write, BIG)] * 5
        yield from (self.sync, self.acknowledge, self.replicate)
        yield from (partial(self.tick, 1), self.write, self.write_elsewhere)
        yield from (partial(self.tick, 4), self.write_too_much, self.write, self.look)
        yield from (self.sync, self.normalise, self.close)
        yield from (self.leave_lost, self.leave_name, self.open, self.write, self.close)
        yield from (self.leave_document, self.open, self.write, self.write, self.close)
        yield from (self.leave_document, partial(self.leave_file, UNFINISHED + bytes(BLOCK)))
        yield from (partial(self.tick, 1), self.open, self.write)
        yield from (partial(self.leave_file, b""), partial(self.tick, 1), self.write)
        yield from [partial(self.read, name) for name in NAMES]
        yield from (self.normalise, self.close)

    def recovery(self) -> Iterator[Callable[[], object]]:
        yield from (self.open, self.write, self.write_metadata, partial(self.write_many, 3))
        yield from [partial(self.read, name) for name in NAMES]
        yield from (partial(self.tick, 1), self.write, self.sync, self.normalise, self.close)

    def open(self) -> None:
        self.close()
        self.queue = quire.open(
            self.path,
            roll_cycle="TEST4_SECONDLY",
            layout=quire.LayoutOptions(index_count=8, index_spacing=2, low_space_percent=1),
            block_bytes=BLOCK,
            clock=self.clock,
            timeout_s=0.05,
            pretouch=False,
            wait=quire.WaitOptions(eof_grace_s=0),
            metrics=True,
        )
        self.appender = self.queue.appender()

    def close(self) -> None:
        with suppress(AttributeError):
            self.queue.close()
            del self.queue, self.appender

    def tick(self, seconds: int) -> None:
        self.clock.advance(seconds * SECOND_MS)

    def write(self, length: int = 0) -> None:
        self.journal.send("one", 1, lambda numbers: self.put(text(numbers[0], length)))

    def put(self, payload: bytes) -> int:
        return self.appender.write_bytes(payload)

    def write_many(self, count: int) -> None:
        self.journal.send(
            "many", count, lambda numbers: self.appender.write_many(map(text, numbers))
        )

    def write_document(self) -> None:
        def work(numbers: range) -> int:
            with self.appender.writing_document() as document:
                document.write("number", text(numbers[0]).decode())
            return document.index

        self.journal.send("one", 1, work)

    def write_metadata(self) -> None:
        def work(numbers: range) -> int:
            with self.appender.writing_document(metadata=True) as document:
                document.write("number", text(numbers[0]).decode())
            return 0

        self.journal.send("metadata", 1, work)

    def roll_back(self) -> None:
        with self.appender.writing_document() as document:
            document.write("number", "<-1>")
            document.rollback_on_close()

    def write_elsewhere(self) -> None:
        """Through a second appender, whose file the first one has open."""
        with self.queue.appender() as appender:
            self.journal.send("one", 1, lambda numbers: appender.write_bytes(text(numbers[0])))

    def write_too_much(self) -> None:
        """Meet the limit of a file's size where a file is to be made."""

        def work(numbers: range) -> None:
            soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
            try:
                self.put(text(numbers[0]))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

        try:
            self.journal.send("one", 1, work)
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise

    def sync(self) -> None:
        self.appender.sync()

    def acknowledge(self) -> None:
        """Note what a replica has, as a source does."""
        last = self.queue.last_index
        assert last is not None
        self.queue._note_acknowledged(last)
        states = NATIVE.ReplicaStates.open_or_create(self.path)
        states.note(states.slot_of("replica", "host:1"), sent=last, acknowledged=last, time_ns=1)

    def replicate(self) -> None:
        """Take the append lock of another queue, as a sink does."""
        replica = quire.open(self.path.with_name("replica"), block_bytes=BLOCK, clock=self.clock)
        with replica, NATIVE.BatchWriter(replica):
            pass

    def normalise(self) -> None:
        self.appender.normalise_eofs()

    def read(self, name: str) -> None:
        """Read under a name, and take back what was not finished."""
        with self.queue.tailer(name) as tailer:
            self.journal.say("at", name, tailer.index)
            for _ in range(2):
                tailer.read_bytes()
                self.journal.say("goes", name, tailer.index)
                tailer.commit()
                self.journal.say("at", name, tailer.index)

    def delete_name(self) -> None:
        self.queue.tailer("deleted").close()
        assert self.queue.delete_tailer("deleted")

    def look(self) -> None:
        """Read everything, both ways."""
        with self.queue.tailer() as tailer:
            count = sum(1 for _ in tailer.payloads())
            tailer.direction = "backward"
            tailer.to_end()
            assert count == sum(1 for _ in tailer) == self.queue.entry_count
        self.queue.refresh()
        self.queue.metrics()

    # What others may leave behind: a dead holder, half a document, files in all stages.

    def leave_document(self) -> None:
        """Leave the lock taken and a header claimed, as a killed Java writer does."""
        poke(self.path, WRITE_LOCK, next(self.holders))
        newest = max(self.path.glob("*.cq4"))
        with newest.open("r+b") as file:
            file.seek(Store(newest.read_bytes()).tail)
            file.write(UNFINISHED)

    def leave_lost(self) -> None:
        """Leave words and slots that lead behind the end, as a power cut does, from long ago."""
        newest = max(self.path.glob("*.cq4"))
        store = Store(newest.read_bytes())
        lost = store.tail + 64
        upper = store.numbers["index2Index"]
        lower = store.array(upper)[1][0]
        words = {store.offsets["writePosition"]: lost, store.offsets["lastIndex"]: 64}
        for array, slot in ((upper, 1), (lower, 7)):
            _, first, _ = next(parse(store.data, array + 4, len(store.data)))
            words |= {first + 8 * slot: lost, first - 8: slot + 1}
        with newest.open("r+b") as file:
            for offset, value in words.items():
                file.seek(offset)
                file.write(struct.pack("<q", value))
            file.seek(lost)
            file.write(b"lost")
        os.utime(newest, (1, 1))
        # A file after it was lost altogether; the table is not.
        poke(self.path, "normalisedEOFsTo", max(open_queue(self.path)[1]))

    def leave_name(self) -> None:
        """Leave a second name of the table, as earlier versions did that died making one."""
        second = self.path / "metadata.cq4t.4711.1"
        if not second.exists():
            os.link(self.path / "metadata.cq4t", second)

    def leave_file(self, content: bytes) -> None:
        """Leave the next cycle's file as one who died making it."""
        roll_cycle, stores = open_queue(self.path)
        (self.path / roll_cycle.file_name(max(stores) + 1)).write_bytes(content)


def arm(fault: str) -> None:
    """Have one step fail, or none."""
    vars(NATIVE)["set_fault"](fault)


def hits() -> dict[str, int]:
    """Count how often each point was hit since."""
    return dict(vars(NATIVE)["fault_hits"]())


def held(path: Path) -> list[str]:
    """Descriptors and mappings of the queue's files."""
    links = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    maps = Path("/proc/self/maps").read_text("utf-8", errors="replace").splitlines()
    return [name for name in [*links, *maps] if str(path) in name]


def run(asked: dict[str, Any]) -> dict[str, Any]:
    """Live a life in this process, and tell how it went."""
    signal.alarm(LONGEST_S)
    now_ms = START_MS + asked["second"] * SECOND_MS
    life = Life(Path(asked["dir"]), now_ms, may_fail=asked["may_fail"])
    arm(asked["fault"])
    error = None
    try:
        life.live(getattr(life, asked["life"])())
    except BaseException:  # noqa: BLE001 - reported to the parent
        error = traceback.format_exc()
    counted = life.hits or hits()
    arm("")
    life.close()
    gc.collect()
    return {
        "error": error,
        "hits": counted,
        "failures": life.failures,
        "held": held(life.path),
    }


def serve() -> None:
    warnings.simplefilter("ignore")  # forks, and a build without optimisation
    for line in sys.stdin:
        receiving, sending = os.pipe()
        pid = os.fork()
        if not pid:
            os.write(sending, json.dumps(run(json.loads(line))).encode())
            os._exit(0)
        os.close(sending)
        with os.fdopen(receiving, "rb") as pipe:
            outcome = json.loads(pipe.read() or b"{}")
        outcome["exit"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps(outcome), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    serve()
