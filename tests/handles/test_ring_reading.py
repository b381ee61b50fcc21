"""Reading through the ring: a tailer drains what nobody else does, and reads it at its index."""

from __future__ import annotations

import itertools
import os
import pickle  # the tests' own objects
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import COMMAND
from queues import START_MS, payloads
from ring_left import leave_in_ring

LEAST = 2**16
PATIENCE_S = 60.0


def opened(path: Path) -> quire.JournalQueue:
    return quire.open(path, ring=quire.RingOptions(read_buffer_mode="async", capacity_bytes=LEAST))


def reached(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not done() and time.monotonic() < deadline:
        time.sleep(0.001)
    return done()


def polled(tailer: quire.JournalTailer, count: int) -> list[quire.Excerpt]:
    """Read *count* messages, however long they take."""
    found: list[quire.Excerpt] = []

    def read() -> bool:
        found.extend(tailer)
        return len(found) >= count

    assert reached(read)
    return found


def ring_of(queue: quire.JournalQueue) -> quire.Ring:
    assert queue.ring is not None
    return queue.ring


def numbered(count: int) -> list[bytes]:
    return [f"{number}".encode() for number in range(count)]


@contextmanager
def draining(path: Path) -> Generator[subprocess.Popen[bytes]]:
    """Run the verb that drains the ring, until it is killed."""
    with subprocess.Popen([*COMMAND, "drain", path]) as verb:
        try:
            yield verb
        finally:
            verb.kill()


def documents(tailer: quire.JournalTailer) -> list[bytes]:
    found: list[bytes] = []
    while True:
        with tailer.reading_document() as document:
            if not document.is_present:
                return found
            found.append(bytes(document.bytes))


def batched(tailer: quire.JournalTailer) -> list[bytes]:
    return [row["payload"] for row in tailer.read_batch().to_pylist()]


def waited(tailer: quire.JournalTailer) -> list[bytes]:
    tailer.wait(timeout_s=PATIENCE_S)
    return list(tailer.payloads())


def spun(tailer: quire.JournalTailer) -> list[bytes]:
    assert tailer.spin(timeout_s=PATIENCE_S)
    return list(tailer.payloads())


WAYS: list[Callable[[quire.JournalTailer], list[bytes]]] = [
    lambda tailer: [excerpt.data for excerpt in tailer],
    lambda tailer: list(iter(tailer.read_bytes, None)),
    lambda tailer: tailer.read_many(10_000),
    batched,
    documents,
    waited,
    spun,
]


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_a_reader_sees_what_a_dead_process_left(path: Path, way: int) -> None:
    written = numbered(600)
    with opened(path) as queue, queue.tailer() as tailer:
        assert tailer.read() is None
        leave_in_ring(path, queue, written)
        assert queue.entry_count == 0
        assert ring_of(queue).pending == len(written)
        assert WAYS[way](tailer) == written
        assert tailer.last_read_index == queue.last_index
        assert ring_of(queue).pending == 0
        assert tailer.read() is None
        with quire.open(path, read_only=True) as plain:
            assert payloads(plain) == written


def test_appends_of_the_same_queue_are_direct_and_have_an_index(path: Path) -> None:
    with opened(path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        index = appender.write_bytes(b"direct")
        excerpt = tailer.read()
        assert excerpt is not None
        assert (excerpt.index, excerpt.data) == (index, b"direct")


def test_one_queue_writes_and_reads_through_the_ring(path: Path) -> None:
    with (
        quire.open(
            path, buffer_mode="async", ring=quire.RingOptions(read_buffer_mode="async")
        ) as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        for number in range(2000):
            assert appender.write_bytes(b"%d" % number) == -1
        assert [it.data for it in polled(tailer, 2000)] == numbered(2000)


def test_a_reader_that_flushes_leaves_draining_to_others(path: Path) -> None:
    with opened(path) as reader:
        ring_of(reader).flush()
        with quire.open(path, buffer_mode="async") as queue, queue.appender() as appender:
            appender.write_bytes(b"drained by its own thread")
            assert reached(lambda: queue.entry_count == 1)


def test_two_readers_at_once_see_the_same(path: Path) -> None:
    written = numbered(900)  # twice as many have room at once

    def follow(queue: quire.JournalQueue) -> list[tuple[int, bytes]]:
        with queue.tailer() as tailer:
            return [(it.index, it.data) for it in polled(tailer, 2 * len(written))]

    with opened(path) as one, opened(path) as two, ThreadPoolExecutor(2) as pool:
        leave_in_ring(path, one, written)
        followed = [pool.submit(follow, queue) for queue in (one, two)]
        leave_in_ring(path, one, written)
        found, same = [it.result() for it in followed]
        assert found == same
        assert [data for _, data in found] == [*written, *written]
        assert payloads(one) == [*written, *written]


def test_a_reader_beside_the_verb_that_drains(path: Path) -> None:
    with (
        opened(path) as queue,
        queue.tailer() as tailer,
        draining(path) as verb,
    ):
        leave_in_ring(path, queue, [b"drained"])
        assert reached(lambda: ring_of(queue).pending == 0)
        assert tailer.read_bytes() == b"drained"
        verb.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, verb.pid, os.WSTOPPED)
        leave_in_ring(path, queue, [b"kept"])
        # It lives and has the lock: it is its turn.
        assert tailer.read_bytes() is None
        assert ring_of(queue).pending == 1
        verb.kill()
        verb.wait()
        assert tailer.read_bytes() == b"kept"


def test_a_reader_does_not_wait_for_the_write_lock(path: Path) -> None:
    with opened(path) as queue, queue.tailer() as tailer, queue.appender() as appender:
        leave_in_ring(path, queue, [b"left"])
        with appender.writing_document() as document:
            assert tailer.read_bytes() is None
            document.rollback_on_close()
        assert tailer.read_bytes() == b"left"


def test_only_reads_forward_drain(path: Path) -> None:
    with opened(path) as queue, queue.tailer() as tailer:
        queue.appender().write_bytes(b"first")
        leave_in_ring(path, queue, [b"second"])
        tailer.direction = "backward"
        tailer.to_end()
        assert tailer.read_bytes() == b"first"
        assert tailer.read_bytes() is None
        assert ring_of(queue).pending == 1
        tailer.direction = "forward"
        tailer.to_end()
        assert tailer.read_bytes() == b"second"


def test_a_reader_goes_through_rings_that_grew(path: Path) -> None:
    written = [f"{number}".encode().ljust(3000) for number in range(100)]
    with opened(path) as queue, queue.tailer() as tailer:
        leave_in_ring(path, queue, written, on_full="grow")
        assert ring_of(queue).capacity_bytes > LEAST
        assert list(tailer.payloads()) == written
        assert [file.name for file in path.glob("async*.ring")] == ["async.ring"]


def test_a_message_equal_to_one_in_the_ring_is_another_one(path: Path) -> None:
    # Together they are longer than a block: the reader appends fewer than it intended, and lets go.
    same = b"same".ljust(20_000)
    with (
        quire.open(
            path,
            ring=quire.RingOptions(read_buffer_mode="async", capacity_bytes=2**20),
            block_bytes=2**16,
        ) as queue,
        queue.tailer() as tailer,
        queue.appender() as appender,
    ):
        leave_in_ring(path, queue, [same] * 12)
        assert tailer.read_bytes() == same
        assert ring_of(queue).pending > 0
        appender.write_many([same] * 3)
        assert list(itertools.islice(tailer.payloads(), 100)) == [same] * (11 + 3)
        assert queue.entry_count == 12 + 3


def test_what_is_left_is_drained_when_a_reader_opens_the_queue(path: Path) -> None:
    with opened(path) as queue:
        leave_in_ring(path, queue, [b"left"])
    with opened(path) as queue:
        assert (queue.entry_count, ring_of(queue).pending) == (1, 0)


def test_a_reader_survives_pickling(path: Path) -> None:
    with opened(path) as queue, pickle.loads(pickle.dumps(queue)) as again:
        leave_in_ring(path, queue, [b"left"])
        assert list(again.tailer().payloads()) == [b"left"]


def test_wrong_arguments(path: Path) -> None:
    quire.open(path).close()
    with pytest.raises(
        quire.errors.ReadOnlyError, match=r"read_buffer_mode='async'.*read_only=True"
    ):
        quire.open(path, read_only=True, ring=quire.RingOptions(read_buffer_mode="async"))
    with pytest.raises(quire.errors.UnsupportedError, match="clock that calls Python"):
        quire.open(path, ring=quire.RingOptions(read_buffer_mode="async"), clock=lambda: START_MS)
    for kind, mode in itertools.product(
        ("vanilla", "quick-queue"), ("buffer_mode", "read_buffer_mode", "write_buffer_mode")
    ):
        other = path.with_name(kind)
        given: Any = {mode: "async"}
        whole = given if mode == "buffer_mode" else {"ring": quire.RingOptions(**given)}
        with pytest.raises(quire.errors.UnsupportedError, match=f"{mode}='async'"):
            quire.open(other, format=kind, **whole)  # type: ignore[call-overload]
        assert not other.exists()
