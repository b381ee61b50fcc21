"""Where tailers of a Vanilla Chronicle are, and which way they read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

import quire

DAY_MS = 86_400_000
PER_DAY = 10


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[quire.vanilla.VanillaQueue]:
    """A queue of three days, a week apart."""
    clock = quire.ManualClock()
    with quire.open(tmp_path / "q", format="vanilla", clock=clock) as queue:
        for day in (20_000, 20_007, 20_014):
            clock.now_ms = day * DAY_MS
            queue.appender().write_many([b"%d.%d" % (day, number) for number in range(PER_DAY)])
        yield queue


def everything(queue: quire.vanilla.VanillaQueue) -> list[tuple[int, bytes]]:
    return [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]


def test_backward_is_the_reverse_of_forward(queue: quire.vanilla.VanillaQueue) -> None:
    known = everything(queue)
    with queue.tailer() as tailer:
        tailer.direction = "backward"
        tailer.to_end()
        assert tailer.index == queue.last_index
        assert [(it.index, it.data) for it in tailer] == known[::-1]
        assert (tailer.read(), tailer.index) == (None, known[0][0] - 1)
        tailer.direction = "forward"
        assert [(it.index, it.data) for it in tailer] == known
        tailer.direction = "backward"
        assert tailer.read_many(100) == [data for _, data in known[::-1]]


def test_turning_round_keeps_the_message_that_is_next(queue: quire.vanilla.VanillaQueue) -> None:
    known = [data for _, data in everything(queue)]
    with queue.tailer() as tailer:
        assert tailer.read_many(12) == known[:12]
        tailer.direction = "backward"
        assert tailer.read_many(4) == known[12:8:-1]
        tailer.direction = "forward"
        assert tailer.read_many(2) == known[8:10]
        tailer.direction = "none"
        assert tailer.read_bytes() == tailer.read_bytes() == known[10]
        assert tailer.direction == "none"
        with pytest.raises(ValueError, match="no such direction"):
            tailer.direction = "up"  # type: ignore[assignment] # pyright: ignore[reportAttributeAccessIssue]


def test_backward_starts_where_it_is_sent(queue: quire.vanilla.VanillaQueue) -> None:
    known = everything(queue)
    with queue.tailer() as tailer:
        tailer.direction = "backward"
        assert tailer.read_bytes() == known[0][1]
        assert tailer.read_bytes() is None
        assert tailer.move_to_index(known[11][0])
        assert tailer.index == known[11][0]
        assert tailer.read_many(3) == [known[place][1] for place in (11, 10, 9)]
        tailer.to_start()
        assert tailer.read_many(3) == [known[0][1]]


def test_backward_passes_over_lost_entries(queue: quire.vanilla.VanillaQueue) -> None:
    known = everything(queue)
    index = Path(queue.directory_for_cycle(20_007), "index-0")
    with index.open("r+b") as file:
        file.seek(8 * 3)
        file.write(bytes(8 * 4))
    left = known[:13] + known[17:]
    with queue.tailer() as tailer:
        tailer.direction = "backward"
        tailer.to_end()
        assert [(it.index, it.data) for it in tailer] == left[::-1]


def test_messages_between_indexes_are_counted(queue: quire.vanilla.VanillaQueue) -> None:
    known = [index for index, _ in everything(queue)]
    for first, last in ((0, 0), (0, 5), (3, 17), (5, 29), (0, 29)):
        assert queue.count_excerpts(known[first], known[last]) == last - first
        assert queue.count_excerpts(known[last], known[first]) == last - first
    assert queue.count_excerpts(0, known[-1] + 1) == len(known)


def test_spinning_ends_with_a_message_or_the_timeout(queue: quire.vanilla.VanillaQueue) -> None:
    with queue.tailer() as tailer:
        assert tailer.spin()
        tailer.to_end()
        assert not tailer.spin(timeout_s=0.001)
        queue.appender().write_bytes(b"more")
        assert tailer.spin()
        assert tailer.read_bytes() == b"more"


def test_a_name_is_shared_where_that_is_asked_for(queue: quire.vanilla.VanillaQueue) -> None:
    with queue.tailer("risk") as tailer:
        tailer.read_many(3)
        tailer.commit()
        with pytest.raises(quire.errors.TailerInUseError):
            queue.tailer("risk")
        with queue.tailer("risk", shared=True) as second:
            assert second.index == tailer.index


def test_a_cycle_that_was_deleted_is_noticed(
    queue: quire.vanilla.VanillaQueue, caplog: pytest.LogCaptureFixture
) -> None:
    known = everything(queue)
    for name in ("one", "two"):
        with queue.tailer(name) as tailer:
            tailer.read_many(13)
    shutil.rmtree(queue.directory_for_cycle(20_007))
    with pytest.raises(quire.errors.DataLossError, match="tailer=one"):
        queue.tailer("one", on_missing="raise")
    with queue.tailer("one", on_missing="skip") as tailer:
        assert [(it.index, it.data) for it in tailer] == known[20:]
    assert not caplog.records
    with queue.tailer("two") as tailer:
        assert [(it.index, it.data) for it in tailer] == known[20:]
    assert "deleted" in caplog.text


@pytest.mark.parametrize("on_missing", ["warn", "skip", "raise"])
def test_an_open_tailer_notices_that_the_cycle_it_would_read_next_is_gone(
    queue: quire.vanilla.VanillaQueue,
    on_missing: Literal["raise", "warn", "skip"],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with queue.tailer(on_missing=on_missing) as tailer:
        assert tailer.read_bytes() == b"20000.0"
        shutil.rmtree(queue.directory_for_cycle(20_007))
        rest = [b"20014.%d" % number for number in range(PER_DAY)]
        if on_missing == "raise":
            assert len(tailer.read_many(99)) == PER_DAY - 1
            with pytest.raises(quire.errors.DataLossError, match="tailer=-"):
                tailer.read_bytes()
            assert tailer.read_many(99) == rest
        else:
            assert tailer.read_many(99)[PER_DAY - 1 :] == rest
    assert ("messages were deleted" in caplog.text) == (on_missing == "warn")


def test_a_cycle_without_a_message_is_missed_by_nobody(
    queue: quire.vanilla.VanillaQueue, caplog: pytest.LogCaptureFixture
) -> None:
    empty = Path(queue.directory_for_cycle(20_010))
    empty.mkdir()
    with queue.tailer(on_missing="raise") as tailer:
        assert len(tailer.read_many(2 * PER_DAY)) == 2 * PER_DAY
        empty.rmdir()
        assert len([*tailer]) == PER_DAY
    assert not caplog.records
