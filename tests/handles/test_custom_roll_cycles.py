"""Roll cycles that are not Chronicle's: made, recorded, found again, and refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import quire
from queues import DAY_MS, START_MS, payloads

HOUR_MS = 3_600_000
THREE_HOURLY = quire.RollCycle(
    length_ms=3 * HOUR_MS, pattern="yyyyMMdd-HH'III'", index_count=8, index_spacing=2
)
WIDE = quire.RollCycle(
    length_ms=7 * DAY_MS, pattern="yyyyDDD", index_count=32_768, index_spacing=1_024
)


def fill(path: Path, roll_cycle: quire.RollCycle, **options: Any) -> list[int]:  # noqa: ANN401
    """The indexes of 90 messages in three cycles."""
    clock = quire.ManualClock(START_MS)
    indexes: list[int] = []
    with (
        quire.open(path, roll_cycle=roll_cycle, clock=clock, block_bytes=2**16, **options) as queue,
        queue.appender() as appender,
    ):
        for number in range(90):
            indexes.append(appender.write_text(str(number)))
            if number % 30 == 29:
                clock.advance(roll_cycle.length_ms)
    return indexes


@pytest.mark.parametrize("roll_cycle", [THREE_HOURLY, WIDE], ids=lambda roll: roll.name)
def test_a_queue_remembers_a_roll_cycle_of_ones_own(
    path: Path, roll_cycle: quire.RollCycle
) -> None:
    indexes = fill(path, roll_cycle)

    ways: list[dict[str, Any]] = [{}, {"read_only": True}, {"roll_cycle": roll_cycle}]
    for options in ways:
        with quire.open(path, block_bytes=2**16, **options) as queue, queue.tailer() as tailer:
            assert queue.roll_cycle == roll_cycle
            assert [excerpt.index for excerpt in tailer] == indexes
            assert all(tailer.move_to_index(index) for index in indexes)
    assert quire.verify(path).ok
    first = roll_cycle.cycle_at(START_MS)
    names = sorted(file.name for file in path.glob("*.cq4"))
    assert names == [roll_cycle.file_name(first + number) for number in range(3)]


def test_without_its_table_it_is_found_by_the_names_of_files(path: Path) -> None:
    indexes = fill(path, THREE_HOURLY)
    (path / "metadata.cq4t").unlink()

    with pytest.raises(quire.errors.NotAQueueError, match="follows no roll cycle's pattern"):
        quire.open(path, read_only=True)
    with quire.open(path, read_only=True, roll_cycle=THREE_HOURLY) as queue:
        assert [excerpt.index for excerpt in queue.tailer()] == indexes
    with quire.open(path, roll_cycle=THREE_HOURLY) as queue:
        assert [excerpt.index for excerpt in queue.tailer()] == indexes
    assert quire.verify(path).ok


def test_one_file_alone_is_read(path: Path) -> None:
    indexes = fill(path, WIDE)
    file = min(path.glob("*.cq4"))
    with quire.open(file, read_only=True) as queue:
        assert [excerpt.index for excerpt in queue.tailer()] == indexes[:30]


def test_another_one_is_refused(path: Path) -> None:
    fill(path, THREE_HOURLY)
    other = quire.RollCycle(
        length_ms=3 * HOUR_MS, pattern="yyyyMMdd-HH'III'", index_count=16, index_spacing=2
    )
    for asked in (other, WIDE, "FAST_DAILY"):
        with pytest.raises(quire.errors.RollCycleMismatchError):
            quire.open(path, roll_cycle=asked)


def test_it_equals_and_pickles_by_what_it_is() -> None:
    again = quire.RollCycle(
        length_ms=3 * HOUR_MS, pattern="yyyyMMdd-HH'III'", index_count=8, index_spacing=2
    )
    assert again == THREE_HOURLY
    assert hash(again) == hash(THREE_HOURLY)
    assert again != WIDE
    for roll_cycle in (THREE_HOURLY, WIDE, quire.RollCycle("WEEKLY")):
        assert pickle.loads(pickle.dumps(roll_cycle)) == roll_cycle
        assert eval(repr(roll_cycle), {"RollCycle": quire.RollCycle}) == roll_cycle  # noqa: S307
    daily = quire.RollCycle(length_ms=DAY_MS, pattern="yyyyMMdd'F'")
    assert daily == quire.RollCycle("FAST_DAILY")


def test_a_queue_that_is_pickled_keeps_it(path: Path) -> None:
    fill(path, THREE_HOURLY)
    with (
        quire.open(path, roll_cycle=THREE_HOURLY) as queue,
        pickle.loads(pickle.dumps(queue)) as again,
    ):
        assert payloads(again) == payloads(queue)


def test_secondly_is_a_name_of_javas_test_cycle(path: Path) -> None:
    secondly = quire.RollCycle("secondly")
    assert secondly == quire.RollCycle("TEST_SECONDLY")
    assert secondly.aliases == ["SECONDLY"]
    with quire.open(path, roll_cycle="SECONDLY") as queue:
        assert queue.roll_cycle.name == "TEST_SECONDLY"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"pattern": "yyyyMM", "length_ms": DAY_MS}, "not a file-name pattern"),
        ({"pattern": "yyyyMMdd'/'", "length_ms": DAY_MS}, "found='/'"),
        ({"pattern": "yyyyMMdd'..'", "length_ms": DAY_MS}, "found='.'"),
        ({"pattern": "yyyyMMdd", "length_ms": HOUR_MS}, "does not name cycles of this length"),
        ({"pattern": "yyyyMMdd", "length_ms": 2 * DAY_MS}, "that of another roll cycle"),
        ({"pattern": "yyyyMMdd'Q'", "length_ms": 2**31}, "at most 2147483647"),
        ({"pattern": "yyyyMMdd'Q'", "length_ms": DAY_MS, "index_count": 9}, "index_count=9"),
        ({"pattern": "yyyyMMdd'Q'", "length_ms": DAY_MS, "index_spacing": 0}, "index_spacing=0"),
    ],
    ids=str,
)
def test_what_names_no_cycles_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        quire.RollCycle(**given)


@pytest.mark.parametrize(
    "given",
    [{}, {"pattern": "yyyyMMdd'Q'"}, {"length_ms": DAY_MS}, {"name": "DAILY", "length_ms": DAY_MS}],
    ids=str,
)
def test_a_name_or_both_length_and_pattern(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="length_ms= and pattern="):
        quire.RollCycle(**given)


def test_a_replay_keeps_it(path: Path, tmp_path: Path) -> None:
    indexes = fill(
        path, THREE_HOURLY, roll=quire.RollOptions(roll_time="09:30"), time_zone="Europe/Paris"
    )
    with quire.open(path, read_only=True) as queue:
        quire.replay(queue, tmp_path / "copy")
        with quire.open(tmp_path / "copy", read_only=True) as copy:
            assert copy.roll_cycle == THREE_HOURLY
            assert (copy.epoch_ms, copy.roll_time_zone) == (queue.epoch_ms, "Europe/Paris")
            assert [excerpt.index for excerpt in copy.tailer()] == indexes
