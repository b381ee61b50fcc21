"""Roll times in time zones: when files end through daylight saving, and what is recorded."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import quire
from queues import DAY_MS, START_MS, payloads, problems_of

HOUR = timedelta(hours=1)
NEW_YORK = ZoneInfo("America/New_York")


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def opened(
    path: Path,
    clock: quire.ManualClock | None = None,
    **options: Any,  # noqa: ANN401
) -> quire.JournalQueue:
    return quire.open(path, clock=clock, block_bytes=2**16, **options)


@pytest.mark.parametrize("month", [3, 11], ids=["an hour skipped", "an hour repeated"])
def test_files_end_at_the_same_local_time_through_daylight_saving(path: Path, month: int) -> None:
    start = datetime(2024, month, 1, tzinfo=UTC)
    clock = quire.ManualClock()
    with (
        opened(
            path, clock, roll=quire.RollOptions(roll_time="17:00"), time_zone="America/New_York"
        ) as queue,
        queue.appender() as appender,
    ):
        for minutes in range(0, 14 * 24 * 60, 30):
            moment = start + timedelta(minutes=minutes)
            clock.now_ms = ms(moment)
            index = appender.write_text("x")
            local = moment.astimezone(NEW_YORK).replace(tzinfo=None)
            expected = (local - timedelta(hours=17)).date().strftime("%Y%m%dF.cq4")
            cycle = queue.roll_cycle.to_cycle(index)
            assert Path(queue.file_for_cycle(cycle)).name == expected, moment
            assert queue.cycle_start_ms(cycle) <= clock.now_ms < queue.cycle_start_ms(cycle + 1)
            assert queue.cycle_at(clock.now_ms) == queue.current_cycle == cycle
        starts = [queue.cycle_start_ms(cycle) for cycle in queue.cycles]
    hours = {(after - before) // 3_600_000 for before, after in pairwise(starts)}
    assert hours == {24, 23 if month == 3 else 25}
    assert problems_of(path) == []


@pytest.mark.parametrize(
    ("roll_cycle", "starts"),
    [
        ("SIX_HOURLY", {5, 11, 17, 23}),
        (quire.RollCycle(length_ms=DAY_MS // 2, pattern="yyyyMMdd-HH'XII'"), {5, 17}),
        ("WEEKLY", {17}),
        (quire.RollCycle(length_ms=7 * DAY_MS, pattern="yyyyDDD"), {17}),
    ],
    ids=["6 h", "12 h", "weekly", "7 days"],
)
def test_other_lengths_start_at_local_times_too(
    path: Path, roll_cycle: str | quire.RollCycle, starts: set[int]
) -> None:
    with opened(
        path,
        roll_cycle=roll_cycle,
        roll=quire.RollOptions(roll_time="17:00"),
        time_zone="America/New_York",
    ) as queue:
        first = queue.cycle_at(ms(datetime(2024, 1, 1, tzinfo=UTC)))
        last = queue.cycle_at(ms(datetime(2024, 12, 31, tzinfo=UTC)))
        times = [
            datetime.fromtimestamp(queue.cycle_start_ms(cycle) / 1000, NEW_YORK)
            for cycle in range(first, last)
        ]
    assert {time.hour for time in times} == starts
    if roll_cycle == "WEEKLY":
        assert {time.strftime("%A") for time in times} == {"Sunday"}


def test_a_zone_alone_means_midnight_there(path: Path) -> None:
    with opened(path, time_zone="Asia/Kolkata") as queue:
        midnight = datetime(2024, 5, 1, tzinfo=ZoneInfo("Asia/Kolkata"))
        assert queue.cycle_at(ms(midnight)) == queue.cycle_at(ms(midnight) - 1) + 1
        assert (queue.roll_time_zone, queue.epoch_ms) == ("Asia/Kolkata", 0)


def test_whoever_opens_it_next_rolls_in_the_same_zone(path: Path) -> None:
    with opened(
        path, roll=quire.RollOptions(roll_time="17:00"), time_zone="America/New_York"
    ) as queue:
        expected = [queue.cycle_start_ms(cycle) for cycle in range(19_700, 20_100)]
    other = {"roll": quire.RollOptions(roll_time="09:00"), "time_zone": "Asia/Tokyo"}
    ways: list[dict[str, Any]] = [{}, {"read_only": True}, other]
    for options in ways:
        with opened(path, **options) as queue:
            assert queue.roll_time_zone == "America/New_York"
            assert [queue.cycle_start_ms(cycle) for cycle in range(19_700, 20_100)] == expected


def test_messages_are_found_by_local_days(path: Path) -> None:
    clock = quire.ManualClock()
    zone = ZoneInfo("Europe/London")
    with opened(
        path, clock, roll=quire.RollOptions(roll_time="00:00"), time_zone="Europe/London"
    ) as queue:
        with queue.appender() as appender:
            for day in range(25, 31):
                clock.now_ms = ms(datetime(2024, 10, day, 12, tzinfo=zone))
                appender.write_text(str(day))
        with queue.tailer() as tailer:
            for day in range(25, 31):
                assert tailer.move_to_time(datetime(2024, 10, day, tzinfo=zone))
                assert tailer.read_text() == str(day)


def test_a_clock_that_goes_back_over_the_roll_stays_in_the_newest_file(path: Path) -> None:
    clock = quire.ManualClock(ms(datetime(2024, 11, 3, 0, 59, tzinfo=NEW_YORK)))
    with (
        opened(
            path, clock, roll=quire.RollOptions(roll_time="01:00"), time_zone="America/New_York"
        ) as queue,
        queue.appender() as appender,
    ):
        before = appender.write_text("before")
        clock.advance(60_000)
        after = appender.write_text("after")
        clock.advance(3_600_000)  # the hour from one o'clock on is repeated
        assert appender.write_text("once more") == after + 1
        clock.advance(-2 * 3_600_000)
        assert appender.write_text("set back") == after + 2
        assert [queue.roll_cycle.to_cycle(index) for index in (before, after)] == queue.cycles
        assert payloads(queue)[-1] == b"\xe8set back"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"time_zone": "Mars/Olympus_Mons"}, "no such time zone: time_zone=Mars/Olympus_Mons"),
        ({"time_zone": "../../etc/passwd"}, "no such time zone"),
        ({"time_zone": ""}, "no such time zone"),
        ({"roll": quire.RollOptions(roll_time="25:00"), "time_zone": "UTC"}, "not a time of day"),
        ({"roll": quire.RollOptions(roll_time="17:00"), "epoch_ms": 5}, "epoch of whole days"),
    ],
    ids=str,
)
def test_wrong_times_and_zones_are_refused_and_nothing_is_made(
    path: Path, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        opened(path, **options)
    assert not path.exists() or not any(path.iterdir())


def test_a_reader_goes_without_a_zone_that_is_unknown_here(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = quire.ManualClock(START_MS)
    with opened(path, clock, time_zone="Europe/Paris") as queue, queue.appender() as appender:
        appender.write_text("one")
    other = shutil.copytree(path, tmp_path / "other")
    table = other / "metadata.cq4t"
    table.write_bytes(table.read_bytes().replace(b"Europe/Paris", b"Europe/Qaris"))

    with pytest.raises(ValueError, match="no such time zone"):
        opened(other)
    with opened(other, read_only=True) as queue:
        assert payloads(queue) == [b"\xe3one"]
    assert "cycles are assumed to start in UTC" in caplog.text
