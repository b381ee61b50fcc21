"""Tailers that let go of their files and stay where they are; the cycle and file of the clock."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from queues import START_MS

DAY_MS = 86_400_000


def held(path: Path) -> list[str]:
    """Return the roll files below a directory that this process has open or mapped."""
    targets = [str(it.readlink()) for it in Path("/proc/self/fd").iterdir() if it.is_symlink()]
    maps = Path("/proc/self/maps").read_text().splitlines()
    found = [*targets, *(line.split(maxsplit=5)[-1] for line in maps)]
    return [it for it in found if it.startswith(str(path)) and it.endswith(".cq4")]


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
