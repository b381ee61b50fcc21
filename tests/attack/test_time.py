"""Clocks that go back, far ahead, and apart: names and indexes ascend, tailers see it all."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer
from queues import DAY_MS, START_MS, payloads, problems_of
from tally import RUN, Tally, scaled

pytestmark = pytest.mark.slow

SECOND_MS = 1000
YEAR_MS = 365 * DAY_MS
PROMISE = "Clocks that jump and differ reorder nothing"


def test_appenders_whose_clocks_jump_keep_one_order(path: Path, tally: Tally) -> None:
    steps, rng = scaled(1500, 100_000), random.Random(4 + RUN)  # noqa: S311 - a seed
    clocks = [quire.ManualClock(START_MS) for _ in range(4)]
    offsets = [0, -SECOND_MS, 2 * SECOND_MS, -YEAR_MS]  # of each writer's clock
    jumps = [1, SECOND_MS, 3 * SECOND_MS, -SECOND_MS, -DAY_MS, -YEAR_MS]
    now_ms = START_MS
    queues = [
        quire.open(path, roll_cycle="TEST4_SECONDLY", block_bytes=1, clock=clock)
        for clock in clocks
    ]
    appenders = [queue.appender() for queue in queues]
    attached = queues[0].tailer()
    written: list[tuple[int, bytes]] = []
    for number in range(steps):
        who = rng.randrange(len(clocks))
        now_ms += rng.randrange(20)
        clocks[who].now_ms = now_ms + offsets[who] + rng.choice([0, 0, 0, *jumps])
        message = b"%d" % number
        index = appenders[who].write_bytes(message)
        written.append((index, message))
        if number % 7 == 0:
            behind = [message for _, message in written[-7:]][-len(written) :]
            assert list(attached.payloads())[-7:] == behind
    indexes = [index for index, _ in written]
    assert indexes == sorted(set(indexes))
    for queue in queues:
        with queue.tailer() as tailer:
            assert [(it.index, it.data) for it in tailer] == written
            tailer.direction = "backward"
            tailer.to_end()
            assert [(it.index, it.data) for it in tailer] == written[::-1]
        queue.close()
    names = sorted(file.name for file in path.glob("*.cq4"))
    assert len(names) == len({index >> 32 for index in indexes}) > 2
    assert problems_of(path) == []
    tally(PROMISE, steps, "messages of four appenders with jumping clocks")


def test_an_appender_that_is_years_ahead_takes_the_others_along(
    path: Path, clock: quire.ManualClock
) -> None:
    future = quire.ManualClock(START_MS + 20 * YEAR_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", block_bytes=1, clock=clock) as queue,
        quire.open(path, block_bytes=1, clock=future) as ahead,
    ):
        present, later = queue.appender(), ahead.appender()
        indexes = [present.write_bytes(b"now"), later.write_bytes(b"in 20 years")]
        clock.advance(DAY_MS)
        indexes += [present.write_bytes(b"tomorrow"), later.write_bytes(b"still ahead")]
        future.now_ms = START_MS - YEAR_MS
        indexes.append(later.write_bytes(b"set back"))
        assert indexes == sorted(set(indexes))
        assert [index >> 32 for index in indexes] == [indexes[0] >> 32] + [indexes[1] >> 32] * 4
        assert payloads(queue) == [b"now", b"in 20 years", b"tomorrow", b"still ahead", b"set back"]
        assert len(queue.cycles) == 2
    assert problems_of(path) == []


@pytest.mark.parametrize("now_ms", [2**62, 2**53, -(2**62), -DAY_MS])
def test_a_time_that_no_cycle_can_number_is_refused(
    now_ms: int, queue: quire.JournalQueue, clock: quire.ManualClock
) -> None:
    appender = queue.appender()
    appender.write_bytes(b"first")
    clock.now_ms = now_ms
    names = [file.name for file in Path(queue.path).iterdir()]
    writes: list[Callable[[], object]] = [
        lambda: appender.write_bytes(b"in vain"),
        lambda: appender.write_many([b"in vain"]),
        appender.writing_document,
    ]
    for write in writes:
        with pytest.raises(quire.errors.IndexOutOfRangeError, match="cycle"):
            write()
    assert [file.name for file in Path(queue.path).iterdir()] == names
    clock.now_ms = START_MS
    appender.write_bytes(b"second")
    assert payloads(queue) == [b"first", b"second"]


@pytest.mark.java
@pytest.mark.parametrize("cycles_ahead", [0, 1, 3])
def test_a_java_writer_after_ours_loses_nothing_of_either(cycles_ahead: int, path: Path) -> None:
    """Java appends with its clock, whose cycle we may have left: what it does then is its own."""
    clock = quire.ManualClock(START_MS + cycles_ahead * DAY_MS)
    with quire.open(path, roll_cycle="TEST4_DAILY", block_bytes=2**16, clock=clock) as queue:
        queue.appender().write_text("ahead")
        script = [f"appendText java{number}" for number in range(3)]
        script += ["toStart", *["read"] * 6]
        answers = JavaPeer().run_with_input(
            "tailer-script", "".join(f"{line}\n" for line in script), dir=path, start=START_MS
        )
        queue.refresh()
        stored = answers[:3]
        behind = [index for index in stored if int(index, 16) >> 32 < queue.cycles[-1]]
        assert len(behind) == (3 if cycles_ahead else 0), "Java follows its own clock"
        clock.advance(DAY_MS)
        queue.appender().write_text("after")
        with queue.tailer() as tailer:
            found = {f"{it.index:x}" for it in tailer}
        assert len(stored) == len(set(stored)) == 3
        assert set(stored) < found, "what Java acknowledged is there"
        assert queue.entry_count == len(found) == 5
        # Java waits at the end of the older cycle until that has its marker: it was written above.
        by_java = JavaPeer().run("list", dir=path)
        assert {line.split()[0] for line in by_java} == found
