"""Append times of a cycle that is removed before they are noted: none are left for another file."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import quire
from pause_points import Party
from queues import DAY_MS, START_MS
from quire.retaining import PrunedCycle

# The message is published, and its time is noted next.
WRITER = """
clock = quire.ManualClock(int(sys.argv[2]))
queue = quire.open(sys.argv[1], clock=clock, time_index=True, block_bytes=2**16)
appender = queue.appender()
arm()
say(appender.write_bytes(b"removed"))
"""


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(milliseconds=ms)


def restore(path: Path, *times_ms: int) -> None:
    """Have the cycle again, as Java or a backup makes it: with no look at what lies beside it."""
    clock = quire.ManualClock(START_MS)
    other = path.with_name("other")
    with quire.open(other, clock=clock, block_bytes=2**16) as queue, queue.appender() as appender:
        for ms in times_ms:
            clock.now_ms = START_MS + ms
            appender.write_bytes(b"%d" % ms)
    [file] = other.glob("*.cq4")
    os.replace(file, path / file.name)  # noqa: PTH105


def test_no_times_of_a_removed_cycle_guide_searches_in_one_that_takes_its_place(
    path: Path,
) -> None:
    with Party(WRITER, path, START_MS, point="lock.release.cas", side="after") as writer:
        writer.wait_until_stopped()
        [file] = path.glob("*.cq4")
        file.unlink()
        writer.go_on()
        writer.result()
    assert not [*path.glob("*.times.quire")]
    restore(path, 5_000, 6_000)
    with (
        quire.open(path, read_only=True) as queue,
        queue.tailer() as tailer,
        pytest.raises(ValueError, match="cannot seek inside a cycle"),
    ):
        tailer.move_to_time(at(4_000))


def test_a_run_of_retention_takes_times_that_are_noted_amid_it(path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock, time_index=True, block_bytes=2**16) as queue:
        for day in range(2):
            clock.now_ms = START_MS + day * DAY_MS
            queue.appender().write_bytes(b"x")
    [first, _] = sorted(path.glob("*.cq4"))
    times = first.with_suffix(".times.quire")
    content = times.read_bytes()

    def late(_: PrunedCycle) -> None:
        assert not times.exists()

    real = os.unlink
    removed = list[str]()

    def unlink(name: object, *arguments: object, **options: object) -> None:
        real(name, *arguments, **options)  # type: ignore[arg-type]
        removed.append(str(name))
        if str(name) == times.name and removed.count(times.name) == 1:
            times.write_bytes(content)  # as a writer makes the file that looks for its cycle now

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "unlink", unlink)
        patch.setattr(os, "remove", unlink)
        assert len(quire.prune(path, max_cycles=1, clock=clock, on_removed=late).removed) == 1
    assert removed.count(times.name) == 2
    assert not times.exists()
