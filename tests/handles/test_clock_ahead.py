"""Clocks that are far ahead: the limit for a new cycle, the warning, and the way back."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from queues import DAY_MS, START_MS, payloads, problems_of

FIRST = START_MS // DAY_MS
YEARS_MS = 14 * 365 * DAY_MS
WEEK_S = 7 * 86_400.0


def opened(
    path: Path, clock: quire.ManualClock, max_clock_ahead_s: float | None = None
) -> quire.JournalQueue:
    return quire.open(
        path,
        roll_cycle="TEST4_DAILY",
        clock=clock,
        block_bytes=2**16,
        wait=quire.WaitOptions(max_clock_ahead_s=max_clock_ahead_s),
    )


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records if record.name == "quire"]
    return [line for line in lines if "far ahead" in line]


def test_without_a_limit_the_clock_decides_as_in_java(
    path: Path, clock: quire.ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path, clock) as queue, queue.appender() as appender:
        appender.write_bytes(b"now")
        clock.advance(YEARS_MS)
        appender.write_bytes(b"far ahead")
        assert queue.cycles == [FIRST, FIRST + YEARS_MS // DAY_MS]
    assert warnings_in(caplog) == []


def test_a_cycle_beyond_the_limit_is_refused(path: Path, clock: quire.ManualClock) -> None:
    with opened(path, clock, WEEK_S) as queue, queue.appender() as appender:
        appender.write_bytes(b"0")
        clock.advance(YEARS_MS)
        times = "now=2038-01-11T10:30:00Z newest_cycle_ended=2024-01-16T00:00:00Z"
        with pytest.raises(quire.errors.ClockAheadError, match=times):
            appender.write_bytes(b"far ahead")
        with pytest.raises(quire.errors.ClockAheadError, match=times):
            appender.write_many([b"far ahead"])
        with pytest.raises(quire.errors.ClockAheadError), appender.writing_document():
            raise AssertionError("no document is opened")
        assert not queue.write_lock.locked
        clock.advance(-YEARS_MS)
        appender.write_bytes(b"1")
        assert queue.cycles == [FIRST]
        assert payloads(queue) == [b"0", b"1"]

    assert problems_of(path) == []


@pytest.mark.parametrize(("days", "is_refused"), [(1, False), (8, False), (9, True)])
def test_the_limit_counts_between_the_cycles(
    days: int, *, is_refused: bool, path: Path, clock: quire.ManualClock
) -> None:
    with opened(path, clock, WEEK_S) as queue, queue.appender() as appender:
        appender.write_bytes(b"0")
        clock.advance(days * DAY_MS)
        if is_refused:
            with pytest.raises(quire.errors.ClockAheadError):
                appender.write_bytes(b"1")
        else:
            appender.write_bytes(b"1")
        assert queue.cycles == ([FIRST] if is_refused else [FIRST, FIRST + days])


def test_a_new_queue_has_no_cycle_to_be_ahead_of(path: Path, clock: quire.ManualClock) -> None:
    with opened(path, clock, 0) as queue:
        queue.appender().write_bytes(b"0")
        clock.advance(DAY_MS)
        queue.appender().write_bytes(b"1")
        assert queue.cycles == [FIRST, FIRST + 1]


def test_a_limit_is_no_part_of_the_queue(path: Path, clock: quire.ManualClock) -> None:
    with opened(path, clock, WEEK_S) as queue:
        queue.appender().write_bytes(b"before a long rest")
    clock.advance(YEARS_MS)
    with opened(path, clock) as queue:
        queue.appender().write_bytes(b"after it")
    with opened(path, clock, WEEK_S) as queue:
        queue.appender().write_bytes(b"goes on")
        assert len(queue.cycles) == 2


def test_a_pretoucher_is_held_by_the_limit_too(path: Path, clock: quire.ManualClock) -> None:
    with opened(path, clock, WEEK_S) as queue, queue.pretoucher() as pretoucher:
        queue.appender().write_bytes(b"0")
        clock.advance(YEARS_MS)
        with pytest.raises(quire.errors.ClockAheadError):
            pretoucher.execute()
        assert queue.cycles == [FIRST]


def test_a_cycle_far_ahead_is_warned_of_and_can_be_left(
    path: Path, tmp_path: Path, clock: quire.ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = quire.ManualClock(START_MS + YEARS_MS)
    with opened(path, clock) as queue, opened(path, wrong) as other:
        queue.appender().write_bytes(b"0")
        other.appender().write_bytes(b"1")
        with queue.appender() as appender:
            appender.write_bytes(b"2")
            clock.advance(5000)
            appender.write_bytes(b"3")
        (far,) = queue.cycles[1:]
        (line,) = warnings_in(caplog)
        assert f"cycle={far} starts=2038-01-11T00:00:00Z now=2024-01-15T10:30:00Z" in line
        file = Path(queue.file_for_cycle(far))

    moved = tmp_path / file.name
    file.rename(moved)
    with opened(path, clock) as queue, queue.appender() as appender:
        queue.refresh()
        with quire.open(moved, read_only=True) as left:
            appender.write_many([*left.tailer().payloads()])
        assert queue.cycles == [FIRST, FIRST + 1]  # the first one was ended when others left it
        assert payloads(queue) == [b"0", b"1", b"2", b"3"]
    assert problems_of(path) == []


def test_what_is_no_duration_is_refused(path: Path) -> None:
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError, match="max_clock_ahead_s"):
            quire.open(path, wait=quire.WaitOptions(max_clock_ahead_s=wrong))
    with pytest.raises(TypeError, match="max_clock_ahead_s"):
        quire.open(path, wait=quire.WaitOptions(max_clock_ahead_s="a week"))  # type: ignore[arg-type]
    with pytest.raises(quire.errors.UnsupportedError, match="max_clock_ahead_s"):
        quire.open(path, format="vanilla", wait=quire.WaitOptions(max_clock_ahead_s=1.0))  # type: ignore[call-overload]
    assert not path.exists()
