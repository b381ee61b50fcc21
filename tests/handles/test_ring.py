"""Asynchronous appends: through the ring into the queue, each once, whichever process dies."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, Self

import pytest

import quire
from cli_runs import Cli
from queues import START_MS, exit_code, fork, payloads
from ring_left import SUM
from tally import scaled

RING = "async.ring"
LEAST = 2**16
PATIENCE_S = 300.0
VERSION_AT, CAPACITY_AT, FIRST_DESCRIPTOR = 8, 16, 4096


@pytest.fixture
def busy(path: Path) -> quire.JournalQueue:
    return quire.open(path, buffer_mode="async")


def ring_of(queue: quire.JournalQueue) -> quire.Ring:
    assert queue.ring is not None
    return queue.ring


def reached(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not done() and time.monotonic() < deadline:
        time.sleep(0.001)
    return done()


class Holder:
    """A process that drains the ring, and can be stopped."""

    def __init__(self, path: Path) -> None:
        program = (
            "import sys, time, quire\n"
            "ring = quire.RingOptions(capacity_bytes=65536)\n"
            "queue = quire.open(sys.argv[1], buffer_mode='async', ring=ring)\n"
            "queue.appender().write_bytes(b'up')\n"
            "while queue.ring.pending:\n"  # its thread drains, and keeps the lock
            "    time.sleep(0.001)\n"
            "print('up', flush=True)\n"
            "sys.stdin.read()\n"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"up\n"

    def __enter__(self) -> Self:
        return self

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()

    def __exit__(self, *args: object) -> None:
        self.kill()


def test_appends_reach_the_queue_in_their_order(busy: quire.JournalQueue) -> None:
    with busy, busy.appender() as appender:
        assert appender.write_bytes(b"one") == -1
        assert appender.write_many([b"two", b"three"]) == -1
        assert appender.write_many([]) is None
        appender.write_text("four")
        appender.write_map({"n": 5})
        with appender.writing_document() as document:
            document.write("n", 6)
            with pytest.raises(quire.errors.IndexNotAvailableError):
                _ = document.index
        assert document.index == -1
        assert appender.last_index_appended is None
        ring_of(busy).flush()
        tailer = busy.tailer()
        assert [tailer.read_bytes() for _ in range(3)] == [b"one", b"two", b"three"]
        assert tailer.read_text() == "four"
        assert [tailer.read_map(), tailer.read_map()] == [{"n": 5}, {"n": 6}]
        assert tailer.read() is None


def test_a_dropped_document_is_not_appended(busy: quire.JournalQueue) -> None:
    with busy, busy.appender() as appender:
        with appender.writing_document() as document:
            document.write("n", 1)
            document.rollback_on_close()
        appender.write_bytes(b"next")
        ring_of(busy).flush()
        assert payloads(busy) == [b"next"]


def test_metadata_keeps_its_place(busy: quire.JournalQueue) -> None:
    with busy, busy.appender() as appender:
        appender.write_bytes(b"one")
        with appender.writing_document(metadata=True) as document:
            document.write("note", 1)
        appender.write_bytes(b"two")
        ring_of(busy).flush()
        assert payloads(busy) == [b"one", b"two"]
        assert busy.dump().count("note: 1") == 1


def test_closing_drains_the_ring(busy: quire.JournalQueue, path: Path) -> None:
    written = [f"{number}".encode() for number in range(5000)]
    with busy, busy.appender() as appender:
        for payload in written:
            appender.write_bytes(payload)
    with quire.open(path, read_only=True) as queue:
        assert payloads(queue) == written


def test_syncing_covers_the_ring(busy: quire.JournalQueue) -> None:
    with busy, busy.appender() as appender:
        appender.write_bytes(b"one")
        appender.sync()
        assert busy.last_index_synced == busy.last_index == busy.first_index


def test_messages_of_all_sizes_pass_a_ring_that_is_smaller_than_they_are_together(
    path: Path,
) -> None:
    seed = random.Random(7)  # noqa: S311 - a test
    written = [seed.randbytes(seed.randrange(1, 20_000)) for _ in range(300)]
    with (
        quire.open(
            path, buffer_mode="async", ring=quire.RingOptions(capacity_bytes=LEAST)
        ) as queue,
        queue.appender() as appender,
    ):
        for payload in written:
            appender.write_bytes(payload)
        longest = seed.randbytes(LEAST - SUM)
        appender.write_bytes(longest)
        with pytest.raises(quire.errors.MessageTooLargeError, match=f"limit={LEAST - SUM}"):
            appender.write_bytes(longest + b".")
        ring_of(queue).flush()
        assert payloads(queue) == [*written, longest]


def test_threads_and_handles_share_the_ring(path: Path) -> None:
    def write(appender: quire.JournalAppender, number: int) -> None:
        for count in range(500):
            appender.write_bytes(struct.pack("<II", number, count))

    def opened() -> quire.JournalQueue:
        return quire.open(path, buffer_mode="async", ring=quire.RingOptions(capacity_bytes=LEAST))

    with opened() as one, opened() as two, ThreadPoolExecutor(4) as pool:
        appenders = [queue.appender() for queue in (one, two) for _ in range(2)]
        list(pool.map(write, appenders, range(4)))
        ring_of(one).flush()
        found = [struct.unpack("<II", payload) for payload in payloads(one)]
    assert len(found) == 2000
    for number in range(4):
        assert [count for which, count in found if which == number] == list(range(500))


@pytest.mark.parametrize("on_full", ["block", "raise"])
def test_a_full_ring_never_loses_a_message(path: Path, on_full: Literal["block", "raise"]) -> None:
    with Holder(path) as holder:
        queue = quire.open(
            path,
            buffer_mode="async",
            ring=quire.RingOptions(on_full=on_full),
            timeout_s=0.1,
        )
        with queue, queue.appender() as appender:
            holder.stop()
            written = [b"up"]

            def fill() -> None:
                for number in range(10_000):
                    appender.write_bytes(struct.pack("<I", number) * 10)
                    written.append(struct.pack("<I", number) * 10)

            with pytest.raises(quire.errors.RingFullError, match="capacity_bytes=65536"):
                fill()
            stats = ring_of(queue)
            assert len(written) > LEAST // 48
            assert stats.pending == len(written) - 1
            assert stats.stalls == 1
            assert 0 < stats.used_bytes <= stats.high_water_bytes <= stats.capacity_bytes == LEAST
            with pytest.raises(quire.errors.LockTimeoutError, match="not drained in time"):
                stats.flush(timeout_s=0)
            holder.go_on()
            stats.flush(timeout_s=PATIENCE_S)
            assert payloads(queue) == written
            assert stats.pending == stats.used_bytes == 0


def test_a_producer_waits_for_room(path: Path) -> None:
    with Holder(path) as holder, ThreadPoolExecutor(1) as pool:
        queue = quire.open(path, buffer_mode="async", timeout_s=PATIENCE_S)
        with queue, queue.appender() as appender:
            holder.stop()
            done = pool.submit(appender.write_many, [bytes([n % 256]) * 100 for n in range(2000)])
            assert reached(lambda: ring_of(queue).stalls > 0)
            assert not done.done()
            holder.go_on()
            assert done.result(PATIENCE_S) == -1
            ring_of(queue).flush(timeout_s=PATIENCE_S)
            assert len(payloads(queue)) == 2001


def test_another_process_takes_over_from_a_dead_drainer(path: Path) -> None:
    with Holder(path) as holder, quire.open(path, buffer_mode="async") as queue:
        appender = queue.appender()
        holder.stop()
        appender.write_many([b"a", b"b", b"c"])
        holder.kill()
        ring_of(queue).flush(timeout_s=PATIENCE_S)
        assert payloads(queue) == [b"up", b"a", b"b", b"c"]


@pytest.mark.parametrize("mode", ["async", "none"])
def test_what_was_left_is_drained_at_the_next_opening(path: Path, mode: str) -> None:
    with Holder(path) as holder:
        holder.stop()
        with quire.open(path, buffer_mode="async") as queue, queue.appender() as appender:
            appender.write_many([b"left", b"behind"])
        holder.kill()
    with quire.open(path, buffer_mode=mode) as queue, queue.appender() as appender:  # type: ignore[call-overload]
        appender.write_bytes(b"later")
        if queue.ring:
            queue.ring.flush()
        assert payloads(queue) == [b"up", b"left", b"behind", b"later"]


def test_a_reader_changes_nothing(busy: quire.JournalQueue, path: Path) -> None:
    busy.close()
    before = (path / RING).read_bytes()
    with quire.open(path, read_only=True, buffer_mode="async") as queue:
        assert queue.ring is None
        assert payloads(queue) == []
    assert (path / RING).read_bytes() == before


def test_a_child_of_a_fork_has_no_part_in_it(busy: quire.JournalQueue, path: Path) -> None:
    with busy, busy.appender() as appender:
        appender.write_bytes(b"parent")

        def child() -> None:
            with pytest.raises(quire.errors.ForkedError):
                appender.write_bytes(b"child")
            with quire.open(path, buffer_mode="async") as own:
                own.appender().write_bytes(b"own")

        assert exit_code(fork(child)) == 0
        ring_of(busy).flush()
        assert sorted(payloads(busy)) == [b"own", b"parent"]


@pytest.mark.parametrize("mode", ["async", "none"])
@pytest.mark.parametrize(
    ("position", "bytes_", "error", "text"),
    [
        (0, b"?", quire.errors.CorruptError, "not a ring of asynchronous appends"),
        (VERSION_AT, b"\1", quire.errors.UnsupportedError, "a ring of another version"),
        (CAPACITY_AT, b"\3", quire.errors.CorruptError, "not a ring of asynchronous appends"),
    ],
)
def test_a_ring_that_cannot_be_read_is_refused_and_kept(  # noqa: PLR0913, PLR0917 - parameters
    busy: quire.JournalQueue,
    path: Path,
    mode: str,
    position: int,
    bytes_: bytes,
    error: type[Exception],
    text: str,
) -> None:
    busy.close()
    ring = path / RING
    data = bytearray(ring.read_bytes())
    data[position : position + 1] = bytes_
    ring.write_bytes(data)
    with pytest.raises(error, match=text):
        quire.open(path, buffer_mode=mode)  # type: ignore[call-overload]
    assert ring.read_bytes() == data


def test_a_cut_ring_is_refused(busy: quire.JournalQueue, path: Path) -> None:
    busy.close()
    os.truncate(path / RING, 5000)
    with pytest.raises(quire.errors.CorruptError, match="found=5000 bytes"):
        quire.open(path, buffer_mode="async")


def test_slots_that_contradict_each_other_are_an_error(
    busy: quire.JournalQueue, path: Path
) -> None:
    busy.close()
    with (path / RING).open("r+b") as file:
        file.seek(FIRST_DESCRIPTOR)
        file.write(struct.pack("<Q", 12345))
    with quire.open(path, buffer_mode="async") as queue, queue.appender() as appender:
        with pytest.raises(quire.errors.CorruptError, match="the ring contradicts itself"):
            appender.write_bytes(b"one")
        with pytest.raises(quire.errors.CorruptError, match="the ring contradicts itself"):
            ring_of(queue).flush()


def open_ringed(path: Path, name: str, mode: str) -> None:
    given: Any = {name: mode}
    whole: Any = given if name == "buffer_mode" else {"ring": quire.RingOptions(**given)}
    quire.open(path, **whole)


def test_wrong_arguments(path: Path) -> None:
    for name in ("buffer_mode", "read_buffer_mode", "write_buffer_mode"):
        with pytest.raises(quire.errors.UnsupportedError, match=f"{name}='copy'"):
            open_ringed(path, name, "copy")
        with pytest.raises(ValueError, match=name):
            open_ringed(path, name, "sync")
    with pytest.raises(ValueError, match="needs buffer_mode='async'"):
        quire.open(
            path,
            buffer_mode="async",
            ring=quire.RingOptions(write_buffer_mode="none", capacity_bytes=9),
        )
    for on_full in ("raise", "grow"):
        with pytest.raises(ValueError, match=f"on_full='{on_full}' needs buffer_mode='async'"):
            quire.open(path, ring=quire.RingOptions(on_full=on_full))
    for capacity in (0, 2**30 + 1):
        with pytest.raises(ValueError, match="capacity_bytes"):
            quire.open(path, buffer_mode="async", ring=quire.RingOptions(capacity_bytes=capacity))
    with pytest.raises(ValueError, match="on_full"):
        quire.open(path, buffer_mode="async", ring=quire.RingOptions(on_full="lose"))  # type: ignore[arg-type, call-overload]
    with pytest.raises(quire.errors.UnsupportedError, match="buffer_mode='async'"):
        quire.open(path, format="vanilla", buffer_mode="async")  # type: ignore[call-overload]
    with pytest.raises(quire.errors.UnsupportedError, match="clock that calls Python"):
        quire.open(path, buffer_mode="async", clock=lambda: START_MS)


def test_the_verb_drains_what_is_left(cli: Cli, path: Path) -> None:
    with Holder(path) as holder:
        holder.stop()
        with quire.open(path, buffer_mode="async") as queue, queue.appender() as appender:
            appender.write_bytes(b"left")
        holder.kill()
    cli.ok("drain", path, "--once")
    with quire.open(path, read_only=True) as queue:
        assert payloads(queue) == [b"up", b"left"]


PRODUCER = """
import os, struct, sys, quire
number = int(sys.argv[2])
on_full = ("block", "grow")[number % 2]
ring = quire.RingOptions(capacity_bytes=65536, on_full=on_full)
with quire.open(sys.argv[1], buffer_mode="async", ring=ring) as queue:
    appender = queue.appender()
    for count in range(10**9):
        appender.write_bytes(struct.pack("<II", number, count) + bytes(count % 50))
        os.write(1, struct.pack("<I", count))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_kills_lose_nothing_and_repeat_nothing(path: Path) -> None:
    seed = random.Random(20)  # noqa: S311 - a test
    written: dict[int, int] = {}
    for round_ in range(scaled(20, 2000)):
        producers = {
            number: subprocess.Popen(
                [sys.executable, "-c", PRODUCER, str(path), str(number)], stdout=subprocess.PIPE
            )
            for number in (2 * round_, 2 * round_ + 1)
        }
        for number, producer in producers.items():
            assert producer.stdout is not None
            head = producer.stdout.read(4 * seed.randrange(1, 2000))
            producer.kill()
            rest, _ = producer.communicate()
            written[number] = len(head + rest) // 4
    with quire.open(path) as queue:
        found = [struct.unpack_from("<II", payload) for payload in payloads(queue)]
    for number, count in written.items():
        counts = [n for which, n in found if which == number]
        # The last one may have been killed before it said so.
        assert counts in ([*range(count)], [*range(count + 1)]), number
    assert max(Counter(found).values()) == 1
