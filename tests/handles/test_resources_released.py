"""Tailers that let go of their files and stay where they are; the cycle and file of the clock."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

import quire
from queues import START_MS

DAY_MS = 86_400_000
HANG_S = 120.0


def held(path: Path) -> list[str]:
    """Return the roll files below a directory that this process has open or mapped."""
    targets = [str(it.readlink()) for it in Path("/proc/self/fd").iterdir() if it.is_symlink()]
    maps = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    found = [*targets, *(line.split(maxsplit=5)[-1] for line in maps)]
    return [it for it in found if it.startswith(str(path)) and it.endswith(".cq4")]


def opened_files(path: Path) -> list[str]:
    """Return all files below a directory that this process has open or mapped."""
    targets = [str(it.readlink()) for it in Path("/proc/self/fd").iterdir() if it.is_symlink()]
    maps = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    found = [*targets, *(line.split(maxsplit=5)[-1] for line in maps)]
    return [it for it in found if it.startswith(str(path))]


@pytest.mark.parametrize("read_only", [False, True])
def test_a_closed_queue_has_no_file_open_or_mapped(path: Path, *, read_only: bool) -> None:
    with quire.open(path, metrics=True) as queue, queue.appender() as appender:
        appender.write_many([b"one", b"two"])
        queue.tailer("name").read()
    queue = quire.open(path, metrics=True, read_only=read_only)
    tailers = [queue.tailer(), queue.tailer() if read_only else queue.tailer("replicated:r")]
    assert [tailer.read_bytes() for tailer in tailers] == [b"one", b"one"]
    document = None if read_only else queue.appender().writing_document()
    assert queue.metrics().messages_appended == 2
    assert opened_files(path)

    queue.close()  # and the handles are kept

    assert opened_files(path) == []
    for tailer in tailers:
        with pytest.raises(quire.errors.ClosedError):
            tailer.read()
    if document:
        with pytest.raises(quire.errors.ClosedError):
            document.close()
    with quire.open(path, force_unlock="never") as again:
        assert not again.write_lock.locked
        assert again.metrics().messages_read == (1 if read_only else 3)
        again.appender().write_bytes(b"three")
        assert again.entry_count == 3


def test_the_last_queue_of_a_process_on_a_directory_maps_it_no_longer(path: Path) -> None:
    first, second = quire.open(path), quire.open(path)
    appenders = [queue.appender() for queue in (first, second)]
    first.close()
    assert opened_files(path)
    appenders[1].write_bytes(b"one")
    assert second.entry_count == 1
    second.close()
    assert opened_files(path) == []


@pytest.mark.check
def test_queues_that_are_closed_beside_appends_leave_no_lock(path: Path) -> None:
    """Whoever is in the middle of an append lets go of the lock where others see it."""
    rounds, written = 200, 0
    with ThreadPoolExecutor(1) as pool:
        for _ in range(rounds):
            queue = quire.open(path)
            appender, begun = queue.appender(), Event()
            appends = pool.submit(append_until_closed, appender, begun)
            assert begun.wait(HANG_S)
            queue.close()
            written += appends.result(HANG_S)
            with quire.open(path, force_unlock="never", timeout_s=0.01) as other:
                assert not other.write_lock.locked
                assert other.entry_count == written


def append_until_closed(appender: quire.JournalAppender, begun: Event) -> int:
    for count in itertools.count():
        try:
            appender.write_bytes(b"message")
        except quire.errors.ClosedError:
            return count
        begun.set()
    raise AssertionError


def filled(path: Path, clock: quire.ManualClock) -> None:
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue:
        for day in range(3):
            queue.appender().write_many([b"%d %d" % (day, number) for number in range(10)])
            clock.advance(DAY_MS)


ALL = [b"%d %d" % (day, number) for day in range(3) for number in range(10)]


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("count", [1, 7, 10, 11, 30])
def test_a_tailer_goes_on_where_it_let_go(
    direction: str, count: int, path: Path, clock: quire.ManualClock
) -> None:
    filled(path, clock)
    with quire.open(path, clock=clock) as queue, queue.tailer() as tailer:
        expected = ALL
        if direction == "backward":
            tailer.direction, expected = "backward", ALL[::-1]
            tailer.to_end()
        assert tailer.read_many(count) == expected[:count]
        place = tailer.index, tailer.state
        assert held(path) or count == len(ALL)
        tailer.release_resources()
        assert held(path) == []
        assert (tailer.index, tailer.state) == place
        assert [*tailer.payloads()] == expected[count:]


def test_a_tailer_that_let_go_turns_around(path: Path, clock: quire.ManualClock) -> None:
    filled(path, clock)
    with quire.open(path, clock=clock) as queue, queue.tailer() as tailer:
        tailer.to_end()
        tailer.release_resources()
        tailer.direction = "backward"
        assert [*tailer.payloads()] == ALL[::-1]


def test_a_document_outlives_what_was_let_go(path: Path, clock: quire.ManualClock) -> None:
    filled(path, clock)
    with quire.open(path, clock=clock) as queue, queue.tailer("name") as tailer:
        with tailer.reading_document() as document:
            tailer.release_resources()
            assert bytes(document.bytes) == ALL[0]
        del document
        assert [*tailer.payloads()] == ALL[1:]
    with quire.open(path, clock=clock) as queue:
        assert queue.tailer("name").read() is None


def test_a_tailer_that_let_go_sees_what_comes(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    tailer.release_resources()
    assert tailer.read() is None
    appender.write_bytes(b"one")
    assert tailer.read_bytes() == b"one"
    tailer.release_resources()
    appender.write_bytes(b"two")
    assert tailer.read_bytes() == b"two"
    tailer.close()
    with pytest.raises(quire.errors.ClosedError):
        tailer.release_resources()


def test_the_current_cycle_is_that_of_the_clock(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    assert queue.current_cycle == START_MS // DAY_MS
    assert not Path(queue.current_file).exists()
    index = appender.write_bytes(b"one")
    assert queue.roll_cycle.to_cycle(index) == queue.current_cycle
    assert Path(queue.current_file).exists()
    assert queue.current_file == queue.file_for_cycle(queue.current_cycle)
    clock.advance(DAY_MS)
    assert queue.current_cycle == START_MS // DAY_MS + 1
    assert not Path(queue.current_file).exists()


def test_the_current_cycle_asks_a_callable_clock(path: Path) -> None:
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=lambda: 5 * DAY_MS) as queue:
        assert queue.current_cycle == 5
