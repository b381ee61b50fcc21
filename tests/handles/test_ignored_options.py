"""A queue keeps its roll time, time zone and source id; opening it with others logs a warning."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import quire

KEPT = "the queue keeps the "


def warned(
    path: Path, caplog: pytest.LogCaptureFixture, roll_time: str | None, zone: str | None
) -> list[str]:
    caplog.clear()
    roll = quire.RollOptions(roll_time=roll_time) if roll_time else None
    quire.open(path, roll=roll, time_zone=zone).close()
    return [line.removeprefix(KEPT).partition(" path=")[0] for line in caplog.messages]


def test_another_roll_time_or_time_zone_is_reported_with_both_values(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "quire")
    of_time = "roll time that it was created with: asked={} found=17:00"
    of_zone = "time zone that it was created with: asked={} found=America/New_York"
    assert warned(path, caplog, "17:00", "America/New_York") == []
    assert warned(path, caplog, "17:00", "America/New_York") == []
    assert warned(path, caplog, "17:00", None) == []
    assert warned(path, caplog, None, None) == []
    assert warned(path, caplog, "18:30", None) == [of_time.format("18:30")]
    assert warned(path, caplog, None, "Asia/Tokyo") == [of_zone.format("Asia/Tokyo")]
    both = [of_zone.format("UTC"), of_time.format("00:00")]
    assert warned(path, caplog, "00:00", "UTC") == both


def test_a_queue_of_the_default_times_says_so(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "quire")
    quire.open(path).close()
    assert warned(path, caplog, "00:00", "UTC") == []
    assert warned(path, caplog, "17:00", None) == [
        "roll time that it was created with: asked=17:00 found=00:00"
    ]


def test_another_source_id_is_reported_with_both_values(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "quire")
    for given in (3, 3, 0):
        quire.open(path, source_id=given).close()
    assert caplog.messages == []
    with quire.open(path, source_id=7) as queue:
        assert queue.source_id == 3
    told = "source id that it was created with: asked=7 found=3"
    assert caplog.messages == [f"{KEPT}{told} path={path}"]
