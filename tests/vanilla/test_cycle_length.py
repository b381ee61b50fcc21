"""Weekly queues, whose directories have the names of days: opened without options too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quire
from any_format import open_vanilla
from vanilla_golden import files_of

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
THURSDAY_MS = 2900 * WEEK_MS  # cycles of a week begin on Thursdays
SMALL: dict[str, Any] = {"tid_bits": 16, "index_block_bytes": 1024, "data_block_bytes": 4096}
KEPT = ".cycle-length"


def write(path: Path, data: bytes, time_ms: int, **options: Any) -> int:  # noqa: ANN401 - any option
    clock = quire.ManualClock(time_ms)
    with (
        open_vanilla(path, clock=clock, **(SMALL | options)) as queue,
        queue.appender() as appender,
    ):
        return appender.write_bytes(data)


def made_by_java(path: Path, *times_ms: int, roll_cycle: str = "WEEKS") -> None:
    """A queue without what Quire keeps."""
    for number, time_ms in enumerate(times_ms):
        write(path, b"%d" % number, time_ms, roll_cycle=roll_cycle)
    (path / KEPT).unlink()


def days(path: Path) -> list[str]:
    return sorted(it.name for it in path.iterdir() if it.is_dir())


def test_a_weekly_queue_of_quires_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    write(path, b"one", THURSDAY_MS, roll_cycle="WEEKS")
    last = write(path, b"two", THURSDAY_MS + 5 * DAY_MS)
    with quire.open(path, read_only=True) as queue:
        assert isinstance(queue, quire.vanilla.VanillaQueue)
        assert (queue.cycle_length_ms, queue.last_index) == (WEEK_MS, last)
        assert queue.cycles == [2900]
    assert len(days(path)) == 1
    quire.copy_queue(path, tmp_path / "copy")
    write(tmp_path / "copy", b"three", THURSDAY_MS + 6 * DAY_MS)
    assert len(days(tmp_path / "copy")) == 1


@pytest.mark.parametrize(
    "times_ms", [[THURSDAY_MS], [THURSDAY_MS, THURSDAY_MS + WEEK_MS]], ids=["one week", "two"]
)
def test_a_queue_that_may_be_weekly_takes_no_message_as_a_daily_one(
    times_ms: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "queue"
    made_by_java(path, *times_ms)
    before = files_of(path)
    later_ms = times_ms[-1] + DAY_MS
    with pytest.raises(quire.errors.RollCycleMismatchError, match="roll_cycle='DAYS' or 'WEEKS'"):
        write(path, b"new", later_ms)
    assert files_of(path) == before
    with quire.open(path, read_only=True) as queue:
        assert len([*queue.tailer()]) == len(times_ms)
    write(path, b"new", later_ms, roll_cycle="WEEKS")
    write(path, b"newer", later_ms + DAY_MS)
    assert len(days(path)) == len(times_ms)


def test_weeks_alone_take_none_on_the_day_that_begins_one_either(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    made_by_java(path, THURSDAY_MS, THURSDAY_MS + WEEK_MS)
    with pytest.raises(quire.errors.RollCycleMismatchError, match="cycles=2"):
        write(path, b"new", THURSDAY_MS + WEEK_MS)


def test_daily_queues_of_java_are_joined(tmp_path: Path) -> None:
    """On their first day, which begins a week, and once they have another day."""
    path = tmp_path / "queue"
    made_by_java(path, THURSDAY_MS, roll_cycle="DAYS")
    write(path, b"the same day", THURSDAY_MS)
    assert not (path / KEPT).exists()
    made_by_java(path, THURSDAY_MS + DAY_MS, roll_cycle="DAYS")
    write(path, b"the day after", THURSDAY_MS + 2 * DAY_MS)
    assert len(days(path)) == 3


def test_a_daily_queue_of_quires_stays_daily(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    for day in range(3):
        write(path, b"%d" % day, THURSDAY_MS + day * DAY_MS)
    assert len(days(path)) == 3
    with pytest.raises(quire.errors.RollCycleMismatchError, match="asked=WEEKS found=DAYS"):
        write(path, b"new", THURSDAY_MS, roll_cycle="WEEKS")


def test_a_weekly_queue_is_not_opened_as_a_daily_one(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    write(path, b"one", THURSDAY_MS, roll_cycle="WEEKS")
    with pytest.raises(quire.errors.RollCycleMismatchError, match="asked=DAYS found=WEEKS"):
        write(path, b"two", THURSDAY_MS, roll_cycle="DAYS")


@pytest.mark.parametrize(
    "text", [b"", b"WEEKS", b"cycle_length_ms=604800000\n", b"cycle_length_ms=0", b"\xff" * 64]
)
def test_what_fits_no_directory_is_not_believed(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "queue"
    write(path, b"one", THURSDAY_MS + DAY_MS)
    (path / KEPT).write_bytes(text)
    with quire.open(path, read_only=True) as queue:
        assert isinstance(queue, quire.vanilla.VanillaQueue)
        assert queue.cycle_length_ms == DAY_MS
        assert [*queue.tailer().payloads()] == [b"one"]


def test_cycles_of_any_length_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    options = {"cycle_format": "yyyyMMdd", "cycle_length_ms": 3 * DAY_MS}
    write(path, b"one", THURSDAY_MS, **options)
    write(path, b"two", THURSDAY_MS + 2 * DAY_MS)
    with quire.open(path, read_only=True) as queue:
        assert isinstance(queue, quire.vanilla.VanillaQueue)
        assert queue.cycle_length_ms == 3 * DAY_MS
        assert [*queue.tailer().payloads()] == [b"one", b"two"]
