"""What `durability=` promises, seen from outside: by the synced index, and by a disk that fails."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest

import quire
from queues import START_MS, exit_code, fork, threads_named

THREAD = "quire-sync"
PATIENCE_S = 300.0
NEVER_S = 3600.0


def reached(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not done() and time.monotonic() < deadline:
        time.sleep(0.001)
    return done()


def test_nothing_is_synced_by_default(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_text("one")
    assert queue.last_index_synced is None
    appender.sync()
    assert queue.last_index_synced == queue.last_index
    appender.write_text("two")
    assert queue.last_index_synced == queue.first_index


def test_each_append_returns_synced(path: Path) -> None:
    with quire.open(path, durability="each") as queue, queue.appender() as appender:
        writes: list[Callable[[], int | None]] = [
            lambda: appender.write_bytes(b"bytes"),
            lambda: appender.write_text("text"),
            lambda: appender.write_map({"n": 1}),
            lambda: appender.write_many([b"a", b"b", b"c"]),
            lambda: appender.write_bytes(bytes(100_000)),
        ]
        for write in writes:
            assert write() == queue.last_index_synced
        with appender.writing_document() as document:
            document.write("n", 1)
        assert document.index == queue.last_index_synced


def test_threads_share_syncs(path: Path) -> None:
    with (
        quire.open(path, durability="each", wait=quire.WaitOptions(group_commit_s=0.001)) as queue,
        queue.appender() as appender,
        ThreadPoolExecutor(8) as pool,
    ):

        def write(number: int) -> bool:
            index = appender.write_text(f"{number}")
            return index <= (queue.last_index_synced or -1)

        assert all(pool.map(write, range(100)))


def test_awaited_appends_are_synced(path: Path) -> None:
    with quire.open(path, durability="each") as queue, queue.appender() as appender:

        async def write() -> None:
            indexes = await asyncio.gather(*(appender.awrite_text(f"{n}") for n in range(10)))
            assert queue.last_index_synced == max(indexes)

        asyncio.run(write())


def test_a_batch_is_synced_by_a_thread(path: Path) -> None:
    others = threads_named(THREAD)  # that of a queue before it may still be ending
    with (
        quire.open(path, durability="batch", wait=quire.WaitOptions(group_commit_s=0.001)) as queue,
        queue.appender() as appender,
    ):
        for _ in range(3):
            index = appender.write_text("text")
            assert reached(lambda: queue.last_index_synced == index)  # noqa: B023 - at once
        second = queue.appender()
        assert len(threads_named(THREAD) - others) == 1
        second.close()
    assert reached(lambda: threads_named(THREAD) <= others)


def test_closing_syncs_the_rest_of_a_batch(path: Path, clock: quire.ManualClock) -> None:
    with (
        quire.open(
            path, durability="batch", wait=quire.WaitOptions(group_commit_s=NEVER_S), clock=clock
        ) as queue,
        queue.appender() as appender,
    ):
        appender.write_text("one")
        clock.advance(86_400_000)
        last = appender.write_text("in the next file")
    with quire.open(path, read_only=True) as queue:
        assert queue.last_index_synced == last


def test_dropping_a_queue_syncs_the_rest_of_a_batch(path: Path) -> None:
    queue = quire.open(path, durability="batch", wait=quire.WaitOptions(group_commit_s=NEVER_S))
    appender = queue.appender()
    last = appender.write_text("one")
    del queue, appender
    gc.collect()
    with quire.open(path, read_only=True) as queue:
        assert queue.last_index_synced == last


def test_a_child_of_a_fork_leaves_the_sync_to_its_parent(path: Path) -> None:
    with (
        quire.open(
            path, durability="batch", wait=quire.WaitOptions(group_commit_s=NEVER_S)
        ) as queue,
        queue.appender() as appender,
    ):
        appender.write_text("one")
        assert exit_code(fork(queue.close)) == 0
        assert queue.last_index == appender.last_index_appended


def test_the_synced_index_of_a_file_that_is_gone_is_not_shown(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"one", b"two"])
    appender.sync()
    Path(queue.file_for_cycle(queue.cycles[0])).unlink()
    queue.refresh()
    assert queue.last_index_synced is None


@pytest.mark.parametrize("durability", ["batch", "each"])
def test_a_reader_needs_no_thread(path: Path, durability: Literal["batch", "each"]) -> None:
    quire.open(path, clock=lambda: START_MS).close()
    others = threads_named(THREAD)
    with quire.open(path, read_only=True, durability=durability) as queue:
        assert threads_named(THREAD) <= others
        assert queue.last_index_synced is None


def test_wrong_arguments(path: Path) -> None:
    with pytest.raises(ValueError, match="durability"):
        quire.open(path, durability="always")  # type: ignore[call-overload]
    for seconds in (-1, 3601, float("inf")):
        with pytest.raises(ValueError, match="group_commit_s"):
            quire.open(path, durability="batch", wait=quire.WaitOptions(group_commit_s=seconds))
    with pytest.raises(ValueError, match="group_commit_s needs durability='batch' or 'each'"):
        quire.open(path, wait=quire.WaitOptions(group_commit_s=0.1))
    with pytest.raises(quire.errors.UnsupportedError, match="durability='each'"):
        quire.open(path, format="quick-queue", durability="each")  # type: ignore[call-overload]
    with pytest.raises(quire.errors.UnsupportedError, match="group_commit_s"):
        quire.open(path, format="vanilla", wait=quire.WaitOptions(group_commit_s=1.0))  # type: ignore[call-overload]
    assert not path.exists()
