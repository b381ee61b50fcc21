from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import quire
from quire.ranges.event_time import TimeField
from quire.ranges.seek import index_at_time

DAY_NS = 86_400 * 10**9
START_NS = 15_706 * DAY_NS
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def recorded(path: Path, days: list[list[int]], unit: str = "ns", shift_ns: int = 0) -> list[int]:
    """Record maps with a time, the day's nanoseconds behind *shift_ns*; return their indexes."""
    clock = quire.ManualClock(0)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue,
        queue.appender() as appender,
    ):
        indexes: list[int] = []
        for day, offsets in enumerate(days):
            clock.now_ms = (START_NS + day * DAY_NS) // 1_000_000
            if not offsets:  # a file without messages
                with appender.writing_document() as document:
                    document.rollback_on_close()
            for offset in offsets:
                time_ns = START_NS + shift_ns + day * DAY_NS + offset
                values = {"time": time_ns // UNITS[unit]} if offset % 7 else {"other": 1}
                indexes.append(appender.write_map(values))
        return indexes


@pytest.mark.check
@given(
    days=st.lists(
        st.lists(st.integers(0, DAY_NS - 1), max_size=9).map(sorted), min_size=1, max_size=4
    ),
    shift_ns=st.sampled_from([0, 40 * DAY_NS, -40 * DAY_NS]),
    wanted=st.integers(-1, 4 * DAY_NS),
)
@example(days=[[1, 2, 2, 3], [], [5]], shift_ns=0, wanted=2)
@example(days=[[1, 2], [], [], [3, 4], [5, 6]], shift_ns=0, wanted=4 * DAY_NS + 6)
def test_a_moment_begins_at_the_first_message_that_is_not_before_it(
    days: list[list[int]], shift_ns: int, wanted: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        indexes = recorded(Path(folder), days, shift_ns=shift_ns)
        moment = START_NS + shift_ns + wanted
        with quire.open(folder, read_only=True) as queue:
            try:
                found = index_at_time(queue, moment, TimeField("time"))
            except ValueError:
                found = None
            with queue.tailer() as tailer:
                messages = [(each.index, each.to_dict().get("time")) for each in tailer]

    assert (found is None) == (bool(messages) and not any(time for _, time in messages))
    if found is None:
        return
    timed = [(index, time) for index, time in messages if time is not None]
    later = [index for index, time in timed if time >= moment]
    before = [index for index, time in timed if time < moment]
    # Messages without a time belong to neither side.
    assert all(index >= found for index in later)
    assert all(index < found for index in before)
    assert 0 <= found <= (indexes[-1] + 1 if indexes else 0)


def test_without_a_field_a_moment_begins_with_its_cycle(tmp_path: Path) -> None:
    indexes = recorded(tmp_path / "queue", [[1, 2], [], [3]])
    with quire.open(tmp_path / "queue", read_only=True) as queue:
        found = [index_at_time(queue, START_NS + day * DAY_NS + 5) for day in (-9, 0, 1, 2, 3)]
        empty = queue.roll_cycle.to_index(queue.cycles[1], 0)

    assert found == [indexes[0], indexes[0], empty, indexes[2], indexes[2] + 1]


@pytest.mark.parametrize("unit", UNITS)
def test_numbers_are_taken_for_the_unit_that_makes_sense(tmp_path: Path, unit: str) -> None:
    second = 10**9
    indexes = recorded(tmp_path / "queue", [[second, 2 * second, 3 * second]], unit=unit)
    with quire.open(tmp_path / "queue", read_only=True) as queue:
        for field in (TimeField("time"), TimeField("time", unit)):
            assert index_at_time(queue, START_NS + 2 * second, field) == indexes[1]


def test_a_field_that_no_message_has_is_an_error(tmp_path: Path) -> None:
    recorded(tmp_path / "queue", [[1, 2], [3]])
    with (
        quire.open(tmp_path / "queue", read_only=True) as queue,
        pytest.raises(ValueError, match="no message has the field: field=tyme"),
    ):
        index_at_time(queue, START_NS, TimeField("tyme"))


def test_the_search_for_a_time_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.ranges.seek._LOOK_MAX", 3)
    recorded(tmp_path / "queue", [[1, 7, 14, 21, 28, 29]])  # multiples of seven tell no time
    with (
        quire.open(tmp_path / "queue", read_only=True) as queue,
        pytest.raises(ValueError, match=r"no message has the field: .* looked_at=3"),
    ):
        index_at_time(queue, START_NS + 20, TimeField("time"))


def test_an_empty_queue_begins_with_its_first_message_to_come(queue: quire.JournalQueue) -> None:
    assert index_at_time(queue, START_NS) == 0
    assert index_at_time(queue, START_NS, TimeField("time")) == 0
