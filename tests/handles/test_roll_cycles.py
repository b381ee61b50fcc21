"""Roll cycles: the arithmetic of indexes, and the names of files."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, START_MS
from reference import ROLL_CYCLES, shift_of

ALL = quire.RollCycle.all()
TIMES = [START_MS, 0, 1, 1_700_000_000_000, 951_782_399_999, 4_102_444_800_000]
EPOCHS = [0, 25_200_000, 82_800_000, 8_665_200_000, -25_200_000, -DAY_MS, 1]


def name_of(cycle: quire.RollCycle) -> str:
    return cycle.name


def test_all_of_chronicles_roll_cycles_are_known() -> None:
    assert [cycle.name for cycle in ALL] == list(ROLL_CYCLES)


@pytest.mark.parametrize("cycle", ALL, ids=name_of)
def test_a_roll_cycle_is_as_the_format_says(cycle: quire.RollCycle) -> None:
    expected = ROLL_CYCLES[cycle.name]
    shape = (expected.index_count, expected.index_spacing)

    assert (cycle.pattern, cycle.length_ms) == (expected.pattern, expected.length_ms)
    assert (cycle.index_count, cycle.index_spacing) == shape
    most = min(2 ** shift_of(*shape) - 1, expected.index_count**2 * expected.index_spacing)
    assert cycle.max_messages == most
    assert cycle.default_epoch_ms == (3 * DAY_MS if cycle.name == "WEEKLY" else 0)


@pytest.mark.parametrize("cycle", ALL, ids=name_of)
def test_an_index_is_put_together_and_taken_apart(cycle: quire.RollCycle) -> None:
    shift = shift_of(cycle.index_count, cycle.index_spacing)
    highest = 2 ** min(31, 63 - shift) - 1
    for number in (0, 1, 19737, highest):
        for sequence in (0, 1, 63, 2**shift - 1):
            index = cycle.to_index(number, sequence)
            assert index == (number << shift) + sequence
            assert (cycle.to_cycle(index), cycle.to_sequence(index)) == (number, sequence)


@pytest.mark.parametrize("cycle", ALL, ids=name_of)
def test_what_does_not_fit_into_an_index_is_refused(cycle: quire.RollCycle) -> None:
    shift = shift_of(cycle.index_count, cycle.index_spacing)
    for number, sequence in [(-1, 0), (0, 2**shift), (2 ** min(31, 63 - shift), 0)]:
        with pytest.raises((quire.errors.IndexOutOfRangeError, ValueError)):
            cycle.to_index(number, sequence)
    for index in (-1, -(2**63), 2**63):
        with pytest.raises((quire.errors.IndexOutOfRangeError, ValueError)):
            cycle.to_cycle(index)
        with pytest.raises((quire.errors.IndexOutOfRangeError, ValueError)):
            cycle.to_sequence(index)
    with pytest.raises(LookupError):
        cycle.to_index(-1, 0)


@pytest.mark.parametrize("cycle", [cycle for cycle in ALL if cycle.name != "WEEKLY"], ids=name_of)
@pytest.mark.parametrize("epoch_ms", EPOCHS)
def test_files_are_named_as_the_reference_names_them(cycle: quire.RollCycle, epoch_ms: int) -> None:
    expected = ROLL_CYCLES[cycle.name]._replace(epoch_ms=epoch_ms)
    for time_ms in TIMES:
        number = expected.cycle_at(time_ms)
        if not 0 <= number < 2**31:
            continue
        assert cycle.cycle_at(time_ms, epoch_ms) == number
        name = cycle.file_name(number, epoch_ms)
        assert name == expected.file_name(number)
        assert cycle.cycle_of_file(name, epoch_ms) == number


@pytest.mark.parametrize("cycle", ALL, ids=name_of)
def test_a_name_that_does_not_follow_the_pattern_is_refused(cycle: quire.RollCycle) -> None:
    good = cycle.file_name(cycle.cycle_at(START_MS))
    bad = ["", ".cq4", "metadata.cq4t", good[:-1], good + "x", "x" + good, good[1:]]
    bad += [good.replace("20", "2O"), "../" + good, good.replace("4", "٤"), "99999999F.cq4"]
    for name in bad:
        with pytest.raises(ValueError, match="does not follow the pattern"):
            cycle.cycle_of_file(name)


def test_dates_that_do_not_exist_name_no_cycle() -> None:
    daily = quire.RollCycle("FAST_DAILY")
    for name in ("20240230F.cq4", "20241301F.cq4", "20240100F.cq4", "20230229F.cq4"):
        with pytest.raises(ValueError, match="does not follow the pattern"):
            daily.cycle_of_file(name)
    assert daily.cycle_of_file("20240229F.cq4") == 19782


def test_a_time_without_cycle_is_refused() -> None:
    secondly = quire.RollCycle("TEST_SECONDLY")
    assert secondly.cycle_at(2**31 * 1000 - 1) == 2**31 - 1
    for time_ms in (2**31 * 1000, 4_102_444_800_000, 2**63 - 1):
        with pytest.raises(quire.errors.IndexOutOfRangeError):
            secondly.cycle_at(time_ms)


def test_a_cycle_beyond_the_calendar_has_no_name() -> None:
    for number in (-1, 2**31 - 1):
        with pytest.raises((quire.errors.IndexOutOfRangeError, ValueError)):
            quire.RollCycle("FAST_DAILY").file_name(number)


def test_weeks_are_named_by_iso_and_read_back() -> None:
    weekly = quire.RollCycle("WEEKLY")
    monday = datetime(1970, 1, 5, tzinfo=UTC)
    for number in range(4000):
        name = weekly.file_name(number)
        year, week, _ = (monday + timedelta(weeks=number)).isocalendar()
        assert name == f"{year:04}W{week:02}.cq4"
        assert weekly.cycle_of_file(name) == number
    assert weekly.file_name(2810) == "2023W46.cq4"
    assert weekly.cycle_at(1_700_000_000_000) == 2810


def test_a_weekly_queue_is_read_in_order_over_a_new_year(path: Path) -> None:
    clock = quire.ManualClock(START_MS - 4 * 7 * DAY_MS)
    with quire.open(path, roll_cycle="WEEKLY", clock=clock, block_bytes=1) as queue:
        appender = queue.appender()
        for day in range(60):
            appender.write_bytes(b"%d" % day)
            clock.advance(DAY_MS)
    names = sorted(file.name for file in path.glob("*.cq4"))
    assert names[:3] == ["2023W51.cq4", "2023W52.cq4", "2024W01.cq4"]
    assert len(names) in {9, 10}

    with quire.open(path, clock=clock) as queue, queue.tailer() as tailer:
        assert queue.roll_cycle.name == "WEEKLY"
        assert list(tailer.payloads()) == [b"%d" % day for day in range(60)]
        assert queue.entry_count == 60


def test_a_roll_cycle_is_found_by_its_name_in_any_case() -> None:
    assert quire.RollCycle("fast_Daily") == quire.RollCycle("FAST_DAILY")
    assert quire.RollCycle("fast_daily").name == "FAST_DAILY"
    for wrong in ("", "FASTDAILY", "yyyyMMdd", "DAILY "):
        with pytest.raises(ValueError, match="FAST_DAILY"):
            quire.RollCycle(wrong)


def test_a_roll_cycle_is_equal_by_name_and_pickles() -> None:
    for cycle in ALL:
        assert pickle.loads(pickle.dumps(cycle)) == cycle
        assert hash(quire.RollCycle(cycle.name)) == hash(cycle)
        assert repr(cycle) == f'RollCycle("{cycle.name}")'
    assert len(set(ALL)) == len(ALL) == 28


@pytest.mark.parametrize("other", ["FAST_DAILY", None, 1], ids=repr)
def test_a_roll_cycle_differs_from_anything_else(other: object) -> None:
    assert (quire.RollCycle("FAST_DAILY") == other) is False
    assert (quire.RollCycle("FAST_DAILY") != other) is True
